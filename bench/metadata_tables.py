"""Metadata tables of a large table: frazil against PyIceberg on the same metadata, each read in a fresh process.

    python -m bench.metadata_tables [--files 40000] [--rounds 2]

Ten columns with metrics and one partition field; no data files are needed. A read is from the metadata file to
the finished Arrow table, with imports. Three sizes: a hundredth, a tenth and all of the files. Contenders alternate;
times are medians, memory is the largest resident size. PyIceberg has no choice of columns and not all of the tables;
those are frazil's alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import Results, scaled
from bench.planning_table import make_planning_table

FILES_PER_MANIFEST = 8_000
READS: dict[str, tuple[str, list[str] | None]] = {
    "files": ("files", None),
    "entries": ("entries", None),
    "all_files": ("all_files", None),
    "partitions": ("partitions", None),
    "manifests": ("manifests", None),
    "files: path and size": ("files", ["file_path", "file_size_in_bytes"]),
    "files: bounds of one column": ("files", ["file_path", "readable_metrics.c3"]),
    "files: all but metrics": (
        "files",
        ["content", "file_path", "file_format", "spec_id", "partition", "record_count", "file_size_in_bytes"],
    ),
}
"""What is read: a metadata table, and the columns of it, None for all."""


def read_with_frazil(metadata: str, read: str) -> int:
    """Return how many rows frazil reads."""
    from frazil.codec.table_metadata_json import decode_table_metadata
    from frazil.loaded import LoadedTable
    from frazil.metadata_tables.tables import read_metadata_table
    from frazil.storage.local import LocalStorage

    storage = LocalStorage()
    loaded = LoadedTable(("bench",), decode_table_metadata(storage.read(metadata)), metadata, storage)
    name, columns = READS[read]
    return int(read_metadata_table(loaded, name, columns=columns).num_rows)


def read_with_pyiceberg(metadata: str, read: str) -> int:
    """Return how many rows PyIceberg reads."""
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(metadata.removeprefix("file://"))
    return int(getattr(table.inspect, READS[read][0])().num_rows)


CONTENDERS = {"frazil": read_with_frazil, "PyIceberg": read_with_pyiceberg}


def run_one(contender: str, metadata: str, read: str) -> None:
    """Read once, and print what it took; runs in a process of its own."""
    start = time.perf_counter()
    rows = CONTENDERS[contender](metadata, read)
    seconds = time.perf_counter() - start
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"rows": rows, "seconds": seconds, "megabytes": size}))


def measure(contender: str, metadata: str, read: str) -> dict[str, float]:
    """Read once in a fresh process."""
    command = [sys.executable, "-m", "bench.metadata_tables", "--one", contender, metadata, read]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def compare(metadata: str, read: str, files: int, rounds: int, kept: Results) -> str:
    """Keep the times of each contender; return a line of the result: what was read, and the medians."""
    contenders = [name for name in CONTENDERS if name == "frazil" or READS[read][1] is None]
    results: dict[str, list[dict[str, float]]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name in contenders:
            results[name].append(measure(name, metadata, read))
    rows = {int(one["rows"]) for found in results.values() for one in found}
    if len(rows) != 1:
        raise SystemExit(f"the contenders disagree on the rows of {read}: {sorted(rows)}")
    kept.add(read, files, "files", {name: [one["seconds"] for one in found] for name, found in results.items()})
    line = f"{read:<28} {rows.pop():>9,}"
    seconds = {}
    for name, found in results.items():
        seconds[name] = statistics.median(one["seconds"] for one in found)
        line += f"  {seconds[name]:>7.2f} s {max(one['megabytes'] for one in found):>7,.0f} MB"
    if "PyIceberg" in seconds:
        line += f"  {seconds['PyIceberg'] / seconds['frazil']:>6.1f}x"
    return line


def main() -> None:
    """Make the metadata, then read each table in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=scaled(40_000))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--one", nargs=3, metavar=("CONTENDER", "METADATA", "READ"))
    given = parser.parse_args()
    if given.one is not None:
        run_one(*given.one)
        return
    kept = Results("metadata_tables", ["PyIceberg", "frazil"], prints=False)
    for files in (max(given.files // 100, 1), max(given.files // 10, 1), given.files):
        manifests = -(-files // FILES_PER_MANIFEST)
        with tempfile.TemporaryDirectory(prefix="frazil-bench-") as folder:
            loaded = make_planning_table(Path(folder), files, manifests)
            assert loaded.metadata_location is not None
            print(f"\n{files:,} files in {manifests} manifests, median of {given.rounds}")
            print(f"{'':<28} {'rows':>9}  {'frazil':>20}  {'PyIceberg':>20}")
            for read in READS:
                print(compare(loaded.metadata_location, read, files, given.rounds, kept), flush=True)
    kept.write()


if __name__ == "__main__":
    main()
