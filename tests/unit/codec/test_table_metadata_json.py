"""Metadata files of each version: what is filled in, what is required, what is written."""

from __future__ import annotations

import gzip
import json
import pickle
from typing import Any

import pytest

from frazil.codec.table_metadata_json import (
    decode_table_metadata,
    encode_table_metadata,
    metadata_file_name,
)
from frazil.errors import InvalidMetadataError, InvalidRequestError, UnsupportedError
from frazil.spec.partitioning import UNPARTITIONED
from frazil.spec.snapshot import SnapshotRef
from frazil.spec.sorting import UNSORTED, build_sort_order
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.upgrade import upgrade_table_metadata
from frazil.spec.versions import TABLE_METADATA_FIELDS
from tests.support import builders
from tests.support.metadata_builders import (
    LOCATION,
    UUID,
    chain,
    document,
    metadata,
    snapshot,
    snapshot_document,
    text_of,
)


def read(made: dict[str, Any]) -> TableMetadata:
    return decode_table_metadata(text_of(made))


def written(table: TableMetadata) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode_table_metadata(table))
    return found


@pytest.mark.parametrize("version", [1, 2, 3])
def test_document_round_trips_unchanged(version: int) -> None:
    made = document(version)
    assert written(read(made)) == made


@pytest.mark.parametrize("version", [1, 2, 3])
def test_metadata_round_trips_by_value(version: int) -> None:
    snapshots = [snapshot(one, one - 1 or None, sequence_number=one if version > 1 else 0) for one in (1, 2, 3)]
    table = metadata(*snapshots, format_version=version)
    assert decode_table_metadata(encode_table_metadata(table)) == table


@pytest.mark.parametrize("version", [1, 2, 3])
def test_unknown_fields_are_preserved_at_every_level(version: int) -> None:
    made = document(
        version,
        statistics=[
            {
                "snapshot-id": 2, "statistics-path": "s", "file-size-in-bytes": 4, "file-footer-size-in-bytes": 2,
                "blob-metadata": [
                    {"type": "t", "snapshot-id": 2, "sequence-number": 2, "fields": [1], "a-blob": {"x": [None]}}
                ],
                "a-file": 1,
            }
        ],
        partition_statistics=[
            {"snapshot-id": 2, "statistics-path": "s", "file-size-in-bytes": 4, "a-partition-file": 1.5}
        ],
        encryption_keys=[{"key-id": "k", "encrypted-key-metadata": "", "a-key": True}],
    )  # fmt: skip
    made["a-root"] = {"deep": [{"er": '\u00fc\n"'}]}
    made["refs"]["main"]["a-ref"] = []
    made["snapshots"][0]["a-snapshot"] = {"x": 1}
    made["snapshot-log"][0]["a-log"] = "x"
    made["metadata-log"][0]["a-file"] = "x"
    made["schemas"][0]["a-schema"] = 1
    made["schemas"][0]["fields"][0]["a-field"] = 1
    made["partition-specs"][0]["a-spec"] = 1
    made["sort-orders"][0]["an-order"] = 1
    assert written(read(made)) == made
    assert read(written(read(made))) == read(made)


def test_fields_have_the_order_of_iceberg_java() -> None:
    order = [
        "format-version", "table-uuid", "location", "last-sequence-number", "last-updated-ms", "last-column-id",
        "current-schema-id", "schemas", "default-spec-id", "partition-specs", "last-partition-id",
        "default-sort-order-id", "sort-orders", "properties", "current-snapshot-id", "next-row-id", "refs",
        "snapshots", "statistics", "partition-statistics", "snapshot-log", "metadata-log", "mine",
    ]  # fmt: skip
    assert list(written(read({"mine": 1, **document(3)}))) == order
    assert list(written(read(document(1))))[:11] == [
        "format-version", "table-uuid", "location", "last-updated-ms", "last-column-id", "schema", "current-schema-id",
        "schemas", "partition-spec", "default-spec-id", "partition-specs",
    ]  # fmt: skip


REQUIRED = {
    version: [
        name.replace("_", "-") for name, rules in TABLE_METADATA_FIELDS.items() if rules[version - 1] == "required"
    ]
    for version in (2, 3)
}


@pytest.mark.parametrize("version, name", [(version, name) for version in (2, 3) for name in REQUIRED[version]])
def test_missing_required_field_is_named(version: int, name: str) -> None:
    made = document(version)
    del made[name]
    with pytest.raises(InvalidMetadataError, match=f"^Cannot read {name}: the required field is missing"):
        read(made)


