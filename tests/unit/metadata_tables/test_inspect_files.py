"""The tables of files and of manifest entries."""

from __future__ import annotations

import datetime
import uuid
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.codec.encode_manifest import encode_manifest
from frazil.codec.single_value import decode_bound
from frazil.datafile.value_arrays import array_of
from frazil.errors import FieldNotFoundError, InvalidManifestError, SnapshotNotFoundError
from frazil.metadata_tables.file_columns import map_array
from frazil.metadata_tables.files import FILE_TABLES, files
from frazil.metadata_tables.tables import read_metadata_table
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.manifest import EntryStatus, ManifestEntry
from frazil.spec.snapshot_list import SnapshotList
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
    ListType,
    Type,
)
from frazil.storage.memory import MemoryStorage
from tests.support.builders import field, schema
from tests.support.tables import START_MS, STEP_MS, TableBuilder

entries, all_entries, all_files = (FILE_TABLES[name] for name in ("entries", "all_entries", "all_files"))

DAY = 86_400_000_000
FILE_COLUMNS = [
    "content",
    "file_path",
    "file_format",
    "spec_id",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "key_metadata",
    "split_offsets",
    "equality_ids",
    "sort_order_id",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
    "readable_metrics",
]


class CountingStorage(MemoryStorage):
    """Counts what is read."""

    __slots__ = ("reads",)

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def read(self, path: str, **options: Any) -> bytes:
        self.reads.append(path)
        return super().read(path, **options)


def rows(table: pa.Table) -> list[dict[str, Any]]:
    table.validate(full=True)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def paths(table: pa.Table) -> list[str]:
    found: list[str] = table.column("file_path").to_pylist()
    return found


def events(**options: Any) -> TableBuilder:
    return TableBuilder(schema(), partition_by=["day(ts)"], **options)


def test_file_rows_have_the_columns_of_iceberg_java_in_order() -> None:
    table = events()
    (file,) = table.append([{"id": 1, "ts": 0, "kind": "a"}, {"id": 5, "ts": 1, "kind": None}])
    found = files(table.load())
    assert found.column_names == FILE_COLUMNS
    (row,) = rows(found)
    metrics = row.pop("readable_metrics")
    assert row == {
        "content": 0,
        "file_path": file.file_path,
        "file_format": "PARQUET",
        "spec_id": 0,
        "partition": {"ts_day": datetime.date(1970, 1, 1)},
        "record_count": 2,
        "file_size_in_bytes": file.file_size_in_bytes,
        "column_sizes": None if file.column_sizes is None else list(file.column_sizes.items()),
        "value_counts": [(1, 2), (2, 2), (3, 2)],
        "null_value_counts": [(1, 0), (2, 0), (3, 1)],
        "nan_value_counts": None if file.nan_value_counts is None else list(file.nan_value_counts.items()),
        "lower_bounds": [(1, b"\x01" + b"\0" * 7), (2, b"\0" * 8), (3, b"a")],
        "upper_bounds": [(1, b"\x05" + b"\0" * 7), (2, b"\x01" + b"\0" * 7), (3, b"a")],
        "key_metadata": None,
        "split_offsets": list(file.split_offsets or ()),
        "equality_ids": None,
        "sort_order_id": None,
        "first_row_id": None,
        "referenced_data_file": None,
        "content_offset": None,
        "content_size_in_bytes": None,
    }
    assert list(metrics) == ["id", "kind", "ts"]
    assert metrics["kind"] == {
        "column_size": None if file.column_sizes is None else file.column_sizes[3],
        "value_count": 2,
        "null_value_count": 1,
        "nan_value_count": None,
        "lower_bound": "a",
        "upper_bound": "a",
    }
    assert metrics["ts"]["upper_bound"] == datetime.datetime(1970, 1, 1, 0, 0, 0, 1, datetime.UTC)


