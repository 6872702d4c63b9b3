"""Writing a manifest of many files with metrics: frazil beside PyIceberg.

The entries are those of `manifest_entries.py`, of each kind: counts, sizes and bounds of ten columns for each file.
frazil takes them as Arrow columns, or as one value for each file; PyIceberg's writer takes objects. Both are given what
they take, made before the clock starts. Contenders take turns; medians are printed, and the size of the file. One kind
is written at three sizes.

PyIceberg starts a new block with each entry, which leaves deflate nothing to find but what repeats within the entry,
and costs a sync marker of 16 bytes. frazil's blocks have 64 KB, as Iceberg Java's. The line "limit" is what xz at its
best leaves of all rows in one piece, many megabytes; no codec of Avro's, block by block, comes near it. gzip (deflate)
is the default because every reader has it: DuckDB 1.5 refuses zstandard, which at its default level saves nothing on
manifests.
"""

from __future__ import annotations

import argparse
import lzma
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.decode_manifest import make_manifest, medians_of, take_turns
from bench.manifest_entries import KINDS, SCHEMAS, make_entries, spec_of
from bench.measure import Results, scaled
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile as ForeignFile
from pyiceberg.manifest import DataFileContent, FileFormat, ManifestEntryStatus, write_manifest
from pyiceberg.manifest import ManifestEntry as ForeignEntry
from pyiceberg.partitioning import PartitionSpec as ForeignSpec
from pyiceberg.schema import Schema as ForeignSchema
from pyiceberg.typedef import Record

from frazil.codec.encode_manifest import encode_manifest
from frazil.codec.json_text import encode_json
from frazil.codec.manifest_avro import decode_manifest, iter_entries
from frazil.codec.partition_spec_json import encode_partition_spec
from frazil.codec.schema_json import encode_schema
from frazil.spec.data_file import METRIC_MAPS
from frazil.spec.manifest import ManifestEntry

PROMISE = 3
"""What the design promises: at least this many times as fast as PyIceberg's writer."""
SIZE_TARGET = 4
"""What the design aims at: at most one part in so many of PyIceberg's size."""
OURS, THEIRS = "frazil, columns, gzip", "PyIceberg, gzip"


def frazil_writer(
    entries: Any, path: Path, kind: str, codec: str, threads: int = 1, level: int | None = None
) -> Callable[[], object]:
    """Encode and write."""

    def run() -> None:
        made = encode_manifest(
            entries,
            path=str(path),
            spec=spec_of(kind),
            schema=SCHEMAS[kind],
            format_version=2,
            snapshot_id=7,
            codec=codec,
            level=level,
            threads=threads,
        )
        path.write_bytes(made.data)

    return run


def pyiceberg_writer(entries: list[ManifestEntry], path: Path, kind: str, codec: Any) -> Callable[[], object]:
    """Write with PyIceberg's own writer, entry by entry."""
    schema = ForeignSchema.model_validate_json(encode_json(encode_schema(SCHEMAS[kind])))
    spec = ForeignSpec.model_validate_json(encode_json(encode_partition_spec(spec_of(kind))))
    files = PyArrowFileIO()
    made = []
    for entry in entries:
        file = entry.data_file
        made.append(
            ForeignEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=7,
                data_file=ForeignFile.from_args(
                    content=DataFileContent.DATA,
                    file_path=file.file_path,
                    file_format=FileFormat.PARQUET,
                    partition=Record(*file.partition),
                    record_count=file.record_count,
                    file_size_in_bytes=file.file_size_in_bytes,
                    split_offsets=[4],
                    sort_order_id=0,
                    **{name: dict(value) for name in METRIC_MAPS if (value := getattr(file, name)) is not None},
                ),
            )
        )

    def run() -> None:
        output = files.new_output(str(path))
        with write_manifest(2, spec, schema, output, 7, codec) as writer:
            for one in made:
                writer.add(one)

    return run


def main() -> int:
    """Measure, print, and say whether the promises hold."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=scaled(25_000))
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    kept = Results("write_manifest", ["PyIceberg", "frazil"], prints=False)
    sizes = [("ingest", given.files // 16), ("ingest", given.files // 4), *((kind, given.files) for kind in KINDS)]
    results = [compare(kind, count, given.rounds, kept) for kind, count in sizes]
    kept.write()
    return 0 if all(results) else 1


def compare(kind: str, count: int, rounds: int, kept: Results) -> bool:
    """Write manifests of one kind with both; return whether frazil is as fast as it is to be."""
    columns = make_entries(count, kind)
    values = list(iter_entries(decode_manifest(make_manifest(count, "m.avro", kind).data)))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{at}.avro" for at in range(8)]
        contenders = {
            OURS: frazil_writer(columns, paths[0], kind, "gzip"),
            "frazil, columns, gzip, 2 threads": frazil_writer(columns, paths[1], kind, "gzip", threads=2),
            "frazil, columns, gzip, level 9": frazil_writer(columns, paths[2], kind, "gzip", level=9),
            "frazil, columns, zstd": frazil_writer(columns, paths[3], kind, "zstd"),
            "frazil, columns, no compression": frazil_writer(columns, paths[4], kind, "none"),
            "frazil, values, gzip": frazil_writer(values, paths[5], kind, "gzip"),
            THEIRS: pyiceberg_writer(values, paths[6], kind, "deflate"),
            "PyIceberg, no compression": pyiceberg_writer(values, paths[7], kind, "null"),
        }
        times = take_turns(contenders, rounds)
        medians = medians_of(times)
        sizes = {name: path.stat().st_size for name, path in zip(contenders, paths, strict=True)}
        limit = len(lzma.compress(paths[4].read_bytes(), preset=6))
    named = {"PyIceberg": THEIRS, "frazil": OURS}
    kept.add(kind, count, "files", {one: [passed for passed, _ in times[name]] for one, name in named.items()})
    print(f"\n{kind}: {count:,} files")
    print(f"{'':<36} {'ms':>10} {'files/s':>10} {'bytes':>12} {'x PyIceberg':>12} {'of its size':>12}")
    for name, (seconds, _) in medians.items():
        faster, smaller = medians[THEIRS][0] / seconds, sizes[name] / sizes[THEIRS]
        rate = count / seconds
        print(f"{name:<36} {seconds * 1000:>10.1f} {rate:>10,.0f} {sizes[name]:>12,} {faster:>12.1f} {smaller:>12.3f}")
    print(f"{'limit (xz)':<36} {'':>10} {'':>10} {limit:>12,} {'':>12} {limit / sizes[THEIRS]:>12.3f}")
    is_fast = medians[THEIRS][0] >= PROMISE * medians[OURS][0]
    is_small = sizes[OURS] * SIZE_TARGET <= sizes[THEIRS]
    print(f"At least {PROMISE} times as fast: {'yes' if is_fast else 'NO'}")
    verdict = "yes" if is_small else "NO" if limit * SIZE_TARGET <= sizes[THEIRS] else "NO, and not by xz either"
    print(f"At most one part in {SIZE_TARGET} of the size: {verdict}")
    # A small manifest is all fixed costs.
    return is_fast or count < 10_000


if __name__ == "__main__":
    sys.exit(main())
