"""A table that can be changed: the verbs that a `Table` and a table inside a transaction share.

Each method calls a verb of `verbs/` with the handle's `WriteSession`, which says how a write begins and commits. A
change of metadata alone needs no plan: it is an action of `commit/`, run by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from frazil.commit.action import Action
from frazil.commit.cherry_pick import CherryPick, PublishChanges
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.new_snapshot import Target
from frazil.commit.once import Once, parse_once
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
from frazil.commit.update_sort_order import UpdateSortOrder
from frazil.commit.update_statistics import UpdateStatistics
from frazil.errors import InvalidRequestError
from frazil.expr.predicates import TRUE
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partition_evolution import PartitionSpecUpdate
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot
from frazil.spec.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.table.merge_builder import MergeBuilder
from frazil.table.point_in_time import PointInTime, milliseconds_of
from frazil.verbs.append import append
from frazil.verbs.choose_engine import Engine, check_engine
from frazil.verbs.delete import delete
from frazil.verbs.merge import Merge
from frazil.verbs.overwrite import overwrite
from frazil.verbs.overwrite_partitions import overwrite_partitions
from frazil.verbs.recorded_changes import Recorder, update_schema, update_spec
from frazil.verbs.update import update
from frazil.verbs.upsert import upsert
from frazil.verbs.write_overrides import WriteOverrides
from frazil.verbs.write_session import NO_PROPERTIES, WriteSession

OnceGiven = tuple[str, int | str] | Once
"""What names a write that happens once: an application and a version."""


class Writable:
    """Changes of one table: of its rows, and of everything else.

    Every write takes a branch, which is made where it is missing, and properties for the snapshot's summary. With
    `once`, an application and a version, it happens once: where that application wrote that version to the branch
    before, nothing happens and None is returned. A version that is a whole number is done where one not below it
    is; a text, where the same is (docs/once.md). On a table with `write.wap.enabled`, a write with the property
    `wap.id` is staged: no branch leads to it before `publish_changes`.

    What changes rows returns the snapshot it made, whose `num_affected_rows` (and `num_inserted_rows`,
    `num_updated_rows`, `num_deleted_rows`) are counted by the way; None is no change.
    """

    def __init__(self, session: WriteSession) -> None:
        self._session = session

    def _to(self, branch: str, snapshot_properties: Mapping[str, str], once: OnceGiven | None) -> WriteSession:
        key = None if once is None else parse_once(once)
        return replace(self._session, branch=branch, snapshot_properties=snapshot_properties, once=key)

    # Rows

    def append(
        self,
        data: Any,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
        once: OnceGiven | None = None,
        merge_schema: bool = False,
    ) -> Snapshot | None:
        """Add rows: a Spark DataFrame, Arrow in any form, a pandas or Polars frame, a DuckDB relation, dicts.

        A parallel writer never stops an append. Nothing is written, and None returned, where there are no rows; the
        snapshot counts them (`num_inserted_rows`). With `merge_schema`, columns of a DataFrame that the table lacks are
        added to it, in the same commit.
        """
        session = self._to(branch, snapshot_properties, once)
        return append(session, data, merge_schema=merge_schema)

    def overwrite(
        self,
        data: Any,
        where: Any = TRUE,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
        once: OnceGiven | None = None,
        merge_schema: bool = False,
        engine: Engine = "auto",
        **parameters: object,
    ) -> Snapshot | None:
        """Replace the rows of a condition, all rows by default, by new ones.

        The condition is Spark SQL, or a predicate. Where files hold other rows too, those are written anew. Rows that a
        parallel writer adds or changes under the condition stop it; a compaction does only in that case, since the new
        rows may be had once, and it would have to be planned again. With `merge_schema`, columns that the table lacks
        are added to it, in the same commit. `engine` and parameters are as in `delete`.
        """
        session = self._to(branch, snapshot_properties, once)
        return overwrite(session, data, where, merge_schema=merge_schema, engine=engine, parameters=parameters)

    def overwrite_partitions(
        self,
        data: Any,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
        once: OnceGiven | None = None,
        merge_schema: bool = False,
    ) -> Snapshot | None:
        """Replace the partitions that the new rows are in, all of an unpartitioned table.

        What a parallel writer does to those partitions stops it. With `merge_schema`, columns that the table lacks are
        added to it, in the same commit.
        """
        session = self._to(branch, snapshot_properties, once)
        return overwrite_partitions(session, data, merge_schema=merge_schema)

    def delete(
        self,
        where: Any,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
        once: OnceGiven | None = None,
        engine: Engine = "auto",
        **parameters: object,
    ) -> Snapshot | None:
        """Delete the rows of a condition: Spark SQL (`docs/conditions.md`), or a predicate.

        Files that hold nothing else go by their metadata, and no parallel writer stops that. Of others the rows are
        deleted as `write.delete.mode` says; rows that a parallel writer changes or, under serializable isolation, adds
        under the condition stop it; files that one merely rewrote do not. `engine` is `"local"`, in this process,
        `"spark"`, or `"auto"`, which chooses (`t.explain.delete` says what and why). Further arguments are values for
        the names in the text: `t.delete("id = :x", x=7)`. The snapshot counts the rows (`num_deleted_rows`).
        """
        session = self._to(branch, snapshot_properties, once)
        return delete(session, where, engine=engine, parameters=parameters)

    def update(
        self,
        values: Mapping[str, Any],
        where: Any = "true",
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
        once: OnceGiven | None = None,
        engine: Engine = "auto",
        **parameters: object,
    ) -> Snapshot | None:
        """Set columns of the rows of a condition, all rows by default, to the values of Spark SQL expressions.

        `t.update({"kind": "upper(kind)"}, where="id < 10")`. What a parallel writer does to the same rows stops it.
        The snapshot counts the rows (`num_updated_rows`). `engine` and parameters are as in `delete`.
        """
        session = self._to(branch, snapshot_properties, once)
        return update(session, values, where, engine=engine, parameters=parameters)

    def upsert(
        self,
        data: Any,
        keys: Sequence[str] | None = None,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
        once: OnceGiven | None = None,
        engine: Engine = "auto",
    ) -> Snapshot | None:
        """Replace rows by those of the same key, and add the others. Null is a key like any other.

        Without `keys`, the identifier fields of the table are the key. Rows of which no value differs are left as they
        are; where that is all, nothing is written and None returned. A source that has a key twice is refused. What a
        parallel writer does to the same rows stops it. The snapshot counts the rows (`num_inserted_rows`,
        `num_updated_rows`). `engine` is as in `delete`.
        """
        session = self._to(branch, snapshot_properties, once)
        return upsert(session, data, keys, engine=engine)

    def merge(
        self,
        source: Any,
        on: Any,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
        once: OnceGiven | None = None,
        merge_schema: bool = False,
        engine: Engine = "auto",
        **parameters: object,
    ) -> MergeBuilder:
        """Begin a merge of a source into the table; clauses follow, and `execute` carries it out in one commit.

        `on` is Spark SQL over `target` and `source`. The source runs once. Its rows tell which files can match, and
        only those are read. What a parallel writer does to rows that were read stops it. With `merge_schema`, columns
        of the source that the table lacks and that clauses assign are added to it, and `update_all` and `insert_all`,
        which assign all, may lack columns of the table: those stay as they are, or get their default. The snapshot
        counts the rows (`num_affected_rows` and its parts). `engine` and parameters are as in `delete`.
        """
        check_engine(engine)
        session = self._to(branch, snapshot_properties, once)
        merge = Merge(source, on, parameters=parameters, engine=engine, merge_schema=merge_schema)
        return MergeBuilder(session, merge)

    # Shape

    def update_schema(self, *, case_sensitive: bool = True) -> Recorder[SchemaUpdate]:
        """Change the schema: `with t.update_schema() as u: u.add_column("score", "double")`; one commit at the end."""
        return update_schema(self._session, case_sensitive=case_sensitive)

    def update_spec(self, *, case_sensitive: bool = True) -> Recorder[PartitionSpecUpdate]:
        """Change the partitioning: `with t.update_spec() as u: u.add_field("hour(ts)")`; one commit at the end."""
        return update_spec(self._session, case_sensitive=case_sensitive)

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
        return self._advance_branch(branch, CherryPick(snapshot_id, Target(branch)))

    def publish_changes(self, wap_id: str, *, branch: str = MAIN_BRANCH) -> Snapshot | None:
        """Publish the write that was staged under a `wap.id`; return the branch's head after it."""
        return self._advance_branch(branch, PublishChanges(wap_id, Target(branch)))

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

    def _run(self, action: Action) -> Snapshot | None:
        return self._session.run(action)

    def _advance_branch(self, branch: str, action: Action) -> Snapshot | None:
        after, _ = self._session.commit(self._session.load(), (action,), ())
        return after.metadata.ref_snapshot(branch)


def with_overrides(table: Writable, overrides: WriteOverrides) -> Writable:
    """Return a table whose writes have overrides of its settings."""
    return Writable(replace(table._session, overrides=overrides))


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
