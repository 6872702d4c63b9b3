"""The error of decoders for bytes that violate a data file's format; `reading` in `open_file.py` adds the path."""

from __future__ import annotations


class BadBytes(ValueError):
    """The reason why a file cannot be read. Internal to this room: it becomes an `InvalidDataFileError`."""
