"""Conversion of filters between Spark and the planner.

`pruning_predicate` parses the filters that Spark pushes down, in the notation of `spark/java/read/FilterText.java`:
nested JSON lists whose first item is the node's name. The result is only used for pruning, and Spark tests every row
again, so it may be weaker than the filter but never stronger: unsupported nodes become `true`, also under `not`.
Columns whose shown form differs from the stored form (`types.py`) are written as `["shown", column]`.

Spark's comparisons differ from the format's in two ways. NaN equals itself and is greater than every number, so `x > 1`
must keep files that hold NaN. And a comparison with null is neither true nor false, so each leaf here means "is true"
or, below `not`, "is false".

`row_filter` converts in the other direction: a scan's own filter to exact SQL over columns in stored form.
"""

from __future__ import annotations

import datetime
import math
import re
import uuid
import zoneinfo
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from frazil.errors import SchemaMismatchError, UnsupportedError
from frazil.expr.bind import bind
from frazil.expr.predicates import (
    FALSE,
    TRUE,
    And,
    Bound,
    BoundReference,
    Op,
    Or,
    Predicate,
    all_of,
    any_of,
    at_least,
    equal,
    is_in,
    is_nan,
    is_null,
    leaf,
    less_than,
    not_equal,
    not_in,
    not_null,
    push_not,
    starts_with,
)
from frazil.spec import types as ft
from frazil.spec.schema import Schema
from frazil.sql.sql_literals import stored_literal

_DAY_MICROS = 86_400_000_000
_HOUR_MICROS = 3_600_000_000
_ORDERS = {"LessThan": Op.LT, "LessThanOrEqual": Op.LT_EQ, "GreaterThan": Op.GT, "GreaterThanOrEqual": Op.GT_EQ}
_MIRRORED = {Op.LT: Op.GT, Op.LT_EQ: Op.GT_EQ, Op.GT: Op.LT, Op.GT_EQ: Op.LT_EQ, Op.EQ: Op.EQ}
_OPPOSITE = {Op.LT: Op.GT_EQ, Op.LT_EQ: Op.GT, Op.GT: Op.LT_EQ, Op.GT_EQ: Op.LT}
_EPOCH = datetime.date(1970, 1, 1)
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,6}))?)?")
_MICRO_DIGITS = 6
_FAR_NANOS = 2**63 - 1000
_MAX_SHOWN = 200
SHOWN_OTHERWISE = (ft.UuidType, ft.TimeType, ft.TimestampNsType, ft.TimestamptzNsType)
"""Types whose shown form differs from the stored form, and supports pruning."""
Node = Sequence[Any]
Paths = Mapping[tuple[str, ...], int]


def pruning_predicate(text: str, paths: Paths, schema: Schema) -> Predicate:
    """Parse Spark's pushed filters; `paths` maps the names that Spark uses to field ids."""
    return _Reader(paths, schema).is_true(msgspec.json.decode(text))


