"""Metadata files made to harm: every one ends in an error of ours, soon and in little memory."""

from __future__ import annotations

import copy
import gzip
import json
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from frazil.codec.gzip_text import gzip_text
from frazil.codec.table_metadata_json import decode_table_metadata, encode_table_metadata
from frazil.errors import FrazilError, InvalidMetadataError, UnsupportedError
from tests.support.metadata_builders import START_MS, document, text_of


def with_text(old: bytes, new: bytes, version: int = 2) -> bytes:
    text = text_of(document(version))
    assert old in text
    return text.replace(old, new, 1)


def changed(change: Callable[[dict[str, Any]], object], version: int = 2) -> bytes:
    made = copy.deepcopy(document(version))
    change(made)
    return text_of(made)


def nested_type(depth: int) -> Any:
    kind: Any = "long"
    for at in range(depth):
        kind = {"type": "list", "element-id": at + 3, "element-required": False, "element": kind}
    return kind


HOSTILE: dict[str, tuple[bytes, str]] = {
    # Text
    "empty file": (b"", "it is empty"),
    "spaces": (b"  \n ", "it is empty"),
    "byte order mark": (b"\xef\xbb\xbf" + text_of(document()), "byte order mark"),
    "utf-16": (json.dumps(document()).encode("utf-16"), "not UTF-8"),
    "invalid utf-8 in a property": (with_text(b'"me"', b'"\xff\xfe"'), "not UTF-8"),
    "invalid utf-8 in a snapshot": (with_text(b'"append"', b'"\xc0\xaf"'), "not UTF-8"),
    "surrogate as utf-8": (with_text(b'"me"', b'"\xed\xa0\x80"'), "not UTF-8"),
    "lone surrogate in a property": (with_text(b'"me"', b'"\\ud800"'), "not JSON"),
    "lone surrogate in a snapshot": (with_text(b'"append"', b'"\\udfff"'), "not JSON"),
    "truncated": (text_of(document())[:-10], "not JSON"),
    "two documents": (text_of(document()) * 2, "not JSON"),
    "a list": (b"[]", "Expected `object`"),
    "a string": (b'"x"', "Expected `object`"),
    "null": (b"null", "Expected `object`"),
    "nul bytes": (b"\0" * 100, "not JSON"),
    "NaN": (with_text(b'"last-column-id":2', b'"last-column-id":NaN'), "not JSON"),
    "Infinity": (with_text(b'"last-column-id":2', b'"last-column-id":-Infinity'), "not JSON"),
    # Duplicate keys
    "duplicate at the root": (with_text(b'{"format', b'{"format-version":1,"format'), "'format-version' twice"),
    "duplicate at the root, with spaces": (with_text(b'{"format', b'{ "location" : "x", "format'), "'location' twice"),
    "duplicate property": (with_text(b'"owner"', b'"owner":"you","owner"'), "'owner' twice"),
    "duplicate property, escaped": (with_text(b'"owner"', b'"\\u006fwner":"you","owner"'), "'owner' twice"),
    "duplicate reference": (with_text(b'"main":', b'"main":{"snapshot-id":1,"type":"tag"},"main":'), "'main' twice"),
    "duplicate in a summary": (with_text(b'"operation":', b'"operation":"delete","operation":'), "'operation' twice"),
    "duplicate in a snapshot": (
        with_text(b'"snapshot-id":1', b'"snapshot-id":9,"snapshot-id":1'),
        "'snapshot-id' twice",
    ),
    "duplicate in a schema": (with_text(b'"type":"struct"', b'"type":"struct","type":"struct"'), "'type' twice"),
    "duplicate in an unknown field": (with_text(b'{"format', b'{"x":[{"y":1,"y":2}],"format'), "'y' twice"),
    # Depth
    "deep unknown field": (
        with_text(b'{"format', b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b',"format'),
        "nested deeper",
    ),
    "deep unknown field, within the stack": (
        with_text(b'{"format', b'{"x":' + b"[" * 700 + b"]" * 700 + b',"format'),
        "nested deeper",
    ),
    "deep field of a snapshot": (
        with_text(b'"schema-id":0', b'"x":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b',"schema-id":0'),
        "nested deeper",
    ),
    "deep type": (
        changed(lambda made: made["schemas"][0]["fields"][0].update(type=nested_type(300))),
        "nested deeper than 64 levels",
    ),
    # Numbers
    "a million digits": (with_text(b'"last-column-id":2', b'"last-column-id":' + b"1" * 1_000_000), "out of range"),
    "a million digits in a snapshot": (
        with_text(b'"snapshot-id":1', b'"snapshot-id":' + b"1" * 1_000_000),
        "out of range",
    ),
    "a million digits in an unknown field": (
        with_text(b'{"format', b'{"x":' + b"-" + b"1" * 1_000_000 + b',"format'),
        "out of range",
    ),
    "a huge exponent": (with_text(b'"last-column-id":2', b'"last-column-id":1e999999999'), "out of range"),
    "a fraction": (with_text(b'"last-column-id":2', b'"last-column-id":2.0'), "expected an integer"),
    "a number as text": (with_text(b'"last-column-id":2', b'"last-column-id":"2"'), "expected an integer"),
    "a boolean as a number": (with_text(b'"last-column-id":2', b'"last-column-id":true'), "expected an integer"),
    "last-column-id of 2^31": (
        with_text(b'"last-column-id":2', b'"last-column-id":2147483648'),
        "does not fit 32 bits",
    ),
    "last-updated-ms of 2^63": (
        changed(lambda made: made.update({"last-updated-ms": 2**63})),
        "last-updated-ms: 9223372036854775808 does not fit",
    ),
    "negative sequence number": (
        changed(lambda made: made.update({"last-sequence-number": -1})),
        "last-sequence-number is -1",
    ),
    "negative schema id": (
        changed(lambda made: (made["schemas"][0].update({"schema-id": -1}), made.update({"current-schema-id": -1}))),
        "schema-id",
    ),
    "negative column id": (changed(lambda made: made["schemas"][0]["fields"][0].update(id=-1)), "-1"),
    "negative snapshot id": (changed(lambda made: made["snapshots"][0].update({"snapshot-id": -7})), "-7 is negative"),
    "negative current snapshot": (changed(lambda made: made.update({"current-snapshot-id": -2})), "-2 is negative"),
    "negative next-row-id": (changed(lambda made: made.update({"next-row-id": -1}), 3), "next-row-id is -1"),
    # Versions
    "version 0": (with_text(b'"format-version":2', b'"format-version":0'), "format-version: 0 is not a version"),
    "version -1": (with_text(b'"format-version":2', b'"format-version":-1'), "format-version: -1 is not a version"),
    "version as text": (
        with_text(b'"format-version":2', b'"format-version":"2"'),
        "format-version: expected an integer",
    ),
    "version true": (with_text(b'"format-version":2', b'"format-version":true'), "format-version: expected an integer"),
    "version null": (with_text(b'"format-version":2', b'"format-version":null'), "format-version: the required field"),
    "version of 2^40": (with_text(b'"format-version":2', b'"format-version":1099511627776'), "does not fit 32 bits"),
    # References and history
    "cyclic parents": (
        changed(lambda made: made["snapshots"][0].update({"parent-snapshot-id": 2})),
        "is its own ancestor",
    ),
    "a snapshot that is its own parent": (
        changed(lambda made: made["snapshots"][0].update({"parent-snapshot-id": 1})),
        "snapshot 1 is its own ancestor",
    ),
    "reference to an absent snapshot": (
        changed(lambda made: made["refs"].update(t={"snapshot-id": 9, "type": "tag"})),
        "refs['t'] names snapshot 9",
    ),
    "current snapshot absent": (
        changed(lambda made: (made.update({"current-snapshot-id": 9}), made.pop("refs"))),
        "current-snapshot-id is 9",
    ),
    "main elsewhere": (
        changed(lambda made: made["refs"]["main"].update({"snapshot-id": 1})),
        "the branch main is at 1",
    ),
    "main as a tag": (changed(lambda made: made["refs"]["main"].update(type="tag")), "refs['main'] is a tag"),
    "references as a list": (changed(lambda made: made.update(refs=[])), "refs: expected an object"),
    "reference null": (changed(lambda made: made["refs"].update(x=None)), "refs.x: the required field is missing"),
    "two snapshots of one id": (
        changed(lambda made: made["snapshots"].append(made["snapshots"][0])),
        "two have the id 1",
    ),
    "snapshots as an object": (changed(lambda made: made.update(snapshots={})), "snapshots: expected a list"),
    "sequence number ahead of the table": (
        changed(lambda made: made["snapshots"][0].update({"sequence-number": 99})),
        "the sequence-number 99",
    ),
    "row ids that overflow": (
        changed(
            lambda made: (
                made["snapshots"][0].update({"first-row-id": 2**63 - 1, "added-rows": 2**63 - 1}),
                made.update({"next-row-id": 2**63 - 1}),
            ),
            3,
        ),
        "assigned the row ids",
    ),
    "log out of order": (
        changed(lambda made: made["snapshot-log"][0].update({"timestamp-ms": START_MS * 2})),
        "not in order",
    ),
    # Schemas, specs, orders
    "no schema": (changed(lambda made: made.update(schemas=[])), "current-schema-id"),
    "two schemas of one id": (
        changed(lambda made: made["schemas"].append(made["schemas"][0])),
        "the schema-id 0 twice",
    ),
    "two columns of one id": (changed(lambda made: made["schemas"][0]["fields"][1].update(id=1)), "share the id 1"),
    "reserved column id": (changed(lambda made: made["schemas"][0]["fields"][1].update(id=2147483546)), "2147483546"),
    "no spec": (changed(lambda made: made.update({"partition-specs": []})), "default-spec-id is 0"),
    "spec of an absent column": (
        changed(
            lambda made: made.update(
                {
                    "partition-specs": [
                        {
                            "spec-id": 0,
                            "fields": [{"name": "p", "transform": "identity", "source-id": 9, "field-id": 1000}],
                        }
                    ],
                    "last-partition-id": 1000,
                }
            )
        ),
        "no column with the id 9",
    ),
    "default order absent": (
        changed(lambda made: made.update({"default-sort-order-id": 3})),
        "default-sort-order-id is 3",
    ),
    # The rest
    "location empty": (changed(lambda made: made.update(location="")), "location is empty"),
    "location of slashes": (changed(lambda made: made.update(location="///")), "location is empty"),
    "property of a number": (
        changed(lambda made: made["properties"].update(a=1)),
        "properties['a']: expected a string",
    ),
    "properties as a list": (changed(lambda made: made.update(properties=[])), "properties: expected an object"),
    "two keys of one id": (
        changed(lambda made: made.update({"encryption-keys": [{"key-id": "k", "encrypted-key-metadata": ""}] * 2}), 3),
        "the key-id 'k' twice",
    ),
    # Gzip
    "gzip bomb": (gzip.compress(bytes(32 << 20), 1), "expand to more than"),
    "gzip bomb of containers": (gzip_text(b'{"x":[' + b"[]," * 4_000_000 + b"0]}"), "values, more than"),
    "gzip truncated": (gzip.compress(text_of(document()))[:-5], "ends in the middle"),
    "gzip with junk": (gzip.compress(text_of(document())) + b"junk", "bytes follow"),
    "gzip in gzip": (gzip.compress(gzip.compress(text_of(document()))), "not UTF-8"),
    "gzip of nothing": (gzip.compress(b""), "it is empty"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_metadata_is_refused_quickly_with_a_clear_message(name: str) -> None:
    data, reason = HOSTILE[name]
    start = time.process_time()
    with pytest.raises(InvalidMetadataError) as caught:
        decode_table_metadata(data, path="s3://b/hostile.metadata.json")
    assert time.process_time() - start < 2
    assert reason in caught.value.message
    assert caught.value.message.startswith("Cannot ")
    assert len(str(caught.value)) < 2000
    assert caught.value.context["path"] == "s3://b/hostile.metadata.json"
    assert caught.value.context["heading"]


def test_hostile_cases_are_numerous() -> None:
    assert len(HOSTILE) >= 80


@pytest.mark.parametrize("version", [4, 5, 42, 2**31 - 1])
def test_newer_version_is_unsupported_whatever_else_the_file_contains(version: int) -> None:
    for made in ({"format-version": version}, {**document(2), "format-version": version, "snapshots": "?"}):
        with pytest.raises(UnsupportedError, match=f"format-version {version}") as caught:
            decode_table_metadata(text_of(made))
        assert caught.value.hint is not None


def test_mutated_files_raise_only_frazil_errors_and_valid_ones_are_writable() -> None:
    rng = random.Random(20)
    bases = [text_of(document(version)) for version in (1, 2, 3)]
    bases.append(gzip_text(bases[1]))
    words = [
        b"null",
        b"-1",
        b'"',
        b"{",
        b"[",
        b"}",
        b"]",
        b",",
        b":",
        b"\\",
        b"9" * 25,
        b"1e400",
        b"\xff",
        b"true",
        b'""',
    ]
    read = 0
    for _ in range(3_000):
        data = bytearray(rng.choice(bases))
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data))
            match rng.randrange(4):
                case 0:
                    data[at] = rng.randrange(256)
                case 1:
                    del data[at : at + rng.randrange(1, 20)]
                case 2:
                    data[at:at] = rng.choice(words)
                case _:
                    end = min(len(data), at + rng.randrange(1, 60))
                    data[at:at] = data[at:end]
            if not data:
                break
        try:
            table = decode_table_metadata(bytes(data))
        except FrazilError:
            continue
        read += 1
        assert decode_table_metadata(encode_table_metadata(table)) == table
    assert read > 100
