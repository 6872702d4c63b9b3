"""Results of `snapshot` and `migrate`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SnapshotTableResult:
    """The number of files of a source that the new table reads."""

    imported_files_count: int = 0


@dataclass(frozen=True, slots=True)
class MigrateTableResult:
    """The number of files of the new table, and the name of the source's backup, or None if it was dropped."""

    migrated_files_count: int = 0
    backup_table: str | None = None
