"""INSERT, DELETE, UPDATE, MERGE and CALL. Queries and expressions stay text.

[WITH ctes] INSERT [WITH SCHEMA EVOLUTION] INTO|OVERWRITE [TABLE] name [WITH (options)]
    [PARTITION (a = 1, b)] [BY NAME | (columns)] query
INSERT INTO [TABLE] name REPLACE WHERE condition query
[WITH ctes] FROM relations INSERT ... SELECT ... [INSERT ... SELECT ...]
[WITH ctes] DELETE FROM name [[AS] alias] [WHERE condition]
[WITH ctes] UPDATE name [[AS] alias] SET a = x, ... [WHERE condition]
[WITH ctes] MERGE [WITH SCHEMA EVOLUTION] INTO name [alias] USING name|(query) [alias] ON condition
    WHEN MATCHED [AND c] THEN DELETE | UPDATE SET * | UPDATE SET a = x, ...
    WHEN NOT MATCHED [BY TARGET] [AND c] THEN INSERT * | INSERT (a, ...) VALUES (x, ...)
    WHEN NOT MATCHED BY SOURCE [AND c] THEN DELETE | UPDATE SET a = x, ...
CALL name([parameter =>] x, ...)
"""

from __future__ import annotations

from typing import Literal

from frazil.sql.cursor import Cursor, NotOurs
from frazil.sql.parse_create import QUERY_STARTS
from frazil.sql.parse_types import parse_properties
from frazil.sql.statements import (
    NO_PROPERTIES,
    Argument,
    Assignment,
    Call,
    Delete,
    Insert,
    Merge,
    MergeClause,
    MultiInsert,
    Name,
    Properties,
    Span,
    Statement,
    Update,
)
from frazil.sql.tokens import QUOTED, WORD

DML_WORDS = frozenset({"INSERT", "DELETE", "UPDATE", "MERGE"})
_NO_ALIAS = frozenset({"WHERE", "SET", "USING", "ON", "WHEN", "AS"})


def parse_with(cursor: Cursor) -> Statement:
    """Read WITH ctes before a statement that changes rows; before a query, it is Spark's."""
    start = cursor.peek().start
    cursor.take_words("RECURSIVE")
    while True:
        cursor.identifier()
        if cursor.at_mark("("):
            cursor.parenthesized_span()
        if cursor.take_words("MAX", "RECURSION", "LEVEL"):
            cursor.take()
        cursor.take_words("AS")
        cursor.parenthesized_span()
        if not cursor.take_mark(","):
            break
    ctes = Span(cursor.text[start : cursor.last_end], start)
    if cursor.take_words("FROM"):
        return parse_from(cursor, ctes)
    word = cursor.take_any(*DML_WORDS)
    if word is None:
        raise NotOurs
    return parse_dml(cursor, word, ctes)


def parse_from(cursor: Cursor, ctes: Span | None = None) -> Statement:
    """Read inserts that follow FROM and its relations; without them it is a query, and Spark's."""
    source = cursor.clause(("INSERT",), "relations")
    inserts: list[Insert] = []
    while cursor.take_words("INSERT"):
        inserts.append(_insert(cursor, ctes, source))
    if not inserts:
        raise NotOurs
    return MultiInsert(tuple(inserts))


def parse_dml(cursor: Cursor, word: str, ctes: Span | None = None) -> Statement:
    """Read what follows INSERT, DELETE, UPDATE or MERGE."""
    if word == "INSERT":
        return _insert(cursor, ctes)
    if word == "DELETE":
        return _delete(cursor, ctes)
    if word == "UPDATE":
        return _update(cursor, ctes)
    return _merge(cursor, ctes)


