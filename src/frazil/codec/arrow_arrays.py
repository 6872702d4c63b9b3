"""Helpers for Arrow types and arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def is_text(arrow: pa.DataType) -> bool:
    """Return whether an Arrow type is a string type, in any layout."""
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow))


def is_binary(arrow: pa.DataType) -> bool:
    """Return whether an Arrow type is a variable-length binary type, in any layout."""
    return bool(pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow) or pa.types.is_binary_view(arrow))


def with_values(array: pa.Array, values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return a list or map array with its values replaced and its offsets kept, without copying."""
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(target, len(array), [validity, offsets], offset=array.offset, children=[values])


def validity(array: Any) -> pa.Buffer | None:
    """Return the validity bitmap of an array, starting at its first value, or None if it has no nulls."""
    return array.is_valid().buffers()[1] if array.null_count else None
