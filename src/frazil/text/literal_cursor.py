"""What conditions and expressions read alike: names, parameters and literals, without text in double quotes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from frazil.errors import InvalidRequestError, TextSyntaxError
from frazil.text.literals import read_hex
from frazil.text.token_cursor import TokenCursor
from frazil.text.tokens import MARK, QUOTED, STRING, WORD, Token, cut_tokens


class LiteralCursor(TokenCursor):
    """A cursor over the tokens of an expression.

    Text in double quotes is refused: to Spark it is a string or a name, depending on the session. Names that are not
    words of ASCII letters go in backticks, as in Spark.
    """

    def __init__(self, text: str, what: str) -> None:
        super().__init__(text, what, cut_tokens(text))

    def at_string(self, ahead: int = 0) -> bool:
        """Return whether a string follows."""
        token = self.peek(ahead)
        return token.kind == STRING and token.text[0] != '"'

    def at_hex(self) -> bool:
        """Return whether X'…' follows."""
        return self.peek().word == "x" and self.at_string(1)

    def at_parameter(self) -> bool:
        """Return whether `:name` follows."""
        return self.peek().is_mark(":") and self.peek(1).kind == WORD

    def take_parameter(self) -> Token:
        """Consume `:name` and return it as one token."""
        mark, name = self.take(), self.take()
        return Token(MARK, f":{name.text}", mark.start, name.end)

    def take_name(self, reserved: Collection[str]) -> str | None:
        """Consume one part of a name and return it without quotes, or None if none follows."""
        token = self.peek()
        if token.kind == QUOTED and token.text != "``":
            return self.take().value
        is_name = token.kind == WORD and token.text.isascii() and token.word not in reserved
        return self.take().text if is_name else None

    def strings(self) -> str:
        """Return the value of a string; adjacent strings are joined."""
        values = []
        while self.at_string():
            values.append(self.read(lambda token: token.value, self.take()))
        return "".join(values)

    def hex(self) -> bytes:
        """Return the value of X'…'."""
        first = self.take()
        self.take()
        return bytes(self.read(lambda token: read_hex(token.text[token.text.index("'") + 1 : -1]), self.since(first)))

    def read(self, reader: Callable[..., Any], token: Token, *more: str) -> Any:
        """Return the result of a function of a token; its refusal points at the token."""
        try:
            return reader(token, *more)
        except InvalidRequestError as problem:
            raise self.error(problem.message, token) from None

    def error(self, reason: str, token: Token, hint: str | None = None) -> TextSyntaxError:
        """Return the error for a token; it explains text in double quotes, hints, and names of other letters."""
        char = token.text[:1] if token.kind == STRING else ""
        if char == '"':
            reason = "double quotes are not used here, since engines differ on what they mean"
            hint = "Write text in single quotes, and names bare or in backticks."
        elif token.is_mark("/*+"):
            reason = "the comment is a hint"
        elif token.kind == WORD and not token.text.isascii():
            hint = "Names that are not plain words go in backticks."
        return super().error(reason, token, hint)
