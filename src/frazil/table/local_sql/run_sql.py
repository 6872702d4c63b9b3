"""Queries in this process: `lake.sql("select …")`, by DuckDB, in its own dialect.

DuckDB's parse tree names the tables (`query/syntax.py`) and the conditions that planning may use
(`query/filters.py`). Each table becomes a view over a scan that is pinned to one snapshot: DuckDB reads the planned
files itself where it can (`query/native_scan.py`), and frazil reads the others as Arrow. Nothing else can be opened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa

from frazil.errors import FrazilError, InvalidRequestError, MissingFileError
from frazil.query.arrow_types import plain_schema
from frazil.query.batches import Watch, read_batches
from frazil.query.engine import check_installed, engine_errors, prepare
from frazil.query.frames import frame_of
from frazil.query.limits import Limits
from frazil.query.parameters import parameter_value
from frazil.query.prepared import Engine, LocalEngine, PreparedQuery
from frazil.query.syntax import NotAQueryError, Query, parse_query
from frazil.query.worker import WorkerEngine
from frazil.table.lake import Lake
from frazil.table.local_sql.query_tables import QueryTables
from frazil.table.open_catalog import TRUST_NONE
from frazil.table.query_result import QueryResult

DUCKDB: Final = "duckdb"
SPARK: Final = "spark"


def query(
    lake: Lake,
    text: str,
    *,
    parameters: Mapping[str, object],
    frames: Mapping[str, object],
    values: Mapping[str, object],
    limits: Limits,
    dialect: str = "duckdb",
    is_isolated: bool = False,
) -> QueryResult:
    """Return the rows of a query over tables of a lake. `values` are parameters or frames, whichever the query names.

    With `is_isolated` DuckDB runs in a process of its own, as it does for lakes whose content is not trusted.
    """
    check_installed()
    engine: Engine = LocalEngine()
    if is_isolated or lake.trust == TRUST_NONE:
        engine = WorkerEngine(limits)
        limits = engine.limits
    else:
        prepare()
    try:
        parsed = parse_query(_in_duckdb(text, dialect), engine.serialize)
    except NotAQueryError:
        if is_isolated or dialect != DUCKDB:
            raise
        return _change(lake, text, parameters, frames, values, limits)
    known_frames, known_values = _sort_arguments(parsed, parameters, frames, values)
    return _run(lake, text, parsed, engine, known_frames, known_values, limits)


def _run(
    lake: Lake,
    text: str,
    parsed: Query,
    engine: Engine,
    known_frames: Mapping[str, pa.Table],
    known_values: Mapping[str, object],
    limits: Limits,
) -> QueryResult:
    tables = QueryTables(lake, engine, known_values, known_frames, limits)
    run_text = tables.add_query(parsed)
    prepared = tables.prepared(run_text, parsed.run_parameters)
    first, schema = _started(engine, prepared, tables)
    watches = [first]

    def start() -> Iterator[pa.RecordBatch]:
        watch = watches.pop() if watches else _started(engine, prepared, tables)[0]
        return read_batches(watch, schema, limits, lambda: _errors(tables, limits))

    def explain() -> str:
        watch, _ = _started(engine, prepared, tables)
        try:
            return f"{tables.explain()}\n\n{watch.call(watch.run.explain)}"
        finally:
            watch.close()

    return QueryResult(text, schema, start, explain)


def _in_duckdb(text: str, dialect: str) -> str:
    """Return a text of another dialect in DuckDB's."""
    if dialect == DUCKDB:
        return text
    if dialect == SPARK:
        from frazil.query.spark_dialect import translate_query

        return translate_query(text)
    raise InvalidRequestError(
        f"Cannot run SQL in the dialect {dialect!r}", hint=f"The dialects are {DUCKDB!r} and {SPARK!r}."
    )


