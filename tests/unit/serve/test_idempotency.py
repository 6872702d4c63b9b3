"""Requests with a key are carried out once, whatever becomes of the server meanwhile."""

from __future__ import annotations

import json
import sqlite3
import stat
import threading
import uuid
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from frazil.catalog.memory import MemoryCatalog
from frazil.serve.exchange import Answer
from frazil.serve.server_state import ServerState
from frazil.table.lake import Lake
from tests.support.served_lake import SCHEMA, Reply, Served, served, table_path


def new_key() -> str:
    """Return a UUID of version 7."""
    number = (uuid.uuid4().int & ~(0xF << 76)) | (0x7 << 76)
    return str(uuid.UUID(int=number))


def keyed(server: Served, method: str, path: str, body: object, key: str) -> Reply:
    return server.ask(method, path, body, headers={"Idempotency-Key": key})


def test_repeated_request_gets_the_same_response_and_changes_nothing(server: Served, db: str) -> None:
    key = new_key()
    body = {"name": "t", "schema": SCHEMA}
    first = keyed(server, "POST", f"/v1/namespaces/{db}/tables", body, key)
    again = keyed(server, "POST", f"/v1/namespaces/{db}/tables", body, key)
    assert (first.code, again.code, again.body) == (200, 200, first.body)
    assert again.headers["etag"] == first.headers["etag"]
    drop = new_key()
    assert [keyed(server, "DELETE", table_path("t", db), None, drop).code for _ in range(2)] == [204, 204]
    assert keyed(server, "DELETE", table_path("t", db), None, new_key()).code == 404


def test_refusal_is_final_too(server: Served, db: str) -> None:
    key = new_key()
    assert keyed(server, "DELETE", table_path("t", db), None, key).code == 404
    server.make_table("t", db)
    assert keyed(server, "DELETE", table_path("t", db), None, key).code == 404
    assert server.ask("HEAD", table_path("t", db)).code == 204


def test_key_applies_to_one_request(server: Served, db: str) -> None:
    key = new_key()
    keyed(server, "POST", "/v1/namespaces", {"namespace": [db, "a"]}, key)
    other = keyed(server, "POST", "/v1/namespaces", {"namespace": [db, "b"]}, key)
    assert (other.code, other.error) == (400, "BadRequestException")
    for text in ("x", str(uuid.uuid4()), "0" * 36):
        assert keyed(server, "POST", "/v1/namespaces", {"namespace": [db, "c"]}, text).code == 400, text


def test_key_applies_to_one_query(tmp_path: Path) -> None:
    with served(tmp_path / "wh") as server:
        server.make_table("t", "db")
        key, data = new_key(), tmp_path / "wh" / "db" / "t"
        assert keyed(server, "DELETE", f"{table_path('t', 'db')}?purgeRequested=false", None, key).code == 204
        assert keyed(server, "DELETE", f"{table_path('t', 'db')}?purgeRequested=false", None, key).code == 204
        other = keyed(server, "DELETE", f"{table_path('t', 'db')}?purgeRequested=true", None, key)
        assert (other.code, other.error) == (400, "BadRequestException")
        assert data.exists()


def test_stored_responses_are_readable_by_the_server_user_only(tmp_path: Path) -> None:
    with served(tmp_path / "wh", state=tmp_path / "serve.db") as server:
        keyed(server, "POST", "/v1/namespaces", {"namespace": ["db"]}, new_key())
        modes = {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("serve.db*")}
    assert modes == {0o600}


def test_concurrent_requests_with_one_key_run_once(server: Served, db: str) -> None:
    key = new_key()
    replies: list[Reply] = []

    def send() -> None:
        replies.append(keyed(server, "POST", f"/v1/namespaces/{db}/tables", {"name": "t", "schema": SCHEMA}, key))

    threads = [threading.Thread(target=send) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert {one.code for one in replies} == {200}
    assert len({one.body for one in replies}) == 1


def test_keys_survive_a_restart(tmp_path: Path) -> None:
    key = new_key()
    body = {"namespace": ["db"]}
    with served(tmp_path / "w", state=tmp_path / "serve.db") as first:
        assert keyed(first, "POST", "/v1/namespaces", body, key).code == 200
    with served(tmp_path / "w", state=tmp_path / "serve.db") as second:
        assert keyed(second, "POST", "/v1/namespaces", body, key).code == 200
        assert keyed(second, "POST", "/v1/namespaces", body, new_key()).code == 409


def _snapshot_of(server: Served, db: str) -> dict[str, Any]:
    """Return a snapshot that a client could commit: one made on a copy of the table."""
    metadata = server.get(table_path("t", db)).json["metadata"]
    with MemoryCatalog("x", "memory://x", server.catalog.storage) as other:
        other.create_namespace(("x",))
        lake = Lake(other)
        location = server.get(table_path("t", db)).json["metadata-location"]
        copy = lake.register_table(("x", "t"), location)
        copy.append(pa.table({"id": pa.array([1], pa.int64()), "kind": ["a"]}))
        location = copy.metadata_location
    text = Path(str(location).removeprefix("file://")).read_bytes()
    found: dict[str, Any] = json.loads(text)["snapshots"][-1]
    assert metadata["table-uuid"]
    return found


def test_commit_without_a_stored_response_is_recognised_by_its_snapshot(server: Served, db: str) -> None:
    server.make_table("t", db)
    snapshot = _snapshot_of(server, db)
    body = {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {
                "action": "set-snapshot-ref",
                "ref-name": "main",
                "type": "branch",
                "snapshot-id": snapshot["snapshot-id"],
            },
        ],
    }
    # The server died before it kept the answer, so the key is new to it.
    assert keyed(server, "POST", table_path("t", db), body, new_key()).code == 200
    again = keyed(server, "POST", table_path("t", db), body, new_key())
    assert again.code == 200
    assert len(again.json["metadata"]["snapshots"]) == 1
    assert server.post(table_path("t", db), body).code == 409


