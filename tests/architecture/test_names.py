"""Names say what they hold: words that fit everything are used no more often than they are now."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tests.architecture.source_files import source_files

AT_MOST = {"one": 24, "kind": 38, "part": 6, "place": 4, "told": 0, "at": 4, "shown": 5}
"""How often each is a variable, an argument, a field, a function or a class; lower a number when there are fewer."""


def _bound_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.MatchAs):
            yield node.name or ""


def test_vague_words_do_not_return() -> None:
    found = Counter(name for file in source_files() for name in _bound_names(file.tree) if name in AT_MOST)
    assert {word: count for word, count in found.items() if count > AT_MOST[word]} == {}
