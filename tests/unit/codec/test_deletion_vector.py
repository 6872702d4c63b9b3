"""Deletion vectors. Specification: "Deletion Vectors"; Puffin file format, "`deletion-vector-v1` blob type"."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from frazil.codec.deletion_vector import (
    MAX_POSITION,
    DeletionVector,
    StoredDeletionVector,
    decode_deletion_vector,
    describe_deletion_vector,
    encode_deletion_vector,
    encode_deletion_vector_file,
    read_deletion_vector,
)
from frazil.codec.puffin import decode_puffin_footer, range_reader
from frazil.errors import InvalidPuffinError, InvalidRequestError
from frazil.spec.puffin import BlobMetadata

KEY = 1 << 32
MIXED = [0, 1, 2, 3, 70_000, 70_001, KEY - 1, KEY, 5 * KEY + 9, MAX_POSITION]


def test_positions_are_returned_in_order() -> None:
    vector = DeletionVector([*reversed(MIXED), 3, 3, 0])
    assert list(vector) == MIXED
    assert vector.to_numpy().tolist() == MIXED
    assert vector.to_numpy().dtype == np.int64
    assert (vector.cardinality, vector.first, vector.last) == (len(MIXED), 0, MAX_POSITION)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_numpy_arrays_of_any_integer_type_are_accepted(dtype: Any) -> None:
    assert list(DeletionVector(np.array([5, 1, 100], dtype=dtype))) == [1, 5, 100]


def test_range_is_added_whole() -> None:
    vector = DeletionVector(range(KEY - 5, 2 * KEY + 5))
    assert (vector.cardinality, vector.first, vector.last) == (KEY + 10, KEY - 5, 2 * KEY + 4)
    assert DeletionVector(range(10, 5)).is_empty
    assert list(DeletionVector(range(10, 0, -4))) == [2, 6, 10]


def test_vector_is_accepted_as_positions() -> None:
    vector = DeletionVector(MIXED)
    assert DeletionVector(vector) == vector


def test_empty_vector_is_a_value() -> None:
    empty = DeletionVector()
    assert empty.is_empty
    assert empty.cardinality == 0
    assert bool(empty) is True
    assert not hasattr(empty, "__len__")
    assert (empty.first, empty.last, list(empty), empty.to_numpy().tolist()) == (None, None, [], [])
    assert empty.mask(0, 3).tolist() == [False, False, False]
    assert decode_deletion_vector(encode_deletion_vector(empty), record_count=0) == empty


def test_membership() -> None:
    vector = DeletionVector(MIXED)
    assert all(position in vector for position in MIXED)
    assert not any(position in vector for position in (-1, 4, KEY + 1, 2 * KEY, MAX_POSITION + 1))


@pytest.mark.parametrize(
    "start, length, deleted",
    [
        (0, 5, [0, 1, 2, 3]),
        (1, 2, [1, 2]),
        (4, 100, []),
        (0, 0, []),
        (69_999, 3, [70_000, 70_001]),
        (KEY - 2, 4, [KEY - 1, KEY]),
        (5 * KEY, 20, [5 * KEY + 9]),
        (MAX_POSITION, 1, [MAX_POSITION]),
    ],
)
def test_mask_has_the_requested_length(start: int, length: int, deleted: list[int]) -> None:
    mask = DeletionVector(MIXED).mask(start, length)
    assert mask.dtype == np.bool_
    assert len(mask) == length
    assert (np.flatnonzero(mask) + start).tolist() == deleted


@pytest.mark.parametrize("start, length", [(-1, 5), (0, -1)])
def test_mask_of_negative_length_is_refused(start: int, length: int) -> None:
    with pytest.raises(InvalidRequestError, match="neither may be negative"):
        DeletionVector().mask(start, length)


def test_union_contains_both_and_changes_neither() -> None:
    one, other, third = DeletionVector([1, 2]), DeletionVector([2, 3, KEY]), DeletionVector([7])
    assert list(one | other) == [1, 2, 3, KEY]
    assert list(one.union(other, third)) == [1, 2, 3, 7, KEY]
    assert list(one.union()) == [1, 2]
    assert (list(one), list(other)) == ([1, 2], [2, 3, KEY])


def test_equality_compares_positions() -> None:
    by_range, by_list = DeletionVector(range(1, 4)), DeletionVector([1, 2, 3])
    assert by_range == by_list
    assert hash(by_range) == hash(by_list)
    assert by_range != DeletionVector([1, 2, 4])
    assert by_range != [1, 2, 3]


def test_vector_is_immutable() -> None:
    vector = DeletionVector([1])
    with pytest.raises(AttributeError):
        vector._cardinality = 5


def test_vectors_are_picklable() -> None:
    vector = DeletionVector(MIXED)
    assert pickle.loads(pickle.dumps(vector)) == vector
    assert repr(vector) == f"<DeletionVector of 10 positions from 0 to {MAX_POSITION}>"


@pytest.mark.parametrize(
    "positions",
    [
        [-1], [MAX_POSITION + 1], [1.0], ["1"], [True], [None], [10**30], [[1, 2], [3, 4]], [[1], 2], 5,
        range(-1, 5), range(MAX_POSITION, MAX_POSITION + 2),
    ],
)  # fmt: skip
def test_invalid_position_is_refused(positions: Any) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot make a deletion vector"):
        DeletionVector(positions)


def test_run_containers_are_written_if_shorter() -> None:
    assert len(encode_deletion_vector(DeletionVector(range(1_000_000)))) < 300
    assert len(encode_deletion_vector(DeletionVector(np.arange(1_000_000)))) < 300


def test_recorded_count_must_equal_the_cardinality() -> None:
    blob = encode_deletion_vector(DeletionVector([1, 2, 3]))
    assert decode_deletion_vector(blob, record_count=3).cardinality == 3
    with pytest.raises(InvalidPuffinError, match="it has 3 positions where 0 are recorded"):
        decode_deletion_vector(blob, record_count=0)


def test_several_vectors_share_a_file() -> None:
    vectors = {"s3://b/a.parquet": DeletionVector([1, 5]), "s3://b/ü.parquet": DeletionVector(range(100, 5000))}
    written = encode_deletion_vector_file(vectors, created_by="frazil 1.2")
    assert [stored.referenced_data_file for stored in written.vectors] == list(vectors)
    assert [stored.cardinality for stored in written.vectors] == [2, 4900]
    for stored in written.vectors:
        read = read_deletion_vector(
            range_reader(written.data),
            stored.content_offset,
            stored.content_size_in_bytes,
            record_count=stored.cardinality,
        )
        assert read == vectors[stored.referenced_data_file]


def test_footer_describes_each_vector_as_specified() -> None:
    written = encode_deletion_vector_file({"a.parquet": DeletionVector([1, 5])}, created_by="frazil 1.2")
    footer = decode_puffin_footer(written.data)
    assert footer == written.footer
    assert footer.properties == {"created-by": "frazil 1.2"}
    (blob,) = footer.blobs
    assert (blob.type, blob.fields) == ("deletion-vector-v1", (2147483645,))
    assert (blob.snapshot_id, blob.sequence_number, blob.compression_codec) == (-1, -1, None)
    assert blob.properties == {"referenced-data-file": "a.parquet", "cardinality": "2"}
    assert describe_deletion_vector(blob) == written.vectors[0]
    assert written.vectors[0] == StoredDeletionVector("a.parquet", blob.offset, blob.length, 2)


def test_empty_vector_is_not_written_to_a_file() -> None:
    with pytest.raises(InvalidRequestError, match=r"a\.parquet: it has no positions"):
        encode_deletion_vector_file({"a.parquet": DeletionVector()}, created_by="frazil")
    with pytest.raises(InvalidRequestError, match="location is empty"):
        encode_deletion_vector_file({"": DeletionVector([1])}, created_by="frazil")


PROPERTIES = {"referenced-data-file": "a.parquet", "cardinality": "2"}


@pytest.mark.parametrize(
    "codec, properties, reason",
    [
        ("zstd", PROPERTIES, "vectors must not be"),
        (None, {"cardinality": "2"}, "no property 'referenced-data-file'"),
        (None, {"referenced-data-file": "a"}, "is not a count"),
        (None, PROPERTIES | {"cardinality": "-1"}, "is not a count"),
        (None, PROPERTIES | {"cardinality": "٣"}, "is not a count"),
        (None, PROPERTIES | {"cardinality": "9" * 5000}, "is not a count"),
    ],
)
def test_invalid_blob_is_refused(codec: Any, properties: dict[str, str], reason: str) -> None:
    blob = BlobMetadata("deletion-vector-v1", (2147483645,), -1, -1, 4, 30, codec, properties)
    with pytest.raises(InvalidPuffinError, match=reason) as caught:
        describe_deletion_vector(blob)
    assert caught.value.context["heading"] == "`deletion-vector-v1` blob type"


def test_blob_of_another_type_is_not_read_as_a_vector() -> None:
    with pytest.raises(InvalidRequestError, match="blob of type 'apache-datasketches-theta-v1'"):
        describe_deletion_vector(BlobMetadata("apache-datasketches-theta-v1", (1,), 1, 1, 4, 30))
