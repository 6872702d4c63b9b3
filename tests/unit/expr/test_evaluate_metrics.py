"""Metrics as a table: what is known of a column, a filter, whether rows may match and whether all must."""

from __future__ import annotations

import math
from typing import Any

import pytest

from frazil.codec.single_value import encode_value
from frazil.expr.bind import bind
from frazil.expr.evaluate_manifest import may_hold_match
from frazil.expr.extract import parse_predicate
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.manifest import FieldSummary, ManifestFile
from frazil.spec.schema import Schema
from frazil.spec.types import DATE, DOUBLE, FLOAT, INT, LONG, STRING, TIMESTAMP, NestedField, StructType, Type
from tests.support.metrics_oracle import contains_only_matches, may_contain_match

SCHEMA = Schema(
    (
        NestedField(1, "n", LONG),
        NestedField(2, "s", STRING),
        NestedField(3, "x", DOUBLE),
        NestedField(4, "p", StructType((NestedField(5, "q", LONG),))),
        NestedField(6, "r", LONG, required=True),
        NestedField(7, "ts", TIMESTAMP),
    )
)


def file(
    column: int,
    low: Any = None,
    high: Any = None,
    *,
    nulls: int | None = 0,
    nans: int | None = 0,
    values: int | None = 10,
    rows: int = 10,
    kind: Type | None = None,
) -> DataFile:
    kind = kind or SCHEMA.field(column).field_type

    def of(value: Any) -> Any:
        return None if value is None else {column: value}

    return DataFile(
        "file:/f",
        FileFormat.PARQUET,
        rows,
        1,
        value_counts=of(values),
        null_value_counts=of(nulls),
        nan_value_counts=of(nans),
        lower_bounds=of(None if low is None else encode_value(low, kind)),
        upper_bounds=of(None if high is None else encode_value(high, kind)),
    )


N = file(1, 10, 20)
TABLE = [
    # what is known, filter, may match, all must match
    ("bounds", N, "n < 10", False, False),
    ("bounds", N, "n <= 10", True, False),
    ("bounds", N, "n < 21", True, True),
    ("bounds", N, "n <= 20", True, True),
    ("bounds", N, "n > 20", False, False),
    ("bounds", N, "n >= 20", True, False),
    ("bounds", N, "n > 9", True, True),
    ("bounds", N, "n = 9", False, False),
    ("bounds", N, "n = 15", True, False),
    ("bounds", N, "n != 15", True, False),
    ("bounds", N, "n != 25", True, True),
    ("bounds", N, "n in (1, 2, 30)", False, False),
    ("bounds", N, "n in (1, 15)", True, False),
    ("bounds", N, "n not in (1, 30)", True, True),
    ("bounds", N, "n is null", False, False),
    ("bounds", N, "n is not null", True, True),
    ("one value", file(1, 7, 7), "n = 7", True, True),
    ("one value", file(1, 7, 7), "n != 7", False, False),
    ("one value", file(1, 7, 7), "n not in (7, 8)", False, False),
    ("one value", file(1, 7, 7), "n in (7, 8)", True, True),
    ("one value with nulls", file(1, 7, 7, nulls=1), "n != 7", True, False),
    ("one value with nulls", file(1, 7, 7, nulls=1), "n = 7", True, False),
    ("nulls unknown", file(1, 7, 7, nulls=None), "n = 7", True, False),
    ("nulls unknown", file(1, 7, 7, nulls=None), "n is null", True, False),
    ("nulls unknown in a required column", file(6, 7, 7, nulls=None), "r = 7", True, True),
    ("all null", file(1, nulls=10), "n = 7", False, False),
    ("all null", file(1, nulls=10), "n is null", True, True),
    ("all null", file(1, nulls=10), "n is not null", False, False),
    ("all null", file(1, nulls=10), "n != 7", False, False),
    ("no metrics", DataFile("file:/f", FileFormat.PARQUET, 10, 1), "n = 7", True, False),
    ("no metrics", DataFile("file:/f", FileFormat.PARQUET, 10, 1), "n is null", True, False),
    ("no rows", DataFile("file:/f", FileFormat.PARQUET, 0, 1), "n = 7", False, True),
    ("row count unknown", file(1, 10, 20, rows=-1), "n = 5", False, False),
    ("row count unknown", file(1, 10, 20, rows=-1), "n = 15", True, False),
    ("all NaN", file(3, nans=10), "x = 1", False, False),
    ("all NaN", file(3, nans=10), "isnan(x)", True, True),
    ("all NaN", file(3, nans=10), "not isnan(x)", False, False),
    ("all NaN, nulls not counted", file(3, nulls=None, nans=10), "x < 1", False, False),
    ("all NaN, nulls not counted", file(3, nulls=None, nans=10), "x > 1", True, True),
    ("all NaN, nulls not counted", file(3, nulls=None, nans=10), "not isnan(x)", False, False),
    ("all NaN, nulls not counted", file(3, nulls=None, nans=10), "x is null", False, False),
    ("nulls and NaN alone", file(3, nulls=4, nans=6), "x > 1", True, False),
    ("nulls and NaN alone", file(3, nulls=4, nans=6), "x < 1", False, False),
    ("nulls and NaN alone", file(3, nulls=4, nans=6), "not isnan(x)", True, False),
    ("some NaN", file(3, 1.0, 2.0, nans=1), "x > 0", True, False),
    ("NaN unknown", file(3, 1.0, 2.0, nans=None), "x > 0", True, False),
    ("NaN unknown", file(3, 1.0, 2.0, nans=None), "isnan(x)", True, False),
    ("no NaN", file(3, 1.0, 2.0), "isnan(x)", False, False),
    ("no NaN", file(3, 1.0, 2.0), "x > 0", True, True),
    ("NaN as a bound", file(3, math.nan, math.nan), "x > 100", True, False),
    ("zeros", file(3, -0.0, -0.0), "x = 0", True, True),
    ("zeros", file(3, 0.0, 0.0), "x < 0", False, False),
    ("text", file(2, "abc", "abd"), "s like 'ab%'", True, True),
    ("text", file(2, "abc", "abd"), "s like 'abe%'", False, False),
    ("text", file(2, "abc", "abd"), "s like 'aa%'", False, False),
    ("text", file(2, "abc", "abd"), "s like 'abcd%'", True, False),
    ("text", file(2, "abc", "abd"), "s not like 'ab%'", False, False),
    ("text", file(2, "abc", "abd"), "s not like 'b%'", True, True),
    ("cut text", file(2, "abc", "abd"), "s = 'abcz'", True, False),
    ("int promoted to long", file(1, 10, 20, kind=INT), "n > 20", False, False),
    ("int promoted to long", file(1, 10, 20, kind=INT), "n > 9", True, True),
    ("float promoted to double", file(3, 1.5, 2.5, kind=FLOAT), "x > 2.5", False, False),
    ("date promoted to timestamp", file(7, 0, 1, kind=DATE), "ts > '1970-01-02'", False, False),
    ("date promoted to timestamp", file(7, 0, 1, kind=DATE), "ts >= '1970-01-02'", True, False),
    ("inside a struct", file(5, 1, 2), "p.q is null", True, False),
    ("inside a struct", file(5, 1, 2), "p.q > 2", False, False),
    ("inside a struct", file(5, 1, 2), "p.q > 0", True, False),
    ("through a transform", file(7, 0, 86_400_000_000 * 40), "system.months(ts) = 2", False, False),
    ("through a transform", file(7, 0, 86_400_000_000 * 40), "system.months(ts) = 1", True, False),
    ("through a bucket", file(1, 10, 20), "system.bucket(4, n) = 1", True, False),
    ("both", N, "n > 20 or s = 'a'", True, False),
    ("both", N, "n > 20 and s = 'a'", False, False),
]
IDS = [f"{what}: {text}" for what, _, text, _, _ in TABLE]


