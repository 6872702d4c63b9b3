"""Operations on views, as the protocol has them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.served_lake import SCHEMA, Reply, Served


def version(sql: str = "select 1", *, number: int = 1, dialects: tuple[str, ...] = ("spark",)) -> dict[str, Any]:
    return {
        "version-id": number,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {"engine-name": "test"},
        "representations": [{"type": "sql", "sql": sql, "dialect": one} for one in dialects],
        "default-namespace": ["db"],
    }


def make_view(server: Served, db: str, name: str = "v", **fields: Any) -> Reply:
    body = {"name": name, "schema": SCHEMA, "view-version": version(), "properties": {"a": "b"}, **fields}
    return server.post(f"/v1/namespaces/{db}/views", body)


def test_view_is_created_loaded_replaced_renamed_and_dropped(server: Served, db: str) -> None:
    path = f"/v1/namespaces/{db}/views"
    made = make_view(server, db)
    assert made.code == 200, made.body
    assert made.json["metadata"]["properties"] == {"a": "b"}
    assert server.get(f"{path}/v").json == made.json
    assert server.get(path).json["identifiers"] == [{"namespace": [db], "name": "v"}]
    updates = [
        {"action": "add-view-version", "view-version": version("select 2", number=2)},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]
    required = [{"type": "assert-view-uuid", "uuid": made.json["metadata"]["view-uuid"]}]
    changed = server.post(f"{path}/v", {"requirements": required, "updates": updates})
    assert (changed.code, changed.json["metadata"]["current-version-id"]) == (200, 2)
    names = {"source": {"namespace": [db], "name": "v"}, "destination": {"namespace": [db], "name": "w"}}
    assert server.post("/v1/views/rename", names).code == 204
    assert server.ask("HEAD", f"{path}/v").code == 404
    assert server.ask("HEAD", f"{path}/w").code == 204
    assert server.ask("DELETE", f"{path}/w").code == 204
    assert server.ask("DELETE", f"{path}/w").error == "NoSuchViewException"


def test_tables_and_views_share_one_set_of_names(server: Served, db: str) -> None:
    server.make_table("t", db)
    taken = make_view(server, db, "t")
    assert (taken.code, taken.error) == (409, "AlreadyExistsException")
    assert taken.json["error"]["message"] == f"Table with same name already exists: {db}.t"
    make_view(server, db, "v")
    table = server.post(f"/v1/namespaces/{db}/tables", {"name": "v", "schema": SCHEMA})
    assert (table.code, table.json["error"]["message"]) == (409, f"View with same name already exists: {db}.v")
    assert server.get(f"/v1/namespaces/{db}/views/t").error == "NoSuchViewException"


def test_view_uuid_is_checked_and_duplicate_dialects_refused(server: Served, db: str) -> None:
    make_view(server, db)
    path = f"/v1/namespaces/{db}/views/v"
    wrong = [{"type": "assert-view-uuid", "uuid": "00000000-0000-4000-8000-000000000000"}]
    late = server.post(path, {"requirements": wrong, "updates": []})
    assert (late.code, late.error) == (409, "CommitFailedException")
    twice = make_view(server, db, "w", **{"view-version": version(dialects=("spark", "Spark"))})
    assert (twice.code, twice.error) == (400, "IllegalArgumentException")
    assert server.post(f"{path}none", {"updates": []}).error == "NoSuchViewException"
    assert server.post(path, {"updates": [{"action": "remove-snapshots", "snapshot-ids": [1]}]}).code == 400


def test_view_is_registered(server: Served, db: str) -> None:
    location = make_view(server, db).json["metadata-location"]
    path = f"/v1/namespaces/{db}/register-view"
    assert server.post(path, {"name": "w", "metadata-location": location}).json["metadata-location"] == location
    assert server.post(path, {"name": "w", "metadata-location": location}).error == "AlreadyExistsException"
    missing = f"{server.catalog.warehouse}/none.json"
    assert server.post(path, {"name": "x", "metadata-location": missing}).code == 400


@pytest.mark.parametrize("odd", [7, 10**30, "x", {"a": 1}, None, [7], [None]])
def test_malformed_view_updates_are_refused(server: Served, db: str, odd: object) -> None:
    make_view(server, db)
    path = f"/v1/namespaces/{db}/views"
    bodies = [
        {"requirements": [], "updates": odd},
        {"requirements": [], "updates": [{"action": "add-view-version", "view-version": odd}]},
        {
            "requirements": [],
            "updates": [{"action": "add-view-version", "view-version": version() | {"representations": odd}}],
        },
    ]
    for body in bodies:
        reply = server.post(f"{path}/v", body)
        assert (reply.code, reply.error) == (400, "BadRequestException"), body
    assert server.post(f"{path}/v", {"requirements": []}).code == 400
    assert make_view(server, db, "w", **{"view-version": version() | {"representations": odd}}).code == 400


def test_relative_path_is_not_registered(server: Served, db: str) -> None:
    for kind in ("register", "register-view"):
        reply = server.post(f"/v1/namespaces/{db}/{kind}", {"name": "r", "metadata-location": "../x.metadata.json"})
        assert (reply.code, reply.error) == (403, "ForbiddenException")
