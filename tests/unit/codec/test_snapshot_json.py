"""Snapshots, references and logs as JSON: the short path and the long one agree."""

from __future__ import annotations

import json
import pickle
from typing import Any

import msgspec
import pytest

from frazil.codec.json_fields import JsonObject
from frazil.codec.json_text import encode_json
from frazil.codec.snapshot_json import (
    decode_metadata_log_entry,
    decode_ref,
    decode_snapshot,
    decode_snapshot_log,
    decode_snapshots,
    encode_metadata_log,
    encode_ref,
    encode_snapshot,
    encode_snapshot_log,
    encode_snapshots,
)
from frazil.codec.statistics_json import (
    decode_encryption_key,
    decode_partition_statistics_file,
    decode_statistics_file,
    encode_encryption_key,
    encode_partition_statistics_file,
    encode_statistics_file,
)
from frazil.errors import InvalidMetadataError
from frazil.spec.snapshot import Snapshot, SnapshotLogEntry, SnapshotRef
from frazil.spec.snapshot_list import SnapshotList
from tests.support.metadata_builders import START_MS, snapshot, snapshot_document, text_of


def obj(value: Any) -> JsonObject:
    return JsonObject(value, where="it", heading="H")


def read_list(*snapshots: dict[str, Any] | bytes) -> SnapshotList:
    texts = [one if isinstance(one, bytes) else text_of(one) for one in snapshots]
    return decode_snapshots(msgspec.Raw(b"[" + b",".join(texts) + b"]"), where="snapshots")


FULL = snapshot_document(5, 4, first_row_id=10, added_rows=3, key_id="k1")

GOOD: list[dict[str, Any]] = [
    snapshot_document(1),
    FULL,
    snapshot_document(1, summary=None),
    snapshot_document(1, summary={}),
    snapshot_document(1, sequence_number=None, schema_id=None),
    snapshot_document(1, key_id=""),
    snapshot_document(1, manifest_list=None, manifests=["a.avro", "b.avro"]),
    snapshot_document(1, manifests=["a.avro"]),
    snapshot_document(1, summary={"operation": "append", 'quo"ted': "back\\slash", "colon": "a:b", "ü": "\n"}),
    snapshot_document(1, unknown={"deep": [1, {"a": None}]}, other=2.5),
    snapshot_document(1, added_rows=3),
    snapshot_document(1, timestamp_ms=-5),
    snapshot_document(2**63 - 1, 2**63 - 2, timestamp_ms=2**63 - 1),
    {**snapshot_document(1), "parent-snapshot-id": None, "key-id": None, "first-row-id": None, "summary": None},
    {**snapshot_document(1), "parent-snapshot-id": -1},
]


@pytest.mark.parametrize("document", GOOD)
def test_fast_path_equals_slow_path(document: dict[str, Any]) -> None:
    whole = decode_snapshot(obj(document))
    [read] = read_list(document)
    assert read == whole
    head = read_list(document).heads[0]
    for name in ("snapshot_id", "parent_snapshot_id", "sequence_number", "timestamp_ms", "first_row_id", "added_rows"):
        assert getattr(head, name) == getattr(whole, name)


@pytest.mark.parametrize("document", GOOD)
def test_unread_snapshots_are_written_byte_for_byte(document: dict[str, Any]) -> None:
    text = json.dumps(document, indent=1).encode()
    assert encode_json(encode_snapshots(read_list(text), format_version=2)) == b"[" + text + b"]"


@pytest.mark.parametrize("document", GOOD)
def test_snapshots_round_trip_through_values(document: dict[str, Any]) -> None:
    whole = decode_snapshot(obj(document))
    assert decode_snapshot(obj(encode_snapshot(whole, format_version=2))) == whole


