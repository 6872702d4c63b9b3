"""What several rooms ask of Arrow's types and arrays."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def is_text(arrow: pa.DataType) -> bool:
    """Return whether values of a type are text, however it is stored."""
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow))


def is_binary(arrow: pa.DataType) -> bool:
    """Return whether values of a type are bytes of any length, however they are stored."""
    return bool(pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow) or pa.types.is_binary_view(arrow))


def with_values(array: pa.Array, values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return a list or map with other values and the same offsets, nothing copied."""
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(target, len(array), [validity, offsets], offset=array.offset, children=[values])


def validity(array: Any) -> pa.Buffer | None:
    """Return which values are not null, as bits that begin with the array's first value; None where all are."""
    return array.is_valid().buffers()[1] if array.null_count else None
