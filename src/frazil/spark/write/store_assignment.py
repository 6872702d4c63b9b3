"""Convert columns of a DataFrame to a table's columns in stored form. Specification: "Default values".

This is the first step of every write on Spark. Columns are matched by name, exact names first and then in any case, in
any order, including fields of structs; `place_columns` first gives a frame the table's names by position. A column that
the frame lacks gets the write default or null. A missing field of a struct is refused, as in Spark, unless the write
evolves the schema or the table accepts any schema: then it gets the default or null too. A column that the table lacks
is refused, since its values would be lost.

Types are assigned by the rules of ANSI SQL, or by those of `spark.sql.storeAssignmentPolicy=strict`; `legacy`, which
silently changes values, is refused. Each value is preserved or refused: a number that does not fit raises while Spark
runs, whether or not the session is in ANSI mode. Two conversions round, as floating-point numbers do: double and
decimal to float, decimal to double.

All columns whose types do not match are reported in one error, before anything runs. Required columns that may contain
null are tested while Spark runs.

A frame that has the table's columns already is used unchanged. `write_files.py` sets the columns' ids on the last
projection before the write, where Spark's Parquet writer reads them: ids set earlier do not survive a shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyspark.sql.types as st
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.spark.own_columns import F
from frazil.spark.read.column_values import literal, some_value
from frazil.spark.types import FIELD_ID, shown_type, store_column, stored_type
from frazil.spec import types as ft
from frazil.spec.reserved_columns import ROW_LINEAGE_COLUMNS
from frazil.spec.schema import Schema
from frazil.sql.quote_names import quote

Convert = Callable[[Column], Column]

POLICY = "spark.sql.storeAssignmentPolicy"
_MAX_SHOWN = 10
_WHOLE_DIGITS: dict[type[st.DataType], int] = {st.ByteType: 3, st.ShortType: 5, st.IntegerType: 10, st.LongType: 19}
_NUMBERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.FloatType, st.DoubleType)
_TIMES = (st.DateType, st.TimestampType, st.TimestampNTZType)


def assign_columns(frame: DataFrame, schema: Schema, *, format_version: int, may_lack_parts: bool = False) -> DataFrame:
    """Return a frame with the table's columns in stored form; refuse a frame that does not match.

    From format version 3 on, row lineage columns of the frame are kept after the table's own.
    """
    fields = schema.fields
    if format_version >= 3:
        fields += tuple(
            lineage_column
            for lineage_column in ROW_LINEAGE_COLUMNS
            if lineage_column.name in frame.columns and lineage_column not in fields
        )
    plan = _Plan(frame.sparkSession, may_lack_parts=may_lack_parts)
    if plan.is_stored(fields, frame.schema.fields):
        return frame
    columns = plan.match_fields(fields, frame.schema.fields, lambda name: F.col(quote(name)), "")
    plan.check()
    return frame.select(*columns)


def assign_value(
    value: Column,
    have: st.DataType,
    field: ft.NestedField,
    spark: SparkSession,
    *,
    path: str,
    may_lack_parts: bool = False,
    kept: Column | None = None,
) -> Column:
    """Return an expression as a value of one field of the table, in stored form; refuse null if it is required.

    `kept` is the present value of the field, in stored form, for struct fields that the new value lacks.
    """
    plan = _Plan(spark, may_lack_parts=may_lack_parts)
    assigned = plan.match_field(field, value, have, path, may_be_null=True, kept=kept)
    plan.check()
    return assigned


def keep_value(stored: Column, field: ft.NestedField, path: str) -> Column:
    """Return a value unchanged in stored form; refuse null if it is required, as in a struct that did not exist."""
    return _never_null(_check_null(stored, path), field.field_type) if field.required else stored


def _check_null(column: Column, path: str) -> Column:
    message = F.lit(f"Cannot write the required column {path!r}: a value is null")
    return F.when(column.isNull(), F.raise_error(message)).otherwise(column)


def _never_null(column: Column, data_type: ft.Type) -> Column:
    # Spark considers the column nullable, and the file would too, unless there is a fallback that never occurs.
    return F.coalesce(column, some_value(data_type))


def place_columns(frame: DataFrame, fields: Sequence[ft.NestedField], *, may_differ: bool = False) -> DataFrame:
    """Return a frame whose columns and nested fields have the table's names, by position.

    Values and types stay unchanged. Structs must have as many fields as the table's, unless the write evolves the
    schema and they `may_differ`.
    """
    problems: list[str] = []
    columns = []
    for index, (field, have) in enumerate(zip(fields, frame.schema.fields, strict=True)):
        spark_type = _place_parts(field.field_type, have.dataType, field.name, problems, may_differ=may_differ)
        column = F.col(f"c{index}")
        columns.append((column if spark_type == have.dataType else column.cast(spark_type)).alias(field.name))
    _refuse_data(problems)
    return frame.toDF(*(f"c{index}" for index in range(len(columns)))).select(*columns)


def check_bound(frame: DataFrame, fields: Sequence[ft.NestedField], view: str) -> None:
    """Refuse columns of a view's query whose types can no longer be widened to the view's own."""
    for nested_field, field in zip(fields, frame.schema.fields, strict=True):
        want = shown_type(nested_field.field_type, frame.sparkSession)
        is_wider = find_cast(field.dataType, want, nested_field.name, nested_field.field_type) is not None
        if field.dataType != want and not (is_wider and is_up_cast(field.dataType, want)):
            raise SchemaMismatchError(
                f"Cannot read view {view}: {nested_field.name!r} is {want.simpleString()} in the view, which is "
                f"bound to its schema, but {field.dataType.simpleString()} in its query",
                hint="Replace the view.",
            )


def _place_parts(want: ft.Type, have: st.DataType, path: str, problems: list[str], *, may_differ: bool) -> st.DataType:
    """Return a type of the frame with the names of the table's at the same positions."""

    def place(field: ft.NestedField, inner: st.DataType) -> st.DataType:
        return _place_parts(field.field_type, inner, f"{path}.{field.name}", problems, may_differ=may_differ)

    if isinstance(want, ft.StructType) and isinstance(have, st.StructType):
        if len(want.fields) != len(have.fields) and not may_differ:
            names = ", ".join(field.name for field in want.fields)
            problems.append(f"{path}: its fields are {names}, but the data has {len(have.fields)} fields")
        placed = [
            st.StructField(nested_field.name, place(nested_field, field.dataType), field.nullable)
            for nested_field, field in zip(want.fields, have.fields, strict=False)
        ]
        return st.StructType([*placed, *have.fields[len(placed) :]])
    if isinstance(want, ft.ListType) and isinstance(have, st.ArrayType):
        return st.ArrayType(place(want.element_field, have.elementType), have.containsNull)
    if isinstance(want, ft.MapType) and isinstance(have, st.MapType):
        key, value = place(want.key_field, have.keyType), place(want.value_field, have.valueType)
        return st.MapType(key, value, have.valueContainsNull)
    return have


