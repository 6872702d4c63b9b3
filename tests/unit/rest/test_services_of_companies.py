"""What services of companies answer otherwise than the protocol says, as their users reported it, and what comes of it.

Texts of refusals are those of the reports, as far as there are any; the rest of an answer is as the protocol says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import frazil
from frazil.catalog.outcomes import Committed, Rejected
from frazil.changes.apply import apply_updates
from frazil.changes.requirements import AssertRefSnapshotId
from frazil.changes.updates import AddSnapshot, SetSnapshotRef
from frazil.errors import (
    AccessDeniedError,
    CommitConflictError,
    InvalidRequestError,
    TableNotFoundError,
    UnsupportedError,
)
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import Snapshot, SnapshotRef
from tests.support import builders
from tests.support.rest_lab import ScriptedService, error_json, metadata_of, opened, scripted_service, table_json

TABLE = ("db", "t")
FIRST = Snapshot(7, 1_700_000_000_001, "memory://w/7.avro", FrozenMap({"operation": "append"}), None, 1, 0)
SECOND = replace(FIRST, snapshot_id=8, parent_snapshot_id=7, sequence_number=2, manifest_list="memory://w/8.avro")
ONE = (AddSnapshot(FIRST), SetSnapshotRef("main", SnapshotRef(7)))
TWO = (*ONE, AddSnapshot(SECOND), SetSnapshotRef("main", SnapshotRef(8)))
EMPTY = (AssertRefSnapshotId("main", None),)


@pytest.fixture
def service() -> Iterator[ScriptedService]:
    with scripted_service() as made:
        yield made


def refuse(status: int, kind: str, message: str) -> Any:
    return status, {"error": {"code": status, "message": message, "type": kind}}


# AWS Glue: `…/iceberg`, a prefix with a slash, a location that is wanted, no stages, namespaces of one level

GLUE = "/v1/catalogs/123456789012/namespaces"
NO_STAGES = refuse(400, "InvalidInputException", "Stage create is not supported")
NO_LOCATION = refuse(
    400, "InvalidInputException", "Location information cannot be null while creating an iceberg table"
)


@pytest.fixture
def glue(service: ScriptedService) -> ScriptedService:
    config = {"defaults": {}, "overrides": {"prefix": "catalogs/123456789012"}}
    service.on("GET /v1/config", (200, config))
    service.on(f"GET {GLUE}/db", (200, {"namespace": ["db"], "properties": {"location": "s3://b/db/"}}))

    def create(asked: Any) -> Any:
        if asked.body["stage-create"]:
            return NO_STAGES
        return (200, table_json()) if "location" in asked.body else NO_LOCATION

    service.on(f"POST {GLUE}/db/tables", create)
    return service


def test_glue_receives_the_table_location(glue: ScriptedService) -> None:
    opened(glue).create_table(TABLE, builders.schema())
    assert glue.asked[-1].body["location"] == "s3://b/db/t"


def test_table_created_with_rows_stays_empty_if_glue_refuses_the_second_step(
    glue: ScriptedService,
) -> None:
    catalog = opened(glue)
    staged = catalog.stage_table(TABLE, builders.schema())
    glue.on(f"POST {GLUE}/db/tables/t", refuse(409, "CommitFailedException", "changed"))
    outcome = catalog.commit(staged, ONE)
    assert isinstance(outcome, Rejected) and isinstance(outcome.reason, CommitConflictError)
    assert not [one for one in glue.asked if one.method == "DELETE"], "whose table it is by now, nobody knows"
    glue.on(f"POST {GLUE}/db/tables/t", refuse(403, "AccessDeniedException", "not allowed"))
    with pytest.raises(AccessDeniedError, match="not allowed"):
        catalog.commit(staged, ONE)


def test_glue_reports_two_level_namespaces_as_missing(glue: ScriptedService) -> None:
    catalog = opened(glue)
    for method in ("GET", "HEAD"):
        glue.on(f"{method} {GLUE}/db%1Finner", refuse(400, "IllegalArgumentException", "Invalid namespace name"))
    assert not catalog.namespace_exists(("db", "inner"))
    glue.on(f"POST {GLUE}", refuse(400, "IllegalArgumentException", "Invalid namespace name"))
    with pytest.raises(InvalidRequestError, match="Invalid namespace name"):
        catalog.create_namespace(("db", "inner"))


# S3 Tables: no location but its own, no drop without purge


def test_refused_location_is_reported_in_the_words_of_the_service(service: ScriptedService) -> None:
    """S3 Tables, and Snowflake's Horizon."""
    catalog = opened(service)
    refused = refuse(400, "BadRequestException", "Specifying a location is not supported for managed tables")
    service.on(
        "POST /v1/namespaces/db/tables", lambda asked: refused if "location" in asked.body else (200, table_json())
    )
    service.on("GET /v1/namespaces/db", (200, {"namespace": ["db"], "properties": {}}))
    with pytest.raises(InvalidRequestError, match="not supported for managed tables"):
        catalog.create_table(TABLE, builders.schema(), location="s3://mine/t")
    assert len(service.of("POST /v1/namespaces/db/tables")) == 1, "another place is not what was asked for"
    catalog.create_table(TABLE, builders.schema())


