"""A query for an engine in this process: whose tables it reads, and its text in that engine's words.

Text is cut by the lexical rules of Spark SQL, which all of frazil's SQL has, and written anew for DataFusion: names in
backticks, strings with Spark's escapes, numbers with a type's letter, parameters `:name`. Names of tables are found
where tables stand (after FROM, JOIN, and commas between them) and are replaced by whatever the caller calls them; a
state of a table may follow (`VERSION AS OF`, `TIMESTAMP AS OF`). Expressions stay as they are.

Words that DataFusion reads over without obeying them are refused here, and so are statements that are no query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from difflib import get_close_matches

from frazil.errors import InvalidRequestError, TextSyntaxError, UnsupportedError
from frazil.spec.token_cursor import BROKEN, MARK, NUMBER, QUOTED, STRING, WORD, Token
from frazil.sql.query_text import find_no_query
from frazil.sql.statements import Name
from frazil.sql.tokens import cut_tokens

_WRITES = {
    "INSERT": "append()",
    "DELETE": "delete()",
    "UPDATE": "update()",
    "MERGE": "merge()",
    "CREATE": "create_table()",
    "DROP": "drop_table()",
    "ALTER": "update_schema(), update_spec() or set_properties()",
    "TRUNCATE": 'delete("true")',
    "REPLACE": "create_table()",
    "CALL": "the methods of maintain",
    "SHOW": "list_tables(), list_namespaces() or inspect",
    "DESCRIBE": "schema",
    "DESC": "schema",
    "USE": "names with their namespace",
    "SET": "arguments",
}
_IGNORED = ("TABLESAMPLE", "PREWHERE", "INTO")
"""Words that the engine reads over: an answer that disregards them would be wrong."""
_IGNORED_PAIRS = (("CONNECT", "BY"), ("FOR", "UPDATE"), ("FOR", "SHARE"))
_BEFORE_TABLES = frozenset({"LATERAL", "SELECT", "WITH", "VALUES"})
_AFTER_TABLES = frozenset(
    {"WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "FETCH", "WINDOW", "QUALIFY"}
    | {"UNION", "INTERSECT", "EXCEPT", "MINUS"}
)
_NO_ALIAS = _AFTER_TABLES | frozenset(
    {"SELECT", "VALUES", "ON", "USING", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI"}
    | {"OUTER", "LATERAL", "FOR", "PIVOT", "UNPIVOT", "CLUSTER", "DISTRIBUTE", "SORT"}
)
_OTHER_MARKS = ("/", "[", "~", "^", "::")
_OTHER_FUNCTIONS = frozenset(
    {"substr", "substring", "date_format", "date_trunc", "date_part", "unnest", "round", "split_part", "to_char"}
    | {"to_date", "to_timestamp", "from_unixtime", "regexp_replace", "regexp_match", "regexp_like", "string"}
    | {"percentile_cont", "approx_percentile_cont", "random", "overlay", "left", "right", "lpad", "rpad", "log"}
    | {"levenshtein", "now", "current_date", "current_timestamp", "current_time", "concat_ws", "array_agg", "instr"}
)
"""Functions of both engines of which it is known, or not known to be otherwise, that some answers differ."""
_TEXTS = frozenset({"STRING", "VARCHAR", "CHAR", "TEXT"})
_VERSIONS = ("VERSION", "SYSTEM_VERSION")
_TIMES = ("TIMESTAMP", "SYSTEM_TIME")
_SUFFIXES = {"L": "bigint", "S": "smallint", "Y": "tinyint", "D": "double", "F": "float"}
_NUMBER = re.compile(r"([\d.]+(?:[eE][+-]?\d+)?)(BD|[LSYFD])?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table that a query reads: its name as written, and the state of it that is asked for.

    `has_alias` says whether the query calls it by another name.
    """

    name: Name
    version: str | None = None
    as_of: str | int | None = None
    has_alias: bool = False

    def named(self, name: Name) -> TableReference:
        """Return the same under another name; one that was written without an alias keeps its last part."""
        return replace(self, name=name)


