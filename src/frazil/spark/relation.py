"""A scan as an ordinary DataFrame: lazy, pruned by metadata, read by Spark's own readers.

    scan ── groups of files ──┬─ Parquet, no deletes            relation ── columns
                              ├─ Parquet, deleted positions     relation ── bit test ── columns
                              └─ Parquet, equality deletes      relation ── bit test ── anti-joins ── columns
                                                                                └── union

Each relation is a `HadoopFsRelation` of Spark over a file index that asks Python (`jvm.py`, `planned_files.py`):
filters added later, by a user or by Spark, reach the planner and prune manifests and files while Spark plans.
Executors run Spark's vectorised reader and generated code; nothing of frazil is there.

What makes a row right:
- Columns are found by field id and read under names that no file gives to another field (`read_columns.py`).
- Values all rows of a file share are given by the planner: identity partition values, sequence numbers, row ids.
- Deleted positions are a bit test on `_metadata.row_index`, equality deletes are anti-joins (`equality_joins.py`).
- The scan's own filter is applied to stored values, exactly, whatever Spark does with it afterwards.

Settings that decide which rows come back are options of the relation, not of the session: a user's
`spark.sql.files.ignoreMissingFiles=true` must not turn a lost file into fewer rows.

What may fail: planning, with frazil's error as the text of Spark's; reading a file, with Spark's error naming it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_type

from frazil.datafile.read_task import view_table
from frazil.errors import UnsupportedError
from frazil.expr.bind import bind
from frazil.expr.predicates import TRUE, BoundReference, Predicate, field_ids_of
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spark.equality_joins import EqualityJoins
from frazil.spark.jvm import planned_relation
from frazil.spark.planned_files import (
    Constant,
    DeleteKind,
    FileGroup,
    ScanFiles,
    column_constant,
    key_constant,
    partition_constant,
    spec_constant,
    tuple_constant,
    vector_constant,
)
from frazil.spark.predicates import row_filter
from frazil.spark.read_columns import ReadColumn, ReadNames, quoted, read_names
from frazil.spark.types import show_column, shown_type, stored_type
from frazil.spec.data_file import FileFormat
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
from frazil.spec.types import NestedField, StructType, UnknownType

OPTIONS = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "mergeSchema": "false",
}
"""Settings of every relation; a session's own do not reach it."""


@dataclass(frozen=True)
class ReadRequest:
    """What to read: a snapshot of a table, the schema to read it with, the columns to show, and a filter.

    `shown` may hold metadata columns. With `as_stored`, values come in their stored form (`types.py`), which loses
    nothing: rewrites of rows read that way.
    """

    loaded: LoadedTable
    snapshot: Snapshot | None
    schema: Schema
    shown: Schema
    predicate: Predicate = TRUE
    cache: ManifestCache | None = None
    as_stored: bool = False
    case_sensitive: bool = True


def read_on_spark(spark: SparkSession, request: ReadRequest) -> DataFrame:
    """Return the rows of a request as a lazy DataFrame; manifests are read, data files are not."""
    reader = _Reader(spark, request)
    legs = [reader.leg(group) for group in reader.scan.groups()]
    if not legs:
        return spark.createDataFrame([], reader.result_schema())
    return reduce(DataFrame.unionAll, legs)


