"""Writing manifests: the schema and header of each version, defaults, summaries, and what is refused."""

from __future__ import annotations

import io
import json
import struct
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from frazil.codec.encode_manifest import EncodedManifest, encode_manifest
from frazil.codec.manifest_avro import decode_manifest, iter_entries
from frazil.codec.single_value import encode_value
from frazil.errors import InvalidPropertyError, InvalidRequestError, SchemaMismatchError
from frazil.spec.data_file import FileContent
from frazil.spec.manifest import FieldSummary, ManifestContent, ManifestEntry
from frazil.spec.partitioning import UNPARTITIONED, PartitionSpec, build_partition_spec
from frazil.spec.schema import Schema
from frazil.spec.types import DOUBLE, FLOAT, INT, STRING, DecimalType, NestedField, Type
from frazil.spec.versions import (
    DATA_FILE_FIELDS,
    MANIFEST_ENTRY_FIELDS,
    MANIFEST_HEADER_FIELDS,
    requirement_of,
)
from tests.support.manifest_builders import (
    BY_DAY,
    EVENTS,
    SNAPSHOT_ID,
    added,
    data_file,
    deleted,
    deletion_vector,
    existing,
)

SYNC = b"0123456789abcdef"


def encode(*entries: ManifestEntry, **changes: Any) -> EncodedManifest:
    known: dict[str, Any] = {
        "path": "s3://b/m.avro",
        "spec": BY_DAY,
        "schema": EVENTS,
        "format_version": 2,
        "snapshot_id": SNAPSHOT_ID,
    }
    return encode_manifest(list(entries), **{**known, **changes})


def avro(data: bytes) -> tuple[dict[str, Any], dict[str, str], list[dict[str, Any]]]:
    """The schema, header and rows of a container, as fastavro reads it."""
    reader = fastavro.reader(io.BytesIO(data))
    rows: list[Any] = list(reader)
    schema: Any = json.loads(reader.metadata["avro.schema"])
    return schema, dict(reader.metadata), rows


def fields_of(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in schema["fields"]}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_each_version_writes_its_specified_fields(version: int) -> None:
    schema, _, _ = avro(encode(added(), format_version=version).data)
    assert schema["name"] == "manifest_entry"
    entry = fields_of(schema)
    assert entry["data_file"]["type"]["name"] == "r2"
    file = fields_of(entry["data_file"]["type"])
    assert file["partition"]["type"]["name"] == "r102"
    for fields, rules in ((entry, MANIFEST_ENTRY_FIELDS), (file, DATA_FILE_FIELDS)):
        for name in rules:
            requirement = requirement_of(rules, name, version)
            is_deprecated = name in ("file_ordinal", "sort_columns", "distinct_counts")
            assert (name in fields) == (requirement != "omitted" and not is_deprecated), name
            if name in fields:
                is_optional = isinstance(fields[name]["type"], list)
                assert is_optional == (requirement == "optional"), name
                assert not is_optional or fields[name]["default"] is None


def test_field_ids_match_the_specification() -> None:
    schema, _, _ = avro(encode(added(), format_version=3).data)
    entry = fields_of(schema)
    file = fields_of(entry["data_file"]["type"])
    ids = {name: one["field-id"] for name, one in (entry | file).items()}
    assert ids == {
        "status": 0, "snapshot_id": 1, "data_file": 2, "sequence_number": 3, "file_sequence_number": 4,
        "content": 134, "file_path": 100, "file_format": 101, "partition": 102, "record_count": 103,
        "file_size_in_bytes": 104, "column_sizes": 108, "value_counts": 109, "null_value_counts": 110,
        "nan_value_counts": 137, "lower_bounds": 125, "upper_bounds": 128, "key_metadata": 131,
        "split_offsets": 132, "equality_ids": 135, "sort_order_id": 140, "first_row_id": 142,
        "referenced_data_file": 143, "content_offset": 144, "content_size_in_bytes": 145,
    }  # fmt: skip
    sizes = file["column_sizes"]["type"][1]
    assert (sizes["type"], sizes["logicalType"], sizes["items"]["name"]) == ("array", "map", "k117_v118")
    assert [one["field-id"] for one in sizes["items"]["fields"]] == [117, 118]
    assert file["lower_bounds"]["type"][1]["items"]["fields"][1]["type"] == "bytes"
    assert file["split_offsets"]["type"][1]["element-id"] == 133
    assert file["equality_ids"]["type"][1]["element-id"] == 136
    (day,) = file["partition"]["type"]["fields"]
    assert (day["name"], day["field-id"], day["type"][1]) == ("ts_day", 1000, {"type": "int", "logicalType": "date"})


