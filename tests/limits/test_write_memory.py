"""Memory while rows are written: bounded by what is held, however many rows there are. Measured in a process apart."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, resource, sys
import numpy as np, pyarrow as pa
from frazil.datafile.write import write_data_files
from frazil.datafile.write_target import WriteTarget
from frazil.spec.partitioning import build_partition_spec
from frazil.spec.schema import Schema
from frazil.spec.sorting import build_sort_order
from frazil.spec.types import DOUBLE, LONG, STRING, NestedField
from frazil.storage.local import LocalStorage

folder, rows, partition_by, sort_by, file_format = json.loads(sys.argv[1])
schema = Schema((NestedField(1, "id", LONG), NestedField(2, "x", DOUBLE), NestedField(3, "text", STRING)))
STEP = 50_000


def batches(rows):
    for start in range(0, rows, STEP):
        numbers = np.arange(start, start + STEP)
        text = pa.array(np.char.add("text number ", (numbers * 7919 % 1_000_003).astype(str)))
        yield pa.record_batch([pa.array(numbers), pa.array(numbers * 0.5), text], names=["id", "x", "text"])


def write(rows, name):
    place = WriteTarget(
        schema, f"{folder}/{name}", LocalStorage(durable=False), build_partition_spec(schema, partition_by),
        build_sort_order(schema, sort_by),
        {"write.parquet.compression-codec": "snappy", "write.format.default": file_format},
    )
    reader = pa.RecordBatchReader.from_batches(next(batches(STEP)).schema, batches(rows))
    files = write_data_files(reader, place, held_bytes=64 << 20, threads=2)
    return sum(file.record_count for file in files), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


first = write(rows // 5, "warm")
print(json.dumps([*first, *write(rows, "whole")]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "partition_by, sort_by, file_format",
    [([], [], "parquet"), (["bucket(16, id)"], [], "parquet"), ([], ["x desc"], "parquet"), ([], [], "avro")],
    ids=["plain", "partitioned", "sorted", "avro"],
)
def test_writing_five_times_the_rows_takes_the_same_memory(
    partition_by: list[str], sort_by: list[str], file_format: str, tmp_path: Path
) -> None:
    rows = 5_000_000
    argument = json.dumps([str(tmp_path), rows, partition_by, sort_by, file_format])
    done = subprocess.run([sys.executable, "-c", SCRIPT, argument], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    few, few_mb, many, many_mb = json.loads(done.stdout)
    assert (few, many) == (rows // 5, rows)
    # 5 million rows are 250 MB as Arrow; the peak of a fifth of them must do for all, but for what allocators keep.
    assert many_mb < few_mb + 120
    assert many_mb < 700
