"""Before Spark is started, a missing or old Java is told, with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import frazil
from frazil.cli.find_java import check_java
from frazil.cli.main import app
from frazil.cli.session import _explain_java_failure, reported


def java(folder: Path, release: str | None) -> Path:
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    if release is not None:
        (folder / "release").write_text(release)
    return folder


@pytest.mark.parametrize("release", ['JAVA_VERSION="17.0.15"\n', 'OS="Linux"\nJAVA_VERSION="21"\n', None])
def test_suitable_java_is_found_by_java_home_and_path(tmp_path: Path, release: str | None) -> None:
    home = java(tmp_path / "java", release)
    check_java({"JAVA_HOME": str(home), "PATH": "/nowhere"})
    check_java({"PATH": f"/nowhere:{home / 'bin'}"})


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402"])
def test_old_java_is_refused_with_its_version(tmp_path: Path, version: str) -> None:
    home = java(tmp_path / "java", f'JAVA_VERSION="{version}"\n')
    with pytest.raises(frazil.UnsupportedError, match=r"needs Java 17 or newer, but .*java is Java (11|8)\n"):
        check_java({"JAVA_HOME": str(home)})


@pytest.mark.parametrize("environment", [{"PATH": "/nowhere"}, {"JAVA_HOME": "/nowhere", "PATH": "/usr/bin:/bin"}])
def test_missing_java_is_refused_with_what_to_install(environment: dict[str, str]) -> None:
    with pytest.raises(frazil.UnsupportedError, match=r"(?s)needs Java 17.*Hint: Install Java 17.*sql --local"):
        check_java(environment)


@pytest.mark.parametrize("command", [["sql", "select 1"], ["spark-server", "--connect", "0"]])
def test_commands_that_need_java_report_it_and_fail(tmp_path: Path, command: list[str]) -> None:
    result = CliRunner().invoke(app, ["-w", str(tmp_path / "lake"), *command], env={"JAVA_HOME": "/nowhere"})
    assert result.exit_code == 1
    assert "Cannot start Spark: it needs Java 17 or newer, but JAVA_HOME is '/nowhere'" in result.output
    assert "Traceback" not in result.output


def test_java_startup_failure_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    failed = frazil.EngineError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")
    with pytest.raises(typer.Exit), reported():
        raise failed
    assert "needs Java 17" in str(_explain_java_failure(failed))
    other = frazil.EngineError("Cannot run: another reason")
    assert _explain_java_failure(other) is other
