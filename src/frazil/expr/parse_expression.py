"""Parse the text of an expression: `case when source.n > 0 then target.n + source.n else 0 end`. A part of Spark SQL.

    or        and ("or" and)*
    and       not ("and" not)*
    not       ("not" | "!") not | test
    test      sum [compare sum | [not] in (or, …) | [not] between sum and sum | [not] like 'pattern' [escape 'c']
              | is [not] (null | true | false | unknown) | is [not] distinct from sum]
    sum       product (("+" | "-" | "||") product)*
    product   unary (("*" | "/" | "%" | "div") unary)*
    unary     ("-" | "+") unary | cast
    cast      primary ("::" type)*
    primary   literal | :parameter | name | function "(" [or, …] ")" | cast "(" or "as" type ")"
              | "case" [or] ("when" or "then" or)+ ["else" or] "end" | "(" or ")"

`lex.py` reads words and literals. The grammar is wider than that of `parse.py`, whose predicates planning can use; the
parts of an expression that are joined by `and` come with their text, so that those which are predicates prune files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from frazil.errors import InvalidRequestError, TextSyntaxError
from frazil.expr.expressions import Call, Case, Cast, Expression, Literal, Name
from frazil.expr.lex import Token, cut, digits_of, read_hex, read_number, read_text
from frazil.expr.token_reader import TokenReader
from frazil.spec.text_place import syntax_error

MAX_TEXT_LENGTH = 8_000_000
MAX_DEPTH = 40
MAX_CHAIN = 100
"""How many operators may follow each other, but for `and` and `or`."""
_COMPARISONS = {"=": "=", "==": "=", "!=": "<>", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>"}
_TYPED = frozenset({"date", "timestamp", "timestamp_ltz", "timestamp_ntz"})
_SUFFIXES = {"l": "bigint", "s": "smallint", "y": "tinyint", "f": "float", "d": "double", "bd": "decimal"}
_RESERVED = frozenset(
    {
        *("and", "or", "not", "in", "is", "like", "between", "null", "true", "false", "escape"),
        *("case", "when", "then", "else", "end", "div", "distinct", "from", "as"),
    }
)
_BARE_FUNCTIONS = frozenset({"current_date", "current_timestamp"})
SPARKS_WAY = 'The local engine knows a part of Spark SQL (docs/conditions.md). For the rest use engine="spark".'


@dataclass(frozen=True, slots=True)
class ParsedExpression:
    """An expression, and the parts that `and` joins at its top: each with its own tokens."""

    expression: Expression
    conjuncts: tuple[tuple[Expression, tuple[Token, ...]], ...]


def parse_expression(text: str, what: str = "the expression") -> ParsedExpression:
    """Return the expression of a text; refuse what does not parse, showing the place."""
    if len(text) > MAX_TEXT_LENGTH:
        raise syntax_error(what, text[:80], 0, f"the text is longer than {MAX_TEXT_LENGTH:,} characters")
    return _Parser(text, what).parse()


class _Parser(TokenReader):
    def __init__(self, text: str, what: str) -> None:
        self._text = text
        self._what = what
        super().__init__(cut(text, what, SPARKS_WAY))
        self._depth = 0

    def parse(self) -> ParsedExpression:
        if self._next.kind == "end":
            raise self._error("it is empty")
        conjuncts: list[tuple[Expression, tuple[Token, ...]]] = []
        start = self._at
        made = self._not()
        conjuncts.append((made, tuple(self._tokens[start : self._at])))
        while self._take("and"):
            start = self._at
            right = self._not()
            conjuncts.append((right, tuple(self._tokens[start : self._at])))
        if len(conjuncts) > 1:
            made = Call("and", tuple(one for one, _ in conjuncts))
        if self._next.word == "or":
            made = self._rest_of_or(made)
            conjuncts = [(made, tuple(self._tokens[: self._at]))]
        if self._next.kind != "end":
            raise self._error(f"expected an operator or the end{self._found()}")
        return ParsedExpression(made, tuple(conjuncts))

    def _error(self, reason: str, token: Token | None = None) -> TextSyntaxError:
        token = self._next if token is None else token
        return syntax_error(
            self._what, self._text, token.start, reason, length=max(1, len(token.text)), hint=SPARKS_WAY
        )

    def _nested(self, parse: Callable[[], Expression]) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"it is nested deeper than {MAX_DEPTH} levels")
        try:
            return parse()
        finally:
            self._depth -= 1

    def _or(self) -> Expression:
        return self._nested(lambda: self._rest_of_or(self._and()))

    def _rest_of_or(self, made: Expression) -> Expression:
        parts = [made]
        while self._take("or"):
            parts.append(self._and())
        return made if len(parts) == 1 else Call("or", tuple(parts))

    def _and(self) -> Expression:
        parts = [self._not()]
        while self._take("and"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else Call("and", tuple(parts))

    def _not(self) -> Expression:
        if self._take("not") or self._take("!"):
            return Call("not", (self._nested(self._not),))
        return self._test()

    def _test(self) -> Expression:
        made = self._sum()
        for _ in range(MAX_CHAIN):
            symbol = self._next.text if self._next.kind == "symbol" else ""
            if symbol not in _COMPARISONS:
                # One test in words ends it: Spark does not read `x between 1 and 2 is null`.
                return self._is(made) if self._take("is") else self._word_test(made)
            self._advance()
            made = Call(_COMPARISONS[symbol], (made, self._sum()))
        raise self._error(f"more than {MAX_CHAIN} tests follow each other")

    def _word_test(self, child: Expression) -> Expression:
        start = self._at
        negated = self._take("not")
        if self._take("in"):
            made: Expression = self._in(child)
        elif self._take("between"):
            low = self._sum()
            self._expect("and")
            made = Call("and", (Call(">=", (child, low)), Call("<=", (child, self._sum()))))
        elif self._take("like"):
            made = self._like(child)
        else:
            self._at = start
            return child
        return Call("not", (made,)) if negated else made

    def _in(self, child: Expression) -> Expression:
        self._expect("(")
        if self._next.word in ("select", "with", "values", "table"):
            raise self._error("subqueries are not known here")
        items = [self._or()]
        while self._take(","):
            items.append(self._or())
        self._expect(")")
        return Call("in", (child, *items))

    def _like(self, child: Expression) -> Expression:
        pattern = self._sum()
        if self._take("escape"):
            return Call("like", (child, pattern, self._primary()))
        return Call("like", (child, pattern))

    def _is(self, child: Expression) -> Expression:
        negated = self._take("not")
        made: Expression
        if self._take("null") or self._take("unknown"):
            made = Call("isnull", (child,))
        elif self._next.word in ("true", "false"):
            made = Call("<=>", (child, Literal(self._advance().word == "true", "boolean")))
        elif self._take("distinct", "from"):
            made = Call("not", (Call("<=>", (child, self._sum())),))
        else:
            raise self._error(f"expected `null`, `true`, `false` or `distinct from` after `is`{self._found()}")
        return Call("not", (made,)) if negated else made

    def _sum(self) -> Expression:
        return self._chain(self._product, ("+", "-", "||"))

    def _chain(self, part: Callable[[], Expression], operators: tuple[str, ...]) -> Expression:
        made = part()
        for _ in range(MAX_CHAIN):
            if self._next.text.lower() not in operators:
                return made
            made = Call(self._advance().text.lower(), (made, part()))
        raise self._error(f"more than {MAX_CHAIN} operators follow each other")

    def _product(self) -> Expression:
        return self._chain(self._unary, ("*", "/", "%", "div"))

    def _unary(self) -> Expression:
        if self._next.text not in ("-", "+"):
            return self._cast()
        sign = self._advance()
        if sign.text == "-" and self._next.kind == "number" and self._tokens[self._at + 1].text != "::":
            return self._number(self._advance(), "-")
        child = self._nested(self._unary)
        return child if sign.text == "+" else Call("negative", (child,))

    def _cast(self) -> Expression:
        made = self._primary()
        for _ in range(MAX_CHAIN):
            if not self._take("::"):
                return made
            made = Cast(made, self._type())
        raise self._error(f"more than {MAX_CHAIN} casts follow each other")

    def _type(self) -> str:
        token = self._advance()
        if token.kind != "word":
            raise self._error("expected the name of a type", token)
        name = token.word
        if self._take("("):
            numbers = [self._advance().text]
            while self._take(","):
                numbers.append(self._advance().text)
            self._expect(")")
            name = f"{name}({', '.join(numbers)})"
        return name

    def _primary(self) -> Expression:
        token = self._next
        if token.kind == "text":
            return Literal(self._texts(self._advance()), "string")
        if token.kind == "hex":
            return Literal(self._read(read_hex, self._advance()), "binary")
        if token.kind == "number":
            return self._number(self._advance())
        if token.word in ("true", "false"):
            return Literal(self._advance().word == "true", "boolean")
        if self._take("null"):
            return Literal(None, "void")
        if token.word in _TYPED and self._tokens[self._at + 1].kind == "text":
            kind = self._advance().word
            return Literal(self._read(read_text, self._advance()), "timestamp" if kind == "timestamp_ltz" else kind)
        if self._take("("):
            made = self._or()
            self._expect(")")
            return made
        if self._take("case"):
            return self._case()
        if token.word == "cast" and self._tokens[self._at + 1].text == "(":
            self._at += 2
            child = self._or()
            self._expect("as")
            made = Cast(child, self._type())
            self._expect(")")
            return made
        if token.kind == "parameter":
            raise self._error(f"the parameter {token.text} has no value")
        return self._name()

    def _name(self) -> Expression:
        start = self._next
        parts = [self._part()]
        while self._take("."):
            parts.append(self._part())
        if self._next.text == "(" and start.kind == "word":
            self._advance()
            arguments: list[Expression] = []
            if not self._take(")"):
                arguments.append(self._or())
                while self._take(","):
                    arguments.append(self._or())
                self._expect(")")
            return Call(".".join(parts).lower(), tuple(arguments))
        if len(parts) == 1 and start.kind == "word" and start.word in _BARE_FUNCTIONS:
            return Call(start.word, ())
        return Name(tuple(parts))

    def _part(self) -> str:
        token = self._next
        if token.kind == "quoted":
            return self._advance().text[1:-1].replace("``", "`")
        if token.kind == "word" and token.word not in _RESERVED:
            return self._advance().text
        raise self._error(f"expected a column, a literal or a function{self._found()}")

    def _case(self) -> Expression:
        operand = None if self._next.word == "when" else self._or()
        branches = []
        while self._take("when"):
            when = self._or()
            self._expect("then")
            branches.append((when if operand is None else Call("=", (operand, when)), self._or()))
        if not branches:
            raise self._error(f"expected `when`{self._found()}")
        otherwise = self._or() if self._take("else") else None
        self._expect("end")
        return Case(tuple(branches), otherwise)

    def _texts(self, token: Token) -> str:
        parts = [self._read(read_text, token)]
        while self._next.kind == "text":
            parts.append(self._read(read_text, self._advance()))
        return "".join(parts)

    def _read(self, reader: Callable[..., Any], token: Token, *more: str) -> Any:
        try:
            return reader(token.text, *more)
        except InvalidRequestError as problem:
            raise self._error(problem.message, token) from None

    def _number(self, token: Token, sign: str = "") -> Literal:
        value = self._read(read_number, token, sign)
        suffix = next((kind for end, kind in _SUFFIXES.items() if token.text.lower().endswith(end)), None)
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
