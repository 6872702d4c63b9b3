"""The context of a statement: the session's names, and Spark if there is a session.

Statements about metadata need no Spark; `spark_engine.py` serves the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.sessions.spark_engine import SparkEngine
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.types import DateType, TimestampNsType, TimestampType, TimestamptzNsType, TimestamptzType, Type
from frazil.spec.values import to_internal
from frazil.sql.literals import NOT_A_LITERAL, read_literal
from frazil.sql.statements import Properties, Span
from frazil.sql.type_names import spark_type_name
from frazil.table.sql_session import SqlSession

OWNER = "owner"


def with_owner(properties: Properties, engine: SparkEngine | None) -> Properties:
    """Return the properties of a new table or namespace with its owner, which Spark's statements also add."""
    if engine is None or OWNER in properties:
        return properties
    return FrozenMap({**properties, OWNER: engine.user})


@dataclass(frozen=True, slots=True)
class SqlContext:
    """A session and its engine, if any."""

    session: SqlSession
    engine: SparkEngine | None = None

    def spark(self, verb: str) -> SparkEngine:
        """Return the engine, or raise an error if there is none."""
        if self.engine is None:
            raise InvalidRequestError(
                f"Cannot {verb} without Spark: no session is attached", hint="Use frazil.attach(spark, lake)."
            )
        return self.engine

    def value(self, span: Span, data_type: Type, what: str) -> Any:
        """Evaluate a constant expression to a value of the format; `what` describes its use."""
        literal = read_literal(span.text)
        is_instant = isinstance(data_type, TimestamptzType | TimestamptzNsType)
        if literal is NOT_A_LITERAL or (is_instant and isinstance(literal, str) and self.engine is not None):
            engine = self.spark(f"evaluate {span.text!r}")
            name = spark_type_name(data_type)
            text = f"cast({span.text} as {name})"
            if is_instant:
                # Numbers carry no time zone that could be lost.
                (micros,) = engine.evaluate([f"unix_micros({text})"])
                return micros if micros is None or isinstance(data_type, TimestamptzType) else micros * 1000
            if isinstance(data_type, DateType | TimestampType | TimestampNsType):
                text = f"replace(cast({text} as string), ' ', 'T')"
            (literal,) = engine.evaluate([text])
        if literal is None:
            return None
        try:
            return to_internal(literal, data_type)
        except SchemaMismatchError as error:
            raise InvalidRequestError(f"Cannot use {span.text} as {what}: {error.message}") from error
