"""Tokens that are limited to namespaces, and tokens that a client forges or renews: what each may do, and no more."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

import frazil
from frazil.errors import AccessDeniedError, InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.serve.auth import (
    RENEWAL_SECONDS,
    TOKEN_SECONDS,
    Auth,
    Denied,
    Grant,
    OauthProblem,
    Right,
    Secret,
    parse_auth_file,
)
from frazil.serve.exchange import Refusal
from frazil.serve.server_state import ServerState
from frazil.serve.sign_requests import SignRequest
from frazil.serve.store_access import StoreAccess
from frazil.spec.new_table import new_table_metadata
from frazil.storage.assume_role import SessionKeys
from frazil.storage.memory import MemoryStorage
from tests.support import builders
from tests.support.served_lake import SCHEMA, Reply, Served, served, table_path

SECRETS = """
token all    all-secret-00000000001 write
token board  board-secret-000000001 read
token team   team-secret-0000000001 write@sales read@shared
token lead   lead-secret-0000000001 admin@sales.*
token look   look-secret-0000000001 read@sales
token half   half-secret-0000000001 write@sales read@sales.*
token deep   deep-secret-0000000001 write@sales.eu
"""
UUID = "00000000-0000-4000-8000-000000000000"
STORE = {"s3.access-key-id": "AKIAPLANTED", "s3.secret-access-key": "planted-secret-000000"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    auth = Auth(*parse_auth_file(SECRETS))
    with served(tmp_path / "lake", auth=auth, access=StoreAccess(STORE, signs=True, vend="keys")) as made:
        by(made, "all")
        for namespace in ("sales", "shared", "hr"):
            made.make_table("t", namespace)
        made.post("/v1/namespaces", {"namespace": ["sales", "eu"]})
        yield made


def by(server: Served, name: str) -> Served:
    server.headers["Authorization"] = f"Bearer {name}-secret-{'1'.zfill(22 - len(name) - 8)}"
    return server


def path(namespace: str, rest: str = "") -> str:
    return f"/v1/namespaces/{namespace}{rest}"


def check_forbidden(reply: Reply) -> None:
    assert (reply.code, reply.error) == (403, "ForbiddenException"), reply.body


def rename(server: Served, source: str, target: str, kind: str = "tables") -> Reply:
    body = {
        "source": {"namespace": [source], "name": "t"},
        "destination": {"namespace": [target], "name": "moved"},
    }
    return server.post(f"/v1/{kind}/rename", body)


def requests(server: Served, namespace: str) -> dict[str, tuple[str, Reply]]:
    """Send every operation on a namespace; return the right that each needs, and the answer."""
    table = table_path("t", namespace)
    change: dict[str, list[object]] = {"requirements": [], "updates": []}
    identifier = {"namespace": [namespace], "name": "t"}
    version = {
        "version-id": 1, "schema-id": 0, "timestamp-ms": 1, "summary": {}, "default-namespace": [namespace],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    }  # fmt: skip
    view = {"name": "v", "schema": SCHEMA, "view-version": version, "properties": {}}
    report = {"report-type": "scan-report", "table-name": "t"}
    sign = {"region": "us-east-1", "uri": "https://x.example/a", "method": "GET", "headers": {}}
    ask: dict[str, tuple[str, str, str, object]] = {
        "load namespace": ("read", "GET", path(namespace), None),
        "list tables": ("read", "GET", path(namespace, "/tables"), None),
        "list views": ("read", "GET", path(namespace, "/views"), None),
        "load": ("read", "GET", table, None),
        "exists": ("read", "HEAD", table, None),
        "credentials": ("read", "GET", f"{table}/credentials", None),
        "plan": ("read", "POST", f"{table}/plan", {}),
        "fetch plan": ("read", "GET", f"{table}/plan/none", None),
        "cancel plan": ("read", "DELETE", f"{table}/plan/none", None),
        "tasks": ("read", "POST", f"{table}/tasks", {"plan-task": "none"}),
        "metrics": ("read", "POST", f"{table}/metrics", report),
        "sign": ("read", "POST", f"{table}/sign", sign),
        "view": ("read", "GET", path(namespace, "/views/v"), None),
        "functions": ("read", "GET", path(namespace, "/functions"), None),
        "create": ("write", "POST", path(namespace, "/tables"), {"name": "n", "schema": SCHEMA}),
        "register": ("write", "POST", path(namespace, "/register"), {"name": "r", "metadata-location": "x"}),
        "commit": ("write", "POST", table, change),
        "transaction": ("write", "POST", "/v1/transactions/commit",
                        {"table-changes": [{"identifier": identifier, **change}]}),
        "create view": ("write", "POST", path(namespace, "/views"), view),
        "register view": ("write", "POST", path(namespace, "/register-view"), {"name": "r", "metadata-location": "x"}),
        "replace view": ("write", "POST", path(namespace, "/views/v"), change),
        "rename": ("write", "POST", "/v1/tables/rename", {"source": identifier, "destination": identifier}),
        "rename view": ("write", "POST", "/v1/views/rename", {"source": identifier, "destination": identifier}),
        "drop view": ("write", "DELETE", path(namespace, "/views/v"), None),
        "unregister": ("write", "POST", f"{path(namespace)}/tables/none/unregister", None),
        "drop": ("write", "DELETE", f"{path(namespace)}/tables/none", None),
        "properties": ("admin", "POST", path(namespace, "/properties"), {"updates": {"a": "b"}}),
        "create namespace": ("admin", "POST", "/v1/namespaces", {"namespace": [namespace]}),
        "drop namespace": ("admin", "DELETE", path(namespace), None),
    }  # fmt: skip
    return {name: (right, server.ask(method, where, body)) for name, (right, method, where, body) in ask.items()}


@pytest.mark.parametrize(
    ("name", "namespace", "rights"),
    [
        ("team", "sales", {"read", "write"}),
        ("team", "shared", {"read"}),
        ("team", "hr", set()),
        ("lead", "sales", {"read", "write", "admin"}),
        ("lead", "hr", set()),
        ("look", "sales", {"read"}),
        ("look", "shared", set()),
        ("board", "hr", {"read"}),
        ("all", "hr", {"read", "write", "admin"}),
    ],
)
def test_every_operation_requires_its_right_on_the_namespace(
    server: Served, name: str, namespace: str, rights: set[str]
) -> None:
    for operation, (right, reply) in requests(by(server, name), namespace).items():
        text = reply.body.decode() if operation != "exists" else ""
        is_refused = reply.code == 403 and ("does not allow" in text or "is for reading" in text or not text)
        assert is_refused == (right not in rights), (operation, reply.code, text)


def test_names_in_closed_namespaces_are_not_listed(server: Served) -> None:
    assert by(server, "team").get("/v1/namespaces").json["namespaces"] == [["sales"], ["shared"]]
    assert by(server, "team").get("/v1/namespaces?parent=sales").json["namespaces"] == []
    assert by(server, "lead").get("/v1/namespaces?parent=sales").json["namespaces"] == [["sales", "eu"]]
    assert by(server, "team").ask("HEAD", "/v1/namespaces/hr").code == 403
    check_forbidden(by(server, "team").get("/v1/namespaces?parent=hr"))


def test_table_is_renamed_only_between_permitted_namespaces(server: Served) -> None:
    for kind in ("tables", "views"):
        check_forbidden(rename(by(server, "team"), "sales", "hr", kind))
        check_forbidden(rename(by(server, "team"), "hr", "sales", kind))
        check_forbidden(rename(by(server, "team"), "shared", "sales", kind))
    assert rename(by(server, "all"), "hr", "sales").code == 204


def test_transaction_requires_rights_on_every_namespace(server: Served) -> None:
    update = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    changes = [{"identifier": {"namespace": [one], "name": "t"}, **update} for one in ("sales", "shared")]
    check_forbidden(by(server, "team").post("/v1/transactions/commit", {"table-changes": changes}))
    assert "a" not in by(server, "all").get(table_path("t", "sales")).json["metadata"]["properties"]


def test_files_of_a_closed_namespace_are_not_reachable_through_an_open_one(server: Served, tmp_path: Path) -> None:
    by(server, "all")
    with frazil.connect(tmp_path / "lake") as lake:
        lake.table("hr.t").append(pa.table({"id": [1], "kind": ["x"]}))
        lake.create_table("sales.eu.t", "id bigint")
    hidden = server.get(table_path("t", "hr")).json
    nested = server.get("/v1/namespaces/sales%1Feu/tables/t").json["metadata-location"]
    by(server, "team")
    warehouse = server.catalog.warehouse
    for location in (hidden["metadata-location"], nested):
        for kind in ("register", "register-view"):
            check_forbidden(server.post(path("sales", f"/{kind}"), {"name": "x", "metadata-location": location}))
    snapshot = {**hidden["metadata"]["snapshots"][0], "snapshot-id": 5}
    updates: list[dict[str, Any]] = [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-location", "location": f"{warehouse}/hr/t"},
        {"action": "set-properties", "updates": {"write.data.path": f"{warehouse}/hr/t/data"}},
        {"action": "set-properties", "updates": {"write.metadata.path": "../../hr"}},
    ]
    for update in updates:
        check_forbidden(server.post(table_path("t", "sales"), {"requirements": [], "updates": [update]}))
    for place in (f"{warehouse}/hr/n", f"{warehouse}/sales/eu/n"):
        check_forbidden(server.post(path("sales", "/tables"), {"name": "n", "schema": SCHEMA, "location": place}))
    assert server.post(path("sales", "/tables"), {"name": "n", "schema": SCHEMA}).code == 200
    check_forbidden(by(server, "lead").post(path("sales", "/properties"), {"updates": {"location": f"{warehouse}/hr"}}))


def updates_to(folder: str, snapshot: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every change of a table that names a folder, or a file in it."""
    statistics = {"snapshot-id": 1, "file-size-in-bytes": 1, "file-footer-size-in-bytes": 1, "blob-metadata": []}
    return [
        {"action": "set-location", "location": folder},
        {"action": "set-properties", "updates": {"write.data.path": folder}},
        {"action": "set-properties", "updates": {"write.metadata.path": f"{folder}/metadata"}},
        {"action": "add-snapshot", "snapshot": {**snapshot, "snapshot-id": 5}},
        {"action": "set-statistics", "statistics": {**statistics, "statistics-path": f"{folder}/metadata/x.puffin"}},
        {"action": "set-partition-statistics", "partition-statistics":
            {"snapshot-id": 1, "statistics-path": f"{folder}/metadata/x.parquet", "file-size-in-bytes": 1}},
    ]  # fmt: skip


