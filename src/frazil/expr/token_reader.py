"""Reading tokens one after the other: what the parsers of conditions and of expressions share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from frazil.errors import TextSyntaxError
from frazil.expr.lex import Token


class TokenReader(ABC):
    """Tokens of a text, and the place of the one that is read next."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @abstractmethod
    def _error(self, reason: str) -> TextSyntaxError:
        """Return the error about the next token."""

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _advance(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _take(self, *words: str) -> bool:
        """Consume the next tokens if they are these words or symbols, in order."""
        upcoming = self._tokens[self._at : self._at + len(words)]
        if [token.word or token.text for token in upcoming] != list(words):
            return False
        self._at += len(words)
        return True

    def _expect(self, what: str, shown: str | None = None) -> None:
        if not self._take(what):
            raise self._error(f"expected {shown or repr(what)}{self._found()}")

    def _found(self) -> str:
        return ", but the text ends" if self._next.kind == "end" else f", found {self._next.text!r}"
