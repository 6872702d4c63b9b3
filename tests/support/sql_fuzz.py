"""Random tables and random queries, for comparing `lake.sql` with DuckDB over the same rows in memory."""

# ruff: noqa: E501 - queries are read best in one line
from __future__ import annotations

import datetime
import math
import random
from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

import frazil
from frazil.errors import FrazilError

_WORDS = ["", "a", "b", "ab", "abc", "B", "é", "日本", "x%y", "z_z", "\\", "'", "1", "zz" * 9]
_COLUMNS = {
    "i": "int",
    "l": "long",
    "f": "float",
    "d": "double",
    "m": "decimal(9,2)",
    "s": "string",
    "b": "boolean",
    "day": "date",
    "ts": "timestamp",
    "tz": "timestamptz",
}
_NUMBERS = ("i", "l", "d", "m")
_PARTITIONS = [[], ["s"], ["day"], ["truncate(3, i)"], ["bucket(3, l)"], ["month(ts)"], ["b"], ["day(tz)"], ["m"]]


def random_row(rng: random.Random) -> dict[str, Any]:
    """Return a row with nulls, NaN, infinities, negative zero and odd texts."""
    epoch = datetime.datetime(2024, 1, 1)
    doubles = [math.nan, math.inf, -math.inf, -0.0, 0.0, *(float(number) for number in range(-3, 6)), 0.5, 1e300]
    row: dict[str, Any] = {
        "i": rng.choice([rng.randint(-5, 9), 2**31 - 1, -(2**31)]) if rng.random() < 0.1 else rng.randint(-5, 9),
        "l": rng.choice([rng.randint(-5, 9), 2**40, -(2**62), 2**53 + 1, 2**53 + 3]),
        "f": rng.choice(doubles[:-1]),
        "d": rng.choice(doubles),
        "m": Decimal(rng.randint(-500, 900)).scaleb(-2),
        "s": rng.choice(_WORDS),
        "b": rng.random() < 0.5,
        "day": (epoch + datetime.timedelta(days=rng.randint(-40, 40))).date(),
        "ts": epoch + datetime.timedelta(seconds=rng.randint(-(10**6), 10**6), microseconds=rng.choice([0, 1])),
        "tz": (epoch + datetime.timedelta(hours=rng.randint(-500, 500))).replace(tzinfo=datetime.UTC),
    }
    return {name: None if rng.random() < 0.12 else value for name, value in row.items()}


def random_lake(rng: random.Random, folder: str) -> tuple[frazil.Lake, dict[str, pa.Table]]:
    """Return a lake of three tables with several files, deletes and changed columns, and their rows."""
    lake = frazil.connect(folder)
    rows: dict[str, pa.Table] = {}
    for name in ("t", "u", "v"):
        columns = dict(_COLUMNS)
        late = rng.choice(["d", "m", "s", "l"])
        early = {column: kind for column, kind in columns.items() if column != late}
        partition = [term for term in rng.choice(_PARTITIONS) if term != late and f" {late})" not in term]
        names = {column: "old" if column == "f" else column for column in early}
        ddl = ", ".join(f"{names[column]} {'int' if column == 'l' else kind}" for column, kind in early.items())
        table = lake.create_table(
            f"db.{name}", ddl, partition_by=partition, format_version=rng.choice([2, 3]),
            properties={
                "write.delete.mode": rng.choice(["merge-on-read", "copy-on-write"]),
                "write.parquet.row-group-limit": "5",
            },
        )  # fmt: skip
        data = [random_row(rng) for _ in range(rng.randint(5, 40))]
        small = [{names[c]: v for c, v in row.items() if c in early} for row in data]
        for row in small:
            if row.get("l") is not None:
                row["l"] = max(min(row["l"], 2**31 - 1), -(2**31))
        half = len(small) // 2
        table.append(small[:half])
        promotes = rng.random() < 0.5
        with table.update_schema() as update:
            update.rename_column("old", "f")
            if promotes and "l" in early and not any("l" in term for term in partition):
                update.set_type("l", "long")
        small = [{"f" if c == "old" else c: v for c, v in row.items()} for row in small]
        with table.update_schema() as update:
            default = {"d": 1.5, "m": Decimal("2.50"), "s": "new", "l": 7}[late] if table.format_version == 3 else None
            update.add_column(late, columns[late], default=default)
        table.append([{**row, late: random_row(rng)[late]} for row in small[half:]])
        for condition in rng.sample(["i = 3", "s = 'a'", "i > 7", "b = true and i < 0", "day < '2023-12-20'"], 2):
            if rng.random() < 0.6:
                table.delete(condition)
        rows[name] = table.scan().to_arrow().select([*early, late])
    return lake, rows


