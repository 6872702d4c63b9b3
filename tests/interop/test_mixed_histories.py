"""frazil and Iceberg's jar change one table by turns; a twin that only the jar touches must have the same rows.

After every step: rows, and in v3 row lineage, read by both. At the end: every metadata table, read by both from the
same table, and a check of every file. `FRAZIL_MIXED_SEEDS` says which seeds: `50`, or `7-9`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import frazil
from tests.interop.interop_cases import CannotDo, Row
from tests.interop.interop_page import record
from tests.interop.java_runtime import JavaLake
from tests.interop.mixed_history import MixedHistory

pytest.importorskip("duckdb_extension_iceberg", reason="peers are installed by make test-interop")

from tests.interop.interop_peers import comparable

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

STEPS = 8
METADATA_TABLES = (
    "snapshots", "history", "refs", "metadata_log_entries", "files", "data_files", "delete_files", "entries",
    "manifests", "partitions", "all_data_files", "all_delete_files", "all_entries", "all_manifests",
)  # fmt: skip
OTHERWISE: dict[str, tuple[str, ...]] = {
    # The jar writes the text 'null' where there is no bound.
    "manifests": ("partition_summaries",),
    "all_manifests": ("partition_summaries",),
}
"""Columns of metadata tables that differ, and why."""
JAR_BUGS = {
    "java.lang.NullPointerException: Invalid object: null": "NOT IN over a partition whose value is null",
}
"""What the jar says where it fails on a table of its own; such a statement is left out of the history."""


def _seeds() -> list[int]:
    first, dash, last = os.environ.get("FRAZIL_MIXED_SEEDS", "50").partition("-")
    return list(range(int(first), int(last) + 1)) if dash else list(range(1, int(first) + 1))


class Both:
    """One SQLite catalog, open in a session with frazil and in one with the jar."""

    def __init__(self, folder: Path, spark: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.spark = spark
        self.lake = frazil.connect(folder / "warehouse", catalog=f"sqlite:///{folder / 'catalog.db'}")
        self.lake.create_namespace("db")
        self.jar = JavaLake(folder, "catalog.db")
        frazil.attach(spark, self.lake)

    def close(self) -> None:
        frazil.detach(self.spark)
        self.lake.close()

    def run(self, who: str, statement: str, name: str) -> str | None:
        """Run a statement on a table; return why not where it is refused."""
        text = statement.replace("{t}", f"lake.db.{name}").replace("{n}", f"db.{name}")
        try:
            if who == "jar":
                self.jar.run(text)
            else:
                self.spark.sql(text).collect()
        except (CannotDo, frazil.FrazilError) as error:
            return str(error).splitlines()[0][:300]
        return None

    def rows(self, who: str, query: str) -> list[Row]:
        if who == "jar":
            return self.jar.rows(query)
        found: list[Row] = self.spark.sql(query).toArrow().to_pylist()
        return found


@pytest.fixture
def both(java: None, tmp_path: Path, session: Any) -> Iterator[Both]:
    session.conf.set("spark.sql.session.timeZone", "UTC")
    made = Both(tmp_path, session)
    yield made
    made.close()


@pytest.mark.parametrize("seed", _seeds())
def test_mixed_history_equals_a_history_of_the_jar(seed: int, both: Both) -> None:
    history = MixedHistory(seed)
    first_version, made = history.version, history.create()
    creator = "jar" if seed % 2 else "frazil"
    assert both.run(creator, made, "mixed") is None
    assert both.run("jar", made, "twin") is None
    told = [f"{creator}: {made}"]
    lineage: dict[str, dict[int, tuple[int, int]]] = {"mixed": {}, "twin": {}}
    for _ in range(STEPS):
        who, statement = history.step()
        told.append(f"{who}: {statement}")
        refused = both.run("jar", statement, "twin")
        if refused in JAR_BUGS:
            continue
        assert refused is None, f"the jar refuses: {refused}\n" + "\n".join(told)
        refused = both.run(who, statement, "mixed")
        assert refused is None, f"{who} refuses: {refused}\n" + "\n".join(told)
        for branch in ("", *(f".branch_{one}" for one in history.branches)):
            wanted = comparable(both.rows("jar", f"select * from lake.db.twin{branch}"))
            for reader in ("jar", "frazil"):
                seen = comparable(both.rows(reader, f"select * from lake.db.mixed{branch}"))
                assert seen == wanted, f"{reader} reads other rows{branch} after:\n" + "\n".join(told)
        if history.version >= 3:
            lineage = _compare_lineage(both, lineage, told, with_numbers=first_version >= 3)
    _compare_metadata(both, told, is_upgraded=first_version < 3)
    report = both.lake.table("db.mixed").check(bounds=True)
    assert report.ok, f"{report}\n" + "\n".join(told)
    labels = {"table": f"made as v{first_version}"}
    record("Histories of both, beside one of the jar's alone", labels, {"frazil": "✓", "Java": "✓"})


def _lineage(both: Both, who: str, name: str) -> dict[int, tuple[int, int]]:
    query = f"select id, _row_id r, _last_updated_sequence_number n from lake.db.{name}"
    rows = both.rows(who, query)
    found = {row["id"]: (row["r"], row["n"]) for row in rows}
    # Rows of a table that was upgraded have no ids before its next commit.
    ids = [one for one, _ in found.values() if one is not None]
    assert len(set(ids)) == len(ids), "two rows have one id"
    return found


def _compare_lineage(
    both: Both, before: dict[str, dict[int, tuple[int, int]]], told: list[str], *, with_numbers: bool
) -> dict[str, dict[int, tuple[int, int]]]:
    """Check that both read the same ids and numbers, and that the same rows keep them as in the twin.

    Numbers of tables that were upgraded are left out: for files that were rewritten before, the jar takes the sequence
    number of the file where the specification says that of its data.
    """
    seen = {"mixed": _lineage(both, "frazil", "mixed"), "twin": _lineage(both, "jar", "twin")}
    of_jar = _lineage(both, "jar", "mixed")
    parts = 2 if with_numbers else 1
    assert {one: found[:parts] for one, found in of_jar.items()} == {
        one: found[:parts] for one, found in seen["mixed"].items()
    }, told

    def kept(name: str, part: int) -> set[int]:
        return {one for one, values in seen[name].items() if values[part] == before[name].get(one, (None, None))[part]}

    if before["mixed"]:
        assert kept("mixed", 0) == kept("twin", 0), ("rows that keep their id", told)
        if with_numbers:
            assert kept("mixed", 1) == kept("twin", 1), ("rows that are as old as they were", told)
    return seen


def _compare_metadata(both: Both, told: list[str], *, is_upgraded: bool) -> None:
    for name in METADATA_TABLES:
        rows = {who: both.rows(who, f"select * from lake.db.mixed.{name}") for who in ("frazil", "jar")}
        plain = {who: comparable([_without(row, name, is_upgraded) for row in found]) for who, found in rows.items()}
        assert plain["frazil"] == plain["jar"], (name, told)


def _without(row: Row, name: str, is_upgraded: bool) -> Row:
    """Return a row without what may differ; of old manifests, the first row id depends on the list that names them."""
    left = set(OTHERWISE.get(name, ()))
    if is_upgraded and name.startswith("all_"):
        left.add("first_row_id")
    found = {column: value for column, value in row.items() if column not in left}
    if "data_file" in found:
        found["data_file"] = {column: value for column, value in found["data_file"].items() if column not in left}
    return found
