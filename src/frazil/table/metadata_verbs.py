"""What can be done to a table's metadata: schema, partitioning, properties, branches, statistics, old snapshots.

A verb begins with a state of the table, which it asks for once. What it reads, writes and deletes comes from that one
value, so that the commit knows of everything that others did since. It ends with an action (`commit/`), which a `Table`
commits at once and a transaction keeps for the commit at its end. So a verb means the same in both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from frazil.commit.action import Action
from frazil.commit.cherry_pick import CherryPick, PublishChanges
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.new_snapshot import Target
from frazil.commit.update_properties import UpdateLocation, UpdateProperties, UpgradeFormat
from frazil.commit.update_refs import (
    CreateRef,
    DropRef,
    FastForward,
    RenameBranch,
    ReplaceBranch,
    Rollback,
    SetCurrentSnapshot,
    SetRetention,
)
from frazil.commit.update_schema import UpdateSchema
from frazil.commit.update_sort_order import UpdateSortOrder
from frazil.commit.update_spec import UpdateSpec
from frazil.commit.update_statistics import UpdateStatistics
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partition_evolution import PartitionSpecUpdate
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot
from frazil.spec.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.table.point_in_time import PointInTime, milliseconds_of

Update = TypeVar("Update")
"""What a recorder records: changes of a schema, or of the partitioning."""


class MetadataVerbs(ABC):
    """Changes of one table's metadata."""

    @abstractmethod
    def _begin(self) -> LoadedTable:
        """Return the state that a verb starts from; a verb asks once."""

    @abstractmethod
    def _commit(
        self, state: LoadedTable, action: Action, written: Sequence[str] = ()
    ) -> tuple[LoadedTable, Snapshot | None]:
        """Carry out an action that began with a state, now or at the end.

        Return the table after it, and the snapshot it makes, None where it makes none. `written` are data and delete
        files that were written for it, which are deleted where it is known to have failed.
        """

    def _run(self, action: Action) -> Snapshot | None:
        """Begin and carry out an action that needs nothing before."""
        return self._commit(self._begin(), action)[1]

    # Shape

    def update_schema(self, *, case_sensitive: bool = True) -> Recorder[SchemaUpdate]:
        """Change the schema: `with t.update_schema() as u: u.add_column("score", "double")`; one commit at the end."""
        state = self._begin()
        metadata = state.metadata
        update = SchemaUpdate(
            metadata.current_schema,
            metadata.last_column_id,
            metadata.format_version,
            specs=metadata.partition_specs,
            case_sensitive=case_sensitive,
        )
        return Recorder(update, lambda replay: self._commit(state, UpdateSchema(replay, case_sensitive)))

    def update_spec(self, *, case_sensitive: bool = True) -> Recorder[PartitionSpecUpdate]:
        """Change the partitioning: `with t.update_spec() as u: u.add_field("hour(ts)")`; one commit at the end."""
        state = self._begin()
        metadata = state.metadata
        update = PartitionSpecUpdate(
            metadata.current_schema,
            metadata.partition_specs,
            metadata.default_spec,
            format_version=metadata.format_version,
            last_partition_id=metadata.last_partition_id,
            case_sensitive=case_sensitive,
        )
        return Recorder(update, lambda replay: self._commit(state, UpdateSpec(replay, case_sensitive)))

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

    def create_branch(
        self,
        name: str,
        snapshot_id: int | None = None,
        *,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
        replaces: bool = False,
        exist_ok: bool = False,
    ) -> None:
        """Create a branch at a snapshot, the current one by default, and say how long it keeps its snapshots.

        With `replaces`, a branch of that name is moved; with `exist_ok`, it stays as it is.
        """
        self._run(
            CreateRef(
                name,
                "branch",
                snapshot_id,
                min_snapshots_to_keep,
                max_snapshot_age_ms,
                max_ref_age_ms,
                replaces,
                exist_ok,
            )
        )

    def create_tag(
        self,
        name: str,
        snapshot_id: int | None = None,
        *,
        max_ref_age_ms: int | None = None,
        replaces: bool = False,
        exist_ok: bool = False,
    ) -> None:
        """Create a tag at a snapshot, the current one by default, and say how long it lasts."""
        self._run(
            CreateRef(name, "tag", snapshot_id, max_ref_age_ms=max_ref_age_ms, replaces=replaces, exist_ok=exist_ok)
        )

    def drop_branch(self, name: str, *, missing_ok: bool = False) -> None:
        """Drop a branch; its snapshots stay until they expire."""
        self._run(DropRef(name, "branch", missing_ok))

    def drop_tag(self, name: str, *, missing_ok: bool = False) -> None:
        """Drop a tag; its snapshot stays until it expires."""
        self._run(DropRef(name, "tag", missing_ok))

    def rename_branch(self, name: str, new_name: str) -> None:
        """Give a branch another name."""
        self._run(RenameBranch(name, new_name))

    def replace_branch(self, name: str, snapshot_id: int) -> None:
        """Put a branch at any snapshot, whatever it was at before."""
        self._run(ReplaceBranch(name, snapshot_id))

    def set_retention(
        self,
        name: str,
        *,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
    ) -> None:
        """Set how long a branch or tag keeps snapshots; what is left out stays, 0 takes a limit away."""
        self._run(SetRetention(name, min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms))

    def fast_forward(self, branch: str, *, to: str) -> None:
        """Move a branch to the head of another reference that came from it."""
        self._run(FastForward(branch, to))

    def rollback_to(
        self, snapshot_id: int | None = None, *, before: PointInTime | None = None, branch: str = MAIN_BRANCH
    ) -> None:
        """Put a branch back at a snapshot of its own history: one by id, or the last one before a point in time."""
        self._run(Rollback(snapshot_id, None if before is None else milliseconds_of(before), branch))

    def set_current_snapshot(self, snapshot_id: int | None = None, *, ref: str | None = None) -> None:
        """Make any snapshot, or that of a branch or tag, the current one, whatever its history."""
        self._run(SetCurrentSnapshot(snapshot_id, ref))

    def cherry_pick(self, snapshot_id: int, *, branch: str = MAIN_BRANCH) -> Snapshot | None:
        """Repeat the change of a snapshot on a branch; return the branch's head after it."""
        after, _ = self._commit(self._begin(), CherryPick(snapshot_id, Target(branch)))
        return after.metadata.ref_snapshot(branch)

    def publish_changes(self, wap_id: str, *, branch: str = MAIN_BRANCH) -> Snapshot | None:
        """Publish the write that was staged under a `wap.id`; return the branch's head after it."""
        after, _ = self._commit(self._begin(), PublishChanges(wap_id, Target(branch)))
        return after.metadata.ref_snapshot(branch)

    def expire_snapshots(
        self,
        older_than: PointInTime | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] | None = None,
        *,
        cleans_metadata: bool = False,
    ) -> Any:
        """Remove snapshots that no branch or tag keeps: by age and number, or those of given ids.

        What is left out follows the table's properties and each branch's retention. With `cleans_metadata`, schemas
        and specs go that no snapshot uses. A tag that somebody puts on a snapshot meanwhile keeps it.
        """
        return self._run(expiry_of(older_than, retain_last, snapshot_ids, cleans_metadata=cleans_metadata))

    # Statistics

    def set_statistics(self, statistics: StatisticsFile) -> None:
        """Say which statistics file belongs to a snapshot; the last one counts."""
        self._run(UpdateStatistics(statistics=(statistics,)))

    def remove_statistics(self, snapshot_id: int) -> None:
        """Forget a snapshot's statistics file; the file stays."""
        self._run(UpdateStatistics(removed=(snapshot_id,)))

    def set_partition_statistics(self, statistics: PartitionStatisticsFile) -> None:
        """Say which file of partition statistics belongs to a snapshot; the last one counts."""
        self._run(UpdateStatistics(partition_statistics=(statistics,)))

    def remove_partition_statistics(self, snapshot_id: int) -> None:
        """Forget a snapshot's partition statistics; the file stays."""
        self._run(UpdateStatistics(removed_partition=(snapshot_id,)))


