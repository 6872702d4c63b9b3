"""Headers and blocks of Avro object container files. Avro specification: "Object Container Files".

    magic "Obj" 1 | metadata map (avro.schema, avro.codec, the writer's own keys) | sync marker (16 bytes)
    then blocks:   row count | size in bytes | content, compressed | the sync marker again

Counts and sizes are zigzag varints. The rows of a block have no framing: only the schema determines where one
ends, which `codec/avro_decode.py` handles. This module finds, checks and writes the frames.

Every number is checked before use, so that any input gives a result or an error within the time and memory limits
of `AvroLimits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from frazil.codec.avro_codecs import AVRO_CODECS
from frazil.codec.varint import BadVarint, encode_zigzag, read_zigzag
from frazil.errors import CorruptTableError, InvalidManifestError, UnsupportedError
from frazil.spec.frozen_map import FrozenMap

MAGIC = b"Obj\x01"
SYNC_SIZE = 16
SCHEMA_KEY = "avro.schema"
CODEC_KEY = "avro.codec"

_ENCRYPTED_MAGIC = b"AGS1"
_PARQUET_MAGIC = b"PAR1"
_MAX_HEADER_KEYS = 10_000
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class AvroLimits:
    """Limits on the time and memory that a file may cost: a floor, plus a multiple of the file size.

    Real manifests inflate to between three and a hundred times their size.
    """

    header_bytes: int = 16 * _MIB
    inflated_floor_bytes: int = 256 * _MIB
    inflated_ratio: int = 128

    def inflated_bytes(self, file_size: int) -> int:
        """Return how many bytes all blocks of a file may inflate to, and how many their columns may take."""
        return self.inflated_floor_bytes + self.inflated_ratio * file_size


DEFAULT_LIMITS = AvroLimits()


@dataclass(frozen=True, slots=True)
class AvroOrigin:
    """The file being read, for errors: its kind, its path and the specification's heading."""

    what: str
    heading: str
    path: str | None = None
    error: type[CorruptTableError] = InvalidManifestError

    def fail(self, reason: str, *, hint: str | None = None) -> CorruptTableError:
        """Return (not raise) the error for this file."""
        return self.error(f"Cannot read {self.what}: {reason}", hint=hint, path=self.path, heading=self.heading)

    def unsupported(self, reason: str, *, hint: str | None = None) -> UnsupportedError:
        """Return (not raise) the error for a valid file that needs an unsupported feature."""
        return UnsupportedError(f"Cannot read {self.what}: {reason}", hint=hint, path=self.path, heading=self.heading)


@dataclass(frozen=True, slots=True)
class AvroHeader:
    """The header of a container; `body_at` is the offset of its first block."""

    metadata: Mapping[str, bytes]
    codec: str
    sync: bytes
    body_at: int

    def text(self, key: str) -> str | None:
        """Return a metadata value as text, or None if it is missing or not UTF-8."""
        value = self.metadata.get(key)
        try:
            return None if value is None else value.decode()
        except UnicodeDecodeError:
            return None


@dataclass(frozen=True, slots=True)
class AvroBlock:
    """One block: its row count and the start and end of its compressed content."""

    count: int
    start: int
    end: int


