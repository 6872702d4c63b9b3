"""Write rows to data files in this process, up to the commit. Specification: "Writing data files".

    rows (any Arrow, pandas, dicts)
      -> columns of the table               match_columns.py      by name, exact casts, defaults, required checked
      -> held until there are enough        rows_writer.py
      -> grouped by partition               partition_values.py   one stable sort of all held rows
      -> sorted, if the table has an order  sort_rows.py
      -> files of about the target size     rolling_file.py       row groups, metrics, publishing
      -> descriptions (`DataFile`), for a commit

One pass, any number of rows, bounded memory: at most `held_bytes` of rows are held, half of them being collected while
other threads write the other half. Held rows are written all at once, a row group per partition, and then released.
Files stay open for more rows of their partition, up to `max_open_files`; beyond that the largest files without new rows
are closed. If the table is sorted, a file continues only if the next rows follow its last one, so that a file with the
order's id is sorted throughout.

Failures: nothing references the files before a commit, so a failure loses nothing. Incomplete files are discarded;
complete ones stay, are named in the error and in `DataFileWriter.files`, and may be deleted by the caller, except those
in `unsettled`, which may or may not exist. Concurrent writers do not interfere, since file names are unique to a write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor

import pyarrow as pa

from frazil.datafile.format_writer import WriteFormat
from frazil.datafile.input_rows import Rows, open_input
from frazil.datafile.match_columns import ColumnMatcher
from frazil.datafile.partition_values import Partitioner
from frazil.datafile.rolling_file import FilePlan, SizeGuess
from frazil.datafile.rows_writer import DEFAULT_HELD_BYTES, DEFAULT_MAX_OPEN_FILES, RowsWriter, delete_unused
from frazil.datafile.sort_rows import RowSorter
from frazil.datafile.write_avro import AvroFormat
from frazil.datafile.write_orc import OrcFormat
from frazil.datafile.write_parquet import ParquetFormat
from frazil.datafile.write_target import FileNames, WriteTarget, new_uuid, partition_paths_of, write_target
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.spec import properties as known
from frazil.spec.data_file import DataFile, FileFormat, parse_file_format
from frazil.spec.metrics_config import metrics_modes
from frazil.spec.properties import read_property
from frazil.spec.schema import Schema
from frazil.spec.sorting import UNSORTED_ORDER_ID

MAX_HELD_OF_TABLE_BYTES = 1 << 30
"""The part of an in-memory table that is grouped and sorted at once, for fewer and better sorted files."""
FIRST_GUESSES = {FileFormat.PARQUET: 1.0, FileFormat.AVRO: 1.0, FileFormat.ORC: 0.5}


def write_data_files(
    data: Rows,
    table: LoadedTable | WriteTarget,
    *,
    new_id: Callable[[], str] = new_uuid,
    case_sensitive: bool = True,
    file_format: FileFormat | str | None = None,
    target_file_bytes: int | None = None,
    held_bytes: int = DEFAULT_HELD_BYTES,
    max_open_files: int = DEFAULT_MAX_OPEN_FILES,
    threads: int | None = None,
    partition_id: int = 0,
    task_id: int = 0,
    may_clean_up: bool = False,
) -> list[DataFile]:
    """Write rows as data files of a table, with its partitioning and sort order, and return their descriptions.

    The files are complete and in storage, but not referenced yet. Without rows there are no files. On an error,
    `context["written_files"]` names the complete files; with `may_clean_up` they are deleted.
    """
    target = write_target(table)
    rows = open_input(data, target.schema)
    if rows.size_bytes is not None:
        held_bytes = max(held_bytes, 2 * min(rows.size_bytes, MAX_HELD_OF_TABLE_BYTES))
    writer = DataFileWriter(
        target,
        rows.schema,
        new_id=new_id,
        case_sensitive=case_sensitive,
        file_format=file_format,
        target_file_bytes=target_file_bytes,
        held_bytes=held_bytes,
        max_open_files=max_open_files,
        threads=threads,
        partition_id=partition_id,
        task_id=task_id,
    )
    try:
        with writer:
            for batch in rows.batches:
                writer.write(batch)
            return writer.close()
    except BaseException:
        if may_clean_up:
            delete_unused(target.storage, [file.file_path for file in writer.files])
        raise


class DataFileWriter(RowsWriter):
    """Writes batches of rows to data files, for callers that get rows piecemeal or clean up themselves.

    As a context manager it discards incomplete files if an error leaves the block.
    """

    def __init__(
        self,
        table: LoadedTable | WriteTarget,
        source: pa.Schema,
        *,
        new_id: Callable[[], str] = new_uuid,
        case_sensitive: bool = True,
        file_format: FileFormat | str | None = None,
        target_file_bytes: int | None = None,
        held_bytes: int = DEFAULT_HELD_BYTES,
        max_open_files: int = DEFAULT_MAX_OPEN_FILES,
        threads: int | None = None,
        partition_id: int = 0,
        task_id: int = 0,
    ) -> None:
        target = write_target(table)
        properties, order = target.properties, target.sort_order
        matcher = ColumnMatcher(
            target.schema, source, format_version=target.format_version, case_sensitive=case_sensitive
        )
        sorter = RowSorter(matcher.schema, order, target.schema) if order.is_sorted else None
        chosen = choose_format(file_format, read_property(properties, known.DEFAULT_FILE_FORMAT))
        names = FileNames(target, chosen, new_id, partition_id=partition_id, task_id=task_id)
        guess = SizeGuess(FIRST_GUESSES[chosen])
        path_of = partition_paths_of(target, target.spec)

        def plan_files(metrics_pool: Executor | None) -> FilePlan:
            return FilePlan(
                storage=target.storage,
                format=make_format(chosen, matcher.schema, properties),
                modes=metrics_modes(matcher.schema, properties, order),
                target_bytes=_file_bytes(properties, target_file_bytes),
                row_group_bytes=read_property(properties, known.PARQUET_ROW_GROUP_SIZE_BYTES),
                min_row_group_rows=read_property(properties, known.PARQUET_ROW_GROUP_CHECK_MIN_RECORD_COUNT),
                spec_id=target.spec.spec_id,
                guess=guess,
                row_group_guess=_row_group_guess(properties, guess),
                sort_order_id=order.order_id if order.is_sorted else UNSORTED_ORDER_ID,
                sorter=sorter if sorter is not None and sorter.has_keys else None,
                metrics_pool=metrics_pool,
            )

        super().__init__(
            matcher,
            Partitioner(matcher.schema, target.spec, target.schema),
            plan_files,
            lambda values: names.next_location(path_of(values)),
            held_bytes=held_bytes,
            max_open_files=max_open_files,
            threads=threads,
        )


def choose_format(requested: FileFormat | str | None, default: str) -> FileFormat:
    """Return the format of new files: the requested one, or else the table's."""
    chosen = parse_file_format(str(default if requested is None else requested))
    if chosen not in FIRST_GUESSES:
        raise InvalidRequestError(f"Cannot write rows to a {chosen} file", hint="Use parquet, orc or avro.")
    return chosen


def make_format(
    file_format: FileFormat, schema: Schema, properties: Mapping[str, str], *, is_delete: bool = False
) -> WriteFormat:
    """Return the writer of a format for files of a schema."""
    if file_format is FileFormat.PARQUET:
        return ParquetFormat(schema, properties, is_delete=is_delete)
    if file_format is FileFormat.ORC:
        return OrcFormat(schema, properties, is_delete=is_delete)
    return AvroFormat(schema, properties, is_delete=is_delete)


def _file_bytes(properties: Mapping[str, str], requested: int | None) -> int:
    if requested is None:
        return read_property(properties, known.WRITE_TARGET_FILE_SIZE_BYTES)
    if requested < 1:
        raise InvalidRequestError(f"Cannot write files of {requested} bytes: the size must be positive")
    return requested


def _row_group_guess(properties: Mapping[str, str], guess: SizeGuess) -> SizeGuess:
    is_uncompressed = read_property(properties, known.PARQUET_ROW_GROUP_SIZE_TRACK_UNCOMPRESSED)
    return SizeGuess(1.0) if is_uncompressed else guess
