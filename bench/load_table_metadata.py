"""Loading the metadata of a table with many snapshots: time and memory, beside PyIceberg.

Both read the same file, as a writer would have written it, with a 16-key summary in each snapshot. Each
measurement is a fresh interpreter that has loaded a small file before; the contenders take turns, and the best
of each is printed, which other work on the machine disturbs least. Memory is the resident set (tracemalloc
sees little of what C code allocates): `peak` counts the file's bytes too, `kept` is what stays afterwards. The table
has three sizes: a hundredth, a tenth and all of the snapshots.

frazil checks every snapshot while loading and builds them when they are asked for, so the last row reads all.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from bench.measure import Results, scaled

CONTENDERS = ("frazil", "pyiceberg")
NAMES = {"frazil": "frazil", "pyiceberg": "PyIceberg"}
TASKS = ("load", "load and read the current snapshot", "load and read every snapshot")
LIMIT = 1 / 3
"""What the design promises: at most this part of PyIceberg's time and memory for a load."""


def document(count: int) -> dict[str, Any]:
    """Make the metadata of a table that was appended to `count` times."""
    rng = random.Random(count)
    base = "s3://warehouse-bucket/prod/sales.db/events"
    snapshots, log = [], []
    parent: int | None = None
    at_ms, total_records, total_bytes = 1_700_000_000_000, 0, 0
    for number in range(1, count + 1):
        snapshot_id = rng.getrandbits(63)
        at_ms += rng.randrange(1_000, 60_000)
        records = rng.randrange(1, 100_000)
        total_records, total_bytes = total_records + records, total_bytes + records * 40
        application = f"application_1700000000000_{number // 50:04d}"
        snapshot: dict[str, Any] = {"sequence-number": number, "snapshot-id": snapshot_id}
        if parent is not None:
            snapshot["parent-snapshot-id"] = parent
        snapshot |= {
            "timestamp-ms": at_ms,
            "summary": {
                "operation": "append",
                "spark.app.id": application,
                "added-data-files": str(rng.randrange(1, 50)),
                "added-records": str(records),
                "added-files-size": str(records * 40),
                "changed-partition-count": str(rng.randrange(1, 9)),
                "total-records": str(total_records),
                "total-files-size": str(total_bytes),
                "total-data-files": str(number * 20),
                "total-delete-files": "0",
                "total-position-deletes": "0",
                "total-equality-deletes": "0",
                "engine-version": "3.5.4",
                "app-id": application,
                "engine-name": "spark",
                "iceberg-version": "Apache Iceberg 1.9.1 (commit f40208ae6fb2f33e578c2637d3dea1db18739f31)",
            },
            "manifest-list": f"{base}/metadata/snap-{snapshot_id}-1-{uuid.UUID(int=rng.getrandbits(128))}.avro",
            "schema-id": 0,
        }
        snapshots.append(snapshot)
        log.append({"timestamp-ms": at_ms, "snapshot-id": snapshot_id})
        parent = snapshot_id
    fields = [{"id": one, "name": f"column_{one}", "required": False, "type": "long"} for one in range(1, 31)]
    return {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": base,
        "last-sequence-number": count,
        "last-updated-ms": at_ms,
        "last-column-id": 30,
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {"owner": "bench", "write.parquet.compression-codec": "zstd"},
        "current-snapshot-id": parent,
        "refs": {"main": {"snapshot-id": parent, "type": "branch"}},
        "snapshots": snapshots,
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": log,
        "metadata-log": [
            {"timestamp-ms": at_ms - 100 + one, "metadata-file": f"{base}/metadata/{one:05d}.metadata.json"}
            for one in range(100)
        ],
    }


def load_with_frazil(path: Path, task: str) -> Any:
    """Load a file with frazil."""
    from frazil.codec.table_metadata_json import decode_table_metadata

    table = decode_table_metadata(path.read_bytes(), path=str(path))
    if task == TASKS[1]:
        return table, table.current_snapshot
    return (table, list(table.snapshots)) if task == TASKS[2] else table


