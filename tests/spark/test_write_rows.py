"""Deletes, updates, merges, upserts and overwrites of rows: what they do, what they touch, what they refuse."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil
from frazil.errors import SchemaMismatchError
from frazil.expr.predicates import is_in

MODES = ["copy-on-write", "merge-on-read"]


def make(lake: frazil.Lake, mode: str, **options: Any) -> frazil.Table:
    properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    properties |= options.pop("properties", {})
    name = options.pop("name", "db.t")
    return lake.create_table(name, "id bigint, k string, v int", properties=properties, **options)


def numbers(spark: SparkSession, start: int, end: int) -> DataFrame:
    letter = F.element_at(F.array(F.lit("a"), F.lit("b")), (F.col("id") % 2 + 1).cast("int"))
    return spark.range(start, end, numPartitions=1).select("id", letter.alias("k"), F.col("id").cast("int").alias("v"))


def values(table: frazil.Table, ref: str | None = None) -> dict[int | None, tuple[Any, ...]]:
    rows = table.refresh().scan(ref=ref).to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["k"], row["v"]) for row in rows}


def summary(snapshot: frazil.Snapshot | None) -> dict[str, str]:
    assert snapshot is not None
    assert snapshot.summary is not None
    return dict(snapshot.summary)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", [2, 3])
def test_delete_rewrites_only_files_with_matching_rows(
    spark: SparkSession, lake: frazil.Lake, mode: str, version: int
) -> None:
    table = make(lake, mode, format_version=version)
    for start in (0, 10, 20):
        table.append(numbers(spark, start, start + 10))
    # The second file may match and does not; the third goes whole, without being read.
    said = summary(table.delete("id in (3, 7) or (id between 10 and 15 and v = -1) or id >= 20"))
    assert sorted(one for one in values(table) if one is not None) == [0, 1, 2, 4, 5, 6, 8, 9, *range(10, 20)]
    if mode == "copy-on-write":
        assert (said["deleted-data-files"], said["added-data-files"]) == ("2", "1")
    else:
        assert (said["deleted-data-files"], said["added-delete-files"]) == ("1", "1")
        assert said.get("added-dvs") == ("1" if version == 3 else None)
    assert said["engine-name"] == "spark"
    assert table.check().ok
    assert table.delete("id = 1000 or v = -1") is None


def test_partition_delete_reads_and_writes_no_data(spark: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, ts timestamptz", partition_by=["day(ts)"])
    table.append(
        spark.sql(
            "select id, timestamp'2024-01-01 12:00:00Z' + make_interval(0, 0, 0, cast(id as int)) as ts from range(4)"
        )
    )
    # The session is five and a half hours east: this condition needs Spark to say what it means.
    said = summary(table.delete("ts < '2024-01-03 05:30:00'"))
    assert (said["deleted-data-files"], said.get("added-data-files")) == ("2", None)
    said = summary(table.delete("date(ts) = date'2024-01-03'"))
    assert (said["deleted-data-files"], said.get("added-data-files")) == ("1", None)
    assert [row["id"] for row in table.scan().to_arrow().to_pylist()] == [3]


def test_delete_keeps_rows_whose_condition_is_null(spark: SparkSession, lake: frazil.Lake) -> None:
    table = make(lake, "copy-on-write")
    table.append(spark.sql("select 1L as id, 'a' as k, 1 as v union all select 2, null, 2"))
    table.delete("k <> 'b'")
    assert values(table) == {2: (None, 2)}
    table.delete("not (k = 'b')")
    assert values(table) == {2: (None, 2)}
    table.delete("k is null")
    assert values(table) == {}


@pytest.mark.extended
def test_conditions_may_use_subqueries_columns_and_predicates(spark: SparkSession, lake: frazil.Lake) -> None:
    table = make(lake, "merge-on-read")
    table.append(numbers(spark, 0, 10))
    spark.range(3).createOrReplaceTempView("gone")
    table.delete("id in (select id from gone)")
    assert min(one for one in values(table) if one is not None) == 3
    table.delete(F.col("id").isin(4, 5))
    table.delete(is_in("id", [6, 7]))
    assert sorted(one for one in values(table) if one is not None) == [3, 8, 9]
    table.delete("not exists (select 1 from gone where gone.id = v - 8)")
    assert sorted(one for one in values(table) if one is not None) == [8, 9]


@pytest.mark.extended
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_repeated_deletes_accumulate(spark: SparkSession, lake: frazil.Lake, mode: str, granularity: str) -> None:
    table = make(lake, mode, partition_by=["k"], properties={"write.delete.granularity": granularity})
    table.append(numbers(spark, 0, 20))
    table.append(numbers(spark, 20, 40))
    for remainder in range(3):
        table.delete(f"id % 5 = {remainder}")
    expected = [one for one in range(40) if one % 5 > 2]
    assert sorted(one for one in values(table) if one is not None) == expected
    table.upgrade(3)
    table.delete("id % 5 = 3")
    assert sorted(one for one in values(table) if one is not None) == [one for one in expected if one % 5 == 4]
    assert table.check().ok


@pytest.mark.parametrize("mode", MODES)
def test_update_preserves_other_columns_to_the_nanosecond(spark: SparkSession, lake: frazil.Lake, mode: str) -> None:
    ddl = "id bigint, ns timestamp_ns, u uuid, clock time, s struct<a: int, b: string>, tags list<string>"
    properties = {"write.update.mode": mode}
    table = lake.create_table("db.t", ddl, format_version=3, properties=properties)
    arrow = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "ns": pa.array([1_700_000_000_123_456_789, -1], pa.timestamp("ns")),
            "u": pa.array([b"0123456789abcdef"] * 2, pa.binary(16)),
            "clock": pa.array([1, 2], pa.time64("us")),
            "s": pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], pa.struct([("a", pa.int32()), ("b", pa.string())])),
            "tags": pa.array([["p"], None], pa.list_(pa.string())),
        }
    )
    table.append(arrow)
    before = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    table.update({"s.b": "upper(s.b)", "`tags`": "array('q')"}, where="id = 1")
    after = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert after[2] == before[2]
    assert after[1] == before[1] | {"s": {"a": 1, "b": "X"}, "tags": ["q"]}


@pytest.mark.extended
@pytest.mark.parametrize("mode", MODES)
def test_updated_rows_keep_ids_and_only_changed_ones_get_a_new_sequence_number(
    spark: SparkSession, lake: frazil.Lake, mode: str
) -> None:
    table = make(lake, mode, format_version=3)
    table.append(numbers(spark, 0, 4))

    def lineage() -> dict[int, tuple[int, int]]:
        rows = table.scan(columns=["id", "_row_id", "_last_updated_sequence_number"]).to_arrow().to_pylist()
        return {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in rows}

    before = lineage()
    table.update({"v": "v + 1"}, where="id = 1")
    source = spark.sql("select 2L as id, 'm' as k, 0 as v union all select 9, 'n', 0")
    table.upsert(source, keys=["id"])
    after = lineage()
    assert {key: after[key][0] for key in before} == {key: before[key][0] for key in before}
    assert {key: number for key, (_, number) in after.items()} == {0: 1, 1: 2, 2: 3, 3: 1, 9: 3}
    assert len({row_id for row_id, _ in after.values()}) == 5


@pytest.mark.extended
def test_nondeterministic_values_are_computed_once_per_row(spark: SparkSession, lake: frazil.Lake) -> None:
    table = make(lake, "merge-on-read")
    table.append(numbers(spark, 0, 50))
    twice = F.udf(lambda: [str(uuid.uuid4())] * 2, "array<string>").asNondeterministic()
    # The value is tested and converted, each of which would ask for it again.
    source = spark.sql("select explode(sequence(0, 49)) as id")
    said = summary(table.update({"k": "uuid()", "v": "floor(rand() * 2000000000)"}, where="id < 25"))
    assert said["added-records"] == "25"
    merging = table.merge(source, on="target.id = source.id").when_matched("target.id >= 25")
    merging.update({"k": F.concat_ws("=", twice()), "v": "floor(rand() * 2000000000)"}).execute()
    found = values(table)
    assert len(found) == 50
    assert len({one[0] for one in found.values()}) == len({one[1] for one in found.values()}) == 50
    assert all(one == other for one, other in (found[at][0].split("=") for at in range(25, 50)))


@pytest.mark.parametrize(
    "condition",
    ["rand() > 2", "uuid() = 'x'", "id in (select id from range(5) where rand() > 2)", "a function"],
)
def test_nondeterministic_condition_is_refused(spark: SparkSession, lake: frazil.Lake, condition: str) -> None:
    table = make(lake, "merge-on-read")
    table.append(numbers(spark, 0, 5))
    chance = F.udf(lambda: False, "boolean").asNondeterministic()
    where: Any = chance() if condition == "a function" else condition
    source = numbers(spark, 3, 8)
    ours = where if not isinstance(where, str) else where.replace("id in", "target.id in")
    theirs = where if not isinstance(where, str) else where.replace("id in", "source.id in")
    on = "target.id = source.id"
    changes: list[Callable[[], object]] = [
        lambda: table.delete(where),
        lambda: table.update({"v": "1"}, where),
        lambda: table.overwrite(source, where),
        lambda: table.merge(source, ours).when_matched().delete().execute(),
        lambda: table.merge(source, on).when_matched(ours).delete().execute(),
        lambda: table.merge(source, on).when_not_matched(theirs).insert_all().execute(),
        lambda: table.merge(source, on).when_not_matched_by_source(ours).delete().execute(),
    ]
    for change in changes:
        with pytest.raises(frazil.InvalidRequestError, match="a different result each time"):
            change()
    assert len(table.refresh().snapshots) == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", [2, 3])
def test_first_matching_clause_applies(spark: SparkSession, lake: frazil.Lake, mode: str, version: int) -> None:
    table = make(lake, mode, format_version=version, partition_by=["bucket(2, id)"])
    table.append(numbers(spark, 0, 6))
    source = spark.sql(
        "select * from values (0L, 'd', 1), (1L, 'u', 10), (2L, 'x', 0), (7L, 'd', 0), (8L, 'n', 8) as s(id, op, v)"
    )
    snapshot = (
        table.merge(source, on="target.id = source.id")
        .when_matched("source.op = 'd'")
        .delete()
        .when_matched("source.op = 'u'")
        .update({"v": "target.v + source.v", "k": "'U'"})
        .when_not_matched("source.op <> 'd'")
        .insert({"id": "source.id", "v": "source.v"})
        .when_not_matched_by_source("target.id = 5")
        .delete()
        .when_not_matched_by_source("target.id >= 4")
        .update({"k": "'old'"})
        .execute()
    )
    assert values(table) == {1: ("U", 11), 2: ("a", 2), 3: ("b", 3), 4: ("old", 4), 8: (None, 8)}
    assert counts(snapshot) == {
        "deleted": "2",
        "updated": "2",
        "inserted": "1",
        "matched-deleted": "1",
        "matched-updated": "1",
        "not-matched-by-source-deleted": "1",
        "not-matched-by-source-updated": "1",
        "unchanged": "1",
        "copied": "2" if mode == "copy-on-write" else "0",
    }
    assert table.check().ok


@pytest.mark.extended
def test_converted_arrow_types_change_rows_like_local_changes(spark: SparkSession, lake: frazil.Lake) -> None:
    ddl = "u uuid, n timestamp, z timestamptz, t time, f fixed(3), s struct<u: uuid>"
    moment = datetime.datetime(2024, 2, 29, 23, 30)

    def rows(*numbers: int) -> list[dict[str, Any]]:
        return [
            {
                "u": uuid.UUID(int=at),
                "n": moment + datetime.timedelta(hours=at),
                "z": moment.replace(tzinfo=datetime.UTC) + datetime.timedelta(hours=at),
                "t": datetime.time(at, 0, 0, 1),
                "f": bytes([at, 0, 255]),
                "s": {"u": uuid.UUID(int=at)},
            }
            for at in numbers
        ]

    found = []
    for engine in ("spark", "local"):
        table = lake.create_table(f"db.{engine}", ddl)
        table.append(rows(1, 2, 3))
        source = table.scan().to_arrow().slice(0, 2)
        changed = pa.concat_tables([source.slice(0, 1), table.scan().to_arrow().slice(2, 1)])
        changed = changed.set_column(0, table.scan().arrow_schema.field(0), source.column("u").slice(0, 2))
        table.upsert(changed, keys=["u"], engine=engine)
        table.upsert(rows(7), keys=["u"], engine=engine)
        found.append(sorted(map(str, table.scan().to_arrow().to_pylist())))
    assert found[0] == found[1]
    table = lake.table("db.spark")
    table.merge(table.scan().to_arrow(), "target.u = source.u", engine="spark").when_matched().delete().execute()
    assert table.scan().to_arrow().num_rows == 0


@pytest.mark.extended
@pytest.mark.parametrize("mode", MODES)
def test_both_engines_count_merged_rows_alike(spark: SparkSession, lake: frazil.Lake, mode: str) -> None:
    source = pa.table({"id": [1, 1, 2, 9], "k": ["x", "y", "c", "n"], "v": pa.array([5, 6, 2, 9], pa.int32())})
    once = source.slice(1)
    changes: list[Callable[[frazil.Table, Any], Any]] = [
        lambda table, engine: table.merge(source, "target.id = source.id", engine=engine).when_matched().delete(),
        lambda table, engine: (
            table.merge(once, "target.id = source.id", engine=engine)
            .when_matched("source.k = 'y'")
            .update_all()
            .when_not_matched()
            .insert_all()
            .when_not_matched_by_source("target.id = 5")
            .delete()
        ),
        lambda table, engine: table.merge(once, "target.id = source.id", engine=engine).when_not_matched().insert_all(),
    ]
    for number, change in enumerate(changes):
        said = []
        for engine in ("spark", "local"):
            table = make(lake, mode, name=f"db.{engine}_{number}")
            for part in (range(4), range(4, 8)):
                table.append([{"id": at, "k": "abcdefgh"[at], "v": at} for at in part])
            said.append(counts(change(table, engine).execute()))
        assert said[0] == said[1], number
        assert ("unchanged" in said[0]) == (number < 2)
    table = make(lake, mode, name="db.once")
    table.append([{"id": at, "k": "abcdefgh"[at], "v": at} for at in range(8)])
    found = counts(table.upsert(once, keys=["id"], engine="spark"))
    assert (found["updated"], found["unchanged"], found["inserted"]) == ("1", "1", "1")
    assert found["copied"] == ("7" if mode == "copy-on-write" else "0")


def counts(snapshot: Any) -> dict[str, str]:
    prefix = "spark.merge-into.num-target-rows-"
    return {key.removeprefix(prefix): value for key, value in summary(snapshot).items() if key.startswith(prefix)}


def test_ambiguous_match_is_an_error_unless_it_only_deletes(spark: SparkSession, lake: frazil.Lake) -> None:
    table = make(lake, "copy-on-write")
    table.append(numbers(spark, 0, 4))
    twice = spark.sql("select * from values (1L, 5), (1L, 6) as s(id, v)")
    with pytest.raises(frazil.InvalidRequestError, match="more than one row of the source"):
        table.merge(twice, on="target.id = source.id").when_matched().update({"v": "source.v"}).execute()
    with pytest.raises(frazil.InvalidRequestError, match="more than one row of the source"):
        table.merge(twice, on="target.id = source.id").when_matched("source.v = 5").update({"v": "0"}).execute()
    assert values(table)[1] == ("b", 1)
    table.merge(twice, on="target.id = source.id").when_matched().delete().execute()
    assert 1 not in values(table)


@pytest.mark.extended
@pytest.mark.parametrize("mode", MODES)
def test_source_without_some_columns_is_refused_unless_schema_evolves(
    spark: SparkSession, lake: frazil.Lake, mode: str
) -> None:
    table = make(lake, mode)
    table.append(numbers(spark, 0, 3))
    source = spark.sql("select 1L as id, 'new' as k, 0.5D as more union all select 9, 'new', 1.5D")

    def merge(**options: Any) -> frazil.Snapshot | None:
        merging = table.merge(source, on="target.id = source.id", **options)
        return merging.when_matched().update_all().when_not_matched().insert_all().execute()

    with pytest.raises(SchemaMismatchError, match="the source lacks v"):
        merge()
    assert table.schema.find_field("more") is None
    assert merge(merge_schema=True) == table.current_snapshot
    rows = {row["id"]: (row["k"], row["v"], row["more"]) for row in table.scan().to_arrow().to_pylist()}
    assert rows == {
        0: ("a", 0, None),
        1: ("new", 1, 0.5),
        2: ("a", 2, None),
        9: ("new", None, 1.5),
    }
    assert len(table.snapshots) == 2


@pytest.mark.extended
def test_merge_adds_the_columns_its_clauses_assign(spark: SparkSession, lake: frazil.Lake) -> None:
    table = make(lake, "merge-on-read")
    table.append(numbers(spark, 0, 3))
    source = spark.sql("select 1L as id, 0.5D as More, 'x' as unused")
    merging = table.merge(source, on="target.id = source.id", merge_schema=True)
    merging.when_matched().update({"more": "source.more"}).when_not_matched().insert({"id": "source.id"}).execute()
    assert [part.name for part in table.schema.fields] == ["id", "k", "v", "More"]
    assert {row["id"]: row["More"] for row in table.scan().to_arrow().to_pylist()} == {0: None, 1: 0.5, 2: None}


def test_insert_only_merge_changes_no_file(spark: SparkSession, lake: frazil.Lake) -> None:
    table = make(lake, "merge-on-read")
    table.append(numbers(spark, 0, 4))
    source = numbers(spark, 2, 6).withColumn("v", F.lit(0))
    said = summary(table.merge(source, on="target.id = source.id").when_not_matched().insert_all().execute())
    assert said["operation"] == "append"
    assert values(table)[3] == ("b", 3)
    assert values(table)[5] == ("b", 0)
    assert table.merge(source, on="target.id = source.id").when_not_matched().insert_all().execute() is None


@pytest.mark.extended
def test_source_values_prune_the_table(spark: SparkSession, lake: frazil.Lake) -> None:
    table = lake.create_table("db.t", "id bigint, ts timestamp, v int", partition_by=["day(ts)"])
    table.append(
        spark.sql(
            "select id, timestamp_ntz'2024-01-01' + make_interval(0, 0, 0, cast(id as int)) as ts, 1 as v "
            "from range(20)"
        )
    )
    source = spark.sql(
        "select id, timestamp_ntz'2024-01-01' + make_interval(0, 0, 0, cast(id as int)) as ts, 2 as v "
        "from values (0L), (19L) as s(id)"
    )
    before = {one.data_file.file_path for one in table.scan().plan().tasks}
    table.merge(source, on="target.ts = source.ts and target.id = source.id").when_matched().update_all().execute()
    after = {one.data_file.file_path for one in table.refresh().scan().plan().tasks}
    assert len(before - after) == 2
    assert {row["v"] for row in table.scan("id in (0, 19)").to_arrow().to_pylist()} == {2}
    assert table.scan("v = 2").count() == 2


@pytest.mark.extended
@pytest.mark.parametrize("mode", MODES)
def test_merge_reads_only_candidate_files(spark: SparkSession, lake: frazil.Lake, mode: str) -> None:
    table = make(lake, mode, partition_by=["id"])
    table.append(numbers(spark, 0, 8))
    gone = [one.data_file for one in table.scan("id = 3").plan().tasks]
    for one in gone:
        # A file that is read fails the merge; this one must not be.
        Path(one.file_path.removeprefix("file://")).write_bytes(b"broken")
    source = spark.sql("select * from values (5L, 'z', 50), (6L, 'z', 60), (100L, 'z', 1) as s(id, k, v)")
    table.merge(
        source, on="target.id = source.id"
    ).when_matched().update_all().when_not_matched().insert_all().execute()
    rows = table.refresh().scan("id > 3").to_arrow().to_pylist()
    assert {row["id"]: row["v"] for row in rows} == {4: 4, 5: 50, 6: 60, 7: 7, 100: 1}


@pytest.mark.extended
def test_nondeterministic_source_is_evaluated_once(spark: SparkSession, lake: frazil.Lake) -> None:
    table = make(lake, "copy-on-write")
    table.append(numbers(spark, 0, 20))
    runs = spark.sparkContext.accumulator(0)

    def noted(number: int) -> int:
        runs.add(1)
        return number

    note = F.udf(noted, "bigint", useArrow=False).asNondeterministic()
    source = numbers(spark, 10, 30).select(note("id").alias("id"), F.expr("uuid()").alias("k"), F.lit(0).alias("v"))
    table.upsert(source, keys=["id"])
    assert runs.value == 20
    assert len(values(table)) == 30
    assert all(len(values(table)[one][0]) == 36 for one in range(10, 30))


@pytest.mark.extended
@pytest.mark.parametrize("mode", MODES)
def test_null_matches_null_in_upsert_keys(spark: SparkSession, lake: frazil.Lake, mode: str) -> None:
    table = make(lake, mode)
    table.append(numbers(spark, 0, 4))
    rows = pa.table({"ID": pa.array([1, None], pa.int64()), "k": ["x", "null"], "v": pa.array([9, 9], pa.int32())})
    table.upsert(rows, keys=["id"])
    assert values(table) == {0: ("a", 0), 1: ("x", 9), 2: ("a", 2), 3: ("b", 3), None: ("null", 9)}
    table.upsert(rows.set_column(2, "v", pa.array([8, 8], pa.int32())), keys=["id"])
    assert values(table)[None] == ("null", 8)
    assert len(values(table)) == 5


def test_upsert_refuses_duplicate_source_keys(spark: SparkSession, lake: frazil.Lake) -> None:
    table = make(lake, "copy-on-write")
    table.append(numbers(spark, 0, 4))
    source = numbers(spark, 1, 3).unionAll(numbers(spark, 2, 4))
    with pytest.raises(frazil.InvalidRequestError, match="more than one row with id = 2"):
        table.upsert(source, keys=["id"])
    with pytest.raises(frazil.NotFoundError, match="no column 'nope'"):
        table.upsert(source, keys=["nope"])
    assert len(table.snapshots) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.update({"nope": "1"}), "the table has no such column"),
        (lambda table: table.update({"v": "'text'"}), "v: string cannot be written as int"),
        (lambda table: table.update({"v": "v + 3000000000"}), "does not fit int"),
        (lambda table: table.update({"v": "1", "V": "2"}), "twice"),
        (lambda table: table.update({"v": "nope + 1"}), "nope"),
        (lambda table: table.update({"v": "1"}, where="v +"), "Cannot update"),
        (lambda table: table.delete("nope = 1"), "nope"),
        (lambda table: table.update({}), "no column is assigned"),
    ],
)
def test_impossible_change_leaves_the_table_unchanged(
    spark: SparkSession, lake: frazil.Lake, change: Any, message: str
) -> None:
    table = make(lake, "copy-on-write")
    table.append(numbers(spark, 0, 4))
    with pytest.raises(frazil.FrazilError) as problem:
        change(table)
    assert message in str(problem.value)
    assert len(table.refresh().snapshots) == 1


def test_overwrite_replaces_matching_rows_only(spark: SparkSession, lake: frazil.Lake) -> None:
    table = make(lake, "merge-on-read", partition_by=["k"])
    table.append(numbers(spark, 0, 10))
    snapshot = table.overwrite(numbers(spark, 100, 102), where="id < 4")
    assert summary(snapshot)["operation"] == "overwrite"
    assert sorted(one for one in values(table) if one is not None) == [*range(4, 10), 100, 101]
    table.overwrite_partitions(numbers(spark, 200, 201))
    assert sorted(one for one in values(table) if one is not None) == [5, 7, 9, 101, 200]
    table.overwrite(numbers(spark, 0, 2))
    assert sorted(one for one in values(table) if one is not None) == [0, 1]
    table.overwrite(pa.table({"id": pa.array([7], pa.int64())}), where="id = 1")
    assert values(table) == {0: ("a", 0), 7: (None, None)}


def test_change_applies_to_the_named_branch(spark: SparkSession, lake: frazil.Lake) -> None:
    table = make(lake, "merge-on-read", format_version=3)
    table.append(numbers(spark, 0, 4))
    table.create_branch("audit")
    table.delete("id = 1", branch="audit")
    table.update({"v": "-1"}, where="id = 2", branch="audit", snapshot_properties={"job": "fix"})
    assert values(table)[2] == ("a", 2)
    assert len(values(table)) == 4
    assert values(table, ref="audit") == {0: ("a", 0), 2: ("a", -1), 3: ("b", 3)}


@pytest.mark.extended
def test_changes_work_after_spec_and_schema_evolution(spark: SparkSession, lake: frazil.Lake) -> None:
    for mode in MODES:
        table = make(lake, mode, partition_by=["k"], format_version=3)
        table.append(numbers(spark, 0, 6))
        with table.update_spec() as spec:
            spec.remove_field("k")
            spec.add_field("bucket(2, id)")
        with table.update_schema() as schema:
            schema.rename_column("v", "value")
            schema.add_column("day", "date", default=datetime.date(2024, 1, 1))
        table.append(numbers(spark, 6, 10).withColumnRenamed("v", "value"))
        table.update({"value": "value * 10"}, where="id in (1, 7) and day = date'2024-01-01'")
        table.delete("id in (2, 8)")
        rows = {row["id"]: row["value"] for row in table.scan().to_arrow().to_pylist()}
        assert rows == {0: 0, 1: 10, 3: 3, 4: 4, 5: 5, 6: 6, 7: 70, 9: 9}
        assert {row["day"] for row in table.scan().to_arrow().to_pylist()} == {datetime.date(2024, 1, 1)}
        assert table.check().ok
        lake.drop_table("db.t")
