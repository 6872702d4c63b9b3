"""The surface of the Iceberg jar for Spark: options, settings and classes, and what frazil does with each."""
