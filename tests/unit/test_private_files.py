"""Temporary files: in folders of our own, and gone when the process is."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")


def test_executor_package_is_in_a_private_temporary_folder(tmp_path: Path) -> None:
    script = "from frazil.spark.jvm.ship_package import _package_file; print(_package_file())"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    keeps = f"{script}; import os; print(oct(os.stat(os.path.dirname(_package_file())).st_mode))"
    done = subprocess.run([sys.executable, "-c", keeps], env=environment, capture_output=True, text=True, check=True)
    path, mode = done.stdout.split()
    assert Path(path).is_relative_to(tmp_path)
    assert stat.S_IMODE(int(mode, 8)) == 0o700
    assert list(tmp_path.iterdir()) == []
