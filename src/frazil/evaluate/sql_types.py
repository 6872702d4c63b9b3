"""The types of Spark SQL over Arrow: which Arrow type a value has, and in which type two values meet. ANSI mode.

    tinyint int8    smallint int16   int int32   bigint int64   float float32   double float64   decimal decimal128
    string string   binary binary    boolean bool   date date32   timestamp timestamp[us, UTC]
    timestamp_ntz timestamp[us]      void null

Values of other types (structs, lists, maps, uuids, times of day, nanoseconds, variants) can be passed on as they are,
and not computed with: Spark shows some of them in another form, and the error says that it is the way. Uuids and times
of day, which it shows as text, are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

import pyarrow as pa

from frazil.errors import UnsupportedError
from frazil.expr.parse import SPARKS_WAY

NULL, BOOLEAN, STRING, BINARY, DATE = pa.null(), pa.bool_(), pa.string(), pa.binary(), pa.date32()
BYTE, SHORT, INT, LONG, FLOAT, DOUBLE = pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()
TIMESTAMP, TIMESTAMP_NTZ = pa.timestamp("us", "UTC"), pa.timestamp("us")
TIME, UUID = pa.time64("us"), pa.uuid()
MAX_PRECISION = 38
_MIN_SCALE = 6
_INTEGERS = (BYTE, SHORT, INT, LONG)
_NAMES = {
    "boolean": BOOLEAN,
    "tinyint": BYTE,
    "byte": BYTE,
    "smallint": SHORT,
    "short": SHORT,
    "int": INT,
    "integer": INT,
    "bigint": LONG,
    "long": LONG,
    "float": FLOAT,
    "real": FLOAT,
    "double": DOUBLE,
    "string": STRING,
    "binary": BINARY,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ,
    "void": NULL,
}
_DIGITS = {BYTE: 3, SHORT: 5, INT: 10, LONG: 20}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,\s*(\d+))?\))?")


def left_to_spark(reason: str) -> UnsupportedError:
    """Return the error for what only Spark computes."""
    return UnsupportedError(f"Cannot compute this without Spark: {reason}", hint=SPARKS_WAY)


def parse_type_name(name: str) -> pa.DataType:
    """Return the Arrow type of a type's name in Spark SQL."""
    found = _NAMES.get(name)
    if found is not None:
        return found
    match = _DECIMAL.fullmatch(name)
    if match is None:
        raise left_to_spark(f"the type {name} is not supported")
    precision, scale = int(match[1] or 10), int(match[2] or 0)
    if not 0 <= scale <= precision <= MAX_PRECISION or precision == 0:
        raise left_to_spark(f"there is no type {name}")
    return pa.decimal128(precision, scale)


def shown_name(data_type: pa.DataType) -> str:
    """Return a type as Spark calls it."""
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    return next((name for name, value in _NAMES.items() if value == data_type), str(data_type))


def is_computed(data_type: pa.DataType) -> bool:
    """Return whether values of a type are computed with here."""
    return data_type in _NAMES.values() or bool(pa.types.is_decimal128(data_type))


def is_integer(data_type: pa.DataType) -> bool:
    """Return whether a type is a whole number."""
    return data_type in _INTEGERS


def is_floating(data_type: pa.DataType) -> bool:
    """Return whether a type is float or double."""
    return data_type in (FLOAT, DOUBLE)


def is_number(data_type: pa.DataType) -> bool:
    """Return whether a type is a number."""
    return is_integer(data_type) or is_floating(data_type) or bool(pa.types.is_decimal(data_type))


def zero_of(data_type: pa.DataType) -> pa.Scalar:
    """Return zero as a number of a type."""
    return pa.scalar(Decimal(0) if pa.types.is_decimal(data_type) else 0, data_type)


def is_moment(data_type: pa.DataType) -> bool:
    """Return whether a type is a date or a timestamp."""
    return data_type in (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def is_zoned(data_type: pa.DataType, other: pa.DataType) -> bool:
    """Return whether a conversion between two types asks for the time zone of the session."""
    return (
        TIMESTAMP in (data_type, other)
        and data_type != other
        and (STRING in (data_type, other) or is_moment(data_type))
    )


def digits_of_type(data_type: pa.DataType) -> tuple[int, int]:
    """Return how many digits an exact number has before and after its point."""
    if pa.types.is_decimal(data_type):
        return data_type.precision - data_type.scale, data_type.scale
    return _DIGITS[data_type], 0


def as_decimal(data_type: pa.DataType) -> pa.DataType:
    """Return the decimal that holds all values of an exact type."""
    whole, scale = digits_of_type(data_type)
    return pa.decimal128(whole + scale, scale)


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    """Return a decimal of so many digits; of more than 38, digits after the point go first, but for six."""
    if precision <= MAX_PRECISION:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    return pa.decimal128(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, _MIN_SCALE)))


def common_type(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """Return the type in which values are compared or chosen from; text beside another type becomes that type."""
    found = NULL
    for data_type in kinds:
        found = _common(found, data_type)
    return found


def _common(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if right in (left, NULL):
        return left
    if left == NULL:
        return right
    if is_number(left) and is_number(right):
        return _common_number(left, right)
    if is_moment(left) and is_moment(right):
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    if STRING in (left, right):
        other = right if left == STRING else left
        if is_integer(other):
            return LONG
        if is_number(other):
            return DOUBLE
        if is_moment(other) or other in (BOOLEAN, BINARY):
            return other
    raise left_to_spark(f"{shown_name(left)} and {shown_name(right)} values have no common type without Spark")


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if is_floating(left) or is_floating(right):
        return DOUBLE
    if is_integer(left) and is_integer(right):
        return left if _INTEGERS.index(left) > _INTEGERS.index(right) else right
    (whole, scale), (other_whole, other_scale) = digits_of_type(left), digits_of_type(right)
    whole, scale = max(whole, other_whole), max(scale, other_scale)
    if whole + scale > MAX_PRECISION:
        raise left_to_spark(
            f"{shown_name(left)} and {shown_name(right)} values need a common type of more than 38 digits"
        )
    return pa.decimal128(whole + scale, scale)
