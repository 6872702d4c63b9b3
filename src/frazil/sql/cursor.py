"""A position in a statement's tokens, and what every grammar rule reads with: words, names, spans, errors.

Until the statement is known to be ours (`accept`), whatever does not fit means that it is somebody else's: `NotOurs`
is raised and Spark gets the text. From then on it is an error that points at the position.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from frazil.errors import SqlSyntaxError, TextSyntaxError
from frazil.sql.statements import Name, Span
from frazil.text.token_cursor import TokenCursor
from frazil.text.tokens import END, MARK, NUMBER, QUOTED, STRING, WORD, Token, cut_tokens, without_hints

IsOurs = Callable[[str, Name], bool]
"""Says of a kind (`table`, `view`, `namespace`, `procedure`, `use`) and a name as written whether a lake answers."""

_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())


class NotOurs(Exception):
    """The statement is not for us; Spark gets it."""


class Cursor(TokenCursor):
    """A cursor over the tokens of one statement."""

    def __init__(self, text: str, is_ours: IsOurs) -> None:
        super().__init__(text, "the statement", without_hints(cut_tokens(text)))
        self._is_ours = is_ours
        self._is_accepted = False

    # Whose statement

    def accept(self, entity: str, name: Name) -> None:
        """Go on only if a lake answers for a name; from here on what does not parse is an error."""
        if not self._is_accepted and not self._is_ours(entity, name):
            raise NotOurs
        self._is_accepted = True

    # Words

    def at_any(self, words: Collection[str]) -> bool:
        """Return whether one of these words comes next."""
        return self.peek().upper in words

    def expect_any(self, *words: str) -> str:
        """Step over one of these words or refuse what comes instead."""
        word = self.take_any(*words)
        if word is None:
            self.fail(f"expected {', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else f"expected {words[0]}")
        return word

    def end(self) -> None:
        """Refuse anything that is left but semicolons."""
        while self.take_mark(";"):
            pass
        if self.peek().kind != END:
            self.fail("expected the end of the statement")

    # Values

    def identifier(self, what: str = "a name") -> str:
        """Return one part of a name."""
        token = self.take()
        if token.kind == QUOTED and token.value == "":
            self.fail("a name cannot be empty", token)
        if token.kind not in (WORD, QUOTED):
            self.fail(f"expected {what}", token)
        return token.value

    def name(self, what: str = "a name") -> Name:
        """Return the parts of a name; `IDENTIFIER('a.b')` is one too."""
        if self.at_words("IDENTIFIER") and self.peek(1).is_mark("(") and self.peek(2).kind == STRING:
            start = self.take()
            self.take()
            inner = Cursor(self.string(), self._is_ours)
            self.expect_mark(")")
            parts = inner._plain_name()
            if parts is None:
                self.fail("the text in IDENTIFIER is no name", start)
            return parts
        parts_here = [self.identifier(what)]
        while True:
            token = self.peek()
            if (
                token.kind == NUMBER
                and token.text[0] == "."
                and token.text[1:].isdigit()
                and token.start == self.last_end
            ):
                # Lexers take the dot for a decimal point.
                parts_here.append(self.take().text[1:])
                continue
            if not self.take_mark("."):
                break
            token = self.peek()
            if token.kind == NUMBER and token.text.isdigit():
                parts_here.append(self.take().text)
            else:
                parts_here.append(self.identifier("a name after the dot"))
        return tuple(parts_here)

    def _plain_name(self) -> Name | None:
        try:
            name = self.name()
            return name if self.peek().kind == END else None
        except NotOurs:
            return None

    def string(self, what: str = "text in quotes") -> str:
        """Return a string; strings side by side are one."""
        token = self.take()
        if token.kind != STRING:
            self.fail(f"expected {what}", token)
        value = token.value
        while self.peek().kind == STRING:
            value += self.take().value
        return value

    def whole_number(self, what: str = "a whole number") -> int:
        """Return a number without a fraction; it may have a sign and the suffix L."""
        is_negative = self.take_mark("-")
        token = self.take()
        digits = token.text.rstrip("lL")
        if token.kind != NUMBER or not digits.isdigit():
            self.fail(f"expected {what}", token)
        return -int(digits) if is_negative else int(digits)

    # Lists

    def listed(self, read: Callable[[], object]) -> None:
        """Read things between commas."""
        read()
        while self.take_mark(","):
            read()

    def parenthesized(self, read: Callable[[], object]) -> None:
        """Read things between commas in parentheses."""
        self.expect_mark("(")
        self.listed(read)
        self.expect_mark(")")

    # Spans

    def expression(self, stops: Collection[str] = (), what: str = "an expression") -> Span:
        """Return the text of an expression: up to one of these words, a comma, or what closes around it."""
        return self._span(stops, what, stops_at_comma=True)

    def clause(self, stops: Collection[str] = (), what: str = "an expression") -> Span:
        """Return text that may hold commas: up to one of these words, a semicolon, or what closes around it."""
        return self._span(stops, what, stops_at_comma=False)

    def _span(self, stops: Collection[str], what: str, *, stops_at_comma: bool) -> Span:
        first = self.peek()
        open_marks: list[str] = []
        cases = 0
        after_dot = False
        while True:
            token = self.peek()
            if token.kind == END:
                break
            if token.kind == MARK:
                if token.text in _OPENING:
                    open_marks.append(_OPENING[token.text])
                elif token.text in _CLOSING:
                    if not open_marks:
                        break
                    if open_marks.pop() != token.text:
                        self.fail(f"unexpected {token.text!r}", token)
                elif not open_marks and not cases and token.text in (";", ","):
                    if token.text == ";" or stops_at_comma:
                        break
            elif token.kind == WORD and not after_dot and not open_marks:
                word = token.upper
                if word == "CASE":
                    cases += 1
                elif word == "END" and cases:
                    cases -= 1
                elif not cases and word in stops and (word != "NOT" or self.peek(1).upper == "NULL"):
                    break
            after_dot = token.is_mark(".")
            self.take()
        if open_marks:
            self.fail(f"expected {open_marks[-1]!r}")
        if self.peek().start == first.start:
            self.fail(f"expected {what}")
        return Span(self.text[first.start : self.last_end], first.start)

    def rest(self, what: str = "a query") -> Span:
        """Return the rest of the statement as written, without semicolons; it is not cut into tokens."""
        start = self.peek().start
        if self.peek().kind == END:
            self.fail(f"expected {what}")
        end = len(self.text)
        if ";" in self.text[start:]:
            # Rare, and then tokens tell a semicolon from one in a string.
            while self.peek().kind != END and not self.at_mark(";"):
                self.take()
            end = self.last_end
            self.end()
        self._index = len(self._tokens)
        self.read_on(())
        return Span(self.text[start:end].rstrip(), start)

    def parenthesized_span(self) -> Span:
        """Return the text between parentheses."""
        self.expect_mark("(")
        span = self.clause(what="something in the parentheses")
        self.expect_mark(")")
        return span

    # Errors

    def error(self, reason: str, token: Token, hint: str | None = None) -> TextSyntaxError:
        """Return the error about a token; for a statement that is not ours, say so."""
        if not self._is_accepted:
            raise NotOurs
        problem = super().error(reason, token, hint)
        return SqlSyntaxError(problem.message, hint=problem.hint)
