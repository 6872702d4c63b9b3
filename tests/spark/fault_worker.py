"""A process of its own: changes tables on a cluster whose tasks and executors fail, and prints what came of it.

    python fault_worker.py <master> <folder> <runs>

Each run is one append, merge or delete, of a table that Spark writes or one that Python workers write, in either mode,
and one fault:

    kill      an executor is killed (`kill -9`) at some moment of the change
    closed    an executor is killed when the first new file of the change is there: closed, and its task not yet done
    fail      the first attempt of each task fails at its last row
    slow      one task is so slow that Spark runs it a second time beside the first

After each run the rows must be those of a model: where the change succeeded with it, where it was refused without. A
change that was refused is then made once more without a fault. What is printed last is a JSON object.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import frazil

FAULTS = ("kill", "closed", "fail", "slow")
VERBS = ("append", "merge", "delete")
MODES = ("copy-on-write", "merge-on-read")
Model = dict[int, str]


def session(master: str) -> SparkSession:
    """Return a session that tries tasks again, and beside themselves where they are slow."""
    settings: dict[str, bool | float | int | str | None] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
        "spark.sql.shuffle.partitions": "2",
        "spark.task.maxFailures": "8",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.2",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "300ms",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        # A killed executor is missed at once by its connection; what waits for its blocks should not wait long.
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "200ms",
    }
    made = SparkSession.builder.master(master).appName("frazil faults").config(map=settings).getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def faulty(fault: str, number: Column) -> Column:
    """Return a number as it is, from tasks that fail once or that take long once."""

    def run(value):  # type: ignore[no-untyped-def]  # Spark warns about hints it cannot use
        context = TaskContext.get()
        if context is None or context.attemptNumber() > 0:
            return value
        if fault == "fail" and value % 50 == 49:
            raise RuntimeError("the first attempt fails")
        if fault == "slow" and context.partitionId() == 0 and value % 50 == 0:
            time.sleep(1.5)
        return value

    return F.udf(run, "bigint", useArrow=False)(number)


def executors(application: str) -> list[int]:
    """Return the process ids of an application's executors."""
    found = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = one.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "CoarseGrainedExecutorBackend" in words and application in words and "java" in words.split("\0")[0]:
            found.append(int(one.parent.name))
    return found


class Killer:
    """Kills one executor while a change runs: after a while, or when a new file is there."""

    def __init__(self, application: str, folder: Path, chance: random.Random, *, after_file: bool) -> None:
        self._application, self._folder = application, folder
        self._chance, self._after_file = chance, after_file
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.killed = 0

    def __enter__(self) -> Killer:
        self._before = self._files()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _files(self) -> set[Path]:
        return {one for one in self._folder.rglob("*.parquet") if one.is_file()}

    def _run(self) -> None:
        if not self._after_file:
            self._done.wait(self._chance.uniform(0, 1.5))
        while self._after_file and not self._done.wait(0.005):
            try:
                if any(one.stat().st_size > 0 for one in self._files() - self._before):
                    break
            except OSError:
                continue
        running = executors(self._application)
        if running and not self._done.is_set():
            os.kill(self._chance.choice(running), signal.SIGKILL)
            self.killed += 1


