"""Projections as a table: filter on rows, transform, what a partition must satisfy, what proves all its rows."""

from __future__ import annotations

import pytest

from frazil.expr.bind import bind
from frazil.expr.extract import parse_predicate
from frazil.expr.predicates import Predicate, TransformTerm, greater_than, leaves_of
from frazil.expr.project_partition import project_inclusive, project_strict
from frazil.expr.residual import Residuals
from frazil.spec.partitioning import PartitionField, PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.transforms import parse_transform
from frazil.spec.types import DATE, DOUBLE, INT, STRING, TIMESTAMP, DecimalType, NestedField, StructType

SCHEMA = Schema(
    (
        NestedField(1, "n", INT),
        NestedField(2, "s", STRING),
        NestedField(3, "d", DATE),
        NestedField(4, "ts", TIMESTAMP),
        NestedField(5, "dec", DecimalType(9, 2)),
        NestedField(6, "x", DOUBLE),
    )
)

TABLE = [
    # filter, transform, inclusive, strict
    ("n < 5", "identity", "p < 5", "p < 5"),
    ("n is null", "identity", "p is null", "p is null"),
    ("isnan(x)", "identity", "p is nan", "p is nan"),
    ("n = 5", "void", "true", "false"),
    ("n is null", "void", "true", "false"),
    ("n = 5", "zorder[3]", "true", "false"),
    ("n = 34", "bucket[16]", "p = 3", "false"),
    ("not n = 34", "bucket[16]", "p is not null", "p is not null and p != 3"),
    ("n in (34, 35)", "bucket[16]", "p in (3, 5)", "false"),
    ("n < 34", "bucket[16]", "true", "false"),
    ("n is not null", "bucket[16]", "p is not null", "p is not null"),
    # The values next to the smallest int are all in the partition 2147483646.
    ("n < 20", "truncate[10]", "p <= 10 or p = 2147483646", "p < 20"),
    ("n <= 20", "truncate[10]", "p <= 20 or p = 2147483646", "p < 20"),
    ("n <= 19", "truncate[10]", "p <= 10 or p = 2147483646", "p < 20"),
    ("n > 19", "truncate[10]", "p >= 20", "p > 10 and p != 2147483646"),
    ("n >= 20", "truncate[10]", "p >= 20", "p > 10 and p != 2147483646"),
    ("n >= 21", "truncate[10]", "p >= 20", "p > 20 and p != 2147483646"),
    ("n = -1", "truncate[10]", "p = -10", "false"),
    ("not n = 25", "truncate[10]", "p is not null", "p is not null and p != 20"),
    ("n < -2147483645", "truncate[10]", "p = 2147483646", "false"),
    ("n = -2147483648", "truncate[10]", "p = 2147483646", "false"),
    ("n >= -2147483645", "truncate[10]", "p is not null or p = 2147483646", "p is not null and p != 2147483646"),
    ("dec < 10.50", "truncate[50]", "p <= 10.00", "p < 10.50"),
    ("dec <= 10.50", "truncate[50]", "p <= 10.50", "p < 10.50"),
    ("s = 'abcdef'", "truncate[3]", "p = 'abc'", "false"),
    ("s = 'ab'", "truncate[3]", "p = 'ab'", "p = 'ab'"),
    ("not s = 'abcdef'", "truncate[3]", "p is not null", "p is not null and p != 'abc'"),
    ("s < 'abcdef'", "truncate[3]", "p <= 'abc'", "p < 'abc'"),
    ("s >= 'abcdef'", "truncate[3]", "p >= 'abc'", "p > 'abc'"),
    ("s like 'ab%'", "truncate[3]", "p starts with 'ab'", "p starts with 'ab'"),
    ("s like 'abc%'", "truncate[3]", "p = 'abc'", "p = 'abc'"),
    ("s like 'abcd%'", "truncate[3]", "p = 'abc'", "false"),
    ("s not like 'ab%'", "truncate[3]", *["p is not null and p not starts with 'ab'"] * 2),
    ("s not like 'abcd%'", "truncate[3]", "p is not null", "p is not null and p != 'abc'"),
    ("d < '2024-03-01'", "month", "p <= 649", "p < 650"),
    ("d <= '2024-03-01'", "month", "p <= 650", "p < 650"),
    ("d > '2024-02-29'", "month", "p >= 650", "p > 649"),
    ("d = '2024-03-05'", "year", "p = 54", "false"),
    ("d >= '2024-01-01'", "day", "p >= 19723", "p > 19722"),
    ("ts >= '2024-01-01'", "day", "p >= 19723", "p > 19722"),
    ("ts < '2024-01-01'", "day", "p <= 19722", "p < 19723"),
    ("ts <= '2024-01-01'", "hour", "p <= 473352", "p < 473352"),
    ("ts = '2024-01-01T05:30:00'", "hour", "p = 473357", "false"),
    # Before 1970 a stored value may be one too large or one too small.
    ("ts = '1969-12-31T12:00:00'", "day", "p in (-2, -1, 0)", "false"),
    ("ts < '1969-12-31'", "day", "p <= -1", "p < -2"),
    ("ts > '1969-12-01'", "day", "p >= -32", "p > -30"),
    ("not ts = '1969-12-31T12:00:00'", "day", "p is not null", "p is not null and p not in (-2, -1, 0)"),
    # A filter on the transform itself.
    ("system.days(ts) = '2024-01-01'", "day", "p = 19723", "p = 19723"),
    ("system.days(ts) = '2024-01-01'", "hour", "true", "false"),
    ("system.bucket(16, n) = 3", "bucket[16]", "p = 3", "p = 3"),
    ("system.bucket(16, n) = 3", "bucket[8]", "true", "false"),
]  # fmt: skip


