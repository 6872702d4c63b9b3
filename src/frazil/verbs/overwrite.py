"""Replace the rows of a condition by new ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from frazil.change_rows.find_rows import prepare_overwrite, run_overwrite
from frazil.commit.action import PlannedChange
from frazil.commit.new_snapshot import Target
from frazil.commit.overwrite import Overwrite
from frazil.spec.data_file import DataFile
from frazil.spec.snapshot import Snapshot, Summary
from frazil.verbs.choose_engine import Choice, Engine, check_engine, choose_engine
from frazil.verbs.conditions import BY_METADATA, NO_PARAMETERS, expression_session, filled, find_whole
from frazil.verbs.write_rows import change_of_files, count_rows, with_columns_of, write_rows
from frazil.verbs.write_session import Write, WriteSession


def overwrite(
    session: WriteSession,
    data: Any,
    where: Any,
    *,
    merge_schema: bool = False,
    engine: Engine = "auto",
    parameters: Mapping[str, object] = NO_PARAMETERS,
) -> Snapshot | None:
    """Replace the rows of a condition: whole files by their metadata, and files that hold other rows written anew."""
    with session.begin("overwrite", data) as write:
        if write is None:
            return None
        where = filled(where, parameters)
        if merge_schema:
            write = with_columns_of(write, data)
        check_engine(engine, write.state, data)
        target = write.target_of_rows(data)
        whole = find_whole(write, where)
        if whole is not None:
            read = write.read_set(whole)
            files = write_rows(write.state, data, may_lack_parts=merge_schema)
            schema = write.state.metadata.current_schema
            action = Overwrite(files, read, where=whole, target=target, written_schema=schema)
            planned: PlannedChange | None = change_of_files(action, files)
        else:
            choice = _choose(write, data, where, target, engine)
            files = write_rows(write.state, data, may_lack_parts=merge_schema)
            planned = _replaced(write, choice, data, files, where, target)
        return write.commit(planned, Summary.NUM_INSERTED_ROWS)


def explain_overwrite(
    session: WriteSession, data: Any, where: Any, *, engine: Engine, parameters: Mapping[str, object]
) -> str:
    """Return how an overwrite would be carried out; the new rows are not read."""
    where = filled(where, parameters)
    write = session.write()
    check_engine(engine, write.state, data)
    title = f"overwrite {write.state.name}"
    if find_whole(write, where) is not None:
        return f"{title}\n{BY_METADATA}"
    return _choose(write, data, where, write.target(), engine).explain(title)


def _replaced(
    write: Write, choice: Choice, data: Any, files: Sequence[DataFile], where: Any, target: Target
) -> PlannedChange | None:
    """Plan files, which are written already, in the place of the rows of a condition."""
    if choice.plan is not None:
        planned = run_overwrite(choice.plan, files)
    else:
        spark, _ = write.on_spark(data)
        from frazil.spark.change.overwrite import plan_overwrite

        planned = plan_overwrite(spark, write.state, files, where, target, cache=write.session.cache)
    return None if planned is None else replace(planned, rows=count_rows(files))


def _choose(write: Write, data: Any, where: Any, target: Target, engine: Engine) -> Choice:
    return choose_engine(
        engine,
        write.state,
        data,
        lambda: prepare_overwrite(write.state, where, target, expression_session(), write.session.cache),
    )
