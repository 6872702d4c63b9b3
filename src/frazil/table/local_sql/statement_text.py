"""Statements of `lake.sql` as text and as trees: parse them, cut queries out of them, read their names.

DuckDB's own parser decides what its dialect is, and how many statements a text has. It serialises queries only, so the
tree of a statement is sqlglot's (docs/decisions/0036). The queries inside a statement are cut out of its text, so that
DuckDB runs them as they are written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NoReturn

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokenizer_core import Token

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.query.engine import split_statements
from frazil.table.parse_name import parse_name

MAX_LENGTH = 1_000_000
"""How many characters a statement may have, without the data that it names."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement: its text, its tree, and its tokens."""

    text: str
    tree: exp.Expr
    tokens: tuple[Token, ...]

    def after(self, index: int) -> str:
        """Return the text from a token on."""
        return self.text[self.tokens[index].start :]

    def between(self, first: int, last: int) -> str:
        """Return the text from one token to before another."""
        return self.text[self.tokens[first].start : self.tokens[last].start]

    def find(self, *words: str, start: int = 0) -> int | None:
        """Return the index of the first of these words in a row that is not in brackets, from an index on."""
        depth = 0
        for index in range(start, len(self.tokens)):
            text = self.tokens[index].text
            if text in ("(", "[", "{") and not self._is_quoted(index):
                depth += 1
            elif text in (")", "]", "}") and not self._is_quoted(index):
                depth -= 1
            elif depth == 0 and self._has_words(index, words):
                return index
        return None

    def _has_words(self, index: int, words: tuple[str, ...]) -> bool:
        return index + len(words) <= len(self.tokens) and all(
            self.tokens[index + step].text.lower() == word and not self._is_quoted(index + step)
            for step, word in enumerate(words)
        )

    def _is_quoted(self, index: int) -> bool:
        return self.text[self.tokens[index].start] in "'\"$"


def parse_statement(text: str) -> Statement:
    """Return the one statement of a text; refuse what DuckDB does not parse, and more than one."""
    if len(text) > MAX_LENGTH:
        raise InvalidRequestError(
            f"Cannot run the statement: it has more than {MAX_LENGTH:,} characters",
            hint="Give the data by name: lake.sql('insert into db.t from rows', rows=…).",
        )
    _check_with_duckdb(text)
    with _parser_errors():
        tokens = tuple(sqlglot.Dialect.get_or_raise("duckdb").tokenize(text))
        tokens, text = _without_position(tokens, text)
        trees = [
            tree
            for tree in sqlglot.parse(text, read="duckdb")
            if tree is not None and not isinstance(tree, sqlglot.exp.Semicolon)
        ]
    if len(trees) != 1:
        raise InvalidRequestError("Cannot run the statement: the text has no statement", hint="Write one.")
    while tokens and tokens[-1].text == ";":
        text, tokens = text[: tokens[-1].start], tokens[:-1]
    return Statement(text, trees[0], tokens)


def _without_position(tokens: tuple[Token, ...], text: str) -> tuple[tuple[Token, ...], str]:
    """Return a statement without BY POSITION after INSERT INTO, which is how columns are matched anyway."""
    depth = 0
    for index, token in enumerate(tokens[:-1]):
        word = token.text.lower()
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth == 0 and word in ("select", "values", "from", "table"):
            break
        if depth == 0 and word == "by" and tokens[index + 1].text.lower() == "position":
            start, end = token.start, tokens[index + 1].end + 1
            plain = text[:start] + " " * (end - start) + text[end:]
            return (*tokens[:index], *tokens[index + 2 :]), plain
    return tokens, text


def _check_with_duckdb(text: str) -> None:
    count = len(split_statements(text))
    if count > 1:
        raise InvalidRequestError(f"Cannot run {count} statements at once", hint="Run them one by one.")


_IS_QUIET: ContextVar[bool] = ContextVar("is_quiet", default=False)


def _is_logged(record: logging.LogRecord) -> bool:
    """Keep warnings of sqlglot about statements that are refused anyway out of the log."""
    return not _IS_QUIET.get()


@contextmanager
def _parser_errors() -> Iterator[None]:
    """Turn errors of sqlglot into errors of frazil."""
    logging.getLogger("sqlglot").addFilter(_is_logged)  # which adds it once
    token = _IS_QUIET.set(True)
    try:
        yield
    except SqlglotError as error:
        raise UnsupportedError(
            "Cannot run the statement: it has a part that is not supported for lake tables",
            hint="docs/local-sql.md has the statements of lake.sql. The Python methods do the rest.",
        ) from error
    except RecursionError as error:
        raise UnsupportedError("Cannot run the statement: it is nested too deeply") from error
    finally:
        _IS_QUIET.reset(token)


def sql_of(node: exp.Expr, length: int = 200) -> str:
    """Return a part of a statement as text for an error."""
    text = node.sql("duckdb", unsupported_level=ErrorLevel.IGNORE)
    return text if len(text) <= length else f"{text[: length - 1]}…"


# Names


def name_parts(table: exp.Expr) -> tuple[str, ...]:
    """Return the parts of a table's name as they are written, without quotes."""
    if isinstance(table, exp.Schema):
        table = table.this
    if not isinstance(table, exp.Table):
        raise UnsupportedError(f"Cannot use {sql_of(table)} as a table here", hint="Write namespace.table.")
    return tuple(piece.name for piece in table.parts)


def lake_name(parts: tuple[str, ...], lake: str, *, is_namespace: bool = False) -> tuple[str, ...]:
    """Return the name in a lake that a written name stands for.

    A quoted part with dots is a namespace of several levels: `"lake.a.b".t` and `"a.b".t` are the table `t` in `a.b`.
    """
    names: list[str] = []
    for index, piece in enumerate(parts):
        is_last = index == len(parts) - 1 and not is_namespace
        names += [piece] if is_last else parse_name(piece)
    if len(names) > 1 and names[0] == lake:
        names = names[1:]
    if len(names) == 1 and not is_namespace:
        hint = "Quote the parts one by one." if "." in names[0] else f"Write the namespace: db.{names[0]}."
        raise InvalidRequestError(f"Cannot use the name {names[0]}: it has no namespace", hint=hint)
    return tuple(names)


# What a statement may have


def check_parts(node: exp.Expr, known: Mapping[str, str | None], what: str) -> None:
    """Refuse parts of a statement that the verbs lack; `known` has a hint for parts to be refused, None for others."""
    for piece, child in node.args.items():
        if child in (None, False, [], "") or (piece in known and known[piece] is None):
            continue
        refuse(what, _PART_NAMES.get(piece, piece.rstrip("_").replace("_", " ").upper()), known.get(piece))


def refuse(what: str, piece: str, hint: str | None = None) -> NoReturn:
    """Raise the error for a part of a statement that the verbs lack."""
    raise UnsupportedError(f"Cannot {what}: {piece} is not supported for lake tables", hint=hint)


_PART_NAMES = {
    "with_": "WITH",
    "from_": "FROM",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "conflict": "ON CONFLICT",
    "alternative": "INSERT OR",
    "exists": "IF EXISTS",
    "properties": "TEMPORARY, PARTITIONED BY or another property",
}