def check_closed(server: Served, namespace: str, table: dict[str, Any]) -> None:
    """Check that a table's folder is not to be had for a table of a namespace, however it is asked for and spelt."""
    location = table["metadata"]["location"]
    namespace_path = path(quote(namespace, safe=""))
    identifier = {"namespace": namespace.split("\x1f"), "name": "n"}
    for kind in ("register", "register-view"):
        body = {"name": "x", "metadata-location": table["metadata-location"]}
        check_forbidden(server.post(f"{namespace_path}/{kind}", body))
    plain = location.removeprefix("file://")
    parent, _, name = location.rpartition("/")
    spellings = {location, plain, f"file:{plain}", f"{location}/", f"{location}/data", f"{parent}//{name}",
                 f"{parent}/%{ord(name[0]):02x}{name[1:]}", parent, f"{parent}/."}  # fmt: skip
    for folder in spellings:
        for stage in (False, True):
            body = {"name": "n", "schema": SCHEMA, "location": folder, "stage-create": stage}
            check_forbidden(server.post(f"{namespace_path}/tables", body))
            body = {"name": "n", "schema": SCHEMA, "properties": {"write.data.path": folder}, "stage-create": stage}
            check_forbidden(server.post(f"{namespace_path}/tables", body))
        created = [
            {"action": "assign-uuid", "uuid": "00000000-0000-4000-8000-000000000001"},
            {"action": "add-schema", "schema": SCHEMA}, {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}}, {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1}, {"action": "set-location", "location": folder},
        ]  # fmt: skip
        change = {"requirements": [{"type": "assert-create"}], "updates": created}
        for reply in (
            server.post(f"{namespace_path}/tables/n", change),
            server.post("/v1/transactions/commit", {"table-changes": [{"identifier": identifier, **change}]}),
        ):
            check_forbidden(reply)
            # What is there, and whose it is, is not told.
            assert "the files of" not in reply.json["error"]["message"]
        # What lies beside the table, in the folder around it, is not the table's.
        around = slice(2) if folder in (parent, f"{parent}/.") else slice(None)
        for update in updates_to(folder, table["metadata"]["snapshots"][0])[around]:
            check_forbidden(server.post(f"{namespace_path}/tables/own", {"requirements": [], "updates": [update]}))


