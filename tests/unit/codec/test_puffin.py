"""Puffin files. Specification: Puffin file format."""

from __future__ import annotations

import pickle
import struct
from typing import Any

import msgspec
import pytest

from frazil.codec.puffin import (
    PuffinWriter,
    decode_blob,
    decode_file_metadata,
    decode_puffin_footer,
    encode_file_metadata,
    range_reader,
    read_blob,
    read_puffin_footer,
)
from frazil.errors import InvalidPuffinError, InvalidRequestError, UnsupportedError
from frazil.spec.puffin import CREATED_BY, THETA_SKETCH_V1, BlobMetadata, FileMetadata

BLOBS = [b"abcdefghi", b"", b"x" * 5000, bytes(range(256))]


def write(
    codec: Any = None, *, compress_footer: bool = False, blobs: list[bytes] = BLOBS
) -> tuple[bytes, PuffinWriter]:
    """Return a file of blobs and its writer."""
    writer = PuffinWriter({CREATED_BY: "test 1"}, compress_footer=compress_footer)
    for at, data in enumerate(blobs):
        writer.add_blob(
            THETA_SKETCH_V1,
            data,
            fields=[at + 1],
            snapshot_id=77,
            sequence_number=4,
            compression_codec=codec,
            properties={"ndv": str(at)},
        )
    return writer.finish(), writer


