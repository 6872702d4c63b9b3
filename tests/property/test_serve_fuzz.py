"""Whatever a client sends, the server answers as the protocol says: never an error of its own, and soon.

Requests are made of the operations' own paths and of bodies that are nearly right: real ones with parts taken out, put
elsewhere or replaced. They go to the operations directly, as `app.py` would hand them over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from frazil.serve.error_answers import error_answer
from frazil.serve.exchange import Answer, Request
from frazil.serve.operations import OPERATIONS, Router
from frazil.serve.server_state import ServerState
from frazil.serve.service import Service
from frazil.table.open_catalog import open_catalog
from tests.support.served_lake import SCHEMA

VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    "default-namespace": ["db"],
}
SNAPSHOT = {
    "snapshot-id": 7,
    "sequence-number": 1,
    "timestamp-ms": 1,
    "manifest-list": "file:///none/list.avro",
    "summary": {"operation": "append"},
    "schema-id": 0,
}
UPDATES: list[dict[str, Any]] = [
    {"action": "assign-uuid", "uuid": "00000000-0000-4000-8000-000000000000"},
    {"action": "upgrade-format-version", "format-version": 3},
    {"action": "add-schema", "schema": SCHEMA},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"fields": [{"source-id": 1, "transform": "bucket[4]", "name": "b"}]}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    {"action": "add-snapshot", "snapshot": SNAPSHOT},
    {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7},
    {"action": "remove-snapshots", "snapshot-ids": [7]},
    {"action": "remove-snapshot-ref", "ref-name": "main"},
    {"action": "set-location", "location": "file:///none"},
    {"action": "set-properties", "updates": {"a": "b"}},
    {"action": "remove-properties", "removals": ["a"]},
    {"action": "remove-statistics", "snapshot-id": 7},
    {"action": "remove-partition-specs", "spec-ids": [0]},
    {"action": "remove-schemas", "schema-ids": [0]},
    {"action": "add-encryption-key", "encryption-key": {"key-id": "k", "encrypted-key-metadata": "AA=="}},
    {"action": "remove-encryption-key", "key-id": "k"},
    {"action": "add-view-version", "view-version": VERSION},
    {"action": "set-current-view-version", "view-version-id": -1},
]
REQUIREMENTS: list[dict[str, Any]] = [
    {"type": "assert-create"},
    {"type": "assert-table-uuid", "uuid": "x"},
    {"type": "assert-view-uuid", "uuid": "x"},
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
    {"type": "assert-current-schema-id", "current-schema-id": 0},
    {"type": "assert-default-spec-id", "default-spec-id": 0},
]
IDENTIFIER = {"namespace": ["db"], "name": "t"}
BODIES: list[dict[str, Any]] = [
    {"namespace": ["db", "x"], "properties": {"a": "b"}},
    {"removals": ["a"], "updates": {"b": "c"}},
    {"name": "t", "schema": SCHEMA, "stage-create": False, "properties": {"format-version": "2"}},
    {"name": "v", "schema": SCHEMA, "view-version": VERSION, "properties": {}},
    {"name": "r", "metadata-location": "file:///none/v1.metadata.json", "overwrite": True},
    {"source": IDENTIFIER, "destination": {"namespace": ["db"], "name": "u"}},
    {"requirements": REQUIREMENTS[:1], "updates": UPDATES[:9]},
    {"table-changes": [{"identifier": IDENTIFIER, "requirements": [], "updates": UPDATES[13:14]}]},
    {"snapshot-id": 7, "filter": {"type": "eq", "term": "id", "value": 1}, "select": ["id"], "stats-fields": ["id"]},
    {"plan-task": "x.0"},
    {"report-type": "scan-report", "table-name": "t"},
    {"region": "eu-central-1", "uri": "https://x/y", "method": "GET", "headers": {"a": ["b"]}},
]
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Return a body: a real one, with a few of its parts changed."""
    if draw(st.integers(0, 19)) == 0:
        return draw(st.binary(max_size=20))
    value: Any = json.loads(json.dumps(draw(st.sampled_from(BODIES))))
    if "updates" in value and isinstance(value["updates"], list):
        value["updates"] = draw(st.lists(st.sampled_from(UPDATES), max_size=5))
        value["requirements"] = draw(st.lists(st.sampled_from(REQUIREMENTS), max_size=2))
        value = json.loads(json.dumps(value))
    for _ in range(draw(st.integers(0, 3))):
        _change(draw, value)
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _change(draw: st.DrawFn, value: Any) -> None:
    """Change one part of a value, somewhere inside."""
    here = value
    while isinstance(here, dict | list) and len(here) > 0:
        keys: list[Any] = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = draw(st.sampled_from(keys))
        if not isinstance(here[key], dict | list) or len(here[key]) == 0 or draw(st.booleans()):
            if isinstance(here, dict) and draw(st.booleans()):
                del here[key]
            else:
                here[key] = draw(anything)
            return
        here = here[key]


names = st.sampled_from(["db", "t", "v", "none", "db\x1fx", "", "ä/b", "\ud800", "x" * 300]) | st.text(max_size=5)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("fuzz")
    with open_catalog(folder / "w") as catalog:
        state = ServerState(folder / "serve.db")
        yield Service(catalog, state)
        state.close()


def carried_out(service: Service, at: int, request: Request) -> Answer:
    try:
        return OPERATIONS[at].carry_out(service, request)
    except Exception as error:
        return error_answer(error)


@pytest.mark.extended
@settings(max_examples=400)
@given(
    at=st.integers(0, len(OPERATIONS) - 1),
    body=bodies(),
    namespace=names,
    name=names,
    query=st.dictionaries(
        st.sampled_from(["pageToken", "pageSize", "parent", "snapshots", "purgeRequested", "referenced-by"]),
        st.text(max_size=6) | st.sampled_from(["2", "refs", "true", "db"]),
        max_size=2,
    ),
)
def test_no_request_causes_a_server_error(
    service: Service, at: int, body: bytes, namespace: str, name: str, query: dict[str, str]
) -> None:
    for real in (("db",), ("db", "x")):
        if not service.catalog.namespace_exists(real):
            service.catalog.create_namespace(real)
    parts = {"namespace": namespace, "name": name, "plan-id": "x"}
    request = Request(OPERATIONS[at].method, "/", parts, query, {}, body)
    start = time.process_time()
    answer = carried_out(service, at, request)
    assert answer.code < 500, (OPERATIONS[at].name, answer.body, body)
    assert time.process_time() - start < 5


@given(st.text(max_size=60), st.sampled_from(["GET", "POST", "HEAD", "DELETE", "PUT", "x"]))
def test_any_path_is_an_operation_or_refused(path: str, method: str) -> None:
    router = Router(OPERATIONS, "lake")
    code = 200
    try:
        router.find(method, path)
    except Exception as error:
        code = error_answer(error).code
    assert code in (200, 400, 404, 405)


def test_every_protocol_operation_is_covered() -> None:
    assert len({one.name for one in OPERATIONS}) == 35
