"""Small changes to SQL text, token by token: other qualifiers, DEFAULT as a value, names in other words.

Text stays as it is but for the tokens that change, so places in it and what Spark says about it stay true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from frazil.sql.tokens import MARK, QUOTED, STRING, WORD, Token, cut_tokens

_PART = r"(?:\w+|`(?:[^`]|``)+`)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART})*")
_DEFAULT = re.compile(r"\bdefault\b", re.IGNORECASE)
_QUERY_STARTS = frozenset({"SELECT", "WITH", "FROM", "VALUES", "TABLE"})
_AFTER_ITEMS = frozenset(
    {"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "UNION", "EXCEPT",
     "INTERSECT", "MINUS", "LATERAL", "WINDOW", "OFFSET"}
)  # fmt: skip


def replace_spans(text: str, spans: Sequence[tuple[int, int, str]]) -> str:
    """Return a text with other text in the place of some spans, which do not overlap."""
    parts: list[str] = []
    at = 0
    for start, end, other in sorted(spans):
        parts += [text[at:start], other]
        at = end
    return "".join([*parts, text[at:]])


def requalify(text: str, qualifiers: Mapping[tuple[str, ...], str], inner: Collection[str] = ()) -> str:
    """Return an expression in which columns' qualifiers are others.

    A qualifier counts where it starts a dotted name: `t.id` for ("t",), `db.t.id` for ("db", "t"). Names in `inner`, in
    lower case, are defined by subqueries, and mean something else inside them.
    """
    if not qualifiers:
        return text
    tokens = list(cut_tokens(text))
    wanted = sorted(qualifiers.items(), key=lambda one: -len(one[0]))
    spans: list[tuple[int, int, str]] = []
    open_marks: list[bool] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.kind == MARK and token.text in "([{":
            open_marks.append(at + 1 < len(tokens) and tokens[at + 1].upper in _QUERY_STARTS)
        elif token.kind == MARK and token.text in ")]}" and open_marks:
            open_marks.pop()
        chain = _chain(tokens, at)
        if len(chain) > 1 and not (at > 0 and tokens[at - 1].is_mark(".")):
            names = [one.text.lower() for one in chain]
            for parts, other in wanted:
                size = len(parts)
                if size >= len(names) or names[:size] != [one.lower() for one in parts]:
                    continue
                if not (size == 1 and names[0] in inner and any(open_marks)):
                    spans.append((chain[0].start, chain[size - 1].end, other))
                break
        at += max(1, 2 * len(chain) - 1)
    return replace_spans(text, spans)


def _chain(tokens: Sequence[Token], at: int) -> list[Token]:
    """Return the parts of a dotted name that starts at a token."""
    parts: list[Token] = []
    while at < len(tokens) and tokens[at].kind in (WORD, QUOTED):
        parts.append(tokens[at])
        if at + 1 < len(tokens) and tokens[at + 1].is_mark("."):
            at += 2
        else:
            break
    return parts


def fill_parameters(text: str, values: Mapping[str, str] | Sequence[str]) -> str:
    """Return a text in which `:name`, or each `?` in turn, is a value's own text."""
    spans: list[tuple[int, int, str]] = []
    before: Token | None = None
    count = 0
    tokens = list(cut_tokens(text))
    for at, token in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        if isinstance(values, Mapping):
            # A colon right after a name is a path into a variant: v:a.b
            is_free = before is None or before.end < token.start or (before.kind == MARK and before.text not in ")]")
            if token.is_mark(":") and is_free and following is not None and following.start == token.end:
                if following.text in values:
                    spans.append((token.start, following.end, values[following.text]))
        elif token.is_mark("?") and count < len(values):
            spans.append((token.start, token.end, values[count]))
            count += 1
        before = token
    return replace_spans(text, spans)


