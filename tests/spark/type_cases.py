"""Rows with every type, at the top and inside lists, maps and structs. Import as `tests.spark.type_cases`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID as Uuid

from frazil.spec.schema import Schema
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)

DAY = 86_400_000_000
VALUES: dict[str, tuple[Type, list[Any]]] = {
    "boolean": (BOOLEAN, [True, False]),
    "int": (INT, [-(2**31), 0, 2**31 - 1]),
    "long": (LONG, [-(2**63), 0, 2**63 - 1]),
    "float": (FLOAT, [-0.0, 1.5, float("nan"), float("inf")]),
    "double": (DOUBLE, [-0.0, 1e300, float("nan"), float("-inf")]),
    "decimal_9": (DecimalType(9, 2), [Decimal("-9999999.99"), Decimal("0.00"), Decimal("9999999.99")]),
    "decimal_18": (DecimalType(18, 3), [Decimal("-999999999999999.999"), Decimal("0.001")]),
    "decimal_38": (DecimalType(38, 10), [Decimal("-9999999999999999999999999999.9999999999"), Decimal("1.0000000000")]),
    "decimal_1": (DecimalType(1, 0), [Decimal(-9), Decimal(9)]),
    "date": (DATE, [-141427, -1, 0, 18321]),
    "time": (TIME, [0, 1, DAY - 1, 3_600_000_000]),
    "timestamp": (TIMESTAMP, [-12219292800000001, -1, 0, 1_700_000_000_123_456]),
    "timestamptz": (TIMESTAMPTZ, [-12219292800000001, -1, 0, 1_700_000_000_123_456]),
    "timestamp_ns": (TIMESTAMP_NS, [-1, 0, 1_700_000_000_123_456_789]),
    "timestamptz_ns": (TIMESTAMPTZ_NS, [-1, 0, 1_700_000_000_123_456_789]),
    "string": (STRING, ["", "it's", 'quote " and \\ slash', "snow 雪 \U0001f600", "new\nline"]),
    "uuid": (UUID, [Uuid(int=0), Uuid("f79c3e09-677c-4bbd-a479-3f349cb785e7"), Uuid(int=2**128 - 1)]),
    "fixed": (FixedType(3), [b"\0\0\0", b"abc", b"\xff\xfe\xfd"]),
    "binary": (BINARY, [b"", b"\0\xff"]),
}


def _schema() -> Schema:
    fields = [NestedField(1, "id", LONG, required=True), NestedField(2, "part", INT)]
    fields += [NestedField(10 + at, f"a_{name}", kind) for at, (name, (kind, _)) in enumerate(VALUES.items())]
    parts = tuple(NestedField(100 + at, f"in_{name}", kind) for at, (name, (kind, _)) in enumerate(VALUES.items()))
    fields.append(NestedField(50, "a_struct", StructType(parts)))
    for at, (name, (kind, _)) in enumerate(VALUES.items()):
        fields.append(NestedField(200 + 5 * at, f"list_of_{name}", ListType(201 + 5 * at, kind)))
        fields.append(NestedField(202 + 5 * at, f"map_of_{name}", MapType(203 + 5 * at, STRING, 204 + 5 * at, kind)))
    inner = StructType((NestedField(401, "u", UUID), NestedField(402, "t", TIME), NestedField(403, "d", DATE)))
    fields.append(NestedField(400, "list_of_structs", ListType(404, inner)))
    fields.append(NestedField(410, "map_by_uuid", MapType(411, UUID, 412, STRING)))
    return Schema(tuple(fields))


ALL_TYPES = _schema()


def rows_of_all_types() -> list[dict[str, Any]]:
    """Return rows that between them hold every value of every type, nulls, and empty and absent collections."""
    rows: list[dict[str, Any]] = []
    for at in range(6):
        row: dict[str, Any] = {"id": at, "part": at % 2}
        struct: dict[str, Any] = {}
        for name, (_, values) in VALUES.items():
            value = values[at] if at < len(values) else None
            row[f"a_{name}"] = value
            struct[f"in_{name}"] = value
            row[f"list_of_{name}"] = [*values[at:], None] if at < 4 else ([] if at == 4 else None)
            row[f"map_of_{name}"] = {"k": value, "n": None} if at < 4 else ({} if at == 4 else None)
        row["a_struct"] = struct if at < 5 else None
        row["list_of_structs"] = [{"u": Uuid(int=at), "t": at, "d": None}, None] if at < 4 else None
        row["map_by_uuid"] = {Uuid(int=at): "x", Uuid(int=at + 1): None} if at < 4 else None
        rows.append(row)
    return rows


DEFAULTS: dict[str, tuple[str, Any]] = {
    "boolean": ("boolean", False),
    "int": ("int", -(2**31)),
    "long": ("long", 2**63 - 1),
    "float": ("float", -0.5),
    "double": ("double", 1e300),
    "decimal_9": ("decimal(9, 2)", "-1.25"),
    "decimal_18": ("decimal(18, 3)", "999999999999999.999"),
    "decimal_38": ("decimal(38, 10)", "-9999999999999999999999999999.9999999999"),
    "decimal_1": ("decimal(1, 0)", "9"),
    "date": ("date", "0001-01-01"),
    "time": ("time", "23:59:59.999999"),
    "timestamp": ("timestamp", "1582-10-04T01:02:03.000004"),
    "timestamptz": ("timestamptz", "1582-10-04T01:02:03.000004+00:00"),
    "timestamp_ns": ("timestamp_ns", "1969-12-31T23:59:59.999999999"),
    "timestamptz_ns": ("timestamptz_ns", "2020-02-29T01:02:03.000000004+00:00"),
    "string": ("string", 'it\'s "a" \\ default\n雪 \U0001f600 ${x} \\u0041'),
    "uuid": ("uuid", "00000000-0000-0000-0000-0000000000ff"),
    "fixed": ("fixed(3)", b"\0\xff\x10"),
    "binary": ("binary", b"\0\xff"),
}
