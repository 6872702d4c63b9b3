"""Functions of one row whose meaning in DuckDB was tested to be Spark's, each with the rewrite that makes it so.

A name that is not in `SCALARS` is refused. A function takes arguments with their types, and refuses those it was not
tested with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from frazil.query.spark_arithmetic import arithmetic, negated
from frazil.query.spark_casts import NEEDS_SPARK, cast, coerce, ntz_to_timestamp, timestamp_to_ntz
from frazil.query.spark_types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    NotTranslatable,
    SparkType,
    Typed,
    binary,
    call,
    cast_to,
    choose,
    combine,
    common_type,
    common_type_of,
    decimal_type,
    fail,
    is_null,
    number,
    paren,
    parse_spark_type,
    repeated,
)

Scalar = Callable[[Sequence[Typed]], Typed]
SCALARS: dict[str, Scalar] = {}
"""The allowed functions by Spark's name, in lower case."""


def _register(names: str, least: int, most: int | None = None) -> Callable[[Scalar], Scalar]:
    """Register a function under names, with the number of arguments that it takes."""

    def decorate(scalar: Scalar) -> Scalar:
        for name in names.split():

            def checked(arguments: Sequence[Typed], name: str = name) -> Typed:
                if not least <= len(arguments) <= (least if most is None else most):
                    raise NotTranslatable(f"the function {name} with {len(arguments)} arguments")
                try:
                    return scalar(arguments)
                except NotTranslatable as error:
                    raise NotTranslatable(f"the function {name}: {error.reason}") from None

            SCALARS[name] = checked
        return scalar

    return decorate


_MANY = 1_000


def _of(value: Typed, *types: SparkType) -> Typed:
    """Return an argument if it has one of these types; a null has the first."""
    if value.type == VOID:
        return cast(value, types[0])
    if value.type not in types:
        raise NotTranslatable(f"an argument is {value.type}")
    return value


def _whole(value: Typed, least: int) -> int:
    """Return an argument that has to be a whole number written out."""
    if type(value.literal) is not int or value.literal < least:
        raise NotTranslatable(f"an argument is not a literal number from {least}")
    return value.literal


def _text(value: Typed) -> str:
    """Return an argument that has to be a text written out."""
    if not isinstance(value.literal, str):
        raise NotTranslatable("an argument is not a literal text")
    return value.literal


def _simple(names: str, duckdb: str, result: SparkType, *types: SparkType) -> None:
    """Register a function of which only the name differs."""

    @_register(names, len(types))
    def scalar(arguments: Sequence[Typed]) -> Typed:
        values = [_of(value, expected) for value, expected in zip(arguments, types, strict=True)]
        return combine(call(duckdb, *(value.copy_tree() for value in values)), result, values)


def _cast_result(names: str, duckdb: str, result: SparkType, *types: SparkType) -> None:
    """Register a function whose result DuckDB gives as another integer type."""

    @_register(names, len(types))
    def scalar(arguments: Sequence[Typed]) -> Typed:
        values = [_of(value, expected) for value, expected in zip(arguments, types, strict=True)]
        tree = cast_to(call(duckdb, *(value.copy_tree() for value in values)), result)
        return combine(tree, result, values)


# Texts

_simple("contains", "contains", BOOLEAN, STRING, STRING)
_simple("startswith", "starts_with", BOOLEAN, STRING, STRING)
_simple("endswith", "ends_with", BOOLEAN, STRING, STRING)
_cast_result("octet_length", "strlen", INT, STRING)


def _lengths() -> None:
    @_register("length char_length character_length len", 1)
    def length(arguments: Sequence[Typed]) -> Typed:
        value = _of(arguments[0], STRING, BINARY)
        name = "octet_length" if value.type == BINARY else "length"
        return combine(cast_to(call(name, value.copy_tree()), INT), INT, [value])


_lengths()


def _case_of_letters(names: str, duckdb: str) -> None:
    """Register upper or lower: beyond ASCII Spark maps one letter to several, and DuckDB does not."""

    @_register(names, 1)
    def scalar(arguments: Sequence[Typed]) -> Typed:
        value = _of(arguments[0], STRING)
        is_ascii = exp.EQ(this=call("strlen", repeated(value)), expression=call("length", repeated(value)))
        refusal = fail(f"Cannot compute {duckdb} of a text beyond ASCII: {NEEDS_SPARK}")
        mapped = call(duckdb, value.copy_tree())
        empty = (is_null(repeated(value)), cast_to(exp.Null(), STRING))
        return combine(choose([empty, (is_ascii, mapped)], refusal), STRING, [value], can_fail=True)