BAD: list[tuple[dict[str, Any] | bytes, str]] = [
    (snapshot_document(1, snapshot_id=None), "snapshots[1].snapshot-id: the required field is missing"),
    (snapshot_document(-3), "snapshots[1].snapshot-id: -3 is negative"),
    (snapshot_document(2**63), "snapshots[1].snapshot-id: 9223372036854775808 does not fit 64 bits"),
    (snapshot_document(1, snapshot_id="1"), "snapshots[1].snapshot-id: expected an integer, found the string '1'"),
    (snapshot_document(1, snapshot_id=True), "expected an integer, found the boolean True"),
    (snapshot_document(1, snapshot_id=1.0), "expected an integer, found the number 1.0"),
    (snapshot_document(1, -2), "snapshots[1].parent-snapshot-id: -2 is negative"),
    (snapshot_document(1, timestamp_ms=None), "snapshots[1].timestamp-ms: the required field is missing"),
    (snapshot_document(1, sequence_number=-1), "snapshots[1].sequence-number: -1 is negative"),
    (snapshot_document(1, schema_id=2**31), "snapshots[1].schema-id: 2147483648 does not fit 32 bits"),
    (snapshot_document(1, schema_id=-1), "snapshots[1].schema-id: -1 is negative"),
    (snapshot_document(1, manifest_list=None), "snapshots[1].manifest-list: the required field is missing"),
    (snapshot_document(1, manifest_list=5), "snapshots[1].manifest-list: expected a string"),
    (snapshot_document(1, manifests=[1]), "snapshots[1].manifests[0]: expected a string"),
    (snapshot_document(1, summary={"operation": 1}), "snapshots[1].summary['operation']: expected a string"),
    (snapshot_document(1, summary=[]), "snapshots[1].summary: expected an object, found a list"),
    (snapshot_document(1, first_row_id=1), "snapshots[1].added-rows: the required field is missing"),
    (snapshot_document(1, first_row_id=-1, added_rows=1), "snapshots[1].first-row-id: -1 is negative"),
    (snapshot_document(1, added_rows=-1), "snapshots[1].added-rows: -1 is negative"),
    (snapshot_document(1, key_id=5), "snapshots[1].key-id: expected a string"),
    (b"[]", "snapshots[1]: expected an object, found a list"),
    (b"null", "snapshots[1]: expected an object, found null"),
    (text_of(FULL)[:-1] + b',"snapshot-id":5}', "snapshots[1]: an object has the key 'snapshot-id' twice"),
    (text_of(FULL)[:-1] + b',"key-id":"k1"}', "snapshots[1]: an object has the key 'key-id' twice"),
    (text_of(FULL)[:-1] + b',"summary":null}', "snapshots[1]: an object has the key 'summary' twice"),
    (text_of(FULL).replace(b'"operation"', b'"x":"1","x":"2","operation"'), "the key 'x' twice"),
    (text_of(FULL).replace(b'"operation"', b'"x":"1","\\u0078":"2","operation"'), "the key 'x' twice"),
    (text_of(snapshot_document(1, odd={})).replace(b"{}", b'{"a":1,"a":1}'), "the key 'a' twice"),
]


@pytest.mark.parametrize("document, reason", BAD)
def test_invalid_snapshot_is_refused_with_its_position(document: dict[str, Any] | bytes, reason: str) -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        read_list(snapshot_document(77), document)
    assert reason in caught.value.message
    assert caught.value.context == {"heading": "Snapshots"}


def test_invalid_or_duplicate_snapshots_are_refused() -> None:
    with pytest.raises(InvalidMetadataError, match="Cannot read snapshots: expected a list"):
        decode_snapshots(msgspec.Raw(b"{}"), where="snapshots")
    with pytest.raises(InvalidMetadataError, match=r"Cannot read snapshots: .*two have the id 4"):
        read_list(snapshot_document(4), snapshot_document(4))


def test_unread_list_is_picklable() -> None:
    found = read_list(snapshot_document(1), FULL)
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert encode_json(encode_snapshots(again, format_version=2)) == encode_json(
        encode_snapshots(found, format_version=2)
    )


def test_read_and_unread_snapshots_are_written_together() -> None:
    found = read_list(snapshot_document(1)).with_added(snapshot(2, 1))
    assert [one["snapshot-id"] for one in json.loads(encode_json(encode_snapshots(found, format_version=2)))] == [1, 2]


