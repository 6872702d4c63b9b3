"""The dbt project of `examples/dbt` builds twice over a lake; in between, rows change. `make test-dbt` runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import frazil

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_spec("dbt") is None, reason="dbt is not installed here; make test-dbt"),
]


def build(warehouse: Path, project: Path) -> str:
    command = [sys.executable, "-m", "frazil.cli", "-w", str(warehouse), "dbt", "--", "build"]
    command += ["--project-dir", str(project), "--profiles-dir", str(project), "--no-use-colors"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, timeout=800, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_project_builds_twice_and_the_second_run_applies_changes(tmp_path: Path) -> None:
    project, warehouse = tmp_path / "project", tmp_path / "warehouse"
    shutil.copytree(ROOT / "examples" / "dbt", project)
    assert "PASS=8 WARN=0 ERROR=0" in build(warehouse, project)
    seed = project / "seeds" / "raw_orders.csv"
    rows = seed.read_text().replace(
        "2,bob,placed,20.50,2026-01-01 10:00:00,2026-01-01 10:00:00",
        "2,bob,shipped,20.50,2026-01-01 10:00:00,2026-01-03 08:00:00",
    )
    seed.write_text(rows + "4,cyd,placed,7.00,2026-01-03 11:00:00,2026-01-03 11:00:00\n")
    assert "PASS=8 WARN=0 ERROR=0" in build(warehouse, project)
    with frazil.connect(warehouse) as lake:
        orders = lake.table("shop.orders").scan().to_arrow().to_pylist()
        assert {row["order_id"]: row["status"] for row in orders} == {
            1: "placed",
            2: "shipped",
            3: "shipped",
            4: "placed",
        }
        # The second run merged two rows, and wrote no table anew.
        summary = lake.table("shop.orders").current_snapshot.summary  # type: ignore[union-attr]
        assert summary["spark.merge-into.num-target-rows-updated"] == "1"  # type: ignore[index]
        assert summary["spark.merge-into.num-target-rows-inserted"] == "1"  # type: ignore[index]
        days = lake.table("shop.orders_by_day").scan().to_arrow().to_pylist()
        assert sorted((str(row["ordered_on"]), row["orders"]) for row in days) == [
            ("2026-01-01", 2),
            ("2026-01-02", 1),
            ("2026-01-03", 1),
        ]
        history = lake.table("shop.orders_history").scan().to_arrow().to_pylist()
        assert sorted((row["order_id"], row["status"], row["dbt_valid_to"] is None) for row in history) == [
            (1, "placed", True),
            (2, "placed", False),
            (2, "shipped", True),
            (3, "shipped", True),
            (4, "placed", True),
        ]
        assert lake.list_views("shop") == [("shop", "stg_orders")]
