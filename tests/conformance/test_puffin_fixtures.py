"""Iceberg Java's Puffin files, read and written byte for byte. Specification: Puffin file format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from frazil.codec.puffin import PuffinWriter, decode_puffin_footer, range_reader, read_blob, read_puffin_footer

FIRST = b"abcdefghi"
SECOND = "some blob \0 binary data 🤯 that is not very very very very very very long, is it?".encode()
SAMPLES = [("sample-metric-data-uncompressed.bin", None), ("sample-metric-data-compressed-zstd.bin", "zstd")]


def fixture(fixtures_dir: Path, name: str) -> bytes:
    path = fixtures_dir / "puffin" / name
    if not path.is_file():
        pytest.skip(f"no fixture at {path}")
    return path.read_bytes()


def test_empty_puffin_file_round_trips(fixtures_dir: Path) -> None:
    data = fixture(fixtures_dir, "empty-puffin-uncompressed.bin")
    footer = decode_puffin_footer(data)
    assert (footer.blobs, dict(footer.properties), footer.footer_size) == ((), {}, 28)
    assert PuffinWriter().finish() == data


@pytest.mark.parametrize("name, codec", SAMPLES)
def test_puffin_samples_are_read(fixtures_dir: Path, name: str, codec: str | None) -> None:
    data = fixture(fixtures_dir, name)
    footer = decode_puffin_footer(data)
    assert footer.properties == {"created-by": "Test 1234"}
    first, second = footer.blobs
    assert (first.type, first.fields, first.offset, first.compression_codec) == ("some-blob", (1,), 4, codec)
    assert (second.type, second.fields, second.offset) == ("some-other-blob", (2,), first.end)
    assert {(blob.snapshot_id, blob.sequence_number) for blob in footer.blobs} == {(2, 1)}
    assert [read_blob(range_reader(data), blob) for blob in footer.blobs] == [FIRST, SECOND]


@pytest.mark.parametrize("name, codec", SAMPLES)
def test_puffin_samples_are_written_byte_for_byte(fixtures_dir: Path, name: str, codec: Any) -> None:
    writer = PuffinWriter({"created-by": "Test 1234"})
    for at, (kind, data) in enumerate((("some-blob", FIRST), ("some-other-blob", SECOND))):
        writer.add_blob(kind, data, fields=[at + 1], snapshot_id=2, sequence_number=1, compression_codec=codec)
    assert writer.finish() == fixture(fixtures_dir, name)


def test_recorded_footer_size_of_a_sample_is_accepted(fixtures_dir: Path) -> None:
    data = fixture(fixtures_dir, "sample-metric-data-compressed-zstd.bin")
    assert read_puffin_footer(range_reader(data), len(data), footer_size=314).footer_size == 314
