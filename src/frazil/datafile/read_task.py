"""Read the rows of one scan task. Specification: "Scan Planning", "Row Lineage", "Reserved Field IDs".

    open        the file, and its deletes
    resolve     each projected, tested or compared column, by field id, and the union of their stored columns
    batches     of the file, with their positions; row groups that statistics rule out are skipped
    mask        rows deleted by position, rows that fail the residual filter, rows deleted by value
    project     the requested columns, and metadata columns computed from the task and the positions

`TableView` is the part of a table that reading needs. It has no storage and no catalog, and can be sent to executors
with the tasks.

If `_deleted` is among the columns, deleted rows are included, and the column marks them. A task of a change feed
(`scan/changelog.py`) with selecting deletes yields only the rows that those deletes remove.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.codec.name_mapping_json import decode_name_mapping
from frazil.datafile.apply_deletes import NO_DELETES, TaskDeletes, load_deletes
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.open_file import reading
from frazil.datafile.parquet_pages import add_span, rows_of
from frazil.datafile.project import Projection, needed_leaves
from frazil.datafile.raw_batch import BATCH_BYTES, FileReader, Range, RawBatch, ReadRules, RowSelection
from frazil.datafile.read_file import DEFAULT_BATCH_ROWS, open_reader, resolve
from frazil.datafile.read_parquet import ParquetReader
from frazil.datafile.row_groups import row_group_test
from frazil.datafile.value_arrays import repeat_value
from frazil.errors import InvalidManifestError
from frazil.expr.columns.masks import row_mask
from frazil.expr.predicates import FALSE, TRUE, field_ids_of
from frazil.scan.changelog import ChangelogTask
from frazil.scan.tasks import FileScanTask
from frazil.spec.column_projection import ResolvedColumn
from frazil.spec.data_file import DataFile
from frazil.spec.name_mapping import NameMapping
from frazil.spec.partitioning import PartitionSpec, unified_partition_type
from frazil.spec.properties import DEFAULT_NAME_MAPPING
from frazil.spec.reserved_columns import (
    CHANGE_ORDINAL,
    CHANGE_TYPE,
    COMMIT_SNAPSHOT_ID,
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    PARTITION_FIELD_ID,
    POS,
    ROW_ID,
    ROW_LINEAGE_COLUMNS,
    SPEC_ID,
    is_reserved_id,
)
from frazil.spec.schema import Schema
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import NestedField, StructType
from frazil.storage.base import Storage

HEADING = "Scan Planning"
Mask = npt.NDArray[np.bool_]
Keep: TypeAlias = "Mask | pa.BooleanArray"
"""The rows to keep: an Arrow mask of a comparison, or a numpy mask if deletes were applied."""
Positions: TypeAlias = npt.NDArray[Any]
_NO_COLUMNS = Schema(())
_FEW_ROWS = 1000
"""The most selected rows of a row group for which single pages are read."""


@dataclass(frozen=True)
class TableView:
    """The part of a table that is needed to read its files.

    `schema` is the schema that rows are read with. `schemas` are all of the table's, the current one first, then newest
    first; columns of equality deletes are looked up in them.
    """

    schema: Schema
    schemas: tuple[Schema, ...]
    specs: tuple[PartitionSpec, ...]
    partition_type: StructType
    name_mapping: NameMapping | None = None

    @cached_property
    def specs_by_id(self) -> dict[int, PartitionSpec]:
        """The partition specs by id."""
        return {spec.spec_id: spec for spec in self.specs}

    @property
    def rules(self) -> ReadRules:
        """The rules for files without field ids."""
        return ReadRules(self.schema, self.name_mapping)

    def spec_of(self, file: DataFile) -> PartitionSpec:
        """Return the partition spec of a file."""
        spec = self.specs_by_id.get(file.spec_id)
        if spec is None:
            raise InvalidManifestError(
                f"Cannot read {file.file_path}: the table has no partition spec {file.spec_id}",
                path=file.file_path,
                heading="Data File Fields",
            )
        return spec


def view_table(metadata: TableMetadata, schema: Schema | None = None) -> TableView:
    """Return the view of a table for reading, by default with the current schema."""
    current = metadata.current_schema
    older = sorted(
        (schema for schema in metadata.schemas if schema.schema_id != current.schema_id),
        key=lambda schema: schema.schema_id,
        reverse=True,
    )
    text = metadata.properties.get(DEFAULT_NAME_MAPPING.name)
    return TableView(
        current if schema is None else schema,
        (current, *older),
        metadata.partition_specs,
        unified_partition_type(metadata.partition_specs, current, other_schemas=metadata.schemas),
        None if text is None else decode_name_mapping(text),
    )


def read_task(
    task: FileScanTask,
    view: TableView,
    projection: Schema,
    storage: Storage,
    *,
    cache: DeleteCache | None = None,
    batch_rows: int = DEFAULT_BATCH_ROWS,
    use_threads: bool = False,
    only: Positions | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield a task's rows as non-empty batches of the projection, in the order of the file.

    `projection` must not be empty; it has columns of the view's schema and metadata columns, in any order. `cache` is
    shared by the tasks of a scan. A batch has at most `batch_rows` rows. `only` are ascending positions of rows that an
    earlier read of the task has selected: those are read regardless of the filter and the deletes.
    """
    reader = _TaskReader(task, view, projection, storage, cache, batch_rows, use_threads=use_threads)
    reader.only = only
    yield from reader.batches()


