"""`format("iceberg")` through Spark's Python Data Source API: for places where the lazy relation cannot be.

Spark Connect has no JVM in reach, and a cluster may run a user's code where only Spark's public doors are open. There a
table is read by Python on executors, which need frazil and what it depends on:

    schema()       in a Python process beside the driver: the table is loaded, its columns are shown
    pushFilters()  from Spark 4.1 on: what the planner can use prunes manifests and files; Spark tests all filters again
    partitions()   the plan's splits, each a group of scan tasks
    read()         on an executor: one group, deletes applied, as Arrow batches in the shown form

All columns that the reader was opened with cross into the JVM, since the API prunes none: the option `columns` names
those to read, and `filter` is a condition as `scan()` takes it. The lazy relation (`relation.py`) needs neither and
is several times as fast; it is what every session with a JVM should use.

How a name or a path becomes a scan is not decided here: a source is made with a function that opens one, which travels
to the processes that run the source.
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
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INT,
    LONG,
    STRING,
    DecimalType,
    GeographyType,
    GeometryType,
    Type,
)
from frazil.storage.base import Storage

SOURCE_NAME = "iceberg"
PUSHDOWN_SETTING = "spark.sql.python.filterPushdown.enabled"
_ORDERS = {"LessThan": Op.LT, "LessThanOrEqual": Op.LT_EQ, "GreaterThan": Op.GT, "GreaterThanOrEqual": Op.GT_EQ}
_COMPARED = {INT, LONG, BOOLEAN, DATE, STRING, BINARY}
"""Types whose values Spark and the format compare alike; floating point differs in NaN, uuid and time are shown as
text."""


class OpenedScan(Protocol):
    """What a source reads: a scan of one snapshot."""

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
        """The columns that are shown."""

    @property
    def predicate(self) -> Predicate:
        """The filter."""

    def plan(self) -> Plan:
        """Plan the files to read."""


OpenScan = Callable[[Mapping[str, str]], OpenedScan]
"""Opens what the options of a read name; it is sent to other processes, so it can be pickled."""


class TableSource(ds.DataSource):
    """Reads tables. A subclass that `make_source` makes knows how to open them."""

    open_scan: OpenScan
    prunes: bool = False
    source_name: str = SOURCE_NAME

    @classmethod
    def name(cls) -> str:
        """Return the name after `format(`."""
        return cls.source_name

    def schema(self) -> st.StructType:
        """Return the columns that are read, as Spark shows them."""
        return _shown(self._open().schema)

    def reader(self, schema: st.StructType) -> ds.DataSourceReader:
        """Return what plans and reads; the table must have the schema it had when it was asked for it."""
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
    """Return a data source that opens tables with a function; with `prunes`, filters are taken from Spark."""
    attributes = {"open_scan": staticmethod(open_scan), "prunes": prunes, "source_name": name}
    return type("FrazilTables", (TableSource,), attributes)


def register_source(spark: SparkSession, open_scan: OpenScan, name: str = SOURCE_NAME) -> None:
    """Let a session read `format("iceberg")`, or another name, through the Python Data Source API.

    Filters prune files where the session has `spark.sql.python.filterPushdown.enabled` set at this moment, on Spark
    4.1 and newer; it must then stay set.
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
            f"Cannot register format({name!r}): Spark has one of that name, as where a lake was attached",
            hint="Attached lakes are read so without it. To have both, give this one another name=.",
        ) from error


def _shown(schema: Schema) -> st.StructType:
    for field in schema.fields_by_id.values():
        if isinstance(field.field_type, GeometryType | GeographyType):
            raise UnsupportedError(
                f'Cannot read column {field.name!r} of type {field.field_type} with format("{SOURCE_NAME}")',
                hint="Name the columns to read in the option columns, or use scan.to_spark() in a session with a JVM.",
            )
    return shown_schema(schema, None)


@dataclass
class TasksPartition(ds.InputPartition):
    """The work of one Spark task."""

    group: TaskGroup

    def __init__(self, group: TaskGroup) -> None:
        super().__init__(None)
        self.group = group


class TableReader(ds.DataSourceReader):
    """Reads one scan."""

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
        return RowsOfTasks(view, scan.schema, scan.table.storage, scan.table.name, snapshot_id)

    def __getstate__(self) -> dict[str, Any]:
        # An executor needs what reading needs; the history of the table stays behind.
        return {"rows": self._rows()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        rows = state["rows"]
        self._rows = lambda: rows  # type: ignore[method-assign]


class PruningReader(TableReader):
    """Reads one scan, with the filters that Spark offers."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Take what the planner can use; Spark tests every filter again."""
        schema = self._scan.table_schema
        found = all_of(*(pruning_filter(pushed, schema) for pushed in filters))
        if found != TRUE:
            self._scan = _narrowed(self._scan, found)
        return filters


def _narrowed(scan: Any, pushed: Predicate) -> OpenedScan:
    narrowed: OpenedScan = replace(scan, predicate=all_of(scan.predicate, pushed))
    return narrowed


@dataclass(frozen=True)
class RowsOfTasks:
    """What reads scan tasks on an executor."""

    view: TableView
    schema: Schema
    storage: Storage
    table: str
    snapshot_id: int | None

    def read(self, group: TaskGroup) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a group of tasks in the shown form."""
        target = to_arrow_schema(shown_schema(self.schema, None))
        cache = DeleteCache()
        with naming(self.table, self.snapshot_id):
            for task in group.tasks:
                for batch in read_task(task, self.view, self.schema, self.storage, cache=cache):
                    yield shown_batch(batch, target)


def pruning_filter(pushed: Any, schema: Schema) -> Predicate:
    """Return a predicate that holds wherever a filter of Spark's holds; TRUE where nothing can be said."""
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
    """Return a predicate for a filter that is false: unequal and not null, none of a list."""
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


def _is_compared(data_type: Type) -> bool:
    return data_type in _COMPARED or isinstance(data_type, DecimalType)


def _bound(found: Predicate, schema: Schema) -> Predicate:
    """Return a predicate, or TRUE where its values do not fit the column."""
    try:
        return found if found == TRUE else bind(schema, found)
    except FrazilError:
        return TRUE
