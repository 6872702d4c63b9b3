"""A scan as an ordinary DataFrame: lazy, pruned by metadata, read by Spark's own readers.

    scan ── groups of files ──┬─ no deletes                     relation ── columns
                              ├─ deleted positions              relation ── bit test ── columns
                              ├─ equality deletes               relation ── bit test ── anti-joins ── columns
                              └─ not readable by Spark          tasks ── Python workers ── columns
                                                                                └── union

The files of a group have the same format, shape (`file_shapes.py`) and columns with partition values. Spark reads
Parquet, and ORC without deletes if no column was ever renamed; Python reads Avro and the rest (`arrow_read.py`). With
very many deleted positions, a join replaces the bit test (`position_joins.py`).

Each relation is Spark's `HadoopFsRelation` over a file index that calls Python (`spark/java/read/PlannedFiles.java`,
`planned_files.py`): filters added later, by a user or by Spark, reach the planner and prune manifests and files while
Spark plans. Executors run Spark's vectorised reader and generated code, and none of frazil's.

Correctness depends on these rules:

- Columns are found by field id and read under names that no file gives to another field (`read_columns.py`).
- The planner provides values that all rows of a file share: identity partition values, sequence numbers, row ids.
- Deleted positions are a bit test on a row's number in its file, equality deletes are anti-joins (`equality_joins.py`).
- The scan's own filter is applied to stored values, exactly, whatever Spark does with it afterwards.

Settings that affect which rows are returned are options of the relation, not of the session: a user's
`spark.sql.files.ignoreMissingFiles=true` must not turn a lost file into fewer rows.

Two things may fail: planning, with frazil's error as the text of Spark's, and reading a file, with Spark's error naming
it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any

import pyarrow as pa
import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.datafile.raw_batch import ReadRules
from frazil.datafile.read_task import view_table
from frazil.expr.bind import bind, reference_to
from frazil.expr.predicates import TRUE, BoundReference, Predicate, field_ids_of
from frazil.loaded import LoadedTable
from frazil.scan.incremental import Appends
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.split import SplitOptions
from frazil.spark.arrow_types import from_arrow_type
from frazil.spark.jvm.engine_errors import engine_errors, naming
from frazil.spark.jvm.exact_sql import expression, is_exact, select_exactly
from frazil.spark.jvm.file_systems import hadoop_options
from frazil.spark.jvm.private_names import (
    bit_at,
    can_open,
    planned_relation,
    register_shown_forms,
    row_index_name,
    session_with,
)
from frazil.spark.own_columns import F
from frazil.spark.read.arrow_read import ArrowRead, read_through_arrow
from frazil.spark.read.equality_joins import EqualityJoins
from frazil.spark.read.file_shapes import FileShapes, default_parts, former_dates
from frazil.spark.read.planned_files import (
    Constant,
    DeleteKind,
    FileGroup,
    ScanFiles,
    column_constant,
    has_vector_constant,
    key_constant,
    partition_constant,
    spec_constant,
    tuple_constant,
    vector_constant,
)
from frazil.spark.read.position_joins import DEFAULT_BUDGET_BYTES, PositionJoin
from frazil.spark.read.predicates import SHOWN_OTHERWISE, row_filter
from frazil.spark.read.read_columns import (
    ReadColumn,
    ReadNames,
    contains_float,
    join_fields,
    narrow_column,
    read_names,
)
from frazil.spark.read.relation_stats import distinct_values, relation_stats
from frazil.spark.session import setting
from frazil.spark.types import is_shown_as_stored, show_column, shown_type, stored_type
from frazil.spec import properties
from frazil.spec import types as ft
from frazil.spec.property_kinds import read_property
from frazil.spec.reserved_columns import (
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    PARTITION_FIELD_ID,
    POS,
    ROW_ID,
    SPEC_ID,
    is_reserved_id,
)
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot
from frazil.sql.quote_names import quote
from frazil.streams.files import StreamFiles

UNION_CODEGEN = "spark.sql.codegen.wholeStage.union.enabled"
FIELD_ID_READ = "spark.sql.parquet.fieldId.read.enabled"
_NULL_STRUCTS = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"
OPTIONS = {
    FIELD_ID_READ: "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.int96AsTimestamp": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    _NULL_STRUCTS: "false",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "mergeSchema": "false",
}
"""Options of every relation, which override the session's settings."""

