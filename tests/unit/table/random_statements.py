"""Random statements in DuckDB's dialect over one table, and the rows they are about."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from random import Random
from typing import Any

COLUMNS = {
    "id": "INTEGER",
    "n": "BIGINT",
    "d": "DECIMAL(9, 2)",
    "e": "DECIMAL(18, 6)",
    "s": "VARCHAR",
    "t": "VARCHAR",
    "day": "DATE",
    "ts": "TIMESTAMP",
    "tz": "TIMESTAMPTZ",
    "x": "DOUBLE",
    "f": "FLOAT",
    "b": "BOOLEAN",
}
_TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "a%b",
    "a_b",
    "a\\b",
    "it's",
    "ß",
    "İi",
    "x😀y",
    "e\u0301",
    " a ",
    "null",
    "2024-02-29",
    "5",
]
_PATTERNS = ["a%", "%b", "a_b", "a\\%b", "\\", "%😀%", "_", "%", "", "it''s", "a!%b", "a\\\\b", "x_y"]
_OF_KIND = {
    "whole": ("id", "n"),
    "decimal": ("d", "e"),
    "double": ("x",),
    "float": ("f",),
    "text": ("s", "t"),
    "date": ("day",),
    "moment": ("ts",),
    "zoned": ("tz",),
    "truth": ("b",),
}
KINDS = {name: kind for kind, names in _OF_KIND.items() for name in names}


class Statements:
    """Makes rows and statements from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.prefix = ""

    def row(self, key: int) -> dict[str, Any]:
        """Return a row of random values, of which some are null."""
        random = self.random
        row = {
            "id": key,
            "n": random.choice([0, 1, -1, 7, 2**31, 2**62, -(2**63), 2**63 - 1, random.randrange(-50, 50)]),
            "d": Decimal(random.choice([0, 1, -1, 150, 9999999, -12345, 999999999])) / 100,
            "e": Decimal(random.choice([0, 1, 333333, 1500000, -2, 10**15])) / 10**6,
            "s": random.choice(_TEXTS),
            "t": random.choice(_TEXTS),
            "day": random.choice([datetime.date(1970, 1, 1), datetime.date(2024, 2, 29), datetime.date(1, 1, 1)]),
            "ts": datetime.datetime(2024, 2, 29, random.randrange(24), 30, 0, random.choice([0, 1, 120000])),
            "tz": datetime.datetime(1969, 12, 31, random.randrange(24), tzinfo=datetime.UTC),
            "x": random.choice([0.0, -0.0, 0.1, 1.5, -2.25, 1e300, math.nan, math.inf, -math.inf, 3.0]),
            "f": random.choice([0.0, -0.0, 0.5, 0.10000000149011612, math.nan, 16777216.0]),
            "b": random.choice([True, False]),
        }
        return {name: None if name != "id" and random.random() < 0.15 else value for name, value in row.items()}

    def pick(self, *choices: Any) -> Any:
        """Return one of several."""
        return self.random.choice(choices)

    def column(self, kind: str) -> str:
        """Return a column of a kind, quoted and in any case."""
        name = self.random.choice(_OF_KIND[kind])
        written = self.pick(name, name, name.upper(), f'"{name}"')
        return f"{self.pick(*self.prefix.split())}.{written}" if self.prefix else str(written)

    def value(self, kind: str, depth: int = 2) -> str:
        """Return an expression of a kind."""
        if depth == 0 or self.random.random() < 0.3:
            return self.leaf(kind)
        below = depth - 1
        if self.random.random() < 0.12:
            condition, one, two = self.condition(below), self.value(kind, below), self.value(kind, below)
            return str(
                self.pick(
                    f"case when {condition} then {one} else {two} end",
                    f"case {one} when {two} then {two} end",
                    f"coalesce({one}, {two})",
                    f"nullif({one}, {two})",
                    f"greatest({one}, {two})",
                    f"least({one}, {two})",
                    f"if({condition}, {one}, {two})",
                    f"ifnull({one}, {two})",
                )
            )
        return str(getattr(self, f"_{kind}")(below))

    def leaf(self, kind: str) -> str:
        """Return a column or a literal of a kind."""
        if self.random.random() < 0.6:
            return self.column(kind)
        if self.random.random() < 0.05:
            return "null"
        literals = {
            "whole": ["0", "1", "-1", "7", "2147483648", "-9223372036854775807", "1_000", "$k"],
            "decimal": ["0.5", "1.50", "-0.01", ".25", "99999.99", "$m"],
            "double": ["1e0", "1.5e3", "-2e-1", "'nan'::double", "'inf'::double", "$y"],
            "float": ["f"] if not self.prefix else [f"{self.prefix.split()[0]}.f"],
            "text": ["''", "'a'", "'a\\b'", "'it''s'", "'ß'", "'😀'", "$q"],
            "date": ["date '2024-02-29'", "'1970-01-01'::date", "'2024-02-29'", "$w"],
            "moment": ["timestamp '2024-02-29 05:30:00'", "'2024-02-29 05:30:00.12'::timestamp", "$ts"],
            "zoned": ["timestamptz '1969-12-31 05:00:00'", "timestamptz '1970-01-01 00:00:00+05:30'", "$tz"],
            "truth": ["true", "false"],
        }
        return str(self.random.choice(literals[kind]))

    def _whole(self, depth: int) -> str:
        one, two = self.value("whole", depth), self.value("whole", depth)
        choices = [f"{one} + {two}", f"{one} - {two}", f"({one}) * ({two})", f"abs({one})", f"-({one})"]
        text, day = self.value("text", depth), self.value("date", depth)
        choices += [f"length({text})", f"year({day})", f"{day} - {self.value('date', depth)}", f"({one})::bigint"]
        choices += [f"({one}) % 3", f"mod({one}, -7)"]
        if self.random.random() > 0.15:
            return str(self.random.choice(choices))
        choices = [
            f"({one}) // 2",
            f"({one}) % ({two})",
            f"cast({self.value('double', depth)} as int)",
            f"strlen({text})",
        ]
        choices += [f"({one}) / 2", f"({one}) & 3", f"round({self.value('decimal', depth)})", f"day({day})"]
        return str(self.random.choice(choices))

    def _decimal(self, depth: int) -> str:
        one, two = self.value("decimal", depth), self.value(self.pick("decimal", "whole"), depth)
        choices = [f"{one} + {two}", f"{two} - {one}", f"({one}) * ({two})", f"abs({one})", f"-({one})"]
        choices += [f"({one})::decimal(30,8)"]
        if self.random.random() < 0.1:
            choices = [f"({one}) / 2", f"({one})::decimal(12,1)", f"({two})::decimal(20,3)"]
        return str(self.random.choice(choices))

    def _double(self, depth: int) -> str:
        one = self.value("double", depth)
        two = self.value(self.pick("double", "whole", "decimal", "float"), depth)
        choices = [f"{one} + {two}", f"{two} - {one}", f"({one}) * ({two})", f"abs({one})", f"-({one})"]
        choices += [f"({two})::double"]
        if self.random.random() < 0.1:
            choices = [f"({one}) / ({two})", f"sqrt({one})", f"({one}) ** 2", f"round({one}, 1)"]
        return str(self.random.choice(choices))

    def _float(self, depth: int) -> str:
        one = self.value("float", depth)
        odd = self.pick(f"{one} + {self.column('float')}", f"-({one})")
        return f"({one})::float" if self.random.random() < 0.9 else str(odd)

    def _text(self, depth: int) -> str:
        one, two = self.value("text", depth), self.value("text", depth)
        start, count = self.pick(1, 1, 2, 3, 0, -1), self.pick(0, 1, 2, 3, 3, -1)
        choices = [
            f"{one} || {two}",
            f"({one}) || ({two})",
            f"replace({one}, 'a', {two})",
            f"replace({one}, {two}, 'z')",
        ]
        choices += [f"substring({one}, {start}, {count})", f"substr({one}, {start})", f"left({one}, {count})"]
        choices += [f"right({one}, {count})", f"({self.value('whole', depth)})::varchar"]
        if self.random.random() < 0.85:
            return str(self.random.choice(choices))
        choices = [f"upper({one})", f"lower({one})", f"trim({one})", f"concat({one}, {two})"]
        choices += [f"({self.value('truth', 0)})::varchar", f"reverse({one})"]
        choices += [f"lpad({one}, 3, 'x')", f"({self.value('double', depth)})::varchar", f"({one})[1]"]
        return str(self.random.choice(choices))

    def _date(self, depth: int) -> str:
        one = self.value("date", depth)
        if self.random.random() < 0.1:
            return str(self.pick(f"last_day({one})", f"({one}) + interval 1 month"))
        return str(self.pick(f"{one} + 1", f"{one} - 40"))

    def _moment(self, depth: int) -> str:
        one, day = self.value("moment", depth), self.value("date", depth)
        if self.random.random() < 0.1:
            return str(self.pick(f"date_trunc('hour', {one})", f"{one} + interval 1 day"))
        return str(self.pick(f"({day})::timestamp", one))

    def _zoned(self, depth: int) -> str:
        one = self.value("zoned", depth)
        return str(self.pick(one, f"({self.value('moment', depth)})::timestamptz"))

    def _truth(self, depth: int) -> str:
        return self.condition(depth)

    def condition(self, depth: int = 2) -> str:
        """Return a condition."""
        if depth > 0 and self.random.random() < 0.4:
            one, two = self.condition(depth - 1), self.condition(depth - 1)
            return str(
                self.pick(f"{one} and {two}", f"({one} or {two})", f"not ({one})", f"{one} or {two}", f"not {one}")
            )
        kind = self.pick(*_OF_KIND)
        one, below = self.value(kind, min(depth, 1)), min(depth, 1)
        other = (
            kind if self.random.random() < 0.88 else self.pick("whole", "decimal", "double", "date", "moment", "float")
        )
        two = self.value(other, below)
        sign = self.pick("=", "<>", "!=", "<", "<=", ">", ">=", "is distinct from", "is not distinct from")
        three = self.leaf(other)
        choices = [f"{one} {sign} {two}"] * 4
        choices += [
            f"{one} is null",
            f"{one} is not null",
            f"{one} in ({two}, {three}, null)",
            f"{one} not in ({two}, {three})",
        ]
        choices += [f"{one} between {two} and {three}", f"{one} not between {two} and {three}"]
        if kind == "text":
            pattern = self.random.choice(_PATTERNS)
            choices += [f"{one} like '{pattern}'", f"{one} not like '{pattern}'", f"{one} like '{pattern}' escape '!'"]
            choices += [f"starts_with({one}, {self.leaf('text')})"]
            choices += [f"{one} ilike '{pattern}'", f"{one} ~ 'a.*'"] if self.random.random() < 0.1 else []
            choices += [
                f"{one} like '{pattern}' escape '\\'",
                f"ends_with({one}, {self.leaf('text')})",
                f"contains({one}, 'a')",
            ]
        if kind == "truth":
            choices += [self.column("truth"), f"{one} is true", f"{one} is not false"]
        return str(self.random.choice(choices))

    def assignments(self, *sources: str) -> str:
        """Return SET clauses."""
        names = self.random.sample([name for name in COLUMNS if name != "id"], self.random.randrange(1, 4))
        pairs = []
        for name in names:
            kind = KINDS[name]
            if self.random.random() < 0.1:
                kind = self.pick("whole", "decimal", "double", "text", "date")
            pairs.append(f"{self.pick(name, name.upper())} = {self.value(kind)}")
        return ", ".join(pairs)

    def statement(self) -> str:
        """Return a statement over db.t, beside the table db.u of the same columns."""
        kind = self.random.random()
        self.prefix = ""
        if kind < 0.4:
            where = f" where {self.condition()}" if self.random.random() < 0.8 else ""
            return f"update db.t set {self.assignments()}{where}"
        if kind < 0.6:
            return (
                f"delete from db.t where {self.condition()} and id % 3 = {self.random.randrange(3)}"
                if (self.random.random() < 0.1)
                else f"delete from db.t where {self.condition()}"
            )
        if kind < 0.75:
            names = ["id", *self.random.sample([name for name in COLUMNS if name != "id"], 4)]
            values = ", ".join("id + 1000" if name == "id" else self.value(KINDS[name]) for name in names)
            return f"insert into db.t ({', '.join(names)}) select {values} from db.{self.pick('t', 'u')} where id < 3"
        return self.merge()

    def merge(self) -> str:
        """Return a merge of db.u into db.t."""
        self.prefix = "a b"
        on = "a.id = b.id"
        if self.random.random() < 0.4:
            on = self.pick(f"{on} and {self.condition(1)}", "a.s = b.t", "a.x = b.x and a.id = b.id", self.condition(1))
        parts = [f"merge into db.t as a using db.u as b on {on}"]
        if self.random.random() < 0.8:
            test = f" and {self.condition()}" if self.random.random() < 0.6 else ""
            action = self.pick(f"update set {self.assignments()}", "delete", "update set *", "update")
            parts.append(f"when matched{test} then {action}")
        self.prefix = "b"
        if self.random.random() < 0.7:
            test = f" and {self.condition()}" if self.random.random() < 0.6 else ""
            names = self.random.sample([name for name in COLUMNS if name != "id"], 3)
            values = ", ".join(self.value(KINDS[name]) for name in names)
            named = f"insert (id, {', '.join(names)}) values (b.id, {values})"
            parts.append(f"when not matched{test} then {self.pick(named, 'insert *', 'insert')}")
        self.prefix = "a"
        if self.random.random() < 0.3 or len(parts) == 1:
            test = f" and {self.condition()}"
            action = self.pick(f"update set {self.assignments()}", "delete")
            parts.append(f"when not matched by source{test} then {action}")
        return " ".join(parts)
