"""The Iceberg types, as values. Specification: "Schemas and Data Types".

Types compare by structure (for structs including field ids, names, docs and defaults). `str(type)` is the
specification's text form, which `parse_type` parses; the JSON form is in `codec/schema_json.py`.

The internal form of values, used everywhere in frazil (conversions are in `spec/values.py`):

    boolean bool            date            int, days from 1970-01-01
    int, long int           time            int, microseconds from midnight
    float, double float     timestamp(tz)   int, microseconds from 1970-01-01 (UTC)
    decimal Decimal         timestamp(tz)_ns int, nanoseconds from 1970-01-01 (UTC)
    string str              uuid            uuid.UUID
    fixed, binary bytes     geometry, geography  bytes, WKB
    struct dict by name     list list       map dict; unknown None
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from frazil.errors import InvalidRequestError
from frazil.spec.frozen_map import NO_EXTRA, FrozenMap, freeze_tuples

MAX_FIELD_ID = 2147483447
"""The largest id of a table's own field; larger ids are for metadata columns ("Reserved Field IDs")."""

MAX_DECIMAL_PRECISION = 38
DEFAULT_CRS = "OGC:CRS84"
EdgeAlgorithm: TypeAlias = Literal["spherical", "vincenty", "thomas", "andoyer", "karney"]
EDGE_ALGORITHMS: tuple[EdgeAlgorithm, ...] = ("spherical", "vincenty", "thomas", "andoyer", "karney")
DEFAULT_EDGE_ALGORITHM: EdgeAlgorithm = "spherical"


class Type:
    """An Iceberg type."""

    __slots__ = ()

    min_format_version: ClassVar[int] = 1
    """The first format version that allows the type."""

    @property
    def is_primitive(self) -> bool:
        """Whether this is a primitive type."""
        return isinstance(self, PrimitiveType)

    @property
    def is_nested(self) -> bool:
        """Whether this is a struct, list or map."""
        return isinstance(self, NestedType)


class PrimitiveType(Type):
    """A type whose values have no parts."""

    __slots__ = ()
    name: ClassVar[str]

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@dataclass(frozen=True, slots=True, repr=False)
class BooleanType(PrimitiveType):
    """True or false."""

    name: ClassVar[str] = "boolean"


@dataclass(frozen=True, slots=True, repr=False)
class IntType(PrimitiveType):
    """32-bit signed integers."""

    name: ClassVar[str] = "int"
    MIN: ClassVar[int] = -(2**31)
    MAX: ClassVar[int] = 2**31 - 1


@dataclass(frozen=True, slots=True, repr=False)
class LongType(PrimitiveType):
    """64-bit signed integers."""

    name: ClassVar[str] = "long"
    MIN: ClassVar[int] = -(2**63)
    MAX: ClassVar[int] = 2**63 - 1


@dataclass(frozen=True, slots=True, repr=False)
class FloatType(PrimitiveType):
    """32-bit IEEE 754 floating point."""

    name: ClassVar[str] = "float"


@dataclass(frozen=True, slots=True, repr=False)
class DoubleType(PrimitiveType):
    """64-bit IEEE 754 floating point."""

    name: ClassVar[str] = "double"


@dataclass(frozen=True, slots=True, repr=False)
class DecimalType(PrimitiveType):
    """Fixed-point decimals of a precision (at most 38) and a scale.

    Metadata from other writers may have a scale above the precision, so that no value exists; frazil writes none.
    """

    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MAX_DECIMAL_PRECISION:
            raise InvalidRequestError(
                f"Cannot make decimal({self.precision},{self.scale}): the precision must be from 1 to "
                f"{MAX_DECIMAL_PRECISION}"
            )
        if self.scale < 0:
            raise InvalidRequestError(f"Cannot make decimal({self.precision},{self.scale}): the scale is negative")

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"

    def __repr__(self) -> str:
        return f"DecimalType({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True, repr=False)
class DateType(PrimitiveType):
    """Calendar dates."""

    name: ClassVar[str] = "date"


@dataclass(frozen=True, slots=True, repr=False)
class TimeType(PrimitiveType):
    """Times of day in microseconds."""

    name: ClassVar[str] = "time"


