"""Default values of fields: validity and effective values. Specification: "Default values".

A field has an `initial_default`, for rows written before the field existed, and a `write_default`, for rows
whose writer omits the field. The default of a struct is null or `{}`: the values of its fields come from
the fields' own defaults, which `effective_default` combines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.spec import types as ft
from frazil.spec.schema import Schema, walk_fields

DEFAULTS_MIN_FORMAT_VERSION = 3
"""The first format version that allows non-null defaults."""

NULL_DEFAULT_TYPES: tuple[type[ft.Type], ...] = (ft.UnknownType, ft.VariantType, ft.GeometryType, ft.GeographyType)
"""Types whose fields must default to null."""

DefaultKind: TypeAlias = Literal["initial", "write"]


def default_problem(value: Any, data_type: ft.Type) -> str | None:
    """Return why a value cannot be the default of a field of a type, or None if it can."""
    if value is None:
        return None
    if isinstance(data_type, NULL_DEFAULT_TYPES):
        return f"fields of type {data_type} must default to null"
    if isinstance(data_type, ft.StructType):
        if not isinstance(value, Mapping):
            return "the default of a struct is null or {}"
        if len(value) > 0:
            return "the default of a struct is null or {}; values belong in the defaults of its fields"
    if isinstance(data_type, ft.ListType) and not isinstance(value, list | tuple):
        return "the default of a list is a list"
    if isinstance(data_type, ft.MapType) and not isinstance(value, Mapping):
        return "the default of a map is a map"
    return None


def effective_default(field: ft.NestedField, default_kind: DefaultKind) -> Any:
    """Return the value of a missing field: its default, with a struct's fields filled in from theirs.

    A required field without a write default is refused.
    """
    default = field.initial_default if default_kind == "initial" else field.write_default
    if default is None:
        if field.required and default_kind == "write":
            raise SchemaMismatchError(
                f"Cannot write {field.name!r}: the field is required, it has no write-default, and no value was given"
            )
        return None
    if isinstance(field.field_type, ft.StructType):
        return fill_defaults({}, field.field_type, default_kind)
    return default


def fill_defaults(value: Mapping[str, Any], struct: ft.StructType, default_kind: DefaultKind) -> dict[str, Any]:
    """Return a struct's value with its missing fields set to their defaults, at every level.

    A field that is present and null stays null: only missing fields are filled.
    """
    filled: dict[str, Any] = {}
    for field in struct.fields:
        if field.name not in value:
            filled[field.name] = effective_default(field, default_kind)
            continue
        inner_value = value[field.name]
        if isinstance(field.field_type, ft.StructType) and isinstance(inner_value, Mapping):
            inner_value = fill_defaults(inner_value, field.field_type, default_kind)
        filled[field.name] = inner_value
    return filled


def min_format_version_of(schema: Schema) -> int:
    """Return the lowest format version that allows a schema's types and defaults."""
    return max((version for version, _ in _version_needs(schema)), default=1)


def version_problems(schema: Schema, format_version: int) -> list[str]:
    """Return why a format version does not allow a schema, one reason per field, by field id.

    A write default alone is allowed in every version, as in Iceberg Java: readers never use it.
    """
    return [reason for version, reason in _version_needs(schema) if version > format_version]


def check_schema_version(schema: Schema, format_version: int) -> None:
    """Refuse a schema with types or defaults that a format version does not allow."""
    problems = version_problems(schema, format_version)
    if problems:
        raise InvalidRequestError(
            f"Cannot use the schema in a table of format version {format_version}: {'; '.join(problems)}",
            hint=f"Upgrade the table to format version {min_format_version_of(schema)}, or change the fields.",
        )


def _version_needs(schema: Schema) -> list[tuple[int, str]]:
    needs: list[tuple[int, int, str]] = []
    for field, name, _ in walk_fields(schema.struct):
        version = field.field_type.min_format_version
        if version > 1:
            needs.append((field.field_id, version, f"{name!r} has the type {field.field_type}, which needs v{version}"))
        if field.initial_default is not None:
            needed = DEFAULTS_MIN_FORMAT_VERSION
            needs.append((field.field_id, needed, f"{name!r} has an initial-default, which needs v{needed}"))
    return [(version, reason) for _, version, reason in sorted(needs)]
