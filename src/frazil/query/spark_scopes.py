"""Name resolution in a view's query by Spark's rules, and the expressions allowed in each clause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sqlglot import exp

from frazil.query.spark_aggregates import (
    AGGREGATES,
    NEIGHBOURS,
    RANKS,
    WINDOW_FUNCTIONS,
    aggregate,
    count_rows,
    window_function,
)
from frazil.query.spark_expressions import as_condition, only, translate
from frazil.query.spark_types import NotTranslatable, SparkType, Typed, cast_to, combine, without_negative_zero


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a FROM clause."""

    name: str
    qualifier: tuple[str, ...]
    """The parts of the table's name, or its alias, in lower case."""
    value: Typed
    needs_qualifier: bool = False
    """Whether a join USING this column shows another one instead."""

    def is_named(self, parts: Sequence[str]) -> bool:
        """Return whether a name, in lower case, may refer to this column."""
        *qualifier, name = parts
        if name != self.name.lower():
            return False
        if not qualifier:
            return not self.needs_qualifier
        return self.qualifier[-len(qualifier) :] == tuple(qualifier)


@dataclass(frozen=True, slots=True)
class Output:
    """A result column of a query."""

    name: str
    type: SparkType


class Queries(Protocol):
    """The translator of queries, for subqueries in expressions."""

    def translate(
        self, query: exp.Expr, outer: Scope | None, ctes: Mapping[str, Cte]
    ) -> tuple[exp.Query, list[Output]]:
        """Translate a query."""


@dataclass(frozen=True, slots=True)
class Cte:
    """A common table expression in scope: its name in the output and its columns."""

    name: str
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Key:
    """An expression of GROUP BY: as written, and as grouped by."""

    value: Typed
    grouped: Typed


def group_key(value: Typed) -> Key:
    """Return a key of GROUP BY; refuse a value that DuckDB groups differently."""
    if not value.type.is_atomic:
        raise NotTranslatable(f"GROUP BY {value.type}")
    grouped = without_negative_zero(value)
    return Key(value, Typed(grouped.tree, grouped.type))


