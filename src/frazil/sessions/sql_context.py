"""What a statement runs in: the session's names, and Spark where there is one.

Statements that change metadata need no Spark. `Engine` is what the others ask for, and `spark_engine.py` is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.lake.sql_session import Place, SqlSession
from frazil.lake.table import Table
from frazil.spec.schema import Schema
from frazil.spec.types import DateType, TimestampNsType, TimestampType, TimestamptzNsType, TimestamptzType, Type
from frazil.spec.values import to_internal
from frazil.sql.literals import NOT_A_LITERAL, read_literal
from frazil.sql.statements import Name, Span
from frazil.sql.type_names import spark_type_name


class Engine(Protocol):
    """What statements need of Spark."""

    def query(self, text: str) -> Any:
        """Return the DataFrame of a query whose names may mean tables of lakes."""

    def evaluate(self, expressions: Sequence[str]) -> tuple[Any, ...]:
        """Return the values of constant expressions."""

    def schema_of(self, frame: Any) -> Schema:
        """Return the schema of a DataFrame in the format's types."""

    def view_schema(self, text: str, place: Place) -> Schema:
        """Return the columns of a view's query; refuse one that uses something temporary, or the view itself."""

    def current_namespace(self) -> Name:
        """Return the namespace of Spark's own catalog in which names are looked up."""

    def changes(self, place: Place, table: Table, options: Mapping[str, str]) -> Any:
        """Return the changes of a table's rows as a DataFrame; `options` are those of a read."""

    def setting(self, name: str) -> str | None:
        """Return a setting of the session."""

    def settings(self, prefix: str) -> Mapping[str, str]:
        """Return the settings of the session that begin with a prefix."""


@dataclass(frozen=True, slots=True)
class SqlContext:
    """A session and, where there is one, its engine."""

    session: SqlSession
    engine: Engine | None = None

    def spark(self, verb: str) -> Engine:
        """Return the engine; refuse where there is none."""
        if self.engine is None:
            raise InvalidRequestError(
                f"Cannot {verb} without Spark: no session is attached", hint="Use frazil.attach(spark, lake)."
            )
        return self.engine

    def value(self, span: Span, kind: Type, what: str) -> Any:
        """Return a constant expression's value as the format keeps it; `what` says what it is for."""
        literal = read_literal(span.text)
        is_instant = isinstance(kind, TimestamptzType | TimestamptzNsType)
        if literal is NOT_A_LITERAL or (is_instant and isinstance(literal, str) and self.engine is not None):
            engine = self.spark(f"evaluate {span.text!r}")
            name = spark_type_name(kind)
            text = f"cast({span.text} as {name})"
            if is_instant:
                # Whole numbers lose no zone on the way.
                (micros,) = engine.evaluate([f"unix_micros({text})"])
                return micros if micros is None or isinstance(kind, TimestamptzType) else micros * 1000
            if isinstance(kind, DateType | TimestampType | TimestampNsType):
                text = f"replace(cast({text} as string), ' ', 'T')"
            (literal,) = engine.evaluate([text])
        if literal is None:
            return None
        try:
            return to_internal(literal, kind)
        except SchemaMismatchError as error:
            raise InvalidRequestError(f"Cannot use {span.text} as {what}: {error.message}") from error

    def arguments(self, spans: Sequence[tuple[Span, str]]) -> list[Any]:
        """Return the values of a procedure's arguments, each with its type in Spark's words."""
        values = [_plain(read_literal(span.text), kind) for span, kind in spans]
        missing = [at for at, value in enumerate(values) if value is NOT_A_LITERAL]
        if missing:
            engine = self.spark(f"evaluate {spans[missing[0]][0].text!r}")
            found = engine.evaluate([_cast(*spans[at]) for at in missing])
            for at, value in zip(missing, found, strict=True):
                values[at] = value
        return values


def _cast(span: Span, kind: str) -> str:
    if kind == "timestamp":
        return f"unix_millis(cast({span.text} as timestamp))"
    return f"cast({span.text} as {kind})"


def _plain(value: Any, kind: str) -> Any:
    """Return a literal if it is of the type asked for as it stands; the rest is for the engine to cast."""
    if value is None or value is NOT_A_LITERAL:
        return value
    is_bool = isinstance(value, bool)
    fits: Mapping[str, bool] = {
        "string": isinstance(value, str),
        "bigint": isinstance(value, int) and not is_bool,
        "int": isinstance(value, int) and not is_bool,
        "boolean": is_bool,
        "array<bigint>": isinstance(value, list) and all(isinstance(one, int) for one in value),
        "array<string>": isinstance(value, list) and all(isinstance(one, str) for one in value),
        "map<string,string>": isinstance(value, dict) and all(isinstance(one, str) for one in value.values()),
    }
    return value if fits.get(kind, False) else NOT_A_LITERAL
