"""Maintenance of tables: whether files agree with the metadata, and what would improve a table. No Spark."""
