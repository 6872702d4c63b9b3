"""Queries in this process, by DataFusion: `lake.sql("select …")`.

`sql/local_query.py` finds the tables and views that a query names (of views, `local_views.py`). Each table becomes a
scan, pinned to the snapshot that is current when the query is made (or to the state it asks for), and is given to
DataFusion as a dataset (`scan_dataset.py`): columns and filters that the plan pushes down prune manifests, files and
rows as for every scan. Nothing is read before the answer is, and then batch by batch.

Settings are those under which DataFusion is nearest to Spark: names as they are written, nulls before all values, UTC,
the functions of its Spark set. What still differs is in docs/local-sql.md.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from frazil.catalog.names import format_name
from frazil.columns.arrow_filter import Meaning
from frazil.errors import FrazilError, InvalidRequestError, NotFoundError, TableNotFoundError, UnsupportedError
from frazil.expr.parse import python_value
from frazil.inspect.tables import read_metadata_table
from frazil.lake.decimal_literals import choose_decimals
from frazil.lake.lake import Lake
from frazil.lake.local_views import ViewQuery, itself, read_view
from frazil.lake.open_catalog import TRUST_NONE
from frazil.lake.query_result import QueryResult
from frazil.lake.scan import Scan
from frazil.lake.scan_dataset import ScanDataset, ScanScanner
from frazil.lake.sql_session import CHANGES, FullName, Relation, SqlSession, version_state
from frazil.lake.view import View
from frazil.loaded import LoadedTable
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.sql.local_query import TableReference, other_name, quoted_name, rewrite_query
from frazil.storage.read_only import untrusted

_SETTINGS = {
    "datafusion.sql_parser.enable_ident_normalization": "false",
    "datafusion.sql_parser.default_null_ordering": "nulls_min",
    "datafusion.sql_parser.map_string_types_to_utf8view": "false",
    "datafusion.execution.time_zone": "UTC",
    "datafusion.catalog.information_schema": "false",
}
_OWN_SCHEMA = "public"
_NO_LIMIT = 2**63 - 1
_COMPUTES = re.compile(
    r"(?! *(?:TableScan|SubqueryAlias|Limit):)"
    r"(?! *(?:Projection|Filter): (?!.*(?: IN \(|\bCASE\b|\b(?!get_field\()[a-z_]\w*\()))"
)
"""Lines of a plan that do more than choose columns and rows, by comparisons that know one zero."""
MEMORY_BYTES = 2 << 30
"""What sorts, groups and joins of a query hold at most; sorts and groups go to temporary files beyond it."""


def query(lake: Lake, text: str, parameters: Mapping[str, object]) -> QueryResult:
    """Return the answer of a query over tables of a lake; it is read when it is asked for."""
    tables = _Tables(lake)
    rewritten = rewrite_query(text, tables.name_of)
    values = {name: _parameter(name, value) for name, value in parameters.items()}
    others = {name: other for name, value in values.items() if (other := _other_number(value)) is not None}
    named = set(rewritten.parameters.values())
    unused = sorted(values.keys() - named)
    if unused:
        raise InvalidRequestError(f"Cannot use the parameter {unused[0]!r}: the query does not name it")
    missing = sorted(named - values.keys())
    if missing:
        raise InvalidRequestError(
            f"Cannot run the query: the parameter :{missing[0]} has no value",
            hint=f'Give it: lake.sql("…", {missing[0]}=…).',
        )
    tables.check_times(values)

    def run() -> Any:
        def plan(decimals: frozenset[int]) -> Any:
            made = {other_name(name): others[name] for start, name in rewritten.parameters.items() if start in decimals}
            return tables.run(rewrite_query(text, tables.name_of, decimals).text, values | made)

        starts = {start for start, name in rewritten.parameters.items() if name in others}
        frame, decimals = choose_decimals(plan, rewritten.points | starts)
        may_have_null = "null" in text.lower() or any(not value.is_valid for value in values.values())
        if not tables.read_as_planned(frame, may_have_null=may_have_null):
            tables.pushes_filters = False
            frame = plan(decimals)
            tables.has_one_zero = True
        return frame

    return QueryResult(text, run, tables.failures)


def _parameter(name: str, value: object) -> pa.Scalar:
    if isinstance(value, pa.Scalar):
        return value
    if not isinstance(value, np.datetime64) or isinstance(value.item(), datetime.date):
        value = python_value(name, value)  # times in nanoseconds are Arrow's to read
    try:
        if isinstance(value, datetime.datetime) and getattr(value, "nanosecond", 0) != 0:  # one of pandas'
            return pa.scalar(value, pa.timestamp("ns", None if value.tzinfo is None else "UTC"))
        if isinstance(value, UUID):
            return pa.scalar(value.bytes, pa.binary(16))
        if isinstance(value, float):
            return pa.scalar(value + 0.0)  # which is no -0.0
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return pa.scalar(Decimal(value))
        return pa.scalar(value)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidRequestError(
            f"Cannot use the parameter {name!r}: a {type(value).__name__} is no value of SQL"
        ) from error


def _other_number(value: pa.Scalar) -> pa.Scalar | None:
    """Return a double as a decimal and a decimal as a double; None where there is no such value."""
    try:
        if pa.types.is_decimal(value.type) and value.is_valid:
            return pa.scalar(float(value.as_py()))
        if pa.types.is_floating(value.type) and value.is_valid and math.isfinite(value.as_py()):
            return pa.scalar(Decimal(repr(value.as_py())))
    except (pa.ArrowException, ArithmeticError, ValueError):
        pass
    return None


def _is_finer_than_microseconds(value: pa.Scalar) -> bool:
    is_fine = pa.types.is_timestamp(value.type) and value.type.unit == "ns" and value.is_valid
    return bool(is_fine and value.value % 1000 != 0)


class _Tables:
    """The tables of one query, by the names they have in the engine."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._name = lake.catalog.name
        self._session = SqlSession({self._name: lake}, self._name)
        self._known: dict[tuple[Any, ...], tuple[str, str]] = {}
        self._states: dict[tuple[Any, ...], LoadedTable] = {}
        """The tables of the query: each is read in one state, by whichever views."""
        self._sources: dict[tuple[str, str], Any] = {}
        self._reading: list[tuple[str, ...]] = []
        """The views whose queries are read at the moment."""
        self.failures: list[FrazilError] = []
        self.has_one_zero = True
        """Whether -0.0 is read as 0.0."""
        self.pushes_filters = True

    def name_of(self, reference: TableReference, readers: tuple[tuple[str, ...], ...] = ()) -> str:
        """Return what stands for a table in the engine's text; `readers` are the views whose text names it."""
        key = (reference.name, reference.version, reference.as_of, readers)
        if key not in self._known:
            name, source = self._open(reference)
            self._known[key] = name
            self._sources[name] = source
        schema, table = self._known[key]
        made = f"{quoted_name(schema)}.{quoted_name(table)}"
        if schema == _OWN_SCHEMA and not reference.has_alias:
            made += f" AS {quoted_name(reference.name[-1])}"
        return made

    def _open(self, reference: TableReference) -> tuple[tuple[str, str], Any]:
        try:
            relation = self._relation(reference)
        except TableNotFoundError:
            view = self._find_view(reference)
            if view is None:
                raise
            query = self._open_view(view, reference)
            return (_OWN_SCHEMA, f"frazil_{len(self._sources)}"), query
        own = (_OWN_SCHEMA, f"frazil_{len(self._sources)}")
        if relation.metadata_table is not None:
            return own, _metadata_rows(relation, reference)
        source = _SqlDataset(_scan(relation, reference), self)
        identifier = relation.table.identifier
        is_plain = (
            len(identifier) == 2
            and relation.full_name.name == identifier
            and not relation.full_name.views
            and not _asks_for_state(relation, reference)
        )
        if not is_plain or identifier[0] == _OWN_SCHEMA:
            return own, source
        return (identifier[0], identifier[1]), source

    def _relation(self, reference: TableReference) -> Relation:
        name = reference.name
        if len(name) == 1:
            raise TableNotFoundError(
                f"Cannot find the table {format_name(name)}: it has no namespace, and no WITH has that name",
                hint="Write namespace.table.",
            )
        if len(name) > 2 and name[0] == self._name:
            name = name[1:]
        full_name = FullName(self._name, self._lake, name, self._readers)
        relation = self._session.relation(full_name)
        loaded = relation.table._loaded
        first = self._states.setdefault((loaded.identifier, loaded.metadata.table_uuid), loaded)
        if loaded.metadata_location == first.metadata_location:
            return relation
        same = replace(loaded, metadata=first.metadata, metadata_location=first.metadata_location)
        return replace(relation, table=self._lake._table(same))

    @property
    def _readers(self) -> tuple[tuple[str, ...], ...]:
        """The views that are read at the moment, the outermost first, where the catalog wants to know."""
        return tuple(self._reading) if self._lake.catalog.has_readers_by_views else ()

    def _find_view(self, reference: TableReference) -> View | None:
        name = reference.name
        name = name[1:] if len(name) > 2 and name[0] == self._name else name
        try:
            return self._lake._view_for(name, self._readers) if len(name) > 1 else None
        except (NotFoundError, UnsupportedError):
            return None

    def _open_view(self, view: View, reference: TableReference) -> ViewQuery:
        if self._lake.trust == TRUST_NONE:
            raise untrusted(f"run the view {view.name}")
        if reference.version is not None or reference.as_of is not None:
            raise InvalidRequestError(f"Cannot read {view.name} as of another time: it is a view")
        if view.identifier in self._reading:
            raise itself(view.identifier, len(self._reading))
        self._reading.append(view.identifier)
        readers = self._readers
        try:
            return read_view(view, self._name, lambda inner: self.name_of(inner, readers))
        finally:
            self._reading.pop()

    def check_times(self, parameters: Mapping[str, pa.Scalar]) -> None:
        """Refuse times that are finer than those of a column: the engine would cut them to the column's unit."""
        fine = [name for name, value in parameters.items() if _is_finer_than_microseconds(value)]
        sources = [source for source in self._sources.values() if isinstance(source, _SqlDataset)] if fine else []
        for column in (field for source in sources for field in source.schema):
            if pa.types.is_timestamp(column.type) and column.type.unit != "ns":
                raise InvalidRequestError(
                    f"Cannot use the parameter {fine[0]!r}: it is no whole number of microseconds, and the column "
                    f"{column.name!r} has microseconds"
                )

    def read_as_planned(self, frame: Any, *, may_have_null: bool) -> bool:
        """Return whether scans can be read as a frame's plan says, and note whether -0.0 is to be read as 0.0 in them.

        Null and another filter make a scan that the engine fails to run. Its `=` knows one zero, but its lists, orders
        and windows go by bits, which tell two apart.
        """
        has_floats = any(isinstance(source, _SqlDataset) and source.has_floats for source in self._sources.values())
        if not (has_floats or may_have_null):
            return True
        lines = frame.optimized_logical_plan().display_indent().splitlines()
        self.has_one_zero = any(_COMPUTES.match(line) for line in lines)
        return not any("filters=[Boolean(NULL), " in line for line in lines)

    def run(self, text: str, parameters: Mapping[str, pa.Scalar]) -> Any:
        """Have the engine plan a query."""
        import datafusion

        memory = datafusion.RuntimeEnvBuilder().with_disk_manager_os().with_fair_spill_pool(MEMORY_BYTES)
        context = datafusion.SessionContext(datafusion.SessionConfig(_SETTINGS), memory)
        average = context.udaf("avg")
        context.enable_spark_functions()
        # Spark's average of decimals is a decimal, as the engine's own is and that of its Spark set is not.
        context.register_udaf(average)
        reads = datafusion.SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
        catalog = context.catalog()
        for (schema, table), source in self._sources.items():
            if schema not in catalog.schema_names():
                catalog.register_schema(schema, datafusion.catalog.Schema.memory_schema())
            if isinstance(source, ViewQuery):
                made = source.frame(lambda query: context.sql_with_options(query, reads)).into_view()
            else:
                made = datafusion.Table(source)
                if not self.pushes_filters:  # no filter passes a limit
                    made = context.read_table(made).limit(_NO_LIMIT).into_view()
            catalog.schema(schema).register_table(table, made)
        return context.sql_with_options(text, reads, param_values=dict(parameters))


