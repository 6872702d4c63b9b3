"""Maintain a table with frazil, with PyIceberg as far as it can, and with Iceberg's Java runtime, side by side.

    python bench/rewrite_files.py [--rows 2000000] [--files 200] [--manifest-files 20000] [--runs 3] [--spark]
    python bench/rewrite_files.py --full        10 million rows in 1,000 files, 1,000 snapshots, 100,000 files

    bin-pack, sort, z-order    of a table of many small files, an append for each
    expiry                     of the snapshots that this leaves
    manifests                  of many files in many manifests, clustered by partition; the files do not exist
    orphans                    a table of as many files that do, and a hundred that it does not know: a dry run

PyIceberg has no compaction: its users read the table and overwrite it, which is what is timed, all rows in memory and a
conflict with every other writer. The Java runtime is there where `.venv-spark-4.1` is and its package can be had; it
runs on Spark with two cores, and its first query is not timed. frazil works in this process, and with `--spark` also on
Spark. Every engine gets tables of its own, all written by frazil into one folder in the layout of the Hadoop catalog,
and the runs of engines alternate. Medians are printed: of the time that passed and of the processors' time, the latter
also as a ratio, since other programs on the machine disturb it least. After z-order, the share of files that a filter
on either column leaves out is printed for each engine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
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

Measure = tuple[float, float]
"""Seconds that passed, and seconds of the processors."""


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
        commit_actions(table._catalog, table.refresh()._loaded, Append(tuple(described)))
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

    def sql(self, text: str) -> Measure:
        """Run a statement and return how long it took."""
        assert self.process.stdin is not None
        print(json.dumps(text), file=self.process.stdin, flush=True)
        answer = self._answer()
        if not answer["ok"]:
            raise SystemExit(f"the Java runtime failed at {text}\n{answer['why']}")
        self.peak_mib = answer["peak"]
        return answer["seconds"], answer["cpu"]

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

    def jvm_seconds(self) -> float:
        """Return the processor's time of the JVM."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Times:
    """Measures by what was done and who did it."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, list[Measure]]] = {}

    def note(self, what: str, who: str, measure: Measure) -> None:
        """Keep a measure."""
        self.found.setdefault(what, {}).setdefault(who, []).append(measure)

    def run(self, what: str, who: str, work: Callable[[], object], spark: Spark | None = None) -> None:
        """Do some work and note how long it took."""
        start, cpu = time.perf_counter(), time.process_time() + (0 if spark is None else spark.jvm_seconds())
        work()
        used = time.process_time() + (0 if spark is None else spark.jvm_seconds()) - cpu
        self.note(what, who, (time.perf_counter() - start, used))

    def show(self) -> None:
        """Print the medians; ratios are to frazil in this process."""
        print(f"{'':50}{'seconds':>10}{'CPU':>10}{'ratio':>8}")
        for what, by_engine in self.found.items():
            medians = {
                who: (statistics.median(one for one, _ in found), statistics.median(one for _, one in found))
                for who, found in by_engine.items()
            }
            base = medians["frazil"][1]
            for who, (passed, cpu) in medians.items():
                print(f"{what + ', ' + who:50}{passed:10.2f}{cpu:10.2f}{cpu / base:8.2f}")


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
    times: Times, who: str, table: frazil.Table, rows: int, out: int, spark: Spark | None
) -> dict[str, float]:
    """Rewrite a table in all ways and expire what that leaves; return what filters leave out after z-order."""
    on_spark = spark is not None
    maintain = table.maintain
    times.run("bin-pack", who, lambda: maintain.rewrite_data_files(on_spark=on_spark), spark)
    options = options_for(table, out)
    times.run(
        "sort by id", who, lambda: maintain.rewrite_data_files("sort", "id", options=options, on_spark=on_spark), spark
    )
    times.run(
        "z-order by id and score",
        who,
        lambda: maintain.rewrite_data_files("sort", "zorder(id, score)", options=options, on_spark=on_spark),
        spark,
    )
    found = shares(table, rows)
    if not on_spark:
        count = len(table.snapshots) - 1
        times.run(f"expire {count} snapshots", who, lambda: maintain.expire_snapshots(older_than=2**62))
    assert table.refresh().scan().count() == rows
    return found


def maintain_java(times: Times, java: Java, table: frazil.Table, name: str, rows: int, out: int) -> dict[str, float]:
    """Do the same with the Java runtime's procedures."""

    def call(what: str, text: str) -> None:
        times.note(what, "Java", java.sql(f"call java.system.{text}"))

    call("bin-pack", f"rewrite_data_files(table => '{name}')")
    texts = ", ".join(f"'{key}', '{value}'" for key, value in options_for(table, out).items())
    for what, order in (("sort by id", "id"), ("z-order by id and score", "zorder(id, score)")):
        call(
            what,
            f"rewrite_data_files(table => '{name}', strategy => 'sort', sort_order => '{order}', "
            f"options => map({texts}))",
        )
    found = shares(table, rows)
    count = len(table.snapshots) - 1
    call(f"expire {count} snapshots", f"expire_snapshots(table => '{name}', older_than => timestamp'2100-01-01')")
    assert table.refresh().scan().count() == rows
    return found


