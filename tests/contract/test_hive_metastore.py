"""What the catalog in a Hive Metastore promises beside the contract: other tables, locks, lost answers, servers."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.base import Catalog
from frazil.catalog.hive.hive_pointers import HiveCatalog
from frazil.catalog.hive.open_hive import open_hive
from frazil.catalog.hive.thrift_binary import I32, STRUCT, ThriftStruct, list_value, text_value, texts_value
from frazil.catalog.metastore_pointers import AnswerMissing
from frazil.catalog.outcomes import Unknown
from frazil.catalog.pointer_catalog import PointerCatalog
from frazil.changes.updates import RemoveProperties, SetProperties
from frazil.errors import (
    CommitConflictError,
    InvalidPropertyError,
    InvalidRequestError,
    NamespaceNotEmptyError,
    StorageError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from frazil.maintenance.purge_files import purge_files
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.view_metadata import SqlRepresentation, ViewVersion
from frazil.storage.local import LocalStorage
from tests.support import builders
from tests.support.catalog_cases import (
    EVENTS,
    CatalogCase,
    committed,
    made_table,
    opened_case,
    rejected,
    set_property,
)
from tests.support.metastore_server import running_metastore, shared_metastore
from tests.support.thrift_proxy import Loss, thrift_proxy

pytestmark = pytest.mark.extended
VERSION = ViewVersion(1, 0, 1_700_000_000_000, (SqlRepresentation("select 1", "spark"),), ("db",))


def no_database() -> str:
    raise AssertionError("no metastore needs one")


def hive(uri: str, folder: Path, properties: Mapping[str, str] | None = None) -> HiveCatalog:
    return open_hive("lake", uri, f"file://{folder}/warehouse", LocalStorage(durable=False), properties or {})


def metastore_of(catalog: Catalog) -> Any:
    return catalog._pointers._metastore  # type: ignore[attr-defined]


@pytest.fixture
def hive_case(tmp_path: Path) -> Iterator[CatalogCase]:
    with opened_case("hive", tmp_path, no_database) as made:
        yield made


def spark_table(database: str, name: str) -> ThriftStruct:
    """A table that is not Iceberg's, as Hive makes one."""
    column = ThriftStruct({1: text_value("a"), 2: text_value("int")})
    serde = ThriftStruct({2: text_value("org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe")})
    storage = ThriftStruct({1: list_value(STRUCT, [column]), 7: (STRUCT, serde)})
    return ThriftStruct(
        {
            1: text_value(name),
            2: text_value(database),
            3: text_value("me"),
            4: (I32, 1),
            7: (STRUCT, storage),
            8: list_value(STRUCT, ()),
            9: texts_value({"provider": "parquet"}),
            12: text_value("MANAGED_TABLE"),
        }
    )


