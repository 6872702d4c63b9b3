"""Iceberg Java's view metadata files, and the example of the view specification's Appendix A."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frazil.codec.view_metadata_json import decode_view_metadata, encode_view_metadata, encode_view_object
from frazil.errors import InvalidMetadataError
from frazil.spec.schema import Schema
from frazil.spec.types import DATE, INT, NestedField
from frazil.spec.view_evolution import new_view_metadata
from frazil.spec.view_metadata import SqlRepresentation, ViewVersion
from tests.support.view_changes import replace_view

APPENDIX_A: dict[str, Any] = {
    "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
    "format-version": 1,
    "location": "s3://bucket/warehouse/default.db/event_agg",
    "current-version-id": 2,
    "properties": {"comment": "Daily event counts"},
    "versions": [
        {
            "version-id": at,
            "timestamp-ms": 1573518431292 if at == 1 else 1573518981593,
            "schema-id": 1,
            "default-catalog": "prod",
            "default-namespace": ["default"],
            "summary": {"engine-name": "Spark", "engine-version": "3.3.2"},
            "representations": [
                {
                    "type": "sql",
                    "sql": f"SELECT\n    COUNT(1), CAST(event_ts AS DATE)\nFROM {source}\nGROUP BY 2",
                    "dialect": "spark",
                }
            ],
        }
        for at, source in ((1, "events"), (2, "prod.default.events"))
    ],
    "schemas": [
        {
            "schema-id": 1,
            "type": "struct",
            "fields": [
                {"id": 1, "name": "event_count", "required": False, "type": "int", "doc": "Count of events"},
                {"id": 2, "name": "event_date", "required": False, "type": "date"},
            ],
        }
    ],
    "version-log": [
        {"timestamp-ms": 1573518431292, "version-id": 1},
        {"timestamp-ms": 1573518981593, "version-id": 2},
    ],
}


def test_valid_view_fixture_round_trips(fixtures_dir: Path) -> None:
    data = (fixtures_dir / "view-metadata" / "ValidViewMetadata.json").read_bytes()
    view = decode_view_metadata(data)
    assert view.view_uuid == "fa6506c3-7681-40c8-86dc-e36561f83385"
    assert view.location == "s3://bucket/test/location"
    assert view.properties == {"some-key": "some-value", "comment": "some-comment"}
    assert view.current_version.representations == (SqlRepresentation("select 1 id, 'abc' data", "spark-sql"),)
    assert [part.name for part in view.current_schema] == ["x", "y", "z"]
    assert [(entry.timestamp_ms, entry.version_id) for entry in view.version_log] == [(4353, 1), (5555, 2)]
    assert encode_view_object(view) == json.loads(data)
    for compress in (False, True):
        assert decode_view_metadata(encode_view_metadata(view, compress=compress)) == view


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("ViewMetadataInvalidCurrentSchema", r"versions\[1\]\.schema-id: no schema has the id 1234"),
        ("ViewMetadataInvalidCurrentVersion", "current-version-id: no version has the id 1234"),
        ("ViewMetadataMissingCurrentVersion", "current-version-id: the required field is missing"),
        ("ViewMetadataMissingLocation", "location: the required field is missing"),
        ("ViewMetadataMultipleSQLsForDialect", r"versions\[0\]\.representations: .*'spark-sql'"),
    ],
)
def test_invalid_view_fixtures_are_refused_with_field_and_path(fixtures_dir: Path, name: str, field: str) -> None:
    data = (fixtures_dir / "view-metadata" / f"{name}.json").read_bytes()
    with pytest.raises(InvalidMetadataError, match=field) as caught:
        decode_view_metadata(data, path="s3://b/v.metadata.json")
    assert caught.value.context["path"] == "s3://b/v.metadata.json"
    assert caught.value.context["heading"] == "View Metadata"


def test_specification_view_example_round_trips() -> None:
    view = decode_view_metadata(json.dumps(APPENDIX_A).encode())
    assert encode_view_object(view) == APPENDIX_A


def test_replacing_the_specification_view_writes_its_second_example() -> None:
    """The example's schema id is 1 where ids start at 0 here; all else is the same."""
    schema = Schema((NestedField(1, "event_count", INT, doc="Count of events"), NestedField(2, "event_date", DATE)))
    first, second = (
        ViewVersion(
            1,
            0,
            one["timestamp-ms"],
            (SqlRepresentation(one["representations"][0]["sql"], "spark"),),
            ("default",),
            "prod",
            one["summary"],
        )
        for one in APPENDIX_A["versions"]
    )
    view = new_view_metadata(
        view_uuid=APPENDIX_A["view-uuid"],
        location=APPENDIX_A["location"],
        schema=schema,
        version=first,
        properties=APPENDIX_A["properties"],
    )
    expected = json.loads(json.dumps(APPENDIX_A).replace('"schema-id": 1', '"schema-id": 0'))
    assert encode_view_object(replace_view(view, second, schema)) == expected
