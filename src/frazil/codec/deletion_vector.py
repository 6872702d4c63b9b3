"""Deletion vectors: the deleted rows of one data file. Specification: "Deletion Vectors".

A vector is a set of row positions of one data file. It is stored as a blob in a Puffin file, often with those of other
data files. The delete manifest records where it is (`content_offset`, `content_size_in_bytes`), its data file
(`referenced_data_file`) and its number of positions (`record_count`), so a scan reads exactly the blob. The Puffin
specification describes it under "`deletion-vector-v1` blob type":

    length of the magic and the positions, 4 bytes, big-endian
    D1 D3 39 64
    the positions, in the layout of `codec/roaring.py`, little-endian
    CRC-32 of the magic and the positions, 4 bytes, big-endian

Runs of adjacent positions are run-encoded on write if that is shorter. Bitmaps without positions, which other writers
use to fill gaps between keys, are accepted on read and never written.

A wrong vector silently deletes or revives rows, so the length, the magic, the checksum, the order of keys, the inside
of each bitmap and the cardinality must all agree before a vector is returned. The checksum guards against damage but
not against malice, so the layout is checked separately.

A vector stays compressed in memory. Hostile bytes can encode runs of billions of positions in a few bytes; they cost
nothing until all are expanded at once. Only `to_numpy` does that, for positions that this process computed; those
from files are read in parts (`parts`), as bits (`mask`) or as sets (`minus`, `below`).
"""

from __future__ import annotations

import array
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, FrozenBitMap

from frazil.codec.puffin import DEFAULT_MAX_BLOB_BYTES, PuffinFooter, PuffinWriter, ReadRange
from frazil.codec.roaring import HEADING, corrupt, decode_roaring64, encode_roaring64
from frazil.errors import InvalidRequestError
from frazil.spec.puffin import CARDINALITY, CREATED_BY, DELETION_VECTOR_V1, REFERENCED_DATA_FILE, BlobMetadata
from frazil.spec.reserved_columns import POS

MAGIC = b"\xd1\xd3\x39\x64"
MAX_POSITION = 2**63 - 1

_INT_MAX = 2**31 - 1
_LOW_BITS = 0xFFFFFFFF
_SMALLEST_BLOB = 4 + len(MAGIC) + 8 + 4
_UNKNOWN_ID = -1
"""The snapshot id and sequence number of a blob that is written before its commit."""