def _asks_for_state(relation: Relation, reference: TableReference) -> bool:
    return relation.state.is_given or reference.version is not None or reference.as_of is not None


def _scan(relation: Relation, reference: TableReference) -> Scan:
    state = relation.state
    if reference.version is not None or reference.as_of is not None:
        if state.is_given:
            raise InvalidRequestError(f"Cannot read {format_name(reference.name)} in two states: give one")
        if reference.as_of is not None:
            return relation.table.scan(as_of=reference.as_of)
        state = version_state(str(reference.version))
    return relation.table.scan(snapshot_id=state.snapshot_id, as_of=state.as_of_ms, ref=state.reference)


def _metadata_rows(relation: Relation, reference: TableReference) -> Any:
    if relation.metadata_table == CHANGES:
        raise UnsupportedError(
            f"Cannot read {format_name(reference.name)} here: changes are read on Spark",
            hint="Or use changes() in Python.",
        )
    if reference.version is not None or reference.as_of is not None:
        raise UnsupportedError(
            f"Cannot read {format_name(reference.name)} as of a state: write it in the name",
            hint="For example db.t.snapshot_id_1.files.",
        )
    state = relation.state
    choice = SnapshotChoice(state.snapshot_id, state.as_of_ms, state.reference)
    rows = read_metadata_table(relation.table._loaded, str(relation.metadata_table), choice=choice)
    return pads.dataset(rows)


class _SqlDataset(ScanDataset):
    """A scan for the engine, which remembers what went wrong: the engine hands out its text alone."""

    def __init__(self, scan: Scan, tables: _Tables) -> None:
        super().__init__(scan, Meaning.SQL)
        self._tables = tables

    @property
    def has_floats(self) -> bool:
        """Whether a column has floating-point numbers."""
        return any(pa.types.is_floating(field.type) for field in self.schema)

    def scanner(self, *arguments: Any, **options: Any) -> ScanScanner:
        made = super().scanner(*arguments, **options)
        return _SqlScanner(made, self._tables)  # type: ignore[return-value]


class _SqlScanner:
    def __init__(self, scanner: ScanScanner, tables: _Tables) -> None:
        self._scanner = scanner
        self._tables = tables

    @property
    def projected_schema(self) -> pa.Schema:
        return self._scanner.projected_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._scanner.to_batches():
                yield _with_one_zero(batch) if self._tables.has_one_zero else batch
        except FrazilError as error:
            self._tables.failures.append(error)
            raise


def _with_one_zero(batch: pa.RecordBatch) -> pa.RecordBatch:
    if not any(pa.types.is_floating(field.type) for field in batch.schema):
        return batch
    columns = [
        pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
