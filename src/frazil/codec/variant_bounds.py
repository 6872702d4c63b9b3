"""Bounds of variant columns. Specification: "Bounds for Variant", "Bound serialization".

A bound of a variant column is itself a variant: an object whose names are normalized JSON paths to fields, and whose
values are the lower or upper bounds of those fields. Its metadata and value are stored one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping

from frazil.codec.json_path import HEADING, parse_json_path
from frazil.codec.variant import decode_metadata, decode_value, encode_variant
from frazil.errors import InvalidManifestError, InvalidRequestError, TextSyntaxError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.variant import VariantKind, VariantValue


def decode_variant_bounds(data: bytes) -> FrozenMap[str, VariantValue]:
    """Decode a lower or upper bound of a variant column into the bounds of its fields, by path."""
    names, end = decode_metadata(data, error=InvalidManifestError)
    value = decode_value(names, data[end:], error=InvalidManifestError)
    if value.kind is not VariantKind.OBJECT:
        raise InvalidManifestError(
            f"Cannot read variant bounds: they are a {value.kind} and not an object", heading=HEADING
        )
    bounds: FrozenMap[str, VariantValue] = value.value
    for path, bound in bounds.items():
        try:
            _check_bound(path, bound)
        except InvalidRequestError as error:
            raise InvalidManifestError(error.message, heading=HEADING) from error
    return bounds


def encode_variant_bounds(bounds: Mapping[str, VariantValue]) -> bytes:
    """Encode the lower or the upper bounds of fields, by path, as the bound of their variant column."""
    for path, bound in bounds.items():
        _check_bound(path, bound)
    return b"".join(encode_variant(VariantValue(VariantKind.OBJECT, bounds)))


def _check_bound(path: str, bound: VariantValue) -> None:
    try:
        parse_json_path(path)
    except TextSyntaxError as error:
        raise InvalidRequestError(f"Cannot use variant bounds: {error.message}", heading=HEADING) from error
    if not bound.kind.is_primitive or bound.kind is VariantKind.NULL:
        raise InvalidRequestError(
            f"Cannot use variant bounds: the bound of {path[:80]} is of type {bound.kind}", heading=HEADING
        )