def read_header(data: bytes, origin: AvroOrigin, limits: AvroLimits = DEFAULT_LIMITS) -> AvroHeader:
    """Read the header of a container."""
    if data[:4] != MAGIC:
        raise _wrong_magic(data, origin)
    end = min(len(data), limits.header_bytes)
    metadata: dict[str, bytes] = {}
    try:
        offset = 4
        while True:
            count, offset = read_zigzag(data, offset, end)
            if count == 0:
                break
            if count < 0:
                # A negative count is followed by the size of the pairs, for readers that skip them.
                count = -count
                _, offset = read_zigzag(data, offset, end)
            if count + len(metadata) > _MAX_HEADER_KEYS:
                raise origin.fail(f"the header declares {count} keys")
            for _ in range(count):
                key, offset = _read_bytes(data, offset, end)
                metadata[key.decode()], offset = _read_bytes(data, offset, end)
        if offset + SYNC_SIZE > end:
            raise IndexError
    except IndexError:
        if end < len(data):
            raise origin.fail(f"the header is larger than {limits.header_bytes} bytes") from None
        raise origin.fail("the file ends inside its header") from None
    except BadVarint as problem:
        raise origin.fail(f"the header is malformed: {problem}") from None
    except UnicodeDecodeError:
        raise origin.fail("the header has a key that is not UTF-8") from None
    codec = metadata.get(CODEC_KEY, b"null").decode(errors="replace") or "null"
    if codec not in AVRO_CODECS:
        raise origin.unsupported(f"its blocks are compressed with {codec[:40]!r}, which Avro does not define")
    return AvroHeader(FrozenMap(metadata), codec, data[offset : offset + SYNC_SIZE], offset + SYNC_SIZE)


def _wrong_magic(data: bytes, origin: AvroOrigin) -> Exception:
    if data[:4] == _ENCRYPTED_MAGIC:
        return origin.unsupported("it is encrypted", hint="Encrypted tables are not supported yet.")
    if data[:4] == _PARQUET_MAGIC:
        return origin.unsupported("it is a Parquet file, which only later format versions use for metadata")
    if len(data) == 0:
        return origin.fail("the file is empty")
    return origin.fail(f"it is not an Avro file: it starts with {bytes(data[:4])!r}")


def _read_bytes(data: bytes, offset: int, end: int) -> tuple[bytes, int]:
    length, offset = read_zigzag(data, offset, end)
    if length < 0:
        raise BadVarint(f"a length is {length}")
    if offset + length > end:
        raise IndexError
    return data[offset : offset + length], offset + length


def find_blocks(data: bytes, header: AvroHeader, origin: AvroOrigin) -> list[AvroBlock]:
    """Return the blocks of a container in order, with their frames checked but not their contents."""
    blocks: list[AvroBlock] = []
    offset, size, sync = header.body_at, len(data), header.sync
    while offset < size:
        number = len(blocks)
        try:
            count, offset = read_zigzag(data, offset, size)
            length, offset = read_zigzag(data, offset, size)
        except IndexError:
            raise origin.fail(f"the file ends inside the head of block {number}") from None
        except BadVarint as problem:
            raise origin.fail(f"block {number} is malformed: {problem}") from None
        if count < 0 or length < 0:
            raise origin.fail(f"block {number} declares {count} rows in {length} bytes")
        end = offset + length
        if end + SYNC_SIZE > size:
            raise origin.fail(f"the file ends inside block {number}")
        if data[end : end + SYNC_SIZE] != sync:
            raise origin.fail(f"block {number} does not end with the file's sync marker")
        if count > 0:
            blocks.append(AvroBlock(count, offset, end))
        elif length > 0 and header.codec == "null":
            raise origin.fail(f"block {number} has {length} bytes and no rows")
        offset = end + SYNC_SIZE
    return blocks


def encode_header(metadata: Mapping[str, bytes], sync: bytes) -> bytes:
    """Return the header of a container; the metadata must hold the schema and the codec."""
    pieces = [MAGIC]
    if metadata:
        pieces.append(encode_zigzag(len(metadata)))
        for key, value in metadata.items():
            name = key.encode()
            pieces += (encode_zigzag(len(name)), name, encode_zigzag(len(value)), value)
    pieces += (b"\x00", sync)
    return b"".join(pieces)


def encode_container(metadata: Mapping[str, bytes], sync: bytes, blocks: Iterable[tuple[int, bytes]]) -> bytes:
    """Return a container of blocks, each a row count and the compressed bytes of its rows."""
    pieces = [encode_header(metadata, sync)]
    for count, content in blocks:
        pieces += (encode_zigzag(count), encode_zigzag(len(content)), content, sync)
    return b"".join(pieces)
