"""Names say what they hold: words that fit everything, and participles without a noun, become fewer, never more."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.architecture.source_files import SOURCE, source_files

AT_MOST = {"one": 24, "kind": 38, "part": 6, "place": 4, "told": 0, "at": 4, "shown": 5}
"""How often each is a variable, an argument, a field, a function or a class; lower a number when there are fewer."""

PARTICIPLES = {"found": 124, "made": 91, "known": 32, "wanted": 23, "left": 95, "kept": 35, "given": 17}
"""How often a participle is a name without its noun. `left` is also the side of an operator."""
JAVA_PARTICIPLES = {"found": 88, "made": 36, "known": 19, "wanted": 4, "left": 1, "kept": 4, "given": 25}
BETTER = {
    "found": "the thing that was found: match, entry, field, status",
    "made": "the thing that was made: snapshot, metadata, response",
    "known": "the thing that is known: cached, columns, allowed_names",
    "wanted": "what it is: requested, expected, projection",
    "left": "remaining, or remaining_files",
    "kept": "retained, remaining, cached",
    "given": "arguments, options, configured",
}
BANNED = re.compile(
    r"(?:^|_)(?:said|told|says|sparks)(?:_|$)|^_*(?:itself|moved|gave_way|not_here|is_users)$",
)
"""Words that are not names: who says something is a caller, a message or an option, and Spark's things have nouns."""
STILL = {
    ("evaluate/condition.py", "_is_sparks"),
    ("expr/project_partition.py", "moved"),
    ("sql/for_spark.py", "said"),
    ("table/lake.py", "_told"),
    ("table/table.py", "_told"),
    ("table/table_figures.py", "said"),
    ("table/verbs.py", "said"),
    ("table/write_overrides.py", "_says"),
    ("table/write_overrides.py", "said"),
    ("table/write_overrides.py", "says"),
}
"""The banned names that are left; take out what is renamed."""
_JAVA_BINDING = re.compile(rf"[\w>\])]\s+({'|'.join(JAVA_PARTICIPLES)})\s*[=;,):(]")
_JAVA_TEXT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\]|\\.)*"', re.DOTALL)


def _bound_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.MatchAs):
            yield node.name or ""


def _excess(counts: Counter[str], ceilings: dict[str, int]) -> list[str]:
    return [
        f"{word}: {count} times, at most {ceilings[word]}; name {BETTER.get(word, 'the thing itself')}"
        for word, count in counts.items()
        if count > ceilings[word]
    ]


def test_words_that_fit_everything_do_not_come_back() -> None:
    counts = Counter(name for file in source_files() for name in _bound_names(file.tree) if name in AT_MOST)
    assert _excess(counts, AT_MOST) == []


def test_participles_are_not_names() -> None:
    counts = Counter(name for file in source_files() for name in _bound_names(file.tree) if name in PARTICIPLES)
    assert _excess(counts, PARTICIPLES) == []


def test_participles_are_not_names_in_java() -> None:
    texts = (_JAVA_TEXT.sub("", path.read_text("utf-8")) for path in SOURCE.rglob("*.java"))
    assert _excess(Counter(name for text in texts for name in _JAVA_BINDING.findall(text)), JAVA_PARTICIPLES) == []


def test_banned_names_do_not_come_back() -> None:
    names = {
        (file.name, name)
        for file in source_files()
        for name in _bound_names(file.tree)
        if BANNED.search(name) is not None
    }
    assert sorted(names - STILL) == [], "name the caller, the message, the option or the error"
