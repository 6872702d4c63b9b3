"""A writer of equality delete files, as other implementations have: lakes read such files and write none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import Any

import pyarrow as pa

from frazil.datafile.input_rows import Rows, open_input
from frazil.datafile.match_columns import ColumnMatcher
from frazil.datafile.partition_values import Partitioner
from frazil.datafile.rolling_file import FilePlan, SizeGuess
from frazil.datafile.rows_writer import RowsWriter
from frazil.datafile.write import FIRST_GUESSES, make_format
from frazil.datafile.write_deletes import _DELETES_SUFFIX, _delete_format, _plan_files
from frazil.datafile.write_target import FileNames, WriteTarget, new_uuid, partition_paths_of, write_target
from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.delete_schemas import (
    EQUALITY_HEADING,
    POSITION_DELETE_SCHEMA,
    POSITION_HEADING,
    _distinct,
    check_equality_field,
)
from frazil.spec.metrics_config import metrics_modes
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.reserved_columns import DELETE_FILE_PATH, DELETE_POS, deleted_row_column
from frazil.spec.schema import Schema
from frazil.spec.sorting import UNSORTED_ORDER_ID
from frazil.spec.types import NestedField, StructType


def write_equality_deletes(
    data: Rows,
    table: LoadedTable | WriteTarget,
    columns: Sequence[str | int],
    *,
    spec_id: int | None = None,
    partition: tuple[Any, ...] | None = None,
    new_id: Callable[[], str] = new_uuid,
    case_sensitive: bool = True,
    file_format: FileFormat | str | None = None,
    partition_id: int = 0,
    task_id: int = 0,
) -> list[DataFile]:
    """Write values as equality delete files: rows that equal one of them in all of the columns are deleted.

    `columns` are compared, by full name or field id; further columns of the data are stored with them. The deletes
    are for the partition of each row, so the data must have what the spec's fields are made of, or all rows are for
    the `partition` given. Where the spec has no partitions, they are for all partitions of the table.
    """
    target = write_target(table)
    if target.format_version < 2:
        raise UnsupportedError("Cannot write equality deletes: format version 1 has none", heading=EQUALITY_HEADING)
    spec = target.spec if spec_id is None else target.find_spec(spec_id)
    ids = tuple(target.schema.field(name, case_sensitive=case_sensitive).field_id for name in columns)
    rows = open_input(data, target.schema)
    schema = _equality_schema(target.schema, rows.schema, ids, case_sensitive=case_sensitive)
    matcher = ColumnMatcher(schema, rows.schema, format_version=target.format_version, case_sensitive=case_sensitive)
    partitioner = _equality_partitioner(target, spec, schema, partition)
    chosen = _delete_format(target, file_format)
    names = FileNames(target, chosen, new_id, partition_id=partition_id, task_id=task_id, suffix=_DELETES_SUFFIX)

    def plan_files(metrics_pool: Executor | None) -> FilePlan:
        guess = SizeGuess(FIRST_GUESSES[chosen])
        return _plan_files(
            target,
            spec.spec_id,
            guess,
            format=make_format(chosen, matcher.schema, target.properties, is_delete=True),
            modes=metrics_modes(matcher.schema, target.properties),
            content=FileContent.EQUALITY_DELETES,
            equality_ids=ids,
            sort_order_id=UNSORTED_ORDER_ID,
            metrics_pool=metrics_pool,
        )

    path_of = partition_paths_of(target, spec)

    def locate(values: tuple[Any, ...]) -> str:
        return names.next_location(path_of(values))

    with RowsWriter(matcher, partitioner, plan_files, locate) as writer:
        for batch in rows.batches:
            writer.write(batch)
        return writer.close()


def _equality_partitioner(
    target: WriteTarget, spec: PartitionSpec, schema: Schema, partition: tuple[Any, ...] | None
) -> Partitioner:
    if partition is not None:
        if len(partition) != len(spec.fields):
            raise InvalidRequestError(
                f"Cannot write equality deletes: {len(partition)} partition values are given for the "
                f"{len(spec.fields)} fields of spec {spec.spec_id}"
            )
        return Partitioner(schema, spec, target.schema, values=partition)
    for field in spec.fields:
        if not field.transform.is_void and schema.find_field(field.source_ids[0]) is None:
            raise InvalidRequestError(
                f"Cannot write equality deletes: the partition field {field.name!r} needs the column of field id "
                f"{field.source_ids[0]}, which the data lacks",
                hint="Add the column to the data, or say which partition the rows are of.",
                heading=EQUALITY_HEADING,
            )
    return Partitioner(schema, spec, target.schema)


def _equality_schema(schema: Schema, source: pa.Schema, ids: Sequence[int], *, case_sensitive: bool) -> Schema:
    """Return the columns that the data has, refusing data that lacks one to compare."""
    for field_id in ids:
        check_equality_field(schema, field_id)
    present = _present_ids(schema.fields, list(source), case_sensitive=case_sensitive)
    missing = [schema.name_of(field_id) for field_id in ids if field_id not in present]
    if missing:
        raise InvalidRequestError(
            f"Cannot write equality deletes: the data has no column {', '.join(map(repr, missing))} to compare",
            heading=EQUALITY_HEADING,
        )
    return equality_delete_schema(schema, ids, other_ids=present)


def _present_ids(fields: tuple[NestedField, ...], have: list[pa.Field], *, case_sensitive: bool) -> list[int]:
    """Return the ids of the fields that the data has, those in structs included, structs themselves not."""
    found: list[int] = []
    for field in fields:
        name = next(
            (
                arrow_field
                for arrow_field in have
                if _same_name(arrow_field.name, field.name, case_sensitive=case_sensitive)
            ),
            None,
        )
        if name is None:
            continue
        if isinstance(field.field_type, StructType) and pa.types.is_struct(name.type):
            inner = [name.type.field(index) for index in range(name.type.num_fields)]
            found += _present_ids(field.field_type.fields, inner, case_sensitive=case_sensitive)
        else:
            found.append(field.field_id)
    return found


def _same_name(name: str, other: str, *, case_sensitive: bool) -> bool:
    return name == other or (not case_sensitive and name.lower() == other.lower())


def position_delete_schema(row_type: StructType | None = None) -> Schema:
    """Return the schema of position deletes to write; `row_type` is any part of the table's schema.

    `row` is required if it is present: either all entries hold the deleted values, or none does.
    """
    if row_type is None:
        return POSITION_DELETE_SCHEMA
    if len(row_type) == 0:
        raise InvalidRequestError(
            "Cannot make a position delete schema: the deleted rows have no columns",
            hint="Omit the row instead.",
            heading=POSITION_HEADING,
        )
    return Schema((DELETE_FILE_PATH, DELETE_POS, deleted_row_column(row_type)))


def equality_delete_schema(schema: Schema, equality_ids: Iterable[int], *, other_ids: Iterable[int] = ()) -> Schema:
    """Return the schema of equality deletes to write, refusing columns that cannot identify rows.

    `other_ids` are columns of the deleted rows that are stored but not compared.
    """
    ids = _distinct(equality_ids)
    for field_id in ids:
        check_equality_field(schema, field_id)
    others = tuple(schema.field(field_id).field_id for field_id in other_ids)
    return schema.project((*ids, *others))
