"""Extracts the tables, parameters and columns of a query from DuckDB's parse tree.

`json_serialize_sql` returns the tree of a query with the positions of its nodes in the text. Names of tables are
replaced
at these positions, and the rest of the text is unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from frazil.errors import InvalidRequestError, SqlSyntaxError, UnsupportedError
from frazil.query.deep_json import decode_json
from frazil.query.engine import quoted
from frazil.text.place import syntax_error

Node: TypeAlias = dict[str, Any]
Serialize: TypeAlias = Callable[[str], str]
"""Returns the JSON of a query's tree."""

SERIALIZE: Final = "SELECT json_serialize_sql($1::VARCHAR, skip_null := true, skip_empty := true, skip_default := true)"
_NAME_PART: Final = re.compile(rb'(?:\s|--[^\n]*\n|/\*.*?\*/)*+("(?:[^"]|"")*"|[^\s."();,/-]+)', re.DOTALL)
_DOT: Final = re.compile(rb"(?:\s|--[^\n]*\n|/\*.*?\*/)*+\.", re.DOTALL)
_POINTERS: Final = frozenset(
    {"arrow_scan", "arrow_scan_dumb", "pandas_scan", "python_arrow_scan", "python_map_function"}
)
"""Functions that take memory addresses as arguments."""


class NotAQueryError(UnsupportedError):
    """The text is a statement other than a query."""


@dataclass(eq=False)
class TableReference:
    """A table that a query names, its position in the text, and the requested state."""

    path: tuple[str, ...]
    node: Node = field(repr=False)
    start: int | None
    end: int | None
    alias: str | None
    column_aliases: tuple[str, ...]
    version: Node | None = None
    timestamp: Node | None = None

    @property
    def has_sample(self) -> bool:
        """Whether the query reads a sample of the table."""
        return "sample" in self.node

    @property
    def visible_name(self) -> str:
        """The name that qualifies columns of the table."""
        return self.alias or self.path[-1]


@dataclass(frozen=True)
class Query:
    """A query: its text, its tree, and the names in it."""

    text: str
    node: Node = field(repr=False)
    tables: tuple[TableReference, ...]
    parameters: frozenset[str]
    """All parameters, including those of time travel."""
    run_parameters: frozenset[str]
    """The parameters that stay in the text."""
    names: frozenset[str]
    """The parts of all column names, in lower case."""
    has_star: bool
    """Whether the query uses columns that it does not name."""
    qualified: tuple[tuple[tuple[str, ...], int, int], ...]
    """Names of columns that are qualified with the table's namespace, with their positions."""

    def mentions(self, column: str, tables: frozenset[str]) -> bool:
        """Return whether the query may read a column of a table with one of these visible names."""
        return self.has_star or column.lower() in self.names or not self.names.isdisjoint(tables)

    def replace_tables(self, names: Mapping[TableReference, str]) -> str:
        """Return the text with the names of tables replaced."""
        encoded = self.text.encode()
        changes: list[tuple[int, int, bytes]] = []
        for table, name in names.items():
            if table.start is None or table.end is None:
                continue
            alias = quoted(table.visible_name)
            if table.version is not None or table.timestamp is not None:
                columns = f"({', '.join(map(quoted, table.column_aliases))})" if table.column_aliases else ""
                changes.append((table.start, table.end, f"{name} AS {alias}{columns}".encode()))
                continue
            end = _name_end(encoded, table)
            changes.append((table.start, end, (name if table.alias else f"{name} AS {alias}").encode()))
        paths = {tuple(step.lower() for step in table.path): table for table in names if table.alias is None}
        for column, start, end in self.qualified:
            lower = tuple(step.lower() for step in column)
            for size in range(len(column) - 1, 1, -1):
                owner = paths.get(lower[:size])
                if owner is not None:
                    rest = ".".join(map(quoted, (owner.path[-1], *column[size:])))
                    changes.append((start, end, rest.encode()))
                    break
        for start, end, new in sorted(changes, reverse=True):
            # Without white space a quoted name ends a word, and a plain one would not.
            encoded = encoded[:start] + b" " + new + b" " + encoded[end:]
        return encoded.decode()


def _name_end(text: bytes, table: TableReference) -> int:
    assert table.start is not None
    end = table.start
    for position in range(len(table.path)):
        if position:
            dot = _DOT.match(text, end)
            end = end if dot is None else dot.end()
        step = _NAME_PART.match(text, end)
        if step is None:
            raise UnsupportedError(f"Cannot find the name {'.'.join(table.path)} in the query")
        end = step.end()
    return end


def parse_query(text: str, serialize: Serialize) -> Query:
    """Parse the text of one query; refuse other statements, several of them, and text that is not SQL."""
    if "\0" in text:
        raise InvalidRequestError("Cannot run SQL: the text contains a NUL character")
    tree = decode_json(serialize(text))
    if tree.get("error"):
        raise _syntax_error(text, tree)
    statements = tree["statements"]
    if not statements:
        raise InvalidRequestError("Cannot run SQL: the text contains no statement")
    if len(statements) > 1:
        raise InvalidRequestError("Cannot run SQL: the text contains several statements", hint="Run them one by one.")
    return _read_tree(text, statements[0]["node"])


