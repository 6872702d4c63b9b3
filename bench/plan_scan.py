"""Planning a filtered scan: frazil against PyIceberg on the same metadata, each plan in a fresh process.

    python bench/plan_scan.py [--sizes 10000,100000,1000000] [--rounds 3]

A table of ten columns with bounds is described (no data files are needed to plan), 25 manifests for 100,000
files, 125 for 1,000,000; with deletes, every hundredth file has a file of deleted positions. Cold is the first plan
of a process, its packages imported: reading the table's metadata, the manifest list and every manifest that the filter
does not rule out, up to the list of tasks. PyIceberg plans a million files once, since it takes a minute.
Contenders alternate; times are medians, memory is the largest resident size. Processor time is what all cores together
took: frazil decodes on as many as there are, PyIceberg's threads wait for each other.
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
from importlib import import_module
from pathlib import Path

import pyarrow as pa
from bench.measure import Results, scaled
from bench.planning_table import FILES_PER_DAY, FIRST_DAY, ROWS, add_deletes, make_planning_table

MANIFESTS = {10_000: 3, 100_000: 25, 1_000_000: 125}
MICROS_PER_DAY = 86_400_000_000
PROMISES = {100_000: 10, 1_000_000: 30}
"""What the design promises of a cold plan that prunes by a column: how many times as fast as PyIceberg's."""
MEGABYTES = 400
"""And how much memory it stays under."""
LARGE = 100_000
"""From so many files on, plans take long enough that two are enough."""
DELETES = "all files, with deletes"


def plan_with_frazil(metadata: str, text: str) -> int:
    """Return how many files frazil plans, deletes of each among them."""
    from frazil.codec.table_metadata_json import decode_table_metadata
    from frazil.expr.predicates import TRUE
    from frazil.loaded import LoadedTable
    from frazil.scan.plan import plan_scan
    from frazil.storage.local import LocalStorage

    storage = LocalStorage()
    loaded = LoadedTable(("bench",), decode_table_metadata(storage.read(metadata)), metadata, storage)
    return sum(1 + len(task.delete_files) for task in plan_scan(loaded, text or TRUE).tasks)


def plan_with_pyiceberg(metadata: str, text: str) -> int:
    """Return how many files PyIceberg plans, deletes of each among them."""
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(metadata.removeprefix("file://"))
    tasks = table.scan(**({"row_filter": text} if text else {})).plan_files()
    return sum(1 + len(task.delete_files) for task in tasks)


PACKAGES = {
    "frazil": ("datafusion", "frazil.scan.plan", "frazil.storage.local"),
    "PyIceberg": ("pyiceberg.table", "pyiceberg.io.pyarrow", "pyiceberg.expressions.parser"),
}
CONTENDERS = {"frazil": plan_with_frazil, "PyIceberg": plan_with_pyiceberg}


def run_one(contender: str, metadata: str, text: str) -> None:
    """Plan once, and print what it took; runs in a process of its own."""
    for module in PACKAGES[contender]:
        import_module(module)
    # The first value that pyarrow makes imports pandas, where that is installed.
    pa.scalar(1)
    start, work = time.perf_counter(), time.process_time()
    files = CONTENDERS[contender](metadata, text)
    seconds, work = time.perf_counter() - start, time.process_time() - work
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"files": files, "seconds": seconds, "work": work, "megabytes": size}))


def measure(contender: str, metadata: str, text: str) -> dict[str, float]:
    """Plan once in a fresh process."""
    command = [sys.executable, "-m", "bench.plan_scan", "--one", contender, metadata, text]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def filters(size: int) -> dict[str, str]:
    """Return the filters to plan: none, one on a column without partitions, and one on the partition's column."""
    first = size // 2 * ROWS
    day = (FIRST_DAY + size // FILES_PER_DAY // 2) * MICROS_PER_DAY
    start, end = (_iso(one) for one in (day, day + MICROS_PER_DAY))
    return {
        "all files": "",
        "one column": f"c3 >= {first} and c3 < {first + 5 * ROWS}",
        "partition": f"ts >= '{start}' and ts < '{end}'",
    }


def _iso(micros: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(micros // 1_000_000))


def main() -> None:
    """Make the tables, run the contenders in turn, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = ",".join(str(scaled(one)) for one in MANIFESTS)
    parser.add_argument("--sizes", default=sizes)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_one(*arguments.one)
        return
    print(
        "| files | filter | kept | frazil s | PyIceberg s | ratio "
        "| frazil CPU s | PyIceberg CPU s | frazil MB | PyIceberg MB |"
    )
    print("|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    verdicts = []
    kept = Results("plan_scan", ["PyIceberg", "frazil"], prints=False)
    for size in map(int, arguments.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            loaded = make_planning_table(Path(folder), size, MANIFESTS.get(size, max(1, size // 8_000)))
            places = dict.fromkeys(filters(size), str(loaded.metadata_location))
            places[DELETES] = str(add_deletes(loaded, size).metadata_location)
            for name, place in places.items():
                text = filters(size).get(name, "")
                results: dict[str, list[dict[str, float]]] = {one: [] for one in CONTENDERS}
                for number in range(arguments.rounds if size < LARGE else min(arguments.rounds, 2)):
                    for contender in CONTENDERS:
                        if contender == "PyIceberg" and size >= 1_000_000 and number:
                            # A minute each.
                            continue
                        results[contender].append(measure(contender, place, text))
                print(_row(size, name, results), flush=True)
                seconds = {one: [run["seconds"] for run in found] for one, found in results.items()}
                kept.add(f"filter on {name}" if text else name, size, "files", seconds)
                if name == "one column" and size in PROMISES:
                    verdicts.append(_verdict(size, results))
    kept.write()
    print("\n" + "\n".join(verdicts))


def _verdict(size: int, results: dict[str, list[dict[str, float]]]) -> str:
    ours, theirs = (_median(results[one], "seconds") for one in ("frazil", "PyIceberg"))
    memory = max(run["megabytes"] for run in results["frazil"])
    is_fast, is_small = theirs >= PROMISES[size] * ours, memory < MEGABYTES
    return (
        f"{size:,} files: at least {PROMISES[size]} times as fast: {'yes' if is_fast else 'NO'} ({theirs / ours:.1f}); "
        f"under {MEGABYTES} MB: {'yes' if is_small else 'NO'} ({memory:.0f})"
    )


def _median(runs: list[dict[str, float]], what: str) -> float:
    return statistics.median(run[what] for run in runs)


def _row(size: int, name: str, results: dict[str, list[dict[str, float]]]) -> str:
    kept = {one["files"] for runs in results.values() for one in runs}
    if len(kept) != 1:
        raise SystemExit(f"the contenders disagree on {name} over {size} files: {kept}")
    seconds, work = ({one: _median(runs, what) for one, runs in results.items()} for what in ("seconds", "work"))
    memory = {one: max(run["megabytes"] for run in runs) for one, runs in results.items()}
    ratio = seconds["PyIceberg"] / seconds["frazil"]
    return (
        f"| {size:,} | {name} | {kept.pop():.0f} | {seconds['frazil']:.2f} | {seconds['PyIceberg']:.2f} "
        f"| {ratio:.0f} × | {work['frazil']:.2f} | {work['PyIceberg']:.2f} "
        f"| {memory['frazil']:.0f} | {memory['PyIceberg']:.0f} |"
    )


if __name__ == "__main__":
    main()
