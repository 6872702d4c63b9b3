"""frazil, PyIceberg and Iceberg's Java runtime commit to one table by turns, in one SQLite catalog that all have open.

After every commit everyone, DuckDB too, finds the rows of a model, and all list the same snapshots. DuckDB itself
commits through REST catalogs only, so it has no turn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.interop.interop_cases import CannotDo, Row, kind
from tests.interop.interop_page import record

pytest.importorskip("duckdb_extension_iceberg", reason="peers are installed by make test-interop")

import duckdb

from tests.interop.interop_peers import comparable, open_duckdb
from tests.interop.shared_lake import Shared, Writer, shared_lake

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow]

SECTION = "Commits by turns, in one SQLite catalog"
PAIRS = [
    (("frazil", "Java"), 1, "copy-on-write"),
    (("frazil", "Java"), 2, "merge-on-read"),
    (("frazil", "Java"), 3, "merge-on-read"),
    (("frazil", "PyIceberg"), 1, "copy-on-write"),
    (("frazil", "PyIceberg"), 2, "copy-on-write"),
    (("frazil", "PyIceberg", "Java"), 2, "copy-on-write"),
]


class Model:
    """The rows that a table should have, and the verbs that change them."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.columns = ["id", "kind"]
        self.next_id = 0

    def new_rows(self, count: int) -> list[Row]:
        start, self.next_id = self.next_id, self.next_id + count
        made = []
        for at in range(start, start + count):
            row: Row = {"id": at, "kind": kind(at)}
            row.update(dict.fromkeys(self.columns[2:], at * 10))
            made.append(row)
        return made

    def append(self, writer: Writer, who: str) -> None:
        rows = self.new_rows(8)
        writer.append(rows)
        self.put(rows)

    def put(self, rows: list[Row]) -> None:
        self.rows.update({row["id"]: row for row in rows})

    def delete(self, writer: Writer, who: str) -> None:
        first = min(self.rows)
        writer.delete(f"id = {first} or id = {first + 3}")
        for one in (first, first + 3):
            self.rows.pop(one, None)

    def merge(self, writer: Writer, who: str) -> None:
        changed = [{**self.rows[one], "kind": f"by {who}"} for one in sorted(self.rows)[2:5]]
        rows = changed + self.new_rows(2)
        writer.merge(rows)
        self.put(rows)

    def add_column(self, writer: Writer, who: str) -> None:
        name = f"of_{who.lower()}"
        writer.add_column(name, "bigint")
        self.columns.append(name)
        for row in self.rows.values():
            row[name] = None

    def expire(self, writer: Writer, who: str) -> None:
        writer.expire()

    def verbs(self) -> list[tuple[str, Callable[[Writer, str], None]]]:
        return [
            ("append", self.append), ("delete", self.delete), ("merge", self.merge), ("new column", self.add_column),
            ("append again", self.append), ("delete again", self.delete), ("expiry", self.expire),
            ("append after it", self.append),
        ]  # fmt: skip


def agree(shared: Shared, name: str, model: Model) -> dict[str, str]:
    """Return what each reader makes of the table."""
    expected = comparable(list(model.rows.values()))
    seen: dict[str, str] = {}
    for who, read in shared.read(name):
        try:
            seen[who] = "✓" if comparable(read()) == expected else "✗ other rows"
        except Exception as error:
            seen[who] = f"✗ {type(error).__name__}: {str(error).splitlines()[0][:150]}"
    if shared.java is None:
        seen["Java"] = "not run: the Java runtime could not be had"
    return seen


@pytest.mark.parametrize("writers, version, mode", PAIRS, ids=str)
def test_all_engines_agree_after_every_commit(
    writers: tuple[str, ...], version: int, mode: str, tmp_path: Path, session: Any
) -> None:
    labels = {"writers": ", ".join(writers), "version": f"v{version}", "mode": mode}
    with shared_lake(tmp_path, session) as shared:
        modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
        shared.create("t", "id bigint, kind string", version, properties=modes)
        try:
            hands = {who: shared.writer(who, "t") for who in writers}
        except CannotDo as reason:
            record(SECTION, {**labels, "commit": "all"}, dict.fromkeys(writers, f"not run: {reason}"))
            pytest.skip(str(reason))
        model = Model()
        model.append(hands["frazil"], "frazil")
        wrong: dict[str, str] = {}
        for verb, change in model.verbs():
            for who, hand in hands.items():
                change(hand, who)
                seen = agree(shared, "t", model)
                record(SECTION, {**labels, "commit": f"{verb} by {who}"}, seen)
                wrong.update({f"{verb} by {who}, {one}": said for one, said in seen.items() if said[0] == "✗"})
                listed = shared.snapshots("t")
                assert all(sorted(one) == sorted(listed["frazil"]) for one in listed.values()), listed
        assert not wrong
        assert len(shared.lake.table("db.t").snapshots) < 10
        assert shared.lake.table("db.t").check(bounds=True).ok


def test_duckdb_attaches_rest_catalogs_only(tmp_path: Path) -> None:
    """It says so itself: what it attaches is a REST catalog."""
    connection = open_duckdb()
    try:
        with pytest.raises(duckdb.Error, match="endpoint"):
            connection.execute(f"attach '{tmp_path}' as lake (type iceberg, authorization_type 'none')")
    finally:
        connection.close()
    labels = {"writers": "frazil, DuckDB", "version": "all", "mode": "", "commit": "all"}
    record(SECTION, labels, {"DuckDB": "not run: it commits through REST catalogs only"})
