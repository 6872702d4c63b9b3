"""Write ORC files. Specification: "ORC" (Appendix A).

Arrow's writer does the work. It stores the metadata of Arrow fields as ORC type attributes, where ids and types that
ORC lacks are recorded: `iceberg.id`, `iceberg.required`, `iceberg.long-type` and the like.

Arrow's ORC writer has bugs that lose data, which are worked around here. It takes values under a null struct for values
of the rows after it, and it ignores that the children of a struct may start in the middle of their buffers; so nested
columns are copied, and values under a null are set to null. It also writes fractions of seconds before 1970 as negative
numbers, which readers refuse or misread; such values are refused.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from frazil.codec.arrow_schema import to_arrow_schema, to_arrow_type
from frazil.datafile.format_writer import (
    Convert,
    FileLayout,
    FormatWriter,
    Sink,
    WriteFormat,
    arrow_errors,
    find_reshape,
    reshape_table,
)
from frazil.datafile.orc_tail import decode_stripes
from frazil.errors import UnsupportedError
from frazil.spec import properties as known
from frazil.spec import types as ft
from frazil.spec.data_file import FileFormat
from frazil.spec.properties import read_property
from frazil.spec.schema import Schema
from frazil.storage.new_file import NewFile

ID_ATTRIBUTE = "iceberg.id"
REQUIRED_ATTRIBUTE = "iceberg.required"

_ATTRIBUTES: dict[type[ft.Type], dict[str, str]] = {
    ft.TimeType: {"iceberg.long-type": "TIME"},
    ft.LongType: {"iceberg.long-type": "LONG"},
    ft.UuidType: {"iceberg.binary-type": "UUID"},
    ft.FixedType: {"iceberg.binary-type": "FIXED"},
    ft.BinaryType: {"iceberg.binary-type": "BINARY"},
    ft.GeometryType: {"iceberg.binary-type": "GEOMETRY"},
    ft.GeographyType: {"iceberg.binary-type": "GEOGRAPHY"},
    ft.TimestampType: {"iceberg.timestamp-unit": "MICROS"},
    ft.TimestamptzType: {"iceberg.timestamp-unit": "MICROS"},
    ft.TimestampNsType: {"iceberg.timestamp-unit": "NANOS"},
    ft.TimestamptzNsType: {"iceberg.timestamp-unit": "NANOS"},
    ft.VariantType: {"iceberg.struct-type": "VARIANT"},
}
_CODECS = {"zlib": "zlib", "zstd": "zstd", "snappy": "snappy", "lz4": "lz4", "none": "uncompressed"}


class OrcFormat(WriteFormat):
    """ORC files of one schema with a table's properties."""

    __slots__ = ("_arrow", "_options", "_reshapes")

    file_format = FileFormat.ORC

    def __init__(self, schema: Schema, properties: Mapping[str, str], *, is_delete: bool = False) -> None:
        super().__init__(schema)
        source = to_arrow_schema(schema)
        self._arrow = pa.schema([_orc_field(field) for field in schema.fields])
        self._reshapes = [
            find_reshape(field.field_type, source.field(index).type, self._arrow.field(index).type, _leaf_form)
            for index, field in enumerate(schema.fields)
        ]
        self._options = _writer_options(schema, properties, is_delete=is_delete)

    def open(self, file: NewFile) -> FormatWriter:
        """Start an ORC file."""
        return _OrcWriter(self, file)

    def start(self, sink: Sink) -> orc.ORCWriter:
        """Return Arrow's writer for a new file."""
        return orc.ORCWriter(pa.PythonFile(sink, mode="w"), **self._options)

    def stored_form(self, rows: pa.Table) -> pa.Table:
        """Return rows in the form that the file stores."""
        table = reshape_table(rows, self._reshapes, self._arrow)
        columns = [
            pa.chunked_array([_with_hidden_nulls(_copied(chunk)) for chunk in column.chunks], type=column.type)
            if isinstance(field.field_type, ft.NestedType | ft.VariantType)
            else column
            for field, column in zip(self.schema.fields, table.columns, strict=True)
        ]
        for field, column in zip(self.schema.fields, columns, strict=True):
            for chunk in column.chunks:
                _check_times(chunk, field.field_type, field.name)
        return pa.table(columns, schema=self._arrow)


