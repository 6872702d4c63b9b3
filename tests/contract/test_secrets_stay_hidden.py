"""Secrets given to `connect`, in the catalog's URI and in properties, show up nowhere: a canary for each place.

Texts of objects and errors, pickles of both, tracebacks, logs, and everything that is stored.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import sqlite3
import traceback
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.storage.choose import choose_storage
from tests.support.postgres_server import PASSWORD, QUOTED_PASSWORD, PostgresServer, postgres_server
from tests.support.s3_server import BUCKET, KEY_ID, SECRET, Planned, S3Server

__all__ = ["postgres_server"]

URL_CANARY = "canary-in-the-url-71c2"
TOKEN_CANARY = "canary-session-token-90aa"
GCS_CANARY = "canary-oauth-token-44d1"
CANARIES = (SECRET, PASSWORD, QUOTED_PASSWORD, URL_CANARY, TOKEN_CANARY, GCS_CANARY)


def check_hidden(what: str, shown: str | bytes) -> None:
    data = shown.encode() if isinstance(shown, str) else shown
    for canary in CANARIES:
        assert canary.encode() not in data, f"{what} shows {canary[:6]}..."


def check_object(value: object) -> None:
    name = type(value).__name__
    for text in (repr(value), str(value)):
        check_hidden(f"the text of {name}", text)
    with contextlib.suppress(TypeError, AttributeError, pickle.PicklingError):
        check_hidden(f"the pickle of {name}", pickle.dumps(value))


def check_error(error: BaseException) -> None:
    seen: BaseException | None = error
    while seen is not None:
        check_object(seen)
        check_hidden("an error's arguments", repr(seen.args) + repr(vars(seen)))
        seen = seen.__cause__ or seen.__context__
    check_hidden("a traceback", "".join(traceback.format_exception(error)))


@pytest.fixture(autouse=True)
def logs(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG):
        yield
    for record in caplog.records:
        # The loopback servers and their clients are other people's; what frazil hands them is theirs to keep.
        if record.name.startswith("frazil") or record.name == "root":
            check_hidden("a log", record.getMessage())


def stored(properties: dict[str, str], warehouse: str) -> Iterator[bytes]:
    storage = choose_storage(properties)
    for one in storage.list(warehouse):
        yield one.path.encode()
        yield storage.read(one.path)


@pytest.mark.parametrize("catalog", ["sqlite", "postgresql", "filesystem"])
def test_repr_logs_and_stored_files_of_a_lake_hide_secrets(
    catalog: str, s3_server: S3Server, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    warehouse = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    uri = {"sqlite": f"sqlite:///{tmp_path}/catalog.db", "filesystem": "filesystem"}.get(catalog)
    if uri is None:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        uri = server.uri
        assert QUOTED_PASSWORD in uri
    properties = {**s3_server.properties, "gcs.oauth2.token": GCS_CANARY, "read.roots": "s3://other/place"}
    with frazil.connect(warehouse, catalog=uri, name=f"n{uuid.uuid4().hex}", properties=properties) as lake:
        table = lake.create_table("db.t", "id bigint")
        table.append(pa.table({"id": [1, 2]}))
        scan = table.scan("id = 1")
        plan = scan.plan()
        objects: list[object] = [
            lake,
            lake.catalog,
            lake.catalog.storage,
            table,
            table.metadata,
            table.state,
            scan,
            plan,
            *plan.tasks,
            table.check(),
            table.health(),
            lake.transaction(),
            getattr(lake.catalog, "_pointers", None),
            getattr(getattr(lake.catalog, "_pointers", None), "_database", None),
        ]
        if catalog != "filesystem":
            objects += [lake.create_view("db.v", "select 1"), lake.view("db.v").metadata]
        for one in objects:
            check_object(one)
        failures: list[Callable[[], Any]] = [
            lambda: lake.table("db.missing"),
            lambda: lake.create_table("db.t", "id bigint"),
            lambda: lake.register_table("db.u", f"{warehouse}/nothing.metadata.json"),
            lambda: lake.register_table("db.u", "gs://bucket/x.metadata.json"),
            lambda: lake.create_table("db.\0", "id bigint"),
            lambda: table.append(pa.table({"other": [1]})),
        ]
        for act in failures:
            with pytest.raises(frazil.FrazilError) as raised:
                act()
            check_error(raised.value)
        s3_server.plan(Planned("error", times=50, status=403, code="AccessDenied", body=f"<a>{SECRET} {KEY_ID}</a>"))
        for act in (lambda: table.append(pa.table({"id": [3]})), lambda: table.scan().to_arrow()):
            with pytest.raises(frazil.FrazilError) as raised:
                act()
            check_error(raised.value)
        s3_server.plan()
    for data in stored(s3_server.properties, warehouse):
        check_hidden("a stored file", data)
    if catalog == "sqlite":
        with contextlib.closing(sqlite3.connect(tmp_path / "catalog.db")) as database:
            check_hidden("the catalog's database", "\n".join(database.iterdump()))


@pytest.mark.parametrize(
    ("warehouse", "options"),
    [
        ("wh", {"catalog": f"postgresql://user:{URL_CANARY}@127.0.0.1:1/lake"}),
        ("wh", {"catalog": f"postgresql://user:{URL_CANARY}@nowhere.invalid/lake"}),
        ("wh", {"catalog": f"postgresql://user:{URL_CANARY}@127.0.0.1:notaport/lake"}),
        ("wh", {"catalog": f"postgresql://user:a/{URL_CANARY}@127.0.0.1:1/lake"}),
        ("wh", {"catalog": f"postgresql://127.0.0.1:1/lake?password={URL_CANARY}"}),
        ("wh", {"catalog": f"postgresql://127.0.0.1:1/lake?nonsense=1&password={URL_CANARY}"}),
        ("wh", {"catalog": f"mysql://user:{URL_CANARY}@127.0.0.1/lake"}),
        ("wh", {"catalog": f"user:{URL_CANARY}@127.0.0.1/lake"}),
        ("s3://bucket/wh", {"catalog": "filesystem", "properties": {"s3.secret-access-key": SECRET}}),
        (
            "s3://bucket/wh",
            {
                "catalog": "filesystem",
                "properties": {"s3.access-key-id": KEY_ID, "s3.secret-access-key": f"{SECRET}\n", "s3.region": "x"},
            },
        ),
        (
            "s3://bucket/wh",
            {
                "catalog": "filesystem",
                "properties": {
                    "s3.endpoint": f"https://user:{URL_CANARY}@host",
                    "s3.access-key-id": KEY_ID,
                    "s3.secret-access-key": SECRET,
                },
            },
        ),
        ("gs://bucket/wh", {"catalog": "filesystem", "properties": {"gcs.oauth2.token": f"{GCS_CANARY} x"}}),
        ("wh", {"properties": {"s3.secret-acces-key": SECRET}}),
        ("wh", {"properties": {"s3.session-token": TOKEN_CANARY, "s3.role-arn": "arn", "x": SECRET}}),
    ],
)
def test_error_opening_a_lake_hides_the_secret(
    warehouse: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(frazil.FrazilError) as raised:
        frazil.connect(warehouse, **options)
    check_error(raised.value)


def test_error_reaching_a_store_hides_the_secret(tmp_path: Path) -> None:
    properties = {
        "s3.endpoint": "http://127.0.0.1:1",
        "s3.access-key-id": KEY_ID,
        "s3.secret-access-key": SECRET,
        "s3.session-token": TOKEN_CANARY,
        "s3.connect-timeout": "0.2",
        "s3.request-timeout": "0.2",
    }
    with frazil.connect(f"s3://{BUCKET}/wh", catalog=f"sqlite:///{tmp_path}/c.db", properties=properties) as lake:
        check_object(lake)
        with pytest.raises(frazil.FrazilError) as raised:
            lake.create_table("db.t", "id bigint")
        check_error(raised.value)
