"""Other clients of `frazil serve`: PyIceberg, DuckDB, Iceberg's jar and iceberg-rust create, write and commit by turns
with frazil, which is a client as they are, and writes beside the server too.

DuckDB commits to Iceberg tables through this protocol only. What was seen is a section of docs/evidence/interop.md.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.codec.table_metadata_json import encode_table_metadata
from tests.interop.interop_page import record
from tests.interop.rust_client import CannotBuild, RustError, run_step, rust_program
from tests.support.served_lake import Served, served, table_path

pytestmark = pytest.mark.interop

Row = tuple[int, str | None]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "warehouse", state=tmp_path / "serve.db") as found:
        frazil.Lake(found.catalog).create_namespace("db")
        yield found


@pytest.fixture
def lake(server: Served) -> Iterator[frazil.Lake]:
    """The lake as a client of the server has it."""
    with frazil.connect(server.uri) as found:
        yield found


def rows_of(table: frazil.Table) -> list[Row]:
    return sorted((one["id"], one["kind"]) for one in table.scan().to_arrow().to_pylist())


def rows_of_id(table: frazil.Table, row_id: int) -> list[Row]:
    """Return the rows of an id, which are read from the files of its partition alone."""
    return [(one["id"], one["kind"]) for one in table.scan(f"id = {row_id}").to_arrow().to_pylist()]


def arrow(*rows: Row) -> pa.Table:
    return pa.table({"id": pa.array([one for one, _ in rows], pa.int64()), "kind": [kind for _, kind in rows]})


class PyIcebergClient:
    """PyIceberg's REST catalog."""

    def __init__(self, server: Served) -> None:
        from pyiceberg.catalog import load_catalog

        self.catalog = load_catalog("served", type="rest", uri=server.uri)

    def create(self, name: str) -> None:
        self.catalog.create_table(f"db.{name}", pa.schema([("id", pa.int64()), ("kind", pa.string())]))

    def append(self, name: str, *rows: Row) -> None:
        self.catalog.load_table(f"db.{name}").append(arrow(*rows))

    def delete(self, name: str, row_id: int) -> None:
        self.catalog.load_table(f"db.{name}").delete(f"id = {row_id}")

    def rows(self, name: str) -> list[Row]:
        found = self.catalog.load_table(f"db.{name}").scan().to_arrow().to_pylist()
        return sorted((one["id"], one["kind"]) for one in found)


class DuckdbClient:
    """DuckDB, with the server attached."""

    def __init__(self, server: Served) -> None:
        pytest.importorskip("duckdb_extension_httpfs", reason="peers are installed by make test-interop")
        pytest.importorskip("duckdb_extension_iceberg", reason="peers are installed by make test-interop")
        from tests.interop.interop_peers import open_duckdb

        self.connection: Any = open_duckdb()
        self.connection.execute(
            f"attach 'lake' as lake (type iceberg, endpoint '{server.uri}', authorization_type 'none')"
        )

    def create(self, name: str) -> None:
        self.connection.execute(f"create table lake.db.{name} (id bigint, kind varchar)")

    def append(self, name: str, *rows: Row) -> None:
        values = ", ".join(f"({one}, '{kind}')" for one, kind in rows)
        self.connection.execute(f"insert into lake.db.{name} values {values}")

    def delete(self, name: str, row_id: int) -> None:
        self.connection.execute(f"delete from lake.db.{name} where id = {row_id}")

    def rows(self, name: str) -> list[Row]:
        found: list[Row] = self.connection.execute(f"select id, kind from lake.db.{name} order by id").fetchall()
        return found