def _insert(cursor: Cursor, ctes: Span | None, source: Span | None = None) -> Insert:
    """Read what follows INSERT; `source` are the relations of a FROM before it."""
    evolves = cursor.take_words("WITH", "SCHEMA", "EVOLUTION")
    is_overwrite = cursor.expect_any("INTO", "OVERWRITE") == "OVERWRITE"
    cursor.take_words("TABLE")
    name = cursor.name("the name of a table")
    cursor.accept("table", name)
    options: Properties = NO_PROPERTIES
    if cursor.at("WITH") and cursor.peek(1).is_mark("("):
        cursor.take()
        options = parse_properties(cursor)
    if cursor.take_words("REPLACE", "WHERE"):
        condition = cursor.clause(QUERY_STARTS, "a condition")
        return Insert(
            name,
            _query(cursor, source),
            replace_where=condition,
            is_overwrite=True,
            options=options,
            ctes=ctes,
            evolves_schema=evolves,
        )
    partition = _partition(cursor) if cursor.take_words("PARTITION") else ()
    if cursor.at("IF", "NOT", "EXISTS"):
        cursor.fail("INSERT ... IF NOT EXISTS has no meaning for a lake's table")
    columns: list[str] = []
    is_by_name = cursor.take_words("BY", "NAME")
    if not is_by_name and cursor.at_mark("(") and _is_column_list(cursor):
        cursor.parenthesized(lambda: columns.append(cursor.identifier("a column")))
    return Insert(
        name,
        _query(cursor, source),
        tuple(columns),
        partition,
        is_overwrite,
        is_by_name,
        None,
        options,
        ctes,
        evolves,
    )


def _query(cursor: Cursor, source: Span | None) -> Span:
    if not cursor.at_any(QUERY_STARTS) and not cursor.at_mark("("):
        cursor.fail("expected a query or VALUES")
    if source is None:
        return cursor.rest()
    body = cursor.clause(("INSERT",), "a query")
    return Span(f"FROM {source.text}\n{body.text}", body.start)


def _is_column_list(cursor: Cursor) -> bool:
    first, second = cursor.peek(1), cursor.peek(2)
    is_name = first.kind in (WORD, QUOTED) and (second.is_mark(",") or second.is_mark(")"))
    return is_name and first.upper not in QUERY_STARTS


def _partition(cursor: Cursor) -> tuple[tuple[str, Span | None], ...]:
    found: list[tuple[str, Span | None]] = []

    def item() -> None:
        start = cursor.peek()
        column = cursor.identifier("a partition column")
        value = cursor.expression() if cursor.take_mark("=") else None
        if any(column.lower() == other.lower() for other, _ in found):
            cursor.fail(f"the column {column!r} is given twice", start)
        found.append((column, value))

    cursor.parenthesized(item)
    return tuple(found)


def _alias(cursor: Cursor) -> str | None:
    if cursor.take_words("AS"):
        return cursor.identifier("an alias")
    token = cursor.peek()
    if token.kind == QUOTED or (token.kind == WORD and token.upper not in _NO_ALIAS):
        return cursor.identifier("an alias")
    return None


def _delete(cursor: Cursor, ctes: Span | None) -> Statement:
    cursor.expect("FROM")
    name = cursor.name("the name of a table")
    cursor.accept("table", name)
    alias = _alias(cursor)
    where = cursor.clause(what="a condition") if cursor.take_words("WHERE") else None
    return Delete(name, alias, where, ctes)


def _update(cursor: Cursor, ctes: Span | None) -> Statement:
    name = cursor.name("the name of a table")
    cursor.accept("table", name)
    alias = _alias(cursor)
    cursor.expect("SET")
    assignments = _assignments(cursor, ("WHERE",))
    where = cursor.clause(what="a condition") if cursor.take_words("WHERE") else None
    return Update(name, assignments, alias, where, ctes)


def _assignments(cursor: Cursor, stops: tuple[str, ...]) -> tuple[Assignment, ...]:
    found: list[Assignment] = []

    def assignment() -> None:
        path = cursor.name("a column")
        if not cursor.take_mark("=="):
            cursor.expect_mark("=")
        found.append(Assignment(path, cursor.expression(stops)))

    cursor.listed(assignment)
    return tuple(found)