class TestOtherTables:
    def test_other_tables_are_not_listed_and_keep_their_names(self, hive_case: CatalogCase) -> None:
        catalog = hive_case.catalog
        catalog.create_namespace(("db",))
        metastore = metastore_of(catalog)
        metastore.create_table(spark_table("db", "plain"))
        assert catalog.list_tables(("db",)) == ()
        assert catalog.list_views(("db",)) == ()
        assert not catalog.table_exists(("db", "plain"))
        for act in (catalog.load_table, catalog.drop_table, lambda one: catalog.rename_table(one, ("db", "x"))):
            with pytest.raises(TableNotFoundError):
                act(("db", "plain"))
        with pytest.raises(TableAlreadyExistsError):
            catalog.create_table(("db", "plain"), builders.schema())
        made_table(catalog)
        with pytest.raises(TableAlreadyExistsError):
            catalog.rename_table(EVENTS, ("db", "plain"))
        with pytest.raises(NamespaceNotEmptyError, match=r"db\.events"):
            catalog.drop_namespace(("db",))
        catalog.drop_table(EVENTS)
        with pytest.raises(NamespaceNotEmptyError, match=r"db\.plain"):
            catalog.drop_namespace(("db",))
        assert metastore.find_table("db", "plain").texts(9)["provider"] == "parquet"
        metastore.drop_table("db", "plain")

    def test_foreign_parameters_and_fields_survive_a_commit(self, hive_case: CatalogCase) -> None:
        catalog = hive_case.catalog
        loaded = made_table(catalog, properties={"a": "1", "gone": "soon"})
        metastore = metastore_of(catalog)
        table = metastore.find_table("db", "events")
        serde = table.get(7).get(7).changed({3: texts_value({"serde": "theirs"})})
        storage = table.get(7).changed({7: (STRUCT, serde), 10: texts_value({"storage": "theirs"})})
        changed = table.changed(
            {
                3: text_value("trino"),
                6: (I32, 7),
                7: (STRUCT, storage),
                9: texts_value({**table.texts(9), "trino_query_id": "q1", "presto_version": "9"}),
            }
        )
        metastore.alter_table("db", "events", changed, {})
        after = committed(catalog.commit(loaded, [RemoveProperties(("gone",))]))
        found = metastore.find_table("db", "events")
        parameters = found.texts(9)
        assert (parameters["trino_query_id"], parameters["presto_version"]) == ("q1", "9")
        assert (found.text(3), found.get(6)) == ("trino", 7)
        assert found.get(7).texts(10) == {"storage": "theirs"}
        assert found.get(7).get(7).texts(3)["serde"] == "theirs"
        assert "gone" not in parameters
        assert parameters["metadata_location"] == after.metadata_location
        assert parameters["previous_metadata_location"] == loaded.metadata_location

    def test_view_text_is_the_query(self, hive_case: CatalogCase) -> None:
        hive_case.catalog.create_namespace(("db",))
        hive_case.catalog.create_view(("db", "v"), builders.schema(), VERSION)
        found = metastore_of(hive_case.catalog).find_table("db", "v")
        assert (found.text(10), found.text(11), found.text(12)) == ("select 1", "select 1", "VIRTUAL_VIEW")
        assert found.texts(9)["table_type"] == "ICEBERG-VIEW"


