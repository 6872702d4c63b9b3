from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from frazil.codec.json_fields import JsonObject
from frazil.codec.schema_json import decode_schema, decode_type_name, encode_schema, encode_type
from frazil.errors import InvalidManifestError, InvalidMetadataError, InvalidRequestError
from frazil.spec.schema import MAX_NESTING_DEPTH, Schema
from frazil.spec.types import (
    INT,
    LONG,
    MAX_FIELD_ID,
    STRING,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)
from tests.support.type_json import decode_type


def read(value: Any) -> Schema:
    return decode_schema(JsonObject(value, where="schemas[0]", heading="Schemas"))


def one_field(**changes: Any) -> dict[str, Any]:
    field = {"id": 1, "name": "a", "required": False, "type": "int"} | changes
    return {"type": "struct", "fields": [{key: value for key, value in field.items() if value is not ...}]}


def test_schema_fields_have_the_order_of_iceberg_java() -> None:
    fields = (
        NestedField(1, "id", LONG, required=True, doc="key", initial_default=0, write_default=5),
        NestedField(2, "tags", ListType(3, STRING, element_required=True)),
        NestedField(4, "m", MapType(5, STRING, 6, DecimalType(9, 2))),
    )
    schema = Schema(fields, schema_id=3, identifier_field_ids=(1,))
    text = json.dumps(encode_schema(schema), separators=(",", ":"))
    assert text == (
        '{"type":"struct","schema-id":3,"identifier-field-ids":[1],"fields":['
        '{"id":1,"name":"id","required":true,"type":"long","doc":"key","initial-default":0,"write-default":5},'
        '{"id":2,"name":"tags","required":false,"type":'
        '{"type":"list","element-id":3,"element":"string","element-required":true}},'
        '{"id":4,"name":"m","required":false,"type":{"type":"map","key-id":5,"key":"string",'
        '"value-id":6,"value":"decimal(9, 2)","value-required":false}}]}'
    )
    assert read(json.loads(text)) == schema


def test_schema_without_an_id_gets_id_zero() -> None:
    assert read({"type": "struct", "fields": []}).schema_id == 0
    assert read({"type": "struct", "schema-id": 7, "fields": []}).schema_id == 7


def test_unknown_fields_are_preserved() -> None:
    value = one_field(aliases=["b"], doc="x") | {"schema-id": 0, "owner": {"team": 1}}
    schema = read(value)
    assert schema.extra == {"owner": {"team": 1}}
    assert schema.fields[0].extra == {"aliases": ["b"]}
    assert encode_schema(schema) == value
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_null_docs_defaults_and_identifiers_count_as_absent() -> None:
    value = one_field(doc=None, **{"initial-default": None, "write-default": None})
    schema = read(value | {"identifier-field-ids": None, "schema-id": None})
    assert schema.fields[0] == NestedField(1, "a", INT)
    assert schema.identifier_field_ids == ()
    assert schema.schema_id == 0


def test_duplicate_identifier_fields_count_once() -> None:
    schema = read(one_field(required=True) | {"identifier-field-ids": [1, 1]})
    assert schema.identifier_field_ids == (1,)


