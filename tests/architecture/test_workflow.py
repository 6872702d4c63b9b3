"""The public CI runs what the package claims, each Python of its metadata, and all tests nightly."""

from __future__ import annotations

import re
import tomllib

from tests.architecture.source_files import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"
WORKFLOW = (WORKFLOWS / "ci.yml").read_text("utf-8")
NIGHTLY = (WORKFLOWS / "nightly.yml").read_text("utf-8")


def test_every_declared_python_version_is_tested_in_ci() -> None:
    claimed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    versions = [one.rpartition(" ")[2] for one in claimed if one.startswith("Programming Language :: Python :: 3.")]
    assert re.search(r"python: \[(.*)\]", WORKFLOW).group(1).replace('"', "").split(", ") == versions  # type: ignore[union-attr]


def test_every_spark_version_of_the_makefile_is_tested_in_ci() -> None:
    sparks = re.search(r"^SPARKS \?= (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE).group(1).split()  # type: ignore[union-attr]
    assert re.search(r"spark: \[(.*)\]", WORKFLOW).group(1).replace('"', "").split(", ") == sparks  # type: ignore[union-attr]


def test_workflow_targets_exist_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    calls = re.findall(r"run: make (.*)", WORKFLOW) + re.findall(r"^make (.*)", script, re.MULTILINE)
    targets = [word for line in calls for word in line.split() if "=" not in word]
    assert {"check", "test", "test-extended"} < set(targets)
    assert [one for one in targets if not re.search(rf"^{one}:", makefile, re.MULTILINE)] == []


def test_every_test_target_runs_on_push_or_nightly() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^(test[\w-]*):", makefile, re.MULTILINE))
    nightly = set(re.search(r"target: \[(.*)\]", NIGHTLY).group(1).split(", "))  # type: ignore[union-attr]
    on_push = {"test", "test-extended", "test-sparks"}
    assert "make ${{ matrix.target }}" in NIGHTLY
    assert targets - {"test-all"} == nightly | on_push