@dataclass(frozen=True, slots=True)
class RewrittenQuery:
    """A query's text for DataFusion, and the names of its parameters by where they start in the text.

    `points` are the numbers with a point that may be doubles or decimals, as places in the text.
    """

    text: str
    parameters: Mapping[int, str]
    points: frozenset[int] = frozenset()


def rewrite_query(
    text: str, name_of: Callable[[TableReference], str], decimals: frozenset[int] = frozenset()
) -> RewrittenQuery:
    """Return a query for DataFusion, with the names of tables replaced; refuse what is no query.

    Numbers with a point are doubles, but for those at some places, which are decimals. Parameters at such places are
    named `other_name`.
    """
    query = _Query(text, name_of, decimals=decimals)
    return RewrittenQuery(query.rewrite(), query.parameters, frozenset(query.points))


def rewrite_view(
    text: str, name_of: Callable[[TableReference], str], decimals: frozenset[int] | None = None
) -> RewrittenQuery:
    """Return a view's query, written for Spark, for DataFusion; refuse what DataFusion means otherwise.

    Numbers with a point are decimals, or only those at some places.
    """
    query = _Query(text, name_of, is_sparks=True, decimals=decimals)
    made = query.rewrite()
    if query.parameters:
        raise UnsupportedError(f"Cannot read the query: it has a parameter, :{min(query.parameters.values())}")
    return RewrittenQuery(made, {}, frozenset(query.points))


def other_name(name: str) -> str:
    """Return what a parameter is called where its value is a decimal in place of a double, or the other way round."""
    return f"frazil_other_{name}"


