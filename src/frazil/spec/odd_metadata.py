"""Metadata that violates the specification but is unambiguous. Specification: "Table Metadata Fields".

Metadata is read leniently and written strictly. Metadata that Iceberg Java accepts is accepted here, its oddities are
described for `check()`, and counters that are too low are corrected, so that no number is assigned twice.
`spec/check_table_metadata.py` refuses everything else. Decision 0007 lists both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from frazil.errors import InvalidRequestError
from frazil.spec.check_table_metadata import INT_MAX, LONG_MAX
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import MAX_FIELD_ID
from frazil.spec.versions import check_schema_version, impossible_decimals

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def is_uuid(text: str) -> bool:
    """Return whether a text has the form of a UUID."""
    return _UUID.fullmatch(text) is not None


def with_oddities(metadata: TableMetadata) -> TableMetadata:
    """Return metadata with its counters corrected and its oddities recorded."""
    columns = max((schema.highest_field_id for schema in metadata.schemas), default=0)
    partitions = max((field.field_id for spec in metadata.partition_specs for field in spec.fields), default=0)
    heads = metadata.snapshots.heads if metadata.format_version >= 3 else ()
    rows = max(
        (head.first_row_id + (head.added_rows or 0) for head in heads if head.first_row_id is not None), default=0
    )
    odd: list[str] = []

    def corrected(name: str, stated: int, needed: int, most: int) -> int:
        if not 0 <= stated < needed <= most:
            return stated  # correct, or beyond repair
        odd.append(f"{name} is {stated}, but {needed} is in use")
        return needed

    repaired = replace(
        metadata,
        last_column_id=corrected("last-column-id", metadata.last_column_id, columns, MAX_FIELD_ID),
        last_partition_id=corrected("last-partition-id", metadata.last_partition_id, partitions, INT_MAX),
        next_row_id=corrected("next-row-id", metadata.next_row_id, rows, LONG_MAX),
    )
    odd += _oddities(metadata)
    return replace(repaired, oddities=tuple(odd)) if odd else metadata


def _oddities(metadata: TableMetadata) -> Iterator[str]:
    uuid = metadata.table_uuid
    if uuid is not None and not is_uuid(uuid):
        yield f"table-uuid {uuid[:60]!r} is not a UUID"
    for schema in metadata.schemas:
        try:
            check_schema_version(schema, metadata.format_version)
        except InvalidRequestError as problem:
            yield f"schema {schema.schema_id}: {problem.message.partition(': ')[2]}"
        yield from (f"schema {schema.schema_id}: {reason}" for reason in impossible_decimals(schema))
