"""Spark's types in views: their names, their common types, and the DuckDB types of the same values.

Every expression of a translated view has exactly one of these types, and in DuckDB exactly its `duckdb_name`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from sqlglot import exp

MAX_PRECISION = 38


class NotTranslatable(Exception):
    """A view's query has a part whose meaning in DuckDB is not proven equal; `reason` names the part."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SparkType:
    """A type of Spark; `name` is its simple name, and for nested types the whole text."""

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name

    @property
    def is_integral(self) -> bool:
        """Whether it is one of the four integer types."""
        return self.name in _INTEGRAL

    @property
    def is_floating(self) -> bool:
        """Whether it is float or double."""
        return self.name in {"float", "double"}

    @property
    def is_decimal(self) -> bool:
        """Whether it is a decimal."""
        return self.name == "decimal"

    @property
    def is_numeric(self) -> bool:
        """Whether it is a number."""
        return self.is_integral or self.is_floating or self.is_decimal

    @property
    def is_temporal(self) -> bool:
        """Whether it is a date or a timestamp."""
        return self.name in {"date", "timestamp", "timestamp_ntz"}

    @property
    def is_atomic(self) -> bool:
        """Whether values can be compared, grouped and ordered in DuckDB as in Spark."""
        return self.is_decimal or self.name in _DUCKDB_NAMES

    @property
    def duckdb_name(self) -> str:
        """The DuckDB type that holds the same values; only atomic types have one."""
        if self.is_decimal:
            return f"DECIMAL({self.precision}, {self.scale})"
        return _DUCKDB_NAMES[self.name]


_INTEGRAL = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_DUCKDB_NAMES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
}
_SYNONYMS = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
    "bool": "boolean",
}

VOID = SparkType("void")
BOOLEAN = SparkType("boolean")
INT = SparkType("int")
BIGINT = SparkType("bigint")
FLOAT = SparkType("float")
DOUBLE = SparkType("double")
STRING = SparkType("string")
BINARY = SparkType("binary")
DATE = SparkType("date")
TIMESTAMP = SparkType("timestamp")
TIMESTAMP_NTZ = SparkType("timestamp_ntz")


def decimal_type(precision: int, scale: int, index: str) -> SparkType:
    """Return a decimal type; refuse one that Spark would reduce to 38 digits, since digits would be lost."""
    if precision > MAX_PRECISION or scale > precision:
        raise NotTranslatable(f"{index} has the type decimal({precision},{scale}), which Spark shortens")
    return SparkType("decimal", precision, scale)


def parse_spark_type(text: str) -> SparkType:
    """Parse a type in Spark's notation; nested and unknown types are opaque."""
    plain = re.sub(r"\s+", "", text.lower())
    if match := re.fullmatch(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,(\d+))?\))?", plain):
        return SparkType("decimal", int(match[1] or 10), int(match[2] or 0))
    return SparkType(_SYNONYMS.get(plain, plain))


def duckdb_type(spark_type: SparkType) -> exp.DataType:
    """Return the DuckDB type of an atomic type as a sqlglot node."""
    if spark_type.is_decimal:
        parameters = [
            exp.DataTypeParam(this=exp.Literal.number(number)) for number in (spark_type.precision, spark_type.scale)
        ]
        return exp.DataType(this=exp.DataType.Type.DECIMAL, expressions=parameters)
    return exp.DataType.build(_DUCKDB_NAMES[spark_type.name], dialect="duckdb")


def as_decimal(spark_type: SparkType) -> SparkType:
    """Return the decimal type that Spark uses for computations with an integer type; decimals are unchanged."""
    if spark_type.is_decimal:
        return spark_type
    return SparkType("decimal", _INTEGRAL[spark_type.name], 0)


def common_type(first: SparkType, second: SparkType, index: str) -> SparkType:
    """Return the common type in which Spark (ANSI) compares, unites or merges values of two types."""
    if second in {first, VOID}:
        return first
    if first == VOID:
        return second
    if first.is_numeric and second.is_numeric:
        return _common_number(first, second, index)
    if first.is_temporal and second.is_temporal:
        names = {first.name, second.name}
        return TIMESTAMP if "timestamp" in names else TIMESTAMP_NTZ
    raise NotTranslatable(f"{index} mixes {first} and {second}")


