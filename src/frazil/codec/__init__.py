"""Values to bytes and back: JSON, Avro, Puffin, single values."""
