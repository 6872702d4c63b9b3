"""Maintain a table with frazil, with PyIceberg as far as it can, and with Iceberg's Java runtime, side by side.

    python -m bench.rewrite_files [--rows 2000000] [--files 200] [--manifest-files 50000] [--runs 2] [--alone]

    bin-pack, sort, z-order    of a table of many small files, an append for each
    expiry                     of the snapshots that this leaves
    manifests                  of many files in many manifests, clustered by partition; the files do not exist
    orphans                    a table of as many files that do, and a hundred that it does not know: a dry run

Everything is done at three sizes, a sixteenth, a quarter and the whole, and what memory this process takes while frazil
works is printed for each: it is not to grow with the table. `FRAZIL_BENCH_SCALE` multiplies the sizes. With `--alone`
only frazil rewrites rows, in this process, and all else is left out: for its memory, not for times beside others.

PyIceberg has no compaction: its users read the table and overwrite it, which is what is timed, all rows in memory and a
conflict with every other writer. The Java runtime is there where `.venv-spark-4.1` is and its package can be had; it
runs on Spark with two cores, and its first query is not timed. frazil works in this process, and rewrites data files
also on Spark with as many cores and as much memory. Every engine gets tables of its own, all written by frazil into one
folder in the layout of the Hadoop catalog. A small table is maintained by all of them first, which warms them up and is
not counted. After z-order, the share of files that a filter on either column leaves out is printed for each engine.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from bench.measure import Results, scaled
from pyiceberg.catalog.sql import SqlCatalog

import frazil
from frazil.commit.append import Append
from frazil.commit.transaction import commit_actions
from frazil.spec.data_file import DataFile, FileFormat

ROOT = Path(__file__).resolve().parent.parent
JAVA_PYTHON = ROOT / ".venv-spark-4.1" / "bin" / "python"
PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
KINDS = np.array(["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"])
DDL = "id bigint, small int, score double, kind string, name string"
DAY_S = 24 * 60 * 60
STRAYS = 100
FILES_PER_MANIFEST = 1000
ORDERS = {"sort": "id", "z-order": "zorder(id, score)"}

WARM_ROWS, WARM_FILES = 2_000, 5
PYICEBERG, JAVA, SPARK, FRAZIL = "PyIceberg", "Java", "frazil on Spark", "frazil"
CONTENDERS = (PYICEBERG, JAVA, SPARK, FRAZIL)
WORTH = 0.5
"""The least share of files that a filter on a column of the z-order is to leave out."""


def build(lake: frazil.Lake, name: str, rows: int, files: int) -> frazil.Table:
    """Write a table, an append for each file; values are random, so that no file can be pruned."""
    table = lake.create_table(name, DDL)
    random = np.random.default_rng(1)
    size = rows // files
    for _ in range(files):
        ids = random.integers(0, rows, size)
        table.append(
            pa.table(
                {
                    "id": ids,
                    "small": random.integers(0, 1000, size, dtype=np.int32),
                    "score": random.random(size),
                    "kind": pa.array(KINDS[random.integers(0, len(KINDS), size)], pa.string()),
                    "name": pa.array([f"name of {one}" for one in ids.tolist()]),
                }
            )
        )
    return table


def build_described(lake: frazil.Lake, name: str, files: int, *, exist: bool = False) -> frazil.Table:
    """Make a table of files that are described and, unless they are to exist, not there; partitions are mixed."""
    table = lake.create_table(
        name,
        "id bigint, part int",
        partition_by=["part"],
        properties={"commit.manifest-merge.enabled": "false", "commit.manifest.target-size-bytes": str(1 << 20)},
    )
    random = np.random.default_rng(2)
    old = time.time() - 10 * DAY_S
    for start in range(0, files, FILES_PER_MANIFEST):
        parts = random.integers(0, 100, min(FILES_PER_MANIFEST, files - start)).tolist()
        described = []
        for at, part in enumerate(parts):
            path = f"{table.location}/data/part={part}/{start + at:08}.parquet"
            if exist:
                real = Path(path.removeprefix("file://"))
                real.parent.mkdir(parents=True, exist_ok=True)
                real.touch()
                os.utime(real, (old, old))
            described.append(DataFile(path, FileFormat.PARQUET, 1000, 10_000, partition=(part,)))
        commit_actions(table._catalog, table.refresh().state, Append(tuple(described)))
    if exist:
        for at in range(STRAYS):
            stray = Path(table.location.removeprefix("file://"), "data", f"stray-{at}.parquet")
            stray.touch()
            os.utime(stray, (old, old))
    return table.refresh()


class Java:
    """The Java runtime in a process of its own; `is_up` says whether it can be had."""

    def __init__(self, warehouse: Path, memory: str) -> None:
        self.is_up = False
        self.peak_mib = 0.0
        if not JAVA_PYTHON.exists():
            return
        self.process = subprocess.Popen(
            [JAVA_PYTHON, Path(__file__).with_name("java_maintenance.py"), PACKAGE, str(warehouse), memory, "2"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.is_up = self._answer().get("ok") is True
        if self.is_up:
            self.sql("select 1")

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        return {"ok": False, "why": "the process ended"}

    def sql(self, text: str) -> float:
        """Run a statement and return the seconds that it took."""
        assert self.process.stdin is not None
        print(json.dumps(text), file=self.process.stdin, flush=True)
        answer = self._answer()
        if not answer["ok"]:
            raise SystemExit(f"the Java runtime failed at {text}\n{answer['why']}")
        self.peak_mib = answer["peak"]
        seconds: float = answer["seconds"]
        return seconds

    def close(self) -> None:
        """End the process."""
        if hasattr(self, "process"):
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait(120)


class Spark:
    """frazil on a Spark session of this process."""

    def __init__(self, memory: str) -> None:
        from pyspark.sql import SparkSession

        self.session = (
            SparkSession.builder.master("local[2]")
            .config("spark.driver.memory", memory)
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )
        self.session.sparkContext.setLogLevel("OFF")
        self.pid = self.session.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        self.session.sql("select 1").collect()

    def peak_mib(self) -> float:
        """Return the most memory that the JVM has had, in MiB."""
        return peak_mib(self.pid)


def peak_mib(pid: int | str = "self") -> float:
    """Return the most memory that a process has had, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(one.split()[1]) for one in lines if one.startswith("VmHWM")) / 1024


