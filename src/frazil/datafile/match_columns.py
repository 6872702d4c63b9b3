"""Columns of data to write as the columns of a table. Specification: "Writing data files", "Default values".

The first step of the write path. Columns are found by name, in any order; what the data lacks is the write default or
null, and what the table lacks is refused, since its values would be lost. Each value is kept exactly: other widths,
units and layouts of the same type are converted, and where a type could lose something it is refused by type. The
exceptions are finer times than the table's, which are accepted as long as no value loses digits (pandas knows little
but nanoseconds), and bytes of any length for `fixed` and `uuid`, as long as each has the right one.
Every column that does not fit is named in one error, before anything is written.

Required columns hold no null, at any depth. Under a null struct a required field has no value: the result has some
value there that no writer stores, and no null.
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
    """Turns batches of one Arrow schema into batches of a table's schema; made once for all batches.

    `schema` is what is written: the table's columns that files store, and the row lineage columns where the data
    has them. `arrow_schema` is the same in Arrow, with field ids.
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
        """Return a batch as one of the table's schema."""
        columns = batch.columns  # Arrow makes the list anew each time
        arrays = [column.read(columns, batch.num_rows, None) for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.arrow_schema)


def _mismatch(problems: Sequence[str]) -> SchemaMismatchError:
    text = "; ".join(problems[:_MAX_SHOWN])
    more = f"; and {len(problems) - _MAX_SHOWN} more" if len(problems) > _MAX_SHOWN else ""
    return SchemaMismatchError(f"Cannot write the data: it does not fit the table: {text}{more}")


class _Column:
    """How one field of the table is made of the columns, or the struct's fields, of the data."""

    __slots__ = ("_arrow", "_convert", "_kind", "_part", "_path", "_source")

    def __init__(self, field: NestedField, path: str, source: int | None, convert: Convert) -> None:
        self._part = field
        self._path = path
        self._source = source
        self._convert = convert
        self._kind = stored_type(field.field_type, path)
        self._arrow = to_arrow_type(self._kind)

    def read(self, columns: Sequence[Any], rows: int, parent: Any | None) -> Any:
        """Return the field's values; nulls of a parent struct count as no values."""
        field = self._part
        if self._source is None:
            made = (
                nulls_of(rows, self._arrow)
                if field.write_default is None
                else repeat_value(field.write_default, self._kind, self._arrow, rows)
            )
        else:
            made = self._convert(columns[self._source])
        if field.required and made.null_count:
            # Nulls of the parent are in the child too, so any more are the child's own.
            hidden = 0 if parent is None else parent.null_count
            if made.null_count > hidden:
                raise _null_refused(self._path, made.null_count - hidden)
            made = without_nulls(made)
        return made


def _null_refused(path: str, count: int) -> SchemaMismatchError:
    are = "value is" if count == 1 else "values are"
    return SchemaMismatchError(f"Cannot write the required column {path!r}: {count} {are} null")


