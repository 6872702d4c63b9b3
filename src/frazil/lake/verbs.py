"""What can be done to the rows of a table: the verbs that a `Table` and a transaction share.

`lake/metadata_verbs.py` has those that change metadata only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from frazil.commit.action import PlannedChange
from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.new_snapshot import Target, find_parent
from frazil.commit.overwrite import Overwrite
from frazil.commit.replace_partitions import ReplacePartitions
from frazil.errors import InvalidRequestError
from frazil.expr.bind import bind
from frazil.expr.predicates import TRUE, Predicate
from frazil.lake.merge_builder import MergeBuilder, MergeClause
from frazil.lake.metadata_verbs import MetadataVerbs
from frazil.lake.on_spark import choose_session, engine_summary, is_spark_frame, spark_room
from frazil.lake.sql_meaning import plain_predicate, takes_files_whole
from frazil.lake.write_rows import evolution_of, frame_of_rows, is_here_only, schema_of_rows, write_rows
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import WRITE_AUDIT_PUBLISH_ENABLED, read_property
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot, Summary
from frazil.spec.table_metadata import TableMetadata

NO_PROPERTIES: Mapping[str, str] = FrozenMap()


class TableVerbs(MetadataVerbs):
    """Changes of one table: of its rows, and of everything else.

    Every write takes a branch, which is made where it is missing, and properties for the snapshot's summary. On a
    table with `write.wap.enabled`, a write with the property `wap.id` is staged: no branch leads to it before
    `publish_changes`.
    """

    _cache: ManifestCache | None = None

    def append(
        self,
        data: Any,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
        merge_schema: bool = False,
    ) -> Snapshot | None:
        """Add rows: a Spark DataFrame, Arrow in any form, a pandas or Polars frame, a DuckDB relation, dicts.

        A parallel writer never stops an append. Nothing is written, and None returned, where there are no rows. With
        `merge_schema`, columns of a DataFrame that the table lacks are added to it, in the same commit.
        """

        def write(table: TableVerbs) -> Snapshot | None:
            state = table._begin()
            target = target_of(state.metadata, branch, _with_engine(data, snapshot_properties))
            files = write_rows(state, data, may_lack_parts=merge_schema)
            action = Append(files, target, written_schema=state.metadata.current_schema)
            return table._commit(state, action, paths_of(files))[1] if files else None

        return self._with_columns_of(data, write) if merge_schema else write(self)

    def _with_columns_of(
        self, data: Any, write: Callable[[TableVerbs], Snapshot | None], only: Collection[str] | None = None
    ) -> Snapshot | None:
        """Add the columns of data that the table lacks, or `only` some of them, and write, in one commit."""
        state = self._begin()
        evolution = evolution_of(schema_of_rows(data, state.metadata), only)

        def change(table: TableVerbs) -> Snapshot | None:
            table._run(evolution)
            return write(table)

        return self._together(state, change)

    def overwrite(
        self,
        data: Any,
        where: Any = TRUE,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
        merge_schema: bool = False,
    ) -> Snapshot | None:
        """Replace the rows of a condition, all rows by default, by new ones.

        The condition is Spark SQL, or a predicate. Where files hold other rows too, those are written anew, which needs
        Spark. Rows that a parallel writer adds or changes under the condition stop it. With `merge_schema`, columns
        that the table lacks are added to it, in the same commit.
        """

        def write(table: TableVerbs) -> Snapshot | None:
            return table._overwrite(data, where, branch, snapshot_properties, may_lack_parts=merge_schema)

        return self._with_columns_of(data, write) if merge_schema else write(self)

    def _overwrite(
        self, data: Any, where: Any, branch: str, snapshot_properties: Mapping[str, str], *, may_lack_parts: bool
    ) -> Snapshot | None:
        state = self._begin()
        schema = state.metadata.current_schema
        predicate = plain_predicate(where, schema)
        target = target_of(state.metadata, branch, _with_engine(data, snapshot_properties))
        if predicate is None or not (is_here_only(state) or takes_files_whole(state, branch, predicate, self._cache)):
            room = spark_room("overwrite")
            session = choose_session(data if is_spark_frame(data) else None)
            files = write_rows(state, data, may_lack_parts=may_lack_parts)
            return self._carry_out(state, room.plan_overwrite(session, state, files, where, target, cache=self._cache))
        predicate = bind(schema, predicate)
        read = read_set_of(state, branch, predicate)
        files = write_rows(state, data, may_lack_parts=may_lack_parts)
        action = Overwrite(files, read, where=predicate, target=target, written_schema=schema)
        return self._commit(state, action, paths_of(files))[1]

    def overwrite_partitions(
        self,
        data: Any,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
        merge_schema: bool = False,
    ) -> Snapshot | None:
        """Replace the partitions that the new rows are in, all of an unpartitioned table.

        What a parallel writer does to those partitions stops it. With `merge_schema`, columns that the table lacks are
        added to it, in the same commit.
        """

        def write(table: TableVerbs) -> Snapshot | None:
            state = table._begin()
            target = target_of(state.metadata, branch, _with_engine(data, snapshot_properties))
            read = read_set_of(state, branch, TRUE)
            files = write_rows(state, data, may_lack_parts=merge_schema)
            action = ReplacePartitions(files, read, target, state.metadata.current_schema)
            return table._commit(state, action, paths_of(files))[1] if files else None

        return self._with_columns_of(data, write) if merge_schema else write(self)

    def delete(
        self,
        where: Any,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Snapshot | None:
        """Delete the rows of a condition: Spark SQL (`docs/conditions.md`), or a predicate.

        Files that hold nothing else go by their metadata, without Spark, and no parallel writer stops that. Of others
        the rows are deleted as `write.delete.mode` says; rows that a parallel writer changes or, under serializable
        isolation, adds under the condition stop it.
        """
        state = self._begin()
        predicate = plain_predicate(where, state.metadata.current_schema)
        if predicate is not None and (is_here_only(state) or takes_files_whole(state, branch, predicate, self._cache)):
            target = target_of(state.metadata, branch, snapshot_properties)
            meant = bind(state.metadata.current_schema, predicate)
            return self._commit(state, DeleteFiles(where=meant, target=target))[1]
        session = choose_session()
        target = target_of(state.metadata, branch, {**engine_summary(session), **snapshot_properties})
        planned = spark_room("delete").plan_delete(session, state, where, target, cache=self._cache)
        return self._carry_out(state, planned)

    def update(
        self,
        values: Mapping[str, Any],
        where: Any = "true",
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Snapshot | None:
        """Set columns of the rows of a condition, all rows by default, to the values of Spark SQL expressions.

        `t.update({"kind": "upper(kind)"}, where="id < 10")`. What a parallel writer does to the same rows stops it.
        """
        state = self._begin()
        session = choose_session()
        target = target_of(state.metadata, branch, {**engine_summary(session), **snapshot_properties})
        planned = spark_room("update").plan_update(session, state, values, where, target, cache=self._cache)
        return self._carry_out(state, planned)

    def upsert(
        self,
        data: Any,
        keys: Sequence[str],
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Snapshot | None:
        """Replace rows by those of the same key, and add the others. Null is a key like any other.

        A source that has a key twice is refused. What a parallel writer does to the same rows stops it.
        """
        state = self._begin()
        session = choose_session(data if is_spark_frame(data) else None)
        source = frame_of_rows(data, state, session)
        target = target_of(state.metadata, branch, {**engine_summary(session), **snapshot_properties})
        planned = spark_room("upsert").plan_upsert(session, state, source, keys, target, cache=self._cache)
        return self._carry_out(state, planned)

    def merge(
        self,
        source: Any,
        on: Any,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
        merge_schema: bool = False,
    ) -> MergeBuilder:
        """Begin a merge of a source into the table; clauses follow, and `execute` carries it out in one commit.

        `on` is Spark SQL over `target` and `source`. The source runs once. Its rows tell which files can match, and
        only those are read. What a parallel writer does to rows that were read stops it. With `merge_schema`, columns
        of the source that the table lacks and that clauses assign are added to it, and `update_all` and `insert_all`,
        which assign all, may lack columns of the table: those stay as they are, or get their default.
        """

        def run(clauses: tuple[MergeClause, ...]) -> Snapshot | None:
            if not merge_schema:
                return merge(self, clauses)
            written = [one.values for one in clauses if one.do != "delete"]
            only = None if None in written else spark_room("assignments").assigned_names(written)
            return self._with_columns_of(source, lambda table: merge(table, clauses), only)

        def merge(table: TableVerbs, clauses: tuple[MergeClause, ...]) -> Snapshot | None:
            state = table._begin()
            session = choose_session(source if is_spark_frame(source) else None)
            frame = frame_of_rows(source, state, session)
            target = target_of(state.metadata, branch, {**engine_summary(session), **snapshot_properties})
            room = spark_room("merge")
            given = [room.Clause(one.when, one.do, one.condition, one.values) for one in clauses]
            planned = room.plan_merge(
                session, state, frame, on, given, target, cache=self._cache, may_lack_columns=merge_schema
            )
            return table._carry_out(state, planned)

        return MergeBuilder(run)

    @abstractmethod
    def _together(self, state: LoadedTable, change: Callable[[TableVerbs], Snapshot | None]) -> Snapshot | None:
        """Make several changes, which begin with a state, one commit; inside a transaction they are part of it."""

    def _carry_out(self, state: LoadedTable, planned: PlannedChange | None) -> Snapshot | None:
        return None if planned is None else self._commit(state, planned.action, planned.written)[1]


def read_set_of(state: LoadedTable, branch: str, predicate: Predicate) -> ReadSet:
    """Return what a verb reads of a branch that it replaces rows of: what others add there since is a conflict."""
    parent = find_parent(state.metadata, branch)
    return ReadSet(None if parent is None else parent.snapshot_id, predicate)


def paths_of(files: Sequence[DataFile]) -> tuple[str, ...]:
    """Return where files are."""
    return tuple(one.file_path for one in files)


def _with_engine(data: Any, snapshot_properties: Mapping[str, str]) -> Mapping[str, str]:
    if not is_spark_frame(data):
        return snapshot_properties
    return {**engine_summary(data.sparkSession), **snapshot_properties}


def target_of(metadata: TableMetadata, branch: str, snapshot_properties: Mapping[str, str]) -> Target:
    """Return where a write goes: to a branch, or staged where it has a `wap.id` and the table allows that."""
    staged = Summary.WAP_ID in snapshot_properties and read_property(metadata.properties, WRITE_AUDIT_PUBLISH_ENABLED)
    if staged and branch != MAIN_BRANCH:
        raise InvalidRequestError(
            f"Cannot stage a write for branch {branch!r}: it has both a branch and a {Summary.WAP_ID}",
            hint="Give one of them.",
        )
    return Target(branch, FrozenMap(snapshot_properties), is_staged=staged)


def check_columns(columns: object) -> None:
    """Refuse one text where a list of names is meant."""
    if isinstance(columns, str):
        raise InvalidRequestError(f"Cannot read the columns {columns!r}: give a list of names")