class _Reader:
    def __init__(self, paths: Paths, schema: Schema) -> None:
        self._paths = paths
        self._schema = schema

    def is_true(self, node: Node) -> Predicate:
        """Return a predicate that holds wherever the node is true."""
        name, *parts = node
        if name in ("and", "And"):
            return all_of(*map(self.is_true, parts))
        if name == "Or":
            return any_of(*map(self.is_true, parts))
        if name == "Not":
            return self.is_false(parts[0])
        predicate = self._leaf(name, parts)
        return TRUE if predicate is None else predicate

    def is_false(self, node: Node) -> Predicate:
        """Return a predicate that holds wherever the node is false."""
        name, *parts = node
        if name in ("and", "And"):
            return any_of(*map(self.is_false, parts))
        if name == "Or":
            return all_of(*map(self.is_false, parts))
        if name == "Not":
            return self.is_true(parts[0])
        predicate = self._negated_leaf(name, parts)
        return TRUE if predicate is None else predicate

    def _leaf(self, name: str, parts: list[Any]) -> Predicate | None:
        if name == "lit":
            return FALSE if parts[1] in (None, "false") else TRUE
        if name == "col":
            return self._test([name, *parts], lambda column, _: equal(column, True))
        if name in ("IsNull", "IsNotNull"):
            tested = parts[0][1] if parts[0][0] == "shown" else parts[0]
            return self._test(tested, lambda column, _: is_null(column) if name == "IsNull" else not_null(column))
        if name == "IsNaN":
            return self._test(parts[0], lambda column, _: is_nan(column))
        if name == "StartsWith":
            return self._prefix(parts)
        if name == "In":
            return self._in(parts)
        if name == "EqualNullSafe":
            for index in (0, 1):
                if parts[index][0] == "lit" and parts[index][2] is None:
                    return self._leaf("IsNull", [parts[1 - index]])
        if name in ("EqualTo", "EqualNullSafe"):
            return self._compare(Op.EQ, *parts)
        if name in _ORDERS:
            return self._compare(_ORDERS[name], *parts)
        return None

    def _negated_leaf(self, name: str, parts: list[Any]) -> Predicate | None:
        if name == "lit":
            return TRUE if parts[1] == "false" else FALSE
        if name == "col":
            return self._test([name, *parts], lambda column, _: equal(column, False))
        if name == "IsNull":
            return self._leaf("IsNotNull", parts)
        if name == "IsNotNull":
            return self._leaf("IsNull", parts)
        if name in _ORDERS:
            return self._compare(_OPPOSITE[_ORDERS[name]], *parts)
        if name == "EqualTo" and parts[0][0] != "lit" and parts[1][0] == "lit":
            return self._unequal(parts[0], [parts[1]])
        if name == "In":
            return self._unequal(parts[0], parts[1:])
        return None

    def _find(self, node: Node) -> ft.NestedField | None:
        """Return the field that a node names, which may be nested, or None."""
        path: list[str] = []
        while node[0] == "part":
            path.insert(0, node[2])
            node = node[1]
        if node[0] != "col":
            return None
        field_id = self._paths.get((node[1], *path))
        return None if field_id is None else self._schema.find_field(field_id)

    def _test(self, node: Node, make: Callable[[str, ft.NestedField], Predicate | None]) -> Predicate | None:
        field = self._find(node)
        if field is None or field.field_type.is_nested:
            return None
        predicate = make(self._schema.name_of(field.field_id), field)
        try:
            return None if predicate is None else bind(self._schema, predicate)
        except SchemaMismatchError:
            return None

    def _prefix(self, parts: list[Any]) -> Predicate | None:
        text = parts[1]
        if text[0] != "lit" or text[2] is None:
            return None
        return self._test(parts[0], lambda column, _: starts_with(column, text[2]))

    def _in(self, parts: list[Any]) -> Predicate | None:
        if parts[0][0] == "shown":
            if len(parts) > _MAX_SHOWN or any(node[0] != "lit" for node in parts[1:]):
                return None
            tests = [self._compare_shown(Op.EQ, parts[0], node) for node in parts[1:] if node[2] is not None]
            return (
                None if any(test is None for test in tests) else any_of(*(test for test in tests if test is not None))
            )

        def make(column: str, field: ft.NestedField) -> Predicate | None:
            values = [_value(node, field.field_type) for node in parts[1:] if node[0] != "lit" or node[2] is not None]
            if any(value is None for value in values):
                return None
            numbers = [value for value in values if not _is_nan(value)]
            among = is_in(column, numbers)
            return among if len(numbers) == len(values) else any_of(among, is_nan(column))

        return self._test(parts[0], make)

    def _unequal(self, node: Node, literals: list[Any]) -> Predicate | None:
        """Return a predicate for "none of these values"; None, which matches every row, if NaN is among them."""

        def make(column: str, field: ft.NestedField) -> Predicate | None:
            values = [_value(literal, field.field_type) for literal in literals]
            if any(value is None or _is_nan(value) for value in values):
                return None
            different = not_equal(column, values[0]) if len(values) == 1 else not_in(column, values)
            return all_of(not_null(column), different)

        return self._test(node, make)

    def _compare(self, op: Op, left: Node, right: Node) -> Predicate | None:
        if left[0] == "lit":
            left, right, op = right, left, _MIRRORED[op]
        if right[0] != "lit":
            return None
        if right[2] is None:
            return FALSE
        if left[0] == "shown":
            return self._compare_shown(op, left, right)
        if left[0] in ("Cast", "Year"):
            return self._compare_date(op, left, right)

        def make(column: str, field: ft.NestedField) -> Predicate | None:
            value = _value(right, field.field_type)
            if value is None:
                return None
            if isinstance(field.field_type, ft.FloatType | ft.DoubleType):
                return _compare_float(op, column, value)
            return leaf(op, column, value)

        return self._test(left, make)

    def _compare_shown(self, op: Op, node: Node, literal: Node) -> Predicate | None:
        """Convert a comparison of a column's shown form to a test of its stored values."""
        field = self._find(node[1])
        if field is None:
            return None
        column, field_type, text = self._schema.name_of(field.field_id), field.field_type, literal[2]
        predicate: Predicate | None = None
        if isinstance(field_type, ft.UuidType) and op is Op.EQ:
            # A shown uuid has one spelling, so no row equals any other text.
            predicate = equal(column, uuid.UUID(text)) if _UUID.fullmatch(text) else FALSE
        elif isinstance(field_type, ft.TimeType):
            predicate = _compare_time(op, column, literal)
        elif isinstance(field_type, ft.TimestampNsType | ft.TimestamptzNsType) and literal[1].startswith("timestamp"):
            first = int(text) * 1000
            predicate = _in_range(op, column, first, first + 1000) if abs(first) < _FAR_NANOS else None
        try:
            return None if predicate is None else bind(self._schema, predicate)
        except SchemaMismatchError:
            return None

    def _compare_date(self, op: Op, node: Node, literal: Node) -> Predicate | None:
        """Convert a comparison of a column's date or year to a range of its values."""
        if node[0] == "Year":
            year = int(literal[2])
            if not 1 <= year < datetime.MAXYEAR:
                return None
            first = (datetime.date(year, 1, 1) - _EPOCH).days
            after = (datetime.date(year + 1, 1, 1) - _EPOCH).days
            node = node[1]
        else:
            if literal[1] != "date":
                return None
            first = int(literal[2])
            after = first + 1
        if node[0] != "Cast":
            field = self._find(node)
            if field is None or not isinstance(field.field_type, ft.DateType):
                return None
            return _in_range(op, self._schema.name_of(field.field_id), first, after)
        _, child, _, kind, zone = node
        field = self._find(child)
        if kind != "date" or field is None:
            return None
        column = self._schema.name_of(field.field_id)
        if isinstance(field.field_type, ft.TimestampType):
            return _in_range(op, column, first * _DAY_MICROS, after * _DAY_MICROS)
        if isinstance(field.field_type, ft.TimestamptzType):
            early, late = _day_start(first, zone), _day_start(after, zone)
            return _in_range(op, column, early[0], late[1], early[1], late[0])
        return None


