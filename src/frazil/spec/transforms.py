"""Partition and sort transforms, one value at a time. Specification: "Partition Transforms".

A transform turns a source value into a partition value or a sort key. `str(transform)` is the text in the
metadata; `parse_transform` parses it. Unrecognised text becomes an `UnknownTransform`: such a field is kept,
ignored when files are filtered, and refused when data is written.

Values have the internal form of `spec/types.py`: days, micros and nanos as integers. Division is floor division
everywhere, so moments before 1970 belong to the unit that contains them. Iceberg Java is off by one unit for one value
in the first second of each unit before 1970 (…:00.999999); frazil follows the specification. A result that does not
fit its type (`hour` beyond 32 bits) is an error, except for `truncate` of the smallest integers, which wraps around as
in all other writers.
`expr/columns/transforms.py` does the same over Arrow columns.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from frazil.errors import InvalidRequestError, SchemaMismatchError, UnsupportedError
from frazil.spec.decimals import decimal_of, fits_precision
from frazil.spec.human_text import NULL_TEXT, human_day, human_hour, human_month, human_value, human_year
from frazil.spec.iso8601 import MICROS_PER_DAY, NANOS_PER_DAY, civil_from_days
from frazil.spec.murmur3 import hash_value, unscaled_decimal
from frazil.spec.types import (
    DATE,
    INT,
    STRING,
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IntType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UuidType,
)

_TIMESTAMP_TYPES = (TimestampType, TimestamptzType, TimestampNsType, TimestamptzNsType)
_NANOSECOND_TYPES = (TimestampNsType, TimestamptzNsType)
_BUCKET_TYPES = (
    IntType,
    LongType,
    DecimalType,
    DateType,
    TimeType,
    *_TIMESTAMP_TYPES,
    StringType,
    UuidType,
    FixedType,
    BinaryType,
)
_TRUNCATE_TYPES = (IntType, LongType, DecimalType, StringType, BinaryType)
_WITH_PARAMETER = re.compile(r"(\w+)\[([0-9]+)\]")


class Transform(ABC):
    """A function from source values to partition values or sort keys."""

    __slots__ = ()
    name: ClassVar[str]
    preserves_order: ClassVar[bool] = False
    """Whether smaller source values never have larger results."""
    is_identity: ClassVar[bool] = False
    is_void: ClassVar[bool] = False
    is_time: ClassVar[bool] = False
    is_unknown: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def can_transform(self, source_type: Type) -> bool:
        """Return whether the transform accepts values of a type."""

    @abstractmethod
    def result_type(self, source_type: Type) -> Type:
        """Return the type of the transform's results for a source type."""

    def apply(self, value: Any, source_type: Type) -> Any:
        """Return the transformed value; null stays null."""
        if not self.can_transform(source_type):
            raise InvalidRequestError(f"Cannot apply {self} to a {source_type} value: it does not accept that type")
        return None if value is None else self._apply(value, source_type)

    @abstractmethod
    def _apply(self, value: Any, source_type: Type) -> Any:
        """Return the transform of a value that is not null, of a type it accepts."""

    def human_text(self, value: Any, result_type: Type) -> str:
        """Return a transformed value as human-readable text, `null` for null."""
        return human_value(value, result_type)

    def satisfies_order_of(self, other: Transform, source_type: Type | None = None) -> bool:
        """Return whether rows sorted by this transform are also sorted by the other."""
        return self == other

    @property
    def dedup_name(self) -> str:
        """A name that two fields of one source may not share; all time transforms have the same."""
        return "time" if self.is_time else str(self)


@dataclass(frozen=True, slots=True)
class Identity(Transform):
    """The source value itself."""

    name: ClassVar[str] = "identity"
    preserves_order: ClassVar[bool] = True
    is_identity: ClassVar[bool] = True
    __str__ = Transform.__str__

    def can_transform(self, source_type: Type) -> bool:
        """Return whether the type is primitive and not geospatial."""
        return isinstance(source_type, PrimitiveType) and not isinstance(source_type, GeometryType | GeographyType)

    def result_type(self, source_type: Type) -> Type:
        """Return the source type."""
        return source_type

    def _apply(self, value: Any, source_type: Type) -> Any:
        return value

    def satisfies_order_of(self, other: Transform, source_type: Type | None = None) -> bool:
        """Return whether the other transform preserves the order of values."""
        return other.preserves_order


@dataclass(frozen=True, slots=True)
class Bucket(Transform):
    """The hash of a value, modulo a number of buckets."""

    num_buckets: int
    name: ClassVar[str] = "bucket"

    def __post_init__(self) -> None:
        _check_parameter("bucket", self.num_buckets, "number of buckets")

    def __str__(self) -> str:
        return f"bucket[{self.num_buckets}]"

    def can_transform(self, source_type: Type) -> bool:
        """Return whether values of the type can be bucketed."""
        return isinstance(source_type, _BUCKET_TYPES)

    def result_type(self, source_type: Type) -> Type:
        """Return int."""
        return INT

    def _apply(self, value: Any, source_type: Type) -> int:
        hashed = hash_value(value, source_type)
        assert hashed is not None
        return (hashed & 0x7FFFFFFF) % self.num_buckets


