"""Data and delete files, as described in a manifest. Specification: "Data File Fields".

A `DataFile` describes one file of a table: its location, its partition and its metrics. Writers create them, commits
store them in manifests, and small plans read them back. Scans of many files never create one per file: there,
`codec/manifest_avro.py` keeps a manifest as columns under the same names.

Maps of metrics are keyed by column id. Bounds are bytes in the specification's single-value form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any

from frazil.errors import InvalidRequestError
from frazil.spec.frozen_map import FrozenMap

HEADING = "Data File Fields"

UNKNOWN_COUNT = -1
"""The record count or size of a file whose writer did not record it; accepted on read, never written."""

PartitionKey = tuple[Any, ...]
"""A partition as a mapping key: the spec's id, and the values of its fields with comparable floats."""


class FileContent(IntEnum):
    """The content type of a file."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class FileFormat(StrEnum):
    """The format of a file."""

    AVRO = "avro"
    ORC = "orc"
    PARQUET = "parquet"
    PUFFIN = "puffin"


def parse_file_format(text: str) -> FileFormat:
    """Return the file format with a name in any case."""
    try:
        return FileFormat(text.lower())
    except ValueError:
        raise InvalidRequestError(
            f"Cannot use file format {text[:40]!r}: it is not supported",
            hint=f"Use one of {', '.join(FileFormat)}.",
            heading=HEADING,
        ) from None


def parse_file_content(number: int) -> FileContent:
    """Return the content type with a number, as in manifests."""
    try:
        return FileContent(number)
    except ValueError:
        raise InvalidRequestError(
            f"Cannot use file content {number!r}: it is not one of 0, 1 and 2", heading=HEADING
        ) from None


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file, a delete file or a deletion vector.

    `partition` holds the values of the partition spec's fields in order, in the form of `spec/types.py`.
    A metric map that is None, or has no entry for a column, carries no information about the column.
    """

    file_path: str
    file_format: FileFormat
    record_count: int
    file_size_in_bytes: int
    content: FileContent = FileContent.DATA
    spec_id: int = 0
    partition: tuple[Any, ...] = ()
    column_sizes: Mapping[int, int] | None = None
    value_counts: Mapping[int, int] | None = None
    null_value_counts: Mapping[int, int] | None = None
    nan_value_counts: Mapping[int, int] | None = None
    lower_bounds: Mapping[int, bytes] | None = None
    upper_bounds: Mapping[int, bytes] | None = None
    key_metadata: bytes | None = None
    split_offsets: tuple[int, ...] | None = None
    equality_ids: tuple[int, ...] | None = None
    sort_order_id: int | None = None
    first_row_id: int | None = None
    referenced_data_file: str | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("partition", "split_offsets", "equality_ids"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, tuple):
                object.__setattr__(self, name, tuple(value))
        for name in METRIC_MAPS:
            value = getattr(self, name)
            if value is not None and not isinstance(value, FrozenMap):
                object.__setattr__(self, name, FrozenMap(value))
        if not isinstance(self.content, FileContent):
            object.__setattr__(self, "content", parse_file_content(self.content))
        if not isinstance(self.file_format, FileFormat):
            object.__setattr__(self, "file_format", parse_file_format(self.file_format))
        if not self.file_path:
            raise InvalidRequestError("Cannot describe a data file: its path is empty", heading=HEADING)
        for name in ("record_count", "file_size_in_bytes"):
            if getattr(self, name) < UNKNOWN_COUNT:
                raise _refusal(self, f"{name} is {getattr(self, name)}")

    @property
    def is_deletion_vector(self) -> bool:
        """Whether this is a deletion vector: position deletes in a Puffin blob."""
        return self.content is FileContent.POSITION_DELETES and self.file_format is FileFormat.PUFFIN


METRIC_MAPS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)
"""The fields of a data file that map a column id to a metric."""


def check_data_file(file: DataFile, format_version: int) -> None:
    """Refuse a file that tables of a format version cannot hold, or whose fields contradict each other.

    Whether a commit may add such a file (v3 allows no new position delete files) is checked by the commit; files that
    are already in the table pass.
    """
    if file.record_count < 0 or file.file_size_in_bytes < 0:
        raise _refusal(file, f"its record count is {file.record_count} and its size {file.file_size_in_bytes}")
    if format_version == 1 and file.content is not FileContent.DATA:
        raise _refusal(file, "tables of format version 1 have no delete files")
    if (file.content is FileContent.EQUALITY_DELETES) != (file.equality_ids is not None):
        raise _refusal(file, "equality_ids belong to equality deletes, and only to them")
    if file.equality_ids is not None and len(file.equality_ids) == 0:
        raise _refusal(file, "equality deletes need at least one column to compare")
    if file.file_format is FileFormat.PUFFIN:
        _check_deletion_vector(file, format_version)
    elif file.content_offset is not None or file.content_size_in_bytes is not None:
        raise _refusal(file, "only a deletion vector has content_offset and content_size_in_bytes")
    if file.referenced_data_file is not None and file.content is not FileContent.POSITION_DELETES:
        raise _refusal(file, "only position deletes reference a data file")
    if file.first_row_id is not None and (format_version < 3 or file.content is not FileContent.DATA):
        raise _refusal(file, "only data files of format version 3 or later have a first_row_id")


def _check_deletion_vector(file: DataFile, format_version: int) -> None:
    if format_version < 3:
        raise _refusal(file, f"tables of format version {format_version} have no deletion vectors")
    if file.content is not FileContent.POSITION_DELETES:
        raise _refusal(file, "a Puffin file holds position deletes only")
    for name in ("referenced_data_file", "content_offset", "content_size_in_bytes"):
        if getattr(file, name) is None:
            raise _refusal(file, f"a deletion vector needs {name}")


def _refusal(file: DataFile, reason: str) -> InvalidRequestError:
    return InvalidRequestError(f"Cannot use file {file.file_path!r}: {reason}", heading=HEADING)