@pytest.mark.parametrize(
    "value, reason",
    [
        ([], "Cannot read schemas[0]: expected an object, found a list"),
        ({"fields": []}, "Cannot read schemas[0].type: the required field is missing"),
        ({"type": "list", "fields": []}, "the type of a schema is struct, found 'list'"),
        ({"type": "struct"}, "Cannot read schemas[0].fields: the required field is missing"),
        ({"type": "struct", "fields": {}}, "expected a list, found an object"),
        ({"type": "struct", "fields": [3]}, "Cannot read schemas[0].fields[0]: expected an object"),
        (one_field(id=...), "schemas[0].fields[0].id: the required field is missing"),
        (one_field(id="1"), "schemas[0].fields[0].id: expected an integer"),
        (one_field(id=True), "schemas[0].fields[0].id: expected an integer"),
        (one_field(id=1.0), "schemas[0].fields[0].id: expected an integer"),
        (one_field(id=2**31), "does not fit 32 bits"),
        (one_field(id=-1), "-1 cannot be the id of a table's field: ids are not negative"),
        (one_field(id=MAX_FIELD_ID + 1), "are for metadata columns"),
        (one_field(name=...), "fields[0].name: the required field is missing"),
        (one_field(name=5), "fields[0].name: expected a string"),
        (one_field(required=...), "fields[0].required: the required field is missing"),
        (one_field(required="true"), "fields[0].required: expected a boolean"),
        (one_field(type=...), "fields[0].type: the required field is missing"),
        (one_field(type=5), "fields[0].type: expected an object, found the number 5"),
        (one_field(type="bigint"), "fields[0].type: cannot read the type 'bigint': no such type"),
        (one_field(type="decimal(39,2)"), "the precision must be from 1 to 38"),
        (one_field(type={"fields": []}), "fields[0].type.type: the required field is missing"),
        (one_field(type={"type": "set"}), "expected struct, list or map, found 'set'"),
        (one_field(type="unknown", required=True), "'a' has the type unknown and is required"),
        (one_field(doc=5), "fields[0].doc: expected a string"),
        (one_field(**{"initial-default": "x"}), "fields[0].initial-default: expected an integer for int, found 'x'"),
        (one_field(**{"write-default": 2**31}), "fields[0].write-default: 2147483648 does not fit the 32 bits"),
        (one_field(type="geometry", **{"initial-default": "POINT (0 0)"}), "must default to null"),
        (one_field(type="variant", **{"write-default": {}}), "must default to null"),
        (
            one_field(
                type={"type": "struct", "fields": [{"id": 2, "name": "x", "required": False, "type": "int"}]},
                **{"initial-default": {"2": 5}},
            ),
            "values belong in the defaults of its fields",
        ),
        (one_field() | {"identifier-field-ids": [9]}, "cannot use field id 9 as an identifier field"),
        (one_field() | {"identifier-field-ids": [1]}, "it is optional"),
        (one_field() | {"identifier-field-ids": ["1"]}, "identifier-field-ids[0]: expected a 32-bit integer"),
        (one_field() | {"schema-id": "0"}, "schemas[0].schema-id: expected an integer"),
        (
            {"type": "struct", "fields": one_field()["fields"] + one_field(name="b")["fields"]},
            "Cannot read schemas[0]: fields 'a' and 'b' share the id 1",
        ),
        (
            {"type": "struct", "fields": one_field()["fields"] + one_field(id=2)["fields"]},
            "Cannot read schemas[0]: two fields are named 'a'",
        ),
        (
            one_field(type={"type": "list", "element-id": 1, "element": "int", "element-required": False}),
            "share the id 1",
        ),
        (
            one_field(type={"type": "list", "element-id": 2, "element": "unknown", "element-required": True}),
            "'element' has the type unknown and is required",
        ),
        (one_field(type={"type": "list", "element-id": 2, "element": "int"}), "element-required: the required field"),
        (one_field(type={"type": "list", "element": "int", "element-required": True}), "element-id: the required"),
        (
            one_field(
                type={
                    "type": "map",
                    "key-id": 2,
                    "key": "unknown",
                    "value-id": 3,
                    "value": "int",
                    "value-required": False,
                }
            ),
            "'key' has the type unknown and is required",
        ),
        (one_field(type={"type": "map", "key-id": 2, "key": "int"}), "value: the required field is missing"),
    ],
)
def test_invalid_schema_is_refused_with_position_and_reason(value: Any, reason: str) -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        read(value)
    assert reason in caught.value.message
    assert caught.value.context["heading"] == "Schemas"


def test_errors_have_the_class_of_the_caller() -> None:
    value = one_field(type={"type": "list", "element-id": 2, "element": "foo", "element-required": False})
    obj = JsonObject(value, where="schema", heading="Manifests", error=InvalidManifestError)
    with pytest.raises(InvalidManifestError, match=r"schema.fields\[0\].type.element") as caught:
        decode_schema(obj)
    assert caught.value.context["heading"] == "Manifests"


def test_field_id_zero_is_read() -> None:
    assert read(one_field(id=0)).fields[0].field_id == 0
    assert read(one_field(id=MAX_FIELD_ID)).fields[0].field_id == MAX_FIELD_ID


def test_defaults_are_converted_and_empty_structs_kept() -> None:
    value = one_field(type="timestamptz_ns", **{"initial-default": "1970-01-01T00:00:00.000000001+00:00"})
    assert read(value).fields[0] == NestedField(1, "a", TIMESTAMPTZ_NS, initial_default=1)
    struct = {"type": "struct", "fields": [{"id": 2, "name": "x", "required": False, "type": "int"}]}
    value = one_field(type=struct, **{"initial-default": {}, "write-default": {}}) | {"schema-id": 0}
    assert read(value).fields[0].initial_default == {}
    assert encode_schema(read(value)) == value


