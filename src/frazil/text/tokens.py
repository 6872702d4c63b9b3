r"""The lexer: text cut into tokens by the lexical rules of Spark SQL.

    words       letters, digits and underscores with at least one letter or underscore: `a`, `1a`, `_x`, `s3://a/b`
    quoted      `` `anything, ``doubled`` to stand for itself` ``
    strings     'text' and "text", with \ escapes or the quote doubled; r'raw'; $tag$text$tag$
    numbers     1, 1.5, .5, 1e3, and 1L, 1S, 1Y, 1.5F, 1.5D, 1.5BD
    comments    -- to the end of the line, /* nested */
    hints       the marks /*+ and */ with tokens between them
    marks       => -> :: <=> and the like, and >> where no array<, map< or struct< is open; other characters alone

All grammars of frazil read these tokens; what they refuse of them (text in double quotes, hints) is theirs to say.
Tokens are cut one at a time as they are asked for: a statement whose tail is a query of a megabyte costs its head.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from frazil.text.literals import read_text

WORD = "word"
QUOTED = "quoted"
STRING = "string"
NUMBER = "number"
MARK = "mark"
END = "end"
BROKEN = "broken"

_SPACE = "[ \t\n\f\r\v\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]"
_TOKEN = re.compile(
    rf"""
    (?P<space>(?:{_SPACE}|--(?:\\\n|[^\r\n])*)+)
  | (?P<string>[rR](?:'[^']*'|"[^"]*") | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[fFdD])?(?![0-9A-Za-z_])
              | [0-9]+[eE][+-][0-9]+(?:[bB][dD]|[fFdD])? | [0-9]+[lLsSyY]?(?![0-9A-Za-z_]))
  | (?P<word>[A-Za-z0-9_]+)
  | (?P<comment>/\*(?!\+))
  | (?P<mark>/\*\+|\*/|<=>|<<|<=|<>|>>>?|!=|!>|!<|==|>=|=>|->|\|\||\|>|::|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_NESTED_TYPES = frozenset({"array", "map", "struct"})
_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")
_DOLLARS = re.compile(r"(?=(\$[A-Za-z]*\$))")


class Token(NamedTuple):
    """One token and its position in the text."""

    kind: str
    text: str
    """The token as written; for the kind `broken`, the reason why it is invalid."""
    start: int
    end: int

    @property
    def value(self) -> str:
        """The text that a string stands for, a name without its quotes; other tokens as written."""
        if self.kind == QUOTED:
            return self.text[1:-1].replace("``", "`")
        return read_text(self.text) if self.kind == STRING else self.text

    @property
    def word(self) -> str:
        """The word in lower case; empty for other tokens."""
        return self.text.lower() if self.kind == WORD else ""

    @property
    def upper(self) -> str:
        """The word in upper case; empty for other tokens."""
        return self.text.upper() if self.kind == WORD else ""

    def is_mark(self, mark: str) -> bool:
        """Return whether this is the given mark."""
        return self.kind == MARK and self.text == mark


def cut_tokens(text: str, offset: int = 0) -> Iterator[Token]:
    """Yield the tokens of a text; a quote or comment that does not end gives a last one of kind `broken`."""
    match_at, size, dollars = _TOKEN.match, len(text), _Dollars(text)
    open_types = 0
    while offset < size:
        match = match_at(text, offset)
        assert match is not None
        group, start, offset = match.lastgroup, offset, match.end()
        if group == "space":
            continue
        if group == "comment":
            end = _comment_end(text, offset)
            if end is not None:
                offset = end
                continue
            token = Token(BROKEN, "the comment does not end", start, size)
        else:
            token = Token(str(group), match[0], start, offset)
            if group == MARK or (offset < size and text[offset] > "\x7f") or text.startswith("://", offset):
                token = _unusual(text, start, token, dollars)
        if token.kind == WORD and token.text[0] in "aAmMsS":
            open_types += token.word in _NESTED_TYPES
        elif token.kind == MARK and token.text[0] == ">" and open_types and token.text != ">=":
            token = Token(MARK, ">", start, start + 1)
            open_types -= 1
        yield token
        if token.kind == BROKEN:
            return
        offset = token.end


def without_hints(tokens: Iterable[Token]) -> Iterator[Token]:
    """Yield tokens without hints, which mean nothing to a lake."""
    is_hint = False
    for token in tokens:
        if token.kind == MARK and token.text in ("/*+", "*/"):
            is_hint = token.text == "/*+"
        elif not is_hint or token.kind == BROKEN:
            yield token


def _unusual(text: str, start: int, token: Token, dollars: _Dollars) -> Token:
    """Return the token at an offset where a letter beyond ASCII, a dollar sign, an address or no token may be."""
    char = text[start]
    if char in "'\"":
        return token if token.kind == STRING else Token(BROKEN, "the string does not end", start, len(text))
    if char == "`":
        return token if token.kind == QUOTED else Token(BROKEN, "the quoted name does not end", start, len(text))
    if char == "$" and (quoted := dollars.string_at(start)) is not None:
        return quoted
    end = start
    while end < len(text) and (text[end].isalpha() or text[end] in "_0123456789"):
        end += 1
    if end > start and text.startswith("://", end) and text[start:end].isalpha():
        after = end + 3
        while after < len(text) and (text[after].isalpha() or text[after] in "_0123456789/-.?=&#%"):
            after += 1
        end = after if after > end + 3 else end
    is_word = end > token.end or (end > start and token.kind in (WORD, MARK))
    return Token(WORD, text[start:end], start, end) if is_word else token


class _Dollars:
    """The positions of the tags of a text that may quote a string, searched for once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: dict[str, list[int]] | None = None

    def string_at(self, offset: int) -> Token | None:
        """Return the string that starts at a position, or None if none does."""
        if self._places is None:
            self._places = {}
            for match in _DOLLARS.finditer(self._text, offset):
                self._places.setdefault(match[1], []).append(match.start())
        opening = _DOLLARS.match(self._text, offset)
        if opening is None:
            return None
        tag = opening[1]
        places = self._places[tag]
        after = bisect_left(places, offset + len(tag))
        if after == len(places):
            return Token(BROKEN, "the string does not end", offset, len(self._text))
        end = places[after] + len(tag)
        return Token(STRING, self._text[offset:end], offset, end)


def _comment_end(text: str, offset: int) -> int | None:
    """Return where a comment ends, or None if it does not."""
    depth = 1
    while depth:
        edge = _COMMENT_EDGE.search(text, offset)
        if edge is None:
            return None
        depth += -1 if edge[0] == "*/" else 1
        offset = edge.end()
    return offset
