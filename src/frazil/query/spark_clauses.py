"""Clauses of SELECT in views: WHERE and HAVING, GROUP BY, ORDER BY, LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from frazil.query.spark_expressions import as_condition, connect, only, translate
from frazil.query.spark_scopes import (
    Field,
    Key,
    Scope,
    group_key,
    ordered,
    sort_key,
)
from frazil.query.spark_types import (
    NotTranslatable,
    Typed,
    choose,
    paren,
)

Item = tuple[str, exp.Expr | Field]
"""A column of the SELECT list: its name, and its expression, or what `*` stands for."""


def filter_condition(node: exp.Expr, scope: Scope) -> exp.Expr:
    """Return the condition of WHERE or HAVING.

    Spark computes its parts in order, and a row is out at the first that is not true. Where one may fail, so does CASE.
    """
    parts: list[exp.Expr] = []
    pending = [node]
    while pending:
        one = pending.pop()
        if type(one) is exp.And:
            only(one, "this", "expression")
            pending += [one.expression, one.this]
        else:
            parts.append(one)
    values = [as_condition(scope.whole(part), "WHERE") for part in parts]
    if len(values) == 1 or not any(value.can_fail for value in values):
        return connect(exp.And, values).tree
    branches: list[tuple[exp.Expr, exp.Expr]] = [
        (exp.Not(this=exp.Paren(this=exp.Is(this=paren(value.copy_tree()), expression=exp.Boolean(this=True)))),
         exp.Boolean(this=False))
        for value in values
    ]  # fmt: skip
    tree = choose(branches, exp.Boolean(this=True))
    # Parts before the first that may fail stand beside CASE too, where DuckDB finds them for pruning.
    for value in values:
        if value.can_fail:
            break
        tree = exp.And(this=tree, expression=paren(value.copy_tree()))
    return tree


def column_aliases(values: Sequence[tuple[str, Typed]]) -> dict[str, Typed]:
    """Return the columns that a name means alone."""
    names = [name.lower() for name, _ in values]
    return {
        name: replace(value, literal=None, loose=frozenset())
        for name, (_, value) in zip(names, values, strict=True)
        if names.count(name) == 1
    }


def group_clause(node: exp.Expr | None, items: Sequence[Item], rows: Scope) -> tuple[list[Key], exp.Expr | None, bool]:
    """Return the keys of GROUP BY, the clause, and whether it has grouping sets; without it there is one group."""
    if node is None:
        return [], None, False
    only(node, "expressions", "rollup", "cube")
    keys: list[Key] = []

    def key(one: exp.Expr) -> exp.Expr:
        keys.append(group_key(_key_value(one, items, rows)))
        return keys[-1].grouped.copy_tree()

    def clause(one: exp.Expr) -> exp.Expr:
        if isinstance(one, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            only(one, "expressions")
            return type(one)(expressions=[clause(part) for part in one.expressions])
        if isinstance(one, exp.Tuple):
            return exp.Tuple(expressions=[key(part) for part in one.expressions])
        return key(one.unnest())

    expressions = [clause(one) for one in node.expressions]
    whole = [*(node.args.get("rollup") or ()), *(node.args.get("cube") or ())]
    has_sets = bool(whole) or any(isinstance(one, (exp.Rollup, exp.Cube, exp.GroupingSets)) for one in node.expressions)
    if has_sets and any(not one.value.loose for one in keys):
        raise NotTranslatable("GROUPING SETS over a constant")
    if whole:
        if len(whole) > 1 or whole[0].expressions or any(isinstance(one, exp.Rollup) for one in expressions):
            raise NotTranslatable("several ROLLUP or CUBE")
        expressions = [type(whole[0])(expressions=expressions)]
    return keys, exp.Group(expressions=expressions), has_sets


def _key_value(node: exp.Expr, items: Sequence[Item], rows: Scope) -> Typed:
    """Return the expression of a key, which may be the place or the alias of a column of the SELECT list."""
    chosen: exp.Expr | Field = node
    if isinstance(node, exp.Literal) and not node.is_string:
        if not node.this.isdecimal() or not 1 <= int(node.this) <= len(items):
            raise NotTranslatable(f"GROUP BY {node.this}")
        chosen = items[int(node.this) - 1][1]
    elif isinstance(node, exp.Column) and not node.args.get("table"):
        name = node.name.lower()
        if not any(one.is_named([name]) for one in rows.fields):
            matches = [item for shown, item in items if shown.lower() == name]
            if len(matches) == 1:
                chosen = matches[0]
    if isinstance(chosen, Field):
        return replace(chosen.value, loose=frozenset({chosen.name}))
    return translate(chosen, rows)


def order_clause(node: exp.Expr, values: Sequence[tuple[str, Typed]], scope: Scope | None) -> exp.Order:
    """Return ORDER BY: of columns of the result by their places, and of other expressions where a scope allows them."""
    only(node, "expressions")
    names = [name.lower() for name, _ in values]
    keys = []
    for one in node.expressions:
        only(one, "this", "desc", "nulls_first")
        place = 0
        if isinstance(one.this, exp.Literal) and not one.this.is_string:
            place = int(one.this.this) if one.this.this.isdecimal() else 0
            if not 1 <= place <= len(values):
                raise NotTranslatable(f"ORDER BY {one.this.this}")
        elif isinstance(one.this, exp.Column) and not one.this.args.get("table"):
            if names.count(one.this.name.lower()) > 1:
                raise NotTranslatable(f"ORDER BY {one.this.name}, which is ambiguous")
            if one.this.name.lower() in names:
                place = names.index(one.this.name.lower()) + 1
        if place:
            if not values[place - 1][1].type.is_atomic:
                raise NotTranslatable(f"ORDER BY {values[place - 1][1].type}")
            keys.append(ordered(exp.Literal.number(place), one))
        elif scope is None:
            raise NotTranslatable("ORDER BY an expression after DISTINCT or a set operation")
        else:
            keys.append(sort_key(one, replace(scope, outputs=column_aliases(values)).whole(one.this)))
    return exp.Order(expressions=keys)


def set_limit(node: exp.Expr, tree: exp.Expr) -> None:
    """Give a query LIMIT and OFFSET of another."""
    for name, kind in (("limit", exp.Limit), ("offset", exp.Offset)):
        clause = node.args.get(name)
        if clause is None:
            continue
        only(clause, "expression")
        count = clause.expression
        if not isinstance(count, exp.Literal) or not count.this.isdecimal():
            raise NotTranslatable(f"{name.upper()} with another value than a number")
        tree.set(name, kind(expression=count.copy()))
