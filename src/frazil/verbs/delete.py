"""Delete the rows of a condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.change_rows.find_rows import prepare_delete
from frazil.commit.action import PlannedChange
from frazil.commit.delete_files import DeleteFiles
from frazil.spec.snapshot import Snapshot, Summary
from frazil.verbs.choose_engine import Choice, Engine, check_engine, choose_engine
from frazil.verbs.conditions import BY_METADATA, NO_PARAMETERS, expression_session, filled, find_whole
from frazil.verbs.write_session import Write, WriteSession


def delete(
    session: WriteSession, where: Any, *, engine: Engine = "auto", parameters: Mapping[str, object] = NO_PARAMETERS
) -> Snapshot | None:
    """Delete the rows of a condition: whole files by their metadata, and rows of others by the chosen engine."""
    with session.begin("delete") as write:
        if write is None:
            return None
        where = filled(where, parameters)
        check_engine(engine, write.state)
        whole = find_whole(write, where)
        if whole is not None:
            return write.commit(PlannedChange(DeleteFiles(where=whole, target=write.target())))
        return write.carry_out(lambda write: _plan(write, where, engine), Summary.NUM_DELETED_ROWS)


def explain_delete(session: WriteSession, where: Any, *, engine: Engine, parameters: Mapping[str, object]) -> str:
    """Return how a delete would be carried out."""
    where = filled(where, parameters)
    write = session.write()
    check_engine(engine, write.state)
    title = f"delete from {write.state.name}"
    if find_whole(write, where) is not None:
        return f"{title}\n{BY_METADATA}"
    return _choose(write, where, engine).explain(title)


def _plan(write: Write, where: Any, engine: Engine) -> PlannedChange | None:
    choice = _choose(write, where, engine)
    if choice.plan is not None:
        return choice.run()
    spark, target = write.on_spark()
    from frazil.spark.change.delete import plan_delete

    return plan_delete(spark, write.state, where, target, cache=write.session.cache)


def _choose(write: Write, where: Any, engine: Engine) -> Choice:
    target = write.target()
    return choose_engine(
        engine,
        write.state,
        None,
        lambda: prepare_delete(write.state, where, target, expression_session(), write.session.cache),
    )