class DeletionVector:
    """The deleted positions of a data file: an immutable set.

    It has no `len` and is always true: an empty vector is a valid value. Use `cardinality`.
    """

    __slots__ = ("_bitmaps", "_cardinality")

    _bitmaps: tuple[tuple[int, FrozenBitMap], ...]
    _cardinality: int

    def __init__(self, positions: Iterable[int] | npt.NDArray[Any] = ()) -> None:
        """Make a vector of positions in any order, with or without repetitions."""
        if isinstance(positions, DeletionVector):
            bitmaps = positions._bitmaps
        elif isinstance(positions, range) and positions.step == 1:
            bitmaps = _bitmaps_of_range(positions.start, positions.stop)
        else:
            bitmaps = _bitmaps_of_array(_as_array(positions))
        self._fill(bitmaps)

    @classmethod
    def from_bitmaps(cls, bitmaps: Iterable[tuple[int, FrozenBitMap]]) -> DeletionVector:
        """Return a vector of 32-bit bitmaps by key; the keys must ascend."""
        vector = cls.__new__(cls)
        vector._fill(tuple(bitmaps))
        return vector

    def _fill(self, bitmaps: tuple[tuple[int, FrozenBitMap], ...]) -> None:
        filled = tuple((key, bitmap) for key, bitmap in bitmaps if len(bitmap) > 0)
        object.__setattr__(self, "_bitmaps", filled)
        object.__setattr__(self, "_cardinality", sum(len(bitmap) for _, bitmap in filled))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a deletion vector cannot change: {name}")

    @property
    def cardinality(self) -> int:
        """The number of positions."""
        return self._cardinality

    @property
    def is_empty(self) -> bool:
        """Whether there are no positions."""
        return self._cardinality == 0

    @property
    def first(self) -> int | None:
        """The smallest position, or None."""
        return (self._bitmaps[0][0] << 32) | self._bitmaps[0][1].min() if self._bitmaps else None

    @property
    def last(self) -> int | None:
        """The largest position, or None."""
        return (self._bitmaps[-1][0] << 32) | self._bitmaps[-1][1].max() if self._bitmaps else None

    def __contains__(self, position: int) -> bool:
        if not 0 <= position <= MAX_POSITION:
            return False
        high = position >> 32
        return any(key == high and (position & _LOW_BITS) in bitmap for key, bitmap in self._bitmaps)

    def __iter__(self) -> Iterator[int]:
        for key, bitmap in self._bitmaps:
            base = key << 32
            for low in bitmap:
                yield base | low

    def union(self, *others: DeletionVector) -> DeletionVector:
        """Return the union of this vector and others."""
        by_key: dict[int, list[FrozenBitMap]] = {}
        for vector in (self, *others):
            for key, bitmap in vector._bitmaps:
                by_key.setdefault(key, []).append(bitmap)
        return DeletionVector.from_bitmaps(
            (key, bitmaps[0] if len(bitmaps) == 1 else FrozenBitMap.union(*bitmaps))
            for key, bitmaps in sorted(by_key.items(), key=lambda item: item[0])
        )

    def __or__(self, other: DeletionVector) -> DeletionVector:
        return self.union(other)

    def minus(self, other: DeletionVector) -> DeletionVector:
        """Return the positions of this vector that are not in the other."""
        others = dict(other._bitmaps)
        return DeletionVector.from_bitmaps(
            (key, bitmap - others[key] if key in others else bitmap) for key, bitmap in self._bitmaps
        )

    def below(self, end: int) -> DeletionVector:
        """Return the positions smaller than `end`."""
        lower = ((key, bitmap, end - (key << 32)) for key, bitmap in self._bitmaps if key << 32 < end)
        return DeletionVector.from_bitmaps(
            (key, bitmap if rest > _LOW_BITS else bitmap & FrozenBitMap(range(rest))) for key, bitmap, rest in lower
        )

    def parts(self, size: int) -> Iterator[npt.NDArray[np.int64]]:
        """Yield all positions in ascending order, at most `size` of them at a time."""
        for key, bitmap in self._bitmaps:
            count = len(bitmap)
            for start in range(0, count, size):
                first, last = bitmap[start], bitmap[min(start + size, count) - 1]
                positions = _low_positions(bitmap & FrozenBitMap(range(first, last + 1)))
                yield positions.astype(np.int64) + (key << 32)

    def mask(self, start: int, length: int) -> npt.NDArray[np.bool_]:
        """Return, for `length` rows from position `start`, whether each is deleted."""
        if start < 0 or length < 0:
            raise InvalidRequestError(f"Cannot mask {length} rows from position {start}: neither may be negative")
        deleted = np.zeros(length, dtype=np.bool_)
        end = start + length
        for key, bitmap in self._bitmaps:
            base = key << 32
            low, high = max(start - base, 0), min(end - base, 1 << 32)
            if low >= high:  # the range lies before or after this key
                continue
            # Only the positions in the range are unpacked.
            positions = _low_positions(bitmap & FrozenBitMap(range(low, high)))
            deleted[positions.astype(np.int64) + (base - start)] = True
        return deleted

    def to_numpy(self) -> npt.NDArray[np.int64]:
        """Return all positions in ascending order, 8 bytes each; for those of a file, use `parts`."""
        parts = [_low_positions(bitmap).astype(np.int64) + (key << 32) for key, bitmap in self._bitmaps]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def bitmaps(self) -> tuple[tuple[int, FrozenBitMap], ...]:
        """Return the non-empty 32-bit bitmaps with their keys, in ascending order."""
        return self._bitmaps

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeletionVector):
            return NotImplemented
        return self._cardinality == other._cardinality and self._bitmaps == other._bitmaps

    def __hash__(self) -> int:
        return hash((self._cardinality, self.first, self.last))

    def __reduce__(self) -> tuple[object, ...]:
        return DeletionVector.from_bitmaps, (self._bitmaps,)

    def __repr__(self) -> str:
        return f"<DeletionVector of {self._cardinality} positions from {self.first} to {self.last}>"