@pytest.mark.parametrize("version", [1, 2, 3])
def test_header_has_the_keys_required_by_the_version(version: int) -> None:
    _, header, _ = avro(encode(added(), format_version=version).data)
    for name in MANIFEST_HEADER_FIELDS:
        if requirement_of(MANIFEST_HEADER_FIELDS, name, version) == "required":
            assert name.replace("_", "-") in header
    assert header["format-version"] == str(version)
    assert (header["schema-id"], header["partition-spec-id"]) == ("0", "3")
    assert json.loads(header["partition-spec"]) == [
        {"name": "ts_day", "transform": "day", "source-id": 2, "field-id": 1000}
    ]
    assert [one["id"] for one in json.loads(header["schema"])["fields"]] == [1, 2, 3]
    assert ("content" in header) == (version > 1)


def test_v1_writes_the_default_block_size_and_snapshot_id() -> None:
    _, _, rows = avro(encode(added(snapshot_id=None), format_version=1).data)
    assert rows[0]["snapshot_id"] == SNAPSHOT_ID
    assert rows[0]["data_file"]["block_size_in_bytes"] == 67108864
    assert "sequence_number" not in rows[0]


def test_v1_refuses_entries_without_a_snapshot() -> None:
    with pytest.raises(InvalidRequestError, match="it has no snapshot_id"):
        encode(added(snapshot_id=None), format_version=1, snapshot_id=None)


def test_values_are_written_unchanged_and_formats_in_upper_case() -> None:
    _, _, rows = avro(encode(added(data_file(7))).data)
    file = rows[0]["data_file"]
    assert file["file_format"] == "PARQUET"
    assert file["value_counts"] == [{"key": 1, "value": 100}, {"key": 3, "value": 100}]
    assert file["lower_bounds"] == [{"key": 1, "value": (7).to_bytes(8, "little")}, {"key": 3, "value": b""}]
    assert (file["column_sizes"], file["split_offsets"], file["equality_ids"]) == (None, [4], None)
    assert (rows[0]["status"], rows[0]["snapshot_id"], rows[0]["sequence_number"]) == (1, SNAPSHOT_ID, None)


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "none"])
def test_every_codec_round_trips(codec: str) -> None:
    entries = [added(data_file(at)) for at in range(500)]
    made = encode(*entries, codec=codec)
    assert list(iter_entries(decode_manifest(made.data))) == entries


def test_unknown_codec_is_refused() -> None:
    with pytest.raises(InvalidPropertyError, match="'brotli'"):
        encode(added(), codec="brotli")


def test_same_entries_give_the_same_bytes() -> None:
    entries = [added(data_file(at)) for at in range(300)]
    assert encode(*entries).data == encode(*entries).data
    assert encode(*entries).data != encode(*entries[1:]).data
    assert encode(*entries, sync_marker=SYNC).data.endswith(SYNC)
    with pytest.raises(InvalidRequestError, match="16 bytes"):
        encode(*entries, sync_marker=b"short")


def test_rows_are_split_into_blocks_of_about_64_kilobytes() -> None:
    data = encode(*(added(data_file(at)) for at in range(3000)), codec="none").data
    blocks = list(fastavro.block_reader(io.BytesIO(data)))
    assert sum(block.num_records for block in blocks) == 3000
    sizes = [len(block.bytes_.getvalue()) for block in blocks]  # type: ignore[attr-defined]
    assert max(sizes) <= 64_000
    assert min(sizes[:-1]) > 60_000


def test_row_larger_than_a_block_is_its_own_block() -> None:
    entries = [added(data_file(at, upper_bounds={1: bytes(100_000)})) for at in range(5)]
    made = encode(*entries)
    assert list(iter_entries(decode_manifest(made.data))) == entries


