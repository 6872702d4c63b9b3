"""Reading manifests: any writer's schema by field id, inheritance, and what is refused."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from typing import Any
from uuid import UUID as PythonUuid

import pyarrow as pa
import pytest

from frazil.codec.manifest_avro import decode_manifest, iter_entries
from frazil.codec.manifest_fields import COLUMNS, manifest_arrow_schema
from frazil.errors import InvalidManifestError, InvalidRequestError, UnsupportedError
from frazil.spec.data_file import FileContent, FileFormat
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestFile
from frazil.spec.types import (
    BINARY,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    NestedField,
    StructType,
    Type,
)
from tests.support.avro_builders import (
    DAY,
    compress,
    container,
    entry,
    entry_schema,
    optional,
    pairs,
    required,
    rows_of,
    text,
    write_avro,
)

CODECS = ("null", "deflate", "bzip2", "xz", "zstandard", "snappy")
DAYS = StructType((NestedField(1000, "ts_day", DATE),))


def manifest(**changes: Any) -> ManifestFile:
    known: dict[str, Any] = {"manifest_path": "s3://b/m.avro", "manifest_length": 1, "partition_spec_id": 0}
    return ManifestFile(**{**known, "added_snapshot_id": 77, "sequence_number": 5, **changes})


def rename_all(schema: Any) -> Any:
    """The same schema under names that say nothing, record fields in reverse order."""
    if isinstance(schema, list):
        return [rename_all(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: rename_all(value) if key in ("type", "items") else value for key, value in schema.items()}
    if "field-id" in changed:
        changed["name"] = f"x{changed['field-id']}"
    if "fields" in changed:
        changed["fields"] = [rename_all(one) for one in reversed(changed["fields"])]
        changed["name"] = f"some.space.{changed['name']}"
    return changed


def rename_row(value: Any, schema: Any) -> Any:
    if isinstance(schema, list):
        return None if value is None else rename_row(value, schema[1])
    if isinstance(schema, dict) and schema.get("type") == "record":
        return {f"x{one['field-id']}": rename_row(value[one["name"]], one["type"]) for one in schema["fields"]}
    if isinstance(schema, dict) and schema.get("type") == "array":
        return [rename_row(one, schema["items"]) for one in value]
    return value


def test_entry_has_every_specified_field() -> None:
    data = write_avro(entry_schema(DAY), [entry(7, partition={"ts_day": 19000})], format_version="2", content="data")
    columns = decode_manifest(data, partition_type=DAYS)
    assert columns.table.schema == manifest_arrow_schema(DAYS)
    assert columns.table.column_names == list(COLUMNS)
    (found,) = iter_entries(columns)
    file = found.data_file
    assert found.status is EntryStatus.ADDED
    assert (found.snapshot_id, found.sequence_number, found.file_sequence_number) == (None, None, None)
    assert (file.content, file.file_format) == (FileContent.DATA, FileFormat.PARQUET)
    assert (file.file_path, file.record_count, file.file_size_in_bytes) == ("s3://bucket/data/00007.parquet", 107, 1007)
    assert file.partition == (19000,)
    assert file.column_sizes == {1: 11, 2: 22}
    assert file.value_counts == {1: 107, 2: 107}
    assert file.null_value_counts == {1: 0, 2: 5}
    assert file.nan_value_counts is None
    assert file.lower_bounds == {1: (7).to_bytes(8, "little"), 2: b""}
    assert file.upper_bounds == {1: (16).to_bytes(8, "little"), 2: b"zz"}
    assert (file.split_offsets, file.equality_ids, file.sort_order_id) == ((4, 400), None, 0)
    assert (file.key_metadata, file.first_row_id, file.referenced_data_file) == (None, None, None)
    assert (file.content_offset, file.content_size_in_bytes) == (None, None)


@pytest.mark.parametrize("codec", CODECS)
def test_every_avro_codec_is_read(codec: str) -> None:
    rows = [entry(at) for at in range(300)]
    parts = (rows[:1], rows[1:200], rows[200:])
    blocks = [(len(part), compress(codec, rows_of(entry_schema(), part))) for part in parts]
    columns = decode_manifest(container(entry_schema(), *blocks, codec=codec))
    assert columns.column("record_count").to_pylist() == [100 + at for at in range(300)]


@pytest.mark.parametrize("count", [0, 1, 3, 2000])
def test_small_and_large_manifests_read_the_same(count: int) -> None:
    rows = [entry(at, partition={"ts_day": at}) for at in range(count)]
    columns = decode_manifest(write_avro(entry_schema(DAY), rows), threads=2)
    assert len(columns) == count
    assert columns.column("file_path").to_pylist() == [row["data_file"]["file_path"] for row in rows]
    assert columns.partition_type == DAYS
    assert [file.data_file.partition for file in iter_entries(columns)] == [(at,) for at in range(count)]
    assert columns.table.schema == manifest_arrow_schema(DAYS)
    columns.table.validate(full=True)


@pytest.mark.parametrize("count", [2, 500])
def test_fields_are_matched_by_id_whatever_their_names_and_order(count: int) -> None:
    schema = entry_schema(DAY)
    rows = [entry(at, partition={"ts_day": at}) for at in range(count)]
    renamed = write_avro(rename_all(schema), [rename_row(row, schema) for row in rows])
    expected = decode_manifest(write_avro(schema, rows), partition_type=DAYS)
    assert decode_manifest(renamed, partition_type=DAYS).table.equals(expected.table)


@pytest.mark.parametrize("count", [2, 500])
def test_null_may_be_second_in_a_union(count: int) -> None:
    def flip_fields(schema: dict[str, Any]) -> dict[str, Any]:
        made = {key: value for key, value in schema.items() if key != "default"}
        if "fields" in made:
            made["fields"] = [flip_fields(one) for one in made["fields"]]
        elif isinstance(made.get("type"), list):
            made["type"] = [made["type"][1], "null"]
        elif isinstance(made.get("type"), dict):
            made["type"] = flip_fields(made["type"])
        return made

    rows = [entry(at, partition={"ts_day": None if at % 2 else at}) for at in range(count)]
    expected = decode_manifest(write_avro(entry_schema(DAY), rows), partition_type=DAYS)
    found = decode_manifest(write_avro(flip_fields(entry_schema(DAY)), rows), partition_type=DAYS)
    assert found.table.equals(expected.table)


@pytest.mark.parametrize("count", [2, 500])
def test_metrics_may_be_avro_maps_with_digit_keys(count: int) -> None:
    schema = entry_schema()
    fields = schema["fields"][-1]["type"]["fields"]
    names = ("column_sizes", "lower_bounds")
    for field in fields:
        if field["name"] in names:
            value = "bytes" if field["name"] == "lower_bounds" else "long"
            field["type"] = ["null", {"type": "map", "values": value}]
    rows = [entry(at) for at in range(count)]
    expected = decode_manifest(write_avro(entry_schema(), rows))
    for row in rows:
        for name in names:
            row["data_file"][name] = {str(one["key"]): one["value"] for one in row["data_file"][name]}
    assert decode_manifest(write_avro(schema, rows)).table.equals(expected.table)


@pytest.mark.parametrize("count", [2, 500])
def test_optional_fields_may_be_missing_and_required_ones_optional(count: int) -> None:
    schema = entry_schema()
    entry_fields = schema["fields"]
    file_fields = entry_fields[-1]["type"]["fields"]
    keep = ("content", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes")
    file_fields[:] = [one for one in file_fields if one["name"] in keep]
    for field in file_fields:
        if field["name"] != "partition":
            field["type"] = ["null", field["type"]]
    columns = decode_manifest(write_avro(schema, [entry(at) for at in range(count)]))
    assert columns.column("file_path").null_count == 0
    assert columns.column("lower_bounds").null_count == count
    assert columns.table.schema == manifest_arrow_schema(StructType())


@pytest.mark.parametrize("count", [2, 500])
def test_data_file_and_partition_may_be_optional_records(count: int) -> None:
    schema = entry_schema(DAY)
    data_file = schema["fields"][-1]
    partition = next(one for one in data_file["type"]["fields"] if one["name"] == "partition")
    partition["type"] = ["null", partition["type"]]
    data_file["type"] = ["null", data_file["type"]]
    rows = [entry(at, partition={"ts_day": at}) for at in range(count)]
    expected = decode_manifest(write_avro(entry_schema(DAY), rows), partition_type=DAYS)
    assert decode_manifest(write_avro(schema, rows), partition_type=DAYS).table.equals(expected.table)


@pytest.mark.parametrize("count", [2, 500])
def test_fields_of_later_versions_are_skipped(count: int) -> None:
    schema = entry_schema()
    inner = {
        "type": "record",
        "name": "later",
        "fields": [{"name": "a", "type": "double"}, {"name": "b", "type": "null"}],
    }
    extra: list[tuple[str, Any, Any]] = [
        ("e", {"type": "enum", "name": "colour", "symbols": ["RED", "BLUE"]}, "BLUE"),
        ("n", "null", None),
        ("r", inner, {"a": 1.5, "b": None}),
        ("o", ["null", {"type": "record", "name": "empty", "fields": []}], {}),
        ("m", {"type": "map", "values": {"type": "array", "items": "later"}}, {"k": [{"a": 2.0, "b": None}]}),
        ("f", {"type": "fixed", "name": "three", "size": 3}, b"abc"),
        ("x", "boolean", True),
    ]
    for at, (name, kind, _) in enumerate(extra):
        schema["fields"].insert(at, {"name": name, "type": kind, "field-id": 9000 + at})
    rows = [{**entry(at), **{name: value for name, _, value in extra}} for at in range(count)]
    expected = decode_manifest(write_avro(entry_schema(), [entry(at) for at in range(count)]))
    assert decode_manifest(write_avro(schema, rows)).table.equals(expected.table)


def test_only_requested_fields_are_returned() -> None:
    data = write_avro(entry_schema(DAY), [entry(at, partition={"ts_day": 1}) for at in range(500)])
    columns = decode_manifest(data, fields=["file_path", "lower_bounds"], manifest=manifest())
    assert columns.table.column_names == ["file_path", "lower_bounds"]
    with pytest.raises(InvalidRequestError, match="column 'upper_bounds' of a manifest: it was not read"):
        columns.column("upper_bounds")


def test_unknown_field_cannot_be_requested() -> None:
    with pytest.raises(InvalidRequestError, match="field 'colour' of a manifest"):
        decode_manifest(write_avro(entry_schema(), []), fields=["colour"])


def test_header_has_schema_spec_and_version() -> None:
    schema = '{"type":"struct","schema-id":3,"fields":[{"id":1,"name":"ts","type":"timestamp","required":false}]}'
    spec = '[{"name":"ts_day","transform":"day","source-id":1,"field-id":1000}]'
    data = write_avro(
        entry_schema(DAY),
        [],
        schema=schema,
        partition_spec=spec,
        partition_spec_id="4",
        format_version="2",
        content="deletes",
    )
    columns = decode_manifest(data, path="m.avro")
    assert (columns.format_version, columns.spec_id, columns.content) == (2, 4, ManifestContent.DELETES)
    assert columns.schema.schema_id == 3
    assert columns.partition_spec.spec_id == 4
    assert columns.partition_spec.partition_type(columns.schema) == DAYS
    assert columns.metadata["partition-spec"] == spec


def test_v1_header_has_defaults() -> None:
    columns = decode_manifest(write_avro(entry_schema(version=1), [entry()]))
    assert (columns.format_version, columns.spec_id, columns.content) == (1, 0, ManifestContent.DATA)
    assert columns.column("content").to_pylist() == [0]


@pytest.mark.parametrize("key", ["schema", "partition-spec"])
def test_header_without_schema_or_spec_fails_on_access(key: str) -> None:
    columns = decode_manifest(write_avro(entry_schema(), [entry()]), path="m.avro")
    with pytest.raises(InvalidManifestError, match=f"the manifest's {key}: its header has none") as failure:
        _ = columns.schema if key == "schema" else columns.partition_spec
    assert failure.value.context["path"] == "m.avro"


def test_columns_are_picklable() -> None:
    columns = decode_manifest(write_avro(entry_schema(DAY), [entry(partition={"ts_day": 3})]), manifest=manifest())
    again = pickle.loads(pickle.dumps(columns))
    assert again == columns


def _decimal(base: Any, precision: int, scale: int) -> dict[str, Any]:
    known = {"type": base} if isinstance(base, str) else base
    return {**known, "logicalType": "decimal", "precision": precision, "scale": scale}


PARTITION_TYPES: list[tuple[Any, Type, Any, Any]] = [
    ({"type": "int", "logicalType": "date"}, DATE, 19000, 19000),
    ("int", DATE, 19000, 19000),
    ({"type": "int", "logicalType": "date"}, INT, 19000, 19000),
    ("int", LONG, -5, -5),
    ("long", INT, -5, -5),
    ("float", DOUBLE, 1.5, 1.5),
    ("string", STRING, "å", "å"),
    ("bytes", BINARY, b"\x00\xff", b"\x00\xff"),
    ({"type": "fixed", "name": "f3", "size": 3}, FixedType(3), b"abc", b"abc"),
    ({"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}, UUID, bytes(15) + b"\x01", PythonUuid(int=1)),
    ("string", UUID, str(PythonUuid(int=7)), PythonUuid(int=7)),
    ({"type": "long", "logicalType": "timestamp-micros"}, TIMESTAMP, -1, -1),
    ({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True}, TIMESTAMPTZ, 7, 7),
    ({"type": "long", "logicalType": "timestamp-millis"}, TIMESTAMP, 7, 7000),
    ({"type": "long", "logicalType": "timestamp-nanos"}, TIMESTAMP_NS, 2**62, 2**62),
    ({"type": "long", "logicalType": "timestamp-micros"}, TIMESTAMP_NS, 3, 3000),
    ({"type": "int", "logicalType": "date"}, TIMESTAMP, 2, 2 * 86_400_000_000),
    (_decimal("bytes", 9, 2), DecimalType(18, 2), b"\xff\x85", Decimal("-1.23")),
    (_decimal({"type": "fixed", "name": "d", "size": 4}, 9, 2), DecimalType(9, 2), bytes(3) + b"{", Decimal("1.23")),
    ({"type": "fixed", "name": "d", "size": 16}, DecimalType(38, 0), b"\xff" * 15 + b"\xfe", Decimal(-2)),
]  # fmt: skip


@pytest.mark.parametrize("count", [2, 300])
@pytest.mark.parametrize("avro, kind, stored, value", PARTITION_TYPES)
def test_partition_values_are_read_in_every_known_encoding(
    avro: Any, kind: Type, stored: Any, value: Any, count: int
) -> None:
    plain: Any = avro if isinstance(avro, str) else {key: one for key, one in avro.items() if key != "logicalType"}
    rows = [entry(at, partition={"p": None if at else stored}) for at in range(count)]
    data = write_avro(entry_schema(optional("p", plain, 1000)), rows, codec="null")
    if plain != avro:
        # fastavro would convert the values of logical types; the bytes are the same without them.
        logical = {key: one for key, one in avro.items() if key not in plain}
        before, after = _schemas(data, plain, {**plain, **logical})
        data = data.replace(before, after)
    columns = decode_manifest(data, partition_type=StructType((NestedField(1000, "p", kind),)))
    found = [one.data_file.partition for one in iter_entries(columns)]
    assert found == [(value,)] + [(None,)] * (count - 1)


def _schemas(data: bytes, plain: Any, full: Any) -> tuple[bytes, bytes]:
    """The length and text of the schema in a container, with one type and with another."""
    start = data.index(b"avro.schema") + len(b"avro.schema")
    begin = data.index(b"{", start)
    document, end = json.JSONDecoder().raw_decode(data[begin:].decode("latin-1"))
    old = data[begin : begin + end]

    def swap(value: Any) -> Any:
        if isinstance(value, dict):
            if value.get("name") == "p":
                return {**value, "type": ["null", full]}
            return {key: swap(one) for key, one in value.items()}
        return [swap(one) for one in value] if isinstance(value, list) else value

    return text(old), text(json.dumps(swap(document)))


@pytest.mark.parametrize(
    "avro, kind, reason",
    [
        ("string", INT, "stored as string"),
        ("boolean", DATE, "stored as boolean"),
        ({"type": "array", "items": "int"}, INT, "stored as array"),
        ({"type": "fixed", "name": "f", "size": 4}, UUID, "length of uuid"),
        ("bytes", STRING, "stored as bytes"),
    ],
)
def test_partition_field_of_another_type_is_refused(avro: Any, kind: Type, reason: str) -> None:
    values = {"string": "a", "boolean": True, "bytes": b"a"}
    value = values.get(avro) if isinstance(avro, str) else ([1] if avro["type"] == "array" else b"abcd")
    data = write_avro(entry_schema(optional("p", avro, 1000)), [entry(partition={"p": value})])
    with pytest.raises(InvalidManifestError, match=f"field 'partition.p' is .*{reason}"):
        decode_manifest(data, partition_type=StructType((NestedField(1000, "p", kind),)))


def test_missing_partition_field_is_null() -> None:
    both = StructType((NestedField(1000, "ts_day", DATE), NestedField(1001, "shard", INT)))
    data = write_avro(entry_schema(DAY), [entry(partition={"ts_day": 3})])
    (found,) = iter_entries(decode_manifest(data, partition_type=both))
    assert found.data_file.partition == (3, None)


class TestInheritance:
    """Specification: "Sequence Number Inheritance", "First Row ID Inheritance"."""

    def test_added_entries_inherit_ids_and_sequence_numbers(self) -> None:
        rows = [
            entry(0),
            entry(1, snapshot_id=6, sequence_number=2),
            entry(2, status=0, snapshot_id=4, sequence_number=1, file_sequence_number=1),
        ]
        columns = decode_manifest(write_avro(entry_schema(), rows), manifest=manifest())
        assert columns.column("snapshot_id").to_pylist() == [77, 6, 4]
        assert columns.column("sequence_number").to_pylist() == [5, 2, 1]
        assert columns.column("file_sequence_number").to_pylist() == [5, 5, 1]
        assert columns.path == "s3://b/m.avro"

    def test_nothing_is_inherited_without_a_manifest(self) -> None:
        columns = decode_manifest(write_avro(entry_schema(), [entry()]))
        assert columns.column("sequence_number").to_pylist() == [None]

    def test_uncommitted_manifest_gives_no_sequence_number(self) -> None:
        columns = decode_manifest(write_avro(entry_schema(), [entry()]), manifest=manifest(sequence_number=-1))
        assert columns.column("sequence_number").to_pylist() == [None]
        assert columns.column("snapshot_id").to_pylist() == [77]

    def test_existing_entry_without_a_sequence_number_is_refused(self) -> None:
        data = write_avro(entry_schema(), [entry(0), entry(1, status=0)])
        with pytest.raises(InvalidManifestError, match="1 existing entries have no sequence number"):
            decode_manifest(data, manifest=manifest())

    def test_deleted_entry_of_an_old_writer_may_lack_sequence_numbers(self) -> None:
        columns = decode_manifest(write_avro(entry_schema(), [entry(0, status=2)]), manifest=manifest())
        assert columns.column("sequence_number").to_pylist() == [None]

    @pytest.mark.parametrize("status", [0, 1, 2])
    def test_v1_entries_have_sequence_number_zero(self, status: int) -> None:
        data = write_avro(entry_schema(version=1), [entry(status=status, snapshot_id=3)])
        columns = decode_manifest(data, manifest=manifest(sequence_number=0))
        assert columns.column("sequence_number").to_pylist() == [0]
        assert columns.column("file_sequence_number").to_pylist() == [0]

    def test_v1_manifest_added_after_the_upgrade_counts_as_new(self) -> None:
        rows = [entry(0, snapshot_id=3), entry(1, status=0, snapshot_id=3)]
        columns = decode_manifest(write_avro(entry_schema(version=1), rows), manifest=manifest(sequence_number=8))
        assert columns.column("sequence_number").to_pylist() == [8, 0]

    def test_first_row_ids_match_the_specification_example(self) -> None:
        rows = [
            entry(0, status=0, sequence_number=1, file_sequence_number=1, record_count=25, first_row_id=800),
            entry(1, record_count=50),
            entry(2, record_count=50),
        ]
        data = write_avro(entry_schema(version=3), rows)
        columns = decode_manifest(data, manifest=manifest(first_row_id=1000))
        assert columns.column("first_row_id").to_pylist() == [800, 1000, 1050]

    def test_deleted_entries_consume_no_row_ids(self) -> None:
        rows = [entry(0, record_count=10), entry(1, status=2, record_count=99), entry(2, record_count=10)]
        columns = decode_manifest(write_avro(entry_schema(version=3), rows), manifest=manifest(first_row_id=0))
        assert columns.column("first_row_id").to_pylist() == [0, None, 10]

    def test_existing_files_of_an_upgraded_table_get_row_ids(self) -> None:
        rows = [entry(0, status=0, sequence_number=1, record_count=10), entry(1, status=0, sequence_number=1)]
        columns = decode_manifest(write_avro(entry_schema(version=2), rows), manifest=manifest(first_row_id=7))
        assert columns.column("first_row_id").to_pylist() == [7, 17]

    def test_files_of_a_manifest_without_first_row_id_have_none(self) -> None:
        data = write_avro(entry_schema(version=3), [entry(first_row_id=5)])
        assert decode_manifest(data, manifest=manifest()).column("first_row_id").to_pylist() == [None]
        assert decode_manifest(data).column("first_row_id").to_pylist() == [5]

    def test_delete_files_have_no_first_row_id(self) -> None:
        data = write_avro(entry_schema(version=3), [entry(content=1, first_row_id=5)], content="deletes")
        for one in (None, manifest(content=ManifestContent.DELETES)):
            assert decode_manifest(data, manifest=one).column("first_row_id").to_pylist() == [None]

    def test_row_ids_beyond_64_bits_are_refused(self) -> None:
        rows = [entry(0, record_count=2**62), entry(1, record_count=2**62)]
        with pytest.raises(InvalidManifestError, match="do not fit 64 bits"):
            decode_manifest(write_avro(entry_schema(version=3), rows), manifest=manifest(first_row_id=1))

    def test_row_ids_are_assigned_across_chunks(self) -> None:
        rows = [entry(at, record_count=2) for at in range(3000)]
        columns = decode_manifest(
            write_avro(entry_schema(version=3), rows), manifest=manifest(first_row_id=100), fields=["first_row_id"]
        )
        assert columns.column("first_row_id").to_pylist() == [100 + 2 * at for at in range(3000)]


class TestRefusals:
    """What no manifest can hold."""

    @pytest.mark.parametrize(
        "changes, reason",
        [
            ({"status": 3}, "field 'status' is 3"),
            ({"status": -1}, "field 'status' is -1"),
            ({"content": 3}, "field 'content' is 3"),
            ({"content": 1}, "field 'content' is 1 in a manifest of data"),
            ({"file_format": "csv"}, "field 'file_format' is 'csv'"),
            ({"file_format": "x" * 5000}, "field 'file_format' is 'xxx"),
            ({"record_count": -2}, "field 'record_count' is -2"),
            ({"file_size_in_bytes": -7}, "field 'file_size_in_bytes' is -7"),
        ],
    )
    @pytest.mark.parametrize("count", [1, 400])
    def test_values_out_of_range_are_refused(self, changes: dict[str, Any], reason: str, count: int) -> None:
        data = write_avro(entry_schema(), [*(entry(at) for at in range(count - 1)), entry(9, **changes)])
        with pytest.raises(InvalidManifestError, match=reason) as failure:
            decode_manifest(data, path="s3://b/bad.avro")
        assert failure.value.context["path"] == "s3://b/bad.avro"
        assert failure.value.context["heading"] == "Manifests"

    def test_unknown_record_count_is_read(self) -> None:
        data = write_avro(entry_schema(), [entry(record_count=-1)])
        assert decode_manifest(data).column("record_count").to_pylist() == [-1]

    @pytest.mark.parametrize("name", ["status", "file_path", "file_format", "record_count", "file_size_in_bytes"])
    def test_missing_required_field_is_named(self, name: str) -> None:
        schema = entry_schema()
        for fields in (schema["fields"], schema["fields"][-1]["type"]["fields"]):
            fields[:] = [one for one in fields if one["name"] != name]
        with pytest.raises(InvalidManifestError, match=f"no field '{name}'"):
            decode_manifest(write_avro(schema, []))

    @pytest.mark.parametrize("name", ["file_path", "record_count"])
    def test_null_in_a_required_field_is_refused(self, name: str) -> None:
        schema = entry_schema()
        for field in schema["fields"][-1]["type"]["fields"]:
            if field["name"] == name:
                field["type"] = ["null", field["type"]]
        with pytest.raises(InvalidManifestError, match=f"field '{name}' is null in 1 entries"):
            decode_manifest(write_avro(schema, [entry(0), entry(1, **{name: None})]))

    def test_schema_without_field_ids_is_refused(self) -> None:
        def stripped(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: stripped(one) for key, one in value.items() if key != "field-id"}
            return [stripped(one) for one in value] if isinstance(value, list) else value

        with pytest.raises(InvalidManifestError, match="have no ids"):
            decode_manifest(write_avro(stripped(entry_schema()), [entry()]))

    def test_duplicate_field_id_is_refused(self) -> None:
        schema = entry_schema()
        schema["fields"].insert(0, required("again", "int", 0))
        with pytest.raises(InvalidManifestError, match="two fields with the id 0"):
            decode_manifest(write_avro(schema, [{**entry(), "again": 1}]))

    def test_metric_of_another_type_is_refused(self) -> None:
        schema = entry_schema()
        for at, field in enumerate(schema["fields"][-1]["type"]["fields"]):
            if field["name"] == "value_counts":
                schema["fields"][-1]["type"]["fields"][at] = pairs("value_counts", 119, 120, "string", 109)
        with pytest.raises(InvalidManifestError, match="field 'value_counts' is not map<int, long>"):
            decode_manifest(write_avro(schema, [entry(value_counts=[{"key": 1, "value": "x"}])]))

    def test_newer_format_version_is_unsupported(self) -> None:
        with pytest.raises(UnsupportedError, match="format version 4"):
            decode_manifest(write_avro(entry_schema(), [], format_version="4"))

    @pytest.mark.parametrize("text", ["0", "-1", "two", "", "9" * 400])
    def test_malformed_format_version_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidManifestError, match=r"format.version"):
            decode_manifest(write_avro(entry_schema(), [], format_version=text))

    def test_unknown_content_is_refused(self) -> None:
        with pytest.raises(InvalidManifestError, match="content in its header is 'both'"):
            decode_manifest(write_avro(entry_schema(), [], content="both"))

    def test_encrypted_manifest_is_recognised(self) -> None:
        with pytest.raises(UnsupportedError, match="it is encrypted"):
            decode_manifest(b"AGS1" + bytes(100), path="m.avro")
        with pytest.raises(UnsupportedError, match="it is encrypted"):
            decode_manifest(write_avro(entry_schema(), []), manifest=manifest(key_metadata=b"key"))

    @pytest.mark.parametrize("fields", [None, ["file_path"]])
    def test_entries_of_encrypted_files_are_recognised_for_any_columns(self, fields: list[str] | None) -> None:
        data = write_avro(entry_schema(), [entry(0), entry(1, key_metadata=b"key")])
        with pytest.raises(UnsupportedError, match="it tracks encrypted files"):
            decode_manifest(data, fields=fields)
        assert len(decode_manifest(data, fields=fields, may_be_encrypted=True)) == 2

    def test_empty_key_metadata_means_unencrypted(self) -> None:
        assert len(decode_manifest(write_avro(entry_schema(), [entry(key_metadata=b"")]))) == 1

    def test_parquet_manifest_is_recognised(self) -> None:
        with pytest.raises(UnsupportedError, match="Parquet"):
            decode_manifest(b"PAR1" + bytes(100))


def test_null_pair_values_are_ignored() -> None:
    schema = entry_schema()
    for at, field in enumerate(schema["fields"][-1]["type"]["fields"]):
        if field["name"] == "value_counts":
            schema["fields"][-1]["type"]["fields"][at] = pairs("value_counts", 119, 120, ["null", "long"], 109)
    row = entry(value_counts=[{"key": 1, "value": None}, {"key": 2, "value": 3}, {"key": 2, "value": 4}])
    (found,) = iter_entries(decode_manifest(write_avro(schema, [row])))
    assert found.data_file.value_counts == {2: 4}


def test_equality_ids_may_be_longs() -> None:
    schema = entry_schema()
    for field in schema["fields"][-1]["type"]["fields"]:
        if field["name"] == "equality_ids":
            field["type"][1]["items"] = "long"
    data = write_avro(schema, [entry(content=2, equality_ids=[1, 2])], content="deletes")
    columns = decode_manifest(data)
    assert columns.column("equality_ids").type == pa.list_(pa.int32())
    assert next(iter_entries(columns)).data_file.equality_ids == (1, 2)