@dataclass(frozen=True, slots=True, repr=False)
class TimestampType(PrimitiveType):
    """Microsecond timestamps without a zone."""

    name: ClassVar[str] = "timestamp"


@dataclass(frozen=True, slots=True, repr=False)
class TimestamptzType(PrimitiveType):
    """Microsecond timestamps with a zone, stored as UTC."""

    name: ClassVar[str] = "timestamptz"


@dataclass(frozen=True, slots=True, repr=False)
class TimestampNsType(PrimitiveType):
    """Nanosecond timestamps without a zone."""

    name: ClassVar[str] = "timestamp_ns"
    min_format_version: ClassVar[int] = 3


@dataclass(frozen=True, slots=True, repr=False)
class TimestamptzNsType(PrimitiveType):
    """Nanosecond timestamps with a zone, stored as UTC."""

    name: ClassVar[str] = "timestamptz_ns"
    min_format_version: ClassVar[int] = 3


@dataclass(frozen=True, slots=True, repr=False)
class StringType(PrimitiveType):
    """UTF-8 text."""

    name: ClassVar[str] = "string"


@dataclass(frozen=True, slots=True, repr=False)
class UuidType(PrimitiveType):
    """Universally unique identifiers."""

    name: ClassVar[str] = "uuid"


@dataclass(frozen=True, slots=True, repr=False)
class FixedType(PrimitiveType):
    """Byte arrays of a fixed length."""

    length: int

    def __post_init__(self) -> None:
        if self.length < 0:
            raise InvalidRequestError(f"Cannot make fixed[{self.length}]: the length must not be negative")

    def __str__(self) -> str:
        return f"fixed[{self.length}]"

    def __repr__(self) -> str:
        return f"FixedType({self.length})"


@dataclass(frozen=True, slots=True, repr=False)
class BinaryType(PrimitiveType):
    """Byte arrays of any length."""

    name: ClassVar[str] = "binary"


@dataclass(frozen=True, slots=True, repr=False)
class UnknownType(PrimitiveType):
    """The type of a column whose type is not determined yet: optional, always null, not stored."""

    name: ClassVar[str] = "unknown"
    min_format_version: ClassVar[int] = 3


@dataclass(frozen=True, slots=True, repr=False)
class GeometryType(PrimitiveType):
    """Geospatial features with planar edges, in a coordinate reference system."""

    crs: str = DEFAULT_CRS
    min_format_version: ClassVar[int] = 3

    def __post_init__(self) -> None:
        _check_crs("geometry", self.crs)

    def __str__(self) -> str:
        return "geometry" if self.crs == DEFAULT_CRS else f"geometry({self.crs})"

    def __repr__(self) -> str:
        return f"GeometryType({self.crs!r})"


@dataclass(frozen=True, slots=True, repr=False)
class GeographyType(PrimitiveType):
    """Geospatial features on a globe, with an algorithm for their edges."""

    crs: str = DEFAULT_CRS
    algorithm: EdgeAlgorithm = DEFAULT_EDGE_ALGORITHM
    min_format_version: ClassVar[int] = 3

    def __post_init__(self) -> None:
        _check_crs("geography", self.crs)
        if self.algorithm not in EDGE_ALGORITHMS:
            raise InvalidRequestError(
                f"Cannot make geography({self.crs}, {self.algorithm}): unknown edge algorithm",
                hint=f"Use one of {', '.join(EDGE_ALGORITHMS)}.",
            )

    def __str__(self) -> str:
        if self.algorithm != DEFAULT_EDGE_ALGORITHM:
            return f"geography({self.crs}, {self.algorithm})"
        return "geography" if self.crs == DEFAULT_CRS else f"geography({self.crs})"

    def __repr__(self) -> str:
        return f"GeographyType({self.crs!r}, {self.algorithm!r})"


def _check_crs(type_name: str, crs: str) -> None:
    if not crs.strip() or crs != crs.strip() or any(char in crs for char in "(),"):
        raise InvalidRequestError(f"Cannot make {type_name}({crs!r}): a CRS is a name such as OGC:CRS84 or EPSG:4326")


