"""What a person sees of values in a Python prompt, and what an editor knows of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, assert_type

import pyarrow as pa
import pytest

import frazil
from frazil.maintenance.expire_snapshots import ExpireSnapshotsResult
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partition_evolution import PartitionSpecUpdate
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.spec.snapshot import Snapshot
from frazil.table.lake import LakeTransaction
from frazil.table.maintain import Maintain
from frazil.table.metadata_tables import MetadataTableReader, MetadataTables
from frazil.table.table import Table, TransactionTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECRET = "hunter2-canary"
SNAPSHOT = r"\d+, append, \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z: \+2 rows, 2 in all"


@pytest.fixture
def table() -> Iterator[Table]:
    with frazil.connect("memory:") as lake:
        made = lake.create_table(
            "db.t", "id bigint not null, ts timestamptz, kind string", partition_by=["day(ts)"], sort_by=["id desc"]
        )
        made.append(pa.table({"id": [1, 2]}))
        yield made


def matches(value: object, *lines: str) -> bool:
    return re.fullmatch("\n".join(lines), repr(value)) is not None


def test_table_repr_shows_columns_partitions_and_snapshot(table: Table) -> None:
    assert matches(
        table,
        "Table 'db.t', format version 2",
        "  columns      id long not null, ts timestamptz, kind string",
        r"  partitioned  days\(ts\)",
        "  sorted       id DESC NULLS LAST",
        f"  snapshot     {SNAPSHOT}",
    ), repr(table)
    with table.transaction() as changes:
        changes.append(pa.table({"id": [3]}))
        assert repr(changes).endswith("in a transaction, 1 change so far")


def test_scan_repr_shows_its_parts(table: Table) -> None:
    assert matches(
        table.scan("id > 1 and kind = 'x'", columns=["kind", "id"], limit=3),
        "Scan of 'db.t'",
        f"  snapshot  {SNAPSHOT}",
        "  filter    id > 1 and kind = 'x'",
        "  columns   kind, id",
        "  limit     3",
    )
    assert "filter" not in repr(table.scan())


def test_repr_of_a_wide_table_or_long_filter_stays_short(table: Table) -> None:
    with frazil.connect("memory:") as lake:
        wide = lake.create_table("db.wide", ", ".join(f"c{number} int" for number in range(500)))
        assert "and 488 more" in repr(wide)
        assert "none yet" in repr(wide)
        assert max(len(line) for line in repr(wide).splitlines()) < 250
    longest = repr(table.scan(" or ".join(f"id = {number}" for number in range(1000))))
    assert max(len(line) for line in longest.splitlines()) < 250


def test_plan_and_snapshot_repr_are_one_line(table: Table) -> None:
    assert matches(
        table.scan("id > 1").plan(), r"<Plan of 'db.t', snapshot \d+, filter id > 1; explain\(\) shows what was pruned>"
    )
    assert matches(table.current_snapshot, f"<Snapshot {SNAPSHOT}>")
    bare = Snapshot(7, 0, manifest_list="x", summary=None)
    assert repr(bare) == "<Snapshot 7, unknown operation, 1970-01-01T00:00:00.000Z>"
    odd = Snapshot(7, 0, manifest_list="x", summary=FrozenMap({"operation": "\x1b[31m", "added-records": "many"}))
    assert repr(odd) == "<Snapshot 7, \\x1b[31m, 1970-01-01T00:00:00.000Z>"


def test_lake_repr_shows_its_catalog_and_no_secret(tmp_path: object) -> None:
    with frazil.connect("memory:", properties={"s3.secret-access-key": SECRET}) as lake:
        assert repr(lake) == "Lake(MemoryCatalog('lake', 'memory://warehouse'))"
        table = lake.create_table("db.t", "id bigint")
        for value in (lake, table, table.scan(), table.scan().plan(), table.maintain, table.inspect):
            assert SECRET not in repr(value)


def test_help_lists_what_can_be_called(table: Table) -> None:
    assert "snapshots, " in repr(table.inspect)
    assert "rewrite_data_files" in repr(table.maintain)
    with table.update_schema() as update:
        assert "add_column" in dir(update)
        update.add_column("x", "int")
        assert repr(update).startswith("<changes: add_column; there are: add_column, ")


def test_pending_changes_have_a_repr(table: Table) -> None:
    assert repr(table.transaction()) == "<transaction of 'db.t', for a with block>"
    assert "delete, update, upsert, overwrite" in repr(table.explain)
    merge = table.merge([{"id": 1}], on="target.id = source.id")
    assert "clauses: none yet" in repr(merge)
    merge.when_matched().delete()
    assert "clauses: when matched then delete;" in repr(merge)
    followed = table.follow()
    assert repr(followed) == "<Follow of 'db.t', branch 'main', changes 'error'; loop over it for batches>"
    followed.stop()
    assert "stopped" in repr(followed)
    assert repr(table.health()) == "<Report 'Health of db.t': no problems; print it>"


def test_view_and_transaction_have_a_repr() -> None:
    with frazil.connect("memory:") as lake:
        lake.create_table("db.t", "id bigint")
        view = lake.create_view("db.v", "select id from db.t", schema="id bigint")
        assert matches(view, "View 'db.v'", "  columns  id long", r"  query    select id from db.t \(spark\)")
        with lake.transaction() as changes:
            assert repr(changes) == "<transaction of the lake 'lake', tables: none yet>"
            changes.table("db.t").append([{"id": 1}])
            assert repr(changes) == "<transaction of the lake 'lake', tables: db.t>"


def test_package_dir_lists_public_names() -> None:
    assert dir(frazil) == sorted([*frazil.__all__, "__version__"])
    assert re.match(r"\d+\.\d+\.\d+", frazil.__version__)
    assert {"connect", "attach", "Lake", "Table"} <= set(dir(frazil))


def test_editors_infer_types_of_blocks_and_attributes(table: Table) -> None:
    with table.update_schema() as schema:
        assert_type(schema, SchemaUpdate)
    with table.update_spec() as spec:
        assert_type(spec, PartitionSpecUpdate)
    with table.transaction() as changes:
        assert_type(changes, TransactionTable)
    with frazil.connect("memory:") as lake, lake.transaction() as several:
        assert_type(lake, frazil.Lake)
        assert_type(several, LakeTransaction)
    assert_type(table.maintain, Maintain)
    assert_type(table.maintain.expire_snapshots(retain_last=1), ExpireSnapshotsResult)
    assert_type(table.inspect, MetadataTables)
    assert_type(table.inspect.files, MetadataTableReader)
    assert_type(table.current_snapshot, Snapshot | None)


def _on_spark(table: Table, lake: frazil.Lake, spark: SparkSession) -> None:
    """Say to type checkers what values of PySpark's are; it is not run."""
    frame = table.scan().to_spark()
    assert_type(frame, DataFrame)
    assert_type(lake.spark, SparkSession)
    assert_type(frazil.attach(spark, lake), frazil.Lake)