def maintain_pyiceberg(times: Times, folder: Path, rows: int, files: int, run: int) -> None:
    """Read a table and overwrite it, as users of PyIceberg do."""
    with frazil.connect(folder / "sql") as lake:
        table = build(lake, f"db.theirs{run}", rows, files)
        found = next((folder / "sql").glob("*.db"))
        peer = SqlCatalog("lake", uri=f"sqlite:///{found}", warehouse=f"file://{folder / 'sql'}")

        def overwrite() -> None:
            loaded = peer.load_table(f"db.theirs{run}")
            loaded.overwrite(loaded.scan().to_arrow())

        times.run("bin-pack", "PyIceberg (read and overwrite)", overwrite)
        assert table.refresh().scan().count() == rows


def metadata_only(times: Times, lake: frazil.Lake, java: Java | None, files: int, run: int) -> None:
    """Rewrite the manifests of many files, and look for orphans among as many."""
    what = f"manifests of {files:,} files"
    ours = build_described(lake, f"db.manifests{run}", files)
    times.run(what, "frazil", ours.maintain.rewrite_manifests)
    if java is not None:
        build_described(lake, f"db.java_manifests{run}", files)
        times.note(what, "Java", java.sql(f"call java.system.rewrite_manifests('db.java_manifests{run}')"))
    what = f"orphans among {files:,} files, dry run"
    table = build_described(lake, f"db.orphans{run}", files, exist=True)
    found: list[int] = []
    times.run(
        what,
        "frazil",
        lambda: found.append(len(table.maintain.remove_orphan_files(dry_run=True).orphan_file_locations)),
    )
    assert found == [STRAYS], found
    if java is not None:
        times.note(
            what,
            "Java",
            java.sql(f"call java.system.remove_orphan_files(table => 'db.orphans{run}', dry_run => true)"),
        )


@contextmanager
def java_beside(warehouse: Path, memory: str, *, is_wanted: bool) -> Iterator[Java | None]:
    """Give the Java runtime, None where it is not wanted or cannot be had."""
    java = Java(warehouse, memory) if is_wanted else None
    try:
        yield java if java is not None and java.is_up else None
    finally:
        if java is not None:
            java.close()


def main() -> None:
    """Build, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the 10 million rows in 1,000 files")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--out-files", type=int, default=64, help="files after sorting and z-order, about")
    parser.add_argument("--manifest-files", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory", default="4g", help="of each JVM")
    parser.add_argument("--spark", action="store_true", help="frazil on Spark, too")
    parser.add_argument("--no-jar", action="store_true")
    parser.add_argument("--no-pyiceberg", action="store_true")
    options = parser.parse_args()
    if options.full:
        options.rows, options.files, options.manifest_files = 10_000_000, 1_000, 100_000
    rows = options.rows // options.files * options.files
    times = Times()
    found: dict[str, dict[str, float]] = {}
    spark = Spark(options.memory) if options.spark else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        warehouse = folder / "lake"
        with (
            frazil.connect(warehouse, catalog="filesystem") as lake,
            java_beside(warehouse, options.memory, is_wanted=not options.no_jar) as java,
        ):
            for run in range(options.runs):
                table = build(lake, f"db.ours{run}", rows, options.files)
                found["frazil"] = maintain_frazil(times, "frazil", table, rows, options.out_files, None)
                if spark is not None:
                    table = build(lake, f"db.spark{run}", rows, options.files)
                    found["frazil on Spark"] = maintain_frazil(
                        times, "frazil on Spark", table, rows, options.out_files, spark
                    )
                if java is not None:
                    table = build(lake, f"db.java{run}", rows, options.files)
                    found["Java"] = maintain_java(times, java, table, f"db.java{run}", rows, options.out_files)
                if not options.no_pyiceberg:
                    maintain_pyiceberg(times, folder, rows, options.files, run)
                metadata_only(times, lake, java, options.manifest_files, run)
            peaks = {} if java is None else {"Java": java.peak_mib}
    peaks["this process"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{rows:,} rows in {options.files} files, medians of {options.runs} runs\n")
    times.show()
    print("\nafter z-order, files that a filter leaves out")
    for who, by_filter in found.items():
        for where, share in by_filter.items():
            print(f"{where + ', ' + who:50}{share:10.0%}")
    for who, peak in peaks.items():
        print(f"peak memory, {who}: {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
