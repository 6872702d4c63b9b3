"""PyIceberg's SqlCatalog and ours on one database: each sees and changes the other's tables, and loses races fairly.

PyIceberg's StaticTable reads the files of a filesystem catalog.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from frazil.catalog.filesystem import FilesystemCatalog
from frazil.catalog.outcomes import Committed
from frazil.catalog.postgres import PostgresDatabase
from frazil.catalog.sql import SqlCatalog
from frazil.catalog.sqlite import SqliteDatabase
from frazil.errors import CommitConflictError, TableAlreadyExistsError
from frazil.scan.plan import plan_scan
from frazil.spec.view_metadata import SqlRepresentation, ViewVersion
from frazil.storage.local import LocalStorage
from tests.support import builders
from tests.support.catalog_cases import committed, made_table, rejected, set_property, setting
from tests.support.postgres_server import QUOTED_PASSWORD, postgres_server

pytest.importorskip("sqlalchemy", reason="PyIceberg's SqlCatalog needs SQLAlchemy")
pyiceberg_sql = pytest.importorskip("pyiceberg.catalog.sql")
pyiceberg_errors = pytest.importorskip("pyiceberg.exceptions")
pyiceberg_table = pytest.importorskip("pyiceberg.table")
pyiceberg_types = pytest.importorskip("pyiceberg.types")
pyiceberg_schema = pytest.importorskip("pyiceberg.schema")

pytestmark = pytest.mark.interop
__all__ = ["postgres_server"]


class Both:
    """Both catalogs, opened on one database under one name."""

    def __init__(self, ours: SqlCatalog, theirs: Any) -> None:
        self.ours = ours
        self.theirs = theirs


@pytest.fixture(params=["sqlite", "postgresql", "sqlite-theirs-first"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Both]:
    warehouse = f"file://{tmp_path}/warehouse"
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres_server")
        uri, their_uri = server.uri, server.uri.replace("postgresql:", "postgresql+psycopg:")
        assert QUOTED_PASSWORD in uri
        name = f"interop{abs(hash(tmp_path))}"
    else:
        uri, their_uri, name = "", f"sqlite:///{tmp_path}/catalog.db", "lake"

    def open_ours() -> SqlCatalog:
        database = PostgresDatabase(uri) if uri else SqliteDatabase(tmp_path / "catalog.db")
        return SqlCatalog(name, warehouse, database, LocalStorage(durable=False))

    def open_theirs() -> Any:
        return pyiceberg_sql.SqlCatalog(name, uri=their_uri, warehouse=warehouse)

    if request.param == "sqlite-theirs-first":
        theirs = open_theirs()
        ours = open_ours()
    else:
        ours = open_ours()
        theirs = open_theirs()
    try:
        yield Both(ours, theirs)
    finally:
        ours.close()
        theirs.close()


THEIR_SCHEMA = pyiceberg_schema.Schema(
    pyiceberg_types.NestedField(1, "id", pyiceberg_types.LongType(), required=True),
    pyiceberg_types.NestedField(2, "kind", pyiceberg_types.StringType()),
)
ROWS = pa.table(
    {"id": pa.array([1, 2, 3], pa.int64()), "kind": pa.array(["a", "b", None], pa.string())},
    schema=pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("kind", pa.string())]),
)


def test_namespaces_are_visible_to_both(both: Both) -> None:
    both.ours.create_namespace(("ours",), {"owner": "me"})
    both.ours.create_namespace(("plain",))
    both.theirs.create_namespace("theirs", {"owner": "you"})
    both.theirs.create_namespace("bare")
    assert both.ours.list_namespaces() == (("bare",), ("ours",), ("plain",), ("theirs",))
    assert set(both.theirs.list_namespaces()) == set(both.ours.list_namespaces())
    assert both.ours.load_namespace_properties(("theirs",)) == {"owner": "you"}
    assert both.theirs.load_namespace_properties("ours")["owner"] == "me"
    assert both.ours.load_namespace_properties(("bare",)) == {}
    both.ours.update_namespace_properties(("theirs",), {}, ["owner"])
    assert both.theirs.namespace_exists("theirs")
    both.theirs.drop_namespace("ours")
    both.ours.drop_namespace(("bare",))
    assert both.ours.list_namespaces() == (("plain",), ("theirs",))
    assert set(both.theirs.list_namespaces()) == {("plain",), ("theirs",)}


def test_pyiceberg_commits_to_a_frazil_table_and_frazil_continues(both: Both) -> None:
    loaded = made_table(both.ours, ("db", "events"), properties={"owner": "me"})
    assert both.theirs.list_tables("db") == [("db", "events")]
    table = both.theirs.load_table("db.events")
    assert str(table.metadata.table_uuid) == loaded.metadata.table_uuid
    assert table.metadata_location == loaded.metadata_location
    assert [one.name for one in table.schema().fields] == ["id", "ts", "kind"]
    with table.transaction() as change:
        change.set_properties({"theirs": "yes"})
    # The state we hold is old now, and we are told so.
    assert isinstance(rejected(set_property(both.ours, loaded, ours="no")).reason, CommitConflictError)
    fresh = both.ours.refresh(loaded)
    assert fresh.metadata.properties["theirs"] == "yes"
    ours = committed(set_property(both.ours, fresh, ours="yes"))
    assert both.theirs.load_table("db.events").properties["ours"] == "yes"
    assert "/00002-" in (ours.metadata_location or "")


def test_frazil_commits_to_a_pyiceberg_table_and_pyiceberg_continues(both: Both) -> None:
    both.theirs.create_namespace("db")
    table = both.theirs.create_table("db.events", THEIR_SCHEMA)
    table.append(ROWS)
    loaded = both.ours.load_table(("db", "events"))
    assert loaded.metadata_location == table.metadata_location
    assert loaded.metadata.current_snapshot_id == table.current_snapshot().snapshot_id
    assert [task.data_file.record_count for task in plan_scan(loaded).tasks] == [3]
    committed(set_property(both.ours, loaded, ours="yes"))
    assert table.refresh().properties["ours"] == "yes"
    table.append(ROWS)
    again = both.ours.refresh(loaded)
    assert sum(task.data_file.record_count for task in plan_scan(again).tasks) == 6
    assert len(table.scan().to_arrow()) == 6


def test_late_commit_of_pyiceberg_is_refused(both: Both) -> None:
    loaded = made_table(both.ours, ("db", "events"))
    table = both.theirs.load_table("db.events")
    committed(set_property(both.ours, loaded, ours="yes"))
    change = table.transaction()
    change.set_properties({"theirs": "yes"})
    # What PyIceberg does with a state that moved on is its own business: it may refuse, or start again from ours.
    with_theirs = True
    try:
        change.commit_transaction()
    except pyiceberg_errors.CommitFailedException:
        with_theirs = False
    properties = both.ours.load_table(("db", "events")).metadata.properties
    assert properties["ours"] == "yes"
    assert ("theirs" in properties) == with_theirs


def test_used_name_is_refused_by_both(both: Both) -> None:
    made_table(both.ours, ("db", "a"))
    with pytest.raises(pyiceberg_errors.TableAlreadyExistsError):
        both.theirs.create_table("db.a", THEIR_SCHEMA)
    both.theirs.create_table("db.b", THEIR_SCHEMA)
    with pytest.raises(TableAlreadyExistsError):
        both.ours.create_table(("db", "b"), builders.schema())


def test_renames_and_drops_are_visible_to_both(both: Both) -> None:
    made_table(both.ours, ("db", "a"))
    both.theirs.create_table("db.b", THEIR_SCHEMA)
    both.theirs.rename_table("db.a", "db.a2")
    both.ours.rename_table(("db", "b"), ("db", "b2"))
    assert both.ours.list_tables(("db",)) == (("db", "a2"), ("db", "b2"))
    assert sorted(both.theirs.list_tables("db")) == [("db", "a2"), ("db", "b2")]
    both.theirs.drop_table("db.a2")
    both.ours.drop_table(("db", "b2"))
    assert both.ours.list_tables(("db",)) == ()
    assert both.theirs.list_tables("db") == []


def test_frazil_views_are_not_tables_of_pyiceberg(both: Both) -> None:
    made_table(both.ours, ("db", "t"))
    version = ViewVersion(1, 0, 5, (SqlRepresentation("select 1", "spark"),), ("db",))
    both.ours.create_view(("db", "v"), builders.schema(), version)
    assert both.theirs.list_tables("db") == [("db", "t")]
    with pytest.raises(pyiceberg_errors.NoSuchTableError):
        both.theirs.load_table("db.v")


def test_multi_table_commit_is_visible_to_pyiceberg(both: Both) -> None:
    tables = [made_table(both.ours, ("db", name)) for name in "ab"]
    changes = [setting(one, together="yes") for one in tables]
    assert isinstance(both.ours.commit_many(changes), Committed)
    for one in tables:
        assert both.theirs.load_table(one.identifier).properties["together"] == "yes"
    # Of a pair of which they moved one, neither moves.
    with both.theirs.load_table("db.b").transaction() as change:
        change.set_properties({"theirs": "yes"})
    late = [setting(one, late="yes") for one in map(both.ours.refresh, tables[:1])]
    late.append(setting(tables[1], late="yes"))
    rejected(both.ours.commit_many(late))
    assert "late" not in both.theirs.load_table("db.a").properties


def test_catalog_tables_have_the_columns_of_pyiceberg(tmp_path: Path) -> None:
    with SqlCatalog("lake", "file:///w", SqliteDatabase(tmp_path / "ours.db"), LocalStorage()):
        pass
    pyiceberg_sql.SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/theirs.db", warehouse="file:///w").close()
    for table in ("iceberg_tables", "iceberg_namespace_properties"):
        layouts = []
        for name in ("ours.db", "theirs.db"):
            connection = sqlite3.connect(tmp_path / name)
            rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
            connection.close()
            # Name, type, and place in the key; Iceberg Java lets property keys and values be null, PyIceberg does not.
            layouts.append([(row[1], row[2], row[5]) for row in rows])
        assert layouts[0] == layouts[1]


def test_pyiceberg_static_table_reads_a_filesystem_catalog(tmp_path: Path) -> None:
    catalog = FilesystemCatalog("lake", f"file://{tmp_path}/warehouse", LocalStorage(durable=False))
    loaded = made_table(catalog, properties={"owner": "me"})
    loaded = committed(set_property(catalog, loaded, a="b"))
    by_file = pyiceberg_table.StaticTable.from_metadata(loaded.metadata_location)
    assert by_file.properties["a"] == "b"
    assert str(by_file.metadata.table_uuid) == loaded.metadata.table_uuid
    # By folder, it follows the version hint.
    by_folder = pyiceberg_table.StaticTable.from_metadata(loaded.metadata.location)
    assert by_folder.properties["a"] == "b"
