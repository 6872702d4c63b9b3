"""Values of one type as values of another, as Spark's `cast` has it in ANSI mode: what does not fit is an error.

`assign` is the stricter conversion of values that are written to a column: nothing may be lost
(`spark/write/store_assignment.py` is its twin).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from frazil.errors import InvalidRequestError
from frazil.evaluate import sql_types as t

_WHOLE = re.compile(r"[+-]?[0-9]+")
_UNENDING = frozenset({"nan", *(f"{sign}{word}" for sign in ("", "+", "-") for word in ("inf", "infinity"))})
"""Texts of floating numbers that have no digits."""
_NUMBER = re.compile(r"[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,4})?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(:\d\d)?(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_SPACE = "".join(map(chr, range(0x21)))
_EXACT_DIGITS = 15
_FEW_SCALES = 22


class _Unfit(Exception):
    """A value that does not fit; becomes an error that names both types."""


def cast(values: Any, to: pa.DataType) -> Any:
    """Return values, an array or a scalar, as values of another type."""
    if values.type == to:
        return values
    if isinstance(values, pa.Scalar):
        return cast(pa.array([values.as_py()], values.type), to)[0]
    if values.type == t.NULL:
        return pa.nulls(len(values), to)
    found = _find(values.type, to)
    if found is None:
        raise t.left_to_spark(f"casts of {t.shown_name(values.type)} to {t.shown_name(to)} are not supported")
    try:
        return found(values, to)
    except (_Unfit, pa.ArrowInvalid) as problem:
        reason = f"the value {problem} " if isinstance(problem, _Unfit) else "a value "
        raise InvalidRequestError(
            f"Cannot cast {t.shown_name(values.type)} to {t.shown_name(to)}: {reason}does not fit",
            hint="Spark may read more forms of text than are known here." if values.type == t.STRING else None,
        ) from problem


def try_cast(values: Any, to: pa.DataType) -> Any:
    """Return values as values of another type, null where one does not fit."""
    try:
        return cast(values, to)
    except InvalidRequestError:
        if isinstance(values, pa.Scalar):
            _check_text(values.as_py(), to)
            return pa.scalar(None, to)
    parts = [try_cast(values.slice(index, 1)[0], to) for index in range(len(values))]
    return pa.concat_arrays([pa.nulls(1, to) if scalar.as_py() is None else pa.repeat(scalar, 1) for scalar in parts])


def _check_text(value: Any, to: pa.DataType) -> None:
    """Refuse text that is none of the forms which are known here, and that Spark might read all the same."""
    if not isinstance(value, str):
        return
    has_digits = any(item.isdigit() for item in value)
    is_odd = "\x7f" in value or (pa.types.is_decimal(to) and not value.isascii())
    if is_odd or (has_digits and (t.is_floating(to) or (t.is_moment(to) and not _is_moment_text(value)))):
        raise t.left_to_spark(f"casting {value!r} to {t.shown_name(to)} is not supported")


def _is_moment_text(value: str) -> bool:
    return _MOMENT.fullmatch(value.strip(_SPACE)) is not None


def can_cast(have: pa.DataType, to: pa.DataType) -> bool:
    """Return whether values of a type can be cast to another here."""
    return have in (to, t.NULL) or _find(have, to) is not None


def _find(have: pa.DataType, to: pa.DataType) -> Callable[[Any, pa.DataType], Any] | None:
    if t.is_number(have) and t.is_number(to):
        return _cast_number
    if to == t.STRING:
        return _TO_TEXT.get(have) or (_decimal_text if pa.types.is_decimal(have) else None)
    if have == t.STRING:
        if t.is_number(to):
            return _number_of_text
        return _OF_TEXT.get(to)
    if t.is_moment(have) and t.is_moment(to):
        return _cast_moment
    if have == t.BOOLEAN and t.is_number(to):
        return lambda values, data_type: cast(values.cast(t.BYTE), data_type)
    if t.is_number(have) and to == t.BOOLEAN:
        return lambda values, data_type: pc.not_equal(values, t.zero_of(values.type))
    return None


# Numbers


def _cast_number(values: Any, to: pa.DataType) -> Any:
    have = values.type
    if pa.types.is_decimal(to):
        return _to_decimal(values, to)
    if t.is_floating(to):
        if pa.types.is_decimal(have):
            return _doubles_of(values).cast(to, safe=False)
        return values.cast(to, safe=False)
    if t.is_floating(have):
        return _whole_of_floating(values, to)
    if pa.types.is_decimal(have):
        cut = round_decimals(values, 0, "towards_zero")
        return _safely(lambda: cut.cast(pa.decimal128(38, 0)).cast(to), values)
    return _safely(lambda: values.cast(to), values)


def _safely(convert: Callable[[], Any], values: Any) -> Any:
    try:
        return convert()
    except pa.ArrowInvalid:
        found = pc.min_max(values).as_py()
        raise _Unfit(max(found.values(), key=abs)) from None


def _whole_of_floating(values: Any, to: pa.DataType) -> Any:
    info = np.iinfo(to.to_pandas_dtype())
    numbers = values.drop_null().to_numpy(zero_copy_only=False).astype(np.float64)
    # Above the largest long there is no double but 2^63 itself, which Spark cuts to the largest.
    is_fit = (np.floor(numbers) <= float(info.max)) & (np.ceil(numbers) >= float(info.min))
    if not is_fit.all():
        raise _Unfit(numbers[~is_fit][0])
    if to != t.LONG:
        return pc.trunc(values.cast(t.DOUBLE)).cast(to)
    whole = np.trunc(values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64))
    made = np.where(whole >= 2.0**63, info.max, np.where(whole >= 2.0**63, 0, whole).astype(np.int64))
    return pa.array(made, to, mask=values.is_null().to_numpy(zero_copy_only=False))


def _to_decimal(values: Any, to: pa.DataType) -> Any:
    have = values.type
    if t.is_floating(have):
        # NaN and the infinities are no decimals: Spark makes them null.
        found = [_decimal_of(_shortest(value, have), to) if _is_finite(value) else None for value in values.to_pylist()]
        return pa.array(found, to)
    if t.is_integer(have):
        values = values.cast(pa.decimal128(t.digits_of_type(have)[0], 0))
    if to.scale < values.type.scale:
        values = round_decimals(values, to.scale, "half_towards_infinity")
    return _safely(lambda: values.cast(to), values)


def round_decimals(values: Any, scale: int, mode: str) -> Any:
    """Return decimals rounded to a scale, with room for one digit more."""
    return pc.round(values.cast(pa.decimal256(76, values.type.scale)), scale, mode)


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _shortest(value: float, data_type: pa.DataType) -> Decimal:
    return Decimal(str(np.float32(value)) if data_type == t.FLOAT else repr(value))


def _decimal_of(value: Decimal, to: pa.DataType) -> Decimal:
    with localcontext() as context:
        context.prec = 400
        try:
            made = value.quantize(Decimal(1).scaleb(-to.scale), rounding=ROUND_HALF_UP)
        except InvalidOperation:
            raise _Unfit(value) from None
    if len(made.as_tuple().digits) > to.precision and made != 0:
        raise _Unfit(value)
    return made


def _doubles_of(values: Any) -> Any:
    """Return the doubles nearest to decimals."""
    data_type = values.type
    if data_type.precision <= _EXACT_DIGITS and data_type.scale <= _FEW_SCALES:
        unscaled = np.frombuffer(values.buffers()[1], "<i8")
        low = unscaled[2 * values.offset : 2 * (values.offset + len(values)) : 2]
        made = low.astype(np.float64) / 10.0**data_type.scale
        return pa.array(made, t.DOUBLE, mask=values.is_null().to_numpy(zero_copy_only=False))
    return pa.array([None if value is None else float(value) for value in values.to_pylist()], t.DOUBLE)


def _number_of_text(values: Any, to: pa.DataType) -> Any:
    texts = values.to_pylist()
    pattern = _WHOLE if t.is_integer(to) else _NUMBER
    found: list[Any] = []
    for value in texts:
        text = None if value is None else value.strip(_SPACE)
        if text is None:
            found.append(None)
            continue
        if t.is_floating(to) and text.lower() in _UNENDING:
            found.append(float(text))
            continue
        if not pattern.fullmatch(text):
            raise _Unfit(repr(value))
        if t.is_integer(to):
            found.append(int(text))
        elif t.is_floating(to):
            found.append(float(text))
        else:
            found.append(_decimal_of(Decimal(text), to))
    try:
        return pa.array(found, to)
    except (OverflowError, pa.ArrowInvalid):
        raise _Unfit(max((text for text in found if text is not None), key=abs)) from None


# Text


def _decimal_text(values: Any, to: pa.DataType) -> Any:
    return pa.array([None if value is None else format(value, "f") for value in values.to_pylist()], t.STRING)


def _moment_text(values: Any, to: pa.DataType) -> Any:
    text = pc.strftime(values, "%Y-%m-%d %H:%M:%S")
    return pc.replace_substring_regex(text, r"\.?0+$", "") if len(text) and _has_fraction(text) else text


def _has_fraction(text: Any) -> bool:
    return bool(pc.any(pc.match_substring(text, ".")).as_py())


def _plain(values: Any, to: pa.DataType) -> Any:
    return values.cast(to)


def _boolean_of_text(values: Any, to: pa.DataType) -> Any:
    found = []
    for value in values.to_pylist():
        word = None if value is None else value.strip(_SPACE).lower()
        if word is not None and word not in _TRUE and word not in _FALSE:
            raise _Unfit(repr(value))
        found.append(None if word is None else word in _TRUE)
    return pa.array(found, t.BOOLEAN)


def _moment_of_text(values: Any, to: pa.DataType) -> Any:
    found = []
    for value in values.to_pylist():
        text = None if value is None else value.strip(_SPACE)
        if text is not None:
            match = _MOMENT.fullmatch(text)
            if match is None or (to == t.DATE and not _DAY.fullmatch(text)) or (to != t.TIMESTAMP and match[5]):
                raise _Unfit(repr(value))
            if to != t.DATE:
                day, minute, second, fraction, zone = match.groups()
                fraction = (fraction or ".").ljust(7, "0")
                zone = zone or ("Z" if to == t.TIMESTAMP else "")
                text = f"{day} {minute or '00:00'}{second or ':00'}{fraction}{zone}"
        found.append(text)
    try:
        return pa.array(found, t.STRING).cast(to)
    except pa.ArrowInvalid:
        raise _Unfit(repr(next(text for text in found if text is not None))) from None


_TO_TEXT: dict[pa.DataType, Callable[[Any, pa.DataType], Any]] = {
    **dict.fromkeys((t.BYTE, t.SHORT, t.INT, t.LONG, t.BOOLEAN, t.DATE), _plain),
    t.TIMESTAMP: _moment_text,
    t.TIMESTAMP_NTZ: _moment_text,
}
_OF_TEXT: dict[pa.DataType, Callable[[Any, pa.DataType], Any]] = {
    t.BOOLEAN: _boolean_of_text,
    t.DATE: _moment_of_text,
    t.TIMESTAMP: _moment_of_text,
    t.TIMESTAMP_NTZ: _moment_of_text,
    t.BINARY: _plain,
}


# Moments


def _cast_moment(values: Any, to: pa.DataType) -> Any:
    """Return dates and times as each other; times without a zone are in UTC."""
    if to == t.DATE:
        return pc.floor_temporal(values.cast(t.TIMESTAMP_NTZ), unit="day").cast(t.DATE)
    return values.cast(t.TIMESTAMP_NTZ).cast(to) if values.type == t.DATE else values.cast(to)


# Values that are written


def assign(values: Any, to: pa.DataType, path: str) -> Any:
    """Return values as those of a column that they are written to; refuse what would lose something."""
    have = values.type
    if have == to:
        return values
    if not can_assign(have, to):
        raise InvalidRequestError(
            f"Cannot write the data: it does not fit the table: {path}: {t.shown_name(have)} cannot be written as "
            f"{t.shown_name(to)}"
        )
    if have == t.NULL or to == t.STRING or _is_safe(have, to):
        return cast(values, to)
    try:
        made = cast(values, to)
        lost = pc.fill_null(pc.not_equal(cast(made, have), values), False)
    except InvalidRequestError as problem:
        raise _lossy(values, to, path) from problem
    if pc.any(lost).as_py():
        raise _lossy(values.filter(lost), to, path)
    return made


def _lossy(values: Any, to: pa.DataType, path: str) -> InvalidRequestError:
    found = values.drop_null()
    value = pc.max(found).as_py() if t.is_number(values.type) else found[0].as_py()
    return InvalidRequestError(f"Cannot write the column {path!r}: the value {value} does not fit {t.shown_name(to)}")


def can_assign(have: pa.DataType, to: pa.DataType) -> bool:
    """Return whether ANSI SQL lets values of a type be written to a column of another."""
    if have in (to, t.NULL):
        return True
    if to == t.STRING:
        return have != t.BINARY and can_cast(have, to)
    both_numbers = t.is_number(have) and t.is_number(to)
    return both_numbers or (t.is_moment(have) and t.is_moment(to))


def _is_safe(have: pa.DataType, to: pa.DataType) -> bool:
    """Return whether a conversion needs no test: it fits every value, or rounds as floats do."""
    if t.is_moment(have):
        return bool(to != t.DATE)
    if t.is_floating(to):
        return not t.is_integer(have) or bool(t.digits_of_type(have)[0] < (8 if to == t.FLOAT else 16))
    if t.is_floating(have):
        return False
    whole, scale = t.digits_of_type(have)
    if pa.types.is_decimal(to):
        return bool(to.scale >= scale and to.precision - to.scale >= whole)
    return t.is_integer(have) and t.digits_of_type(to)[0] >= whole
