"""docs/terminal.md: its commands run, in the order of the page, and print what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow as pa
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import frazil
from frazil.cli.main import app

PAGE = Path(__file__).parents[3] / "docs" / "terminal.md"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
TWO_APPENDS = "Here the table has two snapshots"


def steps(text: str) -> list[tuple[str, list[str]]]:
    """Return commands with the lines that the page shows below them."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall(text):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def agrees(said: str, shown: str) -> bool:
    """Return whether a line is as the page has it, where an ellipsis stands for anything; spaces count once."""
    pattern = r".*?".join(re.escape(" ".join(part.split())).replace("─", "─*") for part in shown.split("…"))
    return re.fullmatch(pattern.replace(r"\ ", r"\s*"), " ".join(said.split())) is not None


def run(command: str, shown: list[str]) -> None:
    words = shlex.split(command)
    assert words[0] == "frazil", command
    result = CliRunner().invoke(app, words[1:], env={"FRAZIL_WAREHOUSE": "warehouse"})
    assert result.exit_code == 0, f"{command}\n{result.output}"
    lines = result.output.splitlines()
    if shown:
        assert len(lines) == len(shown), f"{command}\n{result.output}"
        for said, line in zip(lines, shown, strict=True):
            assert agrees(said, line), f"{command}\nprinted {said!r}\nthe page has {line!r}"


def test_commands_of_the_page_run_and_print_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before, after = PAGE.read_text().split(TWO_APPENDS)
    first = steps(before)
    assert first.pop(0)[0] == "export FRAZIL_WAREHOUSE=warehouse"
    for command, shown in first:
        run(command, shown)
    with frazil.connect("warehouse") as lake:
        for number in (1, 2):
            lake.table("shop.orders").append(pa.table({"id": pa.array([number]), "kind": ["web"]}))
    for command, shown in steps(after):
        run(command, shown)


def test_every_command_group_is_on_the_page() -> None:
    text = PAGE.read_text()
    groups = get_command(app).commands  # type: ignore[attr-defined]
    missing = [name for name in groups if f"frazil {name}" not in text and f"`{name}" not in text]
    assert missing == []
