"""Tables of Parquet files are read, and written by streams, by executors that have nothing of frazil."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.spark.cluster import cluster, run_tests

CORE = [
    "tests/spark/cluster_checks.py",
    "tests/spark/test_read_model.py::test_every_snapshot_and_filter_reads_as_the_model",
    "tests/spark/test_read_deletes.py",
    "tests/spark/test_stream_sink.py::test_batch_rows_are_written_as_computed",
]

NATIVE = "not orc and not avro and not of_all_kinds"
"""What Spark reads alone. Python reads the other formats, and more deleted positions than a plan can carry."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_core_suite_passes_with_frazil_on_the_driver_only(tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster") as master:
        said = run_tests(master, tmp_path, [*CORE, "-k", NATIVE], seconds=1500)
    passed = re.search(r"(\d+) passed", said)
    assert passed is not None
    assert int(passed[1]) >= 10