@pytest.mark.parametrize(("what", "known", "text", "may", "must"), TABLE, ids=IDS)
def test_metrics_evaluation_matches_the_table(what: str, known: DataFile, text: str, may: bool, must: bool) -> None:
    predicate = bind(SCHEMA, parse_predicate(text))
    assert may_contain_match(predicate, known) is may, what
    assert contains_only_matches(predicate, known) is must, what


def test_unreadable_bound_cannot_rule_out_a_file() -> None:
    broken = DataFile(
        "file:/f",
        FileFormat.PARQUET,
        10,
        1,
        lower_bounds={1: b"abc", 2: b"\xff\xfe"},
        upper_bounds={1: b"", 2: b"\xff"},
    )
    assert may_contain_match(bind(SCHEMA, parse_predicate("n = 1 and s = 'a'")), broken)


PARTITION = Schema((NestedField(1000, "p", LONG), NestedField(1001, "x", DOUBLE)))


def summary(low: Any, high: Any, kind: Type, *, null: bool = False, nan: bool | None = False) -> FieldSummary:
    encoded = [None if one is None else encode_value(one, kind) for one in (low, high)]
    return FieldSummary(null, nan, encoded[0], encoded[1])


ANY_X = summary(0.0, 9.0, DOUBLE)
MANIFESTS = [
    ("p = 5", (summary(1, 9, LONG), ANY_X), True),
    ("p = 10", (summary(1, 9, LONG), ANY_X), False),
    ("p is null", (summary(1, 9, LONG), ANY_X), False),
    ("p is null", (summary(1, 9, LONG, null=True), ANY_X), True),
    ("p is not null", (summary(None, None, LONG, null=True), ANY_X), False),
    ("p = 1", (summary(None, None, LONG, null=True), ANY_X), False),
    ("p != 1", (summary(1, 1, LONG), ANY_X), False),
    ("p not in (1, 2)", (summary(1, 1, LONG), ANY_X), False),
    ("not p = 1", (summary(1, 2, LONG), ANY_X), True),
    ("p in (0, 10)", (summary(1, 9, LONG), ANY_X), False),
    ("isnan(x)", (summary(1, 9, LONG), ANY_X), False),
    ("isnan(x)", (summary(1, 9, LONG), summary(0.0, 9.0, DOUBLE, nan=None)), True),
    ("isnan(x)", (summary(1, 9, LONG), summary(None, None, DOUBLE, nan=True)), True),
    ("x = 1", (summary(1, 9, LONG), summary(None, None, DOUBLE, nan=True)), False),
    ("x is not null", (summary(1, 9, LONG), summary(None, None, DOUBLE, nan=None, null=True)), True),
    ("p = 5 and x = 100", (summary(1, 9, LONG), ANY_X), False),
    ("p = 50 or x = 1", (summary(1, 9, LONG), ANY_X), True),
]


@pytest.mark.parametrize(("text", "summaries", "may"), MANIFESTS, ids=[one[0] for one in MANIFESTS])
def test_summary_evaluation_matches_the_table(text: str, summaries: tuple[FieldSummary, ...], may: bool) -> None:
    manifest = ManifestFile("m", 1, 0, 1, partitions=summaries)
    assert may_hold_match(bind(PARTITION, parse_predicate(text)), manifest, PARTITION.struct) is may


def test_manifest_without_summaries_is_kept() -> None:
    predicate = bind(PARTITION, parse_predicate("p = 5"))
    assert may_hold_match(predicate, ManifestFile("m", 1, 0, 1), PARTITION.struct)
