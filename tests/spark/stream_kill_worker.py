"""A process that is killed: streams between tables, on a Spark of its own.

    stream_kill_worker.py WAREHOUSE CHECKPOINTS run|drain

It says that it is ready, and begins when it is told so. `run` streams until the process ends; `drain` ends when all
that is there has been read.

    rows     source, guarded     -> rows, appended
    counts   source, guarded     -> counts by key, upserted
    totals   rows, no guard      -> totals by key, replaced; nothing of rows expires
    free     plain, no guard     -> free_<n>, appended; plain expires

`free` goes on, or says that what it has not read has expired: then it begins anew, with a table and a checkpoint of
its own. Where files of a batch are deleted under its hands, it is started again, and says so then. Any other error of a
query ends the process, with the whole of it.
"""

from __future__ import annotations

import os
import random
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil

PROPERTIES = {
    # Many commit at once, and often.
    "commit.retry.num-retries": "100",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "5",
}
QUERIES = ("rows", "counts", "totals", "free")
LOST = re.compile("ha(s|ve) expired")
GONE = re.compile("FILE_NOT_EXIST|there is no such file|the file does not exist")


def generation(checkpoints: Path) -> int:
    """Return how often `free` began anew."""
    return len(list(checkpoints.glob("free-*.lost")))


@dataclass
class Queries:
    spark: SparkSession
    lake: frazil.Lake
    checkpoints: Path
    drains: bool

    def start(self, name: str) -> Any:
        make: Callable[[], Any] = getattr(self, name)
        return make()

    def _read(self, table: str, guard: str | None = None) -> DataFrame:
        options = {} if guard is None else {"stream-guard": guard}
        if not self.drains:
            options["streaming-max-files-per-micro-batch"] = random.choice(("5", "50", "500"))
        return self.spark.readStream.options(**options).table(f"lake.db.{table}")

    def _write(self, frame: DataFrame, name: str, mode: str, **options: str) -> Any:
        trigger: dict[str, Any] = {"availableNow": True} if self.drains else {"processingTime": "0 seconds"}
        writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(self.checkpoints / name))
        return writer.trigger(**trigger).options(**options).toTable(f"lake.db.{name}")

    def rows(self) -> Any:
        compacts = {"compact-every-batches": "3", "compact.min-input-files": "2"}
        return self._write(self._read("source", "rows"), "rows", "append", **compacts)

    def counts(self) -> Any:
        compacts = {"compact-every-batches": "2", "compact.min-input-files": "2"}
        counts = _by_key(self._read("source", "counts"))
        return self._write(counts, "counts", "update", **{"upsert-keys": "k", **compacts})

    def totals(self) -> Any:
        return self._write(_by_key(self._read("rows").where("id >= 0")), "totals", "complete")

    def free(self) -> Any:
        name = f"free_{generation(self.checkpoints)}"
        if not self.lake.table_exists(f"db.{name}"):
            self.lake.create_table(f"db.{name}", "id bigint, k string", properties=PROPERTIES)
        return self._write(self._read("plain"), name, "append")

    def lose(self, error: str) -> None:
        """Note that `free` said what was lost."""
        self.checkpoints.mkdir(exist_ok=True)
        (self.checkpoints / f"free-{generation(self.checkpoints)}.lost").write_text(error)


def _by_key(frame: DataFrame) -> DataFrame:
    return frame.groupBy("k").agg(F.count("*").alias("n"), F.sum("id").alias("total"))


def say(line: str) -> None:
    print(line, flush=True)


def watch(queries: Queries, names: tuple[str, ...]) -> None:
    """Run queries until they end by themselves."""
    running = {name: queries.start(name) for name in names}
    say("running")
    while running:
        for name, query in list(running.items()):
            if query.isActive:
                continue
            error: StreamingQueryException | None = query.exception()
            if error is None:
                del running[name]
            elif name == "free" and (LOST.search(str(error)) or GONE.search(str(error))):
                if LOST.search(str(error)):
                    queries.lose(str(error))
                running[name] = queries.start(name)
            else:
                say(f"failed: {name}\n{error}")
                os._exit(1)
        time.sleep(0.1)


def main(warehouse: str, checkpoints: str, how: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        # Rows come to a sink in two ways.
        .config("spark.sql.codegen.wholeStage", random.choice(("true", "false")))
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.streaming.minBatchesToRetain", "5")
        # A kill in the first write of an offset leaves a file beside which Spark 4.3 begins no query.
        .config("spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    lake = frazil.connect(warehouse)
    frazil.attach(spark, lake)
    queries = Queries(spark, lake, Path(checkpoints), how == "drain")
    say("ready")
    sys.stdin.readline()
    say("starting")
    if queries.drains:
        watch(queries, ("rows", "counts", "free"))
        # It reads what the first one wrote.
        watch(queries, ("totals",))
    else:
        watch(queries, QUERIES)
    say("done")
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3])