class Times:
    """Seconds by what was done to which size and by whom, and the memory that frazil took for it."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, int, str], dict[str, list[float]]] = {}
        self.memory: dict[str, dict[int, float]] = {}
        self.cpu: dict[tuple[str, int], float] = {}
        self.counts = True

    def note(self, what: str, size: int, unit: str, who: str, seconds: float) -> None:
        """Keep a measure, unless this is to warm up."""
        if self.counts:
            self.found.setdefault((what, size, unit), {}).setdefault(who, []).append(seconds)

    def run(self, what: str, size: int, unit: str, who: str, work: Callable[[], object]) -> None:
        """Do some work and note how long it took, and of frazil how much memory it took on top."""
        gc.collect()
        pa.default_memory_pool().release_unused()
        # Where the kernel allows it, the peak starts anew.
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        before = peak_mib()
        start, cpu = time.perf_counter(), time.process_time()
        work()
        self.note(what, size, unit, who, time.perf_counter() - start)
        self.cpu[what, size] = time.process_time() - cpu
        if self.counts and who == FRAZIL:
            taken = self.memory.setdefault(what, {})
            taken[size] = max(taken.get(size, 0.0), peak_mib() - before)


def options_for(table: frazil.Table, files: int) -> dict[str, str]:
    """Return the options of a rewrite of all rows into about so many files."""
    size = sum(one.data_file.file_size_in_bytes for one in table.refresh().scan().plan().tasks)
    target = max(size // files, 1)
    return {"rewrite-all": "true", "target-file-size-bytes": str(target), "min-file-size-bytes": "1"}


def shares(table: frazil.Table, rows: int) -> dict[str, float]:
    """Return the share of files that filters leave out."""
    every = len(table.refresh().scan().plan().tasks)
    filters = (f"id = {rows // 3}", "score >= 0.5 and score <= 0.501")
    return {where: 1 - len(table.scan(where).plan().tasks) / every for where in filters}


def maintain_frazil(
    times: Times, who: str, table: frazil.Table, rows: int, out: int, *, on_spark: bool
) -> dict[str, float]:
    """Rewrite a table in all ways and expire what that leaves; return what filters leave out after z-order."""
    maintain = table.maintain
    times.run("bin-pack", rows, "rows", who, lambda: maintain.rewrite_data_files(on_spark=on_spark))
    options = options_for(table, out)
    for what, order in ORDERS.items():
        times.run(
            what,
            rows,
            "rows",
            who,
            lambda order=order: maintain.rewrite_data_files("sort", order, options=options, on_spark=on_spark),  # type: ignore[misc]
        )
    found = shares(table, rows)
    if not on_spark:
        count = len(table.snapshots) - 1
        times.run("expiry", count, "snapshots", who, lambda: maintain.expire_snapshots(older_than=2**62))
    assert table.refresh().scan().count() == rows
    return found


def maintain_java(times: Times, java: Java, table: frazil.Table, name: str, rows: int, out: int) -> dict[str, float]:
    """Do the same with the Java runtime's procedures."""

    def call(what: str, size: int, unit: str, text: str) -> None:
        times.note(what, size, unit, JAVA, java.sql(f"call java.system.{text}"))

    call("bin-pack", rows, "rows", f"rewrite_data_files(table => '{name}')")
    texts = ", ".join(f"'{key}', '{value}'" for key, value in options_for(table, out).items())
    for what, order in ORDERS.items():
        call(
            what,
            rows,
            "rows",
            f"rewrite_data_files(table => '{name}', strategy => 'sort', sort_order => '{order}', "
            f"options => map({texts}))",
        )
    found = shares(table, rows)
    count = len(table.snapshots) - 1
    call("expiry", count, "snapshots", f"expire_snapshots(table => '{name}', older_than => timestamp'2100-01-01')")
    assert table.refresh().scan().count() == rows
    return found


