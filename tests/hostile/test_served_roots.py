"""A client that may write chooses locations: the server stays in its folders and tells nothing of what is outside."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from tests.support.served_lake import SCHEMA, Reply, Served, served, table_path

SECRET_ROW = "a-row-of-the-servers-own-2f1b"


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder of the server's owner, outside of the lake: a table, and a file that is none."""
    folder = tmp_path / "private"
    with frazil.connect(folder) as lake:
        lake.create_table("hr.pay", "id bigint, note string").append(pa.table({"id": [1], "note": [SECRET_ROW]}))
    (folder / "passwd").write_text("root:x:0:0")
    return folder


@pytest.fixture
def server(tmp_path: Path, private: Path) -> Iterator[Served]:
    with served(tmp_path / "lake", more_roots=[f"{tmp_path}/further"]) as made:
        made.post("/v1/namespaces", {"namespace": ["db"]})
        made.make_table("t", "db")
        yield made


def state(folder: Path) -> dict[str, str]:
    return {
        str(one): hashlib.sha256(one.read_bytes()).hexdigest() if one.is_file() else ""
        for one in sorted(folder.rglob("*"))
    }


def check_refused(reply: Reply, location: str) -> str:
    """Check that a location is refused; return the message without the location."""
    assert (reply.code, reply.error) == (403, "ForbiddenException"), reply.body
    message: str = reply.json["error"]["message"]
    return message.replace(location, "…")


def metadata_of(private: Path) -> str:
    (found,) = sorted((private / "hr" / "pay" / "metadata").glob("00001-*.metadata.json"))
    return f"file://{found}"


def test_registration_outside_the_roots_is_refused_without_details(server: Served, private: Path) -> None:
    places = [metadata_of(private), f"file://{private}/passwd", f"file://{private}/none", "file:///etc/passwd", "/none"]
    places += [f"{server.catalog.warehouse}/../private/passwd", f"{server.catalog.warehouse}/%2e%2e/private/passwd"]
    said = {
        check_refused(server.post(f"/v1/namespaces/db/{kind}", {"name": "x", "metadata-location": place}), place)
        for kind in ("register", "register-view")
        for place in places
    }
    assert len(said) == 1
    inside = f"{server.catalog.warehouse}/db"
    (private.parent / "lake" / "db" / "text").write_text("root:x:0:0")
    told = {
        server.post("/v1/namespaces/db/register", {"name": "x", "metadata-location": f"{inside}/{name}"}).body
        for name in ("none", "text")
    }
    assert len(told) == 1 and b"root" not in told.pop()


@pytest.mark.parametrize("field", ["location", "write.data.path", "write.metadata.path"])
def test_tables_are_not_created_or_moved_outside_the_roots(server: Served, private: Path, field: str) -> None:
    before = state(private)
    places = [f"file://{private}/new", f"{private}/new", f"{server.catalog.warehouse}/../private/new", "s3://own/t"]
    if field != "location":
        places.append("../../../private/new")
    for place in places:
        own: dict[str, Any] = {"location": place} if field == "location" else {"properties": {field: place}}
        namespace = {"namespace": ["n"], "properties": {field: place}}
        set_properties: dict[str, Any] = {"action": "set-properties", "updates": {field: place}}
        update = {"action": "set-location", "location": place} if field == "location" else set_properties
        for stage in (False, True):
            made = server.post(
                "/v1/namespaces/db/tables", {"name": "o", "schema": SCHEMA, "stage-create": stage, **own}
            )
            check_refused(made, place)
        change = {"requirements": [], "updates": [update]}
        check_refused(server.post(table_path("t"), change), place)
        identifier = {"namespace": ["db"], "name": "t"}
        check_refused(
            server.post("/v1/transactions/commit", {"table-changes": [{"identifier": identifier, **change}]}), place
        )
        if not place.startswith(".."):
            check_refused(server.post("/v1/namespaces", namespace), place)
            check_refused(server.post("/v1/namespaces/db/properties", {"updates": {field: place}}), place)
    assert state(private) == before
    assert not (private / "new").exists()


def test_views_are_not_created_outside_the_roots(server: Served, private: Path) -> None:
    version = {
        "version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    }  # fmt: skip
    body = {"name": "v", "schema": SCHEMA, "view-version": version, "properties": {}}
    place = f"file://{private}/v"
    check_refused(server.post("/v1/namespaces/db/views", {**body, "location": place}), place)
    assert server.post("/v1/namespaces/db/views", body).code == 200
    update = {"action": "set-location", "location": place}
    check_refused(server.post("/v1/namespaces/db/views/v", {"requirements": [], "updates": [update]}), place)


def test_snapshot_with_a_manifest_list_outside_the_roots_is_refused(server: Served, private: Path) -> None:
    for place in ("file:///etc/passwd", f"file://{private}/none", f"file://{private}/passwd"):
        snapshot = {
            "snapshot-id": 7, "sequence-number": 1, "timestamp-ms": 2_000_000_000_000, "schema-id": 0,
            "manifest-list": place, "summary": {"operation": "append"},
        }  # fmt: skip
        updates = [{"action": "add-snapshot", "snapshot": snapshot}]
        check_refused(server.post(table_path("t"), {"requirements": [], "updates": updates}), place)


def test_warehouse_metadata_pointing_outside_is_not_registered(server: Served, private: Path) -> None:
    document = json.loads(Path(metadata_of(private).removeprefix("file://")).read_text())
    copied = private.parent / "lake" / "db" / "copied.metadata.json"
    for change in ({}, {"location": f"{server.catalog.warehouse}/db/pay"}):
        copied.write_text(json.dumps({**document, **change}))
        reply = server.post("/v1/namespaces/db/register", {"name": "pay", "metadata-location": f"file://{copied}"})
        assert (reply.code, reply.error) == (403, "ForbiddenException")
    document["snapshots"] = []
    document |= {"location": f"{server.catalog.warehouse}/db/pay", "refs": {}, "current-snapshot-id": -1}
    document |= {"snapshot-log": []}
    copied.write_text(json.dumps({**document, "properties": {"write.metadata.path": f"file://{private}"}}))
    reply = server.post("/v1/namespaces/db/register", {"name": "pay", "metadata-location": f"file://{copied}"})
    assert reply.code == 403
    copied.write_text(json.dumps(document))
    good = server.post("/v1/namespaces/db/register", {"name": "pay", "metadata-location": f"file://{copied}"})
    assert good.code == 200, good.body


def test_link_in_the_warehouse_cannot_escape_it(server: Served, private: Path) -> None:
    (private.parent / "lake" / "db" / "link").symlink_to(private)
    place = f"{server.catalog.warehouse}/db/link/hr/pay/metadata/{Path(metadata_of(private)).name}"
    reply = server.post("/v1/namespaces/db/register", {"name": "pay", "metadata-location": place})
    assert reply.code in (400, 403) and SECRET_ROW.encode() not in reply.body


def test_folder_allowed_by_the_operator_is_used(server: Served, tmp_path: Path) -> None:
    made = server.make_table("far", "db", location=f"file://{tmp_path}/further/far")
    assert made.json["metadata"]["location"] == f"file://{tmp_path}/further/far"
