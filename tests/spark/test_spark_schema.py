"""A table is created from a schema of Spark's."""

from __future__ import annotations

import pytest
from pyspark.sql import types as st

import frazil


def test_struct_type_is_accepted_as_a_schema(lake: frazil.Lake) -> None:
    schema = st.StructType(
        [
            st.StructField("id", st.LongType(), nullable=False),
            st.StructField("ts", st.TimestampType()),
            st.StructField("tags", st.ArrayType(st.StringType())),
        ]
    )
    table = lake.create_table("db.t", schema, partition_by=["day(ts)"])
    assert [(one.name, str(one.field_type), one.required) for one in table.schema.fields] == [
        ("id", "long", True),
        ("ts", "timestamptz", False),
        ("tags", "list<string>", False),
    ]


def test_single_field_is_refused_as_a_schema(lake: frazil.Lake) -> None:
    with pytest.raises(frazil.InvalidRequestError, match="LongType"):
        lake.create_table("db.t", st.LongType())