class JavaClient:
    """Iceberg's jar on Spark 4.1, with its REST catalog."""

    def __init__(self, server: Served) -> None:
        from tests.interop.interop_cases import CannotDo
        from tests.interop.java_runtime import JavaLake

        prefix = "spark.sql.catalog.lake"
        settings = {f"{prefix}.type": "rest", f"{prefix}.uri": server.uri, f"{prefix}.warehouse": "lake"}
        try:
            self.lake = JavaLake(Path(tempfile.mkdtemp(prefix="frazil-java-")), settings=settings)
        except CannotDo as reason:
            pytest.skip(str(reason))

    def create(self, name: str) -> None:
        self.lake.run(f"create table lake.db.{name} (id bigint, kind string) using iceberg")

    def append(self, name: str, *rows: Row) -> None:
        values = ", ".join(f"({one}, '{kind}')" for one, kind in rows)
        self.lake.run(f"insert into lake.db.{name} values {values}")

    def delete(self, name: str, row_id: int) -> None:
        self.lake.run(f"delete from lake.db.{name} where id = {row_id}")

    def rows(self, name: str) -> list[Row]:
        return sorted((int(one), kind) for one, kind in self.lake.run(f"select id, kind from lake.db.{name}"))


class RustClient:
    """iceberg-rust's REST catalog. It commits no deletes of rows."""

    def __init__(self, server: Served) -> None:
        try:
            rust_program()
        except CannotBuild as reason:
            pytest.skip(str(reason))
        self.uri = server.uri

    def create(self, name: str, version: int = 2) -> None:
        self.run("create", name, version)

    def append(self, name: str, *rows: Row) -> None:
        self.run("append", name, rows)

    def rows(self, name: str) -> list[Row]:
        return sorted((one, kind) for one, kind in self.run("rows", name))

    def run(self, verb: str, name: str, argument: object = None) -> Any:
        return run_step(self.uri, verb, f"db.{name}", argument)


class ByFrazil:
    """A table of frazil's, as a client."""

    def __init__(self, table: frazil.Table) -> None:
        self.table = table

    def append(self, _: str, *rows: Row) -> None:
        self.table.append(arrow(*rows))

    def rows(self, _: str) -> list[Row]:
        return rows_of(self.table.refresh())


CLIENTS: dict[str, Any] = {
    "PyIceberg": PyIcebergClient,
    "DuckDB": DuckdbClient,
    "Java": JavaClient,
    "iceberg-rust": RustClient,
}
APPEND_NO_PARTITIONS = ("iceberg-rust",)
"""Clients that the tests have append to tables without partitions alone."""
# The first use of the Rust program builds it.
RUST = [pytest.mark.slow, pytest.mark.timeout(2000)]
EACH = pytest.mark.parametrize(
    "client",
    [
        "PyIceberg",
        "DuckDB",
        pytest.param("Java", marks=[pytest.mark.spark, pytest.mark.slow]),
        pytest.param("iceberg-rust", marks=RUST),
    ],
)
SECTION = "Through `frazil serve`, by turns with frazil"


def saw(client: str, what: str) -> None:
    record(SECTION, {"client": client, "what": what}, {"rows and metadata are equal": "✓"})


def same_metadata(server: Served, table: frazil.Table, name: str) -> None:
    """Check that the server tells of a table what its metadata file says."""
    told = server.get(table_path(name)).json
    assert told["metadata-location"] == table.refresh().metadata_location
    assert told["metadata"] == json.loads(encode_table_metadata(table.metadata))


@EACH
def test_table_created_by_a_client_is_written_in_turns(server: Served, lake: frazil.Lake, client: str) -> None:
    other = CLIENTS[client](server)
    other.create("t")
    other.append("t", (1, "a"), (2, "b"))
    table = lake.table("db.t")
    assert rows_of(table) == [(1, "a"), (2, "b")]
    table.append(arrow((3, "c"), (4, "d")))
    assert other.rows("t") == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    can_delete = hasattr(other, "delete")
    if can_delete:
        other.delete("t", 3)
    else:
        table.delete("id = 3")
    assert rows_of(table.refresh()) == [(1, "a"), (2, "b"), (4, "d")]
    other.append("t", (5, "e"))
    assert rows_of(table.refresh()) == other.rows("t")
    report = table.check()
    assert report.ok, report
    same_metadata(server, table, "t")
    saw(client, f"creates a table; both append{' and delete' if can_delete else ', frazil deletes'}")


