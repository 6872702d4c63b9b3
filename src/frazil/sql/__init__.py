"""SQL text to statements. Nothing here executes anything, and nothing here knows Spark."""