def count_task(
    task: FileScanTask,
    view: TableView,
    storage: Storage,
    *,
    cache: DeleteCache | None = None,
    batch_rows: int = DEFAULT_BATCH_ROWS,
) -> int:
    """Return the number of rows of a task, reading only the columns of its filter and deletes."""
    reader = _TaskReader(task, view, _NO_COLUMNS, storage, cache, batch_rows, use_threads=False)
    return sum(reader.counts())


class _TaskReader:
    def __init__(
        self,
        task: FileScanTask,
        view: TableView,
        projection: Schema,
        storage: Storage,
        cache: DeleteCache | None,
        batch_rows: int,
        *,
        use_threads: bool,
    ) -> None:
        self.task = task
        self.view = view
        self.file = task.data_file
        self.projection = projection
        self.storage = storage
        self.cache = DeleteCache() if cache is None else cache
        self.batch_rows = batch_rows
        self.use_threads = use_threads
        self.schema = to_arrow_schema(projection, with_ids=False)
        self.includes_deleted = projection.find_field(DELETED.field_id) is not None
        self._projected = self._tested = Projection((), ())
        self._compared: list[Projection] = []
        self._selecting: TaskDeletes | None = None
        self.only: Positions | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the projected rows of the task."""
        if self.only is not None:
            yield from self._selected(self.only)
            return
        for raw, keep, deleted in self._masked():
            with reading("data file", self.file.file_path, HEADING):
                if keep is None:
                    batch = self._project(raw.columns, _Positions(raw, None), deleted)
                else:
                    kept_deleted = None if deleted is None else deleted[_bytes_of(keep)]
                    batch = self._project(_Filtered(raw.columns, keep), _Positions(raw, keep), kept_deleted)
            yield batch

    def counts(self) -> Iterator[int]:
        """Yield the number of rows of each batch."""
        for raw, keep, _ in self._masked():
            yield raw.length if keep is None else _count(keep)

    def _masked(self) -> Iterator[tuple[RawBatch, Keep | None, Mask | None]]:
        """Yield the file's batches with the rows to keep, or None for all, and the deleted rows, or None for none."""
        if self.task.residual == FALSE:
            return
        path = self.file.file_path
        deletes = load_deletes(self.storage, self.task, self.view.schemas, self.view.rules, self.cache)
        if isinstance(self.task, ChangelogTask) and self.task.singled_out_by is not None:
            other = replace(self.task, delete_files=self.task.singled_out_by)
            self._selecting = load_deletes(self.storage, other, self.view.schemas, self.view.rules, self.cache)
        with (
            closing(open_reader(self.storage, self.file, self.view.rules)) as reader,
            reading("data file", path, HEADING),
        ):
            leaves, test = self._prepare(reader, deletes)
            for raw in reader.batches(
                leaves,
                within=self._range(),
                batch_rows=self._max_batch_rows(),
                may_match=test,
                use_threads=self.use_threads,
            ):
                keep, deleted = self._masks(raw, deletes)
                if keep is None or _count(keep):
                    yield raw, keep, deleted

    def _selected(self, only: Positions) -> Iterator[pa.RecordBatch]:
        """Yield the rows at known positions."""
        self.task = replace(self.task, residual=TRUE)
        with (
            closing(open_reader(self.storage, self.file, self.view.rules)) as reader,
            reading("data file", self.file.file_path, HEADING),
        ):
            leaves, _ = self._prepare(reader, NO_DELETES, prefers_dictionaries=True)
            test = _holds_some(reader, only, leaves) if isinstance(reader, ParquetReader) else None
            for raw in reader.batches(
                leaves, batch_rows=self._max_batch_rows(), may_match=test, use_threads=self.use_threads
            ):
                first, last = np.searchsorted(only, [raw.start, raw.start + raw.length])
                if last > first:
                    positions = only[first:last].astype(np.int64)
                    yield self._project(_Taken(raw.columns, positions - raw.start), _KnownPositions(positions), None)
                if last == len(only):
                    return

    def _max_batch_rows(self) -> int:
        """Return the most rows of a batch: few if a default or a partition value is large."""
        row_bytes = sum(projection.constant_bytes for projection in (self._projected, self._tested, *self._compared))
        return max(1, min(self.batch_rows, BATCH_BYTES // max(row_bytes, 1)))

    def _range(self) -> Range | None:
        task = self.task
        if task.length is None:
            return None
        return Range(task.start, task.length, is_last=task.start + task.length >= self.file.file_size_in_bytes)

    def _prepare(
        self, reader: FileReader, deletes: TaskDeletes, *, prefers_dictionaries: bool = False
    ) -> tuple[set[int], Any]:
        """Resolve all columns; return the stored columns to read, and the test of row groups.

        Tested columns are read as dictionaries if possible; with `prefers_dictionaries` all columns are, which is
        faster if few rows are taken.
        """
        path = self.file.file_path
        values = self._partition_values()

        def find(columns_schema: Schema) -> tuple[ResolvedColumn, ...]:
            return resolve(columns_schema, reader.schema, path, partition_values=values, within=self.view.schema)

        own = tuple(field for field in self.projection.fields if not is_reserved_id(field.field_id))
        stored_lineage = tuple(
            # A table may have a column of the same name, so identify it by id.
            replace(lineage_column, name=f"{lineage_column.name}#{lineage_column.field_id}")
            for lineage_column in ROW_LINEAGE_COLUMNS
            if self.projection.find_field(lineage_column.field_id) is not None
            and reader.schema.find(lineage_column.field_id) is not None
        )
        projection = find(Schema((*own, *stored_lineage)))
        tested = find(self.view.schema.project(field_ids_of(self.task.residual)))
        selecting = () if self._selecting is None else self._selecting.equality
        compared = [find(equality_deletes.schema) for equality_deletes in (*deletes.equality, *selecting)]
        preferred = (*projection, *tested) if prefers_dictionaries else tested
        reader.prefer_dictionaries(needed_leaves(preferred, reader.schema.fields))
        leaves: set[int] = set()
        for columns in (projection, tested, *compared):
            leaves |= needed_leaves(columns, reader.schema.fields)
        fields = reader.pruned(leaves).fields
        self._projected = Projection(projection, fields)
        self._tested = Projection(tested, fields, keeps_dictionaries=True)
        self._compared = [Projection(columns, fields) for columns in compared]
        test = None
        if isinstance(reader, ParquetReader):
            test = row_group_test(self.task.residual, tested, reader)
        return leaves, test

    def _partition_values(self) -> dict[int, Any]:
        """Return the values of the file's identity partition fields, by source id."""
        spec = self.view.spec_of(self.file)
        return {
            field.source_id: value
            for field, value in zip(spec.fields, self.file.partition, strict=True)
            if field.transform.is_identity
        }

    def _masks(self, raw: RawBatch, deletes: TaskDeletes) -> tuple[Keep | None, Mask | None]:
        keep: Keep | None = None
        deleted: Mask | None = None
        if deletes.positions is not None:
            deleted = _any(deletes.positions.mask(raw.start, raw.length))
        if self.task.residual != TRUE:
            rows = self._tested.batch(raw.columns, raw.length)
            passes = row_mask(self.task.residual, rows)
            matches = passes.true_count
            if matches == 0:
                return np.zeros(raw.length, np.bool_), deleted
            # A mask that keeps all rows is None.
            keep = None if matches == raw.length else passes
        count = len(deletes.equality)
        deleted = self._or_equal(raw, deletes, self._compared[:count], deleted)
        if self._selecting is not None:
            positions = self._selecting.positions
            selected = None if positions is None else _any(positions.mask(raw.start, raw.length))
            selected = self._or_equal(raw, self._selecting, self._compared[count:], selected)
            if selected is None:
                selected = np.zeros(raw.length, np.bool_)
            keep = selected if keep is None else _bytes_of(keep) & selected
        if deleted is not None and not self.includes_deleted:
            keep = ~deleted if keep is None else _bytes_of(keep) & ~deleted
        return (None if isinstance(keep, np.ndarray) and keep.all() else keep), deleted

    def _or_equal(
        self, raw: RawBatch, deletes: TaskDeletes, compared: list[Projection], deleted: Mask | None
    ) -> Mask | None:
        """Return which rows are deleted already or by value."""
        for equality_deletes, projection in zip(deletes.equality, compared, strict=True):
            matches = _any(equality_deletes.mask(projection.batch(raw.columns, raw.length)))
            if matches is not None:
                deleted = matches if deleted is None else deleted | matches
        return deleted

    def _project(self, columns: Any, positions: _Positions | _KnownPositions, deleted: Mask | None) -> pa.RecordBatch:
        """Return the columns of the projection for rows of the file."""
        arrays = self._projected.arrays(columns, positions.count)
        by_id = {column.field_id: array for column, array in zip(self._projected.columns, arrays, strict=True)}
        projected = [
            self._metadata(field, target, positions, by_id, deleted)
            if is_reserved_id(field.field_id)
            else by_id[field.field_id]
            for field, target in zip(self.projection.fields, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(projected, schema=self.schema)

    def _metadata(
        self,
        field: NestedField,
        target: pa.Field,
        positions: _Positions | _KnownPositions,
        by_id: dict[int, pa.Array],
        deleted: Mask | None,
    ) -> pa.Array:
        """Return a metadata column."""
        field_id, length = field.field_id, positions.count
        if field_id == POS.field_id:
            return pa.array(positions.positions)
        if field_id == DELETED.field_id:
            return pa.array(np.zeros(length, np.bool_) if deleted is None else deleted)
        if field_id == ROW_ID.field_id:
            return self._row_ids(positions.positions, by_id.get(field_id))
        if field_id == LAST_UPDATED_SEQUENCE_NUMBER.field_id:
            return self._updated(length, by_id.get(field_id))
        value: Any = None
        if field_id == FILE.field_id:
            value = self.file.file_path
        elif field_id == SPEC_ID.field_id:
            value = self.file.spec_id
        elif field_id == PARTITION_FIELD_ID:
            value = self._partition(field)
        elif isinstance(self.task, ChangelogTask):
            value = {
                CHANGE_TYPE.field_id: self.task.change_type,
                CHANGE_ORDINAL.field_id: self.task.change_ordinal,
                COMMIT_SNAPSHOT_ID.field_id: self.task.commit_snapshot_id,
            }.get(field_id)
        return repeat_value(value, field.field_type, target.type, length)

    def _row_ids(self, positions: npt.NDArray[np.int64], stored: pa.Array | None) -> pa.Array:
        first = self.file.first_row_id
        if first is None:
            return pa.nulls(len(positions), pa.int64())
        inherited = pa.array(positions + first)
        return inherited if stored is None else pc.coalesce(stored, inherited)

    def _updated(self, length: int, stored: pa.Array | None) -> pa.Array:
        if self.file.first_row_id is None:
            return pa.nulls(length, pa.int64())
        inherited = pa.scalar(self.task.data_sequence_number, pa.int64())
        return pa.repeat(inherited, length) if stored is None else pc.fill_null(stored, inherited)

    def _partition(self, nested_field: NestedField) -> dict[str, Any] | None:
        """Return the file's partition in the union type of all specs, or None if the table never had partitions."""
        spec = self.view.spec_of(self.file)
        values = dict(zip((field.field_id for field in spec.fields), self.file.partition, strict=True))
        assert isinstance(nested_field.field_type, StructType)
        return {field.name: values.get(field.field_id) for field in nested_field.field_type.fields} or None


def _holds_some(reader: ParquetReader, only: Positions, leaves: set[int]) -> Callable[[int], RowSelection]:
    """Return the test whether a row group holds some of the rows at positions, or which of its pages do."""
    starts = np.cumsum([0, *(reader.rows_of(group) for group in range(reader.group_count))])
    cuts = np.searchsorted(only, starts)

    def test(group: int) -> RowSelection:
        in_group = only[cuts[group] : cuts[group + 1]]
        pages = reader.pages(group, leaves) if 0 < len(in_group) < _FEW_ROWS else None
        if pages is None:
            return len(in_group) > 0
        firsts = max((page.firsts for page in pages.values()), key=len)
        spans: list[tuple[int, int]] = []
        for index in np.unique(np.searchsorted(firsts, in_group - starts[group], "right")).tolist():
            spans = add_span(spans, firsts[index - 1], firsts[index])
        return spans if 2 * rows_of(spans) < firsts[-1] else True

    return test


def _any(mask: Mask) -> Mask | None:
    """Return a mask, or None if it selects no rows."""
    return mask if mask.any() else None


def _bytes_of(keep: Keep) -> Mask:
    """Return the rows to keep as a numpy mask."""
    return keep if isinstance(keep, np.ndarray) else keep.to_numpy(zero_copy_only=False)


def _count(keep: Keep) -> int:
    """Return the number of rows to keep."""
    return int(np.count_nonzero(keep)) if isinstance(keep, np.ndarray) else int(keep.true_count)


class _Positions:
    """The positions of rows in their file, computed lazily, since few scans need them."""

    def __init__(self, raw: RawBatch, keep: Keep | None) -> None:
        self._raw = raw
        self._keep = keep
        self.count = raw.length if keep is None else _count(keep)

    @cached_property
    def positions(self) -> npt.NDArray[np.int64]:
        """The position of each row."""
        if self._keep is None:
            return np.arange(self._raw.start, self._raw.start + self._raw.length, dtype=np.int64)
        return np.flatnonzero(_bytes_of(self._keep)) + self._raw.start


class _KnownPositions:
    """Known positions of rows in their file."""

    def __init__(self, positions: npt.NDArray[np.int64]) -> None:
        self.positions = positions
        self.count = len(positions)


class _Taken:
    """A batch from which rows are taken by index, column by column, which is faster than a filter for few rows."""

    def __init__(self, columns: pa.RecordBatch | None, indexes: npt.NDArray[np.int64]) -> None:
        self._columns = columns
        self._indexes = pa.array(indexes)

    def column(self, index: int) -> pa.Array:
        """Return the taken rows of a column."""
        assert self._columns is not None
        return self._columns.column(index).take(self._indexes)


class _Filtered:
    """A batch that is filtered column by column, on access."""

    def __init__(self, columns: pa.RecordBatch | None, keep: Keep) -> None:
        self._columns = columns
        self._keep = pa.array(keep) if isinstance(keep, np.ndarray) else keep

    def column(self, index: int) -> pa.Array:
        """Return the filtered rows of a column."""
        assert self._columns is not None
        return self._columns.column(index).filter(self._keep)
