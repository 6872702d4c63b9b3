"""The interface of file formats for writing, implemented by `write_parquet.py` and its siblings.

A `WriteFormat` is created once for all files of a write. Rows are tables with the columns of its schema, in the Arrow
types of `codec/arrow_schema.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

from frazil.codec.arrow_arrays import validity
from frazil.errors import FrazilError, InvalidRequestError, StorageError
from frazil.spec.data_file import FileFormat
from frazil.spec.schema import Schema
from frazil.spec.types import ListType, MapType, StructType, Type
from frazil.storage.new_file import NewFile

Convert: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class FileLayout:
    """Properties of a complete file, besides the metrics of its rows."""

    split_offsets: tuple[int, ...] | None = None
    column_sizes: Mapping[int, int] | None = None


class FormatWriter(ABC):
    """One file that rows are added to."""

    __slots__ = ()

    holds_rows: ClassVar[bool] = False
    """Whether rows stay in memory after `write`, so that the file's size does not include them."""

    @property
    def buffered_bytes(self) -> int:
        """The size of encoded data that has not been written to the file yet."""
        return 0

    @abstractmethod
    def write(self, rows: pa.Table) -> None:
        """Add rows, as a row group of their own if the format has row groups."""

    @abstractmethod
    def close(self) -> FileLayout:
        """Write the rest; the file is then complete, but not published yet."""

    @abstractmethod
    def abandon(self) -> None:
        """Abandon an incomplete file; a call after `close` does nothing."""


class WriteFormat(ABC):
    """How to write files of one schema in one format."""

    __slots__ = ("schema",)

    file_format: ClassVar[FileFormat]

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    @abstractmethod
    def open(self, file: NewFile) -> FormatWriter:
        """Start a file."""


class Sink:
    """A new file as a file object for Arrow's writers; it can hold back the end of the file to change it."""

    __slots__ = ("_file", "_held", "_is_abandoned", "closed")

    def __init__(self, file: NewFile) -> None:
        self._file = file
        self._held: list[bytes] | None = None
        self._is_abandoned = False
        self.closed = False

    def write(self, data: Any) -> int:
        """Write the bytes of a writer."""
        if self._is_abandoned:
            return len(data)
        if self._held is not None:
            self._held.append(bytes(data))
            return len(data)
        return self._file.write(data)

    def hold(self) -> None:
        """Hold back all bytes from now on."""
        self._held = []

    def release(self, change: Callable[[bytes], bytes]) -> None:
        """Write the held bytes after a change."""
        held, self._held = self._held, None
        if held is not None:
            self._file.write(change(b"".join(held)))

    def abandon(self) -> None:
        """Reject further writes: pyarrow writers write a footer when they are garbage-collected."""
        self._is_abandoned = True

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._file.size

    def flush(self) -> None:
        """Do nothing: publishing writes everything."""

    def close(self) -> None:
        """Mark the file as closed by the writer; its owner publishes it."""
        self.closed = True

    def readable(self) -> bool:
        """Return False."""
        return False

    def writable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return False."""
        return False


class arrow_errors:  # noqa: N801 - used as a statement, for every file
    """Convert Arrow's errors while it writes a file to errors of this package; storage errors pass through."""

    __slots__ = ("_path", "_what")

    def __init__(self, what: str, path: str) -> None:
        self._what = what
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, FrazilError):
            return
        message = f"Cannot write the {self._what} file {self._path}: {error}"
        if isinstance(error, OSError):
            raise StorageError(message, path=self._path) from error
        if isinstance(error, pa.ArrowException | ValueError):
            raise InvalidRequestError(message, path=self._path) from error


def find_reshape(
    data_type: Type,
    source: pa.DataType,
    target: pa.DataType,
    leaf: Callable[[Type, pa.DataType, pa.DataType], Convert | None],
) -> Convert | None:
    """Return the conversion of arrays to another Arrow form, including field names, or None if they have it.

    `leaf` returns that conversion for types that are not structs, lists or maps.
    """
    if isinstance(data_type, StructType):
        inner = [
            find_reshape(field.field_type, source.field(index).type, target.field(index).type, leaf)
            for index, field in enumerate(data_type.fields)
        ]
        return None if _is_same(source, target, inner) else lambda array: _reshape_struct(array, inner, target)
    if isinstance(data_type, ListType):
        inner = [find_reshape(data_type.element_type, source.value_type, target.value_type, leaf)]
        return None if _is_same(source, target, inner) else lambda array: _reshape_list(array, inner[0], target)
    if isinstance(data_type, MapType):
        inner = [
            find_reshape(data_type.key_type, source.key_type, target.key_type, leaf),
            find_reshape(data_type.value_type, source.item_type, target.item_type, leaf),
        ]
        return None if _is_same(source, target, inner) else lambda array: _reshape_map(array, inner, target)
    return leaf(data_type, source, target)


def _is_same(source: pa.DataType, target: pa.DataType, inner: list[Convert | None]) -> bool:
    return all(convert is None for convert in inner) and source.equals(target, check_metadata=True)


def _reshape_struct(array: Any, inner: list[Convert | None], target: pa.DataType) -> Any:
    children = [array.field(index) for index in range(array.type.num_fields)]
    parts = [child if convert is None else convert(child) for child, convert in zip(children, inner, strict=True)]
    return pa.Array.from_buffers(target, len(array), [validity(array)], children=parts)


def _reshape_list(array: Any, inner: Convert | None, target: pa.DataType) -> Any:
    offsets = array.offsets.to_numpy()
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    items = array.values.slice(first, last - first)
    return _lists(array, offsets - first, items if inner is None else inner(items), target)


def _reshape_map(array: Any, inner: list[Convert | None], target: pa.DataType) -> Any:
    offsets = array.offsets.to_numpy()
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    parts = [array.keys.slice(first, last - first), array.items.slice(first, last - first)]
    converted = [child if convert is None else convert(child) for child, convert in zip(parts, inner, strict=True)]
    entries = pa.Array.from_buffers(target.field(0).type, last - first, [None], children=converted)
    return _lists(array, offsets - first, entries, target)


def _lists(array: Any, offsets: Any, items: Any, target: pa.DataType) -> Any:
    buffers = [validity(array), pa.py_buffer(np.ascontiguousarray(offsets, np.int32))]
    return pa.Array.from_buffers(target, len(array), buffers, children=[items])


def reshape_table(rows: pa.Table, convert: list[Convert | None], target: pa.Schema) -> pa.Table:
    """Return a table in another Arrow form, column by column; columns that have it already are not copied."""
    if not any(convert) and rows.schema.equals(target):
        return rows
    columns = []
    for column, change in zip(rows.columns, convert, strict=True):
        columns.append(column if change is None else pa.chunked_array([change(chunk) for chunk in column.chunks]))
    chunked = [
        column if column.num_chunks else pa.chunked_array([], type=field.type)
        for column, field in zip(columns, target, strict=True)
    ]
    return pa.table(chunked, schema=target)
