"""Checks of new columns and of new column types. Specification: "Schema Evolution".

Used by `schema_evolution.SchemaUpdate` before it records a step; `what` is the start of the error message.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from frazil.errors import InvalidRequestError, SchemaChangeError, UnsupportedError
from frazil.spec.defaults import DEFAULTS_MIN_FORMAT_VERSION, default_problem
from frazil.spec.fresh_ids import assign_fresh_ids
from frazil.spec.schema import walk_fields
from frazil.spec.type_promotion import describe_type
from frazil.spec.types import MAX_FIELD_ID, NestedField, StructType, Type, UnknownType
from frazil.spec.values import show_value, to_internal


def check_own_name(what: str, name: str) -> None:
    """Refuse a name that columns cannot have."""
    if not name:
        raise SchemaChangeError(f"{what}: the name is empty")


def check_new_field(what: str, draft: NestedField, format_version: int) -> None:
    """Refuse a field with types, defaults or nesting that the table's format version does not allow."""
    try:
        parts = [nested_field for nested_field, _, _ in walk_fields(StructType((draft,)))]
    except InvalidRequestError as error:
        raise SchemaChangeError(f"{what}: its type is nested too deep") from error
    for field in parts:
        data_type = field.field_type
        _check_struct_default(what, field)
        if data_type.min_format_version > format_version:
            raise SchemaChangeError(
                f"{what}: the type {describe_type(data_type)} needs format version {data_type.min_format_version}, "
                f"the table has {format_version}",
                hint=f"Upgrade the table to format version {data_type.min_format_version} first.",
            )
        if isinstance(data_type, UnknownType) and field.required:
            raise SchemaChangeError(f"{what}: {field.name!r} is required, but fields of type unknown must be optional")
        if field is not draft:
            check_own_name(what, field.name)
            prepare_default(what, field.initial_default, data_type, format_version)
            prepare_default(what, field.write_default, data_type, format_version)


def _check_struct_default(what: str, nested_field: NestedField) -> None:
    """Refuse the default `{}` of a struct whose required fields would have no value."""
    if nested_field.initial_default is None or not isinstance(nested_field.field_type, StructType):
        return
    for field in nested_field.field_type.fields:
        if field.required and (field.initial_default is None or field.write_default is None):
            raise SchemaChangeError(
                f"{what}: {nested_field.name!r} has the default {{}}, but its required field {field.name!r} has none",
                hint="Give the field a default, or make it optional.",
            )


def prepare_default(what: str, default: Any, data_type: Type, format_version: int) -> Any:
    """Return a default in its internal form, or refuse it."""
    if default is None:
        return None
    if format_version < DEFAULTS_MIN_FORMAT_VERSION:
        raise SchemaChangeError(
            f"{what}: the default {show_value(default)} needs format version {DEFAULTS_MIN_FORMAT_VERSION}, "
            f"the table has {format_version}",
            hint=f"Upgrade the table to format version {DEFAULTS_MIN_FORMAT_VERSION} first.",
        )
    reason = default_problem(default, data_type)
    if reason is None and isinstance(default, float) and not math.isfinite(default):
        reason = "NaN and infinities cannot be stored as defaults"
    if reason is not None:
        raise SchemaChangeError(f"{what}: its default cannot be {show_value(default)}: {reason}")
    if isinstance(data_type, StructType):
        return {}
    try:
        return to_internal(default, data_type)
    except (InvalidRequestError, UnsupportedError) as error:
        raise SchemaChangeError(f"{what}: its default does not fit. {error.message}", hint=error.hint) from error


def with_fresh_ids(
    what: str, draft: NestedField, last_column_id: int, *, keep_own: bool = False
) -> tuple[NestedField, int]:
    """Return a field with unused ids for itself and its nested fields, and the last id."""
    last = last_column_id

    def next_id() -> int:
        nonlocal last
        last += 1
        if last > MAX_FIELD_ID:
            raise SchemaChangeError(f"{what}: field ids are used up, the last possible one is {MAX_FIELD_ID}")
        return last

    field_id = draft.field_id if keep_own else next_id()
    data_type = assign_fresh_ids(draft.field_type, next_id)
    return replace(draft, field_id=field_id, field_type=data_type), last
