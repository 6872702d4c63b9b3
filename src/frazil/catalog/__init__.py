"""Catalogs: the mapping from names to current metadata, in SQL databases, file systems and memory."""
