"""What `test_cancelled.py` runs in a process of its own: statements that get ctrl-C while they run.

Run as `python -m tests.spark.pressed_worker <folder>`; prints a line of JSON for each.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import frazil
from frazil.commit.commit_loop import CommitLoop
from tests.spark.test_cancelled import CHANGES, SLOW, stray_files


def say(**what: object) -> None:
    """Print a line."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Pressed:
    """A session whose process gets ctrl-C a second after work has begun."""

    def __init__(self, folder: Path) -> None:
        self.spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "1")
            .getOrCreate()
        )
        self.folder = folder / "lake"
        self.lake = frazil.connect(self.folder)
        self.lake.create_namespace("db")
        self.lake.create_table("db.t", "id bigint, kind string")
        frazil.attach(self.spark, self.lake)
        self.spark.sql("insert into lake.db.t values (1, 'a')")

    def jobs(self) -> list[int]:
        """Return the jobs that run."""
        return list(self.spark.sparkContext.statusTracker().getActiveJobsIds())

    def run(self, what: str, work: Callable[[], object], has_begun: Callable[[], Any]) -> None:
        """Run something, press ctrl-C, and say what came of it."""
        before = self.lake.table("db.t").refresh().metadata_location
        pressed = threading.Event()

        def press() -> None:
            while not has_begun():
                time.sleep(0.05)
            time.sleep(1)
            pressed.set()
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=press, daemon=True)
        thread.start()
        raised = None
        begun = time.monotonic()
        try:
            work()
        except BaseException as error:
            raised = type(error).__name__
        thread.join()
        while self.jobs() and time.monotonic() < begun + 120:
            time.sleep(0.1)
        seconds = time.monotonic() - begun
        # Whoever would still commit has the time to.
        time.sleep(5)
        stray = stray_files(self.lake, self.folder)
        after = self.lake.table("db.t").refresh().metadata_location
        say(
            what=what,
            raised=raised,
            seconds=seconds,
            **{"is committed": after != before, "stray files": len(stray)},
        )


def main(folder: Path) -> None:
    """Run each kind of work."""
    pressed = Pressed(folder)
    spark = pressed.spark
    pressed.run("insert", lambda: spark.sql(CHANGES["insert"]), pressed.jobs)
    pressed.run("merge", lambda: spark.sql(CHANGES["merge"]), pressed.jobs)
    script = f"""begin
        declare exit handler for sqlexception begin insert into lake.db.t values (7, 'after'); end;
        {CHANGES["insert"]};
    end"""
    pressed.run("script", lambda: spark.sql(script), pressed.jobs)
    pressed.run("frame", lambda: spark.sql(SLOW).writeTo("lake.db.t").append(), pressed.jobs)
    pressed.run("verb", lambda: pressed.lake.table("db.t").append(spark.sql(SLOW)), pressed.jobs)
    is_there = threading.Event()
    run = CommitLoop.run

    def slow_run(self: Any, change: Any, limits: Any) -> Any:
        is_there.set()
        time.sleep(4)
        return run(self, change, limits)

    CommitLoop.run = slow_run  # type: ignore[method-assign]
    pressed.run("python", lambda: spark.sql("insert into lake.db.t values (5, 'x')"), is_there.is_set)
    CommitLoop.run = run  # type: ignore[method-assign]
    spark.sql("insert into lake.db.t values (2, 'b')")
    say(what="rows", rows=[list(row) for row in spark.sql("select id from lake.db.t order by id").collect()])
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