def _compare_time(op: Op, column: str, literal: Node) -> Predicate | None:
    """Compare a time with a Spark TIME literal, or with text, where a prefix sorts first."""
    if literal[1].startswith("time("):
        nanos = int(literal[2])
        if op is Op.EQ:
            return equal(column, nanos // 1000) if nanos % 1000 == 0 else FALSE
        return leaf(op, column, -(-nanos // 1000) if op in (Op.LT, Op.GT_EQ) else nanos // 1000)
    parts = _TIME.fullmatch(literal[2])
    if parts is None:
        return None
    hours, minutes, seconds, fraction = parts.groups()
    micros = (int(hours) * 3600 + int(minutes) * 60 + int(seconds or 0)) * 1_000_000 + int(
        (fraction or "").ljust(6, "0")
    )
    if fraction is not None and len(fraction) == _MICRO_DIGITS:
        return leaf(op, column, micros)
    # The shown text of a time is longer than the literal, and so greater if it starts with it.
    if op is Op.EQ:
        return FALSE
    return leaf(Op.LT if op in (Op.LT, Op.LT_EQ) else Op.GT_EQ, column, micros)


def _day_start(day: int, zone: str) -> tuple[int, int]:
    """Return bounds, in microseconds, of the instant at which a day begins in a time zone."""
    utc = day * _DAY_MICROS
    try:
        local = datetime.datetime.combine(_EPOCH, datetime.time()) + datetime.timedelta(days=day)
        offset = local.replace(tzinfo=zoneinfo.ZoneInfo(zone)).utcoffset()
    except (zoneinfo.ZoneInfoNotFoundError, OverflowError, ValueError, OSError):
        offset = None
    if offset is None:
        return utc - 19 * _HOUR_MICROS, utc + 19 * _HOUR_MICROS
    start = utc - offset // datetime.timedelta(microseconds=1)
    return start - 3 * _HOUR_MICROS, start + 3 * _HOUR_MICROS


def _in_range(
    op: Op, column: str, first: int, after: int, last_first: int | None = None, first_after: int | None = None
) -> Predicate:
    """Compare with a day or year that covers [first, after); wider bounds apply if its ends are not known exactly."""
    last_first = first if last_first is None else last_first
    first_after = after if first_after is None else first_after
    if op is Op.EQ:
        return all_of(at_least(column, first), less_than(column, after))
    if op is Op.LT:
        return less_than(column, last_first)
    if op is Op.LT_EQ:
        return less_than(column, after)
    if op is Op.GT:
        return at_least(column, first_after)
    return at_least(column, first)


def _compare_float(op: Op, column: str, value: float) -> Predicate | None:
    """Compare as Spark does: NaN equals itself and is greater than every number."""
    if math.isnan(value):
        if op in (Op.EQ, Op.GT_EQ):
            return is_nan(column)
        return FALSE if op is Op.GT else not_null(column)
    comparison = leaf(op, column, value)
    return any_of(comparison, is_nan(column)) if op in (Op.GT, Op.GT_EQ) else comparison


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _value(node: Node, data_type: ft.Type) -> Any:
    """Return a Spark literal as a value of a type, or None if the literal does not fit the type."""
    if node[0] != "lit" or node[2] is None:
        return None
    text = node[2]
    if isinstance(data_type, ft.BooleanType):
        return text == "true"
    if isinstance(data_type, ft.FloatType | ft.DoubleType):
        return float(text.replace("Infinity", "inf"))
    if isinstance(data_type, ft.DecimalType):
        return Decimal(text)
    if isinstance(data_type, ft.StringType):
        return text
    if isinstance(data_type, ft.BinaryType | ft.FixedType | ft.UuidType):
        return bytes.fromhex(text) if node[1] == "binary" else None
    try:
        return int(text)
    except ValueError:
        return None


def row_filter(bound: Predicate, find: Callable[[BoundReference], str]) -> str | None:
    """Return a scan's bound filter as SQL over stored values, or None if it keeps every row.

    `find` returns the SQL of a field. The format's logic has two values: a comparison with null is false, and its
    negation true. The result is text so that a list of ten thousand values takes one call to Spark.
    """
    pushed = push_not(bound)
    return None if pushed == TRUE else _sql(pushed, find)


def _sql(predicate: Predicate, find: Callable[[BoundReference], str]) -> str:
    if predicate in (TRUE, FALSE):
        return "true" if predicate == TRUE else "false"
    if isinstance(predicate, And):
        return " AND ".join(f"({_sql(child, find)})" for child in predicate.children)
    if isinstance(predicate, Or):
        return " OR ".join(f"({test})" for test in _any_sql(predicate.children, find))
    if isinstance(predicate, Bound):
        if not isinstance(predicate.term, BoundReference):
            raise UnsupportedError(
                f"Cannot filter by {predicate.term} on Spark",
                hint="Filter by the column itself: the planner prunes partitions by it.",
            )
        return _leaf_sql(predicate, predicate.term, find(predicate.term))
    raise UnsupportedError(f"Cannot filter by {predicate} on Spark")


def _any_sql(children: Sequence[Predicate], find: Callable[[BoundReference], str]) -> list[str]:
    """Return the alternatives; "greater, or NaN" becomes Spark's own comparison, which it pushes down to files."""
    tests = [child for child in children if isinstance(child, Bound) and isinstance(child.term, BoundReference)]
    nans = {test.term for test in tests if test.op is Op.IS_NAN}
    greater = [test for test in tests if test.op in (Op.GT, Op.GT_EQ) and test.term in nans]
    covered = {bound.term for bound in greater}
    alternatives = []
    for child in children:
        if child in greater and isinstance(child, Bound) and isinstance(child.term, BoundReference):
            alternatives.append(
                f"{find(child.term)} {_SIGNS[child.op]} {stored_literal(child.literal, child.term.result_type)}"
            )
        elif not (isinstance(child, Bound) and child.op is Op.IS_NAN and child.term in covered):
            alternatives.append(_sql(child, find))
    return alternatives


_SIGNS = {Op.EQ: "=", Op.LT: "<", Op.LT_EQ: "<=", Op.GT: ">", Op.GT_EQ: ">="}


def _leaf_sql(predicate: Bound, term: BoundReference, column: str) -> str:
    op, result_type = predicate.op, term.result_type
    if op in (Op.IS_NULL, Op.NOT_NULL):
        return f"{column} IS {'NULL' if op is Op.IS_NULL else 'NOT NULL'}"
    if op in (Op.IS_NAN, Op.NOT_NAN):
        return f"isnan({column})" if op is Op.IS_NAN else f"{column} IS NULL OR NOT isnan({column})"
    literals = [stored_literal(literal, result_type) for literal in predicate.literals]
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        starts = f"startswith({column}, {literals[0]})"
        return starts if op is Op.STARTS_WITH else f"{column} IS NULL OR NOT {starts}"
    if op in (Op.IN, Op.NOT_IN):
        among = f"{column} IN ({', '.join(literals)})" if literals else "false"
        return among if op is Op.IN else f"{column} IS NULL OR NOT ({among})"
    if op is Op.NOT_EQ:
        return f"{column} IS NULL OR {column} <> {literals[0]}"
    comparison = f"{column} {_SIGNS[op]} {literals[0]}"
    # To Spark, NaN is greater than every number; to the format it is not comparable.
    is_nan_greater = isinstance(result_type, ft.FloatType | ft.DoubleType) and op in (Op.GT, Op.GT_EQ)
    return f"{comparison} AND NOT isnan({column})" if is_nan_greater else comparison
