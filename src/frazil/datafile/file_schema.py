"""The columns of a file: their field ids, their parts, and which are read. Specification: "Column Projection".

Each format's reader describes its file as a tree of `FileField`, in the order of the file. Ids come from the file; if
it has none, from the table's name mapping; and if the table has no mapping:

    Parquet     top-level columns are numbered from 1 in order, as in Iceberg Java ("files without ids are read as
                if columns were only ever added at the end"); their parts are matched by name
    ORC, Avro   by the present names of the table's schema

A column without a known id is not part of the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from frazil.codec.avro_types import make_avro_name
from frazil.errors import InvalidDataFileError
from frazil.spec.name_mapping import NamedColumn, NameMapping, assign_ids_by_name, create_name_mapping
from frazil.spec.reserved_columns import ROW_LINEAGE_COLUMNS
from frazil.spec.schema import MAX_NESTING_DEPTH, Schema
from frazil.spec.types import StructType

HEADING = "Column Projection"


@dataclass(frozen=True, slots=True)
class FileField:
    """A column of a file, or a part of one.

    `index` is its position among its siblings as read. The parts of a list are its element, those of a map its key and
    value. `start` and `end` are the range of the stored columns below it.
    """

    name: str
    field_id: int | None
    arrow: pa.DataType
    index: int = 0
    parts: tuple[FileField, ...] = ()
    start: int = 0
    end: int = 0

    def find(self, field_id: int) -> FileField | None:
        """Return the part with an id, or None."""
        return next((field for field in self.parts if field.field_id == field_id), None)


@dataclass(frozen=True, slots=True)
class FileSchema:
    """The columns of a file; `is_mapped` means that the ids do not come from the file."""

    fields: tuple[FileField, ...]
    is_mapped: bool = False

    def find(self, field_id: int) -> FileField | None:
        """Return the column with an id, or None."""
        return next((field for field in self.fields if field.field_id == field_id), None)

    @property
    def field_ids(self) -> frozenset[int]:
        """The ids of all columns and their parts."""
        return frozenset(field.field_id for field in walk(self.fields) if field.field_id is not None)


def walk(fields: Collection[FileField]) -> Iterator[FileField]:
    """Yield fields and all of their parts, parents first."""
    stack = list(reversed(tuple(fields)))
    while stack:
        file_field = stack.pop()
        yield file_field
        stack += reversed(file_field.parts)


def describe_arrow(schema: pa.Schema, id_key: bytes) -> tuple[FileField, ...]:
    """Describe the columns of a file from pyarrow's schema, with ids from field metadata."""
    fields = []
    leaf = 0
    for index, field in enumerate(schema):
        column, leaf = _describe(field, id_key, index, leaf, 1)
        fields.append(column)
    return tuple(fields)


def _describe(
    field: pa.Field, id_key: bytes, index: int, leaf: int, depth: int, name: str | None = None
) -> tuple[FileField, int]:
    if depth > MAX_NESTING_DEPTH:
        raise InvalidDataFileError(
            f"Cannot read the file: its columns are nested deeper than {MAX_NESTING_DEPTH} levels", heading=HEADING
        )
    parts = []
    start = leaf
    for position, (child, part_name) in enumerate(_children(field.type)):
        child_field, leaf = _describe(child, id_key, position, leaf, depth + 1, part_name)
        parts.append(child_field)
    end = leaf if parts else leaf + 1
    name = field.name if name is None else name
    return FileField(name, _id_of(field, id_key), field.type, index, tuple(parts), start, end), end


def _children(arrow: pa.DataType) -> list[tuple[pa.Field, str | None]]:
    """Return the parts of a type; parts of lists and maps have the names that mappings use."""
    if isinstance(arrow, pa.BaseExtensionType):
        arrow = arrow.storage_type
    if pa.types.is_struct(arrow):
        return [(arrow.field(index), None) for index in range(arrow.num_fields)]
    if pa.types.is_map(arrow):
        return [(arrow.key_field, "key"), (arrow.item_field, "value")]
    return [(arrow.value_field, "element")] if is_list(arrow) else []


