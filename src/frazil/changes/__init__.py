"""Metadata to metadata: what a commit asks to change, what it requires, and the result. Pure functions."""