class _Query:
    def __init__(
        self,
        text: str,
        name_of: Callable[[TableReference], str],
        *,
        is_sparks: bool = False,
        decimals: frozenset[int] | None = frozenset(),
    ) -> None:
        self._text = text
        self._decimals = decimals
        self._name_of = name_of
        self._is_sparks = is_sparks
        self._tokens = list(cut_tokens(text))
        _check(text, self._tokens)
        if is_sparks:
            _check_meaning(self._tokens)
        while self._tokens and self._tokens[-1].is_mark(";"):
            self._tokens.pop()
        self._made = _common_names(self._tokens)
        self.parameters: dict[int, str] = {}
        self.points: set[int] = set()

    def rewrite(self) -> str:
        tokens = self._tokens
        parts: list[str] = []
        scopes = [_Scope(may_begin_with_from=True)]
        index = 0
        if tokens[0].upper == "TABLE" or (tokens[0].upper == "FROM" and not _has_select(tokens)):
            parts.append("SELECT * FROM")
            scopes[-1].expect_table()
            index = 1
        while index < len(tokens):
            token, scope = tokens[index], scopes[-1]
            if token.is_mark("("):
                # A query in brackets has its own tables; so have tables that are joined in brackets.
                scopes.append(scope.inside())
            elif token.is_mark(")") and len(scopes) > 1:
                scopes.pop()
            elif scope.is_table_next and token.kind in (WORD, QUOTED) and token.upper not in _BEFORE_TABLES:
                scope.is_table_next = False
                index, made = self._table(index)
                parts.append(f" {made} ")
                continue
            else:
                scope.step(token, tokens[index - 1] if index else None)
            if index and tokens[index - 1].end < token.start:
                parts.append(" ")
            index, made = self._plain(index)
            parts.append(made)
        return "".join(parts)

    def _table(self, index: int) -> tuple[int, str]:
        """Return where a table's name with its state ends, and what stands for it."""
        start, names = index, [self._tokens[index].text]
        index += 1
        while self._mark(index, ".") and self._peek(index + 1).kind in (WORD, QUOTED, NUMBER):
            names.append(self._tokens[index + 1].text)
            index += 2
        if self._mark(index, "("):
            return self._as_written(start, index)
        after, version, as_of = self._state(index)
        if len(names) == 1 and names[0].lower() in self._made and after == index:
            return self._as_written(start, index)
        following = self._peek(after)
        has_alias = following.upper == "AS" or (following.kind in (WORD, QUOTED) and following.upper not in _NO_ALIAS)
        return after, self._name_of(TableReference(tuple(names), version, as_of, has_alias))

    def _as_written(self, start: int, end: int) -> tuple[int, str]:
        return end, "".join(self._plain(index)[1] for index in range(start, end))

    def _state(self, index: int) -> tuple[int, str | None, str | int | None]:
        """Return where the state that follows a name ends, and the version or the time it says."""
        start = index + 1 if self._peek(index).upper == "FOR" else index
        word = self._peek(start).upper
        words = [self._peek(start + 1).upper, self._peek(start + 2).upper]
        if word not in (*_VERSIONS, *_TIMES) or words != ["AS", "OF"]:
            return index, None, None
        value = self._peek(start + 3)
        if value.kind not in (STRING, NUMBER) or (value.kind == NUMBER and not value.text.isdigit()):
            raise _syntax(self._text, value, "a version or a time as text or a whole number was expected")
        if word in _VERSIONS:
            return start + 4, value.text, None
        # Spark counts seconds in a number, and frazil's times are milliseconds.
        return start + 4, None, int(value.text) * 1000 if value.kind == NUMBER else value.text

    def _peek(self, index: int) -> Token:
        size = len(self._text)
        return self._tokens[index] if index < len(self._tokens) else Token(MARK, "", size, size)

    def _mark(self, index: int, mark: str) -> bool:
        return self._peek(index).is_mark(mark)

    def _plain(self, index: int) -> tuple[int, str]:
        """Return where a token that is no table ends, and its text for DataFusion."""
        token = self._tokens[index]
        if token.kind == QUOTED:
            return index + 1, quoted_name(token.text)
        if token.kind == STRING:
            if self._text[token.start] == '"':
                raise _syntax(
                    self._text,
                    token,
                    "text in double quotes is a string to Spark and a name to others",
                    hint="Write strings in single quotes and names in backticks.",
                )
            return index + 1, "'" + token.text.replace("'", "''") + "'"
        if token.kind == NUMBER:
            # What has a point is a decimal to Spark.
            if "." in token.text and "e" not in token.text.lower() and _NUMBER.fullmatch(f"{token.text}BD") is not None:
                self.points.add(token.start)
                if self._decimals is None or token.start in self._decimals:
                    return index + 1, _number(f"{token.text}BD")
            return index + 1, _number(token.text)
        if token.is_mark(":") and self._peek(index + 1).kind == WORD and self._peek(index + 1).start == token.end:
            name = self._tokens[index + 1].text
            self.parameters[token.start] = name
            return index + 2, f"${other_name(name) if token.start in (self._decimals or ()) else name}"
        if token.is_mark("$") or token.is_mark("?"):
            raise _syntax(self._text, token, "parameters are written :name")
        return index + 1, "=" if token.is_mark("==") else token.text


class _Scope:
    """Where in the query of one pair of brackets an index is."""

    def __init__(self, *, may_begin_with_from: bool = False) -> None:
        self.is_table_next = False
        """Whether the name that comes next is a table's."""
        self._is_among_tables = False
        self._is_query = may_begin_with_from

    def expect_table(self) -> None:
        """Say that tables follow."""
        self.is_table_next = self._is_among_tables = True

    def inside(self) -> _Scope:
        """Return the scope of a bracket that opens here."""
        made = _Scope()
        if self.is_table_next:
            made.expect_table()
            self.is_table_next = False
        return made

    def step(self, token: Token, before: Token | None) -> None:
        """Take a token that is no table into account."""
        word = token.upper
        if word in ("SELECT", "WITH", "VALUES"):
            self._is_query, self._is_among_tables, self.is_table_next = True, False, False
        elif word == "FROM":
            # It is a word of functions too, extract(year FROM ts), and of IS DISTINCT FROM.
            if self._is_query and not (before is not None and before.upper == "DISTINCT"):
                self.expect_table()
        elif word == "JOIN":
            self.expect_table()
        elif token.is_mark(",") and self._is_among_tables:
            self.is_table_next = True
        elif word in _AFTER_TABLES:
            self._is_among_tables = False


