"""Variants: semi-structured values. Specification: "Semi-structured Types".

The types are those of version 1 of the Variant encoding of Parquet. A `VariantValue` keeps the stored type (an int8
stays an int8), so that a value that is read and written again has the same type. Its Python value has the form of
`spec/types.py` for the type of that name; an object holds a mapping of values by name, an array a tuple of values.
`codec/variant.py` encodes and decodes them.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from frazil.errors import InvalidRequestError
from frazil.spec.frozen_map import FrozenMap

HEADING = "Semi-structured Types"

MAX_VARIANT_DEPTH = 128
"""The deepest nesting of objects and arrays, so that comparing, printing and pickling cannot overflow the stack."""

MAX_SCALE = 38

_FLOAT_OVERFLOW = 2.0**128 - 2.0**103
"""The smallest number that is too large for a 32-bit float after rounding."""


class VariantKind(StrEnum):
    """The stored types, named like the Iceberg types if there is one."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    DOUBLE = "double"
    DECIMAL4 = "decimal4"
    DECIMAL8 = "decimal8"
    DECIMAL16 = "decimal16"
    DATE = "date"
    TIMESTAMPTZ = "timestamptz"
    TIMESTAMP = "timestamp"
    FLOAT = "float"
    BINARY = "binary"
    STRING = "string"
    TIME = "time"
    TIMESTAMPTZ_NS = "timestamptz_ns"
    TIMESTAMP_NS = "timestamp_ns"
    UUID = "uuid"
    OBJECT = "object"
    ARRAY = "array"

    @property
    def is_primitive(self) -> bool:
        """Whether values have no parts."""
        return self is not VariantKind.OBJECT and self is not VariantKind.ARRAY


INTEGER_BITS = {
    VariantKind.INT8: 8,
    VariantKind.INT16: 16,
    VariantKind.INT32: 32,
    VariantKind.INT64: 64,
    VariantKind.DATE: 32,
    VariantKind.TIME: 64,
    VariantKind.TIMESTAMPTZ: 64,
    VariantKind.TIMESTAMP: 64,
    VariantKind.TIMESTAMPTZ_NS: 64,
    VariantKind.TIMESTAMP_NS: 64,
}
"""The width of types that are stored as integers."""

DECIMAL_DIGITS = {VariantKind.DECIMAL4: 9, VariantKind.DECIMAL8: 18, VariantKind.DECIMAL16: 38}
"""The largest number of digits of each decimal type."""

_PYTHON_TYPES: dict[VariantKind, type[Any]] = {
    VariantKind.NULL: type(None),
    VariantKind.BOOLEAN: bool,
    VariantKind.FLOAT: float,
    VariantKind.DOUBLE: float,
    VariantKind.BINARY: bytes,
    VariantKind.STRING: str,
    VariantKind.UUID: uuid.UUID,
    VariantKind.OBJECT: FrozenMap,
    VariantKind.ARRAY: tuple,
}


@dataclass(frozen=True, slots=True)
class VariantValue:
    """A value with its stored type."""

    kind: VariantKind
    value: Any = None

    def __post_init__(self) -> None:
        if self.kind is VariantKind.OBJECT and isinstance(self.value, Mapping):
            object.__setattr__(self, "value", FrozenMap(self.value))
        elif self.kind is VariantKind.ARRAY and isinstance(self.value, list):
            object.__setattr__(self, "value", tuple(self.value))
        reason = _find_misfit(self.kind, self.value)
        if reason is not None:
            raise InvalidRequestError(f"Cannot make a variant {self.kind}: {reason}", heading=HEADING)

    def to_python(self) -> Any:
        """Return the value without its stored types: objects as dicts, arrays as lists."""
        if self.kind is VariantKind.OBJECT:
            return {name: value.to_python() for name, value in self.value.items()}
        if self.kind is VariantKind.ARRAY:
            return [item.to_python() for item in self.value]
        return self.value


def decimal_parts(value: Decimal) -> tuple[int, int]:
    """Return a finite decimal's unscaled value and scale, which is negative for whole multiples of ten."""
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits)) or "0")
    return (-unscaled if sign else unscaled), -int(exponent)


def _fits(value: int, bits: int) -> bool:
    return -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def _find_misfit(kind: VariantKind, value: Any) -> str | None:
    """Return why a Python value does not fit a stored type, or None if it does."""
    bits = INTEGER_BITS.get(kind)
    if bits is not None:
        if not isinstance(value, int) or isinstance(value, bool):
            return f"{type(value).__name__} values are not integers"
        return None if _fits(value, bits) else f"the value does not fit {bits} bits"
    digits = DECIMAL_DIGITS.get(kind)
    if digits is not None:
        return _find_decimal_misfit(value, digits)
    if not isinstance(value, _PYTHON_TYPES[kind]):
        return f"{type(value).__name__} values are not {_PYTHON_TYPES[kind].__name__}"
    if kind is VariantKind.FLOAT:
        return _find_float_misfit(value)
    if kind is VariantKind.OBJECT:
        names_fit = all(isinstance(name, str) for name in value)
        return _find_part_misfit(value.values()) if names_fit else "names must be strings"
    if kind is VariantKind.ARRAY:
        return _find_part_misfit(value)
    return None


def _find_decimal_misfit(value: Any, most: int) -> str | None:
    if not isinstance(value, Decimal) or not value.is_finite():
        return f"{str(value)[:60]} is not a finite decimal"
    _, digits, exponent = value.as_tuple()
    if not 0 <= -int(exponent) <= MAX_SCALE:
        return f"the scale {-int(exponent)} is not from 0 to {MAX_SCALE}"
    return None if len(digits) <= most else f"{len(digits)} digits are more than {most}"


def _find_float_misfit(value: float) -> str | None:
    overflows = math.isfinite(value) and abs(value) >= _FLOAT_OVERFLOW
    return f"{value!r} does not fit 32 bits" if overflows else None


def _find_part_misfit(parts: Any) -> str | None:
    return None if all(isinstance(item, VariantValue) for item in parts) else "its parts must be variant values"


VARIANT_NULL = VariantValue(VariantKind.NULL)
