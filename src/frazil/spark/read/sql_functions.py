"""The SQL functions of a lake: `lake.system.bucket(16, id)`, `truncate`, `years`, `months`, `days`, `hours`.

Spark finds them in the lake's catalog and binds them to the types of their arguments. An analyser rule then replaces
each call with the transform's expression (`spark/java/rules/OwnFunctions.java`), so that executors need no code of
frazil.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pyspark.sql.types as st
from pyspark.sql import Column, SparkSession

from frazil.errors import InvalidRequestError
from frazil.spark.own_columns import F, OwnColumn
from frazil.spark.read.partition_columns import transform_value
from frazil.spark.types import from_spark_type, store_column, stored_type
from frazil.spec.transforms import DAY, HOUR, MONTH, YEAR, Bucket, Transform, Truncate
from frazil.spec.types import Type
from frazil.sql.functions import ICEBERG_VERSION, function_usage

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


def function_type(name: str, types: Sequence[st.DataType]) -> st.DataType:
    """Return the result type of a call of a function; raise if it does not accept the argument types."""
    if name == ICEBERG_VERSION:
        _check_count(name, types, 0)
        return st.StringType()
    transform, data_type = _transform(name, types)
    return st.DateType() if transform == DAY else stored_type(transform.result_type(data_type))


def function_expression(
    spark: SparkSession, name: str, types: Sequence[st.DataType], arguments: Sequence[Any], version: str
) -> Any:
    """Return the Catalyst expression for a call of a function with Catalyst arguments."""
    result_type = function_type(name, types)
    if name == ICEBERG_VERSION:
        return _expression(spark, F.lit(version))
    transform, data_type = _transform(name, types)
    if name in _WITH_NUMBER:
        if not arguments[0].foldable():
            raise InvalidRequestError(
                f"Cannot use {name} with a number that is not constant", hint="Write an integer literal."
            )
        number = arguments[0].eval(None)
        if number is None:
            return _expression(spark, F.lit(None).cast(result_type))
        transform = _WITH_NUMBER[name](int(number))
    column = OwnColumn(spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column(arguments[-1]))  # type: ignore[union-attr]
    value = transform_value(transform, store_column(column, data_type), data_type, spark)
    if transform == DAY:
        value = F.date_from_unix_date(value.cast("int"))
    return _expression(spark, value.cast(result_type))


def _transform(name: str, types: Sequence[st.DataType]) -> tuple[Transform, Type]:
    """Return the transform of a function, with 1 as its number, and the type of the values."""
    _check_count(name, types, 1 if name in _UNARY else 2)
    if name in _WITH_NUMBER and types[0].simpleString() not in _NUMBER_TYPES:
        raise InvalidRequestError(
            f"Cannot use {name} with a number of the type {types[0].simpleString()}",
            hint="Write an integer literal.",
        )
    transform = _UNARY[name] if name in _UNARY else _ANY_NUMBER[name]
    data_type = from_spark_type(types[-1], name, count(1))
    if not transform.can_transform(data_type):
        raise InvalidRequestError(
            f"Cannot use {name} of {types[-1].simpleString()} values: the transform does not accept this type",
            hint="Cast the argument to a supported type.",
        )
    return transform, data_type


def _check_count(name: str, types: Sequence[st.DataType], expected: int) -> None:
    if len(types) != expected:
        raise InvalidRequestError(
            f"Cannot use {name} with {len(types)} arguments", hint=f"Write {function_usage(name)}."
        )


def _expression(spark: SparkSession, column: Column) -> Any:
    return spark._jsparkSession.expression(column._jc)
