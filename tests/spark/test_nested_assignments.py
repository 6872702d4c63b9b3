"""Assignments of structs, and of parts of them, by every statement and verb, against a model of Spark's rules.

    whole values    by name in UPDATE, MERGE, INSERT BY NAME, `writeTo` and the verbs; by place in INSERT and
                    `insertInto`; either way with all parts and no others, in structs, lists and maps
    parts           the struct is made anew of the new value and the old parts, which are null where there was none
    evolution       parts that the data lacks are null; `UPDATE SET *` keeps those of the table

The default run takes each case by some verbs, in one of four kinds of tables; `slow` takes all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, TypeAlias

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil

MISFIT = (frazil.SchemaMismatchError, AnalysisException)
MISFIT_TEXT = r"missing in the data|no such column|its fields are|INCOMPATIBLE_DATA_FOR_TABLE|DATATYPE_MISMATCH"
"""What the verbs say of data that does not fit, and what Spark says of statements."""

# The model


class Refused(Exception):
    """What the model says of data that does not fit."""


class MapOf(dict[str, Any]):
    """A map, or the type of one; plain dicts are structs."""


INNER = {"x": "int", "y": "int"}
STRUCT: dict[str, Any] = {"a": "int", "b": "int", "c": INNER}
LIST, MAP = [INNER], MapOf(value=INNER)


def matched(value: Any, kind: Any, *, by_name: bool, fills: bool = False) -> Any:
    """Return a value as one of a type of the table."""
    if value is None or isinstance(kind, str):
        return value
    if isinstance(kind, list):
        return [matched(one, kind[0], by_name=by_name, fills=fills) for one in value]
    if isinstance(kind, MapOf):
        return MapOf({key: matched(one, kind["value"], by_name=by_name, fills=fills) for key, one in value.items()})
    given = dict(zip(kind, value.values(), strict=False)) if not by_name else {k.lower(): v for k, v in value.items()}
    if len(value) > len(kind) or not set(given) <= set(kind) or (len(given) < len(kind) and not fills):
        raise Refused
    return {name: matched(given.get(name), inner, by_name=by_name, fills=fills) for name, inner in kind.items()}


def assigned(old: Any, path: tuple[str, ...], value: Any, kind: Any) -> Any:
    """Return a value of which a part is assigned."""
    if not path:
        return matched(value, kind, by_name=True)
    parts = {name: None if old is None else old[name] for name in kind}
    return {**parts, path[0]: assigned(parts[path[0]], path[1:], value, kind[path[0]])}


def merged(old: Any, value: Any, kind: Any, have: Any) -> Any:
    """Return what `UPDATE SET *` makes of a struct when the schema evolves: parts that the source lacks stay.

    `have` is the source's type.
    """
    if not lacks(kind, have):
        return value
    if value is None and old is None:
        return None
    was = dict.fromkeys(kind) if old is None else old
    new = dict.fromkeys(have) if value is None else value
    return {name: merged(was[name], new[name], kind[name], have[name]) if name in have else was[name] for name in kind}


def lacks(kind: Any, have: Any) -> bool:
    """Return whether a struct lacks parts of another, at any depth."""
    if isinstance(kind, str):
        return False
    return any(name not in have or lacks(inner, have[name]) for name, inner in kind.items())


# Tables and values

OLD_STRUCTS = [None, {"a": 1, "b": 2, "c": None}, {"a": 1, "b": 2, "c": {"x": 3, "y": 4}}]
PAIR = {"x": 3, "y": 4}
OLD_NESTS = [(None, None), ([None, PAIR], MapOf(k=None, n=PAIR)), ([PAIR], MapOf(k=PAIR))]
PAIR_DDL = "struct<x: int, y: int>"
DDL = {
    "structs": f"id int, s struct<a: int, b: int, c: {PAIR_DDL}>",
    "nests": f"id int, l list<{PAIR_DDL}>, m map<string, {PAIR_DDL}>",
}
KINDS: dict[str, dict[str, Any]] = {"structs": {"s": STRUCT}, "nests": {"l": LIST, "m": MAP}}
TABLES = list(product((2, 3), ("copy-on-write", "merge-on-read")))
Rows: TypeAlias = dict[int, dict[str, Any]]


def old_rows(of: str) -> Rows:
    if of == "structs":
        return {at: {"s": one} for at, one in enumerate(OLD_STRUCTS)}
    return {at: {"l": one, "m": two} for at, (one, two) in enumerate(OLD_NESTS)}


def arrow_type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        return pa.int32()
    if isinstance(kind, list):
        return pa.list_(arrow_type(kind[0]))
    if isinstance(kind, MapOf):
        return pa.map_(pa.string(), arrow_type(kind["value"]))
    return pa.struct([(name, arrow_type(inner)) for name, inner in kind.items()])


def new_table(lake: frazil.Lake, of: str, made: tuple[int, str]) -> frazil.Table:
    version, mode = made
    properties = {f"write.{command}.mode": mode for command in ("update", "merge", "delete")}
    table = lake.create_table("db.t", DDL[of], format_version=version, properties=properties)
    fields = [pa.field("id", pa.int32()), *(pa.field(name, arrow_type(kind)) for name, kind in KINDS[of].items())]
    listed = [
        {"id": at, **{name: list(one.items()) if isinstance(one, MapOf) else one for name, one in row.items()}}
        for at, row in old_rows(of).items()
    ]
    table.append(pa.Table.from_pylist(listed, schema=pa.schema(fields)))
    return table


def stored(lake: frazil.Lake) -> Rows:
    rows = lake.table("db.t").scan().to_arrow().to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {
        row.pop("id"): {name: MapOf(one) if name == "m" and one is not None else one for name, one in row.items()}
        for row in rows
    }


def sql(value: Any, kind: Any) -> str:
    """Return a value in Spark's words; `kind` is the type of a null."""
    if value is None:
        return f"cast(null as {spark_type(kind)})"
    if isinstance(value, MapOf):
        inner = kind["value"] if isinstance(kind, MapOf) else "int"
        return f"map({', '.join(f'{key!r}, {sql(one, inner)}' for key, one in value.items())})"
    if isinstance(value, dict):
        kinds = {**dict.fromkeys(value, "int"), **(kind if isinstance(kind, dict) else {})}
        return f"named_struct({', '.join(f'{name!r}, {sql(one, kinds[name])}' for name, one in value.items())})"
    if isinstance(value, list):
        return f"array({', '.join('null' if one is None else sql(one, kind[0]) for one in value)})"
    return str(value)


