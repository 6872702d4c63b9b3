"""Java calls Python through a port of this machine. Who is not Java gets no answer there."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import frazil
from frazil.spark.jvm.private_names import planning_callback
from tests.spark.compiled_java import compiled_class

WORD = "0" * 64


def ask(spark: SparkSession, text: str) -> bytes:
    """Return what a stranger's socket is answered; nothing where it is cut off."""
    gateway: Any = spark.sparkContext._gateway
    port = gateway._callback_server.server_socket.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port), timeout=20) as stranger:
        stranger.sendall(text.encode())
        try:
            return stranger.recv(65536)
        except ConnectionError:
            return b""


def test_unknown_client_gets_no_response(spark: SparkSession, lake: frazil.Lake) -> None:
    lake.create_table("db.t", "id int").append(pa.table({"id": pa.array([1, 2], pa.int32())}))
    frame = lake.table("db.t").scan().to_spark(spark)
    gateway: Any = spark.sparkContext._gateway
    ids = list(gateway.gateway_property.pool.dict)
    assert ids
    request = json.dumps(["and"])
    answers = [
        ask(spark, f"c\n{ids[-1]}\n{method}\ns{given}{request}\ne\n")
        for method in ("apply", "__init__", "__class__", "__setattr__", "_apply", "Java")
        for given in ("", WORD)
    ]
    answers.append(ask(spark, f"g\n{ids[-1]}\ne\n"))
    answers.append(ask(spark, "A\nguess\ne\n"))
    for answer in answers:
        # Refused, or nothing at all: never the planner's answer.
        assert answer == b"" or answer.startswith((b"!x", b"x"))
    assert ids[-1] in gateway.gateway_property.pool.dict
    assert frame.where("id = 2").count() == 1


def test_java_calls_are_handled_on_any_thread(spark: SparkSession, lake: frazil.Lake) -> None:
    lake.create_table("db.t", "id int").append(pa.table({"id": pa.array([1, 2], pa.int32())}))
    jvm: Any = spark._jvm
    asked = []

    def plan(request: str) -> bytes:
        # What Python asks of Java meanwhile goes the same way.
        asked.append((request, spark.range(3).count()))
        return b"planned"

    word = "a" * 64
    callback = planning_callback(plan, word)
    frame = lake.table("db.t").scan().to_spark(spark)
    future = jvm.java.util.concurrent.CompletableFuture.completedFuture(f'{word}["and"]').thenApplyAsync(callback)
    assert bytes(future.get()) == b"planned"
    assert asked == [('["and"]', 3)]
    assert frame.count() == 2


def test_planner_exposes_one_method() -> None:
    callback: Any = planning_callback(lambda request: request.encode(), WORD)
    assert callback.apply(f"{WORD}[]") == b"[]"
    for request in ("[]", "", WORD[1:], "é" * 64, None, 7):
        assert isinstance(callback.apply(request), str)
    for name in ("_apply", "__init__", "__dict__", "__setattr__", "__reduce__", "planner"):
        with pytest.raises(AttributeError):
            getattr(callback, name)
    with pytest.raises(TypeError):
        callback.__class__()
    with pytest.raises(AttributeError):
        callback.apply = None


THREADS = """
public class AskOnThreads implements Runnable {
  private final Object files;
  private Throwable failed;
  public AskOnThreads(Object files) { this.files = files; }
  public void run() {
    try {
      files.getClass().getMethod("pruned", new Class[] {java.util.Collection.class})
          .invoke(files, new Object[] {new java.util.ArrayList()});
    } catch (Throwable e) { failed = e; }
  }
  public String ask(int times) throws InterruptedException {
    for (int i = 0; i < times; i++) {
      Thread thread = new Thread(this);
      thread.start();
      thread.join();
    }
    return String.valueOf(failed);
  }
}
"""


def test_ended_java_threads_release_their_python_threads(spark: SparkSession, lake: frazil.Lake) -> None:
    lake.create_table("db.t", "id int").append(pa.table({"id": pa.array([1, 2], pa.int32())}))
    frame: Any = lake.table("db.t").scan().to_spark(spark)._jdf
    given = spark.sparkContext._jvm.java.util.ArrayList()  # type: ignore[union-attr]
    given.add(frame.queryExecution().optimizedPlan().collectLeaves().apply(0).relation().location())
    asking = compiled_class(spark, THREADS, "AskOnThreads").getConstructors()[0].newInstance(given.toArray())
    assert asking.ask(1) == "null"
    before = threading.active_count()
    assert asking.ask(20) == "null"
    # Those that stay may be a few more where several asked at once; of the twenty that ended none is left.
    assert threading.active_count() < before + 10
