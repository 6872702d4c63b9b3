"""Lists with the same layout in every row of a container, read as blocks of bytes instead of item by item.

Most bytes of a manifest are maps of metrics. Within one file they nearly always hold the same columns in the same
order, with numbers of the same length, so that rows differ only in the values themselves. A *stamp* is such a run of
leaves: a pattern of bytes, and a mask of the bits that every row must repeat.

    counts, keys, lengths, the end of a list, the branch of a union     all bits
    a number of n bytes                                                the top bit of each, which marks its end
    a bound of n bytes                                                 nothing

`codec/avro_decode.py` guesses stamps from a few rows and reads each as one `fixed` value, which costs one copy instead
of a hundred small numbers. It then checks all rows against the mask. A row that repeats the masked bits takes exactly
the bytes that reading it item by item would take, so if the check holds for all rows, they were read correctly; if it
fails, the leaf that it failed for is read item by item. A guess is never trusted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.codec.avro_arrow import arrow_type
from frazil.codec.avro_rows import RowsRefusal, find_spans, read_number
from frazil.codec.avro_schema import AvroType, Leaf, has_bytes
from frazil.spec.frozen_map import FrozenMap

_LONG_LIMIT = 1 << 64
_WORD = 8
"""The largest encoded number that is read, in bytes; its 56 bits fit any type."""
_MAX_STAMP_BYTES = 1 << 20
_FEW_SAMPLES = (4, 2)
_MORE_SAMPLES = (16, 8)
"""The number of blocks to examine, and of rows of each."""
_ALL, _TOP, _FREE = 0xFF, 0x80, 0x00


@dataclass(frozen=True, slots=True)
class Shape:
    """The layout of one leaf's bytes: the pattern, the mask of the bits to repeat, and the offsets of the item values.

    `keys` are those of a list of pairs, None for a list of numbers. A null leaf has no slots.
    """

    pattern: bytes
    mask: bytes
    is_null: bool = False
    keys: tuple[int, ...] | None = None
    slots: tuple[tuple[int, int], ...] = ()

    def fits(self, data: bytes) -> bool:
        """Return whether bytes repeat the masked bits of the pattern."""
        if len(data) != len(self.pattern):
            return False
        left, right, must = (int.from_bytes(data_bytes) for data_bytes in (data, self.pattern, self.mask))
        return (left ^ right) & must == 0


@dataclass(frozen=True, slots=True)
class Stamp:
    """A run of leaves that is read as one value, by position in the schema."""

    shapes: Mapping[int, Shape]

    @property
    def name(self) -> str:
        """The name of the column to read."""
        return f"s{min(self.shapes)}"

    @property
    def pattern(self) -> bytes:
        """The patterns of all leaves, concatenated."""
        return b"".join(shape.pattern for shape in self.shapes.values())

    @property
    def mask(self) -> bytes:
        """The masks of all leaves, concatenated."""
        return b"".join(shape.mask for shape in self.shapes.values())


class StampRefusal(Exception):
    """Rows that do not repeat a stamp; `leaf` is the first leaf that differs."""

    def __init__(self, leaf: int) -> None:
        super().__init__(leaf)
        self.leaf = leaf


@dataclass(frozen=True, slots=True)
class Guesses:
    """Observations about a schema's rows: shapes shared by all rows, and leaves without a common shape."""

    right: Mapping[int, Shape] = FrozenMap()
    wrong: frozenset[int] = frozenset()


