"""Variants that were damaged or made to do harm: each ends in frazil's error, under the specification's heading."""

from __future__ import annotations

import random
import struct

import pytest

from frazil.codec.variant import EMPTY_METADATA, encode_variant
from frazil.errors import CorruptTableError, InvalidDataFileError, InvalidManifestError, UnsupportedError
from frazil.spec.variant import MAX_VARIANT_DEPTH
from tests.support.variants import decode_variant, variant_of

A = bytes.fromhex("01 01 00 01 61")
AB = bytes.fromhex("01 02 00 01 02 61 62")
NULL = b"\0"

CORRUPT: dict[str, tuple[bytes, str, str]] = {
    "no metadata": (b"", "00", "the metadata is empty"),
    "only a metadata header": (b"\x01", "00", "the metadata is cut off"),
    "metadata size cut off": (b"\xc1\0\0", "00", "the metadata is cut off"),
    "more names than bytes": (b"\x01\xff", "00", "cannot hold 255 names"),
    "billions of names": (b"\xc1\xff\xff\xff\xff", "00", "cannot hold 4294967295 names"),
    "names beyond the metadata": (b"\x01\0\xff", "00", "outside its bytes"),
    "first name not at 0": (bytes.fromhex("01 01 01 02 61 62"), "00", "outside its bytes"),
    "a name that ends before it starts": (bytes.fromhex("01 02 00 05 03 61 62 63 64 65"), "00", "before its start"),
    "a name that is not UTF-8": (bytes.fromhex("01 01 00 01 ff"), "00", "a string is not UTF-8"),
    "a name that is half a surrogate pair": (bytes.fromhex("01 01 00 03 eda080"), "00", "a string is not UTF-8"),
    "names marked sorted that are not": (bytes.fromhex("11 02 00 01 02 62 61"), "00", "not sorted and unique"),
    "names marked unique that are not": (bytes.fromhex("11 02 00 01 02 61 61"), "00", "not sorted and unique"),
    "bytes after the metadata": (EMPTY_METADATA + b"\0", "00", "1 bytes follow the metadata"),
    "no value": (EMPTY_METADATA, "", "a value has no bytes"),
    "bytes after the value": (EMPTY_METADATA, "00 00", "1 bytes follow the value"),
    "int32 cut off": (EMPTY_METADATA, "14 000000", "needs 4 bytes where 3 are left"),
    "uuid cut off": (EMPTY_METADATA, "50" + "00" * 15, "needs 16 bytes"),
    "short string cut off": (EMPTY_METADATA, "1d 61", "needs 7 bytes where 1 are left"),
    "short string not UTF-8": (EMPTY_METADATA, "05 ff", "a string is not UTF-8"),
    "string size cut off": (EMPTY_METADATA, "40 00", "needs 4 bytes"),
    "string of two gigabytes": (EMPTY_METADATA, "40 ffffff7f", "needs 2147483647 bytes"),
    "string of four gigabytes": (EMPTY_METADATA, "40 ffffffff", "needs 4294967295 bytes"),
    "binary cut off": (EMPTY_METADATA, "3c 02000000 00", "needs 2 bytes where 1 are left"),
    "decimal scale 39": (EMPTY_METADATA, "20 27 01000000", "scale 39"),
    "decimal scale 255": (EMPTY_METADATA, "20 ff 01000000", "scale 255"),
    "decimal4 of ten digits": (EMPTY_METADATA, "20 00 00ca9a3b", "more than 9 digits"),
    "decimal16 of 39 digits": (EMPTY_METADATA, "28 00" + "ff" * 15 + "7f", "more than 38 digits"),
    "array size cut off": (EMPTY_METADATA, "13 0000", "needs 4 bytes"),
    "array of a million values": (EMPTY_METADATA, "13 00001000 00", "an array of 1048576 values does not fit"),
    "array of billions of values": (EMPTY_METADATA, "1f ffffffff 00", "an array of 4294967295 values does not fit"),
    "array values beyond the end": (EMPTY_METADATA, "03 01 00 05 00", "values of 5 bytes end outside"),
    "array value of no bytes": (EMPTY_METADATA, "03 01 00 00", "a value has no bytes"),
    "array offsets descending": (EMPTY_METADATA, "03 02 01 00 02 00 00", "a value has no bytes"),
    "array offset beyond the values": (EMPTY_METADATA, "03 01 ff 01 00", "a value starts at 255"),
    "array value larger than its place": (EMPTY_METADATA, "03 02 00 01 03 0c 0c 01", "needs 1 bytes where 0 are left"),
    "object of a million fields": (A, "42 00001000 00", "an object of 1048576 fields does not fit"),
    "object of billions of fields": (A, "7e ffffffff 00", "an object of 4294967295 fields does not fit"),
    "object field not in the metadata": (A, "02 01 05 00 01 00", "the field id 5 is not in a dictionary of 1 names"),
    "object fields out of order": (AB, "02 02 01 00 00 01 02 00 00", "not unique and in order"),
    "object field twice": (AB, "02 02 00 00 00 01 02 00 00", "not unique and in order"),
    "object fields of one name": (bytes.fromhex("01 02 00 01 02 61 61"), "02 02 00 01 00 01 02 00 00", "not unique"),
    "object offset beyond the values": (A, "02 01 00 32 00 00", "a value starts at 50"),
    "object values beyond the end": (A, "02 01 00 00 09 00", "values of 9 bytes end outside"),
    "object value of no bytes": (A, "02 01 00 00 00", "a value has no bytes"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_damaged_variant_is_refused_with_its_heading(name: str) -> None:
    metadata, value, reason = CORRUPT[name]
    for error in (InvalidDataFileError, InvalidManifestError):
        with pytest.raises(error, match=reason) as caught:
            decode_variant(metadata, bytes.fromhex(value), error=error)
        assert caught.value.context["heading"] == "Semi-structured Types"
        assert caught.value.message.startswith("Cannot read the variant: ")


@pytest.mark.parametrize(
    "metadata, value, reason",
    [
        (b"\x02\0\0", "00", "version 2 of the encoding"),
        (b"\x00\0\0", "00", "version 0 of the encoding"),
        (EMPTY_METADATA, "54", "primitive type 21 is not known"),
        (EMPTY_METADATA, "fc", "primitive type 63 is not known"),
    ],
)
def test_newer_variant_encoding_is_unsupported(metadata: bytes, value: str, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason) as caught:
        decode_variant(metadata, bytes.fromhex(value))
    assert caught.value.context["heading"] == "Semi-structured Types"


def nested_arrays(levels: int) -> bytes:
    """Return arrays of one value, one in the other."""
    data = NULL
    for _ in range(levels):
        data = b"\x0f\x01" + struct.pack("<II", 0, len(data)) + data
    return data


def test_excessive_nesting_is_refused() -> None:
    decode_variant(EMPTY_METADATA, nested_arrays(MAX_VARIANT_DEPTH))
    for levels in (MAX_VARIANT_DEPTH + 1, 1000, 20_000):
        with pytest.raises(UnsupportedError, match="nested deeper"):
            decode_variant(EMPTY_METADATA, nested_arrays(levels))


def test_shared_parts_cannot_expand_without_bound() -> None:
    # Both fields of each object are the one object below it: 2 ** 100 values in 1,100 bytes.
    data = NULL
    for _ in range(100):
        data = b"\x06\x02\x00\x01" + struct.pack("<HHH", 0, 0, len(data)) + data
    with pytest.raises(InvalidDataFileError, match="far more values than it has bytes"):
        decode_variant(AB, data)


def test_every_truncation_is_refused() -> None:
    metadata, value = encode_variant(variant_of({"a": [1, "x" * 70, {"b": 1.5}], "c": None, "d": b"xyz"}))
    for length in range(len(metadata)):
        with pytest.raises(CorruptTableError):
            decode_variant(metadata[:length], value)
    for length in range(len(value)):
        with pytest.raises(CorruptTableError):
            decode_variant(metadata, value[:length])


def test_corrupted_bytes_are_a_value_or_an_error() -> None:
    chance = random.Random(7)
    metadata, value = encode_variant(variant_of({"a": [1, "x" * 70, {"b": 1.5, "z": [None] * 9}], "c": 5, "d": b"xyz"}))
    outcomes: set[str] = set()
    for _ in range(3000):
        changed = bytearray(metadata + value)
        for _ in range(chance.choice((1, 2, 4))):
            changed[chance.randrange(len(changed))] = chance.choice((0, 1, 255, chance.randrange(256)))
        try:
            decoded = decode_variant(bytes(changed[: len(metadata)]), bytes(changed[len(metadata) :]))
        except (CorruptTableError, UnsupportedError) as error:
            outcomes.add(f"{type(error).__name__} in {error.context['heading']}")
        else:
            assert decode_variant(*encode_variant(decoded)).kind is decoded.kind
            outcomes.add("a value")
    assert outcomes == {
        "a value",
        "InvalidDataFileError in Semi-structured Types",
        "UnsupportedError in Semi-structured Types",
    }