_case_of_letters("upper ucase", "upper")
_case_of_letters("lower lcase", "lower")


def trimmed(value: Typed, characters: Typed | None, position: str) -> Typed:
    """Return TRIM; without characters Spark and this translation take away spaces only."""
    value = _of(value, STRING)
    name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}.get(position.upper())
    text = " " if characters is None else _text(characters)
    if name is None or not text or not text.isascii():
        raise NotTranslatable(f"TRIM of the characters {text!r}")
    return combine(call(name, value.copy_tree(), exp.Literal.string(text)), STRING, [value])


for _name, _position in (("ltrim", "LEADING"), ("rtrim", "TRAILING"), ("btrim", "BOTH")):
    _register(_name, 1)(lambda arguments, position=_position: trimmed(arguments[0], None, position))  # type: ignore[misc]


@_register("concat", 1, _MANY)
def _concat(arguments: Sequence[Typed]) -> Typed:
    values = [cast(value, STRING) if value.type != STRING else value for value in arguments]
    tree = paren(values[0].copy_tree())
    for value in values[1:]:
        tree = exp.DPipe(this=tree, expression=paren(value.copy_tree()), safe=True)
    return combine(exp.Paren(this=tree), STRING, values)


@_register("concat_ws", 2, _MANY)
def _concat_ws(arguments: Sequence[Typed]) -> Typed:
    values = [_of(arguments[0], STRING), *(coerce(value, STRING) for value in arguments[1:])]
    return combine(call("concat_ws", *(value.copy_tree() for value in values)), STRING, values)


@_register("replace", 2, 3)
def _replace(arguments: Sequence[Typed]) -> Typed:
    values = [_of(value, STRING) for value in arguments]
    trees = [value.copy_tree() for value in values] + [exp.Literal.string("")] * (3 - len(values))
    return combine(call("replace", *trees), STRING, values)


for _name in ("left", "right"):

    @_register(_name, 2)
    def _end(arguments: Sequence[Typed], name: str = _name) -> Typed:
        value, length = _of(arguments[0], STRING), _whole(arguments[1], 0)
        return combine(call(name, value.copy_tree(), exp.Literal.number(length)), STRING, [value])


@_register("substring substr", 2, 3)
def _substring(arguments: Sequence[Typed]) -> Typed:
    value, start = _of(arguments[0], STRING), _whole(arguments[1], 0)
    lengths = [exp.Literal.number(_whole(length, 0)) for length in arguments[2:]]
    # Spark's first place is 1, and 0 is taken for it.
    tree = call("substring", value.copy_tree(), exp.Literal.number(max(start, 1)), *lengths)
    return combine(tree, STRING, [value])


@_register("instr", 2)
def _instr(arguments: Sequence[Typed]) -> Typed:
    values = [_of(value, STRING) for value in arguments]
    return combine(cast_to(call("instr", *(value.copy_tree() for value in values)), INT), INT, values)


@_register("locate position", 2)
def _locate(arguments: Sequence[Typed]) -> Typed:
    return _instr(arguments[::-1])


for _name in ("lpad", "rpad"):

    @_register(_name, 2, 3)
    def _pad(arguments: Sequence[Typed], name: str = _name) -> Typed:
        value, length = _of(arguments[0], STRING), _whole(arguments[1], 0)
        padding = _text(arguments[2]) if len(arguments) > 2 else " "
        if not padding or length > _MANY:
            raise NotTranslatable("the padding is empty or long")
        tree = call(name, value.copy_tree(), exp.Literal.number(length), exp.Literal.string(padding))
        return combine(tree, STRING, [value])


@_register("repeat", 2)
def _repeat(arguments: Sequence[Typed]) -> Typed:
    value, times = _of(arguments[0], STRING), _whole(arguments[1], 0)
    if times > _MANY:
        raise NotTranslatable(f"more than {_MANY} times")
    return combine(call("repeat", value.copy_tree(), exp.Literal.number(times)), STRING, [value])


_simple("md5", "md5", STRING, STRING)


@_register("sha2", 2)
def _sha2(arguments: Sequence[Typed]) -> Typed:
    if _whole(arguments[1], 0) not in {0, 256}:
        raise NotTranslatable("only 256 bits agree")
    value = _of(arguments[0], STRING)
    return combine(call("sha256", value.copy_tree()), STRING, [value])


# Nulls and choices


def _merged(arguments: Sequence[Typed]) -> tuple[list[Typed], SparkType]:
    shared = common_type_of((value.type for value in arguments), "the list of arguments")
    if shared == VOID:
        raise NotTranslatable("all arguments are null")
    return [coerce(value, shared) for value in arguments], shared


