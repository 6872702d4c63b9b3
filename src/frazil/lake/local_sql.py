"""Queries in this process, by DataFusion: `lake.sql("select …")`.

`sql/local_query.py` finds the tables and views that a query names (of views, `local_views.py`). Each table becomes a
scan, pinned to the snapshot that is current when the query is made (or to the state it asks for), and is given to
DataFusion as a dataset (`scan_dataset.py`): columns and filters that the plan pushes down prune manifests, files and
rows as for every scan. Nothing is read before the answer is, and then batch by batch.

Settings are those under which DataFusion is nearest to Spark: names as they are written, nulls before all values, UTC,
the functions of its Spark set. What still differs is in docs/local-sql.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from frazil.catalog.names import format_name
from frazil.columns.arrow_filter import Meaning
from frazil.errors import FrazilError, InvalidRequestError, NotFoundError, TableNotFoundError, UnsupportedError
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
from frazil.sql.local_query import TableReference, quoted_name, rewrite_query
from frazil.storage.read_only import untrusted

_SETTINGS = {
    "datafusion.sql_parser.enable_ident_normalization": "false",
    "datafusion.sql_parser.default_null_ordering": "nulls_min",
    "datafusion.sql_parser.map_string_types_to_utf8view": "false",
    "datafusion.execution.time_zone": "UTC",
    "datafusion.catalog.information_schema": "false",
}
_OWN_SCHEMA = "public"
MEMORY_BYTES = 2 << 30
"""What sorts, groups and joins of a query hold at most; sorts and groups go to temporary files beyond it."""


def query(lake: Lake, text: str, parameters: Mapping[str, object]) -> QueryResult:
    """Return the answer of a query over tables of a lake; it is read when it is asked for."""
    tables = _Tables(lake)
    rewritten = rewrite_query(text, tables.name_of)
    values = {name: _parameter(name, value) for name, value in parameters.items()}
    unused = sorted(values.keys() - rewritten.parameters)
    if unused:
        raise InvalidRequestError(f"Cannot use the parameter {unused[0]!r}: the query does not name it")
    missing = sorted(rewritten.parameters - values.keys())
    if missing:
        raise InvalidRequestError(
            f"Cannot run the query: the parameter :{missing[0]} has no value",
            hint=f'Give it: lake.sql("…", {missing[0]}=…).',
        )

    def run() -> Any:
        def plan(decimals: frozenset[int]) -> Any:
            return tables.run(rewrite_query(text, tables.name_of, decimals).text, values)

        return choose_decimals(plan, rewritten.points)[0]

    return QueryResult(text, run, tables.failures)


def _parameter(name: str, value: object) -> pa.Scalar:
    try:
        return value if isinstance(value, pa.Scalar) else pa.scalar(value)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidRequestError(
            f"Cannot use the parameter {name!r}: a {type(value).__name__} is no value of SQL"
        ) from error


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
        source = _SqlDataset(_scan(relation, reference), self.failures)
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

    def __init__(self, scan: Scan, failures: list[FrazilError]) -> None:
        super().__init__(scan, Meaning.SQL)
        self._failures = failures

    def scanner(self, *arguments: Any, **options: Any) -> ScanScanner:
        made = super().scanner(*arguments, **options)
        return _SqlScanner(made, self._failures)  # type: ignore[return-value]


class _SqlScanner:
    def __init__(self, scanner: ScanScanner, failures: list[FrazilError]) -> None:
        self._scanner = scanner
        self._failures = failures

    @property
    def projected_schema(self) -> pa.Schema:
        return self._scanner.projected_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._scanner.to_batches()
        except FrazilError as error:
            self._failures.append(error)
            raise
