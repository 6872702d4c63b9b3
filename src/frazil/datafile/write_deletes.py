"""Write delete files and deletion vectors. Specification: "Delete Formats".

The caller has found the deleted rows: positions in data files. Here they become files and descriptions for a commit:

- deletion vectors (v3): all vectors of one write in one Puffin file, each with its description;
- position delete files (v2): sorted by path and position, one per data file or per partition, with full bounds of
  both columns, by which readers find the relevant files.

Equality deletes are read but not written: they save their writer a look at the table, at the cost of every reader.

Merging with existing deletes of a data file is up to the caller: a data file has at most one vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.codec.deletion_vector import DeletionVector, encode_deletion_vector_file
from frazil.datafile.rolling_file import FilePlan, Outcome, RollingFile, SizeGuess
from frazil.datafile.rows_writer import delete_unused, note_written
from frazil.datafile.write import FIRST_GUESSES, choose_format, make_format
from frazil.datafile.write_target import FileNames, WriteTarget, new_uuid, partition_paths_of, write_target
from frazil.errors import InvalidRequestError, UnsupportedError, WriteOutcomeUnknownError
from frazil.loaded import LoadedTable
from frazil.spec import properties as known
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.delete_schemas import POSITION_DELETE_SCHEMA, POSITION_HEADING
from frazil.spec.metrics_config import POSITION_DELETE_METRICS_MODES
from frazil.spec.partition_key import partition_key_of
from frazil.spec.properties import DeleteGranularity, read_property

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


def _delete_format(target: WriteTarget, asked: FileFormat | str | None) -> FileFormat:
    return choose_format(asked, read_property(target.properties, known.DELETE_DEFAULT_FILE_FORMAT))


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
