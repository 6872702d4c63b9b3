"""The definition of properties and their value types, and how properties are read.

Properties are text in table metadata. They are checked when they are used, never when a table is loaded: a table with
an invalid value remains usable for everything that does not need the value. `spec/properties.py` lists the properties.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from frazil.errors import InvalidPropertyError, InvalidRequestError
from frazil.spec.metrics_mode import METRICS_MODES_TEXT, MetricsMode, parse_metrics_mode

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
WordT = TypeVar("WordT", bound=str)

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

_WHOLE = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,4})?", re.ASCII)
_SHOWN_CHARS = 80


class ValueType(ABC, Generic[T_co]):
    """A type of property values: its name, a description of the allowed values, and a parser."""

    __slots__ = ()

    @property
    @abstractmethod
    def title(self) -> str:
        """The type's name, for lists of properties."""

    @property
    @abstractmethod
    def allowed(self) -> str:
        """The allowed values, in words that fit after "set it to"."""

    @abstractmethod
    def parse(self, text: str) -> T_co | None:
        """Return the value of a text, or None if the text is not allowed."""


@dataclass(frozen=True, slots=True)
class Whole(ValueType[int]):
    """Whole numbers from `low` to `high`; the unit is only displayed."""

    low: int
    high: int
    unit: str = ""

    @property
    def title(self) -> str:
        """`int` or `long`, with the unit."""
        size = "int" if self.high <= INT_MAX else "long"
        return f"{size}, {self.unit}" if self.unit else size

    @property
    def allowed(self) -> str:
        """The range."""
        top = {INT_MAX: "2^31-1", LONG_MAX: "2^63-1"}.get(self.high, str(self.high))
        unit = f" of {self.unit}" if self.unit else ""
        return f"a whole number{unit} from {self.low} to {top}"

    def parse(self, text: str) -> int | None:
        """Parse decimal digits with an optional sign."""
        if _WHOLE.fullmatch(text) is None:
            return None
        value = int(text)
        return value if self.low <= value <= self.high else None


@dataclass(frozen=True, slots=True)
class OneNumberOf(ValueType[int]):
    """One of a few whole numbers."""

    values: tuple[int, ...]
    unit: str

    @property
    def title(self) -> str:
        """`int` with the unit."""
        return f"int, {self.unit}"

    @property
    def allowed(self) -> str:
        """The numbers."""
        return _either(tuple(map(str, self.values)))

    def parse(self, text: str) -> int | None:
        """Parse one of the numbers."""
        value = Whole(min(self.values), max(self.values)).parse(text)
        return value if value in self.values else None


@dataclass(frozen=True, slots=True)
class Ratio(ValueType[float]):
    """Numbers above 0 and below 1."""

    @property
    def title(self) -> str:
        """`float`."""
        return "float"

    @property
    def allowed(self) -> str:
        """The range."""
        return "a number above 0 and below 1"

    def parse(self, text: str) -> float | None:
        """Parse a decimal number."""
        if _DECIMAL.fullmatch(text) is None:
            return None
        value = float(text)
        return value if 0.0 < value < 1.0 else None


@dataclass(frozen=True, slots=True)
class Flag(ValueType[bool]):
    """True and false."""

    @property
    def title(self) -> str:
        """`boolean`."""
        return "boolean"

    @property
    def allowed(self) -> str:
        """Both words."""
        return "true or false"

    def parse(self, text: str) -> bool | None:
        """Parse either word, in upper or lower case."""
        return {"true": True, "false": False}.get(text.lower())


@dataclass(frozen=True, slots=True)
class Choice(ValueType[WordT]):
    """One of a few words."""

    words: tuple[WordT, ...]

    @property
    def title(self) -> str:
        """`enum`."""
        return "enum"

    @property
    def allowed(self) -> str:
        """The words."""
        return _either(self.words)

    def parse(self, text: str) -> WordT | None:
        """Parse one of the words in any case and return it as listed."""
        lowered = text.lower()
        return next((word for word in self.words if word.lower() == lowered), None)


