"""`df.writeTo("lake.db.t")` and `df.mergeInto(...)` for tables of a lake: PySpark's writers, by name and method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from frazil.errors import InvalidRequestError, TableAlreadyExistsError, TableNotFoundError, UnsupportedError
from frazil.lake.run_ddl import create_with_schema, find_table, optional_columns
from frazil.lake.run_dml import SOURCE, TARGET, evolve_schema, own_qualifiers, snapshot_properties_of, write_options
from frazil.lake.spark_engine import SparkEngine
from frazil.lake.sql_session import Place
from frazil.lake.table import Table
from frazil.lake.verbs import TableVerbs
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import SPARK_ACCEPT_ANY_SCHEMA, read_property
from frazil.sql import statements as s
from frazil.sql.rewrite import requalify

TermText = Callable[[Any], str]
WriteTarget = tuple[Place, Table, str | None]
"""A table that is written to, held for one write, and its branch."""


class LakeWriter:
    """A write to a table of a lake. Names and meanings are those of PySpark's `DataFrameWriterV2`."""

    def __init__(
        self, engine: SparkEngine, frame: Any, name: s.Name, term_text: TermText, target: WriteTarget | None = None
    ) -> None:
        self._engine = engine
        self._given = target
        self._frame = frame
        self._name = name
        self._term_text = term_text
        self._provider: str | None = None
        self._options: dict[str, str] = {}
        self._properties: dict[str, str] = {}
        self._terms: tuple[str, ...] = ()

    def using(self, provider: str) -> Self:
        """Name the format of a table that is created."""
        self._provider = provider
        return self

    def option(self, key: str, value: Any) -> Self:
        """Say an option of the write: `branch`, `snapshot-property.*`, `mergeSchema`."""
        self._options[key] = str(value).lower() if isinstance(value, bool) else str(value)
        return self

    def options(self, **options: Any) -> Self:
        """Say options of the write."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def tableProperty(self, property: str, value: str) -> Self:  # noqa: N802, A002 - PySpark's names
        """Set a property of a table that is created."""
        self._properties[property] = value
        return self

    def partitionedBy(self, col: Any, *cols: Any) -> Self:  # noqa: N802
        """Partition a table that is created, by columns or transforms of them."""
        self._terms = tuple(self._term_text(one) for one in (col, *cols))
        return self

    def clusterBy(self, col: str, *cols: str) -> Self:  # noqa: N802
        """Refuse clustering columns, which the format does not have."""
        raise UnsupportedError(
            f"Cannot cluster {self._place()} by {', '.join((col, *cols))}: tables have no clustering columns",
            hint="Partition the table, or give it a sort order: ALTER TABLE … WRITE ORDERED BY.",
        )

    # Creating

    def create(self) -> None:
        """Create the table with the rows; refuse one that exists."""
        place = self._place()
        if find_table(place) is not None:
            raise TableAlreadyExistsError(f"Cannot create {place}: there is a table of that name")
        self._create(None, creates=True, replaces=False)

    def replace(self) -> None:
        """Replace a table by the rows."""
        existing = find_table(self._place())
        if existing is None:
            raise TableNotFoundError(f"Cannot replace {self._place()}: there is no such table")
        self._create(existing, creates=False, replaces=True)

    def createOrReplace(self) -> None:  # noqa: N802
        """Create a table with the rows, or replace the one there is."""
        given = None if self._given is None or self._given[2] is not None else self._given[1]
        self._create(given or find_table(self._place()), creates=True, replaces=True)

    def _create(self, existing: Table | None, *, creates: bool, replaces: bool) -> None:
        statement = s.CreateTable(
            self._name,
            (),
            self._terms,
            self._provider,
            self._properties.pop("location", None),
            FrozenMap(self._properties),
            creates=creates,
            replaces=replaces,
        )
        schema = optional_columns(self._engine.schema_of(self._frame))
        if any(key.lower() == "branch" for key in self._options):
            raise InvalidRequestError(
                f"Cannot create {self._place()} and write to a branch of it at once",
                hint="Leave the branch out; write to it when the table is there.",
            )
        create_with_schema(
            self._place(),
            existing,
            statement,
            schema,
            self._frame,
            snapshot_properties_of(self._options),
        )

    # Writing

    def append(self) -> None:
        """Add the rows; with the option `mergeSchema`, columns that the table lacks as well, in the same commit."""
        table, options = self._target()
        table.append(self._frame, merge_schema=self._merges_schema(table), **options)

    def overwrite(self, condition: Any) -> None:
        """Replace the rows of a condition by others; `mergeSchema` as in `append`."""
        table, options = self._target()
        where = self._engine.column_text(condition)
        table.overwrite(self._frame, where=where, merge_schema=self._merges_schema(table), **options)

    def overwritePartitions(self) -> None:  # noqa: N802
        """Replace the partitions that the rows are in."""
        table, options = self._target()
        table.overwrite_partitions(self._frame, merge_schema=self._merges_schema(table), **options)

    def overwrite_all(self) -> None:
        """Replace all rows."""
        table, options = self._target()
        table.overwrite(self._frame, merge_schema=self._merges_schema(table), **options)

    def _target(self) -> tuple[Table, dict[str, Any]]:
        _, table, branch = self._given or self._engine.session.write_target(self._name)
        return table, write_options(self._engine, table, branch, self._options)

    def _merges_schema(self, table: Table) -> bool:
        known = {key.lower(): value for key, value in self._options.items()}
        merges = known.get("mergeschema", known.get("merge-schema", "false")) == "true"
        if merges and not read_property(table.properties, SPARK_ACCEPT_ANY_SCHEMA):
            raise InvalidRequestError(
                f"Cannot change the schema of {self._place()} with a write: the table does not allow it",
                hint="Set write.spark.accept-any-schema=true.",
            )
        return merges

    def _place(self) -> Place:
        return self._engine.session.place(self._name)


class LakeMerge:
    """A merge into a table of a lake. Names and meanings are those of PySpark's `MergeIntoWriter`."""

    def __init__(self, engine: SparkEngine, frame: Any, name: s.Name, condition: Any) -> None:
        self._engine = engine
        self._frame = frame
        self._name = name
        self._condition = condition
        self._clauses: list[tuple[str, Any, str, dict[str, Any] | None]] = []
        self._evolves = False

    def whenMatched(self, condition: Any = None) -> LakeMergeClause:  # noqa: N802
        """Say what happens to rows that match."""
        return LakeMergeClause(self, "when_matched", condition)

    def whenNotMatched(self, condition: Any = None) -> LakeMergeClause:  # noqa: N802
        """Say what happens to rows of the source that match none."""
        return LakeMergeClause(self, "when_not_matched", condition)

    def whenNotMatchedBySource(self, condition: Any = None) -> LakeMergeClause:  # noqa: N802
        """Say what happens to rows of the table that match none."""
        return LakeMergeClause(self, "when_not_matched_by_source", condition)

    def withSchemaEvolution(self) -> Self:  # noqa: N802
        """Add columns of the source that the table lacks; columns that the source lacks are then left as they are."""
        self._evolves = True
        return self

    def add(self, when: str, condition: Any, action: str, values: dict[str, Any] | None) -> Self:
        """Keep a clause."""
        self._clauses.append((when, condition, action, values))
        return self

    def merge(self) -> None:
        """Carry the merge out."""
        place, table, branch = self._engine.session.write_target(self._name)
        qualifiers = own_qualifiers(place, None, TARGET)
        alias = self._engine.alias_of(self._frame)
        if alias is not None:
            qualifiers[alias,] = SOURCE

        def spell(column: Any) -> str:
            return requalify(self._engine.column_text(column), qualifiers)

        options = write_options(self._engine, table, branch)
        if not self._evolves:
            self._run(table, spell, options)
            return
        with table.transaction() as changes:
            evolve_schema(self._engine, changes, self._frame)
            self._run(changes, spell, {**options, "merge_schema": True})

    def _run(self, table: TableVerbs, spell: Callable[[Any], str], options: dict[str, Any]) -> None:
        builder: Any = table.merge(self._frame, on=spell(self._condition), **options)
        for when, condition, action, values in self._clauses:
            start = getattr(builder, when)
            clause = start() if condition is None else start(spell(condition))
            run = getattr(clause, action)
            builder = run() if values is None else run({key: spell(value) for key, value in values.items()})
        builder.execute()


class LakeMergeClause:
    """What to do with the rows of one clause of a merge."""

    def __init__(self, owner: LakeMerge, when: str, condition: Any) -> None:
        self._owner = owner
        self._when = when
        self._condition = condition

    def updateAll(self) -> LakeMerge:  # noqa: N802
        """Set all columns from the source."""
        return self._owner.add(self._when, self._condition, "update_all", None)

    def update(self, assignments: dict[str, Any]) -> LakeMerge:
        """Set some columns."""
        return self._owner.add(self._when, self._condition, "update", assignments)

    def insertAll(self) -> LakeMerge:  # noqa: N802
        """Insert all columns of the source."""
        return self._owner.add(self._when, self._condition, "insert_all", None)

    def insert(self, assignments: dict[str, Any]) -> LakeMerge:
        """Insert some columns."""
        return self._owner.add(self._when, self._condition, "insert", assignments)

    def delete(self) -> LakeMerge:
        """Delete the rows."""
        return self._owner.add(self._when, self._condition, "delete", None)
