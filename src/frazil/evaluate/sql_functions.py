"""Functions of Spark SQL over Arrow columns: those that people write in updates and merges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import InvalidRequestError
from frazil.evaluate import sql_types as t
from frazil.evaluate.compile_expression import FUNCTIONS, Compiled, Compiler, Rows, Values, spread
from frazil.evaluate.sql_casts import cast, round_decimals
from frazil.evaluate.sql_operators import less_values

Build = Callable[[Compiler, list[Compiled]], Compiled]
_MAX_INT = 2**31 - 1
_DAYS = (-719_162, 2_932_897)
"""The first day of the year 1, and of the year 10000."""


def of_kinds(
    operation: Callable[..., Any], result: pa.DataType = t.STRING, kinds: Sequence[pa.DataType] = (t.STRING,)
) -> Build:
    """Return a function of arguments of given types, each of which is an array or a scalar when it runs."""

    def build(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
        if len(arguments) != len(kinds):
            raise t.left_to_spark(f"the function with {len(arguments)} arguments is not supported")
        parts = []
        for argument, wanted in zip(arguments, kinds, strict=True):
            is_fit = argument.data_type in (wanted, t.NULL) or (
                wanted == t.INT and t.is_integer(argument.data_type) and argument.data_type != t.LONG
            )
            if not is_fit:
                raise t.left_to_spark(f"the function of {t.shown_name(argument.data_type)} values is not supported")
            parts.append(compiler.cast(argument, wanted))
        return Compiled(
            result,
            lambda rows: operation(*(compiled.run(rows) for compiled in parts)),
            any(compiled.may_fail for compiled in parts),
        )

    return build


def each(operation: Callable[..., Any], result: pa.DataType) -> Callable[..., Any]:
    """Return a function that computes value by value; null where an argument is null."""

    def run(*arguments: Any) -> Any:
        lengths = [len(argument) for argument in arguments if not isinstance(argument, pa.Scalar)]
        if not lengths:
            values = [argument.as_py() for argument in arguments]
            return pa.scalar(None if None in values else operation(*values), result)
        columns = [
            [argument.as_py()] * lengths[0] if isinstance(argument, pa.Scalar) else argument.to_pylist()
            for argument in arguments
        ]
        found = [None if None in row else operation(*row) for row in zip(*columns, strict=True)]
        return pa.array(found, result)

    return run


def _case_changed(fast: Callable[[Any], Any], slow: Callable[[str], str]) -> Callable[[Any], Any]:
    exact = each(slow, t.STRING)

    def run(values: Any) -> Any:
        is_ascii = pc.string_is_ascii(values)
        found = is_ascii.as_py() if isinstance(is_ascii, pa.Scalar) else pc.all(is_ascii).as_py()
        return exact(values) if found is False else fast(values)

    return run


def _concat(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    for argument in arguments:
        if argument.data_type not in (t.STRING, t.NULL):
            raise t.left_to_spark(f"concat of {t.shown_name(argument.data_type)} values is not supported")
    if not arguments:
        raise t.left_to_spark("concat of nothing is not supported")
    parts = [compiler.cast(argument, t.STRING) for argument in arguments]

    def run(rows: Rows) -> Values:
        found = [compiled.run(rows) for compiled in parts]
        return pc.binary_join_element_wise(*found, pa.scalar(""), null_handling="emit_null")

    return Compiled(t.STRING, run, any(compiled.may_fail for compiled in parts))


def _substring(text: str, start: int, length: int = _MAX_INT) -> str:
    # As Spark counts: from 1, from the end where negative; what lies before the text counts for the length.
    begin = start - 1 if start > 0 else (len(text) + start if start < 0 else 0)
    end = max(begin + length, 0) if length < _MAX_INT else len(text)
    return text[max(begin, 0) : end] if end > begin else ""


def _substring_of(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    kinds = (t.STRING, t.INT, t.INT)[: max(2, len(arguments))]
    return of_kinds(each(_substring, t.STRING), t.STRING, kinds)(compiler, arguments)


def _pad(text: str, length: int, fill: str, *, is_left: bool) -> str:
    if length <= len(text) or not fill:
        return text[: max(length, 0)]
    more = (fill * (length // len(fill) + 1))[: length - len(text)]
    return more + text if is_left else text + more


def _padded(*, is_left: bool) -> Build:
    def build(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
        operation = each(lambda text, length, fill=" ": _pad(text, length, fill, is_left=is_left), t.STRING)
        return of_kinds(operation, t.STRING, (t.STRING, t.INT, t.STRING)[: max(2, len(arguments))])(compiler, arguments)

    return build


def _like(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    if any(argument.data_type not in (t.STRING, t.NULL) for argument in arguments):
        raise t.left_to_spark("like is known for text here")
    texts = [None if argument.literal is None else argument.literal.value for argument in arguments[1:]]
    if any(not isinstance(text, str) for text in texts):
        raise t.left_to_spark("the pattern of like is a literal here")
    pattern, escape = str(texts[0]), str(texts[1]) if len(texts) > 1 else "\\"
    child = compiler.cast(arguments[0], t.STRING)
    regex = like_regex(pattern, escape)
    return Compiled(t.BOOLEAN, lambda rows: pc.match_substring_regex(child.run(rows), regex), child.may_fail)


def like_regex(pattern: str, escape: str) -> str:
    """Return the regular expression of a pattern of LIKE."""
    if len(escape) != 1:
        raise InvalidRequestError(f"Cannot use the escape {escape!r}: it is one character")
    made, offset = [], 0
    while offset < len(pattern):
        char = pattern[offset]
        if char == escape:
            offset += 1
            if offset == len(pattern) or pattern[offset] not in ("%", "_", escape):
                raise InvalidRequestError(
                    f"Cannot use the pattern {pattern!r}: {escape!r} stands before a character that is none of %, _ "
                    f"and {escape}"
                )
            made.append(_quoted(pattern[offset]))
        else:
            made.append({"%": ".*", "_": "."}.get(char) or _quoted(char))
        offset += 1
    return f"(?s)\\A{''.join(made)}\\z"


def _quoted(char: str) -> str:
    return char if char.isalnum() or ord(char) > 127 else f"\\x{{{ord(char):x}}}"


# Numbers


def _absolute(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    child = _number("abs", arguments, 1)

    def run(rows: Rows) -> Values:
        try:
            return pc.abs_checked(child.run(rows))
        except pa.ArrowInvalid as problem:
            raise InvalidRequestError(
                f"Cannot compute abs: the result does not fit {t.shown_name(child.data_type)}"
            ) from problem

    return Compiled(child.data_type, run, may_fail=True)


def _number(name: str, arguments: list[Compiled], count: int) -> Compiled:
    if len(arguments) != count or not t.is_number(arguments[0].data_type):
        raise t.left_to_spark(f"{name} is known for numbers here")
    return arguments[0]


def _round(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    child = _number("round", arguments, len(arguments) or 1)
    places = 0
    if len(arguments) == 2:
        literal = arguments[1].literal
        if literal is None or literal.kind != "int":
            raise t.left_to_spark("the digits of round are a whole number here")
        places = int(literal.value)
    data_type = child.data_type
    if len(arguments) > 2 or places < 0:
        raise t.left_to_spark("round to digits before the point is not supported")
    if t.is_integer(data_type):
        return child
    if pa.types.is_decimal(data_type):
        scale = min(places, data_type.scale)
        made = pa.decimal128(min(data_type.precision - data_type.scale + scale + 1, t.MAX_PRECISION), scale)
        return Compiled(made, lambda rows: cast(child.run(rows), made), may_fail=True)

    def rounded(value: float) -> float:
        if value != value or value in (float("inf"), float("-inf")):
            return value
        text = str(np.float32(value)) if data_type == t.FLOAT else repr(value)
        if abs(value) >= 2**53:
            return value
        # Spark's decimals have no zero below zero.
        return float(Decimal(text).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)) + 0.0

    round_each = each(rounded, data_type)
    return Compiled(data_type, lambda rows: round_each(child.run(rows)), child.may_fail)


def _to_whole(name: str, mode: str) -> Build:
    def build(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
        child = _number(name, arguments, 1)
        if t.is_integer(child.data_type):
            return compiler.cast(child, t.LONG)
        if pa.types.is_decimal(child.data_type):
            if child.data_type.scale == 0:
                return child
            made = pa.decimal128(min(child.data_type.precision - child.data_type.scale + 1, t.MAX_PRECISION), 0)
            return Compiled(made, lambda rows: round_decimals(child.run(rows), 0, mode).cast(made), may_fail=True)
        whole = pc.floor if mode == "down" else pc.ceil

        def run(rows: Rows) -> Values:
            try:
                return cast(whole(child.run(rows).cast(t.DOUBLE)), t.LONG)
            except InvalidRequestError as problem:
                raise t.left_to_spark(f"{name} of NaN, or of what is beyond a long, is not supported") from problem

        return Compiled(t.LONG, run, may_fail=True)

    return build


def _extreme(*, is_greatest: bool) -> Build:
    def build(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
        if len(arguments) < 2:
            raise t.left_to_spark("greatest and least have two arguments or more")
        parts = compiler.unify(arguments)

        def run(rows: Rows) -> Values:
            made = parts[0].array(rows)
            for compiled in parts[1:] if made.type != t.NULL else ():
                other = compiled.array(rows)
                takes = less_values(made, other) if is_greatest else less_values(other, made)
                # Nulls are skipped: the other is taken where there is none yet.
                takes = pc.if_else(made.is_null(), True, pc.fill_null(takes, False))
                made = pc.if_else(takes, other, made)
            return made

        return Compiled(parts[0].data_type, run, any(compiled.may_fail for compiled in parts))

    return build


# Dates and times


def field_of(operation: Callable[[Any], Any], *, of_day: bool) -> Build:
    """Return a function that tells a part of a date or a time, as an int; parts of a day are those of times alone."""

    def build(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
        if (
            len(arguments) != 1
            or not t.is_moment(arguments[0].data_type)
            or (of_day and arguments[0].data_type == t.DATE)
        ):
            raise t.left_to_spark("only dates and timestamps have such parts without Spark")
        child = arguments[0]
        compiler.is_zoned = compiler.is_zoned or child.data_type == t.TIMESTAMP
        return Compiled(t.INT, lambda rows: operation(in_calendar(child.run(rows))).cast(t.INT), child.may_fail)

    return build


def in_calendar(values: Any) -> Any:
    """Return dates or times as they are; refuse those of years that Arrow's calendar does not know."""
    if isinstance(values, pa.Scalar):
        return in_calendar(spread(values, 1))[0]
    low, high = _DAYS if values.type == t.DATE else tuple(day * 86_400_000_000 for day in _DAYS)
    numbers = values.cast(t.INT if values.type == t.DATE else t.LONG)
    found = pc.min_max(numbers).as_py()
    if found["min"] is not None and (found["min"] < low or found["max"] > high):
        raise t.left_to_spark("the years of dates and times are 1 to 9999 here")
    return values


