"""Tables as Spark DataFrames."""
