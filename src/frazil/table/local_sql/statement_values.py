"""Conditions and values in DuckDB's dialect as text for the verbs, which have Spark's meaning.

Each node of the tree is translated by an allow-list of what means the same in both, given the types of its operands:
literals, columns, comparisons, logic, exact arithmetic and a few functions. Everything else is refused by name. The
text is never a guess: strings that stand for dates and times become typed literals, and parameters become literals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NoReturn

import pyarrow as pa
from sqlglot import exp

from frazil.errors import FieldNotFoundError, InvalidRequestError, UnsupportedError
from frazil.evaluate import sql_types as t
from frazil.expr.parameters import python_value
from frazil.expr.predicates import sql_literal
from frazil.table.local_sql.statement_literals import ATOM, LOGIC, SUM, TEST, Value, literal_of, read_text
from frazil.table.local_sql.statement_text import sql_of
from frazil.table.local_sql.statement_types import EXACT_DIGITS, can_be_assigned, meet, shown_type, type_of

TARGET, SOURCE = "target", "source"
MAX_DEPTH = 60
_WHOLE, _POINT = re.compile(r"[0-9]{1,40}", re.ASCII), re.compile(r"[0-9]{0,40}\.[0-9]{1,40}", re.ASCII)
_EXPONENT = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40})?[eE][+-]?[0-9]{1,3}", re.ASCII)
_WHOLE_NUMBERS = (t.INT, t.LONG)
_OTHER_WAY = (
    "It may mean something else to the verbs. Compute it in a query, and hand that over: "
    "t.merge(lake.sql(…), on=…), or insert … select."
)


@dataclass
class Translator:
    """Translates expressions over the columns of one or two sides, each known by its aliases in lower case.

    `sides` are the columns by side: those that may be named.
    """

    what: str
    sides: Mapping[str, Mapping[str, pa.DataType]]
    aliases: Mapping[str, Sequence[tuple[str, ...]]]
    parameters: Mapping[str, object]
    has_prefix: bool = False
    """Whether columns are written with their side, as a merge needs them."""
    depth: int = field(default=0, init=False)

    def condition(self, node: exp.Expr) -> str:
        """Return a condition as text for a verb."""
        made = self.translate(node)
        if made.data_type not in (t.BOOLEAN, t.NULL):
            raise InvalidRequestError(
                f"Cannot {self.what}: the condition {_shown(node)} is {shown_type(made.data_type)}, not true or false"
            )
        return made.text

    def assigned(self, node: exp.Expr, column: str, data_type: pa.DataType) -> str:
        """Return the value for a column as text for a verb; refuse types that the two would convert differently."""
        made = self.translate(node)
        made = self._as_type(made, data_type)
        if not can_be_assigned(made.data_type, data_type, is_literal=made.is_literal):
            self.refuse(
                f"{shown_type(made.data_type)} for the column {column}, which is {shown_type(data_type)},",
                f"Cast it in a query: t.merge(lake.sql('select …, cast(… as {shown_type(data_type)}) …'), on=…).",
            )
        return made.text

    def equal(self, left: Value, right: Value) -> str:
        """Return the test that two values are equal."""
        (left_type, right_type), _ = self._met([left, right], "=")
        return f"{left_type.side} = {right_type.side}"

    def refuse(self, name: str, hint: str = _OTHER_WAY) -> NoReturn:
        """Raise the error for something outside the allow-list."""
        raise UnsupportedError(f"Cannot {self.what}: {name} is not supported here", hint=hint)

    def translate(self, node: exp.Expr) -> Value:
        """Return an expression as text for the verbs."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(f"an expression with more than {MAX_DEPTH} levels")
        try:
            method = _NODES.get(type(node))
            if method is None:
                self.refuse(_name_of(node))
            return method(self, node)
        finally:
            self.depth -= 1

    # Literals

    def literal(self, value: Any) -> Value:
        """Return a Python value as a literal."""
        made = literal_of(value)
        return made if isinstance(made, Value) else self.refuse(made)

    def _literal(self, node: exp.Literal) -> Value:
        text = str(node.this)
        if node.is_string:
            return self.literal(text)
        if _WHOLE.fullmatch(text):
            return self.literal(int(text))
        if _POINT.fullmatch(text):
            return self.literal(Decimal(text))
        if _EXPONENT.fullmatch(text) and abs(float(text)) != float("inf"):
            return self.literal(float(text))
        return self.refuse(f"the number {text}")

    def _boolean(self, node: exp.Boolean) -> Value:
        return self.literal(bool(node.this))

    def _null(self, node: exp.Null) -> Value:
        return self.literal(None)

    def _parameter(self, node: exp.Placeholder) -> Value:
        name = str(node.this or "")
        if not name or name.isdigit():
            self.refuse("a parameter without a name", "Write $name, and give it by name: lake.sql('…', name=…).")
        if name not in self.parameters:
            raise InvalidRequestError(
                f"Cannot {self.what}: the parameter ${name} has no value",
                hint=f"Give it by name: lake.sql('…', {name}=…).",
            )
        value = python_value(name, self.parameters[name])
        if isinstance(value, pa.Scalar):
            value = value.as_py()
        return self.literal(value)

    def _negative(self, node: exp.Neg) -> Value:
        child = node.this
        if isinstance(child, exp.Literal) and not child.is_string:
            text = str(child.this)
            if _WHOLE.fullmatch(text) and int(text) <= 2**63 - 1:
                return self.literal(-int(text))
            made = self._literal(child)
            return self.literal(-made.literal)
        operand = self.translate(child)
        if operand.data_type not in (*_WHOLE_NUMBERS, t.DOUBLE) and not pa.types.is_decimal(operand.data_type):
            self.refuse(f"- of {shown_type(operand.data_type)} values")
        return Value(f"- {operand.at_most(ATOM)}", operand.data_type, SUM)

    # Names

    def _column(self, node: exp.Column) -> Value:
        parts = [str(step.name) for step in node.parts]
        if isinstance(node.this, exp.Star):
            self.refuse("*")
        found = [
            resolved
            for side, columns in self.sides.items()
            for rest in self._inside(side, parts)
            if (resolved := self._resolve(side, columns, rest, node)) is not None
        ]
        if len(found) > 1:
            raise InvalidRequestError(
                f"Cannot {self.what}: the column {sql_of(node)} is ambiguous", hint="Name its table too."
            )
        if not found:
            names = sorted({name for columns in self.sides.values() for name in columns})
            raise FieldNotFoundError(
                f"Cannot {self.what}: there is no column {sql_of(node)}",
                hint=f"The columns are: {', '.join(names[:50])}.",
            )
        return found[0]

    def _inside(self, side: str, parts: list[str]) -> list[list[str]]:
        """Return the paths inside a side that a name may stand for: all of it, or what follows the side's alias."""
        lower = tuple(step.lower() for step in parts)
        found = [parts]
        for alias in self.aliases[side]:
            if lower[: len(alias)] == alias and len(parts) > len(alias):
                found.append(parts[len(alias) :])
        return found

    def _resolve(
        self, side: str, columns: Mapping[str, pa.DataType], path: list[str], node: exp.Column
    ) -> Value | None:
        name = self._find(columns, path[0])
        if name is None:
            return None
        data_type, steps = columns[name], [name]
        for step in path[1:]:
            if not pa.types.is_struct(data_type):
                return None
            fields = {data_type.field(index).name: data_type.field(index).type for index in range(data_type.num_fields)}
            found = self._find(fields, step)
            if found is None:
                return None
            data_type = fields[found]
            steps.append(found)
        prefix = f"{side}." if self.has_prefix else ""
        if not prefix and len(steps) > 1 and name.lower() in (TARGET, SOURCE):
            self.refuse(f"a part of the column {name}")
        return Value(prefix + ".".join(quoted(step) for step in steps), data_type)

    def _find(self, columns: Mapping[str, Any], name: str) -> str | None:
        alike = [column for column in columns if column.lower() == name.lower()]
        if len(alike) > 1:
            self.refuse(f"the column {name}, beside {' and '.join(alike)},", "Rename one of them.")
        return alike[0] if alike else None

    def _paren(self, node: exp.Paren) -> Value:
        return self.translate(node.this)

    # Logic

    def _logic(self, node: exp.Expr) -> Value:
        word = "and" if isinstance(node, exp.And) else "or"
        parts = []
        for child in node.flatten(unnest=False):
            made = self.translate(child)
            if made.data_type not in (t.BOOLEAN, t.NULL):
                self.refuse(f"{word.upper()} of {shown_type(made.data_type)} values", "Compare the value.")
            parts.append(made.at_most(TEST))
        return Value(f" {word} ".join(parts), t.BOOLEAN, LOGIC)

    def _not(self, node: exp.Not) -> Value:
        child = self.translate(node.this)
        if child.data_type not in (t.BOOLEAN, t.NULL):
            self.refuse(f"NOT of {shown_type(child.data_type)} values", "Compare the value.")
        return Value(f"not ({child.text})", t.BOOLEAN, LOGIC)

    def _compared(self, node: exp.Expr) -> Value:
        left, right = self._operands(node, node.this, node.expression)
        return Value(f"{left.side} {_COMPARISONS[type(node)]} {right.side}", t.BOOLEAN, TEST)

    def _operands(self, node: exp.Expr, *children: exp.Expr) -> list[Value]:
        """Return the sides of a test, in types that are compared alike; refuse tests of tests without brackets."""
        for child in children:
            if isinstance(child, _TESTS):
                self.refuse(f"{_shown(child)} as a side of another test", "Put it in brackets.")
        made = [self.translate(child) for child in children]
        return self._met(made, _name_of(node))[0]

    def _met(self, made: Sequence[Value], name: str) -> tuple[list[Value], pa.DataType]:
        """Return values in types that meet, and the type they meet in."""
        typed = [value.data_type for value in made if not value.is_text and value.data_type != t.NULL]
        if typed and any(value.is_text for value in made):
            made = [self._as_type(value, typed[0]) for value in made]
        data_type = t.NULL
        for value in made:
            common = meet(data_type, value.data_type)
            if common is None:
                self.refuse(
                    f"{name} of {shown_type(data_type)} and {shown_type(value.data_type)} values",
                    "Write both sides in one type. " + _OTHER_WAY,
                )
            data_type = common
        return list(made), data_type

    def _as_type(self, value: Value, data_type: pa.DataType) -> Value:
        """Return a literal text as a literal of another type; refuse texts that DuckDB and the verbs may read apart."""
        if not value.is_text or data_type == t.STRING:
            return value
        found = read_text(value.literal, data_type)
        if found is None:
            self.refuse(
                f"the text {value.literal!r} as {shown_type(data_type)}",
                "Write numbers without quotes, dates as '2024-02-29', times as '2024-02-29 05:30:00'.",
            )
        return self.literal(found)

    def _in(self, node: exp.In) -> Value:
        if node.args.get("query") is not None or node.args.get("unnest") is not None or node.args.get("field"):
            self.refuse("IN with a query")
        child, *items = self._operands(node, node.this, *node.expressions)
        return Value(f"{child.side} in ({', '.join(item.text for item in items)})", t.BOOLEAN, TEST)

    def _between(self, node: exp.Between) -> Value:
        if node.args.get("symmetric"):
            self.refuse("BETWEEN SYMMETRIC")
        if isinstance(node.this, exp.Literal) and node.this.is_string:
            self.refuse("BETWEEN after a literal text", "Cast the text.")
        child, low, high = self._operands(node, node.this, node.args["low"], node.args["high"])
        return Value(f"{child.side} between {low.side} and {high.side}", t.BOOLEAN, TEST)

    def _is(self, node: exp.Is) -> Value:
        child = node.this
        if isinstance(child, _TESTS):
            self.refuse(f"{_shown(child)} as a side of another test", "Put it in brackets.")
        made = self.translate(child)
        if isinstance(node.expression, exp.Null):
            return Value(f"{made.at_most(ATOM)} is null", t.BOOLEAN, TEST)
        if isinstance(node.expression, exp.Boolean) and made.data_type == t.BOOLEAN:
            return Value(f"{made.at_most(ATOM)} is {str(bool(node.expression.this)).lower()}", t.BOOLEAN, TEST)
        return self.refuse(f"IS {sql_of(node.expression)} of {shown_type(made.data_type)} values")

    def _like(self, node: exp.Like) -> Value:
        return self._matches(node, None)

    def _escape(self, node: exp.Escape) -> Value:
        escape = self.translate(node.expression)
        if not isinstance(node.this, exp.Like) or not escape.is_text or len(escape.literal) != 1:
            self.refuse("ESCAPE", "The escape is one character, after LIKE.")
        return self._matches(node.this, escape.literal)

    def _matches(self, node: exp.Like, escape: str | None) -> Value:
        if node.args.get("negate"):
            self.refuse("NOT LIKE in this form", "Write not (… like …).")
        child, pattern = self._operands(node, node.this, node.expression)
        if not pattern.is_text or child.data_type != t.STRING:
            self.refuse("LIKE without text and a literal pattern")
        return Value(f"{child.side} like {sql_literal(self._pattern(pattern.literal, escape))}", t.BOOLEAN, TEST)

    def _pattern(self, pattern: str, escape: str | None) -> str:
        r"""Return a pattern of DuckDB's LIKE, which has no escape of its own, as one whose escape is a backslash."""
        made, offset = [], 0
        while offset < len(pattern):
            char = pattern[offset]
            if char == escape:
                offset += 1
                if offset == len(pattern) or pattern[offset] not in ("%", "_", escape):
                    self.refuse(f"the pattern {pattern!r}, which escapes another character than a wildcard,")
                made.append("\\" + pattern[offset] if pattern[offset] in "%_\\" else pattern[offset])
            else:
                made.append("\\\\" if char == "\\" else char)
            offset += 1
        return "".join(made)

    # Numbers, texts, dates

    def _sum(self, node: exp.Expr) -> Value:
        symbol = _ARITHMETIC[type(node)]
        for child in (node.this, node.expression):
            if isinstance(child, (exp.DPipe, *_TESTS)):
                self.refuse(f"{_shown(child)} as a side of {symbol}", "Put it in brackets.")
        left, right = self.translate(node.this), self.translate(node.expression)
        days = self._days(symbol, left, right)
        if days is not None:
            return days
        data_type = self._result(symbol, left, right)
        return Value(f"{left.at_most(ATOM)} {symbol} {right.at_most(ATOM)}", data_type, SUM)

    def _days(self, symbol: str, left: Value, right: Value) -> Value | None:
        """Return a date and a number of days, or the days between two dates; None if it is neither."""
        if left.data_type != t.DATE or symbol == "*":
            return None
        if symbol == "-" and right.data_type == t.DATE:
            return Value(f"datediff({left.text}, {right.text})", t.INT)
        if right.is_literal and right.data_type == t.INT and abs(right.literal) < 1_000_000:
            days = right.literal if symbol == "+" else -right.literal
            return Value(f"date_add({left.text}, {days})", t.DATE)
        return None

    def _result(self, symbol: str, left: Value, right: Value) -> pa.DataType:
        """Return the type of a sum, a difference or a product; refuse pairs that round, or have another type there."""
        left_type, right_type = left.data_type, right.data_type
        is_plain = all(
            data_type in (*_WHOLE_NUMBERS, t.DOUBLE) or pa.types.is_decimal(data_type)
            for data_type in (left_type, right_type)
        )
        common = meet(left_type, right_type) if is_plain else None
        if common is None:
            self.refuse(f"{symbol} of {shown_type(left_type)} and {shown_type(right_type)} values")
        if not pa.types.is_decimal(common):
            return common
        (whole, scale), (other_whole, other_scale) = (
            t.digits_of_type(data_type) for data_type in (left_type, right_type)
        )
        if symbol == "*":
            made = (whole + scale + other_whole + other_scale + 1, scale + other_scale)
        else:
            made = (max(whole, other_whole) + max(scale, other_scale) + 1, max(scale, other_scale))
        if made[0] >= t.MAX_PRECISION:
            self.refuse(
                f"{symbol} of {shown_type(left_type)} and {shown_type(right_type)} values, with more than 37 digits,"
            )
        return pa.decimal128(*made)

    def _remainder(self, node: exp.Mod) -> Value:
        if isinstance(node.this, (exp.DPipe, exp.Neg, *_TESTS)):
            self.refuse(f"{_shown(node.this)} as a side of %", "Put it in brackets.")
        left, right = self.translate(node.this), self.translate(node.expression)
        if left.data_type not in _WHOLE_NUMBERS or right.data_type not in _WHOLE_NUMBERS or not right.literal:
            self.refuse("% of other values than a whole number by a literal that is not zero")
        if not right.is_literal:
            self.refuse("% by a value that may be zero")
        return Value(
            f"{left.at_most(ATOM)} % {right.at_most(ATOM)}", t.common_type((left.data_type, right.data_type)), SUM
        )

    def _joined(self, node: exp.DPipe) -> Value:
        for child in (node.this, node.expression):
            if isinstance(child, (exp.Add, exp.Sub, exp.Mul, exp.Neg, *_TESTS)):
                self.refuse(f"{_shown(child)} as a side of ||", "Put it in brackets.")
        left, right = self.translate(node.this), self.translate(node.expression)
        if any(value.data_type != t.STRING for value in (left, right)):
            self.refuse(f"|| of {shown_type(left.data_type)} and {shown_type(right.data_type)} values")
        return Value(f"{left.at_most(ATOM)} || {right.at_most(ATOM)}", t.STRING, SUM)

    def _case(self, node: exp.Case) -> Value:
        operand = None if node.this is None else self.translate(node.this)
        branches = node.args["ifs"]
        whens = [self.translate(branch.this) for branch in branches]
        if operand is not None:
            made, _ = self._met([operand, *whens], "CASE")
            tests = [f"{made[0].side} = {when.side}" for when in made[1:]]
        else:
            tests = [self.condition(branch.this) for branch in branches]
        default = node.args.get("default")
        results = [branch.args["true"] for branch in branches]
        values = [self.translate(result) for result in (*results, default or exp.Null())]
        values, data_type = self._met(values, "CASE")
        parts = [f"when {test} then {value.text}" for test, value in zip(tests, values, strict=False)]
        return Value(f"case {' '.join(parts)} else {values[-1].text} end", data_type)

    def _if(self, node: exp.If) -> Value:
        false = node.args.get("false") or exp.Null()
        return self._case(exp.Case(ifs=[exp.If(this=node.this, true=node.args["true"])], default=false))

    def _chosen(self, node: exp.Expr) -> Value:
        name = _CHOICES[type(node)]
        children = [node.this, *node.expressions] if node.expressions else [node.this, node.expression]
        values, data_type = self._met([self.translate(child) for child in children], name)
        if name == "nullif" and values[0].data_type != data_type:
            self.refuse(f"nullif of {shown_type(values[0].data_type)} and {shown_type(values[1].data_type)} values")
        if len(values) < 2:
            return values[0]
        return Value(f"{name}({', '.join(value.text for value in values)})", data_type)

    def _length(self, node: exp.Length) -> Value:
        return self._of_text(node, "length", t.INT, node.this)

    def _text_test(self, node: exp.Expr) -> Value:
        return self._of_text(node, _TEXT_TESTS[type(node)], t.BOOLEAN, node.this, node.expression)

    def _replace(self, node: exp.Replace) -> Value:
        if not self.translate(node.expression).literal:
            self.refuse("replace of an empty or computed text")
        return self._of_text(node, "replace", t.STRING, node.this, node.expression, node.args["replacement"])

    def _of_text(self, node: exp.Expr, name: str, data_type: pa.DataType, *children: exp.Expr) -> Value:
        values = [self.translate(child) for child in children]
        if any(value.data_type != t.STRING for value in values):
            self.refuse(f"{name} of values other than text")
        return Value(f"{name}({', '.join(value.text for value in values)})", data_type)

    def _substring(self, node: exp.Substring) -> Value:
        counts = [node.args["start"], *([node.args["length"]] if node.args.get("length") else [])]
        return self._cut(node, "substring", counts, least=(1, 0))

    def _end(self, node: exp.Expr) -> Value:
        return self._cut(node, "left" if isinstance(node, exp.Left) else "right", [node.expression], least=(0,))

    def _cut(self, node: exp.Expr, name: str, counts: Sequence[exp.Expr], least: Sequence[int]) -> Value:
        child = self.translate(node.this)
        numbers = [self.translate(count) for count in counts]
        for number, low in zip(numbers, least, strict=False):
            if not number.is_literal or number.data_type != t.INT or number.literal < low:
                self.refuse(f"{name} with another position than a whole number from {low} on")
        if child.data_type != t.STRING:
            self.refuse(f"{name} of {shown_type(child.data_type)} values")
        return Value(f"{name}({child.text}, {', '.join(number.text for number in numbers)})", t.STRING)

    def _date_part(self, node: exp.Expr) -> Value:
        child, name = self.translate(node.this), type(node).__name__.lower()
        if child.data_type not in (t.DATE, t.TIMESTAMP_NTZ):
            self.refuse(f"{name} of {shown_type(child.data_type)} values")
        return Value(f"{name}({child.text})", t.INT)

    def _absolute(self, node: exp.Abs) -> Value:
        child = self.translate(node.this)
        if child.data_type not in (*_WHOLE_NUMBERS, t.DOUBLE) and not pa.types.is_decimal(child.data_type):
            self.refuse(f"abs of {shown_type(child.data_type)} values")
        return Value(f"abs({child.text})", child.data_type)

    def _cast(self, node: exp.Cast) -> Value:
        data_type = type_of(node.to)
        name = sql_of(node.to)
        if data_type is None or node.args.get("format") or node.args.get("safe"):
            self.refuse(f"a cast to {name}")
        child = self.translate(node.this)
        if child.data_type == data_type:
            return child
        if child.is_text:
            return self._as_type(child, data_type)
        if not _casts_alike(child.data_type, data_type):
            self.refuse(f"a cast of {shown_type(child.data_type)} to {name}")
        return Value(f"cast({child.text} as {t.shown_name(data_type)})", data_type)


