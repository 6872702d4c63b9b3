"""Data files: values that hold, and what each format version can store."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from frazil.errors import InvalidRequestError
from frazil.spec.data_file import (
    DataFile,
    FileContent,
    FileFormat,
    check_data_file,
    parse_file_content,
    parse_file_format,
)
from tests.support.manifest_builders import data_file, deletion_vector


def test_file_is_frozen_hashable_and_picklable() -> None:
    file = data_file(3)
    assert pickle.loads(pickle.dumps(file)) == file
    assert hash(file) == hash(data_file(3))
    assert file.value_counts is not None
    with pytest.raises(TypeError):
        file.value_counts[1] = 5  # type: ignore[index]


def test_plain_values_are_accepted() -> None:
    file = DataFile("a", "PARQUET", 1, 2, content=1, partition=[1], split_offsets=[4])  # type: ignore[arg-type]
    assert (file.file_format, file.content) == (FileFormat.PARQUET, FileContent.POSITION_DELETES)
    assert (file.partition, file.split_offsets) == ((1,), (4,))


@pytest.mark.parametrize("text", ["parquet", "PARQUET", "Parquet"])
def test_formats_are_case_insensitive(text: str) -> None:
    assert parse_file_format(text) is FileFormat.PARQUET


def test_unknown_names_and_numbers_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="'csv'"):
        parse_file_format("csv")
    with pytest.raises(InvalidRequestError, match="content 3"):
        parse_file_content(3)


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"file_path": ""}, "its path is empty"),
        ({"record_count": -2}, "record_count is -2"),
        ({"file_size_in_bytes": -2}, "file_size_in_bytes is -2"),
        ({"content": 7}, "file content 7"),
        ({"file_format": "csv"}, "file format 'csv'"),
    ],
)
def test_invalid_files_are_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        data_file(0, **changes)


def test_only_puffin_position_deletes_are_deletion_vectors() -> None:
    assert deletion_vector().is_deletion_vector
    assert not data_file().is_deletion_vector
    assert not data_file(0, content=FileContent.POSITION_DELETES).is_deletion_vector


EQUALITY: dict[str, Any] = {"content": FileContent.EQUALITY_DELETES, "equality_ids": (1,)}


@pytest.mark.parametrize(
    "file, versions",
    [
        (data_file(), (1, 2, 3)),
        (data_file(0, content=FileContent.POSITION_DELETES), (2, 3)),
        (data_file(0, content=FileContent.POSITION_DELETES, referenced_data_file="a"), (2, 3)),
        (data_file(0, **EQUALITY), (2, 3)),
        (deletion_vector(), (3,)),
        (data_file(0, first_row_id=0), (3,)),
        (data_file(0, record_count=-1), ()),
        (data_file(0, file_size_in_bytes=-1), ()),
        (data_file(0, content=FileContent.EQUALITY_DELETES), ()),
        (data_file(0, content=FileContent.EQUALITY_DELETES, equality_ids=()), ()),
        (data_file(0, equality_ids=(1,)), ()),
        (data_file(0, content_offset=4), ()),
        (data_file(0, referenced_data_file="a"), ()),
        (data_file(0, file_format=FileFormat.PUFFIN), ()),
        (deletion_vector(0, content_offset=None), ()),
        (deletion_vector(0, content_size_in_bytes=None), ()),
        (deletion_vector(0, referenced_data_file=None), ()),
        (deletion_vector(0, first_row_id=4), ()),
    ],
)
def test_each_version_accepts_its_files(file: DataFile, versions: tuple[int, ...]) -> None:
    for version in (1, 2, 3):
        if version in versions:
            check_data_file(file, version)
        else:
            with pytest.raises(InvalidRequestError, match="Cannot use file"):
                check_data_file(file, version)
