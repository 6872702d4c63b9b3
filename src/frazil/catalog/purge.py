"""What a catalog knows of deleting a dropped table's files: when that is refused, and what came of it.

Which files those are is for whoever reads manifests (`maintenance/purge_files.py`): `Catalog.drop_table` is given the
function, so that opening a catalog takes no more than names and metadata.
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
    """How many files were deleted, and which stayed: of those that stayed, the first hundred with the reason."""

    deleted_count: int = 0
    kept_count: int = 0
    kept: tuple[tuple[str, str], ...] = ()


NOTHING_PURGED = PurgeReport()

Purge: TypeAlias = Callable[[LoadedTable, OwnedFolders], PurgeReport]
"""Deletes the files that a dropped table's last state reaches, as far as they are the table's own."""


def check_may_purge(loaded: LoadedTable) -> None:
    """Refuse to purge a table whose files are, or may be, those of another table too."""
    if not read_property(loaded.metadata.properties, known.GC_ENABLED):
        raise InvalidRequestError(
            f"Cannot purge table {loaded.name}: {known.GC_ENABLED} is false, so its files may be another table's too",
            hint=f"Drop it without purge, or set {known.GC_ENABLED} to true first.",
        )


def remove_empty_folders(storage: Storage, folder: str) -> bool:
    """Remove a folder if nothing but empty folders is in it; return whether it is gone. Errors are no matter."""
    try:
        children = storage.list_children(folder)
        gone = [remove_empty_folders(storage, f"{folder}/{name}") for name in children.folders]
        if children.files or not all(gone):
            return False
        storage.delete_folder(folder)
    except (StorageError, InvalidRequestError):
        return False
    return True
