"""Views in the terminal, and commands that change what a table is; without a JVM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import frazil
from frazil.cli.main import app
from frazil.cli.table_commands import METADATA_COMMANDS
from frazil.metadata_tables.tables import METADATA_TABLES

RUNNER = CliRunner()
NAME = "shop.orders"


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    folder = str(tmp_path / "lake")
    with frazil.connect(folder) as lake:
        lake.create_table(NAME, "id int, kind string").append(
            pa.table({"id": pa.array([1, 2], pa.int32()), "kind": ["a", "b"]})
        )
    return folder


def rows(warehouse: str, *arguments: str) -> list[dict[str, Any]]:
    result = RUNNER.invoke(app, ["-w", warehouse, "-f", "json", *arguments])
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def refused(warehouse: str, *arguments: str) -> str:
    result = RUNNER.invoke(app, ["-w", warehouse, *arguments])
    assert result.exit_code == 1, result.output
    return result.output


def test_view_is_created_shown_replaced_and_rolled_back(warehouse: str) -> None:
    (first,) = rows(warehouse, "view", "create", "shop.totals", "select count(*) n from shop.orders")
    assert rows(warehouse, "view", "list", "shop") == [{"view": "shop.totals"}]
    assert rows(warehouse, "view", "show", "shop.totals")[0]["sql"] == "select count(*) n from shop.orders"
    (second,) = rows(warehouse, "view", "create", "shop.totals", "select 1 n", "--replace")
    assert second["version_id"] != first["version_id"]
    assert len(rows(warehouse, "view", "history", "shop.totals")) == 2
    rows(warehouse, "view", "rollback", "shop.totals", str(first["version_id"]))
    with frazil.connect(warehouse) as lake:
        assert lake.view("shop.totals").sql == "select count(*) n from shop.orders"
    assert "there is a view of that name" in refused(warehouse, "view", "create", "shop.totals", "select 2 n")


def test_view_properties_are_set_listed_and_removed(warehouse: str) -> None:
    rows(warehouse, "view", "create", "shop.totals", "select 1 n")
    rows(warehouse, "view", "set", "shop.totals", "comment=all orders")
    assert {"name": "comment", "value": "all orders"} in rows(warehouse, "view", "properties", "shop.totals")
    assert "version.history.num-entries" in refused(
        warehouse, "view", "set", "shop.totals", "version.history.num-entries=-1"
    )
    rows(warehouse, "view", "unset", "shop.totals", "comment")
    assert rows(warehouse, "view", "properties", "shop.totals") == []


def test_view_is_renamed_and_dropped_after_confirmation(warehouse: str) -> None:
    rows(warehouse, "view", "create", "shop.totals", "select 1 n")
    rows(warehouse, "view", "rename", "shop.totals", "shop.sums")
    assert "--yes" in refused(warehouse, "view", "drop", "shop.sums")
    assert rows(warehouse, "view", "list", "shop") == [{"view": "shop.sums"}]
    rows(warehouse, "view", "drop", "shop.sums", "--yes")
    assert rows(warehouse, "view", "list", "shop") == []


def test_columns_are_added_renamed_widened_and_dropped(warehouse: str) -> None:
    rows(warehouse, "table", "add-column", NAME, "score", "double", "--after", "id", "--doc", "from 0 to 1")
    rows(warehouse, "table", "rename-column", NAME, "kind", "type")
    rows(warehouse, "table", "set-type", NAME, "id", "long")
    columns = rows(warehouse, "table", "schema", NAME)
    assert [(column["name"], column["type"]) for column in columns] == [
        ("id", "long"),
        ("score", "double"),
        ("type", "string"),
    ]
    assert columns[1]["doc"] == "from 0 to 1"
    rows(warehouse, "table", "drop-column", NAME, "score")
    assert len(rows(warehouse, "table", "schema", NAME)) == 2


def test_partition_fields_sort_order_and_format_version_are_changed(warehouse: str) -> None:
    (field,) = rows(warehouse, "table", "add-partition-field", NAME, "bucket(4, id)")
    assert field["transform"] == "bucket[4]"
    assert rows(warehouse, "table", "drop-partition-field", NAME, field["name"]) == []
    rows(warehouse, "table", "sort-by", NAME, "id desc", "kind")
    assert rows(warehouse, "table", "upgrade", NAME, "3") == [{"table": NAME, "format_version": 3}]
    with frazil.connect(warehouse) as lake:
        assert len(lake.table(NAME).sort_order.fields) == 2
    rows(warehouse, "table", "sort-by", NAME)
    with frazil.connect(warehouse) as lake:
        assert lake.table(NAME).sort_order.is_unsorted


def test_every_metadata_table_is_a_command(warehouse: str) -> None:
    assert set(METADATA_COMMANDS) == set(METADATA_TABLES)
    for table in METADATA_TABLES:
        rows(warehouse, "table", table.replace("_", "-"), NAME)
    assert [row["file_size_in_bytes"] > 0 for row in rows(warehouse, "table", "data-files", NAME)] == [True]
