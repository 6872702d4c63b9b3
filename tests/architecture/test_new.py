"""`make new`: every route finds the places where its declarations go, and CONTRIBUTING.md describes it."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from tests.architecture.source_files import ROOT
from tools.new import ROUTES, begin, names_of


@pytest.mark.parametrize("kind", ROUTES)
def test_route_writes_its_files_and_declarations(tmp_path: Path, kind: str) -> None:
    route, names = ROUTES[kind], names_of("example-name")
    present = {path for path, _, _ in route.inserted} | {path for path in [route.listed_in] if path is not None}
    for path in {*present, *(path.format(**names) for path in route.files)}:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    for path in present:
        shutil.copy(ROOT / path, tmp_path / path)
    written = begin(kind, "example-name", tmp_path)
    assert any(path.startswith("tests/") for path in written) and len(written) >= 2
    for path in written:
        text = (tmp_path / path).read_text("utf-8")
        assert any(names[form] in text for form in ("text", "name", "Name"))
        if path.endswith(".py"):
            ast.parse(text)


def test_contributing_describes_every_route() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert [kind for kind in ROUTES if f"KIND={kind} " not in text] == []
