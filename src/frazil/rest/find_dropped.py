"""Differences between a requested table and the one that a service created: some ignore what they do not support.

Nessie drops column defaults, others drop properties or another format version, and each reports success. Rows that are
written or read afterwards would differ from what was requested, so a warning is issued, since the table or the change
exists by then. Only what affects rows is compared. Additions by the service are not differences, nor are IDs, comments
and the location.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from frazil.changes import updates as change
from frazil.changes.apply import apply_updates
from frazil.changes.updates import TableUpdate
from frazil.errors import FrazilError
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.sorting import SortOrder
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import NestedField, PrimitiveType


def warn_of_dropped(name: str, dropped: list[str]) -> None:
    """Warn about what a service dropped from a table or change, if anything."""
    if dropped:
        warnings.warn(
            f"The catalog service created {name} without parts of the request: {'; '.join(dropped)}. "
            "Rows may differ from what you intended: check the table before you use it.",
            RuntimeWarning,
            stacklevel=2,
        )


def find_dropped(requested: TableMetadata, created: TableMetadata) -> list[str]:
    """Describe what a new table lacks of the request, each item in a few words."""
    missing = [*_version(requested, created), *_columns(requested.current_schema, created.current_schema)]
    missing += _partitions(requested, created, [created.default_spec])
    missing += _order(requested, created, [created.default_sort_order])
    for name, value in sorted(requested.properties.items()):
        if name not in created.properties:
            missing.append(f"the property {name}={value}")
        elif created.properties[name] != value:
            missing.append(f"the property {name}={value} (it is {created.properties[name]})")
    return missing


def find_dropped_updates(base: TableMetadata, updates: Iterable[TableUpdate], current: TableMetadata) -> list[str]:
    """Describe what a commit failed to change of version, columns, partitions and order."""
    requested_updates = tuple(updates)
    has = {type(update) for update in requested_updates}
    has_columns = bool(has & {change.AddSchema, change.SetCurrentSchema})
    has_spec = bool(has & {change.AddPartitionSpec, change.SetDefaultSpec})
    has_order = bool(has & {change.AddSortOrder, change.SetDefaultSortOrder})
    has_version = change.UpgradeFormatVersion in has
    if not (has_columns or has_spec or has_order or has_version):
        return []
    try:
        requested = apply_updates(base, requested_updates, now_ms=base.last_updated_ms)
    except FrazilError:
        # The updates fit a state of the service that differs from this base: there is nothing to compare with.
        return []
    missing = list(_version(requested, current)) if has_version else []
    if has_columns:
        # The response may show a later state; the requested schema is then among the earlier ones.
        has_schema = any(not [*_columns(requested.current_schema, schema)] for schema in current.schemas)
        missing += [] if has_schema else _columns(requested.current_schema, current.current_schema)
    if has_spec:
        missing += _partitions(requested, current, current.partition_specs)
    if has_order:
        missing += _order(requested, current, current.sort_orders)
    return missing


def _version(requested: TableMetadata, current: TableMetadata) -> Iterator[str]:
    if current.format_version < requested.format_version:
        yield f"format version {requested.format_version} (it is {current.format_version})"


def _columns(requested: Schema, current: Schema) -> Iterator[str]:
    current_fields = {current.name_of(field_id): field for field_id, field in current.fields_by_id.items()}
    for field_id, field in requested.fields_by_id.items():
        name = requested.name_of(field_id)
        if name not in current_fields:
            yield f"the column {name}"
        else:
            yield from _column(name, field, current_fields[name])
    keys = sorted(requested.name_of(field_id) for field_id in requested.identifier_field_ids)
    if keys and keys != sorted(current.name_of(field_id) for field_id in current.identifier_field_ids):
        yield f"the identifier fields {', '.join(keys)}"


def _column(name: str, requested: NestedField, current: NestedField) -> Iterator[str]:
    if isinstance(requested.field_type, PrimitiveType) and requested.field_type != current.field_type:
        yield f"the type {requested.field_type} of {name} (it is {current.field_type})"
    if requested.required and not current.required:
        yield f"that {name} is required"
    if not _is_same(requested.write_default, current.write_default):
        yield f"the default {requested.write_default!r} of {name}"
    if not _is_same(requested.initial_default, current.initial_default):
        yield f"the default {requested.initial_default!r} of {name} for existing rows"


def _is_same(requested: Any, current: Any) -> bool:
    # A NaN default is not equal to itself.
    return bool(requested == current or (requested != requested and current != current))


def _partitions(requested: TableMetadata, current: TableMetadata, specs: Iterable[PartitionSpec]) -> list[str]:
    terms = _spec_terms(requested, requested.default_spec)
    if any(_spec_terms(current, spec) == terms for spec in specs):
        return []
    return [f"partitions by {', '.join(terms)}" if terms else "that it is not partitioned"]


def _order(requested: TableMetadata, current: TableMetadata, orders: Iterable[SortOrder]) -> list[str]:
    terms = _order_terms(requested, requested.default_sort_order)
    # A table may have an order that was not requested.
    if not terms or any(_order_terms(current, order) == terms for order in orders):
        return []
    return [f"the order by {', '.join(terms)}"]


def _spec_terms(metadata: TableMetadata, spec: PartitionSpec) -> list[str]:
    return [
        f"{field.transform}({_names(metadata, field.source_ids)}) as {field.name}"
        for field in spec.fields
        if not field.transform.is_void
    ]


def _order_terms(metadata: TableMetadata, order: SortOrder) -> list[str]:
    return [
        f"{field.transform}({_names(metadata, field.source_ids)}) {field.direction} {field.null_order}"
        for field in order.fields
    ]


def _names(metadata: TableMetadata, field_ids: Iterable[int]) -> str:
    find: Callable[[int], str] = metadata.current_schema.name_of
    fields = metadata.current_schema.fields_by_id
    return ", ".join(find(field_id) if field_id in fields else str(field_id) for field_id in field_ids)
