"""Columns of a DataFrame as the columns of a table, in their stored form. Specification: "Default values".

The first step of every write on Spark. Columns are found by name, a name that is right in every letter first and then
whatever the case, in any order, inside structs too. What the frame lacks is the write default or null; what the table
lacks is refused, since its values would be lost. Types are assigned by the rules of ANSI SQL, and each value is kept or
refused: a number that does not fit raises while Spark runs, whether or not the session is in ANSI mode. Two conversions
round, as floating-point numbers do: double and decimal to float, decimal to double.

Every column that does not fit by its type is named in one error, before anything runs. Required columns that may hold
null are tested while Spark runs.

The result carries field ids where Spark's Parquet writer looks for them, on the last projection before the write: ids
given earlier do not survive a shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from frazil.errors import SchemaMismatchError
from frazil.spark.column_values import literal, quote, some_value
from frazil.spark.types import FIELD_ID, shown_type, store_column, stored_type
from frazil.spec.reserved_columns import ROW_LINEAGE_COLUMNS
from frazil.spec.schema import Schema
from frazil.spec.types import (
    FixedType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimeType,
    Type,
    UnknownType,
    UuidType,
)

Convert = Callable[[Column], Column]

_MAX_SHOWN = 10
_WHOLE_DIGITS: dict[type[st.DataType], int] = {st.ByteType: 3, st.ShortType: 5, st.IntegerType: 10, st.LongType: 19}
_TIMES = (st.DateType, st.TimestampType, st.TimestampNTZType)


def assign_columns(frame: DataFrame, schema: Schema, *, format_version: int) -> DataFrame:
    """Return a frame with the table's columns, stored form, field ids; refuse a frame that does not fit.

    From format version 3 on, row lineage columns that the frame has are kept after the table's own.
    """
    fields = schema.fields
    if format_version >= 3:
        fields += tuple(one for one in ROW_LINEAGE_COLUMNS if one.name in frame.columns and one not in fields)
    plan = _Plan(frame.sparkSession)
    found = plan.match_fields(fields, frame.schema.fields, lambda name: F.col(quote(name)), "")
    if plan.problems:
        raise _mismatch(plan.problems)
    return frame.select(*found)


def assign_value(value: Column, have: st.DataType, part: NestedField, spark: SparkSession) -> Column:
    """Return an expression as a value of one column of the table, in stored form; null is refused if it is required."""
    plan = _Plan(spark)
    made = plan.match_field(part, value, have, part.name, may_be_null=True)
    if plan.problems:
        raise _mismatch(plan.problems)
    return made


def _mismatch(problems: Sequence[str]) -> SchemaMismatchError:
    shown = "; ".join(problems[:_MAX_SHOWN])
    more = f"; and {len(problems) - _MAX_SHOWN} more" if len(problems) > _MAX_SHOWN else ""
    return SchemaMismatchError(f"Cannot write the data: it does not fit the table: {shown}{more}")


class _Plan:
    """One comparison of the table's types and the frame's, with every problem found."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.problems: list[str] = []

    def match_fields(
        self, want: Sequence[NestedField], have: Sequence[st.StructField], read: Callable[[str], Column], prefix: str
    ) -> list[Column]:
        """Return each stored field of a struct with its name and id; `read` gives a field of the frame."""
        places = self._find_places(want, have, prefix)
        made = []
        for part in want:
            path = f"{prefix}{part.name}"
            place = places.get(part.name)
            if place is None:
                if part.required and part.write_default is None:
                    self.problems.append(f"{path}: it is required, and the data lacks it")
                    continue
                column = literal(part.write_default, part.field_type)
            else:
                one = have[place]
                column = self.match_field(part, read(one.name), one.dataType, path, may_be_null=one.nullable)
            if not isinstance(part.field_type, UnknownType):
                made.append(column.alias(part.name, metadata={FIELD_ID: part.field_id}))
        used = set(places.values())
        self.problems += [
            f"{prefix}{one.name}: the table has no such column" for at, one in enumerate(have) if at not in used
        ]
        return made

    def _find_places(self, want: Sequence[NestedField], have: Sequence[st.StructField], prefix: str) -> dict[str, int]:
        names = [one.name for one in have]
        places = {part.name: names.index(part.name) for part in want if part.name in names}
        for at, name in enumerate(names):
            if at in places.values():
                continue
            if name in places:
                self.problems.append(f"{prefix}{name}: the data has two columns of that name")
                places[f"{name}#{at}"] = at
                continue
            alike = [part.name for part in want if part.name.lower() == name.lower()]
            free = [one for one in alike if one not in places]
            if free:
                places[free[0]] = at
            elif alike:
                self.problems.append(f"{prefix}{name}: the data has another column for {alike[0]!r}")
                places[f"{name}#{at}"] = at
        return places

    def match_field(
        self, part: NestedField, column: Column, have: st.DataType, path: str, *, may_be_null: bool
    ) -> Column:
        """Return a column of the frame as a field of the table."""
        kind = part.field_type
        if part.required and may_be_null:
            message = F.lit(f"Cannot write the required column {path!r}: a value is null")
            column = F.when(column.isNull(), F.raise_error(message)).otherwise(column)
        if part.required and isinstance(kind, StructType) and isinstance(have, st.StructType):
            return F.struct(*self.match_fields(kind.fields, have.fields, column.getField, f"{path}."))
        convert = self._match_type(kind, have, path)
        made = column if convert is None else convert(column)
        # Spark takes the result for nullable, and a file would say so: a value that never occurs tells it otherwise.
        return F.coalesce(made, some_value(kind)) if part.required else made

    def _match_type(self, want: Type, have: st.DataType, path: str) -> Convert | None:
        """Return how values of a Spark type become those of a type of the table; None where they are so already."""
        if isinstance(have, st.NullType):
            target = stored_type(want)
            return lambda column: column.cast(target)
        if isinstance(want, StructType) and isinstance(have, st.StructType):
            return self._match_struct(want, have, path)
        if isinstance(want, ListType) and isinstance(have, st.ArrayType):
            return self._match_list(want, have, path)
        if isinstance(want, MapType) and isinstance(have, st.MapType):
            return self._match_map(want, have, path)
        if isinstance(want, StructType | ListType | MapType | UnknownType):
            self._refuse(want, have, path)
            return None
        return self._match_leaf(want, have, path)

    def _match_struct(self, want: StructType, have: st.StructType, path: str) -> Convert:
        # Whatever the forms are, a struct is made anew: its fields get their ids and the table's order by it.
        self.match_fields(want.fields, have.fields, F.col("x").getField, f"{path}.")

        def convert(column: Column) -> Column:
            parts = _Plan(self._spark).match_fields(want.fields, have.fields, column.getField, f"{path}.")
            return F.when(column.isNotNull(), F.struct(*parts))

        return convert

    def _match_list(self, want: ListType, have: st.ArrayType, path: str) -> Convert | None:
        part = want.element_field
        inner = self._match_part(part, have.elementType, f"{path}.element", may_be_null=have.containsNull)
        return None if inner is None else lambda column: F.transform(column, inner)

    def _match_map(self, want: MapType, have: st.MapType, path: str) -> Convert | None:
        key = self._match_part(want.key_field, have.keyType, f"{path}.key", may_be_null=False)
        value = self._match_part(want.value_field, have.valueType, f"{path}.value", may_be_null=have.valueContainsNull)
        if key is None and value is None:
            return None

        def pair(one: Column) -> Column:
            made = [
                one[name] if convert is None else convert(one[name])
                for name, convert in (("key", key), ("value", value))
            ]
            return F.struct(made[0].alias("key"), made[1].alias("value"))

        return lambda column: F.map_from_entries(F.transform(F.map_entries(column), pair))

    def _match_part(self, part: NestedField, have: st.DataType, path: str, *, may_be_null: bool) -> Convert | None:
        convert = self._match_type(part.field_type, have, path)
        if convert is None and not (part.required and may_be_null):
            return None
        return lambda column: _Plan(self._spark).match_field(part, column, have, path, may_be_null=may_be_null)

    def _match_leaf(self, want: Type, have: st.DataType, path: str) -> Convert | None:
        shown = shown_type(want, self._spark)
        if isinstance(want, UuidType) and isinstance(have, st.BinaryType):
            return lambda column: _with_length(column, 16, path, want)
        if isinstance(want, FixedType) and isinstance(have, st.BinaryType):
            return lambda column: _with_length(column, want.length, path, want)
        if isinstance(want, TimeType) and type(have).__name__ == "TimeType":
            return lambda column: store_column(column, want)
        if isinstance(have, st.CharType | st.VarcharType):
            have = st.StringType()
        if type(have) is type(shown) and (have == shown or isinstance(have, st.StringType)):
            is_stored = stored_type(want) == shown
            return None if is_stored and have == shown else lambda column: store_column(column.cast(shown), want)
        cast = find_cast(have, shown, path, want)
        if cast is None:
            self._refuse(want, have, path)
            return None
        return lambda column: store_column(cast(column), want)

    def _refuse(self, want: Type, have: st.DataType, path: str) -> None:
        self.problems.append(f"{path}: {have.simpleString()} cannot be written as {want}")