def _days(sign: int) -> Build:
    def build(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
        if (
            len(arguments) != 2
            or arguments[0].data_type != t.DATE
            or arguments[1].data_type not in (t.BYTE, t.SHORT, t.INT)
        ):
            raise t.left_to_spark("date_add and date_sub are known for a date and a whole number here")
        day, count = arguments[0], compiler.cast(arguments[1], t.INT)
        # Beyond the last date Spark begins with the first one again.
        operation = pc.add if sign > 0 else pc.subtract

        def run(rows: Rows) -> Values:
            return operation(day.run(rows).cast(t.INT), count.run(rows)).cast(t.DATE)

        return Compiled(t.DATE, run, day.may_fail or count.may_fail)

    return build


def _day_difference(left: Any, right: Any) -> Any:
    return pc.subtract(left.cast(t.INT), right.cast(t.INT))


def _square_root(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    child = compiler.cast(_number("sqrt", arguments, 1), t.DOUBLE)
    return Compiled(t.DOUBLE, lambda rows: pc.sqrt(child.run(rows)), child.may_fail)


def _sign(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    child = compiler.cast(_number("sign", arguments, 1), t.DOUBLE)

    def run(rows: Rows) -> Values:
        values = child.run(rows)
        below = pc.if_else(pc.less(values, 0.0), -1.0, values)  # zeros and NaN are their own
        return pc.if_else(pc.greater(values, 0.0), 1.0, below)

    return Compiled(t.DOUBLE, run, child.may_fail)


def _is_nan(compiler: Compiler, arguments: list[Compiled]) -> Compiled:
    child = _number("isnan", arguments, 1)
    if not t.is_floating(child.data_type):
        return Compiled(t.BOOLEAN, lambda rows: pa.scalar(False), child.may_fail)
    return Compiled(t.BOOLEAN, lambda rows: pc.fill_null(pc.is_nan(child.run(rows)), False), child.may_fail)


_TWO_TEXTS = (t.STRING, t.STRING)
FUNCTIONS |= {
    "upper": of_kinds(_case_changed(pc.utf8_upper, str.upper)),
    "ucase": of_kinds(_case_changed(pc.utf8_upper, str.upper)),
    "lower": of_kinds(_case_changed(pc.utf8_lower, str.lower)),
    "lcase": of_kinds(_case_changed(pc.utf8_lower, str.lower)),
    "trim": of_kinds(lambda values: pc.utf8_trim(values, " ")),
    "ltrim": of_kinds(lambda values: pc.utf8_ltrim(values, " ")),
    "rtrim": of_kinds(lambda values: pc.utf8_rtrim(values, " ")),
    "length": of_kinds(pc.utf8_length, t.INT),
    "len": of_kinds(pc.utf8_length, t.INT),
    "char_length": of_kinds(pc.utf8_length, t.INT),
    "reverse": of_kinds(each(lambda text: text[::-1], t.STRING)),
    "concat": _concat,
    "||": _concat,
    "substring": _substring_of,
    "substr": _substring_of,
    "left": of_kinds(each(lambda text, count: text[: max(count, 0)], t.STRING), t.STRING, (t.STRING, t.INT)),
    "right": of_kinds(
        each(lambda text, count: text[-count:] if count > 0 else "", t.STRING), t.STRING, (t.STRING, t.INT)
    ),
    "replace": of_kinds(
        each(lambda text, old, new: text.replace(old, new) if old else text, t.STRING), t.STRING, (t.STRING,) * 3
    ),
    "lpad": _padded(is_left=True),
    "rpad": _padded(is_left=False),
    "startswith": of_kinds(each(str.startswith, t.BOOLEAN), t.BOOLEAN, _TWO_TEXTS),
    "endswith": of_kinds(each(str.endswith, t.BOOLEAN), t.BOOLEAN, _TWO_TEXTS),
    "contains": of_kinds(each(str.__contains__, t.BOOLEAN), t.BOOLEAN, _TWO_TEXTS),
    "like": _like,
    "abs": _absolute,
    "round": _round,
    "floor": _to_whole("floor", "down"),
    "ceil": _to_whole("ceil", "up"),
    "ceiling": _to_whole("ceil", "up"),
    "greatest": _extreme(is_greatest=True),
    "least": _extreme(is_greatest=False),
    "year": field_of(pc.year, of_day=False),
    "month": field_of(pc.month, of_day=False),
    "day": field_of(pc.day, of_day=False),
    "dayofmonth": field_of(pc.day, of_day=False),
    "hour": field_of(pc.hour, of_day=True),
    "minute": field_of(pc.minute, of_day=True),
    "second": field_of(pc.second, of_day=True),
    "date_add": _days(1),
    "date_sub": _days(-1),
    "datediff": of_kinds(_day_difference, t.INT, (t.DATE, t.DATE)),
    "isnan": _is_nan,
    "sqrt": _square_root,
    "sign": _sign,
    "signum": _sign,
}
