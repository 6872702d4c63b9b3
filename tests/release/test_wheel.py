"""What is installed with `pip install frazil`: everything in the package, and enough of it to run the README."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
README = (ROOT / "README.md").read_text("utf-8")
FIRST = README.partition("\n## ")[0]
QUICKSTART = README.partition("\n## Quickstart\n")[2].partition("\n## ")[0]
_SHOWN = re.compile(r"```python\n(.*?)```\n\n```\n(.*?)```", re.DOTALL)
"""Code of the page, and what it says the code prints."""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make dist` builds; the environment is there, so `setup` is not made again."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(["make", "-o", "setup", "dist", f"DIST={folder}"], cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    [found] = dist.glob("*.whl")
    return found


@pytest.mark.extended
def test_wheel_contains_every_package_file(wheel: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("frazil/")}
    kept = {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "frazil").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == kept
    assert {Path(name).suffix for name in packed} >= {".java", ".html", ".css", ".js", ".typed"}


@pytest.mark.extended
def test_wheel_metadata_is_complete(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        name = next(name for name in packed.namelist() if name.endswith("METADATA"))
        said = Parser().parsestr(packed.read(name).decode())
    assert said["Name"] == "frazil"
    assert said["Version"] in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert said["License-Expression"] == "Apache-2.0"
    assert set(said.get_all("Provides-Extra") or ()) >= {"spark", "cli", "serve", "postgres", "s3"}
    assert said.get_all("Project-URL")


@pytest.mark.slow
def test_source_archive_builds_the_same_wheel(dist: Path, wheel: Path, tmp_path: Path) -> None:
    [archive] = dist.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    [folder] = tmp_path.iterdir()
    for name in ("LICENSE", "NOTICE", "README.md", "CHANGELOG.md", "tests/release/test_wheel.py", "docs/README.md"):
        assert (folder / name).is_file(), name
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again")]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    [again] = (tmp_path / "again").glob("*.whl")
    assert _contents(again) == _contents(wheel)


def _contents(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as packed:
        return {entry.filename: entry.CRC for entry in packed.infolist()}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_readme_runs_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / "bin" / "python"
    plain = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "SPARK_HOME", "VIRTUAL_ENV")}
    install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*install, f"{wheel}[spark,cli,serve,postgres,s3]"], check=True, env=plain, timeout=1200)
    subprocess.run([str(python), "-c", "import psycopg, botocore, uvicorn, typer"], check=True, env=plain)
    [(code, said)] = _SHOWN.findall(FIRST)
    assert said.strip() in _run(python, code, tmp_path, plain)
    (code, said), (more, _) = _SHOWN.findall(QUICKSTART)
    session = "from pyspark.sql import SparkSession\nspark = SparkSession.builder.master('local[2]').getOrCreate()\n"
    answer = _run(python, f"{session}{code}{more}", tmp_path, plain)
    assert said.strip() in answer
    assert "Plan of snapshot" in answer
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


def _run(python: Path, code: str, folder: Path, environment: dict[str, str]) -> str:
    script = folder / "lines.py"
    script.write_text(code, "utf-8")
    done = subprocess.run(
        [str(python), str(script)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