class QueryMaker:
    """Makes random queries over the tables t, u and v."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def query(self, depth: int = 0) -> str:
        rng = self._rng
        kind = rng.random()
        if kind < 0.12 and depth < 2:
            word = rng.choice(["union all", "union", "except", "intersect", "except all", "intersect all"])
            column = rng.choice(list(_COLUMNS))
            other = rng.choice([column, "l" if column == "i" else column, "d" if column in ("i", "l", "f") else column])
            return f"(select t.{column} x from db.t t {self.where('t')}) {word} (select u.{other} from db.u u {self.where('u')})"
        if kind < 0.15 and depth < 2:
            column, other = rng.choice(list(_COLUMNS)), rng.choice(["i", "l", "d", "m", "s", "i", "l"])
            second = rng.choice([f"select {other} from db.u", "select 'abc'", "select 1::double", "select 1.5"])
            return f"select * from (select {column} as {column} from db.t {rng.choice(['union all', 'union'])} {second}) q where {self.condition('q', (column,))}"
        if kind < 0.20 and depth < 2:
            return f"with c as ({self.query(depth + 1)}), e as (select i, s, d from db.v {self.where('')}) select count(*) n, (select count(*) from e) k from c"
        if kind < 0.28 and depth < 2:
            return f"select q.i, q.s from (select i, s, d, ts from db.t {self.where('')}) q {self.where('q', ('i', 's', 'd', 'ts'))}"
        if kind < 0.40:
            return self._grouped()
        if kind < 0.50:
            return self._window()
        if kind < 0.70:
            return self._joined()
        if kind < 0.78:
            return self._with_subquery()
        if kind < 0.84:
            return f"select i, l, d, s from db.t {self.where('')} order by i nulls last, l nulls first, d desc, s limit {rng.randint(1, 9)}"
        columns = ", ".join(f"{self.value('t')} x{number}" for number in range(rng.randint(1, 3)))
        return f"select {columns} from db.t t {self.where('t')}"

    def where(self, alias: str, columns: tuple[str, ...] = tuple(_COLUMNS)) -> str:
        if self._rng.random() < 0.25:
            return ""
        return f"where {self.condition(alias, columns)}"

    def condition(self, alias: str, columns: tuple[str, ...] = tuple(_COLUMNS), depth: int = 0) -> str:
        rng = self._rng
        if depth < 2 and rng.random() < 0.45:
            word = rng.choice(["and", "and", "or"])
            return f"({self.condition(alias, columns, depth + 1)} {word} {self.condition(alias, columns, depth + 1)})"
        if rng.random() < 0.15:
            return f"not ({self.condition(alias, columns, 2)})"
        column = rng.choice(columns)
        name = f"{alias}.{column}" if alias else column
        literal = self.literal(column)
        kind = rng.random()
        if kind < 0.1:
            return f"{name} is {rng.choice(['', 'not '])}null"
        if kind < 0.2:
            return f"{name} {rng.choice(['', 'not '])}in ({literal}, {self.literal(column)}, {rng.choice(['null', literal])})"
        if kind < 0.3:
            return f"{name} {rng.choice(['', 'not '])}between {literal} and {self.literal(column)}"
        if kind < 0.35 and column == "s":
            return f"{name} like '{rng.choice(['a%', 'ab', '%b', 'z_%', ''])}'"
        if kind < 0.4:
            return f"{name} is {rng.choice(['', 'not '])}distinct from {literal}"
        operator = rng.choice(["=", "<", ">", "<=", ">=", "<>"])
        return f"{literal} {operator} {name}" if rng.random() < 0.2 else f"{name} {operator} {literal}"

    def mixed(self, aliases: str, depth: int = 0) -> str:
        """Return a condition on several tables, of tests that may be true of null."""
        rng = self._rng
        if depth < 3 and rng.random() < 0.7:
            word = rng.choice(["and", "or"])
            test = f"({self.mixed(aliases, depth + 1)} {word} {self.mixed(aliases, depth + 1)})"
            return f"not {test}" if rng.random() < 0.15 else test
        alias, column = rng.choice(aliases), rng.choice(["i", "s", "d", "l", "b"])
        name, literal = f"{alias}.{column}", self.literal(column)
        tests = [
            f"{name} is null", f"{name} is not null", f"coalesce({name}, {literal}) = {literal}", f"{name} = {literal}",
            f"{literal} >= {name}", f"{name} = {rng.choice(aliases)}.{column}", f"{name} is distinct from {literal}",
            f"{name} in ({literal}, {self.literal(column)})", f"{literal} in ({name}, {self.literal(column)})",
            f"{literal} between {name} and {self.literal(column)}", f"{name} not between {literal} and {self.literal(column)}",
            f"case when {name} = {literal} then true else {alias}.b end", f"{alias}.b",
        ]  # fmt: skip
        return rng.choice(tests)

    def literal(self, column: str) -> str:
        rng = self._rng
        if rng.random() < 0.03:
            return "null"
        if column in ("i", "l"):
            return rng.choice(
                [
                    str(rng.randint(-6, 10)),
                    "9007199254740992",
                    "1e300",
                    "1.5",
                    "2147483648",
                    "'3'",
                    "2e0",
                    "99999999999",
                ]
            )
        if column in ("f", "d"):
            return rng.choice(
                ["0", "-0.0", "1.5", "0.1", "3", "'nan'::double", "'inf'::double", "1e3", "-2", "'-inf'::float"]
            )
        if column == "m":
            return rng.choice(["0", "1.25", "2.005", "-3", "'2.5'::decimal(5,2)", "1e0", "8.99"])
        if column == "s":
            return "'" + rng.choice(_WORDS).replace("'", "''") + "'"
        if column == "b":
            return rng.choice(["true", "false"])
        day = f"2024-01-{rng.randint(1, 28):02d}"
        if column == "day":
            return rng.choice([f"'{day}'", f"date '{day}'", "date '2023-12-24'"])
        if column == "ts":
            return rng.choice([f"'{day} 05:00:00'", f"timestamp '{day} 00:00:00.000001'", f"date '{day}'", f"'{day}'"])
        return rng.choice([f"'{day} 05:00:00+02:00'", f"timestamptz '{day} 00:00:00Z'", f"'{day}'", f"date '{day}'"])

    def value(self, alias: str) -> str:
        rng = self._rng
        column = rng.choice(list(_COLUMNS))
        return rng.choice(
            [
                f"{alias}.{column}",
                f"case when {self.condition(alias)} then {alias}.i else {alias}.d end",
                f"case when {self.condition(alias)} then {alias}.i else {alias}.l end",
                f"coalesce({alias}.i, {alias}.d, 3)",
                f"cast({alias}.i as double) * 2",
                f"{alias}.m + {alias}.i",
                f"cast({alias}.m as varchar)",
                f"upper({alias}.s) || '!'",
                f"{alias}.day + 1",
                f"date_trunc('month', {alias}.ts)",
                f"greatest({alias}.f, {alias}.d)",
                f"nullif({alias}.s, 'a')",
                f"try_cast({alias}.s as int)",
            ]
        )

    def _grouped(self) -> str:
        rng = self._rng
        keys = rng.sample(["s", "b", "i", "day", "d", "f", "m"], rng.randint(1, 2))
        column = rng.choice(list(_COLUMNS))
        measures = rng.sample(
            ["count(*) n", f"min({column}) lo", f"max({column}) hi", "sum(i) si", "sum(m) sm", "avg(i) a", "count(distinct s) cs",
             "max(d) hd", "min(f) lf", "bool_or(b) o"], 3,
        )  # fmt: skip
        grouping = rng.choice(["", "", "rollup", "cube"])
        by = f"{grouping}({', '.join(keys)})" if grouping else ", ".join(keys)
        having = rng.choice(["", "having count(*) > 1", "having max(d) > 2"])
        return f"select {', '.join(keys)}, {', '.join(measures)} from db.t {self.where('')} group by {by} {having}"

    def _window(self) -> str:
        rng = self._rng
        over = f"(partition by {rng.choice(['s', 'b', 'd'])} order by i, l, m, ts, day, tz, s, b, f, d)"
        what = rng.choice(["row_number()", "rank()", "sum(i)", "lag(s)", "max(d)", "count(m)", "first_value(l)"])
        return f"select i, {what} over {over} w from db.u {self.where('')}"

    def _joined(self) -> str:
        rng = self._rng
        join = rng.choice(["join", "left join", "right join", "full join", "semi join", "anti join", "cross join"])
        if join == "cross join":
            return f"select t.i, u.i k from db.t t, db.u u where t.i = u.i and {self.condition('t')}"
        on = rng.choice(["t.i = u.i", "t.s = u.s", "t.d = u.d", "t.i = u.l", "t.day = u.day and t.b = u.b"])
        if rng.random() < 0.5:
            on += f" and {self.condition(rng.choice('tu'))}"
        if join in ("semi join", "anti join"):
            return f"select t.i, t.s from db.t t {join} db.u u on {on} {self.where('t')}"
        more = f" and {self.condition('u')}" if rng.random() < 0.4 else ""
        second = rng.choice(["", " join db.v v on v.i = t.i", " left join db.v v on v.i = u.i and v.b"])
        if rng.random() < 0.3:
            inner = f"(select u.i, u.s, v.d, v.l, u.b from db.u u {rng.choice(['left', 'right', 'full'])} join db.v v on u.i = v.i {self.where('v')})"
            source = rng.choice(
                [
                    f"db.u u on {on}",
                    f"{inner} u on t.i = u.i",
                    f"db.u u on {on} left join db.v v on {self.mixed('tuv')}",
                ]
            )
            return f"select t.i, t.s, u.i k, u.d from db.t t {rng.choice([join, 'left join'])} {source} where {self.mixed('tu')}"
        if rng.random() < 0.2:
            return f"select i, t.s, u.s z from db.t t {join} db.u u using (i) where {self.condition('t', ('s', 'l'))} {more} and i > 0"
        return (
            f"select t.i, t.s, u.i k, u.d from db.t t {join} db.u u on {on}{second} where {self.condition('t')}{more}"
        )

    def _with_subquery(self) -> str:
        rng = self._rng
        return rng.choice(
            [
                f"select i, s from db.t t where {rng.choice(['', 'not '])}exists (select 1 from db.u u where u.i = t.i and {self.condition('u')}) and {self.condition('t')}",
                f"select i from db.t where i {rng.choice(['', 'not '])}in (select l from db.u {self.where('')})",
                f"select i, (select max(d) from db.u u where u.i = t.i) x from db.t t {self.where('t')}",
                f"select count(*) from db.t t, lateral (select u.s z from db.u u where u.i = t.i and {self.condition('u')}) q where {self.condition('t')}",
                f"select i from db.t where d > (select avg(i) from db.v {self.where('')})",
            ]
        )


def rows_of(table: pa.Table) -> Counter[str]:
    """Return rows as text, each with how often it is there."""
    return Counter(repr([_comparable(value) for value in row.values()]) for row in _dicts(table))


def _dicts(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.rename_columns([str(n) for n in range(table.num_columns)]).to_pylist()
    return rows


def _comparable(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    if isinstance(value, datetime.datetime):
        return value.timestamp() if value.tzinfo else value.isoformat()
    return value


def compare(lake: frazil.Lake, memory: duckdb.DuckDBPyConnection, query: str) -> str | None:
    """Return how the answers differ, or None; a query that fails must fail on both sides."""
    try:
        expected: Counter[str] | str = rows_of(memory.sql(query).to_arrow_table())
    except duckdb.Error as error:
        expected = f"error: {str(error)[:200]}"
    try:
        found: Counter[str] | str = rows_of(lake.sql(query).to_arrow())
    except FrazilError as error:
        found = f"error: {error.message[:200]}"
    if isinstance(expected, str) and isinstance(found, str):
        return None
    # An error that depends on rows may not be met if conditions are applied in another order.
    if expected == found:
        return None
    if isinstance(expected, str) or isinstance(found, str):
        return f"{query}\n  DuckDB: {str(expected)[:400]}\n  lake.sql: {str(found)[:400]}"
    return f"{query}\n  missing: {list((expected - found).elements())[:5]}\n  extra: {list((found - expected).elements())[:5]}"


def memory_of(rows: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB with the rows in tables of its own."""
    connection = duckdb.connect(config={"threads": 2})
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("CREATE SCHEMA db")
    for name, table in rows.items():
        connection.register("rows", table)
        connection.execute(f"CREATE TABLE db.{name} AS FROM rows")
    return connection
