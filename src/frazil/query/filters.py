"""What planning may use of a query's conditions: for each table, a predicate that keeps every row the query can need.

Conditions are taken from the parse tree: those of WHERE and of joins that compare one column with constants. They are
followed into derived tables, common tables and views where a column is passed on unchanged. DuckDB applies every
condition itself, so a predicate may keep too many rows, and must never drop one that the query needs:

- below the optional side of an outer join, only conditions that are never true of null count;
- nothing passes a union, whose columns may have other types than those of its queries;
- nothing passes a limit, a sample, an aggregation, a window, or a join by position or time;
- a literal counts only if its comparison with the column is certain to mean the same here as in DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from frazil.expr.predicates import FALSE, TRUE, Op, Predicate, Reference, SqlTest, all_of, any_of
from frazil.query.filter_values import Constant, constant_of, exact_values, range_of, with_common_type
from frazil.query.syntax import Node, TableReference
from frazil.spec.schema import Schema
from frazil.spec.types import BooleanType, StringType, Type

_ORDERS: Final = {
    "COMPARE_EQUAL": Op.EQ,
    "COMPARE_LESSTHAN": Op.LT,
    "COMPARE_GREATERTHAN": Op.GT,
    "COMPARE_LESSTHANOREQUALTO": Op.LT_EQ,
    "COMPARE_GREATERTHANOREQUALTO": Op.GT_EQ,
}
_MIRRORED: Final = {Op.EQ: Op.EQ, Op.LT: Op.GT, Op.GT: Op.LT, Op.LT_EQ: Op.GT_EQ, Op.GT_EQ: Op.LT_EQ}
_OPPOSITE: Final = {Op.LT: Op.GT_EQ, Op.GT: Op.LT_EQ, Op.LT_EQ: Op.GT, Op.GT_EQ: Op.LT}
_PREFIX_FUNCTIONS: Final = frozenset({"starts_with", "prefix", "^@"})
_LOGIC: Final = frozenset({"CONJUNCTION_AND", "CONJUNCTION_OR", "OPERATOR_NOT", "OPERATOR_IS_NOT_NULL"})
"""Tests whose opposite may be true of null."""
_MAX_DEPTH: Final = 100

ColumnOf: TypeAlias = Callable[[tuple[str, ...]], str | None]


@dataclass(frozen=True)
class Condition:
    """A condition on the rows of one relation: a tree, and how its names of columns read there."""

    node: Node
    column_of: ColumnOf
    """Returns the column of the relation that a name means, in lower case, or None."""


@dataclass
class _Relation:
    """What stands in a FROM clause: a table of a lake, a query, or something whose columns are unknown."""

    visible_name: str
    node: Node
    columns: frozenset[str] | None
    """The columns in lower case; None if they are unknown."""
    table: TableReference | None = None
    is_optional: bool = False
    """Whether a join may fill its columns with null."""
    joins: list[Node] = field(default_factory=list)
    """Conditions of joins that drop rows of it."""


def find_filters(
    root: Node,
    schemas: Mapping[int, tuple[TableReference, Schema]],
    parameters: Mapping[str, object],
    common: Mapping[str, Any] | None = None,
) -> dict[TableReference, Predicate]:
    """Return for tables of a query what planning may use; `schemas` has each table by the id of its node."""
    finder = _Finder(schemas, parameters)
    finder.visit(root, {}, [])
    return {
        table: any_of(*predicates) for table, predicates in finder.predicates.items() if any_of(*predicates) != TRUE
    }


class _Finder:
    def __init__(self, schemas: Mapping[int, tuple[TableReference, Schema]], parameters: Mapping[str, object]) -> None:
        self._schemas = schemas
        self._parameters = parameters
        self.predicates: dict[TableReference, list[Predicate]] = {}
        self._depth = 0

    def visit(self, node: Any, common: Mapping[str, Node], conditions: list[Condition]) -> None:
        """Visit a query, of whose result only rows matter that meet `conditions`; and all queries inside of it."""
        self._depth += 1
        try:
            if self._depth <= _MAX_DEPTH:
                self._visit(node, common, conditions)
        finally:
            self._depth -= 1

    def _visit(self, node: Node, common: Mapping[str, Node], conditions: list[Condition]) -> None:
        for entry in node.get("cte_map", {}).get("map", ()):
            self.visit(entry["value"].get("query_node", {}), common, [])
        node_type = node.get("type")
        if node_type == "SELECT_NODE":
            self._select(node, common, conditions)
            return
        # Queries that are combined may have other types, in which DuckDB would compare: conditions stop here.
        for child in (*node.get("children", ()), node.get("left"), node.get("right")):
            if isinstance(child, dict):
                self.visit(child, common, [])

    def _select(self, node: Node, common: Mapping[str, Node], conditions: list[Condition]) -> None:
        relations: list[_Relation] = []
        source = node.get("from_table", {})
        is_plain = self._collect(source, relations, is_optional=False, joins=[]) and "sample" not in node
        where = [node["where_clause"]] if "where_clause" in node else []
        pushed = self._pass_through(node, conditions) if is_plain else []
        for relation in relations:
            found: list[Condition] = []
            if is_plain:
                column_of = self._names_of(relation, relations, source)
                for clause in (*where, *relation.joins):
                    found += [Condition(conjunct, column_of) for conjunct in _conjuncts(clause)]
                for condition in pushed:
                    column_here = _chained(condition.column_of, column_of)
                    found += [Condition(conjunct, column_here) for conjunct in _conjuncts(condition.node)]
            self._apply(relation, found, common)
        for child in _subqueries(node):
            self.visit(child, common, [])

    def _collect(self, node: Node, relations: list[_Relation], *, is_optional: bool, joins: list[Node]) -> bool:
        """Add the relations of a FROM clause; return whether conditions may drop rows of them."""
        node_type = node.get("type")
        if node_type == "JOIN":
            side, how = node.get("join_type", "INNER"), node.get("ref_type", "REGULAR")
            condition = [node["condition"]] if "condition" in node else []
            left, right = list(joins), list(joins)
            if side in ("INNER", "SEMI"):
                left, right = [*joins, *condition], [*joins, *condition]
            elif side in ("LEFT", "ANTI", "SINGLE", "MARK"):
                left, right = list(joins), condition
            elif side == "RIGHT":
                left, right = condition, list(joins)
            else:
                left, right = [], []
            ok = self._collect(
                node["left"], relations, is_optional=is_optional or side in ("RIGHT", "FULL", "OUTER"), joins=left
            )
            ok &= self._collect(
                node["right"],
                relations,
                is_optional=is_optional or side not in ("INNER", "RIGHT"),
                joins=right,
            )
            return ok and how in ("REGULAR", "CROSS", "NATURAL")
        name = (node.get("alias") or (node.get("qualified_name") or {}).get("path", [""])[-1]).lower()
        known = self._schemas.get(id(node)) if node_type == "BASE_TABLE" else None
        columns: frozenset[str] | None = None
        if known is not None and not node.get("column_name_alias"):
            lower = [column.name.lower() for column in known[1].fields]
            columns = frozenset(lower) if len(set(lower)) == len(lower) else None
        elif node_type == "SUBQUERY":
            outputs = _output_names(node["subquery"]["node"])
            if outputs is not None and not node.get("column_name_alias") and len(set(outputs)) == len(outputs):
                columns = frozenset(outputs)
        relation = _Relation(name, node, columns, None if known is None else known[0], is_optional, joins)
        relations.append(relation)
        return "sample" not in node and node_type != "PIVOT"

    def _names_of(self, relation: _Relation, relations: list[_Relation], source: Node) -> ColumnOf:
        columns = relation.columns or frozenset()
        same_name = [other for other in relations if other.visible_name == relation.visible_name]
        shared = _shared_columns(source)

        def column_of(name: tuple[str, ...]) -> str | None:
            lower = tuple(conjunct.lower() for conjunct in name)
            if len(lower) == 2 and lower[0] == relation.visible_name and len(same_name) == 1:
                return lower[1] if lower[1] in columns else None
            if len(lower) != 1 or lower[0] not in columns or shared is None or lower[0] in shared:
                return None
            # A name that several relations have is refused by DuckDB, unless it is the name of a relation too.
            if any(other.visible_name == lower[0] for other in relations):
                return None
            return (
                lower[0]
                if not any(lower[0] in (other.columns or ()) for other in relations if other is not relation)
                else None
            )

        return column_of

    def _pass_through(self, node: Node, conditions: list[Condition]) -> list[Condition]:
        """Return conditions on a query's result as conditions on its sources, for columns that it passes on."""
        blocks = ("group_expressions", "group_sets", "having", "qualify", "sample")
        if not conditions or any(node.get(block) for block in blocks) or node.get("modifiers"):
            return []
        if node.get("aggregate_handling") not in (None, "STANDARD_HANDLING") or _has_aggregates_or_windows(node):
            return []
        outputs = _passed_columns(node)
        return [Condition(condition.node, _renamed(condition.column_of, outputs)) for condition in conditions]

    def _apply(self, relation: _Relation, conditions: list[Condition], common: Mapping[str, Node]) -> None:
        usable = [
            condition
            for condition in conditions
            if not relation.is_optional or _rejects_null(condition.node, condition.column_of)
        ]
        if relation.table is not None:
            schema = self._schemas[id(relation.node)][1]
            types = {column.name.lower(): (column.name, column.field_type) for column in schema.fields}
            parts = [
                _Translation(types, condition.column_of, self._parameters).of(condition.node, True)
                for condition in usable
            ]
            self.predicates.setdefault(relation.table, []).append(all_of(*parts))
        elif relation.node.get("type") == "SUBQUERY":
            inner = relation.node["subquery"]["node"]
            self.visit(inner, common, usable if relation.columns is not None else [])
        else:
            for child in _subqueries(relation.node):
                self.visit(child, common, [])


