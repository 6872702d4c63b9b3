"""Parse the text of a condition or an expression: `n > 0 and kind in ('a', 'b')`. A part of Spark SQL.

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
    literal   'text' | number | true | false | null | X'hex'
              | (date | time | timestamp | timestamp_ltz | timestamp_ntz) 'text'

What is accepted means what Spark says it means. The parser climbs precedences, so that a level of nesting takes few
frames of the stack. `expr/extract.py` finds what planning may use of a condition.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NoReturn

from frazil.errors import InvalidRequestError, TextSyntaxError, UnsupportedError
from frazil.expr.expressions import Call, Case, Cast, Expression, Literal, Name, literal_of
from frazil.expr.parameters import parameter_value
from frazil.spec.frozen_map import FrozenMap
from frazil.text.literal_cursor import LiteralCursor
from frazil.text.literals import read_number
from frazil.text.place import syntax_error
from frazil.text.tokens import END, MARK, NUMBER, STRING, WORD, Token

MAX_TEXT_LENGTH = 8_000_000
MAX_DEPTH = 200
MAX_CHAIN = 100
"""How many operators may follow each other, but for `and` and `or`."""
CONDITION = "the condition"
NO_PARAMETERS: Mapping[str, object] = FrozenMap()
SPARKS_WAY = (
    "frazil computes a part of Spark SQL (docs/conditions.md). For the rest use Spark: "
    'engine="spark" where rows are changed, `scan().to_spark().where(…)` where they are read.'
)
_COMPARISONS = {"=": "=", "==": "=", "!=": "<>", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>"}
_OR, _AND, _NOT, _TEST, _BITS, _UNARY = 1, 2, 3, 4, 5, 10
_POWERS = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys((*_COMPARISONS, "is", "not", "in", "between", "like", "ilike", "rlike", "regexp"), _TEST),
    "|": 5,
    "^": 6,
    "&": 7,
    **dict.fromkeys(("+", "-", "||"), 8),
    **dict.fromkeys(("*", "/", "%", "div"), 9),
}
"""How strongly operators bind."""
_SIGNS = {"-": "negative", "+": "positive", "~": "~"}
_TYPED = frozenset({"date", "time", "timestamp", "timestamp_ltz", "timestamp_ntz"})
_SUFFIXES = {"bd": "decimal", "l": "bigint", "s": "smallint", "y": "tinyint", "f": "float", "d": "double"}
_CONSTANTS = {"true": Literal(True, "boolean"), "false": Literal(False, "boolean"), "null": Literal(None, "void")}
RESERVED = frozenset(
    {
        *("and", "or", "not", "in", "is", "like", "between", "null", "true", "false", "escape"),
        *("case", "when", "then", "else", "end", "div", "distinct", "from", "as"),
    }
)
"""Words that are names in backticks only."""
_BARE_FUNCTIONS = frozenset({"current_date", "current_timestamp"})
_SPARKS = re.compile(
    r"""["\[\]{}?]|->|=>|[^\x00-\x7f]|\b(?:
    interval|rlike|regexp|similar|collate|at|select|exists|any|some|all|over|filter|within|struct|extract|position|overlay|trim|substring
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""What Spark reads and this does not: a text with one of them that does not parse here may be SQL all the same."""


def parse_expression(
    text: str, what: str = "the expression", parameters: Mapping[str, object] = NO_PARAMETERS
) -> Expression:
    """Return the expression of a text; refuse what does not parse, showing the position.

    Parameters stand where the text says `:name`, as values: nothing in them is read as SQL. A text that may be SQL
    that only Spark knows is an UnsupportedError, and a TextSyntaxError what no engine would read.
    """
    built: Expression | None = getattr(text, "expression", None)
    if built is not None and not parameters:
        return built  # a condition that was built (`build_condition.py`) is not parsed
    if len(text) > MAX_TEXT_LENGTH:
        raise syntax_error(what, text[:80], 0, f"the text is longer than {MAX_TEXT_LENGTH:,} characters")
    try:
        return _Parser(text, what, parameters).parse()
    except TextSyntaxError as problem:
        if _SPARKS.search(text) is not None:
            raise UnsupportedError(problem.message, hint=problem.hint) from None
        raise
    except RecursionError:
        raise UnsupportedError(f"Cannot parse {what}: it is nested too deeply", hint=SPARKS_WAY) from None


def parse_condition(text: str, parameters: Mapping[str, object] = NO_PARAMETERS) -> Expression:
    """Return the expression of a condition's text."""
    return parse_expression(text, CONDITION, parameters)


class _Parser(LiteralCursor):
    def __init__(self, text: str, what: str, parameters: Mapping[str, object]) -> None:
        super().__init__(text, what)
        self._depth = 0
        self._parameters = parameters
        self._used: set[str] = set()

    def parse(self) -> Expression:
        if self.peek().kind == END:
            hint = "Leave it out to mean every row." if self._what == CONDITION else None
            self.fail(f"{self._what} is empty", self.peek(), hint)
        tree = self._expression(_OR)
        if self.peek().word == "starts":
            self.fail("`starts with` is not Spark SQL", self.peek(), "Write startswith(column, '…').")
        if self.peek().kind != END:
            self.fail("expected `and`, `or` or the end")
        unused = sorted(set(self._parameters) - self._used)
        if unused:
            raise InvalidRequestError(
                f"Cannot use the parameter {unused[0]!r}: {self._what} does not name it",
                hint=f"Write :{unused[0]} where its value is meant.",
            )
        return tree

    def error(self, reason: str, token: Token, hint: str | None = None) -> TextSyntaxError:
        """Return the error about a token, which says where the rest of Spark SQL is known."""
        return super().error(reason, token, hint or SPARKS_WAY)

    def _too_much(self, reason: str) -> NoReturn:
        problem = self.error(reason, self.peek())
        raise UnsupportedError(problem.message, hint=problem.hint)

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            reason = f"{self._what} is nested deeper than {MAX_DEPTH} levels"
            if self._what == CONDITION:
                self.fail(reason, self.peek())
            self._too_much(reason)

    # Operators

    def _expression(self, least: int) -> Expression:
        """Parse what operators that bind at least so strongly join."""
        tree = self._operand(least)
        chain, is_closed = 0, False
        while True:
            token = self.peek()
            power = _POWERS.get(token.text.lower(), 0) if token.kind in (WORD, MARK) else 0
            if power < least or power == 0 or (is_closed and power > _AND):
                return tree
            chain += power >= _TEST
            if chain > MAX_CHAIN:
                self._too_much(f"more than {MAX_CHAIN} operators follow each other")
            if power <= _AND:
                word, parts = token.word, [tree]
                while self.take_words(word):
                    parts.append(self._expression(power + 1))
                tree = Call(word, tuple(parts))
            elif power > _TEST:
                self.take()
                tree = Call(token.text.lower(), (tree, self._expression(power + 1)))
            elif token.kind == MARK:
                self.take()
                tree = Call(_COMPARISONS[token.text], (tree, self._expression(_BITS)))
            else:
                # One test in words ends it: Spark does not read `x between 1 and 2 is null`.
                tree = self._is(tree) if self.take_words("is") else self._word_test(tree)
                is_closed = True

    def _word_test(self, child: Expression) -> Expression:
        negated = self.take_words("not")
        if self.take_words("in"):
            tree: Expression = self._in(child)
        elif self.take_words("between"):
            low = self._expression(_BITS)
            self.expect_words("and")
            tree = Call("and", (Call(">=", (child, low)), Call("<=", (child, self._expression(_BITS)))))
        elif self.peek().word in ("like", "ilike"):
            tree = self._like(self.take().word, child)
        elif self.take_words("rlike") or self.take_words("regexp"):
            tree = Call("rlike", (child, self._expression(_BITS)))
        else:
            self.fail("expected `in`, `between` or `like` after `not`")
        return Call("not", (tree,)) if negated else tree

    def _in(self, child: Expression) -> Expression:
        self.expect_mark("(")
        if self.peek().word in ("select", "with", "values", "table"):
            self.fail("subqueries are not supported", self.peek())
        items = [child]
        while True:
            token, after = self.peek(), self.peek(1)
            # Long lists are of plain literals.
            if after.kind == MARK and after.text in (",", ")") and token.kind in (NUMBER, STRING):
                items.append(self._number(self.take()) if token.kind == NUMBER else self._primary(token))
            else:
                items.append(self._expression(_OR))
            if not self.take_mark(","):
                break
        if not self.take_mark(")"):
            self.fail("expected `,` or `)`")
        return Call("in", tuple(items))

    def _like(self, name: str, child: Expression) -> Expression:
        if self.peek().word in ("any", "some", "all"):
            self.fail("several patterns are not supported", self.peek())
        pattern = self._expression(_BITS)
        if not self.take_words("escape"):
            return Call(name, (child, pattern))
        start = self.peek()
        escape = self._operand(_UNARY)
        if not isinstance(escape, Literal) or not isinstance(escape.value, str) or len(escape.value) != 1:
            self.fail("the escape is one character", start)
        return Call(name, (child, pattern, escape))

    def _is(self, child: Expression) -> Expression:
        negated = self.take_words("not")
        tree: Expression
        if self.take_words("null") or self.take_words("unknown"):
            tree = Call("isnull", (child,))
        elif self.peek().word in ("true", "false"):
            tree = Call("<=>", (child, Literal(self.take().word == "true", "boolean")))
        elif self.take_words("distinct", "from"):
            tree = Call("not", (Call("<=>", (child, self._expression(_BITS))),))
        elif self.peek().word == "nan":
            self.fail("`is nan` is not Spark SQL", self.peek(), "Write isnan(column).")
        else:
            self.fail("expected `null`, `true`, `false` or `distinct from` after `is`")
        return Call("not", (tree,)) if negated else tree

    # Operands

    def _operand(self, least: int) -> Expression:
        token = self.peek()
        text = token.text
        if least <= _NOT and (token.word == "not" or token.is_mark("!")):
            self.take()
            self._deeper()
            tree: Expression = Call("not", (self._expression(_NOT),))
            self._depth -= 1
            return tree
        if token.kind == MARK and text in ("-", "+", "~"):
            self.take()
            if text != "~" and self.peek().kind == NUMBER and not self.peek(1).is_mark("::"):
                return self._number(self.take(), text.replace("+", ""))
            self._deeper()
            child = self._operand(_UNARY)
            self._depth -= 1
            return Call(_SIGNS[text], (child,))
        if token.kind == MARK and text == "(":
            self.take()
            self._deeper()
            tree = self._expression(_OR)
            self._depth -= 1
            self.expect_mark(")")
        elif token.kind == WORD and text in _CONSTANTS:
            self.take()
            tree = _CONSTANTS[text]
        else:
            tree = self._primary(token)
        for _ in range(MAX_CHAIN):
            if not self.take_mark("::"):
                return tree
            tree = Cast(tree, self._type())
        return self._too_much(f"more than {MAX_CHAIN} casts follow each other")

    def _primary(self, token: Token) -> Expression:
        if token.kind == NUMBER:
            return self._number(self.take())
        if self.at_string():
            return Literal(self.strings(), "string")
        if self.at_parameter():
            return self._parameter(self.take_parameter())
        word = token.word
        if word in _CONSTANTS:
            self.take()
            return _CONSTANTS[word]
        if word == "x" and self.at_hex():
            return Literal(self.hex(), "binary")
        if word in _TYPED and self.at_string(1):
            self.take()
            value = self.read(lambda string: string.value, self.take())
            return Literal(value, "timestamp" if word == "timestamp_ltz" else word)
        if word == "case":
            return self._case()
        if word in ("cast", "try_cast") and self.peek(1).is_mark("("):
            self.take()
            self.take()
            self._deeper()
            child = self._expression(_OR)
            self._depth -= 1
            self.expect_words("as")
            tree = Cast(child, self._type(), is_try=word == "try_cast")
            self.expect_mark(")")
            return tree
        return self._name(token)

    def _name(self, start: Token) -> Expression:
        parts = [self._name_part()]
        while self.take_mark("."):
            parts.append(self._name_part())
        if self.at_mark("(") and start.kind == WORD:
            self.take()
            arguments: list[Expression] = []
            if not self.take_mark(")"):
                self._deeper()
                arguments.append(self._expression(_OR))
                while self.take_mark(","):
                    arguments.append(self._expression(_OR))
                self._depth -= 1
                self.expect_mark(")")
            return Call(".".join(parts).lower(), tuple(arguments))
        if len(parts) == 1 and start.kind == WORD and start.word in _BARE_FUNCTIONS:
            return Call(start.word, ())
        return Name(tuple(parts))

    def _name_part(self) -> str:
        name = self.take_name(RESERVED)
        if name is None:
            self.fail("expected a column name, a literal or a function")
        return name

    def _case(self) -> Expression:
        self.take()
        self._deeper()
        operand = None if self.peek().word == "when" else self._expression(_OR)
        branches = []
        while self.take_words("when"):
            when = self._expression(_OR)
            self.expect_words("then")
            branches.append((when if operand is None else Call("=", (operand, when)), self._expression(_OR)))
        if not branches:
            self.fail("expected `when`")
        otherwise = self._expression(_OR) if self.take_words("else") else None
        self.expect_words("end")
        self._depth -= 1
        return Case(tuple(branches), otherwise)

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
            name = f"{name}({','.join(numbers)})"
        return name

    def _parameter(self, token: Token) -> Literal:
        name = token.text[1:]
        if name not in self._parameters:
            self.fail(f"the parameter {token.text} has no value", token, f"Give it by name: {name}=….")
        self._used.add(name)
        return literal_of(parameter_value(name, self._parameters[name]))

    def _number(self, token: Token, sign: str = "") -> Literal:
        value: Any = self.read(lambda number: read_number(number.text, sign), token)
        text = token.text.lower()
        suffix = "" if text[-1].isdigit() else next((name for end, name in _SUFFIXES.items() if text.endswith(end)), "")
        if suffix in ("bigint", "smallint", "tinyint"):
            return Literal(value, suffix)
        if isinstance(value, float):
            return Literal(value, "float" if suffix == "float" else "double")
        return literal_of(Decimal(value) if suffix == "decimal" else value)
