"""Translated expressions as text for the verbs, and the literals among them.

A literal is written with its type, so that the text means one value. Texts stand for dates, times and uuids only in
forms that every engine reads alike.
"""

from __future__ import annotations

import datetime
import re
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from frazil.evaluate import sql_types as t
from frazil.expr.predicates import TypedText, sql_literal
from frazil.text.literals import digits_of

ATOM, SUM, TEST, LOGIC = range(4)
"""How tightly a text holds together: what binds less than its place asks for is put in brackets."""
_NO_LITERAL: Final = object()
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?(Z|[+-]\d\d(?::\d\d)?)?)?", re.ASCII
)
_TIME = re.compile(r"\d\d:\d\d:\d\d(?:\.\d{1,6})?", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_UNENDING = {"nan": "nan", "inf": "inf", "infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}


@dataclass(frozen=True, slots=True)
class Value:
    """An expression: its text for the verbs, its type, how tightly the text holds, and the literal that it is."""

    text: str
    data_type: pa.DataType
    level: int = ATOM
    literal: Any = _NO_LITERAL

    @property
    def is_literal(self) -> bool:
        """Whether it is a literal."""
        return self.literal is not _NO_LITERAL

    @property
    def is_text(self) -> bool:
        """Whether it is a literal text, which may stand for a date or the like."""
        return self.is_literal and self.data_type == t.STRING

    def at_most(self, level: int) -> str:
        """Return the text, in brackets if it binds less tightly than a level."""
        return self.text if self.level <= level else f"({self.text})"

    @property
    def side(self) -> str:
        """The text as a side of a comparison."""
        return self.text if self.is_literal else self.at_most(ATOM)


def literal_of(value: Any) -> Value | str:
    """Return a Python value as a literal, or the name of what is not one."""
    if value is None:
        return Value("null", t.NULL, literal=None)
    if isinstance(value, bool):
        return Value(sql_literal(value), t.BOOLEAN, literal=value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            return f"the number {value}, which does not fit BIGINT,"
        data_type = t.INT if -(2**31) <= value < 2**31 else t.LONG
        return Value(sql_literal(value), data_type, ATOM if value >= 0 else SUM, value)
    if isinstance(value, Decimal):
        whole, scale = digits_of(value)
        if whole + scale > t.MAX_PRECISION:
            return f"the number {value}, which has more than {t.MAX_PRECISION} digits,"
        data_type = pa.decimal128(max(whole + scale, 1), scale)
        return Value(sql_literal(value), data_type, SUM if value.is_signed() else ATOM, value)
    if isinstance(value, float):
        return Value(sql_literal(value), t.DOUBLE, SUM if repr(value)[0] == "-" else ATOM, value)
    if isinstance(value, str):
        return Value(sql_literal(value), t.STRING, literal=value)
    if isinstance(value, bytes):
        return Value(sql_literal(value), t.BINARY, literal=value)
    if isinstance(value, uuid.UUID):
        return Value(sql_literal(str(value)), t.UUID, literal=value)
    if isinstance(value, datetime.datetime):
        return _moment(value)
    if isinstance(value, datetime.date):
        return Value(sql_literal(TypedText("date", value.isoformat())), t.DATE, literal=value)
    if isinstance(value, datetime.time):
        return Value(sql_literal(TypedText("time", value.isoformat("microseconds"))), t.TIME, literal=value)
    return f"a value of the type {type(value).__name__}"


def _moment(value: datetime.datetime) -> Value:
    if value.tzinfo is None:
        return Value(sql_literal(TypedText("timestamp_ntz", value.isoformat(" "))), t.TIMESTAMP_NTZ, literal=value)
    in_utc = value.astimezone(datetime.UTC)
    text = in_utc.replace(tzinfo=None).isoformat(" ") + "Z"
    return Value(sql_literal(TypedText("timestamp", text)), t.TIMESTAMP, literal=value)


def read_text(text: str, data_type: pa.DataType) -> Any:
    """Return what a text means as a value of a type, None if it is in no form that both engines read alike."""
    try:
        if data_type == t.DATE:
            return datetime.date.fromisoformat(text) if _DATE.fullmatch(text) else None
        if data_type in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
            match = _MOMENT.fullmatch(text)
            if match is None or (match[3] is not None and data_type == t.TIMESTAMP_NTZ):
                return None
            made = datetime.datetime.fromisoformat(f"{match[1]}T{match[2] or '00:00'}{match[3] or ''}")
            zoned = made if made.tzinfo is not None else made.replace(tzinfo=datetime.UTC)
            return made if data_type == t.TIMESTAMP_NTZ else zoned.astimezone(datetime.UTC)
        if data_type == t.TIME:
            return datetime.time.fromisoformat(text) if _TIME.fullmatch(text) else None
        if data_type == t.UUID:
            return uuid.UUID(text) if _UUID.fullmatch(text) else None
        if data_type == t.DOUBLE:
            return float(_UNENDING[text.lower()]) if text.lower() in _UNENDING else None
    except (ValueError, OverflowError):
        return None
    return None
