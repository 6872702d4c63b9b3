"""Compression of Avro blocks: every codec both ways, and never more than was allowed."""

from __future__ import annotations

import os
import zlib

import pytest
import zstandard

from frazil.codec import avro_codecs
from frazil.codec.avro_codecs import AVRO_CODECS, CodecRefusal, compressor, decompress_block
from frazil.errors import InvalidPropertyError
from tests.support.avro_builders import compress

CONTENT = os.urandom(3000) + b"metadata" * 4000


@pytest.mark.parametrize("codec", AVRO_CODECS)
def test_blocks_compressed_by_other_writers_are_decompressed(codec: str) -> None:
    for content in (b"", b"x", CONTENT):
        assert decompress_block(codec, compress(codec, content), len(CONTENT)) == content


@pytest.mark.parametrize("codec", AVRO_CODECS)
def test_decompressed_block_size_is_limited(codec: str) -> None:
    assert decompress_block(codec, compress(codec, CONTENT), len(CONTENT)) == CONTENT
    with pytest.raises(CodecRefusal, match=f"more than {len(CONTENT) - 1} bytes"):
        decompress_block(codec, compress(codec, CONTENT), len(CONTENT) - 1)


@pytest.mark.parametrize("codec", [one for one in AVRO_CODECS if one != "null"])
@pytest.mark.parametrize("cut", [1, 4, 50, 2000])
def test_truncated_block_is_refused(codec: str, cut: int) -> None:
    with pytest.raises(CodecRefusal):
        decompress_block(codec, compress(codec, CONTENT)[:-cut], 1 << 20)


@pytest.mark.parametrize("codec", [one for one in AVRO_CODECS if one != "null"])
def test_uncompressed_bytes_are_refused(codec: str) -> None:
    for data in (b"", b"\x00", CONTENT[:100]):
        with pytest.raises(CodecRefusal):
            decompress_block(codec, data, 1 << 20)


def test_concatenated_zstandard_frames_are_read() -> None:
    frames = [zstandard.ZstdCompressor(write_content_size=False).compress(one) for one in (CONTENT, b"", b"tail")]
    assert decompress_block("zstandard", b"".join(frames), 1 << 20) == CONTENT + b"tail"


def test_zstandard_frames_with_sizes_have_no_trailing_bytes() -> None:
    with pytest.raises(CodecRefusal):
        decompress_block("zstandard", zstandard.compress(CONTENT) + b"tail", 1 << 20)


@pytest.mark.parametrize("name", ["isal", "zlib"])
def test_isal_and_zlib_give_the_same_deflate_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = zlib if name == "zlib" else pytest.importorskip("isal.isal_zlib")
    monkeypatch.setattr(avro_codecs, "inflater", chosen)
    for level in range(10):
        stream = zlib.compressobj(level, zlib.DEFLATED, -15)
        data = stream.compress(CONTENT) + stream.flush()
        assert decompress_block("deflate", data, len(CONTENT)) == CONTENT
        assert decompress_block("deflate", memoryview(data + b"sum4"), len(CONTENT)) == CONTENT
        for bad in (data[:-1], data + b"nine more", b"\xff" + data):
            with pytest.raises(CodecRefusal):
                decompress_block("deflate", bad, len(CONTENT))
        with pytest.raises(CodecRefusal, match="more than"):
            decompress_block("deflate", data, len(CONTENT) - 1)


def test_rest_of_a_zlib_checksum_is_ignored() -> None:
    # Some writers cut two bytes and one from zlib's output instead of writing raw deflate.
    assert decompress_block("deflate", zlib.compress(CONTENT)[2:-1], 1 << 20) == CONTENT


@pytest.mark.parametrize(
    "codec, name",
    [("gzip", "deflate"), ("GZIP", "deflate"), ("zstd", "zstandard"), ("snappy", "snappy"), ("none", "null")],
)
def test_codecs_of_the_table_property_are_written(codec: str, name: str) -> None:
    avro_name, function = compressor(codec)
    assert avro_name == name
    assert decompress_block(avro_name, function(CONTENT), len(CONTENT)) == CONTENT


@pytest.mark.parametrize("codec, levels", [("gzip", (0, 9)), ("zstd", (1, 22))])
def test_compression_levels_are_validated(codec: str, levels: tuple[int, int]) -> None:
    for level in levels:
        name, function = compressor(codec, level)
        assert decompress_block(name, function(CONTENT), len(CONTENT)) == CONTENT
    for level in (levels[0] - 1, levels[1] + 1):
        with pytest.raises(InvalidPropertyError, match=f"level {level}"):
            compressor(codec, level)


def test_unknown_codec_is_refused() -> None:
    with pytest.raises(InvalidPropertyError, match="'lzo'"):
        compressor("lzo")
