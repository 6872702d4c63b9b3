"""Storage: reading, creating, listing and deleting files, on any kind of store."""
