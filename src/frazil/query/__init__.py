"""SQL in this process: DuckDB over pinned scans of lake tables."""
