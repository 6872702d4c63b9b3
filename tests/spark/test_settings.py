"""Settings of a session: their defaults count, and a name that this Spark does not know is None, each time."""

from __future__ import annotations

from pyspark.sql import SparkSession

from frazil.spark.session import setting

UNKNOWN = "spark.sql.frazil.nothing.of.this.name"


def test_unset_setting_has_its_default(spark: SparkSession) -> None:
    assert setting(spark, "spark.sql.parquet.fieldId.write.enabled") == "true"


def test_unknown_spark_setting_is_absent_every_time(spark: SparkSession) -> None:
    assert setting(spark, UNKNOWN) is None
    assert setting(spark, UNKNOWN) is None


def test_setting_unknown_in_one_session_may_be_known_in_another(spark: SparkSession) -> None:
    assert setting(spark, UNKNOWN) is None
    other = spark.newSession()
    other.conf.set(UNKNOWN, "7")
    assert setting(other, UNKNOWN) == "7"
