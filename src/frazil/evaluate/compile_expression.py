"""Expressions as computations over Arrow columns, with the types and the meaning that Spark gives them (ANSI mode).

A text is compiled once, against the columns there are, and run over any number of rows. What is not supported is
refused while compiling, before anything is read; `left_to_spark` is that error. What Spark would not compute is not
computed: the right side of `and`, the branches of `case` and later arguments of `coalesce` run over the rows that need
them, so that `n <> 0 and 10 / n > 1` divides by no zero.

Overflow, division by zero and casts of values that do not fit are errors, as in Spark. NaN equals itself and is
greater than every number. Times without a zone are in UTC; `Compiler.is_zoned` tells that the zone had a say.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.arrow_schema import to_arrow_type
from frazil.errors import FieldNotFoundError, InvalidRequestError, SchemaMismatchError
from frazil.evaluate import sql_types as t
from frazil.evaluate.sql_casts import can_cast, cast, try_cast
from frazil.expr.columns.transforms import transform_column
from frazil.expr.expressions import Call, Case, Cast, Expression, Literal, Name
from frazil.expr.extract import transform_of
from frazil.expr.predicates import TypedText
from frazil.expr.sql_tests import shown_value
from frazil.spec import types as ft
from frazil.spec.types import DecimalType, TimeType, Type, UuidType

Values: TypeAlias = Any
"""An Arrow array, or a scalar that stands for as many values as there are rows."""
Side: TypeAlias = str
TARGET, SOURCE = "target", "source"


class Rows:
    """Rows of several sides: Arrow arrays of one length, by side and name."""

    def __init__(self, columns: Mapping[tuple[Side, str], pa.Array], length: int) -> None:
        self._columns = columns
        self.length = length

    def column(self, key: tuple[Side, str]) -> pa.Array:
        """Return a column."""
        return self._columns[key]

    @property
    def keys(self) -> list[tuple[Side, str]]:
        """The columns there are."""
        return list(self._columns)

    def pick(self, places: npt.NDArray[np.int64]) -> Rows:
        """Return some of the rows."""
        indices = pa.array(places)
        return Rows({key: value.take(indices) for key, value in self._columns.items()}, len(places))


@dataclass(frozen=True, slots=True)
class Compiled:
    """A computation: its type, how it runs, whether it can fail, and the literal it is, if it is one."""

    data_type: pa.DataType
    run: Callable[[Rows], Values]
    may_fail: bool = False
    literal: Literal | None = None

    def array(self, rows: Rows) -> pa.Array:
        """Return a value for each row."""
        try:
            return spread(self.run(rows), rows.length)
        except pa.ArrowNotImplementedError as problem:
            raise t.left_to_spark(str(problem)) from problem
        except pa.ArrowException as problem:
            raise InvalidRequestError(f"Cannot compute the values: {problem}") from problem


def spread(values: Values, length: int) -> pa.Array:
    """Return values as an array, also where they are one scalar."""
    if isinstance(values, pa.Scalar):
        if values.type == t.NULL:
            return pa.nulls(length)
        return pa.repeat(values, length) if values.is_valid else pa.nulls(length, values.type)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


@dataclass
class Compiler:
    """Compiles expressions over the columns of one or two sides.

    `sides` are the columns by side, each with the Arrow type of its values; `now_us` is the time of the statement.
    """

    sides: Mapping[Side, Mapping[str, pa.DataType]]
    now_us: int = 0
    case_sensitive: bool = False
    used: set[tuple[Side, str]] = field(default_factory=set)
    is_zoned: bool = False

    def compile(self, expression: Expression) -> Compiled:
        """Return how an expression is computed; refuse what is not supported."""
        if isinstance(expression, Literal):
            return self._literal(expression)
        if isinstance(expression, Name):
            return self._name(expression)
        if isinstance(expression, Cast):
            child, to = self.compile(expression.child), t.parse_type_name(expression.type_name)
            made = self.cast(child, to, is_explicit=True)
            if not expression.is_try or child.data_type == to:
                return made
            return Compiled(to, lambda rows: try_cast(child.run(rows), to), child.may_fail)
        if isinstance(expression, Case):
            return self._case(expression)
        if expression.name in ("and", "or"):
            return _logic(self, expression)
        special = _SPECIAL.get(expression.name)
        if special is not None:
            return special(self, expression.arguments)
        build = FUNCTIONS.get(expression.name)
        if build is None and transform_of(expression) is not None:
            return self._transformed(expression)
        if build is None:
            raise t.left_to_spark(f"{expression.name}(…) is not a function that is known here")
        arguments = [self.compile(child) for child in expression.arguments]
        if expression.name in _COMPARISONS:
            arguments = self.plain_sides(arguments)
        for argument in arguments:
            if not t.is_computed(argument.data_type):
                raise t.left_to_spark(
                    f"{expression.name} of {t.shown_name(argument.data_type)} values is not supported"
                )
        return build(self, arguments)

    def condition(self, expression: Expression, what: str) -> Compiled:
        """Return how a condition is computed; refuse what is neither true nor false."""
        try:
            made = self.compile(expression)
        except RecursionError:
            raise t.left_to_spark("it is nested too deeply") from None
        return self.truth(made, what)

    def truth(self, made: Compiled, what: str) -> Compiled:
        """Return a computation as one of true and false; refuse other types."""
        if made.data_type not in (t.BOOLEAN, t.NULL):
            raise InvalidRequestError(f"Cannot use {what}: it is {t.shown_name(made.data_type)}, not true or false")
        return self.cast(made, t.BOOLEAN)

    def cast(self, made: Compiled, to: pa.DataType, *, is_explicit: bool = False) -> Compiled:
        """Return a computation whose values are cast to a type."""
        if made.data_type == to:
            return made
        if not can_cast(made.data_type, to):
            raise t.left_to_spark(f"casts of {t.shown_name(made.data_type)} to {t.shown_name(to)} are not supported")
        if made.data_type == t.STRING and not is_explicit and made.literal is None:
            raise t.left_to_spark(f"text is compared with text here, not with {t.shown_name(to)} values")
        if t.is_zoned(made.data_type, to):
            self.is_zoned = True
        if made.literal is not None:
            # One that does not fit fails when it is computed, which may be never.
            with contextlib.suppress(InvalidRequestError):
                value = cast(made.run(NO_ROWS), to)
                return Compiled(to, lambda rows: value, literal=made.literal)
        return Compiled(to, lambda rows: cast(made.run(rows), to), may_fail=True)

    def unify(self, parts: Sequence[Compiled]) -> list[Compiled]:
        """Return computations in the type that their values are put together in."""
        data_type = t.common_type(compiled.data_type for compiled in parts)
        return [self.cast(compiled, data_type) for compiled in parts]

    def plain_sides(self, sides: list[Compiled]) -> list[Compiled]:
        """Return the sides of a comparison, uuids as bytes and times of day as microseconds: the order of their texts.

        Literals beside them are the text that Spark shows.
        """
        for data_type, to in ((t.UUID, t.BINARY), (t.TIME, t.LONG)):
            if any(side.data_type == data_type for side in sides):
                return [self._plain(side, data_type, to) for side in sides]
        return sides

    def _plain(self, side: Compiled, data_type: pa.DataType, to: pa.DataType) -> Compiled:
        if side.data_type == t.STRING and side.literal is not None:
            found = _shown(side.literal.value, UuidType() if data_type == t.UUID else TimeType())
            value = pa.scalar(found.bytes if data_type == t.UUID else found, to)
        elif side.data_type == data_type and side.literal is not None:
            value = side.run(NO_ROWS).cast(to)
        elif side.data_type == data_type:
            return Compiled(to, lambda rows: _stored(side.array(rows)).cast(to), side.may_fail)
        else:
            return side
        return Compiled(to, lambda rows: value, literal=side.literal)

    def _literal(self, literal: Literal) -> Compiled:
        if literal.kind == "time":
            micros = pa.scalar(_shown(TypedText("time", str(literal.value)), TimeType()), t.TIME)
            return Compiled(t.TIME, lambda rows: micros, literal=literal)
        data_type = t.parse_type_name(literal.kind)
        if t.is_moment(data_type):
            if data_type == t.TIMESTAMP:
                self.is_zoned = self.is_zoned or not _names_zone(str(literal.value))
            value = cast(pa.scalar(literal.value), data_type)
        else:
            value = pa.scalar(literal.value, data_type)
        return Compiled(data_type, lambda rows: value, literal=literal)

    def _name(self, name: Name) -> Compiled:
        found = self.look_up(name)
        if found is None:
            known = sorted({column_name for side in self.sides.values() for column_name in side})
            if name.parts[-1].lower() in _METADATA_COLUMNS:
                raise t.left_to_spark(f"the metadata column {name} is not supported")
            raise FieldNotFoundError(
                f"Cannot find the column {name}", hint=f"The columns are: {', '.join(known[:50])}."
            )
        side, column, path = found
        self.used.add((side, column))
        data_type = self.sides[side][column]
        steps: list[int] = []
        for step in path:
            index = _find_part(data_type, step)
            if index is None:
                raise FieldNotFoundError(f"Cannot find the column {name}: {column} has no part {step!r}")
            steps.append(index)
            data_type = data_type.field(index).type
        if not steps:
            return Compiled(data_type, lambda rows: rows.column((side, column)))
        return Compiled(data_type, lambda rows: pc.struct_field(rows.column((side, column)), steps))

    def side_of(self, name: Name) -> Side | None:
        """Return on which side a column is, None where there is none of its name."""
        found = self.look_up(name)
        return None if found is None else found[0]

    def look_up(self, name: Name) -> tuple[Side, str, tuple[str, ...]] | None:
        """Return the side, the column and the path inside it that a name means, None where there is none."""
        first = name.parts[0].lower()
        if first in self.sides and len(name.parts) > 1:
            column = self._find(self.sides[first], name.parts[1])
            if column is not None:
                return first, column, name.parts[2:]
        found = [
            (side, column, name.parts[1:])
            for side, columns in self.sides.items()
            if (column := self._find(columns, name.parts[0])) is not None
        ]
        if len(found) > 1:
            raise InvalidRequestError(
                f"Cannot tell which column {name} is: both sides have it",
                hint=f"Write target.{name} or source.{name}.",
            )
        return found[0] if found else None

    def _find(self, columns: Mapping[str, Any], name: str) -> str | None:
        return (name if name in columns else None) if self.case_sensitive else find_name(columns, name)

    def _transformed(self, call: Call) -> Compiled:
        """Return a partition transform, which is a function of a lake."""
        child = self.compile(call.arguments[-1])
        transform, source = transform_of(call), _SOURCES.get(child.data_type)
        if pa.types.is_decimal128(child.data_type):
            source = DecimalType(child.data_type.precision, child.data_type.scale)
        if transform is None or source is None or not transform.can_transform(source):
            raise t.left_to_spark(f"{call.name} of {t.shown_name(child.data_type)} values is not supported")
        data_type = to_arrow_type(transform.result_type(source), with_ids=False)
        return Compiled(
            data_type,
            lambda rows: transform_column(transform, _stored(child.array(rows)), source).cast(data_type),
            child.may_fail,
        )

    def _case(self, case: Case) -> Compiled:
        conditions = [self.compile(when) for when, _ in case.branches]
        if any(condition.data_type != t.BOOLEAN for condition in conditions):
            raise t.left_to_spark("the conditions of case and if are true or false here")
        otherwise = Literal(None, "void") if case.otherwise is None else case.otherwise
        values = self.unify([self.compile(result) for result in (*(then for _, then in case.branches), otherwise)])

        def run(rows: Rows) -> Values:
            return choose(rows, conditions, values)

        return Compiled(values[0].data_type, run, any(compiled.may_fail for compiled in (*conditions, *values)))


NO_ROWS = Rows({}, 0)
_SOURCES: dict[pa.DataType, Type] = {
    t.INT: ft.INT,
    t.LONG: ft.LONG,
    t.DATE: ft.DateType(),
    t.TIMESTAMP: ft.TIMESTAMPTZ,
    t.TIMESTAMP_NTZ: ft.TIMESTAMP,
    t.STRING: ft.StringType(),
    t.BINARY: ft.BinaryType(),
    t.UUID: UuidType(),
    t.TIME: TimeType(),
}
"""Types of values whose transforms are computed."""
_METADATA_COLUMNS = frozenset(
    {"_file", "_pos", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number", "_deleted"}
)


def find_name(columns: Mapping[str, Any], name: str) -> str | None:
    """Return the column of a name; the case of letters matters only where two columns differ by it."""
    if name in columns:
        return name
    alike = [column for column in columns if column.lower() == name.lower()]
    if len(alike) > 1:
        raise InvalidRequestError(f"Cannot tell which column {name} is: there are {' and '.join(alike)}")
    return alike[0] if alike else None


def _find_part(data_type: pa.DataType, name: str) -> int | None:
    if not pa.types.is_struct(data_type):
        return None
    names = {data_type.field(index).name: index for index in range(data_type.num_fields)}
    found = find_name(names, name)
    return None if found is None else names[found]


def _names_zone(text: str) -> bool:
    return text.endswith("Z") or (len(text) > 6 and text[-6] in "+-" and text[-3] == ":")


def choose(rows: Rows, conditions: Sequence[Compiled], values: Sequence[Compiled]) -> pa.Array:
    """Return for each row the value of the first condition that holds, else the last value."""
    left = np.ones(rows.length, np.bool_)
    made: pa.Array | None = None
    for index, value in enumerate(values):
        if index < len(conditions):
            holds = mask_of(run_where(conditions[index], rows, left)) & left
        else:
            holds = left
        if made is None and holds.all():
            return value.array(rows)
        if holds.any():
            found = run_where(value, rows, holds)
            base = pa.nulls(rows.length, value.data_type) if made is None else made
            made = pc.if_else(pa.array(holds), found, base)
        left = left & ~holds
    return pa.nulls(rows.length, values[0].data_type) if made is None else made


def run_where(compiled: Compiled, rows: Rows, mask: npt.NDArray[np.bool_]) -> pa.Array:
    """Return the values of a computation for the rows of a mask; where it can fail, others are null."""
    if not compiled.may_fail or mask.all():
        return compiled.array(rows)
    places = np.flatnonzero(mask)
    found = compiled.array(rows.pick(places))
    spots = np.zeros(rows.length, np.int64)
    spots[places] = np.arange(len(places))
    return found.take(pa.array(spots, mask=~mask))


def mask_of(values: Values) -> npt.NDArray[np.bool_]:
    """Return where a condition is true; null is not."""
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), np.bool_)


# What decides itself which of its arguments run


def _logic(compiler: Compiler, call: Call) -> Compiled:
    """Return `and` or `or`; each level of nesting takes two frames of the stack."""
    settles = call.name == "or"
    combine: Callable[..., Any] = pc.or_kleene if settles else pc.and_kleene
    parts: list[Compiled] = []
    for argument in call.arguments:
        parts.append(compiler.truth(compiler.compile(argument), "a part of a condition"))
    first, *others = parts

    def run(rows: Rows) -> Values:
        found = first.array(rows)
        for other in others:
            is_open = pc.fill_null(pc.not_equal(found, settles), True).to_numpy(zero_copy_only=False)
            if not is_open.any():
                break
            found = combine(found, run_where(other, rows, is_open))
        return found

    return Compiled(t.BOOLEAN, run, any(compiled.may_fail for compiled in parts))


def _coalesce(compiler: Compiler, arguments: Sequence[Expression]) -> Compiled:
    _check_count("coalesce", arguments, range(1, 1000))
    parts = compiler.unify([compiler.compile(argument) for argument in arguments])

    def run(rows: Rows) -> Values:
        made = parts[0].array(rows)
        for compiled in parts[1:]:
            missing = made.is_null().to_numpy(zero_copy_only=False)
            if not missing.any():
                break
            made = pc.if_else(pa.array(missing), run_where(compiled, rows, missing), made)
        return made

    return Compiled(parts[0].data_type, run, any(compiled.may_fail for compiled in parts))


def _if(compiler: Compiler, arguments: Sequence[Expression]) -> Compiled:
    _check_count("if", arguments, (3,))
    return compiler.compile(Case(((arguments[0], arguments[1]),), arguments[2]))


def _nvl2(compiler: Compiler, arguments: Sequence[Expression]) -> Compiled:
    _check_count("nvl2", arguments, (3,))
    return compiler.compile(Case(((Call("isnotnull", (arguments[0],)), arguments[1]),), arguments[2]))


def _nullif(compiler: Compiler, arguments: Sequence[Expression]) -> Compiled:
    _check_count("nullif", arguments, (2,))
    return compiler.compile(Case(((Call("=", tuple(arguments)), Literal(None, "void")),), arguments[0]))


def _isnull(compiler: Compiler, arguments: Sequence[Expression]) -> Compiled:
    _check_count("isnull", arguments, (1,))
    child = compiler.compile(arguments[0])
    return Compiled(t.BOOLEAN, lambda rows: child.array(rows).is_null(), child.may_fail)


def _isnotnull(compiler: Compiler, arguments: Sequence[Expression]) -> Compiled:
    _check_count("isnotnull", arguments, (1,))
    child = compiler.compile(arguments[0])
    return Compiled(t.BOOLEAN, lambda rows: child.array(rows).is_valid(), child.may_fail)


def _cast_to(name: str) -> Callable[[Compiler, Sequence[Expression]], Compiled]:
    """Return the function of a type's name, which is a cast."""

    def build(compiler: Compiler, arguments: Sequence[Expression]) -> Compiled:
        _check_count(name, arguments, (1,))
        return compiler.compile(Cast(arguments[0], name))

    return build