class _OrcWriter(FormatWriter):
    __slots__ = ("_file", "_format", "_has_rows", "_sink", "_writer")

    holds_rows = True  # up to a stripe

    def __init__(self, form: OrcFormat, file: NewFile) -> None:
        self._format = form
        self._file = file
        self._sink = Sink(file)
        self._has_rows = False
        with arrow_errors("ORC", file.path):
            self._writer: Any = form.start(self._sink)

    def write(self, rows: pa.Table) -> None:
        with arrow_errors("ORC", self._file.path):
            self._writer.write(self._format.stored_form(rows))
        self._has_rows = True

    def close(self) -> FileLayout:
        if not self._has_rows:
            # Arrow takes the schema from the first table.
            self.write(pa.Table.from_batches([], schema=to_arrow_schema(self._format.schema)))
        start = self._file.size
        self._sink.hold()
        with arrow_errors("ORC", self._file.path):
            self._writer.close()
        self._writer = None
        ends: list[bytes] = []
        self._sink.release(lambda end: ends.append(end) or end)  # type: ignore[func-returns-value]
        return FileLayout(_stripe_offsets(ends[0], start))

    def abandon(self) -> None:
        if self._writer is None:
            return
        self._sink.abandon()
        with contextlib.suppress(Exception):
            self._writer.close()
        self._writer = None


def _copied(array: Any) -> Any:
    """Return a copy of an array in which all children start at the start of their buffers."""
    return pa.concat_arrays([array.slice(0, 0), array])


def _with_hidden_nulls(array: Any) -> Any:
    """Return an array with null children below null structs."""
    data_type = array.type
    if pa.types.is_struct(data_type):
        parts = array.flatten() if array.null_count else [array.field(index) for index in range(data_type.num_fields)]
        validity = array.is_valid().buffers()[1] if array.null_count else None
        return pa.Array.from_buffers(
            data_type, len(array), [validity], children=[_with_hidden_nulls(child) for child in parts]
        )
    if pa.types.is_list(data_type):
        children = [_with_hidden_nulls(array.values)]
    elif pa.types.is_map(data_type):
        pairs = [_with_hidden_nulls(array.keys), _with_hidden_nulls(array.items)]
        children = [pa.Array.from_buffers(data_type.field(0).type, len(array.values), [None], children=pairs)]
    else:
        return array
    return pa.Array.from_buffers(data_type, len(array), array.buffers()[:2], children=children)


def _check_times(array: Any, data_type: ft.Type, column: str) -> None:
    """Refuse times before 1970 with fractions of a second."""
    if isinstance(data_type, ft.StructType):
        for index, field in enumerate(data_type.fields):
            _check_times(array.field(index), field.field_type, f"{column}.{field.name}")
    elif isinstance(data_type, ft.ListType):
        _check_times(array.values, data_type.element_type, f"{column}.element")
    elif isinstance(data_type, ft.MapType):
        _check_times(array.keys, data_type.key_type, f"{column}.key")
        _check_times(array.items, data_type.value_type, f"{column}.value")
    elif pa.types.is_timestamp(array.type):
        values = array.view(pa.int64())
        smallest = pc.min(values).as_py()
        if smallest is None or smallest >= 0:
            return
        per_second = 1_000_000 if array.type.unit == "us" else 1_000_000_000
        whole = pc.multiply(pc.divide(values, per_second), per_second)
        if pc.any(pc.and_(pc.less(values, 0), pc.not_equal(values, whole))).as_py():
            raise UnsupportedError(
                f"Cannot write the column {column!r} to ORC: a time before 1970 has a fraction of a second, and Arrow "
                "writes such times in a form that other readers misread",
                hint=f"Set {known.DEFAULT_FILE_FORMAT.name} to parquet.",
            )


class _FileEnd(io.RawIOBase):
    """A file of which only the end is available, enough to read its footer."""

    def __init__(self, end: bytes, start: int) -> None:
        self._end = end
        self._start = start
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._start + len(self._end)}[whence]
        self._position = base + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        length = max(self._start + len(self._end) - self._position, 0) if size < 0 else size
        from_end = self._position - self._start
        missing = min(max(-from_end, 0), length)
        data = bytes(missing) + self._end[max(from_end, 0) : max(from_end, 0) + length - missing]
        self._position += len(data)
        return data


