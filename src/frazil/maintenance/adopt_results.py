"""What making a table of one that others keep returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SnapshotTableResult:
    """How many files of a source the new table reads."""

    imported_files_count: int = 0


@dataclass(frozen=True, slots=True)
class MigrateTableResult:
    """How many files the new table has, and the name under which the source is kept, None if it is dropped."""

    migrated_files_count: int = 0
    backup_table: str | None = None
