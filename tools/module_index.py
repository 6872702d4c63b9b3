"""Write docs/modules.md: every module of the package, with the first sentence of its docstring.

`--write` writes the page anew, `--check` fails if it differs from the code.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "frazil"
PAGE = ROOT / "docs" / "modules.md"
HEAD = """# Modules

Made from the modules' docstrings by `tools/module_index.py`; do not edit this page. How the rooms depend
on each other: [architecture.md](architecture.md). `__init__.py` files hold no code.
"""


def module_index() -> str:
    """Return the page: a table for each room, in the order of their names."""
    modules = [path.relative_to(SOURCE) for path in sorted(SOURCE.rglob("*.py")) if path.name != "__init__.py"]
    return "\n".join([HEAD, *(line for room, group in groupby(modules, _room) for line in _table(room, list(group)))])


def _room(module: Path) -> str:
    return "" if module.parent == Path() else f"{module.parent.as_posix()}/"


def _table(room: str, modules: list[Path]) -> Iterator[str]:
    yield f"## `{room}`\n" if room else "## At the top\n"
    yield "| module | |"
    yield "|---|---|"
    for module in modules:
        yield f"| `{module.name}` | {first_sentence((SOURCE / module).read_text('utf-8'))} |"
    yield ""


def first_sentence(source: str) -> str:
    """Return the first sentence of a module's docstring, for a cell of a table."""
    docstring = ast.get_docstring(ast.parse(source)) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    sentence = re.split(r"(?<=[.:])\s+(?=[A-Z`])", paragraph)[0].rstrip(":.")
    return sentence.replace("|", "\\|").replace("<", "&lt;")


def main() -> int:
    """Write or check the page."""
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(module_index(), "utf-8")
        return 0
    if sys.argv[1:] == ["--check"]:
        if PAGE.read_text("utf-8") == module_index():
            return 0
        print("docs/modules.md is old; write it: make names")
        return 1
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