def _stripe_offsets(end: bytes, start: int) -> tuple[int, ...] | None:
    """Return the offsets of stripes from the end of a file, or None if it cannot be decoded."""
    try:
        reader = orc.ORCFile(pa.PythonFile(_FileEnd(end, start), mode="r"))
        return (
            tuple(decode_stripe.offset for decode_stripe in decode_stripes(reader.reader.serialized_file_tail()))
            or None
        )
    except (pa.ArrowException, OSError, ValueError):
        return None


# --- types


def _orc_field(field: ft.NestedField) -> pa.Field:
    data_type = field.field_type
    attributes = {ID_ATTRIBUTE: str(field.field_id), REQUIRED_ATTRIBUTE: str(field.required).lower()}
    attributes |= _ATTRIBUTES.get(type(data_type), {})
    if isinstance(data_type, ft.FixedType):
        attributes["iceberg.length"] = str(data_type.length)
    return pa.field(field.name, _orc_type(data_type), nullable=field.optional, metadata=attributes)


def _orc_type(data_type: ft.Type) -> pa.DataType:
    if isinstance(data_type, ft.StructType):
        return pa.struct([_orc_field(field) for field in data_type.fields])
    if isinstance(data_type, ft.ListType):
        return pa.list_(_orc_field(data_type.element_field))
    if isinstance(data_type, ft.MapType):
        return pa.map_(_orc_field(data_type.key_field), _orc_field(data_type.value_field))
    return pa.int64() if isinstance(data_type, ft.TimeType) else to_arrow_type(data_type, has_extensions=False)


def _leaf_form(data_type: ft.Type, source: pa.DataType, target: pa.DataType) -> Convert | None:
    if isinstance(data_type, ft.TimeType):
        return lambda array: array.view(pa.int64())
    return (lambda array: array.storage) if isinstance(source, pa.BaseExtensionType) else None


# --- properties


def _writer_options(schema: Schema, properties: Mapping[str, str], *, is_delete: bool) -> dict[str, Any]:
    codec = read_property(properties, known.DELETE_ORC_COMPRESSION if is_delete else known.ORC_COMPRESSION)
    if codec not in _CODECS:
        raise UnsupportedError(
            f"Cannot write ORC files with the codec {codec}: Arrow does not support it",
            hint=f"Set {known.ORC_COMPRESSION.name} to one of {', '.join(_CODECS)}.",
        )
    stripe = known.DELETE_ORC_STRIPE_SIZE_BYTES if is_delete else known.ORC_STRIPE_SIZE_BYTES
    batch = known.DELETE_ORC_WRITE_BATCH_SIZE if is_delete else known.ORC_WRITE_BATCH_SIZE
    strategy = known.DELETE_ORC_COMPRESSION_STRATEGY if is_delete else known.ORC_COMPRESSION_STRATEGY
    return {
        "compression": _CODECS[codec],
        "stripe_size": read_property(properties, stripe),
        "batch_size": read_property(properties, batch),
        "compression_strategy": read_property(properties, strategy),
        "bloom_filter_columns": _bloom_columns(schema, properties) or None,
        "bloom_filter_fpp": read_property(properties, known.ORC_BLOOM_FILTER_FPP),
    }


def _bloom_columns(schema: Schema, properties: Mapping[str, str]) -> list[int]:
    """Return the numbers of the columns with a bloom filter; ORC numbers types in order, with the root as 0."""
    fields = {schema.find_field(name) for name in read_property(properties, known.ORC_BLOOM_FILTER_COLUMNS)}
    ids = {field.field_id for field in fields if field is not None}
    return [index for index, field_id in enumerate(_walk_types(schema.fields), start=1) if field_id in ids]


def _walk_types(fields: tuple[ft.NestedField, ...]) -> Iterator[int | None]:
    """Yield the field id of each ORC type; the parts of a variant have none."""
    for field in fields:
        yield field.field_id
        if isinstance(field.field_type, ft.StructType | ft.ListType | ft.MapType):
            yield from _walk_types(field.field_type.fields)
        elif isinstance(field.field_type, ft.VariantType):
            yield from (None, None)
