"""Laws of sorting more rows than memory holds: the order is that of sorting them all at once, ties included."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.datafile.sort_batches import sort_batches
from frazil.datafile.sort_rows import RowSorter
from frazil.maintenance.zorder import ZOrder
from frazil.spec.schema import Schema
from frazil.spec.sorting import build_sort_order
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
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    ListType,
    NestedField,
    PrimitiveType,
    StructType,
)
from tests.property.type_strategies import values_of
from tests.support.file_writers import rows_to_table, table_to_rows

KINDS: tuple[PrimitiveType, ...] = (
    BOOLEAN,
    INT,
    LONG,
    FLOAT,
    DOUBLE,
    DATE,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ_NS,
    STRING,
    UUID,
    BINARY,
    FixedType(3),
    DecimalType(7, 2),
    DecimalType(30, 4),
)
SPECIAL = st.sampled_from([0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1.0, -1.0])
TRANSFORMS = {
    INT: ["truncate(10, {})", "bucket(3, {})"],
    STRING: ["truncate(1, {})", "bucket(3, {})"],
    TIMESTAMP: ["day({})", "hour({})"],
    DATE: ["month({})"],
    DecimalType(7, 2): ["truncate(100, {})"],
    UUID: ["bucket(2, {})"],
}


@st.composite
def sorts(draw: st.DrawFn) -> tuple[Schema, list[str], list[dict[str, Any]]]:
    """Draw columns, terms to sort by and rows, with many equal values among them."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    inner = draw(st.sampled_from(KINDS))
    schema = Schema(
        (
            NestedField(1, "number", LONG),
            NestedField(2, "s", StructType((NestedField(3, "inner", inner),))),
            NestedField(4, "l", ListType(5, STRING)),
            *(NestedField(10 + at, f"c{at}", kind) for at, kind in enumerate(kinds)),
        )
    )
    sources = {"s.inner": inner} | {f"c{at}": kind for at, kind in enumerate(kinds)}
    terms = []
    for name in draw(st.lists(st.sampled_from(sorted(sources)), min_size=1, max_size=3, unique=True)):
        term = draw(st.sampled_from(["{}", *TRANSFORMS.get(sources[name], [])])).format(name)
        way, nulls = draw(st.sampled_from(["asc", "desc"])), draw(st.sampled_from(["first", "last"]))
        terms.append(f"{term} {way} nulls {nulls}")
    pools = {}
    for name, kind in sources.items():
        values = values_of(kind) | SPECIAL if kind in (FLOAT, DOUBLE) else values_of(kind)
        pools[name] = st.sampled_from([None, *draw(st.lists(values, min_size=1, max_size=6))])
    rows = []
    for number in range(draw(st.integers(0, 40))):
        inside = draw(pools["s.inner"])
        row: dict[str, Any] = {"number": number, "l": draw(st.none() | st.lists(st.text(max_size=3), max_size=2))}
        row["s"] = None if draw(st.booleans()) else {"inner": inside}
        rows.append(row | {name: draw(pool) for name, pool in pools.items() if name != "s.inner"})
    return schema, terms, rows


def numbers(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return list(itertools.chain.from_iterable(one.column("number").to_pylist() for one in batches))


@pytest.mark.extended
@hypothesis.given(sorts(), st.integers(1, 7), st.sampled_from([1, 300, 1500]), st.sampled_from([2, 3, 32]))
def test_spilled_sort_equals_sort_in_memory(
    drawn: tuple[Schema, list[str], list[dict[str, Any]]], chunk: int, held: int, fan_in: int
) -> None:
    schema, terms, rows = drawn
    table = rows_to_table(rows, schema).cast(to_arrow_schema(schema))
    sorter = RowSorter(schema, build_sort_order(schema, terms))
    order = sorter.sort(sorter.keys(table))
    wanted = table if order is None else table.take(pa.array(order))
    batches = table.to_batches(max_chunksize=chunk)
    made = list(sort_batches(batches, table.schema, lambda _: sorter, held_bytes=held, fan_in=fan_in))
    assert numbers(iter(made)) == wanted.column("number").to_pylist()
    whole = pa.Table.from_batches(made, table.schema)
    assert repr(table_to_rows(whole, schema)) == repr(table_to_rows(wanted, schema))


@pytest.mark.extended
@hypothesis.given(sorts(), st.integers(1, 7), st.sampled_from([1, 300, 1500]))
def test_z_order_from_a_sample_equals_z_order_from_all_rows(
    drawn: tuple[Schema, list[str], list[dict[str, Any]]], chunk: int, held: int
) -> None:
    schema, _, rows = drawn
    table = rows_to_table(rows, schema).cast(to_arrow_schema(schema))
    ids = [one.field_id for one in schema.fields if one.name.startswith("c")]
    at_once = ZOrder(schema, ids)
    order = at_once.sort(at_once.keys(table))
    wanted = np.arange(table.num_rows) if order is None else order
    sampled = ZOrder(schema, ids, table)
    made = sort_batches(table.to_batches(max_chunksize=chunk), table.schema, lambda _: sampled, held_bytes=held)
    assert numbers(made) == wanted.tolist()
