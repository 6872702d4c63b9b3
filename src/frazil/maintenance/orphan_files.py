"""Remove files in a table's folders that nothing of the table leads to. Left by writers that died, and by expiries.

    1 reach     what the table leads to now, as hashes (`commit/reachable_files.py`)
    2 list      the table's folders, in a stream; files that are young, hidden or reached are passed over
    3 reach     again, with what others have committed since: what is left over is orphaned
    4 delete    in the table's own folders only, links followed, several at a time

A file that is being written is not reached either: only age tells it from an orphan. So files younger than three days
stay unless asked, and none younger than a day is ever deleted. As in Iceberg Java, names that start with a dot or an
underscore are other programs' own and stay, folders of partition fields aside. So do versions of a filesystem catalog:
their names are its lock.

Refused, because files of others would be taken for orphans: folders that only metadata calls the table's own
(`catalog/owned_folders.py`), that hold or lie in a folder of another table of the catalog, or of one that cannot be
loaded; folders in which, or above which, metadata of another table is found; and one that holds the warehouse.
Metadata that spells a file with another scheme or authority is an error, unless the caller says what is the same, or
what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from frazil.catalog.base import NO_PLACE, Catalog
from frazil.catalog.owned_folders import owned_folders
from frazil.catalog.version_files import find_version
from frazil.commit.delete_paths import delete_paths, in_parts
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
_LISTED_AT_ONCE: Final = 5000
_SHOWN: Final = 3


class PrefixMismatch(StrEnum):
    """What to do with a file that differs from one of the table in scheme or authority only."""

    ERROR = "error"
    IGNORE = "ignore"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class OrphanRequest:
    """What to look for.

    `older_than_ms` is a point in time; None is three days ago. `location` narrows the search to a folder of the table.
    `files` are looked at in place of a listing, each with when it was last changed. `equal_schemes` and
    `equal_authorities` map names, several with commas between, to the one they stand for. With `old_metadata`,
    metadata files count as orphans that the current metadata's log does not name any more. `delete_roots` are folders
    outside the warehouse that the caller knows to be the table's own.
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
    """The orphans that were deleted, or would be, and those that could not be, each with the reason."""

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
    """Delete the files in a table's folders that no state of the table leads to, and return which.

    Safe beside writers, as long as no write takes longer than the age that files must have.
    """
    wanted = OrphanRequest() if request is None else request
    workers = default_threads() if threads is None else threads
    check_may_collect(loaded.metadata, "remove orphan files")
    limit_ms = _limit(wanted, catalog.now_ms())
    owned = owned_folders(catalog, loaded, wanted.delete_roots)
    searched = _searched(wanted, owned.folders)
    owned.check_folders("remove orphan files of", searched, is_alone=True)
    same = SameLocations(_flat(wanted.equal_schemes), _flat(wanted.equal_authorities))
    reachable = ReachableFiles(loaded.storage, same)
    reachable.add_table(loaded, threads=workers, old_metadata=not wanted.old_metadata)
    _check_alone(catalog, loaded, searched, reachable)

    sizes: dict[str, int] = {}
    doubtful: list[str] = []
    listed = _listed(loaded, wanted, searched, owned.folders, reachable)
    old = (stored_file for stored_file in counted("files listed", listed) if stored_file.modified_ms < limit_ms)
    for batch in in_parts(old, _LISTED_AT_ONCE):
        known = {stored_file.path: stored_file.size for stored_file in batch}
        missing, differing = reachable.find_unreachable(list(known))
        doubtful += differing
        if wanted.prefix_mismatch_mode is PrefixMismatch.DELETE:
            missing += differing
        sizes.update((path, known[path]) for path in missing)
    if doubtful and wanted.prefix_mismatch_mode is PrefixMismatch.ERROR:
        raise _mismatch(doubtful)

    # What was committed while folders were listed counts: a table that has moved on leads to more files.
    reachable.add_table(catalog.refresh(loaded), threads=workers, old_metadata=not wanted.old_metadata)
    orphans: list[str] = []
    for paths in in_parts(sizes, _LISTED_AT_ONCE):
        missing, differing = reachable.find_unreachable(paths)
        orphans += missing + (differing if wanted.prefix_mismatch_mode is PrefixMismatch.DELETE else [])
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
            "Cannot remove orphan files that are less than 24 hours old: writers may still be at work on them",
            hint="Give an older point in time, or none for three days ago.",
        )
    return request.older_than_ms


