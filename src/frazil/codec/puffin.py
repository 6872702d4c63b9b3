"""Puffin files: blobs with a footer that lists them. Specification: Puffin file format.

    PFA1 | blobs ... | PFA1 | footer payload | payload size, 4 bytes | flags, 4 bytes | PFA1
                       `------------------------- footer -------------------------------'

Statistics and deletion vectors are stored in Puffin files. A reader starts at the end: the last 12 bytes give the
payload's size, the payload (JSON, in one LZ4 frame if a flag says so) lists the blobs, and each blob is then one read.
All reads go through a `ReadRange`, a function of offset and length, so that the caller provides the storage. Planning
that has a blob's offset from a manifest reads it without the footer.

Files are untrusted. Sizes are checked against the file and the limits before anything is read or decompressed;
unknown flags and codecs are refused, unrecognised JSON fields are kept. Blobs must lie between the header and the
footer; they may leave gaps and may overlap, which the specification does not forbid.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import zstandard

from frazil.codec.json_fields import LONG_MAX, JsonObject
from frazil.codec.lz4_frame import decode_lz4_frame, encode_lz4_frame
from frazil.errors import InvalidPuffinError, InvalidRequestError, UnsupportedError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.puffin import COMPRESSION_CODECS, NO_PROPERTIES, BlobMetadata, CompressionCodec, FileMetadata

ReadRange: TypeAlias = Callable[[int, int], bytes]
"""Reader of exactly so many bytes of a file, from an offset."""

MAGIC = b"PFA1"
DEFAULT_MAX_BLOB_BYTES = 1 << 30
DEFAULT_MAX_FOOTER_BYTES = 256 << 20

_TAIL = struct.Struct("<iI4s")
_FOOTER_PAYLOAD_COMPRESSED = 0x1
_SMALLEST_FOOTER = len(MAGIC) + _TAIL.size
_FIRST_READ_BYTES = 16 << 10
_INT_MAX = 2**31 - 1

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK_BYTES = 128 << 10
_ZSTD_LEVEL = 3


@dataclass(frozen=True, slots=True)
class PuffinFooter:
    """A footer that was read or written, with the sizes that table metadata records."""

    file_metadata: FileMetadata
    file_size: int
    footer_size: int

    @property
    def blobs(self) -> tuple[BlobMetadata, ...]:
        """The blobs of the file."""
        return self.file_metadata.blobs

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the file."""
        return self.file_metadata.properties


def range_reader(data: bytes) -> ReadRange:
    """Return the `ReadRange` of a file in memory."""
    return lambda offset, length: data[offset : offset + length]


def read_puffin_footer(
    read_range: ReadRange,
    file_size: int,
    *,
    footer_size: int | None = None,
    max_footer_bytes: int = DEFAULT_MAX_FOOTER_BYTES,
) -> PuffinFooter:
    """Read a file's footer, in one read if `footer_size` is given or the footer is small."""
    if file_size < len(MAGIC) + _SMALLEST_FOOTER:
        raise _corrupt(f"{file_size} bytes are fewer than the smallest file has", "File structure")
    largest = file_size - len(MAGIC)
    if footer_size is not None and not _SMALLEST_FOOTER <= footer_size <= largest:
        raise _corrupt(f"a footer of {footer_size} bytes does not fit a file of {file_size}", "Footer structure")
    first_read = _FIRST_READ_BYTES if footer_size is None else min(footer_size, max_footer_bytes)
    tail_length = min(file_size, max(first_read, _TAIL.size))
    tail = _read(read_range, file_size - tail_length, tail_length)
    payload_size, flags = _decode_tail(tail)
    actual_size = _SMALLEST_FOOTER + payload_size
    if payload_size < 0 or actual_size > largest:
        raise _corrupt(
            f"a footer payload of {payload_size} bytes does not fit a file of {file_size}", "Footer structure"
        )
    if footer_size is not None and actual_size != footer_size:
        raise _corrupt(f"the footer has {actual_size} bytes where {footer_size} were expected", "Footer structure")
    if payload_size > max_footer_bytes:
        raise _corrupt(
            f"the footer payload of {payload_size} bytes is above the limit of {max_footer_bytes}", "Footer structure"
        )
    if actual_size > tail_length:
        tail = _read(read_range, file_size - actual_size, actual_size - tail_length) + tail
    if len(tail) == file_size and tail[: len(MAGIC)] != MAGIC:
        raise _corrupt(f"it starts with {tail[:4].hex()} where the magic belongs", "File structure")
    footer = tail[len(tail) - actual_size :]
    if footer[: len(MAGIC)] != MAGIC:
        raise _corrupt(f"the footer starts with {footer[:4].hex()} where the magic belongs", "Footer structure")
    # Only now are the flags certain to be flags, and not part of a truncated file.
    if flags & ~_FOOTER_PAYLOAD_COMPRESSED:
        raise UnsupportedError(
            f"Cannot read the Puffin file: the footer flags {flags:#010x} are not known",
            hint="A newer version of the format may have written the file.",
            heading="Footer structure",
        )
    payload = footer[len(MAGIC) : len(MAGIC) + payload_size]
    if flags & _FOOTER_PAYLOAD_COMPRESSED:
        payload = decode_lz4_frame(payload, max_bytes=max_footer_bytes)
    file_metadata = decode_file_metadata(payload)
    for index, blob in enumerate(file_metadata.blobs):
        if blob.offset < len(MAGIC) or blob.end > file_size - actual_size:
            raise _corrupt(
                f"blobs[{index}] of {blob.length} bytes at offset {blob.offset} does not lie between the header and "
                f"the footer at offset {file_size - actual_size}",
                "BlobMetadata",
            )
    return PuffinFooter(file_metadata, file_size, actual_size)