class _Reader:
    def __init__(self, spark: SparkSession, request: ReadRequest) -> None:
        self.spark = spark
        # Bound once: names in the filter are looked up as the scan says, and not again.
        self.predicate = bind(request.schema, request.predicate, case_sensitive=request.case_sensitive)
        self.request = request
        metadata, schema = request.loaded.metadata, request.schema
        self.names: ReadNames = read_names(metadata)
        view = view_table(metadata, schema)
        self.scan = ScanFiles(request.loaded, request.snapshot, schema, self.predicate, request.cache)
        self.joins = EqualityJoins.of(self.scan, self.names, view, OPTIONS)
        # A column that is tested is read whole; of one that is only shown, the shown parts.
        tested = {_top_id(schema, one) for one in self._filter_ids()}
        compared = self.joins.columns()
        wanted = {part.field_id: part for part in request.shown.fields if not is_reserved_id(part.field_id)}
        wanted |= {
            part.field_id: part for part in schema.fields if part.field_id in tested or part.field_id in compared
        }
        self.columns = {field_id: ReadColumn(part, self.names) for field_id, part in wanted.items()}
        self.scan.paths = dict(path for column in self.columns.values() for path in column.paths())
        # Columns that were dropped since a delete compared them.
        self.dropped = {
            field_id: ReadColumn(part, self.names) for field_id, part in compared.items() if field_id not in wanted
        }

    def _filter_ids(self) -> set[int]:
        return field_ids_of(self.predicate)

    def result_schema(self) -> st.StructType:
        """Return the schema of the result."""
        fields = []
        for part in self.request.shown.fields:
            kind = stored_type(part.field_type) if self.request.as_stored else shown_type(part.field_type, self.spark)
            fields.append(st.StructField(part.name, kind, part.optional, _comment(part)))
        return st.StructType(fields)

    def leg(self, group: FileGroup) -> DataFrame:
        """Return the rows of one group of files."""
        if group.file_format is not FileFormat.PARQUET:
            raise UnsupportedError(
                f"Cannot read {group.file_format.value} files on Spark",
                hint="Read with scan.to_arrow(), or rewrite the table's files as Parquet.",
            )
        frame = self._relation(group)
        if group.deletes is not DeleteKind.NONE or self._shows(POS) or self._shows(ROW_ID):
            # Named at once: a join hides Spark's metadata columns.
            frame = frame.select("*", F.col("_metadata.row_index").alias(self.names.own("pos")))
        if group.deletes is not DeleteKind.NONE and not self._shows(DELETED):
            frame = frame.filter(~self._is_deleted())
        kept = row_filter(self.predicate, self._find)
        if group.deletes is DeleteKind.EQUALITY:
            frame = self.joins.without_deleted(self.spark, frame, self._find)
        if kept is not None:
            frame = frame.filter(kept)
        return frame.select(*[self._shown(part, group) for part in self.request.shown.fields])

    def _relation(self, group: FileGroup) -> DataFrame:
        constants: list[Constant] = []
        data: list[st.StructField] = []
        for field_id, column in self.columns.items():
            kind = column.field.field_type
            if isinstance(kind, UnknownType):
                continue
            if field_id in group.identity_ids:
                constants.append(partition_constant(column.name, field_id, kind))
            else:
                data.append(column.struct_field())
        data += self._lineage_fields()
        constants += self._own_constants(group)
        if group.deletes is DeleteKind.EQUALITY:
            data += [column.struct_field() for column in self.dropped.values()]
        return planned_relation(
            self.spark,
            self.scan.planner(group, constants),
            key=self._key(group, data, constants),
            root=self.request.loaded.metadata.location,
            data=st.StructType(data),
            constants=st.StructType(
                [
                    st.StructField(one.name, from_arrow_type(one.arrow_type, prefer_timestamp_ntz=True))
                    for one in constants
                ]
            ),
            size_bytes=self._size_bytes(),
            file_format=group.file_format.value,
            options=OPTIONS,
        )

    def _own_constants(self, group: FileGroup) -> list[Constant]:
        names = self.names
        is_joined = group.deletes is DeleteKind.EQUALITY
        found = []
        if group.deletes is not DeleteKind.NONE:
            found.append(vector_constant(names.own("deleted")))
        if self._shows(FILE):
            found.append(column_constant(names.own("file"), "file_path", pa.string()))
        if self._shows(SPEC_ID):
            found.append(spec_constant(names.own("spec")))
        if self._shows_partition is not None:
            found.append(tuple_constant(names.own("partition"), self._shows_partition))
        if self._shows(ROW_ID) or self._shows(LAST_UPDATED_SEQUENCE_NUMBER):
            found.append(column_constant(names.own("first_row_id"), "first_row_id", pa.int64()))
        if self._shows(LAST_UPDATED_SEQUENCE_NUMBER) or is_joined:
            found.append(column_constant(names.own("sequence"), "sequence_number", pa.int64()))
        if is_joined:
            found.append(key_constant(names.own("part"), self.joins.keys))
        return found

    def _lineage_fields(self) -> list[st.StructField]:
        """Return the columns in which a file may store row ids and sequence numbers of its own."""
        found = []
        for part in (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER):
            if self._shows(part):
                name = self.names.own(part.name)
                found.append(st.StructField(name, st.LongType(), True, {"parquet.field.id": part.field_id}))
        return found

    def _key(self, group: FileGroup, data: list[st.StructField], constants: list[Constant]) -> str:
        snapshot = self.request.snapshot
        columns = ",".join(one.name for one in data) + "|" + ",".join(one.name for one in constants)
        return (
            f"{self.request.loaded.metadata.table_uuid} {self.request.loaded.name} "
            f"{'none' if snapshot is None else (snapshot.snapshot_id, snapshot.manifest_list)} {group.label} "
            f"{self.request.schema.schema_id} {self.predicate!r} {columns}"
        )

    def _size_bytes(self) -> int:
        """Return the bytes of the snapshot's files, from its summary where that has them."""
        snapshot = self.request.snapshot
        total = None if snapshot is None or snapshot.summary is None else snapshot.summary.get("total-files-size")
        if total is not None and total.isdigit():
            return max(int(total), 1)
        return max(sum(one.data_counts.kept_bytes for one in [self.scan.plan()]), 1)

    def _shows(self, part: NestedField) -> bool:
        return any(one.field_id == part.field_id for one in self.request.shown.fields)

    @property
    def _shows_partition(self) -> StructType | None:
        for one in self.request.shown.fields:
            if one.field_id == PARTITION_FIELD_ID and isinstance(one.field_type, StructType):
                return one.field_type
        return None

    @property
    def _position(self) -> Column:
        return F.col(quoted(self.names.own("pos")))

    def _is_deleted(self) -> Column:
        """Return whether a row's position is among its file's deleted ones."""
        at = self._position
        byte = F.substring(F.col(quoted(self.names.own("deleted"))), _divided(at, 7).cast("int") + F.lit(1), F.lit(1))
        return F.getbit(F.ascii(byte.cast("string")).cast("bigint"), (at % F.lit(7)).cast("int")) != F.lit(0)

    def _find(self, reference: BoundReference) -> Column:
        known = self.request.schema.find_field(reference.field_id)
        if known is not None:
            column = self.columns[_top_id(self.request.schema, reference.field_id)].stored()
        else:
            column = next(one for one in self.dropped.values() if reference.path[0] == one.field.name).stored()
        for name in reference.path[1:]:
            column = column[name]
        return column

    def _shown(self, part: NestedField, group: FileGroup) -> Column:
        return self._value(part, group).alias(part.name, metadata=_comment(part))

    def _value(self, part: NestedField, group: FileGroup) -> Column:
        names = self.names
        if part.field_id == FILE.field_id:
            return F.col(quoted(names.own("file")))
        if part.field_id == POS.field_id:
            return self._position
        if part.field_id == SPEC_ID.field_id:
            return F.col(quoted(names.own("spec")))
        if part.field_id == DELETED.field_id:
            return self._is_deleted() if group.deletes is not DeleteKind.NONE else F.lit(False)
        if part.field_id == ROW_ID.field_id:
            first = F.col(quoted(names.own("first_row_id")))
            return F.coalesce(F.col(quoted(names.own(ROW_ID.name))), first + self._position)
        if part.field_id == LAST_UPDATED_SEQUENCE_NUMBER.field_id:
            inherited = F.when(
                F.col(quoted(names.own("first_row_id"))).isNotNull(), F.col(quoted(names.own("sequence")))
            )
            return F.coalesce(F.col(quoted(names.own(LAST_UPDATED_SEQUENCE_NUMBER.name))), inherited)
        if part.field_id == PARTITION_FIELD_ID:
            stored = F.col(quoted(names.own("partition")))
        elif isinstance(part.field_type, UnknownType):
            return F.lit(None)
        else:
            stored = self.columns[part.field_id].stored()
        return stored if self.request.as_stored else show_column(stored, part.field_type, self.spark)


def _comment(part: NestedField) -> dict[str, str]:
    return {} if part.doc is None else {"comment": part.doc}


def _top_id(schema: Schema, field_id: int) -> int:
    """Return the top-level column that a field is, or is within."""
    above = schema.ancestors_of(field_id)
    return above[-1].field_id if above else field_id


def _divided(column: Column, by: int) -> Column:
    return F.call_function("div", column, F.lit(by))
