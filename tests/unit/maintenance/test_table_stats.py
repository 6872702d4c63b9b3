"""Table statistics: numbers of different values, by column, in a Puffin file that the table lists."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.codec.puffin import decode_puffin_footer, range_reader, read_blob
from frazil.codec.single_value import encode_value
from frazil.codec.theta_sketch import hash_bytes_of
from frazil.errors import FrazilError, InvalidRequestError
from frazil.spec.statistics import StatisticsFile
from tests.support.theta_sketches import decode_theta_sketch

DDL = (
    "id bigint, i int, b boolean, f float, d double, m decimal(20, 2), day date, t time, ts timestamptz, s string, "
    "u uuid, x fixed(2), y binary, p struct<a: int, tags: list<string>>"
)


def new_table() -> frazil.Table:
    table = frazil.connect("memory:").create_table("db.t", DDL, format_version=2)
    rows = []
    for at in range(40):
        rows.append(
            {
                "id": at,
                "i": at % 7,
                "b": at % 2 == 0,
                "f": at % 5 / 2,
                "d": None if at % 3 else at * 0.5,
                "m": decimal.Decimal(at % 4) - decimal.Decimal("1.50"),
                "day": datetime.date(2024, 1, 1 + at % 9),
                "t": datetime.time(1, 2, at % 6),
                "ts": datetime.datetime(2024, 1, 1, at % 8, tzinfo=datetime.UTC),
                "s": "" if at % 10 == 0 else f"text {at % 10}" * 5,
                "u": uuid.UUID(int=at % 3),
                "x": bytes([at % 4, 1]),
                "y": bytes([at % 11]) * (at % 11 + 1),
                "p": {"a": at % 12, "tags": ["x"]},
            }
        )
    table.append(rows[:25])
    table.append(rows[25:])
    return table


EXPECTED = {
    "id": 40,
    "i": 7,
    "b": 2,
    "f": 5,
    "d": 14,
    "m": 4,
    "day": 9,
    "t": 6,
    "ts": 8,
    "s": 9,
    "u": 3,
    "x": 4,
    "y": 11,
}
"""The empty string is not counted, as in Iceberg Java."""


def counts(table: frazil.Table, made: StatisticsFile | None) -> dict[str, int]:
    assert made is not None
    return {table.schema.name_of(one.fields[0]): int(one.properties["ndv"]) for one in made.blob_metadata}


def test_distinct_values_of_every_type_are_counted() -> None:
    table = new_table()
    made = table.maintain.compute_table_stats()
    assert counts(table, made) == EXPECTED
    assert table.metadata.statistics == (made,)
    assert table.check().ok


def test_hashes_use_single_value_bytes() -> None:
    table = new_table()
    made = table.maintain.compute_table_stats()
    assert made is not None
    data = table.state.storage.read(made.statistics_path)
    footer = decode_puffin_footer(data)
    assert (len(data), footer.footer_size) == (made.file_size_in_bytes, made.file_footer_size_in_bytes)
    by_name = {table.schema.name_of(one.fields[0]): one for one in footer.file_metadata.blobs}
    values: dict[str, list[Any]] = {
        "i": list(range(7)),
        "m": [decimal.Decimal(one) - decimal.Decimal("1.50") for one in range(4)],
        "b": [True, False],
        "u": [uuid.UUID(int=one) for one in range(3)],
        "s": [f"text {one}" * 5 for one in range(1, 10)],
        "f": [one / 2 for one in range(5)],
    }
    for name, expected in values.items():
        kind = table.schema.field(name).field_type
        sketch = decode_theta_sketch(read_blob(range_reader(data), by_name[name]))
        assert set(sketch.hashes.tolist()) == set(
            hash_bytes_of([encode_value(one, kind) for one in expected]).tolist()
        ), name


def test_columns_and_snapshots_can_be_selected() -> None:
    table = new_table()
    first = next(iter(table.snapshots)).snapshot_id
    made = table.maintain.compute_table_stats(first, ["id", "p.a"])
    assert counts(table, made) == {"id": 25, "p.a": 12}
    table.maintain.compute_table_stats(columns=["id"])
    assert len(table.metadata.statistics) == 2


def test_deleted_rows_are_not_counted() -> None:
    table = frazil.connect("memory:").create_table("db.t", "id bigint, k string", partition_by=["k"])
    table.append(pa.table({"id": [1, 2, 3], "k": ["a", "b", "b"]}))
    table.delete("k = 'b'")
    assert counts(table, table.maintain.compute_table_stats()) == {"id": 1, "k": 1}


@pytest.mark.parametrize("columns", [["p"], ["p.tags"], ["p.tags.element"], ["nope"], [], "id"])
def test_unsupported_columns_are_refused(columns: list[str]) -> None:
    with pytest.raises(FrazilError):
        new_table().maintain.compute_table_stats(columns=columns)


def test_table_without_rows_or_columns_has_no_statistics() -> None:
    lake = frazil.connect("memory:")
    assert lake.create_table("db.a", "id bigint").maintain.compute_table_stats() is None
    table = lake.create_table("db.b", "p struct<a: int>")
    table.append([{"p": {"a": 1}}])
    with pytest.raises(InvalidRequestError, match="no column of a primitive type"):
        table.maintain.compute_table_stats()