def decode_puffin_footer(data: bytes, *, max_footer_bytes: int = DEFAULT_MAX_FOOTER_BYTES) -> PuffinFooter:
    """Decode the footer of a file in memory, checking the file's header as well."""
    if data[: len(MAGIC)] != MAGIC:
        raise _corrupt(f"it starts with {data[:4].hex() or 'nothing'} where the magic belongs", "File structure")
    return read_puffin_footer(range_reader(data), len(data), max_footer_bytes=max_footer_bytes)


def read_blob(read_range: ReadRange, blob: BlobMetadata, *, max_bytes: int = DEFAULT_MAX_BLOB_BYTES) -> bytes:
    """Read one blob and decompress it, refusing one of more than `max_bytes`."""
    if blob.length > max_bytes:
        raise _blob_too_large(blob.length, max_bytes)
    return decode_blob(_read(read_range, blob.offset, blob.length), blob.compression_codec, max_bytes=max_bytes)


def decode_blob(stored: bytes, compression_codec: str | None, *, max_bytes: int = DEFAULT_MAX_BLOB_BYTES) -> bytes:
    """Decompress a stored blob, refusing one of more than `max_bytes`."""
    if compression_codec is None:
        if len(stored) > max_bytes:
            raise _blob_too_large(len(stored), max_bytes)
        return stored
    if compression_codec == "lz4":
        return decode_lz4_frame(stored, max_bytes=max_bytes)
    if compression_codec == "zstd":
        return _decode_zstd(stored, max_bytes)
    raise UnsupportedError(
        f"Cannot read the blob: its compression codec {compression_codec[:40]!r} is not known",
        hint=f"The codecs of Puffin are {', '.join(COMPRESSION_CODECS)}.",
        heading="Compression codecs",
    )


def decode_file_metadata(payload: bytes) -> FileMetadata:
    """Decode a decompressed footer payload."""
    try:
        document = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _corrupt(f"the footer payload is not JSON ({error})", "Footer Payload") from error
    root = JsonObject(document, heading="FileMetadata", error=InvalidPuffinError)
    blobs = []
    for index, item in enumerate(root.list("blobs")):
        blob = JsonObject(item, where=f"blobs[{index}]", heading="BlobMetadata", error=InvalidPuffinError)
        blobs.append(_blob_from_json(blob))
    properties = root.string_map("properties", NO_PROPERTIES)
    return FileMetadata(tuple(blobs), FrozenMap(properties), root.extra())


def encode_file_metadata(file_metadata: FileMetadata) -> bytes:
    """Encode a footer payload, without compression."""
    document: dict[str, Any] = {"blobs": [_blob_to_json(blob) for blob in file_metadata.blobs]}
    if file_metadata.properties:
        document["properties"] = dict(file_metadata.properties)
    document.update(file_metadata.extra)
    try:
        return msgspec.json.encode(document)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(f"Cannot write the footer: {error}", heading="Footer Payload") from error


