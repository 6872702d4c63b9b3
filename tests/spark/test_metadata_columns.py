"""Metadata columns in every way to read, over every kind of deletes: deleted rows are there where `_deleted` is named.

A table's rows are known (`Kept`): which file and place each has, and which are deleted. A way to read (`WAYS`) takes
expressions and a condition, and must give what the model gives. Rows that are deleted count where the expressions or
the condition name `_deleted`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil
from frazil.spec.schema import Schema
from frazil.spec.types import INT, STRING, NestedField
from frazil.storage.local import LocalStorage
from tests.support.tables import TableBuilder

Row = dict[str, Any]
SCHEMA = Schema((NestedField(1, "k", INT), NestedField(2, "p", INT), NestedField(3, "s", STRING)))
BRANCH = "audit"


@dataclass(frozen=True)
class Kept:
    """A table and its rows, deleted ones too."""

    lake: frazil.Lake
    name: str
    rows: list[Row]

    @property
    def sql_name(self) -> str:
        return f"lake.db.{self.name}"


@dataclass(frozen=True)
class Question:
    columns: tuple[str, ...]
    where: str
    answer: Callable[[Row], tuple[Any, ...]]
    test: Callable[[Row], bool] = lambda row: True
    names_deleted: bool = False
    needs_lineage: bool = False

    @property
    def select(self) -> str:
        return ", ".join(f"{one} AS c{at}" for at, one in enumerate(self.columns))

    def expected(self, rows: list[Row]) -> list[tuple[Any, ...]]:
        kept = [row for row in rows if (self.names_deleted or not row["_deleted"]) and self.test(row)]
        return sorted(self.answer(row) for row in kept)


PLACES = Question(
    ("k", "_pos", "_file", "_spec_id", "_partition.p"),
    "_pos >= 1 and k < 12",
    lambda row: (row["k"], row["_pos"], row["_file"], 0, row["p"]),
    lambda row: row["_pos"] >= 1 and row["k"] < 12,
)
DELETED = Question(("k", "_deleted"), "_pos >= 0", lambda row: (row["k"], row["_deleted"]), names_deleted=True)
QUESTIONS = {
    "places": PLACES,
    "deleted": DELETED,
    "condition on _pos": Question(("k",), "_pos = 2", lambda row: (row["k"],), lambda row: row["_pos"] == 2),
    "condition on _deleted": Question(
        ("k", "_pos"),
        "_deleted",
        lambda row: (row["k"], row["_pos"]),
        lambda row: bool(row["_deleted"]),
        names_deleted=True,
    ),
    "lineage": Question(
        ("k", "_row_id", "_last_updated_sequence_number"),
        "_row_id > 0",
        lambda row: (row["k"], row["_row_id"], row["_last_updated_sequence_number"]),
        lambda row: row["_row_id"] > 0,
        needs_lineage=True,
    ),
}

# Deletes: what each kind writes beside two files of five rows, in partitions 0 and 1, and the keys that it deletes.


def _by_file(table: TableBuilder, files: Sequence[Any]) -> tuple[list[Any], set[int]]:
    return [table.write_position_deletes({files[0]: [0, 3]}, names_file=True)], {0, 3}


def _by_partition(table: TableBuilder, files: Sequence[Any]) -> tuple[list[Any], set[int]]:
    return [table.write_position_deletes({files[0]: [1]}), table.write_position_deletes({files[1]: [4]})], {1, 9}


def _vectors(table: TableBuilder, files: Sequence[Any]) -> tuple[list[Any], set[int]]:
    return table.write_vectors({files[0]: [0, 3], files[1]: [2]}), {0, 3, 7}


def _equality(table: TableBuilder, files: Sequence[Any]) -> tuple[list[Any], set[int]]:
    return [table.write_equality_deletes([{"k": 2}, {"k": 6}], ["k"], partition=(part,)) for part in (0, 1)], {2, 6}


def _together(*kinds: Any) -> Any:
    def write(table: TableBuilder, files: Sequence[Any]) -> tuple[list[Any], set[int]]:
        found = [one(table, files) for one in kinds]
        return [file for files, _ in found for file in files], {key for _, keys in found for key in keys}

    return write


KINDS: dict[str, tuple[int, Any]] = {
    "v1_none": (1, None),
    "v2_none": (2, None),
    "v3_none": (3, None),
    "v2_by_file": (2, _by_file),
    "v2_by_partition": (2, _by_partition),
    "v2_equality": (2, _equality),
    "v2_all": (2, _together(_by_file, _by_partition, _equality)),
    "v3_vectors": (3, _vectors),
    "v3_equality": (3, _equality),
    "v3_all": (3, _together(_vectors, _equality)),
    "v2_rewritten": (2, "rewrite"),
    "v3_rewritten": (3, "rewrite"),
}


def _build(lake: frazil.Lake, folder: Path, name: str) -> Kept:
    version, write = KINDS[name]
    table = TableBuilder(
        SCHEMA,
        storage=LocalStorage(),
        location=f"file://{folder}/{name}",
        partition_by=["p"],
        format_version=version,
        identifier=("db", name),
        properties={"write.delete.mode": "copy-on-write"},
    )
    files = [
        table.write_data([{"k": start + at, "p": part, "s": "x"} for at in range(5)])
        for part, start in ((0, 0), (1, 5))
    ]
    table.commit(*files)
    gone: set[int] = set()
    if callable(write):
        deletes, gone = write(table, files)
        table.commit(*deletes)
    # A file that comes later: deletes of before are not about it.
    files += table.append([{"k": 10 + at, "p": 0, "s": "x"} for at in range(3)])
    first_keys = {file.file_path: 5 * at for at, file in enumerate(files)}
    lake.register_table(f"db.{name}", str(table.load().metadata_location))
    if write == "rewrite":
        lake.table(f"db.{name}").delete("k in (0, 7, 11)")
    opened = lake.table(f"db.{name}")
    opened.create_branch(BRANCH)
    if write == "rewrite":
        columns = ["k", "p", "_file", "_pos", *(["_row_id", "_last_updated_sequence_number"] if version == 3 else [])]
        rows = [row | {"_deleted": False} for row in opened.scan(columns=columns).to_arrow().to_pylist()]
        assert {row["k"] for row in rows} == set(range(13)) - {0, 7, 11}
        return Kept(lake, name, rows)
    rows = []
    for entry in table.live_files():
        file = entry.data_file
        if file.content != 0:
            continue
        first = first_keys[file.file_path]
        for at in range(file.record_count):
            row = {"k": first + at, "p": file.partition[0], "_file": file.file_path, "_pos": at}
            if version == 3:
                assert file.first_row_id is not None
                row |= {"_row_id": file.first_row_id + at, "_last_updated_sequence_number": entry.sequence_number}
            rows.append(row | {"_deleted": first + at in gone})
    return Kept(lake, name, sorted(rows, key=lambda row: int(row["k"])))


# Ways to read


def _sql(text: str) -> Any:
    def read(spark: SparkSession, table: Kept, asked: Question) -> DataFrame:
        snapshot = str(table.lake.table(f"db.{table.name}").metadata.current_snapshot_id)
        filled = text.replace("{c}", asked.select).replace("{w}", asked.where).replace("{t}", table.sql_name)
        for statement in (statements := filled.replace("{snapshot}", snapshot).split(";"))[:-1]:
            spark.sql(statement)
        return spark.sql(statements[-1])

    return read


def _frame(make: Callable[[SparkSession, str], DataFrame]) -> Any:
    def read(spark: SparkSession, table: Kept, asked: Question) -> DataFrame:
        columns = [F.expr(one).alias(f"c{at}") for at, one in enumerate(asked.columns)]
        return make(spark, table.sql_name).where(asked.where).select(*columns)

    return read


def _scanned(spark: SparkSession, table: Kept, asked: Question) -> DataFrame:
    known = ("k", "_pos", "_file", "_spec_id", "_partition", "_deleted", "_row_id", "_last_updated_sequence_number")
    names = [one for one in known if one in f"{asked.columns} {asked.where}"]
    frame: DataFrame = table.lake.table(f"db.{table.name}").scan(columns=names).to_spark(spark)
    return frame.where(asked.where).selectExpr(*asked.columns)


WAYS: dict[str, Callable[[SparkSession, Kept, Question], DataFrame]] = {
    "select": _sql("SELECT {c} FROM {t} WHERE {w}"),
    "alias": _sql("SELECT {c} FROM {t} AS x WHERE {w}"),
    "with": _sql("WITH q AS (SELECT {c} FROM {t} WHERE {w}) SELECT * FROM q"),
    "with twice": _sql("WITH q AS (SELECT {c} FROM {t} WHERE {w}) SELECT a.* FROM q a JOIN q b ON a.c0 = b.c0"),
    "subquery": _sql("SELECT * FROM (SELECT {c} FROM {t} WHERE {w}) q"),
    "join": _sql(
        "SELECT {c} FROM {t} x JOIN (SELECT k AS key, max(_pos) FROM {t} GROUP BY k) y "
        "ON 10 + 2 * (x.k % 2) = y.key WHERE {w}"
    ),
    "union": _sql("SELECT {c} FROM {t} WHERE {w} AND k < 6 UNION ALL SELECT {c} FROM {t} WHERE k >= 6 AND {w}"),
    "exists": _sql("SELECT {c} FROM {t} x WHERE {w} AND EXISTS (SELECT 1 FROM {t} y WHERE y._file = x._file)"),
    "in": _sql("SELECT {c} FROM {t} WHERE {w} AND _file IN (SELECT _file FROM {t})"),
    "order": _sql("SELECT * FROM (SELECT {c} FROM {t} WHERE {w} ORDER BY _pos LIMIT 100)"),
    "view": _sql("CREATE OR REPLACE VIEW lake.db.v AS SELECT {c} FROM {t} WHERE {w};SELECT * FROM lake.db.v"),
    "temporary view": _sql("CREATE OR REPLACE TEMPORARY VIEW tv AS SELECT {c} FROM {t} WHERE {w};SELECT * FROM tv"),
    "create table": _sql("CREATE OR REPLACE TABLE lake.db.c AS SELECT {c} FROM {t} WHERE {w};SELECT * FROM lake.db.c"),
    "insert": _sql(
        "CREATE OR REPLACE TABLE lake.db.i AS SELECT {c} FROM {t} WHERE false;"
        "INSERT INTO lake.db.i SELECT {c} FROM {t} WHERE {w};SELECT * FROM lake.db.i"
    ),
    "time travel": _sql("SELECT {c} FROM {t} VERSION AS OF {snapshot} WHERE {w}"),
    "branch": _sql(f"SELECT {{c}} FROM {{t}}.branch_{BRANCH} WHERE {{w}}"),
    "spark.table": _frame(lambda spark, name: spark.table(name)),
    "spark.read.table": _frame(lambda spark, name: spark.read.option("branch", BRANCH).table(name)),
    "load": _frame(lambda spark, name: spark.read.format("iceberg").load(name)),
    "aliased frame": _frame(lambda spark, name: spark.table(name).alias("x").repartition(2)),
    "scan": _scanned,
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Kept]]:
    folder = tmp_path_factory.mktemp("metadata-columns")
    made: dict[str, Kept] = {}
    with frazil.connect(folder / "lake") as lake:
        lake.create_namespace("db")
        frazil.attach(spark, lake)

        def table(name: str) -> Kept:
            if name not in made:
                made[name] = _build(lake, folder, name)
            return made[name]

        yield table
        frazil.detach(spark)


def _rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.extended
@pytest.mark.parametrize(
    "kind, way",
    [*(("v3_all", way) for way in WAYS), *(("v2_all", way) for way in ("select", "insert", "time travel", "load"))],
)
def test_deleted_rows_appear_only_on_request(
    spark: SparkSession, tables: Callable[[str], Kept], kind: str, way: str
) -> None:
    for asked in (PLACES, DELETED):
        assert _rows(WAYS[way](spark, tables(kind), asked)) == asked.expected(tables(kind).rows)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_metadata_columns_work_on_every_kind_of_table_and_reader(
    spark: SparkSession, tables: Callable[[str], Kept], kind: str, way: str
) -> None:
    table = tables(kind)
    for asked in QUESTIONS.values():
        if KINDS[kind][0] >= 3 or not asked.needs_lineage:
            assert _rows(WAYS[way](spark, table, asked)) == asked.expected(table.rows), asked.columns


@pytest.mark.extended
@pytest.mark.parametrize("kind", KINDS)
def test_arrow_has_the_same_metadata_columns(tables: Callable[[str], Kept], kind: str) -> None:
    table = tables(kind)
    scan = table.lake.table(f"db.{table.name}").scan
    found = scan(columns=["k", "_pos", "_file", "_spec_id", "_partition"]).to_arrow().to_pylist()
    assert sorted((row["k"], row["_pos"], row["_file"], row["_spec_id"], row["_partition"]["p"]) for row in found) == [
        (row["k"], row["_pos"], row["_file"], 0, row["p"])
        for row in sorted(table.rows, key=lambda row: row["k"])
        if not row["_deleted"]
    ]
    shown = scan(columns=["k", "_deleted"]).to_arrow().to_pylist()
    assert sorted((row["k"], row["_deleted"]) for row in shown) == DELETED.expected(table.rows)


# Where a name is looked up


def _keys(spark: SparkSession, text: str) -> list[Any]:
    return sorted(row[0] for row in spark.sql(text).collect())


def _gone(table: Kept) -> list[int]:
    return [row["k"] for row in table.rows if row["_deleted"]]


def _live(table: Kept) -> list[int]:
    return [row["k"] for row in table.rows if not row["_deleted"]]


@pytest.mark.extended
def test_only_the_requested_table_shows_its_deleted_rows(spark: SparkSession, tables: Callable[[str], Kept]) -> None:
    table = tables("v3_all")
    t = table.sql_name
    joined = f"FROM {t} a JOIN {t} b ON a._file = b._file AND a._pos = b._pos"
    assert _keys(spark, f"SELECT a.k {joined}") == _live(table)
    assert _keys(spark, f"SELECT a.k {joined} WHERE a._deleted OR NOT a._deleted") == _live(table)
    assert _keys(spark, f"SELECT a.k {joined} WHERE a._deleted AND b._deleted") == _gone(table)
    outer = f"FROM {t} a LEFT JOIN {t} b ON a._file = b._file AND a._pos = b._pos"
    assert _keys(spark, f"SELECT a.k {outer} WHERE a._deleted AND b.k IS NULL") == _gone(table)
    assert _keys(spark, f"SELECT k FROM {t} WHERE k NOT IN (SELECT k FROM {t} WHERE _deleted)") == _live(table)
    assert _keys(spark, f"SELECT k FROM {t} UNION ALL SELECT k FROM {t} WHERE _deleted") == list(range(13))
    assert _keys(spark, f"SELECT k FROM {t} x WHERE _deleted = (SELECT max(_deleted) FROM {t} y WHERE y.k = x.k)") == [
        *range(13)
    ]


@pytest.mark.extended
def test_similar_text_comments_and_columns_do_not_show_deleted_rows(
    spark: SparkSession, tables: Callable[[str], Kept]
) -> None:
    table = tables("v2_all")
    t, live = table.sql_name, _live(table)
    assert _keys(spark, f"SELECT k FROM {t} WHERE s <> '_deleted' -- _deleted\n AND _pos >= 0") == live
    assert _keys(spark, f"SELECT k, x._deleted FROM {t} CROSS JOIN (SELECT true AS _deleted) x WHERE _pos >= 0") == live
    assert _keys(spark, f"SELECT k FROM (SELECT k, _pos AS _deleted FROM {t}) WHERE _deleted >= 0") == live
    assert spark.sql(f"SELECT *, _pos FROM {t}").columns == ["k", "p", "s", "_pos"]
    assert spark.sql(f"SELECT x.*, y.* FROM {t} x JOIN {t} y ON x._pos = y._pos").columns == ["k", "p", "s"] * 2


@pytest.mark.extended
def test_count_matches_the_rows_shown(spark: SparkSession, tables: Callable[[str], Kept]) -> None:
    table = tables("v3_all")
    t = table.sql_name
    shown = spark.sql(f"SELECT k, _deleted FROM {t}")
    assert shown.count() == len(shown.collect()) == 13
    assert shown.select("k").distinct().count() == 13
    assert spark.sql(f"SELECT k FROM (SELECT k, _deleted FROM {t})").count() == 13
    assert spark.table(t).count() == spark.sql(f"SELECT k, _pos FROM {t}").count() == len(_live(table))


@pytest.mark.extended
def test_dataframes_offer_metadata_columns_like_sql(spark: SparkSession, tables: Callable[[str], Kept]) -> None:
    table = tables("v3_all")
    live = _live(table)
    frame = spark.table(table.sql_name)

    def keys(found: DataFrame) -> list[Any]:
        return sorted(row["k"] for row in found.collect())

    assert frame.columns == frame.where("_pos >= 0").columns == ["k", "p", "s"]
    assert keys(frame.select("k", frame["_pos"])) == live
    assert keys(frame.select("k").where("_pos >= 0")) == live
    assert keys(frame.where("_pos >= 0").select("k", "_file")) == live
    assert keys(frame.withColumn("place", F.col("_pos"))) == live
    assert keys(frame.orderBy("_pos", "_file")) == live
    assert keys(frame.select("k", "_pos").where("_deleted")) == _gone(table)
    if not spark.version.startswith("4.0."):  # where a join by hidden columns fails, whatever the table
        assert keys(frame.alias("a").join(frame.alias("b"), F.expr("a._row_id = b._row_id")).select("a.k")) == live
    assert keys(frame.unionAll(frame.where("_deleted"))) == list(range(13))
    assert frame.groupBy("_file").count().count() == 3
    cached = frame.select("k", "_pos").cache()
    assert keys(cached) == live
    cached.unpersist()


@pytest.mark.extended
def test_table_columns_with_metadata_names_are_kept(spark: SparkSession, tables: Callable[[str], Kept]) -> None:
    tables("v2_all")
    spark.sql("CREATE TABLE lake.db.own (k INT, _pos STRING)")
    spark.sql("INSERT INTO lake.db.own VALUES (1, 'mine')")
    spark.sql("DELETE FROM lake.db.own WHERE _pos = 'yours'")
    found = spark.sql("SELECT *, _pos, _spec_id FROM lake.db.own")
    assert found.columns == ["k", "_pos", "_pos", "_spec_id"]
    assert _rows(found) == [(1, "mine", "mine", 0)]


@pytest.mark.extended
def test_lake_functions_and_metadata_columns_combine(spark: SparkSession, tables: Callable[[str], Kept]) -> None:
    table = tables("v2_all")
    assert _keys(spark, f"SELECT k FROM {table.sql_name} WHERE lake.system.bucket(4, k) >= 0 AND _pos >= 0") == _live(
        table
    )
    (row,) = spark.sql(f"SELECT lake.system.truncate(10, k), _pos FROM {table.sql_name} WHERE k = 11").collect()
    assert tuple(row) == (10, 1)


@pytest.mark.extended
def test_frame_outlives_its_detached_lake(spark: SparkSession, tables: Callable[[str], Kept]) -> None:
    table = tables("v3_all")
    frame = spark.table(table.sql_name)
    frazil.detach(spark)
    try:
        assert sorted(row["k"] for row in frame.select("k", "_pos").collect()) == _live(table)
        assert sorted(row["k"] for row in frame.where("_deleted").collect()) == _gone(table)
    finally:
        frazil.attach(spark, table.lake)


def test_views_and_metadata_tables_have_no_metadata_columns(spark: SparkSession, tables: Callable[[str], Kept]) -> None:
    table = tables("v2_all")
    with pytest.raises(AnalysisException, match="_pos"):
        spark.sql(f"SELECT _pos FROM {table.sql_name}.files")
    with pytest.raises(AnalysisException, match="_row_id"):
        spark.sql(f"SELECT _row_id FROM {table.sql_name}")


# Changes of rows


@pytest.mark.extended
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_change_conditions_may_use_file_and_position(
    spark: SparkSession, tables: Callable[[str], Kept], mode: str
) -> None:
    tables("v2_all")
    t = f"lake.db.change_{mode[0]}"
    modes = ", ".join(f"'write.{one}.mode' = '{mode}'" for one in ("delete", "update", "merge"))
    spark.sql(f"CREATE TABLE {t} (k INT, p INT) PARTITIONED BY (p) TBLPROPERTIES ('format-version' = '3', {modes})")
    for part in (0, 1):
        spark.sql(f"INSERT INTO {t} SELECT /*+ coalesce(1) */ id + {part}0, {part} FROM range(4)")
    path = spark.sql(f"SELECT first(_file) FROM {t} WHERE p = 1").first()[0]  # type: ignore[index]
    spark.sql(f"DELETE FROM {t} WHERE _file = '{path}' AND k > 12")
    assert _keys(spark, f"SELECT k FROM {t}") == [0, 1, 2, 3, 10, 11, 12]
    spark.sql(f"DELETE FROM {t} x WHERE x._pos = 2 AND x._partition.p = 0")
    assert _keys(spark, f"SELECT k FROM {t}") == [0, 1, 3, 10, 11, 12]
    spark.sql(f"UPDATE {t} SET k = k + 100 WHERE _row_id = 0 AND _spec_id = 0")
    assert _keys(spark, f"SELECT k FROM {t}") == [1, 3, 10, 11, 12, 100]
    spark.sql(
        f"MERGE INTO {t} t USING (SELECT 3 AS v) s ON t.k = s.v OR t._partition.p = 1 "
        "WHEN MATCHED AND t._file LIKE '%.parquet' AND t.k <> 3 THEN UPDATE SET k = t.k + t._spec_id + 1000 "
        "WHEN MATCHED THEN DELETE"
    )
    assert _keys(spark, f"SELECT k FROM {t}") == [1, 100, 1010, 1011, 1012]
    with pytest.raises(PySparkException, match="_deleted"):
        spark.sql(f"DELETE FROM {t} WHERE _deleted")


def test_subquery_of_a_change_uses_columns_of_its_own_table(spark: SparkSession, tables: Callable[[str], Kept]) -> None:
    tables("v2_all")
    for name in ("inner", "outer"):
        spark.sql(f"CREATE TABLE lake.db.{name}_rows (k INT)")
        spark.sql(f"INSERT INTO lake.db.{name}_rows SELECT /*+ coalesce(1) */ id FROM range(4)")
    spark.sql("DELETE FROM lake.db.outer_rows WHERE k + 1 IN (SELECT k FROM lake.db.inner_rows WHERE _pos = 2)")
    assert _keys(spark, "SELECT k FROM lake.db.outer_rows") == [0, 2, 3]
    spark.sql(
        "DELETE FROM lake.db.outer_rows o WHERE EXISTS (SELECT 1 FROM lake.db.inner_rows i WHERE i._pos < o._pos)"
    )
    assert _keys(spark, "SELECT k FROM lake.db.outer_rows") == [0]


# What is shown


def test_unpartitioned_table_has_an_empty_partition_column(spark: SparkSession, tables: Callable[[str], Kept]) -> None:
    lake = tables("v2_all").lake
    spark.sql("CREATE TABLE lake.db.flat (k INT)")
    spark.sql("INSERT INTO lake.db.flat VALUES (1)")
    assert _rows(spark.sql("SELECT k, _partition FROM lake.db.flat WHERE _partition IS NULL")) == [(1, None)]
    assert lake.table("db.flat").scan(columns=["_partition"]).to_arrow().to_pylist() == [{"_partition": None}]


@pytest.mark.extended
@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_struct_without_fields_is_shown_empty(
    spark: SparkSession, tables: Callable[[str], Kept], file_format: str
) -> None:
    tables("v2_all")
    t = f"lake.db.bare_{file_format}"
    spark.sql(
        f"CREATE TABLE {t} (k INT, s STRUCT<a: INT>, l ARRAY<STRUCT<b: INT>>) "
        f"TBLPROPERTIES ('write.format.default' = '{file_format}')"
    )
    spark.sql(f"INSERT INTO {t} VALUES (1, struct(1), array(struct(1), null)), (2, NULL, NULL)")
    spark.sql(f"ALTER TABLE {t} DROP COLUMN s.a")
    spark.sql(f"ALTER TABLE {t} DROP COLUMN l.element.b")
    found = spark.sql(f"SELECT * FROM {t} ORDER BY k")
    assert found.dtypes == [("k", "int"), ("s", "struct<>"), ("l", "array<struct<>>")]
    assert [tuple(row) for row in found.collect()] == [(1, (), [(), None]), (2, None, None)]
    assert _keys(spark, f"SELECT k FROM {t} WHERE s IS NULL") == [2]


def test_metadata_tables_are_described_with_spark_types(spark: SparkSession, tables: Callable[[str], Kept]) -> None:
    t = tables("v2_all").sql_name
    for name in ("snapshots", "files", "partitions", "refs", "manifests", "all_entries", "changes"):
        described = [tuple(row)[:2] for row in spark.sql(f"DESCRIBE {t}.{name}").collect()]
        assert described == spark.table(f"{t}.{name}").dtypes