class _Plan:
    """One comparison of the table's types and the data's, with every problem found."""

    def __init__(self, format_version: int, *, case_sensitive: bool) -> None:
        self._format_version = format_version
        self._case_sensitive = case_sensitive
        self.problems: list[str] = []

    def match_fields(self, want: StructType, have: list[pa.Field], prefix: str) -> list[_Column]:
        """Return how each stored field of a struct is made; unknown ones are looked at and left out."""
        places = self._find_places(want, have, prefix)
        columns: list[_Column] = []
        for field in want.fields:
            index = places.get(field.name)
            column = self._match_field(field, None if index is None else have[index], index, prefix)
            if column is not None:
                columns.append(column)
        used = set(places.values())
        unknown = [arrow_field.name for index, arrow_field in enumerate(have) if index not in used]
        self.problems += [f"{prefix}{name}: the table has no such column" for name in unknown]
        return columns

    def _find_places(self, want: StructType, have: list[pa.Field], prefix: str) -> dict[str, int]:
        """Return which of the data's columns each field is; a name that is right in every letter comes first."""
        names = [arrow_field.name for arrow_field in have]
        first_places: dict[str, int] = {}
        for index, name in enumerate(names):
            first_places.setdefault(name, index)
        places = {field.name: first_places[field.name] for field in want.fields if field.name in first_places}
        taken = set(places.values())
        wanted: dict[str, list[str]] = {}
        if not self._case_sensitive:
            for field in want.fields:
                wanted.setdefault(field.name.lower(), []).append(field.name)
        for index, name in enumerate(names):
            if index in taken:
                continue
            if name in places:
                self.problems.append(f"{prefix}{name}: the data has two columns of that name")
            elif not self._case_sensitive:
                alike = wanted.get(name.lower(), [])
                free = [index for index in alike if index not in places]
                if free:
                    places[free[0]] = index
                elif alike:
                    self.problems.append(f"{prefix}{name}: the data has another column for {alike[0]!r}")
        return places

    def _match_field(self, field: NestedField, have: pa.Field | None, index: int | None, prefix: str) -> _Column | None:
        path = f"{prefix}{field.name}"
        if have is None:
            if field.required and field.write_default is None:
                self.problems.append(f"{path}: it is required, and the data lacks it")
            if isinstance(field.field_type, UnknownType):
                return None
            return _Column(field, path, None, _same)
        convert = self._match_type(field.field_type, have.type, path)
        if isinstance(field.field_type, UnknownType):
            return None
        return _Column(field, path, index, convert)

    def _match_type(self, want: Type, have: pa.DataType, path: str) -> Convert:
        """Return how arrays of one type become those of another; schemas bound the depth of the recursion."""
        if pa.types.is_null(have):
            target = to_arrow_type(stored_type(want, path))
            return lambda array: nulls_of(len(array), target)
        if isinstance(want, StructType) and pa.types.is_struct(have):
            return self._match_struct(want, have, path)
        if isinstance(want, ListType) and any(is_list(have) for is_list in _LIST_CHECKS):
            return self._match_list(want, have, path)
        if isinstance(want, MapType) and pa.types.is_map(have):
            return self._match_map(want, have, path)
        if isinstance(want, VariantType):
            return self._match_variant(want, have, path)
        cast = find_cast(want, have, path, format_version=self._format_version)
        if cast is None:
            self.problems.append(f"{path}: {have} cannot be written as {_shown(want)}")
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
                    raise _null_refused(f"{path}.{name}", child.null_count - array.null_count)
                children.append(without_nulls(child))
            return pa.Array.from_buffers(target, len(array), [validity(array)], children=children)

        return convert


def _same(array: Any) -> Any:
    return array


def _shown(data_type: Type) -> str:
    arrow = to_arrow_field(NestedField(1, "x", data_type), with_ids=False).type
    return f"{data_type}" if str(arrow) == str(data_type) or data_type.is_nested else f"{data_type} ({arrow})"


def _items(array: Any) -> Any:
    """Return the items of all lists that are not null, one after the other."""
    if pc.sum(pc.list_value_length(array)).as_py() in (None, 0):
        # Arrow cannot put no arrays of an extension type together.
        return array.values.slice(0, 0)
    return array.flatten()


def _list_of(array: Any, items: Any, target: pa.DataType) -> Any:
    """Return items as the lists of an array: null lists hold none, whatever the array hides under them."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise SchemaMismatchError(
            f"Cannot write lists with {offsets[-1]} items in one batch: hand over smaller batches"
        )
    buffers = [validity(array), pa.py_buffer(offsets.astype(np.int32))]
    return pa.Array.from_buffers(target, len(array), buffers, children=[items])


def nulls_of(length: int, arrow_type: pa.DataType) -> Any:
    """Return nulls of a type; required fields of a null struct hold some value, as everywhere here."""
    if not pa.types.is_struct(arrow_type):
        return pa.nulls(length, arrow_type)
    children = [nulls_of(length, field.type) for field in arrow_type]
    kept = [
        child if field.nullable else without_nulls(child) for field, child in zip(arrow_type, children, strict=True)
    ]
    return pa.Array.from_buffers(arrow_type, length, [pa.py_buffer(bytes(-(-length // 8)))], children=kept)


def without_nulls(array: Any) -> Any:
    """Return an array whose null slots hold some value, for required fields of null structs."""
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