def maintain_pyiceberg(times: Times, folder: Path, rows: int, files: int) -> None:
    """Read a table and overwrite it, as users of PyIceberg do."""
    shutil.rmtree(folder / "sql", ignore_errors=True)
    with frazil.connect(folder / "sql") as lake:
        table = build(lake, "db.theirs", rows, files)
        found = next((folder / "sql").glob("*.db"))
        peer = SqlCatalog("lake", uri=f"sqlite:///{found}", warehouse=f"file://{folder / 'sql'}")

        def overwrite() -> None:
            loaded = peer.load_table("db.theirs")
            loaded.overwrite(loaded.scan().to_arrow())

        times.run("bin-pack", rows, "rows", PYICEBERG, overwrite)
        assert table.refresh().scan().count() == rows
    shutil.rmtree(folder / "sql")


def metadata_only(times: Times, lake: frazil.Lake, java: Java | None, files: int) -> None:
    """Rewrite the manifests of many files, and look for orphans among as many."""
    ours = build_described(lake, "db.manifests", files)
    times.run("manifests", files, "files", FRAZIL, ours.maintain.rewrite_manifests)
    if java is not None:
        build_described(lake, "db.java_manifests", files)
        seconds = java.sql("call java.system.rewrite_manifests('db.java_manifests')")
        times.note("manifests", files, "files", JAVA, seconds)
    table = build_described(lake, "db.orphans", files, exist=True)
    found: list[int] = []
    times.run(
        "orphans, dry run",
        files,
        "files",
        FRAZIL,
        lambda: found.append(len(table.maintain.remove_orphan_files(dry_run=True).orphan_file_locations)),
    )
    assert found == [STRAYS], found
    if java is not None:
        seconds = java.sql("call java.system.remove_orphan_files(table => 'db.orphans', dry_run => true)")
        times.note("orphans, dry run", files, "files", JAVA, seconds)


@contextmanager
def java_beside(warehouse: Path, memory: str) -> Iterator[Java | None]:
    """Give the Java runtime, None where it cannot be had."""
    java = Java(warehouse, memory)
    try:
        yield java if java.is_up else None
    finally:
        java.close()


def maintain_all(
    times: Times, folder: Path, java: Java | None, rows: int, files: int, manifest_files: int, out: int
) -> dict[str, dict[str, float]]:
    """Let everybody do everything once, each with tables of its own; return what filters leave out after z-order."""
    found: dict[str, dict[str, float]] = {}
    rows = rows // files * files
    warehouse = folder / "lake"
    with frazil.connect(warehouse, catalog="filesystem") as lake:
        maintain_pyiceberg(times, folder, rows, files)
        if java is not None:
            table = build(lake, "db.java", rows, files)
            found[JAVA] = maintain_java(times, java, table, "db.java", rows, out)
        for who in (SPARK, FRAZIL):
            table = build(lake, f"db.{who.replace(' ', '_')}", rows, files)
            found[who] = maintain_frazil(times, who, table, rows, out, on_spark=who == SPARK)
        metadata_only(times, lake, java, manifest_files)
    # What this leaves is not the next one's, and the catalog is the folder.
    for one in warehouse.iterdir():
        shutil.rmtree(one)
    return found


