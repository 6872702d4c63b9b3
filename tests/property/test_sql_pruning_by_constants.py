"""Conditions of `lake.sql` keep every file with a row that DuckDB finds, whatever constant a column is compared with.

Each file has one row, so that its bounds are as sharp as they can be. `FRAZIL_SQL_CONDITIONS` is the number of random
conditions on each column, `FRAZIL_SQL_SEED` where they start.
"""

# ruff: noqa: E501, SIM905 - values are read best as tables
from __future__ import annotations

import datetime
import math
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import frazil
from frazil.errors import FrazilError
from frazil.expr.predicates import TRUE
from frazil.query.filters import find_filters
from frazil.query.parameters import duckdb_value, parameter_value
from frazil.query.prepared import LocalEngine
from frazil.query.syntax import parse_query
from frazil.table.table import Table

CONDITIONS = int(os.environ.get("FRAZIL_SQL_CONDITIONS", "100"))
SEED = int(os.environ.get("FRAZIL_SQL_SEED", "1"))
NAN, INFINITY, UTC = math.nan, math.inf, datetime.UTC


def _moments(zone: datetime.timezone | None) -> list[datetime.datetime]:
    parts: list[tuple[int, ...]] = [
        (1970, 1, 1), (2024, 1, 1), (2024, 1, 1, 5), (2024, 1, 1, 5, 0, 0, 1), (2023, 12, 31, 22), (1, 1, 1), (9999, 12, 31, 23, 59, 59, 999999),
    ]  # fmt: skip
    return [datetime.datetime(*known).replace(tzinfo=zone) for known in parts]  # type: ignore[arg-type]


_NANOSECONDS = [np.datetime64(text, "ns").astype(np.int64).item() for text in
    ("1970-01-01T00:00:00.000000001", "2024-01-01T05:00:00", "2024-01-01T05:00:00.000000999", "1677-09-22", "2262-04-11", "2024-01-01")]  # fmt: skip
