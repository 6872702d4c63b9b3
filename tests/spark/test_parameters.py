"""Values for the names in a text are the same values on both engines and in a scan, whatever they are."""

from __future__ import annotations

import datetime
import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import frazil
from frazil.errors import InvalidRequestError

pytestmark = pytest.mark.usefixtures("utc")

UTC = datetime.UTC
EAST = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
MOMENT = datetime.datetime(2024, 2, 29, 23, 59, 59, 999999)
ONE_ID = uuid.UUID("12345678-1234-5678-1234-567812345678")
TEXTS = [
    "",
    "it's",
    "''",
    "\\",
    "\\'",
    "\\n \\u0041 \\101",
    "a\nb\r\n\tc",
    '"double"',
    "`back`",
    "-- no comment",
    "/* none */",
    "1' or '1' = '1",
    "${env:HOME} ${spark.app.name}",
    ":x",
    "%_",
    "\x00\x01\x1a",
    "é ß 漢 🙂",
    "a" * 5000,
]
VALUES: list[tuple[str, Any, Any]] = [
    *(("string", one, one) for one in TEXTS),
    ("string", ONE_ID, str(ONE_ID)),
    ("string", np.str_("n"), "n"),
    ("string", None, None),
    ("double", math.inf, math.inf),
    ("double", -math.inf, -math.inf),
    ("double", math.nan, "nan"),
    ("double", -0.0, -0.0),
    ("double", 5e-324, 5e-324),
    ("double", 1.7976931348623157e308, 1.7976931348623157e308),
    ("double", np.float64(math.inf), math.inf),
    ("double", 7, 7.0),
    ("float", math.inf, math.inf),
    ("float", math.nan, "nan"),
    ("float", np.float32(0.5), 0.5),
    ("decimal(38, 10)", Decimal("1234567890123456789012345678.0123456789"), None),
    ("decimal(38, 0)", Decimal("1E+37"), Decimal(10) ** 37),
    ("decimal(20, 4)", Decimal("-0.0001"), Decimal("-0.0001")),
    ("decimal(38, 0)", -(10**37), Decimal(-(10**37))),
    ("bigint", -(2**63), -(2**63)),
    ("bigint", 2**63 - 1, 2**63 - 1),
    ("bigint", np.int64(-5), -5),
    ("int", -(2**31), -(2**31)),
    ("boolean", True, True),
    ("boolean", np.bool_(False), False),
    ("boolean", None, None),
    ("date", datetime.date(1, 1, 1), datetime.date(1, 1, 1)),
    ("date", datetime.date(9999, 12, 31), datetime.date(9999, 12, 31)),
    ("date", np.datetime64("2024-02-29"), datetime.date(2024, 2, 29)),
    ("timestamptz", MOMENT.replace(tzinfo=UTC), MOMENT.replace(tzinfo=UTC)),
    ("timestamptz", MOMENT.replace(tzinfo=EAST), MOMENT.replace(tzinfo=EAST)),
    ("timestamptz", datetime.datetime(1, 1, 2, tzinfo=UTC), datetime.datetime(1, 1, 2, tzinfo=UTC)),
    ("timestamp", MOMENT, MOMENT),
    ("timestamp", datetime.datetime(1969, 12, 31, 23, 59, 59, 1), datetime.datetime(1969, 12, 31, 23, 59, 59, 1)),
    ("timestamp", np.datetime64("2024-02-29T23:59:59.999999000", "ns"), MOMENT),
    ("binary", b"", b""),
    ("binary", b"\x00'\\\xff", b"\x00'\\\xff"),
]
ENGINES = ("local", "spark")
DDL = (
    "id int, f double, g float, d decimal(20, 4), n bigint, s string, b binary, o boolean, day date, at timestamptz, "
    "nt timestamp"
)
COMPARED: dict[str, list[Any]] = {
    "f": [math.inf, -math.inf, 0.5, 1, Decimal("0.5"), np.float32(0.1), 2**60],
    "g": [math.inf, -math.inf, 0.1, Decimal("0.1"), np.float32(0.1), 16777217],
    "d": [Decimal("0.0001"), Decimal("1.50"), Decimal(-1), 2, 10**16, Decimal("0.00001")],
    "n": [0, -5, 2**62, 2**63, -(2**70), 1.5, Decimal("2.5"), math.inf, -math.inf],
    "s": ["it's", "", "\\", "b\n"],
    "b": [b"", b"\x00'\\\xff"],
    "o": [True, False],
    "day": [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31)],
    "at": [MOMENT.replace(tzinfo=UTC), MOMENT.replace(tzinfo=EAST)],
    "nt": [MOMENT, datetime.datetime(1969, 12, 31)],
}
SIGNS = ("=", "<", ">=", "<=>")