@dataclass(frozen=True, slots=True)
class WrappedRange:
    """Values near the smallest integer, and the large partition value that all of them have."""

    first: int
    last: int
    result: int


@dataclass(frozen=True, slots=True)
class Truncate(Transform):
    """Numbers rounded down to a multiple of the width; text and bytes truncated to it.

    Near the smallest int or long the multiple does not fit and wraps around to a large number, as in all other
    writers; there, the order of values is not preserved.
    """

    width: int
    name: ClassVar[str] = "truncate"
    preserves_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_parameter("truncate", self.width, "width")

    def __str__(self) -> str:
        return f"truncate[{self.width}]"

    def can_transform(self, source_type: Type) -> bool:
        """Return whether values of the type can be truncated."""
        return isinstance(source_type, _TRUNCATE_TYPES)

    def result_type(self, source_type: Type) -> Type:
        """Return the source type."""
        return source_type

    def _apply(self, value: Any, source_type: Type) -> Any:
        if isinstance(source_type, StringType | BinaryType):
            return value[: self.width]
        if isinstance(source_type, DecimalType):
            unscaled = unscaled_decimal(value, source_type)
            truncated = unscaled - unscaled % self.width
            if not fits_precision(truncated, source_type.precision):
                raise SchemaMismatchError(f"Cannot apply {self} to {value}: the result does not fit {source_type}")
            return decimal_of(truncated, source_type.scale)
        result = value - value % self.width
        is_int = isinstance(source_type, IntType)
        if result < (IntType.MIN if is_int else LongType.MIN):
            return result + (2**32 if is_int else 2**64)
        return result

    def wrapped_range(self, source_type: Type) -> WrappedRange | None:
        """Return the values whose truncation as int or long wraps around, or None if there are none."""
        if not isinstance(source_type, IntType | LongType) or source_type.MIN % self.width == 0:
            return None
        first = source_type.MIN
        return WrappedRange(first, first - first % self.width + self.width - 1, self._apply(first, source_type))

    def satisfies_order_of(self, other: Transform, source_type: Type | None = None) -> bool:
        """Return whether each group of the other transform is a union of groups of this one.

        Text that is sorted by more characters is also sorted by fewer. Multiples of 4 and multiples of 8
        nest, multiples of 10 and of 15 do not. Without a source type, only equal widths are certain.
        """
        if self == other or not isinstance(other, Truncate):
            return self == other
        if isinstance(source_type, StringType | BinaryType):
            return other.width <= self.width
        return source_type is not None and other.width % self.width == 0


class _TimeTransform(Transform):
    """Whole units of time from 1970-01-01."""

    __slots__ = ()
    preserves_order: ClassVar[bool] = True
    is_time: ClassVar[bool] = True
    _hours: ClassVar[int]
    """The length of the unit, for comparing units."""

    def can_transform(self, source_type: Type) -> bool:
        """Return whether the type is a date or a timestamp."""
        return isinstance(source_type, (DateType, *_TIMESTAMP_TYPES))

    def result_type(self, source_type: Type) -> Type:
        """Return int."""
        return INT

    def satisfies_order_of(self, other: Transform, source_type: Type | None = None) -> bool:
        """Return whether the other is a time transform of the same or a longer unit."""
        return isinstance(other, _TimeTransform) and self._hours <= other._hours


@dataclass(frozen=True, slots=True)
class Year(_TimeTransform):
    """Years from 1970."""

    name: ClassVar[str] = "year"
    _hours: ClassVar[int] = 8765
    __str__ = Transform.__str__

    def _apply(self, value: Any, source_type: Type) -> int:
        return civil_from_days(_days(value, source_type))[0] - 1970

    def human_text(self, value: Any, result_type: Type) -> str:
        """Return the year: `2017`."""
        return NULL_TEXT if value is None else human_year(value)


@dataclass(frozen=True, slots=True)
class Month(_TimeTransform):
    """Months from 1970-01."""

    name: ClassVar[str] = "month"
    _hours: ClassVar[int] = 730
    __str__ = Transform.__str__

    def _apply(self, value: Any, source_type: Type) -> int:
        year, month, _ = civil_from_days(_days(value, source_type))
        return (year - 1970) * 12 + month - 1

    def human_text(self, value: Any, result_type: Type) -> str:
        """Return the month: `2017-12`."""
        return NULL_TEXT if value is None else human_month(value)


@dataclass(frozen=True, slots=True)
class Day(_TimeTransform):
    """Days from 1970-01-01; the result is a date, although readers accept int too."""

    name: ClassVar[str] = "day"
    _hours: ClassVar[int] = 24
    __str__ = Transform.__str__

    def result_type(self, source_type: Type) -> Type:
        """Return date."""
        return DATE

    def _apply(self, value: Any, source_type: Type) -> int:
        return _days(value, source_type)

    def human_text(self, value: Any, result_type: Type) -> str:
        """Return the day: `2017-12-01`."""
        return NULL_TEXT if value is None else human_day(value)