def _refuse_data(problems: Sequence[str]) -> None:
    """Refuse data with problems."""
    if not problems:
        return
    text = "; ".join(problems[:_MAX_SHOWN])
    more = f"; and {len(problems) - _MAX_SHOWN} more" if len(problems) > _MAX_SHOWN else ""
    raise SchemaMismatchError(f"Cannot write the data: it does not match the table: {text}{more}")


def _policy(spark: SparkSession) -> str:
    policy = str(spark.conf.get(POLICY, "ansi")).lower()
    if policy == "legacy":
        raise InvalidRequestError(
            f"Cannot write the data: {POLICY} is legacy, which silently changes values that do not fit",
            hint="Set it to ansi or strict.",
        )
    return policy


class _Plan:
    """One comparison of the table's types with the frame's, with all mismatches."""

    def __init__(self, spark: SparkSession, *, may_lack_parts: bool, policy: str | None = None) -> None:
        self._spark = spark
        self._may_lack_parts = may_lack_parts
        self._policy = _policy(spark) if policy is None else policy
        self._problems: list[str] = []

    def check(self) -> None:
        """Refuse data with mismatches."""
        _refuse_data(self._problems)

    def _copy(self) -> _Plan:
        """Return a plan with the same settings, for values whose mismatches are already known."""
        return _Plan(self._spark, may_lack_parts=self._may_lack_parts, policy=self._policy)

    def is_stored(self, want: Sequence[ft.NestedField], have: Sequence[st.StructField]) -> bool:
        """Return whether columns equal the table's: its order and types, no lists, no maps, none required."""
        return [field.name for field in want] == [stored.name for stored in have] and all(
            not field.required and self._is_stored_type(field.field_type, stored.dataType)
            for field, stored in zip(want, have, strict=True)
        )

    def _is_stored_type(self, want: ft.Type, have: st.DataType) -> bool:
        if isinstance(want, ft.StructType):
            return isinstance(have, st.StructType) and self.is_stored(want.fields, have.fields)
        return (
            not isinstance(want, ft.ListType | ft.MapType | ft.UnknownType)
            and self._copy()._match_leaf(want, have, "") is None
            and have == stored_type(want)
        )

    def match_fields(
        self,
        want: Sequence[ft.NestedField],
        have: Sequence[st.StructField],
        read: Callable[[str], Column],
        prefix: str,
        kept: Column | None = None,
    ) -> list[Column]:
        """Return each stored field of a struct with its name and id; `read` returns a field of the frame."""
        positions = self._find_positions(want, have, prefix)
        matched = []
        for field in want:
            path = f"{prefix}{field.name}"
            index = positions.get(field.name)
            old = None if kept is None or isinstance(field.field_type, ft.UnknownType) else kept.getField(field.name)
            if index is None and old is not None:
                column = keep_value(old, field, path)
            elif index is None:
                if field.required and field.write_default is None:
                    self._problems.append(f"{path}: it is required, but missing in the data")
                    continue
                if prefix and not self._may_lack_parts and not isinstance(field.field_type, ft.UnknownType):
                    self._problems.append(
                        f"{path}: it is missing in the data, and only complete structs can be written"
                    )
                    continue
                column = literal(field.write_default, field.field_type)
            else:
                source = have[index]
                column = self.match_field(
                    field, read(source.name), source.dataType, path, may_be_null=source.nullable, kept=old
                )
            if not isinstance(field.field_type, ft.UnknownType):
                matched.append(column.alias(field.name, metadata={FIELD_ID: field.field_id}))
        used = set(positions.values())
        self._problems += [
            f"{prefix}{column.name}: the table has no such column"
            for index, column in enumerate(have)
            if index not in used
        ]
        return matched

    def _find_positions(
        self, want: Sequence[ft.NestedField], have: Sequence[st.StructField], prefix: str
    ) -> dict[str, int]:
        names = [column.name for column in have]
        positions = {field.name: names.index(field.name) for field in want if field.name in names}
        for index, name in enumerate(names):
            if index in positions.values():
                continue
            if name in positions:
                self._problems.append(f"{prefix}{name}: the data has two columns of that name")
                positions[f"{name}#{index}"] = index
                continue
            alike = [field.name for field in want if field.name.lower() == name.lower()]
            free = [column for column in alike if column not in positions]
            if free:
                positions[free[0]] = index
            elif alike:
                self._problems.append(f"{prefix}{name}: the data has another column for {alike[0]!r}")
                positions[f"{name}#{index}"] = index
        return positions

    def match_field(
        self,
        field: ft.NestedField,
        column: Column,
        have: st.DataType,
        path: str,
        *,
        may_be_null: bool,
        kept: Column | None = None,
    ) -> Column:
        """Return a column of the frame as a field of the table."""
        data_type = field.field_type
        if (
            kept is not None
            and isinstance(data_type, ft.StructType)
            and isinstance(have, st.StructType)
            and _lacks_parts(data_type, have)
        ):
            matched = F.struct(*self.match_fields(data_type.fields, have.fields, column.getField, f"{path}.", kept))
            # As in Spark: a struct with fields that the data lacks is null if it is null on both sides.
            return matched if field.required else F.when(column.isNotNull() | kept.isNotNull(), matched)
        if field.required and may_be_null:
            column = _check_null(column, path)
        if field.required and isinstance(data_type, ft.StructType) and isinstance(have, st.StructType):
            return F.struct(*self.match_fields(data_type.fields, have.fields, column.getField, f"{path}."))
        convert = self._match_type(data_type, have, path)
        matched = column if convert is None else convert(column)
        return _never_null(matched, data_type) if field.required else matched

    def _match_type(self, want: ft.Type, have: st.DataType, path: str) -> Convert | None:
        """Return the conversion from a Spark type to a type of the table, or None if none is needed."""
        if isinstance(have, st.NullType) and self._policy != "strict":
            target = stored_type(want)
            return lambda column: column.cast(target)
        if isinstance(want, ft.StructType) and isinstance(have, st.StructType):
            return self._match_struct(want, have, path)
        if isinstance(want, ft.ListType) and isinstance(have, st.ArrayType):
            return self._match_list(want, have, path)
        if isinstance(want, ft.MapType) and isinstance(have, st.MapType):
            return self._match_map(want, have, path)
        if isinstance(want, ft.StructType | ft.ListType | ft.MapType | ft.UnknownType):
            self._refuse(want, have, path)
            return None
        return self._match_leaf(want, have, path)

    def _match_struct(self, want: ft.StructType, have: st.StructType, path: str) -> Convert:
        # A struct is always rebuilt, which gives its fields their ids and the table's order.
        self.match_fields(want.fields, have.fields, F.col("x").getField, f"{path}.")

        def convert(column: Column) -> Column:
            parts = self._copy().match_fields(want.fields, have.fields, column.getField, f"{path}.")
            return F.when(column.isNotNull(), F.struct(*parts))

        return convert

    def _match_list(self, want: ft.ListType, have: st.ArrayType, path: str) -> Convert | None:
        element_field = want.element_field
        inner = self._match_part(element_field, have.elementType, f"{path}.element", may_be_null=have.containsNull)
        return None if inner is None else lambda column: F.transform(column, inner)

    def _match_map(self, want: ft.MapType, have: st.MapType, path: str) -> Convert | None:
        key = self._match_part(want.key_field, have.keyType, f"{path}.key", may_be_null=False)
        value = self._match_part(want.value_field, have.valueType, f"{path}.value", may_be_null=have.valueContainsNull)
        if key is None and value is None:
            return None

        def pair(column: Column) -> Column:
            pair_columns = [
                column[name] if convert is None else convert(column[name])
                for name, convert in (("key", key), ("value", value))
            ]
            return F.struct(pair_columns[0].alias("key"), pair_columns[1].alias("value"))

        return lambda column: F.map_from_entries(F.transform(F.map_entries(column), pair))

    def _match_part(self, field: ft.NestedField, have: st.DataType, path: str, *, may_be_null: bool) -> Convert | None:
        convert = self._match_type(field.field_type, have, path)
        if convert is None and not (field.required and may_be_null):
            return None
        return lambda column: self._copy().match_field(field, column, have, path, may_be_null=may_be_null)

    def _match_leaf(self, want: ft.Type, have: st.DataType, path: str) -> Convert | None:
        target = shown_type(want, self._spark)
        if isinstance(want, ft.UuidType) and isinstance(have, st.BinaryType):
            return lambda column: _with_length(column, 16, path, want)
        if isinstance(want, ft.FixedType) and isinstance(have, st.BinaryType):
            return lambda column: _with_length(column, want.length, path, want)
        if isinstance(want, ft.TimeType) and type(have).__name__ == "TimeType":
            return lambda column: store_column(column, want)
        if isinstance(have, st.CharType | st.VarcharType):
            have = st.StringType()
        if type(have) is type(target) and (have == target or isinstance(have, st.StringType)):
            is_stored = stored_type(want) == target
            return None if is_stored and have == target else lambda column: store_column(column.cast(target), want)
        cast = find_cast(have, target, path, want)
        if cast is None or (self._policy == "strict" and not is_up_cast(have, target)):
            self._refuse(want, have, path)
            return None
        return lambda column: store_column(cast(column), want)

    def _refuse(self, want: ft.Type, have: st.DataType, path: str) -> None:
        self._problems.append(f"{path}: {have.simpleString()} cannot be written as {want}")