def _now(compiler: Compiler, arguments: Sequence[Expression]) -> Compiled:
    _check_count("now", arguments, (0,))
    value = pa.scalar(compiler.now_us, t.TIMESTAMP)
    return Compiled(t.TIMESTAMP, lambda rows: value)


def _today(compiler: Compiler, arguments: Sequence[Expression]) -> Compiled:
    compiler.is_zoned = True
    value = cast(_now(compiler, arguments).run(NO_ROWS), t.DATE)
    return Compiled(t.DATE, lambda rows: value)


def _in(compiler: Compiler, arguments: Sequence[Expression]) -> Compiled:
    equal = FUNCTIONS["="]
    child, *items = compiler.unify(compiler.plain_sides([compiler.compile(argument) for argument in arguments]))
    literals = [item.run(NO_ROWS) for item in items if item.literal is not None]
    if len(literals) == len(items) and not t.is_floating(child.data_type):
        known = pa.array([literal.as_py() for literal in literals if literal.is_valid], child.data_type)
        has_null = len(known) < len(items)

        def run(rows: Rows) -> Values:
            values = child.array(rows)
            found = pc.is_in(values, value_set=known)
            unknown = pc.invert(found) if has_null else values.is_null()
            return pc.if_else(pc.or_(unknown, values.is_null()), pa.scalar(None, t.BOOLEAN), found)

        return Compiled(t.BOOLEAN, run, child.may_fail)
    tests = [equal(compiler, [child, item]) for item in items]

    def run_each(rows: Rows) -> Values:
        found = tests[0].array(rows)
        for test in tests[1:]:
            found = pc.or_kleene(found, test.array(rows))
        return found

    return Compiled(t.BOOLEAN, run_each, any(test.may_fail for test in tests))


