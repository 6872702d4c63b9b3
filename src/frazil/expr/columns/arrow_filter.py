"""Filters of other libraries: Arrow expressions, read and converted to predicates for pruning.

DuckDB, Polars and DataFusion pass a filter to a dataset as `pyarrow.compute.Expression`. Arrow does not expose its
tree, but serializes one for pickling: an IPC file whose columns are the literals, in their types, and whose metadata
lists calls, fields and literals in order. `read_expression` reads that. An unknown form gives None, and nothing is
pruned then.

The same expressions have two semantics. In Arrow, NaN equals nothing and null is in no set. In the SQL of engines, NaN
equals itself and is greater than every number, and null makes a test neither true nor false; but some engines translate
their filters to plain Arrow expressions and rely on the result. So a filter has a `meaning`.
"""

from __future__ import annotations

import ctypes
import datetime
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_arrays import is_text
from frazil.errors import FrazilError
from frazil.expr.bind import bind
from frazil.expr.predicates import FALSE, TRUE, Op, Predicate, Reference, SqlTest, TypedText, all_of, any_of
from frazil.spec.schema import Schema
from frazil.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntType,
    LongType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UuidType,
)


class Meaning(Enum):
    """The semantics of a filter."""

    ARROW = "arrow"
    SQL = "sql"


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a nested field, by names."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    """A value, as Arrow's scalar."""

    value: Any


@dataclass(frozen=True, slots=True)
class Call:
    """An Arrow function call, with its options if it has any."""

    name: str
    arguments: tuple[Node, ...]
    options: Any = None


Node: TypeAlias = "Field | Literal | Call"
_MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class PushedFilter:
    """A scan's use of a filter: a predicate that keeps every row the filter keeps, and the rest to test.

    `rest` is the filter to apply to the remaining rows, or None if the predicate is exact.
    """

    predicate: Predicate
    rest: Any | None


def push_filter(expression: Any, schema: Schema, meaning: Meaning, *, may_prune: bool = True) -> PushedFilter:
    """Return the part of an Arrow expression over a schema's columns that planning can use.

    With `may_prune` false, for example because of a limit, the expression is only converted to Arrow's semantics.
    """
    if isinstance(expression, pa.Scalar):  # a constant, such as null
        expression = pc.scalar(expression)
    node = read_expression(expression)
    if node is None:
        return PushedFilter(TRUE, expression)
    reader = _Predicates(schema, meaning)
    predicate = reader.predicate_for(node, is_true=True)
    if reader.is_exact and may_prune:
        return PushedFilter(predicate, None)
    if meaning is Meaning.SQL:
        expression = _sql_expression(node, reader) if _is_known(node) else expression
    return PushedFilter(predicate if may_prune else TRUE, expression)


# --- Arrow's tree


def read_expression(expression: Any) -> Node | None:
    """Return the tree of an expression, or None if Arrow's serialization of it is not understood."""
    try:
        (buffer,) = expression.__reduce__()[1]
        reader = pa.ipc.open_file(buffer)
        literals = reader.get_batch(0)
        tokens = iter(list(_ordered_metadata(reader.schema)))
        node = _read(tokens, literals, 0)
        return node if next(tokens, None) is None and isinstance(node, Field | Literal | Call) else None
    except (pa.ArrowException, _Unknown, ValueError, TypeError, IndexError, AttributeError, StopIteration):
        return None


class _Unknown(Exception):
    """The serialization contains unknown tokens."""


@dataclass(frozen=True, slots=True)
class _Options:
    value: Any


@dataclass(frozen=True, slots=True)
class _End:
    name: str


def _read(tokens: Iterator[tuple[str, str]], literals: Any, depth: int) -> Node | _Options | _End:
    if depth > _MAX_DEPTH:
        raise _Unknown
    token, value = next(tokens)
    if token == "literal":
        return Literal(literals.column(int(value))[0])
    if token == "field_ref":
        return Field((value,))
    if token == "nested_field_ref":
        path: tuple[str, ...] = ()
        for _ in range(int(value)):
            child = _read(tokens, literals, depth + 1)
            if not isinstance(child, Field):
                raise _Unknown
            path += child.path
        return Field(path)
    if token == "options":
        return _Options(literals.column(int(value))[0])
    if token == "end":
        return _End(value)
    if token != "call":
        raise _Unknown
    arguments: list[Node] = []
    options = None
    while True:
        child = _read(tokens, literals, depth + 1)
        if isinstance(child, _End):
            if child.name != value:
                raise _Unknown
            return Call(value, tuple(arguments), options)
        if isinstance(child, _Options):
            options = child.value
        else:
            arguments.append(child)


