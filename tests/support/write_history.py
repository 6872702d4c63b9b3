"""Random histories of every verb beside a model of rows: what a table must have after each change."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import frazil

Row = tuple[int | None, str | None, int | None, int | None, datetime.datetime | None]
"""id, k, v, the only field of s, and at."""
DDL = "id bigint, k string, v int, s struct<a: int>, at timestamptz"
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.string()),
        ("v", pa.int32()),
        ("s", pa.struct([pa.field("a", pa.int32())])),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
VERSIONS_AND_MODES = [(1, "copy-on-write"), *((v, m) for v in (2, 3) for m in ("copy-on-write", "merge-on-read"))]
SPECS = [
    [],
    ["k"],
    ["bucket(3, id)"],
    ["truncate(5, v)", "k"],
    ["year(at)"],
    ["month(at)", "bucket(2, k)"],
    ["day(at)"],
    ["hour(at)", "truncate(1, k)"],
    ["at"],
    ["void(k)", "bucket(2, at)"],
    ["s.a"],
]
"""Every transform, alone or beside another."""
TERMS = ["k", "bucket(2, id)", "truncate(4, v)", "month(at)", "day(at)", "void(v)"]
TIMES = [
    None,
    *(
        datetime.datetime(*parts, tzinfo=datetime.UTC)  # type: ignore[misc]
        for parts in (
            (1969, 12, 31, 23, 59, 59, 999999),
            (1970, 1, 1),
            (2024, 2, 29, 5, 30),
            (2024, 2, 29, 6),
            (2024, 12, 31, 23, 59, 59, 1),
            (2025, 1, 1),
        )
    ),
]
KEYS = ["a", "b", "", None, "é/=%"]


class Hand:
    """An engine, and rows in the form that it is given them in."""

    def __init__(self, engine: str, rows: Callable[[list[Row]], Any] | None = None) -> None:
        self.engine = engine
        self.rows = arrow_rows if rows is None else rows


def arrow_rows(rows: list[Row]) -> pa.Table:
    """Return rows as Arrow."""
    given = [{"id": a, "k": b, "v": c, "s": None if d is None else {"a": d}, "at": e} for a, b, c, d, e in rows]
    return pa.Table.from_pylist(given, schema=ARROW)


class History:
    """A table and the rows it must have, changed together, by one hand or by several in turns."""

    def __init__(self, table: frazil.Table, seed: int, *hands: Hand, evolves: bool = False) -> None:
        self.hands = hands
        self.evolves = evolves
        self.hand = hands[0]
        self.table = table
        self.chance = random.Random(seed)
        self.rows: list[Row] = []
        self.next_id = 0
        self.known: dict[int, Counter[Row]] = {}

    # Rows and conditions

    def new_row(self, row_id: int | None = None) -> Row:
        if row_id is None:
            row_id = self.next_id
            self.next_id += 1
        some = self.chance
        inner = some.choice([None, some.randrange(3)])
        return row_id, some.choice(KEYS), some.choice([None, some.randrange(-20, 20)]), inner, some.choice(TIMES)

    def frame(self, rows: list[Row]) -> Any:
        return self.hand.rows(rows)

    @property
    def engine(self) -> Any:
        return self.hand.engine

    def condition(self) -> tuple[str, Callable[[Row], bool]]:
        some = self.chance
        low = some.randrange(max(self.next_id, 1))
        number, key = some.randrange(-10, 10), some.choice(["a", "b", ""])
        return some.choice(
            [
                (f"id >= {low}", lambda row: row[0] is not None and row[0] >= low),
                (f"k = '{key}'", lambda row: row[1] == key),
                (f"k <> '{key}'", lambda row: row[1] is not None and row[1] != key),
                ("k is null or v is null", lambda row: row[1] is None or row[2] is None),
                (
                    f"v < {number} and id % 2 = 0",
                    lambda row: row[2] is not None and row[2] < number and row[0] % 2 == 0,
                ),
                (f"not (v > {number})", lambda row: row[2] is not None and not row[2] > number),
                ("s.a = 1", lambda row: row[3] == 1),
                (
                    "at >= '2024-02-29T06:00:00+00:00'",
                    lambda row: row[4] is not None and row[4] >= datetime.datetime(2024, 2, 29, 6, tzinfo=datetime.UTC),
                ),
                ("at is null", lambda row: row[4] is None),
                (f"id between {low} and {low + 2}", lambda row: row[0] is not None and low <= row[0] <= low + 2),
            ]
        )

    # Steps

    def append(self) -> None:
        rows = [self.new_row() for _ in range(self.chance.randrange(1, 8))]
        self.table.append(self.frame(rows))
        self.rows += rows

    def delete(self) -> None:
        text, holds = self.condition()
        self.table.delete(text, engine=self.engine)
        self.rows = [row for row in self.rows if not holds(row)]

    def update(self) -> None:
        text, holds = self.condition()
        self.table.update({"v": "id + coalesce(v, 0)", "k": "concat(k, 'x')"}, where=text, engine=self.engine)

        def changed(row: Row) -> Row:
            return row[0], None if row[1] is None else row[1] + "x", (row[0] or 0) + (row[2] or 0), row[3], row[4]

        self.rows = [changed(row) if holds(row) else row for row in self.rows]

    def overwrite(self) -> None:
        text, holds = self.condition()
        rows = [self.new_row() for _ in range(3)]
        self.table.overwrite(self.frame(rows), where=text, engine=self.engine)
        self.rows = [row for row in self.rows if not holds(row)] + rows

    def source(self) -> list[Row]:
        some = self.chance
        present = [row[0] for row in self.rows]
        chosen = some.sample(present, min(len(present), 3))
        return [self.new_row(one) for one in chosen] + [self.new_row() for _ in range(2)]

    def upsert(self) -> None:
        source = self.source()
        self.table.upsert(self.frame(source), keys=["id"], engine=self.engine)
        keys = {row[0] for row in source}
        self.rows = [row for row in self.rows if row[0] not in keys] + source

    def merge(self) -> None:
        source = self.source()
        by_id = {row[0]: row for row in source}
        merge = self.table.merge(self.frame(source), on="target.id = source.id", engine=self.engine)
        merge = merge.when_matched("source.v is null").delete()
        merge = merge.when_matched("target.k = 'a'").update({"v": "source.v - target.v", "s.a": "7"})
        merge = merge.when_matched("source.k is not null").update_all()
        merge = merge.when_not_matched("source.v is not null").insert_all()
        sweeps = self.chance.random() < 0.5
        if sweeps:
            merge = merge.when_not_matched_by_source("target.s.a = 0").delete()
        merge.execute()
        kept: list[Row] = []
        for row in self.rows:
            new = by_id.pop(row[0], None)
            if new is None:
                if not (sweeps and row[3] == 0):
                    kept.append(row)
            elif new[2] is None:
                continue
            elif row[1] == "a":
                value = None if row[2] is None else new[2] - row[2]
                kept.append((row[0], row[1], value, 7, row[4]))
            else:
                kept.append(new if new[1] is not None else row)
        self.rows = kept + [row for row in by_id.values() if row[2] is not None]

    def check_row_ids(self, done: str, before: dict[int, int], next_row_id: int) -> None:
        after = row_ids(self.table)
        assert len(set(after.values())) == len(after), f"{done} by {self.engine}: ids of rows twice"
        for row_id, found in after.items():
            if row_id in before:
                assert found == before[row_id], f"{done} by {self.engine}: row {row_id} has another id"
            else:
                assert found >= next_row_id, f"{done} by {self.engine}: row {row_id} has an id that was given before"

    def evolve_spec(self) -> None:
        """Partition new files by something more, or by something less; rows stay."""
        spec = self.table.spec
        names = [one.name for one in spec.fields if not one.transform.is_void]
        is_less = bool(names) and self.chance.random() < 0.5
        name, term = self.chance.choice(names or [""]), self.chance.choice(TERMS)
        try:
            with self.table.update_spec() as update:
                if is_less:
                    update.remove_field(name)
                else:
                    update.add_field(term)
        except frazil.SchemaChangeError:
            return  # there is such a field

    def step(self) -> str:
        """Make a random change; return what it was. In v3 rows that stay keep their ids, and new ones get new ids."""
        self.hand = self.chance.choice(self.hands) if len(self.hands) > 1 else self.hand
        if self.evolves and self.chance.random() < 0.15:
            self.evolve_spec()
        step = self.chance.choice(
            [self.append, self.delete, self.update, self.overwrite, self.upsert, self.merge, self.merge]
            if self.rows
            else [self.append]
        )
        before, next_row_id = row_ids(self.table), self.table.metadata.next_row_id
        step()
        self.check_row_ids(step.__name__, before, next_row_id)
        snapshot = self.table.refresh().current_snapshot
        if snapshot is not None:
            self.known[snapshot.snapshot_id] = Counter(self.rows)
        return f"{step.__name__} {self.engine}"


def row_ids(table: frazil.Table) -> dict[int, int]:
    """Return the ids that rows have in v3, by the column that tells rows apart."""
    if table.refresh().format_version < 3:
        return {}
    rows = table.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
    found = {row["id"]: row["_row_id"] for row in rows}
    assert len(found) == len(rows)
    return found


def rows_of(rows: list[dict[str, Any]]) -> Counter[Row]:
    return Counter(
        (row["id"], row["k"], row["v"], None if row["s"] is None else row["s"]["a"], row["at"]) for row in rows
    )


def new_table(
    lake: frazil.Lake, version: int, mode: str, order: int, name: str = "db.t", spec: list[str] | None = None
) -> frazil.Table:
    """Return a table for a history; `order` varies its spec, its sort order and the granularity of deletes."""
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    properties["write.delete.granularity"] = ["file", "partition"][order // 4 % 2]
    return lake.create_table(
        name,
        DDL,
        partition_by=SPECS[order % len(SPECS)] if spec is None else spec,
        sort_by=[[], ["v desc"]][order % 2],
        properties=properties,
        format_version=version,
    )


def run_history(history: History, steps: int) -> None:
    """Change a table step by step, and hold it against the model after each."""
    done: list[str] = []
    table = history.table
    for _ in range(steps):
        done.append(history.step())
        found = rows_of(table.refresh().scan().to_arrow().to_pylist())
        assert found == Counter(history.rows), done
    for snapshot_id, rows in history.known.items():
        assert rows_of(table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()) == rows, done
    report = table.check(bounds=True)
    assert report.ok, str(report)
