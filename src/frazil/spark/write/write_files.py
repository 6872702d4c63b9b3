"""Write a DataFrame to data files on Spark, up to the commit. Specification: "Writing data files".

    DataFrame
      -> a session of its own             jvm_write.py            settings that no other query sees
      -> columns of the table             store_assignment.py     by name, exact casts, defaults, stored form
      -> distributed and sorted           distribute.py           partition keys, tasks of the right size
      -> Parquet by Spark's writer        native_write.py         if the schema allows it
            or files by our own, in tasks    arrow_write.py          or on the driver, if executors have no access
      -> descriptions (`DataFile`), for a commit

Nothing references the files before a commit, so a failure loses nothing. Concurrent writers do not interfere: folders
and names are unique to a write.
"""

from __future__ import annotations

from collections.abc import Callable

import pyspark.sql.types as st
from pyspark.sql import DataFrame

from frazil.datafile.write_target import WriteTarget, new_uuid, write_target
from frazil.loaded import LoadedTable
from frazil.spark.jvm.file_systems import hadoop_options
from frazil.spark.jvm.jvm_write import NamedColumn, can_reach, in_own_session, select_columns
from frazil.spark.types import FIELD_ID
from frazil.spark.write.arrow_write import can_travel, write_on_driver, write_on_executors
from frazil.spark.write.distribute import choose_mode, distribute, has_partitions, write_settings
from frazil.spark.write.native_write import is_native, write_natively
from frazil.spark.write.progress import note_files, showing_progress
from frazil.spark.write.store_assignment import assign_columns
from frazil.spec import properties as known
from frazil.spec.data_file import DataFile
from frazil.spec.partitioning import check_writable
from frazil.spec.properties import DistributionMode, read_property
from frazil.spec.property_kinds import Property
from frazil.spec.reserved_columns import ROW_LINEAGE_COLUMNS
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Summary
from frazil.spec.types import NestedField, StructType, Type

_MIN_FILE_ROWS = 10_000


def write_frame(
    frame: DataFrame,
    table: LoadedTable | WriteTarget,
    *,
    distribution: Property[DistributionMode | None] = known.WRITE_DISTRIBUTION_MODE,
    new_id: Callable[[], str] = new_uuid,
    may_lack_parts: bool = False,
) -> list[DataFile]:
    """Write the rows of a DataFrame as data files of a table and return their descriptions.

    The files are complete and in storage, but not referenced yet. Without rows there are no files. Structs must have
    all fields of the table's, unless they `may_lack_parts` or the table accepts any schema.
    """
    target = write_target(table)
    own = in_own_session(frame, write_settings(target))
    may_lack_parts = may_lack_parts or read_property(target.properties, known.SPARK_ACCEPT_ANY_SCHEMA)
    assigned = assign_columns(own, target.schema, format_version=target.format_version, may_lack_parts=may_lack_parts)
    file_rows = _file_rows(table) if isinstance(table, LoadedTable) else None
    what = f"write to {table.name if isinstance(table, LoadedTable) else target.location}"
    with showing_progress(frame.sparkSession, what):
        return write_stored(assigned, target, distribution=distribution, new_id=new_id, file_rows=file_rows)


def write_stored(
    frame: DataFrame,
    target: WriteTarget,
    *,
    distribution: Property[DistributionMode | None] = known.WRITE_DISTRIBUTION_MODE,
    new_id: Callable[[], str] = new_uuid,
    file_rows: int | None = None,
) -> list[DataFile]:
    """Write a frame in stored form; it must be in a session of its own."""
    check_writable(target.spec)
    key_name = _key_name(target.schema)
    spread = distribute(frame, target, key_name, choose_mode(target, distribution))
    columns = [_with_id(name, frame.schema[name], target.schema) for name in frame.columns]
    is_reached = can_reach(frame, target.location, hadoop_options(frame.sparkSession, target.storage, target.location))
    if is_reached and is_native(target.schema, target.properties):
        if has_partitions(target):
            columns.append(NamedColumn(key_name))
        files = write_natively(select_columns(spread, columns), target, key_name, new_id(), file_rows=file_rows)
    elif not can_travel(target):
        files = write_on_driver(select_columns(spread, columns), target, is_reached=is_reached)
    else:
        files = write_on_executors(select_columns(spread, columns), target)
    note_files(files)
    return files


def _with_id(name: str, field: st.StructField, schema: Schema) -> NamedColumn:
    """Return a column with its id, and the ids of nested fields, on the last projection.

    Nested fields keep ids if their values have a single source; Spark drops them when it chooses between values.
    """
    lineage = {lineage_column.name: lineage_column.field_id for lineage_column in ROW_LINEAGE_COLUMNS}
    field_found = schema.find_field(name)
    field_id = field.metadata.get(FIELD_ID, lineage.get(name) if field_found is None else field_found.field_id)
    spark_type = field.dataType if field_found is None else _type_with_ids(field.dataType, field_found.field_type)
    return NamedColumn(name, None if spark_type == field.dataType else spark_type, {FIELD_ID: field_id})


def _type_with_ids(have: st.DataType, data_type: Type) -> st.DataType:
    """Return the type of a column with the ids of nested fields."""
    if not isinstance(have, st.StructType) or not isinstance(data_type, StructType):
        return have
    parts = {field.name: field for field in data_type.fields}
    return st.StructType([_part_with_id(field, parts[field.name]) for field in have.fields])


def _part_with_id(have: st.StructField, field: NestedField) -> st.StructField:
    metadata = {**have.metadata, FIELD_ID: field.field_id}
    return st.StructField(have.name, _type_with_ids(have.dataType, field.field_type), have.nullable, metadata)


def _key_name(schema: Schema) -> str:
    """Return an unused name for the column of the partition key."""
    taken = {field.name.lower() for field in schema.fields}
    name = "p"
    while name in taken:
        name += "_"
    return name


def _file_rows(loaded: LoadedTable) -> int | None:
    """Return the rows of a file of the target size, estimated from the table's present rows, or None if unknown."""
    snapshot = loaded.metadata.current_snapshot
    summary = {} if snapshot is None or snapshot.summary is None else snapshot.summary
    try:
        rows, size = int(summary[Summary.TOTAL_RECORDS]), int(summary[Summary.TOTAL_FILES_SIZE])
    except (KeyError, ValueError):
        return None
    if rows < _MIN_FILE_ROWS or size <= 0:
        return None
    target_bytes = read_property(loaded.metadata.properties, known.WRITE_TARGET_FILE_SIZE_BYTES)
    return max(_MIN_FILE_ROWS, target_bytes * rows // size)
