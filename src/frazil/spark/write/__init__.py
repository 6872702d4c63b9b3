"""Writing DataFrames to data files."""
