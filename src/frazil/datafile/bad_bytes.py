"""What decoders of data files raise on bytes that break their format; `reading` in `open_file.py` gives it a path."""

from __future__ import annotations


class BadBytes(ValueError):
    """Why a file cannot be read. Never escapes the room: it becomes an `InvalidDataFileError`."""
