"""A SQLite file that a stranger made: what it defines is not run."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import frazil
from frazil.errors import InvalidMetadataError, StorageError


def database(folder: Path, *statements: str) -> Path:
    frazil.connect(folder).close()
    with sqlite3.connect(folder / "catalog.db") as made:
        for statement in statements:
            made.execute(statement)
    made.close()
    return folder


def test_view_replacing_a_catalog_table_is_refused(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    made = database(
        tmp_path,
        "DROP TABLE iceberg_tables",
        f"CREATE VIEW iceberg_tables AS SELECT 'default' AS catalog_name, 'db' AS table_namespace, x AS table_name, "
        f"NULL AS metadata_location, NULL AS previous_metadata_location, NULL AS iceberg_type FROM ({endless})",
    )
    with pytest.raises(StorageError, match="iceberg_tables is not a table but a view"):
        frazil.connect(made)


def test_location_that_is_not_text_is_refused(tmp_path: Path) -> None:
    with frazil.connect(tmp_path) as lake:
        lake.create_namespace("db")
        lake.create_table("db.t", "id bigint")
    made = database(tmp_path, "UPDATE iceberg_tables SET metadata_location = X'00FF'")
    with frazil.connect(made) as lake, pytest.raises(InvalidMetadataError, match="no metadata location"):
        lake.table("db.t")
