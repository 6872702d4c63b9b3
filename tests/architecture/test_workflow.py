"""The public CI runs what the package claims: each Python of its metadata, targets that the Makefile has."""

from __future__ import annotations

import re
import tomllib

from tests.architecture.source_files import ROOT

WORKFLOW = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")


def test_every_python_that_is_claimed_is_run() -> None:
    claimed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    versions = [one.rpartition(" ")[2] for one in claimed if one.startswith("Programming Language :: Python :: 3.")]
    assert re.search(r"python: \[(.*)\]", WORKFLOW).group(1).replace('"', "").split(", ") == versions  # type: ignore[union-attr]


def test_every_spark_of_the_makefile_is_run() -> None:
    sparks = re.search(r"^SPARKS \?= (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE).group(1).split()  # type: ignore[union-attr]
    assert re.search(r"spark: \[(.*)\]", WORKFLOW).group(1).replace('"', "").split(", ") == sparks  # type: ignore[union-attr]


def test_every_target_that_is_run_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    calls = re.findall(r"run: make (.*)", WORKFLOW) + re.findall(r"^make (.*)", script, re.MULTILINE)
    targets = [word for line in calls for word in line.split() if "=" not in word]
    assert {"check", "test", "test-extended"} < set(targets)
    assert [one for one in targets if not re.search(rf"^{one}:", makefile, re.MULTILINE)] == []