def spark_type(kind: Any) -> str:
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        return f"array<{spark_type(kind[0])}>"
    if isinstance(kind, MapOf):
        return f"map<string, {spark_type(kind['value'])}>"
    return f"struct<{', '.join(f'{name}: {spark_type(inner)}' for name, inner in kind.items())}>"


WHOLE = {"a": 8, "b": 9, "c": {"x": 6, "y": 7}}
TURNED = {"C": {"y": 7, "x": 6}, "b": 9, "A": 8}
ASSIGNMENTS: list[tuple[str, dict[str, Any]]] = [
    ("structs", {"s.a": 5}),
    ("structs", {"s.c.y": 5, "s.b": 6}),
    ("structs", {"s.c": {"y": 1, "x": 2}}),
    ("structs", {"s.c": None, "s.a": None}),
    ("structs", {"s": TURNED}),
    ("nests", {"l": [{"y": 1, "x": 2}, None], "m": MapOf(k={"y": 1, "x": 2})}),
]
MISFITS: list[tuple[str, dict[str, Any]]] = [
    ("structs", {"s": {"a": 8}}),
    ("structs", {"s": {"a": 8, "b": 9, "c": {"x": 6}}}),
    ("structs", {"s.c": {"x": 6}}),
    ("structs", {"s.c": {"x": 6, "y": 7, "z": 8}}),
    ("structs", {"s": {"col1": 8, "col2": 9, "col3": {"x": 6, "y": 7}}}),
    ("nests", {"l": [{"x": 1}]}),
    ("nests", {"m": MapOf(k={"x": 1})}),
]


