"""Values that hurt, through every verb in this process, against a model of rows in plain Python.

NaN, both zeros, infinities, decimals at their ends, times before 1970, text that differs in its normal form alone,
empty and long values, nulls at every depth: in random tables of every version, format, transform and mode of metrics,
which change while they are written to. A condition is a text for the table and a function for the model; it is true,
false or, as in SQL, neither.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
import random
import re
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import frazil

Row = dict[str, Any]
Condition = tuple[str, dict[str, Any], Callable[[Row], bool | None]]

DAY = dt.date
TIME = dt.datetime
UTC = dt.UTC
VALUES: dict[str, tuple[str, list[Any]]] = {
    "d": ("double", [math.nan, -0.0, 0.0, 1.5, -1.5, math.inf, -math.inf, 5e-324, 1e308]),
    "f": ("float", [math.nan, -0.0, 0.0, 1.5, -2.25, math.inf, -math.inf]),
    "n": ("decimal(9,2)", [Decimal("0.00"), Decimal("-0.01"), Decimal("1.10"), Decimal("-9999999.95")]),
    "m": (
        "decimal(38,10)",
        [Decimal("0E-10"), Decimal("1.0000000001"), *(Decimal(f"{sign}{'9' * 28}.{'9' * 10}") for sign in ("", "-"))],
    ),
    "i": ("int", [0, -1, 1, 2**31 - 1, -(2**31)]),
    "l": ("bigint", [0, -1, 7, 2**63 - 1, -(2**63)]),
    "dy": ("date", [DAY(1970, 1, 1), DAY(1969, 12, 31), DAY(1900, 3, 1), DAY(2024, 2, 29), DAY(9999, 12, 31), DAY.min]),
    "ts": ("timestamp", [TIME(1970, 1, 1), TIME(1969, 12, 31, 23, 59, 59), TIME(1883, 11, 18, 12), TIME(2024, 2, 29)]),
    "tz": (
        "timestamptz",
        [TIME(1970, 1, 1, tzinfo=UTC), TIME(1969, 12, 31, 23, tzinfo=UTC), TIME(2024, 10, 27, 1, tzinfo=UTC)],
    ),
    "s": (
        "string",
        [
            "", "a", "A", "\u00e9", "e\u0301", "\u00df", "\U0001f600", "a\0b", "it's", "%", "\\", "x" * 40, " ", "null",
            "\uffff" * 20, "\U0010ffff" * 20,
        ],
    ),
    "b": ("binary", [b"", b"\0", b"\xff" * 20, b"ab", b"\xff\0"]),
    "u": ("uuid", [uuid.UUID(int=number) for number in (0, 1, 1 << 127, 2**128 - 1)]),
    "o": ("boolean", [True, False]),
    "st": ("struct<a: int, b: struct<c: string, d: double>>", []),
}  # fmt: skip
INSIDE = {("st", "a"): "i", ("st", "b", "c"): "s", ("st", "b", "d"): "d"}
SPECS = [
    [], ["s"], ["bucket(3, s)"], ["truncate(2, s)"], ["truncate(10, i)"], ["truncate(5, n)"], ["bucket(4, u)"], ["b"],
    ["bucket(3, b)", "truncate(1, b)"], ["dy"], ["year(dy)"], ["month(ts)"], ["day(tz)"], ["hour(ts)"], ["l"], ["d"],
    ["f"], ["o", "bucket(2, m)"], ["m"], ["n"], ["st.a"], ["truncate(1, st.b.c)"], ["u"], ["tz"], ["truncate(3, m)"],
    ["bucket(3, dy)", "month(tz)"],
]  # fmt: skip
OPERATORS = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip


def ordered(value: Any) -> Any:
    """Return what a value is compared by: NaN is itself and above all numbers, the zeros are equal, text is bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def exact(value: Any) -> str:
    """Return a text that tells all values apart, the two zeros too; all NaNs are one."""
    if isinstance(value, dict):
        return str({name: exact(inner) for name, inner in value.items()})
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return f"{value.astimezone(UTC).isoformat()}"
    return repr(value)


