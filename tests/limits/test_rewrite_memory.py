"""Memory while a group of data files is rewritten in this process: it does not grow with rows. In a process apart."""

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

folder, rows, strategy, sort_by = json.loads(sys.argv[1])
lake = frazil.connect(folder, catalog="filesystem")
random = np.random.default_rng(1)
FILE_ROWS = 100_000


def rewrite(rows, name):
    table = lake.create_table(
        f"db.{name}",
        "id bigint, x double, text string",
        properties={"write.parquet.row-group-size-bytes": str(2 << 20), "write.parquet.compression-codec": "snappy"},
    )
    for _ in range(rows // FILE_ROWS):
        ids = random.integers(0, rows, FILE_ROWS)
        text = pa.array(np.char.add("text number ", ids.astype(str)))
        table.append(pa.table({"id": ids, "x": random.random(len(ids)), "text": text}))
    options = {"rewrite-all": "true", "max-concurrent-file-group-rewrites": "1"}
    if strategy != "binpack":
        options["sort-memory-bytes"] = str(32 << 20)
    done = table.maintain.rewrite_data_files(strategy, sort_by, options=options)
    assert done.rewritten_data_files_count == rows // FILE_ROWS, done
    return table.scan().count(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


first = rewrite(rows // 5, "warm")
print(json.dumps([*first, *rewrite(rows, "whole")]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("strategy, sort_by", [("binpack", None), ("sort", "text, id desc"), ("sort", "zorder(id, x)")])
def test_rewriting_five_times_the_rows_takes_the_same_memory(
    strategy: str, sort_by: str | None, tmp_path: Path
) -> None:
    rows = 5_000_000
    argument = json.dumps([str(tmp_path), rows, strategy, sort_by])
    done = subprocess.run([sys.executable, "-c", SCRIPT, argument], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    few, few_mb, many, many_mb = json.loads(done.stdout)
    assert (few, many) == (rows // 5, rows)
    # 5 million rows are 220 MB as Arrow; what a fifth of them takes must do, but for what allocators keep.
    assert many_mb < few_mb + 100
    assert many_mb < 600
