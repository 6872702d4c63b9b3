"""The context of a request's handler: the session, its lakes, Java objects, and the stored entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from frazil.errors import CommitConflictError, InvalidRequestError
from frazil.sessions import requests as r
from frazil.sessions.attached_lakes import LAKES
from frazil.sessions.remembered import REMEMBERED, Remembered
from frazil.sessions.resolved_name import ResolvedName
from frazil.sessions.source_names import BY_PATH, check_path
from frazil.sessions.spark_engine import SparkEngine
from frazil.spark.change.resolved import Resolved, as_frame, resolved
from frazil.spark.jvm.door import is_temporary_view
from frazil.table.lake import Lake
from frazil.table.sql_session import FullName, Relation, SqlSession, check_writable
from frazil.table.table import Table, hold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Reply: TypeAlias = Any
"""Text, a Java object, or None."""
Request = TypeVar("Request", bound=r.Request)


@dataclass(frozen=True)
class Context:
    """The session of a request, its Java objects, and the entries stored by earlier requests."""

    spark: SparkSession
    objects: Any
    remembered: Remembered = REMEMBERED

    def object(self, index: int) -> Any:
        """Return a Java object of the request; the session itself comes first."""
        return self.objects.get(index + 1)

    def frame(self, index: int) -> DataFrame:
        """Return a Java object of the request as a DataFrame."""
        return as_frame(self.object(index), self.spark)

    def expression(self, expression: r.Expression) -> Resolved:
        """Return an expression of the request."""
        java = self.object(expression.index)
        return resolved(self.spark, java, expression.text, expression.names, self.object(0))

    def names(self, current: r.InPlace | None = None) -> SqlSession:
        """Return the name resolution for all lakes of the session, in its current catalog and namespace if given."""
        lakes = LAKES.names(self.spark)
        is_lake = current is not None and current.current in lakes
        return SqlSession(
            lakes,
            current.current if current is not None and is_lake else None,
            current.namespace if current is not None and is_lake else (),
            is_temporary_view=partial(is_temporary_view, self.spark),
            is_foreign_catalog=lambda name: self.spark.conf.get(f"spark.sql.catalog.{name}", None) is not None,
        )

    def engine(self, names: SqlSession | None = None) -> SparkEngine:
        """Return the Spark engine for statements and views."""
        return SparkEngine(self.spark, names or self.names())

    def table(self, request: r.OfTable) -> ResolvedName:
        """Return the table that an earlier request loaded."""
        loaded = self.remembered.tables.find(request.key)
        if loaded is None:
            raise InvalidRequestError(
                f"Cannot use {full_name_of(request)}: it was loaded too long ago and is no longer stored",
                hint="Run the statement again.",
            )
        return loaded

    def target(
        self, request: r.OfTable, reads: tuple[str, ...] = (), statement: str | None = None
    ) -> tuple[FullName, Table, str | None]:
        """Return the table to write to, held for one statement, and the branch in its name."""
        relation = checked_target(self.table(request))
        if isinstance(request, r.Change):
            check_path(relation, request.options)
        table: Table = hold(self._oldest_read(relation, reads))
        if statement is not None:
            first = table
            table = self.remembered.written.recall((statement, str(relation.full_name)), lambda: first)
        return relation.full_name, table, relation.state.branch

    def _oldest_read(self, target: Relation, reads: tuple[str, ...]) -> Table:
        """Return a table in the oldest state that a statement has read.

        The written rows were computed from that state, so later changes are conflicts. Spark resolves the tables that a
        query reads before the one that it writes to.
        """
        oldest = target.table
        for table in self.tables_read(reads):
            if table.metadata.table_uuid != oldest.metadata.table_uuid:
                continue
            if table.metadata.last_updated_ms > oldest.metadata.last_updated_ms:
                continue
            if table.metadata.current_schema != target.table.metadata.current_schema:
                raise CommitConflictError(
                    f"Cannot write to {target.full_name}: its columns changed since the query read it",
                    hint="Run the statement again.",
                )
            oldest = table
        return oldest

    def tables_read(self, keys: tuple[str, ...]) -> list[Table]:
        """Return the tables that a statement reads, each in the state it was read in."""
        loaded = [self.remembered.tables.find(key) for key in keys]
        return [name.relation.table for name in loaded if name is not None and name.relation is not None]


Handle: TypeAlias = Callable[[Any, Context], Reply]


def handler(request: type[Request], handle: Callable[[Request, Context], Reply]) -> tuple[type[r.Request], Handle]:
    """Pair a request with its handler, checking their types."""
    return request, handle


def lake_of(request: r.OfLake) -> Lake:
    """Return the lake that a request addresses."""
    return LAKES.lake(request.lake, request.catalog)


def full_name_of(request: r.OfName) -> FullName:
    """Return the name that a request is about, within its lake."""
    return FullName(request.catalog, lake_of(request), request.name)


def own_names(request: r.OfLake) -> SqlSession:
    """Return the name resolution for only the lake that a request addresses."""
    return SqlSession({request.catalog: lake_of(request)})


def checked_target(loaded: ResolvedName) -> Relation:
    """Return a relation that may be written to; refuse views, metadata tables and past states."""
    relation = loaded.relation
    if relation is None:
        raise InvalidRequestError(f"Cannot write to {loaded.full_name}: it is a view")
    if relation.full_name.name[0] == BY_PATH:
        raise InvalidRequestError(
            f"Cannot write to {relation.full_name.name[-1]!r}: it is a path, and only catalog tables can be written",
            hint="Use the table's name in its lake.",
        )
    check_writable(relation, str(loaded.full_name))
    return relation