class _ArrowSchema(ctypes.Structure):
    """The first fields of the C data interface's `ArrowSchema`."""

    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p)]


def _ordered_metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of a schema's metadata in order, which Arrow's dict view loses."""
    capsule = schema.__arrow_c_schema__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = _ArrowSchema.from_address(get_pointer(capsule, b"arrow_schema")).metadata
    if address is None:
        return

    def number() -> int:
        nonlocal address
        (value,) = struct.unpack("=i", ctypes.string_at(address, 4))
        address += 4
        return int(value)

    def text() -> str:
        nonlocal address
        size = number()
        data = ctypes.string_at(address, size)
        address += size
        return data.decode()

    for _ in range(number()):
        yield text(), text()


# --- to predicates

_ORDERS = {"less": Op.LT, "less_equal": Op.LT_EQ, "greater": Op.GT, "greater_equal": Op.GT_EQ}
_MIRRORED = {Op.LT: Op.GT, Op.LT_EQ: Op.GT_EQ, Op.GT: Op.LT, Op.GT_EQ: Op.LT_EQ, Op.EQ: Op.EQ}
_FLOATING = (FloatType, DoubleType)


class _Predicates:
    """Converts nodes to predicates; `is_exact` is false once something was left out."""

    def __init__(self, schema: Schema, meaning: Meaning) -> None:
        self._schema = schema
        self._is_sql = meaning is Meaning.SQL
        self.is_exact = True

    def predicate_for(self, node: Node, *, is_true: bool) -> Predicate:
        """Return a predicate for every row where a node is true, or false; it may keep more rows if that is unknown."""
        predicate = self._find(node, is_true=is_true)
        if predicate is None:
            self.is_exact = False
            return TRUE
        return predicate

    def _find(self, node: Node, *, is_true: bool) -> Predicate | None:
        if isinstance(node, Literal):
            value = node.value.as_py() if pa.types.is_boolean(node.value.type) else None
            return TRUE if value is is_true else FALSE
        if isinstance(node, Field):
            return self._test(Op.EQ, node, (True,), is_true=is_true)
        name, arguments = node.name, node.arguments
        if name in ("and_kleene", "or_kleene", "and", "or"):
            # Without Kleene logic, null absorbs the other operand, which gives fewer rows but never others.
            self.is_exact &= name.endswith("_kleene")
            parts = [self.predicate_for(argument, is_true=is_true) for argument in arguments]
            return all_of(*parts) if name.startswith("and") is is_true else any_of(*parts)
        if name == "invert":
            return self.predicate_for(arguments[0], is_true=not is_true)
        if name in ("is_null", "is_valid"):
            return self._null_test(node, is_true=(name == "is_null") is is_true)
        if name == "is_nan":
            return self._test(Op.IS_NAN, arguments[0], (), is_true=is_true)
        if name == "is_in":
            return self._in(node, is_true=is_true)
        if name == "starts_with":
            prefix = _option(node, "pattern")
            if not isinstance(prefix, str | bytes) or _option(node, "ignore_case") is not False:
                return None
            text = prefix.decode() if isinstance(prefix, bytes) else prefix
            return self._test(Op.STARTS_WITH, arguments[0], (text,), is_true=is_true)
        if name == "not_equal":
            return self._compare(Op.EQ, arguments, is_true=not is_true)
        op = Op.EQ if name == "equal" else _ORDERS.get(name)
        return None if op is None else self._compare(op, arguments, is_true=is_true)

    def _null_test(self, node: Call, *, is_true: bool) -> Predicate | None:
        if _option(node, "nan_is_null") is True:
            return None
        return self._test(Op.IS_NULL, node.arguments[0], (), is_true=is_true)

    def _compare(self, op: Op, arguments: Sequence[Node], *, is_true: bool) -> Predicate | None:
        left, right = arguments
        if isinstance(left, Literal):
            left, right, op = right, left, _MIRRORED[op]
        return self._test(op, left, (right.value,), is_true=is_true) if isinstance(right, Literal) else None

    def _in(self, node: Call, *, is_true: bool) -> Predicate | None:
        column, values = node.arguments[0], _option_scalar(node, "value_set")
        if values is None or not pa.types.is_list(values.type):
            return None
        valid = tuple([value for value in values.values if value.is_valid])
        has_null = len(valid) < len(values.values)
        if self._is_sql:
            if has_null and not is_true:
                return FALSE
            return self._among(column, valid, is_true=is_true)
        if _option(node, "null_matching_behavior") != 0:  # anything but MATCH, the default
            return None
        members = self._among(column, valid, is_true=is_true)
        null = self._test(Op.IS_NULL, column, (), is_true=True)
        if members is None or null is None or (has_null and not is_true):
            return None
        return any_of(members, null) if has_null is is_true else members

    def _among(self, column: Node, values: tuple[Any, ...], *, is_true: bool) -> Predicate | None:
        return self._test(Op.IN, column, values, is_true=is_true) if values else (FALSE if is_true else TRUE)

    def _test(self, op: Op, node: Node, values: tuple[Any, ...], *, is_true: bool) -> Predicate | None:
        """Return a leaf, or None if it does not fit the column."""
        column = self._column(node)
        if column is None:
            return None
        name, data_type = column
        literals = []
        for value in values:
            literal = _literal(value, data_type)
            if literal is None:
                return None
            literals.append(literal)
        test: Predicate = SqlTest(op, Reference(name), tuple(literals), is_true=is_true)
        try:
            bind(self._schema, test)
        except FrazilError:
            return None
        if isinstance(data_type, _FLOATING) and not self._is_sql and op not in (Op.IS_NULL, Op.IS_NAN):
            self.is_exact = False
            return any_of(test, SqlTest(Op.IS_NAN, Reference(name)))
        return test

    def is_floating(self, node: Node) -> bool:
        """Return whether a column or literal may be NaN."""
        if isinstance(node, Literal):
            return bool(pa.types.is_floating(node.value.type))
        column = self._column(node)
        return column is not None and isinstance(column[1], _FLOATING)

    def is_uuid(self, node: Node) -> bool:
        """Return whether a column holds uuids."""
        column = self._column(node)
        return column is not None and isinstance(column[1], UuidType)

    def _column(self, node: Node) -> tuple[str, Type] | None:
        if not isinstance(node, Field):
            return None
        name = ".".join(node.path)
        field = self._schema.find_field(name)
        if field is None or field.name != node.path[-1]:
            return None
        ancestors = self._schema.ancestors_of(field.field_id)
        path = [*(ancestor.name for ancestor in reversed(ancestors)), field.name]
        return (name, field.field_type) if tuple(path) == node.path and field.field_type.is_primitive else None


def _option_scalar(node: Call, name: str) -> Any:
    try:
        return None if node.options is None else node.options[name]
    except (KeyError, IndexError):
        return None


def _option(node: Call, name: str) -> Any:
    scalar = _option_scalar(node, name)
    return None if scalar is None else scalar.as_py()


def _literal(value: Any, data_type: Type) -> Any:
    """Return a scalar as a literal of a condition on a column, or None if the comparison may not be exact."""
    if not isinstance(value, pa.Scalar):
        return value
    if not value.is_valid:
        return None
    arrow = value.type
    while pa.types.is_dictionary(arrow):
        value = value.value
        arrow = value.type
    for types, is_kind, convert in _LITERALS:
        if isinstance(data_type, types):
            return convert(value) if is_kind(arrow) else None
    return None


def _number(value: Any) -> Any:
    number = value.as_py()
    if isinstance(number, int) and abs(number) >= 2**53:
        return None
    return None if number != number else number


_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def _moment(value: Any, kind_name: str, zone: str) -> Any:
    # As integers, since dates near either end of the range exceed 64-bit nanoseconds.
    seconds, fraction = divmod(value.value * _NANOS[value.type.unit], 10**9)
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)  # noqa: DTZ001
    digits = f"{fraction:09d}".rstrip("0")
    return TypedText(kind_name, f"{moment.isoformat(sep=' ')}{'.' + digits if digits else ''}{zone}")


def _instant(value: Any) -> Any:
    return _moment(value, "timestamp", "Z")


def _local(value: Any) -> Any:
    return _moment(value, "timestamp_ntz", "")


def _plain(value: Any) -> Any:
    return value.as_py()


def _uuid(value: Any) -> Any:
    value_found = value.as_py()
    return str(UUID(bytes=value_found) if isinstance(value_found, bytes) else value_found)


def _is_bytes(arrow: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(arrow)
        or pa.types.is_large_binary(arrow)
        or pa.types.is_binary_view(arrow)
        or pa.types.is_fixed_size_binary(arrow)
    )


_LITERALS: tuple[tuple[tuple[type[Type], ...], Callable[[Any], bool], Callable[[Any], Any]], ...] = (
    ((BooleanType,), pa.types.is_boolean, _plain),
    ((IntType, LongType), pa.types.is_integer, _plain),
    ((DecimalType,), lambda arrow: pa.types.is_decimal(arrow) or pa.types.is_integer(arrow), _plain),
    ((FloatType, DoubleType), lambda arrow: pa.types.is_floating(arrow) or pa.types.is_integer(arrow), _number),
    ((StringType,), is_text, _plain),
    ((BinaryType, FixedType), _is_bytes, _plain),
    ((DateType,), pa.types.is_date, lambda value: TypedText("date", str(value.as_py()))),
    (
        (TimestamptzType, TimestamptzNsType),
        lambda arrow: pa.types.is_timestamp(arrow) and arrow.tz is not None,
        _instant,
    ),
    ((TimestampType, TimestampNsType), lambda arrow: pa.types.is_timestamp(arrow) and arrow.tz is None, _local),
    ((TimeType,), pa.types.is_time, lambda value: TypedText("time", str(value.as_py()))),
    ((UuidType,), lambda arrow: isinstance(arrow, pa.UuidType) or arrow == pa.binary(16), _uuid),
)


# --- SQL semantics as Arrow expressions

_SAME = ("and_kleene", "or_kleene", "invert", "is_nan", "equal", "not_equal", *_ORDERS)


def _is_known(node: Node) -> bool:
    if not isinstance(node, Call):
        return True
    plain = node.name in _SAME or (node.name in ("is_null", "is_valid") and _option(node, "nan_is_null") is not True)
    is_set = node.name == "is_in" and _option_scalar(node, "value_set") is not None
    return (plain or is_set) and all(_is_known(argument) for argument in node.arguments)


def _sql_expression(node: Node, reader: _Predicates) -> Any:
    """Return an Arrow expression with the SQL meaning of a known node."""
    if isinstance(node, Field):
        column = pc.field(*node.path) if len(node.path) == 1 else pc.field(node.path)
        # Arrow does not compare uuids, and engines treat them as bytes.
        return column.cast(pa.binary(16)) if reader.is_uuid(node) else column
    if isinstance(node, Literal):
        return pc.scalar(node.value)
    parts = [_sql_expression(argument, reader) for argument in node.arguments]
    name = node.name
    if name == "is_in":
        values = _option_scalar(node, "value_set").values
        if not len(values):  # no values: false of null too
            return pc.scalar(False)
        is_member = parts[0].isin(values.drop_null())
        never = pc.scalar(pa.scalar(None, pa.bool_()))
        if values.null_count:
            return pc.if_else(is_member, pc.scalar(True), never)
        return pc.if_else(parts[0].is_valid(), is_member, never)
    if name in _SQL_COMPARISONS and any(reader.is_floating(argument) for argument in node.arguments):
        return _SQL_COMPARISONS[name](*parts)
    return _PLAIN[name](*parts)


def _nan(value: Any) -> Any:
    # For values that are not floats, Arrow tests them after a cast to double.
    return pc.is_nan(value.cast(pa.float64()))


def _same(left: Any, right: Any) -> Any:
    return (left == right) | (_nan(left) & _nan(right))


def _above(left: Any, right: Any) -> Any:
    return (left > right) | (_nan(left) & ~_nan(right))


_SQL_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": _same,
    "not_equal": lambda left, right: ~_same(left, right),
    "greater": _above,
    "less": lambda left, right: _above(right, left),
    "greater_equal": lambda left, right: ~_above(right, left),
    "less_equal": lambda left, right: ~_above(left, right),
}
_PLAIN: dict[str, Callable[..., Any]] = {
    "and_kleene": lambda left, right: left & right,
    "or_kleene": lambda left, right: left | right,
    "invert": lambda value: ~value,
    "is_null": lambda value: value.is_null(),
    "is_valid": lambda value: value.is_valid(),
    "is_nan": pc.is_nan,
    "equal": lambda left, right: left == right,
    "not_equal": lambda left, right: left != right,
    "less": lambda left, right: left < right,
    "less_equal": lambda left, right: left <= right,
    "greater": lambda left, right: left > right,
    "greater_equal": lambda left, right: left >= right,
}
