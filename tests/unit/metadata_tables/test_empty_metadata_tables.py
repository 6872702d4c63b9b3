"""Metadata tables without rows, of a table whose partitions are of a type that Arrow keeps as an extension."""

from __future__ import annotations

import pytest

from frazil.metadata_tables.tables import METADATA_TABLES, metadata_table_schema, read_metadata_table
from frazil.scan.plan import plan_scan
from frazil.spec.schema import Schema
from frazil.spec.types import UUID, NestedField
from tests.support.tables import TableBuilder

SCHEMA = Schema((NestedField(1, "key", UUID),))


@pytest.mark.parametrize("name", METADATA_TABLES)
def test_empty_table_partitioned_by_uuid_has_metadata_tables(name: str) -> None:
    loaded = TableBuilder(SCHEMA, partition_by=["key"]).load()
    found = read_metadata_table(loaded, name)
    assert found.schema.equals(metadata_table_schema(loaded.metadata, name))
    assert found.num_rows == (1 if name == "metadata_log_entries" else 0)


def test_empty_plan_is_an_empty_table() -> None:
    loaded = TableBuilder(SCHEMA, partition_by=["key"]).load()
    assert plan_scan(loaded).to_arrow().num_rows == 0
