"""A lake: a catalog and the tables it names. What `frazil.connect` returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import pyarrow as pa

from frazil.catalog.base import Catalog
from frazil.catalog.names import format_name
from frazil.catalog.purge import PurgeReport
from frazil.errors import (
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from frazil.lineage import observe_run
from frazil.maintenance.adopt_results import MigrateTableResult, SnapshotTableResult
from frazil.maintenance.purge_files import purge_files
from frazil.pictures.markup import element
from frazil.pictures.style import in_notebook
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import Schema
from frazil.table.create_table import create_table, make_namespace
from frazil.table.describe import listed
from frazil.table.open_catalog import TRUST_ALL
from frazil.table.parse_name import parse_name
from frazil.table.query_result import QueryResult
from frazil.table.table import Table, TransactionTable
from frazil.table.view import DEFAULT_DIALECT, Queries, View, create_view
from frazil.verbs.on_spark import check_pyspark
from frazil.verbs.one_commit import OneCommit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Name = str | tuple[str, ...]
NO_ARGUMENTS: Final[Mapping[str, object]] = FrozenMap({})
MAX_LISTED: Final = 200
"""The tables that a notebook lists of a lake."""
TRUSTED_VIEWS: Final = "read.trusted-views"
"""The property by which queries of views may call Java, run programs and open files by their path."""


class Lake:
    """The tables of one catalog. Names are text such as `db.events`, parts quoted with backticks, or tuples."""

    attached_spark: SparkSession | None = None
    """The Spark session that the lake is attached to."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        cache: ManifestCache | None = None,
        trust: str = TRUST_ALL,
        trusts_views: bool = False,
    ) -> None:
        self._catalog = catalog
        self.trust = trust
        """Whether what is in the lake is trusted: `all`, or `none`."""
        self.trusts_views = trusts_views
        """Whether queries of views may call Java, run programs and open files by their path."""
        self._cache = ManifestCache() if cache is None else cache
        self.attached_spark = None
        self._own_spark: SparkSession | None = None

    def __repr__(self) -> str:
        return (
            f"Lake({self._catalog!r})" if self.trust == TRUST_ALL else f"Lake({self._catalog!r}, trust={self.trust!r})"
        )

    def _repr_html_(self) -> str:
        names = [format_name(name) for name in islice(self._catalog.all_tables(), MAX_LISTED + 1)]
        more = f"and more than these {MAX_LISTED}" if len(names) > MAX_LISTED else None
        tables = element("ul", *(element("li", element("code", name)) for name in names[:MAX_LISTED]))
        count = f"{len(names)} tables" if more is None else None
        return in_notebook(element("h4", f"Lake {self._catalog.name}"), element("p", count), tables, more)

    @property
    def catalog(self) -> Catalog:
        """The catalog below."""
        return self._catalog

    @property
    def spark(self) -> SparkSession:
        """The Spark session that verbs use: the one attached to, else the active one, else one made here."""
        check_pyspark()
        from frazil.spark import session

        if self.attached_spark is not None and not session.is_stopped(self.attached_spark):
            return self.attached_spark
        found = session.active_session()
        if found is None:
            found = self._own_spark = session.local_session()
        return found

    def close(self) -> None:
        """Give back what the lake holds open: its catalog, and the Spark session it made, if any."""
        self._catalog.close()
        if self._own_spark is not None:
            self._own_spark.stop()
            self._own_spark = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Namespaces

    def create_namespace(
        self, namespace: Name, properties: Mapping[str, str] | None = None, *, exist_ok: bool = True
    ) -> None:
        """Create a namespace; one that exists is no error unless `exist_ok` is false."""
        try:
            self._catalog.create_namespace(parse_name(namespace), properties)
        except NamespaceAlreadyExistsError:
            if not exist_ok:
                raise

    def drop_namespace(self, namespace: Name) -> None:
        """Drop a namespace that holds nothing."""
        self._catalog.drop_namespace(parse_name(namespace))

    def namespace_exists(self, namespace: Name) -> bool:
        """Return whether a namespace was created, or something below it exists."""
        return self._catalog.namespace_exists(parse_name(namespace))

    def namespace_properties(self, namespace: Name) -> dict[str, str]:
        """Return a namespace's properties."""
        return self._catalog.load_namespace_properties(parse_name(namespace))

    def set_namespace_properties(
        self, namespace: Name, properties: Mapping[str, str] | None = None, *, removals: Iterable[str] = ()
    ) -> None:
        """Set and remove properties of a namespace in one step."""
        self._catalog.update_namespace_properties(parse_name(namespace), properties, removals)

    def list_namespaces(self, parent: Name = ()) -> list[tuple[str, ...]]:
        """Return the namespaces directly below another, or the topmost."""
        return list(self._catalog.list_namespaces(parse_name(parent)))

    def list_tables(self, namespace: Name) -> list[tuple[str, ...]]:
        """Return the tables of a namespace."""
        return list(self._catalog.list_tables(parse_name(namespace)))

    def list_views(self, namespace: Name) -> list[tuple[str, ...]]:
        """Return the views of a namespace."""
        return list(self._catalog.list_views(parse_name(namespace)))

    # Tables

    def table(self, name: Name) -> Table:
        """Return a table by name."""
        return self._table(self._catalog.load_table(parse_name(name)))

    def table_exists(self, name: Name) -> bool:
        """Return whether there is a table of a name."""
        return self._catalog.table_exists(parse_name(name))

    def create_table(
        self,
        name: Name,
        schema: Schema | pa.Schema | str | Any,
        *,
        fill: bool = True,
        partition_by: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        format_version: int | None = None,
        location: str | None = None,
        exist_ok: bool = False,
    ) -> Table:
        """Create a table, and its namespace if that is missing: `lake.create_table("db.t", "id bigint, kind string")`.

        The schema is text, a `frazil.Schema`, a `pyarrow.Schema` or a Spark `StructType`. Or it is a frame (Spark,
        pandas, Polars, Arrow, DuckDB, a dict of columns, a list of dicts): the table has its columns and, unless
        `fill` is false, its rows, in one commit. Indexes of pandas are not columns.
        Partition terms are `ts`, `day(ts)`, `bucket(16, id)` and the like, sort terms `ts desc nulls last`.
        The format version is 2 unless it is given, here or as the property `format-version`. With `exist_ok`, a table
        of that name is returned unchanged, whatever its schema and rows.
        """
        if exist_ok:
            with suppress(TableNotFoundError):
                return self.table(name)
        try:
            loaded = create_table(
                self._catalog,
                name,
                schema,
                cache=self._cache,
                fill=fill,
                partition_by=partition_by,
                sort_by=sort_by,
                properties=properties,
                format_version=format_version,
                location=location,
            )
        except TableAlreadyExistsError:
            if not exist_ok:
                raise
            return self.table(name)
        return self._table(loaded)

    def write(
        self,
        name: Name,
        data: Any,
        *,
        mode: Literal["append", "overwrite", "error"] = "append",
        partition_by: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Write a frame to a table, which is created if it is missing: `lake.write("db.t", df, mode="append")`.

        A table that exists keeps its definition: `"append"` adds the rows, `"overwrite"` replaces all rows, and
        `"error"` refuses. Partition terms, sort terms and properties are for a table that is created.
        """
        if mode not in ("append", "overwrite", "error"):
            raise InvalidRequestError(
                f"Cannot write {name!r} in the mode {mode!r}", hint="The modes are append, overwrite and error."
            )
        if mode == "error" or not self.table_exists(name):
            try:
                return self.create_table(name, data, partition_by=partition_by, sort_by=sort_by, properties=properties)
            except TableAlreadyExistsError:
                if mode == "error" or isinstance(data, pa.RecordBatchReader):
                    raise
        if partition_by or sort_by or properties:
            raise InvalidRequestError(
                f"Cannot write {name!r} with partition terms, sort terms or properties: the table exists",
                hint="Leave them out; t.update_spec(), t.set_sort_order() and t.set_properties() change a table.",
            )
        table = self.table(name)
        if mode == "overwrite":
            table.overwrite(data)
        else:
            table.append(data)
        return table

    def register_table(self, name: Name, metadata_location: str) -> Table:
        """Give a name to a table whose metadata file exists."""
        return self._table(self._catalog.register_table(parse_name(name), metadata_location))

    def snapshot_table(
        self,
        source_table: Name,
        name: Name,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        parallelism: int | None = None,
        ignore_missing_files: bool = False,
        dry_run: bool = False,
    ) -> SnapshotTableResult:
        """Make a table over the files of another, to try things on: the other's files are read, and never deleted.

        The source is a table of Spark's own catalog, or a folder with its format: `` parquet.`/data/old` ``.
        """
        from frazil.table.adopt import snapshot_into

        return snapshot_into(
            self,
            self._cache,
            source_table,
            parse_name(name),
            location=location,
            properties=properties,
            parallelism=parallelism,
            ignore_missing_files=ignore_missing_files,
            dry_run=dry_run,
        )

    def migrate_table(
        self,
        name: Name,
        properties: Mapping[str, str] | None = None,
        drop_backup: bool = False,
        backup_table_name: str | None = None,
        parallelism: int | None = None,
        ignore_missing_files: bool = False,
        dry_run: bool = False,
    ) -> MigrateTableResult:
        """Turn a table of Spark's own catalog into one of this lake, under its name, over its files where they are.

        The old entry stays as a backup under another name, `<name>_BACKUP_` unless given; its files are the new
        table's. Stop its writers first.
        """
        from frazil.table.adopt import migrate_into

        return migrate_into(
            self,
            self._cache,
            name,
            properties=properties,
            drop_backup=drop_backup,
            backup_table_name=backup_table_name,
            parallelism=parallelism,
            ignore_missing_files=ignore_missing_files,
            dry_run=dry_run,
        )

    def rename_table(self, name: Name, new_name: Name) -> None:
        """Give a table another name; its files stay where they are."""
        self._catalog.rename_table(parse_name(name), parse_name(new_name))

    def drop_table(self, name: Name, *, purge: bool = False, delete_roots: Sequence[str] = ()) -> PurgeReport:
        """Take a table out of the catalog; with `purge`, delete its own files.

        A table with folders that are not its own, by the rule of docs/maintenance.md, is not purged and stays;
        `delete_roots` are further folders that you know to be its own.
        """
        how = purge_files if purge else None
        return self._catalog.drop_table(parse_name(name), purge=how, delete_roots=delete_roots)

    def sql(
        self,
        query: str,
        /,
        *,
        dialect: str = "duckdb",
        timeout: float | None = None,
        max_rows: int | None = None,
        memory_limit: int | str | None = None,
        frames: Mapping[str, object] = NO_ARGUMENTS,
        parameters: Mapping[str, object] = NO_ARGUMENTS,
        **values: object,
    ) -> QueryResult:
        """Run SQL here, without Spark: `lake.sql("select count(*) n from db.t where id > $x", x=5)`.

        The dialect is DuckDB's. Tables are named with their namespace: `db.t`, `lake.db.t`, `db.t.snapshots`; time
        travel is `db.t at (version => 5)`. Other arguments are values of `$parameters`, or the caller's own data by
        the names that the query gives it: `lake.sql("from db.t join mine using (id)", mine=frame)`; `parameters` and
        `frames` are for names that are arguments of this method. Columns and filters of the query prune files as a
        scan's do. The result is Arrow, computed on demand. More than `max_rows` rows are an error, as is a query that
        takes longer than `timeout` seconds. `memory_limit` bounds sorts, groups and joins (2 GiB); they spill to
        temporary files. With `dialect="spark"` the text is translated from Spark's dialect, and computes with
        DuckDB's arithmetic.
        """
        from frazil.query.limits import make_limits
        from frazil.table.local_sql.run_sql import query as run

        limits = make_limits(timeout, max_rows, memory_limit)
        return run(self, query, parameters=parameters, frames=frames, values=values, limits=limits, dialect=dialect)

    # Views

    def create_view(
        self,
        name: Name,
        sql: Queries,
        *,
        schema: Schema | pa.Schema | str | None = None,
        dialect: str = DEFAULT_DIALECT,
        default_namespace: Name | None = None,
        default_catalog: str | None = None,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        replaces: bool = False,
        exist_ok: bool = False,
        query_columns: Sequence[str] = (),
    ) -> View:
        """Create a view of a query, or of one query for each dialect; its namespace is created where it is missing.

        `schema` are its columns, which engines work out from the query where it is left out. Names in the query
        without a namespace are in `default_namespace`, the view's own unless given. With `replaces`, a view of
        that name gets a new version; with `exist_ok`, it stays as it is. `query_columns` are the names of the query's
        own columns, in the order of `schema`: by them the view is read where the query has others beside them later.
        """
        identifier = parse_name(name)
        if (replaces or exist_ok) and self._catalog.view_exists(identifier):
            view = self.view(identifier)
            if not replaces:
                return view
            return view.replace(
                sql,
                schema=schema,
                dialect=dialect,
                default_namespace=default_namespace,
                default_catalog=default_catalog,
                properties=properties,
                query_columns=query_columns,
            )
        make_namespace(self._catalog, identifier)
        return create_view(
            self._catalog,
            identifier,
            sql,
            schema=schema,
            dialect=dialect,
            default_namespace=identifier[:-1] if default_namespace is None else parse_name(default_namespace),
            default_catalog=default_catalog,
            properties=properties,
            location=location,
            query_columns=query_columns,
        )

    def view(self, name: Name) -> View:
        """Return a view by name."""
        return View(self._catalog, self._catalog.load_view(parse_name(name)))

    def view_exists(self, name: Name) -> bool:
        """Return whether there is a view of a name."""
        return self._catalog.view_exists(parse_name(name))

    def rename_view(self, name: Name, new_name: Name) -> None:
        """Give a view another name."""
        self._catalog.rename_view(parse_name(name), parse_name(new_name))

    def drop_view(self, name: Name) -> None:
        """Take a view out of the catalog; its metadata files stay."""
        self._catalog.drop_view(parse_name(name))

    def transaction(self) -> LakeTransaction:
        """Change several tables in one commit: `with lake.transaction() as tx: tx.table("db.a").append(x)`.

        All changes happen or none. Catalogs in a SQL database and in memory can; others refuse a second table.
        """
        return LakeTransaction(self._catalog, self._cache)

    def _table_for(self, name: Name, views: Sequence[tuple[str, ...]]) -> Table:
        """Return a table that is read through views of this lake, the outermost first."""
        return self._table(self._catalog.load_table_for(parse_name(name), views))

    def _view_for(self, name: Name, views: Sequence[tuple[str, ...]]) -> View:
        """Return a view that is read through other views of this lake, the outermost first."""
        return View(self._catalog, self._catalog.load_view_for(parse_name(name), views))

    def _table(self, loaded: Any) -> Table:
        return Table(self._catalog, loaded, self._cache)


class LakeTransaction:
    """Changes of several tables that happen together at the end of the `with` block, or not at all."""

    def __init__(self, catalog: Catalog, cache: ManifestCache) -> None:
        self._catalog = catalog
        self._commit = OneCommit(catalog, cache, observe_run(catalog, "transaction", catalog.name))

    def __repr__(self) -> str:
        return f"<transaction of the lake {self._catalog.name!r}, tables: {listed(self._commit.names) or 'none yet'}>"

    def table(self, name: Name) -> TransactionTable:
        """Return a table to change in this transaction."""
        identifier = parse_name(name)
        staged = self._commit.find_table(identifier)
        return TransactionTable(self._commit.table(self._catalog.load_table(identifier)) if staged is None else staged)

    def __enter__(self) -> Self:
        self._commit.__enter__()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._commit.__exit__(error_type, error, trace)
