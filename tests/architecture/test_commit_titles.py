"""The hook `commit-msg`, which `make setup` installs, takes good titles of commits and refuses others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.architecture.source_files import ROOT

HOOK = ROOT / "tools" / "hooks" / "commit-msg"


def run_hook(folder: Path, title: str) -> subprocess.CompletedProcess[str]:
    message = folder / "COMMIT_EDITMSG"
    message.write_text(f"{title}\n\nWhy it is needed.\n# A comment of Git\n")
    return subprocess.run([str(HOOK), str(message)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "title",
    [
        "Prune scans by row lineage",
        "Read `v3` tables",
        "Merge branch 'x' of somewhere",
        "Embed fonts",
        "Bring " + "x" * 66,
    ],
)
def test_hook_accepts_valid_titles(tmp_path: Path, title: str) -> None:
    assert run_hook(tmp_path, title).returncode == 0


@pytest.mark.parametrize(
    ("title", "reason"),
    [
        ("Prune " + "x" * 67, "73 characters"),
        ("prune scans", "capital letter"),
        ("Prune scans.", "full stop"),
        ("Prune scans; read less", "semicolon"),
        ("Pruned scans", "imperative"),
        ("Pruning scans", "imperative"),
        ("Scans: prune", "imperative"),
    ],
)
def test_hook_rejects_invalid_titles_with_the_reason(tmp_path: Path, title: str, reason: str) -> None:
    answer = run_hook(tmp_path, title)
    assert answer.returncode == 1
    assert reason in answer.stderr


def test_setup_installs_the_hook() -> None:
    assert "tools/hooks/commit-msg" in (ROOT / "tools" / "setup.sh").read_text("utf-8")
