"""A catalog that is a service: what is sent, what answers mean, and what becomes of answers that were lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from frazil.catalog.change import TableChange
from frazil.catalog.outcomes import Committed, Rejected, Unknown
from frazil.catalog.purge import PurgeReport
from frazil.changes.apply import apply_updates
from frazil.changes.requirements import AssertRefSnapshotId, AssertTableUuid
from frazil.changes.updates import AddSnapshot, RemoveProperties, SetProperties, SetSnapshotRef
from frazil.errors import (
    AccessDeniedError,
    CommitConflictError,
    CommitStateUnknownError,
    InvalidRequestError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    ServiceError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
    ViewNotFoundError,
)
from frazil.rest.rest_catalog import RestCatalog
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import Snapshot, SnapshotRef
from frazil.spec.table_metadata import TableMetadata
from tests.support import builders
from tests.support.rest_lab import LOST, ScriptedService, error_json, metadata_of, opened, scripted_service, table_json

TABLE = ("db", "t")
AT = "/v1/namespaces/db/tables/t"
SNAPSHOT = Snapshot(
    7, 1_700_000_000_001, "memory://w/db/t/metadata/snap-7.avro", FrozenMap({"operation": "append"}), None, 1, 0
)
ADD = (AddSnapshot(SNAPSHOT), SetSnapshotRef("main", SnapshotRef(7)))
GUARDS = (AssertTableUuid("00000000-0000-0000-0000-000000000001"), AssertRefSnapshotId("main", None))


@pytest.fixture
def service() -> Iterator[ScriptedService]:
    with scripted_service() as made:
        yield made


def loaded(service: ScriptedService, catalog: RestCatalog) -> Any:
    service.on(f"GET {AT}", (200, table_json()))
    return catalog.load_table(TABLE)


def with_snapshot(metadata: TableMetadata | None = None) -> TableMetadata:
    return apply_updates(metadata or metadata_of(), ADD, now_ms=1_700_000_000_002, base_location="memory://w/0.json")


# What is sent


def test_commit_sends_updates_and_requirements(service: ScriptedService) -> None:
    catalog = opened(service)
    base = loaded(service, catalog)
    service.on(f"POST {AT}", (200, table_json(with_snapshot(), "memory://w/1.json")))
    outcome = catalog.commit(base, ADD, GUARDS)
    assert isinstance(outcome, Committed)
    assert outcome.loaded.metadata.current_snapshot_id == 7
    assert outcome.loaded.metadata_location == "memory://w/1.json"
    (sent,) = service.of(f"POST {AT}")
    assert sent.body["identifier"] == {"namespace": ["db"], "name": "t"}
    assert [one["type"] for one in sent.body["requirements"]] == ["assert-table-uuid", "assert-ref-snapshot-id"]
    assert [one["action"] for one in sent.body["updates"]] == ["add-snapshot", "set-snapshot-ref"]
    assert "idempotency-key" not in sent.headers


def test_creation_sends_the_whole_new_table(service: ScriptedService) -> None:
    catalog = opened(service)
    service.on("POST /v1/namespaces/db/tables", (200, table_json(location=None)))  # type: ignore[arg-type]
    staged = catalog.stage_table(TABLE, builders.schema())
    assert staged.metadata_location is None
    assert service.asked[-1].body["stage-create"] is True
    service.on(f"POST {AT}", (200, table_json(with_snapshot())))
    assert isinstance(catalog.commit(staged, ADD), Committed)
    sent = service.asked[-1].body
    assert sent["requirements"] == [{"type": "assert-create"}]
    actions = [one["action"] for one in sent["updates"]]
    assert actions[:3] == ["assign-uuid", "upgrade-format-version", "add-schema"]
    assert actions[-2:] == ["add-snapshot", "set-snapshot-ref"]


def test_properties_are_set_in_one_update(service: ScriptedService) -> None:
    """Nessie takes no more than one; where some are removed too, the order counts and stays."""
    catalog = opened(service)
    base = loaded(service, catalog)
    service.on(f"POST {AT}", (200, table_json()))
    first, second = SetProperties(FrozenMap({"a": "1", "b": "1"})), SetProperties(FrozenMap({"b": "2"}))
    catalog.commit(base, [first, second])
    assert service.asked[-1].body["updates"] == [{"action": "set-properties", "updates": {"a": "1", "b": "2"}}]
    catalog.commit(base, [first, RemoveProperties(("a",)), second])
    assert [one["action"] for one in service.asked[-1].body["updates"]] == [
        "set-properties", "remove-properties", "set-properties",
    ]  # fmt: skip


def test_names_are_escaped_and_namespaces_joined_with_the_service_separator(service: ScriptedService) -> None:
    service.on("GET /v1/config", (200, {"overrides": {"prefix": "w/1", "namespace-separator": "%2E"}, "defaults": {}}))
    catalog = opened(service)
    with pytest.raises(TableNotFoundError):
        catalog.load_table(("a b", "c/d", "t?"))
    assert service.asked[-1].path == "/v1/w/1/namespaces/a%20b%2Ec%2Fd/tables/t%3F"
    service.on("GET /v1/w/1/namespaces", (200, {"namespaces": [["a", "b", "c"]]}))
    assert catalog.list_namespaces(("a", "b")) == (("a", "b", "c"),)
    assert service.asked[-1].query["parent"] == "a.b"


def test_all_pages_are_requested(service: ScriptedService) -> None:
    catalog = opened(service, {"rest-page-size": "2"})
    pages = [{"identifiers": [{"namespace": ["db"], "name": name}], "next-page-token": token} for name, token in
             (("b", "x"), ("a", "y"), ("c", None))]  # fmt: skip
    service.on("GET /v1/namespaces/db/tables", *[(200, one) for one in pages])
    assert catalog.list_tables(("db",)) == (("db", "a"), ("db", "b"), ("db", "c"))
    assert [one.query for one in service.asked[1:]] == [
        {"pageToken": token, "pageSize": "2"} for token in ("", "x", "y")
    ]
    service.on("GET /v1/namespaces/db/tables", (200, pages[0]))
    with pytest.raises(ServiceError, match="do not end"):
        catalog.list_tables(("db",))


def test_unchanged_table_is_revalidated_by_etag(service: ScriptedService) -> None:
    catalog = opened(service)
    service.on(f"GET {AT}", (200, table_json(), {"etag": '"v1"'}), (304, None))
    first = catalog.load_table(TABLE)
    assert catalog.load_table(TABLE) is first
    assert [one.headers.get("if-none-match") for one in service.of(f"GET {AT}")] == [None, '"v1"']


def test_service_settings_are_defaults_and_overrides_around_user_settings(service: ScriptedService) -> None:
    config = {"defaults": {"rest-page-size": "9", "header.x-a": "1"}, "overrides": {"header.x-b": "theirs"}}
    service.on("GET /v1/config", (200, config))
    catalog = opened(service, {"rest-page-size": "3", "header.x-b": "mine", "warehouse": "w"})
    assert service.asked[0].query == {"warehouse": "w"}
    assert catalog.settings["rest-page-size"] == "3"
    service.on("GET /v1/namespaces", (200, {"namespaces": []}))
    catalog.list_namespaces()
    assert service.asked[-1].headers["x-a"] == "1" and service.asked[-1].headers["x-b"] == "theirs"


def test_commit_is_reported_afterwards_and_a_failed_report_ignored(service: ScriptedService) -> None:
    for answer in ((204, None), LOST, error_json(500, "X")):
        catalog = opened(service, {"rest-metrics-reporting-enabled": "true"})
        base = loaded(service, catalog)
        service.on(f"POST {AT}", (200, table_json(with_snapshot())))
        service.on(f"POST {AT}/metrics", answer)
        assert isinstance(catalog.commit(base, ADD, GUARDS), Committed)
        catalog.close()
        sent = service.of(f"POST {AT}/metrics")[-1].body
        assert (sent["report-type"], sent["table-name"], sent["snapshot-id"]) == ("commit-report", "db.t", 7)
        assert (sent["sequence-number"], sent["operation"]) == (1, "append")
    assert len(service.of(f"POST {AT}/metrics")) == 3


# What answers mean


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (error_json(404, "NoSuchTableException"), TableNotFoundError),
        (error_json(404, "NoSuchNamespaceException"), NamespaceNotFoundError),
        (error_json(403, "ForbiddenException"), AccessDeniedError),
        (error_json(400, "BadRequestException"), InvalidRequestError),
        (error_json(406, "UnsupportedOperationException"), UnsupportedError),
        ((404, b"<html>"), TableNotFoundError),
        ((200, b"<html>"), ServiceError),
        ((200, {"metadata-location": "x"}), ServiceError),
    ],
)
def test_refusals_are_frazil_errors(service: ScriptedService, answer: Any, error: type[Exception]) -> None:
    catalog = opened(service)
    service.on(f"GET {AT}", answer)
    with pytest.raises(error):
        catalog.load_table(TABLE)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (error_json(409, "CommitFailedException"), CommitConflictError),
        (error_json(409, "AlreadyExistsException"), CommitConflictError),
        (error_json(404, "NoSuchTableException"), TableNotFoundError),
    ],
)
def test_stale_commit_is_rejected(service: ScriptedService, answer: Any, error: type[Exception]) -> None:
    catalog = opened(service)
    base = loaded(service, catalog)
    service.on(f"POST {AT}", answer)
    outcome = catalog.commit(base, ADD, GUARDS)
    assert isinstance(outcome, Rejected)
    assert isinstance(outcome.reason, error)


@pytest.mark.parametrize("answer", [error_json(400, "BadRequestException"), error_json(422, "X")])
def test_invalid_commit_is_an_error(service: ScriptedService, answer: Any) -> None:
    catalog = opened(service)
    base = loaded(service, catalog)
    service.on(f"POST {AT}", answer)
    with pytest.raises(InvalidRequestError):
        catalog.commit(base, ADD, GUARDS)


def test_rename_to_an_existing_name_is_refused(service: ScriptedService) -> None:
    """Nessie does, and others change nothing."""
    service.on("POST /v1/tables/rename", error_json(409, "AlreadyExistsException"))
    catalog = opened(service)
    catalog.rename_table(TABLE, TABLE)
    service.on(f"HEAD {AT[:-1]}u", (204, None))
    service.on(f"GET {AT[:-1]}u", (200, table_json()))
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_table(TABLE, ("db", "u"))


@pytest.mark.parametrize("kind", ["NamespaceNotEmptyException", ""])
def test_non_empty_namespace_is_kept(service: ScriptedService, kind: str) -> None:
    """Nessie gives no type."""
    service.on("DELETE /v1/namespaces/db", error_json(409, kind, "it holds tables"))
    with pytest.raises(NamespaceNotEmptyError, match=r"drop namespace db: it holds tables"):
        opened(service).drop_namespace(("db",))


def test_retried_drop_that_finds_nothing_has_succeeded(service: ScriptedService) -> None:
    catalog = opened(service)
    service.on(f"DELETE {AT}", LOST, error_json(404, "NoSuchTableException"))
    catalog.drop_table(TABLE)
    service.on(f"DELETE {AT}", error_json(404, "NoSuchTableException"))
    with pytest.raises(TableNotFoundError):
        catalog.drop_table(TABLE)


@pytest.mark.parametrize("has_keys", [False, True])
@pytest.mark.parametrize("is_done", [False, True])
def test_rename_with_a_lost_response_is_verified(service: ScriptedService, is_done: bool, has_keys: bool) -> None:
    if has_keys:
        service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}, "idempotency-key-lifetime": "PT1H"}))
    catalog = opened(service)
    # With keys it is sent again, and meets what it did.
    service.on("POST /v1/tables/rename", LOST, error_json(404, "NoSuchTableException"))
    there, gone = (200, table_json()), error_json(404, "NoSuchTableException")
    service.on(f"GET {AT}", gone if is_done else there)
    service.on("GET /v1/namespaces/db/tables/u", there if is_done else gone)
    service.on("GET /v1/namespaces/db", (200, {"namespace": ["db"]}))
    if is_done:
        catalog.rename_table(TABLE, ("db", "u"))
    else:
        with pytest.raises(TableNotFoundError if has_keys else CommitStateUnknownError):
            catalog.rename_table(TABLE, ("db", "u"))


@pytest.mark.parametrize(("place", "is_done"), [("memory://w/1.json", True), ("memory://w/2.json", False)])
def test_registration_with_a_lost_response_is_verified(service: ScriptedService, place: str, is_done: bool) -> None:
    catalog = opened(service)
    service.on("POST /v1/namespaces/db/register", LOST)
    service.on(f"GET {AT}", (200, table_json(location=place)))
    if is_done:
        assert catalog.register_table(TABLE, "memory://w/1.json").metadata_location == place
    else:
        with pytest.raises(CommitStateUnknownError):
            catalog.register_table(TABLE, "memory://w/1.json")


@pytest.mark.parametrize(
    ("found", "is_done"), [({"a": "1", "c": "3"}, True), ({"a": "1", "b": "2"}, False), ({"a": "0"}, False)]
)
def test_namespace_change_with_a_lost_response_is_verified(
    service: ScriptedService, found: dict[str, str], is_done: bool
) -> None:
    endpoints = [
        "POST /v1/{prefix}/namespaces/{namespace}/properties",
        "GET /v1/{prefix}/namespaces/{namespace}",
    ]
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}, "endpoints": endpoints}))
    catalog = opened(service)
    service.on("POST /v1/namespaces/db/properties", LOST)
    service.on("GET /v1/namespaces/db", (200, {"namespace": ["db"], "properties": found}))
    if is_done:
        catalog.update_namespace_properties(("db",), {"a": "1"}, ["b"])
    else:
        with pytest.raises(CommitStateUnknownError):
            catalog.update_namespace_properties(("db",), {"a": "1"}, ["b"])


@pytest.mark.parametrize(("properties", "sent"), [({}, "false"), ({"rest.service-purges": "true"}, "true")])
def test_service_purges_only_if_trusted_to(service: ScriptedService, properties: dict[str, str], sent: str) -> None:
    catalog = opened(service, properties)
    service.on(f"GET {AT}", (200, table_json()))
    service.on("GET /v1/namespaces", (200, {"namespaces": []}))
    service.on(f"DELETE {AT}", (204, None))
    purged: list[Any] = []

    def purge(loaded: Any, owned: Any) -> PurgeReport:
        purged.append(loaded.identifier)
        return PurgeReport(3)

    report = catalog.drop_table(TABLE, purge=purge)
    assert [one.query for one in service.of(f"DELETE {AT}")] == [{"purgeRequested": sent}]
    assert (purged, report.deleted_count) == (([TABLE], 3) if sent == "false" else ([], 0))


def test_unsupported_endpoint_is_refused_or_empty(service: ScriptedService) -> None:
    catalog = opened(service)
    service.on("GET /v1/namespaces/db", (200, {"namespace": ["db"]}))
    assert catalog.list_views(("db",)) == ()
    with pytest.raises(ViewNotFoundError):
        catalog.load_view(("db", "v"))
    with pytest.raises(UnsupportedError, match="does not have this operation"):
        catalog.rename_view(("db", "v"), ("db", "w"))


def test_multi_table_commit_is_one_request_if_supported(service: ScriptedService) -> None:
    catalog = opened(service)
    base = loaded(service, catalog)
    other = replace(base, identifier=("db", "u"))
    changes = [TableChange(one, ADD, GUARDS) for one in (base, other)]
    service.on("POST /v1/transactions/commit", (204, None))
    service.on("GET /v1/namespaces/db/tables/u", (200, table_json(with_snapshot())))
    service.on(f"GET {AT}", (200, table_json(with_snapshot())))
    outcome = catalog.commit_many(changes)
    assert isinstance(outcome, Committed)
    assert [one.identifier for one in outcome.all_loaded] == [TABLE, ("db", "u")]
    (sent,) = service.of("POST /v1/transactions/commit")
    assert [one["identifier"]["name"] for one in sent.body["table-changes"]] == ["t", "u"]
    service.on("GET /v1/config", (200, {"endpoints": [f"GET {AT}"], "defaults": {}, "overrides": {}}))
    with pytest.raises(UnsupportedError, match="2 tables at once"):
        opened(service).commit_many(changes)


# Answers that were lost


def test_commit_with_a_lost_response_is_found_by_its_snapshot(service: ScriptedService) -> None:
    catalog = opened(service)
    base = loaded(service, catalog)
    service.on(f"POST {AT}", LOST)
    unknown = catalog.commit(base, ADD, GUARDS)
    assert isinstance(unknown, Unknown) and not unknown.error.may_clean_up
    service.on(f"GET {AT}", (200, table_json(with_snapshot(), "memory://w/1.json")))
    verdict = catalog.resolve_unknown(unknown)
    assert isinstance(verdict, Committed)
    assert verdict.loaded.metadata_location == "memory://w/1.json"
    assert len(service.of(f"POST {AT}")) == 1


def test_commit_that_can_no_longer_land_is_rejected(service: ScriptedService) -> None:
    catalog = opened(service)
    base = loaded(service, catalog)
    service.on(f"POST {AT}", (504, None))
    unknown = catalog.commit(base, ADD, GUARDS)
    assert isinstance(unknown, Unknown)
    theirs = replace(SNAPSHOT, snapshot_id=8)
    moved = apply_updates(
        metadata_of(), (AddSnapshot(theirs), SetSnapshotRef("main", SnapshotRef(8))), now_ms=1_700_000_000_002
    )
    service.on(f"GET {AT}", (200, table_json(moved)))
    assert isinstance(catalog.resolve_unknown(unknown), Rejected)
    assert len(service.of(f"POST {AT}")) == 1


def test_commit_that_may_still_land_is_sent_again(service: ScriptedService) -> None:
    catalog = opened(service)
    base = loaded(service, catalog)
    service.on(f"POST {AT}", LOST, (200, table_json(with_snapshot())))
    unknown = catalog.commit(base, ADD, GUARDS)
    assert isinstance(unknown, Unknown)
    assert isinstance(catalog.resolve_unknown(unknown), Committed)
    first, second = service.of(f"POST {AT}")
    assert first.body == second.body


def test_retry_that_meets_its_own_commit_succeeds(service: ScriptedService) -> None:
    catalog = opened(service)
    base = loaded(service, catalog)
    service.on(f"GET {AT}", (200, table_json()), (200, table_json(with_snapshot())))
    service.on(f"POST {AT}", LOST, error_json(409, "CommitFailedException"))
    unknown = catalog.commit(base, ADD, GUARDS)
    assert isinstance(unknown, Unknown)
    assert isinstance(catalog.resolve_unknown(unknown), Committed)


def test_change_already_present_has_succeeded(service: ScriptedService) -> None:
    catalog = opened(service)
    base = loaded(service, catalog)
    service.on(f"POST {AT}", LOST)
    unknown = catalog.commit(base, [SetProperties(FrozenMap({"a": "b"}))])
    assert isinstance(unknown, Unknown)
    service.on(f"GET {AT}", (200, table_json(metadata_of(properties={"a": "b"}))))
    assert isinstance(catalog.resolve_unknown(unknown), Committed)


@pytest.mark.parametrize(
    "found",
    [
        error_json(404, "NoSuchTableException"),
        (200, table_json(metadata_of(uuid="00000000-0000-0000-0000-000000000002"))),
    ],
)
def test_commit_to_a_dropped_table_stays_unknown(service: ScriptedService, found: Any) -> None:
    catalog = opened(service)
    base = loaded(service, catalog)
    service.on(f"POST {AT}", LOST)
    unknown = catalog.commit(base, ADD, GUARDS)
    assert isinstance(unknown, Unknown)
    service.on(f"GET {AT}", found)
    assert catalog.resolve_unknown(unknown) is unknown
    assert len(service.of(f"POST {AT}")) == 1


def test_idempotent_request_is_retried_with_the_same_key(service: ScriptedService) -> None:
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}, "idempotency-key-lifetime": "PT30M"}))
    catalog = opened(service, {"rest.client.max-retries": "1"})
    base = loaded(service, catalog)
    service.on(f"POST {AT}", LOST, LOST, (200, table_json(with_snapshot())))
    unknown = catalog.commit(base, ADD, GUARDS)
    assert isinstance(unknown, Unknown)
    assert isinstance(catalog.resolve_unknown(unknown), Committed)
    assert len({one.headers["idempotency-key"] for one in service.of(f"POST {AT}")}) == 1
    service.on(f"POST {AT}", (200, table_json(with_snapshot())))
    catalog.commit(base, ADD, GUARDS)
    assert len({one.headers["idempotency-key"] for one in service.of(f"POST {AT}")}) == 2


KEYS = {"defaults": {}, "overrides": {}, "idempotency-key-lifetime": "PT30M"}


@pytest.mark.parametrize("retries", ["0", "5"])
@pytest.mark.parametrize("status", [(409, "CommitFailedException"), (404, "NoSuchTableException")])
def test_expired_idempotency_key_does_not_undo_a_commit(
    service: ScriptedService, retries: str, status: tuple[int, str]
) -> None:
    service.on("GET /v1/config", (200, KEYS))
    catalog = opened(service, {"rest.client.max-retries": retries})
    base = loaded(service, catalog)
    service.on(f"POST {AT}", LOST, error_json(*status))
    service.on(f"GET {AT}", (200, table_json(with_snapshot(), "memory://w/1.json")))
    outcome = catalog.commit(base, ADD, GUARDS)
    if isinstance(outcome, Unknown):
        outcome = catalog.resolve_unknown(outcome)
    assert isinstance(outcome, Committed)
    assert outcome.loaded.metadata_location == "memory://w/1.json"


def test_lost_race_after_a_lost_response_is_rejected(service: ScriptedService) -> None:
    service.on("GET /v1/config", (200, KEYS))
    catalog = opened(service)
    base = loaded(service, catalog)
    service.on(f"POST {AT}", LOST, error_json(409, "CommitFailedException"))
    theirs = replace(SNAPSHOT, snapshot_id=8)
    moved = apply_updates(
        metadata_of(), (AddSnapshot(theirs), SetSnapshotRef("main", SnapshotRef(8))), now_ms=1_700_000_000_002
    )
    service.on(f"GET {AT}", (200, table_json(moved)))
    assert isinstance(catalog.commit(base, ADD, GUARDS), Rejected)


def test_unreadable_success_response_is_not_a_failure(service: ScriptedService) -> None:
    catalog = opened(service)
    base = loaded(service, catalog)
    service.on(f"POST {AT}", (200, b"{"))
    assert isinstance(catalog.commit(base, ADD, GUARDS), Unknown)


def test_creation_with_a_lost_response_is_found_by_uuid(service: ScriptedService) -> None:
    catalog = opened(service)
    service.on("POST /v1/namespaces/db/tables", (200, table_json(location=None)))  # type: ignore[arg-type]
    staged = catalog.stage_table(TABLE, builders.schema())
    service.on(f"POST {AT}", LOST)
    unknown = catalog.commit(staged, ())
    assert isinstance(unknown, Unknown)
    service.on(f"GET {AT}", (200, table_json()))
    assert isinstance(catalog.resolve_unknown(unknown), Committed)
    service.on(f"GET {AT}", (200, table_json(metadata_of(uuid="00000000-0000-0000-0000-000000000002"))))
    verdict = catalog.resolve_unknown(unknown)
    assert isinstance(verdict, Rejected) and isinstance(verdict.reason, TableAlreadyExistsError)


# Services that differ


def test_service_without_staging_creates_tables_first_and_changes_them_next(service: ScriptedService) -> None:
    """Glue refuses `stage-create`, and wants a location."""
    catalog = opened(service)
    refused = error_json(400, "UnsupportedOperationException", "Stage create is not supported")

    def create(asked: Any) -> Any:
        if asked.body["stage-create"]:
            return refused
        return (
            (200, table_json())
            if "location" in asked.body
            else error_json(400, "BadRequestException", "location is required")
        )

    service.on("POST /v1/namespaces/db/tables", create)
    service.on("GET /v1/namespaces/db", (200, {"namespace": ["db"], "properties": {"location": "memory://w/db"}}))
    staged = catalog.stage_table(TABLE, builders.schema())
    assert staged.metadata.location == "memory://w/db/t"
    service.on(f"POST {AT}", (200, table_json(with_snapshot())))
    assert isinstance(catalog.commit(staged, ADD), Committed)
    assert service.asked[-2].body["location"] == "memory://w/db/t"
    assert service.asked[-1].body["requirements"] == [
        {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000001"}
    ]


def test_service_that_requires_a_location_gets_that_of_the_namespace(service: ScriptedService) -> None:
    catalog = opened(service)
    refused = error_json(400, "BadRequestException", "Cannot create table: location is required")
    service.on("POST /v1/namespaces/db/tables", refused, (200, table_json()))
    service.on("GET /v1/namespaces/db", (200, {"namespace": ["db"], "properties": {"location": "s3://b/db"}}))
    catalog.create_table(TABLE, builders.schema())
    first, second = service.of("POST /v1/namespaces/db/tables")
    assert "location" not in first.body and second.body["location"] == "s3://b/db/t"


def test_service_that_chooses_locations_gets_none(service: ScriptedService) -> None:
    """Horizon and S3 Tables refuse a location that they did not choose."""
    catalog = opened(service)
    service.on("POST /v1/namespaces/db/tables", (200, table_json()))
    catalog.create_table(TABLE, builders.schema())
    assert "location" not in service.asked[-1].body


@pytest.mark.parametrize(
    "config",
    [
        {"overrides": {"prefix": "catalogs/123456789012"}},
        {"defaults": None, "overrides": {"prefix": "catalogs/123456789012"}},
        {"defaults": {"prefix": "catalogs/123456789012", "n": None}, "overrides": {}, "endpoints": []},
    ],
    ids=["no-defaults", "null-defaults", "no-endpoints"],
)
def test_partial_configuration_is_accepted(service: ScriptedService, config: Any) -> None:
    """Lakekeeper left out `defaults`; Glue's prefix has a slash; S3 Tables' is an ARN, escaped."""
    service.on("GET /v1/config", (200, config))
    catalog = opened(service)
    service.on("GET /v1/catalogs/123456789012/namespaces", (200, {"namespaces": [["db"]], "next-page-token": None}))
    assert catalog.list_namespaces() == (("db",),)


def test_escaped_prefix_is_used_unchanged(service: ScriptedService) -> None:
    arn = "arn%3Aaws%3As3tables%3Aeu-central-1%3A123456789012%3Abucket%2Flake"
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {"prefix": arn}}))
    catalog = opened(service, {"warehouse": "arn:aws:s3tables:eu-central-1:123456789012:bucket/lake"})
    service.on(f"GET /v1/{arn}/namespaces", (200, {"namespaces": []}))
    assert catalog.list_namespaces() == ()


def test_service_without_head_is_queried_by_get(service: ScriptedService) -> None:
    endpoints = ["HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}"]
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}, "endpoints": endpoints}))
    catalog = opened(service)
    service.on(f"HEAD {AT}", (405, None))
    service.on(f"GET {AT}", (200, table_json()))
    assert catalog.table_exists(TABLE)
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}}))
    before = len(service.of(f"HEAD {AT}"))
    assert opened(service).table_exists(TABLE)
    assert len(service.of(f"HEAD {AT}")) == before


@pytest.mark.parametrize("refusal", [(404, "NoSuchNamespaceException"), (409, "")])
def test_parent_namespaces_are_created_if_the_service_requires_them(
    service: ScriptedService, refusal: tuple[int, str]
) -> None:
    """Polaris and Nessie refuse a namespace whose parent is not there."""
    catalog = opened(service)
    made: list[list[str]] = []

    def create(asked: Any) -> Any:
        name = asked.body["namespace"]
        if len(name) > 1 and name[:-1] not in made:
            return error_json(*refusal, "Parent namespace does not exist")
        made.append(name)
        return 200, asked.body

    service.on("POST /v1/namespaces", create)
    catalog.create_namespace(("a", "b", "c"))
    assert made == [["a"], ["a", "b"], ["a", "b", "c"]]


def test_override_may_name_another_address(service: ScriptedService) -> None:
    with scripted_service() as second:
        service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {"uri": f"{second.address}/catalog/"}}))
        catalog = opened(service)
        second.on("GET /catalog/v1/namespaces", (200, {"namespaces": [["db"]]}))
        assert catalog.list_namespaces() == (("db",),)


def test_base_path_of_a_service_is_kept(service: ScriptedService) -> None:
    service.on(
        "GET /api/2.1/unity-catalog/iceberg-rest/v1/config",
        (200, {"defaults": {}, "overrides": {"prefix": "catalogs/main"}}),
    )
    service.address += "/api/2.1/unity-catalog/iceberg-rest/"
    catalog = opened(service, {"token": "t", "warehouse": "main"})
    service.on("GET /api/2.1/unity-catalog/iceberg-rest/v1/catalogs/main/namespaces", (200, {"namespaces": [["s"]]}))
    assert catalog.list_namespaces() == (("s",),)
    assert service.asked[-1].headers["authorization"] == "Bearer t"


def test_malformed_responses_are_service_errors(service: ScriptedService) -> None:
    for body in (b"[]", b"", b"not json", json.dumps("text").encode()):
        service.on("GET /v1/config", (200, body))
        with pytest.raises(ServiceError):
            opened(service)
