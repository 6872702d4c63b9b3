"""Filters of other libraries: Arrow's expressions, read and made into predicates that prune.

DuckDB, Polars and DataFusion hand a filter to a dataset as `pyarrow.compute.Expression`. Arrow shows no tree of it, but
writes one for pickling: an IPC file whose columns are the literals, in their types, and whose metadata lists calls,
fields and literals in order. That is read here (`read_expression`); whatever is not as known makes it None, and nothing
is pruned then.

Two languages use the same expressions. To Arrow NaN equals nothing and null is in no set. To the SQL of engines NaN
equals itself and is greater than every number, and null makes a test neither true nor false, but some engines translate
their filters to Arrow's plain words and rely on the answer. So a filter has a `meaning`.
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
    """Whose words a filter is in."""

    ARROW = "arrow"
    SQL = "sql"


@dataclass(frozen=True, slots=True)
class Field:
    """A column, or a part of one, by names."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Literal:
    """A value, as Arrow's scalar."""

    value: Any


@dataclass(frozen=True, slots=True)
class Call:
    """A function of Arrow's, with its options where it has some."""

    name: str
    arguments: tuple[Node, ...]
    options: Any = None


Node: TypeAlias = "Field | Literal | Call"
_MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class PushedFilter:
    """What a scan makes of a filter: a predicate that keeps every row the filter keeps, and what is left to test.

    `rest` is the filter to apply to the rows that are left, None where the predicate says it all.
    """

    predicate: Predicate
    rest: Any | None


def push_filter(expression: Any, schema: Schema, meaning: Meaning, *, may_prune: bool = True) -> PushedFilter:
    """Return what of an Arrow expression over a schema's columns planning can use.

    Where rows must not be left out before the filter (there is a limit), it is only put into Arrow's words.
    """
    if isinstance(expression, pa.Scalar):  # what is the same of every row, as null is
        expression = pc.scalar(expression)
    node = read_expression(expression)
    if node is None:
        return PushedFilter(TRUE, expression)
    reader = _Predicates(schema, meaning)
    predicate = reader.true_where(node, is_true=True)
    if reader.is_exact and may_prune:
        return PushedFilter(predicate, None)
    if meaning is Meaning.SQL:
        expression = _sql_expression(node, reader) if _is_known(node) else expression
    return PushedFilter(predicate if may_prune else TRUE, expression)


# --- Arrow's tree


def read_expression(expression: Any) -> Node | None:
    """Return the tree of an expression; None where Arrow writes it in a way that is not known here."""
    try:
        (buffer,) = expression.__reduce__()[1]
        reader = pa.ipc.open_file(buffer)
        literals = reader.get_batch(0)
        words = iter(list(_ordered_metadata(reader.schema)))
        node = _read(words, literals, 0)
        return node if next(words, None) is None and isinstance(node, Field | Literal | Call) else None
    except (pa.ArrowException, _Unknown, ValueError, TypeError, IndexError, AttributeError, StopIteration):
        return None


class _Unknown(Exception):
    """The expression is written in words that are not known."""


@dataclass(frozen=True, slots=True)
class _Options:
    value: Any


@dataclass(frozen=True, slots=True)
class _End:
    name: str


def _read(words: Iterator[tuple[str, str]], literals: Any, depth: int) -> Node | _Options | _End:
    if depth > _MAX_DEPTH:
        raise _Unknown
    word, value = next(words)
    if word == "literal":
        return Literal(literals.column(int(value))[0])
    if word == "field_ref":
        return Field((value,))
    if word == "nested_field_ref":
        path: tuple[str, ...] = ()
        for _ in range(int(value)):
            child = _read(words, literals, depth + 1)
            if not isinstance(child, Field):
                raise _Unknown
            path += child.path
        return Field(path)
    if word == "options":
        return _Options(literals.column(int(value))[0])
    if word == "end":
        return _End(value)
    if word != "call":
        raise _Unknown
    arguments: list[Node] = []
    options = None
    while True:
        child = _read(words, literals, depth + 1)
        if isinstance(child, _End):
            if child.name != value:
                raise _Unknown
            return Call(value, tuple(arguments), options)
        if isinstance(child, _Options):
            options = child.value
        else:
            arguments.append(child)


class _ArrowSchema(ctypes.Structure):
    """The head of the C data interface's `ArrowSchema`."""

    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p)]