class PastGuesses:
    """Guesses by schema, since the next manifest of a table resembles the last; thread-safe.

    A stale guess costs time but not correctness.
    """

    def __init__(self, limit: int = 64) -> None:
        self._limit = limit
        self._known: dict[bytes, Guesses] = {}
        self._lock = Lock()

    def of(self, schema: bytes) -> Guesses:
        """Return the guesses for a schema."""
        return self._known.get(schema, Guesses())

    def remember(self, schema: bytes, right: Mapping[int, Shape], wrong: Iterable[int] = ()) -> None:
        """Store the shapes of a schema and add its leaves without one; the oldest schemas are evicted."""
        with self._lock:
            before = self._known.pop(schema, Guesses())
            self._known[schema] = Guesses(right, before.wrong | frozenset(wrong))
            while len(self._known) > self._limit:
                del self._known[next(iter(self._known))]

    def clear(self) -> None:
        """Forget all schemas."""
        with self._lock:
            self._known.clear()


past_guesses = PastGuesses()


def first_row_fits(content: bytes, leaves: Sequence[Leaf], shapes: Mapping[int, Shape]) -> bool:
    """Return whether the first row of a block fits some shapes."""
    try:
        for row, spans in find_spans([(1, content)], leaves):
            return all(shape.fits(row[slice(*spans[offset])]) for offset, shape in shapes.items())
    except RowsRefusal:
        pass
    return False


