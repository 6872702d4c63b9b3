"""Set columns of the rows of a condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frazil.change_rows.find_rows import prepare_update
from frazil.commit.action import PlannedChange
from frazil.expr.fill_parameters import Parameters
from frazil.spec.snapshot import Snapshot, Summary
from frazil.verbs.choose_engine import Choice, Engine, choose_engine
from frazil.verbs.conditions import NO_PARAMETERS, expression_session
from frazil.verbs.write_session import Write, WriteSession


def update(
    session: WriteSession,
    values: Mapping[str, Any],
    where: Any,
    *,
    engine: Engine = "auto",
    parameters: Mapping[str, object] = NO_PARAMETERS,
) -> Snapshot | None:
    """Set columns of the rows of a condition to the values of expressions."""
    with session.begin("update") as write:
        if write is None:
            return None
        values, where = _filled(values, where, parameters)
        return write.carry_out(lambda write: _plan(write, values, where, engine), Summary.NUM_UPDATED_ROWS)


def explain_update(
    session: WriteSession,
    values: Mapping[str, Any],
    where: Any,
    *,
    engine: Engine,
    parameters: Mapping[str, object],
) -> str:
    """Return how an update would be carried out."""
    values, where = _filled(values, where, parameters)
    write = session.write()
    return _choose(write, values, where, engine).explain(f"update {write.state.name}")


def _filled(values: Mapping[str, Any], where: Any, parameters: Mapping[str, object]) -> tuple[Mapping[str, Any], Any]:
    """Return values and a condition with those of parameters in the place of the names in them."""
    given = Parameters(parameters)
    where, values = given.fill(where), {name: given.fill(value) for name, value in values.items()}
    given.check()
    return values, where


def _plan(write: Write, values: Mapping[str, Any], where: Any, engine: Engine) -> PlannedChange | None:
    choice = _choose(write, values, where, engine)
    if choice.plan is not None:
        return choice.run()
    spark, target = write.on_spark()
    from frazil.spark.change.update import plan_update

    return plan_update(spark, write.state, values, where, target, cache=write.session.cache)


def _choose(write: Write, values: Mapping[str, Any], where: Any, engine: Engine) -> Choice:
    target = write.target()
    return choose_engine(
        engine,
        write.state,
        None,
        lambda: prepare_update(write.state, values, where, target, expression_session(), write.session.cache),
    )
