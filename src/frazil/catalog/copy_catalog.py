"""Give tables and views of one catalog to another: their names move, their files stay where they are.

For each namespace: it is created, with its properties. For each table:

    1  register there the metadata file that the source leads to
    2  load it there, and compare
    3  unregister here, while the source still leads to that file; a writer who came between makes this begin anew
    4  load it there once more

A copy that was stopped is run again: whatever is there already, at the state of the source or a later one, is not
registered twice. Two catalogs that lead to one table are safe as long as one of them is written: after step 1 until
step 3, writers of the source are noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from frazil.catalog.base import Catalog
from frazil.catalog.names import Identifier, Namespace, format_name
from frazil.errors import (
    CommitConflictError,
    FrazilError,
    InvalidRequestError,
    NotFoundError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from frazil.loaded import LoadedTable, LoadedView
from frazil.spec.table_metadata import TableMetadata
from frazil.threads import map_in_order

MOVED: Final = "moved"
COPIED: Final = "copied"
PLANNED: Final = "to do"
ALREADY: Final = "was there"
FAILED: Final = "failed"
_TRIES: Final = 10
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class CopyStep:
    """What came of one namespace, table or view."""

    kind: str
    name: str
    outcome: str
    metadata: str | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class _Work:
    namespaces: tuple[Namespace, ...]
    tables: tuple[Identifier, ...]
    views: tuple[Identifier, ...]


def copy_catalog(
    source: Catalog, target: Catalog, *, names: Sequence[str] = (), keep: bool = False, dry_run: bool = False
) -> Iterator[CopyStep]:
    """Yield what comes of every namespace, table and view; one that fails does not hold up the others.

    `names` are tables and views, `*` and `?` stand for parts of them; all by default. With `keep` the source keeps
    its names, and from then on one of the two catalogs alone may be written.
    """
    work = _find_work(source, names)
    if dry_run:
        yield from _planned(source, target, work)
        return
    _check_apart(source, target, work)
    for namespace in work.namespaces:
        yield _guarded("namespace", namespace, partial(_copy_namespace, source, target, namespace))
    jobs = [("table", table) for table in work.tables] + [("view", view) for view in work.views]
    yield from map_in_order(lambda job: _copy_one(source, target, job[0], job[1], keep), jobs, threads=_AT_ONCE)


def _copy_one(source: Catalog, target: Catalog, entity_type: str, name: Identifier, keep: bool) -> CopyStep:
    if entity_type == "table":
        return _guarded(entity_type, name, lambda: _copy_table(source, target, name, keep))
    return _guarded(entity_type, name, lambda: _copy_view(source, target, name, keep))


def _guarded(entity_type: str, name: Identifier, work: Callable[[], CopyStep]) -> CopyStep:
    try:
        return work()
    except FrazilError as error:
        return CopyStep(entity_type, format_name(name), FAILED, None, str(error).partition("\n")[0])


def _find_work(source: Catalog, names: Sequence[str]) -> _Work:
    spaces: list[Namespace] = []
    waiting = list(source.list_namespaces(()))
    while waiting:
        namespace = waiting.pop(0)
        spaces.append(namespace)
        waiting[:0] = source.list_namespaces(namespace)
    tables = [name for space in spaces for name in source.list_tables(space)]
    views = [name for space in spaces for name in source.list_views(space)]
    if names:
        for pattern in names:
            if not any(_matches(identifier, [pattern]) for identifier in (*tables, *views)):
                raise InvalidRequestError(f"Cannot copy {pattern!r}: the source has no table or view of that name")
        tables = [table for table in tables if _matches(table, names)]
        views = [view for view in views if _matches(view, names)]
        needed = {name[:size] for name in (*tables, *views) for size in range(1, len(name))}
        spaces = [space for space in spaces if space in needed]
    return _Work(tuple(spaces), tuple(tables), tuple(views))


def _matches(name: Identifier, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(".".join(name), pattern) for pattern in patterns)


def _planned(source: Catalog, target: Catalog, work: _Work) -> Iterator[CopyStep]:
    for space in work.namespaces:
        yield CopyStep("namespace", format_name(space), ALREADY if target.namespace_exists(space) else PLANNED)
    for name in work.tables:
        yield _guarded("table", name, partial(_plan_table, source, target, name))
    for name in work.views:
        yield _guarded("view", name, partial(_plan_view, source, target, name))


def _plan_table(source: Catalog, target: Catalog, name: Identifier) -> CopyStep:
    loaded = source.load_table(name)
    there = _find_table(target, name)
    if there is not None:
        _needs_registering(loaded, there)
    metadata_location = loaded.metadata_location
    return CopyStep(
        "table", format_name(name), PLANNED, metadata_location, None if there is None else "is there already"
    )


def _plan_view(source: Catalog, target: Catalog, name: Identifier) -> CopyStep:
    loaded = source.load_view(name)
    there = _find_view(target, name)
    if there is not None:
        _check_same_view(loaded, there)
    return CopyStep(
        "view", format_name(name), PLANNED, loaded.metadata_location, None if there is None else "is there already"
    )


def _check_apart(source: Catalog, target: Catalog, work: _Work) -> None:
    """Refuse one catalog under two addresses: unregistering in one would take the names from both."""
    there: set[Identifier] = set()
    for namespace in work.namespaces:
        if target.namespace_exists(namespace):
            there.update(target.list_tables(namespace), target.list_views(namespace))
    if there.isdisjoint((*work.tables, *work.views)):
        return
    probe = (f"frazil_copy_{target.new_id().replace('-', '')}",)
    target.create_namespace(probe)
    try:
        is_same = source.namespace_exists(probe)
    finally:
        target.drop_namespace(probe)
    if is_same:
        raise InvalidRequestError("Cannot copy a catalog onto itself: the source and the target are one catalog")


def _copy_namespace(source: Catalog, target: Catalog, namespace: Namespace) -> CopyStep:
    properties = source.load_namespace_properties(namespace)
    if not target.namespace_exists(namespace):
        target.create_namespace(namespace, properties)
        return CopyStep("namespace", format_name(namespace), COPIED)
    there = target.load_namespace_properties(namespace)
    missing = {name: value for name, value in properties.items() if name not in there}
    if missing:
        target.update_namespace_properties(namespace, missing)
    other = sorted(name for name, value in properties.items() if there.get(name, value) != value)
    why = f"keeps its own {', '.join(other)}" if other else None
    return CopyStep("namespace", format_name(namespace), COPIED if missing else ALREADY, None, why)


def _copy_table(source: Catalog, target: Catalog, name: Identifier, keep: bool) -> CopyStep:
    for _ in range(_TRIES):
        loaded = source.load_table(name)
        was_there = _place_table(target, loaded)
        if keep:
            return CopyStep("table", format_name(name), ALREADY if was_there else COPIED, loaded.metadata_location)
        try:
            last = source.unregister_table(name, expected_location=loaded.metadata_location)
        except CommitConflictError:
            continue
        try:
            # A service may have taken another writer's state away with the name.
            _place_table(target, last)
        except FrazilError:
            source.register_table(name, last.metadata_location or "")
            raise
        return CopyStep("table", format_name(name), MOVED, last.metadata_location)
    raise CommitConflictError(f"Cannot move table {format_name(name)}: other writers keep committing to it")


def _place_table(target: Catalog, loaded: LoadedTable) -> bool:
    """Have the target lead to a state, or to a later one; return whether it did already."""
    name, location = loaded.identifier, loaded.metadata_location or ""
    there = _find_table(target, name)
    if there is not None and not _needs_registering(loaded, there):
        return True
    target.register_table(name, location, may_replace=there is not None)
    found = target.load_table(name)
    if found.metadata_location != location and not _is_same(found.metadata, loaded.metadata):
        raise CommitConflictError(
            f"Cannot verify table {format_name(name)}: the target leads to {found.metadata_location} and the source to "
            f"{location}"
        )
    return False


def _needs_registering(loaded: LoadedTable, there: LoadedTable) -> bool:
    """Return whether the target is behind; refuse another table, and one that went its own way."""
    name, location = format_name(loaded.identifier), loaded.metadata_location
    if there.metadata.table_uuid != loaded.metadata.table_uuid:
        raise TableAlreadyExistsError(f"Cannot copy table {name}: the target has another table of that name")
    if there.metadata_location == location or _is_same(there.metadata, loaded.metadata):
        return False
    if any(entry.metadata_file == location for entry in there.metadata.metadata_log):
        return False
    if any(entry.metadata_file == there.metadata_location for entry in loaded.metadata.metadata_log):
        return True
    raise CommitConflictError(
        f"Cannot copy table {name}: both catalogs have changed it since it was copied",
        hint="Look at both states, and drop the one that is not wanted.",
    )


def _is_same(table_metadata: TableMetadata, other: TableMetadata) -> bool:
    """Return whether two files say the same; a service may write a registered table's metadata anew."""
    return replace(table_metadata, metadata_log=(), last_updated_ms=0) == replace(
        other, metadata_log=(), last_updated_ms=0
    )


