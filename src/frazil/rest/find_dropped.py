"""What a service made of a table otherwise than it was asked to: some take a request, and drop what they do not keep.

Nessie keeps no defaults of columns, others no properties or another format version, and each answers that all went
well. Rows that are written or read afterwards are not those that were asked for, so it is said, by a warning: the table
or the change is there by then. Compared is what rows depend on. What a service adds of its own is no difference, and
neither are ids, comments and the location.
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
    """Say what a service dropped of a table or of a change, if anything."""
    if dropped:
        warnings.warn(
            f"The catalog service made {name} without what was asked for: {'; '.join(dropped)}. "
            "Rows may not be as was meant: look at the table before it is used.",
            RuntimeWarning,
            stacklevel=2,
        )


def find_dropped(asked: TableMetadata, made: TableMetadata) -> list[str]:
    """Return what a new table does not have as it was asked for, each in a few words."""
    found = [*_version(asked, made), *_columns(asked.current_schema, made.current_schema)]
    found += _partitions(asked, made, [made.default_spec])
    found += _order(asked, made, [made.default_sort_order])
    for name, value in sorted(asked.properties.items()):
        if name not in made.properties:
            found.append(f"the property {name}={value}")
        elif made.properties[name] != value:
            found.append(f"the property {name}={value} (it is {made.properties[name]})")
    return found


def find_dropped_updates(base: TableMetadata, updates: Iterable[TableUpdate], made: TableMetadata) -> list[str]:
    """Return what a commit did not change as it was asked to, of version, columns, partitions and order."""
    given = tuple(updates)
    has = {type(update) for update in given}
    has_columns = bool(has & {change.AddSchema, change.SetCurrentSchema})
    has_spec = bool(has & {change.AddPartitionSpec, change.SetDefaultSpec})
    has_order = bool(has & {change.AddSortOrder, change.SetDefaultSortOrder})
    has_version = change.UpgradeFormatVersion in has
    if not (has_columns or has_spec or has_order or has_version):
        return []
    try:
        asked = apply_updates(base, given, now_ms=base.last_updated_ms)
    except FrazilError:
        # It fits a state that the service has, and this base is none of it: there is nothing to compare with.
        return []
    found = list(_version(asked, made)) if has_version else []
    if has_columns:
        # The answer may show a later state: what was asked for is among the schemas then.
        has_schema = any(not [*_columns(asked.current_schema, schema)] for schema in made.schemas)
        found += [] if has_schema else _columns(asked.current_schema, made.current_schema)
    if has_spec:
        found += _partitions(asked, made, made.partition_specs)
    if has_order:
        found += _order(asked, made, made.sort_orders)
    return found


def _version(asked: TableMetadata, made: TableMetadata) -> Iterator[str]:
    if made.format_version < asked.format_version:
        yield f"format version {asked.format_version} (it is {made.format_version})"


def _columns(asked: Schema, made: Schema) -> Iterator[str]:
    known = {made.name_of(field_id): field for field_id, field in made.fields_by_id.items()}
    for field_id, field in asked.fields_by_id.items():
        name = asked.name_of(field_id)
        if name not in known:
            yield f"the column {name}"
        else:
            yield from _column(name, field, known[name])
    keys = sorted(asked.name_of(field_id) for field_id in asked.identifier_field_ids)
    if keys and keys != sorted(made.name_of(field_id) for field_id in made.identifier_field_ids):
        yield f"the identifier fields {', '.join(keys)}"


def _column(name: str, asked: NestedField, made: NestedField) -> Iterator[str]:
    if isinstance(asked.field_type, PrimitiveType) and asked.field_type != made.field_type:
        yield f"the type {asked.field_type} of {name} (it is {made.field_type})"
    if asked.required and not made.required:
        yield f"that {name} is required"
    if not _is_same(asked.write_default, made.write_default):
        yield f"the default {asked.write_default!r} of {name}"
    if not _is_same(asked.initial_default, made.initial_default):
        yield f"the default {asked.initial_default!r} of {name} for rows that were there before"


def _is_same(asked: Any, made: Any) -> bool:
    # A default that is no number is not equal to itself.
    return bool(asked == made or (asked != asked and made != made))


def _partitions(asked: TableMetadata, made: TableMetadata, specs: Iterable[PartitionSpec]) -> list[str]:
    wanted = _spec_terms(asked, asked.default_spec)
    if any(_spec_terms(made, spec) == wanted for spec in specs):
        return []
    return [f"partitions by {', '.join(wanted)}" if wanted else "that it is not partitioned"]


def _order(asked: TableMetadata, made: TableMetadata, orders: Iterable[SortOrder]) -> list[str]:
    wanted = _order_terms(asked, asked.default_sort_order)
    # Without an order nothing is lost.
    if not wanted or any(_order_terms(made, order) == wanted for order in orders):
        return []
    return [f"the order by {', '.join(wanted)}"]


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
    known = metadata.current_schema.fields_by_id
    return ", ".join(find(field_id) if field_id in known else str(field_id) for field_id in field_ids)
