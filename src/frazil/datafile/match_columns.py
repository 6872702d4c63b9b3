"""Match the columns of data to the columns of a table. Specification: "Writing data files", "Default values".

This is the first step of the write path. Columns are matched by name, in any order. A column that the data lacks gets
the write default or null; a column that the table lacks is refused, since its values would be lost. Every value is
preserved exactly: other widths, units and layouts of the same type are converted, and types that could lose something
are refused. The exceptions are times finer than the table's, which are accepted if no value loses digits (pandas mostly
uses nanoseconds), and bytes of any length for `fixed` and `uuid`, if each has the right length. All mismatched columns
are reported in one error, before anything is written.

Required columns hold no nulls, at any depth. Below a null struct a required field has an arbitrary non-null value,
which no writer stores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_arrays import is_binary, validity
from frazil.codec.arrow_schema import to_arrow_field, to_arrow_schema, to_arrow_type
from frazil.datafile.stored_schema import stored_schema, stored_type
from frazil.datafile.value_arrays import repeat_value
from frazil.datafile.write_casts import find_cast
from frazil.errors import SchemaMismatchError
from frazil.spec.reserved_columns import ROW_LINEAGE_COLUMNS
from frazil.spec.schema import Schema
from frazil.spec.types import ListType, MapType, NestedField, StructType, Type, UnknownType, VariantType

Convert: TypeAlias = Callable[[Any], Any]

_MAX_SHOWN = 10


class ColumnMatcher:
    """Converts batches of one Arrow schema to a table's schema; created once for all batches.

    `schema` is the schema to write: the table's stored columns, and the row lineage columns if the data has them.
    `arrow_schema` is the same in Arrow, with field ids.
    """

    def __init__(
        self, table_schema: Schema, source: pa.Schema, *, format_version: int, case_sensitive: bool = True
    ) -> None:
        fields = table_schema.fields
        if format_version >= 3:
            fields += tuple(
                lineage_column
                for lineage_column in ROW_LINEAGE_COLUMNS
                if lineage_column.name in source.names and lineage_column not in fields
            )
        stored = stored_schema(Schema(fields, table_schema.schema_id))
        self.schema = Schema(stored.fields, table_schema.schema_id, table_schema.identifier_field_ids)
        self.arrow_schema = to_arrow_schema(self.schema)
        plan = _Plan(format_version, case_sensitive=case_sensitive)
        self._columns = plan.match_fields(StructType(fields), list(source), "")
        if plan.problems:
            raise _mismatch(plan.problems)

    def match(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert a batch to the table's schema."""
        columns = batch.columns  # Arrow builds a new list on each access
        arrays = [column.read(columns, batch.num_rows, None) for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)


def _mismatch(problems: Sequence[str]) -> SchemaMismatchError:
    text = "; ".join(problems[:_MAX_SHOWN])
    more = f"; and {len(problems) - _MAX_SHOWN} more" if len(problems) > _MAX_SHOWN else ""
    return SchemaMismatchError(f"Cannot write the data: it does not match the table: {text}{more}")


class _Column:
    """How one field of the table is made from the columns, or the struct's fields, of the data."""

    __slots__ = ("_arrow", "_convert", "_kind", "_part", "_path", "_source")

    def __init__(self, field: NestedField, path: str, source: int | None, convert: Convert) -> None:
        self._part = field
        self._path = path
        self._source = source
        self._convert = convert
        self._kind = stored_type(field.field_type, path)
        self._arrow = to_arrow_type(self._kind)

    def read(self, columns: Sequence[Any], rows: int, parent: Any | None) -> Any:
        """Return the field's values; nulls of a parent struct do not count."""
        field = self._part
        if self._source is None:
            values = (
                nulls_of(rows, self._arrow)
                if field.write_default is None
                else repeat_value(field.write_default, self._kind, self._arrow, rows)
            )
        else:
            values = self._convert(columns[self._source])
        if field.required and values.null_count:
            # The child repeats the nulls of its parent, so any further nulls are its own.
            hidden = 0 if parent is None else parent.null_count
            if values.null_count > hidden:
                raise _null_error(self._path, values.null_count - hidden)
            values = without_nulls(values)
        return values


def _null_error(path: str, count: int) -> SchemaMismatchError:
    verb = "value is" if count == 1 else "values are"
    return SchemaMismatchError(f"Cannot write the required column {path!r}: {count} {verb} null")