def _renamed(column_of: ColumnOf, outputs: Callable[[str], str | None]) -> ColumnOf:
    """Return what names mean one query further inside, given what its columns are there."""

    def inside(name: tuple[str, ...]) -> str | None:
        column = column_of(name)
        return None if column is None else outputs(column)

    return inside


def _chained(passed: ColumnOf, here: ColumnOf) -> ColumnOf:
    """Return the column of a relation for a name in a condition from outside: the column passed on, looked up here."""

    def column_of(name: tuple[str, ...]) -> str | None:
        found = passed(name)
        return None if found is None else here(tuple(found.split("\0")))

    return column_of


def _output_names(node: Node) -> list[str] | None:
    """Return the names of a query's columns in lower case; None if they are not in its text."""
    if node.get("type") == "SET_OPERATION_NODE":
        return _output_names(node["children"][0]) if node.get("children") else None
    if node.get("type") != "SELECT_NODE":
        return None
    names: list[str] = []
    for item in node.get("select_list", ()):
        if item.get("alias"):
            names.append(item["alias"].lower())
        elif item.get("type") == "COLUMN_REF":
            names.append(item["column_names"][-1].lower())
        else:
            return None
    return names


def _passed_columns(node: Node) -> Callable[[str], str | None]:
    """Return a function from a query's column to the name in its text that it passes on, parts joined by NUL."""
    passed: dict[str, str] = {}
    for item in node.get("select_list", ()):
        if item.get("type") == "COLUMN_REF":
            name = (item.get("alias") or item["column_names"][-1]).lower()
            passed[name] = "\0".join(item["column_names"])
    return passed.get