@_register("coalesce", 1, _MANY)
def _coalesce(arguments: Sequence[Typed]) -> Typed:
    values, shared = _merged(arguments)
    return combine(exp.Coalesce(this=values[0].copy_tree(), expressions=[one.copy_tree() for one in values[1:]]),
                   shared, values)  # fmt: skip


_register("ifnull nvl", 2)(_coalesce)


@_register("if iff", 3)
def _if(arguments: Sequence[Typed]) -> Typed:
    condition = _of(arguments[0], BOOLEAN)
    values, shared = _merged(arguments[1:])
    tree = choose([(condition.copy_tree(), values[0].copy_tree())], values[1].copy_tree())
    return combine(tree, shared, [condition, *values])


@_register("nvl2", 3)
def _nvl2(arguments: Sequence[Typed]) -> Typed:
    values, shared = _merged(arguments[1:])
    has_value = exp.Not(this=is_null(arguments[0].copy_tree()))
    return combine(choose([(has_value, values[0].copy_tree())], values[1].copy_tree()), shared, [arguments[0], *values])


@_register("nullif", 2)
def _nullif(arguments: Sequence[Typed]) -> Typed:
    first, second = arguments
    shared = common_type(first.type, second.type, "the pair of arguments")
    if not shared.is_atomic or first.type == VOID:
        raise NotTranslatable(f"an argument is {shared}")
    is_equal = exp.EQ(
        this=paren(coerce(first, shared).copy_tree()), expression=paren(coerce(second, shared).copy_tree())
    )
    return combine(choose([(is_equal, cast_to(exp.Null(), first.type))], repeated(first)), first.type, arguments)


@_register("isnull", 1)
def _isnull(arguments: Sequence[Typed]) -> Typed:
    return combine(is_null(arguments[0].copy_tree()), BOOLEAN, arguments)


@_register("isnotnull", 1)
def _isnotnull(arguments: Sequence[Typed]) -> Typed:
    return combine(exp.Not(this=is_null(arguments[0].copy_tree())), BOOLEAN, arguments)


@_register("isnan", 1)
def _isnan(arguments: Sequence[Typed]) -> Typed:
    """Return isnan, which is false for null in Spark."""
    value = arguments[0]
    if not value.type.is_floating:
        raise NotTranslatable(f"an argument is {value.type}")
    tree = exp.Coalesce(this=call("isnan", value.copy_tree()), expressions=[exp.Boolean(this=False)])
    return combine(tree, BOOLEAN, [value])


for _name in ("greatest", "least"):

    @_register(_name, 2, _MANY)
    def _extreme(arguments: Sequence[Typed], name: str = _name) -> Typed:
        values, shared = _merged(arguments)
        if not shared.is_atomic:
            raise NotTranslatable(f"an argument is {shared}")
        return combine(call(name, *(value.copy_tree() for value in values)), shared, values)


# Numbers


@_register("abs", 1)
def _abs(arguments: Sequence[Typed]) -> Typed:
    (value,) = arguments
    if not value.type.is_numeric:
        raise NotTranslatable(f"an argument is {value.type}")
    return combine(cast_to(call("abs", value.copy_tree()), value.type), value.type, [value], can_fail=True)


_register("negative", 1)(lambda arguments: negated(arguments[0]))
_register("mod", 2)(lambda arguments: arithmetic("%", *arguments))

_LONG_LIMIT = "9223372036854775808"


def _to_whole(names: str, duckdb: str) -> None:
    """Register ceil or floor. Of NaN and doubles beyond bigint, some versions of Spark fail and others do not."""

    @_register(names, 1)
    def scalar(arguments: Sequence[Typed]) -> Typed:
        (value,) = arguments
        if value.type.is_integral:
            return coerce(value, BIGINT)
        if value.type.is_decimal:
            result = decimal_type(value.type.precision - value.type.scale + (value.type.scale > 0), 0, "the result")
            return combine(cast_to(call(duckdb, value.copy_tree()), result), result, [value])
        if not value.type.is_floating:
            raise NotTranslatable(f"an argument is {value.type}")
        value = coerce(value, DOUBLE)
        too_great = exp.GTE(this=call("abs", repeated(value)), expression=number(_LONG_LIMIT, DOUBLE))
        refusal = fail(f"Cannot compute {duckdb} of a number beyond bigint: {NEEDS_SPARK}")
        # NaN is greater than every number, so it is refused with them.
        tree = choose([(too_great, refusal)], cast_to(call(duckdb, value.copy_tree()), BIGINT))
        return combine(tree, BIGINT, [value], can_fail=True)


