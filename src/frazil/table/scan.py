"""A request to read a table: what of it, as of when, under which filter. Read in this process, or planned for others.

A scan is pinned to the snapshot that was chosen when it was made; commits that follow do not change what it reads.
Nothing is read before a method asks for it. `plan()` reads metadata, the `to_` methods and `count()` read data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.datafile.apply_deletes import load_positions
from frazil.datafile.delete_cache import DEFAULT_BUDGET_BYTES, DeleteCache
from frazil.datafile.read_file import DEFAULT_BATCH_ROWS
from frazil.datafile.read_task import TableView, count_task, read_task, view_table
from frazil.datafile.read_tasks import read_in_order
from frazil.errors import FieldNotFoundError, InvalidRequestError
from frazil.evaluate.condition import Session, read_condition
from frazil.evaluate.row_test import RowTest
from frazil.expr.bind import bind
from frazil.expr.expressions import Expression
from frazil.expr.parse import NO_PARAMETERS, parse_condition
from frazil.expr.predicates import FALSE, TRUE, Predicate
from frazil.expr.show_sql import show_sql
from frazil.loaded import LoadedTable
from frazil.scan.changelog import Changelog, ChangelogTask, plan_changelog
from frazil.scan.choose_snapshot import SnapshotChoice, choose_snapshot
from frazil.scan.incremental import Appends, plan_appends
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import Plan, plan_scan
from frazil.scan.split import split_task
from frazil.scan.tasks import FileScanTask
from frazil.spec.reserved_columns import (
    CHANGE_COLUMNS,
    METADATA_COLUMNS,
    PARTITION_NAME,
    ROW_LINEAGE_COLUMNS,
    partition_column,
)
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot
from frazil.spec.types import NestedField, StructType
from frazil.table.describe import describe, listed, snapshot_text
from frazil.table.hand_offs import LazyHandOffs
from frazil.table.point_in_time import PointInTime, milliseconds_of
from frazil.threads import default_threads, map_in_order
from frazil.verbs.on_spark import choose_session
from frazil.verbs.sql_meaning import is_utc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ALL_COLUMNS = "*"
_PART_BYTES = 16 << 20
_ROWS_AT_ONCE = 1 << 18
_LINEAGE = frozenset(row_lineage_column.field_id for row_lineage_column in ROW_LINEAGE_COLUMNS)
"""Rows of a batch where all of them are kept: fewer and larger batches take less time."""


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """How a scan is read: in this process, how many files at once and how much memory deletes may take.

    On Spark, how files are cut and packed, where not as the table or the session says.
    """

    threads: int | None = None
    delete_cache_bytes: int = DEFAULT_BUDGET_BYTES
    manifest_cache: ManifestCache | None = None
    split_bytes: int | None = None
    open_file_cost_bytes: int | None = None

    def __reduce__(self) -> tuple[object, ...]:
        """Take along what can travel: what was read of manifests stays in this process."""
        values = (self.threads, self.delete_cache_bytes, None, self.split_bytes, self.open_file_cost_bytes)
        return ScanOptions, values


DEFAULT_OPTIONS = ScanOptions()


def scan_table(
    table: LoadedTable,
    predicate: Predicate | str | None = None,
    *,
    columns: Sequence[str] | None = None,
    snapshot_id: int | None = None,
    as_of: PointInTime | None = None,
    ref: str | None = None,
    case_sensitive: bool = True,
    limit: int | None = None,
    options: ScanOptions = DEFAULT_OPTIONS,
    parameters: Mapping[str, object] = NO_PARAMETERS,
) -> Scan:
    """Make a scan; refuse at once what cannot be read: unknown columns and snapshots, filters that do not fit.

    What of the filter planning cannot use is tested on the rows that are read.

    `columns` are full names, nested ones with dots, in the order to show them; `*` stands for all columns of the
    table, and metadata columns (`_file`, `_pos`, `_partition`, `_spec_id`, `_deleted`, `_row_id`,
    `_last_updated_sequence_number`) are shown where they are named. `as_of` is a point in time: a datetime with
    a zone, text such as `2024-06-01T00:00:00Z`, `yesterday` or `7d`, or milliseconds from 1970. `parameters` are values
    for names in the text of the predicate: `:name`.
    """
    where: Expression | None = None
    if isinstance(predicate, str) or parameters:
        where, predicate = parse_condition(predicate if isinstance(predicate, str) else "true", parameters), TRUE
    if predicate is None:
        predicate = TRUE
    if isinstance(columns, str):
        raise InvalidRequestError(
            f"Cannot scan the columns {columns!r}: they are not a list of names", hint=f"Write columns=[{columns!r}]."
        )
    scan = Scan(
        table,
        predicate,
        None if columns is None else tuple(columns),
        SnapshotChoice(snapshot_id, None if as_of is None else milliseconds_of(as_of), ref),
        case_sensitive,
        limit,
        options,
    )
    if limit is not None and limit < 0:
        raise InvalidRequestError(f"Cannot scan {table.name} with the limit {limit}: it must not be negative")
    try:
        if where is None:
            bind(scan.table_schema, scan.predicate, case_sensitive=case_sensitive)
        else:
            scan = _filtered(scan, where)
        _ = scan.schema
    except FieldNotFoundError as error:
        error.context.setdefault("table", table.name)
        error.context.setdefault("snapshot", None if scan.snapshot is None else scan.snapshot.snapshot_id)
        raise
    return scan


def _filtered(scan: Scan, where: Expression) -> Scan:
    """Return a scan of the rows of a condition: planning uses one part of it, rows are tested for the other."""
    session, schema = Session(time.time_ns() // 1000), scan.table_schema
    condition = read_condition(where, schema, session, case_sensitive=scan.case_sensitive, may_test_nanos=True)
    test = None
    if condition.rest is not None:
        test = RowTest(condition.rest, schema, session.now_us, scan.case_sensitive, condition.is_zoned)
    return replace(scan, predicate=condition.predicate, where=where, test=test)


@dataclass(frozen=True, repr=False)
class Scan(LazyHandOffs):
    """A request to read one snapshot of a table. Make with `scan_table`, or with a table's `scan`.

    With `appends`, what snapshots appended is read instead, as it was when they did; with the current schema. With
    `changelog`, the rows that snapshots added and removed, each with how and in which of them.
    """

    table: LoadedTable
    predicate: Predicate = TRUE
    columns: tuple[str, ...] | None = None
    choice: SnapshotChoice = field(default_factory=SnapshotChoice)
    case_sensitive: bool = True
    limit: int | None = None
    options: ScanOptions = DEFAULT_OPTIONS
    appends: Appends | None = None
    changelog: Changelog | None = None
    where: Expression | None = None
    """The condition as it was written, or None if it was a predicate."""
    test: RowTest | None = None
    """What rows are tested for beside the predicate."""

    def __getstate__(self) -> dict[str, Any]:
        return {own.name: getattr(self, own.name) for own in fields(self)}

    def __repr__(self) -> str:
        window = self.changelog if self.appends is None else self.appends
        what = "appends" if self.changelog is None else "changes"
        start = None if window is None else window.after_snapshot_id
        return describe(
            f"Scan of {self.table.name!r}",
            snapshot=snapshot_text(self.snapshot),
            rows="" if window is None else f"{what} {'from the beginning' if start is None else f'after {start}'}",
            filter=self._filter_text,
            columns=listed([nested_field.name for nested_field in self.schema.fields]),
            limit="" if self.limit is None else str(self.limit),
        )

    @property
    def _filter_text(self) -> str:
        if self.where is not None:
            return show_sql(self.where)
        return "" if self.predicate == TRUE else str(self.predicate)

    @cached_property
    def _chosen(self) -> tuple[Snapshot | None, Schema]:
        metadata = self.table.metadata
        window = self.changelog if self.appends is None else self.appends
        if window is not None and window.to_snapshot_id is not None:
            return metadata.snapshot(window.to_snapshot_id), metadata.current_schema
        return choose_snapshot(metadata, self.choice)

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that is read; None where the table is empty."""
        return self._chosen[0]

    @property
    def table_schema(self) -> Schema:
        """The schema the snapshot is read with, all columns of it."""
        return self._chosen[1]

    @cached_property
    def schema(self) -> Schema:
        """The columns that are shown, in order."""
        schema = _project(self.table_schema, self.columns, self._view, case_sensitive=self.case_sensitive)
        return schema if self.changelog is None else Schema((*schema.fields, *CHANGE_COLUMNS))

    @cached_property
    def _read_schema(self) -> Schema:
        """The columns that are read: those that are shown, and those that rows are tested by."""
        return self.schema if self.test is None else self.test.read_schema(self.schema)

    @property
    def _source(self) -> tuple[str, str]:
        return "table", self.table.name

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns that are shown, as Arrow describes them; without field ids, which mean nothing elsewhere."""
        return to_arrow_schema(self.schema, with_ids=False)

    @cached_property
    def _view(self) -> TableView:
        return view_table(self.table.metadata, self.table_schema)

    def plan(self) -> Plan:
        """Plan the files to read; manifests are read as the plan is used."""
        if self.changelog is not None:
            return plan_changelog(
                self.table,
                self.predicate,
                window=self.changelog,
                case_sensitive=self.case_sensitive,
                cache=self.options.manifest_cache,
                threads=self.options.threads,
            )
        if self.appends is not None:
            return plan_appends(
                self.table,
                self.predicate,
                from_snapshot_id=self.appends.after_snapshot_id,
                to_snapshot_id=self.appends.to_snapshot_id,
                has_overwrites=self.appends.has_overwrites,
                case_sensitive=self.case_sensitive,
                cache=self.options.manifest_cache,
                threads=self.options.threads,
            )
        return plan_scan(
            self.table,
            self.predicate,
            choice=self.choice,
            case_sensitive=self.case_sensitive,
            cache=self.options.manifest_cache,
            threads=self.options.threads,
        )

    def to_batches(self, *, batch_rows: int = DEFAULT_BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches of at most `batch_rows`, file by file in the order of the plan.

        Memory holds a few batches of a few files. Deletes are applied, and the filter exactly.
        """
        if batch_rows <= 0:
            raise InvalidRequestError(f"Cannot read batches of {batch_rows} rows: the number must be positive")
        return self._batches(batch_rows)

    def _batches(self, batch_rows: int, *, keeps_all: bool = False) -> Iterator[pa.RecordBatch]:
        left = self.limit
        if left == 0:
            return
        cache = DeleteCache(self.options.delete_cache_bytes)
        schema, view, storage = self._read_schema, self._view, self.table.storage

        parts = self._parts()
        first = list(islice(parts, self._threads))
        # Columns of one file are decoded side by side only where there are too few files for that.
        use_threads = len(first) < self._threads

        def read(task: FileScanTask) -> Iterator[pa.RecordBatch]:
            given = task.storage or storage
            return read_task(task, view, schema, given, cache=cache, batch_rows=batch_rows, use_threads=use_threads)

        batches = read_in_order(read, chain(first, parts), threads=self._threads, keeps_all=keeps_all)
        for batch in batches if self.test is None else self._passing(batches):
            if left is not None and batch.num_rows >= left:
                yield batch.slice(0, left)
                return
            yield batch
            left = None if left is None else left - batch.num_rows

    def _passing(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that pass the test, with the columns that are shown."""
        assert self.test is not None
        for batch in batches:
            passing = self.test.keep(batch, self._read_schema, self.schema)
            if passing.num_rows:
                yield passing

    def _parts(self) -> Iterator[FileScanTask]:
        """Yield the plan's tasks, large ones in parts that can be read at once."""
        return chain.from_iterable(_cut(task) for task in self._tasks())

    def _tasks(self) -> Iterator[FileScanTask]:
        """Yield the tasks of the plan that is made here, or of the catalog service's, where it wants to plan."""
        planner = self._planner
        if planner is None:
            return self.plan().iter_tasks()
        columns = None
        if self.columns is not None:
            columns = [
                nested_field.name
                for nested_field in self._read_schema.fields
                if self.table_schema.find_field(nested_field.name) is not None
            ]
        return planner(
            self.table, self.predicate, choice=self.choice, columns=columns or None, case_sensitive=self.case_sensitive
        )

    @property
    def _planner(self) -> Callable[..., Iterator[FileScanTask]] | None:
        # A service need not tell what these columns are made of: the sequence numbers and first rows of files.
        needs_lineage = any(nested_field.field_id in _LINEAGE for nested_field in self.schema.fields)
        is_plain = self.changelog is None and self.appends is None and not needs_lineage
        return self.table.planner if is_plain else None

    @property
    def _threads(self) -> int:
        return self.options.threads or default_threads()

    def to_arrow(self) -> pa.Table:
        """Return all rows as a table in memory."""
        batches = self._batches(_ROWS_AT_ONCE, keeps_all=self.limit is None)
        return pa.Table.from_batches(batches, schema=self.arrow_schema)

    def to_spark(self, spark: SparkSession | None = None) -> DataFrame:
        """Return the rows as a lazy Spark DataFrame: filters that are added to it still prune files.

        Nothing is read but metadata until the frame is used. Without a session, the active one is used, or a local
        one is made.
        """
        session = choose_session(spark)
        from frazil.spark.read import relation

        read = relation.read_on_spark
        if self.changelog is not None:
            from frazil.spark.read.changelog_frames import read_changes

            read = partial(read_changes, window=self.changelog)
        frame = read(
            session,
            relation.ReadRequest(
                self.table,
                self.snapshot,
                self.table_schema,
                self._read_schema,
                self.predicate,
                self.options.manifest_cache,
                case_sensitive=self.case_sensitive,
                appends=self.appends,
                split_bytes=self.options.split_bytes,
                open_file_cost_bytes=self.options.open_file_cost_bytes,
            ),
        )
        if self.test is not None:
            from frazil.spark.read.tested_rows import passing_rows

            frame = passing_rows(frame, self.test, self._read_schema, self.schema, is_utc=is_utc())
        return frame if self.limit is None else frame.limit(self.limit)

    def count(self) -> int:
        """Return how many rows there are.

        Files whose rows all match are counted from metadata, less what deletion vectors record; position delete
        files are read for their positions only, other files for the columns that decide which rows count.
        """
        if self.test is not None:
            needed = replace(self, columns=self.test.columns or None)
            return sum(batch.num_rows for batch in needed._batches(_ROWS_AT_ONCE))
        plan = self.plan()
        cache = DeleteCache(self.options.delete_cache_bytes)
        total = 0
        to_count: list[FileScanTask] = []
        if self._planner is not None:
            to_count = list(self._tasks())
        elif plan.predicate == TRUE:
            # Nothing to test: manifests without deletes are counted as columns, no file becomes an object.
            for batch in plan.batches():
                counts = batch.files.column("record_count").to_numpy()
                if batch.deletes is None and (counts >= 0).all():
                    total += int(np.sum(counts))
                else:
                    to_count += plan.tasks_of(batch)
        elif plan.predicate != FALSE:
            to_count = list(plan.iter_tasks())
        total += sum(map_in_order(lambda task: self._count(task, cache), to_count, threads=self._threads))
        return total if self.limit is None else min(total, self.limit)

    def _count(self, task: FileScanTask, cache: DeleteCache) -> int:
        rows = task.data_file.record_count
        storage = task.storage or self.table.storage
        if isinstance(task, ChangelogTask) and task.singled_out_by is not None:
            return count_task(task, self._view, storage, cache=cache)
        if task.residual != TRUE or rows < 0 or task.has_equality_deletes:
            return count_task(task, self._view, storage, cache=cache)
        if not task.delete_files:
            return rows
        if all(delete_file.data_file.is_deletion_vector for delete_file in task.delete_files):
            return rows - sum(delete_file.data_file.record_count for delete_file in task.delete_files)
        positions = load_positions(storage, task, cache)
        if positions is None:
            return rows
        # A position beyond the file's end deletes nothing.
        return rows - positions.below(rows).cardinality


def _cut(task: FileScanTask) -> Iterator[FileScanTask]:
    """Yield a task, or its parts where it is large; neighbours are joined up to a sensible size."""
    if task.data_file.file_size_in_bytes < 2 * _PART_BYTES or not task.data_file.split_offsets:
        yield task
        return
    start = length = 0
    for split in split_task(task, _PART_BYTES):
        length += split.length or 0
        if length >= _PART_BYTES:
            yield task.part(start, length)
            start, length = start + length, 0
    if length:
        yield task.part(start, length)


def _project(schema: Schema, columns: tuple[str, ...] | None, view: TableView, *, case_sensitive: bool) -> Schema:
    """Return the columns to show, in the order asked for; parts of one column come together at its first place."""
    if columns is None:
        columns = (ALL_COLUMNS,)
    if not columns:
        raise InvalidRequestError(
            "Cannot scan no columns", hint="Leave columns out to read all, or use count() to count rows."
        )
    ids: set[int] = set()
    order: dict[int, NestedField | None] = {}
    for name in columns:
        if name == ALL_COLUMNS and schema.find_field(name) is None:
            ids |= {column.field_id for column in schema.fields}
            order |= {column.field_id: None for column in schema.fields if column.field_id not in order}
            continue
        nested_field = schema.find_field(name, case_sensitive=case_sensitive)
        if nested_field is None:
            metadata = _metadata_column(name, view, case_sensitive=case_sensitive)
            if metadata is None:
                raise FieldNotFoundError(
                    f"Cannot find column {name!r}: the schema has no such field",
                    hint=f"The columns are: {', '.join(column.name for column in schema.fields) or '(none)'}.",
                )
            order.setdefault(metadata.field_id, metadata)
            continue
        ids.add(nested_field.field_id)
        order.setdefault((schema.ancestors_of(nested_field.field_id) or [nested_field])[-1].field_id, None)
    kept = {column.field_id: column for column in schema.project(ids).fields}
    return Schema(tuple([kept[field_id] if column is None else column for field_id, column in order.items()]))


def _metadata_column(name: str, view: TableView, *, case_sensitive: bool) -> NestedField | None:
    wanted = name if case_sensitive else name.lower()
    if wanted == PARTITION_NAME:
        return partition_column(StructType(view.partition_type.fields))
    return METADATA_COLUMNS.get(wanted)
