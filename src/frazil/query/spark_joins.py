"""Joins in views: their types, ON, USING and NATURAL, and their result columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from frazil.query.spark_expressions import as_condition, compared, connect, merged, only, translate
from frazil.query.spark_scopes import (
    Field,
    Scope,
)
from frazil.query.spark_types import (
    BOOLEAN,
    NotTranslatable,
    combine,
    paren,
)

_JOINS = {("", ""): "", ("", "INNER"): "", ("LEFT", ""): "LEFT", ("LEFT", "OUTER"): "LEFT", ("RIGHT", ""): "RIGHT",
          ("RIGHT", "OUTER"): "RIGHT", ("FULL", ""): "FULL", ("FULL", "OUTER"): "FULL", ("", "CROSS"): "CROSS",
          ("LEFT", "SEMI"): "SEMI", ("LEFT", "ANTI"): "ANTI", ("", "SEMI"): "SEMI", ("", "ANTI"): "ANTI"}  # fmt: skip


def join_sources(
    node: exp.Expr,
    side: str,
    type_name: str,
    right: exp.Expr,
    both: tuple[list[Field], list[Field]],
    scope: Scope,
) -> tuple[exp.Expr, list[Field]]:
    """Return a join in DuckDB and its result columns, in Spark's order."""
    only(node, "this", "side", "kind", "on", "using", "method")
    form = _JOINS.get((side, type_name))
    method = str(node.args.get("method") or "").upper()
    if form is None or method not in {"", "NATURAL"}:
        raise NotTranslatable(f"{method} {side} {type_name} JOIN".strip())
    left_fields, right_fields = both
    names = [item.name for item in node.args.get("using") or ()]
    if method:
        visible = [item.name for item in left_fields if not item.needs_qualifier]
        others = {item.name.lower() for item in right_fields}
        names = [name for name in visible if name.lower() in others]
    fields = [*left_fields, *right_fields]
    condition: exp.Expr | None = None
    if names:
        condition, fields = _using(names, left_fields, right_fields, form)
    elif node.args.get("on") is not None:
        value = as_condition(translate(node.args["on"], scope), "ON")
        if value.can_fail:
            raise NotTranslatable("ON with a condition that may fail")
        condition = value.copy_tree()
    elif form not in {"", "CROSS"}:
        condition = exp.Boolean(this=True)
    if form in {"SEMI", "ANTI"}:
        fields = fields[: len(fields) - len(right_fields)]
    words = {"side": form or None} if form in {"LEFT", "RIGHT", "FULL"} else {"kind": form or None}
    if condition is None:
        words = {"kind": "CROSS"}
    return exp.Join(this=right, on=condition, **words), fields


def _using(names: Sequence[str], left: list[Field], right: list[Field], form: str) -> tuple[exp.Expr, list[Field]]:
    conditions, shared_fields, hidden = [], [], set[int]()
    for name in names:
        pair = []
        for fields in (left, right):
            matches = [item for item in fields if item.is_named([name.lower()])]
            if len(matches) != 1:
                raise NotTranslatable(f"USING the column {name}, which is ambiguous or missing")
            pair.append(matches[0])
        first, second = pair
        item, other = compared(first.value, second.value, "USING")
        equal = exp.EQ(this=paren(item.copy_tree()), expression=paren(other.copy_tree()))
        conditions.append(combine(equal, BOOLEAN, [item, other]))
        value = second.value if form == "RIGHT" else first.value
        if form == "FULL":
            (item, other), shared = merged([first.value, second.value], "USING")
            value = combine(exp.Coalesce(this=item.copy_tree(), expressions=[other.copy_tree()]), shared, [item, other])
        shared_fields.append(Field(first.name, (), value))
        hidden |= {id(first), id(second)}
    rest = [replace(item, needs_qualifier=True) if id(item) in hidden else item for item in (*left, *right)]
    return connect(exp.And, conditions).tree, [*shared_fields, *rest]
