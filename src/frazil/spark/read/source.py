"""`format("iceberg")` through Spark's Python Data Source API, where the lazy relation is not available.

Spark Connect gives no access to the JVM, and a cluster may restrict users to Spark's public APIs. There Python reads a
table on executors, which need frazil and its dependencies:

    schema()       in a Python process beside the driver: the table is loaded and its columns returned
    pushFilters()  from Spark 4.1 on: filters prune manifests and files; Spark tests all of them again
    partitions()   the plan's splits, each a group of scan tasks
    read()         on an executor: one group, deletes applied, as Arrow batches in the shown form

All columns of the reader are transferred to the JVM, since the API does not prune columns: the option `columns` names
the columns to read, and `filter` is a condition as for `scan()`. The lazy relation (`relation.py`) needs neither and is
several times as fast; every session with a JVM should use it.

A source is created with a function that opens the scan for a name or path; the function is pickled to the processes
that run the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa
import pyspark.sql.datasource as ds
import pyspark.sql.types as st
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.read_task import TableView, read_task, view_table
from frazil.errors import FrazilError, InvalidRequestError, UnsupportedError
from frazil.evaluate.row_test import RowTest
from frazil.expr.bind import bind
from frazil.expr.predicates import (
    TRUE,
    Op,
    Predicate,
    all_of,
    is_in,
    is_null,
    leaf,
    not_equal,
    not_in,
    not_null,
    starts_with,
)
from frazil.loaded import LoadedTable
from frazil.scan.plan import Plan
from frazil.scan.tasks import TaskGroup
from frazil.spark.arrow_types import shown_batch, to_arrow_schema
from frazil.spark.jvm.engine_errors import naming
from frazil.spark.jvm.ship_package import ship_package
from frazil.spark.types import shown_schema
from frazil.spec import types as ft
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot
from frazil.storage.base import Storage

SOURCE_NAME = "iceberg"
PUSHDOWN_SETTING = "spark.sql.python.filterPushdown.enabled"
_ORDERS = {"LessThan": Op.LT, "LessThanOrEqual": Op.LT_EQ, "GreaterThan": Op.GT, "GreaterThanOrEqual": Op.GT_EQ}
_COMPARED = {ft.INT, ft.LONG, ft.BOOLEAN, ft.DATE, ft.STRING, ft.BINARY}
"""Types that Spark and the format compare alike. Floating point differs in NaN; uuid and time are shown as text."""


class OpenedScan(Protocol):
    """A scan of one snapshot, as a source reads it."""

    @property
    def table(self) -> LoadedTable:
        """The table."""

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot."""

    @property
    def table_schema(self) -> Schema:
        """The schema the snapshot is read with."""

    @property
    def schema(self) -> Schema:
        """The columns to return."""

    @property
    def predicate(self) -> Predicate:
        """The filter."""

    @property
    def test(self) -> RowTest | None:
        """What rows are tested for beside the filter."""

    def plan(self) -> Plan:
        """Plan the files to read."""


OpenScan = Callable[[Mapping[str, str]], OpenedScan]
"""Opens the scan that the options of a read name; it must be picklable."""


class TableSource(ds.DataSource):
    """A data source of tables; `make_source` creates subclasses with a function to open them."""

    open_scan: OpenScan
    prunes: bool = False
    source_name: str = SOURCE_NAME

    @classmethod
    def name(cls) -> str:
        """Return the name after `format(`."""
        return cls.source_name

    def schema(self) -> st.StructType:
        """Return the columns of the scan in shown form."""
        return _shown(self._open().schema)

    def reader(self, schema: st.StructType) -> ds.DataSourceReader:
        """Return the reader; raise if the table's schema has changed since `schema` was called."""
        scan = self._open()
        if _shown(scan.schema).jsonValue() != schema.jsonValue():
            raise InvalidRequestError(
                f"Cannot read {scan.table.name} with the schema {schema.simpleString()}: "
                f"the table's is {_shown(scan.schema).simpleString()}",
                hint="Leave schema() out, and cast the columns of the result.",
            )
        return (PruningReader if self.prunes else TableReader)(scan)

    def _open(self) -> OpenedScan:
        return type(self).open_scan(dict(self.options))


def make_source(open_scan: OpenScan, *, prunes: bool, name: str = SOURCE_NAME) -> type[TableSource]:
    """Return a data source class that opens tables with a function; with `prunes`, it accepts Spark's filters."""
    attributes = {"open_scan": staticmethod(open_scan), "prunes": prunes, "source_name": name}
    return type("FrazilTables", (TableSource,), attributes)


def register_source(spark: SparkSession, open_scan: OpenScan, name: str = SOURCE_NAME) -> None:
    """Register `format("iceberg")`, or another name, with a session through the Python Data Source API.

    Filters prune files on Spark 4.1 and newer if `spark.sql.python.filterPushdown.enabled` is set at this moment; it
    must then stay set.
    """
    ship_package(spark)
    is_known = hasattr(ds.DataSourceReader, "pushFilters")
    is_on = spark.conf.get(PUSHDOWN_SETTING, "false") == "true"
    try:
        spark.dataSource.register(make_source(open_scan, prunes=is_known and is_on, name=name))
    except AnalysisException as error:
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
        raise InvalidRequestError(
            f"Cannot register format({name!r}): Spark already has that format, for example from an attached lake",
            hint="Attached lakes can be read without it. To have both, pass another name=.",
        ) from error


