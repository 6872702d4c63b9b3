"""Tables as Spark streams."""
