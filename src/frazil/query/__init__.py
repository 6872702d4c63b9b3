"""Queries in this process, by DuckDB over the files of a lake."""
