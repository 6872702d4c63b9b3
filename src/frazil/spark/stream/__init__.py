"""Tables as streams of Spark."""