@dataclass(frozen=True, slots=True)
class Hour(_TimeTransform):
    """Hours from 1970-01-01 00:00."""

    name: ClassVar[str] = "hour"
    _hours: ClassVar[int] = 1
    __str__ = Transform.__str__

    def can_transform(self, source_type: Type) -> bool:
        """Return whether the type is a timestamp."""
        return isinstance(source_type, _TIMESTAMP_TYPES)

    def _apply(self, value: Any, source_type: Type) -> int:
        hours: int = value // (_units_per_day(source_type) // 24)
        if not IntType.MIN <= hours <= IntType.MAX:
            raise SchemaMismatchError(f"Cannot apply hour to {value}: {hours} hours do not fit int")
        return hours

    def human_text(self, value: Any, result_type: Type) -> str:
        """Return the hour: `2017-12-01-10`."""
        return NULL_TEXT if value is None else human_hour(value)


@dataclass(frozen=True, slots=True)
class Void(Transform):
    """Always null; replaces a dropped field in v1 tables."""

    name: ClassVar[str] = "void"
    is_void: ClassVar[bool] = True
    __str__ = Transform.__str__

    def can_transform(self, source_type: Type) -> bool:
        """Return True: every type is accepted."""
        return True

    def result_type(self, source_type: Type) -> Type:
        """Return the source type."""
        return source_type

    def _apply(self, value: Any, source_type: Type) -> None:
        return None

    def human_text(self, value: Any, result_type: Type) -> str:
        """Return `null`."""
        return NULL_TEXT


@dataclass(frozen=True, slots=True)
class UnknownTransform(Transform):
    """An unrecognised transform, kept unchanged."""

    text: str
    name: ClassVar[str] = "unknown"
    is_unknown: ClassVar[bool] = True

    def __str__(self) -> str:
        return self.text

    def can_transform(self, source_type: Type) -> bool:
        """Return True, since the accepted types are unknown."""
        return True

    def result_type(self, source_type: Type) -> Type:
        """Return string, as in Iceberg Java, since the actual type is unknown."""
        return STRING

    def _apply(self, value: Any, source_type: Type) -> Any:
        raise UnsupportedError(
            f"Cannot apply the transform {self.text!r}: it is not supported",
            hint="Tables partitioned by it can be read, not written.",
        )

    def human_text(self, value: Any, result_type: Type) -> str:
        """Return the stored value as text."""
        return NULL_TEXT if value is None else str(value)


IDENTITY = Identity()
YEAR = Year()
MONTH = Month()
DAY = Day()
HOUR = Hour()
VOID = Void()

_SIMPLE: dict[str, Transform] = {transform.name: transform for transform in (IDENTITY, YEAR, MONTH, DAY, HOUR, VOID)}


def parse_transform(text: str) -> Transform:
    """Parse the stored text of a transform, in any case; unrecognised text becomes an `UnknownTransform`."""
    simple = _SIMPLE.get(text.lower())
    if simple is not None:
        return simple
    match = _WITH_PARAMETER.fullmatch(text)
    if match is not None:
        cls = {"bucket": Bucket, "truncate": Truncate}.get(match[1].lower())
        if cls is not None:
            if len(match[2].lstrip("0")) > 10:
                raise InvalidRequestError(f"Cannot make {match[1].lower()}[…]: the parameter does not fit 32 bits")
            return cls(int(match[2]))
    return UnknownTransform(text)


def promotion_changes_partition(transform: Transform, from_type: Type, to_type: Type) -> bool:
    """Return whether promoting a source column's type would change its partition values.

    Such a promotion is forbidden while a partition field uses the column ("Schema Evolution").
    """
    if from_type == to_type or transform.is_void:
        return False
    if transform.is_unknown or not transform.can_transform(to_type):
        return True
    match from_type, to_type:
        case UnknownType(), _:
            return False
        case DateType(), TimestampType() | TimestampNsType():
            return not transform.is_time
        case IntType(), LongType():
            return False
        case DecimalType(), DecimalType():
            return from_type.scale != to_type.scale
        case _:
            # The remaining case is float to double, which keeps values; only identity accepts both.
            return not (transform.is_identity and str(from_type) == "float" and str(to_type) == "double")


def _check_parameter(name: str, value: int, what: str) -> None:
    if not 0 < value <= IntType.MAX:
        raise InvalidRequestError(f"Cannot make {name}[{value}]: the {what} must be from 1 to {IntType.MAX}")


def _units_per_day(source_type: Type) -> int:
    return NANOS_PER_DAY if isinstance(source_type, _NANOSECOND_TYPES) else MICROS_PER_DAY


def _days(value: int, source_type: Type) -> int:
    if isinstance(source_type, DateType):
        return value
    return value // _units_per_day(source_type)