def _merge(cursor: Cursor, ctes: Span | None) -> Statement:
    evolves = cursor.take_words("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    name = cursor.name("the name of a table")
    cursor.accept("table", name)
    alias = _alias(cursor)
    cursor.expect("USING")
    is_query = cursor.at_mark("(")
    if is_query:
        source = cursor.parenthesized_span()
    else:
        start = cursor.peek().start
        cursor.name("a table's name or a query in parentheses")
        source = Span(cursor.text[start : cursor.last_end], start)
    source_alias = _alias(cursor)
    source_columns: list[str] = []
    if source_alias is not None and cursor.at_mark("("):
        cursor.parenthesized(lambda: source_columns.append(cursor.identifier("a column")))
    cursor.expect("ON")
    on = cursor.clause(("WHEN",), "a condition")
    clauses: list[MergeClause] = []
    while cursor.take_words("WHEN"):
        clauses.append(_merge_clause(cursor))
    if not clauses:
        cursor.fail("expected WHEN")
    return Merge(
        name,
        source,
        on,
        tuple(clauses),
        alias,
        source_alias,
        tuple(source_columns),
        is_query,
        ctes,
        evolves,
    )


def _merge_clause(cursor: Cursor) -> MergeClause:
    when: Literal["matched", "not_matched", "not_matched_by_source"] = "matched"
    if cursor.take_words("NOT"):
        cursor.expect("MATCHED")
        when = "not_matched"
        if cursor.take_words("BY"):
            when = "not_matched_by_source" if cursor.expect_any("SOURCE", "TARGET") == "SOURCE" else "not_matched"
    else:
        cursor.expect("MATCHED")
    condition = cursor.clause(("THEN",), "a condition") if cursor.take_words("AND") else None
    cursor.expect("THEN")
    if when == "not_matched":
        cursor.expect("INSERT")
        return MergeClause(when, "insert", condition, _insert_action(cursor))
    if cursor.expect_any("DELETE", "UPDATE") == "DELETE":
        return MergeClause(when, "delete", condition)
    cursor.expect("SET")
    if cursor.at_mark("*"):
        if when == "not_matched_by_source":
            cursor.fail("a row without a source row cannot be updated from it")
        cursor.take()
        return MergeClause(when, "update", condition)
    return MergeClause(when, "update", condition, _assignments(cursor, ("WHEN",)))


def _insert_action(cursor: Cursor) -> tuple[Assignment, ...]:
    if cursor.take_mark("*"):
        return ()
    columns: list[Name] = []
    cursor.parenthesized(lambda: columns.append(cursor.name("a column")))
    cursor.expect("VALUES")
    start = cursor.peek()
    values: list[Span] = []
    cursor.parenthesized(lambda: values.append(cursor.expression()))
    if len(values) != len(columns):
        cursor.fail(f"{len(columns)} columns and {len(values)} values do not go together", start)
    return tuple(Assignment(column, value) for column, value in zip(columns, values, strict=True))


def parse_call(cursor: Cursor) -> Statement:
    """Read what follows CALL."""
    name = cursor.name("the name of a procedure")
    cursor.accept("procedure", name)
    arguments: list[Argument] = []

    def argument() -> None:
        start = cursor.peek()
        label: str | None = None
        if cursor.peek(1).is_mark("=>"):
            label = cursor.identifier("a parameter's name")
            cursor.take()
            if any(one.name is not None and one.name.lower() == label.lower() for one in arguments):
                cursor.fail(f"the parameter {label!r} is given twice", start)
        elif arguments and arguments[-1].name is not None:
            cursor.fail("an argument without a name cannot follow one with a name", start)
        arguments.append(Argument(cursor.expression(what="an argument"), label))

    cursor.expect_mark("(")
    if not cursor.at_mark(")"):
        cursor.listed(argument)
    cursor.expect_mark(")")
    return Call(name, tuple(arguments))
