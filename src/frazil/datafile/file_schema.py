"""A file's own columns: their field ids, their parts, which of them are read. Specification: "Column Projection".

Each format's reader describes its file as a tree of `FileField`, in the order of the file. Ids come from the
file; where it carries none, from the table's name mapping; and where the table has no mapping:

    Parquet     top-level columns are numbered from 1 in their order, as Iceberg Java does ("files without ids
                are read as if columns were only ever added at the end"); their parts go by name
    ORC, Avro   by the present names of the table's schema

A column whose id is not known is not in the table.
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

    `at` is its position among its siblings as they are read. The parts of a list are its element, of a map
    its key and value. `leaves` are the numbers of the stored columns below it, `start` to `end`.
    """

    name: str
    field_id: int | None
    arrow: pa.DataType
    index: int = 0
    parts: tuple[FileField, ...] = ()
    start: int = 0
    end: int = 0

    def find(self, field_id: int) -> FileField | None:
        """Return the part of an id."""
        return next((field for field in self.parts if field.field_id == field_id), None)


@dataclass(frozen=True, slots=True)
class FileSchema:
    """The columns of a file. `is_mapped` says that the ids are not the file's own."""

    fields: tuple[FileField, ...]
    is_mapped: bool = False

    def find(self, field_id: int) -> FileField | None:
        """Return the column of an id."""
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
    """Return the columns of a file that pyarrow describes, with ids from their metadata."""
    fields = []
    leaf = 0
    for index, field in enumerate(schema):
        made, leaf = _describe(field, id_key, index, leaf, 1)
        fields.append(made)
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
        made, leaf = _describe(child, id_key, position, leaf, depth + 1, part_name)
        parts.append(made)
    end = leaf if parts else leaf + 1
    name = field.name if name is None else name
    return FileField(name, _id_of(field, id_key), field.type, index, tuple(parts), start, end), end


def _children(arrow: pa.DataType) -> list[tuple[pa.Field, str | None]]:
    """Return the parts of a type, those of lists and maps with the names that mappings use."""
    if isinstance(arrow, pa.BaseExtensionType):
        arrow = arrow.storage_type
    if pa.types.is_struct(arrow):
        return [(arrow.field(index), None) for index in range(arrow.num_fields)]
    if pa.types.is_map(arrow):
        return [(arrow.key_field, "key"), (arrow.item_field, "value")]
    return [(arrow.value_field, "element")] if is_list(arrow) else []