@dataclass(frozen=True, slots=True)
class Text(ValueType[str]):
    """Free text that is not empty."""

    what: str

    @property
    def title(self) -> str:
        """`string`."""
        return "string"

    @property
    def allowed(self) -> str:
        """A description of the text."""
        return self.what

    def parse(self, text: str) -> str | None:
        """Return the text unless it is empty."""
        return text if text != "" else None


@dataclass(frozen=True, slots=True)
class AnyText(Text):
    """Free text that may be empty."""

    def parse(self, text: str) -> str | None:
        """Return the text."""
        return text


@dataclass(frozen=True, slots=True)
class Names(ValueType[tuple[str, ...]]):
    """Names separated by commas."""

    what: str

    @property
    def title(self) -> str:
        """`list`."""
        return "list"

    @property
    def allowed(self) -> str:
        """A description of the names."""
        return self.what

    def parse(self, text: str) -> tuple[str, ...] | None:
        """Parse the names, ignoring spaces around them."""
        return tuple(piece.strip() for piece in text.split(",") if piece.strip() != "")


@dataclass(frozen=True, slots=True)
class Mode(ValueType[MetricsMode]):
    """Metrics modes."""

    @property
    def title(self) -> str:
        """`metrics mode`."""
        return "metrics mode"

    @property
    def allowed(self) -> str:
        """The modes."""
        return METRICS_MODES_TEXT

    def parse(self, text: str) -> MetricsMode | None:
        """Parse a mode, in upper or lower case."""
        try:
            return parse_metrics_mode(text)
        except InvalidRequestError:
            return None


@dataclass(frozen=True, slots=True)
class Property(Generic[T_co]):
    """A property of a table or view.

    If the key is absent, the value is that of `falls_back_to`, if any, or `default`. `default_note` describes a
    default that is not a fixed value.
    """

    name: str
    value_type: ValueType[T_co]
    default: T_co
    meaning: str
    section: str
    falls_back_to: Property[T_co] | None = None
    default_note: str | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ColumnProperty(Generic[T_co]):
    """A family of properties, one for each column: the prefix followed by the column's full name."""

    prefix: str
    value_type: ValueType[T_co]
    default: T_co
    meaning: str
    section: str
    default_note: str | None = None

    @property
    def name(self) -> str:
        """The name with a star for the column."""
        return f"{self.prefix}*"

    def key(self, column: str) -> str:
        """Return the key for a column."""
        return f"{self.prefix}{column}"


def read_property(properties: Mapping[str, str], wanted: Property[T]) -> T:
    """Return the value of a property or its default, refusing invalid values."""
    current: Property[T] | None = wanted
    while current is not None:
        text = properties.get(current.name)
        if text is not None:
            return parse_value(current.name, text, current.value_type)
        current = current.falls_back_to
    return wanted.default


def read_column_property(properties: Mapping[str, str], wanted: ColumnProperty[T], column: str) -> T:
    """Return the value of a column's property or its default, refusing invalid values."""
    text = properties.get(wanted.key(column))
    return wanted.default if text is None else parse_value(wanted.key(column), text, wanted.value_type)


def read_column_properties(properties: Mapping[str, str], wanted: ColumnProperty[T]) -> dict[str, T]:
    """Return the property values that are set for columns, by column name; the columns need not exist."""
    entries = ((key, text) for key, text in properties.items() if key.startswith(wanted.prefix))
    return {key[len(wanted.prefix) :]: parse_value(key, text, wanted.value_type) for key, text in entries}


def parse_value(key: str, text: str, value_type: ValueType[T]) -> T:
    """Parse the text of a property, refusing an invalid one with the key and the allowed values."""
    value = value_type.parse(text) if isinstance(text, str) else None
    if value is None:
        excerpt = repr(text)
        if len(excerpt) > _SHOWN_CHARS:
            excerpt = excerpt[: _SHOWN_CHARS - 3] + "..."
        raise InvalidPropertyError(
            f"Cannot use the property {key}: {excerpt} is not allowed", hint=f"Set it to {value_type.allowed}."
        )
    return value


def _either(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
