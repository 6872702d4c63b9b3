"""Writing a manifest of many files with metrics: frazil beside PyIceberg.

The entries are those of `decode_manifest.py`: counts, sizes and bounds of ten columns for each file. frazil takes
them as Arrow columns, or as one value for each file; PyIceberg's writer takes objects. Both are given what they
take, made before the clock starts. Contenders take turns; medians are printed, and the size of the file. PyIceberg
starts a new block with each entry, which leaves compression little to find.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.decode_manifest import SCHEMA, SPEC, make_entries, make_manifest, take_turns
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


def frazil_writer(entries: Any, path: Path, codec: str, threads: int) -> Callable[[], object]:
    """Encode and write."""

    def run() -> None:
        made = encode_manifest(
            entries,
            path=str(path),
            spec=SPEC,
            schema=SCHEMA,
            format_version=2,
            snapshot_id=7,
            codec=codec,
            threads=threads,
        )
        path.write_bytes(made.data)

    return run


def pyiceberg_writer(entries: list[ManifestEntry], path: Path, codec: Any) -> Callable[[], object]:
    """Write with PyIceberg's own writer, entry by entry."""
    schema = ForeignSchema.model_validate_json(encode_json(encode_schema(SCHEMA)))
    spec = ForeignSpec.model_validate_json(encode_json(encode_partition_spec(SPEC)))
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
    """Measure, print, and say whether the promise holds."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    columns = make_entries(given.files)
    values = list(iter_entries(decode_manifest(make_manifest(given.files, "m.avro").data)))
    with tempfile.TemporaryDirectory() as folder:
        paths = {
            name: Path(folder) / f"{at}.avro"
            for at, name in enumerate(
                (
                    "frazil, columns, gzip",
                    "frazil, columns, gzip, 2 threads",
                    "frazil, columns, zstd",
                    "frazil, columns, no compression",
                    "frazil, values, gzip",
                    "PyIceberg, gzip",
                    "PyIceberg, no compression",
                )
            )
        }
        names = list(paths)
        contenders = {
            names[0]: frazil_writer(columns, paths[names[0]], "gzip", 1),
            names[1]: frazil_writer(columns, paths[names[1]], "gzip", 2),
            names[2]: frazil_writer(columns, paths[names[2]], "zstd", 1),
            names[3]: frazil_writer(columns, paths[names[3]], "none", 1),
            names[4]: frazil_writer(values, paths[names[4]], "gzip", 1),
            names[5]: pyiceberg_writer(values, paths[names[5]], "deflate"),
            names[6]: pyiceberg_writer(values, paths[names[6]], "null"),
        }
        medians = take_turns(contenders, given.rounds)
        sizes = {name: path.stat().st_size for name, path in paths.items()}
    print(f"{given.files:,} files")
    print(f"{'':<36} {'ms':>10} {'files/s':>10} {'bytes':>12} {'x PyIceberg':>12} {'of its size':>12}")
    for name, (seconds, _) in medians.items():
        faster, smaller = medians["PyIceberg, gzip"][0] / seconds, sizes[name] / sizes["PyIceberg, gzip"]
        rate = given.files / seconds
        print(f"{name:<36} {seconds * 1000:>10.1f} {rate:>10,.0f} {sizes[name]:>12,} {faster:>12.1f} {smaller:>12.2f}")
    is_fast = medians["PyIceberg, gzip"][0] >= PROMISE * medians["frazil, columns, gzip"][0]
    print(f"\nAt least {PROMISE} times as fast: {'yes' if is_fast else 'NO'}")
    is_small = sizes["frazil, columns, gzip"] * SIZE_TARGET <= sizes["PyIceberg, gzip"]
    print(f"At most one part in {SIZE_TARGET} of the size: {'yes' if is_small else 'NO'}")
    return 0 if is_fast else 1


if __name__ == "__main__":
    sys.exit(main())