def test_columns_and_values_give_the_same_manifest() -> None:
    entries = [added(data_file(0)), existing(data_file(1)), deleted(data_file(2))]
    made = encode(*entries, sync_marker=SYNC)
    table = decode_manifest(made.data, partition_type=BY_DAY.partition_type(EVENTS)).table
    again = encode_manifest(
        table,
        path="s3://b/m.avro",
        spec=BY_DAY,
        schema=EVENTS,
        format_version=2,
        snapshot_id=SNAPSHOT_ID,
        sync_marker=SYNC,
    )
    assert again == made


def test_columns_may_be_missing_chunked_or_of_other_widths() -> None:
    table = pa.table(
        {
            "status": pa.chunked_array([pa.array([1], pa.int8()), pa.array([1], pa.int8())]),
            "file_path": pa.array(["a", "b"], pa.large_string()),
            "file_format": pa.array(["parquet", "orc"]).dictionary_encode(),
            "record_count": pa.array([1, 2], pa.int32()),
            "file_size_in_bytes": pa.array([1, 2]),
            "ignored": pa.array([1, 2]),
        }
    )
    made = encode_manifest(
        table, path="m", spec=UNPARTITIONED, schema=EVENTS, format_version=2, snapshot_id=None, threads=2
    )
    found = list(iter_entries(decode_manifest(made.data)))
    assert [one.data_file.file_path for one in found] == ["a", "b"]
    assert found[0].data_file.lower_bounds is None


def test_manifest_list_entry_counts_files_and_rows() -> None:
    entries = [
        added(data_file(0, record_count=10)),
        added(data_file(1, record_count=5), sequence_number=9),
        existing(data_file(2, record_count=7), sequence_number=4),
        deleted(data_file(3, record_count=3), sequence_number=1),
    ]
    made = encode(*entries)
    line = made.manifest
    assert (line.manifest_path, line.manifest_length, line.partition_spec_id) == ("s3://b/m.avro", len(made.data), 3)
    assert (line.added_snapshot_id, line.content) == (SNAPSHOT_ID, ManifestContent.DATA)
    assert (line.sequence_number, line.min_sequence_number) == (-1, 4)
    assert (line.added_files_count, line.existing_files_count, line.deleted_files_count) == (2, 1, 1)
    assert (line.added_rows_count, line.existing_rows_count, line.deleted_rows_count) == (15, 7, 3)
    day = (19000).to_bytes(4, "little")
    assert line.partitions == (FieldSummary(False, False, day, day),)
    assert (line.key_metadata, line.first_row_id) == (None, None)


def test_new_files_leave_the_minimum_sequence_number_unassigned() -> None:
    assert encode(added()).manifest.min_sequence_number == -1
    assert encode().manifest.min_sequence_number == -1
    assert encode(existing(sequence_number=0)).manifest.min_sequence_number == 0


def summary_of(kind: Type, *values: Any) -> FieldSummary:
    schema = Schema((NestedField(1, "x", kind),))
    spec = build_partition_spec(schema, ["x"])
    entries = [added(data_file(at, partition=(value,), spec_id=0)) for at, value in enumerate(values)]
    (summary,) = encode(*entries, schema=schema, spec=spec).manifest.partitions or ()
    return summary


