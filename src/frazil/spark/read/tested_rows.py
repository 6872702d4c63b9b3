"""The rows of a scan on Spark that pass the part of its condition that planning cannot decide: Spark tests them."""

from __future__ import annotations

from pyspark.sql import DataFrame

from frazil.errors import UnsupportedError
from frazil.evaluate.row_test import RowTest
from frazil.spark.jvm.exact_sql import expression
from frazil.spark.own_columns import F
from frazil.spark.read.read_columns import narrow_column
from frazil.spec.schema import Schema
from frazil.sql.quote_names import quote


def passing_rows(frame: DataFrame, test: RowTest, read: Schema, output: Schema, *, is_utc: bool) -> DataFrame:
    """Return the rows of a frame that pass a test, with the columns that are returned."""
    if test.is_zoned and not is_utc:
        raise UnsupportedError(
            "Cannot filter on Spark: the time zone of the session decides what the condition means, and it is not UTC",
            hint="Write times with their zone, or filter the frame: `scan().to_spark().where(…)`.",
        )
    columns = []
    for whole, field in zip(read.fields, output.fields, strict=False):
        column = narrow_column(F.col(quote(whole.name)), whole.field_type, field.field_type)
        columns.append(column.alias(field.name, metadata={} if field.doc is None else {"comment": field.doc}))
    return frame.where(expression(test.sql())).select(columns)
