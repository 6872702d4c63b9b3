"""Names say what they hold, and names of tests are plain English: vague words and odd patterns become fewer."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.architecture.source_files import ROOT, SOURCE, source_files

AT_MOST = {"one": 24, "kind": 38, "part": 6, "place": 4, "told": 0, "at": 4, "shown": 5}
"""How often each is a variable, an argument, a field, a function or a class; lower a number when there are fewer."""

PARTICIPLES = {"found": 124, "made": 91, "known": 32, "wanted": 23, "left": 95, "kept": 35, "given": 17}
"""How often a participle is a name without its noun. `left` is also the side of an operator."""
JAVA_PARTICIPLES = {"found": 19, "made": 8, "known": 16, "wanted": 1, "left": 1, "kept": 0, "given": 2}
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


def test_vague_words_do_not_return() -> None:
    counts = Counter(name for file in source_files() for name in _bound_names(file.tree) if name in AT_MOST)
    assert _excess(counts, AT_MOST) == []


def test_participles_are_not_names() -> None:
    counts = Counter(name for file in source_files() for name in _bound_names(file.tree) if name in PARTICIPLES)
    assert _excess(counts, PARTICIPLES) == []


def test_participles_are_not_names_in_java() -> None:
    texts = (_JAVA_TEXT.sub("", path.read_text("utf-8")) for path in SOURCE.rglob("*.java"))
    assert _excess(Counter(name for text in texts for name in _JAVA_BINDING.findall(text)), JAVA_PARTICIPLES) == []


def test_banned_names_do_not_return() -> None:
    names = {
        (file.name, name)
        for file in source_files()
        for name in _bound_names(file.tree)
        if BANNED.search(name) is not None
    }
    assert sorted(names - STILL) == [], "name the caller, the message, the option or the error"


PLAIN_WORDS = {
    r"_what(?:ever)?_(?:is|was|has|had|would|does|it|they|cannot|no|only)_": "a noun",
    r"_(?:who|whoever)_(?:is|was|comes|has)_": "a noun, such as caller or writer",
    r"_where_(?:it|they|there|that|no|nothing|asked|one)(?:_|$)": "if, when or in",
    r"_(?:told|said|says?|heard)(?:_|$)": "reported, logged, returned or shown",
    r"_(?:is|are|was|were)_(?:no|none)(?:_|$)": "is not a, or missing",
    r"_(?:nobody|somebody|anybody|strangers|another[s]|ours|theirs)(?:_|$)": "unknown, untrusted or another",
    r"_as_(?:it|they)_(?:is|are|was|were|stands?|lies?)(?:_|$)": "unchanged",
    r"_anew(?:_|$)": "again, or recreated",
    r"_answers?_(?:is|are|was|were)_lost(?:_|$)": "a lost response",
    r"_(?:is|are)_not_there(?:_|$)|_there_(?:is|are)(?:_|$)": "missing, or existing",
    r"_[a-z]+_s_[a-z]": "a noun before a noun: console_token, not console_s_token",
}
"""Patterns in the names of tests that strangers stumble over, with what to write instead."""


def test_names_of_tests_are_plain_english() -> None:
    names = [
        name
        for file in sorted((ROOT / "tests").rglob("*.py"))
        for name in re.findall(r"^ *def (test_\w+)\(", file.read_text("utf-8"), re.MULTILINE)
    ]
    odd = [f"{name}: write {hint}" for name in names for form, hint in PLAIN_WORDS.items() if re.search(form, name)]
    assert not odd, "\n".join(odd)