def with_one_zero(value: Any) -> str:
    """Return such a text, in which the two zeros are one, as queries may show them (docs/local-sql.md)."""
    return re.sub(r"-0\.0(?!\d)", "0.0", exact(value))


class Odd:
    """A table and the rows that it must have."""

    def __init__(self, seed: int) -> None:
        self.chance = some = random.Random(seed)
        version = some.choice([1, 2, 3])
        mode = "copy-on-write" if version == 1 else some.choice(["copy-on-write", "merge-on-read"])
        properties = {f"write.{command}.mode": mode for command in ("delete", "update", "merge")}
        properties["write.metadata.metrics.default"] = some.choice(
            ["none", "counts", "full", "truncate(1)", "truncate(16)"]
        )
        properties["write.format.default"] = some.choice(["parquet", "parquet", "parquet", "avro", "orc"])
        properties["write.parquet.page-row-limit"] = some.choice(["2", "20000"])
        spec = some.choice(SPECS)
        needed = {term.split("(")[-1].split(",")[-1].strip(" )").split(".")[0] for term in spec}
        self.names = sorted(needed | set(some.sample(sorted(VALUES), 5)))
        self.columns = {name: name for name in self.names}
        """The columns, each with the name of those values that it has."""
        self.lake = frazil.connect("memory:", catalog="memory")
        self.table = self.lake.create_table(
            "db.t",
            ", ".join(["id bigint", *(f"{name} {VALUES[name][0]}" for name in self.names)]),
            partition_by=spec,
            properties=properties,
            format_version=version,
        )
        self.rows: list[Row] = []
        self.next_id = 0
        self.branches: dict[str, list[Row]] = {}
        self.story = [f"{seed}: v{version} {mode} {spec} {properties} {self.names}"]

    def value(self, name: str) -> Any:
        some = self.chance
        if some.random() < 0.15:
            return None
        if name == "st":
            return {"a": self.value("i"), "b": some.choice([None, {"c": self.value("s"), "d": self.value("d")}])}
        return some.choice(VALUES[name][1])

    def row(self, row_id: int | None = None) -> Row:
        if row_id is None:
            row_id = self.next_id
            self.next_id += 1
        return {"id": row_id, **{name: self.value(values) for name, values in self.columns.items()}}

    def some_rows(self, most: int) -> list[Row]:
        return [self.row() for _ in range(self.chance.randint(1, most))]

    def source(self) -> list[Row]:
        """Return rows, some of them of ids that are there; none twice."""
        ids = [self.chance.choice(self.rows)["id"] if self.chance.random() < 0.6 else None for _ in range(5)]
        return list({row["id"]: row for row in map(self.row, ids)}.values())

    def arrow(self, rows: Iterable[Row]) -> pa.Table:
        schema = self.table.scan().arrow_schema
        given = [[row.get(name) for row in rows] for name in schema.names]
        stored = [[value.bytes if isinstance(value, uuid.UUID) else value for value in column] for column in given]
        columns = []
        for field, values in zip(schema, stored, strict=True):
            plain = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
            array = pa.array(values, plain)
            columns.append(array if plain == field.type else pa.ExtensionArray.from_storage(field.type, array))
        return pa.Table.from_arrays(columns, schema=schema)

    # Conditions

    def leaf(self) -> Condition:
        some = self.chance
        # The order of uuids is their text's to Spark, and they are compared there.
        name = some.choice(["id", *(name for name, values in self.columns.items() if values != "u")])
        path: tuple[str, ...] = (name,)
        values = self.columns.get(name, "l")
        if values == "st":
            path, values = some.choice(list(INSIDE.items()))
        text = ".".join(path)

        def get(row: Row) -> Any:
            found: Any = row
            for step in path:
                found = None if found is None else found.get(step)
            return found

        known = [value for value in VALUES[values][1] if value == value]
        if name == "id":
            known = list(range(max(self.next_id, 1)))
        parameter = f"p{some.randrange(1 << 30)}"
        form = some.choice(["null", "in", "compare", "between", "same"])
        if form == "null":
            return f"{text} is null", {}, lambda row: get(row) is None
        if form == "same":
            wanted = some.choice([None, *known])
            return (
                f"{text} <=> :{parameter}",
                {parameter: wanted},
                lambda row: get(row) is wanted if None in (get(row), wanted) else ordered(get(row)) == ordered(wanted),
            )
        if form == "in":
            listed = some.sample(known, min(len(known), 2))
            names = [f"{parameter}_{number}" for number in range(len(listed))]
            return (
                f"{text} in ({', '.join(f':{one}' for one in names)})",
                dict(zip(names, listed, strict=True)),
                lambda row: None if get(row) is None else ordered(get(row)) in map(ordered, listed),
            )
        low, high = some.choice(known), some.choice(known)
        if values == "n" and form == "compare":
            sign, compare = some.choice(list(OPERATORS.items()))
            return (
                f"{text} {sign} {low}",
                {},
                lambda row: None if get(row) is None else compare(get(row), low),
            )
        if form == "between":
            return (
                f"{text} between :{parameter}_l and :{parameter}_h",
                {f"{parameter}_l": low, f"{parameter}_h": high},
                lambda row: None if get(row) is None else ordered(low) <= ordered(get(row)) <= ordered(high),
            )
        sign, compare = some.choice(list(OPERATORS.items()))
        return (
            f"{text} {sign} :{parameter}",
            {parameter: low},
            lambda row: None if get(row) is None else compare(ordered(get(row)), ordered(low)),
        )

    def condition(self, depth: int = 0) -> Condition:
        form = self.chance.choice(["leaf", "leaf", "not", "and", "or"]) if depth < 3 else "leaf"
        if form == "leaf":
            return self.leaf()
        text, given, holds = self.condition(depth + 1)
        if form == "not":
            return f"not ({text})", given, lambda row: None if holds(row) is None else not holds(row)
        other, more, also = self.condition(depth + 1)
        decides = form == "or"

        def both(row: Row) -> bool | None:
            found = (holds(row), also(row))
            return decides if decides in found else None if None in found else not decides

        return f"({text}) {form} ({other})", {**given, **more}, both

    # Steps

    def check(self, found: pa.Table, rows: Iterable[Row], tell: Callable[[Any], str] = exact) -> None:
        given = [
            {
                name: uuid.UUID(bytes=value) if isinstance(value, bytes) and self.columns.get(name) == "u" else value
                for name, value in row.items()
            }
            for row in found.to_pylist()
        ]
        wanted = [{name: row.get(name) for name in found.column_names} for row in rows]
        assert sorted(map(tell, given)) == sorted(map(tell, wanted)), "\n".join(self.story)

    def step(self) -> None:
        steps = [self.append, self.delete, self.update, self.overwrite, self.upsert, self.merge]
        chosen = self.chance.choice([*steps, self.ask, self.ask, self.evolve, self.branch, self.compact])
        if not self.rows:
            chosen = self.append
        self.story.append(chosen.__name__)
        chosen()
        self.check(self.table.scan().to_arrow(), self.rows)

    def split(self) -> tuple[str, dict[str, Any], list[Row], list[Row]]:
        text, given, holds = self.condition()
        self.story[-1] += f" {text} {given}"
        meant = [row for row in self.rows if holds(row) is True]
        return text, given, meant, [row for row in self.rows if holds(row) is not True]

    def append(self) -> None:
        new = self.some_rows(12)
        self.table.append(self.arrow(new))
        self.rows += new

    def ask(self) -> None:
        text, given, meant, _ = self.split()
        self.check(self.table.scan(text, **given).to_arrow(), meant)
        columns = ["id", self.chance.choice(list(self.columns))]
        self.check(self.table.scan(text, columns=columns, **given).to_arrow(), meant)
        query = re.sub(r":(\w)", r"$\1", text).replace("<=>", "is not distinct from")
        self.check(self.lake.sql(f"select * from db.t where {query}", **given).to_arrow(), meant, with_one_zero)

    def delete(self) -> None:
        text, given, _, self.rows = self.split()
        self.table.delete(text, engine="local", **given)

    def overwrite(self) -> None:
        text, given, _, rest = self.split()
        new = self.some_rows(4)
        self.table.overwrite(self.arrow(new), where=text, engine="local", **given)
        self.rows = rest + new

    def update(self) -> None:
        text, given, meant, rest = self.split()
        name = self.chance.choice(list(self.columns))
        value = self.value(self.columns[name])
        if self.columns[name] == "st" or value != value:
            value = None
        self.story[-1] += f" {name} = {value!r}"
        self.table.update({name: ":value"}, where=text, engine="local", value=value, **given)
        self.rows = rest + [{**row, name: value} for row in meant]

    def upsert(self) -> None:
        keys = [name for name, values in self.columns.items() if values != "st"]
        key = self.chance.choice(["id", "id", *keys])

        def key_of(row: Row) -> Any:
            return None if row.get(key) is None else ordered(row[key])

        source = {key_of(row): row for row in self.source()}
        self.story[-1] += f" {key} {source}"
        self.table.upsert(self.arrow(source.values()), keys=[key], engine="local")
        known = {key_of(row) for row in self.rows}
        self.rows = [source.get(key_of(row), row) for row in self.rows]
        self.rows += [row for value, row in source.items() if value not in known]

    def merge(self) -> None:
        name = self.chance.choice(
            [name for name, values in self.columns.items() if values not in ("st", "u")] or ["id"]
        )
        source = {row["id"]: row for row in self.source()}
        self.story[-1] += f" {name} {source}"
        merging = self.table.merge(self.arrow(source.values()), on="target.id = source.id", engine="local")
        merging = merging.when_matched(f"source.{name} is null").delete()
        merging = merging.when_matched(f"target.{name} < source.{name}").update({name: f"source.{name}"})
        merging.when_matched().update_all().when_not_matched(f"source.{name} is not null").insert_all().execute()
        known = {row["id"] for row in self.rows}
        self.rows = [made for row in self.rows if (made := self.merged(row, source.get(row["id"]), name)) is not None]
        self.rows += [row for row_id, row in source.items() if row_id not in known and row.get(name) is not None]

    def merged(self, row: Row, given: Row | None, name: str) -> Row | None:
        if given is None:
            return row
        if given.get(name) is None:
            return None
        is_less = row.get(name) is not None and ordered(row[name]) < ordered(given[name])
        return {**row, name: given[name]} if is_less else given

    def evolve(self) -> None:
        name = self.chance.choice([name for name in VALUES if name != "st"])
        if f"new_{name}" in self.columns:
            return
        with self.table.update_schema() as update:
            update.add_column(f"new_{name}", VALUES[name][0])
        self.columns[f"new_{name}"] = name
        if name in ("s", "i", "l", "b", "dy"):
            with self.table.update_spec() as update_spec:
                update_spec.add_field(f"bucket(2, new_{name})")

    def branch(self) -> None:
        self.table.create_branch(f"b{len(self.branches)}")
        self.branches[f"b{len(self.branches)}"] = list(self.rows)

    def compact(self) -> None:
        self.table.maintain.rewrite_data_files(rewrite_all=True)


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 200))])
def test_odd_values_are_found_and_changed_like_in_plain_python(seed: int) -> None:
    odd = Odd(seed)
    for _ in range(12):
        odd.step()
    for name, rows in odd.branches.items():
        odd.check(odd.table.scan(ref=name, columns=["id"]).to_arrow(), rows)
    assert odd.table.check().ok