_VECTORS = {
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.enableNestedColumnVectorizedReader": "true",
    "spark.sql.legacy.parquet.nanosAsLong": "true",
}
"""Spark's other reader rejects some stored types, and finds columns by name."""

_SAME_IN_ORC = (ft.BooleanType, ft.IntType, ft.LongType, ft.StringType, ft.BinaryType, ft.DecimalType)
_FILLERS: dict[type[ft.Type], str] = {
    ft.UuidType: "''",
    ft.TimeType: "'00:00:00'",
    ft.TimestampNsType: "timestamp_ntz'1970-01-01'",
    ft.TimestamptzNsType: "timestamp_micros(0L)",
}


@dataclass(frozen=True)
class ReadRequest:
    """What to read: a snapshot of a table, the schema to read it with, the columns to return, and a filter.

    `output_schema` may include metadata columns. With `appends`, reads the files that snapshots added, or a batch of a
    stream, instead of all files. With `as_stored`, returns values in stored form (`types.py`), which is lossless, for
    rewrites. Split sizes default to the table's, else the session's. If the bitmaps of deleted positions exceed
    `vector_budget_bytes`, they are joined (`position_joins.py`).
    """

    loaded: LoadedTable
    snapshot: Snapshot | None
    schema: Schema
    output_schema: Schema
    predicate: Predicate = TRUE
    cache: ManifestCache | None = None
    as_stored: bool = False
    case_sensitive: bool = True
    appends: Appends | StreamFiles | None = None
    split_bytes: int | None = None
    open_file_cost_bytes: int | None = None
    vector_budget_bytes: int = DEFAULT_BUDGET_BYTES


def read_on_spark(spark: SparkSession, request: ReadRequest) -> DataFrame:
    """Return the rows of a request as a lazy DataFrame, reading only manifests."""
    snapshot_id = None if request.snapshot is None else request.snapshot.snapshot_id
    with naming(request.loaded.name, snapshot_id), engine_errors(f"read {request.loaded.name} on Spark"):
        return Reader(spark, request).frame()