def _lacks_parts(want: ft.Type, have: st.DataType) -> bool:
    """Return whether a struct of the frame lacks fields of the table's, at any depth of structs."""
    if not isinstance(want, ft.StructType) or not isinstance(have, st.StructType):
        return False
    source_types = {field.name.lower(): field.dataType for field in have.fields}
    return any(
        field.name.lower() not in source_types or _lacks_parts(field.field_type, source_types[field.name.lower()])
        for field in want.fields
        if not isinstance(field.field_type, ft.UnknownType)
    )


def find_cast(have: st.DataType, want: st.DataType, path: str, data_type: ft.Type) -> Convert | None:
    """Return the conversion that ANSI SQL allows on assignment, checked if it could lose something, or None."""
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
    return lambda column: _checked_cast(column, have, want, path, data_type)


def is_safe_number(have: st.NumericType, want: st.NumericType) -> bool:
    """Return whether a conversion between numbers needs no check: every value fits, or rounds as floats do."""
    if isinstance(want, st.FloatType | st.DoubleType):
        digits = _WHOLE_DIGITS.get(type(have))
        return digits is None or digits < (8 if isinstance(want, st.FloatType) else 16)
    if isinstance(have, st.FloatType | st.DoubleType):
        return False
    whole, scale = _digits(have)
    if isinstance(want, st.DecimalType):
        return want.scale >= scale and want.precision - want.scale >= whole
    return not isinstance(have, st.DecimalType) and _WHOLE_DIGITS[type(want)] >= whole