class _Plan:
    """One comparison of the table's types with the data's, with all mismatches."""

    def __init__(self, format_version: int, *, case_sensitive: bool) -> None:
        self._format_version = format_version
        self._case_sensitive = case_sensitive
        self.problems: list[str] = []

    def match_fields(self, target: StructType, source: list[pa.Field], prefix: str) -> list[_Column]:
        """Return how each stored field of a struct is made; fields of unknown type are checked and left out."""
        positions = self._find_positions(target, source, prefix)
        columns: list[_Column] = []
        for field in target.fields:
            index = positions.get(field.name)
            column = self._match_field(field, None if index is None else source[index], index, prefix)
            if column is not None:
                columns.append(column)
        used = set(positions.values())
        unknown = [arrow_field.name for index, arrow_field in enumerate(source) if index not in used]
        self.problems += [f"{prefix}{name}: the table has no such column" for name in unknown]
        return columns

    def _find_positions(self, target: StructType, source: list[pa.Field], prefix: str) -> dict[str, int]:
        """Return the position of each field in the data; exact names take precedence over case-insensitive ones."""
        names = [arrow_field.name for arrow_field in source]
        first_positions: dict[str, int] = {}
        for index, name in enumerate(names):
            first_positions.setdefault(name, index)
        named = [field.name for field in target.fields if field.name in first_positions]
        positions = {name: first_positions[name] for name in named}
        taken = set(positions.values())
        fields_by_lower: dict[str, list[str]] = {}
        if not self._case_sensitive:
            for field in target.fields:
                fields_by_lower.setdefault(field.name.lower(), []).append(field.name)
        for index, name in enumerate(names):
            if index in taken:
                continue
            if name in positions:
                self.problems.append(f"{prefix}{name}: the data has two columns of that name")
            elif not self._case_sensitive:
                alike = fields_by_lower.get(name.lower(), [])
                free = [index for index in alike if index not in positions]
                if free:
                    positions[free[0]] = index
                elif alike:
                    self.problems.append(f"{prefix}{name}: the data has another column for {alike[0]!r}")
        return positions

    def _match_field(
        self, field: NestedField, source: pa.Field | None, index: int | None, prefix: str
    ) -> _Column | None:
        path = f"{prefix}{field.name}"
        if source is None:
            if field.required and field.write_default is None:
                self.problems.append(f"{path}: it is required, but missing in the data")
            if isinstance(field.field_type, UnknownType):
                return None
            return _Column(field, path, None, _same)
        convert = self._match_type(field.field_type, source.type, path)
        if isinstance(field.field_type, UnknownType):
            return None
        return _Column(field, path, index, convert)

    def _match_type(self, target: Type, source: pa.DataType, path: str) -> Convert:
        """Return the conversion between arrays of two types; schemas bound the depth of the recursion."""
        if pa.types.is_null(source):
            arrow = to_arrow_type(stored_type(target, path))
            return lambda array: nulls_of(len(array), arrow)
        if isinstance(target, StructType) and pa.types.is_struct(source):
            return self._match_struct(target, source, path)
        if isinstance(target, ListType) and any(is_list(source) for is_list in _LIST_CHECKS):
            return self._match_list(target, source, path)
        if isinstance(target, MapType) and pa.types.is_map(source):
            return self._match_map(target, source, path)
        if isinstance(target, VariantType):
            return self._match_variant(target, source, path)
        cast = find_cast(target, source, path, format_version=self._format_version)
        if cast is None:
            self.problems.append(f"{path}: {source} cannot be written as {_type_text(target)}")
            return _same
        return cast

    def _match_struct(self, want: StructType, have: pa.DataType, path: str) -> Convert:
        columns = self.match_fields(want, [have.field(index) for index in range(have.num_fields)], f"{path}.")
        target = to_arrow_type(stored_type(want, path))

        def convert(array: Any) -> Any:
            parts = (
                array.flatten() if array.null_count else [array.field(index) for index in range(array.type.num_fields)]
            )
            children = [column.read(parts, len(array), array) for column in columns]
            return pa.Array.from_buffers(target, len(array), [validity(array)], children=children)

        return convert

    def _match_list(self, want: ListType, have: pa.DataType, path: str) -> Convert:
        element = self._match_part(want.element_field, have.value_field.type, path)
        target = to_arrow_type(stored_type(want, path))

        def convert(array: Any) -> Any:
            return _list_of(array, element.read([_items(array)], 0, None), target)

        return convert

    def _match_map(self, want: MapType, have: pa.DataType, path: str) -> Convert:
        key = self._match_part(want.key_field, have.key_type, path)
        value = self._match_part(want.value_field, have.item_type, path)
        target = to_arrow_type(stored_type(want, path))
        pairs_type = pa.list_(pa.field("entries", pa.struct([have.key_field, have.item_field]), nullable=False))

        def convert(array: Any) -> Any:
            lists = pa.Array.from_buffers(
                pairs_type, len(array), array.buffers()[:2], offset=array.offset, children=[array.values]
            )
            pairs = _items(lists)
            parts = [key.read([pairs.field(0)], 0, None), value.read([pairs.field(1)], 0, None)]
            made = pa.Array.from_buffers(target.field(0).type, len(pairs), [None], children=parts)
            return _list_of(lists, made, target)

        return convert

    def _match_part(self, field: NestedField, have: pa.DataType, path: str) -> _Column:
        inner = f"{path}.{field.name}"
        return _Column(field, inner, 0, self._match_type(field.field_type, have, inner))

    def _match_variant(self, want: VariantType, have: pa.DataType, path: str) -> Convert:
        target = to_arrow_type(want)
        places = [have.get_field_index(name) if pa.types.is_struct(have) else -1 for name in ("metadata", "value")]
        if min(places) < 0 or not all(is_binary(have.field(index).type) for index in places) or have.num_fields != 2:
            self.problems.append(f"{path}: {have} cannot be written as variant, which has metadata and value as binary")
            return _same

        def convert(array: Any) -> Any:
            parts = array.flatten() if array.null_count else [array.field(index) for index in range(2)]
            children = []
            for name, position in zip(("metadata", "value"), places, strict=True):
                child = parts[position].cast(pa.binary())
                if child.null_count > array.null_count:
                    raise _null_error(f"{path}.{name}", child.null_count - array.null_count)
                children.append(without_nulls(child))
            return pa.Array.from_buffers(target, len(array), [validity(array)], children=children)

        return convert


