"""Decoding a manifest of many files with metrics: frazil beside fastavro and PyIceberg.

A manifest as Iceberg Java writes it (deflate, blocks of 64 KB), of each kind in `manifest_entries.py`: an entry has
counts, sizes and bounds of ten columns. Contenders take turns, so that other work on the machine disturbs all of
them alike; medians are printed, and the processor time beside them, which says what one core would take. frazil's
result is Arrow columns, the others' one object for each entry: that is the difference. One kind is decoded at three
sizes; the last table is of a manifest of 20 files, where fixed costs are everything.
"""

from __future__ import annotations

import argparse
import io
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import fastavro
import numpy as np
from bench.manifest_entries import KINDS, SCHEMAS, make_entries, spec_of
from bench.measure import Results, scaled
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestContent as ForeignContent
from pyiceberg.manifest import ManifestFile as ForeignManifest

from frazil.codec.encode_manifest import EncodedManifest, encode_manifest
from frazil.codec.manifest_avro import ManifestColumns, decode_manifest, iter_entries
from frazil.expr.columns.manifest_columns import bounds_of
from frazil.spec.manifest import ManifestFile

PLAN_FIELDS = ("status", "file_path", "record_count", "partition", "lower_bounds", "upper_bounds")
PROMISE = 10
NAMES = {"fastavro": "fastavro rows", "PyIceberg": "PyIceberg entries", "frazil": "frazil, all fields"}
"""What the design promises: at least this many times as fast as fastavro and as PyIceberg."""


def make_manifest(count: int, path: str, kind: str) -> EncodedManifest:
    """Encode a manifest of so many added files."""
    return encode_manifest(
        make_entries(count, kind),
        path=path,
        spec=spec_of(kind),
        schema=SCHEMAS[kind],
        format_version=2,
        snapshot_id=7,
        threads=2,
    )


def frazil_decode(data: bytes, threads: int, fields: tuple[str, ...] | None) -> Callable[[], ManifestColumns]:
    """Decode into columns, inheriting as a plan does."""
    line = ManifestFile("m.avro", len(data), 0, 7, sequence_number=3)
    return lambda: decode_manifest(data, manifest=line, fields=fields, threads=threads)


def frazil_prune(data: bytes, threads: int) -> Callable[[], object]:
    """Decode what a plan needs, and compare one column's bounds with a value."""
    decode = frazil_decode(data, threads, PLAN_FIELDS)

    def run() -> int:
        columns = decode()
        lower = bounds_of(columns, 3, "lower_bounds")
        values = np.frombuffer(lower.buffers()[2], "<i8")
        return int((values < 1).sum())

    return run


def frazil_entries(data: bytes) -> Callable[[], object]:
    """Decode, and make an object for each entry as the others do."""
    decode = frazil_decode(data, 1, None)
    return lambda: len(list(iter_entries(decode())))


def fastavro_rows(data: bytes) -> Callable[[], object]:
    """Decode into one dict for each entry; none is kept, which is the best that can be done with it."""
    return lambda: sum(1 for _ in fastavro.reader(io.BytesIO(data)))


def pyiceberg_entries(path: Path) -> Callable[[], object]:
    """Read into one ManifestEntry for each entry, as PyIceberg's planning does."""
    manifest = ForeignManifest.from_args(
        manifest_path=str(path),
        manifest_length=path.stat().st_size,
        partition_spec_id=0,
        content=ForeignContent.DATA,
        sequence_number=3,
        min_sequence_number=3,
        added_snapshot_id=7,
    )
    files = PyArrowFileIO()
    return lambda: len(manifest.fetch_manifest_entry(files))


def take_turns(contenders: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Run each contender once in each round, after one that does not count; return seconds passed, and processor's."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter(), time.process_time()
            run()
            times[name].append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return times


def medians_of(times: dict[str, list[tuple[float, float]]]) -> dict[str, tuple[float, float]]:
    """Return the middle of each contender's times."""
    return {
        name: (statistics.median(one[0] for one in found), statistics.median(one[1] for one in found))
        for name, found in times.items()
    }


def show(title: str, count: int, size: int, medians: dict[str, tuple[float, float]]) -> None:
    """Print a table; the last two columns say how many times faster than fastavro and than PyIceberg."""
    print(f"\n{title}: {count:,} files, {size:,} bytes")
    print(f"{'':<42} {'ms':>9} {'CPU ms':>9} {'files/s':>12} {'x fastavro':>11} {'x PyIceberg':>12}")
    for name, (seconds, work) in medians.items():
        faster = [medians[other][0] / seconds for other in ("fastavro rows", "PyIceberg entries")]
        print(
            f"{name:<42} {seconds * 1000:>9.2f} {work * 1000:>9.2f} {count / seconds:>12,.0f} "
            f"{faster[0]:>11.1f} {faster[1]:>12.1f}"
        )


def main() -> int:
    """Measure, print, and say whether the promise holds."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=scaled(100_000))
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    holds = True
    kept = Results("decode_manifest", tuple(NAMES), prints=False)
    with tempfile.TemporaryDirectory() as folder:
        sizes = [("ingest", given.files // 16), ("ingest", given.files // 4), *((kind, given.files) for kind in KINDS)]
        for kind, count in (*sizes, ("ingest", 20)):
            path = Path(folder) / f"{kind}-{count}.avro"
            data = make_manifest(count, str(path), kind).data
            path.write_bytes(data)
            contenders = {
                "frazil, all fields": frazil_decode(data, 1, None),
                "frazil, all fields, 2 threads": frazil_decode(data, 2, None),
                "frazil, fields of a plan": frazil_decode(data, 1, PLAN_FIELDS),
                "frazil, fields of a plan, 2 threads": frazil_decode(data, 2, PLAN_FIELDS),
                "frazil, decode and prune, 2 threads": frazil_prune(data, 2),
                "frazil, an object for each entry": frazil_entries(data),
                "fastavro rows": fastavro_rows(data),
                "PyIceberg entries": pyiceberg_entries(path),
            }
            times = take_turns(contenders, given.rounds if count > 20 else 50)
            medians = medians_of(times)
            seconds = {one: [passed for passed, _ in times[name]] for one, name in NAMES.items()}
            kept.add(f"all fields, {kind}", count, "files", seconds)
            show(kind, count, len(data), medians)
            if count >= 10_000:
                holds = verdict(medians) and holds
    kept.write()
    return 0 if holds else 1


def verdict(medians: dict[str, tuple[float, float]]) -> bool:
    """Say of each way to decode all fields whether the promise holds; return whether it does for one thread."""
    results = {}
    for name in ("frazil, all fields", "frazil, all fields, 2 threads"):
        slowest = [min(medians[other][at] for other in ("fastavro rows", "PyIceberg entries")) for at in (0, 1)]
        passed, worked = (slowest[at] / medians[name][at] for at in (0, 1))
        results[name] = passed >= PROMISE
        print(
            f"{name}: at least {PROMISE} times as fast as either: {'yes' if results[name] else 'NO'} "
            f"({passed:.1f} by the clock, {worked:.1f} by processor time)"
        )
    return results["frazil, all fields"]


if __name__ == "__main__":
    sys.exit(main())