def test_types_match_iceberg_java() -> None:
    table = files(events().load()).schema
    assert {part.name: str(part.type) for part in table if part.name != "readable_metrics"} == {
        "content": "int32",
        "file_path": "string",
        "file_format": "string",
        "spec_id": "int32",
        "partition": "struct<ts_day: date32[day]>",
        "record_count": "int64",
        "file_size_in_bytes": "int64",
        "column_sizes": "map<int32, int64>",
        "value_counts": "map<int32, int64>",
        "null_value_counts": "map<int32, int64>",
        "nan_value_counts": "map<int32, int64>",
        "lower_bounds": "map<int32, binary>",
        "upper_bounds": "map<int32, binary>",
        "key_metadata": "binary",
        "split_offsets": "list<element: int64 not null>",
        "equality_ids": "list<element: int32 not null>",
        "sort_order_id": "int32",
        "first_row_id": "int64",
        "referenced_data_file": "string",
        "content_offset": "int64",
        "content_size_in_bytes": "int64",
    }
    assert [part.name for part in table if not part.nullable] == [
        "file_path",
        "file_format",
        "partition",
        "record_count",
        "file_size_in_bytes",
    ]


def test_unpartitioned_table_has_no_partition_column() -> None:
    table = TableBuilder(schema())
    table.append([{"id": 1}])
    expected = [name for name in FILE_COLUMNS if name != "partition"]
    assert files(table.load()).column_names == expected
    entry = entries(table.load())
    assert [part.name for part in entry.schema.field("data_file").type] == expected[:-1]


def test_table_without_a_snapshot_has_all_columns_and_no_files() -> None:
    loaded = events().load()
    for name in ("files", "data_files", "delete_files", "all_files", "all_data_files", "all_delete_files"):
        table = read_metadata_table(loaded, name)
        assert (table.num_rows, table.column_names) == (0, FILE_COLUMNS)
    for of_entries in (entries, all_entries):
        assert (of_entries(loaded).num_rows, of_entries(loaded).num_columns) == (0, 6)


def test_data_and_delete_files_are_distinguished() -> None:
    table = events()
    (data,) = table.append([{"id": 1, "ts": 0, "kind": "a"}])
    position = table.write_position_deletes({data: [0]}, names_file=True)
    equality = table.write_equality_deletes([{"id": 9}], ["id"], partition=data.partition)
    table.commit(position, equality)
    loaded = table.load()
    assert sorted(paths(files(loaded))) == sorted([data.file_path, position.file_path, equality.file_path])
    assert paths(read_metadata_table(loaded, "data_files")) == [data.file_path]
    shown = {row["file_path"]: row for row in rows(read_metadata_table(loaded, "delete_files"))}
    assert shown[position.file_path]["content"] == 1
    assert shown[position.file_path]["referenced_data_file"] == data.file_path
    assert shown[equality.file_path]["content"] == 2
    assert shown[equality.file_path]["equality_ids"] == [1]
    assert shown[equality.file_path]["readable_metrics"]["id"]["lower_bound"] == 9
    assert shown[position.file_path]["readable_metrics"]["id"]["lower_bound"] is None


def test_deletion_vectors_show_their_position_and_data_files_their_first_row_id() -> None:
    table = TableBuilder(schema(), format_version=3)
    first, second = table.append([{"id": 1}, {"id": 2}]), table.append([{"id": 3}])
    (vector,) = table.write_vectors({first[0]: [1]})
    table.commit(vector)
    (row,) = rows(read_metadata_table(table.load(), "delete_files"))
    assert (row["file_format"], row["first_row_id"]) == ("PUFFIN", None)
    assert row["referenced_data_file"] == first[0].file_path
    assert (row["content_offset"], row["content_size_in_bytes"]) == (
        vector.content_offset,
        vector.content_size_in_bytes,
    )
    ids = {row["file_path"]: row["first_row_id"] for row in rows(read_metadata_table(table.load(), "data_files"))}
    assert ids == {first[0].file_path: 0, second[0].file_path: 2}