class Ranges:
    """A file in memory that notes which ranges were read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.asked: list[tuple[int, int]] = []

    def __call__(self, offset: int, length: int) -> bytes:
        self.asked.append((offset, length))
        return self.data[offset : offset + length]


@pytest.mark.parametrize("compress_footer", [False, True])
@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_blobs_round_trip(codec: str | None, compress_footer: bool) -> None:
    data, writer = write(codec, compress_footer=compress_footer)
    footer = decode_puffin_footer(data)
    assert footer == writer.footer
    assert footer.file_metadata.created_by == "test 1"
    assert footer.properties == {"created-by": "test 1"}
    assert [blob.fields for blob in footer.blobs] == [(1,), (2,), (3,), (4,)]
    assert {blob.compression_codec for blob in footer.blobs} == {codec}
    assert [read_blob(range_reader(data), blob) for blob in footer.blobs] == BLOBS


def test_writer_returns_the_position_of_each_blob() -> None:
    writer = PuffinWriter()
    first = writer.add_blob("a", b"12345", fields=(), snapshot_id=1, sequence_number=2)
    second = writer.add_blob("b", b"678", fields=(7, 8), snapshot_id=1, sequence_number=2, compression_codec="zstd")
    data = writer.finish()
    assert (first.offset, first.length, first.end) == (4, 5, 9)
    assert second.offset == 9
    assert data[4:9] == b"12345"
    assert decode_blob(data[second.offset : second.end], "zstd") == b"678"


def test_recorded_sizes_match_the_file() -> None:
    data, writer = write()
    footer = decode_puffin_footer(data)
    assert footer.file_size == len(data)
    payload = encode_file_metadata(writer.footer.file_metadata)
    assert footer.footer_size == 4 + len(payload) + 12
    assert data[-footer.footer_size :][:4] == b"PFA1"


def test_small_footer_takes_one_read_and_a_known_one_an_exact_read() -> None:
    data, writer = write(blobs=[b"x" * 50_000])
    ranges = Ranges(data)
    read_puffin_footer(ranges, len(data))
    assert len(ranges.asked) == 1
    size = writer.footer.footer_size
    ranges = Ranges(data)
    read_puffin_footer(ranges, len(data), footer_size=size)
    assert ranges.asked == [(len(data) - size, size)]


def test_large_footer_takes_two_disjoint_reads() -> None:
    data, writer = write(blobs=[b"x"] * 500)
    assert writer.footer.footer_size > 32 << 10
    ranges = Ranges(data)
    assert read_puffin_footer(ranges, len(data)) == writer.footer
    (tail_at, tail_length), (head_at, head_length) = ranges.asked
    assert head_at == len(data) - writer.footer.footer_size
    assert head_at + head_length == tail_at
    assert tail_at + tail_length == len(data)


def test_blob_takes_one_read() -> None:
    data, writer = write()
    ranges = Ranges(data)
    blob = writer.footer.blobs[3]
    assert read_blob(ranges, blob) == BLOBS[3]
    assert ranges.asked == [(blob.offset, blob.length)]


@pytest.mark.parametrize("wrong", [-1, 1, 10, -10])
def test_wrong_footer_size_is_refused(wrong: int) -> None:
    data, writer = write(blobs=[b"x" * 100])
    with pytest.raises(InvalidPuffinError, match="footer"):
        read_puffin_footer(range_reader(data), len(data), footer_size=writer.footer.footer_size + wrong)


@pytest.mark.parametrize("size", [0, -5, 15, 10_000])
def test_impossible_footer_size_is_refused(size: int) -> None:
    data, _ = write(blobs=[b"x"])
    with pytest.raises(InvalidPuffinError, match=f"a footer of {size} bytes does not fit"):
        read_puffin_footer(range_reader(data), len(data), footer_size=size)


def test_unknown_fields_are_preserved() -> None:
    document = {
        "blobs": [
            {
                "type": "t", "fields": [1], "snapshot-id": 2, "sequence-number": 1, "offset": 4, "length": 5,
                "mood": {"deep": [1, None]},
            }
        ],
        "properties": {"a": "b"},
        "next-version": 3,
    }  # fmt: skip
    decoded = decode_file_metadata(msgspec.json.encode(document))
    assert decoded.extra == {"next-version": 3}
    assert decoded.blobs[0].extra == {"mood": {"deep": [1, None]}}
    assert msgspec.json.decode(encode_file_metadata(decoded)) == document


def test_footer_payload_fields_have_the_specified_order() -> None:
    blob = BlobMetadata("type-a", (2, 3), 14, 3, 4, 16, "zstd", {"some key": "some välue"})
    assert encode_file_metadata(FileMetadata((blob,), {"a": "b"})).decode() == (
        '{"blobs":[{"type":"type-a","fields":[2,3],"snapshot-id":14,"sequence-number":3,"offset":4,"length":16,'
        '"compression-codec":"zstd","properties":{"some key":"some välue"}}],"properties":{"a":"b"}}'
    )
    assert encode_file_metadata(FileMetadata()) == b'{"blobs":[]}'


def test_overlapping_and_sparse_blobs_are_read() -> None:
    blobs = [BlobMetadata("t", (1,), 1, 1, offset, length) for offset, length in ((4, 10), (6, 4), (20, 4))]
    payload = encode_file_metadata(FileMetadata(tuple(blobs)))
    data = b"PFA1" + bytes(range(20)) + b"PFA1" + payload + struct.pack("<iI", len(payload), 0) + b"PFA1"
    footer = decode_puffin_footer(data)
    assert read_blob(range_reader(data), footer.blobs[1]) == bytes([2, 3, 4, 5])


def test_blob_of_an_unknown_codec_does_not_hide_the_others() -> None:
    blobs = [BlobMetadata("t", (1,), 1, 1, 4, 2, "snappy"), BlobMetadata("t", (1,), 1, 1, 4, 2)]
    payload = encode_file_metadata(FileMetadata(tuple(blobs)))
    data = b"PFA1ab" + b"PFA1" + payload + struct.pack("<iI", len(payload), 0) + b"PFA1"
    unknown, known = decode_puffin_footer(data).blobs
    assert read_blob(range_reader(data), known) == b"ab"
    with pytest.raises(UnsupportedError, match="compression codec 'snappy' is not known"):
        read_blob(range_reader(data), unknown)


def test_finished_file_rejects_blobs() -> None:
    _, writer = write()
    with pytest.raises(InvalidRequestError, match="it is finished"):
        writer.finish()
    with pytest.raises(InvalidRequestError, match="it is finished"):
        writer.add_blob("a", b"", fields=(), snapshot_id=1, sequence_number=1)


def test_unfinished_file_has_no_footer() -> None:
    with pytest.raises(InvalidRequestError, match="not finished"):
        _ = PuffinWriter().footer


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"compression_codec": "gzip"}, "compression codec 'gzip' is not known"),
        ({"type": ""}, "its type is empty"),
    ],
)
def test_unwritable_blobs_are_refused(change: dict[str, Any], reason: str) -> None:
    arguments: dict[str, Any] = {
        "type": "a",
        "data": b"",
        "fields": (),
        "snapshot_id": 1,
        "sequence_number": 1,
    } | change
    with pytest.raises(InvalidRequestError, match=reason):
        PuffinWriter().add_blob(**arguments)


def test_property_that_is_not_valid_unicode_is_refused() -> None:
    writer = PuffinWriter({"a": "\ud800"})
    with pytest.raises(InvalidRequestError, match="Cannot write the footer"):
        writer.finish()


@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_oversized_blob_is_refused(codec: Any) -> None:
    data, writer = write(codec, blobs=[b"a" * 1000])
    blob = writer.footer.blobs[0]
    assert read_blob(range_reader(data), blob, max_bytes=1000) == b"a" * 1000
    with pytest.raises(InvalidPuffinError, match="above the limit of 999"):
        read_blob(range_reader(data), blob, max_bytes=999)


def test_footers_are_compared_by_value() -> None:
    _, writer = write("zstd")
    footer = writer.footer
    assert pickle.loads(pickle.dumps(footer)) == footer
    assert hash(footer) == hash(pickle.loads(pickle.dumps(footer)))


def test_error_has_the_path_known_to_the_caller() -> None:
    with pytest.raises(InvalidPuffinError) as caught:
        decode_puffin_footer(b"not a puffin file at all, no")
    placed = caught.value.at_path("s3://bucket/a.puffin")
    assert placed.context["path"] == "s3://bucket/a.puffin"
    assert placed.context["heading"] == "File structure"
