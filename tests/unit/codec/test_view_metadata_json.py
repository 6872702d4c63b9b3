"""Reading and writing view metadata files, sound and hostile ones."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from frazil.codec.view_metadata_json import (
    decode_view_metadata,
    encode_view_metadata,
    encode_view_object,
)
from frazil.errors import InvalidMetadataError, UnsupportedError
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, NestedField
from frazil.spec.view_metadata import SqlRepresentation, UnknownRepresentation, ViewVersion
from tests.support.view_changes import replace_view

VIEW: dict[str, Any] = {
    "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385",
    "format-version": 1,
    "location": "s3://b/v",
    "properties": {"comment": "x"},
    "schemas": [
        {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "x", "required": True, "type": "long"}]}
    ],
    "current-version-id": 1,
    "versions": [
        {
            "version-id": 1,
            "timestamp-ms": 4353,
            "schema-id": 0,
            "summary": {"user": "some-user"},
            "default-catalog": "some-catalog",
            "default-namespace": ["a", "b.c"],
            "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
        }
    ],
    "version-log": [{"timestamp-ms": 4353, "version-id": 1}],
}


def decode(value: object) -> Any:
    return decode_view_metadata(json.dumps(value).encode())


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    value = copy.deepcopy(VIEW)
    change(value)
    return value


def test_fields_have_the_order_of_iceberg_java() -> None:
    text = encode_view_metadata(decode(VIEW), compress=False)
    assert json.loads(text) == VIEW
    assert list(json.loads(text)) == list(VIEW)
    assert list(json.loads(text)["versions"][0]) == list(VIEW["versions"][0])


def test_optional_fields_may_be_missing_and_null() -> None:
    bare = changed(lambda view: (view.pop("properties"), view["versions"][0].pop("default-catalog")))
    view = decode(bare)
    assert view.properties == {}
    assert view.current_version.default_catalog is None
    assert encode_view_object(view) == bare
    nulls = changed(lambda view: (view.update(properties=None), view["versions"][0].update({"default-catalog": None})))
    assert decode(nulls) == view


def test_unknown_fields_are_preserved_at_every_level() -> None:
    def add(view: dict[str, Any]) -> None:
        for at in (
            view,
            view["versions"][0],
            view["versions"][0]["representations"][0],
            view["version-log"][0],
            view["schemas"][0],
            view["schemas"][0]["fields"][0],
        ):
            at["x-new"] = {"deep": [1, None, "ü"]}

    value = changed(add)
    assert encode_view_object(decode(value)) == value


def test_representations_of_other_types_are_preserved() -> None:
    plan = {"type": "Substrait", "plan": {"a": [1, 2]}, "sql": None}
    value = changed(lambda view: view["versions"][0]["representations"].insert(0, plan))
    view = decode(value)
    assert view.current_version.representations[0] == UnknownRepresentation("Substrait", plan)  # type: ignore[arg-type]
    assert view.current_version.dialects == {"spark"}
    assert encode_view_object(view) == value


def test_representation_type_is_read_in_any_case() -> None:
    value = changed(lambda view: view["versions"][0]["representations"][0].update(type="SQL"))
    assert decode(value).current_version.representations == (SqlRepresentation("select 1", "spark"),)


def test_view_without_representations_is_allowed() -> None:
    value = changed(lambda view: view["versions"][0].update(representations=[]))
    assert encode_view_object(decode(value)) == value


def test_current_schema_id_of_old_writers_follows_the_current_version() -> None:
    view = decode(changed(lambda view: view.update({"current-schema-id": 0})))
    other = Schema((NestedField(1, "y", LONG),))
    moved = replace_view(view, ViewVersion(1, 0, 5, (SqlRepresentation("select 2", "spark"),)), other)
    assert encode_view_object(moved)["current-schema-id"] == 1


def test_gzip_is_recognised_by_content() -> None:
    view = decode(VIEW)
    packed = encode_view_metadata(view, compress=True)
    assert packed[:2] == b"\x1f\x8b"
    assert decode_view_metadata(packed) == view
    assert decode_view_metadata(gzip.compress(json.dumps(VIEW).encode())) == view


REQUIRED = [
    *[((), name) for name in VIEW if name != "properties"],
    *[(("versions", 0), name) for name in VIEW["versions"][0] if name != "default-catalog"],
    *[(("versions", 0, "representations", 0), name) for name in ("type", "sql", "dialect")],
    *[(("version-log", 0), name) for name in ("timestamp-ms", "version-id")],
    (("schemas", 0), "type"),
    (("schemas", 0), "fields"),
]


@pytest.mark.parametrize(("where", "name"), REQUIRED, ids=lambda part: str(part))
@pytest.mark.parametrize("wrong", ["missing", "null", "ill-typed"])
def test_missing_or_mistyped_required_field_is_named(where: tuple[str | int, ...], name: str, wrong: str) -> None:
    value = copy.deepcopy(VIEW)
    at: Any = value
    for step in where:
        at = at[step]
    if wrong == "missing":
        del at[name]
    else:
        at[name] = None if wrong == "null" else 1.5
    with pytest.raises(InvalidMetadataError, match="Cannot read") as caught:
        decode(value)
    assert name in caught.value.message


HOSTILE: dict[str, Callable[[dict[str, Any]], object]] = {
    "format version 0": lambda view: view.update({"format-version": 0}),
    "format version that is a boolean": lambda view: view.update({"format-version": True}),
    "format version as text": lambda view: view.update({"format-version": "1"}),
    "empty location": lambda view: view.update(location=""),
    "uuid that is none": lambda view: view.update({"view-uuid": "x" * 10_000}),
    "no versions": lambda view: view.update(versions=[]),
    "no schemas": lambda view: view.update(schemas=[]),
    "current version beyond 32 bits": lambda view: view.update({"current-version-id": 2**31}),
    "current version that is unknown": lambda view: view.update({"current-version-id": -1}),
    "two versions of one id": lambda view: view["versions"].append(view["versions"][0]),
    "two schemas of one id": lambda view: view["schemas"].append(view["schemas"][0]),
    "version of an unknown schema": lambda view: view["versions"][0].update({"schema-id": 9}),
    "timestamp beyond 64 bits": lambda view: view["versions"][0].update({"timestamp-ms": 2**63}),
    "timestamp that is a fraction": lambda view: view["version-log"][0].update({"timestamp-ms": 1.5}),
    "namespace of numbers": lambda view: view["versions"][0].update({"default-namespace": [1]}),
    "summary of numbers": lambda view: view["versions"][0].update(summary={"a": 1}),
    "properties of nulls": lambda view: view.update(properties={"a": None}),
    "properties that are a list": lambda view: view.update(properties=[]),
    "two queries for a dialect": lambda view: view["versions"][0]["representations"].append(
        {"type": "sql", "sql": "select 2", "dialect": "SPARK"}
    ),
    "version that is a list": lambda view: view.update(versions=[[]]),
    "schema that is no struct": lambda view: view["schemas"][0].update(type="list"),
    "log that is an object": lambda view: view.update({"version-log": {}}),
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile_values_are_refused(name: str) -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        decode(changed(HOSTILE[name]))
    assert caught.value.context["heading"]
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"   ",
        b"null",
        b"[]",
        b"{",
        b'"text"',
        b"\xef\xbb\xbf" + json.dumps(VIEW).encode(),
        json.dumps(VIEW).encode() + b"{}",
        json.dumps(VIEW).encode("utf-16"),
        json.dumps(VIEW).replace('"location"', '"location": "a", "location"').encode(),
        json.dumps(VIEW).replace("4353", "9" * 1_000_000).encode(),
        json.dumps(VIEW).replace("4353", "NaN").encode(),
        json.dumps(VIEW).replace('"x"', r'"\ud800"', 1).encode(),
        b'{"a":' * 100_000,
        b"[" * 1_000_000,
        gzip.compress(json.dumps(VIEW).encode(), mtime=0)[:-9],
        gzip.compress(json.dumps(VIEW).encode(), mtime=0) + b"tail",
        gzip.compress(b"[" + b"0," * 10_000_000 + b"0]", mtime=0),
        gzip.compress(b"[" + b"[]," * 3_000_000 + b"0]", mtime=0),
    ],
    ids=lambda data: f"{data[:12]!r}-{len(data)}",
)
def test_hostile_bytes_are_refused_with_the_path(data: bytes) -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        decode_view_metadata(data, path="s3://b/v1.metadata.json")
    assert caught.value.context["path"] == "s3://b/v1.metadata.json"
    assert len(str(caught.value)) < 1000


def test_oversized_file_is_not_parsed() -> None:
    with pytest.raises(InvalidMetadataError, match="67108864 of a view"):
        decode_view_metadata(b" " * ((64 << 20) + 1))


def test_newer_format_is_unsupported_whatever_else_it_contains() -> None:
    with pytest.raises(UnsupportedError, match="its format version is 2") as caught:
        decode_view_metadata(b'{"format-version": 2}', path="p")
    assert caught.value.context == {"path": "p", "heading": "View Metadata"}