class TestRaces:
    @pytest.mark.parametrize("kind", ["hive", "hive-unlocked"])
    def test_rename_keeps_a_concurrent_commit(self, tmp_path: Path, kind: str) -> None:
        with opened_case(kind, tmp_path, no_database) as case:
            self.rename_beside_a_commit(case)

    def rename_beside_a_commit(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        other = case.another()
        metastore = metastore_of(case.catalog)
        read, calls = metastore.find_table, []

        def find_table(database: str, name: str) -> Any:
            found = read(database, name)
            calls.append(name)
            if len(calls) == 1:
                committed(set_property(other, loaded, a="b"))
            return found

        metastore.find_table = find_table
        case.catalog.rename_table(EVENTS, ("db", "e2"))
        assert case.another().load_table(("db", "e2")).metadata.properties["a"] == "b"

    def test_commit_waits_for_the_lock_of_another_client(self, hive_case: CatalogCase) -> None:
        loaded = made_table(hive_case.catalog)
        other = metastore_of(hive_case.another())
        lock = other.lock("db", "events", "theirs", "spark", "elsewhere")
        results: list[Any] = []
        writer = threading.Thread(target=lambda: results.append(set_property(hive_case.catalog, loaded, a="b")))
        writer.start()
        writer.join(1)
        assert results == []
        assert hive_case.another().load_table(EVENTS).metadata == loaded.metadata
        other.unlock(lock.lock_id)
        writer.join(60)
        committed(results[0])
        assert other.locks("db", "events") == ()

    def test_lock_timeout_names_the_holder(self, hive_case: CatalogCase, tmp_path: Path) -> None:
        loaded = made_table(hive_case.catalog)
        other = metastore_of(hive_case.another())
        lock = other.lock("db", "events", "theirs", "spark", "elsewhere")
        settings = {"iceberg.hive.lock-timeout-ms": "300"}
        with hive(shared_metastore().uri, tmp_path, settings) as impatient:
            late = rejected(set_property(impatient, loaded, a="b"))
        assert isinstance(late.reason, CommitConflictError)
        assert "spark@elsewhere" in str(late.reason)
        other.unlock(lock.lock_id)

    def test_lock_of_a_killed_writer_is_released(self, hive_case: CatalogCase) -> None:
        loaded = made_table(hive_case.catalog)
        other = metastore_of(hive_case.another())
        other.lock("db", "events", "frazil-killed", "me", "elsewhere")
        locks = hive_case.catalog._pointers._locks  # type: ignore[attr-defined]
        locks._settings = replace(locks._settings, stale_seconds=1.0)
        committed(set_property(hive_case.catalog, loaded, a="b"))
        assert other.locks("db", "events") == ()


CREATE, ALTER = "create_table", "alter_table_with_environment_context"


class TestLostAnswers:
    """Calls that arrive without an answer, that do not arrive, and that arrive after the client asked again."""

    @pytest.mark.parametrize(
        "loss",
        [Loss(ALTER), Loss(ALTER, is_carried_out=False), Loss(ALTER, 2), Loss(ALTER, delay_seconds=1.0)],
        ids=["answer", "call", "answers", "late"],
    )
    def test_commit_happens_exactly_once(self, hive_case: CatalogCase, tmp_path: Path, loss: Loss) -> None:
        loaded = made_table(hive_case.catalog)
        loss = replace(loss)
        with thrift_proxy(shared_metastore().port, loss) as proxy:
            with hive(f"thrift://127.0.0.1:{proxy.port}", tmp_path) as failing:
                done = committed(set_property(failing, loaded, mine="yes"))
            assert ALTER in proxy.calls
        assert hive_case.catalog.load_table(EVENTS).metadata_location == done.metadata_location
        time.sleep(loss.delay_seconds)
        last = committed(set_property(hive_case.catalog, done, more="yes"))
        assert hive_case.catalog.load_table(EVENTS).metadata == last.metadata
        assert [one.metadata_file for one in last.metadata.metadata_log] == [
            loaded.metadata_location, done.metadata_location
        ]  # fmt: skip
        assert metastore_of(hive_case.catalog).locks("db", "events") == ()

    @pytest.mark.parametrize("is_carried_out", [True, False])
    def test_table_is_created_exactly_once(self, hive_case: CatalogCase, tmp_path: Path, is_carried_out: bool) -> None:
        hive_case.catalog.create_namespace(("db",))
        with (
            thrift_proxy(shared_metastore().port, Loss(CREATE, is_carried_out=is_carried_out)) as proxy,
            hive(f"thrift://127.0.0.1:{proxy.port}", tmp_path) as failing,
        ):
            made = failing.create_table(EVENTS, builders.schema())
        assert hive_case.catalog.load_table(EVENTS).metadata_location == made.metadata_location

    @pytest.mark.parametrize("is_carried_out", [True, False])
    def test_unknown_outcome_is_resolved_later(
        self, hive_case: CatalogCase, tmp_path: Path, is_carried_out: bool
    ) -> None:
        loaded = made_table(hive_case.catalog)
        with (
            thrift_proxy(shared_metastore().port, Loss(ALTER, 100, is_carried_out=is_carried_out)) as proxy,
            hive(f"thrift://127.0.0.1:{proxy.port}", tmp_path) as failing,
        ):
            metastore = metastore_of(failing)
            read = metastore.find_table
            asked: list[str] = []

            def find_table(database: str, name: str) -> Any:
                asked.append(name)
                if len(asked) > 2:
                    raise StorageError("Cannot reach it")
                return read(database, name)

            metastore.find_table = find_table
            outcome = set_property(failing, loaded, mine="yes")
        assert isinstance(outcome, Unknown)
        assert hive_case.storage.exists(outcome.attempts[0].loaded.metadata_location or "")
        done = committed(hive_case.catalog.resolve_unknown(outcome))
        assert hive_case.catalog.load_table(EVENTS).metadata == done.metadata

    def test_commit_followed_by_others_is_found_in_the_history(self, hive_case: CatalogCase, tmp_path: Path) -> None:
        loaded = made_table(hive_case.catalog)
        outcome = self._unknown(hive_case, tmp_path, loaded)
        latest = hive_case.catalog.load_table(EVENTS)
        assert latest.metadata.properties["mine"] == "yes"
        for at in range(3):
            latest = committed(set_property(hive_case.catalog, latest, at=str(at)))
        committed(hive_case.catalog.resolve_unknown(outcome))
        assert hive_case.catalog.load_table(EVENTS).metadata == latest.metadata

    def test_unsent_commit_is_rejected_after_another_commit(self, hive_case: CatalogCase, tmp_path: Path) -> None:
        loaded = made_table(hive_case.catalog)
        outcome = self._unknown(hive_case, tmp_path, loaded, is_carried_out=False)
        latest = loaded
        for at in range(3):
            latest = committed(set_property(hive_case.catalog, latest, at=str(at)))
        rejected(hive_case.catalog.resolve_unknown(outcome))
        assert not hive_case.storage.exists(outcome.attempts[0].loaded.metadata_location or "")
        assert hive_case.catalog.load_table(EVENTS).metadata == latest.metadata

    def _unknown(self, case: CatalogCase, folder: Path, loaded: Any, *, is_carried_out: bool = True) -> Any:
        with (
            thrift_proxy(shared_metastore().port, Loss(ALTER, 1, is_carried_out=is_carried_out)) as proxy,
            hive(f"thrift://127.0.0.1:{proxy.port}", folder) as failing,
        ):
            pointers = failing._pointers
            pointers._until_answered = lambda change, attempt: _once(pointers, change, attempt)  # type: ignore[attr-defined]
            # The catalog itself would resolve the outcome at once.
            outcome = PointerCatalog.commit(failing, loaded, [SetProperties(FrozenMap({"mine": "yes"}))])
        assert isinstance(outcome, Unknown)
        return outcome


def _once(pointers: Any, change: Any, attempt: Any) -> Any:
    try:
        return attempt(False)
    except AnswerMissing as error:
        raise pointers._unknown(change, str(error)) from error


class TestServers:
    def test_first_reachable_server_is_used(self, hive_case: CatalogCase, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            closed = free.getsockname()[1]
        uri = f"thrift://127.0.0.1:{closed},127.0.0.1:{shared_metastore().port}"
        with hive(uri, tmp_path) as catalog:
            committed(set_property(catalog, made_table(catalog), a="b"))
        with hive(f"thrift://127.0.0.1:{closed}", tmp_path) as catalog:
            with pytest.raises(StorageError, match="Cannot reach the Hive Metastore"):
                catalog.list_namespaces()

    def test_server_without_lock_tables_relies_on_the_expected_parameter(self, tmp_path: Path) -> None:
        with running_metastore(has_locks=False) as server, hive(server.uri, tmp_path) as catalog:
            loaded = made_table(catalog)
            first = committed(set_property(catalog, loaded, a="b"))
            rejected(set_property(catalog, loaded, a="c"))
            committed(set_property(catalog, first, a="d"))
            catalog.drop_table(EVENTS, purge=purge_files)
            assert catalog.list_tables(("db",)) == ()

    @pytest.mark.parametrize(
        ("properties", "error"),
        [
            ({"hive.metastore.sasl.enabled": "true"}, UnsupportedError),
            ({"hive.kerberos-authentication": "true"}, UnsupportedError),
            ({"iceberg.hive.lock-timeout-ms": "soon"}, InvalidPropertyError),
            ({"hive.metastore.client.socket.timeout": "0s"}, InvalidPropertyError),
            ({"iceberg.engine.hive.lock-enabled": "maybe"}, InvalidPropertyError),
            ({"nonsense": "x"}, InvalidPropertyError),
        ],
    )
    def test_invalid_connection_properties_are_refused(
        self, tmp_path: Path, properties: dict[str, str], error: type[Exception]
    ) -> None:
        with pytest.raises(error, match="Cannot"):
            frazil.connect("thrift://127.0.0.1:9083", warehouse=str(tmp_path), properties=properties)

    @pytest.mark.parametrize("uri", ["thrift://", "thrift://a:b", "thrift://a:99999", "thrift://u@h", "thrift://a/b"])
    def test_invalid_addresses_are_refused(self, tmp_path: Path, uri: str) -> None:
        with pytest.raises(InvalidRequestError, match="Cannot connect to the Hive Metastore"):
            frazil.connect(uri, warehouse=str(tmp_path))

    def test_without_a_warehouse_the_namespace_location_is_used(self, tmp_path: Path) -> None:
        place = f"file://{tmp_path}/given"
        with hive(shared_metastore().uri, tmp_path) as catalog:
            if not catalog.namespace_exists(("given",)):
                catalog.create_namespace(("given",), {"location": place})
            catalog.update_namespace_properties(("given",), {"location": place})
        with frazil.connect(shared_metastore().uri) as lake:
            table = lake.create_table("given.t", "id bigint")
            assert table.location == f"{place}/t"
            table.append(pa.table({"id": [1]}))
            assert table.scan().count() == 1
            lake.drop_table("given.t")


def test_table_parameters_match_iceberg_java(hive_case: CatalogCase, tmp_path: Path) -> None:
    hive_case.catalog.create_namespace(("db",))
    lake = frazil.connect(shared_metastore().uri, warehouse=f"file://{tmp_path}/warehouse")
    with lake:
        table = lake.create_table(
            "db.t",
            "id bigint, ts timestamptz, price decimal(9,2), tags list<string>, at struct<x: int, y: map<string, int>>",
            partition_by=["bucket(4, id)"],
            properties={"gc.enabled": "false", "engine.hive.enabled": "true", "hive.metastore.table.owner": "ann"},
        )
        table.append(pa.table({"id": [1, 2]}))
    found = metastore_of(hive_case.catalog).find_table("db", "t")
    parameters = found.texts(9)
    assert parameters["EXTERNAL"] == "TRUE"
    assert parameters["table_type"] == "ICEBERG"
    assert parameters["external.table.purge"] == "false"
    assert parameters["uuid"] == table.metadata.table_uuid
    assert parameters["numRows"] == "2"
    assert parameters["snapshot-count"] == "1"
    snapshot = table.current_snapshot
    assert snapshot is not None
    assert parameters["current-snapshot-id"] == str(snapshot.snapshot_id)
    assert parameters["storage_handler"].endswith("HiveIcebergStorageHandler")
    assert parameters["current-schema"].startswith('{"type":"struct","schema-id":0,"fields":[{"id":1,')
    assert '"transform":"bucket[4]"' in parameters["default-partition-spec"]
    assert "hive.metastore.table.owner" not in parameters
    assert found.text(3) == "ann"
    assert found.text(12) == "EXTERNAL_TABLE"
    assert [(column.text(1), column.text(2)) for column in found.get(7).structs(1)] == [
        ("id", "bigint"),
        ("ts", "timestamp"),
        ("price", "decimal(9,2)"),
        ("tags", "array<string>"),
        ("at", "struct<x:int,y:map<string,int>>"),
    ]


def test_table_property_turns_locking_off(hive_case: CatalogCase) -> None:
    loaded = made_table(hive_case.catalog, properties={"engine.hive.lock-enabled": "false"})
    other = metastore_of(hive_case.another())
    lock = other.lock("db", "events", "theirs", "spark", "elsewhere")
    changed = committed(set_property(hive_case.catalog, loaded, a="b"))
    assert hive_case.catalog.load_table(EVENTS).metadata == changed.metadata
    other.unlock(lock.lock_id)
