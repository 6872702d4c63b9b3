"""Delete the rows of a condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.change_rows.find_rows import prepare_delete
from frazil.commit.action import PlannedChange
from frazil.commit.delete_files import DeleteFiles
from frazil.spec.snapshot import Snapshot, Summary
from frazil.verbs.choose_engine import Choice, Engine, check_engine, choose_engine
from frazil.verbs.conditions import BY_METADATA, NO_PARAMETERS, Prepared, filled
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
        prepared = Prepared(prepare_delete, where)
        whole = prepared.find_whole(write)
        if whole is not None:
            return write.commit(PlannedChange(DeleteFiles(where=whole, target=write.target())))
        return write.carry_out(lambda write: _plan(write, prepared, where, engine), Summary.NUM_DELETED_ROWS)


def explain_delete(session: WriteSession, where: Any, *, engine: Engine, parameters: Mapping[str, object]) -> str:
    """Return how a delete would be carried out."""
    where = filled(where, parameters)
    write = session.write()
    check_engine(engine, write.state)
    title = f"delete from {write.state.name}"
    prepared = Prepared(prepare_delete, where)
    if prepared.find_whole(write) is not None:
        return f"{title}\n{BY_METADATA}"
    return _choose(write, prepared, engine).explain(title)


def _plan(write: Write, prepared: Prepared, where: Any, engine: Engine) -> PlannedChange | None:
    choice = _choose(write, prepared, engine)
    if choice.plan is not None:
        return choice.run()
    spark, target = write.on_spark()
    from frazil.spark.change.delete import plan_delete

    return plan_delete(spark, write.state, where, target, cache=write.session.cache)


def _choose(write: Write, prepared: Prepared, engine: Engine) -> Choice:
    return choose_engine(engine, write.state, None, lambda: prepared.change(write))
