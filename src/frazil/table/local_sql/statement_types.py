"""Types of DuckDB and of lakes: what a type is called in each, and which types both engines treat alike."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from frazil.errors import UnsupportedError
from frazil.evaluate import sql_types as t
from frazil.table.local_sql.statement_text import sql_of

EXACT_DIGITS = 15
"""How many digits of a decimal a double holds, so that both engines find the same double."""
_FLOAT_DIGITS = 7
_KINDS = exp.DataType.Type
_ARROW = {
    _KINDS.BOOLEAN: t.BOOLEAN,
    _KINDS.INT: t.INT,
    _KINDS.BIGINT: t.LONG,
    _KINDS.FLOAT: t.FLOAT,
    _KINDS.DOUBLE: t.DOUBLE,
    _KINDS.TEXT: t.STRING,
    _KINDS.VARCHAR: t.STRING,
    _KINDS.DATE: t.DATE,
    _KINDS.TIMESTAMPNTZ: t.TIMESTAMP_NTZ,
    _KINDS.TIMESTAMPTZ: t.TIMESTAMP,
    _KINDS.TIME: t.TIME,
    _KINDS.UUID: t.UUID,
}
_NAMES = {
    _KINDS.BOOLEAN: "boolean",
    _KINDS.INT: "int",
    _KINDS.BIGINT: "long",
    _KINDS.FLOAT: "float",
    _KINDS.DOUBLE: "double",
    _KINDS.TEXT: "string",
    _KINDS.VARCHAR: "string",
    _KINDS.DATE: "date",
    _KINDS.TIMESTAMPNTZ: "timestamp",
    _KINDS.TIMESTAMPTZ: "timestamptz",
    _KINDS.TIMESTAMP_NS: "timestamp_ns",
    _KINDS.TIME: "time",
    _KINDS.UUID: "uuid",
    _KINDS.VARBINARY: "binary",
}
_OTHER_NAMES = {
    _KINDS.INT128: "HUGEINT",
    _KINDS.UINT128: "UHUGEINT",
    _KINDS.UTINYINT: "UTINYINT",
    _KINDS.USMALLINT: "USMALLINT",
    _KINDS.UINT: "UINTEGER",
    _KINDS.UBIGINT: "UBIGINT",
}


def type_of(data_type: exp.DataType) -> pa.DataType | None:
    """Return the Arrow type of a type's name in a cast, None if casts to it are not supported."""
    if data_type.this == _KINDS.DECIMAL:
        precision, scale = _digits(data_type)
        return pa.decimal128(precision, scale)
    return None if data_type.expressions or data_type.args.get("values") else _ARROW.get(data_type.this)


def _digits(data_type: exp.DataType) -> tuple[int, int]:
    given = [int(str(inner_type.this)) for inner_type in data_type.expressions]
    return (given[0] if given else 18), (given[1] if len(given) > 1 else 0 if given else 3)


def column_type(data_type: exp.DataType, what: str) -> str:
    """Return the type of a column of a lake for a type of DuckDB; refuse types that lakes lack."""
    if data_type.this == _KINDS.DECIMAL:
        return "decimal({}, {})".format(*_digits(data_type))
    inner = data_type.expressions
    if data_type.this == _KINDS.STRUCT:
        parts = [f"{_quoted(field.name)}: {column_type(field.args['kind'], what)}" for field in inner]
        return f"struct<{', '.join(parts)}>"
    if data_type.this in (_KINDS.ARRAY, _KINDS.LIST) and len(inner) == 1 and not data_type.args.get("values"):
        return f"list<{column_type(inner[0], what)}>"
    if data_type.this == _KINDS.MAP and len(inner) == 2:
        return "map<{}, {}>".format(*(column_type(inner_type, what) for inner_type in inner))
    found = _NAMES.get(data_type.this)
    if found is None or data_type.args.get("values"):
        shown_name = _OTHER_NAMES.get(data_type.this) or sql_of(data_type)
        raise UnsupportedError(
            f"Cannot {what}: lakes have no type {shown_name}",
            hint="They have BOOLEAN, INTEGER, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), VARCHAR, BLOB, UUID, DATE, TIME, "
            "TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, lists, structs and maps.",
        )
    return found


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


_SHOWN = {
    t.INT: "INTEGER",
    t.LONG: "BIGINT",
    t.STRING: "VARCHAR",
    t.BINARY: "BLOB",
    t.TIMESTAMP: "TIMESTAMPTZ",
    t.TIMESTAMP_NTZ: "TIMESTAMP",
    t.TIME: "TIME",
    t.UUID: "UUID",
    t.NULL: "NULL",
}


def shown_type(data_type: pa.DataType) -> str:
    """Return a type as DuckDB calls it."""
    return _SHOWN.get(data_type) or t.shown_name(data_type).upper()


def meet(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type in which both engines compare two types, None if they differ, or one may refuse."""
    if right in (left, t.NULL):
        return left if t.is_computed(left) or left in (t.UUID, t.TIME) else None
    if left == t.NULL:
        return meet(right, t.NULL)
    if t.is_integer(left) and t.is_integer(right):
        return t.common_type((left, right))
    if t.DOUBLE in (left, right):
        other = right if left == t.DOUBLE else left
        is_exact = pa.types.is_decimal(other) and other.precision <= EXACT_DIGITS
        return t.DOUBLE if t.is_integer(other) or other == t.FLOAT or is_exact else None
    if all(t.is_integer(side) or pa.types.is_decimal(side) for side in (left, right)):
        (whole, scale), (other_whole, other_scale) = t.digits_of_type(left), t.digits_of_type(right)
        whole, scale = max(whole, other_whole), max(scale, other_scale)
        return pa.decimal128(whole + scale, scale) if whole + scale <= t.MAX_PRECISION else None
    if t.is_moment(left) and t.is_moment(right):
        return t.common_type((left, right))
    return None


def can_be_assigned(have: pa.DataType, to: pa.DataType, *, is_literal: bool) -> bool:
    """Return whether both engines put the same values of a type into a column of another, or refuse them."""
    if have in (to, t.NULL):
        return True
    if not t.is_computed(have) and not t.is_computed(to):
        return True  # which is copied, or refused by the verb
    if t.is_integer(have):
        return to in (t.INT, t.LONG, t.DOUBLE) or bool(pa.types.is_decimal(to))
    if pa.types.is_decimal(have):
        if pa.types.is_decimal(to):
            return bool(to.scale >= have.scale)
        return (to == t.DOUBLE and have.precision <= EXACT_DIGITS) or (
            to == t.FLOAT and is_literal and have.precision <= _FLOAT_DIGITS
        )
    return (have, to) in ((t.FLOAT, t.DOUBLE), (t.DATE, t.TIMESTAMP_NTZ), (t.DATE, t.TIMESTAMP))
