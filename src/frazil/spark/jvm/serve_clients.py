"""Doors for clients of other processes in a driver: Spark Connect, and the Thrift server for JDBC. Spark ships both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from frazil.errors import EngineError
from frazil.spark.jvm.start_jvm import start_jvm


def connect_settings(host: str, port: int, token: str | None) -> Mapping[str, str]:
    """Return what a session is started with that is to serve Connect."""
    found = {"spark.connect.grpc.binding.address": host, "spark.connect.grpc.binding.port": str(port)}
    return found if token is None else {**found, "spark.connect.authenticate.token": token}


def thrift_settings(host: str, port: int) -> Mapping[str, str]:
    """Return what a session is started with that is to serve JDBC."""
    return {
        "spark.hadoop.hive.server2.thrift.bind.host": host,
        "spark.hadoop.hive.server2.thrift.port": str(port),
        "spark.hadoop.hive.server2.transport.mode": "binary",
        "spark.hadoop.hive.server2.enable.doAs": "false",
    }


def start_driver(master: str, name: str, settings: Mapping[str, str]) -> SparkSession:
    """Start Spark for clients of other processes."""
    start_jvm({"spark.master": master, "spark.app.name": name, **settings})
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def has_ended(spark: SparkSession) -> bool:
    """Return whether the process of Spark's own is gone."""
    gateway: Any = spark.sparkContext._gateway
    return gateway is None or gateway.proc.poll() is not None


def start_connect(spark: SparkSession) -> None:
    """Open the door for clients of Spark Connect, where the session's settings say."""
    context = spark.sparkContext
    jvm: Any = context._jvm
    try:
        jvm.org.apache.spark.sql.connect.service.SparkConnectService.start(context._jsc.sc())
    except (TypeError, Py4JError) as error:
        raise _failed("Spark Connect", error) from error


def stop_connect(spark: SparkSession) -> None:
    """Close the door for clients of Spark Connect."""
    jvm: Any = spark.sparkContext._jvm
    service = jvm.org.apache.spark.sql.connect.service.SparkConnectService
    service.stop(getattr(service, "stop$default$1")(), getattr(service, "stop$default$2")())


def start_thrift(spark: SparkSession) -> Any:
    """Open the door for JDBC, where the session's settings say; return the server, which has a `stop()`."""
    jvm: Any = spark.sparkContext._jvm
    try:
        server = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
        return server.startWithContext(spark._jsparkSession.sqlContext())
    except (TypeError, Py4JError) as error:
        raise _failed("the Thrift server", error) from error


def _failed(what: str, error: Exception) -> EngineError:
    cause = error.java_exception if isinstance(error, Py4JJavaError) else error
    return EngineError(
        f"Cannot start {what} in this Spark: {cause}", hint="Is its port free, and its jar among Spark's?"
    )
