"""Write Parquet files. Specification: "Parquet" (Appendix A).

Arrow's writer does the work, configured by the table's properties. Beyond its defaults, the specification requires
field ids on every field (they travel in the Arrow schema), decimals in the smallest physical type, three-level lists,
and annotations of variants and geometries (`parquet_footer.py`). As in Iceberg Java, names that Avro does not allow are
escaped in the file, where ids identify columns, and the schema is stored as JSON under `iceberg.schema`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.codec.avro_types import make_avro_name
from frazil.codec.json_text import encode_json
from frazil.codec.schema_json import encode_schema
from frazil.datafile.format_writer import (
    FileLayout,
    FormatWriter,
    Sink,
    WriteFormat,
    arrow_errors,
    find_reshape,
    reshape_table,
)
from frazil.datafile.parquet_footer import annotate_footer, needs_annotation
from frazil.errors import InvalidPropertyError
from frazil.spec import properties as known
from frazil.spec import types as ft
from frazil.spec.data_file import FileFormat
from frazil.spec.properties import read_column_properties, read_property
from frazil.spec.property_kinds import ColumnProperty
from frazil.spec.schema import Schema, walk_fields
from frazil.storage.new_file import NewFile

SCHEMA_KEY = "iceberg.schema"
_MAX_ROW_GROUP_ROWS = 1 << 26
"""Arrow's limit."""
_CODECS = {"uncompressed": "none", "lz4_raw": "lz4"}
_LEVELS: dict[str, tuple[int, int]] = {"gzip": (0, 9), "zstd": (-131_072, 22), "brotli": (0, 11)}
"""The levels of codecs that have them; for other codecs the property is ignored, as in Iceberg Java."""
_SAMPLED_ROWS = 1 << 16
"""The rows of a file that are sampled for repeated values."""
_MIN_DICTIONARY_ROWS = 100
"""The rows below which dictionaries save next to nothing."""
_STREAM_BYTES = 1 << 16
"""The bytes that are buffered before they go through Python to the file."""
_DEFAULT_LEVELS = {"gzip": 6}
"""Arrow's default is 9, which is five times slower for one percent."""


class ParquetFormat(WriteFormat):
    """Parquet files of one schema with a table's properties."""

    __slots__ = ("_annotations", "_arrow", "_leaves", "_options", "_reshapes", "_schema_json")

    file_format = FileFormat.PARQUET

    def __init__(self, schema: Schema, properties: Mapping[str, str], *, is_delete: bool = False) -> None:
        super().__init__(schema)
        stored = replace(schema, fields=_escape_names(schema.fields), identifier_field_ids=())
        source = to_arrow_schema(schema)
        self._arrow = to_arrow_schema(stored)
        self._reshapes = [
            find_reshape(field.field_type, source.field(index).type, self._arrow.field(index).type, _no_change)
            for index, field in enumerate(schema.fields)
        ]
        self._leaves = [leaf for field in stored.fields for leaf in _walk_leaves(field, "")]
        self._annotations = {
            field.field_id: field.field_type
            for field, _, _ in walk_fields(schema.struct)
            if needs_annotation(field.field_type)
        }
        self._options = _writer_options(schema, self._leaves, properties, is_delete=is_delete)
        self._schema_json = encode_json(encode_schema(schema))

    def open(self, file: NewFile) -> FormatWriter:
        """Start a Parquet file."""
        return _ParquetWriter(self, file)

    def start(self, sink: Any, collected: list[Any], first: pa.Table | None) -> pq.ParquetWriter:
        """Return Arrow's writer for a new file; the file's metadata is appended to `collected` at its end.

        The first rows, in stored form, decide which columns get dictionaries.
        """
        options = self._options if first is None else {**self._options, "use_dictionary": self._dictionaries(first)}
        writer = pq.ParquetWriter(sink, self._arrow, metadata_collector=collected, **options)
        writer.add_key_value_metadata({SCHEMA_KEY: self._schema_json})
        return writer

    def _dictionaries(self, first: pa.Table) -> list[str] | bool:
        """Return the columns whose dictionaries save space, since for values that hardly repeat they cost some."""
        if first.num_rows < _MIN_DICTIONARY_ROWS:
            return False
        allowed = self._options["use_dictionary"]
        paths = [leaf.path for leaf in self._leaves] if allowed is True else allowed
        names = set(first.column_names)
        return [path for path in paths if path not in names or _benefits_from_dictionary(first.column(path))] or False

    def stored_form(self, rows: pa.Table) -> pa.Table:
        """Return rows in the form that the file stores, under its names."""
        return reshape_table(rows, self._reshapes, self._arrow)

    @property
    def has_annotations(self) -> bool:
        """Whether types of the file need annotations that Arrow does not write."""
        return len(self._annotations) > 0

    def annotate(self, tail: bytes) -> bytes:
        """Return the end of a file with the annotations that Arrow did not write."""
        return annotate_footer(tail, self._annotations)

    def layout(self, metadata: Any) -> FileLayout:
        """Return the offsets of row groups and the size of each column, from the file's metadata."""
        offsets: list[int] = []
        sizes: dict[int, int] = {}
        for index in range(metadata.num_row_groups):
            group = metadata.row_group(index)
            for leaf_index, leaf in enumerate(self._leaves):
                column = group.column(leaf_index)
                if leaf_index == 0:
                    dictionary = column.dictionary_page_offset
                    data = column.data_page_offset
                    offsets.append(data if dictionary is None or dictionary == 0 else min(data, dictionary))
                if leaf.field_id is not None:
                    sizes[leaf.field_id] = sizes.get(leaf.field_id, 0) + column.total_compressed_size
        return FileLayout(tuple(offsets), sizes)