@dataclass(frozen=True)
class Scope:
    """The names that the expressions of one clause may refer to."""

    queries: Queries
    fields: Sequence[Field]
    outer: Scope | None
    ctes: Mapping[str, Cte]
    aliases: Mapping[str, Typed] = field(default_factory=dict)
    """Columns of the SELECT list that later ones may refer to, if no column has that name."""
    outputs: Mapping[str, Typed] = field(default_factory=dict)
    """Columns of the SELECT list that ORDER BY resolves before all others."""
    keys: Sequence[Key] | None = None
    """The keys of a grouped query, or None if it is not grouped."""
    allows_aggregates: bool = False
    allows_windows: bool = False
    windows: Mapping[str, exp.Expr] = field(default_factory=dict)

    def resolve(self, parts: Sequence[str]) -> Typed:
        """Return the column of a name."""
        name = ".".join(parts)
        value = self._find([piece.lower() for piece in parts])
        if value is None:
            raise NotTranslatable(f"the name {name}, which is not a column of its tables")
        return value

    def _find(self, parts: Sequence[str]) -> Typed | None:
        if len(parts) == 1 and parts[0] in self.outputs:
            return self.outputs[parts[0]]
        matches = [entry for entry in self.fields if entry.is_named(parts)]
        if len(matches) > 1:
            raise NotTranslatable(f"the name {'.'.join(parts)}, which is ambiguous")
        if matches:
            value = matches[0].value
            return replace(value, loose=frozenset({f"{'.'.join(matches[0].qualifier)}.{matches[0].name}"}))
        if len(parts) == 1 and parts[0] in self.aliases:
            return self.aliases[parts[0]]
        resolved = None if self.outer is None else self.outer._find(parts)
        if resolved is None or self.outer is None:
            return None
        if self.outer.keys is not None:
            resolved = self.outer.matched(resolved)
            if resolved.loose:
                raise NotTranslatable(f"the name {'.'.join(parts)} of a grouped query in its subquery")
        return replace(resolved, loose=frozenset())

    def matched(self, value: Typed) -> Typed:
        """Return the matching key of a grouped query, or the expression itself."""
        if self.keys and value.loose:
            for key in self.keys:
                if key.value.tree == value.tree:
                    return key.grouped
        return value

    def subquery(self, query: exp.Expr, purpose: str) -> tuple[exp.Query, list[SparkType]]:
        """Translate a subquery; return it with the types of its columns."""
        tree, outputs = self.queries.translate(query, self, self.ctes)
        return tree, [output.type for output in outputs]

    def coerced_subquery(self, query: exp.Query, types: Sequence[SparkType], to: Sequence[SparkType]) -> exp.Query:
        """Return a translated query with its columns cast."""
        return recast(query, types, to)

    def whole(self, node: exp.Expr) -> Typed:
        """Translate an expression of the SELECT list, HAVING or ORDER BY; in grouped queries only keys stand alone."""
        value = translate(node, self)
        if self.keys is not None and value.loose:
            raise NotTranslatable(f"the column {min(value.loose)}, which is neither grouped by nor aggregated")
        return value

    def call(self, node: exp.Expr, name: str) -> Typed | None:
        """Translate an aggregate or window function; return None for other names."""
        window = node if isinstance(node, exp.Window) else None
        function = node.this if window is not None else node
        condition = function.args.get("expression") if isinstance(function, exp.Filter) else None
        if isinstance(function, exp.Filter):
            only(function, "this", "expression")
            function = function.this
        if not isinstance(function, exp.Anonymous) or not isinstance(function.this, str):
            raise NotTranslatable("OVER or FILTER over another form of function")
        name = function.this.lower()
        if name not in AGGREGATES and (window is None or name not in WINDOW_FUNCTIONS):
            if name == "grouping" and window is None:
                return self._grouping(function)
            if window is None and condition is None and name not in WINDOW_FUNCTIONS:
                return None
            raise NotTranslatable(f"the function {name}" + (" in a window" if window is not None else ""))
        attach = self._window(window, name) if window is not None else None
        if attach is None and not self.allows_aggregates:
            raise NotTranslatable(f"the function {name} here")
        inside = self if window is not None else self._rows()
        inside = replace(inside, allows_windows=False)
        return _call(function, name, condition, inside, attach)

    def _rows(self) -> Scope:
        return replace(self, keys=None, allows_aggregates=False, outputs={}, aliases={})

    def _grouping(self, function: exp.Anonymous) -> Typed:
        if self.keys is None or len(function.expressions) != 1:
            raise NotTranslatable("the function grouping here")
        value = translate(function.expressions[0], self._rows())
        key = next((key for key in self.keys if key.value.tree == value.tree), None)
        if key is None:
            raise NotTranslatable("the function grouping over no key")
        tiny = SparkType("tinyint")
        return Typed(cast_to(exp.Anonymous(this="grouping", expressions=[key.grouped.copy_tree()]), tiny), tiny)

    def _window(self, node: exp.Expr, name: str) -> Callable[[exp.Expr, list[Typed]], exp.Expr]:
        if not self.allows_windows:
            raise NotTranslatable(f"the window function {name} here")
        definition = self._definition(node)
        inside = replace(self, allows_windows=False)
        keys = [without_negative_zero(inside.whole(key)) for key in definition.args.get("partition_by") or ()]
        order = definition.args.get("order")
        ordered = [] if order is None else [sort_key(entry, inside.whole(entry.this)) for entry in order.expressions]
        if any(not key.type.is_atomic for key in keys):
            raise NotTranslatable("a window partitioned by a nested type")
        if name in (*RANKS, *NEIGHBOURS):
            if definition.args.get("spec") is not None or not ordered:
                raise NotTranslatable(f"the function {name} without an order or with a frame")
            spec = None
        else:
            spec = _frame(definition.args.get("spec"), is_ordered=bool(ordered))

        def attach(call: exp.Expr, parts: list[Typed]) -> exp.Expr:
            parts.extend(keys)
            return exp.Window(
                this=call,
                partition_by=[key.copy_tree() for key in keys],
                order=exp.Order(expressions=[entry.copy() for entry in ordered]) if ordered else None,
                spec=None if spec is None else spec.copy(),
                over="OVER",
            )

        return attach

    def _definition(self, node: exp.Expr) -> exp.Expr:
        alias = node.args.get("alias")
        only(node, "this", "alias", "over", "partition_by", "order", "spec")
        if alias is None:
            return node
        if node.args.get("partition_by") or node.args.get("order") or node.args.get("spec"):
            raise NotTranslatable("a window that extends a named one")
        definition = self.windows.get(alias.name.lower())
        if definition is None:
            raise NotTranslatable(f"the window {alias.name}, which is not defined")
        only(definition, "this", "partition_by", "order", "spec")
        return definition