def guess_shapes(
    blocks: Sequence[tuple[int, bytes]], leaves: Sequence[Leaf], after: int, *, few: bool = True
) -> dict[int, Shape]:
    """Return the shapes that sampled rows share, by the position of the leaf, for leaves after position `after`.

    The samples are the first rows of some blocks, since later rows can only be found by reading. With `few`, the
    sample is smaller and the guess faster.
    """
    chosen, rows = _FEW_SAMPLES if few else _MORE_SAMPLES
    step = max(1, len(blocks) // chosen)
    samples = [(min(count, rows), content) for count, content in blocks[::step][:chosen]]
    shared: dict[int, Shape] | None = None
    try:
        for content, spans in find_spans(samples, leaves):
            parts = [content[start:end] for start, end in spans]
            if shared is None:
                guesses = {
                    index: _shape_of(leaves[index].avro_type, leaf_bytes)
                    for index, leaf_bytes in enumerate(parts)
                    if index > after
                }
                shared = {offset: shape for offset, shape in guesses.items() if shape is not None}
            shared = {offset: shape for offset, shape in shared.items() if shape.fits(parts[offset])}
    except RowsRefusal:
        return {}
    return shared or {}


def make_stamps(shapes: Mapping[int, Shape], leaves: Sequence[Leaf]) -> list[Stamp]:
    """Return the runs of leaves with shapes that include a list."""
    runs: list[dict[int, Shape]] = [{}]
    for index, leaf in enumerate(leaves):
        if index in shapes:
            runs[-1][index] = shapes[index]
        elif has_bytes(leaf):
            runs.append({})
    return [
        Stamp(run)
        for run in runs
        if any(not shape.is_null for shape in run.values())
        and _WORD <= sum(len(shape.pattern) for shape in run.values()) <= _MAX_STAMP_BYTES
    ]


def _shape_of(avro_type: AvroType, data: bytes) -> Shape | None:
    """Return the shape of a leaf's bytes, or None if it is neither null nor a list of a supported kind."""
    if avro_type.is_optional and data[0] == 2 * avro_type.null_branch:
        return Shape(data, bytes([_ALL]), is_null=True) if len(data) == 1 else None
    if avro_type.kind != "array" or avro_type.items is None:
        return None
    kinds = _item_kinds(avro_type.items)
    if kinds is None:
        return None
    mask = bytearray([_ALL]) * len(data)
    slots: list[tuple[int, int]] = []
    keys: list[int] = []
    count, offset = read_number(data, 1 if avro_type.is_optional else 0, _LONG_LIMIT)
    if count < 0:
        return None
    for _ in range(count):
        if len(kinds) == 2:
            key, offset = read_number(data, offset, 1 << 32)
            keys.append(key)
        start = offset
        number, offset = read_number(data, offset, _LONG_LIMIT)
        if kinds[-1] == "bytes":
            start, offset = offset, offset + number
            mask[start:offset] = bytes([_FREE]) * number
        elif offset - start <= _WORD:
            mask[start:offset] = bytes([_TOP]) * (offset - start)
        else:
            return None
        slots.append((start, offset))
    if count and (offset >= len(data) or data[offset] != 0):
        return None
    if offset + (1 if count else 0) != len(data):
        return None
    return Shape(data, bytes(mask), keys=tuple(keys) if len(kinds) == 2 else None, slots=tuple(slots))


def _item_kinds(items: AvroType) -> tuple[str, ...] | None:
    """Return ("long",), ("int", "long") or ("int", "bytes"), or None for other items."""
    if items.is_optional:
        return None
    if items.kind == "long":
        return ("long",)
    if items.kind != "record" or any(field.avro_type.is_optional for field in items.fields):
        return None
    kinds = tuple(field.avro_type.kind for field in items.fields)
    return kinds if kinds in (("int", "long"), ("int", "bytes")) else None


def read_stamp(stamp: Stamp, column: pa.Array, wanted: Collection[int], leaves: Sequence[Leaf]) -> dict[int, pa.Array]:
    """Return the wanted leaves of a stamp, or raise `StampRefusal`; the last row is checked but not returned."""
    pattern, mask = (np.frombuffer(raw, np.uint8) for raw in (stamp.pattern, stamp.mask))
    width = len(pattern)
    raw = np.frombuffer(column.buffers()[1], np.uint8, len(column) * width, column.offset * width)
    rows = raw.reshape(len(column), width)
    low, high = np.bitwise_and.reduce(rows, axis=0), np.bitwise_or.reduce(rows, axis=0)
    wrong = np.flatnonzero(((low ^ pattern) | (high ^ pattern)) & mask)
    is_same = low == high
    reader = _StampReader(len(column) - 1)
    start = 0
    arrays: dict[int, pa.Array] = {}
    for offset, shape in stamp.shapes.items():
        end = start + len(shape.pattern)
        if len(wrong) and wrong[0] < end:
            raise StampRefusal(offset)
        if offset in wanted:
            fields = _Rows(raw, len(column) - 1, width, start)
            arrays[offset] = reader.read(shape, fields, is_same[start:end], leaves[offset].avro_type)
        start = end
    return arrays


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of equal width in which one leaf starts at `start`; at least one more row follows the last."""

    raw: npt.NDArray[np.uint8]
    count: int
    width: int
    start: int

    def fields(self, offset: int, dtype: str, count: int, step: int) -> npt.NDArray[Any]:
        """Return `count` values of each row, `step` bytes apart, as a two-dimensional array."""
        return np.ndarray((self.count, count), dtype, self.raw.data, self.start + offset, (self.width, step))


@dataclass(frozen=True, slots=True)
class _Series:
    """Slots of one size at equal distances: the offset of the first, their number and their distance."""

    start: int
    size: int
    count: int
    step: int


def _series_of(slots: Sequence[tuple[int, int]]) -> list[_Series]:
    """Return slots grouped into series, each of which numpy reads at once."""
    series: list[_Series] = []
    for start, end in slots:
        last = series[-1] if series else None
        if last is not None and end - start == last.size:
            step = start - last.start - (last.count - 1) * last.step
            if last.count == 1 or step == last.step:
                series[-1] = _Series(last.start, last.size, last.count + 1, step)
                continue
        series.append(_Series(start, end - start, 1, 0))
    return series


class _StampReader:
    """A builder of the arrays of one stamp's leaves, which share equal keys and offsets."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._keys: dict[tuple[int, ...], pa.Array] = {}
        self._places: dict[tuple[int, ...], pa.Buffer] = {}

    def read(self, shape: Shape, rows: _Rows, is_same: npt.NDArray[np.bool_], avro_type: AvroType) -> pa.Array:
        """Return a leaf as an array; `is_same` marks the bytes that are equal in all rows."""
        target, items = arrow_type(avro_type), avro_type.items
        if shape.is_null:
            return pa.nulls(self.count, target)
        assert items is not None
        is_bytes = items.kind == "record" and items.fields[1].avro_type.kind == "bytes"
        values = self._bytes(shape, rows) if is_bytes else _numbers_of(shape, rows, is_same)
        if shape.keys is not None:
            children = [self._tiled(shape.keys), values]
            values = pa.Array.from_buffers(target.value_type, len(values), [None], children=children)
        offsets = self._offsets((len(shape.slots),))
        return pa.Array.from_buffers(target, self.count, [None, offsets], children=[values])

    def _bytes(self, shape: Shape, rows: _Rows) -> pa.Array:
        """Return the bytes of all slots, row by row."""
        sizes = tuple(end - start for start, end in shape.slots)
        width = sum(sizes)
        out = _Rows(np.empty(self.count * width, np.uint8), self.count, width, 0)
        to = 0
        for series in _series_of(shape.slots):
            if series.size:
                dtype = f"V{series.size}"
                out.fields(to, dtype, series.count, series.size)[:] = rows.fields(
                    series.start, dtype, series.count, series.step
                )
            to += series.size * series.count
        buffers = [None, self._offsets(sizes), pa.py_buffer(out.raw)]
        return pa.Array.from_buffers(pa.binary(), self.count * len(sizes), buffers)

    def _tiled(self, keys: tuple[int, ...]) -> pa.Array:
        if keys not in self._keys:
            tiled = np.empty((self.count, len(keys)), np.int32)
            tiled[:] = keys
            self._keys[keys] = pa.array(tiled.reshape(-1))
        return self._keys[keys]

    def _offsets(self, sizes: tuple[int, ...]) -> pa.Buffer:
        """Return the offsets of values of these sizes, repeated for every row."""
        if sizes not in self._places:
            if len(set(sizes)) == 1:
                places = np.arange(self.count * len(sizes) + 1, dtype=np.int32) * np.int32(sizes[0])
            else:
                ends = np.cumsum([0, *sizes], dtype=np.int32)
                places = np.empty(self.count * len(sizes) + 1, np.int32)
                starts = np.arange(self.count, dtype=np.int32) * ends[-1]
                np.add.outer(starts, ends[:-1], out=places[:-1].reshape(self.count, len(sizes)))
                places[-1] = self.count * ends[-1]
            self._places[sizes] = pa.py_buffer(places)
        return self._places[sizes]


def _numbers_of(shape: Shape, rows: _Rows, is_same: npt.NDArray[np.bool_]) -> pa.Array:
    """Return the numbers of all slots, row by row."""
    series = _series_of(shape.slots)
    if all(is_same[start:end].all() for start, end in shape.slots):
        first = _Rows(rows.raw, 1, rows.width, rows.start)
        once = np.concatenate([_numbers(first, run)[0] for run in series]) if series else np.empty(0, np.int64)
        tiled = np.empty((rows.count, len(once)), np.int64)
        tiled[:] = once
        return pa.array(tiled.reshape(-1))
    if len(series) == 1:
        return pa.array(_numbers(rows, series[0]).reshape(-1))
    return pa.array(np.concatenate([_numbers(rows, run) for run in series], axis=1).reshape(-1))


def _numbers(rows: _Rows, series: _Series) -> npt.NDArray[np.int64]:
    # Words that begin with the number; the bytes after it are masked away.
    dtype = "<u4" if series.size <= _WORD // 2 else "<u8"
    words = rows.fields(series.start, dtype, series.count, series.step)
    number = words & words.dtype.type(0x7F)
    for byte in range(1, series.size):
        number |= (words >> words.dtype.type(byte)) & words.dtype.type(0x7F << (7 * byte))
    zigzag = number.view(dtype.replace("u", "i"))
    signed: npt.NDArray[np.int64] = ((zigzag >> 1) ^ -(zigzag & 1)).astype(np.int64)
    return signed