@pytest.mark.parametrize("name", ["format-version", "location", "last-updated-ms", "last-column-id"])
def test_missing_field_required_in_version_1_is_named(name: str) -> None:
    made = document(1)
    del made[name]
    with pytest.raises(InvalidMetadataError, match=f"^Cannot read {name}: the required field is missing"):
        read(made)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_optional_field_may_be_absent_or_null(version: int) -> None:
    optional = [
        name.replace("_", "-")
        for name, rules in TABLE_METADATA_FIELDS.items()
        if rules[version - 1] == "optional" and name.replace("_", "-") not in ("schemas", "partition-specs")
    ]
    made = document(version, refs=None)
    for name in optional:
        if version == 1 and name in ("current-schema-id", "default-spec-id", "default-sort-order-id"):
            continue
        made.pop(name, None)
    bare = read(made)
    assert (bare.current_snapshot_id, len(bare.snapshots), bare.refs, bare.properties) == (None, 0, {}, {})
    nulls = {name: None for name in optional if name not in made}
    assert read({**made, **nulls}) == bare


# Version 1 as old writers wrote it


def old_v1(**fields: Any) -> dict[str, Any]:
    """A document as the first writers wrote it."""
    return document(
        1, table_uuid=None, current_schema_id=None, schemas=None, default_spec_id=None, partition_specs=None,
        last_partition_id=None, default_sort_order_id=None, sort_orders=None, refs=None, statistics=None,
        partition_statistics=None, metadata_log=None, **fields,
    )  # fmt: skip


def test_oldest_form_of_version_1_gets_defaults() -> None:
    table = read(old_v1())
    assert table.table_uuid is None
    assert [one.schema_id for one in table.schemas] == [0]
    assert (table.partition_specs, table.default_spec_id, table.last_partition_id) == ((UNPARTITIONED,), 0, 999)
    assert (table.sort_orders, table.default_sort_order_id) == ((UNSORTED,), 0)
    assert table.refs == {"main": SnapshotRef(2)}
    assert (table.last_sequence_number, table.snapshots[0].sequence_number) == (0, 0)


def test_id_of_the_single_schema_is_the_current_one() -> None:
    made = old_v1()
    made["schema"]["schema-id"] = 6
    table = read(made)
    assert (table.current_schema_id, table.current_schema.schema_id) == (6, 6)


def test_partition_fields_without_ids_are_numbered_in_order() -> None:
    fields = [
        {"name": "x", "transform": "identity", "source-id": 1},
        {"name": "y", "transform": "bucket[4]", "source-id": 2},
    ]
    table = read(old_v1(partition_spec=fields))
    assert [one.field_id for one in table.default_spec.fields] == [1000, 1001]
    assert table.last_partition_id == 1001


def test_snapshots_with_inline_manifests_are_preserved() -> None:
    made = old_v1(snapshots=[snapshot_document(2, sequence_number=None, manifest_list=None, manifests=["a", "b"])])
    table = read(made)
    assert table.snapshots[0].manifests == ("a", "b")
    assert written(table)["snapshots"] == made["snapshots"]


def test_oldest_form_is_written_back_in_both_forms() -> None:
    found = written(read(old_v1()))
    assert found["schema"] == found["schemas"][0]
    assert found["partition-spec"] == found["partition-specs"][0]["fields"] == []
    assert "table-uuid" not in found
    assert "last-sequence-number" not in found
    assert read(found) == read(old_v1())


@pytest.mark.parametrize("name", ["schema", "partition-spec"])
def test_version_1_requires_the_old_form_if_the_new_one_is_absent(name: str) -> None:
    made = old_v1()
    del made[name]
    with pytest.raises(InvalidMetadataError, match=f"Cannot read {name}: the required field is missing"):
        read(made)


@pytest.mark.parametrize("name", ["current-schema-id", "default-spec-id", "default-sort-order-id"])
def test_list_in_version_1_requires_its_default_id(name: str) -> None:
    made = document(1)
    del made[name]
    with pytest.raises(InvalidMetadataError, match=f"Cannot read {name}: the required field is missing"):
        read(made)


def test_lists_win_over_deprecated_fields() -> None:
    made = document(1)
    made["schema"] = {"type": "nonsense"}
    made["partition-spec"] = "nonsense"
    assert read(made) == read(document(1))


def test_later_versions_drop_deprecated_fields() -> None:
    made = {**document(2), "schema": {"type": "nonsense"}, "partition-spec": "nonsense"}
    table = read(made)
    assert table.extra == {}
    assert written(table) == document(2)


def test_fields_of_later_versions_stay_unknown_until_the_upgrade() -> None:
    v1 = read({**document(1), "last-sequence-number": 7, "next-row-id": 9})
    assert (v1.last_sequence_number, v1.next_row_id) == (0, 0)
    assert written(v1)["last-sequence-number"] == 7
    v3 = written(upgrade_table_metadata(v1, 3))
    assert (v3["last-sequence-number"], v3["next-row-id"]) == (0, 0)


def test_upgraded_table_is_written_in_its_version() -> None:
    found = written(upgrade_table_metadata(read(old_v1()), 2, new_uuid=UUID))
    assert found["table-uuid"] == UUID
    assert [one["sequence-number"] for one in found["snapshots"]] == [0, 0]
    assert "schema" not in found and "partition-spec" not in found
    assert read(found).format_version == 2


