"""Metadata that breaks the specification and is read all the same, as Iceberg Java does; nothing odd is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from frazil.codec.table_metadata_json import decode_table_metadata, encode_table_metadata
from frazil.errors import InvalidMetadataError

Document = dict[str, Any]


def document(version: int = 2) -> Document:
    """The least metadata there is, with a snapshot."""
    made: Document = {
        "format-version": version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://bucket/t",
        "last-sequence-number": 1,
        "last-updated-ms": 1000,
        "last-column-id": 2,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [
                    {"id": 1, "name": "a", "required": False, "type": "long"},
                    {"id": 2, "name": "b", "required": False, "type": "string"},
                ],
            }
        ],
        "current-schema-id": 0,
        "partition-specs": [
            {"spec-id": 0, "fields": [{"source-id": 1, "field-id": 1000, "name": "p", "transform": "identity"}]}
        ],
        "default-spec-id": 0,
        "last-partition-id": 1000,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "current-snapshot-id": 7,
        "snapshots": [
            {
                "snapshot-id": 7,
                "sequence-number": 1,
                "timestamp-ms": 1000,
                "manifest-list": "s3://bucket/t/m.avro",
                "summary": {"operation": "append"},
            }
        ],
    }
    if version == 1:
        made["snapshots"][0].pop("sequence-number")
    return made if version < 3 else {**made, "next-row-id": 0}


def column(made: Document) -> Document:
    found: Document = made["schemas"][0]["fields"][1]
    return found


def row_ids(made: Document) -> None:
    made["snapshots"][0].update({"first-row-id": 0, "added-rows": 5})


ODD: dict[str, tuple[int, Callable[[Document], object], str]] = {
    "initial default before v3": (2, lambda made: column(made).update({"initial-default": "x"}), "initial default"),
    "initial default in v1": (1, lambda made: column(made).update({"initial-default": "x"}), "initial default"),
    "a type of v3": (2, lambda made: column(made).update(type="timestamp_ns"), "needs version 3"),
    "an impossible decimal": (2, lambda made: column(made).update(type="decimal(5, 9)"), "decimal(5, 9)"),
    "last-column-id behind": (2, lambda made: made.update({"last-column-id": 1}), "last-column-id is 1"),
    "last-partition-id behind": (2, lambda made: made.update({"last-partition-id": 999}), "last-partition-id is 999"),
    "next-row-id behind": (3, row_ids, "next-row-id is 0"),
    "a uuid of another form": (2, lambda made: made.update({"table-uuid": "t-1"}), "'t-1' is not a UUID"),
}


@pytest.mark.parametrize("name", ODD)
def test_metadata_that_iceberg_java_accepts_is_read_with_a_warning(name: str) -> None:
    version, change, what = ODD[name]
    made = document(version)
    assert decode_table_metadata(json.dumps(made).encode()).oddities == ()
    change(made)
    metadata = decode_table_metadata(json.dumps(made).encode())
    assert any(what in one for one in metadata.oddities)
    assert metadata.current_snapshot_id == 7


@pytest.mark.parametrize("name", [one for one in ODD if one.endswith("behind")])
def test_stale_counters_are_corrected_when_written(name: str) -> None:
    version, change, _ = ODD[name]
    made = document(version)
    change(made)
    metadata = decode_table_metadata(json.dumps(made).encode())
    again = decode_table_metadata(encode_table_metadata(metadata))
    assert again == metadata
    assert again.oddities == ()
    assert (again.last_column_id, again.last_partition_id) == (2, 1000)
    assert again.next_row_id == (5 if version == 3 else 0)


@pytest.mark.parametrize("name", ["initial default before v3", "a type of v3"])
def test_features_of_a_later_version_are_written_after_an_upgrade_only(name: str) -> None:
    version, change, _ = ODD[name]
    made = document(version)
    change(made)
    metadata = decode_table_metadata(json.dumps(made).encode())
    with pytest.raises(InvalidMetadataError, match="needs version 3") as caught:
        encode_table_metadata(metadata)
    assert "t.upgrade(3)" in str(caught.value.hint)
    encode_table_metadata(replace(metadata, format_version=3))


def test_invalid_old_schema_does_not_block_writing() -> None:
    made = document()
    old = json.loads(json.dumps(made["schemas"][0]))
    old["fields"][1]["type"] = "decimal(5, 9)"
    made["schemas"][0]["schema-id"] = made["current-schema-id"] = 1
    made["schemas"].append(old)
    metadata = decode_table_metadata(json.dumps(made).encode())
    assert decode_table_metadata(encode_table_metadata(metadata)) == metadata