def test_version_1_files_have_the_same_columns() -> None:
    table = events(format_version=1)
    (file,) = table.append([{"id": 1, "ts": DAY, "kind": "a"}])
    (row,) = rows(files(table.load()))
    assert (row["content"], row["file_path"], row["partition"]["ts_day"]) == (
        0,
        file.file_path,
        datetime.date(1970, 1, 2),
    )
    (entry,) = rows(entries(table.load()))
    assert (entry["sequence_number"], entry["file_sequence_number"], entry["snapshot_id"]) == (0, 0, 1)


def test_partitions_of_all_specs_share_one_type() -> None:
    table = events()
    table.append([{"id": 1, "ts": 0, "kind": "a"}])
    table.update_spec(lambda u: u.add_field("bucket(4, id)").remove_field("ts_day"))
    table.append([{"id": 1, "ts": 0, "kind": "a"}])
    table.update_spec(lambda u: u.add_field("kind"))
    table.append([{"id": 1, "ts": 0, "kind": "a"}])
    found = files(table.load(), columns=["spec_id", "partition"])
    assert str(found.schema.field("partition").type) == (
        "struct<ts_day: date32[day], id_bucket_4: int32, kind: string>"
    )
    day = datetime.date(1970, 1, 1)
    assert sorted(rows(found), key=lambda row: row["spec_id"]) == [
        {"spec_id": 0, "partition": {"ts_day": day, "id_bucket_4": None, "kind": None}},
        {"spec_id": 1, "partition": {"ts_day": None, "id_bucket_4": 0, "kind": None}},
        {"spec_id": 2, "partition": {"ts_day": None, "id_bucket_4": 0, "kind": "a"}},
    ]


def test_partition_field_voided_in_version_1_keeps_type_and_values() -> None:
    table = TableBuilder(schema(), partition_by=["bucket(4, id)"], format_version=1)
    table.append([{"id": 1}])
    table.update_spec(lambda u: u.remove_field("id_bucket"))
    table.append([{"id": 1}])
    found = files(table.load(), columns=["spec_id", "partition"])
    assert [part.type for part in found.schema.field("partition").type] == [pa.int32()]
    values = {row["spec_id"]: list(row["partition"].values()) for row in rows(found)}
    assert values == {0: [0], 1: [None]}


def test_partition_field_of_a_dropped_column_is_hidden() -> None:
    table = TableBuilder(schema(), partition_by=["kind", "bucket(4, id)"])
    table.append([{"id": 1, "kind": "a"}])
    table.update_spec(lambda u: u.remove_field("kind"))
    table.update_schema(lambda u: u.drop_column("kind"))
    found = files(table.load())
    assert [part.name for part in found.schema.field("partition").type] == ["id_bucket"]
    (row,) = rows(found)
    assert row["partition"] == {"id_bucket": 0}
    assert list(row["readable_metrics"]) == ["id", "ts"]


def test_uuid_partitions_and_bounds_are_uuids() -> None:
    table = TableBuilder(schema(field(1, "u", UUID)), partition_by=["u"])
    table.append([{"u": uuid.UUID(int=5)}])
    (row,) = rows(files(table.load(), columns=["partition", "readable_metrics"]))
    assert row["partition"] == {"u": uuid.UUID(int=5)}
    assert row["readable_metrics"]["u"]["upper_bound"] == uuid.UUID(int=5)


def test_metrics_follow_columns_through_promotion_and_renaming() -> None:
    table = TableBuilder(schema(field(1, "a", INT), field(2, "b", STRING)))
    table.append([{"a": 3, "b": "x"}])
    table.update_schema(lambda u: u.set_type("a", LONG).rename_column("b", "c").add_column("d", DOUBLE))
    table.append([{"a": 1 << 40, "c": "y", "d": 0.5}])
    found = files(table.load(), columns=["readable_metrics"])
    shown = [{name: one["lower_bound"] for name, one in row["readable_metrics"].items()} for row in rows(found)]
    assert shown == [{"a": 1 << 40, "c": "y", "d": 0.5}, {"a": 3, "c": "x", "d": None}]