def test_creation_without_a_stored_response_is_recognised_by_uuid(tmp_path: Path) -> None:
    key = new_key()
    body = {"name": "t", "schema": SCHEMA}
    with served(tmp_path / "w", state=tmp_path / "a.db") as first:
        first.post("/v1/namespaces", {"namespace": ["db"]})
        made = keyed(first, "POST", "/v1/namespaces/db/tables", body, key)
    with served(tmp_path / "w", state=tmp_path / "b.db") as second:
        again = keyed(second, "POST", "/v1/namespaces/db/tables", body, key)
        assert (again.code, again.json["metadata"]) == (200, made.json["metadata"])
        assert keyed(second, "POST", "/v1/namespaces/db/tables", body, new_key()).code == 409


@pytest.mark.parametrize("others", ["none", "commit", "rename", "drop", "drop and create", "purge"])
def test_large_responses_are_rebuilt_whatever_happened_to_the_table(server: Served, db: str, others: str) -> None:
    server.make_table("t", db)
    key, path = new_key(), table_path("t", db)
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"long": "x" * 100_000}}]}
    first = keyed(server, "POST", path, body, key)
    if others == "commit":
        server.post(path, {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]})
    elif others == "rename":
        names = [{"namespace": [db], "name": name} for name in ("t", "u")]
        assert server.post("/v1/tables/rename", {"source": names[0], "destination": names[1]}).code == 204
    elif others != "none":
        assert server.ask("DELETE", f"{path}?purgeRequested={str(others == 'purge').lower()}").code == 204
        if others == "drop and create":
            server.make_table("t", db)
    again = keyed(server, "POST", path, body, key)
    if others == "purge":
        # Not 404: a client would take it for a commit that was not made, and delete what it wrote.
        assert (again.code, again.error) == (500, "CommitStateUnknownException")
    else:
        assert (again.body, again.headers["etag"]) == (first.body, first.headers["etag"])


def test_old_key_file_format_is_read(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "serve.db") as driver:
        driver.execute(
            "CREATE TABLE requests (key TEXT PRIMARY KEY, print TEXT NOT NULL, code INTEGER NOT NULL, kind TEXT, "
            "headers TEXT NOT NULL, body BLOB, ends_ms INTEGER NOT NULL)"
        )
        driver.execute("INSERT INTO requests VALUES ('a', 'p', 204, NULL, '{}', ?, 9000)", [zlib.compress(b"")])
    driver.close()
    state = ServerState(tmp_path / "serve.db")
    found = state.find_answer("a", 1_000)
    assert found is not None
    assert (found.answer.code, found.has_body) == (204, True)
    state.close()


def test_large_responses_that_cannot_be_rebuilt_are_stored(server: Served, db: str) -> None:
    key = new_key()
    body = {"name": "t", "schema": SCHEMA, "properties": {"long": "x" * 100_000}}
    first = keyed(server, "POST", f"/v1/namespaces/{db}/tables", body, key)
    assert (first.code, len(first.body) > 100_000) == (200, True)
    assert keyed(server, "POST", f"/v1/namespaces/{db}/tables", body, key).body == first.body
    gone = new_key()
    last = keyed(server, "POST", f"{table_path('t', db)}/unregister", None, gone)
    assert keyed(server, "POST", f"{table_path('t', db)}/unregister", None, gone).body == last.body


def test_plan_is_recomputed_whatever_its_key(server: Served, db: str) -> None:
    server.make_table("t", db)
    key = new_key()
    plans = [keyed(server, "POST", f"{table_path('t', db)}/plan", {}, key) for _ in range(2)]
    assert [one.code for one in plans] == [200, 200]
    assert keyed(server, "POST", f"{table_path('t', db)}/plan", {}, "x").code == 400


def test_old_keys_expire(tmp_path: Path) -> None:
    state = ServerState(tmp_path / "serve.db")
    state.keep_answer("a", "print", Answer(204), 1_000)
    assert state.find_answer("a", 2_000) is not None
    assert state.find_answer("a", 10_000_000) is None
    state.close()
