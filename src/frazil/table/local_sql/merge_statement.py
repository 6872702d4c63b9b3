"""MERGE INTO of `lake.sql`: the source is a query, which runs once, and the clauses are those of `t.merge(…)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from frazil.catalog.names import format_name
from frazil.change_rows.source_rows import normal_type
from frazil.errors import InvalidRequestError
from frazil.table.local_sql.statement_run import Run, Target, aliases_of, assignments, counted, is_default
from frazil.table.local_sql.statement_text import check_parts, name_parts, refuse, sql_of
from frazil.table.local_sql.statement_values import SOURCE, TARGET, Translator


def merge_rows(run: Run) -> pa.Table:
    """Merge the rows of a query into a table."""
    tree = run.statement.tree
    what = f"merge into {format_name(name_parts(tree.this))}"
    hints: dict[str, str | None] = {"returning": "Query the table afterwards."}
    check_parts(tree, dict.fromkeys(("this", "using", "on", "using_cond", "whens")) | hints, what)
    target = run.target(tree.this, what)
    source = _source(run, tree)
    columns = {field.name: field.type for field in source.schema}
    wanted = {name.lower(): data_type for name, data_type in target.columns.items()}
    columns = {name: normal_type(data_type, wanted.get(name.lower())) for name, data_type in columns.items()}
    sides = {TARGET: target.columns, SOURCE: columns}
    aliases = {TARGET: target.aliases, SOURCE: aliases_of(tree.args["using"])}
    translator = Translator(what, sides, aliases, run.parameters, has_prefix=True)
    merge = target.table.merge(source, on=_join(tree, translator), branch=target.branch, engine="local")
    whens = tree.args["whens"].expressions
    for index, when in enumerate(whens):
        when_kind = "matched" if when.args["matched"] else "by_source" if when.args["source"] else "not_matched"
        seen = {"matched": (TARGET, SOURCE), "by_source": (TARGET,), "not_matched": (SOURCE,)}[when_kind]
        clause = replace(translator, sides={side: sides[side] for side in seen})
        check_parts(when, dict.fromkeys(("matched", "source", "condition", "then")), what)
        condition = when.args.get("condition")
        text = None if condition is None else clause.condition(condition)
        action = _action(when.args["then"])
        if action == "do nothing":
            if any(_kind_of(later) == _kind_of(when) for later in whens[index + 1 :]):
                refuse(what, "DO NOTHING before another clause", "Add its condition, negated, to the later clauses.")
            continue
        if when_kind == "not_matched":
            if action != "insert":
                refuse(what, f"WHEN NOT MATCHED THEN {action.upper()}")
            values = _inserted_values(when.args["then"], target, clause, columns, what)
            merge.when_not_matched(text).insert(values)
            continue
        own = merge.when_matched(text) if when_kind == "matched" else merge.when_not_matched_by_source(text)
        if action == "delete":
            own.delete()
        elif action == "update":
            own.update(_updated_values(when.args["then"], target, clause, columns, what))
        else:
            refuse(what, f"WHEN {when_kind.replace('_', ' ').upper()} THEN {action.upper()}")
    return counted(merge.execute(), "updated", "deleted", "inserted")


def _kind_of(when: exp.Expr) -> tuple[bool, bool]:
    return bool(when.args["matched"]), bool(when.args["source"])


def _action(then: exp.Expr) -> str:
    if isinstance(then, exp.Var):
        return then.name.lower()
    return "update" if isinstance(then, exp.Update) else "insert" if isinstance(then, exp.Insert) else sql_of(then)


def _source(run: Run, tree: exp.Expr) -> pa.Table:
    """Return the rows of the source; it runs once."""
    statement = run.statement
    using = statement.find("using")
    assert using is not None
    end = statement.find("using" if tree.args.get("using_cond") else "on", start=using + 1)
    assert end is not None
    return run.query(f"select * from {statement.between(using + 1, end)}").to_arrow()


def _join(tree: exp.Expr, translator: Translator) -> str:
    if not tree.args.get("using_cond"):
        return translator.condition(tree.args["on"])
    sides = [replace(translator, sides={side: columns}) for side, columns in translator.sides.items()]
    tests = []
    for identifier in tree.args["using_cond"]:
        column = exp.Column(this=identifier.copy())
        tests.append(translator.equal(*(side.translate(column) for side in sides)))
    return " and ".join(tests)


def _updated_values(
    then: exp.Expr, target: Target, translator: Translator, source: Mapping[str, Any], what: str
) -> dict[str, str]:
    check_parts(then, {"expressions": None}, what)
    pairs = then.expressions
    if not pairs or (len(pairs) == 1 and isinstance(pairs[0], exp.Star)):
        return _all_values(target, translator, source, what)
    return assignments(pairs, target, translator, what)


def _inserted_values(
    then: exp.Expr, target: Target, translator: Translator, source: Mapping[str, Any], what: str
) -> dict[str, str]:
    check_parts(then, dict.fromkeys(("this", "expression")), what)
    values = then.args.get("expression")
    if not values:
        if then.this is not None and not isinstance(then.this, exp.Star):
            refuse(what, "INSERT of columns without VALUES", "Write INSERT (a, b) VALUES (s.a, s.b).")
        return _all_values(target, translator, source, what)
    columns = (
        then.this.expressions
        if isinstance(then.this, exp.Tuple)
        else [_column(field.name) for field in target.table.schema.fields]
    )
    if len(columns) != len(values.expressions):
        raise InvalidRequestError(
            f"Cannot {what}: INSERT has {len(columns)} columns and {len(values.expressions)} values"
        )
    pairs = [
        exp.EQ(this=column.copy(), expression=value.copy())
        for column, value in zip(columns, values.expressions, strict=True)
        if not is_default(value)
    ]
    return assignments(pairs, target, translator, what)


def _all_values(target: Target, translator: Translator, source: Mapping[str, Any], what: str) -> dict[str, str]:
    """Return each column's value from the source; refuse a source whose columns have other names, or another order."""
    own = [field.name for field in target.table.schema.fields]
    if [name.lower() for name in own] != [name.lower() for name in source]:
        refuse(
            what,
            "a clause for all columns, whose source has other columns, or another order,",
            f"The columns of the table are: {', '.join(own)}. Name the columns in the clause.",
        )
    pairs = [exp.EQ(this=_column(name), expression=_column(name)) for name in own]
    return assignments(pairs, target, replace(translator, sides={SOURCE: source}), what)


def _column(name: str) -> exp.Expr:
    return exp.Column(this=exp.Identifier(this=name, quoted=True))