def _syntax_error(text: str, tree: Node) -> InvalidRequestError | UnsupportedError:
    message = str(tree.get("error_message", "it is not SQL"))
    if "expression depth" in message:
        return InvalidRequestError("Cannot run the query: it is nested too deeply")
    if tree.get("error_type") == "not implemented":
        return NotAQueryError("Cannot run the statement: it is not a query")
    if tree.get("position") is None:
        return SqlSyntaxError(f"Cannot parse the query: {message}")
    position = len(text.encode()[: int(tree["position"])].decode(errors="ignore"))
    after = text[position:].lower()
    hint = None
    if after.startswith(":") or text[position - 1 : position] == ":":
        hint = "Parameters are written $name."
    elif re.match(r"(version|timestamp)?\s*as\s+of\b|of\b", after) or re.search(
        r"\b(version|timestamp)\s*$", text[:position], re.IGNORECASE
    ):
        hint = "Time travel is written db.t AT (VERSION => 5) or AT (TIMESTAMP => '2026-01-01'), after the alias."
    return syntax_error("the query", text, position, message, hint=hint)


def _read_tree(text: str, root: Node) -> Query:
    tables: list[TableReference] = []
    parameters: set[str] = set()
    names: set[str] = set()
    qualified: list[tuple[tuple[str, ...], int, int]] = []
    has_star = False
    stack: list[tuple[Any, frozenset[str]]] = [(root, frozenset())]
    while stack:
        node, common_tables = stack.pop()
        if isinstance(node, list):
            stack += [(child, common_tables) for child in reversed(node)]
            continue
        if not isinstance(node, dict):
            continue
        node_type = node.get("type")
        common_tables = _open_scopes(node, common_tables, stack)
        if node_type == "BASE_TABLE":
            path = tuple(node["qualified_name"]["path"])
            if not _is_common_table(path, common_tables):
                tables.append(_reference(node, path))
        elif node_type == "VALUE_PARAMETER":
            parameters.add(node["identifier"])
        elif node_type == "COLUMN_REF":
            column = tuple(node["column_names"])
            names.update(step.lower() for step in column)
            if len(column) > 2 and "query_location_length" in node:
                start = node.get("query_location", 0)
                qualified.append((column, start, start + node["query_location_length"]))
        elif node_type == "SHOW_REF" and "query" not in node:
            raise UnsupportedError(
                "Cannot run SHOW here: it would list what is in DuckDB, not in the lake",
                hint="lake.list_tables('db') and lake.list_namespaces() do. DESCRIBE db.t shows columns.",
            )
        elif (
            node_type == "STAR"
            or node.get("ref_type") in ("NATURAL", "POSITIONAL")
            or node_type in ("PIVOT", "SHOW_REF")
        ):
            has_star = True
        elif node_type == "TABLE_FUNCTION" and node["function"].get("function_name", "").lower() in _POINTERS:
            raise InvalidRequestError(f"Cannot use the function {node['function']['function_name']} in a query")
        names.update(name.lower() for name in node.get("using_columns", ()))
        stack += [
            (child, common_tables)
            for key, child in node.items()
            if key not in ("cte_map", "at_clause") and isinstance(child, dict | list)
        ]
    tables.sort(key=lambda table: -1 if table.start is None else table.start)
    states = {
        step["identifier"]
        for table in tables
        for step in walk(table.node.get("at_clause"))
        if step.get("type") == "VALUE_PARAMETER"
    }
    run_parameters = frozenset(parameters)
    parameters |= states
    return Query(
        text, root, tuple(tables), frozenset(parameters), run_parameters, frozenset(names), has_star, tuple(qualified)
    )


def _open_scopes(node: Node, common_tables: frozenset[str], stack: list[tuple[Any, frozenset[str]]]) -> frozenset[str]:
    """Push the common tables of a query onto a stack, each with those before it; return all that are in scope."""
    for entry in node.get("cte_map", {}).get("map", ()):
        stack.append((entry["value"], common_tables))
        common_tables |= {entry["key"].lower()}
    if node.get("type") == "RECURSIVE_CTE_NODE":
        common_tables |= {node["cte_name"].lower(), f"recurring.{node['cte_name'].lower()}"}
    return common_tables


def _is_common_table(path: tuple[str, ...], common_tables: frozenset[str]) -> bool:
    return (
        len(path) <= 2
        and ".".join(path).lower() in common_tables
        and (len(path) == 1 or path[0].lower() == "recurring")
    )


def _reference(node: Node, path: tuple[str, ...]) -> TableReference:
    length = node.get("query_location_length")
    start = node.get("query_location", 0) if length is not None else None
    state = node.get("at_clause", {})
    unit = state.get("unit", "").upper()
    return TableReference(
        path,
        node,
        start,
        None if start is None else start + length,
        node.get("alias") or None,
        tuple(node.get("column_name_alias", ())),
        state["expr"] if unit == "VERSION" else None,
        state["expr"] if unit == "TIMESTAMP" else None,
    )


def walk(node: Any) -> Iterator[Node]:
    """Yield every object of a tree."""
    stack = [node]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack += node.values()
        elif isinstance(node, list):
            stack += node
