"""Statements, writers and verbs on Spark beside a rival: they end like one after the other, or are refused.

The rival comes after the table was loaded, before queries are planned, or after files are written, before the commit.
It is a verb without Spark. What one after the other comes to is told by functions over rows. What replaces rows must
do more: rows that a rival adds meanwhile are there afterwards, or it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil
from frazil.errors import CommitError, FrazilError
from tests.support.races import Point, Race

pytestmark = pytest.mark.timeout(1200)

Row = tuple[int, str, str]
Model = Callable[[list[Row]], list[Row]]
START: list[Row] = [(1, "a", "v"), (2, "a", "v"), (3, "b", "v"), (4, "b", "v")]
SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.string())])


class World:
    """A table, a handle on it, and what a write to it needs."""

    def __init__(self, spark: SparkSession, lake: frazil.Lake) -> None:
        self.spark = spark
        self.lake = lake

    def sql(self, text: str) -> None:
        self.spark.sql(text).collect()

    def frame(self, *rows: Row) -> DataFrame:
        return self.spark.createDataFrame(list(rows), "id bigint, k string, v string")

    handle: frazil.Table

    @property
    def table(self) -> frazil.Table:
        """Another handle, as a rival has it."""
        return self.lake.table("db.t")

    def rows(self) -> list[Row]:
        found = self.table.scan(columns=["id", "k", "v"]).to_arrow().to_pylist()
        return sorted((row["id"], row["k"], row["v"]) for row in found)


@dataclass(frozen=True)
class Write:
    """A write, what it does to rows, and whether it puts rows in the place of others."""

    run: Callable[[World], object]
    model: Model
    replaces: bool = False


def local(*rows: Row) -> pa.Table:
    return pa.table([list(one) for one in zip(*rows, strict=True)], schema=SCHEMA)


def sql(text: str) -> Callable[[World], object]:
    return lambda world: world.sql(text)


def dynamic(text: str) -> Callable[[World], object]:
    def run(world: World) -> None:
        world.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        try:
            world.sql(text)
        finally:
            world.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

    return run


def also(*new: Row) -> Model:
    return lambda rows: [*rows, *new]


def only(*new: Row) -> Model:
    return lambda rows: list(new)


def in_place_of(kind: str, *new: Row) -> Model:
    return lambda rows: [*(one for one in rows if one[1] != kind), *new]


def where(keeps: Callable[[Row], bool]) -> Model:
    return lambda rows: [one for one in rows if keeps(one)]


def with_value(row: Row, value: str, *, ids: tuple[int, ...]) -> Row:
    return (row[0], row[1], value) if row[0] in ids else row


def merged(rows: list[Row]) -> list[Row]:
    added = [] if any(one[0] == 12 for one in rows) else [(12, "a", "n")]
    return [*(with_value(one, "n", ids=(1, 12)) for one in rows), *added]


N: Row = (10, "a", "n")
SOURCE = "values (1L, 'a', 'n'), (12L, 'a', 'n') as s(id, k, v)"
TWO: tuple[Row, Row] = ((1, "a", "n"), (12, "a", "n"))


def merge_into(world: World) -> None:
    frame = world.frame(*TWO).alias("s")
    writer = frame.mergeInto("lake.db.t", F.expr("t.id = s.id"))
    writer.whenMatched().updateAll().whenNotMatched().insertAll().merge()


WRITES: dict[str, Write] = {
    "insert into": Write(sql("insert into lake.db.t values (10, 'a', 'n')"), also(N)),
    "insert overwrite": Write(sql("insert overwrite lake.db.t values (10, 'a', 'n')"), only(N), True),
    "insert overwrite of itself": Write(
        sql("insert overwrite lake.db.t select id, k, 'w' from lake.db.t"),
        lambda rows: [(one[0], one[1], "w") for one in rows],
        True,
    ),
    "insert overwrite, dynamic": Write(
        dynamic("insert overwrite lake.db.t values (10, 'a', 'n')"), in_place_of("a", N), True
    ),
    "insert overwrite partition": Write(
        sql("insert overwrite lake.db.t partition (k = 'a') select 10L, 'n'"), in_place_of("a", N), True
    ),
    "insert replace where": Write(
        sql("insert into lake.db.t replace where id = 1 values (10, 'a', 'n')"),
        lambda rows: [*(one for one in rows if one[0] != 1), N],
        True,
    ),
    "delete rows": Write(sql("delete from lake.db.t where id = 1"), where(lambda one: one[0] != 1)),
    "delete files": Write(sql("delete from lake.db.t where k = 'a'"), where(lambda one: one[1] != "a")),
    "update": Write(
        sql("update lake.db.t set v = 'n' where id = 1"),
        lambda rows: [with_value(one, "n", ids=(1,)) for one in rows],
    ),
    "merge": Write(
        sql(
            f"merge into lake.db.t t using (select * from {SOURCE}) s on t.id = s.id "
            "when matched then update set v = s.v when not matched then insert *"
        ),
        merged,
    ),
    "truncate": Write(sql("truncate table lake.db.t"), only()),
    "create or replace as": Write(
        sql(
            "create or replace table lake.db.t using iceberg partitioned by (k) as select 10L as id, 'a' as k, 'n' as v"
        ),
        only(N),
        True,
    ),
    "replace as, of itself": Write(
        sql("replace table lake.db.t using iceberg as select id, k, 'w' as v from lake.db.t"),
        lambda rows: [(one[0], one[1], "w") for one in rows],
        True,
    ),
    "writeTo append": Write(lambda world: world.frame(N).writeTo("lake.db.t").append(), also(N)),
    "writeTo overwrite": Write(
        lambda world: world.frame(N).writeTo("lake.db.t").overwrite(F.col("k") == "a"), in_place_of("a", N), True
    ),
    "writeTo overwritePartitions": Write(
        lambda world: world.frame(N).writeTo("lake.db.t").overwritePartitions(), in_place_of("a", N), True
    ),
    "writeTo createOrReplace": Write(
        lambda world: world.frame(N).writeTo("lake.db.t").createOrReplace(), only(N), True
    ),
    "writeTo replace": Write(lambda world: world.frame(N).writeTo("lake.db.t").replace(), only(N), True),
    "insertInto": Write(lambda world: world.frame(N).write.insertInto("lake.db.t"), also(N)),
    "insertInto, overwrite": Write(
        lambda world: world.frame(N).write.insertInto("lake.db.t", overwrite=True), only(N), True
    ),
    "saveAsTable append": Write(lambda world: world.frame(N).write.mode("append").saveAsTable("lake.db.t"), also(N)),
    "saveAsTable overwrite": Write(
        lambda world: world.frame(N).write.mode("overwrite").saveAsTable("lake.db.t"), only(N), True
    ),
    "mergeInto": Write(merge_into, merged),
    "t.overwrite": Write(lambda world: world.handle.overwrite(world.frame(N)), only(N), True),
    "t.overwrite where": Write(
        lambda world: world.handle.overwrite(world.frame(N), where="id = 1"),
        lambda rows: [*(one for one in rows if one[0] != 1), N],
        True,
    ),
    "t.overwrite_partitions": Write(
        lambda world: world.handle.overwrite_partitions(world.frame(N)), in_place_of("a", N), True
    ),
    "t.delete": Write(lambda world: world.handle.delete("id = 1"), where(lambda one: one[0] != 1)),
    "t.update": Write(
        lambda world: world.handle.update({"v": "'n'"}, where="id = 1"),
        lambda rows: [with_value(one, "n", ids=(1,)) for one in rows],
    ),
    "t.upsert": Write(lambda world: world.handle.upsert(world.frame(*TWO), keys=["id"]), merged),
}


def add_column(world: World) -> None:
    with world.table.update_schema() as update:
        update.add_column("w", "string")


def recreate(world: World) -> None:
    world.lake.drop_table("db.t")
    world.lake.create_table("db.t", "id bigint, k string, v string").append(local((30, "a", "r")))


@dataclass(frozen=True)
class Rival:
    """What another writer does, in this process, and what it does to rows. `adds` are rows that must not be lost."""

    run: Callable[[World], object]
    model: Model
    adds: tuple[Row, ...] = ()


R: Row = (99, "a", "r")
ELSEWHERE: Row = (98, "z", "r")
SAME: Row = (12, "a", "r")
RIVALS: dict[str, Rival] = {
    "append": Rival(lambda world: world.table.append(local(R)), also(R), (R,)),
    "append elsewhere": Rival(lambda world: world.table.append(local(ELSEWHERE)), also(ELSEWHERE), (ELSEWHERE,)),
    "append of the same key": Rival(lambda world: world.table.append(local(SAME)), also(SAME)),
    "delete": Rival(lambda world: world.table.delete("k = 'a'"), where(lambda one: one[1] != "a")),
    "delete elsewhere": Rival(lambda world: world.table.delete("k = 'b'"), where(lambda one: one[1] != "b")),
    "overwrite": Rival(lambda world: world.table.overwrite(local(R)), only(R)),
    "overwrite partitions": Rival(lambda world: world.table.overwrite_partitions(local(R)), in_place_of("a", R)),
    "compact": Rival(lambda world: world.table.maintain.rewrite_data_files(rewrite_all=True), lambda rows: rows),
    "add column": Rival(add_column, lambda rows: rows),
    "drop and create": Rival(recreate, only((30, "a", "r"))),
}


@pytest.fixture
def world(spark: SparkSession, lake: frazil.Lake) -> Iterator[World]:
    frazil.attach(spark, lake)
    yield World(spark, lake)
    frazil.detach(spark)


def make(world: World, mode: str, isolation: str, version: int) -> None:
    if world.lake.table_exists("db.t"):
        world.lake.drop_table("db.t")
    properties = {"commit.retry.min-wait-ms": "1"}
    for verb in ("delete", "update", "merge"):
        properties |= {f"write.{verb}.mode": mode, f"write.{verb}.isolation-level": isolation}
    table = world.lake.create_table(
        "db.t", "id bigint, k string, v string", partition_by=["k"], properties=properties, format_version=version
    )
    table.append(local(*START))
    world.handle = table


def race(
    world: World,
    name: str,
    other: str,
    point: Point,
    mode: str = "copy-on-write",
    isolation: str = "serializable",
    version: int = 2,
) -> FrazilError | PySparkException | None:
    write, rival = WRITES[name], RIVALS[other]
    make(world, mode, isolation, version)
    refused: FrazilError | PySparkException | None = None
    with Race(world.lake.catalog, point, lambda: rival.run(world)) as racing:
        try:
            write.run(world)
        except (FrazilError, PySparkException) as error:
            refused = error
    found = world.rows()
    told = f"{name} beside {other} at {point}, {mode}, {isolation}, v{version}: {found}, {refused!r}"
    assert racing.has_run, told
    if refused is not None:
        assert found == sorted(rival.model(START)), told
        return refused
    orders = (rival.model(write.model(START)), write.model(rival.model(START)))
    assert found in [sorted(one) for one in orders], told
    if write.replaces:
        assert set(rival.adds) <= set(found), told
    return None


def is_conflict(error: FrazilError | PySparkException) -> bool:
    """Return whether a verb or a statement was refused for what others did; 40001 is SQL's word for that."""
    return isinstance(error, CommitError) or (isinstance(error, PySparkException) and error.getSqlState() == "40001")


