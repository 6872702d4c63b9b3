"""Name mappings as JSON text: the specification's form, both ways, and what is refused."""

from __future__ import annotations

import json

import pytest

import frazil
from frazil.codec.name_mapping_json import check_name_mapping, decode_name_mapping, encode_name_mapping
from frazil.errors import InvalidMetadataError, InvalidPropertyError
from frazil.spec.name_mapping import MappedField, NameMapping

EXAMPLE = """
[ { "field-id": 1, "names": ["id", "record_id"] },
   { "field-id": 2, "names": ["data"] },
   { "field-id": 3, "names": ["location"], "fields": [
       { "field-id": 4, "names": ["latitude", "lat"] },
       { "field-id": 5, "names": ["longitude", "long"] }
     ] } ]
"""


def test_specification_example_round_trips() -> None:
    mapping = decode_name_mapping(EXAMPLE)
    assert mapping == NameMapping(
        (
            MappedField(("id", "record_id"), 1),
            MappedField(("data",), 2),
            MappedField(("location",), 3, (MappedField(("latitude", "lat"), 4), MappedField(("longitude", "long"), 5))),
        )
    )
    assert json.loads(encode_name_mapping(mapping)) == json.loads(EXAMPLE)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '[{"names": []}]',
        '[{"names": ["only in files"]}]',
        '[{"field-id": 1, "names": []}]',
        '[{"field-id": 1, "names": ["a"], "fields": []}]',
        '[{"field-id": 0, "names": ["a.b", "ü", ""]}]',
        '[{"field-id": 1, "names": ["a"], "comment": {"by": ["x", 1]}}]',
    ],
)
def test_mapping_round_trips_unchanged(text: str) -> None:
    assert json.loads(encode_name_mapping(decode_name_mapping(text))) == json.loads(text)


def test_mapping_without_names_has_none() -> None:
    assert decode_name_mapping('[{"field-id": 1}]').fields == (MappedField((), 1),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Cannot read the name mapping: it is empty"),
        ("[", "it is not JSON"),
        ("[NaN]", "it is not JSON"),
        ("[] []", "it is not JSON"),
        ('["\ud800"]', "it is not UTF-8"),
        ('[{"names": [], "names": []}]', "an object has the key 'names' twice"),
        ("{}", "name-mapping: expected a list, found an object"),
        ("[1]", r"name-mapping\[0\]: expected an object, found the number 1"),
        ('[{"names": "a"}]', r"name-mapping\[0\].names: expected a list"),
        ('[{"names": [1]}]', r"names\[0\]: expected a string"),
        ('[{"names": [], "field-id": "1"}]', "field-id: expected an integer"),
        ('[{"names": [], "field-id": 1.5}]', "field-id: expected an integer"),
        ('[{"names": [], "field-id": true}]', "field-id: expected an integer"),
        ('[{"names": [], "field-id": 2147483648}]', "does not fit 32 bits"),
        ('[{"names": [], "fields": {}}]', r"name-mapping\[0\].fields: expected a list"),
        ('[{"names": [], "fields": [0]}]', r"name-mapping\[0\].fields\[0\]: expected an object"),
        ('[{"names": ["a"], "field-id": 1}, {"names": ["a"], "field-id": 2}]', "the name 'a' is mapped to"),
        ('[{"names": ["a"], "field-id": 1}, {"names": ["b"], "field-id": 1}]', "the field id 1 is mapped twice"),
        (f'[{{"field-id": {"9" * 10_000}}}]', "Cannot read the name mapping"),
        ("[" * 100_000, "nested deeper than"),
    ],
)
def test_invalid_mapping_is_refused_with_position_and_heading(text: str, reason: str) -> None:
    with pytest.raises(InvalidMetadataError, match=reason) as caught:
        decode_name_mapping(text)
    assert caught.value.context["heading"] == "Name Mapping Serialization"


def test_deeply_nested_mapping_is_refused() -> None:
    text = '[{"names":["a"],"fields":' * 250 + "[]" + "}]" * 250
    with pytest.raises(InvalidMetadataError, match="nested deeper than 64 levels"):
        decode_name_mapping(text)


@pytest.mark.parametrize("text", ["{bad", "{}", "[1]", '[{"names": "a"}]'])
def test_invalid_mapping_is_refused_when_the_property_is_set(text: str) -> None:
    check_name_mapping({"schema.name-mapping.default": EXAMPLE})
    check_name_mapping({"comment": text})
    with pytest.raises(InvalidPropertyError, match=r"Cannot use the property schema\.name-mapping\.default") as caught:
        check_name_mapping({"schema.name-mapping.default": text})
    assert caught.value.hint is not None
    with frazil.connect("memory:") as lake, pytest.raises(InvalidPropertyError):
        lake.create_table("db.t", "id bigint", properties={"schema.name-mapping.default": text})
