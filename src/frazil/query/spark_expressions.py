"""Expressions of Spark's dialect in DuckDB: literals, operators, predicates and CASE, with their operand types.

The node classes of `_HANDLERS` are the allow-list. A node of another class, or with a part that its handler does not
name, is refused. Operands are cast explicitly to Spark's types, so that DuckDB chooses no type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Protocol

from sqlglot import exp

from frazil.query.spark_arithmetic import arithmetic, negated
from frazil.query.spark_casts import cast, coerce
from frazil.query.spark_functions import SCALARS, add_interval, trimmed
from frazil.query.spark_types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    NotTranslatable,
    SparkType,
    Typed,
    choose,
    combine,
    common_type,
    common_type_of,
    decimal_type,
    is_null,
    number,
    paren,
    parse_spark_type,
    repeated,
)


class Environment(Protocol):
    """The names that an expression may refer to, and its context."""

    def resolve(self, parts: Sequence[str]) -> Typed:
        """Return the column of a name."""

    def matched(self, value: Typed) -> Typed:
        """Return the matching key of a grouped query, or the expression itself."""

    def subquery(self, query: exp.Expr, purpose: str) -> tuple[exp.Query, list[SparkType]]:
        """Translate a subquery; return it with the types of its columns."""

    def coerced_subquery(self, query: exp.Query, types: Sequence[SparkType], to: Sequence[SparkType]) -> exp.Query:
        """Return a translated query with its columns cast."""

    def call(self, node: exp.Expr, name: str) -> Typed | None:
        """Translate an aggregate or window function; return None for other names."""


def translate(node: exp.Expr, environment: Environment) -> Typed:
    """Translate an expression with its type, or refuse it by the name of its operator or function."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise NotTranslatable(describe(node))
    return environment.matched(handler(node, environment))


def describe(node: exp.Expr) -> str:
    """Return the name of a node in errors: its function or keyword."""
    if isinstance(node, exp.Anonymous):
        return f"the function {str(node.this).lower()}"
    return _NAMES.get(type(node)) or f"{type(node).__name__.upper()} ({node.sql('spark')[:60]})"


def only(node: exp.Expr, *names: str) -> None:
    """Refuse a node with other parts than these."""
    for name, value in node.args.items():
        if name not in names and value not in (None, False, []) and name != "_type":
            raise NotTranslatable(_PARTS.get(name) or f"{describe(node)} with {name.strip('_')}")


def translate_all(nodes: Iterable[exp.Expr], environment: Environment) -> list[Typed]:
    """Translate several expressions."""
    return [translate(node, environment) for node in nodes]


def as_condition(value: Typed, index: str) -> Typed:
    """Return a condition; Spark accepts only booleans."""
    if value.type == VOID:
        return cast(value, BOOLEAN)
    if value.type != BOOLEAN:
        raise NotTranslatable(f"{index} over {value.type}")
    return value


def compared(first: Typed, second: Typed, index: str) -> tuple[Typed, Typed]:
    """Convert two operands to the type in which Spark compares them."""
    if isinstance(first.literal, str) and second.type.is_temporal:
        return cast(first, second.type), second
    if isinstance(second.literal, str) and first.type.is_temporal:
        return first, cast(second, first.type)
    shared = common_type(first.type, second.type, index)
    if not shared.is_atomic:
        raise NotTranslatable(f"{index} over {shared}")
    return coerce(first, shared), coerce(second, shared)


def merged(values: Sequence[Typed], index: str) -> tuple[list[Typed], SparkType]:
    """Convert the results of CASE and similar expressions to Spark's common type."""
    shared = common_type_of((value.type for value in values), index)
    if shared == VOID:
        raise NotTranslatable(f"{index} over nulls only")
    return [coerce(value, shared) for value in values], shared


def _column(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "table", "db", "catalog")
    if isinstance(node.this, exp.Star):
        raise NotTranslatable("* inside an expression")
    return environment.resolve([piece.name for piece in node.parts])  # type: ignore[attr-defined]


