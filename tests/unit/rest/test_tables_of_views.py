"""Tables and views that are read through views of a service: it is told which, and may give them for those alone."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import AccessDeniedError
from frazil.rest.load_result import LoadResult
from frazil.table.lake import Lake
from tests.support.guarded_tables import guarded
from tests.support.rest_lab import ScriptedService, metadata_of, opened, scripted_service, table_json
from tests.support.served_lake import Served, served

TABLE = "/v1/namespaces/db/tables/t"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "wh") as made:
        lake = Lake(made.catalog)
        lake.create_table("db.t", "id bigint, s string").append(pa.table({"id": [1, 2], "s": ["a", "b"]}))
        lake.create_view("db.lower", "select id, s from t where id > 1", schema="id bigint, s string")
        lake.create_view("db.upper", "select id from lower", schema="id bigint")
        lake.create_view(("db", "with, a comma"), "select id from t", schema="id bigint")
        yield made


def queries(service: ScriptedService, path: str) -> list[str | None]:
    return [asked.query.get("referenced-by") for asked in service.of(f"GET {path}")]


def test_table_readable_only_through_a_view_is_read_through_it(server: Served) -> None:
    with guarded(server, {TABLE: "db\x1flower"}) as guard, frazil.connect(guard.address) as lake:
        assert lake.sql("select * from db.lower").to_pylist() == [{"id": 2, "s": "b"}]
        with pytest.raises(AccessDeniedError, match="through its view alone"):
            lake.table("db.t")
        with pytest.raises(AccessDeniedError):
            lake.sql("select * from db.t").to_pylist()
        with pytest.raises(AccessDeniedError):
            # What the view may read is not lent to the rest of the query.
            lake.sql("select v.id from db.lower v join db.t t on v.id = t.id").to_pylist()


def test_nested_views_are_named_from_the_outermost(server: Served) -> None:
    with guarded(server, {TABLE: "db\x1fupper,db\x1flower"}) as guard, frazil.connect(guard.address) as lake:
        assert lake.sql("select * from db.upper").to_pylist() == [{"id": 2}]
        assert queries(guard, "/v1/namespaces/db/views/lower")[-1] == "db\x1fupper"
        assert queries(guard, "/v1/namespaces/db/views/upper")[-1] is None


def test_server_log_names_the_views(server: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="frazil.serve"), frazil.connect(server.uri) as lake:
        assert lake.sql("select * from db.upper").to_pylist() == [{"id": 2}]
        assert lake.sql('select * from db."with, a comma" order by id').to_pylist() == [{"id": 1}, {"id": 2}]
        wanted = [["db.upper", "db.lower"], ["db.with, a comma"]]
        deadline = time.monotonic() + 30
        found: list[Any] = []
        while found != wanted and time.monotonic() < deadline:
            lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "frazil.serve"]
            found = [line["views"] for line in lines if line["operation"] == "loadTable" and "views" in line]
            found = [views for at, views in enumerate(found) if views not in found[:at]]
            time.sleep(0.01)
    assert found == wanted


def test_table_has_one_snapshot_throughout_a_query(server: Served) -> None:
    with guarded(server, {}) as guard, frazil.connect(guard.address) as lake:
        own = Lake(server.catalog)
        plain = guard.answer

        def answer(asked: Any) -> Any:
            reply = plain(asked)
            if asked.path == TABLE and asked.query.get("referenced-by") is not None:
                own.table("db.t").append(pa.table({"id": [3], "s": ["c"]}))
            return reply

        guard.answer = answer  # type: ignore[method-assign]
        text = "select (select count(*) from db.lower) as lower, (select count(*) from db.t) as upper"
        assert lake.sql(text).to_pylist() == [{"lower": 1, "upper": 2}]


def test_credentials_through_views_are_renewed_with_the_same_token() -> None:
    endpoint = "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials"
    with scripted_service({"defaults": {}, "overrides": {}, "endpoints": [endpoint]}) as service:
        service.on(f"GET {TABLE}", (200, table_json(config={"token": "of-the-view"})))
        service.on(f"GET {TABLE}/credentials", (200, {"storage-credentials": []}))
        catalog = opened(service, {"token": "of-the-user"})
        loaded = catalog.load_table_for(("db", "t"), [("db", "v")])
        assert loaded.referenced_by == (("db", "v"),)
        result = LoadResult(metadata_of(), None)
        for views, query, token in (((("db", "v"),), "db\x1fv", "of-the-view"), ((), None, "of-the-user")):
            catalog.access.new_credentials(("db", "t"), result, views)
            asked = service.of(f"GET {TABLE}/credentials")[-1]
            assert asked.query.get("referenced-by") == query
            assert asked.headers["authorization"] == f"Bearer {token}"
        assert catalog.refresh(loaded).referenced_by == loaded.referenced_by
        assert queries(service, TABLE) == ["db\x1fv", "db\x1fv"]


def test_snapshots_are_cached_per_referencing_view_and_released_together() -> None:
    with scripted_service() as service:
        service.on(f"GET {TABLE}", lambda asked: (200, table_json(), {"etag": f'"{asked.query.get("referenced-by")}"'}))
        catalog = opened(service)

        def tags() -> list[str | None]:
            before = len(service.asked)
            catalog.load_table(("db", "t"))
            catalog.load_table_for(("db", "t"), [("db", "v")])
            return [asked.headers.get("if-none-match") for asked in service.asked[before:]]

        assert tags() == [None, None]
        assert tags() == ['"None"', '"db\x1fv"']
        catalog.forget_table(("db", "t"))
        assert tags() == [None, None]