def is_list(arrow: pa.DataType) -> bool:
    """Return whether an Arrow type is a list of any layout, but not a map."""
    return bool(
        pa.types.is_list(arrow)
        or pa.types.is_large_list(arrow)
        or pa.types.is_fixed_size_list(arrow)
        or pa.types.is_list_view(arrow)
        or pa.types.is_large_list_view(arrow)
    )


def _id_of(field: pa.Field, id_key: bytes) -> int | None:
    text = None if field.metadata is None else field.metadata.get(id_key)
    if text is None or not text.isdigit() or len(text) > 10:
        return None
    number = int(text)
    return number if number <= 2**31 - 1 else None


def with_ids(
    fields: tuple[FileField, ...],
    schema: Schema,
    name_mapping: NameMapping | None,
    *,
    by_position: bool,
    history: tuple[Schema, ...] = (),
) -> FileSchema:
    """Return a file's columns with their ids in the table; `schema` is the table's.

    With a `history` of all the table's schemas, a file with ids that are not the table's is refused.
    """
    if any(field.field_id is not None for field in walk(fields)):
        if history:
            _check_own(fields, history)
        _check_unique(fields)
        own = {field.field_id for field in walk(fields)}
        return FileSchema(tuple([_numbered_by_parts(field, schema, own) for field in fields]))
    if name_mapping is None and by_position:
        return FileSchema(tuple(_numbered(field, schema) for field in fields), is_mapped=True)
    mapping = create_name_mapping(schema) if name_mapping is None else name_mapping
    return FileSchema(_named(fields, mapping), is_mapped=True)


def _numbered_by_parts(file_field: FileField, schema: Schema, own: Collection[int | None]) -> FileField:
    """Return a column with the id implied by its parts, since some writers set ids only on stored columns."""
    if not file_field.parts:
        return file_field
    parts = tuple([_numbered_by_parts(child, schema, own) for child in file_field.parts])
    field_id = file_field.field_id
    if field_id is None:
        parents = {schema.parents_by_id.get(field.field_id) for field in parts if field.field_id is not None} - {None}
        field_id = next(iter(parents)) if len(parents) == 1 and not parents & set(own) else None
    return replace(file_field, field_id=field_id, parts=parts)


def _check_unique(fields: tuple[FileField, ...]) -> None:
    seen: dict[int, str] = {}
    for field in walk(fields):
        if field.field_id is None:
            continue
        if field.field_id in seen:
            raise InvalidDataFileError(
                f"Cannot read the file: its columns {seen[field.field_id]!r} and {field.name!r} have the same field id "
                f"{field.field_id}",
                heading=HEADING,
            )
        seen[field.field_id] = field.name


def _check_own(fields: tuple[FileField, ...], history: tuple[Schema, ...]) -> None:
    """Refuse a file whose ids and names disagree about the table's columns.

    Every engine reads a file with ids by its ids, and by names only if it has none. Ids of another table would mean
    other columns here, and unassigned ids would match future columns.
    """
    positions = _positions_by_id(history)
    columns = {name for entries in positions.values() for name, parent_field in entries if parent_field is None}
    seen: dict[int, str] = {}
    stack: list[tuple[FileField, FileField | None]] = [(field, None) for field in reversed(fields)]
    while stack:
        file_field, parent_field = stack.pop()
        stack += [(child, file_field) for child in reversed(file_field.parts)]
        number = file_field.field_id
        if number is None:
            if (
                parent_field is None
                and file_field.name in columns
                and not any(field.field_id for field in walk(file_field.parts))
            ):
                raise _foreign_ids(f"its column {file_field.name!r} has no field id, but others have")
            continue
        if number in seen:
            raise _foreign_ids(f"its columns {seen[number]!r} and {file_field.name!r} have the same field id {number}")
        seen[number] = file_field.name
        if not any(_is_at(file_field, parent_field, name, parent) for name, parent in positions.get(number, ())):
            raise _foreign_ids(f"its column {file_field.name!r} has the field id {number}, {_meaning(number, history)}")


