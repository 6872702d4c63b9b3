"""Maintenance beside writers and beside other maintenance, in threads of their own on one table: nothing is lost.

Writers append rows, and one deletes them by value; jobs rewrite data files and manifests, convert and drop deletes,
expire snapshots and remove orphans, all at once and again and again. What every writer was told counts in the end: each
row that was appended and not deleted is there once, each that was deleted is not, and `check` finds nothing wrong.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.commit.row_delta import RowDelta
from frazil.errors import CommitConflictError, ConcurrentChangeError, MissingFileError
from tests.support.equality_delete_writer import write_equality_deletes

DDL = "id bigint, kind string"
LATER = 2**62


class World:
    """A table, what was acknowledged, and threads that work on it."""

    def __init__(self, folder: Path, version: int, catalog: str | None) -> None:
        self.folder = folder
        self.catalog = catalog
        with frazil.connect(folder, catalog=catalog) as lake:
            properties = {"commit.retry.num-retries": "200"}
            lake.create_table("db.t", DDL, partition_by=["kind"], format_version=version, properties=properties)
        self.expected: dict[int, str] = {}
        self.doubtful: set[int] = set()
        self.deleted: set[int] = set()
        self.lock = threading.Lock()
        self.failures: list[BaseException] = []
        self.done: dict[str, int] = {}
        self.is_over = threading.Event()

    def work(self, name: str, turn: Callable[[frazil.Table, int], Any], turns: int | None) -> threading.Thread:
        """Begin a thread that does something some number of times, or until the writers are through."""

        def run() -> None:
            at = 0
            try:
                with frazil.connect(self.folder, catalog=self.catalog) as lake:
                    table = lake.table("db.t")
                    while (at < turns) if turns is not None else not self.is_over.is_set():
                        at += 1
                        try:
                            turn(table.refresh(), at)
                        except (ConcurrentChangeError, CommitConflictError, MissingFileError):
                            # Others were faster, or what was read has expired: nothing has changed, and the next turn
                            # is another try.
                            continue
                        with self.lock:
                            self.done[name] = self.done.get(name, 0) + 1
            except BaseException as error:
                self.failures.append(error)

        thread = threading.Thread(target=run, name=name)
        thread.start()
        return thread

    def append(self, writer: int) -> Callable[[frazil.Table, int], None]:
        def turn(table: frazil.Table, at: int) -> None:
            chance = random.Random(writer * 1000 + at)
            ids = [writer * 100_000 + at * 10 + one for one in range(3)]
            kinds = [chance.choice("ab") for _ in ids]
            with self.lock:
                self.doubtful.update(ids)
            table.append(pa.table({"id": pa.array(ids, pa.int64()), "kind": kinds}))
            with self.lock:
                self.doubtful.difference_update(ids)
                self.expected.update(zip(ids, kinds, strict=True))

        return turn

    def delete(self, table: frazil.Table, at: int) -> None:
        """Delete a row by its value, blindly: whatever others make of its file meanwhile, it must stay deleted."""
        with self.lock:
            if not self.expected:
                return
            chosen = sorted(self.expected)[at * 7 % len(self.expected)]
            kind = self.expected.pop(chosen)
            self.doubtful.add(chosen)
        values = pa.table({"id": pa.array([chosen], pa.int64())})
        files = write_equality_deletes(values, table.state, ["id"], partition=(kind,))
        table._run(RowDelta(tuple(files), None))
        with self.lock:
            self.doubtful.discard(chosen)
            self.deleted.add(chosen)

    def check(self) -> None:
        assert self.failures == [], self.failures
        assert self.doubtful == set()
        with frazil.connect(self.folder, catalog=self.catalog) as lake:
            table = lake.table("db.t")
            rows = {one["id"]: one["kind"] for one in table.scan().to_arrow().to_pylist()}
            assert rows == self.expected
            assert table.scan().count() == len(self.expected)
            report = table.check(bounds=True)
            assert report.ok, str(report)


JOBS: dict[str, Callable[[frazil.Table], Any]] = {
    "rewrite": lambda table: table.maintain.rewrite_data_files(
        min_input_files=2, partial_progress_enabled=True, delete_file_threshold=1, remove_dangling_deletes=True
    ),
    "rewrite again": lambda table: table.maintain.rewrite_data_files("sort", "id", rewrite_all=True),
    "manifests": lambda table: table.maintain.rewrite_manifests(),
    "equality": lambda table: table.maintain.convert_equality_deletes(),
    "deletes": lambda table: table.maintain.rewrite_position_delete_files(rewrite_all=True),
    "expire": lambda table: table.maintain.expire_snapshots(older_than=LATER, retain_last=2),
    "expire again": lambda table: table.maintain.expire_snapshots(older_than=LATER, retain_last=3),
    "orphans": lambda table: table.maintain.remove_orphan_files(),
    "optimize": lambda table: table.maintain.optimize(),
}


def run(folder: Path, version: int, catalog: str | None, turns: int | None) -> None:
    """Let writers and jobs work; jobs some turns, or as long as the writers do."""
    world = World(folder, version, catalog)
    writers = [world.work(f"append {at}", world.append(at), 8) for at in (1, 2)]
    jobs = [world.work("delete", world.delete, turns)]
    jobs += [world.work(name, lambda table, _, job=job: job(table), turns) for name, job in JOBS.items()]  # type: ignore[misc]
    for one in writers:
        one.join()
    world.is_over.set()
    for one in jobs:
        one.join()
    world.check()
    assert world.done["append 1"] == world.done["append 2"] == 8
    assert len(world.expected) + len(world.deleted) == 48


@pytest.mark.extended
@pytest.mark.parametrize(("version", "catalog"), [(2, None), (3, "filesystem")], ids=["sqlite", "filesystem"])
def test_maintenance_beside_writers_loses_and_duplicates_nothing(
    tmp_path: Path, version: int, catalog: str | None
) -> None:
    run(tmp_path / "lake", version, catalog, 3)


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("catalog", [None, "filesystem"], ids=["sqlite", "filesystem"])
def test_continuous_maintenance_loses_and_duplicates_nothing(tmp_path: Path, version: int, catalog: str | None) -> None:
    run(tmp_path / "lake", version, catalog, None)
