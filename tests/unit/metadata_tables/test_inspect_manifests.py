"""The tables of manifests."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.codec.encode_manifest import encode_manifest
from frazil.codec.manifest_list_avro import encode_manifest_list
from frazil.codec.single_value import encode_value
from frazil.metadata_tables.manifests import all_manifests, manifests
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.spec.manifest import EntryStatus, FieldSummary, ManifestEntry
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.types import BINARY, DATE, DOUBLE, INT, LONG, STRING, TIMESTAMPTZ, DecimalType
from tests.support.builders import field, schema
from tests.support.tables import TableBuilder

HOUR = 3_600_000_000


def rows(table: pa.Table) -> list[dict[str, Any]]:
    table.validate(full=True)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def test_columns_and_types_match_iceberg_java() -> None:
    loaded = TableBuilder(schema()).load()
    found = manifests(loaded)
    summary = "struct<contains_null: bool not null, contains_nan: bool, lower_bound: string, upper_bound: string>"
    assert [(part.name, str(part.type)) for part in found.schema] == [
        ("content", "int32"),
        ("path", "string"),
        ("length", "int64"),
        ("partition_spec_id", "int32"),
        ("added_snapshot_id", "int64"),
        ("added_data_files_count", "int32"),
        ("existing_data_files_count", "int32"),
        ("deleted_data_files_count", "int32"),
        ("added_delete_files_count", "int32"),
        ("existing_delete_files_count", "int32"),
        ("deleted_delete_files_count", "int32"),
        ("partition_summaries", f"list<element: {summary} not null>"),
    ]
    assert all_manifests(loaded).column_names == [*found.column_names, "reference_snapshot_id", "key_metadata"]
    assert (found.num_rows, all_manifests(loaded).num_rows) == (0, 0)


def test_counts_are_in_the_columns_of_their_content() -> None:
    table = TableBuilder(schema())
    (one,) = table.append([{"id": 1}])
    other = table.write_data([{"id": 2}])
    table.commit(other, table.write_data([{"id": 3}]))
    table.commit(deleted=[other])
    table.commit(table.write_position_deletes({one: [0]}))
    counts = [name for name in manifests(table.load()).column_names if name.endswith("_count")]
    shown = [(row["content"], [row[name] for name in counts]) for row in rows(manifests(table.load()))]
    assert shown == [(1, [0, 0, 0, 1, 0, 0]), (0, [0, 1, 1, 0, 0, 0]), (0, [1, 0, 0, 0, 0, 0])]
    (first,) = rows(manifests(table.load(), choice=SnapshotChoice(snapshot_id=1)))
    assert first["path"].endswith("-m1.avro")
    assert first["length"] == table.storage.size(first["path"])
    assert (first["added_snapshot_id"], first["partition_spec_id"], first["partition_summaries"]) == (1, 0, [])


@pytest.mark.parametrize(
    "term, kind, low, high, texts",
    [
        ("c1", STRING, "a b", "é", ("a b", "é")),
        ("c1", LONG, -1, 7, ("-1", "7")),
        ("c1", DATE, -1, 0, ("1969-12-31", "1970-01-01")),
        ("c1", DOUBLE, 1e-5, 1e10, ("1.0E-5", "1.0E10")),
        ("c1", DecimalType(9, 2), Decimal("-0.10"), Decimal("1.00"), ("-0.10", "1.00")),
        ("c1", BINARY, b"\x00", b"\xff\xfe", ("AA==", "//4=")),
        ("bucket(16, c1)", LONG, 1, 1, ("4", "4")),
        ("truncate(2, c1)", STRING, "abc", "zzz", ("ab", "zz")),
        ("hour(c1)", TIMESTAMPTZ, 0, 25 * HOUR, ("1970-01-01-00", "1970-01-02-01")),
        ("day(c1)", TIMESTAMPTZ, 0, 25 * HOUR, ("1970-01-01", "1970-01-02")),
        ("month(c1)", TIMESTAMPTZ, 0, 800 * HOUR, ("1970-01", "1970-02")),
        ("year(c1)", TIMESTAMPTZ, -1, 0, ("1969", "1970")),
    ],
)
def test_partition_bounds_are_human_readable(term: str, kind: Any, low: Any, high: Any, texts: tuple[str, str]) -> None:
    table = TableBuilder(schema(field(1, "c1", kind)), partition_by=[term])
    table.commit(*table.write_partitions([{"c1": low}, {"c1": high}]))
    (row,) = rows(manifests(table.load()))
    (summary,) = row["partition_summaries"]
    assert (summary["lower_bound"], summary["upper_bound"]) == texts
    assert (summary["contains_null"], summary["contains_nan"]) == (False, False)


def test_partition_of_only_nulls_has_null_bounds() -> None:
    table = TableBuilder(schema(field(1, "c1", STRING)), partition_by=["c1"])
    table.commit(*table.write_partitions([{"c1": None}]))
    (row,) = rows(manifests(table.load()))
    assert row["partition_summaries"] == [
        {"contains_null": True, "contains_nan": False, "lower_bound": None, "upper_bound": None}
    ]


def test_bounds_written_before_a_promotion_have_the_new_type() -> None:
    table = TableBuilder(schema(field(1, "c1", INT)), partition_by=["c1"])
    table.append([{"c1": 7}])
    table.update_schema(lambda u: u.set_type("c1", LONG))
    (row,) = rows(manifests(table.load()))
    assert row["partition_summaries"][0]["lower_bound"] == "7"


def test_unreadable_bounds_and_summaries_without_a_field_are_null() -> None:
    table = TableBuilder(schema(field(1, "c1", INT)), partition_by=["c1"])
    table.append([{"c1": 7}])
    assert table.snapshot is not None
    (line,) = table.manifests_of(table.snapshot)
    good = encode_value(7, INT)
    broken = replace(line, partitions=(FieldSummary(False, None, b"x", good), FieldSummary(True, None, good, good)))
    encoded = encode_manifest_list(
        [broken], format_version=2, snapshot_id=1, parent_snapshot_id=None, sequence_number=1
    )
    assert table.snapshot.manifest_list is not None
    table.storage.replace(table.snapshot.manifest_list, encoded.data)
    (row,) = rows(manifests(table.load()))
    assert [tuple(one.values()) for one in row["partition_summaries"]] == [
        (False, None, None, "7"),
        (True, None, None, None),
    ]


def test_manifests_of_old_snapshots_have_no_counts() -> None:
    table = TableBuilder(schema(), format_version=1)
    file = table.write_data([{"id": 1}])
    path = f"{table.metadata.location}/metadata/old-m0.avro"
    entry = ManifestEntry(EntryStatus.ADDED, file, 1)
    encoded = encode_manifest([entry], path=path, spec=table.spec, schema=table.schema, format_version=1, snapshot_id=1)
    table.storage.create(path, encoded.data)
    old = replace(table.commit(file), manifest_list=None, manifests=(path,))
    table.metadata = replace(table.metadata, snapshots=SnapshotList([old]))
    (row,) = rows(manifests(table.load()))
    assert (row["path"], row["length"], row["added_snapshot_id"]) == (path, len(encoded.data), 1)
    assert (row["added_data_files_count"], row["added_delete_files_count"], row["partition_summaries"]) == (
        None,
        0,
        None,
    )
    assert rows(all_manifests(table.load()))[0]["reference_snapshot_id"] == 1


def test_all_manifests_has_one_row_per_snapshot_and_manifest() -> None:
    table = TableBuilder(schema())
    table.append([{"id": 1}])
    table.append([{"id": 2}])
    table.set_ref("audit", 1)
    table.commit(table.write_data([{"id": 3}]), branch="audit")
    found = all_manifests(table.load(), columns=["reference_snapshot_id", "path", "key_metadata"])
    shown = [(row["reference_snapshot_id"], row["path"][-7:], row["key_metadata"]) for row in rows(found)]
    assert sorted(shown) == [
        (1, "m1.avro", None),
        (2, "m1.avro", None),
        (2, "m2.avro", None),
        (3, "m1.avro", None),
        (3, "m3.avro", None),
    ]
