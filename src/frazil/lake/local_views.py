"""Views in queries that run in this process: the query of Spark's dialect, by DataFusion, where both mean the same.

A view was written for Spark, and whoever reads it here does not see its text. So it is read only where the answer is
Spark's: words that mean something else here are refused (`sql/local_query.py`), and so is a column of another kind than
the view's. Names are looked up where the view says. The error names Spark, which reads every view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from frazil.catalog.names import format_name
from frazil.codec.arrow_arrays import is_text
from frazil.codec.arrow_schema import to_arrow_type
from frazil.errors import FrazilError, InvalidRequestError, UnsupportedError
from frazil.lake.decimal_literals import choose_decimals
from frazil.lake.view import DEFAULT_DIALECT, View, find_query_columns
from frazil.sql.local_query import RewrittenQuery, TableReference, quoted_name, rewrite_view
from frazil.sql.statements import VIEW_SCHEMA_MODE, Name

_ON_SPARK = "Run the query on Spark, or write the view's query out."


_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_boolean,
    pa.types.is_date,
    is_text,
    lambda data_type: bool(pa.types.is_timestamp(data_type) and data_type.tz is None),
    lambda data_type: bool(pa.types.is_timestamp(data_type) and data_type.tz is not None),
    lambda data_type: bool(
        pa.types.is_binary(data_type) or pa.types.is_large_binary(data_type) or pa.types.is_fixed_size_binary(data_type)
    ),
)


def not_here(name: str, reason: str) -> UnsupportedError:
    """Return the error for a view that only Spark reads."""
    return UnsupportedError(f"Cannot read the view {name} without Spark: {reason}", hint=_ON_SPARK)


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """A view's query in the engine's words, and the view whose columns it has."""

    view: View
    rewrite: Callable[[frozenset[int] | None], RewrittenQuery]
    """The query's text, given which numbers with a point are decimals; None is all."""

    def frame(self, run: Callable[[str], Any]) -> Any:
        """Return the engine's frame of the view's rows, under its own columns; `run` plans a text.

        They are as WITH SCHEMA said: EVOLUTION is what the query gives, TYPE EVOLUTION its types under the view's
        names, and else values have the view's types.
        """
        fields = self.view.schema.fields
        mode = self.view.properties.get(VIEW_SCHEMA_MODE, "COMPENSATION").upper()
        points = self.rewrite(None).points

        def plan(decimals: frozenset[int]) -> Any:
            return run(self.rewrite(decimals).text)

        plain, decimals = self._planned(lambda: choose_decimals(plan, points, prefers_decimals=True))
        query = self.rewrite(decimals).text
        if not fields or mode == "EVOLUTION":
            return plain
        have_names = plain.schema().names
        chosen = find_query_columns(self.view, have_names)
        numbers = ", ".join(f"c{number}" for number in range(len(have_names)))
        names = ", ".join(
            f"c{number} AS {quoted_name(field.name)}" for number, field in zip(chosen, fields, strict=True)
        )
        text = f"SELECT {names} FROM ({query}) AS {quoted_name(self.view.identifier[-1])}({numbers})"
        renamed = self._planned(lambda: run(text))
        if mode == "TYPE EVOLUTION":
            return renamed
        have = renamed.schema()
        wanted = [to_arrow_type(field.field_type, with_ids=False) for field in fields]
        for field, data_type, arrow_field in zip(fields, wanted, have, strict=True):
            if not _is_alike(arrow_field.type, data_type):
                raise not_here(
                    self.view.name,
                    f"its column {field.name!r} is {field.field_type}, and would be {arrow_field.type} here",
                )
        if all(field_of_query.type == type_wanted for field_of_query, type_wanted in zip(have, wanted, strict=True)):
            return renamed
        return self._planned(lambda: _cast(renamed, [field.name for field in fields], wanted))

    def _planned(self, plan: Callable[[], Any]) -> Any:
        try:
            return plan()
        except FrazilError:
            raise
        except Exception as error:
            raise not_here(self.view.name, f"its query is Spark's ({str(error).splitlines()[0][:300]})") from error


def _is_alike(have: pa.DataType, want: pa.DataType) -> bool:
    return have == want or any(test(have) and test(want) for test in _KINDS)


def _cast(frame: Any, names: list[str], kinds: list[pa.DataType]) -> Any:
    import datafusion

    columns = [
        datafusion.col(quoted_name(name)).cast(data_type).alias(name)
        for name, data_type in zip(names, kinds, strict=True)
    ]
    return frame.select(*columns)


def read_view(view: View, lake_name: str, name_of: Callable[[TableReference], str]) -> ViewQuery:
    """Return a view's query for the engine; refuse one that only Spark reads."""
    if DEFAULT_DIALECT not in view.dialects:
        found = ", ".join(sorted(view.dialects)) or "(none)"
        raise UnsupportedError(
            f"Cannot read the view {view.name}: it has no query in Spark's dialect", hint=f"Its dialects are: {found}."
        )
    version = view.current_version
    own = {lake_name, version.default_catalog}

    def qualified(reference: TableReference) -> str:
        return name_of(reference.named(_meant(reference.name, version.default_namespace, own)))

    def rewrite(decimals: frozenset[int] | None) -> RewrittenQuery:
        return rewrite_view(view.sql_for(DEFAULT_DIALECT), qualified, decimals)

    try:
        rewrite(None)
        return ViewQuery(view, rewrite)
    except UnsupportedError as error:
        if error.hint == _ON_SPARK:  # of a view inside this one
            raise
        raise not_here(view.name, error.message.partition(": ")[2] or error.message) from error


def _meant(name: Name, namespace: Name, catalogs: set[str | None]) -> Name:
    if len(name) == 1:
        return (*namespace, *name)
    return name[1:] if len(name) > 2 and name[0] in catalogs else name


def itself(name: Name, count: int) -> InvalidRequestError:
    """Return the error for a view that is among those it reads."""
    return InvalidRequestError(f"Cannot read the view {format_name(name)}: it reads itself, by way of {count} views")
