"""The source files as syntax trees, for the tests in this folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "frazil"


class SourceFile(NamedTuple):
    """One file of the package."""

    name: str
    """Its path below src/frazil, such as `spec/types.py`."""
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The room it stands in: the first folder, or the module's own name at the top."""
        return self.name.split("/", maxsplit=1)[0].removesuffix(".py")

    def place(self, node: ast.AST) -> str:
        """Where a node stands, for a test's message."""
        return f"src/frazil/{self.name}:{getattr(node, 'lineno', 1)}"


@cache
def source_files() -> tuple[SourceFile, ...]:
    """Read every file of the package."""
    paths = sorted(SOURCE.rglob("*.py"))
    return tuple(
        SourceFile(path.relative_to(SOURCE).as_posix(), text, ast.parse(text))
        for path in paths
        for text in [path.read_text("utf-8")]
    )


def imports_in(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield every import at any depth with the name of the module imported; calls of import functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            yield node, node.module or ""
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "__import__"):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant):
                    yield node, str(argument.value)


def is_under(module: str, package: str) -> bool:
    """Return whether a module is a package or stands inside it."""
    return module == package or module.startswith(f"{package}.")