_to_whole("ceil ceiling", "ceil")
_to_whole("floor", "floor")


@_register("round", 1, 2)
def _round(arguments: Sequence[Typed]) -> Typed:
    """Round decimals half up; doubles are refused, since Spark rounds their digits and DuckDB their values."""
    value = arguments[0]
    places = _whole(arguments[1], 0) if len(arguments) > 1 else 0
    if value.type.is_integral:
        return value
    if not value.type.is_decimal:
        raise NotTranslatable(f"an argument is {value.type}, which Spark rounds by its digits")
    scale = min(places, value.type.scale)
    result = decimal_type(value.type.precision - value.type.scale + 1 + scale, scale, "the result")
    return combine(cast_to(value.copy_tree(), result), result, [value])


@_register("sqrt", 1)
def _sqrt(arguments: Sequence[Typed]) -> Typed:
    value = coerce(arguments[0], DOUBLE)
    negative = exp.LT(this=paren(repeated(value)), expression=number(0, DOUBLE))
    return combine(choose([(negative, number("NaN", DOUBLE))], call("sqrt", value.copy_tree())), DOUBLE, [value])


@_register("size cardinality", 1)
def _size(arguments: Sequence[Typed]) -> Typed:
    (value,) = arguments
    name = {"array<": "len", "map<": "cardinality"}.get(value.type.name[: value.type.name.find("<") + 1])
    if name is None:
        raise NotTranslatable(f"an argument is {value.type}")
    return combine(cast_to(call(name, value.copy_tree()), INT), INT, [value])


def _casts(names: str, target: SparkType) -> None:
    """Register the name of a type as the function that casts to it."""
    _register(names, 1)(lambda arguments: cast(arguments[0], target))


for _name in ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "date", "timestamp"):
    _casts(_name, parse_spark_type(_name))
_casts("to_date", DATE)
_casts("to_timestamp", TIMESTAMP)


# Dates and times


def as_date(value: Typed) -> Typed:
    """Return a date argument; Spark casts timestamps and texts to it."""
    if value.type == STRING and value.literal is None:
        raise NotTranslatable("an argument is string")
    return coerce(value, DATE)


def _as_ntz(value: Typed) -> Typed:
    """Return the wall clock of a timestamp in UTC."""
    if value.type == VOID or not value.type.is_temporal:
        raise NotTranslatable(f"an argument is {value.type}")
    return coerce(value, TIMESTAMP_NTZ)


def _part_of_date(name: str, duckdb: str, shift: int = 0) -> None:
    @_register(name, 1)
    def scalar(arguments: Sequence[Typed]) -> Typed:
        value = as_date(arguments[0])
        tree = call(duckdb, value.copy_tree())
        if shift:
            tree = binary(exp.Add, tree, exp.Literal.number(shift)) if shift > 0 else binary(
                exp.Sub, tree, exp.Literal.number(-shift)
            )  # fmt: skip
        return combine(cast_to(tree, INT), INT, [value])


for _name in ("year", "quarter", "month", "day", "dayofyear", "weekofyear"):
    _part_of_date(_name, _name)
_part_of_date("dayofmonth", "day")
_part_of_date("dayofweek", "dayofweek", 1)
_part_of_date("weekday", "isodow", -1)


for _name in ("hour", "minute", "second"):

    @_register(_name, 1)
    def _part_of_time(arguments: Sequence[Typed], name: str = _name) -> Typed:
        value = _as_ntz(arguments[0])
        return combine(cast_to(call(name, value.copy_tree()), INT), INT, [value])


def _shift_days(names: str, kind: type[exp.Binary]) -> None:
    @_register(names, 2)
    def scalar(arguments: Sequence[Typed]) -> Typed:
        day, days = as_date(arguments[0]), arguments[1]
        if days.type.name not in {"tinyint", "smallint", "int"}:
            raise NotTranslatable(f"an argument is {days.type}")
        return combine(binary(kind, day.copy_tree(), coerce(days, INT).copy_tree()), DATE, [day, days], can_fail=True)


_shift_days("date_add dateadd", exp.Add)
_shift_days("date_sub", exp.Sub)


@_register("datediff date_diff", 2)
def _datediff(arguments: Sequence[Typed]) -> Typed:
    end, start = (as_date(value) for value in arguments)
    return combine(cast_to(binary(exp.Sub, end.copy_tree(), start.copy_tree()), INT), INT, [end, start])