def _copy_view(source: Catalog, target: Catalog, name: Identifier, keep: bool) -> CopyStep:
    loaded = source.load_view(name)
    there = _find_view(target, name)
    if there is None:
        target.register_view(name, loaded.metadata_location or "")
        found = target.load_view(name)
        _check_same_view(loaded, found)
    else:
        _check_same_view(loaded, there)
    if keep:
        outcome = COPIED if there is None else ALREADY
        return CopyStep("view", format_name(name), outcome, loaded.metadata_location)
    if source.load_view(name).metadata_location != loaded.metadata_location:
        raise CommitConflictError(f"Cannot move view {format_name(name)}: another writer has changed it; copy it again")
    source.drop_view(name)
    return CopyStep("view", format_name(name), MOVED, loaded.metadata_location)


def _check_same_view(loaded: LoadedView, there: LoadedView) -> None:
    name = format_name(loaded.identifier)
    if there.metadata.view_uuid != loaded.metadata.view_uuid:
        raise ViewAlreadyExistsError(f"Cannot copy view {name}: the target has another view of that name")
    if there.metadata_location != loaded.metadata_location and there.metadata != loaded.metadata:
        raise CommitConflictError(
            f"Cannot copy view {name}: the target leads to {there.metadata_location}, the source to "
            f"{loaded.metadata_location}",
            hint="Drop the one that is not wanted.",
        )


def _find_table(target: Catalog, name: Identifier) -> LoadedTable | None:
    try:
        return target.load_table(name)
    except NotFoundError:
        return None


def _find_view(target: Catalog, name: Identifier) -> LoadedView | None:
    try:
        return target.load_view(name)
    except NotFoundError:
        return None
