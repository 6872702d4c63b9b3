"""Write delete files and deletion vectors. Specification: "Delete Formats".

The caller has found the deleted rows: positions in data files, or values to compare rows with. Here they become files
and descriptions for a commit:

- deletion vectors (v3): all vectors of one write in one Puffin file, each with its description;
- position delete files (v2): sorted by path and position, one per data file or per partition, with full bounds of
  both columns, by which readers find the relevant files;
- equality delete files (v2 and later): some of the table's columns, in the partition of the rows they delete, or for
  all partitions if the spec has none.

Merging with existing deletes of a data file is up to the caller: a data file has at most one vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.codec.deletion_vector import DeletionVector, encode_deletion_vector_file
from frazil.datafile.input_rows import Rows, open_input
from frazil.datafile.match_columns import ColumnMatcher
from frazil.datafile.partition_values import Partitioner
from frazil.datafile.rolling_file import FilePlan, Outcome, RollingFile, SizeGuess
from frazil.datafile.rows_writer import RowsWriter, delete_unused, note_written
from frazil.datafile.write import FIRST_GUESSES, choose_format, make_format
from frazil.datafile.write_target import FileNames, WriteTarget, new_uuid, partition_paths_of, write_target
from frazil.errors import InvalidRequestError, UnsupportedError, WriteOutcomeUnknownError
from frazil.loaded import LoadedTable
from frazil.spec import properties as known
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.delete_schemas import (
    EQUALITY_HEADING,
    POSITION_DELETE_SCHEMA,
    POSITION_HEADING,
    check_equality_field,
    equality_delete_schema,
)
from frazil.spec.metrics_config import POSITION_DELETE_METRICS_MODES, metrics_modes
from frazil.spec.partition_key import partition_key_of
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.properties import DeleteGranularity, read_property
from frazil.spec.schema import Schema
from frazil.spec.sorting import UNSORTED_ORDER_ID
from frazil.spec.types import NestedField, StructType

CREATED_BY = "frazil"
_BATCH_ROWS = 1 << 18
_DELETES_SUFFIX = "deletes"


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Deleted rows of one data file; the partition and spec are the data file's."""

    file_path: str
    positions: DeletionVector
    spec_id: int = 0
    partition: tuple[Any, ...] = ()

    @classmethod
    def of(cls, data_file: DataFile, positions: Iterable[int] | npt.NDArray[Any] | DeletionVector) -> DeletedRows:
        """Return the deletion of rows of a data file, by position from 0."""
        vector = positions if isinstance(positions, DeletionVector) else DeletionVector(positions)
        if data_file.content is not FileContent.DATA:
            raise InvalidRequestError(f"Cannot delete rows of {data_file.file_path}: it is not a data file")
        last = vector.last
        if last is not None and 0 <= data_file.record_count <= last:
            raise InvalidRequestError(
                f"Cannot delete row {last} of {data_file.file_path}: the file has {data_file.record_count} rows"
            )
        return cls(data_file.file_path, vector, data_file.spec_id, data_file.partition)


def write_deletion_vectors(
    deletes: Iterable[DeletedRows],
    table: LoadedTable | WriteTarget,
    *,
    new_id: Callable[[], str] = new_uuid,
    partition_id: int = 0,
    task_id: int = 0,
    may_clean_up: bool = False,
) -> list[DataFile]:
    """Write deletion vectors to one Puffin file and return their descriptions, one vector per data file.

    This needs format version 3. Each vector must hold all deleted rows of its data file, including earlier ones. With
    `may_clean_up`, an interrupted file is deleted.
    """
    target = write_target(table)
    if target.format_version < 3:
        raise UnsupportedError(
            f"Cannot write deletion vectors: format version {target.format_version} has none",
            hint="Write position delete files, or upgrade the table to version 3.",
            heading="Deletion Vectors",
        )
    merged = _merged(deletes)
    if not merged:
        return []
    encoded = encode_deletion_vector_file(
        {path: deleted_rows.positions for path, deleted_rows in merged.items()}, created_by=CREATED_BY
    )
    names = FileNames(
        target, FileFormat.PUFFIN, new_id, partition_id=partition_id, task_id=task_id, suffix=_DELETES_SUFFIX
    )
    location = names.next_location(None)
    try:
        target.storage.create(location, encoded.data)
    except WriteOutcomeUnknownError as error:
        note_written(error, [], (location,))
        raise
    except BaseException:
        if may_clean_up:
            delete_unused(target.storage, [location])
        raise
    return [
        DataFile(
            file_path=location,
            file_format=FileFormat.PUFFIN,
            record_count=stored.cardinality,
            file_size_in_bytes=len(encoded.data),
            content=FileContent.POSITION_DELETES,
            spec_id=merged[stored.referenced_data_file].spec_id,
            partition=merged[stored.referenced_data_file].partition,
            referenced_data_file=stored.referenced_data_file,
            content_offset=stored.content_offset,
            content_size_in_bytes=stored.content_size_in_bytes,
        )
        for stored in encoded.vectors
    ]