@EACH
def test_partitioned_frazil_table_is_written_in_turns(server: Served, lake: frazil.Lake, client: str) -> None:
    if client == "PyIceberg":
        pytest.importorskip("pyiceberg_core", reason="PyIceberg computes buckets with this package")
    table = lake.create_table(
        "db.t", "id bigint, kind string", partition_by=["bucket(4, id)"], properties={"owner": "ann"}
    )
    table.append(arrow((1, "a"), (2, "b")))
    other = CLIENTS[client](server)
    assert other.rows("t") == [(1, "a"), (2, "b")]
    can_append = client not in APPEND_NO_PARTITIONS
    (other if can_append else ByFrazil(table)).append("t", (3, "c"))
    expected = [(1, "a"), (2, "b"), (3, "c")]
    assert rows_of(table.refresh()) == expected
    assert {one["partition"]["id_bucket"] for one in table.inspect.files().to_pylist()} <= set(range(4))
    assert [one for at in range(1, 4) for one in rows_of_id(table, at)] == expected, "files are where their rows belong"
    with table.update_schema() as update:
        update.add_column("more", "long")
    assert CLIENTS[client](server).rows("t") == expected
    assert table.properties["owner"] == "ann"
    assert table.check().ok
    same_metadata(server, table, "t")
    what = "reads and appends to" if can_append else "reads"
    saw(client, f"{what} a partitioned table of frazil's, before and after a column is added")


@pytest.mark.parametrize(
    "names",
    [
        ("PyIceberg", "DuckDB"),
        pytest.param(("PyIceberg", "DuckDB", "iceberg-rust"), marks=RUST),
        pytest.param(tuple(CLIENTS), marks=[pytest.mark.spark, *RUST]),
    ],
    ids=["three", "four", "five"],
)
def test_clients_take_turns_writing_one_table(server: Served, lake: frazil.Lake, names: tuple[str, ...]) -> None:
    peers: list[Any] = [CLIENTS[one](server) for one in names]
    table = lake.create_table("db.t", "id bigint, kind string")
    peers.append(ByFrazil(frazil.Lake(server.catalog).table("db.t")))
    expected: list[Row] = []
    for turn in range(3):
        for at, peer in enumerate(peers):
            row = (turn * 10 + at, f"p{at}")
            peer.append("t", row)
            expected.append(row)
        row = (turn * 10 + 9, "frazil")
        table.append(arrow(row))
        expected.append(row)
    for peer in peers:
        assert peer.rows("t") == sorted(expected)
    assert rows_of(table.refresh()) == sorted(expected)
    assert len(table.snapshots) == 3 * (len(names) + 2)
    assert table.check().ok
    same_metadata(server, table, "t")
    saw(" and ".join(names), "write one table in turns with frazil, through the server and beside it, three times each")


@pytest.mark.slow
@pytest.mark.timeout(2000)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_iceberg_rust_makes_every_change_it_supports(server: Served, lake: frazil.Lake, version: int) -> None:
    rust = RustClient(server)
    rust.create("made", version)
    table = lake.table("db.made")
    assert table.metadata.format_version == version
    rust.append("made", (1, "a"), (2, None))
    with table.refresh().update_schema() as update:
        update.add_column("more", "long")
    rust.append("made", (3, "c"))
    rust.run("add-column", "made", "most")
    rust.run("set", "made", {"owner": "ann"})
    table.refresh().append(pa.table({"id": [4], "kind": ["d"], "more": [5], "most": [6]}))
    table.delete("id = 1")
    expected: list[Row] = [(2, None), (3, "c"), (4, "d")]
    assert rust.rows("made") == expected == rows_of(table)
    assert table.properties["owner"] == "ann"
    assert [one.name for one in table.schema.fields] == ["id", "kind", "more", "most"]
    rust.run("keep-last", "made")
    assert len(table.refresh().snapshots) == 1
    assert rust.rows("made") == expected == rows_of(table)
    assert table.check().ok
    same_metadata(server, table, "made")
    rust.run("rename", "made", "db.other")
    assert lake.list_tables("db") == [("db", "other")]
    rust.run("drop", "other")
    assert lake.list_tables("db") == []
    saw("iceberg-rust", f"v{version}: adds columns, sets properties, expires, renames and drops")


