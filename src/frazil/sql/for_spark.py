"""Texts for Spark's parser that say the same in words it knows.

A statement of a script that only lakes know is parsed when it is run: `EXECUTE IMMEDIATE '…'` takes its place. Where
Spark has no INSERT WITH SCHEMA EVOLUTION, and no CHANGES FROM, options of the table's name say it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from frazil.errors import SqlSyntaxError
from frazil.sql.type_names import escape
from frazil.text.tokens import NUMBER, QUOTED, STRING, WORD, Token, cut_tokens, without_hints

EVOLUTION_OPTION = "frazil.schema-evolution"
_BEFORE_STATEMENT = frozenset({"BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT"})
_OURS = frozenset({"ALTER", "CALL", "COMMENT", "CREATE", "DESC", "DESCRIBE", "DROP", "REFRESH", "SHOW"})
_EVOLVING = ("INSERT", "WITH", "SCHEMA", "EVOLUTION")
_BOUNDS = {
    "VERSION": "Version",
    "SYSTEM_VERSION": "Version",
    "TIMESTAMP": "Timestamp",
    "SYSTEM_TIME": "Timestamp",
}
"""What a bound of CHANGES is by, and how options call it."""


def script_for_spark(text: str, is_ours: Callable[[str], bool]) -> str:
    """Return a script whose statements that a lake answers itself are parsed when they are run."""
    tokens = list(without_hints(cut_tokens(text)))
    made: list[str] = []
    position = 0
    start: int | None = None
    for index, token in enumerate(tokens):
        if start is None:
            before = tokens[index - 1] if index else None
            begins = before is not None and (before.is_mark(";") or before.upper in _BEFORE_STATEMENT)
            start = token.start if begins and token.upper in _OURS else None
        if start is not None and token.is_mark(";"):
            statement = text[start : token.start].rstrip()
            if is_ours(statement):
                made += [text[position:start], f"EXECUTE IMMEDIATE {_string(statement)}"]
                position = token.start
            start = None
    return "".join([*made, text[position:]])


def _string(text: str) -> str:
    inner = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{inner}'"


def evolution_as_option(text: str) -> str:
    """Return a statement whose INSERT WITH SCHEMA EVOLUTION is an option of the table's name."""
    tokens = list(without_hints(cut_tokens(text)))
    made: list[str] = []
    position = 0
    for index in range(len(tokens)):
        found = tuple(token.upper for token in tokens[index : index + len(_EVOLVING)])
        if found != _EVOLVING or index + len(_EVOLVING) == len(tokens):
            continue
        after = _after_name(tokens, index + len(_EVOLVING))
        has_options = [token.upper or token.text for token in tokens[after : after + 2]] == ["WITH", "("]
        made += [
            text[position : tokens[index].end],
            text[tokens[index + len(_EVOLVING) - 1].end : tokens[after - 1].end],
        ]
        position = tokens[after - 1].end
        if has_options:
            made.append(f" WITH ('{EVOLUTION_OPTION}'='true', ")
            position = tokens[after + 1].end
        else:
            made.append(f" WITH ('{EVOLUTION_OPTION}'='true')")
    return "".join([*made, text[position:]])


def _after_name(tokens: list[Token], index: int) -> int:
    """Return the index after INTO or OVERWRITE, TABLE, and a name or a call of IDENTIFIER."""
    while index < len(tokens) and tokens[index].upper in ("INTO", "OVERWRITE", "TABLE"):
        index += 1
    index += 1
    if index < len(tokens) and tokens[index].is_mark("("):
        depth = 0
        while index < len(tokens):
            depth += tokens[index].is_mark("(") - tokens[index].is_mark(")")
            index += 1
            if depth == 0:
                return index
    while index < len(tokens) and tokens[index].text[:1] == ".":
        index += 2 if tokens[index].is_mark(".") else 1  # or `.1`, which lexers take for a number
    return min(index, len(tokens))


