"""Strict JSON: what is refused, and that finding duplicates is never wrong."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from frazil.codec.json_text import (
    MAX_DEPTH,
    check_value_count,
    count_plain_strings,
    encode_json,
    parse_json,
    split_json_object,
)
from frazil.errors import InvalidMetadataError, InvalidPuffinError, InvalidRequestError


def parse(text: bytes) -> Any:
    return parse_json(text, heading="H")


@pytest.mark.parametrize(
    "text",
    [
        b"null",
        b"[]",
        b'{"a":{"b":[1,2.5,-3,true,null,"x"]},"c":{}}',
        b' {\n "a" : [ ":" , "b" ] }\n',
        b'{"a":"\\"b\\":","c\\\\":"\\\\","d":"\\u003a"}',
        '{"ключ":"значение","🧊":"\\ud83e\\uddca"}'.encode(),
        b'{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}',
        b'{"n":9223372036854775807,"m":-9223372036854775808,"big":18446744073709551616}',
    ],
)
def test_valid_json_is_read_like_in_the_standard_library(text: bytes) -> None:
    assert parse(text) == json.loads(text)


@pytest.mark.parametrize(
    "text, reason",
    [
        (b"", "it is empty"),
        (b" \n\t ", "it is empty"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a":"\xff"}', "not UTF-8"),
        (b'{"a":"\xed\xa0\x80"}', "not UTF-8"),
        (b'{"a":"\xc3', "not UTF-8"),
        ('{"a":1}'.encode("utf-16"), "not UTF-8"),
        (b'{"a":"\\ud800"}', "not JSON"),
        (b'{"a":"\\udc00x"}', "not JSON"),
        (b'{"a":NaN}', "not JSON"),
        (b'{"a":Infinity}', "not JSON"),
        (b'{"a":-Infinity}', "not JSON"),
        (b'{"a":1e999}', "not JSON"),
        (b'{"a":01}', "not JSON"),
        (b'{"a":1,}', "not JSON"),
        (b"{'a':1}", "not JSON"),
        (b'{"a":1} {', "not JSON"),
        (b'{"a":1', "not JSON"),
        (b'{"a":"line\nbreak"}', "not JSON"),
        (b'{"a":1,"a":2}', "the key 'a' twice"),
        (b'{"x":[{"a":1,"b":2,"a":1}]}', "the key 'a' twice"),
        (b'{"a":1,"\\u0061":2}', "the key 'a' twice"),
        (b'{"q":"\\"","a":1,"b":{"c":1,"c":1}}', "the key 'c' twice"),
        (b'{"":1,"":2}', "the key '' twice"),
    ],
)
def test_ambiguous_json_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(InvalidMetadataError, match="Cannot read the document: ") as caught:
        parse(text)
    assert reason in caught.value.message
    assert caught.value.context == {"heading": "H"}


@pytest.mark.parametrize("opening, closing", [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_bounded_independently_of_the_stack(opening: bytes, closing: bytes) -> None:
    assert parse(opening * MAX_DEPTH + b"1" + closing * MAX_DEPTH) is not None
    for depth in (MAX_DEPTH + 1, 5_000, 200_000):
        with pytest.raises(InvalidMetadataError, match="nested deeper than 640 levels"):
            parse(opening * depth + b"1" + closing * depth)


def test_number_of_a_million_digits_is_refused_quickly() -> None:
    start = time.process_time()
    with pytest.raises(InvalidMetadataError, match="not JSON as expected: Integer value out of range"):
        parse(b'{"a":' + b"9" * 1_000_000 + b"}")
    assert time.process_time() - start < 1


def test_errors_have_the_position_and_the_class_of_the_caller() -> None:
    with pytest.raises(InvalidPuffinError, match="Cannot read blobs: an object has the key 'a' twice"):
        parse_json(b'{"a":1,"a":1}', where="blobs", heading="H", error=InvalidPuffinError)


def test_long_duplicate_key_is_truncated_in_the_error() -> None:
    key = b'"' + b"k" * 1000 + b'"'
    with pytest.raises(InvalidMetadataError) as caught:
        parse(b"{" + key + b":1," + key + b":1}")
    assert len(caught.value.message) < 150


@pytest.mark.parametrize("text", [b'{"a":[1, 2],"b":"c"}', b'{ "a" : [1, 2] ,"b":"c"}', b'{"\\u0061":[1, 2],"b":"c"}'])
def test_object_is_split_into_the_texts_of_its_fields(text: bytes) -> None:
    parts = split_json_object(text, heading="H")
    assert {name: bytes(part) for name, part in parts.items()} == {"a": b"[1, 2]", "b": b'"c"'}


@pytest.mark.parametrize(
    "text, reason",
    [
        (b'{"a":1,"b":2,"a":1}', "the key 'a' twice"),
        (b'{"a":1, "b":2,"a":1}', "the key 'a' twice"),
        (b'{"a":"\\n","b":2,"\\u0061":1}', "the key 'a' twice"),
        (b"[]", "not JSON as expected: Expected `object`, got `array`"),
        (b"", "it is empty"),
        (b'{"a":' + b"[" * 200_000, "nested deeper"),
    ],
)
def test_splitting_refuses_what_parsing_refuses(text: bytes, reason: str) -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        split_json_object(text, heading="H")
    assert reason in caught.value.message


def test_strings_are_counted_unless_they_contain_escapes() -> None:
    assert count_plain_strings(b'{"a":"b","c":[1,"d"]}') == 4
    assert count_plain_strings(b'{"a":"\\n"}') is None
    assert count_plain_strings(b'["' + b"x" * 1_000_000 + b'",""]') == 2


def test_number_of_values_is_bounded_before_parsing() -> None:
    check_value_count(b"[1,2,3]", 3, heading="H")
    with pytest.raises(InvalidMetadataError, match="up to 3 values, more than the 2"):
        check_value_count(b"[1,2,3]", 2, heading="H")


def test_values_without_json_form_are_refused() -> None:
    assert encode_json({"a": [1, "ü"]}) == '{"a":[1,"ü"]}'.encode()
    deep: list[Any] = []
    for _ in range(1_000_000):
        deep = [deep]
    for value in ({"a": "\ud800"}, {"a": object()}, deep):
        with pytest.raises(InvalidRequestError, match="Cannot write JSON"):
            encode_json(value)