def load_with_pyiceberg(path: Path, task: str) -> Any:
    """Load a file with PyIceberg."""
    from pyiceberg.serializers import FromByteStream

    with path.open("rb") as stream:
        table = FromByteStream.table_metadata(stream)
    if task == TASKS[1]:
        return table, table.current_snapshot()
    return (table, list(table.snapshots)) if task == TASKS[2] else table


LOADERS = {"frazil": load_with_frazil, "pyiceberg": load_with_pyiceberg}


def resident_mb(field: str) -> float:
    """Return a field of this process's status, in MB."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def measure(contender: str, task: str, small: Path, large: Path) -> dict[str, float]:
    """Load the large file once, in this process, and say what it took."""
    LOADERS[contender](small, task)
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak starts anew
    before_mb = resident_mb("VmRSS")
    start = time.perf_counter()
    kept = LOADERS[contender](large, task)
    seconds = time.perf_counter() - start
    after_mb, peak_mb = resident_mb("VmRSS"), resident_mb("VmHWM")
    del kept
    return {"ms": seconds * 1000, "peak": peak_mb - before_mb, "kept": after_mb - before_mb}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--snapshots", type=int, default=scaled(10_000))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--measure", nargs=4, metavar=("CONTENDER", "TASK", "SMALL", "LARGE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        contender, task, small, large = options.measure
        print(json.dumps(measure(contender, task, Path(small), Path(large))))
        return
    kept = Results("load_table_metadata", ["PyIceberg", "frazil"], prints=False)
    for count in (options.snapshots // 100, options.snapshots // 10, options.snapshots):
        compare(max(count, 1), options.runs, kept)
    kept.write()


def compare(count: int, repeats: int, kept: Results) -> None:
    """Load a table of so many snapshots in every way, each time in a fresh interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder, "small.metadata.json"), Path(folder, "large.metadata.json")
        small.write_text(json.dumps(document(100), separators=(",", ":")), "utf-8")
        large.write_text(json.dumps(document(count), separators=(",", ":")), "utf-8")
        print(f"{count:,} snapshots, {large.stat().st_size / 1e6:.1f} MB, best of {repeats} runs\n")
        print(f"{'task':<36} {'contender':<10} {'ms':>8} {'peak MB':>9} {'kept MB':>9}")
        for task in TASKS:
            runs: dict[str, list[dict[str, float]]] = {one: [] for one in CONTENDERS}
            for _ in range(repeats):
                for one in CONTENDERS:
                    command = [sys.executable, "-m", "bench.load_table_metadata", "--measure", one, task]
                    runs[one].append(json.loads(subprocess.check_output([*command, str(small), str(large)])))
            report(task, runs)
            seconds = {NAMES[one]: [run["ms"] / 1000 for run in found] for one, found in runs.items()}
            kept.add(task, count, "snapshots", seconds)


def report(task: str, runs: dict[str, list[dict[str, float]]]) -> None:
    """Print the rows of one task."""
    best = {
        contender: {name: min(one[name] for one in found) for name in ("ms", "peak", "kept")}
        for contender, found in runs.items()
    }
    for contender, found in best.items():
        print(f"{task:<36} {contender:<10} {found['ms']:>8.1f} {found['peak']:>9.1f} {found['kept']:>9.1f}")
    # A small file leaves no trace in the resident set.
    ratios = {name: best["frazil"][name] / max(best["pyiceberg"][name], 0.1) for name in ("ms", "peak", "kept")}
    verdict = (
        ""
        if task != TASKS[0] or best["pyiceberg"]["peak"] < 10
        else ("  within 1/3" if max(ratios.values()) <= LIMIT else "  NOT within 1/3")
    )
    print(f"{'':<36} {'ratio':<10} {ratios['ms']:>8.2f} {ratios['peak']:>9.2f} {ratios['kept']:>9.2f}{verdict}\n")


if __name__ == "__main__":
    main()
