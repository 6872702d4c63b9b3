"""Row-level changes on Spark: delete, update, merge, upsert and overwrite."""
