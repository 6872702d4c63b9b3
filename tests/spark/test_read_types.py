"""Every type on Spark: shown as documented, nested anywhere, promoted, filled with defaults, filtered."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID as Uuid

import pyspark.sql.types as st
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.errors import UnsupportedError
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.schema import Schema
from frazil.spec.types import (
    BINARY,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)
from frazil.table.scan import scan_table
from tests.spark.read_cases import READS_STRUCTS_BY_PYTHON, check_table, local_table, read_files
from tests.spark.settings import settings
from tests.spark.type_cases import ALL_TYPES, DEFAULTS, rows_of_all_types


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_every_type_equals_arrow_at_any_depth(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    table = local_table(tmp_path, ALL_TYPES, format_version=3)
    given = rows_of_all_types()
    if file_format == "orc":
        # Arrow's reader has no timestamps outside of the years that nanoseconds reach.
        given = [{name: _near(value) for name, value in row.items()} for row in given]
    table.append(given, file_format=file_format)
    rows = check_table(spark, table, columns=["*", "_file", "_pos", "_row_id"])
    assert len(rows) == 6


def _near(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _near(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_near(one) for one in value]
    return -2 if value == -12219292800000001 else value


def test_columns_have_the_documented_spark_types(spark: SparkSession, tmp_path: Path) -> None:
    table = local_table(tmp_path, ALL_TYPES, format_version=3)
    shown = scan_table(table.load()).to_spark(spark).schema
    expected = {
        "a_boolean": st.BooleanType(),
        "a_decimal_38": st.DecimalType(38, 10),
        "a_time": st.StringType(),
        "a_timestamp": st.TimestampNTZType(),
        "a_timestamptz": st.TimestampType(),
        "a_timestamp_ns": st.TimestampNTZType(),
        "a_timestamptz_ns": st.TimestampType(),
        "a_uuid": st.StringType(),
        "a_fixed": st.BinaryType(),
        "a_date": st.DateType(),
        "list_of_uuid": st.ArrayType(st.StringType()),
        "map_by_uuid": st.MapType(st.StringType(), st.StringType()),
    }
    assert {name: shown[name].dataType for name in expected} == expected


@pytest.mark.skipif(not hasattr(st, "TimeType"), reason="this Spark has no time")
def test_time_columns_use_the_spark_time_type_if_available(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "t", TIME), NestedField(2, "l", ListType(3, TIME))))
    table = local_table(tmp_path, schema)
    table.append([{"t": 3_723_000_004, "l": [0, None]}, {"t": None, "l": None}])
    loaded = table.load()
    with settings(spark, {"spark.sql.timeType.enabled": "true"}):
        frame = scan_table(loaded).to_spark(spark)
        assert frame.schema["t"].dataType.simpleString() == "time(6)"
        assert frame.select("t").orderBy("t").collect()[1][0] == datetime.time(1, 2, 3, 4)
        assert frame.filter("t = time'01:02:03.000004'").count() == 1


PROMOTIONS: list[tuple[Type, Type, list[Any]]] = [
    (INT, LONG, [-(2**31), 7, None]),
    (FLOAT, DOUBLE, [1.5, float("nan"), None]),
    (DecimalType(5, 2), DecimalType(9, 2), [Decimal("123.45"), None]),
    (DecimalType(9, 2), DecimalType(18, 2), [Decimal("1234567.89"), None]),
    (DecimalType(9, 2), DecimalType(38, 2), [Decimal("-1234567.89"), None]),
    (DecimalType(18, 4), DecimalType(30, 4), [Decimal("12345678901234.5678"), None]),
]


@pytest.mark.parametrize(("before", "after", "values"), PROMOTIONS, ids=lambda one: str(one)[:20])
@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_promoted_columns_are_read_with_their_new_type(
    spark: SparkSession, tmp_path: Path, before: Type, after: Type, values: list[Any], file_format: str
) -> None:
    fields = (
        NestedField(1, "id", LONG),
        NestedField(2, "x", before),
        NestedField(3, "s", StructType((NestedField(4, "x", before),))),
        NestedField(5, "l", ListType(6, before)),
        NestedField(7, "m", MapType(8, STRING, 9, before)),
    )
    table = local_table(tmp_path, Schema(fields), format_version=3)
    rows = [
        {"id": at, "x": value, "s": {"x": value}, "l": [value, None], "m": {"k": value}}
        for at, value in enumerate(values)
    ]
    table.append(rows, file_format=file_format)

    def promote(update: Any) -> None:
        for path in ("x", "s.x", "l.element", "m.value"):
            update.set_type(path, after)

    table.update_schema(promote)
    table.append([{"id": 100, "x": None, "s": None, "l": [], "m": None}])
    check_table(spark, table, "x is null", "id < 2")


@pytest.mark.extended
@pytest.mark.parametrize("after", [TIMESTAMP, TIMESTAMP_NS])
@pytest.mark.parametrize("file_format", ["parquet", "avro"])
def test_promoted_dates_become_timestamps(spark: SparkSession, tmp_path: Path, after: Type, file_format: str) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "d", DATE), NestedField(3, "l", ListType(4, DATE))))
    table = local_table(tmp_path, schema, format_version=3)
    table.append([{"id": 1, "d": -1, "l": [0, None]}, {"id": 2, "d": 19000, "l": None}], file_format=file_format)

    def promote(update: Any) -> None:
        update.set_type("d", after)
        update.set_type("l.element", after)

    table.update_schema(promote)
    table.append([{"id": 3, "d": 1_000_000, "l": [5]}])
    check_table(spark, table, "id > 1", "d is not null", "d > '2000-01-01T00:00:00'")
    frame = scan_table(table.load()).to_spark(spark)
    assert [row[0] for row in frame.filter("d > timestamp_ntz'2000-01-01 00:00:00'").select("id").collect()] == [2]


@pytest.mark.parametrize("name", DEFAULTS)
def test_column_added_with_a_default_has_it_in_older_files(spark: SparkSession, tmp_path: Path, name: str) -> None:
    kind, value = DEFAULTS[name]
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "s", StructType((NestedField(3, "a", INT),)))))
    table = local_table(tmp_path, schema, format_version=3)
    file = table.write_data([{"id": 1, "s": {"a": 1}}, {"id": 2, "s": None}, {"id": 3, "s": {"a": None}}])
    table.commit(file)

    def add(update: Any) -> None:
        update.add_column("x", kind, default=value)
        update.add_column("s.x", kind, default=value)
        update.add_column("need", kind, default=value, required=True)

    table.update_schema(add)
    table.commit(*table.write_vectors({file: [2]}))
    stored = table.schema.field("x").initial_default
    newer = {"id": 10, "s": {"a": 5, "x": None}, "x": None, "need": stored}
    table.append([newer, {"id": 11, "s": {"a": 5, "x": stored}, "x": stored, "need": stored}])
    rows = check_table(spark, table, "x is null", "x is not null", "s.x is null", "id < 3", columns=["*", "_pos"])
    assert [row["x"] is None for row in sorted(rows, key=lambda row: row["id"])] == [False, False, True, False]
    frame = scan_table(table.load()).to_spark(spark)
    assert frame.filter("x is null").count() == 1
    assert frame.filter("s.x is not null").count() == 2
    if not READS_STRUCTS_BY_PYTHON:
        assert not frame.schema["need"].nullable
    assert frame.select("s.x").filter("x is null").count() == 2


@pytest.mark.extended
def test_defaults_are_filled_inside_lists_maps_and_new_structs(spark: SparkSession, tmp_path: Path) -> None:
    inner = StructType((NestedField(4, "a", INT),))
    schema = Schema(
        (
            NestedField(1, "id", LONG),
            NestedField(2, "l", ListType(3, inner)),
            NestedField(5, "m", MapType(6, STRING, 7, StructType((NestedField(8, "a", INT),)))),
            NestedField(9, "deep", StructType((NestedField(10, "s", StructType((NestedField(11, "a", INT),))),))),
        )
    )
    table = local_table(tmp_path, schema, format_version=3)
    table.append(
        [
            {"id": 1, "l": [{"a": 1}, None], "m": {"k": {"a": 1}, "n": None}, "deep": {"s": {"a": 1}}},
            {"id": 2, "l": None, "m": None, "deep": {"s": None}},
            {"id": 3, "l": [], "m": {}, "deep": None},
        ]
    )

    def add(update: Any) -> None:
        update.add_column("l.element.x", STRING, default="list")
        update.add_column("m.value.x", STRING, default="map")
        update.add_column("deep.s.x", INT, default=7)
        update.add_column("deep.y", DATE, default="2020-01-01")

    table.update_schema(add)
    check_table(spark, table, "deep.s.x = 7", "deep.y is null")
    assert scan_table(table.load()).to_spark(spark).filter("deep.s.x = 7").count() == 1


def test_struct_with_no_stored_field_keeps_its_nulls(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "s", StructType((NestedField(3, "a", INT),)))))
    table = local_table(tmp_path, schema, format_version=3)
    table.append([{"id": 1, "s": {"a": 1}}, {"id": 2, "s": None}])
    table.update_schema(lambda update: update.add_column("s.x", INT, default=5))
    table.update_schema(lambda update: update.drop_column("s.a"))
    rows = check_table(spark, table, "s.x = 5")
    assert sorted((row["id"], row["s"] is None) for row in rows) == [(1, False), (2, True)]


@pytest.mark.extended
@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
def test_unknown_columns_are_null_at_any_depth(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    inner = StructType((NestedField(4, "a", INT), NestedField(5, "u", UNKNOWN)))
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "u", UNKNOWN), NestedField(3, "s", inner)))
    table = local_table(tmp_path, schema, format_version=3)
    table.append([{"id": 1, "s": {"a": 1, "u": None}}, {"id": 2, "s": None}], file_format=file_format)
    check_table(spark, table, "id = 1", "u is null", "s.u is null")
    assert scan_table(table.load(), columns=["u"]).to_spark(spark).count() == 2


def test_unknown_list_elements_are_null(spark: SparkSession, tmp_path: Path) -> None:
    inner = StructType((NestedField(4, "u", UNKNOWN), NestedField(5, "b", INT)))
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "l", ListType(3, inner))))
    table = local_table(tmp_path, schema, format_version=3)
    table.append([{"id": 1, "l": [{"u": None, "b": 2}, None]}, {"id": 2, "l": None}])
    # Spark cannot hand such lists over as Arrow.
    rows = scan_table(table.load()).to_spark(spark).orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(1, [(None, 2), None]), (2, None)]


def test_variants_are_read_natively(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema(
        (NestedField(1, "id", LONG), NestedField(2, "v", VARIANT), NestedField(3, "l", ListType(4, VARIANT)))
    )
    table = local_table(tmp_path, schema, format_version=3)
    folder = Path(table.metadata.location.removeprefix("file://")) / "data"
    source = spark.sql("""select id, parse_json('{"a": ' || id || ', "b": [1, "x"]}') v from range(5)""")
    source.select(
        source["id"].alias("id", metadata={"parquet.field.id": 1}),
        source["v"].alias("v", metadata={"parquet.field.id": 2}),
        F.array(source["v"]).alias("l", metadata={"parquet.field.id": 3}),
    ).coalesce(1).write.parquet(str(folder))
    made = next(folder.glob("*.parquet"))
    file = DataFile(f"file://{made}", FileFormat.PARQUET, 5, made.stat().st_size)
    table.commit(file)
    table.commit(*table.write_vectors({file: [0]}))
    frame = scan_table(table.load()).to_spark(spark)
    assert frame.schema["v"].dataType == st.VariantType()
    number = "variant_get(v, '$.a', 'int')"
    assert [row[0] for row in frame.selectExpr(f"{number} as a").orderBy("a").collect()] == [1, 2, 3, 4]
    assert frame.filter(f"{number} = 3").count() == 1
    assert frame.selectExpr("variant_get(l[0], '$.b[1]', 'string')").distinct().collect()[0][0] == "x"


@pytest.mark.skipif(not hasattr(st, "GeometryType"), reason="this Spark has no geometry")
def test_geometries_use_spark_geometry_types(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    point = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    schema = Schema(
        (
            NestedField(1, "id", LONG),
            NestedField(2, "g", GeometryType()),
            NestedField(3, "w", GeographyType()),
            NestedField(4, "p", GeometryType("srid:3857")),
        )
    )
    table = local_table(tmp_path, schema, format_version=3)
    table.append([{"id": 1, "g": point, "w": point, "p": point}, {"id": 2, "g": None, "w": None, "p": None}])
    spark.conf.set("spark.sql.geospatial.enabled", "false")
    with pytest.raises(UnsupportedError, match="disabled"):
        scan_table(table.load()).to_spark(spark)
    spark.conf.set("spark.sql.geospatial.enabled", "true")
    request.addfinalizer(lambda: spark.conf.unset("spark.sql.geospatial.enabled"))
    frame = scan_table(table.load()).to_spark(spark)
    found = frame.selectExpr("id", "st_asbinary(g)", "st_asbinary(w)", "st_asbinary(p)").orderBy("id").collect()
    assert [tuple(row) for row in found] == [(1, point, point, point), (2, None, None, None)]
    odd = replace(schema, fields=(*schema.fields[:1], NestedField(2, "g", GeometryType("projjson:x"))))
    other = local_table(tmp_path / "odd", odd, format_version=3)
    other.append([{"id": 1, "g": point}])
    with pytest.raises(UnsupportedError, match="projjson"):
        scan_table(other.load()).to_spark(spark)


@pytest.mark.extended
@pytest.mark.parametrize("is_required", [False, True])
def test_filters_on_converted_types_prune_and_keep_the_right_rows(
    spark: SparkSession, tmp_path: Path, is_required: bool
) -> None:
    schema = Schema(
        (
            NestedField(1, "id", LONG),
            NestedField(2, "u", UUID, required=is_required),
            NestedField(3, "t", TIME, required=is_required),
            NestedField(4, "ns", TIMESTAMP_NS, required=is_required),
            NestedField(5, "tz", TIMESTAMPTZ_NS, required=is_required),
            NestedField(6, "b", BINARY),
        )
    )
    table = local_table(tmp_path, schema, format_version=3)
    base = 1_700_000_000_000_000_000
    for at in range(3):
        table.append(
            [
                {
                    "id": at * 10 + one,
                    "u": Uuid(int=at * 10**30 + one),
                    "t": (at * 10 + one) * 1_000_000,
                    "ns": base + at * 86_400 * 10**9 + one,
                    "tz": base + at * 86_400 * 10**9 + one,
                    "b": bytes([at, one]),
                }
                for one in range(10)
            ]
        )
    frame = scan_table(table.load()).to_spark(spark)
    value = str(Uuid(int=10**30 + 3))
    for text, count, files in [
        (f"u = '{value}'", 1, 1),
        (f"u in ('{value}', '{Uuid(int=4)}')", 2, 2),
        ("t = '00:00:11.000000'", 1, 1),
        ("t >= '00:00:20'", 10, 1),
        ("t < '00:00:10' and not (t <= '00:00:04.000000')", 5, 1),
        ("u is null", 0, 0),
        ("ns < timestamp_ntz'2023-11-15 00:00:00'", 10, 1),
        ("tz >= timestamp'2023-11-16 00:00:00 UTC'", 10, 1),
        ("b = X'0203'", 1, 1),
    ]:
        found = frame.filter(text)
        assert found.count() == count, text
        assert len(read_files(found)) == files, text
