"""Bytes at rest: reading, creating, listing and deleting files, wherever they are kept."""