def _positions_by_id(history: tuple[Schema, ...]) -> dict[int, set[tuple[str | None, int | None]]]:
    """Return the names and parent ids that each id has had; names are None in lists and maps."""
    positions: dict[int, set[tuple[str | None, int | None]]] = {
        lineage_column.field_id: {(lineage_column.name, None)} for lineage_column in ROW_LINEAGE_COLUMNS
    }
    for schema in history:
        for field_id, field in schema.fields_by_id.items():
            parent_id = schema.parents_by_id.get(field_id)
            is_named = parent_id is None or isinstance(schema.field(parent_id).field_type, StructType)
            # Writers escape names that Avro does not allow.
            names = {field.name, make_avro_name(field.name)} if is_named else {None}
            positions.setdefault(field_id, set()).update((name, parent_id) for name in names)
    return positions


def _is_at(file_field: FileField, parent_field: FileField | None, name: str | None, parent: int | None) -> bool:
    """Return whether a file's column is at the position of a field of the table, allowing for missing parent ids."""
    if parent_field is None:
        return parent is None and file_field.name == name
    is_same = name is None or not pa.types.is_struct(_storage(parent_field.arrow)) or file_field.name == name
    return parent is not None and is_same and parent_field.field_id in (None, parent)


def _storage(arrow: pa.DataType) -> pa.DataType:
    return arrow.storage_type if isinstance(arrow, pa.BaseExtensionType) else arrow


def _meaning(field_id: int, history: tuple[Schema, ...]) -> str:
    schemas = [schema for schema in history if schema.find_field(field_id) is not None]
    return f"which is {schemas[-1].name_of(field_id)!r} in the table" if schemas else "which the table does not have"


def _foreign_ids(reason: str) -> InvalidDataFileError:
    return InvalidDataFileError(
        f"Cannot add the file: {reason}",
        hint="Files with field ids are read by ids, not by names. Rewrite the file without ids (on Spark, with "
        "spark.sql.parquet.fieldId.write.enabled=false), or insert its rows into the table.",
        heading=HEADING,
    )


def _numbered(file_field: FileField, schema: Schema) -> FileField:
    field_id = file_field.index + 1
    column = schema.find_field(field_id)
    if column is None or field_id in schema.parents_by_id:
        # Either not a column of the table, or the id of a nested field, which a top-level column cannot have.
        return replace(file_field, field_id=None if field_id in schema.parents_by_id else field_id)
    mapped = create_name_mapping(Schema((column,))).fields[0]
    return replace(_named((replace(file_field, name=column.name),), NameMapping((mapped,)))[0], name=file_field.name)


def _named(fields: tuple[FileField, ...], mapping: NameMapping) -> tuple[FileField, ...]:
    ids = assign_ids_by_name([_named_column(field) for field in fields], mapping)

    def apply(file_field: FileField, path: tuple[str, ...]) -> FileField:
        column_path = (*path, file_field.name)
        return replace(
            file_field,
            field_id=ids.get(column_path),
            parts=tuple([apply(child, column_path) for child in file_field.parts]),
        )

    return tuple([apply(field, ()) for field in fields])


def _named_column(file_field: FileField) -> NamedColumn:
    return NamedColumn(file_field.name, tuple([_named_column(child) for child in file_field.parts]))


def prune(fields: tuple[FileField, ...], leaves: Collection[int]) -> tuple[FileField, ...]:
    """Return the columns when only some stored columns are read: others are dropped, and positions renumbered."""
    kept: list[FileField] = []
    for field in fields:
        if not any(field.start <= leaf < field.end for leaf in leaves):
            continue
        kept.append(replace(field, index=len(kept), parts=prune(field.parts, leaves)))
    return tuple(kept)