def _check(text: str, tokens: Sequence[Token]) -> None:
    """Refuse what is no query, and words that would be read over."""
    if tokens and tokens[-1].kind == BROKEN:
        raise _syntax(text, tokens[-1], tokens[-1].text)
    if not [token for token in tokens if not token.is_mark(";")]:
        raise InvalidRequestError("Cannot run SQL: there is no statement")
    word = find_no_query(text)
    if word is not None:
        if word.startswith("; "):
            raise InvalidRequestError("Cannot run SQL: there are two statements", hint="Run them one by one.")
        verb = _WRITES.get(word)
        way = f"Use {verb} in Python, or run the statement on Spark." if verb else "Run the statement on Spark."
        near = (
            None if verb else next(iter(get_close_matches(word, (*_WRITES, "SELECT", "WITH", "VALUES"), 1, 0.8)), None)
        )
        raise UnsupportedError(
            f"Cannot run {word} here: SQL without Spark only runs queries",
            hint=way if near is None else f"Did you mean {near}?",
        )
    for index, token in enumerate(tokens):
        following = tokens[index + 1].upper if index + 1 < len(tokens) else ""
        is_name = index > 0 and tokens[index - 1].is_mark(".")
        found = token.upper if token.upper in _IGNORED else ""
        if (token.upper, following) in _IGNORED_PAIRS:
            found = f"{token.upper} {following}"
        if found and not is_name:
            raise _syntax(
                text,
                token,
                f"{found} is not understood here",
                hint="Run the query on Spark. Quote a name in backticks.",
            )


def _check_meaning(tokens: Sequence[Token]) -> None:
    """Refuse words of a query for Spark that DataFusion knows and means otherwise."""
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        is_name = index > 0 and tokens[index - 1].is_mark(".")
        word = token.text.lower()
        is_call = following is not None and following.is_mark("(")
        is_other = (
            (token.kind == MARK and word in _OTHER_MARKS)
            or (token.kind in (WORD, QUOTED) and word in _OTHER_FUNCTIONS and is_call)
            or (token.kind == WORD and word == "as" and following is not None and following.upper in _TEXTS)
        )
        if is_other and not is_name:
            text = f"a cast to {following.text}" if word == "as" and following is not None else f"{token.text!r}"
            raise UnsupportedError(f"Cannot read the query: {text} means something else here")


def _common_names(tokens: Sequence[Token]) -> set[str]:
    """Return what WITH gives names to, in lower case: `name AS (`, `name (a, b) AS (`."""
    found: set[str] = set()
    if not any(token.upper == "WITH" for token in tokens):
        return found
    for index, token in enumerate(tokens[:-2]):
        if token.kind not in (WORD, QUOTED):
            continue
        after = index + 1
        if tokens[after].is_mark("("):
            while after < len(tokens) and not tokens[after].is_mark(")"):
                after += 1
            after += 1
        if after + 1 < len(tokens) and tokens[after].upper == "AS" and tokens[after + 1].is_mark("("):
            found.add(token.text.lower())
    return found


def _has_select(tokens: Sequence[Token]) -> bool:
    depth = 0
    for token in tokens:
        depth += token.is_mark("(") - token.is_mark(")")
        if depth == 0 and token.upper == "SELECT":
            return True
    return False


def _number(text: str) -> str:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return text
    digits, suffix = found[1], (found[2] or "").upper()
    if suffix == "BD":
        _, number, exponent = Decimal(digits).as_tuple()
        scale = max(-int(exponent), 0)
        return f"CAST('{Decimal(digits):f}' AS decimal({max(len(number) + max(int(exponent), 0), scale, 1)}, {scale}))"
    return f"CAST('{digits}' AS {_SUFFIXES[suffix]})" if suffix else digits


def quoted_name(name: str) -> str:
    """Return a name in the engine's quotes."""
    return '"' + name.replace('"', '""') + '"'


def _syntax(text: str, token: Token, reason: str, hint: str | None = None) -> TextSyntaxError:
    line = text.count("\n", 0, token.start) + 1
    column = token.start - text.rfind("\n", 0, token.start)
    excerpt = text[token.start : token.end][:40]
    return TextSyntaxError(f"Cannot read the query: line {line}, column {column}, {excerpt!r}: {reason}", hint=hint)