def test_list_and_map_defaults_are_read() -> None:
    kind = {"type": "list", "element-id": 2, "element": "int", "element-required": False}
    assert read(one_field(type=kind, **{"initial-default": [1, None]})).fields[0].initial_default == [1, None]


def nested_json(levels: int) -> Any:
    kind: Any = "int"
    for level in range(levels):
        if level % 3 == 0:
            kind = {"type": "list", "element-id": level + 2, "element": kind, "element-required": False}
        else:
            field = {"id": level + 2, "name": "x", "required": False, "type": kind}
            kind = {"type": "struct", "fields": [field]}
    return kind


def test_deepest_allowed_schema_round_trips() -> None:
    value = one_field(type=nested_json(MAX_NESTING_DEPTH - 1)) | {"schema-id": 0}
    assert encode_schema(read(value)) == value


@pytest.mark.parametrize("levels", [MAX_NESTING_DEPTH, 5000])
def test_deeper_schemas_are_refused_without_recursion_errors(levels: int) -> None:
    with pytest.raises(InvalidMetadataError, match=f"nested deeper than {MAX_NESTING_DEPTH} levels"):
        read(one_field(type=nested_json(levels)))
    with pytest.raises(InvalidMetadataError, match=f"nested deeper than {MAX_NESTING_DEPTH} levels"):
        decode_type(nested_json(levels + 1))


@pytest.mark.parametrize(
    "text, kind",
    [
        ("decimal( 9 , 2 )", DecimalType(9, 2)),
        ("Decimal (9,2)", DecimalType(9, 2)),
        ("fixed[ 16 ]", FixedType(16)),
        ("Fixed[3]", FixedType(3)),
        ("LONG", LONG),
        ("geometry", GeometryType()),
        ("Geometry ( srid:3857 )", GeometryType("srid:3857")),
        ("geometry( srid: 3857 )", GeometryType("srid: 3857")),
        ("geometry(projjson:TestIdentifier)", GeometryType("projjson:TestIdentifier")),
        ("geography", GeographyType()),
        ("geography(srid:4269)", GeographyType("srid:4269")),
        ("geography(srid:4269, karney)", GeographyType("srid:4269", "karney")),
        ("geography( srid:4269  ,  KARNEY  )", GeographyType("srid:4269", "karney")),
        ("geography(srid:4326, spherical)", GeographyType("srid:4326")),
    ],
)
def test_type_names_may_have_whitespace_and_any_case(text: str, kind: Type) -> None:
    assert decode_type(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "", " int", "int ", "integer", "decimal", "decimal(9)", "decimal(9,2", "decimal(9.0,2)", "decimal(-1,0)",
        "decimal(٣,2)", "fixed", "fixed[-1]", "fixed[3000000000]", "fixed[" + "9" * 5000 + "]",
        "geometry()", "geometry( )", "geography(,)", "geography( , spherical)", "geography(srid:4269, BadAlgorithm)",
        "geography(a, b, c)", "x" * 100_000, "struct", "list", "map",
    ],
)  # fmt: skip
def test_unknown_type_names_are_refused(text: str) -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        decode_type(text)
    assert len(caught.value.message) < 250
    with pytest.raises(InvalidRequestError):
        decode_type_name(text)


def test_geospatial_types_are_written_with_all_parameters() -> None:
    assert encode_type(GeometryType()) == "geometry(OGC:CRS84)"
    assert encode_type(GeographyType()) == "geography(OGC:CRS84, spherical)"
    assert encode_type(GeographyType("srid:4326", "karney")) == "geography(srid:4326, karney)"


def test_required_unknown_field_is_refused_by_the_fast_path() -> None:
    with pytest.raises(InvalidMetadataError):
        read(one_field(type="unknown", required=True))
    assert read(one_field(type="unknown")).fields[0].field_type == UNKNOWN


def test_nested_types_round_trip() -> None:
    kind = StructType((NestedField(1, "a", INT, required=True, doc=""), NestedField(2, "l", ListType(3, LONG))))
    assert decode_type(encode_type(kind)) == kind