@pytest.mark.parametrize("name", WRITES)
def test_write_beside_an_append_it_would_replace(world: World, name: str) -> None:
    refused = race(world, name, "append", "commit")
    assert refused is None or is_conflict(refused)


ROW_LEVEL = [
    name
    for name in WRITES
    if name.endswith(("where", "delete", "update", "upsert")) or name in ("delete rows", "merge")
]
"""Writes that the mode and the isolation level matter to."""


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITES)
def test_every_write_beside_every_rival_at_every_point(world: World, name: str) -> None:
    for other in RIVALS:
        for point in ("begun", "commit"):
            race(world, name, other, point)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode, isolation, version",
    [("copy-on-write", "snapshot", 2), ("merge-on-read", "serializable", 2), ("merge-on-read", "snapshot", 3)],
)
@pytest.mark.parametrize("name", ROW_LEVEL)
def test_every_row_change_beside_every_rival_in_every_mode(
    world: World, name: str, mode: str, isolation: str, version: int
) -> None:
    for other in RIVALS:
        race(world, name, other, "commit", mode, isolation, version)


CREATING = [
    "create table lake.db.n using iceberg as select 1L as id",
    "create or replace table lake.db.n using iceberg as select 1L as id",
]


@pytest.mark.parametrize("text", CREATING)
def test_table_created_concurrently_by_a_rival_is_kept(world: World, text: str) -> None:
    def create() -> None:
        world.lake.create_table("db.n", "id bigint").append(pa.table({"id": [9]}))

    with Race(world.lake.catalog, "commit", create), pytest.raises(PySparkException, match=r"there is a table|commit"):
        world.sql(text)
    assert world.lake.table("db.n").scan().to_arrow().to_pylist() == [{"id": 9}]


def test_table_dropped_concurrently_is_not_replaced(world: World) -> None:
    make(world, "copy-on-write", "serializable", 2)
    with Race(world.lake.catalog, "commit", lambda: world.lake.drop_table("db.t")):
        with pytest.raises(PySparkException, match=r"no such table|commit"):
            WRITES["create or replace as"].run(world)
    assert not world.lake.table_exists("db.t")


def test_refused_replacement_leaves_no_files(world: World) -> None:
    race(world, "create or replace as", "append", "commit")
    table = world.table
    live = set(table.inspect.all_files().column("file_path").to_pylist())
    assert {one.path for one in table.state.storage.list(f"{table.location}/data")} == live


@pytest.mark.parametrize("name", ["insert into", "insert overwrite", "update", "merge", "create or replace as"])
def test_statement_loads_its_table_once(world: World, name: str) -> None:
    make(world, "copy-on-write", "serializable", 2)
    with Race(world.lake.catalog) as counting:
        WRITES[name].run(world)
    assert counting.loads == 1
