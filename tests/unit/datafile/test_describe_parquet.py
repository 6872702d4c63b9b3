"""Descriptions of Parquet files from their footers: what is said is right, and what is not known is not said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.codec.single_value import decode_value
from frazil.datafile.describe_parquet import DescribeRules, describe_parquet
from frazil.errors import InvalidDataFileError
from frazil.spec.metrics_config import metrics_modes
from frazil.spec.parse_type import parse_schema
from frazil.storage.local import LocalStorage

SCHEMA = parse_schema("id bigint, f double, text string, s struct<a: int>, tags list<string>")


def write(path: Path, columns: dict[str, list[Any]], *, row_group_size: int = 100, **options: Any) -> None:
    arrow = to_arrow_schema(SCHEMA)
    arrays = [pa.array(columns[field.name], field.type) for field in arrow]
    pq.write_table(pa.table(arrays, schema=arrow), path, row_group_size=row_group_size, **options)


def describe(path: Path, properties: dict[str, str] | None = None) -> Any:
    rules = DescribeRules(SCHEMA, metrics_modes(SCHEMA, properties or {}))
    return describe_parquet(LocalStorage(), f"file://{path}", rules, size_bytes=path.stat().st_size).file


ROWS: dict[str, list[Any]] = {
    "id": [5, None, -3, 7],
    "f": [0.0, 1.5, None, -0.0],
    "text": ["b" * 20, "a", None, "ü"],
    "s": [{"a": 1}, None, {"a": None}, {"a": 9}],
    "tags": [["x"], [], None, ["y", "z"]],
}


def test_counts_and_bounds_cover_all_row_groups(tmp_path: Path) -> None:
    write(tmp_path / "f.parquet", ROWS, row_group_size=2)
    file = describe(tmp_path / "f.parquet")
    ids = {part.name: part.field_id for part in SCHEMA.fields}
    inner = SCHEMA.field("s.a").field_id
    assert file.record_count == 4
    assert dict(file.null_value_counts) == {ids["id"]: 1, ids["f"]: 1, ids["text"]: 1, inner: 2}
    assert set(file.value_counts.values()) == {4}
    assert SCHEMA.field("tags.element").field_id not in file.value_counts
    lower = {key: decode_value(value, SCHEMA.field(key).field_type) for key, value in file.lower_bounds.items()}
    upper = {key: decode_value(value, SCHEMA.field(key).field_type) for key, value in file.upper_bounds.items()}
    assert (lower[ids["id"]], upper[ids["id"]]) == (-3, 7)
    assert (lower[inner], upper[inner]) == (1, 9)
    assert (lower[ids["text"]], upper[ids["text"]]) == ("a", "ü")
    assert str(lower[ids["f"]]) == "-0.0"
    assert len(file.split_offsets) == 2
    assert file.nan_value_counts is None


def test_long_text_is_truncated_and_modes_are_respected(tmp_path: Path) -> None:
    write(tmp_path / "f.parquet", {**ROWS, "text": ["b" * 20] * 4})
    text = SCHEMA.field("text").field_id
    file = describe(tmp_path / "f.parquet")
    assert file.lower_bounds[text] == b"b" * 16
    assert file.upper_bounds[text] == b"b" * 15 + b"c"
    properties = {"write.metadata.metrics.column.text": "counts", "write.metadata.metrics.column.id": "none"}
    file = describe(tmp_path / "f.parquet", properties)
    assert text not in file.lower_bounds
    assert text in file.value_counts
    assert SCHEMA.field("id").field_id not in file.value_counts


def test_row_group_without_bounds_leaves_the_file_without(tmp_path: Path) -> None:
    write(tmp_path / "f.parquet", ROWS, write_statistics=["id"])
    file = describe(tmp_path / "f.parquet")
    assert set(file.lower_bounds) == {SCHEMA.field("id").field_id}
    assert set(file.null_value_counts) == {SCHEMA.field("id").field_id}


def test_file_without_field_ids_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    with pytest.raises(InvalidDataFileError, match="'id' has no field id"):
        describe(path)
