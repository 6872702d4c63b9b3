"""The catalog's part in deleting a dropped table's files: when it is refused, and its report.

Finding the files requires reading manifests (`maintenance/purge_files.py`), so `Catalog.drop_table` receives that
function; opening a catalog then needs only names and metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from frazil.catalog.owned_folders import OwnedFolders
from frazil.errors import InvalidRequestError, StorageError
from frazil.loaded import LoadedTable
from frazil.spec import properties as known
from frazil.spec.properties import read_property
from frazil.storage.base import Storage


@dataclass(frozen=True, slots=True)
class PurgeReport:
    """The number of deleted and retained files; of those retained, the first hundred with the reason."""

    deleted_count: int = 0
    kept_count: int = 0
    kept: tuple[tuple[str, str], ...] = ()


NOTHING_PURGED = PurgeReport()

Purge: TypeAlias = Callable[[LoadedTable, OwnedFolders], PurgeReport]
"""Deletes the files that a dropped table's last state references, as far as they belong to the table."""


def check_may_purge(loaded: LoadedTable) -> None:
    """Refuse to purge a table whose files may belong to another table too."""
    if not read_property(loaded.metadata.properties, known.GC_ENABLED):
        raise InvalidRequestError(
            f"Cannot purge table {loaded.name}: {known.GC_ENABLED} is false, so its files may be another table's too",
            hint=f"Drop it without purge, or set {known.GC_ENABLED} to true first.",
        )


def remove_empty_folders(storage: Storage, folder: str) -> bool:
    """Remove a folder that contains only empty folders; return whether it was removed. Errors are ignored."""
    try:
        children = storage.list_children(folder)
        removed = [remove_empty_folders(storage, f"{folder}/{name}") for name in children.folders]
        if children.files or not all(removed):
            return False
        storage.delete_folder(folder)
    except (StorageError, InvalidRequestError):
        return False
    return True