def rewrite_alone(rows: int, files: int, out: int) -> None:
    """Rewrite tables of two sizes in this process, and print the memory and the time that it takes."""
    times = Times()
    with tempfile.TemporaryDirectory() as name, frazil.connect(Path(name), catalog="filesystem") as lake:
        for times.counts, size, count in (
            (False, WARM_ROWS, WARM_FILES),
            (True, rows // 10, files // 10),
            (True, rows, files),
        ):
            table = build(lake, f"db.of_{size}", size // count * count, count)
            maintain_frazil(times, FRAZIL, table, size // count * count, out, on_spark=False)
            lake.drop_table(f"db.of_{size}", purge=True)
    for (what, size, unit), seconds in times.found.items():
        taken = times.memory[what][size]
        cpu = times.cpu[what, size]
        print(
            f"{what:12}{size:>14,} {unit:10}{taken:8,.0f} MiB{seconds[FRAZIL][0]:10.2f} s{cpu:10.2f} s of the processor"
        )


def main() -> None:
    """Build, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=scaled(2_000_000))
    parser.add_argument("--files", type=int, default=scaled(200))
    parser.add_argument("--out-files", type=int, default=64, help="files after sorting and z-order, about")
    parser.add_argument("--manifest-files", type=int, default=scaled(50_000))
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--memory", default="4g", help="of each JVM")
    parser.add_argument("--alone", action="store_true", help="only rows, and only frazil in this process")
    options = parser.parse_args()
    if options.alone:
        rewrite_alone(options.rows, options.files, options.out_files)
        return
    times = Times()
    found: dict[str, dict[str, float]] = {}
    spark = Spark(options.memory)
    sizes = [(options.rows // part, options.files // part, options.manifest_files // part) for part in (16, 4, 1)]
    with tempfile.TemporaryDirectory() as name, java_beside(Path(name) / "lake", options.memory) as java:

        def do(rows: int, files: int, manifest_files: int) -> None:
            files = max(files, WARM_FILES)
            rows, manifest_files = max(rows, files), max(manifest_files, STRAYS)
            found.update(maintain_all(times, Path(name), java, rows, files, manifest_files, options.out_files))

        times.counts = False
        do(WARM_ROWS, WARM_FILES, STRAYS)
        times.counts = True
        for _ in range(options.runs):
            for one in sizes:
                do(*one)
        peaks = {SPARK: spark.peak_mib()} | ({} if java is None else {JAVA: java.peak_mib})
    spark.session.stop()
    show(times, found, peaks)


def show(times: Times, found: dict[str, dict[str, float]], peaks: dict[str, float]) -> None:
    """Print and keep what was measured; what filters leave out must be worth it."""
    results = Results("rewrite_files", CONTENDERS, versions={"iceberg-spark-runtime": PACKAGE.rpartition(":")[2]})
    for (what, size, unit), seconds in times.found.items():
        results.add(what, size, unit, {one: seconds[one] for one in CONTENDERS if one in seconds})
    results.write()
    print("\nmemory that frazil takes in this process, in MiB")
    for what, by_size in times.memory.items():
        print(f"{what:34}" + "".join(f"{size:>14,}: {taken:6,.0f}" for size, taken in by_size.items()))
    for who, peak in peaks.items():
        print(f"{'the JVM of ' + who + ', all in all':34}{peak:,.0f}")
    print("\nafter z-order, files that a filter leaves out")
    for who, by_filter in found.items():
        for where, share in by_filter.items():
            print(f"{where:34}{who:>18}{share:10.0%}")
    worst = min(share for who in (SPARK, FRAZIL) for share in found[who].values())
    if worst < WORTH:
        raise SystemExit(f"a filter on a column of the z-order leaves out {worst:.0%} of the files only")


if __name__ == "__main__":
    main()
