"""Whatever a catalog service answers, frazil's errors alone leave the client, and soon.

Answers are nearly right: real ones with parts taken out, put elsewhere or replaced by values that do not belong there.
They are read as the client reads them, without a network.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from copy import deepcopy
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given

from frazil.errors import FrazilError
from frazil.expr.predicates import TRUE
from frazil.loaded import LoadedTable
from frazil.rest.auth import hide
from frazil.rest.load_result import read_table, read_view
from frazil.rest.oauth2 import OAuth2Auth, find_expiry
from frazil.rest.scan_planning import _read_tasks, _Scan
from frazil.rest.service import read_object, read_service
from frazil.rest.session import error_of
from frazil.rest.settings import Settings
from frazil.rest.table_storage import table_storage
from frazil.scan.choose_snapshot import partition_types
from frazil.storage.choose import choose_storage
from frazil.storage.http import Answer
from frazil.storage.memory import MemoryStorage
from tests.support.rest_lab import metadata_of, table_json

KEYS = {
    "s3.access-key-id": "id",
    "s3.secret-access-key": "secret",
    "s3.session-token": "token",
    "s3.session-token-expires-at-ms": "1700000000000",
    "gcs.oauth2.token": "t",
    "adls.sas-token.a.dfs.core.windows.net": "sig=1",
}
CONFIG: dict[str, Any] = {
    "defaults": {"prefix": "p", "namespace-separator": "%1F", "rest-page-size": "10", "header.x-a": "b"},
    "overrides": {"uri": "https://h/x", "s3.region": "eu-west-1"},
    "endpoints": ["GET /v1/{prefix}/namespaces"],
    "idempotency-key-lifetime": "PT1H",
}
TABLE: dict[str, Any] = {
    **table_json(config={"token": "t", "s3.remote-signing-enabled": "false", **KEYS}),
    "storage-credentials": [{"prefix": "s3://b/", "config": KEYS}],
}
FILE: dict[str, Any] = {
    "content": "data",
    "file-path": "s3://b/f.parquet",
    "file-format": "parquet",
    "spec-id": 0,
    "partition": [],
    "file-size-in-bytes": 10,
    "record-count": 1,
    "split-offsets": [4],
    "key-metadata": "00ff",
    "first-row-id": 3,
}
TASKS: dict[str, Any] = {
    "status": "completed",
    "plan-tasks": ["a"],
    "delete-files": [{**FILE, "content": "equality-deletes", "equality-ids": [1]}],
    "file-scan-tasks": [{"data-file": FILE, "delete-file-references": [0], "residual-filter": True}],
}
TOKEN: dict[str, Any] = {
    "access_token": "h." + base64.urlsafe_b64encode(b'{"exp": 1700000000}').decode() + ".s",
    "token_type": "bearer",
    "expires_in": 3600,
}
ERROR: dict[str, Any] = {"error": {"message": "no", "type": "X", "code": 400, "stack": ["a"]}}
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 0, 2**31, 2**63, 2**64, int("9" * 400), 1e308, 0.5, "", "9" * 5_000, "\x00", "\ud800", "../..", "http://[",
     [], [None], {}, {"": {}}, [[]], "[" * 200]
)  # fmt: skip


class Place(NamedTuple):
    """A part of a document, to be changed."""

    holder: Any
    key: Any


def places(found: Any) -> list[Place]:
    pairs = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    return [one for key, value in list(pairs) for one in (Place(found, key), *places(value))]


@st.composite
def nearly(draw: st.DrawFn, document: dict[str, Any]) -> bytes:
    """Return the text of a document in which a few parts are not what they should be; now and then no JSON."""
    made: Any = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(0, 3))):
        known = places(made)
        if not known:
            break
        place = draw(st.sampled_from(known))
        if draw(st.booleans()) and isinstance(place.holder, dict):
            place.holder.pop(place.key)
        else:
            place.holder[place.key] = deepcopy(draw(ODD))
    text = json.dumps(made).encode()
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 9)) == 0 else text


class Once:
    """Answers a request for a token with one text."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def fetch(self, *_: Any, **__: Any) -> Answer:
        return Answer(200, {}, self.body)


def read_config(body: bytes) -> None:
    service, merged = read_service("https://h", Settings({}), Answer(200, {}, body))
    service.table(("db", "t"))
    merged.headers()


def read_loaded(body: bytes) -> None:
    found = read_table(Answer(200, {}, body), "db.t")
    storage: Any = table_storage(
        choose_storage({}),
        found.config,
        found.credentials,
        lambda: (),
        lambda _: Answer(200, {}, b"{}"),
        now_ms=lambda: 0,
    )
    storage.reach("s3://b/f")
    storage.storage_of("s3://b/f")


def read_plan(body: bytes) -> None:
    metadata = metadata_of()
    loaded = LoadedTable(("db", "t"), metadata, None, MemoryStorage())
    scan = _Scan(loaded, metadata.current_schema, TRUE, partition_types(metadata))
    list(_read_tasks(read_object(Answer(200, {}, body), "the plan"), scan, "plan"))


def read_token(body: bytes) -> None:
    transport: Any = Once(body)
    auth = OAuth2Auth(Settings({"credential": "a:b"}), "https://h/t", transport, now=lambda: 0.0, sleep=lambda _: None)
    auth.headers("GET", "https://h", {}, b"")
    find_expiry(f"h.{base64.urlsafe_b64encode(body).decode()}.s")


def read_error(body: bytes) -> None:
    hide(error_of(Answer(400, {}, body))[0], ("secret",))


def read_view_of(body: bytes) -> None:
    read_view(Answer(200, {}, body), "db.v")


READERS: dict[str, tuple[dict[str, Any], Callable[[bytes], None]]] = {
    "config": (CONFIG, read_config),
    "table": (TABLE, read_loaded),
    "view": ({"metadata-location": "x", "metadata": {"format-version": 1}}, read_view_of),
    "plan": (TASKS, read_plan),
    "token": (TOKEN, read_token),
    "error": (ERROR, read_error),
}


@pytest.mark.parametrize("kind", READERS)
@given(data=st.data())
def test_nearly_valid_response_is_read_or_refused(kind: str, data: st.DataObject) -> None:
    document, read = READERS[kind]
    body = data.draw(nearly(document))
    started = time.process_time()
    with suppress(FrazilError):
        read(body)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("kind", READERS)
def test_valid_response_is_read(kind: str) -> None:
    document, read = READERS[kind]
    if kind != "view":
        read(json.dumps(document).encode())


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b'"' + b"x" * 99]
)
def test_response_that_is_not_an_object_is_refused(kind: str, body: bytes) -> None:
    with nullcontext() if kind == "error" else pytest.raises(FrazilError):
        READERS[kind][1](body)