class PuffinWriter:
    """A Puffin file that is built in memory, blob by blob; `finish` returns its bytes, once."""

    __slots__ = ("_blobs", "_buffer", "_compress_footer", "_footer", "_properties")

    def __init__(self, properties: Mapping[str, str] = NO_PROPERTIES, *, compress_footer: bool = False) -> None:
        self._properties: FrozenMap[str, str] = FrozenMap(properties)
        self._compress_footer = compress_footer
        self._buffer = bytearray(MAGIC)
        self._blobs: list[BlobMetadata] = []
        self._footer: PuffinFooter | None = None

    def add_blob(
        self,
        type: str,  # noqa: A002 - the specification's word
        data: bytes,
        *,
        fields: Iterable[int],
        snapshot_id: int,
        sequence_number: int,
        compression_codec: CompressionCodec | None = None,
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> BlobMetadata:
        """Append a blob, compressed if a codec is given, and return its metadata."""
        self._check_open()
        stored = _encode_blob(data, compression_codec)
        blob = BlobMetadata(
            type,
            tuple(fields),
            snapshot_id,
            sequence_number,
            offset=len(self._buffer),
            length=len(stored),
            compression_codec=compression_codec,
            properties=properties,
        )
        self._buffer += stored
        self._blobs.append(blob)
        return blob

    def finish(self) -> bytes:
        """Append the footer and return the file."""
        self._check_open()
        file_metadata = FileMetadata(tuple(self._blobs), self._properties)
        payload = encode_file_metadata(file_metadata)
        flags = 0
        if self._compress_footer:
            payload = encode_lz4_frame(payload)
            flags |= _FOOTER_PAYLOAD_COMPRESSED
        if len(payload) > _INT_MAX:
            raise InvalidRequestError(
                f"Cannot write the footer: {len(payload)} bytes are more than its size field can hold",
                heading="Footer structure",
            )
        footer = MAGIC + payload + _TAIL.pack(len(payload), flags, MAGIC)
        self._buffer += footer
        self._footer = PuffinFooter(file_metadata, len(self._buffer), len(footer))
        return bytes(self._buffer)

    @property
    def footer(self) -> PuffinFooter:
        """The footer with its sizes, available once the file is finished."""
        if self._footer is None:
            raise InvalidRequestError("Cannot describe the Puffin file: it is not finished")
        return self._footer

    def _check_open(self) -> None:
        if self._footer is not None:
            raise InvalidRequestError("Cannot add to the Puffin file: it is finished")


def _read(read_range: ReadRange, offset: int, length: int) -> bytes:
    data = read_range(offset, length)
    if len(data) != length:
        raise _corrupt(f"{len(data)} bytes came back where {length} were asked for at {offset}", "File structure")
    return data


def _decode_tail(tail: bytes) -> tuple[int, int]:
    payload_size, flags, magic = _TAIL.unpack_from(tail, len(tail) - _TAIL.size)
    if magic != MAGIC:
        raise _corrupt(f"it ends with {magic.hex()} where the magic belongs", "Footer structure")
    return payload_size, flags


def _blob_from_json(blob: JsonObject) -> BlobMetadata:
    blob_type = blob.string("type")
    offset, length = blob.int64("offset"), blob.int64("length")
    if not blob_type:
        raise blob.fail("a blob type has a name", field="type")
    if offset < 0 or length < 0 or offset + length > LONG_MAX:
        raise blob.fail(f"{length} bytes at offset {offset} are not a part of a file")
    return BlobMetadata(
        blob_type,
        blob.int32s("fields"),
        blob.int64("snapshot-id"),
        blob.int64("sequence-number"),
        offset,
        length,
        blob.string("compression-codec", None),
        FrozenMap(blob.string_map("properties", NO_PROPERTIES)),
        blob.extra(),
    )


def _blob_to_json(blob: BlobMetadata) -> dict[str, Any]:
    document: dict[str, Any] = {
        "type": blob.type,
        "fields": list(blob.fields),
        "snapshot-id": blob.snapshot_id,
        "sequence-number": blob.sequence_number,
        "offset": blob.offset,
        "length": blob.length,
    }
    if blob.compression_codec is not None:
        document["compression-codec"] = blob.compression_codec
    if blob.properties:
        document["properties"] = dict(blob.properties)
    document.update(blob.extra)
    return document


def _encode_blob(data: bytes, compression_codec: str | None) -> bytes:
    if compression_codec is None:
        return data
    if compression_codec == "lz4":
        return encode_lz4_frame(data)
    if compression_codec == "zstd":
        # Iceberg Java adds a checksum, too.
        return zstandard.ZstdCompressor(level=_ZSTD_LEVEL, write_checksum=True).compress(data)
    raise InvalidRequestError(
        f"Cannot write the blob: the compression codec {compression_codec[:40]!r} is not known",
        hint=f"Use one of {', '.join(COMPRESSION_CODECS)}, or none.",
        heading="Compression codecs",
    )


def _decode_zstd(data: bytes, max_bytes: int) -> bytes:
    if data[: len(_ZSTD_MAGIC)] != _ZSTD_MAGIC:
        raise _corrupt_zstd("it does not start with the magic of a Zstandard frame")
    try:
        size = zstandard.get_frame_parameters(data).content_size
    except zstandard.ZstdError as error:
        raise _corrupt_zstd(str(error)) from error
    if size == zstandard.CONTENTSIZE_UNKNOWN:
        raise _corrupt_zstd("the frame does not state its content size")
    if size > max_bytes:
        raise _corrupt_zstd(f"the content of {size} bytes is above the limit of {max_bytes}")
    # A block takes at least three bytes and expands to at most 128 KiB.
    if size > len(data) // 3 * _ZSTD_BLOCK_BYTES:
        raise _corrupt_zstd(f"{len(data)} bytes cannot hold the stated content of {size} bytes")
    try:
        return zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
    except (zstandard.ZstdError, MemoryError) as error:
        raise _corrupt_zstd(str(error)) from error


def _corrupt_zstd(reason: str) -> InvalidPuffinError:
    return InvalidPuffinError(f"Cannot decompress Zstandard data: {reason}", heading="Compression codecs")


def _blob_too_large(length: int, max_bytes: int) -> InvalidPuffinError:
    return InvalidPuffinError(
        f"Cannot read the blob: its {length} bytes are above the limit of {max_bytes}", heading="BlobMetadata"
    )


def _corrupt(reason: str, heading: str) -> InvalidPuffinError:
    return InvalidPuffinError(f"Cannot read the Puffin file: {reason}", heading=heading)