@pytest.fixture(scope="module")
def attached(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[frazil.Lake]:
    with frazil.connect(tmp_path_factory.mktemp("nested") / "lake") as lake:
        lake.create_namespace("db")
        frazil.attach(spark, lake, name="nested")
        try:
            yield lake
        finally:
            frazil.detach(spark)


@pytest.fixture
def lake(attached: frazil.Lake) -> Iterator[frazil.Lake]:
    yield attached
    attached.drop_table("db.t")


# Assignments


def kind_at(of: str, name: str) -> Any:
    kind: Any = KINDS[of]
    for part in name.split("."):
        kind = kind[part]
    return kind


Values: TypeAlias = Mapping[str, str]
SOURCE = "select explode(array(0, 1, 2)) as id"


def by_update(spark: SparkSession, table: frazil.Table, values: Values) -> None:
    spark.sql(f"update nested.db.t set {', '.join(f'{name} = {value}' for name, value in values.items())}")


def by_verb(spark: SparkSession, table: frazil.Table, values: Values) -> None:
    table.update(values)


def by_merge(spark: SparkSession, table: frazil.Table, values: Values) -> None:
    listed = ", ".join(f"t.{name} = {value}" for name, value in values.items())
    spark.sql(f"merge into nested.db.t t using ({SOURCE}) q on t.id = q.id when matched then update set {listed}")


def by_merge_verb(spark: SparkSession, table: frazil.Table, values: Values) -> None:
    table.merge(spark.sql(SOURCE), on="target.id = source.id").when_matched().update(values).execute()


def by_merge_into(spark: SparkSession, table: frazil.Table, values: Values) -> None:
    frame = spark.sql(SOURCE).alias("q")
    columns = {name: F.expr(value) for name, value in values.items()}
    frame.mergeInto("nested.db.t", F.expr("t.id = q.id")).whenMatched().update(columns).merge()


ASSIGNING: dict[str, Callable[[SparkSession, frazil.Table, Values], None]] = {
    one.__name__: one for one in (by_update, by_verb, by_merge, by_merge_verb, by_merge_into)
}


def check_assignment(
    spark: SparkSession, lake: frazil.Lake, verb: str, of: str, values: Mapping[str, Any], made: tuple[int, str]
) -> None:
    table = new_table(lake, of, made)
    want = old_rows(of)
    for row, (name, value) in product(want.values(), values.items()):
        column, *path = name.split(".")
        row[column] = assigned(row[column], tuple(path), value, KINDS[of][column])
    ASSIGNING[verb](spark, table, {name: sql(value, kind_at(of, name)) for name, value in values.items()})
    assert stored(lake) == want


@pytest.mark.parametrize(
    ("at", "verb"),
    [(at, verb) for at in range(len(ASSIGNMENTS)) for nth, verb in enumerate(ASSIGNING) if (at + nth) % 2 == 0],
)
def test_assigned_field_gets_its_value_over_any_previous_one(
    spark: SparkSession, lake: frazil.Lake, verb: str, at: int
) -> None:
    check_assignment(spark, lake, verb, *ASSIGNMENTS[at], TABLES[(at + list(ASSIGNING).index(verb)) % len(TABLES)])


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "made"), list(product(ASSIGNING, TABLES)))
@pytest.mark.parametrize("at", range(len(ASSIGNMENTS)))
def test_nested_assignments_work_on_every_kind_of_table(
    spark: SparkSession, lake: frazil.Lake, verb: str, made: tuple[int, str], at: int
) -> None:
    check_assignment(spark, lake, verb, *ASSIGNMENTS[at], made)


@pytest.mark.parametrize("verb", ASSIGNING)
def test_struct_with_missing_or_extra_fields_is_refused(spark: SparkSession, lake: frazil.Lake, verb: str) -> None:
    for of, values in MISFITS:
        table = new_table(lake, of, (2, "copy-on-write"))
        before = table.current_snapshot
        (name, value) = next(iter(values.items()))
        with pytest.raises(Refused):
            matched(value, kind_at(of, name), by_name=True)
        with pytest.raises(MISFIT, match=MISFIT_TEXT):
            ASSIGNING[verb](spark, table, {name: sql(value, kind_at(of, name))})
        assert lake.table("db.t").current_snapshot == before
        if (of, values) != MISFITS[-1]:
            lake.drop_table("db.t")


# Rows that are new

SOURCES: list[tuple[str, dict[str, Any]]] = [
    ("structs", {"s": WHOLE}),
    ("structs", {"s": None}),
    ("structs", {"s": {"a": 8, "b": 9, "c": None}}),
    ("structs", {"s": {"b": 8, "a": 9, "c": {"y": 6, "x": 7}}}),
    ("structs", {"s": {"p": 8, "q": 9, "r": {"v": 6, "w": 7}}}),
    ("structs", {"s": {"a": 8, "c": {"x": 6, "y": 7}}}),
    ("structs", {"s": {"a": 8, "b": 9}}),
    ("structs", {"s": {"a": 8, "b": 9, "c": {"x": 6}}}),
    ("structs", {"s": {"a": 8, "b": 9, "c": {"x": 6, "y": 7, "z": 8}}}),
    ("nests", {"l": [{"y": 6, "x": 7}, None], "m": MapOf(k={"y": 6, "x": 7})}),
    ("nests", {"l": [{"v": 6, "w": 7}], "m": MapOf(k={"v": 6, "w": 7})}),
    ("nests", {"l": [{"x": 6}], "m": None}),
    ("nests", {"l": None, "m": MapOf(k={"x": 6})}),
]


