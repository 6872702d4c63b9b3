"""What is installed with `pip install frazil`: everything in the package, and enough of it to run the README."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
FIRST = (ROOT / "README.md").read_text("utf-8").partition("\n## ")[0]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("frazil/")}
    kept = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "frazil").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == kept
    assert {Path(name).suffix for name in packed} >= {".java", ".html", ".css", ".js", ".typed"}


def test_the_wheel_says_what_it_is(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        name = next(one for one in packed.namelist() if one.endswith("METADATA"))
        said = Parser().parsestr(packed.read(name).decode())
    assert said["Name"] == "frazil"
    assert said["Version"] in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert said["License-Expression"] == "Apache-2.0"
    assert set(said.get_all("Provides-Extra") or ()) >= {"spark", "cli", "serve", "postgres", "s3"}
    assert said.get_all("Project-URL")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_readme_runs_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / "bin" / "python"
    plain = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SPARK_HOME", "VIRTUAL_ENV")}
    install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*install, f"{wheel}[spark,cli,serve,postgres,s3]"], check=True, env=plain, timeout=1200)
    [(code, said)] = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", FIRST, re.DOTALL)
    script = tmp_path / "first_lines.py"
    script.write_text(code, "utf-8")
    done = subprocess.run(
        [str(python), str(script)], cwd=tmp_path, env=plain, capture_output=True, text=True, timeout=500, check=False
    )
    assert said.strip() in done.stdout, done.stderr[-3000:]
    frazil = str(tmp_path / "fresh" / "bin" / "frazil")
    shown = subprocess.run(
        [frazil, "table", "list", "-w", str(tmp_path / "warehouse")],
        env=plain,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "shop.visits" in shown.stdout
    served = subprocess.run([frazil, "serve", "--help"], env=plain, capture_output=True, text=True, check=True)
    assert "--ui" in served.stdout
