"""Settings of a session: their defaults count, and a name that this Spark does not know is None, each time."""

from __future__ import annotations

from pyspark.sql import SparkSession

from frazil.spark.session import setting

UNKNOWN = "spark.sql.frazil.nothing.of.this.name"


def test_a_setting_that_nobody_set_has_its_default(spark: SparkSession) -> None:
    assert setting(spark, "spark.sql.parquet.fieldId.write.enabled") == "true"


def test_a_setting_that_spark_does_not_know_is_none_each_time(spark: SparkSession) -> None:
    assert setting(spark, UNKNOWN) is None
    assert setting(spark, UNKNOWN) is None


def test_what_one_session_does_not_know_another_may(spark: SparkSession) -> None:
    assert setting(spark, UNKNOWN) is None
    other = spark.newSession()
    other.conf.set(UNKNOWN, "7")
    assert setting(other, UNKNOWN) == "7"