def source_of(spark: SparkSession, of: str, values: Mapping[str, Any], at: int = 9) -> DataFrame:
    columns = [f"{sql(values.get(name), kind)} as {name}" for name, kind in KINDS[of].items()]
    return spark.sql(f"select {at} as id, {', '.join(columns)}")


def by_insert(frame: DataFrame, table: frazil.Table) -> None:
    frame.createOrReplaceTempView("nested_rows")
    frame.sparkSession.sql("insert into nested.db.t select * from nested_rows")


def by_insert_by_name(frame: DataFrame, table: frazil.Table) -> None:
    frame.createOrReplaceTempView("nested_rows")
    frame.sparkSession.sql("insert into nested.db.t by name select * from nested_rows")


def by_insert_into(frame: DataFrame, table: frazil.Table) -> None:
    frame.write.insertInto("nested.db.t")


def by_write_to(frame: DataFrame, table: frazil.Table) -> None:
    frame.writeTo("nested.db.t").append()


def by_append(frame: DataFrame, table: frazil.Table) -> None:
    table.append(frame)


def by_overwrite(frame: DataFrame, table: frazil.Table) -> None:
    table.overwrite(frame, "id > 100")


def by_upsert(frame: DataFrame, table: frazil.Table) -> None:
    table.upsert(frame, ["id"])


def by_merge_insert(frame: DataFrame, table: frazil.Table) -> None:
    frame.createOrReplaceTempView("nested_rows")
    frame.sparkSession.sql("merge into nested.db.t t using nested_rows q on t.id = q.id when not matched then insert *")


def by_merge_into_insert(frame: DataFrame, table: frazil.Table) -> None:
    frame.alias("q").mergeInto("nested.db.t", F.expr("t.id = q.id")).whenNotMatched().insertAll().merge()


def by_merge_insert_values(frame: DataFrame, table: frazil.Table) -> None:
    values = {name: f"source.{name}" for name in frame.columns}
    table.merge(frame, on="target.id = source.id").when_not_matched().insert(values).execute()


BY_PLACE = (by_insert, by_insert_into)
INSERTING: dict[str, Callable[[DataFrame, frazil.Table], None]] = {
    one.__name__: one
    for one in (
        *BY_PLACE,
        by_insert_by_name,
        by_write_to,
        by_append,
        by_overwrite,
        by_upsert,
        by_merge_insert,
        by_merge_into_insert,
        by_merge_insert_values,
    )
}


def check_insert(
    spark: SparkSession, lake: frazil.Lake, verb: str, of: str, values: Mapping[str, Any], made: tuple[int, str]
) -> None:
    table = new_table(lake, of, made)
    try:
        frame, run = source_of(spark, of, values), INSERTING[verb]
        want = old_rows(of)
        try:
            want[9] = {
                name: matched(values.get(name), kind, by_name=run not in BY_PLACE) for name, kind in KINDS[of].items()
            }
        except Refused:
            with pytest.raises(MISFIT, match=MISFIT_TEXT):
                run(frame, table)
        else:
            run(frame, table)
        assert stored(lake) == want
    finally:
        lake.drop_table("db.t")


@pytest.mark.extended
@pytest.mark.parametrize("verb", INSERTING)
def test_new_structs_are_matched_by_name_or_position(spark: SparkSession, attached: frazil.Lake, verb: str) -> None:
    first = list(INSERTING).index(verb)
    # Sources that fit cost a write: each verb takes some of them, and all that are refused.
    for at, (of, values) in enumerate(SOURCES):
        if at in (0, 1, 2, 9, 10) and at % 4 != first % 4:
            continue
        check_insert(spark, attached, verb, of, values, TABLES[(at + first) % len(TABLES)])


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "made"), list(product(INSERTING, TABLES)))
def test_new_structs_work_on_every_kind_of_table(
    spark: SparkSession, attached: frazil.Lake, verb: str, made: tuple[int, str]
) -> None:
    for of, values in SOURCES:
        check_insert(spark, attached, verb, of, values, made)


@pytest.mark.extended
@pytest.mark.parametrize("by_name", [True, False])
def test_model_agrees_with_native_spark_tables(spark: SparkSession, by_name: bool) -> None:
    how = "by name" if by_name else ""
    for of, kinds in KINDS.items():
        columns = ", ".join(f"{name} {spark_type(kind)}" for name, kind in kinds.items())
        spark.sql(f"create table nested_model_{of} (id int, {columns}) using parquet")
        try:
            for values in [values for one, values in SOURCES if one == of]:
                source_of(spark, of, values).createOrReplaceTempView("nested_rows")
                statement = f"insert into nested_model_{of} {how} select * from nested_rows"
                try:
                    for name, kind in kinds.items():
                        matched(values.get(name), kind, by_name=by_name)
                except Refused:
                    with pytest.raises(AnalysisException, match="INCOMPATIBLE_DATA_FOR_TABLE"):
                        spark.sql(statement)
                else:
                    spark.sql(statement)
        finally:
            spark.sql(f"drop table nested_model_{of}")


