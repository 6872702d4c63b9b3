"""The root of the repository holds what a newcomer expects, and nothing else."""

from __future__ import annotations

import subprocess

import pytest

from tests.architecture.source_files import ROOT

EXPECTED = {
    ".ci",
    ".editorconfig",
    ".github",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "NOTICE",
    "README.md",
    "SECURITY.md",
    "bench",
    "docs",
    "examples",
    "mkdocs.yml",
    "notebooks",
    "public-names.txt",
    "pyproject.toml",
    "requirements",
    "src",
    "tests",
    "tools",
}


def test_root_contains_only_listed_entries() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone of the repository")
    assert {path.partition("/")[0] for path in listed.stdout.splitlines()} == EXPECTED
