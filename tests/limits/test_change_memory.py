"""Memory while rows are changed in this process: that of the source's keys and of positions. In a process apart."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import json, resource, sys
import numpy as np, pyarrow as pa
import frazil

folder, rows, mode = json.loads(sys.argv[1])
lake = frazil.connect(folder, catalog="filesystem")
modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
table = lake.create_table("db.t", "id bigint, name string, v double", format_version=3, properties=modes)
SIZE = 100_000


def stream(factor, shift):
    for at in range(0, rows, SIZE):
        ids = np.arange(at, at + SIZE) + shift
        yield pa.record_batch({"id": ids, "name": pa.array(ids % 1000).cast(pa.string()), "v": ids * factor})


def reader(factor, shift=0):
    return pa.RecordBatchReader.from_batches(next(stream(1.0, 0)).schema, stream(factor, shift))


table.append(reader(0.5))
table.upsert(reader(0.25, rows // 2), keys=["id"], engine="local")
table.update({"v": "v + 1"}, where="id % 3 = 0", engine="local")
table.delete("id % 7 = 0", engine="local")
print(json.dumps([table.scan().count(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024]))
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_ten_million_rows_are_changed_within_two_gigabytes(mode: str, tmp_path: Path) -> None:
    rows = 10_000_000
    argument = json.dumps([str(tmp_path), rows, mode])
    done = subprocess.run([sys.executable, "-c", SCRIPT, argument], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, megabytes = json.loads(done.stdout)
    total = rows + rows // 2
    assert count == total - (total + 6) // 7
    assert megabytes < 2000