# Schemas that evolve

PARTIAL: list[tuple[Any, Any]] = [
    (None, {"a": "int"}),
    ({"a": 8}, {"a": "int"}),
    ({"c": {"x": 6}}, {"c": {"x": "int"}}),
    ({"a": None, "c": None}, {"a": "int", "c": INNER}),
]


@pytest.mark.extended
def test_evolving_write_fills_missing_nested_fields(spark: SparkSession, lake: frazil.Lake) -> None:
    table = new_table(lake, "structs", (2, "copy-on-write"))
    given = dict(enumerate((value for value, _ in PARTIAL[1:]), start=20))
    for at, value in given.items():
        if at % 2:
            table.append(source_of(spark, "structs", {"s": value}, at), merge_schema=True)
        else:
            source_of(spark, "structs", {"s": value}, at).createOrReplaceTempView("nested_rows")
            spark.sql("insert with schema evolution into nested.db.t by name select * from nested_rows")
    source_of(spark, "structs", {"s": {"q": 1, "r": 2}}, 30).createOrReplaceTempView("nested_rows")
    spark.sql("insert with schema evolution into nested.db.t select * from nested_rows")
    want = old_rows("structs") | {
        at: {"s": matched(value, STRUCT, by_name=True, fills=True)} for at, value in given.items()
    }
    want[30] = {"s": {"a": 1, "b": 2, "c": None}}
    assert stored(lake) == want


@pytest.mark.extended
def test_table_accepting_any_schema_fills_missing_nested_fields(spark: SparkSession, lake: frazil.Lake) -> None:
    table = new_table(lake, "structs", (2, "copy-on-write"))
    table.set_properties({"write.spark.accept-any-schema": "true"})
    source_of(spark, "structs", {"s": {"a": 8}}).writeTo("nested.db.t").append()
    assert stored(lake)[9] == {"s": {"a": 8, "b": None, "c": None}}


@pytest.mark.extended
@pytest.mark.parametrize("made", TABLES[1:3])
def test_evolving_merge_keeps_nested_fields_the_source_lacks(
    spark: SparkSession, lake: frazil.Lake, made: tuple[int, str]
) -> None:
    for value, have in PARTIAL:
        table = new_table(lake, "structs", made)
        frame = spark.sql(f"select explode(array(0, 1, 2, 9)) as id, {sql(value, have)} as s")
        (
            table.merge(frame, on="target.id = source.id", merge_schema=True)
            .when_matched()
            .update_all()
            .when_not_matched()
            .insert_all()
            .execute()
        )
        want = {at: {"s": merged(row["s"], value, STRUCT, have)} for at, row in old_rows("structs").items()}
        want[9] = {"s": matched(value, STRUCT, by_name=True, fills=True)}
        assert stored(lake) == want
        if (value, have) != PARTIAL[-1]:
            lake.drop_table("db.t")


@pytest.mark.extended
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_merge_writes_table_and_source_structs_into_one_file(spark: SparkSession, lake: frazil.Lake, mode: str) -> None:
    # Spark forgets the ids of parts where it chooses between a struct that was there and one that is new.
    table = lake.create_table(
        "db.t", "id bigint, k string, s struct<a: int, c: struct<x: int>>", properties={"write.merge.mode": mode}
    )
    rows = "id bigint, k string, s struct<a: int, c: struct<x: int>>"
    table.append(spark.createDataFrame([(1, "a", (1, (2,))), (2, "b", None), (3, "c", (3, None))], rows))
    source = spark.createDataFrame([(2, "u", (5, (6,))), (3, "u", None), (4, "n", (7, (8,)))], rows)
    merge = table.merge(source, on="target.id = source.id").when_matched().update({"k": "source.k"})
    merge.when_not_matched().insert_all().execute()
    found = {row["id"]: (row["k"], row["s"]) for row in table.scan().to_arrow().to_pylist()}
    assert found == {
        1: ("a", {"a": 1, "c": {"x": 2}}),
        2: ("u", None),
        3: ("u", {"a": 3, "c": None}),
        4: ("n", {"a": 7, "c": {"x": 8}}),
    }
    assert table.check(bounds=True).ok