class _ParquetWriter(FormatWriter):
    __slots__ = ("_collected", "_file", "_format", "_is_ended", "_sink", "_stream", "_writer")

    def __init__(self, form: ParquetFormat, file: NewFile) -> None:
        self._format = form
        self._file = file
        self._sink = Sink(file)
        self._stream = pa.BufferedOutputStream(pa.PythonFile(self._sink, mode="w"), _STREAM_BYTES)
        self._collected: list[Any] = []
        self._writer: Any = None
        self._is_ended = False

    @property
    def buffered_bytes(self) -> int:
        return 0 if self._is_ended else int(self._stream.tell()) - self._file.size

    def write(self, rows: pa.Table) -> None:
        with arrow_errors("Parquet", self._file.path):
            table = self._format.stored_form(rows)
            if self._writer is None:
                self._writer = self._format.start(self._stream, self._collected, table)
            self._writer.write_table(table, row_group_size=min(max(rows.num_rows, 1), _MAX_ROW_GROUP_ROWS))

    def close(self) -> FileLayout:
        with arrow_errors("Parquet", self._file.path):
            if self._writer is None:
                self._writer = self._format.start(self._stream, self._collected, None)
            if self._format.has_annotations:
                self._stream.flush()
                self._sink.hold()
            self._writer.close()
            self._stream.flush()
        self._writer = None
        self._is_ended = True
        self._sink.release(self._format.annotate)
        return self._format.layout(self._collected[0])

    def abandon(self) -> None:
        if self._is_ended:
            return
        self._is_ended = True
        self._sink.abandon()
        if self._writer is None:
            return
        # Arrow's writer closes its file when it is garbage-collected, so close it now.
        with contextlib.suppress(Exception):
            self._writer.close()
        self._writer.is_open = False
        self._writer = None


def _benefits_from_dictionary(column: pa.ChunkedArray) -> bool:
    """Return whether a dictionary and indexes take less space than the values of a column."""
    sample = column.slice(0, _SAMPLED_ROWS).drop_null()
    if len(sample) == 0:
        return True
    try:
        distinct = pc.count_distinct(sample).as_py()
    except pa.ArrowNotImplementedError:
        return True
    width = sample.nbytes / len(sample)
    number_bytes = max(distinct - 1, 1).bit_length() / 8
    return bool(distinct * width + len(sample) * number_bytes < len(sample) * width)


def _no_change(data_type: ft.Type, source: pa.DataType, target: pa.DataType) -> None:
    return None


# --- names and columns


def _escape_names(fields: tuple[ft.NestedField, ...]) -> tuple[ft.NestedField, ...]:
    """Return fields with their names in a file; ids distinguish names that would become equal."""
    taken: set[str] = set()
    escaped = []
    for nested_field in fields:
        name = nested_field.name if _is_plain(nested_field.name) else make_avro_name(nested_field.name)
        if name in taken or (name != nested_field.name and any(field.name == name for field in fields)):
            name = f"{name}_f{nested_field.field_id}"
        taken.add(name)
        escaped.append(replace(nested_field, name=name, field_type=_escaped_type(nested_field.field_type), doc=None))
    return tuple(escaped)


def _is_plain(name: str) -> bool:
    return all(char == "_" or char.isalnum() for char in name) and not name[:1].isdigit()


