"""Writer schemas: parsed, flattened, and made plain for a reader that goes by names."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from frazil.codec.avro_container import AvroOrigin
from frazil.codec.avro_schema import AvroType, flatten, holds_values, parse_schema, plain_schema
from frazil.errors import InvalidManifestError
from tests.support.avro_builders import DAY, entry, entry_schema, required, rows_of

ORIGIN = AvroOrigin("manifest", "Manifests")


def record(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "r", **more, "fields": list(fields)}


def parsed(schema: Any) -> AvroType:
    return parse_schema(json.dumps(schema).encode(), ORIGIN)


def first(kind: Any) -> AvroType:
    return parsed(record(required("a", kind, 1))).fields[0].avro_type


def test_required_records_are_flattened() -> None:
    leaves = flatten(parsed(entry_schema(DAY)), ORIGIN)
    paths = [leaf.path for leaf in leaves]
    assert paths[:9] == [(0,), (1,), (3,), (4,), (2, 134), (2, 100), (2, 101), (2, 102, 1000), (2, 103)]
    assert [leaf.path for leaf in flatten(parsed(entry_schema()), ORIGIN)][7] == (2, 102)


def test_plain_schema_reads_the_same_bytes() -> None:
    schema = entry_schema(DAY)
    rows = rows_of(schema, [entry(3, partition={"ts_day": 7})])
    leaves = flatten(parsed(schema), ORIGIN)
    plain = fastavro.parse_schema(plain_schema(leaves))
    stream = io.BytesIO(rows)
    row: Any = fastavro.schemaless_reader(stream, plain, None)
    assert stream.read() == b""
    names = {leaf.path: f"c{at}" for at, leaf in enumerate(leaves)}
    assert row[names[2, 100]] == "s3://bucket/data/00003.parquet"
    assert row[names[2, 102, 1000]] == 7
    assert row[names[2, 125]] == [{"c0": 1, "c1": (3).to_bytes(8, "little")}, {"c0": 2, "c1": b""}]


def test_zero_byte_fields_are_left_out_of_the_plain_schema() -> None:
    fields = (
        required("a", "null", 1),
        required("b", {"type": "record", "name": "empty", "fields": []}, 2),
        required("c", {"type": "fixed", "name": "none", "size": 0}, 3),
        required("d", "long", 4),
        required("e", ["null", "empty"], 5),
    )
    root = parsed(record(*fields))
    plain = plain_schema(flatten(root, ORIGIN))
    assert plain["fields"] == [{"name": "c3", "type": "long"}, {"name": "c4", "type": "int"}]
    assert [holds_values(part.avro_type) for part in root.fields] == [False, False, False, True, False]


def test_named_types_resolve_in_their_namespace() -> None:
    inner = {"type": "record", "name": "t", "fields": [{"name": "x", "type": "int"}]}
    schema = record(
        required("a", inner, 1),
        required("b", "t", 2),
        required("c", "org.example.t", 3),
        required("d", {"type": "fixed", "name": "other.u", "size": 2}, 4),
        required("e", "other.u", 5),
        namespace="org.example",
    )
    kinds = [part.avro_type.kind for part in parsed(schema).fields]
    assert kinds == ["record", "record", "record", "fixed", "fixed"]


@pytest.mark.parametrize("union, branch", [(["null", "long"], 0), (["long", "null"], 1)])
def test_union_with_null_is_an_optional_type(union: list[str], branch: int) -> None:
    found = first(union)
    assert (found.kind, found.is_optional, found.null_branch, found.min_size) == ("long", True, branch, 1)


@pytest.mark.parametrize("written, found", [(7, 7), ("7", 7), (None, None)])
def test_ids_may_be_numbers_or_digits(written: Any, found: int | None) -> None:
    field = {"name": "a", "type": "int"} | ({} if written is None else {"field-id": written})
    assert parsed(record(field)).fields[0].field_id == found


def test_types_may_be_wrapped_in_objects() -> None:
    assert first({"type": {"type": "long"}}).kind == "long"
    assert first({"type": "enum", "name": "e", "symbols": ["A"]}).kind == "int"


@pytest.mark.parametrize(
    "kind, reason",
    [
        ("nowhere", "'nowhere' is not defined"),
        ("r", "'r' refers to itself"),
        ({"type": "array", "items": "null"}, "items of no bytes"),
        ({"type": "map", "values": "null"}, "values of no bytes"),
        (["null"], "a union is not of null and one other type"),
        (["null", "int", "long"], "a union is not of null and one other type"),
        ({"type": "fixed", "name": "f", "size": "3"}, "a fixed type has size '3'"),
        ({"type": "fixed", "size": 3}, "a fixed has no name"),
        (17, "expected a type, found 17"),
    ],
)
def test_unreadable_schemas_are_refused_with_the_reason(kind: Any, reason: str) -> None:
    with pytest.raises(InvalidManifestError, match=reason):
        first(kind)