def _casts_alike(have: pa.DataType, to: pa.DataType) -> bool:
    """Return whether a cast means the same: nothing is rounded, and what does not fit is an error."""
    if have == t.NULL:
        return to in (t.INT, t.LONG, t.DOUBLE, t.STRING, t.DATE, t.BOOLEAN, t.TIMESTAMP, t.TIMESTAMP_NTZ)
    if t.is_integer(have):
        return to in (*_WHOLE_NUMBERS, t.DOUBLE, t.STRING) or pa.types.is_decimal(to)
    if pa.types.is_decimal(have):
        return (to == t.DOUBLE and have.precision <= EXACT_DIGITS) or (
            bool(pa.types.is_decimal(to)) and to.scale >= have.scale
        )
    return (have, to) in (
        (t.FLOAT, t.DOUBLE),
        (t.DATE, t.TIMESTAMP_NTZ),
        (t.TIMESTAMP_NTZ, t.TIMESTAMP),
        (t.BOOLEAN, t.STRING),
    )


def quoted(name: str) -> str:
    """Return a name as the verbs quote it."""
    return f"`{name.replace('`', '``')}`"


def _shown(node: Any) -> str:
    return sql_of(node, 60)


def _name_of(node: exp.Expr) -> str:
    """Return what an error calls a node: the function's name, the operator, or the kind of expression."""
    if isinstance(node, exp.Anonymous):
        return f"the function {node.name.lower()}"
    known = _NAMES.get(type(node))
    if known is not None:
        return known
    if isinstance(node, exp.Func):
        return f"the function {node.sql_name().lower()}"
    return f"the expression {_shown(node)}"