def _escaped_type(data_type: ft.Type) -> ft.Type:
    if isinstance(data_type, ft.StructType):
        return ft.StructType(_escape_names(data_type.fields))
    if isinstance(data_type, ft.ListType):
        return replace(data_type, element_type=_escaped_type(data_type.element_type))
    if isinstance(data_type, ft.MapType):
        return replace(
            data_type, key_type=_escaped_type(data_type.key_type), value_type=_escaped_type(data_type.value_type)
        )
    return data_type


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column of a file: its path, its field id (the parts of a variant have none) and its type."""

    path: str
    field_id: int | None
    data_type: ft.Type


def _walk_leaves(field: ft.NestedField, parent: str) -> Iterator[_Leaf]:
    path = f"{parent}{field.name}"
    data_type = field.field_type
    if isinstance(data_type, ft.StructType):
        for inner in data_type.fields:
            yield from _walk_leaves(inner, f"{path}.")
    elif isinstance(data_type, ft.ListType):
        yield from _walk_leaves(data_type.element_field, f"{path}.list.")
    elif isinstance(data_type, ft.MapType):
        yield from _walk_leaves(data_type.key_field, f"{path}.key_value.")
        yield from _walk_leaves(data_type.value_field, f"{path}.key_value.")
    elif isinstance(data_type, ft.VariantType):
        yield _Leaf(f"{path}.metadata", None, data_type)
        yield _Leaf(f"{path}.value", None, data_type)
    else:
        yield _Leaf(path, field.field_id, data_type)


# --- properties


def _writer_options(
    schema: Schema, leaves: list[_Leaf], properties: Mapping[str, str], *, is_delete: bool
) -> dict[str, Any]:
    """Return the arguments of Arrow's writer for a table's properties."""
    codec = read_property(properties, known.DELETE_PARQUET_COMPRESSION if is_delete else known.PARQUET_COMPRESSION)
    page_bytes = known.DELETE_PARQUET_PAGE_SIZE_BYTES if is_delete else known.PARQUET_PAGE_SIZE_BYTES
    page_rows = known.DELETE_PARQUET_PAGE_ROW_LIMIT if is_delete else known.PARQUET_PAGE_ROW_LIMIT
    version = known.DELETE_PARQUET_PAGE_VERSION if is_delete else known.PARQUET_PAGE_VERSION
    dictionary = known.DELETE_PARQUET_DICT_SIZE_BYTES if is_delete else known.PARQUET_DICT_SIZE_BYTES
    without_dictionary = _columns_with(schema, properties, known.PARQUET_DICT_ENCODING_COLUMN_ENABLED, value=False)
    without_statistics = _columns_with(schema, properties, known.PARQUET_COLUMN_STATS_ENABLED, value=False)
    return {
        "version": "2.6",
        "compression": _CODECS.get(codec, codec),
        "compression_level": _compression_level(codec, properties, is_delete=is_delete),
        "use_dictionary": [leaf.path for leaf in leaves if leaf.field_id not in without_dictionary]
        if without_dictionary
        else True,
        # Geometries have no order, so statistics of their bytes would be meaningless.
        "write_statistics": [
            leaf.path
            for leaf in leaves
            if leaf.field_id not in without_statistics
            and not isinstance(leaf.data_type, ft.GeometryType | ft.GeographyType)
        ],
        "data_page_size": read_property(properties, page_bytes),
        "max_rows_per_page": read_property(properties, page_rows),
        "data_page_version": {"v1": "1.0", "v2": "2.0"}[read_property(properties, version)],
        "dictionary_pagesize_limit": read_property(properties, dictionary),
        "bloom_filter_options": _bloom_filters(schema, leaves, properties) or None,
        "write_page_index": True,
        "store_schema": False,
        "store_decimal_as_integer": True,
        "use_compliant_nested_type": True,
    }


def _compression_level(codec: str, properties: Mapping[str, str], *, is_delete: bool) -> int | None:
    key = known.DELETE_PARQUET_COMPRESSION_LEVEL if is_delete else known.PARQUET_COMPRESSION_LEVEL
    level = read_property(properties, key)
    if codec not in _LEVELS:
        return None
    if level is None:
        return _DEFAULT_LEVELS.get(codec)
    low, high = _LEVELS[codec]
    if not low <= level <= high:
        raise InvalidPropertyError(f"Cannot use the level {level} of {codec}: {key} must be from {low} to {high}")
    return level


def _columns_with(
    schema: Schema, properties: Mapping[str, str], family: ColumnProperty[bool], *, value: bool
) -> set[int]:
    """Return the ids of columns whose property has a value; unknown names are ignored, as in Iceberg Java."""
    ids = set()
    for name, setting in read_column_properties(properties, family).items():
        field = schema.find_field(name)
        if field is not None and setting is value:
            ids.add(field.field_id)
    return ids


def _bloom_filters(schema: Schema, leaves: list[_Leaf], properties: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    filtered = _columns_with(schema, properties, known.PARQUET_BLOOM_FILTER_COLUMN_ENABLED, value=True)
    max_bytes = read_property(properties, known.PARQUET_BLOOM_FILTER_MAX_BYTES)
    rates = read_column_properties(properties, known.PARQUET_BLOOM_FILTER_COLUMN_FPP)
    counts = read_column_properties(properties, known.PARQUET_BLOOM_FILTER_COLUMN_NDV)
    options: dict[str, dict[str, Any]] = {}
    for leaf in leaves:
        # Parquet does not support bloom filters on booleans.
        if leaf.field_id not in filtered or leaf.field_id is None or isinstance(leaf.data_type, ft.BooleanType):
            continue
        name = schema.name_of(leaf.field_id)
        rate = rates.get(name, known.PARQUET_BLOOM_FILTER_COLUMN_FPP.default)
        # The size of Arrow's filters is a power of two. Up to `max_values` a filter keeps its rate within the allowed
        # size; if the number of values is unknown, it has that size.
        size = 1 << (max_bytes.bit_length() - 1)
        max_values = max(1, int(-size * math.log(1 - rate ** (1 / 8))))
        count = counts.get(name)
        options[leaf.path] = {"fpp": rate, "ndv": max_values if count is None else min(count, max_values)}
    return options
