"""What can be done to a table: the verbs that a `Table` and a transaction share.

Each verb makes an action (`commit/`) and hands it to `_run`. A `Table` commits it at once; a transaction keeps it
for the commit at its end. So a verb means the same in both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from frazil.commit.action import Action
from frazil.commit.append import Append
from frazil.commit.cherry_pick import CherryPick
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.new_snapshot import Target, find_parent
from frazil.commit.overwrite import Overwrite
from frazil.commit.replace_partitions import ReplacePartitions
from frazil.commit.update_properties import UpdateLocation, UpdateProperties, UpgradeFormat
from frazil.commit.update_refs import (
    CreateRef,
    DropRef,
    FastForward,
    Rollback,
    SetCurrentSnapshot,
)
from frazil.commit.update_schema import UpdateSchema
from frazil.commit.update_sort_order import UpdateSortOrder
from frazil.commit.update_spec import UpdateSpec
from frazil.errors import FrazilError, InvalidRequestError
from frazil.expr.bind import bind
from frazil.expr.parse import parse_predicate
from frazil.expr.predicates import TRUE, Predicate
from frazil.lake.write_rows import write_rows
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partition_evolution import PartitionSpecUpdate
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot

NO_PROPERTIES: Mapping[str, str] = FrozenMap()


class TableVerbs(ABC):
    """Changes of one table."""

    @property
    @abstractmethod
    def _state(self) -> LoadedTable:
        """The state that a change starts from."""

    @abstractmethod
    def _run(self, action: Action) -> Snapshot | None:
        """Carry an action out, now or at the end; return the snapshot it makes, None where it makes none."""

    # Rows

    def append(
        self, data: Any, *, branch: str = MAIN_BRANCH, snapshot_properties: Mapping[str, str] = NO_PROPERTIES
    ) -> Snapshot | None:
        """Add rows: a pyarrow table, record batch or reader, or a pandas frame.

        A parallel writer never stops an append. Nothing is written, and None returned, where there are no rows.
        """
        state = self._state
        return self._write(
            data,
            lambda files: Append(
                files, Target(branch, FrozenMap(snapshot_properties)), written_schema=state.metadata.current_schema
            ),
        )

    def overwrite(
        self,
        data: Any,
        where: Predicate | str = TRUE,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Snapshot | None:
        """Replace the rows of a filter, all rows by default, by new ones.

        The filter must take files whole. Rows that a parallel writer adds or changes under the filter stop it.
        """
        state = self._state
        predicate = parse_predicate(where) if isinstance(where, str) else where
        bind(state.metadata.current_schema, predicate)
        return self._write(
            data,
            lambda files: Overwrite(
                files,
                self._read_set(branch, predicate),
                where=predicate,
                target=Target(branch, FrozenMap(snapshot_properties)),
                written_schema=state.metadata.current_schema,
            ),
            may_be_empty=True,
        )

    def overwrite_partitions(
        self, data: Any, *, branch: str = MAIN_BRANCH, snapshot_properties: Mapping[str, str] = NO_PROPERTIES
    ) -> Snapshot | None:
        """Replace the partitions that the new rows are in, all of an unpartitioned table.

        What a parallel writer does to those partitions stops it.
        """
        state = self._state
        return self._write(
            data,
            lambda files: ReplacePartitions(
                files,
                self._read_set(branch, TRUE),
                Target(branch, FrozenMap(snapshot_properties)),
                state.metadata.current_schema,
            ),
        )

    def delete(
        self,
        where: Predicate | str,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Snapshot | None:
        """Delete the rows of a filter by removing files whole; refused where a file also holds other rows.

        A parallel writer never stops it: the filter is applied to what is there at the commit.
        """
        predicate = parse_predicate(where) if isinstance(where, str) else where
        target = Target(branch, FrozenMap(snapshot_properties))
        return self._run(DeleteFiles(where=predicate, target=target))

    def _read_set(self, branch: str, predicate: Predicate) -> ReadSet:
        parent = find_parent(self._state.metadata, branch)
        return ReadSet(None if parent is None else parent.snapshot_id, predicate)

    def _write(
        self, data: Any, make_action: Callable[[tuple[DataFile, ...]], Action], *, may_be_empty: bool = False
    ) -> Snapshot | None:
        """Write rows to files and commit them; delete the files where the commit is known to have failed."""
        state = self._state
        files = write_rows(state, data)
        if not files and not may_be_empty:
            return None
        try:
            return self._run(make_action(files))
        except FrazilError as error:
            if error.may_clean_up:
                state.storage.delete_many([one.file_path for one in files])
            raise

    # Shape

    def update_schema(self, *, case_sensitive: bool = True) -> Recorder:
        """Change the schema: `with t.update_schema() as u: u.add_column("score", "double")`; one commit at the end."""
        metadata = self._state.metadata
        update = SchemaUpdate(
            metadata.current_schema,
            metadata.last_column_id,
            metadata.format_version,
            specs=metadata.partition_specs,
            case_sensitive=case_sensitive,
        )
        return Recorder(update, lambda replay: self._run(UpdateSchema(replay, case_sensitive)))

    def update_spec(self, *, case_sensitive: bool = True) -> Recorder:
        """Change the partitioning: `with t.update_spec() as u: u.add_field("hour(ts)")`; one commit at the end."""
        metadata = self._state.metadata
        update = PartitionSpecUpdate(
            metadata.current_schema,
            metadata.partition_specs,
            metadata.default_spec,
            format_version=metadata.format_version,
            last_partition_id=metadata.last_partition_id,
            case_sensitive=case_sensitive,
        )
        return Recorder(update, lambda replay: self._run(UpdateSpec(replay, case_sensitive)))

    def set_sort_order(self, terms: Sequence[str]) -> None:
        """Sort new files by terms such as `ts desc nulls last`; no terms, no order."""
        self._run(UpdateSortOrder(tuple(terms)))

    def set_properties(self, properties: Mapping[str, str]) -> None:
        """Set table properties; values are checked."""
        self._run(UpdateProperties(FrozenMap(properties)))

    def remove_properties(self, names: Iterable[str]) -> None:
        """Remove table properties; names that are not set are no error."""
        self._run(UpdateProperties(removals=frozenset(names)))

    def set_location(self, location: str) -> None:
        """Put new files elsewhere; files that exist stay."""
        self._run(UpdateLocation(location))

    def upgrade(self, format_version: int) -> None:
        """Raise the format version. There is no way back."""
        self._run(UpgradeFormat(format_version))

    # Branches, tags, history

    def create_branch(self, name: str, snapshot_id: int | None = None, **retention: Any) -> None:
        """Create a branch at a snapshot, the current one by default.

        Retention: `min_snapshots_to_keep`, `max_snapshot_age_ms`, `max_ref_age_ms`; `replaces`, `exist_ok`.
        """
        self._run(CreateRef(name, "branch", snapshot_id, **retention))

    def create_tag(self, name: str, snapshot_id: int | None = None, **retention: Any) -> None:
        """Create a tag at a snapshot, the current one by default; `max_ref_age_ms`, `replaces`, `exist_ok`."""
        self._run(CreateRef(name, "tag", snapshot_id, **retention))

    def drop_branch(self, name: str, *, missing_ok: bool = False) -> None:
        """Drop a branch; its snapshots stay until they expire."""
        self._run(DropRef(name, "branch", missing_ok))

    def drop_tag(self, name: str, *, missing_ok: bool = False) -> None:
        """Drop a tag; its snapshot stays until it expires."""
        self._run(DropRef(name, "tag", missing_ok))

    def fast_forward(self, branch: str, *, to: str) -> None:
        """Move a branch to the head of another reference that came from it."""
        self._run(FastForward(branch, to))

    def rollback_to(self, snapshot_id: int) -> None:
        """Make an ancestor of the current snapshot the current one."""
        self._run(Rollback(snapshot_id))

    def set_current_snapshot(self, snapshot_id: int) -> None:
        """Make any snapshot the current one, whatever its history."""
        self._run(SetCurrentSnapshot(snapshot_id))

    def cherry_pick(self, snapshot_id: int) -> Snapshot | None:
        """Repeat the change of a snapshot on the main branch."""
        return self._run(CherryPick(snapshot_id))


class Recorder:
    """Changes made one by one, each checked at once, and carried out together at the end of the `with` block.

    Calls are kept, so that they can be made again on a newer state of the table. An exception inside the block
    drops them all.
    """

    def __init__(self, update: Any, finish: Callable[[Callable[[Any], None]], object]) -> None:
        self._update = update
        self._finish = finish
        self._calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., Recorder]:
        if name.startswith("_") or not callable(getattr(type(self._update), name, None)):
            known = [one for one in dir(type(self._update)) if not one.startswith("_")]
            raise AttributeError(f"no such change as {name!r}; there are: {', '.join(known)}")

        def call(*arguments: Any, **options: Any) -> Recorder:
            getattr(self._update, name)(*arguments, **options)
            self._calls.append((name, arguments, options))
            return self

        return call

    def _replay(self, update: Any) -> None:
        for name, arguments, options in self._calls:
            getattr(update, name)(*arguments, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._calls:
            self._finish(self._replay)


def check_columns(columns: object) -> None:
    """Refuse one text where a list of names is meant."""
    if isinstance(columns, str):
        raise InvalidRequestError(f"Cannot read the columns {columns!r}: give a list of names")
