"""A process that is killed: everybody else who works on the tables of `stream_kill_worker.py`.

    stream_kill_others.py WAREHOUSE JOURNAL SEED run|finish

Two threads. One feeds two tables. The other compacts and expires, and writes rows of its own to tables that streams
write to. What is done is a line of the journal, written when it is done: after a kill the last write is repeated,
under the same name, and happens once. `run` goes on until the process ends; `finish` repeats what was left open.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

import pyarrow as pa

import frazil
from frazil.errors import CommitError

KEYS = 7
FEED, OWN = "feed", "own"
FED = ("source", "plain")
"""The tables that are fed: streams of one are guarded, that of the other is not."""
TABLES = {
    "source": ("compact", "expire"),
    "plain": ("compact", "expire"),
    "rows": ("compact", OWN),
    "counts": ("compact", "expire"),
}
"""What is done to each table; who reads `rows` has no guard, so nothing of it expires."""


def feed_ids(number: int) -> range:
    """Return the ids that a feed writes: the same whenever it is repeated."""
    return range(number * 20, number * 20 + number % 19 + 1)


def key_of(one: int) -> str:
    return f"k{one % KEYS}"


def done(journal: Path) -> Counter[str]:
    """Return how often each thing was done."""
    return Counter(journal.read_text().split()) if journal.exists() else Counter()


class Others:
    def __init__(self, warehouse: str, journal: Path, chance: random.Random) -> None:
        self.lake = frazil.connect(warehouse)
        self.journal = journal
        self.chance = chance
        self.done = done(journal)

    def _note(self, what: str) -> None:
        self.done[what] += 1
        with self.journal.open("a") as out:
            out.write(f"{what}\n")

    def feed(self) -> None:
        ids = list(feed_ids(self.done[FEED]))
        rows = pa.table({"id": ids, "k": [key_of(one) for one in ids]})
        for name in FED:
            self.lake.table(f"db.{name}").append(rows, once=(FEED, self.done[FEED]))
        self._note(FEED)

    def own(self) -> None:
        self.lake.table("db.rows").append(pa.table({"id": [-1], "k": [OWN]}), once=(OWN, self.done[OWN]))
        self._note(OWN)

    def meddle(self) -> None:
        name = self.chance.choice([*TABLES])
        what = self.chance.choice(TABLES[name])
        if what == OWN:
            self.own()
            return
        table = self.lake.table(f"db.{name}")
        with contextlib.suppress(CommitError):
            if what == "compact":
                table.maintain.rewrite_data_files(min_input_files=3)
            else:
                # Streams without a guard are now in time, and now too late.
                spared_ms = self.chance.choice((-1000, 20_000, 60_000))
                table.expire_snapshots(older_than=self.lake.catalog.now_ms() - spared_ms, retain_last=1)
            self._note(what)

    def run(self) -> None:
        def repeat(turn: str, pause: float) -> None:
            try:
                while True:
                    getattr(self, turn)()
                    time.sleep(self.chance.uniform(0, pause))
            except Exception:
                traceback.print_exc()
                os._exit(1)

        threads = [threading.Thread(target=repeat, args=one) for one in (("feed", 2), ("meddle", 1))]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    def finish(self) -> None:
        self.feed()
        self.own()


if __name__ == "__main__":
    getattr(Others(sys.argv[1], Path(sys.argv[2]), random.Random(int(sys.argv[3]))), sys.argv[4])()
