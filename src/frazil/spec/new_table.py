"""The metadata of new tables. Specification: "Table Metadata Fields".

All ids are new, regardless of those in the caller's schema: columns count from 1 in the order of Iceberg Java,
partition fields from 1000. The spec and the order refer to the caller's ids and are matched to new columns by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from frazil.errors import InvalidMetadataError, InvalidRequestError, UnsupportedError
from frazil.spec.check_table_metadata import check_table_metadata
from frazil.spec.fresh_ids import assign_fresh_ids
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.metrics_config import check_metrics_columns
from frazil.spec.odd_metadata import is_uuid
from frazil.spec.partitioning import (
    FIRST_PARTITION_FIELD_ID,
    INITIAL_SPEC_ID,
    UNPARTITIONED,
    PartitionSpec,
    check_partition_spec,
    check_writable,
)
from frazil.spec.properties import ENCRYPTION_TABLE_KEY, check_properties, properties_for_new_table
from frazil.spec.schema import INITIAL_SCHEMA_ID, Schema
from frazil.spec.sorting import INITIAL_SORT_ORDER_ID, UNSORTED, SortOrder, check_sort_order
from frazil.spec.table_metadata import TableMetadata, without_trailing_slash
from frazil.spec.versions import DEFAULT, check_schema_allowed, check_version


def new_table_metadata(
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED,
    sort_order: SortOrder = UNSORTED,
    *,
    location: str,
    properties: Mapping[str, str] | None = None,
    format_version: int = DEFAULT,
    uuid: str,
    now_ms: int,
) -> TableMetadata:
    """Return the first metadata of a table."""
    check_version(format_version)
    location = without_trailing_slash(location)
    if not location:
        raise InvalidRequestError("Cannot create a table without a location")
    if not is_uuid(uuid):
        raise InvalidRequestError(f"Cannot create a table with the UUID {uuid[:60]!r}: it is not a UUID")
    properties = {} if properties is None else properties
    check_properties(properties)
    if ENCRYPTION_TABLE_KEY.name in properties:
        raise UnsupportedError("Cannot create an encrypted table: encryption is not supported")
    fresh = assign_fresh_ids(schema, count(1).__next__).with_schema_id(INITIAL_SCHEMA_ID)
    check_schema_allowed(fresh, format_version)
    check_metrics_columns(fresh, properties)
    fresh_spec = _fresh_spec(schema, fresh, spec)
    fresh_order = _fresh_order(schema, fresh, sort_order)
    metadata = TableMetadata(
        format_version=format_version,
        table_uuid=uuid,
        location=location,
        last_updated_ms=now_ms,
        last_column_id=fresh.highest_field_id,
        schemas=(fresh,),
        current_schema_id=fresh.schema_id,
        partition_specs=(fresh_spec,),
        default_spec_id=fresh_spec.spec_id,
        last_partition_id=fresh_spec.last_assigned_field_id,
        sort_orders=(fresh_order,),
        default_sort_order_id=fresh_order.order_id,
        properties=FrozenMap(properties_for_new_table(properties)),
    )
    try:
        check_table_metadata(metadata)
    except InvalidMetadataError as problem:
        raise InvalidRequestError(problem.message, heading=problem.context.get("heading")) from problem
    return metadata


def _fresh_spec(schema: Schema, fresh: Schema, spec: PartitionSpec) -> PartitionSpec:
    fields = tuple(
        replace(field, source_ids=_fresh_source_ids(schema, fresh, field.source_ids), field_id=field_id)
        for field_id, field in enumerate(spec.fields, FIRST_PARTITION_FIELD_ID)
    )
    fresh_spec = PartitionSpec(INITIAL_SPEC_ID, fields, spec.extra)
    check_writable(fresh_spec)
    check_partition_spec(fresh, fresh_spec)
    return fresh_spec


def _fresh_order(schema: Schema, fresh: Schema, order: SortOrder) -> SortOrder:
    if order.is_unsorted:
        return UNSORTED
    fields = tuple(
        replace(field, source_ids=_fresh_source_ids(schema, fresh, field.source_ids)) for field in order.fields
    )
    fresh_order = SortOrder(INITIAL_SORT_ORDER_ID, fields, order.extra)
    check_sort_order(fresh, fresh_order)
    return fresh_order


def _fresh_source_ids(schema: Schema, fresh: Schema, source_ids: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(fresh.field(schema.name_of(source_id)).field_id for source_id in source_ids)
