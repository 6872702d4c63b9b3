"""Arrow columns as the rows of an Avro container, encoded in large batches.

Avro interleaves the fields of a row, Arrow stores them by column. Each column is encoded separately into a column of
bytes (numpy computes all varints of a column at once), and Arrow then joins those columns row by row. The items of
lists are encoded the same way; since they are already contiguous, the items of a row are a slice of the joined bytes
and need no copy. The fields of an optional record are joined for the rows that have it, and the result is spread over
all rows. Nothing here loops over rows.

Columns have the Arrow types of what Avro stores: integers for dates and times, fixed-size binaries for decimals and
uuids, lists of structs for maps.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.avro_codecs import compressor
from frazil.codec.avro_container import CODEC_KEY, SCHEMA_KEY, SYNC_SIZE, encode_container
from frazil.codec.avro_schema import AvroType
from frazil.codec.json_text import encode_json
from frazil.errors import InvalidRequestError
from frazil.threads import map_in_order

BLOCK_BYTES = 64_000
"""The approximate size of a block's rows, as in Iceberg Java."""
_ROWS_AT_ONCE = 8192
_FEW_VALUES = 16
"""Up to this many integers are encoded one by one, which is faster than calling numpy."""

_Bools = npt.NDArray[np.bool_]


@cache
def _nothing() -> pa.Scalar:
    # Created on first use: the first pyarrow scalar imports pandas if it is installed.
    return pa.scalar(b"", pa.binary())


@cache
def _skipping_nulls() -> pc.JoinOptions:
    return pc.JoinOptions(null_handling="skip")


def encode_avro(
    schema: Mapping[str, object],
    metadata: Mapping[str, str],
    leaves: Sequence[AvroType],
    columns: Sequence[pa.Array],
    *,
    codec: str,
    level: int | None = None,
    sync_marker: bytes | None = None,
    threads: int = 1,
) -> bytes:
    """Return a container of rows, given as one column for each leaf of the schema.

    The default sync marker is derived from the content, so that the same rows always give the same bytes.
    """
    avro_codec, compress = compressor(codec, level)
    blocks = encode_blocks(leaves, columns, compress, threads=threads)
    header = {
        SCHEMA_KEY: encode_json(schema),
        CODEC_KEY: avro_codec.encode(),
        **{key: value.encode() for key, value in metadata.items()},
    }
    sync = _derive_sync(header, blocks) if sync_marker is None else sync_marker
    if len(sync) != SYNC_SIZE:
        raise InvalidRequestError(f"Cannot write Avro: a sync marker has {SYNC_SIZE} bytes, not {len(sync)}")
    return encode_container(header, sync, blocks)


def encode_blocks(
    leaves: Sequence[AvroType],
    columns: Sequence[pa.Array],
    compress: Callable[[bytes], bytes],
    *,
    threads: int = 1,
) -> list[tuple[int, bytes]]:
    """Return rows, given as one column per leaf, as blocks: row counts and compressed bytes."""
    rows = len(columns[0]) if columns else 0

    def encode_part(start: int) -> list[tuple[int, bytes]]:
        slice_blocks = _encode_slice(leaves, columns, start, min(_ROWS_AT_ONCE, rows - start))
        return [(count, compress(content)) for count, content in _cut(slice_blocks)]

    starts = range(0, rows, _ROWS_AT_ONCE)
    return [
        block for blocks in map_in_order(encode_part, starts, threads=min(threads, len(starts))) for block in blocks
    ]


def _derive_sync(header: Mapping[str, bytes], blocks: Sequence[tuple[int, bytes]]) -> bytes:
    digest = hashlib.blake2b(digest_size=SYNC_SIZE)
    for value in header.values():
        digest.update(value)
    for _, content in blocks:
        digest.update(content)
    return digest.digest()


def _encode_slice(leaves: Sequence[AvroType], columns: Sequence[pa.Array], start: int, length: int) -> pa.Array:
    """Return some rows as a column of bytes, in halves if their bytes do not fit one column."""
    try:
        pieces = [
            piece
            for leaf, column in zip(leaves, columns, strict=True)
            for piece in _encode(leaf, column.slice(start, length))
        ]
        return _join(pieces)
    except pa.ArrowCapacityError:
        if length == 1:
            raise InvalidRequestError("Cannot write Avro: one row takes more than 2 GiB") from None
        half = length // 2
        parts = (
            _encode_slice(leaves, columns, start, half),
            _encode_slice(leaves, columns, start + half, length - half),
        )
        return pa.chunked_array(parts)


