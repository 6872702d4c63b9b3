"""Random histories of a table that frazil and Iceberg's jar change by turns, beside a twin that only the jar touches.

A history is a list of statements in words that both understand, made from a seed and from what the table is like so
far. Nothing in a statement depends on who runs it, so that both tables must have the same rows after every step.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

TABLE = "{t}"
"""Stands for the table's name in a statement."""
KINDS = ("a", "b", "c", "it''s", "")
PARTITIONS = ("", "partitioned by (k)", "partitioned by (bucket(3, id))", "partitioned by (truncate(2, v), k)")
TERMS = ("bucket(2, id)", "truncate(4, v)", "k", "truncate(1, k)")
NEW_COLUMNS = (("x", "int"), ("y", "string"), ("z", "decimal(9,2)"))


@dataclass
class MixedHistory:
    """One history: how the table is made, then statements one by one, each with who runs it on the mixed table."""

    seed: int
    version: int = 2
    chance: random.Random = field(init=False)
    next_id: int = 1
    columns: dict[str, str] = field(default_factory=dict)
    fields: set[str] = field(default_factory=set)
    branches: list[str] = field(default_factory=list)
    tags: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.version = self.chance.choice((1, 2, 2, 3, 3))
        self.columns = {"id": "bigint", "k": "string", "v": "int", "s": "struct<a: int, b: string>"}

    def create(self) -> str:
        """Return the statement that makes the table."""
        layout = self.chance.choice(PARTITIONS)
        self.fields = {term for term in TERMS if term in layout}
        mode = self.chance.choice(("copy-on-write", "merge-on-read")) if self.version > 1 else "copy-on-write"
        modes = ", ".join(f"'write.{one}.mode' = '{mode}'" for one in ("delete", "update", "merge"))
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        properties = f"'format-version' = '{self.version}', 'commit.manifest.min-count-to-merge' = '3', {modes}"
        return f"create table {TABLE} ({columns}) using iceberg {layout} tblproperties ({properties})"

    def step(self) -> tuple[str, str]:
        """Return who changes the mixed table, and the statement."""
        who = self.chance.choice(("frazil", "jar"))
        makers = [
            (6, self._insert), (5, self._delete), (4, self._update), (4, self._merge), (1, self._add_column),
            (1, self._drop_column), (1, self._add_field), (1, self._modes), (1, self._reference), (2, self._compact),
            (1, self._expire), (1, self._overwrite),
        ]  # fmt: skip
        if self.version == 1 or (self.version == 2 and self.chance.random() < 0.1):
            makers.append((2, self._upgrade))
        made = None
        while made is None:
            made = self.chance.choices([one for _, one in makers], [weight for weight, _ in makers])[0]()
        return who, made

    # Rows

    def _row(self, row_id: int | None = None) -> str:
        if row_id is None:
            row_id, self.next_id = self.next_id, self.next_id + 1
        return "(" + ", ".join(self._value(name, kind, row_id) for name, kind in self.columns.items()) + ")"

    def _value(self, name: str, kind: str, row_id: int) -> str:
        if name == "id":
            return f"{row_id}L"
        if self.chance.random() < 0.15:
            return f"cast(null as {kind})"
        number = self.chance.randrange(-5, 40)
        text = "'" + self.chance.choice(KINDS) + "'"
        if kind.startswith("struct"):
            parts = ("cast(null as int)" if self.chance.random() < 0.2 else str(number), text)
            return f"named_struct('a', {parts[0]}, 'b', {parts[1]})"
        return {"string": text, "bigint": f"{number}L", "decimal(9,2)": f"cast({number}.25 as decimal(9,2))"}.get(
            kind, str(number)
        )

    def _some_ids(self, most: int) -> list[int]:
        return [self.chance.randrange(1, self.next_id + 1) for _ in range(self.chance.randrange(1, most + 1))]

    def _condition(self, prefix: str = "") -> str:
        low = self.chance.randrange(-5, 40)
        return self.chance.choice(
            (
                f"{prefix}id in ({', '.join(map(str, self._some_ids(4)))})",
                f"{prefix}id between {self.chance.randrange(self.next_id)} and {self.chance.randrange(self.next_id)}",
                f"{prefix}k = '{self.chance.choice(KINDS)}'",
                f"{prefix}v < {low}",
                f"{prefix}v is null",
                f"{prefix}s.a >= {low}",
                f"{prefix}s is null and {prefix}k <> 'a'",
                f"not ({prefix}k in ('a', 'b')) or {prefix}v = {low}",
            )
        )

    def _target(self) -> str:
        branch = self.chance.choice(self.branches) if self.branches and self.chance.random() < 0.3 else None
        return TABLE if branch is None else f"{TABLE}.branch_{branch}"

    def _insert(self) -> str:
        rows = ", ".join(self._row() for _ in range(self.chance.randrange(1, 7)))
        return f"insert into {self._target()} values {rows}"

    def _overwrite(self) -> str:
        rows = ", ".join(self._row() for _ in range(self.chance.randrange(1, 4)))
        return f"insert overwrite {TABLE} values {rows}"

    def _delete(self) -> str:
        return f"delete from {self._target()} where {self._condition()}"

    def _update(self) -> str:
        value = self.chance.choice(
            ("v = coalesce(v, 0) + 1", "k = concat(coalesce(k, ''), 'x')", "s.a = 7", "v = null, k = 'u'", "s = null")
        )
        return f"update {self._target()} set {value} where {self._condition()}"

    def _merge(self) -> str:
        ids = sorted({*self._some_ids(4), self.next_id, self.next_id + 1})
        self.next_id += 2
        rows = ", ".join(self._row(one) for one in ids)
        names = ", ".join(self.columns)
        clause = self.chance.choice(
            (
                "when matched then update set *",
                "when matched and g.v > 10 then delete when matched then update set k = g.k, v = g.v",
                "when matched and t.k = 'a' then update set v = g.v",
                "when not matched by source and t.v < 0 then delete",
            )
        )
        return (
            f"merge into {self._target()} t using (select * from values {rows} as r({names})) g on t.id = g.id "
            f"{clause} when not matched then insert *"
        ).replace("when not matched by source and t.v < 0 then delete when not matched then insert *",
                  "when not matched then insert * when not matched by source and t.v < 0 then delete")  # fmt: skip

    # Everything else

    def _add_column(self) -> str | None:
        for name, kind in NEW_COLUMNS:
            if name not in self.columns:
                self.columns[name] = kind
                return f"alter table {TABLE} add column {name} {kind}"
        return None

    def _drop_column(self) -> str | None:
        added = [name for name, _ in NEW_COLUMNS if name in self.columns]
        if not added:
            return None
        del self.columns[added[0]]
        return f"alter table {TABLE} drop column {added[0]}"

    def _add_field(self) -> str | None:
        left = [one for one in TERMS if one not in self.fields]
        if not left:
            return None
        self.fields.add(left[0])
        return f"alter table {TABLE} add partition field {left[0]}"

    def _modes(self) -> str | None:
        if self.version == 1:
            return None
        mode = self.chance.choice(("copy-on-write", "merge-on-read"))
        modes = ", ".join(f"'write.{one}.mode' = '{mode}'" for one in ("delete", "update", "merge"))
        return f"alter table {TABLE} set tblproperties ({modes})"

    def _upgrade(self) -> str | None:
        if self.version == 3:
            return None
        self.version += 1
        return f"alter table {TABLE} set tblproperties ('format-version' = '{self.version}')"

    def _reference(self) -> str | None:
        if self.next_id == 1:
            return None
        self.tags += 1
        if self.chance.random() < 0.5 and len(self.branches) < 2:
            self.branches.append(f"b{self.tags}")
            return f"alter table {TABLE} create branch b{self.tags}"
        return f"alter table {TABLE} create tag t{self.tags}"

    def _compact(self) -> str:
        return "call lake.system.rewrite_data_files(table => '{n}', options => map('rewrite-all', 'true'))"

    def _expire(self) -> str:
        return (
            "call lake.system.expire_snapshots(table => '{n}', older_than => timestamp '2100-01-01', retain_last => 3)"
        )
