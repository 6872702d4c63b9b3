"""The test that shows each row of `docs/options.md`, in `options_shown.txt`; `--write` writes the page.

A row that no test shows yet is left out of the list, and has none on the page. Tests are functions, or files of SQL
cases, which `tests/spark/test_sql_cases.py` runs.
"""

from __future__ import annotations

import argparse
import ast
from functools import cache
from pathlib import Path

from frazil.jar import options as o
from frazil.jar.surface import PROCEDURES
from frazil.maintenance.rewrite_options import DATA_OPTIONS, HINTS, ZORDER_OPTIONS
from frazil.spec import properties as p
from frazil.spec.property_kinds import ColumnProperty, Property
from frazil.spec.unused_properties import NOT_HONOURED, REFUSED
from tools.options_markdown import options_markdown

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "options.md"
LIST = ROOT / "tests" / "architecture" / "options_shown.txt"
SECTIONS = {
    "read": o.READ,
    "source": o.SOURCE,
    "feed": o.CHANGE_FEED,
    "stream": o.STREAM_READ,
    "write": o.WRITE,
    "sink": o.STREAM_WRITE,
    "foreign": o.FOREIGN,
    "setting": o.SETTINGS,
}

REWRITES = {
    one: "how the jar's engine shuffles rows" if one in HINTS else ""
    for one in dict.fromkeys((*DATA_OPTIONS, *ZORDER_OPTIONS))
}


def all_rows() -> list[tuple[str, str]]:
    """Return every row of the page: its section and its name."""
    rows = [(key, one.name) for key, options in SECTIONS.items() for one in options]
    for names in (p.TABLE_PROPERTIES, p.COLUMN_PROPERTIES, p.VIEW_PROPERTIES):
        rows += [("property", one.name) for one in names.values() if ("property", one.name) not in rows]
    rows += [("procedure", f"{name}({one})") for name, arguments in PROCEDURES.items() for one in arguments]
    return rows + [("rewrite", name) for name in REWRITES]


def answer_of(section: str, name: str) -> str:
    """Return what becomes of a row."""
    if section == "property":
        return "refused" if name in REFUSED else "kept" if name in NOT_HONOURED else "honoured"
    if section == "procedure":
        return "honoured"
    if section == "rewrite":
        return "same" if REWRITES[name] else "honoured"
    return next(str(one.answer) for one in SECTIONS[section] if one.name == name)


def names_of(section: str, name: str) -> set[str]:
    """Return how a test may write what it shows."""
    plain = name.rstrip("*")
    found = {plain, plain.lower(), plain.rstrip(".")}
    if (section, name) == ("read", "path"):
        found.add("load")
    if section == "rewrite":
        found.add(plain.replace("-", "_").replace(".", "_"))
    if section == "setting":
        option = next((one for one in (*o.READ, *o.STREAM_READ, *o.WRITE) if one.setting == name), None)
        found |= {"SETTINGS"} | ({option.name} if option is not None else set())
    found |= {
        list_of
        for key, list_of in (("read", "READ"), ("write", "WRITE"), ("stream", "STREAM_READ"), ("foreign", "FOREIGN"))
        if key == section
    }
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


@cache
def _module(path: Path) -> tuple[str, ast.Module]:
    text = path.read_text()
    return text, ast.parse(text)


def find_test(test: str) -> ast.FunctionDef | None:
    """Return the function of a test, of a class too; None where there is none."""
    path, _, name = test.partition("::")
    if not (ROOT / path).is_file() or not path.endswith(".py"):
        return None
    functions = (one for one in ast.walk(_module(ROOT / path)[1]) if isinstance(one, ast.FunctionDef))
    return next((one for one in functions if one.name == name), None)


def test_text(test: str) -> str | None:
    """Return the text of a test with its decorators, and of the constants and helpers of its module that it names.

    A file of SQL cases is text as a whole. None where there is no such test.
    """
    file = ROOT / test.partition("::")[0]
    if file.suffix == ".txt":
        return file.read_text() if file.is_file() else None
    function = find_test(test)
    if function is None:
        return None
    text, tree = _module(file)
    parts: list[ast.stmt] = [function]
    for part in parts:
        named = {one.id for one in ast.walk(part) if isinstance(one, ast.Name)}
        named |= {one.arg for one in ast.walk(part) if isinstance(one, ast.arg)}
        for node in tree.body:
            targets = {one.id for one in getattr(node, "targets", []) if isinstance(one, ast.Name)}
            if node not in parts and named & {*targets, getattr(node, "name", None)}:
                parts.append(node)
    lines = text.splitlines()
    return "\n".join("\n".join(lines[_first(one) - 1 : one.end_lineno]) for one in parts)


def _first(node: ast.stmt) -> int:
    return min([int(node.lineno), *(int(one.lineno) for one in getattr(node, "decorator_list", []))])


def shows_something(test: str) -> bool:
    """Return whether a test looks at what came out, and not only at refusals."""
    function = find_test(test)
    return function is None or any(isinstance(one, ast.Assert) for one in ast.walk(function))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    PAGE.write_text(options_markdown(read_shown(), REWRITES))