def is_up_cast(have: st.DataType, want: st.DataType) -> bool:
    """Return whether the strict policy also allows a conversion that ANSI SQL allows: it widens."""
    if isinstance(have, _NUMBERS) and isinstance(want, _NUMBERS):
        return _NUMBERS.index(type(have)) < _NUMBERS.index(type(want))
    if isinstance(have, st.NumericType) and isinstance(want, st.NumericType):
        is_exact = not isinstance(have, st.FractionalType) or isinstance(have, st.DecimalType)
        return is_exact and not isinstance(want, st.FloatType | st.DoubleType) and is_safe_number(have, want)
    return not isinstance(want, st.DateType)


def _digits(numeric_type: st.NumericType) -> tuple[int, int]:
    if isinstance(numeric_type, st.DecimalType):
        return numeric_type.precision - numeric_type.scale, numeric_type.scale
    return _WHOLE_DIGITS[type(numeric_type)], 0


def _checked_cast(column: Column, have: st.DataType, want: st.DataType, path: str, data_type: Any) -> Column:
    converted = column.try_cast(want)
    is_lost = column.isNotNull() & (converted.isNull() | (converted.try_cast(have) != column))
    message = F.concat(
        F.lit(f"Cannot write the column {path!r}: the value "),
        column.cast("string"),
        F.lit(f" does not fit {data_type}"),
    )
    return F.when(is_lost, F.raise_error(message).cast(want)).otherwise(converted)


def _with_length(column: Column, length: int, path: str, data_type: ft.Type) -> Column:
    message = F.concat(
        F.lit(f"Cannot write the column {path!r}: a value of "),
        F.octet_length(column).cast("string"),
        F.lit(f" bytes does not fit {data_type}"),
    )
    is_wrong = F.octet_length(column) != F.lit(length)
    return F.when(is_wrong, F.raise_error(message).cast("binary")).otherwise(column)
