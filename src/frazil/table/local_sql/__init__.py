"""Local SQL over a lake: queries and statements of `lake.sql`, by DuckDB and the verbs."""
