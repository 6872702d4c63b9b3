"""Types, transforms, sort terms and properties as SQL on Spark writes them, told in the specification's words.

In SQL `timestamp` is an instant, the specification's `timestamptz`, and `timestamp_ntz` its `timestamp`. The
format has no lengths: `char(n)` and `varchar(n)` are strings, as Iceberg Java has it, and a warning says so.
Types that only the format has (`uuid`, `fixed(16)`, `time`, `timestamptz`, nanosecond timestamps) are taken by their
own names, which mean nothing else in Spark SQL.
"""

from __future__ import annotations

from difflib import get_close_matches

from frazil.errors import FrazilError, InvalidRequestError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partitioning import parse_partition_term
from frazil.spec.sorting import parse_sort_term
from frazil.sql.cursor import Cursor
from frazil.sql.quote_names import quote_if_needed, quote_path
from frazil.sql.statements import Name, Properties
from frazil.sql.text_lengths import warn_of_lengths
from frazil.text.literals import quote_text
from frazil.text.tokens import NUMBER, STRING, WORD

_SIMPLE = {
    "BOOLEAN": "boolean",
    "BOOL": "boolean",
    "TINYINT": "int",
    "BYTE": "int",
    "SMALLINT": "int",
    "SHORT": "int",
    "INT": "int",
    "INTEGER": "int",
    "BIGINT": "long",
    "LONG": "long",
    "FLOAT": "float",
    "REAL": "float",
    "DOUBLE": "double",
    "STRING": "string",
    "BINARY": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamptz",
    "TIMESTAMP_LTZ": "timestamptz",
    "TIMESTAMP_NTZ": "timestamp",
    "TIMESTAMPTZ": "timestamptz",
    "TIMESTAMP_NS": "timestamp_ns",
    "TIMESTAMPTZ_NS": "timestamptz_ns",
    "VARIANT": "variant",
    "VOID": "unknown",
    "UUID": "uuid",
}
_ADVICE = {
    "TEXT": "Use string.",
    "DATETIME": "Use timestamp or timestamp_ntz.",
    "JSON": "Use variant (format version 3) or string.",
    "INTERVAL": "The format has no intervals.",
}
_MAX_DEPTH = 100


def parse_type(cursor: Cursor, depth: int = 0) -> str:
    """Read a type and return it in the specification's words."""
    token = cursor.take()
    if token.kind != WORD:
        cursor.fail("expected a type", token)
    if depth > _MAX_DEPTH:
        cursor.fail(f"types are nested deeper than {_MAX_DEPTH} levels", token)
    word = token.upper
    if word in ("ARRAY", "LIST", "MAP", "STRUCT"):
        return _nested(cursor, word, depth)
    if word in ("DECIMAL", "DEC", "NUMERIC"):
        precision, scale = [*_numbers(cursor, 2), 0][:2] if cursor.at_mark("(") else (10, 0)
        return f"decimal({precision}, {scale})"
    if word in ("CHAR", "CHARACTER", "VARCHAR"):
        _numbers(cursor, 1)
        warn_of_lengths()
        return "string"
    if word == "FIXED":
        return f"fixed({_numbers(cursor, 1)[0]})"
    if word == "TIME":
        if cursor.at_mark("("):
            _numbers(cursor, 1)
        return "time"
    if word in ("GEOMETRY", "GEOGRAPHY"):
        return word.lower() + (f"({cursor.parenthesized_span().text})" if cursor.at_mark("(") else "")
    if word == "TIMESTAMP" and (cursor.take_words("WITHOUT", "TIME", "ZONE")):
        return "timestamp"
    if word == "TIMESTAMP":
        cursor.take_words("WITH", "LOCAL", "TIME", "ZONE")
    if word in _SIMPLE:
        if word == "STRING" and cursor.take_words("COLLATE"):
            collation = cursor.identifier("a collation")
            if collation.upper() != "UTF8_BINARY":
                cursor.fail(f"the format has no collations but UTF8_BINARY, found {collation}", token)
        return _SIMPLE[word]
    near = get_close_matches(word, (*_SIMPLE, "ARRAY", "MAP", "STRUCT", "DECIMAL"), n=1)
    hint = _ADVICE.get(word) or (f"Did you mean {near[0].lower()}?" if near else None)
    return cursor.fail(f"there is no type {token.text!r}", token, hint)


def _nested(cursor: Cursor, word: str, depth: int) -> str:
    if word in ("ARRAY", "LIST"):
        cursor.expect_mark("<")
        element = parse_type(cursor, depth + 1)
        _close(cursor)
        return f"list<{element}>"
    if word == "MAP":
        cursor.expect_mark("<")
        key = parse_type(cursor, depth + 1)
        cursor.expect_mark(",")
        value = parse_type(cursor, depth + 1)
        _close(cursor)
        return f"map<{key}, {value}>"
    return _struct(cursor, depth)


