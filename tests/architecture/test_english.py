"""Docstrings and comments are plain English: phrases that translate a foreign grammar become fewer, never more."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.architecture.source_files import ROOT, SOURCE, source_files


class Phrase(NamedTuple):
    """A phrase, how often it may occur in Python and in Java, and what to write instead."""

    name: str
    pattern: str
    python: int
    java: int
    better: str


_PRODUCTS = (
    r"(?:Spark|PySpark|Python|Java|DuckDB|Amazon|AWS|Azure|Google|Iceberg|Iceberg Java|Arrow|frazil|Delta|Hive|pandas"
    r"|Polars|PostgreSQL|SQLite|Parquet|Hadoop|sqlglot)"
)
_NO_NOUN = "own|that|which|and|or|is|are|in|to|with|for|on|by|as|at"
PHRASES = (
    Phrase(
        "where-as-if",
        r"(?i)\bwhere (?:there|it|they|that|this|those|these|no|none|nothing|nobody|neither|not)\b",
        102,
        1,
        'a condition takes "if" or "when": "None if there is none", not "None where there is none"',
    ),
    Phrase(
        "is-no",
        r"(?<!there )\b(?:is|are|was|were) (?:no|none)\b(?! longer| more)",
        27,
        0,
        'negate the verb: "it is not a token", not "it is no token"; "not ours", not "none of ours"',
    ),
    Phrase(
        "is-told",
        r"\b(?:is|are|was|were|be|been|being) (?:told|said)\b",
        17,
        0,
        'name who acts: "reports", "logs", "passes", "the caller knows"',
    ),
    Phrase(
        "of-Spark's",
        rf"\b(?:of|is|are|was|as) {_PRODUCTS}'s(?=[.,;:)]|\s+(?:{_NO_NOUN})\b|\s*$)",
        31,
        2,
        'use the name as an adjective: "a Spark error", not "an error of Spark\'s"; "as in Iceberg Java"',
    ),
    Phrase(
        "what-is",
        r"(?i)\bwhat (?:is|has|was|are|were|had)\b",
        54,
        2,
        'a noun: "the argument", not "what is passed"; "its state", not "what is known of it"',
    ),
    Phrase(
        "whoever",
        r"(?i)\b(?:whoever|nobody|somebody)\b",
        21,
        0,
        'name them: "the caller", "another writer", "the other columns"',
    ),
    Phrase(
        "as-it-is",
        r"(?i)(?<!long )(?<!far )(?<!soon )\bas (?:it is|they are|it stands|they stand|it was|they were)\b",
        51,
        1,
        '"unchanged", "present", "as written"',
    ),
)


class Place(NamedTuple):
    """A docstring or comment, and where it stands."""

    place: str
    text: str


def _python_texts() -> Iterator[Place]:
    for file in source_files():
        for node in ast.walk(file.tree):
            value = node.value if isinstance(node, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield Place(f"src/frazil/{file.name}:{value.lineno}", " ".join(value.value.split()))
        for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
            if token.type == tokenize.COMMENT:
                yield Place(f"src/frazil/{file.name}:{token.start[0]}", token.string)


def _java_texts() -> Iterator[Place]:
    for path in sorted(SOURCE.rglob("*.java")):
        text = path.read_text("utf-8")
        for comment in re.finditer(r"/\*.*?\*/|//[^\n]*", text, re.DOTALL):
            line = text.count("\n", 0, comment.start()) + 1
            words = " ".join(re.sub(r"^\s*\*", "", comment[0], flags=re.MULTILINE).split())
            yield Place(f"{path.relative_to(ROOT).as_posix()}:{line}", words)


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase.name)
def test_odd_phrases_do_not_return(phrase: Phrase) -> None:
    for texts, ceiling in ((_python_texts(), phrase.python), (_java_texts(), phrase.java)):
        hits = [
            f"{place}: …{text[max(0, match.start() - 50) : match.end() + 30]}…"
            for place, text in texts
            for match in re.finditer(phrase.pattern, text)
        ]
        assert len(hits) <= ceiling, (
            f"{len(hits)} times, and at most {ceiling} are allowed (lower the number if there are fewer).\n"
            f"Write {phrase.better}.\n" + "\n".join(hits)
        )