def spell_identifiers(text: str, values: Mapping[str, object], is_ours: Callable[[str], bool]) -> str:
    """Return a text in which `IDENTIFIER('lake.db.t')`, or of a `:name` whose value is text, is the name itself.

    Spark resolves these after parsing, where a lake's names are not known. Only names that are ours are spelled out.
    """
    spans: list[tuple[int, int, str]] = []
    tokens = list(cut_tokens(text))
    for at, token in enumerate(tokens):
        rest = tokens[at + 1 : at + 5]
        if token.upper != "IDENTIFIER" or len(rest) < 3 or not rest[0].is_mark("("):
            continue
        name: object = None
        end = rest[2]
        if rest[1].kind == STRING:
            name = rest[1].text
        elif rest[1].is_mark(":") and len(rest) == 4:
            name, end = values.get(rest[2].text), rest[3]
        if isinstance(name, str) and end.is_mark(")") and _NAME.fullmatch(name) and is_ours(name):
            spans.append((token.start, end.end, name))
    return replace_spans(text, spans)


def has_default(text: str) -> bool:
    """Return whether a text may use DEFAULT as a value."""
    return _DEFAULT.search(text) is not None


def is_default(text: str) -> bool:
    """Return whether an expression is DEFAULT."""
    return text.strip().upper() == "DEFAULT"


def fill_defaults(query: str, default_of: Callable[[int], str]) -> str:
    """Return a query in which DEFAULT, where it is a whole value, is what `default_of` gives for its place."""
    tokens = list(cut_tokens(query))
    start = 0
    while start < len(tokens) and tokens[start].is_mark("("):
        start += 1
    if start >= len(tokens):
        return query
    if tokens[start].upper == "VALUES":
        return replace_spans(query, _value_rows(tokens, start + 1, default_of))
    if tokens[start].upper == "SELECT":
        return replace_spans(query, _items(tokens, start + 1, default_of)[0])
    return query


def _value_rows(tokens: Sequence[Token], at: int, default_of: Callable[[int], str]) -> list[tuple[int, int, str]]:
    spans: list[tuple[int, int, str]] = []
    while at < len(tokens):
        if tokens[at].is_mark("("):
            found, at = _items(tokens, at + 1, default_of)
            spans += found
        else:
            # A row of one value without parentheses.
            found, at = _items(tokens, at, default_of, most=1)
            spans += found
        if at < len(tokens) and tokens[at].is_mark(")"):
            at += 1
        if at < len(tokens) and tokens[at].is_mark(","):
            at += 1
        else:
            break
    return spans


def _items(
    tokens: Sequence[Token], at: int, default_of: Callable[[int], str], most: int | None = None
) -> tuple[list[tuple[int, int, str]], int]:
    """Return the spans of DEFAULT among items between commas, and where the items end."""
    spans: list[tuple[int, int, str]] = []
    depth = number = 0
    first = at
    while True:
        token = tokens[at] if at < len(tokens) else None
        is_over = token is None or (depth == 0 and (token.is_mark(")") or token.upper in _AFTER_ITEMS))
        if is_over or (depth == 0 and token is not None and token.is_mark(",")):
            if at > first and tokens[first].upper == "DEFAULT" and _is_alone(tokens, first, at):
                spans.append((tokens[first].start, tokens[first].end, default_of(number)))
            number += 1
            if is_over or (most is not None and number >= most):
                return spans, at
            first = at + 1
        elif token is not None and token.kind == MARK:
            depth += (token.text in "([{") - (token.text in ")]}")
        at += 1


def _is_alone(tokens: Sequence[Token], first: int, end: int) -> bool:
    """Return whether an item is one token, but for an alias."""
    rest = [one for one in tokens[first + 1 : end] if one.upper != "AS"]
    return len(rest) <= 1 and all(one.kind in (WORD, QUOTED) for one in rest)


def cte_names(ctes: str) -> list[str]:
    """Return the names that a WITH clause defines."""
    names: list[str] = []
    depth = 0
    expects = True
    for token in cut_tokens(ctes):
        if token.kind == MARK and token.text in "([{":
            depth += 1
        elif token.kind == MARK and token.text in ")]}":
            depth -= 1
        elif depth == 0 and token.is_mark(","):
            expects = True
        elif depth == 0 and expects and token.kind in (WORD, QUOTED) and token.upper != "RECURSIVE":
            names.append(token.text)
            expects = False
    return names
