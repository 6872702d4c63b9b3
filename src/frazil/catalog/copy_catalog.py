"""Move or copy the tables and views of one catalog to another: their names move, their files stay where they are.

A namespace is created with its properties. For each table:

    1  register the source's metadata file in the target
    2  load it from the target and compare
    3  unregister it in the source if the source still points to that file; otherwise another writer has committed:
    retry
    4  load it from the target once more

An interrupted copy can be run again: what is already in the target, at the source's state or a later one, is not
registered twice. Two catalogs that point to one table are safe as long as only one of them is written: between steps 1
and 3, commits to the source are detected.
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
    """The result for one namespace, table or view."""

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
    """Copy namespaces, tables and views and yield the result of each; a failure does not stop the others.

    `names` selects tables and views, with the wildcards `*` and `?`; by default all are copied. With `keep` the source
    keeps its names, and from then on only one of the two catalogs may be written.
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
    existing = _find_table(target, name)
    if existing is not None:
        _needs_registering(loaded, existing)
    metadata_location = loaded.metadata_location
    return CopyStep(
        "table", format_name(name), PLANNED, metadata_location, None if existing is None else "it exists already"
    )


def _plan_view(source: Catalog, target: Catalog, name: Identifier) -> CopyStep:
    loaded = source.load_view(name)
    existing = _find_view(target, name)
    if existing is not None:
        _check_same_view(loaded, existing)
    return CopyStep(
        "view", format_name(name), PLANNED, loaded.metadata_location, None if existing is None else "it exists already"
    )


def _check_apart(source: Catalog, target: Catalog, work: _Work) -> None:
    """Refuse a catalog that is opened under two addresses, since unregistering would remove the names from both."""
    existing: set[Identifier] = set()
    for namespace in work.namespaces:
        if target.namespace_exists(namespace):
            existing.update(target.list_tables(namespace), target.list_views(namespace))
    if existing.isdisjoint((*work.tables, *work.views)):
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
    existing = target.load_namespace_properties(namespace)
    missing = {name: value for name, value in properties.items() if name not in existing}
    if missing:
        target.update_namespace_properties(namespace, missing)
    other = sorted(name for name, value in properties.items() if existing.get(name, value) != value)
    why = f"the target keeps its values of {', '.join(other)}" if other else None
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
            # A service may have removed a later state of another writer along with the name.
            _place_table(target, last)
        except FrazilError:
            source.register_table(name, last.metadata_location or "")
            raise
        return CopyStep("table", format_name(name), MOVED, last.metadata_location)
    raise CommitConflictError(f"Cannot move table {format_name(name)}: other writers keep committing to it")


def _place_table(target: Catalog, loaded: LoadedTable) -> bool:
    """Register a state in the target unless it has this or a later one; return whether it already had."""
    name, location = loaded.identifier, loaded.metadata_location or ""
    existing = _find_table(target, name)
    if existing is not None and not _needs_registering(loaded, existing):
        return True
    target.register_table(name, location, may_replace=existing is not None)
    registered = target.load_table(name)
    if registered.metadata_location != location and not _is_same(registered.metadata, loaded.metadata):
        raise CommitConflictError(
            f"Cannot verify table {format_name(name)}: the target is at {registered.metadata_location}, the source at "
            f"{location}"
        )
    return False


def _needs_registering(loaded: LoadedTable, existing: LoadedTable) -> bool:
    """Return whether the target is behind; fail if it has another table of that name, or one that has diverged."""
    name, location = format_name(loaded.identifier), loaded.metadata_location
    if existing.metadata.table_uuid != loaded.metadata.table_uuid:
        raise TableAlreadyExistsError(f"Cannot copy table {name}: the target has another table of that name")
    if existing.metadata_location == location or _is_same(existing.metadata, loaded.metadata):
        return False
    if any(entry.metadata_file == location for entry in existing.metadata.metadata_log):
        return False
    if any(entry.metadata_file == existing.metadata_location for entry in loaded.metadata.metadata_log):
        return True
    raise CommitConflictError(
        f"Cannot copy table {name}: both catalogs have changed it since it was copied",
        hint="Compare both states and drop the one that you do not need.",
    )


def _is_same(table_metadata: TableMetadata, other: TableMetadata) -> bool:
    """Return whether two metadata files are equivalent; a service may rewrite the metadata of a registered table."""
    return replace(table_metadata, metadata_log=(), last_updated_ms=0) == replace(
        other, metadata_log=(), last_updated_ms=0
    )


def _copy_view(source: Catalog, target: Catalog, name: Identifier, keep: bool) -> CopyStep:
    loaded = source.load_view(name)
    existing = _find_view(target, name)
    if existing is None:
        target.register_view(name, loaded.metadata_location or "")
        registered = target.load_view(name)
        _check_same_view(loaded, registered)
    else:
        _check_same_view(loaded, existing)
    if keep:
        outcome = COPIED if existing is None else ALREADY
        return CopyStep("view", format_name(name), outcome, loaded.metadata_location)
    if source.load_view(name).metadata_location != loaded.metadata_location:
        raise CommitConflictError(f"Cannot move view {format_name(name)}: another writer has changed it; copy it again")
    source.drop_view(name)
    return CopyStep("view", format_name(name), MOVED, loaded.metadata_location)


def _check_same_view(loaded: LoadedView, existing: LoadedView) -> None:
    name = format_name(loaded.identifier)
    if existing.metadata.view_uuid != loaded.metadata.view_uuid:
        raise ViewAlreadyExistsError(f"Cannot copy view {name}: the target has another view of that name")
    if existing.metadata_location != loaded.metadata_location and existing.metadata != loaded.metadata:
        raise CommitConflictError(
            f"Cannot copy view {name}: the target leads to {existing.metadata_location}, the source to "
            f"{loaded.metadata_location}",
            hint="Drop the one that you do not need.",
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
