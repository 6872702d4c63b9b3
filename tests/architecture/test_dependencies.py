"""docs/decisions/0002-dependencies.md: a line for every package that pyproject.toml asks for, and for no other."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from tests.architecture.source_files import ROOT

PAGE = ROOT / "docs" / "decisions" / "0002-dependencies.md"


def asked_for() -> set[str]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project = config["project"]
    groups = [
        config["build-system"]["requires"],
        project["dependencies"],
        *project["optional-dependencies"].values(),
        *config["dependency-groups"].values(),
    ]
    return {re.split(r"[^\w.-]", one, maxsplit=1)[0] for group in groups for one in group}


def lines() -> Iterator[tuple[list[str], list[str]]]:
    """Yield the packages of each line, and what is said of them."""
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("|") and not set(line) <= set("|-: "):
            first, *said = [cell.strip() for cell in line.strip("|").split("|")]
            if first != "package":
                yield first.split(", "), said


def test_dependencies_and_their_documentation_lines_match() -> None:
    assert asked_for()
    assert {name for names, _ in lines() for name in names} == asked_for()


def test_every_dependency_line_has_a_reason_and_a_cost() -> None:
    assert [names for names, said in lines() if len(said) != 2 or "" in said] == []
