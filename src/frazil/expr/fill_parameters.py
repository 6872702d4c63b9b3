"""Put values in the place of `:name` in a text of SQL, as literals: nothing in a value is read as SQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from frazil.errors import InvalidRequestError, TextSyntaxError
from frazil.expr.parameters import parameter_value
from frazil.expr.predicates import TypedText, sql_literal
from frazil.text.literal_cursor import LiteralCursor
from frazil.text.tokens import END, Token


class Parameters:
    """Values by name, and which of them a statement has named."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = values
        self._used: set[str] = set()

    def fill(self, text: object) -> object:
        """Return a text with values in the place of names; other values are returned unchanged."""
        if not isinstance(text, str) or not (self._values or ":" in text):
            return text
        made, end = [], 0
        for token in self._named(text):
            name = token.text[1:]
            if name not in self._values:
                raise InvalidRequestError(
                    f"Cannot use {token.text} in {text!r}: it has no value", hint=f"Give it by name: {name}=…."
                )
            self._used.add(name)
            # Spaces keep signs apart: two of them begin a comment.
            value = parameter_value(name, self._values[name])
            if isinstance(value, TypedText) and value.kind == "time":
                value = value.text  # as Spark shows it, which has no times of day
            made += [text[end : token.start], f" {sql_literal(value)} "]
            end = token.start + len(token.text)
        return "".join([*made, text[end:]])

    def _named(self, text: str) -> list[Token]:
        """Return the parameters in a text."""
        found = []
        cursor = LiteralCursor(text, "the text")
        try:
            while cursor.peek().kind != END:
                if cursor.at_parameter():
                    found.append(cursor.take_parameter())
                else:
                    cursor.take()
        except TextSyntaxError:
            if self._values:
                raise
            return []  # for Spark to read, which knows no names without values either
        return found

    def check(self) -> None:
        """Refuse values that nothing names."""
        unused: Collection[str] = sorted(set(self._values) - self._used)
        for name in unused:
            raise InvalidRequestError(
                f"Cannot use the parameter {name!r}: nothing names it", hint=f"Write :{name} where its value is meant."
            )
