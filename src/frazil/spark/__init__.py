"""Reading and writing tables on Spark; the only package that imports pyspark."""