def is_list(arrow: pa.DataType) -> bool:
    """Return whether an Arrow type is a list of any layout, and not a map."""
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
    """Return a file's columns with the ids that hold for this table; `schema` is the table's.

    With a `history`, all schemas that the table has had, a file whose ids are not the table's is refused.
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
    """Return a column with the id that its parts tell: some writers number stored columns only."""
    if not file_field.parts:
        return file_field
    parts = tuple([_numbered_by_parts(child, schema, own) for child in file_field.parts])
    field_id = file_field.field_id
    if field_id is None:
        around = {schema.parents_by_id.get(field.field_id) for field in parts if field.field_id is not None} - {None}
        field_id = next(iter(around)) if len(around) == 1 and not around & set(own) else None
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
    """Refuse a file whose ids and names do not say the same of the table.

    Whoever reads a file that has ids goes by them, in any engine: names count where it has none. Ids of another table
    are other columns here, and those that are not given yet will be.
    """
    known = _known_places(history)
    columns = {name for places in known.values() for name, above in places if above is None}
    seen: dict[int, str] = {}
    stack: list[tuple[FileField, FileField | None]] = [(field, None) for field in reversed(fields)]
    while stack:
        file_field, above = stack.pop()
        stack += [(child, file_field) for child in reversed(file_field.parts)]
        number = file_field.field_id
        if number is None:
            if (
                above is None
                and file_field.name in columns
                and not any(field.field_id for field in walk(file_field.parts))
            ):
                raise _foreign(f"its column {file_field.name!r} has no field id, and others have")
            continue
        if number in seen:
            raise _foreign(f"its columns {seen[number]!r} and {file_field.name!r} have the same field id {number}")
        seen[number] = file_field.name
        if not any(_is_at(file_field, above, name, parent) for name, parent in known.get(number, ())):
            raise _foreign(f"its column {file_field.name!r} has the field id {number}, {_meaning(number, history)}")


def _known_places(history: tuple[Schema, ...]) -> dict[int, set[tuple[str | None, int | None]]]:
    """Return the names each id has had, None in lists and maps, and the ids of what it is part of."""
    known: dict[int, set[tuple[str | None, int | None]]] = {
        lineage_column.field_id: {(lineage_column.name, None)} for lineage_column in ROW_LINEAGE_COLUMNS
    }
    for schema in history:
        for field_id, field in schema.fields_by_id.items():
            above = schema.parents_by_id.get(field_id)
            is_named = above is None or isinstance(schema.field(above).field_type, StructType)
            # Writers escape names that Avro does not take.
            names = {field.name, make_avro_name(field.name)} if is_named else {None}
            known.setdefault(field_id, set()).update((name, above) for name in names)
    return known


def _is_at(file_field: FileField, above: FileField | None, name: str | None, parent: int | None) -> bool:
    """Return whether a column of a file is where a field of the table is; some writers number stored columns only."""
    if above is None:
        return parent is None and file_field.name == name
    is_same = name is None or not pa.types.is_struct(_storage(above.arrow)) or file_field.name == name
    return parent is not None and is_same and above.field_id in (None, parent)


def _storage(arrow: pa.DataType) -> pa.DataType:
    return arrow.storage_type if isinstance(arrow, pa.BaseExtensionType) else arrow


def _meaning(field_id: int, history: tuple[Schema, ...]) -> str:
    found = [schema for schema in history if schema.find_field(field_id) is not None]
    return f"which is {found[-1].name_of(field_id)!r} in the table" if found else "which the table does not know"


def _foreign(reason: str) -> InvalidDataFileError:
    return InvalidDataFileError(
        f"Cannot add the file: {reason}",
        hint="Files with field ids are read by them, not by names. Write the file again without ids (on Spark, with "
        "spark.sql.parquet.fieldId.write.enabled=false), or insert its rows into the table.",
        heading=HEADING,
    )


def _numbered(file_field: FileField, schema: Schema) -> FileField:
    field_id = file_field.index + 1
    known = schema.find_field(field_id)
    if known is None or field_id in schema.parents_by_id:
        # Either no column of the table, or the number of a part of one, which a column is not.
        return replace(file_field, field_id=None if field_id in schema.parents_by_id else field_id)
    mapped = create_name_mapping(Schema((known,))).fields[0]
    return replace(_named((replace(file_field, name=known.name),), NameMapping((mapped,)))[0], name=file_field.name)


def _named(fields: tuple[FileField, ...], mapping: NameMapping) -> tuple[FileField, ...]:
    ids = assign_ids_by_name([_named_column(field) for field in fields], mapping)

    def apply(file_field: FileField, path: tuple[str, ...]) -> FileField:
        here = (*path, file_field.name)
        return replace(
            file_field, field_id=ids.get(here), parts=tuple([apply(child, here) for child in file_field.parts])
        )

    return tuple([apply(field, ()) for field in fields])


def _named_column(file_field: FileField) -> NamedColumn:
    return NamedColumn(file_field.name, tuple([_named_column(child) for child in file_field.parts]))


def prune(fields: tuple[FileField, ...], leaves: Collection[int]) -> tuple[FileField, ...]:
    """Return the columns as they are read when only some stored columns are: others vanish, positions close up."""
    kept: list[FileField] = []
    for field in fields:
        if not any(field.start <= leaf < field.end for leaf in leaves):
            continue
        kept.append(replace(field, index=len(kept), parts=prune(field.parts, leaves)))
    return tuple(kept)
