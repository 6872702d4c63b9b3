"""Procedures and functions of `lake.system` are Spark's own kinds: parsed, bound, listed and described by Spark."""

from __future__ import annotations

from typing import Any

import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import frazil
from frazil.maintenance.procedures import PROCEDURES

LISTS_PROCEDURES = not pyspark.__version__.startswith("4.0.")
SNAPSHOT_ID = "SNAPSHOT_ID" if LISTS_PROCEDURES else "snapshot_id"
"""Spark 4.0 tells names of arguments apart by their case."""
"""Spark 4.0 calls procedures, and neither lists nor describes them."""


@pytest.fixture
def filled(filled: SparkSession) -> SparkSession:
    filled.sql("insert into lake.db.t values (4, 'a')")
    return filled


def rows(frame: Any) -> list[tuple[Any, ...]]:
    return [tuple(one) for one in frame.collect()]


@pytest.mark.skipif(not LISTS_PROCEDURES, reason="Spark 4.0 has no SHOW PROCEDURES")
def test_procedures_are_listed_and_described(filled: SparkSession) -> None:
    shown = filled.sql("show procedures in lake.system").collect()
    assert sorted(one["procedure_name"] for one in shown) == sorted(PROCEDURES)
    assert {one["catalog"] for one in shown} == {"lake"}
    described = str(filled.sql("describe procedure lake.system.rollback_to_snapshot").collect())
    for word in ("rollback_to_snapshot", "snapshot_id", "table"):
        assert word in described
    assert rows(filled.sql("show procedures in lake.db")) == []
    # Of the lake itself, with the namespace that they are called by.
    whole = filled.sql("show procedures in lake").collect()
    assert [tuple(one) for one in whole] == [tuple(one) for one in shown]
    assert {tuple(one["namespace"]) for one in whole} == {("system",)}