def _literal(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "is_string")
    if node.args.get("is_string"):
        return Typed(
            exp.Cast(this=exp.Literal.string(node.this), to=exp.DataType.build("varchar")), STRING, False, node.this
        )
    return _number(node.this)


def _number(text: str) -> Typed:
    if re.fullmatch(r"-?\d+", text):
        value = int(text)
        for name, limit in (("int", 2**31), ("bigint", 2**63)):
            if -limit <= value < limit:
                return Typed(number(value, SparkType(name)), SparkType(name), False, value)
        spark_type = decimal_type(len(text.lstrip("-0")), 0, f"the number {text}")
        return Typed(number(text, spark_type), spark_type, False, Decimal(text))
    if re.fullmatch(r"-?\d*\.\d*", text):
        exact = Decimal(text)
        scale = -int(exact.as_tuple().exponent)
        precision = max(len(exact.as_tuple().digits), scale)
        spark_type = decimal_type(precision, scale, f"the number {text[:50]}")
        return Typed(number(text, spark_type), spark_type, False, exact)
    if re.fullmatch(r"-?\d+(\.\d*)?[eE][+-]?\d{1,3}", text):
        return Typed(number(text, DOUBLE), DOUBLE, False, float(text))
    raise NotTranslatable(f"the number {text[:50]}")


def _boolean(node: exp.Expr, environment: Environment) -> Typed:
    return Typed(exp.Boolean(this=bool(node.this)), BOOLEAN, False, bool(node.this))


def _null(node: exp.Expr, environment: Environment) -> Typed:
    return Typed(exp.Null(), VOID)


