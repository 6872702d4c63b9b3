"""Views, branches and tags, sort orders, statistics and copied tables: made by one implementation, used by the others.

All have one SQLite catalog open at once: frazil, PyIceberg, and Iceberg's JDBC catalog in the Java runtime.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.codec.puffin import read_blob, read_puffin_footer
from frazil.maintenance.partition_stats import partition_stats
from tests.interop.interop_cases import numbers
from tests.interop.interop_page import record
from tests.interop.java_runtime import JavaLake, has_java
from tests.support.theta_sketches import decode_theta_sketch

pytest.importorskip("duckdb_extension_iceberg", reason="peers are installed by make test-interop")

from tests.interop import interop_peers as peers
from tests.interop.shared_lake import Shared, shared_lake

pytestmark = [pytest.mark.interop, pytest.mark.spark, pytest.mark.slow]

ROWS = numbers(0, 40, kind=lambda at: ["a", "b", None][at % 3], v=lambda at: at % 7)
COLUMNS = "id bigint, kind string, v int"
LEFT_BEHIND = (
    "deleted rows come back: the manifests that Java writes still name the data file of a position delete file at its "
    "old place, so those who go by that name find nothing to delete; Java's bug"
)
ABSENT = "not run: the Java runtime could not be had"


@pytest.fixture
def shared(tmp_path: Path, session: Any) -> Iterator[Shared]:
    with shared_lake(tmp_path, session) as made:
        yield made


def tell(
    section: str,
    labels: dict[str, str],
    checks: dict[str, Callable[[], bool] | str],
    known: dict[str, str] | None = None,
) -> None:
    """Run each check, keep what came of it for the page, and fail where one does not hold, or does against `known`."""
    seen: dict[str, str] = {}
    for who, check in checks.items():
        if isinstance(check, str):
            seen[who] = check
            continue
        try:
            seen[who] = "✓" if check() else "✗ other values"
        except Exception as error:
            seen[who] = f"✗ {type(error).__name__}: {str(error).splitlines()[0][:150]}"
    wrong = {who: said for who, said in seen.items() if said.startswith("✗")}
    record(section, labels, {**seen, **{who: f"✗ {(known or {}).get(who, said)}" for who, said in wrong.items()}})
    assert set(wrong) == set(known or {}), wrong


def filled(shared: Shared, name: str, version: int = 2, **more: Any) -> frazil.Table:
    table = shared.create(name, COLUMNS, version, **more)
    table.append(peers.table_of(ROWS, pa.schema([("id", pa.int64()), ("kind", pa.string()), ("v", pa.int32())])))
    return table


# Views


def test_views_are_readable_by_both(shared: Shared) -> None:
    filled(shared, "t")
    query = "select id * 2 as twice, upper(kind) as kind from lake.db.t where v = 3"
    expected = peers.comparable(
        [{"twice": row["id"] * 2, "kind": row["kind"] and row["kind"].upper()} for row in ROWS if row["v"] == 3]
    )
    java = shared.java
    frazil.attach(shared.spark, shared.lake)
    try:
        makers: dict[str, Callable[[str], object]] = {
            "frazil": lambda text: shared.spark.sql(f"create view lake.db.by_frazil as {text}"),
            "Java": lambda text: java.run(f"create view lake.db.by_java as {text}") if java is not None else None,
        }
        for who, make in makers.items():
            if who == "Java" and java is None:
                record("Views", {"view": "made by Java"}, {"frazil on Spark": ABSENT, "Java": ABSENT})
                continue
            make(query)
            name = f"lake.db.by_{who.lower()}"
            tell(
                "Views",
                {"view": f"made by {who}"},
                {
                    "frazil on Spark": partial(_frame_has, shared, name, expected),
                    "Java": ABSENT if java is None else partial(_java_has, java, f"select * from {name}", expected),
                    "PyIceberg": "not run: its SQL catalog has no views",
                    "DuckDB": "not run: it knows no Iceberg views",
                },
            )
        if java is not None:
            # Each replaces the other's, and both see the new version.
            shared.spark.sql("create or replace view lake.db.by_java as select 1 as one")
            java.run("create or replace view lake.db.by_frazil as select 2 as two")
            assert java.rows("select * from lake.db.by_java") == [{"one": 1}]
            assert [tuple(row) for row in shared.spark.table("lake.db.by_frazil").collect()] == [(2,)]
            assert len(shared.lake.view("db.by_java").versions) == 2
            java.run("drop view lake.db.by_frazil")
            assert not shared.lake.view_exists("db.by_frazil")
    finally:
        frazil.detach(shared.spark)


def _found(rows: list[Any], expected: list[str]) -> bool:
    return peers.comparable(rows) == expected


def _frame_has(shared: Shared, name: str, expected: list[str]) -> bool:
    return _found(shared.spark.table(name).toArrow().to_pylist(), expected)


def _java_has(java: JavaLake, text: str, expected: list[str]) -> bool:
    return _found(java.rows(text), expected)


# Branches and tags


def test_branches_and_tags_are_visible_to_all(shared: Shared) -> None:
    table = filled(shared, "t")
    java = shared.java
    table.create_tag("of_frazil", max_ref_age_ms=86_400_000)
    table.create_branch("side", min_snapshots_to_keep=3, max_snapshot_age_ms=172_800_000)
    more = [{"id": 100, "kind": "side", "v": 1}]
    if java is not None:
        java.run("insert into lake.db.t.branch_side values (100, 'side', 1)")
        java.run("alter table lake.db.t create tag of_java retain 5 days")
        java.run("alter table lake.db.t create branch java_side retain 9 days with snapshot retention 2 snapshots")
        table.refresh().append(_arrow([{"id": 101, "kind": "other", "v": 2}]), branch="java_side")
    else:
        table.append(_arrow(more), branch="side")
    peer = shared.peer.load_table("db.t")
    peer.manage_snapshots().create_tag(peer.current_snapshot().snapshot_id, "of_pyiceberg").commit()
    table.refresh()
    names = [f"{name}:{ref.snapshot_id}" for name, ref in sorted(table.refs.items())]
    ages = {name: ref.max_ref_age_ms for name, ref in table.refs.items()}
    assert ages["of_frazil"] == 86_400_000
    side = peers.comparable([*ROWS, *more])

    def of_java() -> bool:
        assert java is not None
        rows = java.rows("select name, snapshot_id, max_reference_age_in_ms age from lake.db.t.refs order by name")
        assert {row["name"]: row["age"] for row in rows} == ages
        listed = [f"{row['name']}:{row['snapshot_id']}" for row in rows]
        return listed == names and _found(java.rows("select * from lake.db.t.branch_side"), side)

    def of_pyiceberg() -> bool:
        found = shared.peer.load_table("db.t")
        listed = [f"{name}:{ref.snapshot_id}" for name, ref in sorted(found.metadata.refs.items())]
        return listed == names and _found(found.scan().use_ref("side").to_arrow().to_pylist(), side)

    tell(
        "Branches and tags",
        {"references": "of frazil, PyIceberg and Java, with ages, on one table; a branch of frazil written by Java"},
        {
            "frazil": lambda: _found(table.scan(ref="side").to_arrow().to_pylist(), side),
            "PyIceberg": of_pyiceberg,
            "DuckDB": lambda: _found(peers.read_duckdb(str(table.metadata_location), "side", None), side),
            "Java": of_java if java is not None else ABSENT,
        },
    )


def _arrow(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, pa.schema([("id", pa.int64()), ("kind", pa.string()), ("v", pa.int32())]))


# Sort orders


def test_sort_orders_are_understood_by_both(shared: Shared) -> None:
    java = shared.java
    shown = "bucket(4, id) ASC NULLS FIRST, kind DESC NULLS LAST"
    filled(shared, "by_frazil", sort_by=["bucket(4, id) asc nulls first", "kind desc nulls last"])
    makers = ["frazil"]
    if java is not None:
        filled(shared, "by_java")
        java.run("alter table lake.db.by_java write ordered by bucket(4, id) asc nulls first, kind desc nulls last")
        makers.append("Java")
    for who in makers:
        name = f"by_{who.lower()}"

        def of_frazil(name: str = name) -> bool:
            frazil.attach(shared.spark, shared.lake)
            try:
                rows = shared.spark.sql(f"show tblproperties lake.db.{name} ('sort-order')").collect()
            finally:
                frazil.detach(shared.spark)
            return bool(rows[0][1] == shown)

        def of_pyiceberg(name: str = name) -> bool:
            fields = shared.peer.load_table(f"db.{name}").sort_order().fields
            return [(one.source_id, str(one.transform)) for one in fields] == [(1, "bucket[4]"), (2, "identity")]

        def of_java(name: str = name) -> bool:
            assert java is not None
            return bool(java.run(f"show tblproperties lake.db.{name} ('sort-order')")[0][1] == shown)

        tell(
            "Sort orders",
            {"order": f"set by {who}"},
            {
                "frazil": of_frazil,
                "PyIceberg": of_pyiceberg,
                "Java": of_java if java is not None else ABSENT,
                "DuckDB": "not run: it shows no sort orders",
            },
        )


# Statistics


def _sketches(table: frazil.Table) -> dict[str, tuple[str, float]]:
    """Return what the statistics file of the current snapshot says, as frazil reads it."""
    loaded = table.refresh().state
    assert table.current_snapshot is not None
    file = loaded.metadata.find_statistics(table.current_snapshot.snapshot_id)
    assert file is not None
    data = loaded.storage.read(file.statistics_path)

    def read(offset: int, length: int) -> bytes:
        return data[offset : offset + length]

    found: dict[str, tuple[str, float]] = {}
    for blob in read_puffin_footer(read, len(data)).file_metadata.blobs:
        sketch = decode_theta_sketch(read_blob(read, blob))
        found[loaded.metadata.current_schema.name_of(blob.fields[0])] = (blob.properties["ndv"], sketch.estimate)
    return found


DISTINCT = {"id": ("40", 40.0), "kind": ("2", 2.0), "v": ("7", 7.0)}


@pytest.mark.parametrize("who", ["frazil", "Java"])
def test_sketches_are_readable_by_both(who: str, shared: Shared) -> None:
    java = shared.java
    table = filled(shared, "t")
    if who == "frazil":
        table.maintain.compute_table_stats()
    elif java is None:
        record("Statistics", {"file": "theta sketches of Java"}, {"frazil": ABSENT, "Java": ABSENT})
        pytest.skip(ABSENT)
    else:
        java.run("call lake.system.compute_table_stats('db.t')")

    def of_pyiceberg() -> bool:
        blobs = shared.peer.load_table("db.t").metadata.statistics[0].blob_metadata
        return {one.fields[0]: one.properties["ndv"] for one in blobs} == {1: "40", 2: "2", 3: "7"}

    tell(
        "Statistics",
        {"file": f"theta sketches of {who}"},
        {
            "frazil": lambda: _sketches(table) == DISTINCT,
            "Java": (lambda: java.verb("statistics", "lake.db.t") == DISTINCT) if java is not None else ABSENT,
            "PyIceberg": of_pyiceberg,
            "DuckDB": "not run: it reads no statistics files",
        },
    )


def _partition_rows(table: frazil.Table) -> list[dict[str, Any]]:
    """Return what the partition statistics should say, counted by frazil from manifests."""
    loaded = table.refresh().state
    assert table.current_snapshot is not None
    return [_named(row) for row in partition_stats(loaded, table.current_snapshot).to_pylist()]


def _named(row: dict[str, Any]) -> dict[str, Any]:
    kept = (
        "data_record_count", "data_file_count", "total_data_file_size_in_bytes", "position_delete_record_count",
        "position_delete_file_count", "equality_delete_record_count", "equality_delete_file_count",
        "last_updated_snapshot_id",
    )  # fmt: skip
    counts = {one: row[one] or 0 for one in kept}
    return {"partition": row["partition"]["kind"], **counts, "vectors": row.get("dv_count") or 0}


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(str, rows))


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("who", ["frazil", "Java"])
def test_partition_statistics_are_readable_by_both(who: str, version: int, shared: Shared) -> None:
    java = shared.java
    modes = {"write.delete.mode": "merge-on-read"}
    table = filled(shared, "t", version, partition_by=["kind"], properties=modes)
    table.delete("id = 3")
    labels = {"file": f"partition statistics of {who}, v{version}"}
    if who == "frazil":
        table.maintain.compute_partition_stats()
    elif java is None:
        record("Statistics", labels, {"frazil": ABSENT, "Java": ABSENT})
        pytest.skip(ABSENT)
    else:
        java.run("call lake.system.compute_partition_stats('db.t')")

    def of_frazil() -> bool:
        table.refresh()
        assert table.current_snapshot is not None
        file = table.metadata.find_partition_statistics(table.current_snapshot.snapshot_id)
        assert file is not None
        stored = pq.read_table(file.statistics_path.removeprefix("file://")).to_pylist()
        return _sorted([_named(row) for row in stored]) == _sorted(_partition_rows(table))

    def of_java() -> bool:
        assert java is not None
        found = java.verb("partition_statistics", "lake.db.t")
        return _sorted([_named(row) for row in found]) == _sorted(_partition_rows(table))

    def brought_up_to_date() -> bool:
        # The other one starts from the file that is there, and adds what came since.
        assert java is not None
        table.refresh().append(_arrow([{"id": 200, "kind": "a", "v": 0}, {"id": 201, "kind": "new", "v": 0}]))
        if who == "frazil":
            java.run("call lake.system.compute_partition_stats('db.t')")
        else:
            table.maintain.compute_partition_stats()
        return of_frazil()

    tell(
        "Statistics",
        labels,
        {
            "frazil": of_frazil,
            "Java": of_java if java is not None else ABSENT,
            "PyIceberg": lambda: len(shared.peer.load_table("db.t").metadata.partition_statistics) == 1,
            "DuckDB": "not run: it reads no statistics files",
        },
    )
    if java is not None:
        later = {"file": f"{labels['file']}, brought up to date by the other"}
        tell("Statistics", later, {"frazil": brought_up_to_date, "Java": of_java})


# Tables copied to another place


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("who", ["frazil", "Java"])
def test_copied_table_is_readable_by_all(who: str, version: int, shared: Shared, tmp_path: Path) -> None:
    java = shared.java
    table = filled(shared, "t", version, partition_by=["kind"], properties={"write.delete.mode": "merge-on-read"})
    table.delete("id = 3")
    table.create_tag("then")
    source, target = table.metadata.location, f"file://{tmp_path}/elsewhere/t"
    labels = {"copied by": who, "version": f"v{version}"}
    if who == "frazil":
        made = table.maintain.rewrite_table_path(source, target)
        latest, listed = made.latest_version, made.file_list_location
    elif java is None:
        record("Tables copied by rewrite_table_path", labels, {"Java": ABSENT})
        pytest.skip(ABSENT)
    else:
        answer = java.run(
            f"call lake.system.rewrite_table_path(table => 'db.t', source_prefix => '{source}', "
            f"target_prefix => '{target}')"
        )
        latest, listed = str(answer[0][0]), str(answer[0][1])
    lists = Path(listed.removeprefix("file:").replace("///", "/"))
    files = [lists] if lists.is_file() else sorted(lists.glob("*.csv"))
    for one in files:
        with one.open() as file:
            for copied_from, copied_to in csv.reader(file):
                place = Path(copied_to.removeprefix("file://"))
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(copied_from.removeprefix("file:").replace("///", "/"), place)
    metadata = f"{target}/metadata/{Path(latest).name}"
    # Nothing is left at the old place, so whoever still looks there fails.
    shutil.rmtree(Path(source.removeprefix("file://")))
    expected = peers.comparable([row for row in ROWS if row["id"] != 3])
    checks: dict[str, Callable[[], bool] | str] = {}
    for name, read in peers.CONSUMERS.items():
        if name == "Java" and not has_java():
            checks[name] = ABSENT
        else:
            checks[name] = partial(_reads, read, metadata, shared.spark, expected)
    known = dict.fromkeys(("frazil", "frazil on Spark", "Java"), LEFT_BEHIND) if (who, version) == ("Java", 2) else None
    tell("Tables copied by rewrite_table_path", labels, checks, known)


def _reads(read: Any, metadata: str, spark: Any, expected: list[str]) -> bool:
    return _found(read(metadata, None, spark), expected)
