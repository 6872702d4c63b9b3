"""Changes of rows in this process: delete, update, upsert, merge and overwrite, without Spark."""
