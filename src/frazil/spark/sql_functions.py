"""A lake's functions in queries: `lake.system.bucket(16, id)`, `truncate`, `years`, `months`, `days`, `hours`.

What a transform does depends on its argument's type, which an unresolved plan does not have. So the query is analysed
once with each call marked, to learn the types, and then again with the transform's own expression in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import pyspark.sql.types as st
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from frazil.errors import InvalidRequestError, NotFoundError
from frazil.spark.partition_columns import transform_value
from frazil.spark.sql_names import ParsedQuery, expression_of, scala_list
from frazil.spark.types import from_spark_type, store_column, stored_type
from frazil.spec.transforms import DAY, HOUR, MONTH, YEAR, Bucket, Transform, Truncate
from frazil.spec.types import Type

ICEBERG_VERSION = "iceberg_version"
_UNARY: dict[str, Transform] = {
    "years": YEAR,
    "year": YEAR,
    "months": MONTH,
    "month": MONTH,
    "days": DAY,
    "day": DAY,
    "hours": HOUR,
    "hour": HOUR,
}
_WITH_NUMBER: dict[str, type[Bucket] | type[Truncate]] = {"bucket": Bucket, "truncate": Truncate}
_ANY_NUMBER: dict[str, Transform] = {"bucket": Bucket(1), "truncate": Truncate(1)}
_NUMBER_TYPES = frozenset({"tinyint", "smallint", "int"})
_MARK = "__frazil_argument_"


def known_functions() -> list[str]:
    """Return the names of a lake's functions."""
    return sorted([*_UNARY, *_WITH_NUMBER, ICEBERG_VERSION])


def describe_function(name: str) -> str:
    """Return what a function does, for DESCRIBE FUNCTION."""
    if name == ICEBERG_VERSION:
        return "iceberg_version() - the library that reads and writes the lake's tables, and its version"
    usage = f"{name}(column)" if name in _UNARY else f"{name}(number, column)"
    return f"{usage} - the partition value that this transform gives"


def function_type(name: str, types: Sequence[st.DataType]) -> st.DataType:
    """Return the type of a call of a function; refuse types that it does not take."""
    if name == ICEBERG_VERSION:
        _check_count(name, types, 0)
        return st.StringType()
    transform, kind = _transform(name, types)
    return st.DateType() if transform == DAY else stored_type(transform.result_type(kind))


def function_expression(
    spark: SparkSession, name: str, types: Sequence[st.DataType], arguments: Sequence[Any], version: str
) -> Any:
    """Return Spark's own expression for a call of a function, whose arguments are expressions of Catalyst's."""
    made = function_type(name, types)
    if name == ICEBERG_VERSION:
        return expression_of(spark, F.lit(version))
    transform, kind = _transform(name, types)
    if name in _WITH_NUMBER:
        if not arguments[0].foldable():
            raise InvalidRequestError(
                f"Cannot use {name} with a number that differs from row to row", hint="Write a plain whole number."
            )
        number = arguments[0].eval(None)
        if number is None:
            return expression_of(spark, F.lit(None).cast(made))
        transform = _WITH_NUMBER[name](int(number))
    column = Column(spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(arguments[-1]))  # type: ignore[union-attr]
    value = transform_value(transform, store_column(column, kind), kind, spark)
    if transform == DAY:
        value = F.date_from_unix_date(value.cast("int"))
    return expression_of(spark, value.cast(made))


def _transform(name: str, types: Sequence[st.DataType]) -> tuple[Transform, Type]:
    """Return the transform that a name is, with any number, and the type of the values it is of."""
    _check_count(name, types, 1 if name in _UNARY else 2)
    if name in _WITH_NUMBER and types[0].simpleString() not in _NUMBER_TYPES:
        raise InvalidRequestError(
            f"Cannot use {name} with a number of the type {types[0].simpleString()}",
            hint="Write a plain whole number: an int.",
        )
    transform = _UNARY[name] if name in _UNARY else _ANY_NUMBER[name]
    kind = from_spark_type(types[-1], name, count(1))
    if not transform.can_transform(kind):
        raise InvalidRequestError(
            f"Cannot use {name} of {types[-1].simpleString()} values: the transform is not of such",
            hint="Cast the argument to a type that it takes.",
        )
    return transform, kind