@pytest.mark.slow
@pytest.mark.timeout(2000)
@pytest.mark.parametrize(("version", "mode"), [(2, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write")])
def test_iceberg_rust_writes_a_partitioned_frazil_table(server: Served, version: int, mode: str) -> None:
    rust = RustClient(server)
    table = frazil.Lake(server.catalog).create_table(
        "db.t",
        "id bigint, kind string",
        partition_by=["bucket(4, id)", "kind"],
        properties={"write.delete.mode": mode},
        format_version=version,
    )
    expected: list[Row] = []
    for turn in range(3):
        mine: list[Row] = [(turn * 10 + at, f"k{at % 2}") for at in range(5)]
        theirs: list[Row] = [(100 + turn * 10 + at, f"k{at % 2}") for at in range(5)]
        table.refresh().append(arrow(*mine))
        rust.append("t", *theirs)
        table.refresh().delete(f"id in ({turn * 10 + 1}, {100 + turn * 10 + 2})")
        expected += [one for one in mine + theirs if one[0] not in (turn * 10 + 1, 100 + turn * 10 + 2)]
        assert rust.rows("t") == sorted(expected) == rows_of(table)
    assert table.check().ok
    same_metadata(server, table, "t")
    saw("iceberg-rust", f"v{version}: writes a partitioned table of frazil's, which deletes by {mode}")


@pytest.mark.slow
@pytest.mark.timeout(2000)
def test_iceberg_rust_writes_beside_deletion_vectors_it_cannot_read(server: Served) -> None:
    rust = RustClient(server)
    table = frazil.Lake(server.catalog).create_table(
        "db.t", "id bigint, kind string", properties={"write.delete.mode": "merge-on-read"}, format_version=3
    )
    rust.append("t", (1, "a"), (2, "b"), (3, "c"))
    table.refresh().delete("id = 2")
    rust.append("t", (4, "d"))
    assert rows_of(table.refresh()) == [(1, "a"), (3, "c"), (4, "d")]
    assert table.check().ok
    same_metadata(server, table, "t")
    # Once it reads them, this is a line with a mark like the others.
    with pytest.raises(RustError, match="Failed to load Parquet metadata"):
        rust.rows("t")
    record(
        SECTION,
        {"client": "iceberg-rust", "what": "v3: writes a table that has deletion vectors of frazil's, and reads it"},
        {"rows and metadata are equal": "✗ it takes deletion vectors for Parquet files when it reads: theirs"},
    )


def test_pyiceberg_uses_names_views_and_properties(server: Served) -> None:
    from pyiceberg.exceptions import (
        NamespaceAlreadyExistsError,
        NamespaceNotEmptyError,
        NoSuchTableError,
        TableAlreadyExistsError,
    )

    catalog = PyIcebergClient(server).catalog
    catalog.create_namespace("a.b", {"owner": "ann"})
    assert catalog.load_namespace_properties("a.b") == {"owner": "ann"}
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace("a.b")
    schema = pa.schema([("id", pa.int64())])
    made = catalog.create_table("a.b.t", schema)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("a.b.t", schema)
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("a.b")
    catalog.rename_table("a.b.t", "a.b.u")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("a.b.t")
    assert catalog.list_tables("a.b") == [("a", "b", "u")]
    with catalog.load_table("a.b.u").transaction() as transaction:
        transaction.set_properties(x="y")
        with transaction.update_schema() as update:
            update.add_column("name", made.schema().find_type("id"))
    assert catalog.load_table("a.b.u").properties["x"] == "y"
    catalog.drop_table("a.b.u", purge_requested=True)
    catalog.drop_namespace("a.b")


def test_pyiceberg_reads_server_side_plans(server: Served) -> None:
    from pyiceberg.catalog import load_catalog

    table = frazil.Lake(server.catalog).create_table("db.t", "id bigint, kind string", partition_by=["kind"])
    for at in range(4):
        table.append(arrow((at, f"k{at}")))
    catalog = load_catalog("served", type="rest", uri=server.uri, **{"scan-planning-mode": "server"})
    found = catalog.load_table("db.t").scan(row_filter="kind = 'k2'").to_arrow().to_pylist()
    assert [(one["id"], one["kind"]) for one in found] == [(2, "k2")]
    text = server.get("/metrics").body.decode()
    assert 'operation="planTableScan",code="200"' in text