# Snapshots and references


@pytest.mark.parametrize("version, expected", [(1, -1), (2, -1), (3, None)])
def test_missing_current_snapshot_is_written_as_each_version_expects(version: int, expected: int | None) -> None:
    assert written(metadata(format_version=version))["current-snapshot-id"] == expected


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("value", [-1, None])
def test_minus_one_and_null_both_mean_no_current_snapshot(version: int, value: int | None) -> None:
    made = document(version, refs=None, snapshot_log=None)
    made["current-snapshot-id"] = value
    assert read(made).current_snapshot_id is None


def test_main_defaults_to_the_current_snapshot() -> None:
    made = document(2, refs={"t": {"snapshot-id": 1, "type": "tag"}})
    assert read(made).refs == {"main": SnapshotRef(2), "t": SnapshotRef(1, "tag")}
    assert read({**document(2), "refs": None}).refs == {"main": SnapshotRef(2)}


def test_unsorted_order_is_added_if_it_is_default_and_absent() -> None:
    order = build_sort_order(builders.schema(), ["id"])
    made = document(2, sort_orders=[])
    assert read(made).sort_orders == (UNSORTED,)
    made["sort-orders"] = written(metadata(sort_orders=(order,), default_sort_order_id=1))["sort-orders"]
    assert [one.order_id for one in read(made).sort_orders] == [0, 1]


def test_trailing_slashes_of_a_location_are_removed() -> None:
    assert read(document(2, location=LOCATION + "//")).location == LOCATION
    assert read(document(2, location="s3://")).location == "s3://"


def test_encrypted_snapshots_keep_their_key_id() -> None:
    keys = [{"key-id": "k", "encrypted-key-metadata": "c2VjcmV0"}]
    made = document(3, encryption_keys=keys, snapshots=[snapshot_document(1), snapshot_document(2, 1, key_id="k")])
    table = read(made)
    assert table.snapshots[1].key_id == "k"
    assert table.encryption_key("k").encrypted_key_metadata == b"secret"
    assert written(table) == made


def test_loaded_metadata_is_picklable() -> None:
    table = read(document(3))
    again = pickle.loads(pickle.dumps(table))
    assert again == table
    assert encode_table_metadata(again) == encode_table_metadata(table)


def test_metadata_violating_an_invariant_is_never_written() -> None:
    with pytest.raises(InvalidMetadataError, match="current_schema_id is 8"):
        encode_table_metadata(metadata(current_schema_id=8))


def test_invalid_unicode_is_never_written() -> None:
    with pytest.raises(InvalidRequestError, match="Cannot write JSON"):
        encode_table_metadata(metadata(properties={"a": "\ud800"}))


# Files


def test_gzip_is_recognised_by_content() -> None:
    text = text_of(document(2))
    for path in ("v1.gz.metadata.json", "v1.metadata.json.gz", "v1.metadata.json", None):
        assert decode_table_metadata(gzip.compress(text), path=path) == decode_table_metadata(text, path=path)


def test_gzip_output_is_deterministic() -> None:
    table = chain(3)
    packed = encode_table_metadata(table, compression="gzip")
    assert packed == encode_table_metadata(table, compression="gzip")
    assert gzip.decompress(packed) == encode_table_metadata(table)


def test_unknown_compression_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="'zstd': use none or gzip"):
        encode_table_metadata(chain(1), compression="zstd")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="'zstd': use none or gzip"):
        metadata_file_name(1, UUID, "zstd")  # type: ignore[arg-type]


def test_oversized_metadata_is_refused_compressed_or_not() -> None:
    text = text_of(document(2))
    for data in (text, gzip.compress(text)):
        with pytest.raises(InvalidMetadataError, match="more than"):
            decode_table_metadata(data, max_bytes=len(text) - 1)
        decode_table_metadata(data, max_bytes=len(text))


def test_errors_have_path_and_heading() -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        decode_table_metadata(b"{}", path="s3://b/v1.metadata.json")
    assert caught.value.context == {"path": "s3://b/v1.metadata.json", "heading": "Format Versioning"}
    with pytest.raises(UnsupportedError) as unsupported:
        decode_table_metadata(b'{"format-version":4}', path="s3://b/v1.metadata.json")
    assert unsupported.value.context["path"] == "s3://b/v1.metadata.json"


def test_invariants_are_reported_with_json_names() -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        decode_table_metadata(text_of(document(2, default_spec_id=4)), path="p")
    assert "default-spec-id is 4, and no spec in partition-specs has that id" in caught.value.message
    assert caught.value.context["path"] == "p"


def test_file_names_have_version_and_uuid() -> None:
    assert metadata_file_name(3, UUID) == f"00003-{UUID}.metadata.json"
    assert metadata_file_name(123456, UUID, "gzip") == f"123456-{UUID}.gz.metadata.json"
    with pytest.raises(InvalidRequestError):
        metadata_file_name(-1, UUID)