def test_folder_of_a_renamed_table_is_closed_to_clients_of_the_old_namespace(server: Served, tmp_path: Path) -> None:
    by(server, "all")
    server.make_table("own", "sales")
    with frazil.connect(tmp_path / "lake") as lake:
        lake.table("sales.t").append(pa.table({"id": [1], "kind": ["x"]}))
        lake.rename_table("sales.t", "hr.was_in_sales")
    hidden = server.get(table_path("was_in_sales", "hr")).json
    assert hidden["metadata"]["location"].endswith("/sales/t")
    check_closed(by(server, "team"), "sales", hidden)
    made = by(server, "team").post(path("sales", "/tables"), {"name": "t", "schema": SCHEMA}).json
    assert made["metadata"]["location"] != hidden["metadata"]["location"]
    by(server, "all").ask("DELETE", f"{table_path('own', 'sales')}?purgeRequested=true")
    with frazil.connect(tmp_path / "lake") as lake:
        assert lake.table("hr.was_in_sales").scan().count() == 1


def test_read_only_child_namespace_is_not_writable_through_its_parent(server: Served, tmp_path: Path) -> None:
    by(server, "all").make_table("own", "sales")
    with frazil.connect(tmp_path / "lake") as lake:
        lake.create_table("sales.eu.t", "id bigint").append(pa.table({"id": [1]}))
    check_closed(by(server, "half"), "sales", server.get("/v1/namespaces/sales%1Feu/tables/t").json)


