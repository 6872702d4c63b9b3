from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.datafile.parquet_chunks import BYTE_ARRAY, INT32, INT64, Chunk
from frazil.datafile.parquet_chunks import DOUBLE as DOUBLE_TYPE
from frazil.datafile.raw_batch import ReadRules
from frazil.datafile.read_file import resolve
from frazil.datafile.read_parquet import ParquetReader
from frazil.datafile.row_groups import bounds, row_group_test
from frazil.expr.bind import bind
from frazil.expr.evaluate_row import evaluate_row
from frazil.expr.extract import parse_predicate
from frazil.expr.predicates import FALSE, TRUE, Predicate, field_ids_of
from frazil.spec.schema import Schema
from frazil.spec.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    UUID,
    DecimalType,
    NestedField,
    StructType,
    Type,
)
from frazil.storage.memory import MemoryStorage
from tests.support.file_writers import rows_to_table
from tests.support.pruning_cases import TYPES, random_case

CASES = 400


def groups_of(
    predicate: Predicate,
    written: Schema,
    groups: list[list[dict[str, Any]]],
    wanted: Schema | None = None,
    **options: Any,
) -> list[bool]:
    """Return of each row group whether it would be read."""
    wanted = written if wanted is None else wanted
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, to_arrow_schema(written), store_schema=False, **options) as writer:
        for rows in groups:
            writer.write_table(rows_to_table(rows, written))
    storage = MemoryStorage()
    storage.create("f", bytes(sink.getvalue()))
    reader = ParquetReader(storage, "f", ReadRules(wanted))
    columns = resolve(wanted.project(field_ids_of(predicate)), reader.schema, "f")
    test = row_group_test(predicate, columns, reader)
    return [True] * len(groups) if test is None else [bool(test(at)) for at in range(len(groups))]


