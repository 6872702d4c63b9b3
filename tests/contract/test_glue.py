"""What the catalog in AWS Glue promises beside the contract: versions, pages, faults, and who gets to see keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import frazil
from frazil.catalog.glue.open_glue import open_glue
from frazil.catalog.outcomes import Unknown
from frazil.changes.updates import RemoveProperties
from frazil.errors import (
    AccessDeniedError,
    CommitStateUnknownError,
    InvalidPropertyError,
    InvalidRequestError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from frazil.storage.memory import MemoryStorage
from tests.support import builders
from tests.support.catalog_cases import (
    EVENTS,
    CatalogCase,
    committed,
    made_table,
    opened_case,
    rejected,
    set_property,
    set_property_until_it_works,
)
from tests.support.glue_server import KEY_ID, SECRET, Fault, GlueServer, shared_glue


def no_database() -> str:
    raise AssertionError("Glue needs none")


@pytest.fixture
def server() -> Iterator[GlueServer]:
    found = shared_glue()
    found.forget()
    yield found
    found.faults.clear()


@pytest.fixture
def case(server: GlueServer, tmp_path: Path) -> Iterator[CatalogCase]:
    with opened_case("glue", tmp_path, no_database) as made:
        made.catalog._pointers._client.sleep = lambda seconds: None  # type: ignore[attr-defined]
        made.catalog._pointers._sleep = lambda seconds: None  # type: ignore[attr-defined]
        yield made


def table_of(server: GlueServer, name: str = "events") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(server.ask("GetTable", {"DatabaseName": "db", "Name": name})[1])["Table"]
    return found


class TestTables:
    def test_table_input_matches_iceberg_java(self, case: CatalogCase, server: GlueServer) -> None:
        loaded = made_table(case.catalog, properties={"comment": "mine", "write.data.path": f"{case.warehouse}/data"})
        table = table_of(server)
        assert table["TableType"] == "EXTERNAL_TABLE"
        assert table["Parameters"] == {"table_type": "ICEBERG", "metadata_location": loaded.metadata_location}
        assert table["Description"] == "mine"
        assert table["StorageDescriptor"]["Location"] == loaded.metadata.location
        assert table["StorageDescriptor"]["AdditionalLocations"] == [f"{case.warehouse}/data"]
        assert table["StorageDescriptor"]["Columns"][0] == {
            "Name": "id",
            "Type": "bigint",
            "Parameters": {
                "iceberg.field.id": "1", "iceberg.field.optional": "false", "iceberg.field.current": "true"
            },
        }  # fmt: skip

    def test_commit_sends_the_version_and_skips_archiving(self, case: CatalogCase, server: GlueServer) -> None:
        loaded = made_table(case.catalog)
        changed = committed(set_property(case.catalog, loaded, a="b"))
        sent = next(arguments for action, arguments in server.requests if action == "UpdateTable")
        assert (sent["VersionId"], sent["SkipArchive"]) == ("1", True)
        assert table_of(server)["Parameters"]["previous_metadata_location"] == loaded.metadata_location
        assert table_of(server)["Parameters"]["metadata_location"] == changed.metadata_location

    def test_foreign_parameters_and_fields_survive_a_commit(self, case: CatalogCase, server: GlueServer) -> None:
        loaded = made_table(case.catalog, properties={"gone": "soon"})
        table = table_of(server)
        changed = {name: table[name] for name in ("Name", "StorageDescriptor", "TableType", "Parameters")}
        changed["Parameters"]["theirs"] = "x"
        changed["StorageDescriptor"]["Columns"][0]["Comment"] = "written in the console"
        server.ask("UpdateTable", {"DatabaseName": "db", "TableInput": {**changed, "Owner": "ann", "Retention": 7}})
        committed(case.catalog.commit(loaded, [RemoveProperties(("gone",))]))
        found = table_of(server)
        assert found["Parameters"]["theirs"] == "x"
        assert (found["Owner"], found["Retention"]) == ("ann", 7)
        assert found["StorageDescriptor"]["Columns"][0]["Comment"] == "written in the console"

    def test_listing_follows_pages(self, case: CatalogCase, server: GlueServer) -> None:
        names = tuple(("db", f"t{at}") for at in range(7))
        for name in names:
            made_table(case.catalog, name)
        for at in range(4):
            case.catalog.create_namespace((f"n{at}",))
        server.requests.clear()
        assert case.catalog.list_tables(("db",)) == names
        assert [action for action, _ in server.requests] == ["GetTables"] * 3
        assert len(case.catalog.list_namespaces()) == 5

    def test_other_tables_keep_their_names(self, case: CatalogCase, server: GlueServer) -> None:
        case.catalog.create_namespace(("db",))
        server.ask("CreateTable", {"DatabaseName": "db", "TableInput": {"Name": "plain", "Parameters": {"a": "b"}}})
        assert case.catalog.list_tables(("db",)) == ()
        assert not case.catalog.table_exists(("db", "plain"))
        with pytest.raises(TableAlreadyExistsError):
            case.catalog.create_table(("db", "plain"), builders.schema())
        made_table(case.catalog)
        with pytest.raises(TableAlreadyExistsError):
            case.catalog.rename_table(EVENTS, ("db", "plain"))
        assert case.catalog.table_exists(EVENTS)

    def test_catalog_id_is_sent_with_every_request(self, server: GlueServer) -> None:
        properties = {**server.properties, "glue.id": "210987654321"}
        with open_glue("lake", "memory://wh", MemoryStorage(), properties) as catalog:
            catalog.create_namespace(("db",))
            catalog.list_tables(("db",))
        assert all(arguments["CatalogId"] == "210987654321" for _, arguments in server.requests)


class TestFaults:
    @pytest.mark.parametrize("kind", ["lose", "drop", "break", "throttle"])
    @pytest.mark.parametrize("times", [1, 2])
    def test_commit_happens_exactly_once(self, case: CatalogCase, server: GlueServer, kind: str, times: int) -> None:
        loaded = made_table(case.catalog)
        server.faults.append(Fault(kind, "UpdateTable", times))
        done = committed(set_property(case.catalog, loaded, mine="yes"))
        last = committed(set_property(case.catalog, done, more="yes"))
        assert case.catalog.load_table(EVENTS).metadata == last.metadata
        assert [one.metadata_file for one in last.metadata.metadata_log] == [
            loaded.metadata_location, done.metadata_location
        ]  # fmt: skip

    @pytest.mark.parametrize("kind", ["lose", "drop", "break", "throttle"])
    def test_table_is_created_exactly_once(self, case: CatalogCase, server: GlueServer, kind: str) -> None:
        case.catalog.create_namespace(("db",))
        server.faults.append(Fault(kind, "CreateTable"))
        made = case.catalog.create_table(EVENTS, builders.schema())
        assert case.another().load_table(EVENTS).metadata_location == made.metadata_location

    @pytest.mark.parametrize("kind", ["lose", "drop"])
    @pytest.mark.parametrize("action", ["UpdateTable", "CreateTable", "DeleteTable"])
    def test_interrupted_rename_keeps_the_pointer(
        self, case: CatalogCase, server: GlueServer, kind: str, action: str
    ) -> None:
        loaded = made_table(case.catalog)
        server.faults.append(Fault(kind, action))
        try:
            case.catalog.rename_table(EVENTS, ("db", "e2"))
        except (StorageError, CommitStateUnknownError):
            server.faults.clear()
        names = case.catalog.list_tables(("db",))
        if names:
            assert len(names) == 1
            assert case.catalog.load_table(names[0]).metadata == loaded.metadata
        else:
            # Interrupted between its steps: the pointer is there, under its old name.
            parameters = table_of(server)["Parameters"]
            assert parameters["table_type"] == "ICEBERG-RENAMED"
            assert parameters["metadata_location"] == loaded.metadata_location

    def test_unknown_outcome_is_resolved_later(self, case: CatalogCase, server: GlueServer) -> None:
        loaded = made_table(case.catalog)
        server.faults.append(Fault("drop", "UpdateTable", 1000))
        outcome = set_property(case.catalog, loaded, mine="yes")
        assert isinstance(outcome, Unknown)
        assert case.storage.exists(outcome.attempts[0].loaded.metadata_location or "")
        server.faults.clear()
        done = committed(case.catalog.resolve_unknown(outcome))
        assert case.catalog.load_table(EVENTS).metadata == done.metadata

    def test_rename_keeps_a_concurrent_commit(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        other = case.another()
        pointers: Any = case.catalog._pointers  # type: ignore[attr-defined]
        find, calls = pointers._find_table, []

        def find_table(database: str, name: str) -> Any:
            found = find(database, name)
            calls.append(name)
            if name == "events" and calls.count(name) == 2:
                committed(set_property(other, loaded, a="b"))
            return found

        pointers._find_table = find_table
        case.catalog.rename_table(EVENTS, ("db", "e2"))
        assert case.another().load_table(("db", "e2")).metadata.properties["a"] == "b"
        assert isinstance(rejected(set_property(other, loaded, c="d")).reason, frazil.TableNotFoundError)

    def test_refusal_names_the_action_and_no_secret(self, server: GlueServer) -> None:
        def refuse(action: str, arguments: dict[str, Any]) -> tuple[str, int, bytes]:
            return (
                "",
                400,
                json.dumps({"__type": "AccessDeniedException", "Message": f"not {KEY_ID} {SECRET}"}).encode(),
            )

        answer, server.answer = server.answer, refuse  # type: ignore[method-assign]
        try:
            with open_glue("lake", "memory://wh", MemoryStorage(), server.properties) as catalog:
                with pytest.raises(AccessDeniedError, match="GetDatabases") as caught:
                    catalog.list_namespaces()
        finally:
            server.answer = answer  # type: ignore[method-assign]
        assert KEY_ID not in str(caught.value)
        assert SECRET not in str(caught.value)

    def test_unreachable_service_is_a_storage_error(self) -> None:
        properties = {"glue.endpoint": "http://127.0.0.1:1", "client.region": "eu-central-1", "glue.max-retries": "0"}
        keys = {"glue.access-key-id": "AKIAX", "glue.secret-access-key": "secret"}
        with open_glue("lake", "memory://wh", MemoryStorage(), {**properties, **keys}) as catalog:
            with pytest.raises(StorageError, match="Cannot reach Glue in eu-central-1"):
                catalog.list_namespaces()


class TestConnections:
    @pytest.mark.parametrize(
        ("properties", "error"),
        [
            ({}, InvalidRequestError),
            ({"client.region": "eu-central-1"}, InvalidRequestError),
            ({"client.region": "evil.example/"}, InvalidPropertyError),
            ({"client.region": "eu-central-1", "glue.endpoint": "https://x/y"}, InvalidPropertyError),
            ({"client.region": "eu-central-1", "glue.profile-name": "me"}, UnsupportedError),
            ({"client.region": "eu-central-1", "glue.lakeformation-enabled": "true"}, UnsupportedError),
            ({"client.region": "eu-central-1", "glue.max-retries": "many"}, InvalidPropertyError),
            ({"nonsense": "x"}, InvalidPropertyError),
        ],
    )
    def test_invalid_connection_properties_are_refused(
        self, tmp_path: Path, properties: dict[str, str], error: type[Exception]
    ) -> None:
        with pytest.raises(error, match="Cannot"):
            frazil.connect(str(tmp_path), catalog="glue", properties=properties)

    def test_credentials_of_another_store_are_not_sent_to_amazon(self, tmp_path: Path) -> None:
        keys = {"s3.access-key-id": "minio", "s3.secret-access-key": "minio-secret"}
        with pytest.raises(InvalidRequestError, match="there are no credentials"):
            frazil.connect(
                str(tmp_path),
                catalog="glue",
                properties={**keys, "s3.endpoint": "http://127.0.0.1:9000", "client.region": "eu-central-1"},
            )
        frazil.connect(str(tmp_path), catalog="glue", properties={**keys, "client.region": "eu-central-1"}).close()


def test_concurrent_writers_lose_no_commits(case: CatalogCase) -> None:
    from concurrent.futures import ThreadPoolExecutor

    made_table(case.catalog)
    handles = [case.another() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(
            pool.map(
                lambda at: [
                    set_property_until_it_works(handles[at], EVENTS, **{f"w{at}-{one}": "x"}) for one in range(5)
                ],
                range(4),
            )
        )
    found = case.catalog.load_table(EVENTS).metadata
    assert {f"w{at}-{one}" for at in range(4) for one in range(5)} <= found.properties.keys()
    assert len(found.metadata_log) == 20