def _shared_columns(source: Node) -> frozenset[str] | None:
    """Return the columns that joins of a FROM clause have in common by USING; None if a join is natural."""
    shared: set[str] = set()
    stack = [source]
    while stack:
        node = stack.pop()
        if node.get("type") != "JOIN":
            continue
        if node.get("ref_type") == "NATURAL":
            return None
        shared |= {name.lower() for name in node.get("using_columns", ())}
        stack += [node["left"], node["right"]]
    return frozenset(shared)


def _conjuncts(node: Node) -> Iterator[Node]:
    if node.get("type") == "CONJUNCTION_AND":
        for child in node["children"]:
            yield from _conjuncts(child)
    else:
        yield node


def _subqueries(node: Any) -> Iterator[Node]:
    """Yield the queries directly inside a node, other than those of its FROM clause and its common tables."""
    stack = (
        [child for key, child in node.items() if key not in ("from_table", "cte_map")]
        if isinstance(node, dict)
        else [node]
    )
    while stack:
        found = stack.pop()
        if isinstance(found, list):
            stack += found
        elif isinstance(found, dict):
            if str(found.get("type", "")).endswith("_NODE") and found.get("type") != "BOUND_SUBQUERY_NODE":
                yield found
            else:
                stack += found.values()


def _has_aggregates_or_windows(node: Node) -> bool:
    """Return whether the select list has more than columns, constants, casts and operators."""
    stack: list[Any] = list(node.get("select_list", ()))
    while stack:
        found = stack.pop()
        if isinstance(found, list):
            stack += found
        elif isinstance(found, dict):
            if found.get("class") in ("WINDOW", "SUBQUERY") or (
                found.get("class") == "FUNCTION" and not found.get("is_operator")
            ):
                return True
            stack += found.values()
    return False