def test_metrics_of_list_elements_have_their_path() -> None:
    table = TableBuilder(schema(field(1, "tags", ListType(2, STRING))))
    file = replace(table.write_data([{"tags": ["a"]}]), value_counts={2: 4})
    table.commit(file)
    (row,) = rows(files(table.load(), columns=["readable_metrics"]))
    assert row["readable_metrics"]["tags.element"]["value_count"] == 4


def test_entries_include_deleted_files_and_inherited_values() -> None:
    table = events()
    one, two = table.append([{"id": 1, "ts": 0, "kind": "a"}, {"id": 2, "ts": DAY, "kind": "b"}])
    table.commit(deleted=[one])
    found = entries(table.load())
    assert found.column_names == [
        "status",
        "snapshot_id",
        "sequence_number",
        "file_sequence_number",
        "data_file",
        "readable_metrics",
    ]
    shown = {row["data_file"]["file_path"]: row for row in rows(found)}
    head = ("status", "snapshot_id", "sequence_number", "file_sequence_number")
    assert tuple(shown[one.file_path][name] for name in head) == (2, 2, 1, 1)
    assert tuple(shown[two.file_path][name] for name in head) == (0, 1, 1, 1)
    assert shown[two.file_path]["data_file"]["partition"] == {"ts_day": datetime.date(1970, 1, 2)}
    assert shown[two.file_path]["readable_metrics"]["id"]["lower_bound"] == 2
    assert paths(files(table.load())) == [two.file_path]


def test_time_travel_by_id_time_branch_and_tag() -> None:
    table = TableBuilder(schema())
    (first,) = table.append([{"id": 1}])
    (second,) = table.append([{"id": 2}])
    table.set_ref("old", 1, "tag")
    table.set_ref("side", 1)
    loaded = table.load()
    for choice in (
        SnapshotChoice(snapshot_id=1),
        SnapshotChoice(as_of_ms=START_MS + STEP_MS),
        SnapshotChoice(ref="old"),
        SnapshotChoice(ref="side"),
    ):
        assert paths(files(loaded, choice=choice)) == [first.file_path]
        assert entries(loaded, choice=choice).num_rows == 1
    assert set(paths(files(loaded, choice=SnapshotChoice(ref="main")))) == {first.file_path, second.file_path}
    with pytest.raises(SnapshotNotFoundError, match="Cannot find snapshot 9"):
        files(loaded, choice=SnapshotChoice(snapshot_id=9))


def test_all_tables_cover_every_snapshot_and_read_each_manifest_once() -> None:
    storage = CountingStorage()
    table = TableBuilder(schema(), storage=storage)
    (first,) = table.append([{"id": 1}])
    (second,) = table.append([{"id": 2}])
    table.commit(deleted=[first])
    table.set_ref("audit", 1)
    (branched,) = [table.write_data([{"id": 3}])]
    table.commit(branched, table.write_position_deletes({first: [0]}), branch="audit")
    loaded = table.load()
    storage.reads.clear()
    found = all_files(loaded)
    manifests = [path for path in storage.reads if "-m" in path]
    assert len(manifests) == len(set(manifests))
    deletes = paths(read_metadata_table(loaded, "all_delete_files"))
    assert len(deletes) == 1
    assert sorted(paths(found)) == sorted([first.file_path, second.file_path, branched.file_path, *deletes])
    assert sorted(paths(read_metadata_table(loaded, "all_data_files"))) == sorted(
        [first.file_path, second.file_path, branched.file_path]
    )
    statuses = all_entries(loaded, columns=["status", "data_file.file_path"])
    assert (2, first.file_path) in [(row["status"], row["data_file"]["file_path"]) for row in rows(statuses)]


def test_expired_snapshots_are_not_included() -> None:
    table = TableBuilder(schema())
    (first,) = table.append([{"id": 1}])
    (second,) = table.append([{"id": 2}])
    table.commit(deleted=[first])
    metadata = table.metadata
    table.metadata = replace(
        metadata, snapshots=SnapshotList([metadata.snapshot(3)]), snapshot_log=metadata.snapshot_log[2:]
    )
    assert paths(all_files(table.load())) == [second.file_path]


