"""Row-level changes without Spark: delete, update, upsert, merge and overwrite in this process."""