def _merged(deletes: Iterable[DeletedRows]) -> dict[str, DeletedRows]:
    """Merge deletes by data file, leaving out files without deleted rows."""
    merged: dict[str, DeletedRows] = {}
    for delete in deletes:
        merged_rows = merged.get(delete.file_path)
        if merged_rows is None:
            merged[delete.file_path] = delete
            continue
        if partition_key_of(merged_rows) != partition_key_of(delete):
            raise InvalidRequestError(f"Cannot delete rows of {delete.file_path}: it has two different partitions")
        union = merged_rows.positions.union(delete.positions)
        merged[delete.file_path] = DeletedRows(delete.file_path, union, delete.spec_id, delete.partition)
    return {path: deleted_rows for path, deleted_rows in merged.items() if not deleted_rows.positions.is_empty}


# --- position delete files


def write_position_deletes(
    deletes: Iterable[DeletedRows],
    table: LoadedTable | WriteTarget,
    *,
    granularity: DeleteGranularity | None = None,
    new_id: Callable[[], str] = new_uuid,
    file_format: FileFormat | str | None = None,
    partition_id: int = 0,
    task_id: int = 0,
    may_clean_up: bool = False,
) -> list[DataFile]:
    """Write position delete files, one per data file or per partition, and return their descriptions.

    Only tables of format version 2 accept them. The default granularity is that of `write.delete.granularity`. On an
    error, `context["written_files"]` names the complete files; with `may_clean_up` they are deleted.
    """
    target = write_target(table)
    if target.format_version != 2:
        reason = "has no deletes" if target.format_version < 2 else "uses deletion vectors instead"
        raise UnsupportedError(
            f"Cannot write position delete files: format version {target.format_version} {reason}",
            heading=POSITION_HEADING,
        )
    chosen = _delete_format(target, file_format)
    names = FileNames(target, chosen, new_id, partition_id=partition_id, task_id=task_id, suffix=_DELETES_SUFFIX)
    form = make_format(chosen, POSITION_DELETE_SCHEMA, target.properties, is_delete=True)
    whole = granularity if granularity is not None else read_property(target.properties, known.DELETE_GRANULARITY)
    outcome = Outcome()
    guess = SizeGuess(FIRST_GUESSES[chosen])
    writer: RollingFile | None = None
    try:
        for group in _position_groups(_merged(deletes), per_file=whole == "file"):
            spec = target.find_spec(group[0].spec_id)
            path = partition_paths_of(target, spec)(group[0].partition)
            plan = _plan_files(
                target,
                spec.spec_id,
                guess,
                format=form,
                modes=dict(POSITION_DELETE_METRICS_MODES),
                content=FileContent.POSITION_DELETES,
                sort_order_id=None,
            )
            writer = RollingFile(plan, group[0].partition, _locations(names, path), outcome)
            referenced = group[0].file_path if len(group) == 1 else None
            for rows in _position_tables(group):
                writer.write(rows, referenced_data_file=referenced)
            writer.close()
    except BaseException as error:
        if writer is not None:
            writer.abandon()
        written = [file.file_path for file in outcome.files]
        note_written(error, written, tuple(outcome.unsettled))
        if may_clean_up:
            delete_unused(target.storage, written)
        raise
    return outcome.files