def test_upgraded_table_shows_row_ids_of_its_newest_list() -> None:
    table = TableBuilder(schema())
    table.append([{"id": 1}])
    table.upgrade(3)
    table.append([{"id": 2}])
    assert sorted(all_files(table.load()).column("first_row_id").to_pylist()) == [0, 1]
    old = files(table.load(), choice=SnapshotChoice(snapshot_id=1), columns=["first_row_id"])
    assert old.column(0).to_pylist() == [None]


def test_nested_columns_can_be_selected() -> None:
    table = events()
    table.append([{"id": 1, "ts": 0, "kind": "a"}])
    loaded = table.load()
    found = entries(loaded, columns=["data_file.record_count", "status", "data_file.partition.ts_day"])
    assert rows(found) == [
        {"data_file": {"partition": {"ts_day": datetime.date(1970, 1, 1)}, "record_count": 1}, "status": 1}
    ]
    found = files(loaded, columns=["readable_metrics.kind.upper_bound", "readable_metrics.id"])
    (row,) = rows(found)
    assert row == {
        "readable_metrics": {
            "id": {
                "column_size": row["readable_metrics"]["id"]["column_size"],
                "value_count": 1,
                "null_value_count": 0,
                "nan_value_count": None,
                "lower_bound": 1,
                "upper_bound": 1,
            },
            "kind": {"upper_bound": "a"},
        }
    }
    assert files(loaded, columns=["partition.ts_day", "partition"]).column_names == ["partition"]
    for wrong in ("readable_metrics.nope", "file_path.x", "partition."):
        with pytest.raises(FieldNotFoundError, match="Its columns are: content, file_path"):
            files(loaded, columns=[wrong])


def test_unselected_columns_are_not_decoded() -> None:
    table = events()
    table.append([{"id": 1, "ts": 0, "kind": "a"}])
    cache = ManifestCache()
    files(table.load(), columns=["file_path", "readable_metrics.id.lower_bound", "spec_id"], cache=cache)
    ((kept, *_),) = cache._entries.values()
    assert set(kept.table.column_names) == {"status", "file_path", "lower_bounds"}


def test_manifest_of_an_unknown_spec_is_refused_with_its_path() -> None:
    table = events()
    table.append([{"id": 1, "ts": 0, "kind": "a"}])
    spec = replace(table.spec, spec_id=7)
    table.metadata = replace(table.metadata, partition_specs=(spec,), default_spec_id=7)
    with pytest.raises(InvalidManifestError, match="the table has no partition spec 0") as caught:
        files(table.load())
    assert "-m1.avro" in str(caught.value.context["path"])


def test_manifests_are_read_in_order_by_any_number_of_threads() -> None:
    table = TableBuilder(schema(field(1, "a", LONG), field(2, "ts", TIMESTAMPTZ)))
    made = [
        DataFile(
            f"memory://lake/{at:04d}",
            FileFormat.ORC,
            at,
            at,
            FileContent.DATA,
            lower_bounds=None if at % 3 == 0 else FrozenMap({1: at.to_bytes(8, "little")}),
        )
        for at in range(500)
    ]
    table.commit(*made, manifests=7)
    table.commit(deleted=[one.file_path for one in made[::50]])
    loaded = table.load()
    single = files(loaded, threads=1)
    assert single.equals(files(loaded, threads=4))
    kept = {row["file_path"]: row["readable_metrics"]["a"]["lower_bound"] for row in rows(single)}
    assert kept == {one.file_path: None if at % 3 == 0 else at for at, one in enumerate(made) if at % 50 != 0}


def test_map_pairs_without_key_or_value_are_skipped() -> None:
    table = TableBuilder(schema(field(1, "a", LONG), field(2, "b", LONG)))
    kind = pa.list_(pa.struct([("key", pa.int32()), ("value", pa.int64())]))
    listed = pa.array(
        [
            [{"key": 1, "value": None}, {"key": 2, "value": 7}],
            None,
            [{"key": 1, "value": 5}, {"key": None, "value": 1}],
        ],
        kind,
    )
    target = files(table.load()).schema.field("value_counts").type
    made = map_array(listed, target)
    made.validate(full=True)
    assert made.to_pylist() == [[(2, 7)], None, [(1, 5)]]
    assert map_array(listed[1:], target).to_pylist() == [None, [(1, 5)]]
    assert map_array(listed[2:], target).to_pylist() == [[(1, 5)]]


