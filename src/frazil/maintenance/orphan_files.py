"""Remove unreferenced files in a table's folders, left behind by writers that died and by expiries.

    1 reach     hash the files that the table references now (`commit/reachable_files.py`)
    2 list      stream the table's folders; recent, hidden and referenced files are skipped
    3 reach     again, including concurrent commits: the remaining files are orphans
    4 delete    in the table's own folders only, with links resolved, several at a time

A file that is being written is not referenced either: only its age distinguishes it from an orphan. So files younger
than three days stay by default, and files younger than a day are never deleted. As in Iceberg Java, names that start
with a dot or an underscore belong to other programs and stay, except partition folders. So do version files of a
filesystem catalog, whose names are its lock.

Folders in which files of other tables could be mistaken for orphans are refused: folders outside those that the table
owns (`catalog/owned_folders.py`); folders that contain or lie in a folder of another table of the catalog, or of a
table that cannot be loaded; folders with metadata of another table in or above them; and a folder that contains the
warehouse. Metadata that spells a file with another scheme or authority is an error, unless the caller declares them
equal or chooses what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from frazil.catalog.base import NO_PLACE, Catalog
from frazil.catalog.owned_folders import owned_folders
from frazil.catalog.version_files import find_version
from frazil.commit.delete_paths import delete_paths, in_batches
from frazil.commit.expire_snapshots import check_may_collect
from frazil.commit.reachable_files import ReachableFiles, SameLocations
from frazil.errors import FrazilError, InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.maintenance.rewrite_table_path import STAGING_PREFIX
from frazil.maintenance.shown_work import with_progress
from frazil.progress import counted
from frazil.storage.base import Storage, StoredFile
from frazil.storage.locations import find_metadata_version, is_under, location_key, parse_location, strip_slashes
from frazil.threads import default_threads

DAY_MS: Final = 24 * 60 * 60 * 1000
DEFAULT_AGE_MS: Final = 3 * DAY_MS
_BATCH_SIZE: Final = 5000
_SHOWN: Final = 3


class PrefixMismatch(StrEnum):
    """What to do with a file that differs from a file of the table only in scheme or authority."""

    ERROR = "error"
    IGNORE = "ignore"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class OrphanRequest:
    """The scope of the search.

    `older_than_ms` is a point in time; None means three days ago. `location` limits the search to a folder of the
    table. `files` are checked instead of a listing, each with its modification time. `equal_schemes` and
    `equal_authorities` map names, several separated by commas, to their canonical name. With `old_metadata`, metadata
    files that the current metadata's log no longer lists count as orphans. `delete_roots` are folders outside the
    warehouse that the caller declares as the table's own.
    """

    older_than_ms: int | None = None
    location: str | None = None
    files: Iterable[tuple[str, int]] | None = None
    equal_schemes: Mapping[str, str] = field(default_factory=dict)
    equal_authorities: Mapping[str, str] = field(default_factory=dict)
    prefix_mismatch_mode: PrefixMismatch = PrefixMismatch.ERROR
    old_metadata: bool = False
    delete_roots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OrphanFilesResult:
    """The orphans that were deleted, or would be, and those that could not be deleted, with the reasons."""

    orphan_file_locations: tuple[str, ...] = ()
    orphan_bytes: int = 0
    kept: tuple[tuple[str, str], ...] = ()


@with_progress("remove orphan files of")
def remove_orphan_files(
    catalog: Catalog,
    loaded: LoadedTable,
    request: OrphanRequest | None = None,
    *,
    dry_run: bool = False,
    threads: int | None = None,
) -> OrphanFilesResult:
    """Delete the files in a table's folders that no state of the table references, and return them.

    Safe with concurrent writers, as long as no write takes longer than the minimum age of orphans.
    """
    options = OrphanRequest() if request is None else request
    workers = default_threads() if threads is None else threads
    check_may_collect(loaded.metadata, "remove orphan files")
    limit_ms = _limit(options, catalog.now_ms())
    owned = owned_folders(catalog, loaded, options.delete_roots)
    searched = _searched(options, owned.folders)
    owned.check_folders("remove orphan files of", searched, is_alone=True)
    same = SameLocations(_flat(options.equal_schemes), _flat(options.equal_authorities))
    reachable = ReachableFiles(loaded.storage, same)
    reachable.add_table(loaded, threads=workers, old_metadata=not options.old_metadata)
    _check_alone(catalog, loaded, searched, reachable)

    sizes: dict[str, int] = {}
    doubtful: list[str] = []
    listed = _listed(loaded, options, searched, owned.folders, reachable)
    old = (stored_file for stored_file in counted("files listed", listed) if stored_file.modified_ms < limit_ms)
    for batch in in_batches(old, _BATCH_SIZE):
        batch_sizes = {stored_file.path: stored_file.size for stored_file in batch}
        missing, differing = reachable.find_unreachable(list(batch_sizes))
        doubtful += differing
        if options.prefix_mismatch_mode is PrefixMismatch.DELETE:
            missing += differing
        sizes.update((path, batch_sizes[path]) for path in missing)
    if doubtful and options.prefix_mismatch_mode is PrefixMismatch.ERROR:
        raise _mismatch(doubtful)

    # Include commits made during the listing, which may reference more files.
    reachable.add_table(catalog.refresh(loaded), threads=workers, old_metadata=not options.old_metadata)
    orphans: list[str] = []
    for paths in in_batches(sizes, _BATCH_SIZE):
        missing, differing = reachable.find_unreachable(paths)
        orphans += missing + (differing if options.prefix_mismatch_mode is PrefixMismatch.DELETE else [])
    if dry_run:
        return OrphanFilesResult(tuple(orphans), sum(sizes[orphan] for orphan in orphans))
    deleted: list[str] = []
    kept: list[tuple[str, str]] = []
    for path, reason in delete_paths(loaded.storage, orphans, owned, threads=workers):
        if reason is None:
            deleted.append(path)
        else:
            kept.append((path, reason))
    return OrphanFilesResult(tuple(deleted), sum(sizes[path] for path in deleted), tuple(kept))


def _limit(request: OrphanRequest, now_ms: int) -> int:
    if request.older_than_ms is None:
        return now_ms - DEFAULT_AGE_MS
    if now_ms - request.older_than_ms < DAY_MS:
        raise InvalidRequestError(
            "Cannot remove orphan files that are less than 24 hours old: writers may still be writing them",
            hint="Pass an older point in time, or none for three days ago.",
        )
    return request.older_than_ms


def _flat(equal: Mapping[str, str]) -> dict[str, str]:
    """Return the canonical name of each name, from comma-separated names."""
    return {name.strip(): value.strip() for names, value in equal.items() for name in names.split(",")}


def _mismatch(doubtful: list[str]) -> InvalidRequestError:
    more = f" and {len(doubtful) - _SHOWN} more" if len(doubtful) > _SHOWN else ""
    return InvalidRequestError(
        f"Cannot remove orphan files: {', '.join(doubtful[:_SHOWN])}{more} have the path of a file of the "
        "table, with another scheme or authority",
        hint="Declare equal names with equal_schemes and equal_authorities, or set prefix_mismatch_mode to IGNORE, "
        "which keeps such files, or to DELETE, which deletes them.",
    )


# Folders to search


def _searched(request: OrphanRequest, folders: tuple[str, ...]) -> tuple[str, ...]:
    if request.location is None:
        return folders
    location = strip_slashes(request.location)
    if any(location == folder or is_under(location, folder) for folder in folders):
        return (location,)
    raise InvalidRequestError(
        f"Cannot remove orphan files in {location!r}: it is outside the table's folders",
        hint="Pass a folder of the table, or none to search all of them.",
        folders=", ".join(folders),
    )


def _check_alone(catalog: Catalog, loaded: LoadedTable, searched: tuple[str, ...], reachable: ReachableFiles) -> None:
    """Refuse folders that contain the warehouse, or lie in the folder of a table that another catalog may have."""
    storage = loaded.storage
    is_placed = catalog.warehouse != NO_PLACE
    warehouse = location_key(storage.resolve_folder(catalog.warehouse)) if is_placed else ""
    for folder in searched:
        key = location_key(storage.resolve_folder(folder))
        if is_placed and f"{warehouse.rstrip('/')}/".startswith(f"{key.rstrip('/')}/"):
            raise InvalidRequestError(
                f"Cannot remove orphan files of {loaded.name}: its folder contains the whole warehouse "
                f"{catalog.warehouse}",
                hint="Pass a location that only this table uses.",
            )
        other = _find_table_above(storage, folder, reachable)
        if other is not None:
            raise InvalidRequestError(
                f"Cannot remove orphan files of {loaded.name}: {folder} lies in the folder of another table, whose "
                f"metadata is {other}",
                hint="Pass a location that only this table uses.",
            )


def _find_table_above(storage: Storage, folder: str, reachable: ReachableFiles) -> str | None:
    """Return metadata of another table in a parent folder, or None if there is none or access is denied."""
    parent = strip_slashes(storage.resolve_folder(folder))
    while parse_location(parent).path.strip("/") != "":
        parent = parent.rpartition("/")[0]
        metadata = f"{parent}/metadata"
        try:
            names = storage.list_children(metadata).files
            metadata_name = next((name for name in names if find_metadata_version(name) is not None), None)
            if metadata_name is not None and not reachable.is_metadata_folder(metadata):
                return f"{metadata}/{metadata_name}"
        except FrazilError:
            return None
    return None


# Files to check


def _listed(
    loaded: LoadedTable,
    request: OrphanRequest,
    searched: tuple[str, ...],
    folders: tuple[str, ...],
    reachable: ReachableFiles,
) -> Iterator[StoredFile]:
    """Yield the files to check; refuse metadata of another table among them."""
    if request.files is not None:
        for path, modified_ms in request.files:
            if any(is_under(path, folder) for folder in searched) and find_version(path) is None:
                yield StoredFile(path, 0, modified_ms)
        return
    partition_names = {
        f"{partition_field.name}=" for spec in loaded.metadata.partition_specs for partition_field in spec.fields
    }
    own: dict[str, bool] = {}
    for root in searched:
        base = next(folder for folder in folders if root == folder or is_under(root, folder))
        for file in loaded.storage.list(root):
            folder = file.path.rpartition("/")[0]
            if find_metadata_version(file.path) is not None:
                if folder not in own:
                    own[folder] = reachable.is_metadata_folder(folder) or _is_staging(folder, reachable)
                if not own[folder]:
                    raise InvalidRequestError(
                        f"Cannot remove orphan files of {loaded.name}: {file.path} is metadata of another table, "
                        "inside its folders",
                        hint="Move that table, or pass a location that only this table uses.",
                    )
            # In a filesystem catalog version names stay reserved, or a delayed writer could claim one again.
            if find_version(file.path) is None and not _is_hidden(file.path[len(base) :], partition_names):
                yield file


def _is_staging(folder: str, reachable: ReachableFiles) -> bool:
    """Return whether a folder is a staging folder of this table, with rewritten metadata to be copied elsewhere."""
    parent, mark, _ = folder.partition(f"/{STAGING_PREFIX}")
    return mark != "" and reachable.is_metadata_folder(parent)


def _is_hidden(below: str, partition_names: set[str]) -> bool:
    """Return whether a file, or a folder it is in, has a name that is reserved for other programs."""
    return any(
        step.startswith(("_", ".")) and not any(step.startswith(name) for name in partition_names)
        for step in below.split("/")
    )
