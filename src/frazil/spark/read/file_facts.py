"""`_metadata`: Spark's metadata column of files, for the rows of a table."""

from __future__ import annotations

from typing import Final

import pyspark.sql.types as st
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from frazil.errors import UnsupportedError
from frazil.spark.own_columns import F

FILE_FACTS: Final = st.StructField(
    "_metadata",
    st.StructType(
        [
            st.StructField("file_path", st.StringType(), False),
            st.StructField("file_name", st.StringType(), False),
            st.StructField("file_size", st.LongType(), False),
            st.StructField("file_block_start", st.LongType(), False),
            st.StructField("file_block_length", st.LongType(), False),
            st.StructField("file_modification_time", st.TimestampType(), False),
        ]
    ),
    False,
)


def with_file_facts(frame: DataFrame, table: str) -> DataFrame:
    """Return a table's frame with `_metadata` as its last column; raise if its rows come from more than one reader."""
    spark_type = FILE_FACTS.dataType
    assert isinstance(spark_type, st.StructType)
    parts = [F.col(f"{FILE_FACTS.name}.{field.name}").alias(field.name) for field in spark_type.fields]
    try:
        return frame.select("*", F.struct(*parts).alias(FILE_FACTS.name))
    except AnalysisException as error:
        raise UnsupportedError(
            f"Cannot show _metadata of {table}: its rows are joined with deletes, or read by more than one reader",
            hint="Use _file for the path of a row's file, and the table's .files for the rest.",
        ) from error