def _struct(cursor: Cursor, depth: int) -> str:
    cursor.expect_mark("<")
    fields: list[str] = []

    def field() -> None:
        name = cursor.identifier("a field's name")
        cursor.take_mark(":")
        text = f"{quote_if_needed(name)}: {parse_type(cursor, depth + 1)}"
        if cursor.take_words("NOT", "NULL"):
            text += " not null"
        if cursor.take_words("COMMENT"):
            text += f" comment {quote_text(cursor.string())}"
        fields.append(text)

    if not cursor.at_closing():
        cursor.listed(field)
    _close(cursor)
    return f"struct<{', '.join(fields)}>"


def _close(cursor: Cursor) -> None:
    cursor.expect_closing()


def _numbers(cursor: Cursor, most: int) -> list[int]:
    numbers: list[int] = []
    start = cursor.peek()
    cursor.parenthesized(lambda: numbers.append(cursor.whole_number()))
    if len(numbers) > most:
        cursor.fail(f"at most {most} numbers are allowed here", start)
    return numbers


def parse_term(cursor: Cursor, what: str = "partition term") -> str:
    """Read a column or a transform of one: `id`, `bucket(16, id)`, `days(ts)`."""
    start = cursor.peek()
    if cursor.peek(1).is_mark("("):
        function = cursor.identifier("a transform")
        arguments: list[str] = []

        def argument() -> None:
            if cursor.peek().kind == NUMBER:
                arguments.append(str(cursor.whole_number()))
            else:
                arguments.append(quote_path(cursor.name("a column or a number")))

        cursor.parenthesized(argument)
        text = f"{function}({', '.join(arguments)})"
    else:
        text = quote_path(cursor.name(f"a {what}"))
    try:
        parse_partition_term(text)
    except FrazilError as error:
        reason = error.message.splitlines()[0].partition(": ")[2] or error.message
        cursor.fail(reason, start, error.hint)
    return text


def parse_field(cursor: Cursor) -> str:
    """Read a partition field to drop or replace: by its own name, or by its term."""
    if cursor.peek(1).is_mark("(") or cursor.peek(1).is_mark("."):
        return parse_term(cursor)
    return cursor.identifier("a partition field")


def parse_order_terms(cursor: Cursor) -> tuple[str, ...]:
    """Read sort terms, with or without parentheses around them."""
    terms: list[str] = []

    def term() -> None:
        start = cursor.peek()
        text = parse_term(cursor, "sort term")
        direction = cursor.take_any("ASC", "DESC")
        if direction is not None:
            text += f" {direction.lower()}"
        if cursor.take_words("NULLS"):
            text += f" nulls {cursor.expect_any('FIRST', 'LAST').lower()}"
        try:
            parse_sort_term(text)
        except InvalidRequestError as error:
            cursor.fail(error.message.splitlines()[0].partition(": ")[2], start, error.hint)
        terms.append(text)

    if cursor.at_mark("("):
        cursor.parenthesized(term)
    else:
        cursor.listed(term)
    return tuple(terms)


def parse_order_text(text: str) -> tuple[str, ...]:
    """Return the sort terms of a text by itself: `id ASC NULLS FIRST, days(ts) DESC NULLS LAST`."""
    cursor = Cursor(text, lambda entity, name: True)
    cursor.accept("table", ())
    terms = parse_order_terms(cursor)
    cursor.end()
    return terms


def parse_names_text(text: str) -> tuple[Name, ...]:
    """Return the columns of a text by itself: `[id, address.city]`."""
    cursor = Cursor(text, lambda entity, name: True)
    cursor.accept("table", ())
    names: list[Name] = []
    cursor.expect_mark("[")
    if not cursor.at_mark("]"):
        cursor.listed(lambda: names.append(cursor.name("a column")))
    cursor.expect_mark("]")
    cursor.end()
    return tuple(names)


def parse_properties(cursor: Cursor) -> Properties:
    """Read `(key = 'value', ...)`; keys are dotted words or strings, values strings, numbers and booleans."""
    found: dict[str, str] = {}

    def pair() -> None:
        start = cursor.peek()
        key = parse_key(cursor)
        if not cursor.take_mark("="):
            cursor.take_mark("==")
        if key in found:
            cursor.fail(f"the property {key!r} is given twice", start)
        found[key] = _property_value(cursor)

    cursor.parenthesized(pair)
    return FrozenMap(found)


def parse_keys(cursor: Cursor) -> tuple[str, ...]:
    """Read `(key, ...)`."""
    keys: list[str] = []
    cursor.parenthesized(lambda: keys.append(parse_key(cursor)))
    return tuple(keys)


def parse_key(cursor: Cursor) -> str:
    """Read a property's name."""
    if cursor.peek().kind == STRING:
        return cursor.string()
    return ".".join(cursor.name("a property's name"))


def _property_value(cursor: Cursor) -> str:
    token = cursor.peek()
    if token.kind == STRING:
        return cursor.string()
    if token.upper in ("TRUE", "FALSE"):
        return cursor.take().text.lower()
    sign = "-" if cursor.take_mark("-") else ""
    token = cursor.peek()
    if token.kind == NUMBER:
        return sign + cursor.take().text
    return cursor.fail("expected a value: text in quotes, a number, true or false")
