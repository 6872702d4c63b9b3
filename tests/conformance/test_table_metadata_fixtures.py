"""Iceberg Java's table metadata files, and the field tables of the specification's Appendix C."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frazil.codec.table_metadata_json import decode_table_metadata, encode_table_metadata
from frazil.errors import FrazilError, InvalidMetadataError, UnsupportedError
from frazil.spec.snapshot import SnapshotRef
from frazil.spec.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from frazil.spec.table_metadata import TableMetadata

GOOD = [
    "TableMetadataV1Valid",
    "TableMetadataV2Valid",
    "TableMetadataV2ValidMinimal",
    "TableMetadataV3ValidMinimal",
    "TableMetadataStatisticsFiles",
    "TableMetadataPartitionStatisticsFiles",
]

BAD: dict[str, tuple[type[FrazilError], str]] = {
    "TableMetadataUnsupportedVersion": (UnsupportedError, "format-version 42"),
    "TableMetadataV1MissingSchemaType": (InvalidMetadataError, "schema.type"),
    "TableMetadataV2CurrentSchemaNotFound": (InvalidMetadataError, "current-schema-id"),
    "TableMetadataV2MissingLastPartitionId": (InvalidMetadataError, "last-partition-id"),
    "TableMetadataV2MissingPartitionSpecs": (InvalidMetadataError, "partition-specs"),
    "TableMetadataV2MissingSchemas": (InvalidMetadataError, "schemas"),
    "TableMetadataV2MissingSortOrder": (InvalidMetadataError, "sort-orders"),
}


def load(fixtures_dir: Path, name: str) -> TableMetadata:
    path = fixtures_dir / "table-metadata" / f"{name}.json"
    return decode_table_metadata(path.read_bytes(), path=str(path))


def without_defaults(value: Any) -> Any:
    """Return a document without what writers add where a file has left it out."""
    if isinstance(value, dict):
        return {key: without_defaults(one) for key, one in value.items() if key != "schema-id"}
    return [without_defaults(one) for one in value] if isinstance(value, list) else value


def test_every_fixture_is_accounted_for(fixtures_dir: Path) -> None:
    assert {path.stem for path in (fixtures_dir / "table-metadata").iterdir()} == {*GOOD, *BAD}


@pytest.mark.parametrize("name", GOOD)
def test_valid_fixture_round_trips(fixtures_dir: Path, name: str) -> None:
    table = load(fixtures_dir, name)
    text = encode_table_metadata(table)
    assert decode_table_metadata(text) == table
    assert encode_table_metadata(decode_table_metadata(text)) == text
    original = json.loads((fixtures_dir / "table-metadata" / f"{name}.json").read_bytes())
    written = json.loads(text)
    assert {key: without_defaults(written[key]) for key in original} == without_defaults(original)


@pytest.mark.parametrize("name", BAD)
def test_invalid_fixture_is_refused_with_the_field_name(fixtures_dir: Path, name: str) -> None:
    error, field = BAD[name]
    with pytest.raises(error) as caught:
        load(fixtures_dir, name)
    assert field in caught.value.message
    assert str(caught.value.context["path"]).endswith(f"{name}.json")


def test_full_v2_fixture_is_read_like_iceberg_java(fixtures_dir: Path) -> None:
    table = load(fixtures_dir, "TableMetadataV2Valid")
    assert table.table_uuid == "9c12d441-03fe-4693-9a96-a0705ddf69c1"
    assert (table.last_sequence_number, table.last_updated_ms, table.last_column_id) == (34, 1602638573590, 3)
    assert [one.schema_id for one in table.schemas] == [0, 1]
    assert table.current_schema.identifier_field_ids == (1, 2)
    assert str(table.default_spec.fields[0]) == "1000: x: identity(1)"
    assert [str(one) for one in table.default_sort_order.fields] == [
        "identity(2) asc nulls first",
        "bucket[4](3) desc nulls last",
    ]
    assert [one.snapshot_id for one in table.snapshots] == [3051729675574597004, 3055729675574597004]
    assert table.current_snapshot is not None
    assert table.current_snapshot.parent_snapshot_id == 3051729675574597004
    assert table.refs == {"main": SnapshotRef(3055729675574597004)}


def test_v3_fixture_has_row_ids_and_defaults(fixtures_dir: Path) -> None:
    table = load(fixtures_dir, "TableMetadataV3ValidMinimal")
    assert (table.format_version, table.next_row_id) == (3, 0)
    assert (table.current_schema.field("x").initial_default, table.current_schema.field("x").write_default) == (1, 1)


def test_v1_fixture_gets_default_values(fixtures_dir: Path) -> None:
    table = load(fixtures_dir, "TableMetadataV1Valid")
    assert (table.current_schema_id, table.default_spec_id, table.last_partition_id) == (0, 0, 1000)
    assert (table.current_snapshot_id, table.refs) == (None, {})


def test_statistics_fixtures_are_read(fixtures_dir: Path) -> None:
    blob = BlobMetadata("ndv", 3055729675574597004, 1, (1,))
    assert load(fixtures_dir, "TableMetadataStatisticsFiles").statistics == (
        StatisticsFile(3055729675574597004, "s3://a/b/stats.puffin", 413, 42, (blob,)),
    )
    assert load(fixtures_dir, "TableMetadataPartitionStatisticsFiles").partition_statistics == (
        PartitionStatisticsFile(3055729675574597004, "s3://a/b/partition-stats.parquet", 43),
    )
