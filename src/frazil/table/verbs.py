"""What can be done to the rows of a table: the verbs that a `Table` and a transaction share.

`table/metadata_verbs.py` has those that change metadata only.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec

from frazil.change_rows.assigned_names import assigned_names
from frazil.change_rows.find_rows import prepare_delete, prepare_overwrite, prepare_update, run_overwrite
from frazil.change_rows.merge import prepare_merge, prepare_upsert
from frazil.change_rows.merge_clauses import MergeClause
from frazil.change_rows.row_change import noted
from frazil.change_rows.source_rows import open_source
from frazil.commit.action import Action, PlannedChange
from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.new_snapshot import Target, find_parent
from frazil.commit.once import Once, RecordOnly, WriteOnce, find_done, parse_once
from frazil.commit.overwrite import Overwrite
from frazil.commit.replace_partitions import ReplacePartitions
from frazil.errors import ConcurrentChangeError, InvalidRequestError
from frazil.evaluate.condition import Session
from frazil.expr.bind import bind
from frazil.expr.fill_parameters import Parameters
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import WRITE_AUDIT_PUBLISH_ENABLED, read_property
from frazil.spec.snapshot import MAIN_BRANCH, Snapshot, Summary
from frazil.spec.snapshot_history import ancestor_ids_between
from frazil.spec.table_metadata import TableMetadata
from frazil.table.choose_engine import Choice, Engine, check_engine, choose_engine
from frazil.table.merge_builder import MergeBuilder
from frazil.table.metadata_verbs import MetadataVerbs
from frazil.table.on_spark import choose_session, engine_summary, is_spark_frame
from frazil.table.sql_meaning import is_utc, plain_predicate, takes_files_whole
from frazil.table.write_rows import evolution_of, frame_of_rows, schema_of_rows, write_rows

NO_PROPERTIES: Mapping[str, str] = FrozenMap()
OnceGiven = tuple[str, int | str] | Once
"""What names a write that happens once: an application and a version."""
_Given = ParamSpec("_Given")
_PLANS = 10
"""How often a change is planned at most, where others rewrite the files that it reads."""


def _may_be_once(verb: Callable[_Given, Snapshot | None]) -> Callable[_Given, Snapshot | None]:
    """Give a verb its argument `once`: what was done before is not done again, and None is returned.

    Whoever is to know of verbs is told here.
    """
    known = signature(verb)

    @wraps(verb)
    def run(*given: _Given.args, **named: _Given.kwargs) -> Snapshot | None:
        table: Any = given[0]
        data = given[1] if len(given) > 1 else named.get("data")
        with table._telling(verb.__name__.lstrip("_"), data.source if isinstance(data, _Merge) else data):
            return run_once(*given, **named)

    def run_once(*given: _Given.args, **named: _Given.kwargs) -> Snapshot | None:
        once: Any = named.get("once")
        if once is None:
            return verb(*given, **named)
        call = known.bind(*given, **named)
        call.apply_defaults()
        table: TableVerbs = call.arguments["self"]

        def write(table: TableVerbs, said: Mapping[str, str]) -> Snapshot | None:
            call.arguments |= {"self": table, "snapshot_properties": said, "once": None}
            return verb(*call.args, **call.kwargs)

        return table._write_once(once, call.arguments["branch"], call.arguments["snapshot_properties"], write)

    return run


@dataclass(frozen=True, slots=True)
class _Merge:
    """A merge as it is asked for."""

    source: Any
    on: Any
    clauses: tuple[MergeClause, ...]
    parameters: Mapping[str, object]
    engine: Engine
    merge_schema: bool


class TableVerbs(MetadataVerbs):
    """Changes of one table: of its rows, and of everything else.

    Every write takes a branch, which is made where it is missing, and properties for the snapshot's summary. With
    `once`, an application and a version, it happens once: where that application wrote that version to the branch
    before, nothing happens and None is returned. A version that is a whole number is done where one not below it
    is; a text, where the same is (docs/once.md). On a table with `write.wap.enabled`, a write with the property
    `wap.id` is staged: no branch leads to it before `publish_changes`.

    What changes rows returns the snapshot it made, whose `num_affected_rows` (and `num_inserted_rows`,
    `num_updated_rows`, `num_deleted_rows`) are counted by the way; None is no change.
    """

    _cache: ManifestCache | None = None

    @_may_be_once
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

        def write(table: TableVerbs) -> Snapshot | None:
            state = table._begin()
            target = target_of(state.metadata, branch, _with_engine(data, snapshot_properties))
            files = write_rows(state, data, may_lack_parts=merge_schema)
            action = Append(files, target, written_schema=state.metadata.current_schema)
            return table._commit(state, action, paths_of(files))[1] if files else None

        return self._with_columns_of(data, write) if merge_schema else write(self)

    def _with_columns_of(
        self,
        data: Any,
        write: Callable[[TableVerbs], Snapshot | None],
        only: Collection[str] | None = None,
        state: LoadedTable | None = None,
    ) -> Snapshot | None:
        """Add the columns of data that the table lacks, or `only` some of them, and write, in one commit."""
        state = self._begin() if state is None else state
        evolution = evolution_of(schema_of_rows(data, state.metadata), only)

        def change(table: TableVerbs) -> Snapshot | None:
            table._run(evolution)
            return write(table)

        return self._together(state, change)

    @_may_be_once
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
        where = filled(where, parameters)

        def write(table: TableVerbs) -> Snapshot | None:
            return table._overwrite(data, where, branch, snapshot_properties, engine, may_lack_parts=merge_schema)

        return self._with_columns_of(data, write) if merge_schema else write(self)

    def _overwrite(
        self,
        data: Any,
        where: Any,
        branch: str,
        snapshot_properties: Mapping[str, str],
        engine: Engine,
        *,
        may_lack_parts: bool,
    ) -> Snapshot | None:
        state = self._begin()
        check_engine(engine, state, data)
        schema = state.metadata.current_schema
        predicate = plain_predicate(where, schema)
        target = target_of(state.metadata, branch, _with_engine(data, snapshot_properties))
        if predicate is not None and takes_files_whole(state, branch, predicate, self._cache):
            predicate = bind(schema, predicate)
            read = self._read_set(state, branch, predicate)
            files = write_rows(state, data, may_lack_parts=may_lack_parts)
            action = Overwrite(files, read, where=predicate, target=target, written_schema=schema)
            return self._commit_planned(state, _of_files(action, files), Summary.NUM_INSERTED_ROWS)
        choice = self._choose_overwrite(state, data, where, target, engine)
        files = write_rows(state, data, may_lack_parts=may_lack_parts)
        if choice.plan is not None:
            planned = run_overwrite(choice.plan, files)
        else:
            from frazil.spark.change import overwrite as room

            session = choose_session(data if is_spark_frame(data) else None)
            planned = room.plan_overwrite(session, state, files, where, target, cache=self._cache)
        if planned is not None:
            planned = replace(planned, rows=sum(file.record_count for file in files))
        return self._commit_planned(state, planned, Summary.NUM_INSERTED_ROWS)

    def _choose_overwrite(self, state: LoadedTable, data: Any, where: Any, target: Target, engine: Engine) -> Choice:
        return choose_engine(
            engine, state, data, lambda: prepare_overwrite(state, where, target, self._session(), self._cache)
        )

    @_may_be_once
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

        def write(table: TableVerbs) -> Snapshot | None:
            state = table._begin()
            target = target_of(state.metadata, branch, _with_engine(data, snapshot_properties))
            read = table._read_set(state, branch, TRUE)
            files = write_rows(state, data, may_lack_parts=merge_schema)
            action = ReplacePartitions(files, read, target, state.metadata.current_schema)
            return table._commit_planned(state, _of_files(action, files), Summary.NUM_INSERTED_ROWS) if files else None

        return self._with_columns_of(data, write) if merge_schema else write(self)

    @_may_be_once
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
        where = filled(where, parameters)
        state = self._begin()
        check_engine(engine, state)
        predicate = plain_predicate(where, state.metadata.current_schema)
        if predicate is not None and takes_files_whole(state, branch, predicate, self._cache):
            target = target_of(state.metadata, branch, snapshot_properties)
            meant = bind(state.metadata.current_schema, predicate)
            return self._commit(state, DeleteFiles(where=meant, target=target))[1]

        def plan(state: LoadedTable) -> Any:
            choice = self._choose_delete(state, where, branch, snapshot_properties, engine)
            if choice.plan is not None:
                return choice.plan.run()
            session = choose_session()
            target = target_of(state.metadata, branch, {**engine_summary(session), **snapshot_properties})
            from frazil.spark.change.delete import plan_delete

            return plan_delete(session, state, where, target, cache=self._cache)

        return self._carry_out(state, branch, plan, Summary.NUM_DELETED_ROWS)

    def _choose_delete(
        self, state: LoadedTable, where: Any, branch: str, properties: Mapping[str, str], engine: Engine
    ) -> Choice:
        target = target_of(state.metadata, branch, properties)
        return choose_engine(
            engine, state, None, lambda: prepare_delete(state, where, target, self._session(), self._cache)
        )

    @_may_be_once
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
        given = Parameters(parameters)
        where, values = given.fill(where), {name: given.fill(value) for name, value in values.items()}
        given.check()
        state = self._begin()

        def plan(state: LoadedTable) -> Any:
            choice = self._choose_update(state, values, where, branch, snapshot_properties, engine)
            if choice.plan is not None:
                return choice.plan.run()
            session = choose_session()
            target = target_of(state.metadata, branch, {**engine_summary(session), **snapshot_properties})
            from frazil.spark.change.update import plan_update

            return plan_update(session, state, values, where, target, cache=self._cache)

        return self._carry_out(state, branch, plan, Summary.NUM_UPDATED_ROWS)

    def _choose_update(
        self,
        state: LoadedTable,
        values: Mapping[str, Any],
        where: Any,
        branch: str,
        properties: Mapping[str, str],
        engine: Engine,
    ) -> Choice:
        target = target_of(state.metadata, branch, properties)
        return choose_engine(
            engine, state, None, lambda: prepare_update(state, values, where, target, self._session(), self._cache)
        )

    @_may_be_once
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
        state = self._begin()
        source = data if is_spark_frame(data) else open_source(data, state.metadata.current_schema)
        keys = keys_of(state, keys)

        def plan(state: LoadedTable) -> Any:
            choice = self._choose_upsert(state, source, keys, branch, snapshot_properties, engine)
            if choice.plan is not None:
                return choice.plan.run()
            session = choose_session(data if is_spark_frame(data) else None)
            frame = frame_of_rows(source, state, session)
            target = target_of(state.metadata, branch, {**engine_summary(session), **snapshot_properties})
            from frazil.spark.change.upsert import plan_upsert

            return plan_upsert(session, state, frame, keys, target, cache=self._cache)

        return self._carry_out(state, branch, plan)

    def _choose_upsert(
        self,
        state: LoadedTable,
        source: Any,
        keys: Sequence[str],
        branch: str,
        properties: Mapping[str, str],
        engine: Engine,
    ) -> Choice:
        target = target_of(state.metadata, branch, properties)
        return choose_engine(
            engine, state, source, lambda: prepare_upsert(state, source, keys, target, self._session(), self._cache)
        )

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
        once = None if once is None else parse_once(once)

        def asked(clauses: tuple[MergeClause, ...]) -> _Merge:
            return _Merge(source, on, clauses, parameters, engine, merge_schema)

        def run(clauses: tuple[MergeClause, ...]) -> Snapshot | None:
            return self._merge(asked(clauses), branch=branch, snapshot_properties=snapshot_properties, once=once)

        def explain(clauses: tuple[MergeClause, ...]) -> str:
            state, merge = self._begin_merge(asked(clauses))
            choice = self._choose_merge(state, merge, branch, snapshot_properties)
            return choice.explain(f"merge into {state.name}")

        return MergeBuilder(run, explain)

    @_may_be_once
    def _merge(
        self,
        merge: _Merge,
        *,
        branch: str,
        snapshot_properties: Mapping[str, str],
        once: OnceGiven | None = None,
    ) -> Snapshot | None:
        state, merge = self._begin_merge(merge)
        if not merge.merge_schema:
            return self._merge_into(state, merge, branch, snapshot_properties)
        written = [clause.values for clause in merge.clauses if clause.do != "delete"]
        only = None if None in written else assigned_names([values for values in written if values is not None])
        data = merge.source if is_spark_frame(merge.source) else merge.source.table

        def write(table: TableVerbs) -> Snapshot | None:
            return table._merge_into(table._begin(), merge, branch, snapshot_properties)

        return self._with_columns_of(data, write, only, state)

    def _begin_merge(self, merge: _Merge) -> tuple[LoadedTable, _Merge]:
        """Return the table's state and a merge with values in the place of names, and a source that is opened."""
        named = Parameters(merge.parameters)
        on, clauses = named.fill(merge.on), tuple(clause.filled(named.fill) for clause in merge.clauses)
        named.check()
        state = self._begin()
        source = merge.source
        if not is_spark_frame(source):
            source = open_source(source, state.metadata.current_schema)
        return state, replace(merge, source=source, on=on, clauses=clauses)

    def _choose_merge(self, state: LoadedTable, merge: _Merge, branch: str, properties: Mapping[str, str]) -> Choice:
        def prepare() -> Any:
            return prepare_merge(
                state,
                merge.source,
                merge.on,
                merge.clauses,
                target_of(state.metadata, branch, properties),
                self._session(),
                self._cache,
                may_lack_columns=merge.merge_schema,
            )

        return choose_engine(merge.engine, state, merge.source, prepare)

    def _merge_into(
        self, state: LoadedTable, merge: _Merge, branch: str, properties: Mapping[str, str]
    ) -> Snapshot | None:
        def plan(state: LoadedTable) -> Any:
            choice = self._choose_merge(state, merge, branch, properties)
            if choice.plan is not None:
                return choice.plan.run()
            session = choose_session(merge.source if is_spark_frame(merge.source) else None)
            from frazil.spark.change.merge import plan_merge

            return plan_merge(
                session,
                state,
                frame_of_rows(merge.source, state, session),
                merge.on,
                merge.clauses,
                target_of(state.metadata, branch, {**engine_summary(session), **properties}),
                cache=self._cache,
                may_lack_columns=merge.merge_schema,
            )

        return self._carry_out(state, branch, plan)

    def _write_once(
        self,
        once: OnceGiven,
        branch: str,
        snapshot_properties: Mapping[str, str],
        write: Callable[[TableVerbs, Mapping[str, str]], Snapshot | None],
    ) -> Snapshot | None:
        """Write, unless that was done before; a write that changes nothing is done as well."""
        name = parse_once(once)
        state = self._begin()
        is_staged = target_of(state.metadata, branch, snapshot_properties).is_staged
        if find_done(state.metadata, branch, name, is_staged=is_staged) is not None:
            return None
        table = OnceTable(self, state, WriteOnce(RecordOnly(), name, branch, is_staged))
        made = write(table, {**snapshot_properties, **name.summary()})
        if not table.has_committed and not is_staged and not name.is_epoch:
            table._commit(table._begin(), RecordOnly())
        return made

    def _telling(self, verb: str, data: Any) -> AbstractContextManager[None]:
        """Tell of a verb, where somebody is to be told; inside a transaction it is a part of that."""
        return nullcontext()

    def _read_set(self, state: LoadedTable, branch: str, predicate: Predicate) -> ReadSet:
        """Return what an overwrite reads of a branch: what others add there since is a conflict."""
        return read_set_of(state, branch, predicate)

    def _session(self) -> Session:
        """Return what expressions of a statement depend on."""
        return Session(time.time_ns() // 1000, is_utc())

    @abstractmethod
    def _together(self, state: LoadedTable, change: Callable[[TableVerbs], Snapshot | None]) -> Snapshot | None:
        """Make several changes, which begin with a state, one commit; inside a transaction they are part of it."""

    def _carry_out(
        self,
        state: LoadedTable,
        branch: str,
        plan: Callable[[LoadedTable], PlannedChange | None],
        counted_as: str | None = None,
    ) -> Snapshot | None:
        """Plan a change and commit it; plan it again where others rewrote files that it read: no row changed."""
        for _ in range(1, _PLANS):
            try:
                return self._commit_planned(state, plan(state), counted_as)
            except ConcurrentChangeError:
                now = self._begin_again(state, branch)
                if now is None:
                    raise
                state = now
        return self._commit_planned(state, plan(state), counted_as)

    def _commit_planned(
        self, state: LoadedTable, planned: PlannedChange | None, counted_as: str | None
    ) -> Snapshot | None:
        """Commit a change; the snapshot's summary counts its rows under a name, where somebody counted them."""
        if planned is None:
            return None
        if counted_as is not None and planned.rows is not None:
            planned = noted(planned, {counted_as: str(planned.rows)})
        return self._commit(state, planned.action, planned.written)[1]

    def _begin_again(self, state: LoadedTable, branch: str) -> LoadedTable | None:
        """Return the table as it is now, for a change to be planned again; None where that would not help."""
        return None


class OnceTable(TableVerbs):
    """A table in one write that happens once: its commit looks whether that was done before."""

    def __init__(self, table: TableVerbs, state: LoadedTable | None, guard: WriteOnce) -> None:
        self._table = table
        self._state = state
        self._guard = guard
        self._cache = table._cache
        self.has_committed = False

    def _begin(self) -> LoadedTable:
        state, self._state = self._state, None
        return self._table._begin() if state is None else state

    def _begin_again(self, state: LoadedTable, branch: str) -> LoadedTable | None:
        return self._table._begin_again(state, branch)

    def _run(self, action: Action) -> Snapshot | None:
        # What a write does before it, to the schema.
        return self._table._run(action)

    def _commit(
        self, state: LoadedTable, action: Action, written: Sequence[str] = ()
    ) -> tuple[LoadedTable, Snapshot | None]:
        self.has_committed = True
        return self._table._commit(state, replace(self._guard, action=action), written)

    def _read_set(self, state: LoadedTable, branch: str, predicate: Predicate) -> ReadSet:
        return self._table._read_set(state, branch, predicate)

    def _together(self, state: LoadedTable, change: Callable[[TableVerbs], Snapshot | None]) -> Snapshot | None:
        def guarded(table: TableVerbs) -> Snapshot | None:
            inner = OnceTable(table, None, self._guard)
            made = change(inner)
            self.has_committed = self.has_committed or inner.has_committed
            return made

        return self._table._together(state, guarded)


def filled(where: Any, parameters: Mapping[str, object]) -> Any:
    """Return a condition with values in the place of the names in it."""
    given = Parameters(parameters)
    made = given.fill(where)
    given.check()
    return made


def keys_of(state: LoadedTable, keys: Sequence[str] | None) -> Sequence[str]:
    """Return the key columns of an upsert: those given, or the identifier fields of the table."""
    if keys is not None:
        return keys
    schema = state.metadata.current_schema
    found = [schema.name_of(field_id) for field_id in schema.identifier_field_ids]
    if not found:
        raise InvalidRequestError(
            f"Cannot upsert into {state.name}: no keys are given, and the table has no identifier fields",
            hint='Give them: keys=["id"].',
        )
    return found


def read_set_of(state: LoadedTable, branch: str, predicate: Predicate) -> ReadSet:
    """Return what a verb reads of a branch that it replaces rows of: what others add there since is a conflict."""
    parent = find_parent(state.metadata, branch)
    return ReadSet(None if parent is None else parent.snapshot_id, predicate)


def operations_between(before: TableMetadata, after: TableMetadata, branch: str) -> set[str | None]:
    """Return what was done to a branch after a state of it; nothing where that is not known."""
    read, head = find_parent(before, branch), find_parent(after, branch)
    if read is None or head is None:
        return set()
    try:
        ids = ancestor_ids_between(after, after_snapshot_id=read.snapshot_id, to_snapshot_id=head.snapshot_id)
    except InvalidRequestError:
        return set()
    return {after.snapshot(snapshot_id).operation for snapshot_id in ids}


def _of_files(action: Action, files: Sequence[DataFile]) -> PlannedChange:
    return PlannedChange(action, paths_of(files), sum(file.record_count for file in files))


def paths_of(files: Sequence[DataFile]) -> tuple[str, ...]:
    """Return where files are."""
    return tuple(file.file_path for file in files)


def _with_engine(data: Any, snapshot_properties: Mapping[str, str]) -> Mapping[str, str]:
    if not is_spark_frame(data):
        return snapshot_properties
    return {**engine_summary(choose_session(data)), **snapshot_properties}


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