def test_arguments_may_be_positional_named_or_expressions(filled: SparkSession, lake: frazil.Lake) -> None:
    first, second = (one.snapshot_id for one in lake.table("db.t").snapshots)
    for text in (
        f"call lake.system.rollback_to_snapshot('db.t', {first})",
        f"CALL lake.SYSTEM.Rollback_To_Snapshot({SNAPSHOT_ID} => '{first}', table => concat('db', '.t'))",
        f"call lake.system.rollback_to_snapshot(table => 'lake.db.t', snapshot_id => cast({first} as decimal(20, 0)))",
    ):
        assert rows(filled.sql(text)) == [(second, first)]
        filled.sql(f"call lake.system.set_current_snapshot('db.t', {second})")
    filled.sql("use lake.db")
    assert len(rows(filled.sql("call system.ancestors_of('t')"))) == 2
    assert len(rows(filled.sql("call system.ancestors_of(table => :name)", {"name": "t"}))) == 2
    filled.sql("use spark_catalog.default")
    (dry,) = filled.sql(
        "call lake.system.expire_snapshots('db.t', older_than => current_timestamp() + interval 1 day, "
        "retain_last => 1, dry_run => true)"
    ).collect()
    assert {"deleted_bytes", "kept_count"} <= set(dry.asDict())
    filled.sql("call lake.system.rewrite_data_files('db.t', options => map('min-input-files', 2))")
    assert filled.table("lake.db.t").count() == 4
    filled.sql(
        "call lake.system.expire_snapshots(table => 'db.t', older_than => '2100-01-01', snapshot_ids => array())"
    )
    assert len(lake.table("db.t").refresh().snapshots) == 1


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("call lake.system.rollback_to_snapshot('db.t')", "REQUIRED_PARAMETER_NOT_FOUND"),
        ("call lake.system.rollback_to_snapshot('db.t', 1, 2)", "WRONG_NUM_ARGS"),
        ("call lake.system.rollback_to_snapshot(table => 'db.t', 5)", "UNEXPECTED_POSITIONAL_ARGUMENT"),
        ("call lake.system.rollback_to_snapshot(tableau => 'db.t', snapshot_id => 5)", "UNRECOGNIZED_PARAMETER_NAME"),
        ("call lake.system.rollback_to_snapshot('db.t', 5, table => 'db.t')", "DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT"),
        ("call lake.system.rollback_to_snapshot('db.t', map(1, 2))", "DATATYPE_MISMATCH"),
        ("call lake.system.rollback_to_snapshot('db.nope', 5)", "TABLE_OR_VIEW_NOT_FOUND"),
    ],
)
def test_invalid_call_raises_the_spark_condition(filled: SparkSession, text: str, condition: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        filled.sql(text)
    assert (caught.value.getCondition() or "").startswith(condition), caught.value


def test_unknown_procedure_suggests_the_nearest_name(filled: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="Did you mean expire_snapshots"):
        filled.sql("call lake.system.expire_snapshot('db.t')")
    with pytest.raises(AnalysisException, match=r"lake\.system"):
        filled.sql("call lake.db.expire_snapshots('db.t')")
    with pytest.raises(AnalysisException, match="'table' is null"):
        filled.sql("call lake.system.ancestors_of(null)")


def test_procedure_functions_are_listed_and_described(filled: SparkSession) -> None:
    shown = {one[0] for one in filled.sql("show functions in lake.system").collect()}
    for name in ("bucket", "truncate", "days"):
        assert f"lake.system.{name}" in shown or name in shown
    assert "bucket" in str(filled.sql("describe function lake.system.bucket").collect())
    assert "days" in str(filled.sql("describe function extended lake.system.days").collect())
    assert filled.catalog.functionExists("lake.system.bucket")
    assert rows(filled.sql("select lake.system.bucket(4, 1) is not null")) == [(True,)]


@pytest.mark.extended
def test_analyze_counts_distinct_values(filled: SparkSession, lake: frazil.Lake) -> None:
    filled.sql("analyze table lake.db.t compute statistics noscan")
    assert lake.table("db.t").metadata.statistics == ()
    filled.sql("analyze table lake.db.t compute statistics for columns kind")
    table = lake.table("db.t")
    (made,) = table.metadata.statistics
    kinds = table.schema.field("kind").field_id
    assert {one.fields for one in made.blob_metadata} == {(kinds,)}
    filled.sql("analyze table lake.db.t compute statistics")
    (made,) = lake.table("db.t").metadata.statistics
    assert len(made.blob_metadata) == 2
    filled.sql("analyze table lake.db.t compute statistics for all columns")
    with pytest.raises(AnalysisException, match="nope"):
        filled.sql("analyze table lake.db.t compute statistics for columns nope")
    with pytest.raises(Exception, match="Omit PARTITION"):
        filled.sql("analyze table lake.db.t partition (kind = 'a') compute statistics")
    before = lake.table("db.t").metadata_location
    assert filled.sql("explain analyze table lake.db.t compute statistics").first() is not None
    assert lake.table("db.t").metadata_location == before


@pytest.mark.extended
@pytest.mark.parametrize(
    "text",
    [
        "call lake.system.rollback_to_snapshot('db.t', {first})",
        "call lake.system.rewrite_data_files('db.t', options => map('rewrite-all', 'true'))",
        "alter table lake.db.t add column more int",
        "alter table lake.db.t rename column kind to sort",
        "alter table lake.db.t add partition field bucket(4, id)",
        "alter table lake.db.t set tblproperties ('a' = 'b')",
        "drop table lake.db.t",
        "alter table lake.db.t rename to lake.db.u",
    ],
)
def test_cache_is_refreshed_after_calls_and_ddl(filled: SparkSession, lake: frazil.Lake, text: str) -> None:
    first = lake.table("db.t").snapshots[0].snapshot_id
    filled.sql("cache table lake.db.t")
    assert filled.table("lake.db.t").count() == 4
    filled.sql(text.format(first=first))
    if text.startswith("drop") or "rename to" in text:
        with pytest.raises(AnalysisException):
            filled.table("lake.db.t").collect()
        assert rows(filled.sql("select count(*) from lake.db.u")) == [(4,)] if "rename" in text else True
        return
    assert filled.catalog.isCached("lake.db.t")
    table = lake.table("db.t")
    found = filled.table("lake.db.t")
    assert found.columns == [one.name for one in table.schema.fields]
    assert sorted(map(repr, map(tuple, found.collect()))) == sorted(
        repr(tuple(one.values())) for one in table.scan().to_arrow().to_pylist()
    )
    filled.sql("uncache table lake.db.t")
    assert not filled.catalog.isCached("lake.db.t")
