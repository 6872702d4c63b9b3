"""What a table needs: whether its files agree with its metadata, and what would make it better. No Spark."""