class Trial:
    """One table and the rows it must have."""

    def __init__(self, spark: SparkSession, lake: frazil.Lake, number: int) -> None:
        self.spark = spark
        self.has_lists = number % 2 == 1
        mode = MODES[number // 2 % 2]
        ddl = "id bigint, k string, v string" + (", tags list<bigint>" if self.has_lists else "")
        properties = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
        self.table = lake.create_table(
            f"db.t{number}", ddl, partition_by=["k"], properties=properties, format_version=2 + number % 2
        )
        self.model: Model = {}
        self.next_id = 0

    def rows(self, start: int, end: int, value: str, fault: str) -> DataFrame:
        frame = self.spark.range(start, end, numPartitions=3)
        if fault in ("fail", "slow"):
            frame = frame.select(faulty(fault, F.col("id")).alias("id"))
        more = ["array(id) as tags"] if self.has_lists else []
        return frame.selectExpr("id", "string(id % 2) as k", f"concat('{value}', id) as v", *more)

    def change(self, verb: str, name: str) -> tuple[Callable[[str], Any], Model]:
        """Return a change, given a fault, and the rows there must be after it."""
        start, end = self.next_id, self.next_id + 150
        if verb == "append":
            model = {**self.model, **{at: f"{name}{at}" for at in range(start, end)}}
            return lambda fault: self.table.append(self.rows(start, end, name, fault)), model
        if verb == "delete":
            number = 3 + len(name) % 5

            def delete(fault: str) -> Any:
                return self.table.delete(faulty(fault, F.col("id")) % 7 == number % 7)

            return delete, {at: value for at, value in self.model.items() if at % 7 != number % 7}
        low = max(start - 100, 0)

        def merge(fault: str) -> Any:
            merging = self.table.merge(self.rows(low, end, name, fault), on="target.id = source.id")
            merging = merging.when_matched("source.id % 5 = 0").delete().when_matched().update_all()
            return merging.when_not_matched().insert_all().execute()

        model = dict(self.model)
        for at in range(low, end):
            if at % 5 == 0 and at in self.model:
                del model[at]
            else:
                model[at] = f"{name}{at}"
        return merge, model

    def problem(self, model: Model) -> str | None:
        """Return what is wrong with the rows, None where nothing is."""
        rows = self.table.refresh().scan().to_arrow().to_pylist()
        if len(rows) != len({row["id"] for row in rows}):
            return f"{len(rows)} rows have {len({row['id'] for row in rows})} ids"
        if {row["id"]: row["v"] for row in rows} != model:
            return f"{len(rows)} rows are not the {len(model)} expected"
        found = self.table.check()
        return None if found.ok else f"check: {found.problems[:3]}"


def main() -> None:
    """Run the changes and print how many had which end."""
    master, folder, runs = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    spark = session(master)
    application = str(spark.sparkContext.applicationId)
    chance = random.Random(20)
    told = {"runs": 0, "succeeded": 0, "refused": 0, "killed": 0, "rows": 0}
    problems: list[str] = []
    with frazil.connect(folder) as lake:
        lake.create_namespace("db")
        trials = [Trial(spark, lake, number) for number in range(4)]
        for one in trials:
            first, model = one.change("append", "first")
            first("none")
            one.model, one.next_id = model, 150
        for run in range(runs):
            fault, verb = FAULTS[run % len(FAULTS)], VERBS[run // len(FAULTS) % len(VERBS)]
            trial = trials[(run + run // 12) % len(trials)]
            change, model = trial.change(verb, f"r{run}_")
            watched = Path(trial.table.location.removeprefix("file://"))
            start = time.monotonic()
            with Killer(application, watched, chance, after_file=fault == "closed") as killer:
                if fault in ("fail", "slow"):
                    # Nothing is killed in these runs.
                    killer._done.set()
                try:
                    change(fault)
                    ended = "succeeded"
                except frazil.FrazilError as error:
                    ended = "refused"
                    print(f"run {run} {verb} {fault}: {str(error).splitlines()[0][:200]}", file=sys.stderr)
            told["killed"] += killer.killed
            told[ended] += 1
            told["runs"] += 1
            problem = trial.problem(model if ended == "succeeded" else trial.model)
            if problem is None and ended == "refused":
                change("none")
                problem = trial.problem(model)
            if problem is not None:
                problems.append(f"run {run} {verb} {fault} of {trial.table}: {problem}")
                break
            trial.model, trial.next_id = model, trial.next_id + (150 if verb != "delete" else 0)
            took = time.monotonic() - start
            print(
                f"run {run} {verb} {fault} {ended} in {took:.1f} s, {killer.killed} killed", file=sys.stderr, flush=True
            )
        told["rows"] = sum(len(one.model) for one in trials)
    spark.stop()
    print(json.dumps({**told, "problems": problems}))


if __name__ == "__main__":
    main()
