"""Manifest lists: every version both ways, and the numbers a commit assigns."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from frazil.codec.manifest_list_avro import (
    EncodedManifestList,
    assign_first_row_ids,
    decode_manifest_list,
    decode_manifest_list_columns,
    encode_manifest_list,
    manifests_of,
)
from frazil.errors import InvalidManifestError, InvalidRequestError, SchemaMismatchError, UnsupportedError
from frazil.spec.manifest import FieldSummary, ManifestContent, ManifestFile
from frazil.spec.versions import MANIFEST_FILE_FIELDS, requirement_of
from tests.support.avro_builders import list_row, manifest_list_schema, write_avro
from tests.support.manifest_builders import manifest_file

SNAPSHOT_ID = 77


def encode(*manifests: ManifestFile, **changes: Any) -> EncodedManifestList:
    known: dict[str, Any] = {
        "format_version": 2,
        "snapshot_id": SNAPSHOT_ID,
        "parent_snapshot_id": 5,
        "sequence_number": 9,
    }
    version = changes.get("format_version", 2)
    if version == 1:
        known["sequence_number"] = 0
    if version == 3:
        known["first_row_id"] = 1000
    return encode_manifest_list(manifests, **{**known, **changes})


def avro(data: bytes) -> tuple[dict[str, Any], dict[str, str], list[dict[str, Any]]]:
    reader = fastavro.reader(io.BytesIO(data))
    rows: list[Any] = list(reader)
    return json.loads(reader.metadata["avro.schema"]), dict(reader.metadata), rows


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 40, 3000])
def test_every_version_round_trips(version: int, count: int) -> None:
    manifests = [
        manifest_file(
            at,
            sequence_number=0 if version == 1 else at,
            min_sequence_number=0,
            content=ManifestContent.DELETES if version > 1 and at % 5 == 4 else ManifestContent.DATA,
            partitions=None if at % 7 == 0 else (FieldSummary(True, None, b"", None), FieldSummary(False, True)),
            key_metadata=b"k" if at % 11 == 0 else None,
        )
        for at in range(count)
    ]
    made = encode(*manifests, format_version=version)
    assert decode_manifest_list(made.data) == list(made.manifests)
    if version < 3:
        assert list(made.manifests) == manifests


@pytest.mark.parametrize("version", [1, 2, 3])
def test_each_version_writes_its_specified_fields(version: int) -> None:
    schema, _, _ = avro(encode(manifest_file(), format_version=version).data)
    assert schema["name"] == "manifest_file"
    fields = {one["name"]: one for one in schema["fields"]}
    for name in MANIFEST_FILE_FIELDS:
        requirement = requirement_of(MANIFEST_FILE_FIELDS, name, version)
        assert (name in fields) == (requirement != "omitted"), name
        if name in fields:
            assert isinstance(fields[name]["type"], list) == (requirement == "optional"), name
    ids = {name: one["field-id"] for name, one in fields.items()}
    assert ids.items() <= {
        "manifest_path": 500, "manifest_length": 501, "partition_spec_id": 502, "content": 517,
        "sequence_number": 515, "min_sequence_number": 516, "added_snapshot_id": 503, "added_files_count": 504,
        "existing_files_count": 505, "deleted_files_count": 506, "added_rows_count": 512,
        "existing_rows_count": 513, "deleted_rows_count": 514, "partitions": 507, "key_metadata": 519,
        "first_row_id": 520,
    }.items()  # fmt: skip
    summaries = fields["partitions"]["type"][1]
    assert (summaries["element-id"], summaries["items"]["name"]) == (508, "r508")
    assert [one["field-id"] for one in summaries["items"]["fields"]] == [509, 518, 510, 511]


@pytest.mark.parametrize(
    "version, expected",
    [
        (1, {"snapshot-id": "77", "parent-snapshot-id": "5", "format-version": "1"}),
        (2, {"snapshot-id": "77", "parent-snapshot-id": "5", "sequence-number": "9", "format-version": "2"}),
        (
            3,
            {
                "snapshot-id": "77",
                "parent-snapshot-id": "5",
                "sequence-number": "9",
                "first-row-id": "1000",
                "format-version": "3",
            },
        ),
    ],
)
def test_header_names_the_snapshot(version: int, expected: dict[str, str]) -> None:
    _, header, _ = avro(encode(manifest_file(), format_version=version).data)
    assert {key: value for key, value in header.items() if not key.startswith("avro.")} == expected


def test_missing_parent_is_written_as_null() -> None:
    _, header, _ = avro(encode(parent_snapshot_id=None).data)
    assert header["parent-snapshot-id"] == "null"


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "none"])
def test_every_codec_round_trips(codec: str) -> None:
    manifests = [manifest_file(at) for at in range(200)]
    assert decode_manifest_list(encode(*manifests, codec=codec).data) == manifests


def test_same_manifests_give_the_same_bytes() -> None:
    assert encode(manifest_file()).data == encode(manifest_file()).data
    assert encode(manifest_file(), sync_marker=bytes(16)).data.endswith(bytes(16))


def test_v1_lists_are_read_with_defaults() -> None:
    row = list_row(added_files_count=None, added_rows_count=None, partitions=None)
    (found,) = decode_manifest_list(write_avro(manifest_list_schema(1), [row]))
    assert (found.content, found.sequence_number, found.min_sequence_number) == (ManifestContent.DATA, 0, 0)
    assert (found.added_files_count, found.has_added_files, found.has_live_files) == (None, True, True)
    assert (found.existing_files_count, found.has_existing_files) == (0, False)
    assert (found.partitions, found.first_row_id) == (None, None)


def test_old_names_of_counts_are_read() -> None:
    schema = manifest_list_schema(2)
    for field in schema["fields"]:
        field["name"] = field["name"].replace("_files_count", "_data_files_count")
    row = {key.replace("_files_count", "_data_files_count"): value for key, value in list_row().items()}
    (found,) = decode_manifest_list(write_avro(schema, [row]))
    assert found.added_files_count == 1


@pytest.mark.parametrize("count", [3, 2000])
def test_lists_of_other_writers_are_read(count: int) -> None:
    rows = [list_row(at, partitions=None if at % 3 else list_row()["partitions"] * 2) for at in range(count)]
    found = decode_manifest_list(write_avro(manifest_list_schema(3), rows))
    assert [one.manifest_path for one in found] == [row["manifest_path"] for row in rows]
    summary = FieldSummary(False, None, b"a", b"z")
    assert [one.partitions for one in found[:3]] == [(summary, summary), None, None]


def test_columns_equal_values() -> None:
    rows = [list_row(at) for at in range(300)]
    table = decode_manifest_list_columns(write_avro(manifest_list_schema(2), rows))
    assert table.num_rows == 300
    assert table.column("sequence_number").type == pa.int64()
    assert manifests_of(table)[7].manifest_length == 5007


def test_delete_manifests_have_no_first_row_id() -> None:
    (found,) = decode_manifest_list(write_avro(manifest_list_schema(3), [list_row(content=1, first_row_id=7)]))
    assert found.first_row_id is None


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"content": 2}, "field 'content' is 2"),
        ({"content": -1}, "field 'content' is -1"),
        ({"manifest_length": -1}, "field 'manifest_length' is -1"),
        ({"sequence_number": -1}, "field 'sequence_number' is -1"),
        ({"partition_spec_id": -4}, "field 'partition_spec_id' is -4"),
        ({"deleted_files_count": -4}, "field 'deleted_files_count' is -4"),
        ({"first_row_id": -4}, "field 'first_row_id' is -4"),
        ({"manifest_path": ""}, "field 'manifest_path' is empty"),
    ],
)
def test_values_out_of_range_are_refused(changes: dict[str, Any], reason: str) -> None:
    data = write_avro(manifest_list_schema(3), [list_row(0), list_row(1, **changes)])
    with pytest.raises(InvalidManifestError, match=reason) as failure:
        decode_manifest_list(data, path="s3://b/snap.avro")
    assert failure.value.context == {"path": "s3://b/snap.avro", "heading": "Manifest Lists"}


@pytest.mark.parametrize("name", ["manifest_path", "manifest_length", "partition_spec_id", "added_snapshot_id"])
def test_missing_required_field_is_named(name: str) -> None:
    schema = manifest_list_schema(2)
    schema["fields"] = [one for one in schema["fields"] if one["name"] != name]
    with pytest.raises(InvalidManifestError, match=f"no field '{name}'"):
        decode_manifest_list(write_avro(schema, []))


def test_summaries_without_contains_null_are_refused() -> None:
    schema = manifest_list_schema(2)
    for field in schema["fields"]:
        if field["name"] == "partitions":
            del field["type"][1]["items"]["fields"][0]
    with pytest.raises(InvalidManifestError, match="field 'partitions'"):
        decode_manifest_list(write_avro(schema, [list_row()]))


def test_newer_and_encrypted_lists_are_recognised() -> None:
    with pytest.raises(UnsupportedError, match="format version 4"):
        decode_manifest_list(write_avro(manifest_list_schema(2), [], format_version="4"))
    with pytest.raises(UnsupportedError, match="it is encrypted"):
        decode_manifest_list(b"AGS1" + bytes(40))


class TestSequenceNumbers:
    """Specification: "Sequence Number Inheritance"."""

    def test_new_manifests_get_the_sequence_number_of_the_commit(self) -> None:
        new = manifest_file(0, added_snapshot_id=SNAPSHOT_ID, sequence_number=-1, min_sequence_number=-1)
        old = manifest_file(1)
        rewritten = manifest_file(2, added_snapshot_id=SNAPSHOT_ID, sequence_number=-1, min_sequence_number=4)
        found = decode_manifest_list(encode(new, old, rewritten).data)
        assert [one.sequence_number for one in found] == [9, 2, 9]
        assert [one.min_sequence_number for one in found] == [9, 1, 4]

    def test_manifest_without_a_snapshot_gets_that_of_the_commit(self) -> None:
        (found,) = encode(manifest_file(added_snapshot_id=None, sequence_number=-1, min_sequence_number=-1)).manifests
        assert (found.added_snapshot_id, found.sequence_number) == (SNAPSHOT_ID, 9)

    @pytest.mark.parametrize("name", ["sequence_number", "min_sequence_number"])
    def test_manifest_of_another_snapshot_must_have_sequence_numbers(self, name: str) -> None:
        with pytest.raises(InvalidRequestError, match="of snapshot 5 has no sequence number"):
            encode(manifest_file(0, **{name: -1}))

    def test_v1_has_no_sequence_numbers(self) -> None:
        (found,) = encode(manifest_file(), format_version=1).manifests
        assert (found.sequence_number, found.min_sequence_number) == (0, 0)
        with pytest.raises(InvalidRequestError, match="is 0, not 9"):
            encode(format_version=1, sequence_number=9)


class TestFirstRowIds:
    """Specification: "First Row ID Assignment"."""

    def test_first_row_ids_match_the_specification_example(self) -> None:
        manifests = [
            manifest_file(0, added_rows_count=75, existing_rows_count=0, first_row_id=925),
            manifest_file(1, added_rows_count=100, existing_rows_count=25),
            manifest_file(2, added_rows_count=0, existing_rows_count=100),
            manifest_file(3, added_rows_count=125, existing_rows_count=25),
        ]
        made = encode(*manifests, format_version=3)
        assert [one.first_row_id for one in decode_manifest_list(made.data)] == [925, 1000, 1125, 1225]
        assert made.next_row_id == 1375

    def test_delete_manifests_consume_no_row_ids(self) -> None:
        deletes = manifest_file(0, content=ManifestContent.DELETES)
        assigned, after = assign_first_row_ids([deletes, manifest_file(1)], 0)
        assert [one.first_row_id for one in assigned] == [None, 0]
        assert after == 150

    def test_earlier_versions_have_no_row_ids(self) -> None:
        made = encode(manifest_file(0, first_row_id=5))
        assert (made.manifests[0].first_row_id, made.next_row_id) == (None, None)

    def test_first_row_id_is_required_in_v3_and_refused_before(self) -> None:
        for changes in ({"format_version": 3, "first_row_id": None}, {"format_version": 2, "first_row_id": 0}):
            with pytest.raises(InvalidRequestError, match="first row id"):
                encode(**changes)


class TestRefusals:
    """What a version cannot hold."""

    def test_v1_has_no_delete_manifests(self) -> None:
        with pytest.raises(InvalidRequestError, match="format version 1 have no delete manifests"):
            encode(manifest_file(content=ManifestContent.DELETES), format_version=1)

    def test_v2_requires_counts(self) -> None:
        without = manifest_file(existing_rows_count=None)
        assert decode_manifest_list(encode(without, format_version=1).data)[0].existing_rows_count is None
        with pytest.raises(InvalidRequestError, match="has no existing_rows_count"):
            encode(without)

    def test_values_must_fit_their_columns(self) -> None:
        with pytest.raises(SchemaMismatchError, match="'added_files_count'"):
            encode(manifest_file(added_files_count=2**40))