def changes_as_options(text: str, is_ours: Callable[[tuple[str, ...]], bool]) -> str:
    """Return a statement whose `name CHANGES FROM …` are options of the name, where it is a lake's.

    Options of other tables mean nothing to Spark, and those of a query's own names (WITH) neither: such clauses stay,
    and Spark says that it does not know them.
    """
    tokens = list(without_hints(cut_tokens(text)))
    defined = _defined(tokens)
    made: list[str] = []
    index = 0
    for start in range(1, len(tokens) - 2):
        words = [token.upper for token in tokens[start : start + 3]]
        if words[:2] != ["CHANGES", "FROM"] or words[2] not in _BOUNDS or tokens[start].start < index:
            continue
        name = _name_before(tokens, start)
        if not name or not is_ours(name) or (len(name) == 1 and name[0].lower() in defined):
            continue
        options, after = _changes(tokens, start + 2, text)
        made.append(text[index : tokens[start - 1].end])
        index = tokens[after - 1].end
        said = ", ".join(f"'{key}'='{escape(value)}'" for key, value in options.items())
        if [token.upper or token.text for token in tokens[after : after + 2]] == ["WITH", "("]:
            made.append(f" WITH ({said}, ")
            index = tokens[after + 1].end
        else:
            made.append(f" WITH ({said})")
    return "".join([*made, text[index:]])


def _name_before(tokens: list[Token], index: int) -> tuple[str, ...]:
    """Return the name that ends before an index; empty where there is none, as for a call of IDENTIFIER."""
    parts: list[str] = []
    while index > 0 and tokens[index - 1].kind in (WORD, QUOTED, NUMBER):
        token = tokens[index - 1]
        is_decimal = token.kind == NUMBER and token.text[0] == "."
        parts.append(token.text[1:] if is_decimal else token.value)
        index -= 1 if is_decimal else 2
        if index < 0 or not (is_decimal or tokens[index].is_mark(".")):
            break
    return tuple(reversed(parts))


def _defined(tokens: list[Token]) -> set[str]:
    """Return the names that a statement may define itself: `name AS (` or `name (columns) AS (`."""
    return {
        token.value.lower()
        for token, after in pairwise(tokens)
        if token.kind in (WORD, QUOTED) and (after.upper == "AS" or after.is_mark("("))
    }


def _changes(tokens: list[Token], index: int, text: str) -> tuple[dict[str, str], int]:
    """Return the options that say from where to where, and the index after them."""
    found = {"readChangeFeed": "true"}
    bound_type = _BOUNDS[tokens[index].upper]
    index = _bound(tokens, index, "starting", text, found)
    is_to = index + 1 < len(tokens) and tokens[index].upper == "TO"
    if is_to and _BOUNDS.get(tokens[index + 1].upper) == bound_type:
        index = _bound(tokens, index + 1, "ending", text, found)
    return found, index


def _bound(tokens: list[Token], index: int, which: str, text: str, found: dict[str, str]) -> int:
    """Read `VERSION 3 EXCLUSIVE` into options; return the index after it."""
    bound_type = _BOUNDS[tokens[index].upper]
    index += 1
    if bound_type == "Timestamp" and index + 1 < len(tokens) and tokens[index].upper in ("TIMESTAMP", "DATE"):
        index += 1
    value = tokens[index] if index < len(tokens) else None
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    kinds = (NUMBER, STRING) if bound_type == "Version" else (STRING,)
    is_more = after is not None and after.kind not in (WORD, QUOTED) and after.text not in (")", ";", ",")
    if value is None or value.kind not in kinds or is_more:
        said = "a number or a text" if bound_type == "Version" else "a time as text"
        raise SqlSyntaxError(
            f"Cannot read changes {'from' if which == 'starting' else 'to'} {bound_type.lower()} "
            f"{text[value.start : value.start + 60] if value else ''!r}: in this Spark it is {said}, and no expression",
            hint='Write \'…\', or spark.read.option("readChangeFeed", "true")'
            f'.option("{which}{bound_type}", …).table(…).',
        )
    found[f"{which}{bound_type}"] = value.value
    index += 1
    if index < len(tokens) and tokens[index].upper in ("INCLUSIVE", "EXCLUSIVE"):
        if tokens[index].upper == "EXCLUSIVE":
            found[f"{which}BoundInclusive"] = "false"
        index += 1
    return index
