"""The names that Spark SQL gives to the format's types and transforms: what DESCRIBE and SHOW CREATE TABLE show."""

from __future__ import annotations

from frazil.spec.partitioning import PartitionField, PartitionSpec, default_field_name
from frazil.spec.schema import Schema
from frazil.spec.sorting import SortOrder
from frazil.spec.transforms import Transform
from frazil.spec.types import ListType, MapType, NestedField, StructType, Type
from frazil.sql.quote_names import quote_if_needed, quote_path

PARTITION_FIELD_NAMES = "partition-field-names"
"""The property of a CREATE TABLE that has the names of the partition fields."""

_NAMES = {
    "long": "bigint",
    "timestamptz": "timestamp",
    "timestamptz_ns": "timestamp",
    "timestamp": "timestamp_ntz",
    "timestamp_ns": "timestamp_ntz",
    "uuid": "string",
    "time": "string",
    "unknown": "void",
}
_PLURALS = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


def spark_type_name(data_type: Type) -> str:
    """Return a type as Spark's `simpleString` writes it."""
    if isinstance(data_type, StructType):
        parts = (f"{quote_if_needed(field.name)}:{spark_type_name(field.field_type)}" for field in data_type.fields)
        return f"struct<{','.join(parts)}>"
    if isinstance(data_type, ListType):
        return f"array<{spark_type_name(data_type.element_type)}>"
    if isinstance(data_type, MapType):
        return f"map<{spark_type_name(data_type.key_type)},{spark_type_name(data_type.value_type)}>"
    text = str(data_type).replace(", ", ",")
    if text.startswith("fixed"):
        return "binary"
    return _NAMES.get(text, text)


def sql_type_name(data_type: Type) -> str:
    """Return a type as a CREATE TABLE of Spark SQL writes it, so that it can be run again."""
    if isinstance(data_type, StructType):
        return f"STRUCT<{', '.join(f'{quote_if_needed(field.name)}: {_part(field)}' for field in data_type.fields)}>"
    if isinstance(data_type, ListType):
        return f"ARRAY<{sql_type_name(data_type.element_type)}>"
    if isinstance(data_type, MapType):
        return f"MAP<{sql_type_name(data_type.key_type)}, {sql_type_name(data_type.value_type)}>"
    text = str(data_type)
    if text in ("uuid", "time", "timestamp_ns", "timestamptz_ns") or text.startswith("fixed"):
        # The type's own name, which SQL on a lake takes too: Spark's would make another column of it.
        return text.upper().replace("[", "(").replace("]", ")")
    return spark_type_name(data_type).upper()


def _part(field: NestedField) -> str:
    text = sql_type_name(field.field_type)
    if field.required:
        text += " NOT NULL"
    return text if field.doc is None else f"{text} COMMENT '{escape(field.doc)}'"


def plain_type_name(data_type: Type) -> str:
    """Return a type as `create_table` takes it, in the specification's names and without field ids."""
    if isinstance(data_type, StructType):
        fields = (f"{quote_if_needed(field.name)}: {_plain_part(field)}" for field in data_type.fields)
        return f"struct<{', '.join(fields)}>"
    if isinstance(data_type, ListType):
        return f"list<{_plain_part(data_type.element_field)}>"
    if isinstance(data_type, MapType):
        return f"map<{plain_type_name(data_type.key_type)}, {_plain_part(data_type.value_field)}>"
    return str(data_type)


def _plain_part(field: NestedField) -> str:
    return f"{plain_type_name(field.field_type)}{' not null' if field.required else ''}"


def escape(text: str) -> str:
    """Return text as it stands between single quotes in a statement; Spark takes `${` for the start of a variable."""
    return text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")


def term_name(schema: Schema, transform: Transform, source_ids: tuple[int, ...]) -> str:
    """Return a transform of a column as SQL writes it: `bucket(16, id)`, `days(ts)`, `id`."""
    column = column_name(schema, source_ids[0])
    text = str(transform)
    if transform.is_identity:
        return column
    if "[" in text:
        name, _, number = text.removesuffix("]").partition("[")
        return f"{name}({number}, {column})"
    return f"{_PLURALS.get(text, text)}({column})"


def column_name(schema: Schema, field_id: int) -> str:
    """Return a column's name with the structs it is in, as SQL writes it: a dot in a name is no step."""
    field = schema.find_field(field_id)
    if field is None:
        return quote_path((f"dropped {field_id}",))
    return quote_path(tuple(ancestor.name for ancestor in [*reversed(schema.ancestors_of(field_id)), field]))


def partition_terms(schema: Schema, spec: PartitionSpec) -> list[str]:
    """Return what a table is partitioned by, as SQL writes it; fields that are void are left out."""
    return [term_name(schema, field.transform, field.source_ids) for field in live_fields(spec)]


def partition_names(schema: Schema, spec: PartitionSpec) -> str:
    """Return the names of a spec's fields for a CREATE TABLE: `[h, s]`; none where they are those they would get."""
    fields = live_fields(spec)
    if all(field.name == default_field_name(schema.name_of(field.source_id), field.transform) for field in fields):
        return ""
    return f"[{', '.join(quote_if_needed(field.name) for field in fields)}]"


def named_partition_terms(schema: Schema, spec: PartitionSpec) -> list[str]:
    """Return the terms of a spec with the names of its fields: `hours(ts) as h`."""
    terms = zip(partition_terms(schema, spec), live_fields(spec), strict=True)
    return [f"{term} as {quote_if_needed(field.name)}" for term, field in terms]


def live_fields(spec: PartitionSpec) -> list[PartitionField]:
    """Return the fields of a spec that still mean something."""
    return [field for field in spec.fields if not field.transform.is_void]


def order_terms(schema: Schema, order: SortOrder) -> list[str]:
    """Return what a table is sorted by: `id ASC NULLS FIRST`."""
    return [
        f"{term_name(schema, field.transform, field.source_ids)} {str(field.direction).upper()} "
        f"{str(field.null_order).upper().replace('-', ' ')}"
        for field in order.fields
    ]
