"""A service that drops some of what it was asked for, and says that all went well: the user is told what is missing."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import frazil
from frazil.rest.find_dropped import find_dropped, find_dropped_updates
from frazil.spec.frozen_map import FrozenMap
from tests.support.rest_lab import Asked, ScriptedService, scripted_service
from tests.support.served_lake import Served, served

COLUMNS = "id bigint not null, s string default 'x', n int default 5"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "wh") as made:
        yield made


def forgetful(server: Served, guard: ScriptedService, forget: Any) -> None:
    """Pass requests on, with what the service forgets of each body."""

    def answer(asked: Asked) -> Any:
        guard.asked.append(asked)
        body = asked.body
        if body and asked.path.startswith("/v1/namespaces/db/tables"):
            forget(body)
        kept: dict[str, str] = {
            name: asked.headers[name] for name in ("content-type", "idempotency-key") if name in asked.headers
        }
        query = "?snapshots=all" if asked.query.get("snapshots") else ""
        reply = server.ask(asked.method, asked.path + query, json.dumps(body).encode() if body else None, headers=kept)
        return reply.code, reply.body

    guard.answer = answer  # type: ignore[method-assign]


def no_defaults(body: Any) -> None:
    for schema in [body.get("schema"), *(update.get("schema") for update in body.get("updates", ()))]:
        for field in (schema or {}).get("fields", ()):
            field.pop("initial-default", None)
            field.pop("write-default", None)


def old_and_plain(body: Any) -> None:
    for name in ("partition-spec", "write-order"):
        body.pop(name, None)
    for name in ("write.delete.mode", "format-version"):
        body.get("properties", {}).pop(name, None)


def test_dropped_defaults_of_a_new_table_are_named(server: Served) -> None:
    with scripted_service() as guard:
        forgetful(server, guard, no_defaults)
        with frazil.connect(guard.address) as lake:
            with pytest.warns(
                RuntimeWarning, match=r"created db\.t without .*: the default 'x' of s; .*the default 5 of n"
            ):
                table = lake.create_table("db.t", COLUMNS, format_version=3)
            assert table.schema.field("s").write_default is None


def test_dropped_defaults_of_an_added_column_are_named(server: Served) -> None:
    with scripted_service() as guard:
        forgetful(server, guard, no_defaults)
        with frazil.connect(guard.address) as lake:
            table = lake.create_table("db.t", "id bigint", format_version=3)
            said = r"the default 7 of m; the default 7 of m for existing rows"
            with pytest.warns(RuntimeWarning, match=said), table.update_schema() as update:
                update.add_column("m", "int", default=7)


def test_dropped_version_spec_order_and_property_are_named(server: Served) -> None:
    with scripted_service() as guard:
        forgetful(server, guard, old_and_plain)
        with frazil.connect(guard.address) as lake, warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            lake.create_table(
                "db.t",
                "id bigint, s string",
                partition_by=["bucket(4, id)"],
                sort_by=["s desc"],
                properties={"write.delete.mode": "merge-on-read"},
                format_version=3,
            )
    (warning,) = found
    dropped = str(warning.message).partition(": ")[2].partition(". Rows")[0].split("; ")
    assert dropped == [
        "format version 3 (it is 2)",
        "partitions by bucket[4](id) as id_bucket",
        "the order by identity(s) desc nulls last",
        "the property write.delete.mode=merge-on-read",
    ]


def test_service_that_applies_everything_causes_no_warning(server: Served) -> None:
    # Warnings are errors in tests.
    with frazil.connect(server.uri) as lake:
        table = lake.create_table(
            "db.t",
            f"{COLUMNS}, f double default 1.5, p struct<a: int, b: list<string>>, ts timestamptz",
            partition_by=["day(ts)", "bucket(4, id)"],
            sort_by=["s desc"],
            properties={"a": "b"},
            format_version=3,
        )
        with table.update_schema() as update:
            update.add_column("m", "int", default=7).rename_column("s", "s2")
        with table.update_spec() as spec:
            spec.remove_field("id_bucket")
        table.set_sort_order(["id"])
        lake.create_table("db.u", "id bigint")
        with lake.transaction() as tx:
            for name in ("db.t", "db.u"):
                with tx.table(name).update_schema() as update:
                    update.add_column("k", "string")


def test_added_properties_ids_and_comments_are_not_differences(server: Served) -> None:
    with frazil.connect(server.uri) as lake:
        table = lake.create_table("db.t", COLUMNS, format_version=3)
        asked = table.metadata
    made = replace(asked, properties=FrozenMap({**asked.properties, "owner": "them"}), location="memory://elsewhere")
    assert find_dropped(asked, made) == []
    assert find_dropped_updates(asked, [], made) == []
