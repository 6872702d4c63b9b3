"""Appendix C, "Schemas": the table of types, and the schemas in the public fixtures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frazil.codec.json_fields import JsonObject
from frazil.codec.schema_json import decode_schema, encode_schema, encode_type
from frazil.errors import InvalidMetadataError
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
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    Type,
)
from tests.support.type_json import decode_type


@pytest.mark.parametrize(
    "kind, form",
    [
        (UNKNOWN, "unknown"),
        (BOOLEAN, "boolean"),
        (INT, "int"),
        (LONG, "long"),
        (FLOAT, "float"),
        (DOUBLE, "double"),
        (DATE, "date"),
        (TIME, "time"),
        (TIMESTAMP, "timestamp"),
        (TIMESTAMPTZ, "timestamptz"),
        (TIMESTAMP_NS, "timestamp_ns"),
        (TIMESTAMPTZ_NS, "timestamptz_ns"),
        (STRING, "string"),
        (UUID, "uuid"),
        (FixedType(16), "fixed[16]"),
        (BINARY, "binary"),
        (DecimalType(9, 2), "decimal(9, 2)"),
        (VARIANT, "variant"),
        (GeometryType("srid:4326"), "geometry(srid:4326)"),
        (GeographyType("srid:4326", "spherical"), "geography(srid:4326, spherical)"),
        (
            ListType(3, STRING, element_required=True),
            {"type": "list", "element-id": 3, "element-required": True, "element": "string"},
        ),
        (
            MapType(4, STRING, 5, DOUBLE),
            {
                "type": "map",
                "key-id": 4,
                "key": "string",
                "value-id": 5,
                "value-required": False,
                "value": "double",
            },
        ),
    ],
)
def test_every_type_has_its_specified_json_form(kind: Type, form: Any) -> None:
    assert encode_type(kind) == form
    assert decode_type(form) == kind


def test_alternative_spelling_of_decimals_is_read() -> None:
    assert decode_type("decimal(9,2)") == DecimalType(9, 2)


def test_specified_struct_example_round_trips() -> None:
    element = {"type": "list", "element-id": 3, "element": "string", "element-required": False}
    value = {
        "type": "struct",
        "fields": [
            {
                "id": 1,
                "name": "id",
                "required": True,
                "type": "uuid",
                "initial-default": "0db3e2a8-9d1d-42b9-aa7b-74ebe558dceb",
                "write-default": "ec5911be-b0a7-458c-8438-c9a3e53cffae",
            },
            {"id": 2, "name": "data", "required": False, "type": element},
        ],
    }
    assert encode_type(decode_type(value)) == value


VALID = [
    "TableMetadataV1Valid.json",
    "TableMetadataV2Valid.json",
    "TableMetadataV2ValidMinimal.json",
    "TableMetadataV3ValidMinimal.json",
]


@pytest.mark.parametrize("name", VALID)
def test_schemas_of_valid_fixtures_round_trip(fixtures_dir: Path, name: str) -> None:
    document = json.loads((fixtures_dir / "table-metadata" / name).read_text())
    schemas = document.get("schemas") or [document["schema"]]
    for value in schemas:
        schema = decode_schema(JsonObject(value, heading="Schemas"))
        assert encode_schema(schema) == {"schema-id": 0} | value


def test_schema_without_a_type_is_refused(fixtures_dir: Path) -> None:
    document = json.loads((fixtures_dir / "table-metadata" / "TableMetadataV1MissingSchemaType.json").read_text())
    with pytest.raises(InvalidMetadataError, match=r"schema\.type"):
        decode_schema(JsonObject(document["schema"], where="schema", heading="Schemas"))
