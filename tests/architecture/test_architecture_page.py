"""docs/architecture.md: what it says is built is in the tree. A circle (○) stands before what is still to come."""

from __future__ import annotations

import re

from tests.architecture.source_files import ROOT, SOURCE
from tools.module_index import module_index

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, title
    return found.group(1)


def test_every_existing_room_on_the_page_exists_in_src() -> None:
    rooms = re.findall(r"^\| `([\w/.]+)`", section("Rooms that are built"), re.MULTILINE)
    assert rooms
    assert [room for room in rooms if not (SOURCE / room).exists()] == []


def test_every_file_on_both_walks_exists_or_is_marked_as_planned() -> None:
    text = section("One scan, file by file") + section("One append, file by file")
    claimed = re.findall(r"(○ )?`([a-z_]+/(?:[a-z_0-9]+\.py)?)`", text)
    assert claimed
    assert [path for to_come, path in claimed if not to_come and not (SOURCE / path).exists()] == []


def test_module_list_matches_the_source_tree() -> None:
    assert (ROOT / "docs" / "modules.md").read_text("utf-8") == module_index(), "run make names"