def test_s3_tables_drop_requires_purge_and_the_error_explains_it(service: ScriptedService) -> None:
    said = "DropTable operation failed. S3 Tables only supports dropping tables with purge enabled."
    service.on(
        "DELETE /v1/namespaces/db/tables/t",
        lambda asked: (
            (204, None) if asked.query["purgeRequested"] == "true" else refuse(400, "BadRequestException", said)
        ),
    )
    service.on("GET /v1/namespaces/db/tables/t", (200, table_json()))
    with frazil.Lake(opened(service)) as lake, pytest.raises(UnsupportedError, match="purge enabled") as found:
        lake.drop_table("db.t")
    assert "rest.service-purges" in str(found.value)
    with frazil.Lake(opened(service, {"rest.service-purges": "true"})) as lake:
        lake.drop_table("db.t", purge=True)


# Unity Catalog of Databricks: one snapshot in a commit


def test_unity_accepts_one_snapshot_per_commit(service: ScriptedService) -> None:
    catalog = opened(service)
    service.on("GET /v1/namespaces/db/tables/t", (200, table_json()))
    base = catalog.load_table(TABLE)
    said = "requirement failed: Adding multiple snapshots in a single update is not supported."

    def commit(asked: Any) -> Any:
        added = [one for one in asked.body["updates"] if one["action"] == "add-snapshot"]
        after = apply_updates(metadata_of(), ONE, now_ms=1_700_000_000_002, base_location="memory://w/0.json")
        return refuse(409, "CommitFailedException", said) if len(added) > 1 else (200, table_json(after))

    service.on("POST /v1/namespaces/db/tables/t", commit)
    with pytest.raises(UnsupportedError, match="Adding multiple snapshots"):
        catalog.commit(base, TWO, EMPTY)
    assert isinstance(catalog.commit(base, ONE, EMPTY), Committed)
    # Where another writer did come first, it is a conflict, and the change is prepared anew.
    other = replace(FIRST, snapshot_id=9)
    theirs = apply_updates(
        metadata_of(),
        (AddSnapshot(other), SetSnapshotRef("main", SnapshotRef(9))),
        now_ms=1_700_000_000_002,
        base_location="memory://w/0.json",
    )
    service.on("GET /v1/namespaces/db/tables/t", (200, table_json(theirs)))
    assert isinstance(catalog.commit(base, TWO, EMPTY), Rejected)


# Gravitino: no commits of several tables


def test_gravitino_commits_tables_one_by_one(service: ScriptedService) -> None:
    tables = "/v1/{prefix}/namespaces/{namespace}/tables"
    endpoints = [f"GET {tables}/{{table}}", f"POST {tables}/{{table}}", f"POST {tables}"]
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}, "endpoints": endpoints}))
    for name in ("t", "u"):
        service.on(f"GET /v1/namespaces/db/tables/{name}", (200, table_json()))
        service.on(f"POST /v1/namespaces/db/tables/{name}", (200, table_json()))
    with frazil.Lake(opened(service)) as lake:
        with pytest.raises(UnsupportedError, match="commit to 2 tables at once"), lake.transaction() as both:
            for name in ("db.t", "db.u"):
                both.table(name).set_properties({"a": "b"})
        assert not [one for one in service.asked if one.method == "POST"]
        lake.table("db.t").set_properties({"a": "b"})
    assert service.lines().count("POST /v1/namespaces/db/tables/t") == 1


# Errors in other shapes


@pytest.mark.parametrize(
    "answer",
    [
        (404, {"message": "Table taxis not found in schema nyc in database demo", "status_code": 404}),
        (404, {"error": {"message": "Entity Not Found", "type": "EntityNotFoundException", "code": 404}}),
        (404, b"<html>404</html>"),
        (404, None),
    ],
    ids=["embucket", "glue", "gateway", "nothing"],
)
def test_missing_table_is_recognised_in_any_wording(service: ScriptedService, answer: Any) -> None:
    service.on("GET /v1/namespaces/db/tables/t", answer)
    with pytest.raises(TableNotFoundError):
        opened(service).load_table(TABLE)


def test_polaris_vends_nothing_for_user_locations_and_the_error_explains_it(service: ScriptedService) -> None:
    said = "Delegate access to table with user-specified write location is temporarily not supported."
    service.on("GET /v1/namespaces/db/tables/t", error_json(403, "ForbiddenException", said))
    with pytest.raises(AccessDeniedError, match="user-specified write location"):
        opened(service).load_table(TABLE)


def test_forbidden_lookup_does_not_mean_missing(service: ScriptedService) -> None:
    endpoints = ["HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}"]
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}, "endpoints": endpoints}))
    service.on("HEAD /v1/namespaces/db/tables/t", (403, None))
    with pytest.raises(AccessDeniedError):
        opened(service).table_exists(TABLE)


def test_table_with_rows_requires_staging_or_a_location(
    service: ScriptedService,
) -> None:
    service.on("GET /v1/namespaces/db", (200, {"namespace": ["db"], "properties": {}}))
    service.on(
        "POST /v1/namespaces/db/tables",
        lambda asked: (
            refuse(406, "UnsupportedOperationException", "stage-create is not supported")
            if asked.body["stage-create"]
            else (200, table_json())
        ),
    )
    with pytest.raises(UnsupportedError, match="does not tell where its files belong"):
        opened(service).stage_table(TABLE, builders.schema())
