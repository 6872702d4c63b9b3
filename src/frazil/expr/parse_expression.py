"""Parse the text of an expression: `case when source.n > 0 then target.n + source.n else 0 end`. A part of Spark SQL.

    or        and ("or" and)*
    and       not ("and" not)*
    not       ("not" | "!") not | test
    test      bits [compare bits | [not] in (or, …) | [not] between bits and bits
              | [not] (like | ilike) 'pattern' [escape 'c'] | [not] (rlike | regexp) 'pattern'
              | is [not] (null | true | false | unknown) | is [not] distinct from bits]
    bits      sum with "&" between, of which some have "^" between, of which some have "|" between
    sum       product (("+" | "-" | "||") product)*
    product   unary (("*" | "/" | "%" | "div") unary)*
    unary     ("-" | "+" | "~") unary | cast
    cast      primary ("::" type)*
    primary   literal | :parameter | name | function "(" [or, …] ")" | (cast | try_cast) "(" or "as" type ")"
              | "case" [or] ("when" or "then" or)+ ["else" or] "end" | "(" or ")"

`lex.py` reads words and literals. The grammar is wider than that of `parse.py`, whose predicates planning can use; the
parts of an expression that are joined by `and` come with their text, so that those which are predicates prune files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

from frazil.errors import TextSyntaxError, UnsupportedError
from frazil.expr.expressions import Call, Case, Cast, Expression, Literal, Name
from frazil.expr.lex import LiteralCursor, cut, digits_of, read_hex, read_number, read_text
from frazil.spec.text_place import syntax_error
from frazil.spec.token_cursor import END, MARK, NUMBER, STRING, WORD, Token

MAX_TEXT_LENGTH = 8_000_000
MAX_DEPTH = 40
MAX_CHAIN = 100
"""How many operators may follow each other, but for `and` and `or`."""
_COMPARISONS = {"=": "=", "==": "=", "!=": "<>", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>"}
_TYPED = frozenset({"date", "time", "timestamp", "timestamp_ltz", "timestamp_ntz"})
_SUFFIXES = {"l": "bigint", "s": "smallint", "y": "tinyint", "f": "float", "d": "double", "bd": "decimal"}
_RESERVED = frozenset(
    {
        *("and", "or", "not", "in", "is", "like", "between", "null", "true", "false", "escape"),
        *("case", "when", "then", "else", "end", "div", "distinct", "from", "as"),
    }
)
_BARE_FUNCTIONS = frozenset({"current_date", "current_timestamp"})
_SPARKS = re.compile(
    r"""["\[\]{}?]|->|=>|[^\x00-\x7f]|\b(?:
    interval|rlike|regexp|similar|collate|at|select|exists|any|some|all|over|filter|within|struct|extract|position|overlay|trim|substring
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""What Spark reads and this does not: a text with one of them that does not parse here may be SQL all the same."""
SPARKS_WAY = 'The local engine knows a part of Spark SQL (docs/conditions.md). For the rest use engine="spark".'


@dataclass(frozen=True, slots=True)
class ParsedExpression:
    """An expression, and the parts that `and` joins at its top: each with its own tokens."""

    expression: Expression
    conjuncts: tuple[tuple[Expression, tuple[Token, ...]], ...]


def parse_expression(text: str, what: str = "the expression") -> ParsedExpression:
    """Return the expression of a text; refuse what does not parse, showing the position.

    What may be SQL that only Spark knows is an UnsupportedError, and a TextSyntaxError what no engine would read.
    """
    if len(text) > MAX_TEXT_LENGTH:
        raise syntax_error(what, text[:80], 0, f"the text is longer than {MAX_TEXT_LENGTH:,} characters")
    try:
        return _Parser(text, what).parse()
    except TextSyntaxError as problem:
        if _SPARKS.search(text) is not None:
            raise UnsupportedError(problem.message, hint=problem.hint) from None
        raise


class _Parser(LiteralCursor):
    def __init__(self, text: str, what: str) -> None:
        super().__init__(text, what, cut(text, what, SPARKS_WAY))
        self._depth = 0

    def parse(self) -> ParsedExpression:
        if self.peek().kind == END:
            self.fail("it is empty", self.peek())
        conjuncts: list[tuple[Expression, tuple[Token, ...]]] = []
        start = self._index
        made = self._not()
        conjuncts.append((made, tuple(self._tokens[start : self._index])))
        while self.take_words("and"):
            start = self._index
            right = self._not()
            conjuncts.append((right, tuple(self._tokens[start : self._index])))
        if len(conjuncts) > 1:
            made = Call("and", tuple(conjunct for conjunct, _ in conjuncts))
        if self.peek().word == "or":
            made = self._rest_of_or(made)
            conjuncts = [(made, tuple(self._tokens[: self._index]))]
        if self.peek().kind != END:
            self.fail("expected an operator or the end")
        return ParsedExpression(made, tuple(conjuncts))

    def error(self, reason: str, token: Token, hint: str | None = None) -> TextSyntaxError:
        """Return the error about a token, which says where the rest of Spark SQL is known."""
        return super().error(reason, token, hint or SPARKS_WAY)

    def _too_much(self, reason: str) -> NoReturn:
        problem = self.error(reason, self.peek())
        raise UnsupportedError(problem.message, hint=problem.hint)

    def _nested(self, parse: Callable[[], Expression]) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._too_much(f"it is nested deeper than {MAX_DEPTH} levels")
        try:
            return parse()
        finally:
            self._depth -= 1

    def _or(self) -> Expression:
        return self._nested(lambda: self._rest_of_or(self._and()))

    def _rest_of_or(self, made: Expression) -> Expression:
        parts = [made]
        while self.take_words("or"):
            parts.append(self._and())
        return made if len(parts) == 1 else Call("or", tuple(parts))

    def _and(self) -> Expression:
        parts = [self._not()]
        while self.take_words("and"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else Call("and", tuple(parts))

    def _not(self) -> Expression:
        if self.take_words("not") or self.take_mark("!"):
            return Call("not", (self._nested(self._not),))
        return self._test()

    def _test(self) -> Expression:
        made = self._bits()
        for _ in range(MAX_CHAIN):
            symbol = self.peek().text if self.peek().kind == MARK else ""
            if symbol not in _COMPARISONS:
                # One test in words ends it: Spark does not read `x between 1 and 2 is null`.
                return self._is(made) if self.take_words("is") else self._word_test(made)
            self.take()
            made = Call(_COMPARISONS[symbol], (made, self._bits()))
        return self._too_much(f"more than {MAX_CHAIN} tests follow each other")

    def _word_test(self, child: Expression) -> Expression:
        start = self._index
        negated = self.take_words("not")
        if self.take_words("in"):
            made: Expression = self._in(child)
        elif self.take_words("between"):
            low = self._bits()
            self.expect_words("and")
            made = Call("and", (Call(">=", (child, low)), Call("<=", (child, self._bits()))))
        elif self.peek().word in ("like", "ilike"):
            made = self._like(self.take().word, child)
        elif self.take_words("rlike") or self.take_words("regexp"):
            made = Call("rlike", (child, self._bits()))
        else:
            self.back_to(start)
            return child
        return Call("not", (made,)) if negated else made

    def _in(self, child: Expression) -> Expression:
        self.expect_mark("(")
        if self.peek().word in ("select", "with", "values", "table"):
            self.fail("subqueries are not supported", self.peek())
        items = [self._or()]
        while self.take_mark(","):
            items.append(self._or())
        self.expect_mark(")")
        return Call("in", (child, *items))

    def _like(self, name: str, child: Expression) -> Expression:
        if self.peek().word in ("any", "some", "all"):
            self.fail("several patterns are not supported", self.peek())
        pattern = self._bits()
        if self.take_words("escape"):
            return Call(name, (child, pattern, self._primary()))
        return Call(name, (child, pattern))

    def _is(self, child: Expression) -> Expression:
        negated = self.take_words("not")
        made: Expression
        if self.take_words("null") or self.take_words("unknown"):
            made = Call("isnull", (child,))
        elif self.peek().word in ("true", "false"):
            made = Call("<=>", (child, Literal(self.take().word == "true", "boolean")))
        elif self.take_words("distinct", "from"):
            made = Call("not", (Call("<=>", (child, self._bits())),))
        else:
            self.fail("expected `null`, `true`, `false` or `distinct from` after `is`")
        return Call("not", (made,)) if negated else made

    def _bits(self) -> Expression:
        return self._chain(lambda: self._chain(lambda: self._chain(self._sum, ("&",)), ("^",)), ("|",))

    def _sum(self) -> Expression:
        return self._chain(self._product, ("+", "-", "||"))

    def _chain(self, operand: Callable[[], Expression], operators: tuple[str, ...]) -> Expression:
        made = operand()
        for _ in range(MAX_CHAIN):
            if self.peek().text.lower() not in operators:
                return made
            made = Call(self.take().text.lower(), (made, operand()))
        return self._too_much(f"more than {MAX_CHAIN} operators follow each other")

    def _product(self) -> Expression:
        return self._chain(self._unary, ("*", "/", "%", "div"))

    def _unary(self) -> Expression:
        if self.peek().text not in ("-", "+", "~"):
            return self._cast()
        sign = self.take()
        if sign.text == "-" and self.peek().kind == NUMBER and self.peek(1).text != "::":
            return self._number(self.take(), "-")
        child = self._nested(self._unary)
        return child if sign.text == "+" else Call("negative" if sign.text == "-" else "~", (child,))

    def _cast(self) -> Expression:
        made = self._primary()
        for _ in range(MAX_CHAIN):
            if not self.take_mark("::"):
                return made
            made = Cast(made, self._type())
        return self._too_much(f"more than {MAX_CHAIN} casts follow each other")

    def _type(self) -> str:
        token = self.take()
        if token.kind != WORD:
            self.fail("expected the name of a type", token)
        name = token.word
        if self.take_mark("("):
            numbers = [self.take().text]
            while self.take_mark(","):
                numbers.append(self.take().text)
            self.expect_mark(")")
            name = f"{name}({', '.join(numbers)})"
        return name

    def _primary(self) -> Expression:
        token = self.peek()
        if token.kind == STRING:
            return Literal(self.strings(), "string")
        if token.kind == "hex":
            return Literal(self.read(read_hex, self.take()), "binary")
        if token.kind == NUMBER:
            return self._number(self.take())
        if token.word in ("true", "false"):
            return Literal(self.take().word == "true", "boolean")
        if self.take_words("null"):
            return Literal(None, "void")
        if token.word in _TYPED and self.peek(1).kind == STRING:
            word = self.take().word
            return Literal(self.read(read_text, self.take()), "timestamp" if word == "timestamp_ltz" else word)
        if self.take_mark("("):
            made = self._or()
            self.expect_mark(")")
            return made
        if self.take_words("case"):
            return self._case()
        if token.word in ("cast", "try_cast") and self.peek(1).text == "(":
            self.take()
            self.take()
            child = self._or()
            self.expect_words("as")
            made = Cast(child, self._type(), is_try=token.word == "try_cast")
            self.expect_mark(")")
            return made
        if token.kind == "parameter":
            self.fail(f"the parameter {token.text} has no value", token)
        return self._name()

    def _name(self) -> Expression:
        start = self.peek()
        parts = [self._name_part()]
        while self.take_mark("."):
            parts.append(self._name_part())
        if self.peek().text == "(" and start.kind == WORD:
            self.take()
            arguments: list[Expression] = []
            if not self.take_mark(")"):
                arguments.append(self._or())
                while self.take_mark(","):
                    arguments.append(self._or())
                self.expect_mark(")")
            return Call(".".join(parts).lower(), tuple(arguments))
        if len(parts) == 1 and start.kind == WORD and start.word in _BARE_FUNCTIONS:
            return Call(start.word, ())
        return Name(tuple(parts))

    def _name_part(self) -> str:
        name = self.take_name(_RESERVED)
        if name is None:
            self.fail("expected a column, a literal or a function")
        return name

    def _case(self) -> Expression:
        operand = None if self.peek().word == "when" else self._or()
        branches = []
        while self.take_words("when"):
            when = self._or()
            self.expect_words("then")
            branches.append((when if operand is None else Call("=", (operand, when)), self._or()))
        if not branches:
            self.fail("expected `when`")
        otherwise = self._or() if self.take_words("else") else None
        self.expect_words("end")
        return Case(tuple(branches), otherwise)

    def _number(self, token: Token, sign: str = "") -> Literal:
        value = self.read(read_number, token, sign)
        suffix = next((suffix for end, suffix in _SUFFIXES.items() if token.text.lower().endswith(end)), None)
        if suffix == "double" and token.text.lower().endswith("bd"):
            suffix = "decimal"
        if isinstance(value, float):
            return Literal(value, "float" if suffix == "float" else "double")
        if isinstance(value, Decimal):
            return decimal_literal(value)
        if suffix in ("bigint", "smallint", "tinyint"):
            return Literal(value, suffix)
        if suffix == "decimal":
            return decimal_literal(Decimal(value))
        return whole_literal(value)


def whole_literal(value: int) -> Literal:
    """Return a whole number with the narrowest of the types that Spark gives it."""
    if -(2**31) <= value < 2**31:
        return Literal(value, "int")
    return Literal(value, "bigint") if -(2**63) <= value < 2**63 else decimal_literal(Decimal(value))


def decimal_literal(value: Decimal) -> Literal:
    """Return a decimal with as many digits as it is written with."""
    whole, scale = digits_of(value)
    return Literal(value, f"decimal({max(whole + scale, 1)},{scale})")