def _call(
    function: exp.Anonymous,
    name: str,
    condition: exp.Expr | None,
    inside: Scope,
    window: Callable[[exp.Expr, list[Typed]], exp.Expr] | None,
) -> Typed:
    nodes, is_distinct = list(function.expressions), False
    if len(nodes) == 1 and isinstance(nodes[0], exp.Distinct):
        only(nodes[0], "expressions")
        nodes, is_distinct = list(nodes[0].expressions), True
    if is_distinct and (window is not None or name not in AGGREGATES):
        raise NotTranslatable(f"the function {name} with DISTINCT in a window")
    filtered = None
    if condition is not None:
        filtered = as_condition(translate(condition.this, inside), "FILTER")
        if filtered.can_fail or window is not None:
            raise NotTranslatable("FILTER with a condition that may fail, or in a window")
    parts: list[Typed] = []

    def attach(call: exp.Expr) -> exp.Expr:
        if filtered is not None:
            call = exp.Filter(this=call, expression=exp.Where(this=filtered.copy_tree()))
        return call if window is None else window(call, parts)

    is_star = len(nodes) == 1 and type(nodes[0]) is exp.Star and not any(nodes[0].args.values())
    arguments = [] if is_star and name == "count" else [translate(node, inside) for node in nodes]
    if is_star and name == "count" and not is_distinct:
        result = count_rows(attach)
    elif name in AGGREGATES:
        if name == "count" and nodes and not arguments:
            raise NotTranslatable("the function count with DISTINCT *")
        result = aggregate(name, arguments, is_distinct=is_distinct, attach=attach)
    else:
        result = window_function(name, arguments, attach)
    if window is None:
        return result
    return combine(result.tree, result.type, [*arguments, *parts], can_fail=result.can_fail)


def sort_key(node: exp.Expr, value: Typed) -> exp.Ordered:
    """Return a key of ORDER BY with its order of nulls written out."""
    only(node, "this", "desc", "nulls_first")
    if not value.type.is_atomic:
        raise NotTranslatable(f"ORDER BY {value.type}")
    return ordered(value.copy_tree(), node)


def ordered(tree: exp.Expr, node: exp.Expr) -> exp.Ordered:
    """Return a tree in the direction of a key of the view's ORDER BY."""
    return exp.Ordered(this=tree, desc=bool(node.args.get("desc")), nulls_first=bool(node.args.get("nulls_first")))


_BOUNDS = {"UNBOUNDED", "CURRENT ROW"}


def _frame(spec: exp.Expr | None, *, is_ordered: bool) -> exp.Expr:
    """Return the frame of a window, with Spark's default written out."""
    if spec is None:
        end, side = ("CURRENT ROW", None) if is_ordered else ("UNBOUNDED", "FOLLOWING")
        return exp.WindowSpec(kind="RANGE", start="UNBOUNDED", start_side="PRECEDING", end=end, end_side=side)
    only(spec, "kind", "start", "start_side", "end", "end_side")
    type_name = str(spec.args.get("kind")).upper()
    bounds: list[exp.Expr | str] = []
    for name in ("start", "end"):
        bound = spec.args.get(name)
        if isinstance(bound, exp.Literal) and type_name == "ROWS" and bound.this.isdecimal():
            bounds.append(bound.copy())
        elif (bound is None and name == "end") or str(bound).upper() in _BOUNDS:
            bounds.append("CURRENT ROW" if bound is None else str(bound).upper())
        else:
            raise NotTranslatable(f"the bound {bound} of a window's {type_name} frame")
    sides = [str(side).upper() if side else None for side in (spec.args.get("start_side"), spec.args.get("end_side"))]
    return exp.WindowSpec(kind=type_name, start=bounds[0], start_side=sides[0], end=bounds[1], end_side=sides[1])


def identifier(name: str) -> exp.Identifier:
    """Return a quoted name."""
    return exp.Identifier(this=name, quoted=True)


def column(table: str, name: str) -> exp.Expr:
    """Return a column of a table's alias."""
    return exp.Column(this=identifier(name), table=identifier(table))


def recast(
    query: exp.Query, have: Sequence[SparkType], want: Sequence[SparkType], *, as_keys: bool = False
) -> exp.Query:
    """Return a query over a translated one that casts its columns; `as_keys` normalizes -0.0 as Spark does for keys."""
    from frazil.query.spark_casts import coerce

    if list(have) == list(want) and not (as_keys and any(entry.is_floating for entry in want)):
        return query
    names = [f"c{number}" for number in range(len(have))]
    items = []
    for name, of, to in zip(names, have, want, strict=True):
        value = coerce(Typed(column("q", name), of), to)
        items.append((without_negative_zero(value) if as_keys else value).copy_tree())
    source = exp.Subquery(
        this=query, alias=exp.TableAlias(this=identifier("q"), columns=[identifier(name) for name in names])
    )
    aliased = [exp.Alias(this=item, alias=identifier(name)) for item, name in zip(items, names, strict=True)]
    return exp.Select(expressions=aliased, from_=exp.From(this=source))


def has_aggregate(nodes: Iterable[exp.Expr | None]) -> bool:
    """Return whether expressions call an aggregate themselves, outside windows and subqueries."""
    return any(node is not None and _has_aggregate(node) for node in nodes)


def _has_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        function = node.this.this if isinstance(node.this, exp.Filter) else node.this
        inside = [*function.args.get("expressions", ()), node.args.get("order"), *(node.args.get("partition_by") or ())]
        return has_aggregate(inside)
    if (
        isinstance(node, exp.Anonymous)
        and isinstance(node.this, str)
        and node.this.lower() in {*AGGREGATES, "grouping"}
    ):
        return True
    return has_aggregate(node.iter_expressions())