def _paren(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this")
    return translate(node.this, environment)


def _negation(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this")
    if isinstance(node.this, exp.Literal) and not node.this.is_string:
        return _number(f"-{node.this.this}")
    return negated(translate(node.this, environment))


def _arithmetic(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "expression", "typed", "safe")
    for operand in (node.this, node.expression):
        if isinstance(operand, exp.Interval):
            other = node.expression if operand is node.this else node.this
            if (isinstance(node, exp.Sub) and operand is node.this) or not isinstance(node, (exp.Add, exp.Sub)):
                break
            return add_interval(translate(other, environment), operand, is_minus=isinstance(node, exp.Sub))
    left, right = translate(node.this, environment), translate(node.expression, environment)
    return arithmetic(_NAMES[type(node)], left, right)


# Operators that Spark's grammar and sqlglot's nest differently without parentheses.
_PREDICATES = (exp.Not, exp.In, exp.Between, exp.Like, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Connector)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def _refuse_unclear(node: exp.Expr, *operands: exp.Expr) -> None:
    for operand in operands:
        if isinstance(operand, (*_PREDICATES, *_COMPARISONS)):
            raise NotTranslatable(f"{describe(node)} next to {describe(operand)} without brackets")


def _comparison(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "expression")
    _refuse_unclear(node, node.this, node.expression)
    operands = translate(node.this, environment), translate(node.expression, environment)
    left, right = compared(*operands, describe(node))
    return combine(_DUCKDB_COMPARISONS[type(node)](this=paren(left.copy_tree()), expression=paren(right.copy_tree())),
                   BOOLEAN, [left, right])  # fmt: skip


def _not(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this")
    value = as_condition(translate(node.this, environment), "NOT")
    return combine(exp.Not(this=exp.Paren(this=value.copy_tree())), BOOLEAN, [value])


def _operands(node: exp.Expr, type_name: type[exp.Expr]) -> Iterator[exp.Expr]:
    for operand in (node.this, node.expression):
        if type(operand) is type_name:
            yield from _operands(operand, type_name)
        else:
            yield operand


def _connection(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "expression")
    type_name = type(node)
    values = [as_condition(value, describe(node)) for value in translate_all(_operands(node, type_name), environment)]
    if any(value.can_fail for value in values[1:]):
        # Spark evaluates an expression that occurs twice in a SELECT list before the operand to its left.
        raise NotTranslatable(f"{describe(node)} after which an expression may fail, outside the top of WHERE")
    return connect(type_name, values)


def connect(type_name: type[exp.Expr], values: Sequence[Typed]) -> Typed:
    """Return AND or OR.

    If an operand may fail, CASE keeps Spark's order: an operand is evaluated only if those before it do not decide.
    """
    tree = paren(values[0].copy_tree())
    for value in values[1:]:
        tree = type_name(this=tree, expression=paren(value.copy_tree()))
    if len(values) > 1 and any(value.can_fail for value in values):
        decided = exp.Boolean(this=type_name is exp.Or)
        branches: list[tuple[exp.Expr, exp.Expr]] = [
            (exp.Is(this=paren(repeated(value)), expression=decided.copy()), decided.copy()) for value in values[:-1]
        ]
        tree = choose(branches, tree)
    return combine(tree, BOOLEAN, values)


def _is(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "expression")
    _refuse_unclear(node, node.this)
    value = translate(node.this, environment)
    if isinstance(node.expression, exp.Null):
        return combine(is_null(value.copy_tree()), BOOLEAN, [value])
    if not isinstance(node.expression, exp.Boolean):
        raise NotTranslatable(describe(node))
    value = as_condition(value, "IS")
    return combine(exp.Is(this=paren(value.copy_tree()), expression=node.expression.copy()), BOOLEAN, [value])


def _between(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "low", "high")
    _refuse_unclear(node, node.this, node.args["low"], node.args["high"])
    value, low, high = translate_all((node.this, node.args["low"], node.args["high"]), environment)
    conditions = []
    for type_name, bound in ((exp.GTE, low), (exp.LTE, high)):
        left, right = compared(value, bound, "BETWEEN")
        tree = type_name(this=paren(repeated(left)), expression=paren(right.copy_tree()))
        conditions.append(combine(tree, BOOLEAN, [left, right]))
    return connect(exp.And, conditions)


_MAX_FLOATS_IN_LIST = 10


def _in(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "expressions", "query")
    _refuse_unclear(node, node.this)
    value = translate(node.this, environment)
    if node.args.get("query") is not None:
        return _in_query(value, node.args["query"], environment)
    options = translate_all(node.expressions, environment)
    if value.type.is_temporal:
        options = [cast(item, value.type) if isinstance(item.literal, str) else item for item in options]
    shared = common_type_of([value.type, *(option.type for option in options)], "IN")
    if not shared.is_atomic:
        raise NotTranslatable(f"IN over {shared}")
    if shared.is_floating and len(options) > _MAX_FLOATS_IN_LIST:
        raise NotTranslatable(f"IN with more than {_MAX_FLOATS_IN_LIST} values of {shared}")
    value, *options = (coerce(item, shared) for item in (value, *options))
    tree = exp.In(this=paren(value.copy_tree()), expressions=[option.copy_tree() for option in options])
    return combine(tree, BOOLEAN, [value, *options])


def _in_query(value: Typed, query: exp.Expr, environment: Environment) -> Typed:
    only(query, "this")
    tree, types = environment.subquery(query.this, "IN")
    if len(types) != 1:
        raise NotTranslatable("IN over several columns")
    shared = common_type(value.type, types[0], "IN")
    if not shared.is_atomic:
        raise NotTranslatable(f"IN over {shared}")
    tree = environment.coerced_subquery(tree, types, [shared])
    value = coerce(value, shared)
    return combine(exp.In(this=paren(value.copy_tree()), query=exp.Subquery(this=tree)), BOOLEAN, [value])


def _exists(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this")
    query = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    tree, _ = environment.subquery(query, "EXISTS")
    return Typed(exp.Exists(this=tree), BOOLEAN)


def _scalar_subquery(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this")
    tree, types = environment.subquery(node.this, "a subquery as a value")
    if len(types) != 1:
        raise NotTranslatable("a subquery of several columns as a value")
    return Typed(exp.Subquery(this=tree), types[0])


def _case(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "ifs", "default")
    subject = None if node.this is None else translate(node.this, environment)
    conditions, results = [], []
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
        when = translate(branch.this, environment)
        if subject is None:
            conditions.append(as_condition(when, "CASE"))
        else:
            left, right = compared(subject, when, "CASE")
            equal = exp.EQ(this=paren(repeated(left)), expression=paren(right.copy_tree()))
            conditions.append(combine(equal, BOOLEAN, [left, right]))
        results.append(translate(branch.args["true"], environment))
    if node.args.get("default") is not None:
        results.append(translate(node.args["default"], environment))
    values, shared = merged(results, "CASE")
    branches = [(when.copy_tree(), value.copy_tree()) for when, value in zip(conditions, values, strict=False)]
    default = values[-1].copy_tree() if len(values) > len(conditions) else None
    return combine(choose(branches, default), shared, [*conditions, *values])


def _cast(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "to")
    return cast(translate(node.this, environment), _target(node.args["to"]))


def _target(data_type: exp.DataType) -> SparkType:
    only(data_type, "this", "expressions", "nested")
    type_name = data_type.this
    if type_name == exp.DataType.Type.DECIMAL:
        numbers = [int(parameter.this.this) for parameter in data_type.expressions]
        precision, scale = numbers + [10, 0][len(numbers) :]
        return decimal_type(precision, scale, "a cast")
    if data_type.expressions or type_name not in _CAST_TARGETS:
        raise NotTranslatable(f"the cast to {data_type.sql('spark').lower()}")
    return _CAST_TARGETS[type_name]


_CAST_TARGETS = {
    exp.DataType.Type.TIMESTAMPTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPLTZ: TIMESTAMP,
    exp.DataType.Type.TIMESTAMPNTZ: TIMESTAMP_NTZ,
    exp.DataType.Type.TEXT: STRING,
    **{
        exp.DataType.Type[name.upper()]: parse_spark_type(name)
        for name in ("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "binary")
    },
}


def _concatenation(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "expression", "safe")
    for operand in (node.this, node.expression):
        if isinstance(operand, (exp.Add, exp.Sub, *_PREDICATES, *_COMPARISONS)):
            raise NotTranslatable(f"|| next to {describe(operand)} without brackets")
    return SCALARS["concat"](translate_all((node.this, node.expression), environment))


def _like(node: exp.Expr, environment: Environment, escape: str = "\\") -> Typed:
    only(node, "this", "expression", "negate")
    _refuse_unclear(node, node.this)
    value, pattern = translate_all((node.this, node.expression), environment)
    if value.type != STRING or not isinstance(pattern.literal, str):
        raise NotTranslatable("LIKE with a pattern that is not a literal, or over another type than string")
    escaped = re.escape(escape)
    if not re.fullmatch(rf"(?:[^{escaped}]|{escaped}[%_{escaped}])*", pattern.literal, re.DOTALL):
        raise NotTranslatable(f"the LIKE pattern {pattern.literal!r}")
    tree = exp.Escape(
        this=exp.Like(this=paren(value.copy_tree()), expression=exp.Literal.string(pattern.literal)),
        expression=exp.Literal.string(escape),
    )
    is_negated = bool(node.args.get("negate"))
    return combine(exp.Not(this=exp.Paren(this=tree)) if is_negated else exp.Paren(this=tree), BOOLEAN, [value])


def _escape(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "expression")
    if (
        type(node.this) is not exp.Like
        or not isinstance(node.expression, exp.Literal)
        or len(node.expression.this) != 1
    ):
        raise NotTranslatable("ESCAPE")
    return environment.matched(_like(node.this, environment, node.expression.this))


def _interval(node: exp.Expr, environment: Environment) -> Typed:
    raise NotTranslatable("an interval that is not added to a date or a timestamp")


def _function(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "expressions")
    if not isinstance(node.this, str):
        raise NotTranslatable(f"the function {node.this.name}")
    name = node.this.lower()
    special = environment.call(node, name)
    if special is not None:
        return special
    if name not in SCALARS:
        raise NotTranslatable(f"the function {name}")
    return SCALARS[name](translate_all(node.expressions, environment))


def _window_or_filter(node: exp.Expr, environment: Environment) -> Typed:
    inner = node.this
    if not isinstance(inner, (exp.Anonymous, exp.Filter)):
        raise NotTranslatable(f"{describe(node)} over {describe(inner)}")
    value = environment.call(node, "")
    assert value is not None
    return value


def _special_call(name: str, *parts: str) -> Callable[[exp.Expr, Environment], Typed]:
    def handler(node: exp.Expr, environment: Environment) -> Typed:
        only(node, *parts)
        nodes = [node.args[piece] for piece in parts if node.args.get(piece) is not None]
        return SCALARS[name](translate_all(nodes, environment))

    return handler


def _trim(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "position", "expression")
    value = translate(node.this, environment)
    characters = None if node.expression is None else translate(node.expression, environment)
    return trimmed(value, characters, str(node.args.get("position") or "BOTH"))


def _extract(node: exp.Expr, environment: Environment) -> Typed:
    only(node, "this", "expression")
    name = {"dow": "dayofweek", "doy": "dayofyear", "week": "weekofyear"}.get(node.name.lower(), node.name.lower())
    if name not in {"year", "quarter", "month", "day", "dayofweek", "dayofyear", "weekofyear", "hour", "minute"}:
        raise NotTranslatable(f"EXTRACT of {name}")
    return SCALARS[name]([translate(node.expression, environment)])


_PARTS = {
    "laterals": "LATERAL VIEW",
    "qualify": "QUALIFY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "recursive": "WITH RECURSIVE",
    "all": "GROUP BY ALL",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "by_name": "UNION BY NAME",
    "version": "VERSION AS OF or TIMESTAMP AS OF",
    "safe": "TRY_CAST",
}
"""The names of refused clause parts in errors."""
_NAMES: dict[type[exp.Expr], str] = {
    exp.And: "AND",
    exp.Or: "OR",
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "div",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "<=>", exp.NullSafeNEQ: "IS DISTINCT FROM", exp.DPipe: "||",
    exp.Bracket: "the operator []", exp.RegexpLike: "RLIKE", exp.ILike: "ILIKE", exp.Lambda: "a lambda function",
    exp.BitwiseAnd: "the operator &", exp.BitwiseOr: "the operator |", exp.BitwiseXor: "the operator ^",
    exp.BitwiseNot: "the operator ~", exp.Dot: "a field of a struct or a function of a catalog",
    exp.TryCast: "CAST", exp.Cast: "CAST", exp.RawString: "a raw string", exp.HexString: "a binary literal",
    exp.Window: "OVER", exp.Filter: "FILTER", exp.Placeholder: "a parameter", exp.Any: "ANY",
}  # fmt: skip
_DUCKDB_COMPARISONS: dict[type[exp.Expr], type[exp.Expr]] = {
    **{type_name: type_name for type_name in _COMPARISONS},
    exp.NullSafeEQ: exp.NullSafeEQ,
    exp.NullSafeNEQ: exp.NullSafeNEQ,
}
_HANDLERS: dict[type[exp.Expr], Callable[..., Typed]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Paren: _paren,
    exp.Neg: _negation,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv), _arithmetic),
    **dict.fromkeys(_DUCKDB_COMPARISONS, _comparison),
    exp.Not: _not,
    exp.And: _connection,
    exp.Or: _connection,
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Exists: _exists,
    exp.Subquery: _scalar_subquery,
    exp.Case: _case,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.DPipe: _concatenation,
    exp.Like: _like,
    exp.Escape: _escape,
    exp.Interval: _interval,
    exp.Anonymous: _function,
    exp.Window: _window_or_filter,
    exp.Filter: _window_or_filter,
    exp.Substring: _special_call("substring", "this", "start", "length"),
    exp.StrPosition: _special_call("instr", "this", "substr"),
    exp.Trim: _trim,
    exp.Extract: _extract,
    exp.CurrentDate: _special_call("current_date"),
    exp.CurrentTimestamp: _special_call("current_timestamp"),
}

__all__ = ["INT", "DATE", "Environment", "as_condition", "connect", "describe", "only", "repeated", "translate"]