@pytest.mark.parametrize("hidden", ["%2e%2e", "%2E.", "%252e%252e"])
def test_escapes_do_not_hide_the_folder_of_a_closed_namespace(server: Served, hidden: str) -> None:
    inside = f"{server.catalog.warehouse}/sales/eu/{hidden}/new"
    by(server, "half")
    check_forbidden(server.post(path("sales", "/tables"), {"name": "x", "schema": SCHEMA, "location": inside}))


def test_token_for_a_child_namespace_works_beside_tables_of_the_parent(server: Served, tmp_path: Path) -> None:
    place = f"{by(server, 'deep').catalog.warehouse}/sales/eu/chosen"
    made = server.post("/v1/namespaces/sales%1Feu/tables", {"name": "c", "schema": SCHEMA, "location": place})
    assert made.code == 200, made.body
    place = f"{server.catalog.warehouse}/sales/chosen"
    check_forbidden(server.post("/v1/namespaces/sales%1Feu/tables", {"name": "d", "schema": SCHEMA, "location": place}))


def test_plan_reads_no_manifests_of_a_closed_namespace(server: Served, tmp_path: Path) -> None:
    by(server, "all")
    with frazil.connect(tmp_path / "lake") as lake:
        lake.table("hr.t").append(pa.table({"id": [4711], "kind": ["a-row-of-hr"]}))
    hidden = server.get(table_path("t", "hr")).json["metadata"]["snapshots"][0]
    planted = f"{server.catalog.warehouse}/sales/t/metadata/planted.avro"
    Path(planted.removeprefix("file://")).write_bytes(
        Path(hidden["manifest-list"].removeprefix("file://")).read_bytes()
    )
    updates = [
        {"action": "add-snapshot", "snapshot": {**hidden, "manifest-list": planted}},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": hidden["snapshot-id"]},
    ]
    table = table_path("t", "sales")
    assert by(server, "team").post(table, {"requirements": [], "updates": updates}).code == 200
    for body in ({}, {"stats-fields": ["kind"]}, {"end-snapshot-id": hidden["snapshot-id"]}):
        for name in ("team", "look"):
            reply = by(server, name).post(f"{table}/plan", body)
            check_forbidden(reply)
            assert b"/hr/t/data" not in reply.body and b"a-row-of-hr" not in reply.body
        assert b"/hr/t/data" in by(server, "all").post(f"{table}/plan", body).body


def test_server_credentials_are_not_vended_to_limited_callers(tmp_path: Path) -> None:
    with served(tmp_path / "other", auth=Auth(*parse_auth_file(SECRETS)),
                access=StoreAccess({**STORE, "s3.endpoint": "http://127.0.0.1:9"}, vend="keys", roots=["s3://wh"]),
                properties=STORE, more_roots=["s3://wh"]) as other:  # fmt: skip
        by(other, "all").post("/v1/namespaces", {"namespace": ["sales"], "properties": {"location": "s3://wh/sales"}})
        body = {"name": "n", "schema": SCHEMA, "location": "s3://wh/sales/n", "stage-create": True}
        given = {"X-Iceberg-Access-Delegation": "vended-credentials"}
        assert b"planted-secret" in other.post(path("sales", "/tables"), body, **given).body
        reply = by(other, "team").post(path("sales", "/tables"), body, **given)
        assert reply.code == 200 and b"planted-secret" not in reply.body


@pytest.mark.parametrize("closed", [["s3://wh/lake/sales/t"], ["s3a://wh/lake/sales/t/eu"], ["s3://wh/lake/sales"]])
def test_folder_overlapping_a_closed_namespace_is_neither_signed_nor_vended(closed: list[str]) -> None:
    def assume(_: str, policy: str, seconds: int) -> SessionKeys:
        raise AssertionError(f"a session was asked for: {policy}, {seconds}")

    metadata = new_table_metadata(builders.schema(), location="s3://wh/lake/sales/t", uuid=UUID, now_ms=1)
    loaded = LoadedTable(("sales", "t"), metadata, "s3://wh/lake/sales/t/metadata/1.json", MemoryStorage())
    store = {**STORE, "s3.endpoint": "http://minio:9000"}
    access = StoreAccess(store, vend="session", role="arn", signs=True, roots=["s3://wh"], assume_role=assume)
    asked = SignRequest("GET", "http://minio:9000/wh/lake/sales/t/data/f", "us-east-1", {})
    assert access.sign(loaded, asked, can_write=True, closed=())
    with pytest.raises(Refusal, match="not in the table's folders"):
        access.sign(loaded, asked, can_write=True, closed=closed)
    assert access.credentials(loaded, can_write=True, closed=closed) == []