def project(text: str, transform: str) -> tuple[Predicate, PartitionSpec, StructType]:
    predicate = bind(SCHEMA, parse_predicate(text))
    source = next(leaves_of(parse_predicate(text))).term
    column = source.reference.name if isinstance(source, TransformTerm) else str(source)
    spec = PartitionSpec(0, (PartitionField((SCHEMA.field(column).field_id,), 1000, "p", parse_transform(transform)),))
    return predicate, spec, spec.partition_type(SCHEMA)


TABLE_IDS = [f"{text} by {transform}" for text, transform, _, _ in TABLE]


@pytest.mark.parametrize(("text", "transform", "inclusive", "strict"), TABLE, ids=TABLE_IDS)
def test_projections_match_the_table(text: str, transform: str, inclusive: str, strict: str) -> None:
    predicate, spec, kind = project(text, transform)
    assert str(project_inclusive(predicate, spec, kind)) == inclusive
    assert str(project_strict(predicate, spec, kind)) == strict


def test_time_with_an_unrepresentable_hour_does_not_prune() -> None:
    _, spec, kind = project("ts is null", "hour")
    far = bind(SCHEMA, greater_than("ts", "+290000-01-01T00:00:00"))
    assert str(project_inclusive(far, spec, kind)) == "true"
    assert str(project_strict(far, spec, kind)) == "false"


def test_several_fields_on_one_column_all_constrain() -> None:
    predicate = bind(SCHEMA, parse_predicate("n = 34"))
    fields = (
        PartitionField((1,), 1000, "b", parse_transform("bucket[16]")),
        PartitionField((1,), 1001, "t", parse_transform("truncate[10]")),
    )
    spec = PartitionSpec(0, fields)
    kind = spec.partition_type(SCHEMA)
    assert str(project_inclusive(predicate, spec, kind)) == "b = 3 and t = 30"
    excluded = bind(SCHEMA, parse_predicate("n <= 34"))
    assert str(project_strict(excluded, spec, kind)) == "t < 30"


RESIDUALS = [
    ("ts >= '2024-01-01' and ts < '2024-01-03'", 19723, "true"),
    ("ts >= '2024-01-01T12:00:00' and ts < '2024-01-03'", 19723, "ts >= 1704110400000000"),
    ("ts >= '2024-01-01' and ts < '2024-01-03'", 19725, "false"),
    ("ts >= '2024-01-01' or n = 1", 19725, "true"),
    ("ts >= '2024-01-01' or n = 1", 19000, "n = 1"),
    ("ts is null", None, "true"),
    ("ts is null", 5, "false"),
    ("n = 1", 5, "n = 1"),
]


@pytest.mark.parametrize(
    ("text", "partition", "residual"), RESIDUALS, ids=[f"{one[0]} in {one[1]}" for one in RESIDUALS]
)
def test_partition_reduces_the_residual(text: str, partition: int | None, residual: str) -> None:
    spec = PartitionSpec(0, (PartitionField((4,), 1000, "ts_day", parse_transform("day")),))
    residuals = Residuals(bind(SCHEMA, parse_predicate(text)), spec, spec.partition_type(SCHEMA))
    assert str(residuals.of((partition,))) == residual
    assert residuals.of((partition,)) is residuals.of((partition,))


def test_unpartitioned_residual_is_the_filter() -> None:
    predicate = bind(SCHEMA, parse_predicate("n = 1"))
    assert Residuals(predicate, PartitionSpec(0, ()), StructType(())).of(()) is predicate