def _shown(schema: Schema) -> st.StructType:
    for field in schema.fields_by_id.values():
        if isinstance(field.field_type, ft.GeometryType | ft.GeographyType):
            raise UnsupportedError(
                f'Cannot read column {field.name!r} of type {field.field_type} with format("{SOURCE_NAME}")',
                hint="Name the columns to read in the option columns, or use scan.to_spark() in a session with a JVM.",
            )
    return shown_schema(schema, None)


@dataclass
class TasksPartition(ds.InputPartition):
    """The scan tasks of one Spark task."""

    group: TaskGroup

    def __init__(self, group: TaskGroup) -> None:
        super().__init__(None)
        self.group = group


class TableReader(ds.DataSourceReader):
    """A reader of one scan."""

    def __init__(self, scan: OpenedScan) -> None:
        self._scan = scan

    def partitions(self) -> list[ds.InputPartition]:
        """Return the plan's splits."""
        snapshot = self._scan.snapshot
        with naming(self._scan.table.name, None if snapshot is None else snapshot.snapshot_id):
            return [TasksPartition(group) for group in self._scan.plan().splits()]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one split."""
        if isinstance(partition, TasksPartition):
            yield from self._rows().read(partition.group)

    def _rows(self) -> RowsOfTasks:
        scan = self._scan
        view = view_table(scan.table.metadata, scan.table_schema)
        snapshot = scan.snapshot
        snapshot_id = None if snapshot is None else snapshot.snapshot_id
        return RowsOfTasks(view, scan.schema, scan.table.storage, scan.table.name, snapshot_id, scan.test)

    def __getstate__(self) -> dict[str, Any]:
        # Executors do not need the history of the table.
        return {"rows": self._rows()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        rows = state["rows"]
        self._rows = lambda: rows  # type: ignore[method-assign]


class PruningReader(TableReader):
    """A reader of one scan that prunes by Spark's filters."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Narrow the scan by the supported filters, and return all of them for Spark to test again."""
        schema = self._scan.table_schema
        predicate = all_of(*(pruning_filter(pushed, schema) for pushed in filters))
        if predicate != TRUE:
            self._scan = _narrowed(self._scan, predicate)
        return filters


def _narrowed(scan: Any, pushed: Predicate) -> OpenedScan:
    narrowed: OpenedScan = replace(scan, predicate=all_of(scan.predicate, pushed))
    return narrowed


@dataclass(frozen=True)
class RowsOfTasks:
    """Reads scan tasks on an executor."""

    view: TableView
    schema: Schema
    storage: Storage
    table: str
    snapshot_id: int | None
    test: RowTest | None = None

    def read(self, group: TaskGroup) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a group of tasks in shown form."""
        target = to_arrow_schema(shown_schema(self.schema, None))
        cache = DeleteCache()
        read = self.schema if self.test is None else self.test.read_schema(self.schema)
        with naming(self.table, self.snapshot_id):
            for task in group.tasks:
                for batch in read_task(task, self.view, read, self.storage, cache=cache):
                    passing = batch if self.test is None else self.test.keep(batch, read, self.schema)
                    yield shown_batch(passing, target)


def pruning_filter(pushed: Any, schema: Schema) -> Predicate:
    """Return a predicate that a Spark filter implies; TRUE if the filter is not supported."""
    name = type(pushed).__name__
    if name == "Not":
        return _negated(pushed.child, schema)
    attribute = getattr(pushed, "attribute", None)
    if attribute is None:
        return TRUE
    column = ".".join(attribute)
    field = schema.find_field(column)
    if field is None or field.field_type.is_nested:
        return TRUE
    if name in ("IsNull", "IsNotNull"):
        return is_null(column) if name == "IsNull" else not_null(column)
    if not _is_compared(field.field_type):
        return TRUE
    return _bound(_comparison(name, column, pushed.value), schema)


def _comparison(name: str, column: str, value: Any) -> Predicate:
    if name == "In":
        values = [item for item in value if item is not None]
        return is_in(column, values) if values else TRUE
    if value is None:
        return is_null(column) if name == "EqualNullSafe" else TRUE
    if name in ("EqualTo", "EqualNullSafe"):
        return leaf(Op.EQ, column, value)
    if name in _ORDERS:
        return leaf(_ORDERS[name], column, value)
    if name == "StringStartsWith":
        return starts_with(column, value)
    return TRUE


def _negated(pushed: Any, schema: Schema) -> Predicate:
    """Return a predicate that the negation of a Spark filter implies; TRUE if it is not supported."""
    name = type(pushed).__name__
    column = ".".join(getattr(pushed, "attribute", ()))
    field = schema.find_field(column) if column else None
    if field is None or field.field_type.is_nested:
        return TRUE
    if name == "IsNull":
        return not_null(column)
    if not _is_compared(field.field_type):
        return TRUE
    if name == "EqualTo" and pushed.value is not None:
        return _bound(all_of(not_null(column), not_equal(column, pushed.value)), schema)
    if name == "In" and None not in pushed.value:
        return _bound(all_of(not_null(column), not_in(column, list(pushed.value))), schema)
    return TRUE


def _is_compared(data_type: ft.Type) -> bool:
    return data_type in _COMPARED or isinstance(data_type, ft.DecimalType)


def _bound(predicate: Predicate, schema: Schema) -> Predicate:
    """Bind a predicate; return TRUE if its values do not fit the column."""
    try:
        return predicate if predicate == TRUE else bind(schema, predicate)
    except FrazilError:
        return TRUE