@dataclass(frozen=True, slots=True, repr=False)
class VariantType(Type):
    """Semi-structured values; neither primitive nor nested."""

    min_format_version: ClassVar[int] = 3

    def __str__(self) -> str:
        return "variant"

    def __repr__(self) -> str:
        return "VariantType()"


class NestedType(Type):
    """A type with parts: struct, list or map.

    `extra` holds unrecognised JSON fields, which are written back unchanged.
    """

    __slots__ = ()

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The parts as fields: a list has `element`, a map `key` and `value`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class NestedField:
    """A named, numbered part of a struct, list or map.

    `extra` holds unrecognised JSON fields, which are written back unchanged.
    """

    field_id: int
    name: str
    field_type: Type
    required: bool = False
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    @property
    def optional(self) -> bool:
        """Whether values may be null."""
        return not self.required

    def __str__(self) -> str:
        required = "required" if self.required else "optional"
        doc = f" ({self.doc})" if self.doc is not None else ""
        return f"{self.field_id}: {self.name}: {required} {self.field_type}{doc}"

    def __hash__(self) -> int:
        return hash((self.field_id, self.name, self.field_type, self.required))


@dataclass(frozen=True, slots=True)
class StructType(NestedType):
    """A tuple of named fields."""

    struct_fields: tuple[NestedField, ...] = ()
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_tuples(self, "struct_fields")

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The struct's fields in order."""
        return self.struct_fields

    def find_field(self, name_or_id: str | int, *, case_sensitive: bool = True) -> NestedField | None:
        """Return a direct field of this struct by name or id, or None."""
        if isinstance(name_or_id, int):
            return next(
                (struct_field for struct_field in self.struct_fields if struct_field.field_id == name_or_id), None
            )
        if case_sensitive:
            return next((struct_field for struct_field in self.struct_fields if struct_field.name == name_or_id), None)
        lowered = name_or_id.lower()
        return next((struct_field for struct_field in self.struct_fields if struct_field.name.lower() == lowered), None)

    def __str__(self) -> str:
        return f"struct<{', '.join(map(str, self.struct_fields))}>"

    def __iter__(self) -> Iterator[NestedField]:
        return iter(self.struct_fields)

    def __len__(self) -> int:
        return len(self.struct_fields)


@dataclass(frozen=True, slots=True)
class ListType(NestedType):
    """A sequence of one element type."""

    element_id: int
    element_type: Type
    element_required: bool = False
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    @property
    def element_field(self) -> NestedField:
        """The element as a field."""
        return NestedField(self.element_id, "element", self.element_type, self.element_required)

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The element field."""
        return (self.element_field,)

    def __str__(self) -> str:
        return f"list<{self.element_type}>"


@dataclass(frozen=True, slots=True)
class MapType(NestedType):
    """Pairs of a required key and a value."""

    key_id: int
    key_type: Type
    value_id: int
    value_type: Type
    value_required: bool = False
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    @property
    def key_field(self) -> NestedField:
        """The key as a field."""
        return NestedField(self.key_id, "key", self.key_type, required=True)

    @property
    def value_field(self) -> NestedField:
        """The value as a field."""
        return NestedField(self.value_id, "value", self.value_type, self.value_required)

    @property
    def fields(self) -> tuple[NestedField, ...]:
        """The key and value fields."""
        return (self.key_field, self.value_field)

    def __str__(self) -> str:
        return f"map<{self.key_type}, {self.value_type}>"


BOOLEAN = BooleanType()
INT = IntType()
LONG = LongType()
FLOAT = FloatType()
DOUBLE = DoubleType()
DATE = DateType()
TIME = TimeType()
TIMESTAMP = TimestampType()
TIMESTAMPTZ = TimestamptzType()
TIMESTAMP_NS = TimestampNsType()
TIMESTAMPTZ_NS = TimestamptzNsType()
STRING = StringType()
UUID = UuidType()
BINARY = BinaryType()
UNKNOWN = UnknownType()
VARIANT = VariantType()

SIMPLE_TYPES: dict[str, Type] = {
    str(simple): simple
    for simple in (
        BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS,
        TIMESTAMPTZ_NS, STRING, UUID, BINARY, UNKNOWN, VARIANT,
    )
}  # fmt: skip
"""The types without parameters, by their name in the specification."""
