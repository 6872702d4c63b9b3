"""Bounds of variants and the paths they go by. Specification: "Bounds for Variant"."""

from __future__ import annotations

import pytest

from frazil.codec.json_path import format_json_path, parse_json_path
from frazil.codec.variant import encode_variant
from frazil.codec.variant_bounds import decode_variant_bounds, encode_variant_bounds
from frazil.errors import InvalidManifestError, InvalidRequestError, TextSyntaxError
from frazil.spec.variant import VariantKind, VariantValue
from tests.support.variants import variant_of

PATHS: list[tuple[tuple[str | int, ...], str]] = [
    ((), "$"),
    (("event_type",), "$['event_type']"),
    (("user.name",), "$['user.name']"),
    (("location", "latitude"), "$['location']['latitude']"),
    (("",), "$['']"),
    (("☃", "a\U0001d11eb"), "$['☃']['a\U0001d11eb']"),
    (("a'b\n", "\x0cc"), "$['a\\'b\\n']['\\fc']"),
    (("\x0b",), "$['\\u000b']"),
    (("\x00\x1f",), "$['\\u0000\\u001f']"),
    (("a\\b",), "$['a\\\\b']"),
    (('"',), "$['\"']"),
    (("\x7f",), "$['\x7f']"),
    (("a", 0, 12, "b"), "$['a'][0][12]['b']"),
    (("']['",), "$['\\'][\\'']"),
]


@pytest.mark.parametrize("parts, text", PATHS)
def test_paths_are_normalized(parts: tuple[str | int, ...], text: str) -> None:
    assert format_json_path(parts) == text
    assert parse_json_path(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "$.a", "$['a'", "$['a]", "$[a]", '$["a"]', "$['a'] ", " $", "$['a']x", "$[01]", "$[-1]", "$[*]",
        "$..a", "$['\\x']", "$['\\u0061']", "$['\\u000a']", "$['\\u000B']", "$['\n']", "$['a'b']", "$['\ud800']",
        "$['\\']", "$[" + "9" * 100_000 + "]",
    ],
    ids=lambda text: repr(text[:24]),
)  # fmt: skip
def test_other_paths_are_refused(text: str) -> None:
    with pytest.raises(TextSyntaxError, match="not a normalized JSON path") as caught:
        parse_json_path(text)
    assert caught.value.context["heading"] == "Bounds for Variant"
    assert len(caught.value.message) < 300


@pytest.mark.parametrize("part", [-1, "\ud800"])
def test_parts_without_a_path_are_refused(part: str | int) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot write the path"):
        format_json_path([part])


def test_bounds_are_metadata_followed_by_object() -> None:
    bounds = {"$['a']": variant_of(1), "$['b']['c']": variant_of("x")}
    data = encode_variant_bounds(bounds)
    assert data == b"".join(encode_variant(VariantValue(VariantKind.OBJECT, bounds)))
    assert decode_variant_bounds(data) == bounds


def test_root_has_its_own_bounds() -> None:
    data = encode_variant_bounds({"$": variant_of("abc")})
    assert data.hex(" ") == "11 01 00 01 24 02 01 00 00 04 0d 61 62 63"
    assert decode_variant_bounds(data) == {"$": variant_of("abc")}


def test_bounds_may_be_empty() -> None:
    assert decode_variant_bounds(encode_variant_bounds({})) == {}


@pytest.mark.parametrize(
    "bounds, reason",
    [
        ({"a": variant_of(1)}, "not a normalized JSON path"),
        ({"$.a": variant_of(1)}, "not a normalized JSON path"),
        ({"$": variant_of(None)}, "the bound of \\$ is of type null"),
        ({"$": variant_of([1])}, "is of type array"),
        ({"$['a']": variant_of({})}, "is of type object"),
    ],
)
def test_invalid_bounds_are_refused_both_ways(bounds: dict[str, VariantValue], reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        encode_variant_bounds(bounds)
    stored = b"".join(encode_variant(VariantValue(VariantKind.OBJECT, bounds)))
    with pytest.raises(InvalidManifestError, match=reason) as caught:
        decode_variant_bounds(stored)
    assert caught.value.context["heading"] == "Bounds for Variant"


@pytest.mark.parametrize("data", [b"", b"\x01\x00\x00", b"\x01\x00\x00\x00", b"\x01\x00\x00\x02\x00\x00\x00"])
def test_bounds_with_trailing_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidManifestError):
        decode_variant_bounds(data)