def _common_number(first: SparkType, second: SparkType, index: str) -> SparkType:
    if first.is_floating or second.is_floating:
        return DOUBLE
    if first.is_integral and second.is_integral:
        return max(first, second, key=lambda item: _INTEGRAL[item.name])
    item, other = as_decimal(first), as_decimal(second)
    scale = max(item.scale, other.scale)
    whole = max(item.precision - item.scale, other.precision - other.scale)
    return decimal_type(whole + scale, scale, index)


def common_type_of(types: Iterable[SparkType], index: str) -> SparkType:
    """Return the common type in which Spark merges values of several types."""
    return reduce(lambda first, second: common_type(first, second, index), types, VOID)


@dataclass(frozen=True, slots=True)
class Typed:
    """A DuckDB expression with its Spark type and properties."""

    tree: exp.Expr
    type: SparkType
    can_fail: bool = False
    """Whether it may raise an error for some row."""
    literal: Any = None
    """The value of a literal in the view: int, Decimal, str or bool."""
    loose: frozenset[str] = frozenset()
    """Columns that are read from single rows, outside aggregates; relevant to grouped queries."""

    def copy_tree(self) -> exp.Expr:
        """Return the tree for use in another tree."""
        return self.tree.copy()


def combine(tree: exp.Expr, spark_type: SparkType, parts: Sequence[Typed], *, can_fail: bool = False) -> Typed:
    """Return the expression of a tree that consists of these parts."""
    return Typed(
        tree,
        spark_type,
        can_fail or any(piece.can_fail for piece in parts),
        loose=frozenset[str]().union(*(piece.loose for piece in parts)),
    )


# The trees below consist of calls and casts that sqlglot's generator writes unchanged.


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """Return a call of a DuckDB function."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def cast_to(tree: exp.Expr, spark_type: SparkType) -> exp.Expr:
    """Return DuckDB's cast to the type that holds values of an atomic Spark type."""
    return exp.Cast(this=tree, to=duckdb_type(spark_type))


def cast_to_hugeint(tree: exp.Expr) -> exp.Expr:
    """Return DuckDB's cast to 128-bit integers."""
    return exp.Cast(this=tree, to=exp.DataType.build("HUGEINT", dialect="duckdb"))


def paren(tree: exp.Expr) -> exp.Expr:
    """Return the tree in parentheses if it needs them inside another."""
    if isinstance(tree, (exp.Column, exp.Literal, exp.Anonymous, exp.Cast, exp.Paren, exp.Case, exp.Subquery)):
        return tree
    return exp.Paren(this=tree)


def binary(node: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return an operator over two operands."""
    extra = {"typed": False, "safe": False} if node is exp.Div else {}
    return node(this=paren(left), expression=paren(right), **extra)


def choose(branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None) -> exp.Expr:
    """Return CASE WHEN over conditions and results."""
    return exp.Case(ifs=[exp.If(this=when, true=then) for when, then in branches], default=default)


def fail(reason: str) -> exp.Expr:
    """Return the call that raises an error when a row reaches it."""
    return call("error", exp.Literal.string(reason))


def number(value: int | str, spark_type: SparkType) -> exp.Expr:
    """Return a number of a type; texts preserve the digits of decimals."""
    literal = exp.Literal.number(value) if isinstance(value, int) else exp.Literal.string(value)
    return cast_to(literal, spark_type)


def is_null(tree: exp.Expr) -> exp.Expr:
    """Return IS NULL."""
    return exp.Is(this=paren(tree), expression=exp.Null())


def without_negative_zero(typed: Typed) -> Typed:
    """Return a key as grouped by Spark: a float -0.0 becomes 0.0."""
    if not typed.type.is_floating:
        return typed
    tree = binary(exp.Add, typed.copy_tree(), number(0, typed.type))
    return Typed(tree, typed.type, typed.can_fail, loose=typed.loose)


_MAX_REPEATED_NODES = 1_000


def repeated(value: Typed) -> exp.Expr:
    """Return a tree for repeated use in a rewrite; refuse one that is too large for that."""
    if sum(1 for _ in value.tree.walk()) > _MAX_REPEATED_NODES:
        raise NotTranslatable("an expression of this size")
    return value.copy_tree()
