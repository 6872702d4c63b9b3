"""Random columns, filters and metrics, biased to where pruning goes wrong. Used by the soundness laws.

A case is a column of a few rows, a filter on it, and the metrics an honest writer would store: bounds cut to
some length, counts present or not. The laws say what no evaluator may get wrong about it.
"""

from __future__ import annotations

import math
import random
import struct
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from frazil.codec.single_value import encode_bound
from frazil.codec.truncate_bounds import truncate_lower_bound, truncate_upper_bound
from frazil.expr.bind_leaf import bind_leaf
from frazil.expr.predicates import BoundReference, Op, Predicate, all_of, any_of
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.transforms import Transform, parse_transform
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    NestedField,
    Type,
)

TYPES: tuple[Type, ...] = (
    BOOLEAN, INT, LONG, FLOAT, DOUBLE, DecimalType(9, 2), DecimalType(18, 0), DecimalType(38, 10), DATE, TIME,
    TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS, STRING, UUID, FixedType(4), BINARY,
)  # fmt: skip
TRANSFORMS: tuple[Transform, ...] = tuple(
    map(
        parse_transform,
        ("identity", "bucket[1]", "bucket[7]", "truncate[1]", "truncate[3]", "truncate[10]", "truncate[16]",
         "truncate[300]", "truncate[2147483647]", "year", "month", "day", "hour", "void"),
    )
)  # fmt: skip

_DAY_NS = 86_400 * 10**9
_CHARS = ("a", "b", "\x00", "é", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff", "z")
_INT_POINTS = (0, 1, -1, 9, 10, 11, -9, -10, -11, 2**31 - 1, -(2**31), 1 - 2**31, 2 - 2**31, 7 - 2**31, 2**31 - 2)
_LONG_POINTS = (*_INT_POINTS, 2**31, 2**63 - 1, -(2**63), 1 - 2**63, 7 - 2**63, 2**53 + 1)
_FLOAT_POINTS = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 5e-324, 1.5, float(2**53))


def random_value(kind: Type, random_: random.Random) -> Any:
    """Return a value of a type, often one at an edge."""
    if kind == BOOLEAN:
        return random_.random() < 0.5
    if kind == INT:
        return random_.choice(_INT_POINTS) if random_.random() < 0.6 else random_.randint(-30, 30)
    if kind in (LONG,):
        return random_.choice(_LONG_POINTS) if random_.random() < 0.6 else random_.randint(-30, 30)
    if kind == TIME:
        return random_.choice((0, 1, 86_399_999_999, 3_600_000_000))
    if kind == DATE:
        return random_.choice((0, -1, 1, 30, 31, 364, 365, 366, -31, -365, -366, 19_723, -719_162, 2_932_896))
    if kind in (FLOAT, DOUBLE):
        value = random_.choice(_FLOAT_POINTS) if random_.random() < 0.7 else random_.uniform(-5, 5)
        if random_.random() < 0.12:
            return math.nan
        return struct.unpack("<f", struct.pack("<f", value))[0] if kind == FLOAT else value
    if kind in (TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS):
        return _random_instant(random_, 1 if kind in (TIMESTAMP_NS, TIMESTAMPTZ_NS) else 1000)
    if isinstance(kind, DecimalType):
        largest = 10**kind.precision - 1
        unscaled = random_.choice((0, 1, -1, 49, 50, 51, -50, largest, -largest, random_.randint(-largest, largest)))
        return Decimal(unscaled).scaleb(-kind.scale, _WIDE)
    if kind == UUID:
        return uuid.UUID(int=random_.choice((0, 1, 2**127, 2**128 - 1, 2**63)))
    if kind == STRING:
        return "".join(random_.choices(_CHARS, k=random_.choice((0, 1, 2, 3, 4, 15, 16, 17))))
    length = kind.length if isinstance(kind, FixedType) else random_.choice((0, 1, 2, 3, 15, 16, 17))
    return bytes(random_.choices((0, 1, 0x7F, 0x80, 0xFE, 0xFF), k=length))