def _check_count(name: str, types: Sequence[st.DataType], wanted: int) -> None:
    if len(types) != wanted:
        usage = f"{name}({', '.join(['number', 'column'][2 - wanted :]) if wanted else ''})"
        raise InvalidRequestError(f"Cannot use {name} with {len(types)} arguments", hint=f"Write {usage}.")


def function_expressions(
    spark: SparkSession, parsed: ParsedQuery, calls: Mapping[int, str], tables: Mapping[int, Any], version: str
) -> dict[int, Any]:
    """Return Spark's expression for each call of a lake's function, by its place among the names of a query."""
    found: dict[int, Any] = {}
    arguments: dict[int, tuple[Transform | None, Any]] = {}
    for at, name in calls.items():
        given = parsed.node(at).arguments()
        parts = [given.apply(place) for place in range(given.size())]
        if name == ICEBERG_VERSION:
            found[at] = expression_of(spark, F.lit(version))
            continue
        arguments[at] = _named_transform(name, parts)
    if not arguments:
        return found
    kinds = _argument_types(spark, parsed, {at: one for at, (_, one) in arguments.items()}, {**tables, **found})
    for at, (transform, argument) in arguments.items():
        if at not in kinds:
            raise InvalidRequestError(f"Cannot use {calls[at]}: the type of its argument is not known")
        kind = from_spark_type(kinds[at], calls[at], count(1))
        checked = _ANY_NUMBER[calls[at]] if transform is None else transform
        if not checked.can_transform(kind):
            raise InvalidRequestError(
                f"Cannot use {calls[at]} of {kinds[at].simpleString()} values: the transform is not of such",
                hint="Cast the argument to a type that it takes.",
            )
        if transform is None:
            found[at] = expression_of(spark, F.lit(None).cast(stored_type(checked.result_type(kind))))
            continue
        column = Column(spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(argument))  # type: ignore[union-attr]
        value = transform_value(transform, store_column(column, kind), kind, spark)
        if transform == DAY:
            value = F.date_from_unix_date(value.cast("int"))
        found[at] = expression_of(spark, value)
    return found


def _named_transform(name: str, parts: list[Any]) -> tuple[Transform | None, Any]:
    """Return the transform that a call names, None where its number is null, and the expression it is of."""
    if name in _UNARY and len(parts) == 1:
        return _UNARY[name], parts[0]
    if name in _WITH_NUMBER and len(parts) == 2 and parts[0].foldable():
        kind = parts[0].dataType().catalogString() if parts[0].resolved() else "unknown"
        if kind not in _NUMBER_TYPES:
            raise InvalidRequestError(
                f"Cannot use {name} with a number of the type {kind}", hint="Write a plain whole number: an int."
            )
        number = parts[0].eval(None)
        return None if number is None else _WITH_NUMBER[name](int(number)), parts[1]
    if name in _UNARY or name in _WITH_NUMBER:
        usage = f"{name}(column)" if name in _UNARY else f"{name}(number, column)"
        raise InvalidRequestError(f"Cannot use {name} with {len(parts)} arguments", hint=f"Write {usage}.")
    raise NotFoundError(
        f"Cannot find the function {name!r} in a lake", hint=f"There are: {', '.join(known_functions())}."
    )


def _argument_types(
    spark: SparkSession, parsed: ParsedQuery, arguments: Mapping[int, Any], others: Mapping[int, Any]
) -> dict[int, st.DataType]:
    expressions = spark._jvm.org.apache.spark.sql.catalyst.expressions  # type: ignore[union-attr]
    marked = {
        at: expressions.CreateNamedStruct(scala_list(spark, [expression_of(spark, F.lit(f"{_MARK}{at}")), one]))
        for at, one in arguments.items()
    }
    types = parsed.argument_types({**others, **marked}, _MARK)
    return {int(at): st._parse_datatype_json_string(text) for at, text in types.items()}