def test_inline_v1_manifests_are_read() -> None:
    table = TableBuilder(schema(), format_version=1)
    file = table.write_data([{"id": 1}])
    path = f"{table.metadata.location}/metadata/old-m0.avro"
    encoded = encode_manifest(
        [ManifestEntry(EntryStatus.ADDED, file, 1)],
        path=path,
        spec=table.spec,
        schema=table.schema,
        format_version=1,
        snapshot_id=1,
    )
    table.storage.create(path, encoded.data)
    snapshot = table.commit(file)
    old = replace(snapshot, manifest_list=None, manifests=(path,))
    table.metadata = replace(table.metadata, snapshots=SnapshotList([old]))
    assert paths(files(table.load())) == [file.file_path]


VALUES: dict[Type, list[Any]] = {
    BOOLEAN: [True, False, None],
    INT: [1, -5, None],
    LONG: [1 << 40, -1],
    FLOAT: [1.5, float("nan"), None],
    DOUBLE: [float("nan")],
    DATE: [0, 20_000],
    TIME: [1, 86_399_999_999],
    TIMESTAMP: [-1, 1],
    TIMESTAMPTZ: [0, None],
    TIMESTAMP_NS: [-1, 1],
    TIMESTAMPTZ_NS: [0],
    STRING: ["", "a" * 40, "ü" * 40],
    UUID: [uuid.UUID(int=1), uuid.UUID(int=2**128 - 1)],
    BINARY: [b"", b"\xff" * 40],
    FixedType(20): [b"\x01" * 20, b"\xff" * 20],
    DecimalType(9, 2): [Decimal("-1.25"), Decimal("99.00")],
    DecimalType(38, 10): [Decimal("0E-10"), None],
}


def test_columns_equal_entries_value_by_value() -> None:
    columns = schema(*(field(at, f"c{at}", kind) for at, kind in enumerate(VALUES, 1)))
    table = TableBuilder(columns, partition_by=["c2"], format_version=3)
    for number in range(1, 4):
        table.append(
            [
                {f"c{at}": values[(number + at + row) % len(values)] for at, values in enumerate(VALUES.values(), 1)}
                for row in range(number)
            ]
        )
    table.update_schema(lambda u: u.set_type("c2", LONG).set_type("c4", DOUBLE).set_type("c16", DecimalType(12, 2)))
    assert table.snapshot is not None
    expected = [entry for one in table.manifests_of(table.snapshot) for entry in table.entries_of(one)]
    found = entries(table.load())
    for row, entry in zip(rows(found), expected, strict=True):
        file = entry.data_file
        assert (row["status"], row["snapshot_id"], row["sequence_number"]) == (
            entry.status,
            entry.snapshot_id,
            entry.sequence_number,
        )
        assert row["data_file"]["first_row_id"] == file.first_row_id
        assert row["data_file"]["partition"] == {"c2": file.partition[0]}
        for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"):
            assert dict(row["data_file"][name]) == dict(getattr(file, name) or {})
        for part in table.schema.fields:
            shown = row["readable_metrics"][part.name]
            assert shown["value_count"] == (file.value_counts or {}).get(part.field_id)
            assert shown["nan_value_count"] == (file.nan_value_counts or {}).get(part.field_id)
            for one in ("lower", "upper"):
                stored = getattr(file, f"{one}_bounds").get(part.field_id)
                assert shown[f"{one}_bound"] == _bound_as_shown(stored, part.field_type)


def _bound_as_shown(stored: bytes | None, kind: Type) -> Any:
    if stored is None:
        return None
    if isinstance(kind, FixedType):
        return stored.ljust(kind.length, b"\0")
    return array_of([decode_bound(stored, kind)], kind).to_pylist()[0]
