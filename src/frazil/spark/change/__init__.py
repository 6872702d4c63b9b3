"""Changes of rows: delete, update, merge, upsert, overwrite."""
