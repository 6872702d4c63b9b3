"""Links between pages lead somewhere, and tests that they name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.source_files import ROOT
from tests.architecture.test_spec_coverage import exists

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_target_exists(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    missing = [
        link for link in links
        if "://" not in link and not link.startswith("#") and not (page.parent / link.partition("#")[0]).exists()
    ]  # fmt: skip
    assert missing == []


@pytest.mark.parametrize("page", [one for one in PAGES if one.name != "options.md"], ids=lambda page: page.name)
def test_every_test_named_on_a_page_exists(page: Path) -> None:
    named = re.findall(r"tests/[\w/]+\.py::\w+(?:::\w+)?", page.read_text("utf-8"))
    assert [one for one in named if not exists(one)] == []


def test_every_page_is_in_the_site_navigation_and_the_index() -> None:
    pages = {page.name for page in (ROOT / "docs").glob("*.md")}
    site = re.findall(r"[\w-]+\.md", (ROOT / "mkdocs.yml").read_text("utf-8"))
    listed = re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs" / "README.md").read_text("utf-8"))
    assert pages - set(site) == set()
    assert pages - set(listed) == {"README.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_named_on_a_page_exists(page: Path) -> None:
    assert missing_modules(page.read_text("utf-8")) == set()


def test_every_module_named_in_a_docstring_exists() -> None:
    sources = sorted((ROOT / "src").rglob("*.py"))
    found = {str(path.relative_to(ROOT)): missing_modules(path.read_text("utf-8")) for path in sources}
    assert {path: names for path, names in found.items() if names} == {}


def missing_modules(text: str) -> set[str]:
    """Return the files of this repository that a text names in backticks and that are not there."""
    named = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|java|sh|toml))(?:::[\w:]+)?`", text))
    roots = (ROOT, ROOT / "src", ROOT / "src" / "frazil", ROOT / "docs")
    return {name for name in named if not any((root / name).exists() for root in roots)}


def test_decisions_are_numbered_without_gaps_and_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    files = sorted(path.name for path in folder.glob("0*.md"))
    assert [name[:4] for name in files] == [f"{number:04d}" for number in range(1, len(files) + 1)]
    assert re.findall(r"\]\((0[^)]*)\)", (folder / "README.md").read_text("utf-8")) == files
    for name in files:
        assert (folder / name).read_text("utf-8").startswith(f"# {name[:4]}. ")


def lines_of(path: str) -> int:
    """Return the number of lines of a file of the package, or of the sources of a folder."""
    found = ROOT / "src" / "frazil" / path
    files = [found] if found.is_file() else [one for one in found.rglob("*") if one.suffix in {".py", ".java"}]
    return sum(len(one.read_text("utf-8").splitlines()) for one in files)


def test_line_counts_in_decisions_are_right() -> None:
    counts = [
        (page.name, path, int(lines.replace(",", "")))
        for page in (ROOT / "docs" / "decisions").glob("0*.md")
        for path, lines in re.findall(r"`([\w/.]+)`, ([\d,]+) lines", page.read_text("utf-8"))
    ]
    wrong = [
        (page, path, lines, lines_of(path)) for page, path, lines in counts if abs(lines_of(path) - lines) * 5 > lines
    ]
    assert counts and wrong == [], "more than a fifth off: page, path, lines said, lines"