def _rejects_null(node: Node, column_of: ColumnOf) -> bool:
    """Return whether a condition is never true if all columns of the relation are null.

    A comparison counts only if it compares a column itself: `coalesce(x, 1) = 1` is true of null.
    """

    def has_column(*operands: Node) -> bool:
        return any(
            operand.get("type") == "COLUMN_REF" and column_of(tuple(operand["column_names"])) is not None
            for operand in operands
        )

    node_type, children = node.get("type"), node.get("children", ())
    if node_type == "CONJUNCTION_AND":
        return any(_rejects_null(child, column_of) for child in children)
    if node_type == "CONJUNCTION_OR":
        return all(_rejects_null(child, column_of) for child in children)
    if node_type in _ORDERS or node_type == "COMPARE_NOTEQUAL":
        return has_column(node["left"], node["right"])
    if node_type == "COMPARE_BETWEEN":
        return has_column(node["input"])
    if node_type in ("COMPARE_IN", "OPERATOR_IS_NOT_NULL"):
        return has_column(children[0])
    if node_type == "OPERATOR_NOT":
        inner = children[0]
        return inner.get("type") not in _LOGIC and _rejects_null(inner, column_of)
    if node_type == "FUNCTION" and node.get("function_name") in (*_PREFIX_FUNCTIONS, "~~"):
        return has_column(*(argument["expression"] for argument in node.get("arguments", ())))
    return has_column(node)


