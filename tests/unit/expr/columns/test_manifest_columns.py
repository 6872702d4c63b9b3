"""One column's metrics for all files of a manifest."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from frazil.codec.manifest_avro import ManifestColumns, decode_manifest
from frazil.errors import InvalidRequestError
from frazil.expr.columns.manifest_columns import BoundName, bounds_of, counts_of, live_mask
from tests.support.avro_builders import entry, entry_schema, write_avro


def manifest(rows: list[dict[str, Any]]) -> ManifestColumns:
    return decode_manifest(write_avro(entry_schema(), rows))


def random_pairs(source: random.Random, value: Any) -> list[dict[str, Any]] | None:
    if source.random() < 0.2:
        return None
    ids = source.sample(range(1, 8), source.randrange(7))
    return [{"key": one, "value": value(one)} for one in ids]


@pytest.mark.parametrize("count", [0, 1, 5, 700])
def test_metrics_are_aligned_with_files(count: int) -> None:
    source = random.Random(count)
    rows = [
        entry(
            at,
            value_counts=random_pairs(source, lambda one: source.randrange(1000)),
            lower_bounds=random_pairs(source, lambda one: source.randbytes(source.randrange(9))),
        )
        for at in range(count)
    ]
    columns = manifest(rows)
    for field_id in range(1, 9):
        for name in ("value_counts", "lower_bounds"):
            maps = [{one["key"]: one["value"] for one in row["data_file"][name] or ()} for row in rows]
            found = (
                counts_of(columns, field_id, "value_counts")
                if name == "value_counts"
                else bounds_of(columns, field_id, "lower_bounds")
            )
            assert found.to_pylist() == [one.get(field_id) for one in maps]


@pytest.mark.parametrize("count", [3, 700])
def test_files_with_the_same_columns_use_the_fast_path(count: int) -> None:
    columns = manifest([entry(at) for at in range(count)])
    assert bounds_of(columns, 1, "lower_bounds").to_pylist() == [at.to_bytes(8, "little") for at in range(count)]
    assert bounds_of(columns, 2, "upper_bounds").to_pylist() == [b"zz"] * count
    assert counts_of(columns, 2, "null_value_counts").to_pylist() == [5] * count
    assert counts_of(columns, 1, "nan_value_counts").null_count == count
    assert bounds_of(columns, 2, "lower_bounds").to_pylist() == [b""] * count


def test_last_of_duplicate_metrics_wins() -> None:
    twice = [{"key": 1, "value": 5}, {"key": 1, "value": 6}]
    columns = manifest(
        [entry(0, value_counts=twice), entry(1), entry(2, value_counts=[]), entry(3, value_counts=twice)]
    )
    assert counts_of(columns, 1, "value_counts").to_pylist() == [6, 101, None, 6]
    columns = manifest([entry(0, value_counts=twice), entry(1, value_counts=twice)])
    assert counts_of(columns, 1, "value_counts").to_pylist() == [6, 6]


def test_last_of_duplicate_metrics_wins_in_the_fast_path() -> None:
    pairs = [{"key": 3, "value": 7}, {"key": 1, "value": 8}, {"key": 3, "value": 9}]
    columns = manifest([entry(at, value_counts=pairs) for at in range(70)])
    assert counts_of(columns, 3, "value_counts").to_pylist() == [9] * 70
    assert counts_of(columns, 1, "value_counts").to_pylist() == [8] * 70
    assert counts_of(columns, 2, "value_counts").null_count == 70


def test_manifest_slices_have_their_own_metrics() -> None:
    columns = manifest(
        [entry(at, value_counts=[{"key": 1, "value": at}, {"key": 2, "value": -at}]) for at in range(70)]
    )
    rows = replace(columns, table=columns.table.slice(20, 30))
    assert counts_of(rows, 2, "value_counts").to_pylist() == [-at for at in range(20, 50)]
    assert bounds_of(rows, 1, "lower_bounds").to_pylist() == [at.to_bytes(8, "little") for at in range(20, 50)]


def test_ids_at_different_positions_of_each_file_are_found() -> None:
    def counts(*ids: int) -> list[dict[str, int]]:
        return [{"key": one, "value": one * 10} for one in ids]

    columns = manifest([entry(0, value_counts=counts(1, 2)), entry(1, value_counts=counts(2, 1))])
    assert counts_of(columns, 1, "value_counts").to_pylist() == [10, 10]
    columns = manifest([entry(0, value_counts=counts(1, 2)), entry(1, value_counts=counts(2, 3))])
    assert counts_of(columns, 1, "value_counts").to_pylist() == [10, None]


@pytest.mark.parametrize("name", ["lower_bounds", "upper_bounds"])
def test_unread_metric_is_an_error(name: BoundName) -> None:
    columns = decode_manifest(write_avro(entry_schema(), [entry()]), fields=["status"])
    with pytest.raises(InvalidRequestError, match="was not read"):
        bounds_of(columns, 1, name)


def test_deleted_entries_are_not_live() -> None:
    columns = manifest([entry(0, status=0), entry(1, status=1), entry(2, status=2)])
    assert live_mask(columns).tolist() == [True, True, False]
