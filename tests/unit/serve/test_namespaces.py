"""Operations on namespaces, as the protocol has them."""

from __future__ import annotations

from typing import Any

from tests.support.served_lake import Served


def test_namespace_is_created_loaded_changed_and_dropped(server: Served) -> None:
    made = server.post("/v1/namespaces", {"namespace": ["shop"], "properties": {"owner": "ann"}})
    assert (made.code, made.json) == (200, {"namespace": ["shop"], "properties": {"owner": "ann"}})
    assert server.get("/v1/namespaces/shop").json == made.json
    assert server.ask("HEAD", "/v1/namespaces/shop").code == 204
    changed = server.post("/v1/namespaces/shop/properties", {"removals": ["owner", "none"], "updates": {"a": "b"}})
    assert changed.json == {"updated": ["a"], "removed": ["owner"], "missing": ["none"]}
    assert server.get("/v1/namespaces/shop").json["properties"] == {"a": "b"}
    assert server.ask("DELETE", "/v1/namespaces/shop").code == 204
    assert server.ask("HEAD", "/v1/namespaces/shop").code == 404
    assert server.ask("DELETE", "/v1/namespaces/shop").error == "NoSuchNamespaceException"


def test_errors_have_protocol_codes_and_types(server: Served, db: str) -> None:
    server.make_table("t", db)
    taken = server.post("/v1/namespaces", {"namespace": [db]})
    assert (taken.code, taken.error) == (409, "AlreadyExistsException")
    assert taken.json["error"]["code"] == 409
    full = server.ask("DELETE", f"/v1/namespaces/{db}")
    assert (full.code, full.error) == (409, "NamespaceNotEmptyException")
    both = server.post(f"/v1/namespaces/{db}/properties", {"removals": ["a"], "updates": {"a": "b"}})
    assert (both.code, both.error) == (422, "UnprocessableEntityException")
    none = server.get("/v1/namespaces?parent=none")
    assert (none.code, none.error) == (404, "NoSuchNamespaceException")
    bodies: list[Any] = [
        b"",
        b"{",
        b"[]",
        {"namespace": "x"},
        {"namespace": []},
        {"namespace": [""]},
        {"namespace": [1]},
    ]
    for body in bodies:
        bad = server.post("/v1/namespaces", body)
        assert (bad.code, bad.error) == (400, "BadRequestException"), body


def test_nested_namespaces_use_the_unit_separator(server: Served, db: str) -> None:
    assert server.post("/v1/namespaces", {"namespace": [db, "inner"]}).code == 200
    assert server.get(f"/v1/namespaces?parent={db}").json["namespaces"] == [[db, "inner"]]
    assert server.get(f"/v1/namespaces/{db}%1Finner").json["namespace"] == [db, "inner"]
    assert [db, "inner"] not in server.get("/v1/namespaces").json["namespaces"]


def test_lists_are_complete_unless_paginated(server: Served, db: str) -> None:
    for at in range(5):
        server.make_table(f"t{at}", db)
    path = f"/v1/namespaces/{db}/tables"
    whole = server.get(path).json
    assert (len(whole["identifiers"]), whole["next-page-token"]) == (5, None)
    assert len(server.get(f"{path}?pageSize=2").json["identifiers"]) == 5
    found: list[str] = []
    token = ""
    pages = 0
    while token is not None:
        page = server.get(f"{path}?pageSize=2&pageToken={token}").json
        found += [one["name"] for one in page["identifiers"]]
        token = page["next-page-token"]
        pages += 1
        if pages == 1:
            # What goes and comes before the page moves nothing.
            server.ask("DELETE", f"{path}/t0")
    assert (found, pages) == ([f"t{at}" for at in range(5)], 3)
    for query in ("pageToken=!!", "pageToken=e30", "pageSize=0&pageToken=", "pageSize=x"):
        assert server.get(f"{path}?{query}").code == 400, query


def test_function_list_is_empty(server: Served, db: str) -> None:
    assert server.get(f"/v1/namespaces/{db}/functions").json == {"identifiers": [], "next-page-token": None}
    assert server.get(f"/v1/namespaces/{db}/functions/f").error == "NoSuchFunctionException"
    assert server.get("/v1/namespaces/none/functions").error == "NoSuchNamespaceException"