class _Translation:
    """Makes predicates of conditions on one table; a part that cannot be translated keeps every row."""

    def __init__(
        self,
        types: Mapping[str, tuple[str, Type]],
        column_of: ColumnOf,
        parameters: Mapping[str, object],
    ) -> None:
        self._types = types
        self._column_of = column_of
        self._parameters = parameters

    def of(self, node: Node, is_true: bool, depth: int = 0) -> Predicate:
        """Return a predicate for every row of which a condition is true, or else false."""
        if depth > _MAX_DEPTH:
            return TRUE
        node_type = node.get("type")
        if node_type in ("CONJUNCTION_AND", "CONJUNCTION_OR"):
            parts = [self.of(child, is_true, depth + 1) for child in node["children"]]
            return all_of(*parts) if (node_type == "CONJUNCTION_AND") is is_true else any_of(*parts)
        if node_type == "OPERATOR_NOT":
            return self.of(node["children"][0], not is_true, depth + 1)
        if node_type in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            found = self._column(node["children"][0])
            wants_null = (node_type == "OPERATOR_IS_NULL") is is_true
            return TRUE if found is None else _test(Op.IS_NULL, found[0], (), is_true=wants_null)
        if node_type == "COLUMN_REF":
            found = self._column(node)
            if found is None or not isinstance(found[1], BooleanType):
                return TRUE
            return _test(Op.EQ, found[0], (is_true,), is_true=True)
        if node_type == "COMPARE_BETWEEN":
            return self._between(node, is_true)
        if node_type == "COMPARE_IN":
            return self._among(node["children"], is_true)
        if node_type in _ORDERS:
            return self._compare(_ORDERS[str(node_type)], node["left"], node["right"], is_true)
        if node_type == "COMPARE_NOTEQUAL":
            return self._compare(Op.EQ, node["left"], node["right"], not is_true)
        if node_type == "FUNCTION" and is_true:
            return self._prefix(node)
        return TRUE

    def _column(self, node: Node) -> tuple[str, Type] | None:
        if node.get("type") != "COLUMN_REF":
            return None
        column = self._column_of(tuple(node["column_names"]))
        return None if column is None else self._types.get(column)

    def _compare(self, op: Op, left: Node, right: Node, is_true: bool) -> Predicate:
        found = self._column(left)
        if found is None:
            found, left, right, op = self._column(right), right, left, _MIRRORED[op]
        if found is None:
            return TRUE
        constant = constant_of(right, self._parameters)
        if constant is None:
            return TRUE
        if not is_true:
            if op is Op.EQ:  # all but one value
                return _test(Op.IS_NULL, found[0], (), is_true=False)
            op = _OPPOSITE[op]
        return self._leaf(op, found, constant)

    def _leaf(self, op: Op, column: tuple[str, Type], constant: Any) -> Predicate:
        name, data_type = column
        if constant.is_null:
            return FALSE
        bounds = range_of(constant, data_type)
        if bounds is None:
            return TRUE
        low, high = bounds
        tests: list[Predicate] = []
        if op in (Op.EQ, Op.GT, Op.GT_EQ):
            tests.append(_test(Op.GT_EQ if low is not high or op is not Op.GT else op, name, (low,)))
        if op in (Op.EQ, Op.LT, Op.LT_EQ):
            tests.append(_test(Op.LT_EQ if low is not high or op is not Op.LT else op, name, (high,)))
        return _test(Op.EQ, name, (low,)) if op is Op.EQ and low is high else all_of(*tests)

    def _between(self, node: Node, is_true: bool) -> Predicate:
        column = self._column(node["input"])
        bounds = self._constants([node["lower"], node["upper"]])
        if column is None or bounds is None:
            return TRUE
        lower, upper = bounds
        # One comparison that is not certain makes both so: DuckDB compares in a type that all have in common.
        if any(not bound.is_null and range_of(bound, column[1]) is None for bound in bounds):
            return TRUE
        if is_true:
            return all_of(self._leaf(Op.GT_EQ, column, lower), self._leaf(Op.LT_EQ, column, upper))
        return any_of(self._leaf(Op.LT, column, lower), self._leaf(Op.GT, column, upper))

    def _among(self, children: list[Node], is_true: bool) -> Predicate:
        column = self._column(children[0])
        if column is None:
            return TRUE
        if not is_true:
            return _test(Op.IS_NULL, column[0], (), is_true=False)
        constants = self._constants(children[1:])
        values = None if constants is None else exact_values(constants, column[1])
        if values is None:
            return TRUE
        return _test(Op.IN, column[0], tuple(values)) if values else FALSE

    def _constants(self, nodes: list[Node]) -> list[Constant] | None:
        """Return constants that one value is compared with, in the type that they have in common; None if unknown."""
        constants = [constant_of(node, self._parameters) for node in nodes]
        if None in constants:
            return None
        return with_common_type([constant for constant in constants if constant is not None])

    def _prefix(self, node: Node) -> Predicate:
        name = node.get("function_name")
        arguments = [argument["expression"] for argument in node.get("arguments", ())]
        if len(arguments) != 2 or (name not in _PREFIX_FUNCTIONS and name != "~~"):
            return TRUE
        found, constant = self._column(arguments[0]), constant_of(arguments[1], self._parameters)
        if (
            found is None
            or constant is None
            or not isinstance(found[1], StringType)
            or not isinstance(constant.value, str)
        ):
            return TRUE
        prefix = constant.value
        if name == "~~":
            ends = [position for position, letter in enumerate(prefix) if letter in "%_"]
            if "\\" in prefix:
                return TRUE
            if not ends:
                return _test(Op.EQ, found[0], (prefix,))
            prefix = prefix[: ends[0]]
        return _test(Op.STARTS_WITH, found[0], (prefix,)) if prefix else TRUE


def _test(op: Op, name: str, values: tuple[Any, ...], *, is_true: bool = True) -> Predicate:
    return SqlTest(op, Reference(name), values, is_true=is_true)