def _cut(rows: pa.Array | pa.ChunkedArray) -> list[tuple[int, bytes]]:
    """Return encoded rows as blocks of about the usual size."""
    if isinstance(rows, pa.ChunkedArray):
        return [block for chunk in rows.chunks for block in _cut(chunk)]
    offsets = _offsets(rows)
    content = memoryview(rows.buffers()[2] or b"")
    blocks = []
    start = 0
    while start < len(rows):
        end = int(np.searchsorted(offsets, offsets[start] + BLOCK_BYTES, side="right")) - 1
        end = min(max(end, start + 1), len(rows))
        blocks.append((end - start, bytes(content[offsets[start] : offsets[end]])))
        start = end
    return blocks


def _offsets(array: pa.Array) -> npt.NDArray[np.int32]:
    offsets: npt.NDArray[np.int32] = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)
    return offsets


def _join(pieces: list[pa.Array]) -> pa.Array:
    """Return columns of bytes joined row by row; nulls add nothing."""
    if len(pieces) == 1 and pieces[0].null_count == 0:
        return pieces[0]
    return pc.binary_join_element_wise(*pieces, _nothing(), options=_skipping_nulls())


def _encode(form: AvroType, array: pa.Array) -> list[pa.Array]:
    """Return the columns of bytes that, joined, encode the values of an array."""
    if form.min_size == 0:
        return []
    valid: _Bools | None = None
    pieces: list[pa.Array] = []
    if form.is_optional:
        if array.null_count == len(array):
            return [_same_byte(2 * form.null_branch, len(array))]
        if array.null_count:
            valid = array.is_valid().to_numpy(zero_copy_only=False)
            branches = np.full(len(array), 2 * (1 - form.null_branch), np.uint8)
            branches[~valid] = 2 * form.null_branch
            pieces.append(_single_bytes(branches))
        else:
            pieces.append(_same_byte(2 * (1 - form.null_branch), len(array)))
    elif array.null_count:
        raise InvalidRequestError(f"Cannot write Avro: {array.null_count} values of a required field are null")
    return pieces + _ENCODERS[form.kind](form, array, valid)


@lru_cache(maxsize=64)
def _same_byte(value: int, rows: int) -> pa.Array:
    """Return one identical byte per row; cached, since most columns of a file need the same two or three."""
    return _single_bytes(np.full(rows, value, np.uint8))


def _single_bytes(values: npt.NDArray[np.uint8]) -> pa.Array:
    return _binary(np.arange(len(values) + 1, dtype=np.int32), values)


