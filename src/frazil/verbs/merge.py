"""Merge a source into a table, clause by clause, in one commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from frazil.change_rows.assigned_names import assigned_names
from frazil.change_rows.merge import prepare_merge
from frazil.change_rows.merge_clauses import MergeClause
from frazil.change_rows.source_rows import open_source
from frazil.commit.action import PlannedChange
from frazil.expr.fill_parameters import Parameters
from frazil.loaded import LoadedTable
from frazil.spec.snapshot import Snapshot
from frazil.verbs.choose_engine import Choice, Engine, choose_engine
from frazil.verbs.conditions import NO_PARAMETERS, expression_session
from frazil.verbs.on_spark import is_spark_frame
from frazil.verbs.write_rows import frame_of_rows, with_columns_of
from frazil.verbs.write_session import Write, WriteSession


@dataclass(frozen=True, slots=True)
class Merge:
    """What a merge is to do."""

    source: Any
    on: Any
    clauses: tuple[MergeClause, ...] = ()
    parameters: Mapping[str, object] = NO_PARAMETERS
    engine: Engine = "auto"
    merge_schema: bool = False
    """Whether columns of the source that clauses assign and the table lacks are added to it."""


def merge_rows(session: WriteSession, merge: Merge) -> Snapshot | None:
    """Carry a merge out; None if it changes nothing."""
    with session.begin("merge", merge.source) as write:
        if write is None:
            return None
        merge = _opened(merge, write.state)
        if merge.merge_schema:
            data = merge.source if is_spark_frame(merge.source) else merge.source.table
            write = with_columns_of(write, data, _assigned(merge))
        return write.carry_out(lambda write: _plan(write, merge))


def explain_merge(session: WriteSession, merge: Merge) -> str:
    """Return how a merge would be carried out; the source is read."""
    write = session.write()
    return _choose(write, _opened(merge, write.state)).explain(f"merge into {write.state.name}")


def _opened(merge: Merge, state: LoadedTable) -> Merge:
    """Return a merge with values in the place of the names in it, and a source that can be read twice."""
    values = Parameters(merge.parameters)
    on, clauses = values.fill(merge.on), tuple(clause.filled(values.fill) for clause in merge.clauses)
    values.check()
    source = merge.source
    if not is_spark_frame(source):
        source = open_source(source, state.metadata.current_schema)
    return replace(merge, source=source, on=on, clauses=clauses)


def _assigned(merge: Merge) -> Collection[str] | None:
    """Return the columns that clauses assign; None if one assigns all."""
    assignments = [clause.values for clause in merge.clauses if clause.do != "delete"]
    if None in assignments:
        return None
    return assigned_names([values for values in assignments if values is not None])


def _plan(write: Write, merge: Merge) -> PlannedChange | None:
    choice = _choose(write, merge)
    if choice.plan is not None:
        return choice.run()
    spark, target = write.on_spark(merge.source)
    from frazil.spark.change.merge import plan_merge

    return plan_merge(
        spark,
        write.state,
        frame_of_rows(merge.source, write.state, spark),
        merge.on,
        merge.clauses,
        target,
        cache=write.session.cache,
        may_lack_columns=merge.merge_schema,
    )


def _choose(write: Write, merge: Merge) -> Choice:
    target = write.target()

    def prepare() -> Any:
        return prepare_merge(
            write.state,
            merge.source,
            merge.on,
            merge.clauses,
            target,
            expression_session(),
            write.session.cache,
            may_lack_columns=merge.merge_schema,
        )

    return choose_engine(merge.engine, write.state, merge.source, prepare)
