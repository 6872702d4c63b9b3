"""Servers inside a Spark driver for other processes: Spark Connect, and the Thrift server for JDBC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from frazil.errors import EngineError
from frazil.spark.jvm.start_jvm import start_jvm


def connect_settings(host: str, port: int, token: str | None) -> Mapping[str, str]:
    """Return the settings of a session that serves Spark Connect."""
    settings = {"spark.connect.grpc.binding.address": host, "spark.connect.grpc.binding.port": str(port)}
    return settings if token is None else {**settings, "spark.connect.authenticate.token": token}


def thrift_settings(host: str, port: int) -> Mapping[str, str]:
    """Return the settings of a session that serves JDBC."""
    return {
        "spark.hadoop.hive.server2.thrift.bind.host": host,
        "spark.hadoop.hive.server2.thrift.port": str(port),
        "spark.hadoop.hive.server2.transport.mode": "binary",
        "spark.hadoop.hive.server2.enable.doAs": "false",
    }


def start_driver(master: str, name: str, settings: Mapping[str, str]) -> SparkSession:
    """Start a Spark session with the given settings."""
    start_jvm({"spark.master": master, "spark.app.name": name, **settings})
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def has_ended(spark: SparkSession) -> bool:
    """Return whether Spark's JVM process has ended."""
    gateway: Any = spark.sparkContext._gateway
    return gateway is None or gateway.proc.poll() is not None


def start_connect(spark: SparkSession) -> None:
    """Start the Spark Connect server at the address in the session's settings."""
    context = spark.sparkContext
    jvm: Any = context._jvm
    try:
        jvm.org.apache.spark.sql.connect.service.SparkConnectService.start(context._jsc.sc())
    except (TypeError, Py4JError) as error:
        raise _start_error("Spark Connect", error) from error


def stop_connect(spark: SparkSession) -> None:
    """Stop the Spark Connect server."""
    jvm: Any = spark.sparkContext._jvm
    service = jvm.org.apache.spark.sql.connect.service.SparkConnectService
    service.stop(getattr(service, "stop$default$1")(), getattr(service, "stop$default$2")())


def start_thrift(spark: SparkSession) -> Any:
    """Start the Thrift server at the address in the session's settings; return it, with a `stop()` method."""
    jvm: Any = spark.sparkContext._jvm
    try:
        server = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
        return server.startWithContext(spark._jsparkSession.sqlContext())
    except (TypeError, Py4JError) as error:
        raise _start_error("the Thrift server", error) from error


def _start_error(what: str, error: Exception) -> EngineError:
    cause = error.java_exception if isinstance(error, Py4JJavaError) else error
    return EngineError(
        f"Cannot start {what} in this Spark: {cause}", hint="Is its port free, and its jar among Spark's?"
    )