class Foreign(msgspec.Struct):
    """A stored snapshot made by someone else."""

    whole: Any
    snapshot_id: int = 9
    parent_snapshot_id: int | None = None
    sequence_number: int = 9
    timestamp_ms: int = 0
    first_row_id: int | None = None
    added_rows: int | None = None

    def read(self) -> Snapshot:
        return self.whole  # type: ignore[no-any-return]


def test_snapshots_stored_elsewhere_are_read_before_writing() -> None:
    [encoded] = encode_snapshots(SnapshotList([Foreign(snapshot(9))]), format_version=2)
    assert encoded == encode_snapshot(snapshot(9), format_version=2)


def test_fields_have_the_order_of_iceberg_java() -> None:
    encoded = encode_snapshot(decode_snapshot(obj({"zzz": 1, **FULL})), format_version=3)
    assert list(encoded) == [
        "sequence-number", "snapshot-id", "parent-snapshot-id", "timestamp-ms", "summary", "manifest-list", "schema-id",
        "first-row-id", "added-rows", "key-id", "zzz",
    ]  # fmt: skip


def test_operation_comes_first_in_the_summary() -> None:
    encoded = encode_snapshot(snapshot(1, summary={"b": "1", "operation": "append", "a": "2"}), format_version=2)
    assert list(encoded["summary"]) == ["operation", "b", "a"]
    assert encode_snapshot(snapshot(1, summary={"b": "1"}), format_version=2)["summary"] == {"b": "1"}


def test_sequence_numbers_are_written_from_version_2_on() -> None:
    old = snapshot(1, sequence_number=0)
    assert "sequence-number" not in encode_snapshot(old, format_version=1)
    assert encode_snapshot(old, format_version=2)["sequence-number"] == 0


# References


@pytest.mark.parametrize(
    "document",
    [
        {"snapshot-id": 1, "type": "branch"},
        {"snapshot-id": 1, "type": "tag", "max-ref-age-ms": 5},
        {
            "snapshot-id": 1, "type": "branch", "min-snapshots-to-keep": 2, "max-snapshot-age-ms": 3,
            "max-ref-age-ms": 4, "new": {"a": 1},
        },
    ],
)  # fmt: skip
def test_references_round_trip(document: dict[str, Any]) -> None:
    assert encode_ref(decode_ref(obj(document))) == document


def test_reference_type_is_read_in_any_case() -> None:
    assert decode_ref(obj({"snapshot-id": 1, "type": "BRANCH"})) == SnapshotRef(1)


@pytest.mark.parametrize(
    "document, reason",
    [
        ({"type": "branch"}, "it.snapshot-id: the required field is missing"),
        ({"snapshot-id": 1}, "it.type: the required field is missing"),
        ({"snapshot-id": -1, "type": "branch"}, "it.snapshot-id: -1 is negative"),
        ({"snapshot-id": 1, "type": "twig"}, "it.type: expected branch or tag, found 'twig'"),
        ({"snapshot-id": 1, "type": "tag", "min-snapshots-to-keep": 1}, "min-snapshots-to-keep: only branches"),
        ({"snapshot-id": 1, "type": "branch", "max-ref-age-ms": 0}, "max-ref-age-ms is 0"),
        ({"snapshot-id": 1, "type": "branch", "max-ref-age-ms": 2**63}, "does not fit 64 bits"),
        ({"snapshot-id": 1, "type": "branch", "min-snapshots-to-keep": 2**31}, "does not fit 32 bits"),
    ],
)
def test_invalid_reference_is_refused(document: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        decode_ref(obj(document))
    assert reason in caught.value.message


# Logs


def read_log(text: bytes) -> tuple[SnapshotLogEntry, ...]:
    return decode_snapshot_log(msgspec.Raw(text), where="snapshot-log")


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [{"timestamp-ms": START_MS, "snapshot-id": 1}, {"timestamp-ms": -1, "snapshot-id": 0}],
        [{"timestamp-ms": 1, "snapshot-id": 1, "why": {"a": "\n"}}],
    ],
)
def test_snapshot_logs_round_trip(entries: list[dict[str, Any]]) -> None:
    assert encode_snapshot_log(read_log(text_of(entries))) == entries


def test_null_log_is_empty() -> None:
    assert read_log(b"null") == ()