VALUES: dict[str, tuple[str, list[Any]]] = {
    "i": ("int", [0, 1, -1, 2, 2**24 + 1, 2**31 - 1, -(2**31)]),
    "l": ("long", [0, 1, -1, 2**53, 2**53 + 1, 2**60, 2**60 - 3, 2**60 + 1, 2**63 - 1, -(2**63), 2**31]),
    "f": ("float", [0.0, -0.0, 0.1, 1.5, NAN, INFINITY, -INFINITY, 2.0**24, 3.4e38, 1e-45]),
    "d": ("double", [0.0, -0.0, 0.1, float(np.float32(0.1)), 1.5, NAN, INFINITY, -INFINITY, 2.0**53, 1e300, 5e-324]),
    "m": ("decimal(9,2)", [Decimal(text) for text in ("0.00", "0.10", "1.50", "-1.50", "9999999.99", "0.01")]),
    "w": ("decimal(38,0)", [Decimal(0), Decimal(1), Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(2**60)]),
    "x": ("decimal(38,10)", [Decimal(t) for t in ("0", "0.1", "1.0000000001", "9007199254740993.0000000001", "1.5")]),
    "z": ("decimal(4,4)", [Decimal(text) for text in ("0.1", "0.9999", "0", "-0.5")]),
    "s": ("string", ["", "a", "ab", "A", "é", "1", "2024-01-01", "01", "1.0", " 1", "true", "z" * 40, "nan"]),
    "b": ("boolean", [True, False]),
    "day": ("date", [moment.date() for moment in _moments(None)]),
    "ts": ("timestamp", _moments(None)),
    "tz": ("timestamptz", _moments(UTC)),
    "tn": ("timestamp_ns", _NANOSECONDS),
    "zn": ("timestamptz_ns", _NANOSECONDS),
    "t": ("time", [datetime.time(0), datetime.time(5), datetime.time(23, 59, 59, 999999)]),
    "u": ("uuid", [UUID(int=number) for number in (0, 2**127, 2**127 - 1, 2**128 - 1, 5)]),
    "bin": ("binary", [b"", b"a", b"\xff", b"a\0"]),
}
FILES = 1 + max(len(known) for _, known in VALUES.values())
NUMBERS = """
    0 1 -1 2 1.5 -1.5 0.1 0.10000000000000001 1e0 0e0 1e300 1e-400 2147483647 2147483648 -2147483649 9007199254740993
    9007199254740992 9007199254740992.5 9007199254740993e0 1152921504606846977 9223372036854775807 9223372036854775808
    -9223372036854775808 170141183460469231731687303715884105727 170141183460469231731687303715884105728
    99999999999999999999999999999999999999 1e38 1e39 9999999.99 9999999.995 0.9999 0.99995 1.0000000001 1.00000000005
    1.000000000000000000000000000000000000000000001 0.00000000000000000000000000000000000000000001
    1152921504606846977.00000000000000000000000000000001 1152921504606846977.0000000000000000001 16777217 16777216.5
    16777217::float 0.1::float 0.1::double 1::double '1' '01' '1.0' '1e0' '0x1' '1_000' 'nan' 'inf' '-inf' 'Infinity'
    'nan'::double 'nan'::float 'inf'::double 1::bigint 1::hugeint 1::tinyint 1.5::int 2.5::int '1'::int 1::varchar
    1.5::decimal(9,2) 1.555::decimal(5,2) true false 'true' 't' '1'::varchar 0x1F 1_000 +1 -0.0 -(1) 1+0 null null::int
    '9007199254740993' '1152921504606846977' '1152921504606846977'::double 1152921504606846977::double 9007199254740993::float
    1::uhugeint -1::tinyint 128 'a' 'A' '' 'é' 'ab' 'z'
""".split()
TIMES = """
    '2024-01-01'|date '2024-01-01'|'2024-1-1'|'2024-01-01 05:00:00'|'2024-01-01T05:00:00'|'2024-01-01 05:00:00.000001'
    '2024-01-01 05:00:00.0000011'|'2024-01-01 05:00:00.000000999'|timestamp '2024-01-01 05:00:00'|timestamp '2024-01-01'
    timestamptz '2024-01-01 05:00:00+05'|'2024-01-01 05:00:00+05'|'2024-01-01 05:00:00Z'|'2024-01-01 05:00:00 UTC'
    '2024-01-01 05:00:00 America/New_York'|timestamptz '2024-01-01 05:00:00'|'epoch'|'infinity'|'-infinity'|'2024-01-01 (BC)'|'0001-01-01'
    '9999-12-31'|'10000-01-01'|date '10000-01-01'|'2024/01/01'|' 2024-01-01'|timestamp_ns '2024-01-01 05:00:00.000000999'
    timestamp_s '2024-01-01 05:00:00'|timestamp_ms '2024-01-01 05:00:00.001'|'2024-01-01'::timestamptz|'2024-01-01 05:00:00'::date
    time '05:00:00'|'05:00:00'|current_date|'24:00:00'|'2024-01-01 24:00:00'|'2023-12-31 24:00:00'|timestamp '2023-12-31 24:00:00'
    date '1970-01-01' + 1|timestamptz '2024-01-01 05:00:00+05:30'|'2024-01-01 05:00:00+0530'|null
"""
MOMENTS = [literal.strip() for line in TIMES.strip().splitlines() for literal in line.split("|")]
OTHERS = """
    '00000000-0000-0000-0000-000000000005' '{00000000-0000-0000-0000-000000000005}' '80000000-0000-0000-0000-000000000000'
    '80000000000000000000000000000000'::uuid 'ffffffff-ffff-ffff-ffff-ffffffffffff' 'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF'
    'a'::blob '\\xff'::blob '\\xFF' 'a'::binary 'a' null
""".split()
PARAMETERS: dict[str, list[Any]] = {
    "numbers": [
        0, 1, -1, 2**31, 2**53 + 1, 2**60 + 1, 2**63, 2**100, 0.1, 1.5, -0.0, NAN, INFINITY, -INFINITY, 5e-324, Decimal("1.5"), Decimal("0.1"),
        Decimal("1.00000000000000000000000000001"), Decimal("1152921504606846977.0000000001"), Decimal(10) ** 37, True, "1", "01", "nan", "a", "",
        None, np.float32(0.1), np.int64(1), pa.scalar(0.1, pa.float32()), pa.scalar(Decimal("1.50"), pa.decimal128(9, 2)), b"a",
    ],
    "moments": [
        "2024-01-01", "2024-01-01 05:00:00", "2024-01-01T05:00:00", datetime.date(2024, 1, 1), *_moments(None), *_moments(UTC)[1:5],
        datetime.datetime(2024, 1, 1, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=5, minutes=30))),
        np.datetime64("2024-01-01T05:00:00.000000999", "ns"), np.datetime64("2024-01-01T05:00:00"), datetime.time(5), 1, None,
        pa.scalar(1704085200000000999, pa.timestamp("ns")), pa.scalar(1704085200000000, pa.timestamp("us", "Europe/Berlin")),
    ],
    "others": [UUID(int=5), UUID(int=2**127), str(UUID(int=5)), b"a", b"\xff", "a", None],
}  # fmt: skip
GROUPS = dict.fromkeys("ilfdmwxzb", "numbers") | dict.fromkeys(("day", "ts", "tz", "tn", "zn", "t"), "moments")
LITERALS = {"numbers": NUMBERS, "moments": MOMENTS, "others": OTHERS}