class Reader:
    """Builds the DataFrame of a request."""

    def __init__(self, spark: SparkSession, request: ReadRequest) -> None:
        self.spark = spark
        # Bound once, with the case sensitivity of the scan.
        self.predicate = bind(request.schema, request.predicate, case_sensitive=request.case_sensitive)
        self.request = request
        metadata, schema = request.loaded.metadata, request.schema
        self.names: ReadNames = read_names(metadata)
        self.view = view_table(metadata, schema)
        self.scan = ScanFiles(request.loaded, request.snapshot, schema, self.predicate, request.cache, request.appends)
        self.options = {**OPTIONS, **hadoop_options(spark, request.loaded.storage, metadata.location)}
        self.scan.reaches = partial(can_open, spark, self.options if len(self.options) > len(OPTIONS) else {})
        self.scan.session = session_with(spark, self._settings())
        self.joins = EqualityJoins.of(self.scan, self.names, self.view, self.options)
        self.positions: PositionJoin | None = None
        self.streams = False
        """Whether relations are streaming ones; if they are joined, `StreamedRows` marks the result instead."""
        # A filtered column is read whole; of others, only the requested fields are read.
        tested = {_top_id(schema, one) for one in field_ids_of(self.predicate)}
        requested = {
            field.field_id: field for field in request.output_schema.fields if not is_reserved_id(field.field_id)
        }
        requested |= {field.field_id: field for field in schema.fields if field.field_id in tested}
        self.compared_only = {column.field_id for column in self.joins.columns()} - set(requested)
        self.fields = join_fields(requested, self.joins.columns(), self.names)
        self.read_schema = Schema(tuple(self.fields.values()))
        self.scan.shapes = FileShapes(
            request.loaded.storage,
            ReadRules(self.read_schema, self.view.name_mapping),
            default_parts(tuple(self.fields.values())) | self._partition_parts(),
            former_dates(metadata, tuple(self.fields.values())),
            has_mapping=self.view.name_mapping is not None,
        )

    def _partition_parts(self) -> frozenset[int]:
        """Return the fields whose partition values are used for files without them, and their enclosing structs."""
        read_ids = self.read_schema.fields_by_id.keys()
        ids = self.scan.inexact_sources() & read_ids
        around = {field.field_id for field_id in ids for field in self.request.schema.ancestors_of(field_id)}
        return frozenset(ids | (around & read_ids))

    def frame(self) -> DataFrame:
        """Return the rows of all groups of files as a DataFrame, which is empty if there are no files."""
        rows = self.rows()
        return self.spark.createDataFrame([], self.result_schema()) if rows is None else rows

    def rows(self) -> DataFrame | None:
        """Return the rows of all groups of files, or None if there are no files."""
        self._choose_positions(has_many=self.scan.vector_bytes() > self.request.vector_budget_bytes)
        self.scan.is_orc_native = self.may_read_orc()
        self.scan.is_parquet_native = self.may_read_parquet()
        groups = self.scan.groups()
        is_of_files = self.positions is None and all(
            group.is_native and group.deletes is not DeleteKind.EQUALITY for group in groups
        )
        self.streams = is_of_files and isinstance(self.request.appends, StreamFiles)
        legs = [self.leg(group) for group in groups]
        return reduce(DataFrame.unionAll, legs) if legs else None

    def _choose_positions(self, *, has_many: bool) -> None:
        """Choose how deleted positions are applied: with `has_many`, by a join instead of bitmaps in the query."""
        if has_many:
            self.positions = PositionJoin.of(self.scan, self.names, self.options)
        # If a union breaks code generation, it costs more than a test of every row.
        is_fused = setting(self.spark, UNION_CODEGEN) == "true"
        self.scan.reads_clean_with_marked = self.positions is None and not is_fused

    def result_schema(self) -> st.StructType:
        """Return the schema of the result."""
        fields = []
        for field in self.request.output_schema.fields:
            kind = stored_type(field.field_type) if self.request.as_stored else shown_type(field.field_type, self.spark)
            fields.append(st.StructField(field.name, kind, field.optional, _comment(field)))
        return st.StructType(fields)

    def may_read_parquet(self) -> bool:
        """Return whether Spark's Parquet reader distinguishes null structs from structs whose fields a file lacks.

        Spark 4.0 does not. There, Python reads tables in which a struct once had other fields, or has none now.
        """
        if setting(self.spark, _NULL_STRUCTS) is not None:
            return True
        structs = {
            key: {field.field_id for field in struct_field.field_type.fields}
            for key, struct_field in self.read_schema.fields_by_id.items()
            if isinstance(struct_field.field_type, ft.StructType)
        }
        if not structs:
            return True
        if not self.names.is_history_complete or self.view.name_mapping is not None or not all(structs.values()):
            return False
        return all(
            parts <= schema.fields_by_id.keys()
            for schema in self.request.loaded.metadata.schemas
            for key, parts in structs.items()
            if key in schema.fields_by_id
        )

    def may_read_orc(self) -> bool:
        """Return whether Spark's ORC reader, which finds columns by name, can read all requested columns."""
        if self.view.name_mapping is not None or any(
            self._shows(field) for field in (POS, DELETED, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
        ):
            return False
        schemas = self.request.loaded.metadata.schemas
        for nested_field in self.fields.values():
            former = [
                field for field in (schema.find_field(nested_field.field_id) for schema in schemas) if field is not None
            ]
            is_same = all(
                field.name == nested_field.name and field.field_type == nested_field.field_type for field in former
            )
            if (
                not is_same
                or self.names.of(nested_field) != nested_field.name
                or nested_field.name.lower().startswith("_col")
            ):
                return False
            if nested_field.initial_default is not None or not isinstance(nested_field.field_type, _SAME_IN_ORC):
                return False
        return True

    def leg(self, group: FileGroup) -> DataFrame:
        """Return the rows of one group of files."""
        if not group.is_native:
            return self._read_by_python(group)
        columns = self._columns_of(group)
        shown = {field: self._shown_text(field, columns) for field in self.request.output_schema.fields}
        is_bare = group.deletes is DeleteKind.NONE and self.predicate == TRUE and not self._needs_position(group)
        if is_bare and all(text and is_exact(text) for text in shown.values()):
            # Spark analyses the relation and the columns together.
            frame = self._relation(group, columns, list(shown.values()))
        else:
            frame = self._rows_of_leg(group, columns, shown)
        if not self.request.as_stored:
            self._register_shown_forms(frame, columns)
        return frame

    def _rows_of_leg(
        self, group: FileGroup, columns: dict[int, ReadColumn], shown: Mapping[ft.NestedField, str]
    ) -> DataFrame:
        """Return the rows of a group after deletes and the scan's filter."""
        frame = self._relation(group, columns)
        if self._needs_position(group):
            frame = frame.withColumnRenamed(self._row_index, self.names.own("pos"))
        if group.deletes is not DeleteKind.NONE:
            frame = self._without_positions(frame)
        if group.deletes is DeleteKind.EQUALITY:
            mark = self.names.own("gone") if self._shows(DELETED) else None
            frame = self.joins.without_deleted(
                self.spark, frame, lambda bound_reference: self._find(columns, bound_reference), mark
            )
        frame = self._filtered(frame, columns)
        if all(shown.values()):
            # One call to the JVM for all columns instead of seven for each.
            return select_exactly(frame, list(shown.values()))
        return frame.select(
            *(expression(text) if text else self._shown(key, group, columns) for key, text in shown.items())
        )

    def _register_shown_forms(self, frame: DataFrame, columns: dict[int, ReadColumn]) -> None:
        """Let filters on shown forms of columns prune by their stored values."""
        forms = {}
        for index, field in enumerate(self.request.output_schema.fields):
            column = columns.get(field.field_id)
            if column is not None and column.is_plain and isinstance(field.field_type, SHOWN_OTHERWISE):
                forms[index] = json.dumps(["shown", ["col", column.name]])
        if forms:
            register_shown_forms(frame, forms)

    def _without_positions(self, frame: DataFrame) -> DataFrame:
        """Return the rows that are not deleted by position, or all if the request includes the deleted flag."""
        if self.positions is not None:
            mark = self.names.own("deleted") if self._shows(DELETED) else None
            return self.positions.without_deleted(self.spark, frame, mark)
        return frame if self._shows(DELETED) else frame.filter(~self._is_deleted())

    def _columns_of(self, group: FileGroup) -> dict[int, ReadColumn]:
        """Return the columns to read from files of a group, by field id."""
        parts, schema = self.read_schema.fields_by_id, self.request.schema
        from_partition: dict[int, str] = {}
        within: dict[int, tuple[str, ...]] = {}
        for field_id in sorted(group.identity_ids):
            above = [field.field_id for field in schema.ancestors_of(field_id) if field.field_id in parts]
            if field_id in parts or above:
                named = field_id in parts and group.shape.has_ids
                from_partition[field_id] = (
                    self.names.of(parts[field_id]) if named else self.names.own(f"told_{field_id}")
                )
                within |= {one: (*within.get(one, ()), from_partition[field_id]) for one in above}
        is_joined = group.deletes is DeleteKind.EQUALITY
        return {
            field_id: ReadColumn(field, self.names, group.shape, from_partition, within, self.request.as_stored)
            for field_id, field in self.fields.items()
            if is_joined or field_id not in self.compared_only
        }

    def _filtered(self, frame: DataFrame, columns: dict[int, ReadColumn]) -> DataFrame:
        """Return the rows that match the scan's own filter."""
        added: dict[str, Column] = {}

        def find(reference: BoundReference) -> str:
            top = _top_id(self.request.schema, reference.field_id)
            column = columns[top]
            name = column.name if column.is_plain else self.names.own(f"tested_{top}")
            if not column.is_plain:
                added[name] = column.stored()
            return ".".join(quote(one) for one in (name, *reference.path[1:]))

        condition = row_filter(self.predicate, find)
        if condition is None:
            return frame
        return (frame.withColumns(added) if added else frame).filter(expression(condition))

    def _read_by_python(self, group: FileGroup) -> DataFrame:
        """Return the rows of a group that Spark's readers cannot read."""
        fields = [
            field for field in self.request.output_schema.fields if not isinstance(field.field_type, ft.UnknownType)
        ]
        if not fields:
            fields = [POS]
        loaded, snapshot = self.request.loaded, self.request.snapshot
        read = ArrowRead(
            self.view,
            Schema(tuple(fields)),
            tuple(self.names.own(f"column_{field.field_id}") for field in fields),
            loaded.storage,
            loaded.name,
            None if snapshot is None else snapshot.snapshot_id,
            self.request.as_stored,
        )
        tasks = [task for batch in self.scan.batches(group, None) for task in batch.plan.tasks_of(batch.batch)]
        frame = read_through_arrow(self.spark, read, tasks, self._split_options())
        selected = []
        for field in self.request.output_schema.fields:
            if isinstance(field.field_type, ft.UnknownType):
                value = F.lit(None)
            else:
                value = F.col(quote(self.names.own(f"column_{field.field_id}")))
                if not self.request.as_stored:
                    value = show_column(value, field.field_type, self.spark)
            selected.append(value.alias(field.name, metadata=_comment(field)))
        return frame.select(*selected)

    def _relation(
        self, group: FileGroup, columns: dict[int, ReadColumn], select: Sequence[str] | None = None
    ) -> DataFrame:
        # Fields that are not read may be null even if they are required.
        optional_fields = {
            key: replace(field, required=False) for key, field in self.request.schema.fields_by_id.items()
        }
        parts = {**optional_fields, **self.read_schema.fields_by_id}
        from_partition: Mapping[int, str] = next((column.from_partition for column in columns.values()), {})
        constants = [partition_constant(name, parts[field_id]) for field_id, name in from_partition.items()]
        required = {name for field_id, name in from_partition.items() if parts[field_id].required}
        data = [column.struct_field() for column in columns.values() if column.is_read]
        if group.shape.has_ids:
            data += self._lineage_fields()
        if self._needs_position(group):
            # The reader first looks for a column of that name in the file, so it must be optional.
            data.append(st.StructField(self._row_index, st.LongType()))
        constants += self._own_constants(group)
        paths = dict(path for column in columns.values() for path in column.paths())
        named = {column.name: column.field for column in columns.values() if column.is_read}
        named |= {name: parts[field_id] for field_id, name in from_partition.items()}
        stats = relation_stats(self.scan, group, named, self._distinct)
        return planned_relation(
            self.spark,
            self.scan.planner(group, constants, paths),
            key=self._key(group, data, constants),
            root=self.request.loaded.metadata.location,
            data=st.StructType(data),
            shows_ids=self.request.as_stored,
            constants=st.StructType(
                [
                    st.StructField(constant.name, from_arrow_type(constant.arrow_type), constant.name not in required)
                    for constant in constants
                ]
            ),
            table=self.request.loaded.name,
            size_bytes=stats.size_bytes,
            rows=stats.rows,
            columns=stats.columns_text,
            file_format=group.file_format.value,
            options=self.options if group.shape.has_ids else {**self.options, FIELD_ID_READ: "false"},
            session=self._session_for(group, columns),
            select=select,
            streams=self.streams,
        )

    def _session_for(self, group: FileGroup, columns: dict[int, ReadColumn]) -> Any:
        """Return the Java session with settings for a group; floating point must not be compared with row group bounds.

        Columns of files without ids are read under their own names, so pushed filters would apply (`read_columns.py`).
        """
        if group.shape.has_ids or not any(contains_float(column.field.field_type) for column in columns.values()):
            return self.scan.session
        return session_with(self.spark, {**self._settings(), "spark.sql.parquet.filterPushdown": "false"})

    def _split_options(self) -> SplitOptions:
        """Return how files that Python reads are split and packed."""
        request, table = self.request, self.request.loaded.metadata.properties
        target, cost = request.split_bytes, request.open_file_cost_bytes
        return SplitOptions(
            read_property(table, properties.SPLIT_SIZE) if target is None else target,
            read_property(table, properties.SPLIT_OPEN_FILE_COST) if cost is None else cost,
            read_property(table, properties.SPLIT_LOOKBACK),
        )

    def _settings(self) -> dict[str, str]:
        """Return settings that Spark does not accept as options: split sizes, and vectorised reading."""
        request, table = self.request, self.request.loaded.metadata.properties
        options = self._split_options()
        settings = {}
        if request.split_bytes is not None or properties.SPLIT_SIZE.name in table:
            settings["spark.sql.files.maxPartitionBytes"] = str(options.target_bytes)
        if request.open_file_cost_bytes is not None or properties.SPLIT_OPEN_FILE_COST.name in table:
            settings["spark.sql.files.openCostInBytes"] = str(options.open_file_cost_bytes)
        return {**settings, **_VECTORS}

    def _own_constants(self, group: FileGroup) -> list[Constant]:
        names = self.names
        is_joined = group.deletes is DeleteKind.EQUALITY
        constants = []
        has_deletes = group.deletes is not DeleteKind.NONE
        if has_deletes and self.positions is None:
            constants.append(vector_constant(names.own("deleted")))
        if has_deletes and self.positions is not None:
            constants.append(column_constant(names.own("file_path"), "file_path", pa.string()))
            constants.append(key_constant(names.own("position_part"), self.positions.keys))
            constants.append(has_vector_constant(names.own("has_vector")))
        if self._shows(FILE):
            constants.append(column_constant(names.own("file"), "file_path", pa.string()))
        if self._shows(SPEC_ID):
            constants.append(spec_constant(names.own("spec")))
        constants += [
            tuple_constant(names.own(f"partition_{field.field_id}"), field) for field in self._shown_partition.fields
        ]
        if self._shows(ROW_ID) or self._shows(LAST_UPDATED_SEQUENCE_NUMBER):
            constants.append(column_constant(names.own("first_row_id"), "first_row_id", pa.int64()))
        if self._shows(LAST_UPDATED_SEQUENCE_NUMBER) or is_joined or (has_deletes and self.positions is not None):
            constants.append(column_constant(names.own("sequence"), "sequence_number", pa.int64()))
        if is_joined:
            constants.append(key_constant(names.own("part"), self.joins.keys))
        return constants

    def _lineage_fields(self) -> list[st.StructField]:
        """Return the columns in which a file may store its own row ids and sequence numbers."""
        fields = []
        for field in (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER):
            if self._shows(field):
                name = self.names.own(field.name)
                fields.append(st.StructField(name, st.LongType(), True, {"parquet.field.id": field.field_id}))
        return fields

    def _key(self, group: FileGroup, data: list[st.StructField], constants: list[Constant]) -> str:
        snapshot = self.request.snapshot
        columns = ",".join(one.name for one in data) + "|" + ",".join(constant.name for constant in constants)
        return (
            f"{self.request.loaded.metadata.table_uuid} {self.request.loaded.name} "
            f"{'none' if snapshot is None else (snapshot.snapshot_id, snapshot.manifest_list)} "
            f"{self.request.appends} {group.label} "
            f"{self.request.schema.schema_id} {self.predicate!r} {self._settings()} {columns}"
        )

    @cached_property
    def _distinct(self) -> dict[int, int]:
        return distinct_values(self.request.loaded.metadata, self.scan.snapshot_id)

    def _shows(self, nested_field: ft.NestedField) -> bool:
        return any(field.field_id == nested_field.field_id for field in self.request.output_schema.fields)

    @property
    def _shown_partition(self) -> ft.StructType:
        for field in self.request.output_schema.fields:
            if field.field_id == PARTITION_FIELD_ID and isinstance(field.field_type, ft.StructType):
                return field.field_type
        return ft.StructType(())

    @cached_property
    def _row_index(self) -> str:
        return row_index_name(self.spark)

    def _needs_position(self, group: FileGroup) -> bool:
        return group.deletes is not DeleteKind.NONE or self._shows(POS) or self._shows(ROW_ID)

    @property
    def _position(self) -> Column:
        return F.col(quote(self.names.own("pos")))

    def _is_deleted(self) -> Column:
        """Return a column for whether a row's position is deleted."""
        if self.positions is not None:
            return F.col(quote(self.names.own("deleted")))
        return bit_at(self.spark, quote(self.names.own("deleted")), quote(self.names.own("pos")))

    def _find(self, columns: dict[int, ReadColumn], reference: BoundReference) -> Column:
        """Return a field that deletes compare, found by its id, since names may have changed."""
        current = reference_to(self.read_schema, reference.field_id)
        column = columns[_top_id(self.read_schema, reference.field_id)].stored()
        for name in current.path[1:]:
            column = column[name]
        return column

    def _shown_text(self, field: ft.NestedField, columns: dict[int, ReadColumn]) -> str:
        """Return the SQL of a column that needs no conversion, or an empty text."""
        column = columns.get(field.field_id)
        if column is None or not column.is_plain or column.field.field_type != field.field_type:
            return ""
        if field.doc is not None or not (self.request.as_stored or is_shown_as_stored(field.field_type)):
            return ""
        return f"{quote(column.name)} AS {quote(field.name)}"

    def _shown(self, field: ft.NestedField, group: FileGroup, columns: dict[int, ReadColumn]) -> Column:
        return self._value(field, group, columns).alias(field.name, metadata=_comment(field))

    def _value(self, nested_field: ft.NestedField, group: FileGroup, columns: dict[int, ReadColumn]) -> Column:
        names = self.names
        if nested_field.field_id == FILE.field_id:
            return F.col(quote(names.own("file")))
        if nested_field.field_id == POS.field_id:
            return self._position
        if nested_field.field_id == SPEC_ID.field_id:
            return F.col(quote(names.own("spec")))
        if nested_field.field_id == DELETED.field_id:
            if group.deletes is DeleteKind.NONE:
                return F.lit(False)
            is_gone = self._is_deleted()
            return is_gone | F.col(quote(names.own("gone"))) if group.deletes is DeleteKind.EQUALITY else is_gone
        if nested_field.field_id == ROW_ID.field_id:
            inherited = F.col(quote(names.own("first_row_id"))) + self._position
            return self._lineage(ROW_ID, inherited, group)
        if nested_field.field_id == LAST_UPDATED_SEQUENCE_NUMBER.field_id:
            inherited = F.when(F.col(quote(names.own("first_row_id"))).isNotNull(), F.col(quote(names.own("sequence"))))
            return self._lineage(LAST_UPDATED_SEQUENCE_NUMBER, inherited, group)
        if nested_field.field_id == PARTITION_FIELD_ID:
            parts = self._shown_partition.fields
            if not parts:
                return F.lit(None).cast(st.StructType())
            stored = F.struct(
                *[F.col(quote(names.own(f"partition_{field.field_id}"))).alias(field.name) for field in parts]
            )
        elif isinstance(nested_field.field_type, ft.UnknownType):
            return F.lit(None)
        else:
            column = columns[nested_field.field_id]
            stored = narrow_column(column.stored(), column.field.field_type, nested_field.field_type)
        if self.request.as_stored:
            return stored
        value = show_column(stored, nested_field.field_type, self.spark)
        filler = _FILLERS.get(type(nested_field.field_type)) if nested_field.required else None
        # The functions of shown forms are nullable; this makes the column non-nullable.
        return (
            value
            if filler is None
            else F.coalesce(value, expression(filler).cast(shown_type(nested_field.field_type, self.spark)))
        )

    def _lineage(self, field: ft.NestedField, inherited: Column, group: FileGroup) -> Column:
        """Return the row's stored value if there is one, else the inherited one; null if the file has no row ids."""
        if not group.shape.has_ids:
            return inherited
        has_ids = F.col(quote(self.names.own("first_row_id"))).isNotNull()
        return F.when(has_ids, F.coalesce(F.col(quote(self.names.own(field.name))), inherited))


def _comment(field: ft.NestedField) -> dict[str, str]:
    return {} if field.doc is None else {"comment": field.doc}


def _top_id(schema: Schema, field_id: int) -> int:
    """Return the id of the top-level column of a field."""
    above = schema.ancestors_of(field_id)
    return above[-1].field_id if above else field_id