def _same(array: Any) -> Any:
    return array


def _type_text(data_type: Type) -> str:
    arrow = to_arrow_field(NestedField(1, "x", data_type), with_ids=False).type
    return f"{data_type}" if str(arrow) == str(data_type) or data_type.is_nested else f"{data_type} ({arrow})"


def _items(array: Any) -> Any:
    """Return the items of all lists that are not null, concatenated."""
    if pc.sum(pc.list_value_length(array)).as_py() in (None, 0):
        # Arrow cannot concatenate zero arrays of an extension type.
        return array.values.slice(0, 0)
    return array.flatten()


def _list_of(array: Any, items: Any, target: pa.DataType) -> Any:
    """Return items as the lists of an array; null lists are empty, even if the array has items under them."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise SchemaMismatchError(f"Cannot write lists with {offsets[-1]} items in one batch: pass smaller batches")
    buffers = [validity(array), pa.py_buffer(offsets.astype(np.int32))]
    return pa.Array.from_buffers(target, len(array), buffers, children=[items])


def nulls_of(length: int, arrow_type: pa.DataType) -> Any:
    """Return nulls of a type; required fields of a null struct have an arbitrary value."""
    if not pa.types.is_struct(arrow_type):
        return pa.nulls(length, arrow_type)
    children = [nulls_of(length, field.type) for field in arrow_type]
    required_filled = [
        child if field.nullable else without_nulls(child) for field, child in zip(arrow_type, children, strict=True)
    ]
    return pa.Array.from_buffers(arrow_type, length, [pa.py_buffer(bytes(-(-length // 8)))], children=required_filled)


def without_nulls(array: Any) -> Any:
    """Return an array with arbitrary values in place of nulls, for required fields of null structs."""
    if array.null_count == 0:
        return array
    data_type = array.type
    if isinstance(data_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(data_type, without_nulls(array.storage))
    if pa.types.is_struct(data_type):
        children = [array.field(index) for index in range(data_type.num_fields)]
        return pa.Array.from_buffers(data_type, len(array), [None], children=children)
    buffers = array.buffers()
    if pa.types.is_list(data_type) or pa.types.is_map(data_type):
        children = [array.values]
        return pa.Array.from_buffers(data_type, len(array), [None, buffers[1]], offset=array.offset, children=children)
    return pa.Array.from_buffers(data_type, len(array), [None, *buffers[1:]], offset=array.offset)


_LIST_CHECKS: tuple[Callable[[Any], bool], ...] = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)