@dataclass(frozen=True, slots=True)
class StoredDeletionVector:
    """The location of a vector in its Puffin file, in the terms of its future manifest entry."""

    referenced_data_file: str
    content_offset: int
    content_size_in_bytes: int
    cardinality: int


@dataclass(frozen=True, slots=True)
class DeletionVectorFile:
    """A Puffin file of deletion vectors, ready to be written."""

    data: bytes
    vectors: tuple[StoredDeletionVector, ...]
    footer: PuffinFooter


def encode_deletion_vector(vector: DeletionVector) -> bytes:
    """Encode a vector as a blob, run-encoded if that is shorter."""
    optimized = [(key, FrozenBitMap(bitmap, optimize=True)) for key, bitmap in vector.bitmaps()]
    body = MAGIC + encode_roaring64(optimized)
    if len(body) + 8 > _INT_MAX:
        raise InvalidRequestError(
            f"Cannot write the deletion vector: {len(body)} bytes are more than its length field can hold",
            heading=HEADING,
        )
    return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def decode_deletion_vector(data: bytes, *, record_count: int | None = None) -> DeletionVector:
    """Decode a blob, checking that it has `record_count` positions if that is given."""
    if len(data) < _SMALLEST_BLOB:
        raise corrupt(f"{len(data)} bytes are fewer than the smallest has")
    (length,) = struct.unpack_from(">i", data)
    if length != len(data) - 8:
        raise corrupt(f"its length field says {length}, and the blob of {len(data)} bytes holds {len(data) - 8}")
    if data[4:8] != MAGIC:
        raise corrupt(f"it starts with {data[4:8].hex()} where the magic {MAGIC.hex()} belongs")
    (expected,) = struct.unpack_from(">I", data, len(data) - 4)
    actual = zlib.crc32(memoryview(data)[4:-4])
    if actual != expected:
        raise corrupt(f"its CRC-32 is {actual:#010x}, and {expected:#010x} is stored")
    vector = DeletionVector.from_bitmaps(decode_roaring64(data[8:-4]))
    if record_count is not None and vector.cardinality != record_count:
        raise corrupt(f"it has {vector.cardinality} positions where {record_count} are recorded")
    return vector


def read_deletion_vector(
    read_range: ReadRange,
    content_offset: int,
    content_size_in_bytes: int,
    *,
    record_count: int | None = None,
    max_bytes: int = DEFAULT_MAX_BLOB_BYTES,
) -> DeletionVector:
    """Read a vector at the location in its manifest entry, without the footer of its file."""
    if content_offset < 0 or not _SMALLEST_BLOB <= content_size_in_bytes <= max_bytes:
        raise corrupt(f"{content_size_in_bytes} bytes at offset {content_offset} cannot hold one")
    data = read_range(content_offset, content_size_in_bytes)
    if len(data) != content_size_in_bytes:
        raise corrupt(
            f"{len(data)} bytes came back where {content_size_in_bytes} were asked for at offset {content_offset}"
        )
    return decode_deletion_vector(data, record_count=record_count)


def encode_deletion_vector_file(vectors: Mapping[str, DeletionVector], *, created_by: str) -> DeletionVectorFile:
    """Encode the vectors of several data files, by location, as one Puffin file."""
    writer = PuffinWriter({CREATED_BY: created_by})
    stored = []
    for location, vector in vectors.items():
        if not location:
            raise InvalidRequestError("Cannot write the deletion vector: the data file's location is empty")
        if vector.is_empty:
            raise InvalidRequestError(
                f"Cannot write the deletion vector of {location}: it has no positions",
                hint="A data file without deleted rows has no vector.",
            )
        blob = writer.add_blob(
            DELETION_VECTOR_V1,
            encode_deletion_vector(vector),
            fields=(POS.field_id,),
            snapshot_id=_UNKNOWN_ID,
            sequence_number=_UNKNOWN_ID,
            properties={REFERENCED_DATA_FILE: location, CARDINALITY: str(vector.cardinality)},
        )
        stored.append(StoredDeletionVector(location, blob.offset, blob.length, vector.cardinality))
    data = writer.finish()
    return DeletionVectorFile(data, tuple(stored), writer.footer)