def _flat(equal: Mapping[str, str]) -> dict[str, str]:
    """Return what each single name stands for, from names with commas between."""
    return {name.strip(): value.strip() for names, value in equal.items() for name in names.split(",")}


def _mismatch(doubtful: list[str]) -> InvalidRequestError:
    more = f" and {len(doubtful) - _SHOWN} more" if len(doubtful) > _SHOWN else ""
    return InvalidRequestError(
        f"Cannot tell whether files are orphans: {', '.join(doubtful[:_SHOWN])}{more} have the path of a file of the "
        "table, under another scheme or authority",
        hint="Say which are the same with equal_schemes and equal_authorities, or set prefix_mismatch_mode to IGNORE, "
        "which keeps such files, or to DELETE, which deletes them.",
    )


# Where to look


def _searched(request: OrphanRequest, folders: tuple[str, ...]) -> tuple[str, ...]:
    if request.location is None:
        return folders
    location = strip_slashes(request.location)
    if any(location == folder or is_under(location, folder) for folder in folders):
        return (location,)
    raise InvalidRequestError(
        f"Cannot remove orphan files in {location!r}: it is outside the table's folders",
        hint="Give a folder of the table, or none to search all of them.",
        folders=", ".join(folders),
    )


def _check_alone(catalog: Catalog, loaded: LoadedTable, searched: tuple[str, ...], reachable: ReachableFiles) -> None:
    """Refuse folders that hold the warehouse, or lie in the folder of a table that another catalog may have."""
    storage = loaded.storage
    is_placed = catalog.warehouse != NO_PLACE
    warehouse = location_key(storage.resolve_folder(catalog.warehouse)) if is_placed else ""
    for folder in searched:
        key = location_key(storage.resolve_folder(folder))
        if is_placed and f"{warehouse.rstrip('/')}/".startswith(f"{key.rstrip('/')}/"):
            raise InvalidRequestError(
                f"Cannot remove orphan files of {loaded.name}: its folder holds the whole warehouse "
                f"{catalog.warehouse}",
                hint="Give a location that only this table uses.",
            )
        other = _find_table_above(storage, folder, reachable)
        if other is not None:
            raise InvalidRequestError(
                f"Cannot remove orphan files of {loaded.name}: {folder} lies in the folder of another table, whose "
                f"metadata is {other}",
                hint="Give a location that only this table uses.",
            )


def _find_table_above(storage: Storage, folder: str, reachable: ReachableFiles) -> str | None:
    """Return metadata of another table in a folder above one; what may not be looked at tells nothing."""
    above = strip_slashes(storage.resolve_folder(folder))
    while parse_location(above).path.strip("/") != "":
        above = above.rpartition("/")[0]
        metadata = f"{above}/metadata"
        try:
            names = storage.list_children(metadata).files
            found = next((name for name in names if find_metadata_version(name) is not None), None)
            if found is not None and not reachable.is_metadata_folder(metadata):
                return f"{metadata}/{found}"
        except FrazilError:
            return None
    return None


# What is there


def _listed(
    loaded: LoadedTable,
    request: OrphanRequest,
    searched: tuple[str, ...],
    folders: tuple[str, ...],
    reachable: ReachableFiles,
) -> Iterator[StoredFile]:
    """Yield the files to look at; refuse metadata of another table among them."""
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
                        hint="Move that table, or give a location that only this table uses.",
                    )
            # In a filesystem catalog the name of a version stays taken, or a writer who slept could claim it again.
            if find_version(file.path) is None and not _is_hidden(file.path[len(base) :], partition_names):
                yield file


def _is_staging(folder: str, reachable: ReachableFiles) -> bool:
    """Return whether a folder is one in which this table's own metadata was written anew, to be copied elsewhere."""
    above, mark, _ = folder.partition(f"/{STAGING_PREFIX}")
    return mark != "" and reachable.is_metadata_folder(above)


def _is_hidden(below: str, partition_names: set[str]) -> bool:
    """Return whether a file, or a folder it is in, has a name that other programs use for their own."""
    return any(
        step.startswith(("_", ".")) and not any(step.startswith(name) for name in partition_names)
        for step in below.split("/")
    )
