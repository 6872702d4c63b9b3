"""The invariants of table metadata. Specification: "Table Metadata Fields" and what it links to.

They are checked whenever a metadata file is read and before one is written, so that corrupt files and wrong changes
are stopped here; harmless oddities are tolerated on read (`spec/odd_metadata.py`). The checks use only the ids and
heads of snapshots and read none of them.

Some states look wrong but are valid. Snapshots expire, so parents, log entries and statistics may name missing
snapshots. Schemas and columns are dropped, so only the default spec and order must match the current schema, and a
snapshot's schema may be missing. Snapshots older than the upgrade to v3 have no row ids. Clocks of writers differ, so
timestamps in logs may decrease by up to a minute, as in Iceberg Java.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from frazil.errors import InvalidMetadataError, InvalidRequestError, TableNotFoundError, UnsupportedError
from frazil.spec.iso8601 import show_ms
from frazil.spec.partitioning import check_partition_spec
from frazil.spec.snapshot import MAIN_BRANCH
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.sorting import check_sort_order
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import MAX_FIELD_ID
from frazil.spec.versions import LATEST, MIN, check_schema_version

CLOCK_TOLERANCE_MS: Final = 60_000
"""How much earlier than its predecessor an entry of a log may be."""

INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1


def check_table_metadata(metadata: TableMetadata, *, is_read: bool = False) -> None:
    """Refuse metadata that violates the specification, or with `is_read`, that is ambiguous or dangerous."""
    _check_version(metadata)
    _check_identity(metadata)
    _check_schemas(metadata, is_read=is_read)
    _check_specs(metadata)
    _check_orders(metadata)
    _check_snapshots(metadata)
    _check_parents(metadata.snapshots)
    _check_refs(metadata)
    _check_logs(metadata)
    _check_keys(metadata)


def check_same_table(loaded: TableMetadata, refreshed: TableMetadata, name: str) -> None:
    """Refuse refreshed metadata of another table, such as one that was dropped and created anew."""
    if loaded.table_uuid is None or refreshed.table_uuid is None:
        return
    if loaded.table_uuid.lower() != refreshed.table_uuid.lower():
        raise TableNotFoundError(
            f"Cannot find table {name} any more: its UUID was {loaded.table_uuid} and is now {refreshed.table_uuid}",
            hint="The table was dropped and another one created in its place. Load it anew.",
            heading="Table Metadata Fields",
        )


def _fail(reason: str, *, heading: str = "Table Metadata Fields", hint: str | None = None) -> InvalidMetadataError:
    return InvalidMetadataError(f"Cannot use the table metadata: {reason}", heading=heading, hint=hint)


def _check_version(metadata: TableMetadata) -> None:
    version = metadata.format_version
    if version > LATEST:
        raise UnsupportedError(
            f"Cannot use a table of format_version {version}: the newest version of this build is {LATEST}",
            hint="Update frazil, or use the engine that wrote the table.",
        )
    if version < MIN:
        raise _fail(f"format_version is {version}, and versions start at {MIN}", heading="Format Versioning")


def _check_identity(metadata: TableMetadata) -> None:
    if metadata.table_uuid is None:
        if metadata.format_version > 1:
            raise _fail(f"table_uuid is missing, and format version {metadata.format_version} requires it")
    if not metadata.location:
        raise _fail("location is empty")
    for name, value in metadata.properties.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise _fail(f"properties[{name!r}] is not a string")
    _check_long("last_updated_ms", metadata.last_updated_ms)
    _check_long("last_sequence_number", metadata.last_sequence_number)
    _check_long("next_row_id", metadata.next_row_id)
    if metadata.format_version == 1 and metadata.last_sequence_number != 0:
        raise _fail(f"last_sequence_number is {metadata.last_sequence_number}, and version 1 has none")
    if metadata.format_version < 3 and metadata.next_row_id != 0:
        raise _fail(f"next_row_id is {metadata.next_row_id}, and version {metadata.format_version} has none")


def _check_schemas(metadata: TableMetadata, *, is_read: bool) -> None:
    heading = "Schemas and Data Types"
    _check_ids("schemas", "schema_id", (schema.schema_id for schema in metadata.schemas))
    if metadata.current_schema_id not in metadata.schemas_by_id:
        raise _fail(f"current_schema_id is {metadata.current_schema_id}, and no schema in schemas has that id")
    if not 0 <= metadata.last_column_id <= MAX_FIELD_ID:
        raise _fail(f"last_column_id {metadata.last_column_id} is not a column id")
    for schema in metadata.schemas:
        lowest = min(schema.fields_by_id, default=0)
        if lowest < 0:
            raise _fail(f"schema {schema.schema_id} has a field with the id {lowest}", heading=heading)
        if schema.highest_field_id > MAX_FIELD_ID:
            raise _fail(
                f"schema {schema.schema_id} has a field with the id {schema.highest_field_id}; ids above "
                f"{MAX_FIELD_ID} are reserved",
                heading="Reserved Field IDs",
            )
        if schema.highest_field_id > metadata.last_column_id:
            raise _fail(
                f"last_column_id is {metadata.last_column_id}, and schema {schema.schema_id} has a field with "
                f"the id {schema.highest_field_id}"
            )
        try:
            if not is_read:
                check_schema_version(schema, metadata.format_version)
        except InvalidRequestError as problem:
            raise _fail(_reason(problem), heading=heading, hint=problem.hint) from problem


def _check_specs(metadata: TableMetadata) -> None:
    heading = "Partitioning"
    _check_ids("partition_specs", "spec_id", (partition_spec.spec_id for partition_spec in metadata.partition_specs))
    if metadata.default_spec_id not in metadata.specs_by_id:
        raise _fail(f"default_spec_id is {metadata.default_spec_id}, and no spec in partition_specs has that id")
    if not 0 <= metadata.last_partition_id <= INT_MAX:
        raise _fail(f"last_partition_id {metadata.last_partition_id} is not a partition field id")
    for spec in metadata.partition_specs:
        for field in spec.fields:
            if not 0 <= field.field_id <= INT_MAX or min(field.source_ids) < 0:
                raise _fail(f"spec {spec.spec_id} has a field with an id that is negative: {field}", heading=heading)
            if field.field_id > metadata.last_partition_id:
                raise _fail(
                    f"last_partition_id is {metadata.last_partition_id}, and spec {spec.spec_id} has a field with "
                    f"the id {field.field_id}"
                )
    try:
        check_partition_spec(metadata.current_schema, metadata.default_spec)
    except InvalidRequestError as problem:
        raise _fail(f"default_spec_id is {metadata.default_spec_id}: {_reason(problem)}", heading=heading) from problem


def _check_orders(metadata: TableMetadata) -> None:
    _check_ids("sort_orders", "order_id", (sort_order.order_id for sort_order in metadata.sort_orders))
    if metadata.default_sort_order_id not in metadata.sort_orders_by_id:
        raise _fail(
            f"default_sort_order_id is {metadata.default_sort_order_id}, and no order in sort_orders has that id"
        )
    try:
        check_sort_order(metadata.current_schema, metadata.default_sort_order)
    except InvalidRequestError as problem:
        raise _fail(
            f"default_sort_order_id is {metadata.default_sort_order_id}: {_reason(problem)}", heading="Sorting"
        ) from problem


def _check_snapshots(metadata: TableMetadata) -> None:
    heading = "Snapshots"
    last_number = metadata.last_sequence_number
    next_row_id = metadata.next_row_id if metadata.format_version >= 3 else LONG_MAX
    for head in metadata.snapshots.heads:
        what = head.snapshot_id
        if not 0 <= what <= LONG_MAX:
            raise _fail(f"a snapshot has the snapshot_id {what}", heading=heading)
        if not 0 <= head.sequence_number <= last_number:
            raise _fail(
                f"snapshot {what} has the sequence_number {head.sequence_number}, and last_sequence_number is "
                f"{last_number}",
                heading=heading,
            )
        if head.first_row_id is None and head.added_rows is None:
            continue
        first_row_id, added_rows = head.first_row_id or 0, head.added_rows or 0
        if not (0 <= first_row_id <= LONG_MAX and 0 <= added_rows <= LONG_MAX):
            raise _fail(
                f"snapshot {what} has the first_row_id {head.first_row_id} and added_rows {head.added_rows}",
                heading="Snapshot Row IDs",
            )
        if head.first_row_id is not None and first_row_id + added_rows > next_row_id:
            raise _fail(
                f"snapshot {what} assigned the row ids from {first_row_id} to {first_row_id + added_rows}, and "
                f"next_row_id is {next_row_id}",
                heading="Row Lineage",
            )


def _check_parents(snapshots: SnapshotList) -> None:
    """Refuse snapshots that are their own ancestors; a missing parent ends a chain."""
    finished: set[int] = set()
    for start in snapshots.heads:
        chain: list[int] = []
        head = start
        # Parents usually precede their children, so that most chains end after one step.
        while head.snapshot_id not in finished:
            finished.add(head.snapshot_id)
            chain.append(head.snapshot_id)
            parent_id = head.parent_snapshot_id
            if parent_id is None or (parent := snapshots.find_head(parent_id)) is None:
                break
            if parent_id in finished:
                if parent_id in chain:
                    raise _fail(f"snapshot {parent_id} is its own ancestor", heading="Snapshots")
                break
            head = parent


def _check_refs(metadata: TableMetadata) -> None:
    heading = "Snapshot References"
    current = metadata.current_snapshot_id
    ids = metadata.snapshots.ids
    if current is not None and current not in ids:
        raise _fail(f"current_snapshot_id is {current}, and no snapshot in snapshots has that id")
    for name, ref in metadata.refs.items():
        if ref.snapshot_id not in ids:
            raise _fail(
                f"refs[{name!r}] names snapshot {ref.snapshot_id}, and no snapshot in snapshots has that id",
                heading=heading,
            )
    main = metadata.refs.get(MAIN_BRANCH)
    if main is None:
        if current is not None:
            raise _fail(f"current_snapshot_id is {current}, and refs has no branch main", heading=heading)
        return
    if not main.is_branch:
        raise _fail("refs['main'] is a tag, and must be a branch", heading=heading)
    if main.snapshot_id != current:
        raise _fail(f"current_snapshot_id is {current}, and the branch main is at {main.snapshot_id}", heading=heading)


def _check_logs(metadata: TableMetadata) -> None:
    _check_times("snapshot_log", [entry.timestamp_ms for entry in metadata.snapshot_log], metadata.last_updated_ms)
    _check_times("metadata_log", [entry.timestamp_ms for entry in metadata.metadata_log], metadata.last_updated_ms)


def _check_times(what: str, times_ms: list[int], last_updated_ms: int) -> None:
    for index in range(1, len(times_ms)):
        if times_ms[index] < times_ms[index - 1] - CLOCK_TOLERANCE_MS:
            raise _fail(
                f"{what} is not in order: {show_ms(times_ms[index])} comes after {show_ms(times_ms[index - 1])}",
            )
    if times_ms and last_updated_ms < times_ms[-1] - CLOCK_TOLERANCE_MS:
        raise _fail(
            f"last_updated_ms is {show_ms(last_updated_ms)}, before the last entry of {what} at {show_ms(times_ms[-1])}"
        )


def _check_keys(metadata: TableMetadata) -> None:
    seen: set[str] = set()
    for key in metadata.encryption_keys:
        if key.key_id in seen:
            raise _fail(f"encryption_keys has the key_id {key.key_id!r} twice", heading="Encryption Keys")
        seen.add(key.key_id)


def _check_ids(what: str, name: str, ids: Iterable[int]) -> None:
    seen: set[int] = set()
    for item_id in ids:
        if not 0 <= item_id <= INT_MAX:
            raise _fail(f"{what} has the {name} {item_id}")
        if item_id in seen:
            raise _fail(f"{what} has the {name} {item_id} twice")
        seen.add(item_id)


def _check_long(name: str, value: int) -> None:
    if not 0 <= value <= LONG_MAX:
        raise _fail(f"{name} is {value}")


def _reason(problem: InvalidRequestError) -> str:
    """Return the reason of an error, without its leading `Cannot ...:`, for use in another error."""
    _, _, reason = problem.message.partition(": ")
    return reason or problem.message
