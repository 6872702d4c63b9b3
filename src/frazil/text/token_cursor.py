"""The token reader that the parsers of types, terms, conditions, expressions and SQL share.

A parser derives from `TokenCursor`, passes it an iterator of tokens, and adds its rules. Tokens are produced lazily.
Syntax errors show the line and underline the token.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from frazil.errors import TextSyntaxError
from frazil.text.place import syntax_error
from frazil.text.tokens import BROKEN, END, MARK, STRING, WORD, Token

_MAX_FOUND_CHARS = 60


class TokenCursor:
    """The tokens of a text, with a current position."""

    def __init__(self, text: str, what: str, tokens: Iterable[Token]) -> None:
        self.text = text
        self._what = what
        self._source = iter(tokens)
        self._tokens: list[Token] = []
        self._index = 0

    # Tokens

    def peek(self, ahead: int = 0) -> Token:
        """Return a following token without consuming it; its kind is `end` after the last one."""
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
        """Consume and return the next token."""
        token = self.peek()
        if token.kind != END:
            self._index += 1
        return token

    def read_on(self, tokens: Iterable[Token]) -> None:
        """Replace the remaining tokens."""
        del self._tokens[self._index :]
        self._source = iter(tokens)

    @property
    def last_end(self) -> int:
        """The end offset of the last consumed token."""
        return self._tokens[self._index - 1].end if self._index else 0

    def position(self) -> int:
        """Return the number of consumed tokens, for `back_to`."""
        return self._index

    def back_to(self, position: int) -> None:
        """Return to a position."""
        self._index = position

    def since(self, first: Token) -> Token:
        """Return the text from a token to the last consumed one, as one token."""
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
        """Consume these words if they all come next, and return whether they did."""
        if not self.at_words(*words):
            return False
        self._index += len(words)
        return True

    def expect_words(self, *words: str) -> None:
        """Consume these words or raise a syntax error."""
        if not self.take_words(*words):
            self.fail(f"expected {' '.join(words)}")

    def take_any(self, *words: str) -> str | None:
        """Consume and return one of these words, spelled as in the arguments, or return None."""
        next_word = self.peek().upper
        word_taken = next((word for word in words if word.upper() == next_word), None)
        self._index += word_taken is not None
        return word_taken

    def at_mark(self, mark: str) -> bool:
        """Return whether a mark comes next."""
        return self.peek().is_mark(mark)

    def take_mark(self, mark: str) -> bool:
        """Consume a mark if it comes next, and return whether it did."""
        matches = self.peek().is_mark(mark)
        self._index += matches
        return matches

    def expect_mark(self, mark: str) -> None:
        """Consume a mark or raise a syntax error."""
        if not self.take_mark(mark):
            self.fail(f"expected {mark!r}")

    def at_closing(self) -> bool:
        """Return whether `>` comes next, on its own or as a part of `>>`."""
        token = self.peek()
        return token.kind == MARK and token.text in (">", ">>", ">>>")

    def expect_closing(self) -> None:
        """Consume a `>` that closes a type; of `>>` only the first."""
        token = self.peek()
        if not self.at_closing():
            self.fail("expected '>'")
        if token.text != ">":
            rest = Token(MARK, token.text[1:], token.start + 1, token.end)
            self._tokens[self._index : self._index + 1] = [Token(MARK, ">", token.start, token.start + 1), rest]
        self.take()

    # Errors

    def fail(self, reason: str, token: Token | None = None, hint: str | None = None) -> NoReturn:
        """Raise the error for a token, by default the next one, which the message then quotes."""
        if token is None:
            token = self.peek()
            reason = f"{reason}, found {self._quote(token)}"
        raise self.error(reason, token, hint)

    def _quote(self, token: Token) -> str:
        if token.kind == END:
            return "the end of the text"
        return repr(self.text[token.start : token.end][:_MAX_FOUND_CHARS])

    def error(self, reason: str, token: Token, hint: str | None = None) -> TextSyntaxError:
        """Return the error for a token."""
        length = max(1, token.end - token.start)
        return syntax_error(self._what, self.text, token.start, reason, length=length, hint=hint)