def describe_deletion_vector(blob: BlobMetadata) -> StoredDeletionVector:
    """Return the location of a vector from its blob metadata, refusing other blobs."""
    if blob.type != DELETION_VECTOR_V1:
        raise InvalidRequestError(f"Cannot read a deletion vector from a blob of type {blob.type[:60]!r}")
    if blob.compression_codec is not None:
        raise corrupt(f"it is compressed with {blob.compression_codec[:40]!r}, and vectors must not be")
    location = blob.properties.get(REFERENCED_DATA_FILE)
    if not location:
        raise corrupt(f"its blob has no property {REFERENCED_DATA_FILE!r}")
    text = blob.properties.get(CARDINALITY, "")
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_POSITION))):
        raise corrupt(f"its property {CARDINALITY!r} is {text[:40]!r}, which is not a count")
    return StoredDeletionVector(location, blob.offset, blob.length, int(text))


def _as_array(positions: Iterable[int] | npt.NDArray[Any]) -> npt.NDArray[Any]:
    try:
        values = positions if isinstance(positions, np.ndarray) else np.asarray(list(positions))
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(f"Cannot make a deletion vector: {error}", heading=HEADING) from error
    if values.size == 0:
        return np.empty(0, dtype=np.int64)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise InvalidRequestError(
            f"Cannot make a deletion vector of {values.dtype} values in {values.ndim} dimensions",
            hint=f"Positions are whole numbers from 0 to {MAX_POSITION}.",
        )
    smallest, largest = int(values.min()), int(values.max())
    if smallest < 0 or largest > MAX_POSITION:
        raise _position_out_of_range(smallest if smallest < 0 else largest)
    return values


def _bitmaps_of_array(values: npt.NDArray[Any]) -> tuple[tuple[int, FrozenBitMap], ...]:
    if values.size == 0:
        return ()
    if int(values.max()) <= _LOW_BITS:
        return ((0, _bitmap_of(values)),)
    ordered = np.sort(values)
    keys = (ordered >> 32).astype(np.int64)
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    ends = [*starts[1:].tolist(), len(ordered)]
    return tuple(
        (int(keys[start]), _bitmap_of(ordered[start:end] & _LOW_BITS))
        for start, end in zip(starts.tolist(), ends, strict=True)
    )


def _bitmaps_of_range(start: int, stop: int) -> tuple[tuple[int, FrozenBitMap], ...]:
    if start >= stop:
        return ()
    if start < 0 or stop - 1 > MAX_POSITION:
        raise _position_out_of_range(start if start < 0 else stop - 1)
    first, last = start >> 32, (stop - 1) >> 32
    if last - first > 1 << 10:
        raise InvalidRequestError(f"Cannot make a deletion vector of the {stop - start} positions from {start}")
    return tuple(
        (key, FrozenBitMap(range(max(start - (key << 32), 0), min(stop - (key << 32), 1 << 32))))
        for key in range(first, last + 1)
    )


def _bitmap_of(values: npt.NDArray[Any]) -> FrozenBitMap:
    # The library accepts an array of the C type without examining each value.
    words = array.array("I", values.astype(np.uint32).tobytes())
    return FrozenBitMap(words)


def _low_positions(bitmap: BitMap | FrozenBitMap) -> npt.NDArray[np.uint32]:
    return np.frombuffer(bitmap.to_array(), dtype=np.uint32) if len(bitmap) > 0 else np.empty(0, dtype=np.uint32)


def _position_out_of_range(position: int) -> InvalidRequestError:
    return InvalidRequestError(
        f"Cannot make a deletion vector: the position {position} is not from 0 to {MAX_POSITION}", heading=HEADING
    )