def _column(data_type: pa.DataType, values: list[Any]) -> pa.Array:
    values = [*values, *[None] * (FILES - len(values))]
    if isinstance(data_type, pa.UuidType):
        storage = pa.array([None if value is None else value.bytes for value in values], pa.binary(16))
        return pa.ExtensionArray.from_storage(data_type, storage)
    if pa.types.is_timestamp(data_type) and data_type.unit == "ns":
        return pa.array(values, pa.int64()).cast(data_type)
    return pa.array(values, data_type)


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[Table, duckdb.DuckDBPyConnection]]:
    """A table of files with one row each, and its rows in DuckDB."""
    ddl = ", ".join(f"{name} {type_name}" for name, (type_name, _) in VALUES.items())
    with frazil.connect("memory:", catalog="memory") as lake, duckdb.connect(config={"threads": 1}) as memory:
        table = lake.create_table("db.t", f"n int, {ddl}", partition_by=["n"], format_version=3)
        schema = table.scan().arrow_schema
        columns = [pa.array(range(FILES), pa.int32())]
        columns += [_column(schema.field(name).type, known) for name, (_, known) in VALUES.items()]
        table.append(pa.Table.from_arrays(columns, schema=schema))
        memory.execute("SET TimeZone = 'UTC'; SET arrow_lossless_conversion = true; CREATE SCHEMA db")
        rows = table.scan().to_arrow()
        memory.register("rows", rows)
        memory.execute("CREATE TABLE db.t AS FROM rows")
        yield table, memory


def random_condition(rng: random.Random, column: str) -> tuple[str, dict[str, Any]]:
    """Return a condition on a column, with its parameters."""
    groups = ["numbers", "moments", "others"] if column == "s" else [GROUPS.get(column, "others")]
    parameters: dict[str, Any] = {}

    def constant() -> str:
        group = rng.choice(groups)
        if rng.random() < 0.3:
            parameters[name := f"p{len(parameters)}"] = rng.choice(PARAMETERS[group])
            return f"${name}"
        return rng.choice(LITERALS[group])

    operator = rng.choice(["=", "<", ">", "<=", ">=", "<>", "is distinct from", "is not distinct from"])
    texts = [
        f"{column} {operator} {constant()}", f"not ({column} {operator} {constant()})", f"{constant()} {operator} {column}",
        f"{column} in ({constant()}, {constant()})", f"{column} not in ({constant()}, {constant()})",
        f"{column} between {constant()} and {constant()}", f"not {column} between {constant()} and {constant()}",
        f"{constant()} between {column} and {constant()}",
    ]  # fmt: skip
    text = rng.choice(texts)
    return text, {name: value for name, value in parameters.items() if f"${name}" in text}


def kept_files(table: Table, condition: str, parameters: dict[str, Any]) -> set[int]:
    """Return the numbers of the files that planning leaves for a condition."""
    query = parse_query(f"select n from db.t where {condition}", LocalEngine().serialize)
    scan, reference = table.scan(), query.tables[0]
    found = find_filters(query.node, {id(reference.node): (reference, scan.schema)}, parameters)
    try:
        tasks = replace(scan, predicate=found.get(reference, TRUE)).plan().tasks
    except FrazilError:  # a literal that does not fit the column: nothing is pruned
        return set(range(FILES))
    return {task.data_file.partition[0] for task in tasks}


@pytest.mark.parametrize("column", VALUES)
def test_no_file_with_a_row_of_the_answer_is_pruned(both: tuple[Table, duckdb.DuckDBPyConnection], column: str) -> None:
    table, memory = both
    rng = random.Random(f"{SEED} {column}")
    answered = 0
    for _ in range(CONDITIONS):
        condition, given = random_condition(rng, column)
        parameters = {name: parameter_value(name, value) for name, value in given.items()}
        try:
            values = {name: duckdb_value(value) for name, value in parameters.items()}
            expected = memory.execute(f"select n from db.t where {condition}", values or None).fetchall()
        except (duckdb.Error, UnicodeDecodeError):
            continue
        answered += 1
        lost = {number for (number,) in expected} - kept_files(table, condition, parameters)
        assert not lost, f"{condition} {given}: files {lost} are missing"
    assert answered > CONDITIONS / 10
