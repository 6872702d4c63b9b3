"""The specification's table of type promotions, by format version."""

from __future__ import annotations

import itertools
from decimal import Decimal

import pytest

from frazil.errors import SchemaMismatchError
from frazil.spec.type_promotion import describe_promotions, explain_refusal, is_promotion_allowed, promote_value
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
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    StructType,
    Type,
)

NESTED: tuple[Type, ...] = (StructType(()), ListType(1, INT), MapType(1, STRING, 2, INT))
TYPES: tuple[Type, ...] = (
    BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS, STRING,
    UUID, BINARY, FixedType(3), FixedType(4), DecimalType(9, 2), DecimalType(9, 3), DecimalType(18, 2), VARIANT,
    GeometryType(), GeometryType("EPSG:3857"), GeographyType(), GeographyType("EPSG:4269", "karney"), *NESTED,
)  # fmt: skip
ALLOWED_IN_V1 = {(INT, LONG), (FLOAT, DOUBLE), (DecimalType(9, 2), DecimalType(18, 2))}
ALLOWED_IN_V3 = ALLOWED_IN_V1 | {(DATE, TIMESTAMP), (DATE, TIMESTAMP_NS)}


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_exactly_the_specified_promotions_are_allowed(format_version: int) -> None:
    allowed = ALLOWED_IN_V3 if format_version == 3 else ALLOWED_IN_V1
    found = {
        (old, new)
        for old, new in itertools.permutations(TYPES, 2)
        if is_promotion_allowed(old, new, format_version=format_version)
    }
    assert found == allowed


@pytest.mark.parametrize("kind", [*TYPES, UNKNOWN], ids=str)
def test_every_type_may_stay_unchanged(kind: Type) -> None:
    assert is_promotion_allowed(kind, kind, format_version=1)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_unknown_becomes_any_type_from_v3_and_no_type_becomes_unknown(kind: Type) -> None:
    assert is_promotion_allowed(UNKNOWN, kind, format_version=3)
    assert not is_promotion_allowed(UNKNOWN, kind, format_version=2)
    assert not is_promotion_allowed(kind, UNKNOWN, format_version=3)


@pytest.mark.parametrize(
    ("old", "new", "format_version", "reason"),
    [
        (LONG, INT, 3, "int is narrower than long, values could be lost"),
        (DecimalType(9, 2), DecimalType(9, 3), 3, "the scale of a decimal cannot change (2 to 3)"),
        (DecimalType(9, 2), DecimalType(8, 2), 3, "the precision of a decimal can only grow (9 to 8)"),
        (DATE, TIMESTAMP, 2, "date may become timestamp only from format version 3 on, the table has 2"),
        (DATE, TIMESTAMPTZ, 3, "date may become only timestamp or timestamp_ns"),
        (INT, STRING, 3, "int may become only long"),
        (STRING, INT, 3, "string may not become another type"),
        (DecimalType(9, 2), INT, 3, "decimal(9, 2) may become only a decimal of the scale 2 and a larger precision"),
        (INT, StructType(()), 3, "int may not become a struct"),
        (ListType(1, INT), MapType(1, STRING, 2, INT), 3, "a list may not become a map"),
    ],
)
def test_refused_promotion_has_a_reason(old: Type, new: Type, format_version: int, reason: str) -> None:
    assert explain_refusal(old, new, format_version=format_version) == reason


def test_unknown_promotes_to_any_type() -> None:
    assert describe_promotions(UNKNOWN) == "become any type"
    assert describe_promotions(UNKNOWN, format_version=2) == "not become another type"


@pytest.mark.parametrize(
    ("value", "old", "new", "promoted"),
    [
        (1, DATE, TIMESTAMP, 86_400_000_000),
        (-1, DATE, TIMESTAMP, -86_400_000_000),
        (0, DATE, TIMESTAMP_NS, 0),
        (106_751, DATE, TIMESTAMP_NS, 106_751 * 86_400_000_000_000),
        (None, DATE, TIMESTAMP, None),
        (7, DATE, DATE, 7),
        (34, INT, LONG, 34),
        (1.5, FLOAT, DOUBLE, 1.5),
        (Decimal("1.50"), DecimalType(9, 2), DecimalType(18, 2), Decimal("1.50")),
        (None, UNKNOWN, STRING, None),
    ],
)
def test_promoted_values_keep_their_meaning(value: object, old: Type, new: Type, promoted: object) -> None:
    assert promote_value(value, old, new) == promoted


@pytest.mark.parametrize(
    ("days", "new"), [(106_752, TIMESTAMP_NS), (-106_753, TIMESTAMP_NS), (2**31 - 1, TIMESTAMP), (-(2**31), TIMESTAMP)]
)
def test_date_outside_the_range_of_a_timestamp_is_refused(days: int, new: Type) -> None:
    with pytest.raises(SchemaMismatchError, match=f"Cannot read the date {days}"):
        promote_value(days, DATE, new)
