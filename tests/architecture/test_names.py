"""Names say what they hold, and names of tests are plain English: vague words and odd patterns do not return."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.architecture.source_files import ROOT, source_files

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


PLAIN_WORDS = {
    r"_what(?:ever)?_(?:is|was|has|had|would|does|it|they|cannot|no|only)_": "a noun",
    r"_(?:who|whoever)_(?:is|was|comes|has)_": "a noun, such as caller or writer",
    r"_where_(?:it|they|there|that|no|nothing|asked|one)(?:_|$)": "if, when or in",
    r"_(?:told|said|says?|heard)(?:_|$)": "reported, logged, returned or shown",
    r"_(?:is|are|was|were)_(?:no|none)(?:_|$)": "is not a, or missing",
    r"_(?:nobody|somebody|anybody|strangers|anothers|ours|theirs)(?:_|$)": "unknown, untrusted or another",
    r"_as_(?:it|they)_(?:is|are|was|were|stands?|lies?)(?:_|$)": "unchanged",
    r"_anew(?:_|$)": "again, or recreated",
    r"_answers?_(?:is|are|was|were)_lost(?:_|$)": "a lost response",
    r"_(?:is|are)_not_there(?:_|$)|_there_(?:is|are)(?:_|$)": "missing, or existing",
    r"_[a-z]+_s_[a-z]": "a noun before a noun: console_token, not console_s_token",
}
"""Patterns in the names of tests that strangers stumble over, with what to write instead."""


def test_names_of_tests_are_plain_english() -> None:
    names = [
        node.name
        for file in sorted((ROOT / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    odd = [f"{name}: write {hint}" for name in names for form, hint in PLAIN_WORDS.items() if re.search(form, name)]
    assert not odd, "\n".join(odd)
