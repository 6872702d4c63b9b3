"""Many files at once, on Spark: the only room that imports pyspark."""
