"""Replace rows by those of the same key, and add the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from frazil.change_rows.merge import prepare_upsert
from frazil.change_rows.source_rows import open_source
from frazil.commit.action import PlannedChange
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.spec.snapshot import Snapshot
from frazil.verbs.choose_engine import Choice, Engine, choose_engine
from frazil.verbs.conditions import expression_session
from frazil.verbs.on_spark import is_spark_frame
from frazil.verbs.write_rows import frame_of_rows
from frazil.verbs.write_session import Write, WriteSession


def upsert(
    session: WriteSession, data: Any, keys: Sequence[str] | None = None, *, engine: Engine = "auto"
) -> Snapshot | None:
    """Replace rows by those of the same key, and add the others; None if no value differs."""
    with session.begin("upsert", data) as write:
        if write is None:
            return None
        source, keys = _opened(write.state, data), _keys_of(write.state, keys)
        return write.carry_out(lambda write: _plan(write, source, keys, engine))


def explain_upsert(session: WriteSession, data: Any, keys: Sequence[str] | None = None, *, engine: Engine) -> str:
    """Return how an upsert would be carried out; the source is read."""
    write = session.write()
    source, keys = _opened(write.state, data), _keys_of(write.state, keys)
    return _choose(write, source, keys, engine).explain(f"upsert into {write.state.name}")


def _opened(state: LoadedTable, data: Any) -> Any:
    return data if is_spark_frame(data) else open_source(data, state.metadata.current_schema)


def _keys_of(state: LoadedTable, keys: Sequence[str] | None) -> Sequence[str]:
    """Return the key columns: those given, or the identifier fields of the table."""
    if keys is not None:
        return keys
    schema = state.metadata.current_schema
    names = [schema.name_of(field_id) for field_id in schema.identifier_field_ids]
    if not names:
        raise InvalidRequestError(
            f"Cannot upsert into {state.name}: no keys are given, and the table has no identifier fields",
            hint='Give them: keys=["id"].',
        )
    return names


def _plan(write: Write, source: Any, keys: Sequence[str], engine: Engine) -> PlannedChange | None:
    choice = _choose(write, source, keys, engine)
    if choice.plan is not None:
        return choice.run()
    spark, target = write.on_spark(source)
    frame = frame_of_rows(source, write.state, spark)
    from frazil.spark.change.upsert import plan_upsert

    return plan_upsert(spark, write.state, frame, keys, target, cache=write.session.cache)


def _choose(write: Write, source: Any, keys: Sequence[str], engine: Engine) -> Choice:
    target = write.target()
    return choose_engine(
        engine,
        write.state,
        source,
        lambda: prepare_upsert(write.state, source, keys, target, expression_session(), write.session.cache),
    )