@pytest.mark.parametrize(
    "text, reason",
    [
        (b"{}", "snapshot-log: expected a list"),
        (b"[1]", "snapshot-log[0]: expected an object"),
        (b'[{"timestamp-ms":1}]', "snapshot-log[0].snapshot-id: the required field is missing"),
        (b'[{"snapshot-id":1}]', "snapshot-log[0].timestamp-ms: the required field is missing"),
        (b'[{"timestamp-ms":1,"snapshot-id":-1}]', "snapshot-log[0].snapshot-id: -1 is negative"),
        (b'[{"timestamp-ms":1,"snapshot-id":1,"snapshot-id":1}]', "the key 'snapshot-id' twice"),
        (b'[{"timestamp-ms":1,"snapshot-id":1,"\\u0073napshot-id":1}]', "the key 'snapshot-id' twice"),
    ],
)
def test_invalid_snapshot_log_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        read_log(text)
    assert reason in caught.value.message


def test_metadata_logs_round_trip() -> None:
    document = {"timestamp-ms": 5, "metadata-file": "s3://x", "new": [1]}
    assert encode_metadata_log([decode_metadata_log_entry(obj(document))]) == [document]
    with pytest.raises(InvalidMetadataError, match=r"it\.metadata-file: the required field is missing"):
        decode_metadata_log_entry(obj({"timestamp-ms": 5}))


# Statistics and keys

BLOB = {"type": "ndv", "snapshot-id": 1, "sequence-number": 2, "fields": [1, 2], "properties": {"ndv": "5"}, "new": 1}
STATISTICS = {
    "snapshot-id": 1, "statistics-path": "s3://s", "file-size-in-bytes": 9, "file-footer-size-in-bytes": 4,
    "key-metadata": "a2V5", "blob-metadata": [BLOB], "new": {"a": 1},
}  # fmt: skip


def test_statistics_round_trip_with_unknown_fields_at_every_level() -> None:
    assert encode_statistics_file(decode_statistics_file(obj(STATISTICS))) == STATISTICS
    parts = {"snapshot-id": 1, "statistics-path": "s3://p", "file-size-in-bytes": 9, "new": 1}
    assert encode_partition_statistics_file(decode_partition_statistics_file(obj(parts))) == parts


@pytest.mark.parametrize("name", [name for name in STATISTICS if name not in ("key-metadata", "new")])
def test_statistics_without_a_required_field_are_refused(name: str) -> None:
    document = {key: value for key, value in STATISTICS.items() if key != name}
    with pytest.raises(InvalidMetadataError, match=f"it.{name}: the required field is missing"):
        decode_statistics_file(obj(document))


@pytest.mark.parametrize("name", ["type", "snapshot-id", "sequence-number", "fields"])
def test_blobs_without_a_required_field_are_refused(name: str) -> None:
    document = {**STATISTICS, "blob-metadata": [{key: value for key, value in BLOB.items() if key != name}]}
    with pytest.raises(InvalidMetadataError, match=rf"it\.blob-metadata\[0\]\.{name}: the required field is missing"):
        decode_statistics_file(obj(document))


def test_encryption_keys_round_trip() -> None:
    document = {
        "key-id": "a", "encrypted-key-metadata": "aWNlYmVyZwo=", "encrypted-by-id": "b", "properties": {"x": "y"},
        "new": 1,
    }  # fmt: skip
    key = decode_encryption_key(obj(document))
    assert key.encrypted_key_metadata == b"iceberg\n"
    assert encode_encryption_key(key) == document
    unpadded = decode_encryption_key(obj({"key-id": "a", "encrypted-key-metadata": "aWNlYmVyZwo"}))
    assert unpadded.encrypted_key_metadata == b"iceberg\n"


@pytest.mark.parametrize("text", ["a", "*", "aWNl YmVyZwo=", "ü"])
def test_key_that_is_not_base64_is_refused(text: str) -> None:
    with pytest.raises(InvalidMetadataError, match="encrypted-key-metadata: it is not base64 text"):
        decode_encryption_key(obj({"key-id": "a", "encrypted-key-metadata": text}))