def shown(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    return value


def read(table: frazil.Table) -> list[dict[str, Any]]:
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    return [{name: shown(one) for name, one in row.items()} for row in rows]


@pytest.mark.parametrize("engine", ENGINES)
def test_assigned_parameter_is_stored(lake: frazil.Lake, engine: Any) -> None:
    ddl = ", ".join(f"c{at} {kind}" for at, (kind, _, _) in enumerate(VALUES))
    table = lake.create_table("db.t", f"id int, {ddl}")
    table.append([{"id": 1}])
    given = {f"p{at}": value for at, (_, value, _) in enumerate(VALUES)}
    table.update({f"c{at}": f":p{at}" for at in range(len(VALUES))}, engine=engine, **given)
    (row,) = read(table)
    wanted = [shown(value if meant is None and value is not None else meant) for _, value, meant in VALUES]
    found = [row[f"c{at}"] for at in range(len(VALUES))]
    assert [one for one in zip(VALUES, wanted, found, strict=True) if one[1] != one[2]] == []


def rows_to_compare() -> list[dict[str, Any]]:
    columns: dict[str, list[Any]] = {
        "f": [math.inf, -math.inf, math.nan, 0.5, 0.1, None],
        "g": [math.inf, -math.inf, math.nan, 0.5, 0.1, None],
        "d": [Decimal("0.0001"), Decimal("1.5"), Decimal(-1), Decimal(0), Decimal(2), None],
        "n": [0, -5, 2**62, 2**63 - 1, -(2**63), None],
        "s": ["it's", "", "\\", "b\n", "c", None],
        "b": [b"", b"\x00'\\\xff", b"\x00", b"\xff", b"a", None],
        "o": [True, False, True, False, True, None],
        "day": [datetime.date(2024, 2, day) for day in (1, 28, 29)] + [datetime.date(1969, 12, 31)] * 2 + [None],
        "at": [MOMENT.replace(tzinfo=UTC) + datetime.timedelta(hours=one) for one in (-6, 0, 6, 0, 0)] + [None],
        "nt": [MOMENT + datetime.timedelta(microseconds=one) for one in (-1, 0, 1, 0, 0)] + [None],
    }
    return [{"id": at, **{name: values[at] for name, values in columns.items()}} for at in range(6)]


@pytest.mark.extended
def test_parameter_compares_alike_on_both_engines_and_in_scans(spark: SparkSession, lake: frazil.Lake) -> None:
    tests = [(f"{name} {sign} :x", value) for name, all_of in COMPARED.items() for value in all_of for sign in SIGNS]
    results = ", ".join(f"r{at} boolean" for at in range(len(tests)))
    tables = {name: lake.create_table(f"db.{name}", f"{DDL}, {results}") for name in ENGINES}
    given = {f"x{at}": value for at, (_, value) in enumerate(tests)}
    values = {f"r{at}": f"{text}{at}" for at, (text, _) in enumerate(tests)}
    for engine, table in tables.items():
        table.append(rows_to_compare())
        chosen: Any = engine
        table.update(values, engine=chosen, **given)
    here, there = (read(table) for table in tables.values())
    wrong = [
        (test, [row[f"r{at}"] for row in here], [row[f"r{at}"] for row in there])
        for at, test in enumerate(tests)
        if [row[f"r{at}"] for row in here] != [row[f"r{at}"] for row in there]
    ]
    assert not wrong
    for at, (text, value) in enumerate(tests):
        scanned = tables["local"].scan(text, columns=["id"], x=value).to_arrow()["id"].to_pylist()
        assert sorted(scanned) == [row["id"] for row in there if row[f"r{at}"]], (text, value)


@pytest.mark.extended
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("where", "value", "left"),
    [
        ("f > :x", -math.inf, [1, 5]),
        ("f >= :x", math.inf, [1, 3, 4, 5]),
        ("f = :x", math.nan, [0, 1, 3, 4, 5]),
        ("s = :x", "it's", [1, 2, 3, 4, 5]),
        ("b = :x", b"\x00'\\\xff", [0, 2, 3, 4, 5]),
        ("at < :x", MOMENT.replace(tzinfo=EAST), [1, 2, 3, 4, 5]),
        ("n > :x and f < :x", 2**62, [0, 1, 2, 4, 5]),
        ("s = :x", None, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_delete_uses_the_parameter_value(
    lake: frazil.Lake, engine: Any, where: str, value: Any, left: list[int]
) -> None:
    table = lake.create_table("db.t", DDL)
    table.append(rows_to_compare())
    table.delete(where, engine=engine, x=value)
    assert [row["id"] for row in read(table)] == left


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "value",
    [
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("-Infinity"),
        [1, 2],
        {"a": 1},
        object(),
        datetime.timedelta(1),
        pa.scalar(1),
        np.datetime64("2024-01-01T00:00:00.000000001", "ns"),
        np.datetime64("NaT"),
        np.timedelta64(1, "D"),
    ],
    ids=repr,
)
def test_unsupported_parameter_values_are_refused_without_a_change(lake: frazil.Lake, engine: Any, value: Any) -> None:
    table = lake.create_table("db.t", DDL)
    table.append(rows_to_compare())
    before = table.metadata_location
    for change in (
        lambda: table.delete("f > :x", engine=engine, x=value),
        lambda: table.update({"s": ":x"}, engine=engine, x=value),
        lambda: table.scan("f > :x", x=value).to_arrow(),
    ):
        with pytest.raises(InvalidRequestError, match="Cannot use the parameter 'x'"):
            change()
    assert table.refresh().metadata_location == before


def test_scan_finds_nan_parameters(lake: frazil.Lake) -> None:
    table = lake.create_table("db.nan", "f double")
    table.append([{"f": math.nan}, {"f": 1.0}])
    assert [math.isnan(row["f"]) for row in table.scan("f = :x", x=math.nan).to_arrow().to_pylist()] == [True]
    assert table.scan("f <> :x", x=math.nan).count() == 1
