"""DataFrames as data files."""
