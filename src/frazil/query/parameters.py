"""Values of parameters, as DuckDB takes them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from frazil.errors import InvalidRequestError
from frazil.expr.parameters import python_value

_PLAIN = (bool, int, float, str, bytes, Decimal, UUID, datetime.date, datetime.time, datetime.timedelta)


@dataclass(frozen=True, slots=True)
class Nanoseconds:
    """A time in nanoseconds, which Python has no type for, as text."""

    text: str
    has_zone: bool


def parameter_value(name: str, value: Any) -> Any:
    """Return the value of a parameter for DuckDB; refuse types that it would not take exactly."""
    if isinstance(value, pa.Scalar):
        if not value.is_valid:
            return None
        if pa.types.is_timestamp(value.type) and value.type.unit == "ns":
            return _nanoseconds(np.datetime64(value.value, "ns"), has_zone=value.type.tz is not None)
        value = value.as_py()
    if isinstance(value, np.datetime64) and not isinstance(value.item(), datetime.date):
        return _nanoseconds(value, has_zone=False)
    if isinstance(value, datetime.datetime) and value == value and getattr(value, "nanosecond", None):  # one of pandas
        return _nanoseconds(value.to_datetime64(), has_zone=value.tzinfo is not None)  # type: ignore[attr-defined]
    if type(value).__name__ == "Timestamp" and hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    value = python_value(name, value)
    if isinstance(value, int) and not -(2**127) <= value < 2**127:
        raise InvalidRequestError(f"Cannot use the parameter {name!r}: the number has more than 38 digits")
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, list | tuple):
        return [parameter_value(name, item) for item in value]
    if isinstance(value, dict):
        return {key: parameter_value(name, item) for key, item in value.items()}
    raise InvalidRequestError(f"Cannot use the parameter {name!r}: a {type(value).__name__} is not a value of SQL")


def _nanoseconds(moment: np.datetime64, *, has_zone: bool) -> Nanoseconds | None:
    if np.isnat(moment):
        return None
    return Nanoseconds(str(moment.astype("datetime64[ns]")).replace("T", " "), has_zone)


def duckdb_value(value: Any) -> Any:
    """Return the value of a parameter as DuckDB's Python client takes it."""
    if isinstance(value, Nanoseconds):
        import duckdb

        type_name = "TIMESTAMPTZ_NS" if value.has_zone else "TIMESTAMP_NS"
        return duckdb.Value(f"{value.text}+00" if value.has_zone else value.text, duckdb.sqltype(type_name))
    if isinstance(value, list):
        return [duckdb_value(item) for item in value]
    if isinstance(value, dict):
        return {key: duckdb_value(item) for key, item in value.items()}
    return value