def test_limited_token_works_in_its_namespace(server: Served) -> None:
    with frazil.connect(server.uri, properties={"token": "team-secret-0000000001"}) as lake:
        table = lake.create_table("sales.mine", "id bigint")
        table.append(pa.table({"id": [1, 2]}))
        assert table.scan().count() == 2
        with pytest.raises(AccessDeniedError):
            lake.table("hr.t")


def test_patterns_match_whole_names() -> None:
    sales, below, every = (Grant(Right.READ, tuple(text.split("."))) for text in ("sales", "sales.*", "pro?ect_*"))
    assert sales.matches(("sales",)) and not sales.matches(("sales", "eu")) and not sales.matches(("sales2",))
    assert below.matches(("sales",)) and below.matches(("sales", "eu", "x")) and not below.matches(("salesx",))
    assert every.matches(("pro?ect_a",)) and not every.matches(("project_a",))
    assert not Grant(Right.READ, ("[ab]",)).matches(("a",))


@pytest.mark.parametrize("right", ["write@", "write@a..b", "@a", "delete@a", "read@.a"])
def test_invalid_right_is_refused(right: str) -> None:
    with pytest.raises(InvalidRequestError, match="line 1"):
        parse_auth_file(f"token a secret-0000000000001 {right}")


# Issued tokens

CLIENTS = [Secret("reader", "reader-secret-00001", Right.READ), Secret("writer", "writer-secret-00001")]


def test_token_signing_key_cannot_be_derived_from_the_secrets() -> None:
    auth, other = Auth((), CLIENTS), Auth((), CLIENTS)
    token = auth.issue("reader", "reader-secret-00001", None, 1_000).token
    with pytest.raises(Denied):
        other.caller_of(f"Bearer {token}", 1_001)
    mark, text, signature = token.split(".")
    for seed in (
        "\0".join(f"{one.name}\0{one.value}\0{one.right.value}" for one in CLIENTS),
        "\0".join(f"{one.name}\0{one.value}\0{one.caller.grants}" for one in CLIENTS),
    ):
        key = hashlib.sha256(f"{mark}\0{seed}".encode()).digest()
        guessed = base64.urlsafe_b64encode(hmac.digest(key, text.encode(), "sha256")).decode().rstrip("=")
        assert guessed != signature


def test_server_persists_its_token_signing_key(tmp_path: Path) -> None:
    keys = []
    for _ in range(2):
        state = ServerState(tmp_path / "serve.db")
        keys.append(state.signing_key())
        state.close()
    assert keys[0] == keys[1] and len(keys[0]) == 32
    assert (tmp_path / "serve.db").stat().st_mode & 0o077 == 0
    state = ServerState()
    assert state.signing_key() != keys[0]
    state.close()


def test_token_is_renewable_for_one_day() -> None:
    auth = Auth((), CLIENTS)
    now, renewed = 1_000, 0
    token = auth.issue("writer", "writer-secret-00001", None, now).token
    with pytest.raises(OauthProblem) as ended:
        while renewed < 1_000:
            now += TOKEN_SECONDS // 2
            token = auth.exchange(token, None, now).token
            renewed += 1
    assert ended.value.error == "invalid_grant"
    assert now <= 1_000 + RENEWAL_SECONDS
    with pytest.raises(Denied):
        auth.caller_of(f"Bearer {token}", 1_000 + RENEWAL_SECONDS)


def test_renewed_token_gains_no_rights() -> None:
    auth = Auth((), [Secret("team", "team-secret-0000001", grants=(Grant(Right.WRITE, ("sales",)),))])
    token = auth.issue("team", "team-secret-0000001", "read", 1_000).token
    again = auth.exchange(token, None, 1_100).token
    caller = auth.caller_of(f"Bearer {again}", 1_200)
    assert caller.may(Right.READ, ("sales",)) and not caller.may(Right.WRITE, ("sales",))
    assert not caller.may(Right.READ, ("hr",))
    assert json.loads(base64.urlsafe_b64decode(again.split(".")[1] + "=="))[1] == "read"
