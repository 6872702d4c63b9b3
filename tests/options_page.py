"""The test that shows each row of `docs/options.md`, in `tests/options_shown.txt`; `--write` writes the page.

A row that no test shows yet is left out of the list, and has none on the page.
"""

from __future__ import annotations

import argparse
import ast
from pathlib import Path

from frazil.spec import options as o
from frazil.spec import properties as p
from frazil.spec.jar_surface import PROCEDURES
from frazil.spec.options_markdown import options_markdown
from frazil.spec.properties_markdown import NOT_HONOURED
from frazil.spec.property_kinds import ColumnProperty, Property

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "options.md"
LIST = ROOT / "tests" / "options_shown.txt"
SECTIONS = {
    "read": o.READ,
    "stream": o.STREAM_READ,
    "write": o.WRITE,
    "sink": o.STREAM_WRITE,
    "foreign": o.FOREIGN,
    "setting": o.SETTINGS,
}


def all_rows() -> list[tuple[str, str]]:
    """Return every row of the page: its section and its name."""
    rows = [(key, one.name) for key, options in SECTIONS.items() for one in options]
    for names in (p.TABLE_PROPERTIES, p.COLUMN_PROPERTIES, p.VIEW_PROPERTIES):
        rows += [("property", one.name) for one in names.values() if ("property", one.name) not in rows]
    return rows + [("procedure", f"{name}({one})") for name, arguments in PROCEDURES.items() for one in arguments]


def names_of(section: str, name: str) -> set[str]:
    """Return how a test may write what it shows."""
    plain = name.rstrip("*")
    found = {plain, plain.lower(), plain.rstrip(".")}
    if section == "setting":
        option = next((one for one in (*o.READ, *o.STREAM_READ, *o.WRITE) if one.setting == name), None)
        found |= {"SETTINGS"} | ({option.name} if option is not None else set())
    if section in ("read", "write", "stream", "foreign"):
        found |= {{"read": "READ", "write": "WRITE", "stream": "STREAM_READ", "foreign": "FOREIGN"}[section]}
    if section == "property":
        found |= {"NOT_HONOURED"} if name in NOT_HONOURED else set()
        found |= {
            key for key, one in vars(p).items() if isinstance(one, Property | ColumnProperty) and one.name == name
        }
    return found


def read_shown() -> dict[tuple[str, str], str]:
    """Return the test of each row."""
    found = {}
    for line in LIST.read_text().splitlines():
        section, name, test = line.split(" ")
        found[section, name] = test
    return found


def test_text(test: str) -> str | None:
    """Return the text of a test and its decorators, of a whole file, or None where there is no such test."""
    path, _, function = test.partition("::")
    file = ROOT / path
    if not file.is_file():
        return None
    text = file.read_text()
    if not function:
        return text
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    PAGE.write_text(options_markdown(read_shown()))