def expiry_of(
    older_than: PointInTime | None,
    retain_last: int | None,
    snapshot_ids: Iterable[int] | None,
    *,
    cleans_metadata: bool,
) -> ExpireSnapshots:
    """Return the action that removes snapshots as a user asks for it."""
    if retain_last is not None and retain_last < 1:
        raise InvalidRequestError(f"Cannot expire snapshots and retain {retain_last}: a branch keeps one at least")
    return ExpireSnapshots(
        None if older_than is None else milliseconds_of(older_than),
        retain_last,
        tuple(snapshot_ids or ()),
        cleans_metadata=cleans_metadata,
    )


class Recorder(Generic[Update]):
    """Changes made one by one, each checked at once, and carried out together at the end of the `with` block.

    Calls are kept, so that they can be made again on a newer state of the table. An exception inside the block
    drops them all. Type checkers are told that the block has the update itself, whose methods it passes on.
    """

    def __init__(self, update: Update, finish: Callable[[Callable[[Update], None]], object]) -> None:
        self._update = update
        self._finish = finish
        self._calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Recorder[Update]]:
            if name not in _changes_of(self._update):
                known = ", ".join(_changes_of(self._update))
                raise AttributeError(f"no such change as {name!r}; there are: {known}")

            def call(*arguments: Any, **options: Any) -> Recorder[Update]:
                getattr(self._update, name)(*arguments, **options)
                self._calls.append((name, arguments, options))
                return self

            return call

    def __dir__(self) -> list[str]:
        return _changes_of(self._update)

    def __repr__(self) -> str:
        made = ", ".join(name for name, _, _ in self._calls)
        return f"<changes: {made or 'none yet'}; there are: {', '.join(_changes_of(self._update))}>"

    def _replay(self, update: Update) -> None:
        for name, arguments, options in self._calls:
            getattr(update, name)(*arguments, **options)

    def __enter__(self) -> Update:
        return cast(Update, self)

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error_type is None and self._calls:
            self._finish(self._replay)


def _changes_of(update: object) -> list[str]:
    return [name for name in dir(type(update)) if not name.startswith("_") and callable(getattr(type(update), name))]
