"""Random statements of `lake.sql` do what DuckDB does with the same statements, or are refused."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import frazil
from frazil.errors import FrazilError
from tests.unit.table.plain_queries import PlainQueries
from tests.unit.table.random_statements import COLUMNS, Statements

DEFINITION = ", ".join(f"{name} {data_type}" for name, data_type in COLUMNS.items())
PARAMETERS: dict[str, Any] = {
    "k": 3,
    "m": Decimal("2.50"),
    "y": 0.1,
    "q": "a\\b'",
    "w": datetime.date(2024, 2, 29),
    "ts": datetime.datetime(2024, 2, 29, 5, 30),
    "tz": datetime.datetime(1969, 12, 31, 5, tzinfo=datetime.UTC),
}


class Twins:
    """A table of a lake and one of DuckDB with the same rows."""

    def __init__(self, statements: Statements) -> None:
        self.lake = PlainQueries(frazil.connect("memory:", catalog="memory"))
        self.duckdb = duckdb.connect()
        self.duckdb.execute("set TimeZone = 'UTC'; create schema db")
        for name, keys in (("t", range(8)), ("u", range(4, 12))):
            self.lake.lake.create_namespace("db")
            self.lake.sql(f"create table db.{name} ({DEFINITION})")
            table = self.lake.lake.table(f"db.{name}")
            rows = [statements.row(key) for key in keys]
            table.append(rows[:4])
            table.append(rows[4:])
            self.duckdb.execute(f"create table db.{name} ({DEFINITION})")
            self.duckdb.register("copied", table.scan().to_arrow())
            self.duckdb.execute(f"insert into db.{name} from copied")

    def close(self) -> None:
        """Give both back."""
        self.lake.close()
        self.duckdb.close()

    def rows(self) -> tuple[list[str], list[str]]:
        """Return the rows of both."""
        own = self.lake.lake.table("db.t").scan().to_arrow()
        return comparable(own), comparable(self.duckdb.sql("from db.t").to_arrow_table())

    def run(self, text: str) -> str:
        """Run a statement on both, and return what came of it."""
        parameters = {name: PARAMETERS[name] for name in re.findall(r"\$(\w+)", text)}
        problem: FrazilError | None = None
        other: duckdb.Error | None = None
        self.duckdb.execute("begin")
        try:
            self.duckdb.execute(text, parameters or None)
        except duckdb.Error as error:
            other = error
        try:
            self.lake.sql(text, **parameters)
        except FrazilError as error:
            problem = error
        self.duckdb.execute("commit" if other is None and problem is None else "rollback")
        if problem is not None:
            return "refused"
        if isinstance(other, duckdb.OutOfRangeException | duckdb.ConversionException):
            return "overflow"  # DuckDB also computes values for rows that a clause leaves out
        if other is not None and "more than one source row" in str(other):
            return "two matches"  # which DELETE without a condition leaves no doubt about
        if other is not None:
            return "only an error of DuckDB"
        own, others = self.rows()
        return "equal" if own == others else "different"


def comparable(table: pa.Table) -> list[str]:
    """Return rows as sorted texts; of two zeros that are equal, the sign is left out."""
    columns = []
    for column in table.columns:
        values = column.combine_chunks()
        if pa.types.is_date(values.type):
            values = values.cast(pa.int32())
        elif pa.types.is_timestamp(values.type):
            values = values.cast(pa.int64())
        columns.append([value if value != 0 else 0 for value in values.to_pylist()])
    return sorted(repr(row) for row in zip(*columns, strict=True))


def outcomes(seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """Return how many statements had which outcome, and the texts of those that are neither equal nor refused."""
    statements = Statements(seed)
    twins = Twins(statements)
    found: Counter[str] = Counter()
    wrong: list[str] = []
    while found.total() < count:
        text = statements.statement()
        outcome = twins.run(text)
        found[outcome] += 1
        if outcome not in ("equal", "refused", "overflow", "two matches"):
            wrong.append(f"{outcome}: {text}")
        if outcome != "refused" and (found["equal"] % 8 == 0 or outcome != "equal"):
            twins.close()
            twins = Twins(statements)
    twins.close()
    return found, wrong


@pytest.mark.parametrize("seed", range(4))
def test_random_statements_equal_duckdb_or_are_refused(seed: int) -> None:
    found, wrong = outcomes(seed, 125)
    assert wrong == []
    assert found["equal"] > 40
    assert found["overflow"] <= 3