@pytest.mark.parametrize(
    "kind, values, expected",
    [
        (INT, (5, -3, None), (True, False, -3, 5)),
        (STRING, ("b", "a", "é"), (False, False, "a", "é")),
        (DecimalType(9, 2), (Decimal("1.50"), Decimal("-2.00")), (False, False, Decimal("-2.00"), Decimal("1.50"))),
        (DOUBLE, (1.5, float("nan"), None), (True, True, 1.5, 1.5)),
    ],
)
def test_partition_values_are_summarized(kind: Type, values: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    has_null, has_nan, low, high = expected
    assert summary_of(kind, *values) == FieldSummary(
        has_null, has_nan, encode_value(low, kind), encode_value(high, kind)
    )


@pytest.mark.parametrize("values", [(None, None), (None,), ()])
def test_partitions_of_nulls_have_no_bounds(values: tuple[None, ...]) -> None:
    assert summary_of(INT, *values) == FieldSummary(len(values) > 0, False, None, None)


def test_partitions_of_nan_have_no_bounds() -> None:
    assert summary_of(FLOAT, float("nan")) == FieldSummary(False, True, None, None)


@pytest.mark.parametrize(
    "values, low, high",
    [
        ((0.0, -0.0), -0.0, 0.0),
        ((0.0,), 0.0, 0.0),
        ((-0.0,), -0.0, -0.0),
        ((-0.0, 1.0), -0.0, 1.0),
        ((-1.0, 0.0, -0.0), -1.0, 0.0),
    ],
)
def test_negative_zero_sorts_before_zero(values: tuple[float, ...], low: float, high: float) -> None:
    summary = summary_of(DOUBLE, *values)
    assert (summary.lower_bound, summary.upper_bound) == (struct.pack("<d", low), struct.pack("<d", high))


class TestFirstRowIds:
    """Specification: "First Row ID Inheritance"."""

    def written(self, entry: ManifestEntry, **changes: Any) -> int | None:
        (found,) = iter_entries(decode_manifest(encode(entry, format_version=3, **changes).data))
        return found.data_file.first_row_id

    def test_existing_and_deleted_files_keep_their_sequence_numbers(self) -> None:
        assert self.written(existing(data_file(first_row_id=0))) == 0
        assert self.written(deleted(data_file(first_row_id=8))) == 8

    def test_added_files_are_written_without_sequence_numbers(self) -> None:
        assert self.written(added(data_file(first_row_id=8))) is None


class TestRefusals:
    """What a version cannot hold."""

    @pytest.mark.parametrize(
        "entry, changes, reason",
        [
            (added(data_file(content=FileContent.POSITION_DELETES)), {}, "a data manifest holds data files only"),
            (added(), {"content": ManifestContent.DELETES}, "a delete manifest holds delete files only"),
            (existing(sequence_number=None), {}, "only an added file may be without a sequence number"),
            (deleted(sequence_number=None), {}, "only an added file may be without a sequence number"),
            (added(snapshot_id=6), {}, "another snapshot added it"),
            (added(snapshot_id=6), {"snapshot_id": None}, "another snapshot added it"),
            (added(data_file(record_count=-1)), {}, "its record_count is negative"),
        ],
    )
    def test_invalid_entries_are_refused_with_the_file_and_the_reason(
        self, entry: ManifestEntry, changes: dict[str, Any], reason: str
    ) -> None:
        with pytest.raises(InvalidRequestError, match=reason) as failure:
            encode(entry, **changes)
        assert entry.data_file.file_path in str(failure.value)

    def test_v1_has_no_delete_manifests(self) -> None:
        with pytest.raises(InvalidRequestError, match="format version 1 have none"):
            encode(format_version=1, content=ManifestContent.DELETES)

    def test_deletion_vectors_require_v3(self) -> None:
        entry = added(deletion_vector())
        with pytest.raises(InvalidRequestError, match="format version 2 have no deletion vectors"):
            encode(entry, content=ManifestContent.DELETES)
        made = encode(entry, content=ManifestContent.DELETES, format_version=3)
        assert list(iter_entries(decode_manifest(made.data))) == [entry]

    @pytest.mark.parametrize("name", ["referenced_data_file", "content_offset", "content_size_in_bytes"])
    def test_deletion_vectors_need_all_their_fields(self, name: str) -> None:
        changes: dict[str, Any] = {name: None}
        entry = added(deletion_vector(0, **changes))
        with pytest.raises(InvalidRequestError, match=f"a deletion vector needs {name}"):
            encode(entry, content=ManifestContent.DELETES, format_version=3)

    def test_equality_deletes_need_their_columns(self) -> None:
        file = data_file(content=FileContent.EQUALITY_DELETES)
        with pytest.raises(InvalidRequestError, match="equality deletes need equality_ids"):
            encode(added(file), content=ManifestContent.DELETES)
        entry = added(replace(file, equality_ids=(1,)))
        made = encode(entry, content=ManifestContent.DELETES)
        assert list(iter_entries(decode_manifest(made.data))) == [entry]

    def test_partition_values_must_match_the_spec(self) -> None:
        with pytest.raises(SchemaMismatchError, match="2 partition values, its spec 1 fields"):
            encode(added(data_file(partition=(1, 2))))
        with pytest.raises(SchemaMismatchError, match="as date"):
            encode(added(data_file(partition=("monday",))))
        table = pa.table({"status": pa.array([1], pa.int32())})
        with pytest.raises(SchemaMismatchError, match="the column 'partition' is missing"):
            encode_manifest(table, path="m", spec=BY_DAY, schema=EVENTS, format_version=2, snapshot_id=1)

    def test_unknown_version_is_refused(self) -> None:
        with pytest.raises(Exception, match="4"):
            encode(format_version=4)

    def test_values_outside_the_column_range_are_refused(self) -> None:
        with pytest.raises(SchemaMismatchError, match="'value_counts'"):
            encode(added(data_file(value_counts={1: 2**70})))
        table = pa.table({"status": pa.array(["added"])})
        with pytest.raises(SchemaMismatchError, match="column 'status'"):
            encode_manifest(table, path="m", spec=UNPARTITIONED, schema=EVENTS, format_version=2, snapshot_id=1)


def test_partition_names_are_sanitized_and_the_original_is_kept() -> None:
    schema = Schema((NestedField(1, "order-id", INT), NestedField(2, "9lives", INT), NestedField(3, "café", INT)))
    spec = build_partition_spec(schema, ["`order-id`", "`9lives`", "`café`"])
    entry = added(data_file(partition=(1, 2, 3), spec_id=0))
    made = encode(entry, schema=schema, spec=spec)
    written, _, _ = avro(made.data)
    fields = fields_of(fields_of(written)["data_file"]["type"])["partition"]["type"]["fields"]
    assert [one["name"] for one in fields] == ["order_x2Did", "_9lives", "caf_xE9"]
    assert [one["iceberg-field-name"] for one in fields] == ["order-id", "9lives", "café"]
    columns = decode_manifest(made.data, partition_type=spec.partition_type(schema))
    assert list(iter_entries(columns)) == [entry]


def test_colliding_sanitized_names_stay_distinct() -> None:
    schema = Schema((NestedField(1, "a-b", INT), NestedField(2, "a_x2Db", INT)))
    spec = build_partition_spec(schema, ["`a-b`", "a_x2Db"])
    made = encode(added(data_file(partition=(1, 2), spec_id=0)), schema=schema, spec=spec)
    written, _, _ = avro(made.data)
    fields = fields_of(fields_of(written)["data_file"]["type"])["partition"]["type"]["fields"]
    assert [one["name"] for one in fields] == ["a_x2Db", "a_x2Db_f1001"]


def test_type_of_a_dropped_partition_source_comes_from_older_schemas() -> None:
    narrower = Schema((NestedField(1, "id", INT),), schema_id=1)
    made = encode(added(), schema=narrower, other_schemas=[EVENTS])
    (found,) = iter_entries(decode_manifest(made.data))
    assert found.data_file.partition == (19000,)


def test_partition_field_of_unknown_type_writes_null() -> None:
    narrower = Schema((NestedField(1, "id", INT),), schema_id=1)
    spec = PartitionSpec(5, build_partition_spec(EVENTS, ["kind"]).fields)
    made = encode(added(data_file(partition=(None,), spec_id=5)), schema=narrower, spec=spec)
    (found,) = iter_entries(decode_manifest(made.data))
    assert found.data_file.partition == (None,)


def test_decimal_exceeding_its_precision_is_refused() -> None:
    schema = Schema((NestedField(1, "x", DecimalType(4, 2)),))
    spec = build_partition_spec(schema, ["x"])
    for value in (Decimal("1.234"), Decimal("123.45")):
        with pytest.raises(SchemaMismatchError, match=r"Cannot use a partition value as decimal\(4, 2\): [^C]"):
            encode(added(data_file(partition=(value,), spec_id=0)), schema=schema, spec=spec)