def _random_instant(random_: random.Random, unit: int) -> int:
    days = random_.choice((0, -1, 1, -365, 365, 19_723, 31, -31))
    nanos = days * _DAY_NS + random_.choice((0, 1, -1, 1000, -1000, 3_600 * 10**9, -3_600 * 10**9, _DAY_NS - 1))
    if unit == 1 and random_.random() < 0.1:
        return random_.choice((2**63 - 1, -(2**63)))
    return nanos // unit


_WIDE = __import__("decimal").Context(prec=60)


@dataclass(frozen=True)
class Case:
    """A column, a filter on it, and what a writer stored about the column."""

    kind: Type
    field: NestedField
    values: list[Any]
    predicate: Predicate
    file: DataFile


def random_case(random_: random.Random, kind: Type | None = None) -> Case:
    """Return a case, of a random type unless one is given."""
    kind = random_.choice(TYPES) if kind is None else kind
    required = random_.random() < 0.2
    part = NestedField(1, "c", kind, required=required)
    values = [
        None if not required and random_.random() < 0.15 else random_value(kind, random_)
        for _ in range(random_.choice((1, 1, 2, 3, 5)))
    ]
    if random_.random() < 0.3:
        values = [values[0]] * len(values)
    return Case(kind, part, values, _random_predicate(part, values, random_), describe_file(part, values, random_))


def _random_predicate(part: NestedField, values: list[Any], random_: random.Random) -> Predicate:
    leaves = [_random_leaf(part, values, random_) for _ in range(random_.choice((1, 1, 1, 2, 3)))]
    return random_.choice((all_of, any_of))(*leaves)


def _random_leaf(part: NestedField, values: list[Any], random_: random.Random) -> Predicate:
    kind, term = part.field_type, BoundReference(part, ("c",), part.optional)
    op = random_.choice(list(Op))
    if op.is_unary:
        return bind_leaf(op, term, ())
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH) and kind not in (STRING, BINARY) and not isinstance(kind, FixedType):
        op = Op.EQ
    literals = [_random_literal(kind, values, random_) for _ in range(random_.choice((2, 3, 40)) if op.is_set else 1)]
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        literals = [literals[0][: random_.choice((0, 1, 2, 3, 16, 17))]]
    return bind_leaf(op, term, tuple(literals))


def _random_literal(kind: Type, values: list[Any], random_: random.Random) -> Any:
    known = [one for one in values if one is not None and one == one]
    while True:
        value = random_.choice(known) if known and random_.random() < 0.5 else random_value(kind, random_)
        if value == value:
            return value


def describe_file(part: NestedField, values: list[Any], random_: random.Random) -> DataFile:
    """Return a data file with the metrics of a column, some left out and bounds cut, as writers do."""
    kind = part.field_type
    known = [one for one in values if one is not None and one == one]
    lower, upper = min_max(known)
    if lower is not None and (kind in (STRING, BINARY) or isinstance(kind, FixedType)) and random_.random() < 0.7:
        length = random_.choice((1, 2, 16))
        lower, upper = truncate_lower_bound(lower, kind, length), truncate_upper_bound(upper, kind, length)

    def maybe(value: Any) -> Any:
        return None if value is None or random_.random() < 0.15 else {1: value}

    return DataFile(
        "file:/f.parquet",
        FileFormat.PARQUET,
        random_.choice((len(values), len(values), -1)),
        1,
        value_counts=maybe(len(values)),
        null_value_counts=maybe(sum(one is None for one in values)),
        nan_value_counts=maybe(sum(one is not None and one != one for one in values)),
        lower_bounds=maybe(None if lower is None else encode_bound(lower, kind)),
        upper_bounds=maybe(None if upper is None else encode_bound(upper, kind)),
    )


def min_max(values: list[Any]) -> tuple[Any, Any]:
    """Return the least and the greatest value, -0.0 below 0.0, or None and None."""
    if not values:
        return None, None
    if isinstance(values[0], float):
        return min(values, key=_float_key), max(values, key=_float_key)
    return min(values), max(values)


def _float_key(value: float) -> tuple[float, float]:
    return value, math.copysign(1, value)
