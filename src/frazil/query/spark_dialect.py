"""Translates Spark's dialect to DuckDB: views by an allow-list with equal semantics, other queries by syntax only.

A view was written for Spark, and its reader does not see its text. So it is translated only if every operator, function
and combination of types in it was tested to mean the same in DuckDB, directly or after a rewrite; everything else
raises
`NotTranslatable`. sqlglot parses the text. DuckDB's tree is rebuilt, expression by expression, each with its Spark type
(ANSI mode, time zone UTC): spark_queries.py has the clauses, spark_expressions.py the operators, spark_functions.py and
spark_aggregates.py the functions, spark_casts.py the casts.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.generators.duckdb import DuckDBGenerator
from sqlglot.parsers.spark import SparkParser

from frazil.errors import InvalidRequestError
from frazil.query.spark_queries import ColumnsOf, QueryTranslator
from frazil.query.spark_types import NotTranslatable

_PLAIN_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTR", "SUBSTRING", "TRIM")
_MAX_NODES = 20_000


class _SparkViews(Spark):
    """Spark's grammar with functions as plain calls, so that the allow-list sees the original names."""

    class Parser(SparkParser):
        """A parser without function knowledge, except for those with keywords between their arguments."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: SparkParser.FUNCTION_PARSERS[name] for name in _PLAIN_SYNTAX
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}


def translate_view(text: str, columns_of: ColumnsOf) -> str:
    """Translate a view's query to DuckDB with Spark's meaning, or raise `NotTranslatable` with the reason.

    `columns_of` takes the parts of a table's name in the view and returns Spark's type of each column, or None for an
    unknown table. In DuckDB the columns have the equivalent types: `string` is VARCHAR, `timestamp` TIMESTAMPTZ,
    `timestamp_ntz` TIMESTAMP, `binary` BLOB, `float` REAL; nested ones are passed on. Columns are in the view's order;
    an expression without an alias is named `_c` and its number.
    """
    try:
        tokens = _SparkViews().tokenize(text)
        _check_strings(text, tokens)
        trees = [tree for tree in _SparkViews().parser().parse(tokens, text) if tree is not None]
        if len(trees) != 1:
            raise NotTranslatable("several statements")
        names = frozenset(name.name.lower() for name in trees[0].find_all(exp.Identifier))
        tree, _ = QueryTranslator(columns_of, names).translate(trees[0], None, {})
        if sum(1 for _ in tree.walk()) > _MAX_NODES:
            raise NotTranslatable("a query of this size")
        return tree.sql(dialect=_DuckDBViews)
    except RecursionError:
        raise NotTranslatable("a query of this depth") from None
    except SqlglotError as error:
        raise NotTranslatable("a syntax that is not known") from error


_LITERALS = {TokenType.STRING, TokenType.RAW_STRING}
_PLAIN_ESCAPES = re.compile(r"(?:[^\\]|\\[nrt\\'\"%_])*", re.DOTALL)


def _check_strings(text: str, tokens: list[Token]) -> None:
    """Refuse strings that versions of Spark or sqlglot parse differently: rare escapes, and adjacent literals."""
    before = None
    for token in tokens:
        if token.token_type in _LITERALS:
            if before in _LITERALS:
                raise NotTranslatable("string literals next to each other, or a doubled quote in one")
            if not _PLAIN_ESCAPES.fullmatch(text[token.start : token.end + 1]):
                raise NotTranslatable(f"the escape in the string {text[token.start : token.end + 1][:60]}")
        before = token.token_type


def translate_query(text: str) -> str:
    """Translate the syntax of a Spark query to DuckDB; arithmetic and functions keep DuckDB's meaning.

    `version as of` and `timestamp as of` become DuckDB's `at (…)`, and a parameter `:name` becomes `$name`.
    """
    try:
        trees = [tree for tree in sqlglot.parse(text, read="spark") if tree is not None]
        if len(trees) != 1:
            raise InvalidRequestError(f"Cannot run SQL: the text has {len(trees)} statements instead of one")
        return trees[0].transform(_with_duckdb_syntax).sql(dialect=_DuckDBQueries)
    except SqlglotError as error:
        raise InvalidRequestError(f"Cannot run SQL: {_first_line(error)}") from error
    except RecursionError:
        raise InvalidRequestError("Cannot run SQL: the query is nested too deeply") from None


def _with_duckdb_syntax(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Placeholder) and isinstance(node.this, str):
        return exp.Parameter(this=exp.Var(this=node.this))
    return node


class _DuckDBViews(DuckDB):
    """DuckDB's dialect with the order of nulls written out, independent of DuckDB's setting."""

    class Generator(DuckDBGenerator):
        """A generator that writes keys of ORDER BY in full."""

        def ordered_sql(self, expression: exp.Ordered) -> str:
            """Return a key of ORDER BY."""
            direction = "DESC" if expression.args.get("desc") else "ASC"
            nulls = "FIRST" if expression.args.get("nulls_first") else "LAST"
            return f"{self.sql(expression, 'this')} {direction} NULLS {nulls}"


class _DuckDBQueries(DuckDB):
    """DuckDB's dialect with its time travel clause, which follows a table's alias."""

    class Generator(DuckDBGenerator):
        """A generator that writes `AT (VERSION => …)` and `AT (TIMESTAMP => …)`."""

        def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
            """Return a table with its alias and version."""
            version = expression.args.get("version")
            if version is None:
                return super().table_sql(expression, sep)
            plain = expression.copy()
            plain.set("version", None)
            return f"{super().table_sql(plain, sep)} AT ({version.name} => {self.sql(version, 'expression')})"


def _first_line(error: BaseException) -> str:
    plain = re.sub(r"\x1b\[\d*m", "", str(error))
    return plain.splitlines()[0][:300] if plain else type(error).__name__


__all__ = ["ColumnsOf", "NotTranslatable", "translate_query", "translate_view"]