def find_cast(have: st.DataType, want: st.DataType, path: str, kind: Type) -> Convert | None:
    """Return the conversion that ANSI SQL allows on assignment, checked where it could lose something; else None."""
    if isinstance(want, st.StringType) and isinstance(have, st.AtomicType) and not isinstance(have, st.BinaryType):
        return lambda column: column.cast(want)
    if isinstance(have, st.NumericType) and isinstance(want, st.NumericType):
        is_safe = is_safe_number(have, want)
    elif isinstance(have, _TIMES) and isinstance(want, _TIMES):
        is_safe = not isinstance(want, st.DateType)
    else:
        return None
    if is_safe:
        return lambda column: column.cast(want)
    return lambda column: _checked_cast(column, have, want, path, kind)


def is_safe_number(have: st.NumericType, want: st.NumericType) -> bool:
    """Return whether a conversion between numbers needs no test: it fits every value, or rounds as floats do."""
    if isinstance(want, st.FloatType | st.DoubleType):
        digits = _WHOLE_DIGITS.get(type(have))
        return digits is None or digits < (8 if isinstance(want, st.FloatType) else 16)
    if isinstance(have, st.FloatType | st.DoubleType):
        return False
    whole, scale = _digits(have)
    if isinstance(want, st.DecimalType):
        return want.scale >= scale and want.precision - want.scale >= whole
    return not isinstance(have, st.DecimalType) and _WHOLE_DIGITS[type(want)] >= whole


def _digits(kind: st.NumericType) -> tuple[int, int]:
    if isinstance(kind, st.DecimalType):
        return kind.precision - kind.scale, kind.scale
    return _WHOLE_DIGITS[type(kind)], 0


def _checked_cast(column: Column, have: st.DataType, want: st.DataType, path: str, kind: Any) -> Column:
    made = column.try_cast(want)
    is_lost = column.isNotNull() & (made.isNull() | (made.try_cast(have) != column))
    message = F.concat(
        F.lit(f"Cannot write the column {path!r}: the value "), column.cast("string"), F.lit(f" does not fit {kind}")
    )
    return F.when(is_lost, F.raise_error(message).cast(want)).otherwise(made)


def _with_length(column: Column, length: int, path: str, kind: Type) -> Column:
    message = F.concat(
        F.lit(f"Cannot write the column {path!r}: a value of "),
        F.octet_length(column).cast("string"),
        F.lit(f" bytes does not fit {kind}"),
    )
    is_wrong = F.octet_length(column) != F.lit(length)
    return F.when(is_wrong, F.raise_error(message).cast("binary")).otherwise(column)
