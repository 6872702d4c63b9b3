r"""SQL text cut into tokens, by the lexical rules of Spark SQL.

    words       letters, digits and underscores with at least one letter or underscore: `a`, `1a`, `_x`
    quoted      `` `anything, ``doubled`` to stand for itself` ``
    strings     'text' and "text", with \ escapes or the quote doubled; r'raw'; $tag$text$tag$
    numbers     1, 1.5, .5, 1e3, and 1L, 1S, 1Y, 1.5F, 1.5D, 1.5BD
    comments    -- to the end of the line, /* nested */; a hint (/*+ ... */) is skipped like a comment
    marks       => -> :: <=> and the like; any other character by itself

Tokens are cut one at a time as they are asked for: a statement whose tail is a query of a megabyte costs its head.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from frazil.spec.token_cursor import BROKEN, MARK, NUMBER, QUOTED, STRING, WORD, Token

_SPACE = re.compile(r"(?:\s|--(?:\\\n|[^\r\n])*)+")
_NUMBER = re.compile(r"(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:BD|bd|Bd|bD|[lLsSyYfFdD])?(?![\w])")
_WHOLE_NUMBER = re.compile(r"\d+(?!\w)")
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")
_STRINGS = {
    "'": re.compile(r"'((?:[^'\\]|\\.|'')*)'", re.DOTALL),
    '"': re.compile(r'"((?:[^"\\]|\\.|"")*)"', re.DOTALL),
}
_RAW = re.compile(r"[rR](?:'([^']*)'|\"([^\"]*)\")")
_DOLLARS = re.compile(r"(?=(\$\w*\$))")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_MARK = re.compile(r"<=>|=>|->|::|<=|<>|!=|>=|==|\|\||\|>|.", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_LAST_CHARACTER = 0x10FFFF


def cut_tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text; a quote or comment that does not end gives a last one of kind `broken`."""
    offset = 0
    size = len(text)
    after_dot = False
    dollars = _Dollars(text)
    while True:
        space_end = _skip_space(text, offset)
        if space_end is None:
            yield Token(BROKEN, "the comment does not end", _skip_plain(text, offset), size)
            return
        offset = space_end
        if offset >= size:
            return
        token = _token_at(text, offset, dollars, after_dot=after_dot)
        yield token
        if token.kind == BROKEN:
            return
        after_dot = token.kind == MARK and token.text == "."
        offset = token.end


class _Dollars:
    """Where the tags of a text stand that may quote a string, each looked for once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places: dict[str, list[int]] | None = None

    def string_at(self, offset: int) -> tuple[str, int] | None:
        """Return the string that starts at a position, and where it ends; None where none does."""
        if self._places is None:
            self._places = {}
            for found in _DOLLARS.finditer(self._text, offset):
                self._places.setdefault(found[1], []).append(found.start())
        opening = _DOLLARS.match(self._text, offset)
        if opening is None:
            return None
        tag = opening[1]
        places = self._places[tag]
        after = bisect_left(places, offset + len(tag))
        if after == len(places):
            return None
        return self._text[offset + len(tag) : places[after]], places[after] + len(tag)


def _token_at(text: str, offset: int, dollars: _Dollars, *, after_dot: bool) -> Token:
    char = text[offset]
    if char == "`":
        found = _QUOTED.match(text, offset)
        if found is None:
            return Token(BROKEN, "the quoted name does not end", offset, len(text))
        return Token(QUOTED, found[1].replace("``", "`"), offset, found.end())
    if char in _STRINGS:
        found = _STRINGS[char].match(text, offset)
        if found is None:
            return Token(BROKEN, "the string does not end", offset, len(text))
        return Token(STRING, _unescape(found[1], char), offset, found.end())
    if char == "$":
        quoted = dollars.string_at(offset)
        if quoted is not None:
            return Token(STRING, quoted[0], offset, quoted[1])
    if char in "rR":
        found = _RAW.match(text, offset)
        if found is not None:
            return Token(STRING, found[1] if found[1] is not None else found[2], offset, found.end())
    if char.isdigit() or (char == "." and text[offset + 1 : offset + 2].isdigit() and not after_dot):
        # After a dot, digits are a part of a name (`t.1`), as after a name (`t.1a`), which no number can follow.
        pattern = _WHOLE_NUMBER if after_dot else _NUMBER
        found = None if char == "." and _is_in_name(text, offset) else pattern.match(text, offset)
        if found is not None:
            return Token(NUMBER, found[0], offset, found.end())
    found = _WORD.match(text, offset)
    if found is not None:
        return Token(WORD, found[0], offset, found.end())
    found = _MARK.match(text, offset)
    assert found is not None
    return Token(MARK, found[0], offset, found.end())


def _is_in_name(text: str, offset: int) -> bool:
    """Return whether a dot follows a name without a space, so that digits behind it are its next part."""
    return offset > 0 and (text[offset - 1].isalnum() or text[offset - 1] in "_`")


def _skip_plain(text: str, offset: int) -> int:
    found = _SPACE.match(text, offset)
    return offset if found is None else found.end()


def _skip_space(text: str, offset: int) -> int | None:
    """Return where the next token starts; None where a comment does not end."""
    while True:
        offset = _skip_plain(text, offset)
        if not text.startswith("/*", offset):
            return offset
        depth, offset = 1, offset + 2
        while depth:
            edge = _COMMENT_EDGE.search(text, offset)
            if edge is None:
                return None
            depth += 1 if edge[0] == "/*" else -1
            offset = edge.end()


def _unescape(text: str, quote: str) -> str:
    if "\\" not in text:
        return text.replace(quote * 2, quote)
    # Doubled quotes are plain text between escapes; an escaped backslash before one does not touch it.
    parts: list[str] = []
    offset = 0
    for found in _ESCAPE.finditer(text):
        parts.append(text[offset : found.start()].replace(quote * 2, quote))
        parts.append(_unescaped(found))
        offset = found.end()
    parts.append(text[offset:].replace(quote * 2, quote))
    return "".join(parts)


def _unescaped(found: re.Match[str]) -> str:
    four, eight, octal, plain = found.groups()
    if four is not None or eight is not None:
        number = int(four or eight, 16)
        return chr(number) if number <= _LAST_CHARACTER else found[0]
    if octal is not None:
        return chr(int(octal, 8))
    return _ESCAPED.get(plain, plain)
