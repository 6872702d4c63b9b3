"""What can be done to the rows of a table: the verbs that a `Table` and a transaction share.

`lake/metadata_verbs.py` has those that change metadata only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from frazil.commit.action import Action
from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.new_snapshot import Target, find_parent
from frazil.commit.overwrite import Overwrite
from frazil.commit.replace_partitions import ReplacePartitions
from frazil.errors import FrazilError, InvalidRequestError
from frazil.expr.bind import bind
from frazil.expr.predicates import TRUE, Predicate
from frazil.lake.merge_builder import MergeBuilder, MergeClause
from frazil.lake.metadata_verbs import MetadataVerbs
from frazil.lake.on_spark import choose_session, engine_summary, is_spark_frame, spark_room
from frazil.lake.sql_meaning import plain_predicate, takes_files_whole
from frazil.lake.write_rows import evolution_of, frame_of_rows, is_here_only, schema_of_rows, write_rows
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

    def append(
        self,
        data: Any,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
        merge_schema: bool = False,
    ) -> Snapshot | None:
        """Add rows: a Spark DataFrame, a pyarrow table, record batch or reader, or a pandas frame.

        A parallel writer never stops an append. Nothing is written, and None returned, where there are no rows. With
        `merge_schema`, columns of a DataFrame that the table lacks are added to it, in the same commit.
        """
        if merge_schema:
            return self._with_columns_of(
                data, lambda table: table.append(data, branch=branch, snapshot_properties=snapshot_properties)
            )
        state = self._state
        return self._write(
            data,
            lambda files: Append(
                files,
                target_of(state.metadata, branch, _with_engine(data, snapshot_properties)),
                written_schema=state.metadata.current_schema,
            ),
        )

    def _with_columns_of(
        self, data: Any, write: Callable[[Any], Snapshot | None], only: Collection[str] | None = None
    ) -> Snapshot | None:
        """Add the columns of data that the table lacks, or `only` some of them, and write, in one commit."""
        wanted = schema_of_rows(data, self._state.metadata.format_version)
        with self._together() as together:
            together._run(evolution_of(wanted, only))
            made = write(together)
        return None if made is None else self._shown.metadata.find_snapshot(made.snapshot_id)

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
        if merge_schema:
            return self._with_columns_of(
                data,
                lambda table: table.overwrite(data, where, branch=branch, snapshot_properties=snapshot_properties),
            )
        state = self._state
        predicate = plain_predicate(where, state.metadata.current_schema)
        target = target_of(state.metadata, branch, _with_engine(data, snapshot_properties))
        if predicate is None or not (
            is_here_only(state) or takes_files_whole(state, branch, predicate, self._manifests)
        ):
            room = spark_room("overwrite")
            session = choose_session(data if is_spark_frame(data) else None)
            return self._run_planned(
                lambda: room.plan_overwrite(
                    session, state, write_rows(state, data), where, target, cache=self._manifests
                )
            )
        bind(state.metadata.current_schema, predicate)
        return self._write(
            data,
            lambda files: Overwrite(
                files,
                self._read_set(branch, predicate),
                where=predicate,
                target=target,
                written_schema=state.metadata.current_schema,
            ),
            may_be_empty=True,
        )

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
        if merge_schema:
            return self._with_columns_of(
                data,
                lambda table: table.overwrite_partitions(data, branch=branch, snapshot_properties=snapshot_properties),
            )
        state = self._state
        return self._write(
            data,
            lambda files: ReplacePartitions(
                files,
                self._read_set(branch, TRUE),
                target_of(state.metadata, branch, _with_engine(data, snapshot_properties)),
                state.metadata.current_schema,
            ),
        )

    def delete(
        self,
        where: Any,
        *,
        branch: str = MAIN_BRANCH,
        snapshot_properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> Snapshot | None:
        """Delete the rows of a condition: Spark SQL, or a predicate.

        Files that hold nothing else go by their metadata, without Spark, and no parallel writer stops that. Of others
        the rows are deleted as `write.delete.mode` says; rows that a parallel writer changes or, under serializable
        isolation, adds under the condition stop it.
        """
        state = self._state
        predicate = plain_predicate(where, state.metadata.current_schema)
        if predicate is not None and (
            is_here_only(state) or takes_files_whole(state, branch, predicate, self._manifests)
        ):
            return self._run(
                DeleteFiles(where=predicate, target=target_of(state.metadata, branch, snapshot_properties))
            )
        session = choose_session()
        target = target_of(state.metadata, branch, {**engine_summary(session), **snapshot_properties})
        return self._run_planned(
            lambda: spark_room("delete").plan_delete(session, state, where, target, cache=self._manifests)
        )

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
        state = self._state
        session = choose_session()
        target = target_of(state.metadata, branch, {**engine_summary(session), **snapshot_properties})
        return self._run_planned(
            lambda: spark_room("update").plan_update(session, state, values, where, target, cache=self._manifests)
        )

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
        state = self._state
        session = choose_session(data if is_spark_frame(data) else None)
        source = frame_of_rows(data, state, session)
        target = target_of(state.metadata, branch, {**engine_summary(session), **snapshot_properties})
        return self._run_planned(
            lambda: spark_room("upsert").plan_upsert(session, state, source, keys, target, cache=self._manifests)
        )

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
            state = table._state
            session = choose_session(source if is_spark_frame(source) else None)
            frame = frame_of_rows(source, state, session)
            target = target_of(state.metadata, branch, {**engine_summary(session), **snapshot_properties})
            room = spark_room("merge")
            given = [room.Clause(one.when, one.do, one.condition, one.values) for one in clauses]
            return table._run_planned(
                lambda: room.plan_merge(
                    session, state, frame, on, given, target, cache=self._manifests, may_lack_columns=merge_schema
                )
            )

        return MergeBuilder(run)

    @property
    def _manifests(self) -> ManifestCache | None:
        return getattr(self, "_cache", None)

    def _together(self) -> Any:
        """Return a context in which several changes are one commit; inside a transaction that is the transaction."""
        return nullcontext(self)

    def _run_planned(self, plan: Callable[[], Any]) -> Snapshot | None:
        """Commit what a row-level verb has planned; delete its files where the commit is known to have failed."""
        planned = plan()
        if planned is None:
            return None
        try:
            return self._run(planned.action)
        except FrazilError as error:
            if error.may_clean_up:
                self._shown.storage.delete_many(planned.written)
            raise

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