@_register("add_months", 2)
def _add_months(arguments: Sequence[Typed]) -> Typed:
    day, months = as_date(arguments[0]), arguments[1]
    if months.type.name not in {"tinyint", "smallint", "int"}:
        raise NotTranslatable(f"an argument is {months.type}")
    interval = call("to_months", coerce(months, INT).copy_tree())
    return combine(cast_to(binary(exp.Add, day.copy_tree(), interval), DATE), DATE, [day, months], can_fail=True)


@_register("last_day", 1)
def _last_day(arguments: Sequence[Typed]) -> Typed:
    value = as_date(arguments[0])
    return combine(call("last_day", value.copy_tree()), DATE, [value])


_UNITS_OF_DATE = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mm": "month", "mon": "month",
    "week": "week",
}  # fmt: skip
_UNITS_OF_TIME = {
    **_UNITS_OF_DATE, "day": "day", "dd": "day", "hour": "hour", "minute": "minute", "second": "second",
}  # fmt: skip


@_register("trunc", 2)
def _trunc(arguments: Sequence[Typed]) -> Typed:
    value, unit = as_date(arguments[0]), _UNITS_OF_DATE.get(_text(arguments[1]).lower())
    if unit is None:
        raise NotTranslatable(f"the unit {arguments[1].literal!r}")
    return combine(cast_to(call("date_trunc", exp.Literal.string(unit), value.copy_tree()), DATE), DATE, [value])


@_register("date_trunc", 2)
def _date_trunc(arguments: Sequence[Typed]) -> Typed:
    unit, value = _UNITS_OF_TIME.get(_text(arguments[0]).lower()), arguments[1]
    if unit is None or value.type not in {DATE, TIMESTAMP}:
        raise NotTranslatable(f"the unit {arguments[0].literal!r} or an argument of {value.type}")
    clock = coerce(value, TIMESTAMP_NTZ)
    tree = ntz_to_timestamp(call("date_trunc", exp.Literal.string(unit), clock.copy_tree()))
    return combine(tree, TIMESTAMP, [value])


_FORMATS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


@_register("date_format", 2)
def _date_format(arguments: Sequence[Typed]) -> Typed:
    value, pattern = _as_ntz(arguments[0]), _text(arguments[1])
    written, at = "", 0
    while at < len(pattern):
        token = next((token for token in _FORMATS if pattern.startswith(token, at)), None)
        if (token is None and pattern[at] not in "-/:. ,_") or (
            token and pattern.startswith(token[0], at + len(token))
        ):
            raise NotTranslatable(f"the pattern {pattern!r}")
        written += _FORMATS[token] if token else pattern[at]
        at += len(token or " ")
    return combine(call("strftime", value.copy_tree(), exp.Literal.string(written)), STRING, [value])


@_register("current_date curdate", 0)
def _current_date(arguments: Sequence[Typed]) -> Typed:
    return Typed(cast_to(timestamp_to_ntz(call("now")), DATE), DATE)


@_register("current_timestamp now", 0)
def _now(arguments: Sequence[Typed]) -> Typed:
    return Typed(call("now"), TIMESTAMP)


_INTERVALS = {
    "YEAR": "to_years", "MONTH": "to_months", "WEEK": "to_weeks", "DAY": "to_days", "HOUR": "to_hours",
    "MINUTE": "to_minutes", "SECOND": "to_seconds",
}  # fmt: skip


def add_interval(value: Typed, interval: exp.Expr, *, is_minus: bool) -> Typed:
    """Return a date or timestamp plus or minus an interval of a whole number of one unit."""
    unit = str(interval.args["unit"].name).upper().removesuffix("S") if interval.args.get("unit") else ""
    count = interval.this.this if isinstance(interval.this, exp.Literal) else ""
    name = _INTERVALS.get(unit)
    if name is None or not count.removeprefix("-").isdecimal() or len(count) > len("-99999"):
        raise NotTranslatable(f"the interval {interval.sql('spark')[:60]}")
    if not value.type.is_temporal or (value.type == DATE and unit in {"HOUR", "MINUTE", "SECOND"}):
        raise NotTranslatable(f"an interval of {unit.lower()}s with {value.type}")
    step = call(name, exp.Literal.number(int(count)))
    clock = coerce(value, TIMESTAMP_NTZ) if value.type == TIMESTAMP else value
    moved = binary(exp.Sub if is_minus else exp.Add, clock.copy_tree(), step)
    tree = ntz_to_timestamp(moved) if value.type == TIMESTAMP else cast_to(moved, value.type)
    return combine(tree, value.type, [value], can_fail=True)