def kept(text: str, kind: Type, groups: list[list[Any]], *, became: Type | None = None, **options: Any) -> list[bool]:
    written = Schema((NestedField(1, "c", kind),))
    wanted = Schema((NestedField(1, "c", became or kind),))
    predicate = bind(wanted, parse_predicate(text))
    return groups_of(predicate, written, [[{"c": one} for one in group] for group in groups], wanted, **options)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_skipped_row_group_holds_no_match(kind: Type) -> None:
    rng = random.Random(str(kind))
    for _ in range(CASES // len(TYPES)):
        case = random_case(rng, kind)
        schema = Schema((case.field,))
        others = [[random_case(rng, kind).values[0]] for _ in range(2)]
        groups = [
            case.values,
            *[[one[0] if one[0] is not None or case.field.optional else case.values[0]] for one in others],
        ]
        found = groups_of(case.predicate, schema, [[{"c": one} for one in group] for group in groups])
        for is_read, group in zip(found, groups, strict=True):
            if not is_read:
                assert not any(evaluate_row(case.predicate, {"c": one}) for one in group), (case.predicate, group)


@pytest.mark.parametrize(
    "text, kind, groups, expected",
    [
        ("c = 5", LONG, [[1, 2], [5], [None], [9, 4]], [False, True, False, True]),
        ("c is null", LONG, [[1, 2], [None, 5]], [False, True]),
        ("c is not null", LONG, [[None, None], [None, 5]], [False, True]),
        ("c != 5", LONG, [[5, 5], [5, None], [5, 6]], [False, True, True]),
        ("startswith(c, 'ab')", STRING, [["aa", "ac"], ["b"], ["a"]], [True, False, False]),
        ("c > 1.5", DecimalType(9, 2), [[Decimal("1.50")], [Decimal("1.51")]], [False, True]),
        ("c > 1.5", DecimalType(30, 2), [[Decimal("-1.50")], [Decimal("1.51")]], [False, True]),
        ("c < date '1970-01-03'", DATE, [[5, 6], [1]], [False, True]),
        ("c >= timestamp '1970-01-01T00:00:01'", TIMESTAMP, [[5], [1_000_000]], [False, True]),
    ],
    ids=lambda one: str(one)[:30],
)  # fmt: skip
def test_row_groups_outside_the_filter_are_skipped(
    text: str, kind: Type, groups: list[list[Any]], expected: list[bool]
) -> None:
    assert kept(text, kind, groups) == expected


@pytest.mark.parametrize("kind", [FLOAT, DOUBLE], ids=str)
def test_nan_does_not_affect_skipping(kind: Type) -> None:
    groups: list[list[Any]] = [[math.nan, 1.0], [math.nan, math.nan], [math.nan, None], [1.0, 2.0]]
    assert kept("c < 0.5", kind, groups) == [False, True, True, False]
    # To SQL, NaN is greater than every number.
    assert kept("c > 1.5", kind, groups) == [True, True, True, True]
    assert kept("isnan(c)", kind, groups) == [True, True, True, True]
    assert kept("not isnan(c)", kind, groups) == [True, True, True, True]
    assert kept("c != 1", kind, [[1.0, math.nan], [1.0, 1.0]]) == [True, True]


def test_both_zeros_are_one_value() -> None:
    assert kept("c = 0.0", DOUBLE, [[-0.0], [0.0], [1.0]]) == [True, True, False]
    assert kept("c < 0.0", DOUBLE, [[-0.0], [-1.0]]) == [False, True]


def test_without_statistics_every_row_group_is_read() -> None:
    assert kept("c = 5", LONG, [[1], [5]], write_statistics=False) == [True, True]


def test_statistics_of_promoted_columns_are_used() -> None:
    assert kept("c = 5", INT, [[1], [5]], became=LONG) == [False, True]
    assert kept("c = 2.5", FLOAT, [[1.5], [2.5]], became=DOUBLE) == [False, True]
    text = "c >= timestamp '1970-01-02T00:00:00'"
    assert kept(text, DATE, [[0], [1]], became=TIMESTAMP) == [False, True]


def test_missing_columns_are_evaluated_as_their_constant() -> None:
    written = Schema((NestedField(1, "c", LONG),))
    wanted = Schema(
        (NestedField(1, "c", LONG), NestedField(2, "new", LONG), NestedField(3, "filled", LONG, initial_default=7))
    )
    groups = [[{"c": 1}], [{"c": 2}]]

    def kept_by(text: str) -> list[bool]:
        return groups_of(bind(wanted, parse_predicate(text)), written, groups, wanted)

    assert kept_by("new = 1") == [False, False]
    assert kept_by("new is null") == [True, True]
    assert kept_by("filled = 7") == [True, True]
    assert kept_by("filled > 7") == [False, False]
    assert kept_by("filled > 7 or c = 2") == [False, True]


def test_nested_columns_use_their_own_statistics() -> None:
    inner = StructType((NestedField(2, "x", LONG), NestedField(3, "y", LONG)))
    schema = Schema((NestedField(1, "s", inner),))
    groups: list[list[dict[str, Any]]] = [
        [{"s": {"x": 1, "y": None}}, {"s": None}],
        [{"s": {"x": 9, "y": 5}}],
        [{"s": None}],
    ]

    def kept_by(text: str) -> list[bool]:
        return groups_of(bind(schema, parse_predicate(text)), schema, groups)

    assert kept_by("s.x > 5") == [False, True, False]
    assert kept_by("s.y = 5") == [False, True, False]
    # A null struct makes nulls of its fields, which not every writer counts.
    assert kept_by("s.x is null") == [True, True, True]


def test_fields_below_a_missing_struct_are_not_used_for_skipping() -> None:
    written = Schema((NestedField(1, "s", StructType((NestedField(2, "x", LONG),))),))
    wanted = Schema((NestedField(1, "s", StructType((NestedField(3, "new", LONG, initial_default=1),))),))
    groups: list[list[dict[str, Any]]] = [[{"s": {"x": 1}}], [{"s": None}]]
    found = groups_of(bind(wanted, parse_predicate("s.new is null")), written, groups, wanted)
    assert found == [True, True]


def test_order_preserving_transforms_are_evaluated() -> None:
    schema = Schema((NestedField(1, "c", LONG),))
    groups = [[{"c": 5}], [{"c": 25}]]
    truncated = bind(schema, parse_predicate("system.truncate(10, c) = 20"))
    assert groups_of(truncated, schema, groups) == [False, True]
    bucketed = bind(schema, parse_predicate("system.bucket(4, c) = 1"))
    assert groups_of(bucketed, schema, groups) == [True, True]


def test_unsigned_numbers_are_not_used_for_skipping() -> None:
    sink = pa.BufferOutputStream()
    field = pa.field("c", pa.uint32(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table([pa.array([1, 2**32 - 1], pa.uint32())], schema=pa.schema([field])), sink)
    storage = MemoryStorage()
    storage.create("f", bytes(sink.getvalue()))
    wanted = Schema((NestedField(1, "c", LONG),))
    reader = ParquetReader(storage, "f", ReadRules(wanted))
    columns = resolve(wanted, reader.schema, "f")
    test = row_group_test(bind(wanted, parse_predicate("c > 5")), columns, reader)
    assert test is not None
    assert test(0)


def test_constant_filter_needs_no_statistics() -> None:
    schema = Schema((NestedField(1, "c", LONG),))
    assert groups_of(TRUE, schema, [[{"c": 1}]]) == [True]
    assert groups_of(FALSE, schema, [[{"c": 1}]]) == [False]


def test_bounds_of_unknown_order_are_used_for_numbers_only() -> None:
    # Without column orders only the old bounds count, whose order is right for numbers alone.
    chunk = Chunk(BYTE_ARRAY, old_min=b"a", old_max=b"b", min_value=b"a", max_value=b"b")
    assert bounds(pa.string(), STRING, chunk, is_ordered=False) == (None, None)
    assert bounds(pa.string(), STRING, chunk, is_ordered=True) == ("a", "b")
    one, two = (1).to_bytes(8, "little"), (2).to_bytes(8, "little")
    assert bounds(pa.int64(), LONG, Chunk(INT64, old_min=one, old_max=two), is_ordered=False) == (1, 2)
    assert bounds(pa.int64(), LONG, Chunk(INT64, min_value=one, max_value=two), is_ordered=False) == (None, None)


@pytest.mark.parametrize(
    "physical_type, raw, arrow, kind",
    [
        (INT64, b"\x01", pa.int64(), LONG),
        (INT32, bytes(8), pa.int32(), INT),
        (3, bytes(12), pa.timestamp("us"), TIMESTAMP),
        (BYTE_ARRAY, b"\xff", pa.string(), STRING),
        (BYTE_ARRAY, b"", pa.decimal128(9, 2), DecimalType(9, 2)),
        (BYTE_ARRAY, b"\x01", pa.decimal128(9, 3), DecimalType(9, 2)),
        (7, b"\x01", pa.binary(16), UUID),
        (DOUBLE_TYPE, b"\x01", pa.float64(), DOUBLE),
        (0, b"", pa.bool_(), BOOLEAN),
        (None, b"\x01", pa.int64(), LONG),
    ],
)
def test_unreadable_bounds_are_not_used_for_skipping(
    physical_type: int | None, raw: bytes, arrow: pa.DataType, kind: Type
) -> None:
    assert bounds(arrow, kind, Chunk(physical_type, min_value=raw, max_value=raw), is_ordered=True) == (None, None)
