"""Queries of Spark's dialect in DuckDB: SELECT with joins, groups and windows, set operations and WITH.

The result has everything written out: `*`, USING and NATURAL, ordinals, aliases used by later expressions, and the
casts
of set operations. Tables keep their qualified names, and get an alias that is unique in the query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from frazil.query.spark_casts import coerce
from frazil.query.spark_clauses import Item, column_aliases, filter_condition, group_clause, order_clause, set_limit
from frazil.query.spark_expressions import describe, merged, only, translate
from frazil.query.spark_joins import join_sources
from frazil.query.spark_scopes import (
    Cte,
    Field,
    Output,
    Scope,
    column,
    has_aggregate,
    identifier,
    recast,
)
from frazil.query.spark_types import (
    VOID,
    NotTranslatable,
    Typed,
    call,
    common_type,
    common_type_of,
    paren,
    parse_spark_type,
    without_negative_zero,
)

ColumnsOf = Callable[[tuple[str, ...]], Mapping[str, str] | None]


class QueryTranslator:
    """Translates the queries of one view."""

    def __init__(self, columns_of: ColumnsOf, names_in_use: frozenset[str]) -> None:
        self._columns_of = columns_of
        self._names = set[str]()
        self._names_in_use = names_in_use

    def translate(
        self, query: exp.Expr, outer: Scope | None, ctes: Mapping[str, Cte]
    ) -> tuple[exp.Query, list[Output]]:
        """Translate a query; `outer` is the scope around a subquery."""
        definitions, ctes = self._with(query, ctes)
        if isinstance(query, exp.Select):
            tree, outputs = self._select(query, outer, ctes)
        elif isinstance(query, exp.SetOperation):
            tree, outputs = self._set_operation(query, outer, ctes)
        elif isinstance(query, exp.Subquery):
            only(query, "this", "with_")
            tree, outputs = self.translate(query.this, outer, ctes)
        else:
            raise NotTranslatable(describe(query))
        if definitions:
            own = tree.args.get("with_")
            tree.set("with_", exp.With(expressions=definitions + (own.expressions if own is not None else [])))
        return tree, outputs

    def _new_name(self, name: str) -> str:
        number, unique = 1, name
        while unique.lower() in self._names:
            number += 1
            unique = f"{name}_{number}"
        self._names.add(unique.lower())
        return unique

    def _with(self, query: exp.Expr, ctes: Mapping[str, Cte]) -> tuple[list[exp.Expr], Mapping[str, Cte]]:
        clause = query.args.get("with_")
        if clause is None:
            return [], ctes
        only(clause, "expressions")
        definitions: list[exp.Expr] = []
        ctes = dict(ctes)
        for definition in clause.expressions:
            only(definition, "this", "alias")
            tree, outputs = self.translate(definition.this, None, ctes)
            outputs = _renamed(outputs, definition.args["alias"])
            # A name that does not occur in the view, so that callers do not look it up as a table.
            name = f"{definition.alias}_cte"
            while name.lower() in self._names_in_use or name.lower() in self._names:
                name += "_"
            self._names.add(name.lower())
            alias = exp.TableAlias(
                this=identifier(name),
                columns=[identifier(entry) for entry in _unique([entry.name for entry in outputs])],
            )
            definitions.append(exp.CTE(this=tree, alias=alias))
            ctes[definition.alias.lower()] = Cte(name, tuple(outputs))
        return definitions, ctes

    # FROM

    def _source(self, node: exp.Expr, ctes: Mapping[str, Cte]) -> tuple[exp.Expr, list[Field]]:
        """Return a table, subquery or VALUES list with its columns."""
        if isinstance(node, exp.Table):
            return self._table(node, ctes)
        if isinstance(node, exp.Subquery):
            only(node, "this", "alias")
            if not isinstance(node.this, exp.Query) or isinstance(node.this, exp.Table):
                raise NotTranslatable("brackets around a join")
            tree, outputs = self.translate(node.this, None, ctes)
            return self._derived(exp.Subquery(this=tree), outputs, node)
        if isinstance(node, exp.Values):
            return self._values(node, ctes)
        raise NotTranslatable(describe(node))

    def _table(self, node: exp.Table, ctes: Mapping[str, Cte]) -> tuple[exp.Expr, list[Field]]:
        if "version" in node.args and node.args["version"] is not None:
            raise NotTranslatable("VERSION AS OF or TIMESTAMP AS OF")
        if not isinstance(node.this, (exp.Identifier, exp.Dot)):
            raise NotTranslatable(f"the table function {node.this.name}")
        only(node, "this", "db", "catalog", "alias")
        parts = tuple(piece.name for piece in node.parts)
        alias = node.args.get("alias")
        qualifier = (alias.name.lower(),) if alias is not None and alias.name else tuple(map(str.lower, parts))
        unique = self._new_name(alias.name if alias is not None and alias.name else parts[-1])
        cte = ctes.get(parts[0].lower()) if len(parts) == 1 else None
        if cte is not None:
            outputs = list(cte.outputs)
            tree = exp.Table(this=identifier(cte.name))
            names = _unique([entry.name for entry in outputs])
        else:
            columns = self._columns_of(parts)
            if columns is None:
                raise NotTranslatable(f"the table {'.'.join(parts)}, which is not known")
            outputs = [Output(name, parse_spark_type(text)) for name, text in columns.items()]
            tree = exp.Table(**{name: _quoted(node.args.get(name)) for name in ("this", "db", "catalog")})
            names = [entry.name for entry in outputs]
        tree.set("alias", exp.TableAlias(this=identifier(unique)))
        return tree, [
            Field(visible.name, qualifier, Typed(column(unique, name), visible.type))
            for name, visible in zip(names, _renamed(outputs, alias), strict=True)
        ]

    def _derived(self, tree: exp.Expr, outputs: list[Output], node: exp.Expr) -> tuple[exp.Expr, list[Field]]:
        alias = node.args.get("alias")
        name = alias.name if alias is not None else ""
        unique = self._new_name(name or "subquery")
        outputs = _renamed(outputs, alias)
        names = _unique([entry.name for entry in outputs])
        tree.set("alias", exp.TableAlias(this=identifier(unique), columns=[identifier(entry) for entry in names]))
        qualifier = (name.lower(),) if name else ()
        return tree, [
            Field(output.name, qualifier, Typed(column(unique, entry), output.type))
            for entry, output in zip(names, outputs, strict=True)
        ]

    def _values(self, node: exp.Values, ctes: Mapping[str, Cte]) -> tuple[exp.Expr, list[Field]]:
        only(node, "expressions", "alias")
        scope = Scope(self, [], None, ctes)
        rows = []
        for row in node.expressions:
            cells = row.expressions if isinstance(row, exp.Tuple) else [row.unnest()]
            rows.append([translate(cell, scope) for cell in cells])
        if len({len(row) for row in rows}) != 1:
            raise NotTranslatable("VALUES with rows of different lengths")
        columns = [merged(cells, "VALUES") for cells in zip(*rows, strict=True)]
        tuples = [
            exp.Tuple(expressions=[cells[position].copy_tree() for cells, _ in columns])
            for position in range(len(rows))
        ]
        outputs = [Output(f"col{number}", shared) for number, (_, shared) in enumerate(columns, 1)]
        return self._derived(exp.Values(expressions=tuples), outputs, node)

    def _joined(
        self, node: exp.Select, outer: Scope | None, ctes: Mapping[str, Cte]
    ) -> tuple[exp.Expr | None, list[exp.Expr], list[Field]]:
        start = node.args.get("from_")
        if start is None:
            return None, [], []
        only(start, "this")
        tree, fields = self._source(start.this, ctes)
        joins: list[exp.Expr] = []
        has_cross = False
        for join in node.args.get("joins") or ():
            side, type_name = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
            if has_cross and (side in {"RIGHT", "FULL"} or join.args.get("method")):
                # A comma binds less tightly than JOIN, and sqlglot does not distinguish it from CROSS JOIN.
                raise NotTranslatable(f"{side or 'NATURAL'} JOIN after CROSS JOIN or a comma")
            has_cross = has_cross or type_name == "CROSS"
            right, right_fields = self._source(join.this, ctes)
            scope = Scope(self, [*fields, *right_fields], outer, ctes)
            joined, fields = join_sources(join, side, type_name, right, (fields, right_fields), scope)
            joins.append(joined)
        return tree, joins, fields

    # SELECT

    def _select(self, node: exp.Select, outer: Scope | None, ctes: Mapping[str, Cte]) -> tuple[exp.Query, list[Output]]:
        only(node, "with_", "expressions", "from_", "joins", "where", "group", "having", "windows", "order", "limit",
             "offset", "distinct", "hint")  # fmt: skip
        source, joins, fields = self._joined(node, outer, ctes)
        rows = Scope(self, fields, outer, ctes)
        where = node.args.get("where")
        tree = exp.Select(
            from_=None if source is None else exp.From(this=source),
            joins=joins or None,
            where=None if where is None else exp.Where(this=filter_condition(where.this, rows)),
        )
        items = list(_expanded(node.expressions, fields))
        having, order = node.args.get("having"), node.args.get("order")
        scope = replace(
            rows, allows_windows=True, windows={entry.name.lower(): entry for entry in node.args.get("windows") or ()}
        )
        has_sets = False
        is_grouped = node.args.get("group") is not None or has_aggregate(
            [*(item for _, item in items if isinstance(item, exp.Expr)), having, order]
        )
        if is_grouped:
            keys, group, has_sets = group_clause(node.args.get("group"), items, rows)
            tree.set("group", group)
            scope = replace(scope, keys=keys, allows_aggregates=True)
        values = _projected(items, scope)
        is_distinct = node.args.get("distinct") is not None
        if is_distinct:
            only(node.args["distinct"])
            if any(not value.type.is_atomic for _, value in values):
                raise NotTranslatable("DISTINCT over a nested type")
            values = [(name, without_negative_zero(value)) for name, value in values]
            tree.set("distinct", exp.Distinct())
        tree.set("expressions", [exp.Alias(this=value.copy_tree(), alias=identifier(name)) for name, value in values])
        if having is not None:
            if not is_grouped:
                raise NotTranslatable("HAVING without groups")
            tree.set("having", exp.Having(this=filter_condition(having.this, _with_aliases(scope, values))))
        if has_sets:
            # Without rows, Spark makes no groups, but DuckDB makes one.
            has_rows = exp.GT(this=call("count", exp.Star()), expression=exp.Literal.number(0))
            own = tree.args.get("having")
            tree.set(
                "having",
                exp.Having(this=has_rows if own is None else exp.And(this=has_rows, expression=paren(own.this))),
            )
        if order is not None:
            tree.set("order", order_clause(order, values, None if is_distinct else scope))
        set_limit(node, tree)
        return tree, [Output(name, value.type) for name, value in values]

    def _set_operation(
        self, node: exp.SetOperation, outer: Scope | None, ctes: Mapping[str, Cte]
    ) -> tuple[exp.Query, list[Output]]:
        only(node, "with_", "this", "expression", "distinct", "order", "limit", "offset")
        index = type(node).__name__.upper()
        is_distinct = node.args.get("distinct") is not False
        sides = [self.translate(side, outer, ctes) for side in (node.this, node.expression)]
        (_, left), (_, right) = sides
        if len(left) != len(right):
            raise NotTranslatable(f"{index} of different numbers of columns")
        types = [common_type(entry.type, other.type, index) for entry, other in zip(left, right, strict=True)]
        is_set = is_distinct or not isinstance(node, exp.Union)
        if is_set and not all(entry.is_atomic for entry in types):
            raise NotTranslatable(f"{index} over a nested type")
        queries = [
            exp.Subquery(this=recast(tree, [entry.type for entry in outputs], types, as_keys=is_set))
            for tree, outputs in sides
        ]
        tree = type(node)(this=queries[0], expression=queries[1], distinct=is_distinct)
        outputs = [Output(entry.name, shared) for entry, shared in zip(left, types, strict=True)]
        # The result has the names of its first query, which a cast may have removed.
        name = self._new_name("united")
        names = _unique([entry.name for entry in outputs])
        source = exp.Subquery(
            this=tree, alias=exp.TableAlias(this=identifier(name), columns=[identifier(entry) for entry in names])
        )
        values = [(entry.name, Typed(column(name, own), entry.type)) for entry, own in zip(outputs, names, strict=True)]
        select = exp.Select(
            expressions=[exp.Alias(this=value.copy_tree(), alias=identifier(visible)) for visible, value in values],
            from_=exp.From(this=source),
        )
        if node.args.get("order") is not None:
            select.set("order", order_clause(node.args["order"], values, None))
        set_limit(node, select)
        return select, outputs


def _quoted(node: exp.Expr | None) -> exp.Expr | None:
    if isinstance(node, exp.Dot):
        return exp.Dot(this=_quoted(node.this), expression=_quoted(node.expression))
    return None if node is None else identifier(node.name)


def _renamed(outputs: list[Output], alias: exp.Expr | None) -> list[Output]:
    if alias is None:
        return outputs
    only(alias, "this", "columns")
    names = [entry.name for entry in alias.args.get("columns") or ()]
    if names and len(names) != len(outputs):
        raise NotTranslatable("an alias with another number of columns")
    return [Output(name, entry.type) for name, entry in zip(names, outputs, strict=True)] if names else outputs


def _unique(names: Sequence[str]) -> list[str]:
    """Make names unique ignoring case, since DuckDB must distinguish the columns."""
    unique: list[str] = []
    taken = {name.lower() for name in names}
    seen = set[str]()
    for name in names:
        chosen, number = name, 1
        while chosen.lower() in seen or (number > 1 and chosen.lower() in taken):
            number += 1
            chosen = f"{name}_{number}"
        seen.add(chosen.lower())
        unique.append(chosen)
    return unique


def _expanded(nodes: Sequence[exp.Expr], fields: list[Field]) -> Iterator[Item]:
    """Yield the items of a SELECT list with their names, with `*` expanded to columns."""
    for number, node in enumerate(nodes):
        star = node.this if isinstance(node, exp.Column) and isinstance(node.this, exp.Star) else node
        if isinstance(star, exp.Star):
            qualifier = [piece.name.lower() for piece in node.parts[:-1]] if isinstance(node, exp.Column) else []
            yield from _stars(star, qualifier, fields)
        elif isinstance(node, exp.Alias):
            only(node, "this", "alias")
            yield node.alias, node.this
        else:
            yield node.name if isinstance(node, exp.Column) else f"_c{number}", node


def _stars(star: exp.Star, qualifier: list[str], fields: list[Field]) -> Iterator[tuple[str, Field]]:
    only(star, "except_")
    excluded = {entry.name.lower() for entry in star.args.get("except_") or ()}
    visible = [entry for entry in fields if entry.is_named([*qualifier, entry.name.lower()])]
    if not visible:
        raise NotTranslatable("* over no columns")
    if not excluded <= {entry.name.lower() for entry in visible}:
        raise NotTranslatable("EXCEPT of a column that * does not have")
    for entry in visible:
        if entry.name.lower() not in excluded:
            yield entry.name, entry


def _projected(items: Sequence[Item], scope: Scope) -> list[tuple[str, Typed]]:
    values: list[tuple[str, Typed]] = []
    for name, item in items:
        inside = replace(scope, aliases=column_aliases(values))
        if isinstance(item, Field):
            value = scope.matched(replace(item.value, loose=frozenset({item.name})))
            if scope.keys is not None and value.loose:
                raise NotTranslatable(f"the column {item.name}, which is neither grouped by nor aggregated")
        else:
            value = inside.whole(item)
        if value.type == VOID:
            raise NotTranslatable("a column of nulls without a type")
        values.append((name, value))
    return values


def _with_aliases(scope: Scope, values: Sequence[tuple[str, Typed]]) -> Scope:
    """Return the scope of HAVING, without aliases that also name another column."""
    aliases = column_aliases(values)
    fields = [
        entry
        for entry in scope.fields
        if entry.name.lower() not in aliases or entry.value.tree == aliases[entry.name.lower()].tree
    ]
    return replace(scope, aliases=aliases, fields=fields, allows_windows=False)


__all__ = ["ColumnsOf", "QueryTranslator", "coerce", "common_type_of"]
