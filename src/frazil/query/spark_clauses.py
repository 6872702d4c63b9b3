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
"""A column of the SELECT list: its name and expression, or a column that `*` stands for."""


def filter_condition(node: exp.Expr, scope: Scope) -> exp.Expr:
    """Return the condition of WHERE or HAVING.

    Spark evaluates conjuncts in order, and drops a row at the first that is not true. If one may fail, CASE does the
    same.
    """
    parts: list[exp.Expr] = []
    pending = [node]
    while pending:
        entry = pending.pop()
        if type(entry) is exp.And:
            only(entry, "this", "expression")
            pending += [entry.expression, entry.this]
        else:
            parts.append(entry)
    values = [as_condition(scope.whole(piece), "WHERE") for piece in parts]
    if len(values) == 1 or not any(value.can_fail for value in values):
        return connect(exp.And, values).tree
    branches: list[tuple[exp.Expr, exp.Expr]] = [
        (exp.Not(this=exp.Paren(this=exp.Is(this=paren(value.copy_tree()), expression=exp.Boolean(this=True)))),
         exp.Boolean(this=False))
        for value in values
    ]  # fmt: skip
    tree = choose(branches, exp.Boolean(this=True))
    # Conjuncts before the first that may fail also stand beside the CASE, where DuckDB uses them for pruning.
    for value in values:
        if value.can_fail:
            break
        tree = exp.And(this=tree, expression=paren(value.copy_tree()))
    return tree


def column_aliases(values: Sequence[tuple[str, Typed]]) -> dict[str, Typed]:
    """Return the columns with an unambiguous name."""
    names = [name.lower() for name, _ in values]
    return {
        name: replace(value, literal=None, loose=frozenset())
        for name, (_, value) in zip(names, values, strict=True)
        if names.count(name) == 1
    }


def group_clause(node: exp.Expr | None, items: Sequence[Item], rows: Scope) -> tuple[list[Key], exp.Expr | None, bool]:
    """Return the keys of GROUP BY, its clause, and whether it has grouping sets; without one there is one group."""
    if node is None:
        return [], None, False
    only(node, "expressions", "rollup", "cube")
    keys: list[Key] = []

    def key(entry: exp.Expr) -> exp.Expr:
        keys.append(group_key(_key_value(entry, items, rows)))
        return keys[-1].grouped.copy_tree()

    def clause(entry: exp.Expr) -> exp.Expr:
        if isinstance(entry, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            only(entry, "expressions")
            return type(entry)(expressions=[clause(piece) for piece in entry.expressions])
        if isinstance(entry, exp.Tuple):
            return exp.Tuple(expressions=[key(piece) for piece in entry.expressions])
        return key(entry.unnest())

    expressions = [clause(entry) for entry in node.expressions]
    whole = [*(node.args.get("rollup") or ()), *(node.args.get("cube") or ())]
    has_sets = bool(whole) or any(
        isinstance(entry, (exp.Rollup, exp.Cube, exp.GroupingSets)) for entry in node.expressions
    )
    if has_sets and any(not entry.value.loose for entry in keys):
        raise NotTranslatable("GROUPING SETS over a constant")
    if whole:
        if len(whole) > 1 or whole[0].expressions or any(isinstance(entry, exp.Rollup) for entry in expressions):
            raise NotTranslatable("several ROLLUP or CUBE")
        expressions = [type(whole[0])(expressions=expressions)]
    return keys, exp.Group(expressions=expressions), has_sets


def _key_value(node: exp.Expr, items: Sequence[Item], rows: Scope) -> Typed:
    """Return the expression of a key, which may be the ordinal or alias of a column of the SELECT list."""
    chosen: exp.Expr | Field = node
    if isinstance(node, exp.Literal) and not node.is_string:
        if not node.this.isdecimal() or not 1 <= int(node.this) <= len(items):
            raise NotTranslatable(f"GROUP BY {node.this}")
        chosen = items[int(node.this) - 1][1]
    elif isinstance(node, exp.Column) and not node.args.get("table"):
        name = node.name.lower()
        if not any(entry.is_named([name]) for entry in rows.fields):
            matches = [item for visible, item in items if visible.lower() == name]
            if len(matches) == 1:
                chosen = matches[0]
    if isinstance(chosen, Field):
        return replace(chosen.value, loose=frozenset({chosen.name}))
    return translate(chosen, rows)


def order_clause(node: exp.Expr, values: Sequence[tuple[str, Typed]], scope: Scope | None) -> exp.Order:
    """Return ORDER BY: result columns by their ordinals, and other expressions if a scope allows them."""
    only(node, "expressions")
    names = [name.lower() for name, _ in values]
    keys = []
    for entry in node.expressions:
        only(entry, "this", "desc", "nulls_first")
        position = 0
        if isinstance(entry.this, exp.Literal) and not entry.this.is_string:
            position = int(entry.this.this) if entry.this.this.isdecimal() else 0
            if not 1 <= position <= len(values):
                raise NotTranslatable(f"ORDER BY {entry.this.this}")
        elif isinstance(entry.this, exp.Column) and not entry.this.args.get("table"):
            if names.count(entry.this.name.lower()) > 1:
                raise NotTranslatable(f"ORDER BY {entry.this.name}, which is ambiguous")
            if entry.this.name.lower() in names:
                position = names.index(entry.this.name.lower()) + 1
        if position:
            if not values[position - 1][1].type.is_atomic:
                raise NotTranslatable(f"ORDER BY {values[position - 1][1].type}")
            keys.append(ordered(exp.Literal.number(position), entry))
        elif scope is None:
            raise NotTranslatable("ORDER BY an expression after DISTINCT or a set operation")
        else:
            keys.append(sort_key(entry, replace(scope, outputs=column_aliases(values)).whole(entry.this)))
    return exp.Order(expressions=keys)


def set_limit(node: exp.Expr, tree: exp.Expr) -> None:
    """Copy LIMIT and OFFSET from another query."""
    for name, type_name in (("limit", exp.Limit), ("offset", exp.Offset)):
        clause = node.args.get(name)
        if clause is None:
            continue
        only(clause, "expression")
        count = clause.expression
        if not isinstance(count, exp.Literal) or not count.this.isdecimal():
            raise NotTranslatable(f"{name.upper()} with another value than a number")
        tree.set(name, type_name(expression=count.copy()))