def _locations(names: FileNames, path: str | None) -> Callable[[], str]:
    return lambda: names.next_location(path)


def _position_groups(deletes: dict[str, DeletedRows], *, per_file: bool) -> list[list[DeletedRows]]:
    """Group deletes by delete file, each in the order of paths."""
    in_order = [deletes[path] for path in sorted(deletes)]
    if per_file:
        return [[rows] for rows in in_order]
    groups: dict[tuple[Any, ...], list[DeletedRows]] = {}
    for deleted_rows in in_order:
        groups.setdefault(partition_key_of(deleted_rows), []).append(deleted_rows)
    return list(groups.values())


def _position_tables(group: Sequence[DeletedRows]) -> Iterator[pa.Table]:
    """Yield the rows of a delete file in order; small data files are combined, large ones split."""
    arrow = to_arrow_schema(POSITION_DELETE_SCHEMA)
    tables: list[pa.Table] = []
    held = 0
    for file in group:
        for positions in file.positions.parts(_BATCH_ROWS):
            path = pa.repeat(pa.scalar(file.file_path, pa.string()), len(positions))
            tables.append(pa.table([path, pa.array(positions, pa.int64())], schema=arrow))
            held += len(positions)
            if held >= _BATCH_ROWS:
                yield pa.concat_tables(tables)
                tables, held = [], 0
    if tables:
        yield pa.concat_tables(tables)


# --- equality delete files


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
    apply to the partition of each row, so the data must have the source columns of the spec's fields, or else all rows
    belong to `partition`. If the spec has no partitions, they apply to all partitions of the table.
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
                f"Cannot write equality deletes: {len(partition)} partition values were passed for the "
                f"{len(spec.fields)} fields of spec {spec.spec_id}"
            )
        return Partitioner(schema, spec, target.schema, values=partition)
    for field in spec.fields:
        if not field.transform.is_void and schema.find_field(field.source_ids[0]) is None:
            raise InvalidRequestError(
                f"Cannot write equality deletes: the partition field {field.name!r} needs the column of field id "
                f"{field.source_ids[0]}, which the data lacks",
                hint="Add the column to the data, or pass the partition of the rows.",
                heading=EQUALITY_HEADING,
            )
    return Partitioner(schema, spec, target.schema)


def _equality_schema(schema: Schema, source: pa.Schema, ids: Sequence[int], *, case_sensitive: bool) -> Schema:
    """Return the columns that the data has, refusing data without a compared column."""
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


def _present_ids(fields: tuple[NestedField, ...], columns: list[pa.Field], *, case_sensitive: bool) -> list[int]:
    """Return the ids of the fields that the data has, including fields in structs but not structs themselves."""
    ids: list[int] = []
    for field in fields:
        name = next(
            (
                arrow_field
                for arrow_field in columns
                if _same_name(arrow_field.name, field.name, case_sensitive=case_sensitive)
            ),
            None,
        )
        if name is None:
            continue
        if isinstance(field.field_type, StructType) and pa.types.is_struct(name.type):
            inner = [name.type.field(index) for index in range(name.type.num_fields)]
            ids += _present_ids(field.field_type.fields, inner, case_sensitive=case_sensitive)
        else:
            ids.append(field.field_id)
    return ids


def _same_name(name: str, other: str, *, case_sensitive: bool) -> bool:
    return name == other or (not case_sensitive and name.lower() == other.lower())


def _delete_format(target: WriteTarget, requested: FileFormat | str | None) -> FileFormat:
    return choose_format(requested, read_property(target.properties, known.DELETE_DEFAULT_FILE_FORMAT))


def _plan_files(target: WriteTarget, spec_id: int, guess: SizeGuess, **settings: Any) -> FilePlan:
    """Return the settings of delete files, with the sizes for deletes."""
    return FilePlan(
        storage=target.storage,
        target_bytes=read_property(target.properties, known.DELETE_TARGET_FILE_SIZE_BYTES),
        row_group_bytes=read_property(target.properties, known.DELETE_PARQUET_ROW_GROUP_SIZE_BYTES),
        min_row_group_rows=1,
        spec_id=spec_id,
        guess=guess,
        row_group_guess=guess,
        **settings,
    )
