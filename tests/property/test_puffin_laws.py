"""What holds for every Puffin file and every deletion vector."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from frazil.codec.deletion_vector import DeletionVector, decode_deletion_vector, encode_deletion_vector
from frazil.codec.lz4_frame import decode_lz4_frame, encode_lz4_frame
from frazil.codec.puffin import (
    PuffinWriter,
    decode_file_metadata,
    decode_puffin_footer,
    encode_file_metadata,
    range_reader,
    read_blob,
    read_puffin_footer,
)
from frazil.errors import FrazilError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.puffin import BlobMetadata, FileMetadata

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
LONG = st.integers(-(2**63), 2**63 - 1)
PROPERTIES = st.dictionaries(TEXT, TEXT, max_size=4)
KNOWN = {
    "type", "fields", "snapshot-id", "sequence-number", "offset", "length", "compression-codec", "properties", "blobs",
}  # fmt: skip
EXTRA = st.dictionaries(
    TEXT.filter(lambda key: key not in KNOWN),
    st.recursive(st.none() | st.booleans() | LONG | TEXT, lambda inner: st.lists(inner, max_size=3), max_leaves=5),
    max_size=3,
).map(FrozenMap)
BLOBS = st.builds(
    BlobMetadata,
    type=TEXT.filter(bool),
    fields=st.lists(st.integers(-(2**31), 2**31 - 1), max_size=4).map(tuple),
    snapshot_id=LONG,
    sequence_number=LONG,
    offset=st.integers(0, 2**62),
    length=st.integers(0, 2**62),
    compression_codec=st.none() | TEXT,
    properties=PROPERTIES,
    extra=EXTRA,
)

BITMAP = 1 << 32
POSITIONS = st.lists(
    st.integers(0, 200)
    | st.integers(0, 3 * 65536)
    | st.integers(0, 4).map(lambda key: key * BITMAP)
    | st.integers(0, 2**63 - 1),
    max_size=60,
)
RUNS = st.lists(st.tuples(st.integers(0, 400_000), st.integers(0, 9000)), max_size=5)


@given(st.builds(FileMetadata, st.lists(BLOBS, max_size=4).map(tuple), PROPERTIES, EXTRA))
def test_footers_round_trip(file_metadata: FileMetadata) -> None:
    assert decode_file_metadata(encode_file_metadata(file_metadata)) == file_metadata


@given(
    st.lists(st.tuples(st.binary(max_size=300), st.sampled_from([None, "zstd", "lz4"])), max_size=5),
    PROPERTIES,
    st.booleans(),
)
def test_puffin_files_round_trip(blobs: list[tuple[bytes, None]], properties: dict[str, str], compress: bool) -> None:
    writer = PuffinWriter(properties, compress_footer=compress)
    for data, codec in blobs:
        writer.add_blob("t", data, fields=[1], snapshot_id=1, sequence_number=1, compression_codec=codec)
    file = writer.finish()
    footer = decode_puffin_footer(file)
    assert footer == writer.footer
    assert read_puffin_footer(range_reader(file), len(file), footer_size=footer.footer_size) == footer
    assert [read_blob(range_reader(file), blob) for blob in footer.blobs] == [data for data, _ in blobs]


@given(st.binary(max_size=2000) | st.binary(min_size=1, max_size=20).map(lambda data: data * 500))
def test_lz4_content_round_trips(data: bytes) -> None:
    assert decode_lz4_frame(encode_lz4_frame(data), max_bytes=len(data)) == data


@given(st.binary(max_size=200))
def test_any_bytes_are_a_footer_or_an_error(data: bytes) -> None:
    for candidate in (data, b"PFA1" + data + b"PFA1", b"PFA1PFA1" + data + bytes(8) + b"PFA1"):
        try:
            decode_puffin_footer(candidate)
        except FrazilError as error:
            assert error.context["heading"] is not None  # noqa: PT017


@given(POSITIONS, RUNS)
def test_vectors_are_sets_of_positions(positions: list[int], runs: list[tuple[int, int]]) -> None:
    expected = set(positions).union(*(range(start, start + length) for start, length in runs))
    vector = DeletionVector(positions).union(*(DeletionVector(range(start, start + length)) for start, length in runs))
    ordered = sorted(expected)
    assert vector.cardinality == len(expected)
    assert vector.to_numpy().tolist() == ordered
    assert list(vector) == ordered
    assert vector == DeletionVector(np.array(ordered, dtype=np.uint64))
    assert (vector.first, vector.last) == ((ordered[0], ordered[-1]) if ordered else (None, None))


@given(POSITIONS, RUNS)
def test_vectors_round_trip_through_bytes(positions: list[int], runs: list[tuple[int, int]]) -> None:
    vector = DeletionVector(positions).union(*(DeletionVector(range(start, start + length)) for start, length in runs))
    data = encode_deletion_vector(vector)
    decoded = decode_deletion_vector(data, record_count=vector.cardinality)
    assert decoded == vector
    assert encode_deletion_vector(decoded) == data


@given(POSITIONS, st.integers(0, 2**34), st.integers(0, 500))
def test_mask_marks_the_rows_in_the_vector(positions: list[int], start: int, length: int) -> None:
    vector = DeletionVector([*positions, start, start + length])
    for first in (start, 0, BITMAP - length // 2):
        expected = [row in vector for row in range(first, first + length)]
        assert vector.mask(first, length).tolist() == expected


@given(POSITIONS, st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_corrupted_vector_is_refused(positions: list[int], changes: list[tuple[int, int]]) -> None:
    data = encode_deletion_vector(DeletionVector(positions))
    changed = bytearray(data)
    for at, value in changes:
        changed[at % len(changed)] = value
    try:
        decoded = decode_deletion_vector(bytes(changed))
    except FrazilError as error:
        assert error.context["heading"] == "`deletion-vector-v1` blob type"  # noqa: PT017
    else:
        assert decoded == DeletionVector(positions)