def _ordered_metadata(schema: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of a schema's metadata as they are written; Arrow's own view of it is a dict."""
    capsule = schema.__arrow_c_schema__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    place = _ArrowSchema.from_address(get_pointer(capsule, b"arrow_schema")).metadata
    if place is None:
        return

    def number() -> int:
        nonlocal place
        (found,) = struct.unpack("=i", ctypes.string_at(place, 4))
        place += 4
        return int(found)

    def text() -> str:
        nonlocal place
        size = number()
        found = ctypes.string_at(place, size)
        place += size
        return found.decode()

    for _ in range(number()):
        yield text(), text()


# --- to predicates

_ORDERS = {"less": Op.LT, "less_equal": Op.LT_EQ, "greater": Op.GT, "greater_equal": Op.GT_EQ}
_MIRRORED = {Op.LT: Op.GT, Op.LT_EQ: Op.GT_EQ, Op.GT: Op.LT, Op.GT_EQ: Op.LT_EQ, Op.EQ: Op.EQ}
_FLOATING = (FloatType, DoubleType)


class _Predicates:
    """Makes predicates of nodes; `is_exact` is false once something was left out."""

    def __init__(self, schema: Schema, meaning: Meaning) -> None:
        self._schema = schema
        self._is_sql = meaning is Meaning.SQL
        self.is_exact = True

    def true_where(self, node: Node, *, is_true: bool) -> Predicate:
        """Return a predicate for every row of which a node is true, or else false; more rows where it is not known."""
        found = self._find(node, is_true=is_true)
        if found is None:
            self.is_exact = False
            return TRUE
        return found

    def _find(self, node: Node, *, is_true: bool) -> Predicate | None:
        if isinstance(node, Literal):
            value = node.value.as_py() if pa.types.is_boolean(node.value.type) else None
            return TRUE if value is is_true else FALSE
        if isinstance(node, Field):
            return self._test(Op.EQ, node, (True,), is_true=is_true)
        name, arguments = node.name, node.arguments
        if name in ("and_kleene", "or_kleene", "and", "or"):
            # Without Kleene, null takes what it is combined with along; less rows, and never others.
            self.is_exact &= name.endswith("_kleene")
            parts = [self.true_where(argument, is_true=is_true) for argument in arguments]
            return all_of(*parts) if name.startswith("and") is is_true else any_of(*parts)
        if name == "invert":
            return self.true_where(arguments[0], is_true=not is_true)
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
        known = tuple([value for value in values.values if value.is_valid])
        has_null = len(known) < len(values.values)
        if self._is_sql:
            if has_null and not is_true:
                return FALSE
            return self._among(column, known, is_true=is_true)
        if _option(node, "null_matching_behavior") != 0:  # what is not MATCH, the default
            return None
        found = self._among(column, known, is_true=is_true)
        null = self._test(Op.IS_NULL, column, (), is_true=True)
        if found is None or null is None or (has_null and not is_true):
            return None
        return any_of(found, null) if has_null is is_true else found

    def _among(self, column: Node, known: tuple[Any, ...], *, is_true: bool) -> Predicate | None:
        return self._test(Op.IN, column, known, is_true=is_true) if known else (FALSE if is_true else TRUE)

    def _test(self, op: Op, node: Node, values: tuple[Any, ...], *, is_true: bool) -> Predicate | None:
        """Return a leaf, None where it does not fit the column."""
        found = self._column(node)
        if found is None:
            return None
        name, data_type = found
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
        found = self._column(node)
        return found is not None and isinstance(found[1], _FLOATING)

    def is_uuid(self, node: Node) -> bool:
        """Return whether a column has uuids."""
        found = self._column(node)
        return found is not None and isinstance(found[1], UuidType)

    def _column(self, node: Node) -> tuple[str, Type] | None:
        if not isinstance(node, Field):
            return None
        name = ".".join(node.path)
        found = self._schema.find_field(name)
        if found is None or found.name != node.path[-1]:
            return None
        ancestors = self._schema.ancestors_of(found.field_id)
        path = [*(ancestor.name for ancestor in reversed(ancestors)), found.name]
        return (name, found.field_type) if tuple(path) == node.path and found.field_type.is_primitive else None


def _option_scalar(node: Call, name: str) -> Any:
    try:
        return None if node.options is None else node.options[name]
    except (KeyError, IndexError):
        return None


def _option(node: Call, name: str) -> Any:
    found = _option_scalar(node, name)
    return None if found is None else found.as_py()


def _literal(value: Any, data_type: Type) -> Any:
    """Return a scalar as a literal of a condition on a column; None where comparing them is not plainly exact."""
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
    found = value.as_py()
    if isinstance(found, int) and abs(found) >= 2**53:
        return None
    return None if found != found else found


_NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def _moment(value: Any, kind_name: str, zone: str) -> Any:
    # As numbers, since the first years and the last ones have no nanoseconds of 64 bits.
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
    found = value.as_py()
    return str(UUID(bytes=found) if isinstance(found, bytes) else found)


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


# --- what SQL means, in Arrow's words

_SAME = ("and_kleene", "or_kleene", "invert", "is_nan", "equal", "not_equal", *_ORDERS)


def _is_known(node: Node) -> bool:
    if not isinstance(node, Call):
        return True
    plain = node.name in _SAME or (node.name in ("is_null", "is_valid") and _option(node, "nan_is_null") is not True)
    is_set = node.name == "is_in" and _option_scalar(node, "value_set") is not None
    return (plain or is_set) and all(_is_known(argument) for argument in node.arguments)


def _sql_expression(node: Node, reader: _Predicates) -> Any:
    """Return an expression of Arrow's that says what a known node means to SQL."""
    if isinstance(node, Field):
        column = pc.field(*node.path) if len(node.path) == 1 else pc.field(node.path)
        # Arrow does not compare uuids, and engines take them for bytes.
        return column.cast(pa.binary(16)) if reader.is_uuid(node) else column
    if isinstance(node, Literal):
        return pc.scalar(node.value)
    parts = [_sql_expression(argument, reader) for argument in node.arguments]
    name = node.name
    if name == "is_in":
        values = _option_scalar(node, "value_set").values
        found = parts[0].isin(values.drop_null())
        never = pc.scalar(pa.scalar(None, pa.bool_()))
        if values.null_count:
            return pc.if_else(found, pc.scalar(True), never)
        return pc.if_else(parts[0].is_valid(), found, never)
    if name in _SQL_COMPARISONS and any(reader.is_floating(argument) for argument in node.arguments):
        return _SQL_COMPARISONS[name](*parts)
    return _PLAIN[name](*parts)


def _nan(value: Any) -> Any:
    # Of values that are no floats Arrow says it too, once they are doubles.
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