def _binary(offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8] | bytearray) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _varints(values: npt.NDArray[np.int64], valid: _Bools | None = None) -> pa.Array:
    """Return integers as zigzag varints; invalid ones take no bytes."""
    if len(values) <= _FEW_VALUES:
        return _few_varints(values.tolist(), None if valid is None else valid.tolist())
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    if valid is not None:
        zigzag = np.where(valid, zigzag, np.uint64(0))
    largest = int(zigzag.max()) if len(zigzag) else 0
    width = max(1, (largest.bit_length() + 6) // 7)
    digits = np.empty((len(zigzag), width), np.uint8)
    lengths = np.ones(len(zigzag), np.int32)
    rest = zigzag
    for index in range(width):
        low = (rest & np.uint64(0x7F)).astype(np.uint8)
        rest = rest >> np.uint64(7)
        continues = rest != 0
        digits[:, index] = low | (continues.view(np.uint8) << 7)
        lengths += continues
    if valid is not None:
        lengths *= valid
    offsets = np.zeros(len(zigzag) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    if width == 1 and valid is None:
        return _binary(offsets, digits[:, 0].copy())
    return _binary(offsets, digits[np.arange(width) < lengths[:, None]])


def _few_varints(values: list[int], valid: list[bool] | None) -> pa.Array:
    data = bytearray()
    offsets = [0]
    for index, value in enumerate(values):
        if valid is None or valid[index]:
            rest = (value << 1) ^ (value >> 63)
            while rest > 0x7F:
                data.append(rest & 0x7F | 0x80)
                rest >>= 7
            data.append(rest)
        offsets.append(len(data))
    return _binary(np.array(offsets, np.int32), data)


def _encode_integers(form: AvroType, array: pa.Array, valid: _Bools | None) -> list[pa.Array]:
    values = pc.fill_null(array, 0).to_numpy() if array.null_count else array.to_numpy()
    return [_varints(values.astype(np.int64, copy=False), valid)]


def _encode_booleans(form: AvroType, array: pa.Array, valid: _Bools | None) -> list[pa.Array]:
    values = pc.fill_null(array, False).to_numpy(zero_copy_only=False).astype(np.uint8)
    encoded = _single_bytes(values)
    return [encoded if valid is None else pc.if_else(pa.array(valid), encoded, pa.scalar(None, pa.binary()))]


def _encode_floats(form: AvroType, array: pa.Array, valid: _Bools | None) -> list[pa.Array]:
    width = 4 if form.kind == "float" else 8
    values = np.ascontiguousarray(pc.fill_null(array, 0.0).to_numpy()).view(np.uint8)
    encoded = _binary(np.arange(len(array) + 1, dtype=np.int32) * width, values)
    return [encoded if valid is None else pc.if_else(pa.array(valid), encoded, pa.scalar(None, pa.binary()))]


def _encode_bytes(form: AvroType, array: pa.Array, valid: _Bools | None) -> list[pa.Array]:
    content = array.cast(pa.binary())
    lengths = pc.binary_length(content)
    if lengths.null_count:
        lengths = pc.fill_null(lengths, 0)
    return [_varints(lengths.to_numpy().astype(np.int64), valid), content]


def _encode_fixed(form: AvroType, array: pa.Array, valid: _Bools | None) -> list[pa.Array]:
    return [array.cast(pa.binary())]


def _encode_list(form: AvroType, array: pa.Array, valid: _Bools | None) -> list[pa.Array]:
    assert form.items is not None
    offsets = _offsets(array)
    lengths = np.diff(offsets)
    if valid is not None and lengths[~valid].any():
        # Arrow allows a null list to hide items; taking the rows drops them.
        return _encode_list(form, array.take(pa.array(np.arange(len(array)))), valid)
    first, last = int(offsets[0]), int(offsets[-1])
    ends = _same_byte(0, len(array))
    if valid is not None:
        ends = pc.if_else(pa.array(valid), ends, pa.scalar(None, pa.binary()))
    if first == last:
        return [ends]
    counts = _varints(lengths.astype(np.int64), lengths > 0)
    items = _join(_encode_items(form, array.values.slice(first, last - first)))
    within = _offsets(items)[offsets - first]
    rows = pa.Array.from_buffers(pa.binary(), len(array), [None, pa.py_buffer(within), items.buffers()[2]])
    return [counts, rows, ends]


def _encode_items(form: AvroType, values: pa.Array) -> list[pa.Array]:
    assert form.items is not None
    if form.kind == "map":
        return _encode(_STRING, values.field(0)) + _encode(form.items, values.field(1))
    return _encode(form.items, values)


def _encode_record(form: AvroType, array: pa.Array, valid: _Bools | None) -> list[pa.Array]:
    if valid is None:
        return [
            piece for index, field in enumerate(form.fields) for piece in _encode(field.avro_type, array.field(index))
        ]
    present = _join(_encode_record(form, array.filter(pa.array(valid)), None))
    places = np.cumsum(valid, dtype=np.int64) - 1
    return [present.take(pa.array(places, mask=~valid))]


_STRING = AvroType("string", min_size=1)
_ENCODERS: Mapping[str, Callable[[AvroType, pa.Array, _Bools | None], list[pa.Array]]] = {
    "boolean": _encode_booleans,
    "int": _encode_integers,
    "long": _encode_integers,
    "float": _encode_floats,
    "double": _encode_floats,
    "bytes": _encode_bytes,
    "string": _encode_bytes,
    "fixed": _encode_fixed,
    "array": _encode_list,
    "map": _encode_list,
    "record": _encode_record,
}
