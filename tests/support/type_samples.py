"""One value of every type of `spec/types.py`."""

from __future__ import annotations

import inspect
import uuid
from decimal import Decimal
from typing import Any

from frazil.codec.wkt import wkt_to_wkb
from frazil.spec import types as t

POINT = wkt_to_wkb("POINT (1 2)")
SAMPLES: dict[t.Type, Any] = {
    t.BOOLEAN: True,
    t.INT: 1,
    t.LONG: 1 << 40,
    t.FLOAT: 0.5,
    t.DOUBLE: 0.1,
    t.DecimalType(9, 2): Decimal("1.25"),
    t.DATE: 19_000,
    t.TIME: 3_600_000_000,
    t.TIMESTAMP: 1_700_000_000_000_000,
    t.TIMESTAMPTZ: 1_700_000_000_000_000,
    t.TIMESTAMP_NS: 1_700_000_000_000_000_001,
    t.TIMESTAMPTZ_NS: 1_700_000_000_000_000_001,
    t.STRING: "a",
    t.UUID: uuid.UUID("12345678-1234-5678-1234-567812345678"),
    t.FixedType(2): b"\x00\x01",
    t.BINARY: b"\x00",
    t.UNKNOWN: None,
    t.GeometryType(): POINT,
    t.GeographyType(): POINT,
    t.VARIANT: {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"},
    t.StructType((t.NestedField(1, "a", t.INT),)): {"a": 1},
    t.ListType(1, t.INT): [1],
    t.MapType(1, t.STRING, 2, t.INT): {"a": 1},
}
CLASSES = {
    found
    for _, found in inspect.getmembers(t, inspect.isclass)
    if issubclass(found, t.Type) and found not in (t.Type, t.PrimitiveType, t.NestedType)
}
