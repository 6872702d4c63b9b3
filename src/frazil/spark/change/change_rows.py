"""A row-level change on Spark: `change_rows/row_change.py`, with Spark finding the rows and writing the files.

Rows are removed by the positions that were found; the condition is not evaluated a second time, when it or the source
might give another result. Remaining rows are read and written in stored form, which is lossless.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.change_rows.row_change import RowLevelChange
from frazil.codec.deletion_vector import DeletionVector
from frazil.commit.action import PlannedChange
from frazil.commit.conflicts import ReadSet
from frazil.commit.new_snapshot import Target
from frazil.commit.row_delta import Command
from frazil.datafile.read_task import view_table
from frazil.datafile.write_target import write_target
from frazil.errors import EngineError
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.tasks import FileScanTask
from frazil.spark.change.resolved import Resolved
from frazil.spark.change.resolved import bind as bind_columns
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spark.jvm.jvm_write import in_own_session
from frazil.spark.own_columns import F
from frazil.spark.read.relation import ReadRequest
from frazil.spark.read.row_positions import FILE_COLUMN, POS_COLUMN, RowPositions, read_positions
from frazil.spark.read.target_rows import PATH, FileChoice, plan_tasks, read_chosen
from frazil.spark.types import is_shown_as_stored, show_column, shown_schema, stored_type
from frazil.spark.write.distribute import write_settings
from frazil.spark.write.write_files import write_stored
from frazil.spec.data_file import DataFile
from frazil.spec.reserved_columns import (
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    POS,
    ROW_ID,
    ROW_LINEAGE_COLUMNS,
    SPEC_ID,
    partition_column,
)
from frazil.spec.schema import Schema
from frazil.spec.types import NestedField, UnknownType
from frazil.sql.quote_names import quote

ROW_ID_COLUMN = "__frazil_row_id"
_STORED = "__frazil_stored_"
_ROWS_A_FILE = 1_000_000
"""The most new rows per task: small changes write few files, and large ones run in parallel."""


class RowChange(RowLevelChange):
    """One row-level change of one branch of a table, from the snapshot that it reads."""

    def __init__(
        self,
        spark: SparkSession,
        loaded: LoadedTable,
        command: Command,
        target: Target,
        cache: ManifestCache | None = None,
    ) -> None:
        super().__init__(loaded, command, target, cache)
        self.spark = spark
        self.choice = FileChoice()
        self._read: Predicate = TRUE
        self._offered: list[NestedField] = []
        self._columns: Any = None
        self.copied = 0
        """The number of unchanged rows that were rewritten."""

    # Reading

    def _request(
        self, more: Sequence[NestedField], predicate: Predicate = TRUE, split_bytes: int | None = None
    ) -> ReadRequest:
        return ReadRequest(
            self.loaded,
            self.parent,
            self.schema,
            Schema((*self.schema.fields, *more)),
            predicate,
            self.cache,
            as_stored=True,
            split_bytes=split_bytes,
            open_file_cost_bytes=split_bytes,
        )

    def offer(self, expressions: Iterable[Any], other_names: Collection[str] = ()) -> None:
        """Make the metadata columns that expressions may name available, unless another column has the name.

        An unused column costs nothing, so it suffices that the name occurs in the text.
        """
        texts = list(expressions)
        self._columns = next((resolved.columns for resolved in texts if isinstance(resolved, Resolved)), None)
        text = " ".join(map(str, texts)).lower()
        taken = {field.name.lower() for field in self.schema.fields} | {name.lower() for name in other_names}
        partition = partition_column(view_table(self.loaded.metadata, self.schema).partition_type)
        metadata_columns = [FILE, POS, SPEC_ID, partition, *(ROW_LINEAGE_COLUMNS if self.has_lineage else ())]
        self._offered = [column for column in metadata_columns if column.name in text and column.name not in taken]

    def rows(self, predicate: Predicate = TRUE, only: Mapping[str, DeletionVector] | None = None) -> DataFrame:
        """Return the table's rows in shown form with their positions, and stored forms that differ as further columns.

        `predicate` filters exactly; `only` restricts the files, with positions to leave out of each.
        """
        more = [FILE, POS, *([ROW_ID] if self.has_lineage else [])]
        more += [
            PATH if nested_field == FILE else nested_field
            for nested_field in self._offered
            if nested_field not in more or nested_field == FILE
        ]
        self._read = predicate
        if only is not None:
            self.choice.only = only
        stored = None if self.parent is None else read_chosen(self.spark, self._request(more, predicate), self.choice)
        if stored is None:
            return self.no_rows()
        columns: list[Column] = []
        for field in self.schema.fields:
            column = F.col(quote(field.name))
            if is_shown_as_stored(field.field_type):
                columns.append(column)
            else:
                columns.append(show_column(column, field.field_type, self.spark).alias(field.name))
                columns.append(column.alias(f"{_STORED}{field.field_id}"))
        columns += [F.col(FILE.name).alias(FILE_COLUMN), F.col(POS.name).alias(POS_COLUMN)]
        if self.has_lineage:
            columns.append(F.col(ROW_ID.name).alias(ROW_ID_COLUMN))
        for field in self._offered:
            column = F.col(PATH.name if field == FILE else field.name)
            columns.append(show_column(column, field.field_type, self.spark).alias(field.name))
        return self._bound(stored.select(*columns))

    def _bound(self, frame: DataFrame) -> DataFrame:
        """Return the frame with columns to which resolved expressions can refer."""
        return frame if self._columns is None else bind_columns(frame, self._columns)

    def no_rows(self) -> DataFrame:
        """Return an empty frame with the columns of `rows`, to resolve names against."""
        return self._bound(self.spark.createDataFrame([], self._row_schema()))

    def _row_schema(self) -> st.StructType:
        fields = []
        for shown_field, field in zip(shown_schema(self.schema, self.spark).fields, self.schema.fields, strict=True):
            fields.append(st.StructField(shown_field.name, shown_field.dataType, True))
            if not is_shown_as_stored(field.field_type):
                fields.append(st.StructField(f"{_STORED}{field.field_id}", stored_type(field.field_type)))
        fields += [st.StructField(FILE_COLUMN, st.IntegerType()), st.StructField(POS_COLUMN, st.LongType())]
        if self.has_lineage:
            fields.append(st.StructField(ROW_ID_COLUMN, st.LongType()))
        fields += shown_schema(Schema(tuple(self._offered)), self.spark).fields
        return st.StructType(fields)

    def stored_column(self, field: NestedField, qualifier: str | None = None) -> Column:
        """Return a column of `rows` in its stored form."""
        name = field.name if is_shown_as_stored(field.field_type) else f"{_STORED}{field.field_id}"
        return F.col(quote(name) if qualifier is None else f"{quote(qualifier)}.{quote(name)}")

    def plan_files(self, predicate: Predicate) -> dict[str, FileScanTask]:
        """Return the files that can hold rows of a filter, by path."""
        return {} if self.parent is None else plan_tasks(self._request(()), predicate)

    def read_places(self, kept: DataFrame) -> RowPositions:
        """Return the positions of kept rows; they have the columns of `row_positions.py`."""
        with engine_errors(f"find rows of {self.loaded.name}"):
            return read_positions(kept)

    def by_path(self, places: RowPositions) -> dict[str, DeletionVector]:
        """Return the positions by the path of their file."""
        return {self.choice.path_of(number): vector for number, vector in places.positions.items()}

    # Committing

    @property
    def read_set(self) -> ReadSet:
        """What this change has read, for the commit to check against concurrent changes."""
        requested = self.choice.requested
        return self.read_set_of(self._read if requested is None else requested)

    def finish(
        self,
        positions: Mapping[str, DeletionVector],
        new_rows: DataFrame | None = None,
        *,
        new_count: int = 0,
        whole: Sequence[FileScanTask] = (),
        added: Sequence[DataFile] = (),
        is_rewrite: bool = False,
    ) -> PlannedChange | None:
        """Write the files of the change and return the action to commit; None if nothing changes.

        `positions` are rows to remove, `whole` files to remove with all their rows, `new_rows` rows to add, in stored
        form, `new_count` of them, and `added` files that are already written. With `is_rewrite`, files are rewritten
        whatever the table's mode.
        """
        read = self.read_set
        tasks = self._tasks_of(positions)
        if new_rows is not None:
            # A join returns many partitions, each of which would become a file.
            new_rows = new_rows.coalesce(1 + new_count // _ROWS_A_FILE)
        settled = self.settle(positions, tasks, whole)
        if self.is_merge_on_read and not is_rewrite:
            files = [*added, *self._write([] if new_rows is None else [new_rows], new_count)]
            return self.plan_deltas(read, settled, tasks, files)
        frames = [] if new_rows is None else [new_rows]
        rest = self._rest(settled.kept, tasks)
        if rest is not None:
            frames.insert(0, rest)
        written = self._write(frames, None if settled.staying is None else new_count + settled.staying)
        self.copied = sum(file.record_count for file in written) - new_count
        return self.plan_rewrite(read, settled, tasks, [*added, *written])

    def _tasks_of(self, positions: Mapping[str, DeletionVector]) -> dict[str, FileScanTask]:
        if not positions:
            return {}
        predicate = self.choice.requested
        tasks = self.plan_files(TRUE if predicate is None else predicate)
        return {path: tasks[path] for path in positions}

    def _rest(self, kept: Mapping[str, DeletionVector], tasks: Mapping[str, FileScanTask]) -> DataFrame | None:
        """Return the remaining rows of the files to rewrite."""
        if not kept:
            return None
        lineage = ROW_LINEAGE_COLUMNS if self.has_lineage else ()
        # One task per file: without a shuffle, each file is replaced by one file.
        largest = max(tasks[path].data_file.file_size_in_bytes for path in kept)
        rest = read_chosen(self.spark, self._request((*lineage, FILE, POS), split_bytes=largest), FileChoice(kept))
        return None if rest is None else rest.drop(FILE.name, POS.name, *self._unknown_names())

    def _write(self, frames: Sequence[DataFrame], count: int | None) -> list[DataFile]:
        """Write the rows of the frames, in stored form, as one union.

        `count` is the expected number of rows. A nondeterministic source could give other rows when an executor
        repeats its work; a change whose positions and rows disagree is rejected.
        """
        if not frames:
            return []
        table = write_target(self.loaded)
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame)
        isolated = in_own_session(whole, write_settings(table))
        files = write_stored(isolated, table, distribution=self.rules.distribution)
        written = sum(file.record_count for file in files)
        if count is not None and written != count:
            self.loaded.storage.delete_many([file.file_path for file in files])
            raise EngineError(
                f"Cannot change {self.loaded.name}: Spark wrote {written} rows after it had found {count}",
                hint="Use a source that returns the same rows each time it runs.",
            )
        return files

    def _unknown_names(self) -> list[str]:
        return [field.name for field in self.schema.fields if isinstance(field.field_type, UnknownType)]

    def lineage_columns(self, row_id: Column) -> list[Column]:
        """Return the row lineage columns of written rows: their ids, and null for what the commit assigns."""
        if not self.has_lineage:
            return []
        return [
            row_id.cast("bigint").alias(ROW_ID.name),
            F.lit(None).cast("bigint").alias(LAST_UPDATED_SEQUENCE_NUMBER.name),
        ]
