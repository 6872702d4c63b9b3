from __future__ import annotations

import contextlib
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.datafile.parquet_chunks import Footer, decode_footer, read_footer


def write(table: pa.Table, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue())


TABLE = pa.table(
    {
        "a": pa.array([1, None, 3, 4, 5, 6], pa.int64()),
        "b": pa.array(["x", "y", None, "x", "é", "x"]),
        "c": pa.array([[1], None, [2, 3], [], [4], [5]]),
        "d": pa.array([{"k": 1.5}, None] * 3),
    }
)
DATA = write(TABLE, row_group_size=2, column_encoding={"a": "PLAIN"}, use_dictionary=["b"], write_page_index=True)


def footer_of(data: bytes, leaves: set[int]) -> Footer:
    return read_footer(pa.BufferReader(data), leaves)


def test_chunks_match_the_description_by_pyarrow() -> None:
    metadata = pq.ParquetFile(pa.BufferReader(DATA)).metadata
    footer = footer_of(DATA, {0, 1, 2, 3})
    assert len(footer.groups) == metadata.num_row_groups == 3
    assert footer.ordered == {0, 1, 2, 3}
    for group, chunks in enumerate(footer.groups):
        for leaf in range(4):
            expected, chunk = metadata.row_group(group).column(leaf), chunks[leaf]
            assert chunk.data_page_offset == expected.data_page_offset
            assert chunk.dictionary_page_offset == expected.dictionary_page_offset
            assert chunk.num_values == expected.num_values
            assert chunk.uncompressed_bytes == expected.total_uncompressed_size
            assert chunk.has_dictionary == ("RLE_DICTIONARY" in expected.encodings)
            assert chunk.null_count == expected.statistics.null_count
            assert (chunk.min_value is None) == (not expected.statistics.has_min_max)
    assert footer.groups[2][1].min_value == b"x"
    assert footer.groups[2][1].max_value == "é".encode()
    assert footer.groups[0][0].min_value == (1).to_bytes(8, "little")


def test_only_the_requested_columns_and_the_first_are_kept() -> None:
    assert [sorted(group) for group in footer_of(DATA, {2}).groups] == [[0, 2]] * 3


def test_chunk_starts_at_its_dictionary() -> None:
    chunks = footer_of(DATA, {0, 1}).groups[0]
    assert chunks[0].start == chunks[0].data_page_offset
    assert chunks[1].start == chunks[1].dictionary_page_offset


def test_columns_without_statistics_have_none() -> None:
    chunk = footer_of(write(TABLE, write_statistics=False), {0}).groups[0][0]
    assert (chunk.null_count, chunk.min_value, chunk.max_value, chunk.old_min) == (None, None, None, None)


@pytest.mark.parametrize("data", [b"", b"\x19", b"\x15\x02\x19\xfc", b"\x1c\x1c\x1c", b"\x1d"])
def test_invalid_footers_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="its footer"):
        decode_footer(data, {0})


def test_deeply_nested_footer_is_refused() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        decode_footer(b"\x1c" * 100_000, {0})


def test_file_without_a_footer_is_refused() -> None:
    with pytest.raises(ValueError, match="does not end with a footer"):
        footer_of(b"x" * 20, {0})


def test_list_longer_than_the_footer_is_refused_quickly() -> None:
    with pytest.raises(ValueError, match="truncated"):
        decode_footer(b"\x49\xfc\xff\xff\xff\xff\x0f", {0})


def test_damaged_footers_are_parsed_or_refused() -> None:
    length = int.from_bytes(DATA[-8:-4], "little")
    footer = DATA[-8 - length : -8]
    rng = random.Random(3)
    for _ in range(500):
        broken = bytearray(footer)
        for _ in range(rng.choice([1, 3])):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        with contextlib.suppress(ValueError):
            decode_footer(bytes(broken), {0, 1})