_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "is distinct from",
}
_TESTS: tuple[type[exp.Expr], ...] = (
    *_COMPARISONS,
    exp.In,
    exp.Between,
    exp.Is,
    exp.Like,
    exp.Escape,
    exp.Not,
    exp.And,
    exp.Or,
)
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_CHOICES: dict[type[exp.Expr], str] = {
    exp.Coalesce: "coalesce",
    exp.Nullif: "nullif",
    exp.Greatest: "greatest",
    exp.Least: "least",
}
_TEXT_TESTS: dict[type[exp.Expr], str] = {
    exp.StartsWith: "startswith",
    exp.EndsWith: "endswith",
    exp.Contains: "contains",
}
_NAMES: dict[type[exp.Expr], str] = {
    exp.Div: "the operator /",
    exp.IntDiv: "the operator //",
    exp.Pow: "the operator **",
    exp.Bracket: "[…]",
    exp.RegexpLike: "a regular expression",
    exp.RegexpFullMatch: "a regular expression",
    exp.ILike: "ILIKE",
    exp.Glob: "GLOB",
    exp.SimilarTo: "SIMILAR TO",
    exp.Subquery: "a query in an expression",
    exp.Exists: "EXISTS",
    exp.Interval: "an interval",
    exp.TryCast: "try_cast",
    exp.Collate: "COLLATE",
    exp.ByteString: "a text with escapes (E'…')",
    exp.RawString: "a text between $$",
    exp.Window: "a window function",
    exp.Struct: "a struct",
    exp.Array: "a list",
    exp.Tuple: "a row of values",
    **_COMPARISONS,
}
_NODES: dict[type[exp.Expr], Callable[[Translator, Any], Value]] = {
    exp.Literal: Translator._literal,
    exp.Boolean: Translator._boolean,
    exp.Null: Translator._null,
    exp.Placeholder: Translator._parameter,
    exp.Neg: Translator._negative,
    exp.Column: Translator._column,
    exp.Paren: Translator._paren,
    exp.And: Translator._logic,
    exp.Or: Translator._logic,
    exp.Not: Translator._not,
    exp.In: Translator._in,
    exp.Between: Translator._between,
    exp.Is: Translator._is,
    exp.Like: Translator._like,
    exp.Escape: Translator._escape,
    exp.DPipe: Translator._joined,
    exp.Mod: Translator._remainder,
    exp.Case: Translator._case,
    exp.If: Translator._if,
    exp.Length: Translator._length,
    exp.Replace: Translator._replace,
    exp.Substring: Translator._substring,
    exp.Left: Translator._end,
    exp.Right: Translator._end,
    exp.Abs: Translator._absolute,
    exp.Cast: Translator._cast,
    **dict.fromkeys(_COMPARISONS, Translator._compared),
    **dict.fromkeys(_ARITHMETIC, Translator._sum),
    **dict.fromkeys(_CHOICES, Translator._chosen),
    **dict.fromkeys(_TEXT_TESTS, Translator._text_test),
    **dict.fromkeys((exp.Year, exp.Month, exp.Day), Translator._date_part),
}