def _shown(literal: str | TypedText, data_type: Type) -> Any:
    try:
        return shown_value(literal, data_type)
    except SchemaMismatchError as problem:
        raise t.left_to_spark(problem.message.partition(": ")[2]) from problem


def _stored(values: pa.Array) -> pa.Array:
    return values.storage if isinstance(values, pa.ExtensionArray) else values


def _check_count(name: str, arguments: Sequence[Any], counts: Sequence[int]) -> None:
    if len(arguments) not in counts:
        raise t.left_to_spark(f"{name} with {len(arguments)} arguments is not supported")


_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>"})
_TYPE_NAMES = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    *("string", "binary", "date", "timestamp"),
)
_SPECIAL: dict[str, Callable[[Compiler, Sequence[Expression]], Compiled]] = {
    "coalesce": _coalesce,
    "nvl": _coalesce,
    "ifnull": _coalesce,
    "if": _if,
    "nvl2": _nvl2,
    "nullif": _nullif,
    "isnull": _isnull,
    "isnotnull": _isnotnull,
    "now": _now,
    "current_timestamp": _now,
    "current_date": _today,
    "in": _in,
    **{name: _cast_to(name) for name in _TYPE_NAMES},
}
FUNCTIONS: dict[str, Callable[[Compiler, list[Compiled]], Compiled]] = {}
"""Operators and functions of which all arguments run; `sql_operators.py` and `sql_functions.py` fill it."""
