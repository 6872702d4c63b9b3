"""Tokens of a text, read one after the other: what the grammars of types, terms, conditions, expressions and SQL share.

A grammar derives from `TokenCursor`, gives it an iterator of tokens, and adds its rules. Tokens are cut as they are
asked for. What does not fit becomes an error that shows the line and underlines the token.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, NoReturn

from frazil.errors import TextSyntaxError
from frazil.spec.text_place import syntax_error

WORD = "word"
QUOTED = "quoted"
STRING = "string"
NUMBER = "number"
MARK = "mark"
END = "end"
BROKEN = "broken"

_MAX_FOUND_CHARS = 60


class Token(NamedTuple):
    """One token and where it stands in the text."""

    kind: str
    text: str
    """What a grammar reads; for a token of kind `broken`, why it is none."""
    start: int
    end: int

    @property
    def word(self) -> str:
        """The word in small letters; empty for what is no word."""
        return self.text.lower() if self.kind == WORD else ""

    @property
    def upper(self) -> str:
        """The word in capitals; empty for what is no word."""
        return self.text.upper() if self.kind == WORD else ""

    def is_mark(self, mark: str) -> bool:
        """Return whether this is a mark."""
        return self.kind == MARK and self.text == mark


class TokenCursor:
    """A text's tokens, and which of them comes next."""

    def __init__(self, text: str, what: str, tokens: Iterable[Token]) -> None:
        self.text = text
        self._what = what
        self._source = iter(tokens)
        self._tokens: list[Token] = []
        self._index = 0

    # Tokens

    def peek(self, ahead: int = 0) -> Token:
        """Return a coming token without taking it; past the last one its kind is `end`."""
        tokens, index = self._tokens, self._index + ahead
        while len(tokens) <= index:
            token = next(self._source, None)
            if token is None:
                return Token(END, "", len(self.text), len(self.text))
            if token.kind == BROKEN:
                self.fail(token.text, token)
            tokens.append(token)
        return tokens[index]

    def take(self) -> Token:
        """Return the next token and step over it."""
        token = self.peek()
        if token.kind != END:
            self._index += 1
        return token

    def read_on(self, tokens: Iterable[Token]) -> None:
        """Go on with other tokens in place of those that were to come."""
        del self._tokens[self._index :]
        self._source = iter(tokens)

    @property
    def last_end(self) -> int:
        """Where the token before the cursor ends."""
        return self._tokens[self._index - 1].end if self._index else 0

    def position(self) -> int:
        """Return how many tokens were taken, to come back to with `back_to`."""
        return self._index

    def back_to(self, position: int) -> None:
        """Go back to a position."""
        self._index = position

    def since(self, first: Token) -> Token:
        """Return the text from a token to the last one that was taken, as one token."""
        end = max(self.last_end, first.end)
        return Token(STRING, self.text[first.start : end], first.start, end)

    # Words and marks

    def at_words(self, *words: str) -> bool:
        """Return whether these words come next, in any case."""
        for ahead, word in enumerate(words):
            token = self.peek(ahead)
            if token.kind != WORD or token.text.upper() != word.upper():
                return False
        return True

    def take_words(self, *words: str) -> bool:
        """Step over these words if they all come next."""
        if not self.at_words(*words):
            return False
        self._index += len(words)
        return True

    def expect_words(self, *words: str) -> None:
        """Step over these words or refuse what comes instead."""
        if not self.take_words(*words):
            self.fail(f"expected {' '.join(words)}")

    def take_any(self, *words: str) -> str | None:
        """Step over one of these words and return it as it is written here."""
        coming = self.peek().upper
        found = next((word for word in words if word.upper() == coming), None)
        self._index += found is not None
        return found

    def at_mark(self, mark: str) -> bool:
        """Return whether a mark comes next."""
        return self.peek().is_mark(mark)

    def take_mark(self, mark: str) -> bool:
        """Step over a mark if it comes next."""
        matches = self.peek().is_mark(mark)
        self._index += matches
        return matches

    def expect_mark(self, mark: str) -> None:
        """Step over a mark or refuse what comes instead."""
        if not self.take_mark(mark):
            self.fail(f"expected {mark!r}")

    # Errors

    def fail(self, reason: str, token: Token | None = None, hint: str | None = None) -> NoReturn:
        """Refuse a token; without one the coming token, which the message then quotes."""
        if token is None:
            token = self.peek()
            reason = f"{reason}, found {self._quote(token)}"
        raise self.error(reason, token, hint)

    def _quote(self, token: Token) -> str:
        if token.kind == END:
            return "the end of the text"
        return repr(self.text[token.start : token.end][:_MAX_FOUND_CHARS])

    def error(self, reason: str, token: Token, hint: str | None = None) -> TextSyntaxError:
        """Return the error about a token."""
        length = max(1, token.end - token.start)
        return syntax_error(self._what, self.text, token.start, reason, length=length, hint=hint)