def _change(
    lake: Lake,
    text: str,
    parameters: Mapping[str, object],
    frames: Mapping[str, object],
    values: Mapping[str, object],
    limits: Limits,
) -> QueryResult:
    """Run a statement that changes tables, and return how many rows it changed."""
    from frazil.table.local_sql.statement_run import parameter_names
    from frazil.table.local_sql.statements import run_statement

    def run_query(inner: str, inner_values: Mapping[str, object], inner_frames: Mapping[str, object]) -> QueryResult:
        engine = LocalEngine()
        parsed = parse_query(inner, engine.serialize)
        tables = {table.path[0].lower() for table in parsed.tables if len(table.path) == 1}
        named = {name: frame_of(name, frame) for name, frame in inner_frames.items() if name.lower() in tables}
        known = {name: parameter_value(name, value) for name, value in inner_values.items()}
        return _run(lake, inner, parsed, engine, named, known, limits)

    named = {name.lower() for name in parameter_names(text)}
    is_parameter = {name: name.lower() in named for name in values}
    changed = run_statement(
        lake,
        text,
        run_query=run_query,
        parameters={**{name: value for name, value in values.items() if is_parameter[name]}, **parameters},
        frames={**{name: value for name, value in values.items() if not is_parameter[name]}, **frames},
    )
    return QueryResult(text, changed.schema, lambda: iter(changed.to_batches()), lambda: "the statement has run")


def _started(engine: Engine, prepared: PreparedQuery, tables: QueryTables) -> tuple[Watch, pa.Schema]:
    """Return a query that is ready to run, and its columns."""
    with _errors(tables, prepared.limits):
        watch = Watch(engine.run(prepared), prepared.limits)
        try:
            return watch, plain_schema(watch.call(watch.run.schema))
        except BaseException:
            watch.close()
            raise


@contextlib.contextmanager
def _errors(tables: QueryTables, limits: Limits) -> Iterator[None]:
    """Raise the error that frazil had while it read a table, and name a file that is missing."""
    try:
        with engine_errors(limits):
            yield
    except FrazilError as error:
        if tables.failures:
            raise tables.failures[-1] from error
        missing = tables.find_missing_file()
        if missing is not None:
            raise MissingFileError(
                f"Cannot read {missing}: there is no such file",
                hint="Another engine deleted it, or the table is damaged: run check() on the table.",
                path=missing,
            ) from error
        raise


def _sort_arguments(
    parsed: Query, parameters: Mapping[str, object], frames: Mapping[str, object], values: Mapping[str, object]
) -> tuple[dict[str, pa.Table], dict[str, object]]:
    """Return the frames and the parameters of a query; refuse arguments that it does not name."""
    wanted_frames = {table.path[0].lower(): table.path[0] for table in parsed.tables if len(table.path) == 1}
    wanted_values = {name.lower() for name in parsed.parameters}
    named_frames = {**{name: value for name, value in values.items() if name.lower() in wanted_frames}, **frames}
    named_values = {**{name: value for name, value in values.items() if name.lower() in wanted_values}, **parameters}
    for name in values:
        if name not in named_frames and name not in named_values:
            raise InvalidRequestError(
                f"Cannot use the argument {name!r}: the query names neither a parameter ${name} nor a table {name}"
            )
    for name in parameters:
        if name.lower() not in wanted_values:
            raise InvalidRequestError(f"Cannot use the parameter {name!r}: the query does not name ${name}")
    for name in frames:
        if name.lower() not in wanted_frames:
            raise InvalidRequestError(f"Cannot use the frame {name!r}: the query names no table {name}")
    missing = sorted(wanted_values - {name.lower() for name in named_values})
    if missing and missing[0].isdigit():
        raise InvalidRequestError(
            "Cannot run the query: parameters are named", hint='Write $name: lake.sql("… $x", x=5).'
        )
    if missing:
        raise InvalidRequestError(
            f"Cannot run the query: the parameter ${missing[0]} has no value",
            hint=f'Give it: lake.sql("…", {missing[0]}=…).',
        )
    spelled = {name.lower(): name for name in parsed.parameters}
    return (
        {name: frame_of(name, value) for name, value in named_frames.items()},
        {spelled[name.lower()]: parameter_value(name, value) for name, value in named_values.items()},
    )
