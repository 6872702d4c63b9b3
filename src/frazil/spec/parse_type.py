"""Parser of types and schemas: `decimal(9,2)`, `id bigint not null, points list<struct<x: double>>`.

It parses the text that users pass to `create_table` and `add_column`. Type names are those of the specification
("Schemas and Data Types"); Spark names are accepted if they are unambiguous. `str(type)` can be parsed too, with its
field ids. Fields without ids in the text are numbered as in a new table (`spec/fresh_ids.py`).

    columns    column, column, ...
    column     name type [not null | null] [default literal] [comment 'text']      in any order after the type
    struct     struct<name: type ..., ...>  or  struct<1: name: required type (doc), ...>
    list, map  list<type [not null]>, array<...>, map<type, type [not null]>
    name       a word, or anything in `backticks` or "double quotes" (doubled to escape them)
    text       as in Spark SQL: quotes are doubled, and a backslash escapes
    literal    null, true, false, a number, 'text' (dates, times and uuids too), X'hexadecimal'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from difflib import get_close_matches
from itertools import count
from typing import Any

from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.spec import types as ft
from frazil.spec.defaults import NULL_DEFAULT_TYPES
from frazil.spec.fresh_ids import reassign_ids
from frazil.spec.schema import MAX_NESTING_DEPTH, Schema, walk_fields
from frazil.spec.values import to_internal
from frazil.text.literals import read_hex
from frazil.text.token_cursor import TokenCursor
from frazil.text.tokens import END, NUMBER, QUOTED, STRING, WORD, Token, cut_tokens

MAX_TEXT_CHARS = 4_000_000

TYPE_NAMES: dict[str, ft.Type] = {
    **ft.SIMPLE_TYPES,
    "bool": ft.BOOLEAN,
    "integer": ft.INT,
    "smallint": ft.INT,
    "short": ft.INT,
    "tinyint": ft.INT,
    "byte": ft.INT,
    "bigint": ft.LONG,
    "real": ft.FloatType(),
    "timestamp_ntz": ft.TIMESTAMP,
    "timestamp_ltz": ft.TIMESTAMPTZ,
    "void": ft.UNKNOWN,
}
"""Types without parameters, by the names that the text may use."""

_NAMES_WITH_PARTS = ("decimal", "fixed", "geometry", "geography", "struct", "list", "map")

_ADVICE = {
    "varchar": "Use string: the format has no length limit on text.",
    "char": "Use string: the format has no length limit on text.",
    "text": "Use string.",
    "bytes": "Use binary, or fixed(n).",
    "bytea": "Use binary.",
    "blob": "Use binary.",
    "datetime": "Use timestamp (no zone) or timestamptz.",
    "number": "Use decimal(precision, scale).",
    "json": "Use variant (format version 3) or string.",
}

_NUMBER = re.compile(r"[+-]?(?:\d{1,60}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][+-]?\d{1,4})?", re.ASCII)
_FIELD_ID = re.compile(r"(\d{1,10})\s*:([^:]*):", re.ASCII)
_CONSTANTS = {"null": None, "true": True, "false": False}


def parse_type(text: str) -> ft.Type:
    """Parse a type."""
    parser = _Parser(text, "type")
    data_type = parser.type_at(depth=0)
    parser.expect_end()
    return _number_type(data_type)


def parse_schema(text: str) -> Schema:
    """Parse a list of columns as a schema."""
    parser = _Parser(text, "schema")
    fields = [parser.field(depth=1)]
    while parser.take_mark(","):
        fields.append(parser.field(depth=1))
    parser.expect_end()
    numbered = _number_type(ft.StructType(tuple(fields)))
    assert isinstance(numbered, ft.StructType)
    return Schema(numbered.fields)


def _number_type(data_type: ft.Type) -> ft.Type:
    """Return a type with ids in place of the negative placeholders."""
    if not isinstance(data_type, ft.NestedType):
        return data_type
    explicit_ids = [field.field_id for field, _, _ in walk_fields(data_type) if field.field_id >= 0]
    fresh = count(max(explicit_ids, default=0) + 1)
    return reassign_ids(data_type, lambda old_id: next(fresh) if old_id < 0 else old_id)


def _advice(word: str) -> str | None:
    """Return a suggestion for an invalid type name."""
    near = get_close_matches(word, (*TYPE_NAMES, *_NAMES_WITH_PARTS), n=1)
    return _ADVICE.get(word) or (f"Did you mean {near[0]}?" if near else None)


class _Parser(TokenCursor):
    """A recursive descent parser, with one method for each rule of the grammar."""

    def __init__(self, text: str, what: str) -> None:
        if len(text) > MAX_TEXT_CHARS:
            raise InvalidRequestError(
                f"Cannot parse the {what}: the text has {len(text)} characters, more than {MAX_TEXT_CHARS}"
            )
        super().__init__(text, f"the {what}", cut_tokens(text))
        self._unnumbered = 0
        self._has_ids = False

    # --- the grammar

    def field(self, depth: int) -> ft.NestedField:
        match = _FIELD_ID.match(self.text, self.peek().start)
        if match is not None:
            self._has_ids = True
            field_id, name = self._numbered_name(match)
        else:
            field_id, name = self._no_id(), self.name()
            self.take_mark(":")
        prefix = self._requirement()
        start = self.peek()
        data_type = self.type_at(depth)
        required, write_default, doc = self._options(data_type)
        if prefix is not None and required is not None:
            self.fail(f"{name!r} is declared required or optional twice")
        required = prefix if required is None else required
        self._check_unknown(data_type, start, required=required is True)
        return ft.NestedField(field_id, name, data_type, required is True, doc, None, write_default)

    def type_at(self, depth: int) -> ft.Type:
        start = self.peek()
        if start.kind != WORD:
            self.fail("expected a type")
        word = self.take().word
        if word in ("struct", "list", "array", "map") and self.peek().text in ("<", "<>"):
            if depth >= MAX_NESTING_DEPTH:
                self.fail(f"types are nested deeper than {MAX_NESTING_DEPTH} levels", start)
            return self._nested(word, depth + 1)
        if word in ("decimal", "dec", "numeric"):
            return self._decimal(start)
        if word == "fixed":
            return self._fixed(start)
        if word in ("geometry", "geography"):
            return self._geospatial(word, start)
        if word in TYPE_NAMES and not self._has_parameters():
            return TYPE_NAMES[word]
        if word in ("struct", "list", "array", "map"):
            self.fail(f"expected '<' after {word}")
        if word in TYPE_NAMES:
            self.fail(f"the type {word} has no parameters")
        return self.fail(f"there is no type {word!r}", start, _advice(word))

    def _nested(self, word: str, depth: int) -> ft.Type:
        if word == "struct" and self.take_mark("<>"):
            return ft.StructType(())
        self.expect_mark("<")
        if word == "struct":
            fields: list[ft.NestedField] = []
            if not self.at_closing():
                fields.append(self.field(depth))
                while self.take_mark(","):
                    fields.append(self.field(depth))
            self.expect_closing()
            return ft.StructType(tuple(fields))
        if word == "map":
            start = self.peek()
            key_id, value_id = self._no_id(), self._no_id()
            key = self.type_at(depth)
            if self._nullability() is False:
                self.fail("the keys of a map are never null")
            self._check_unknown(key, start, required=True)
            self.expect_mark(",")
            value, required = self._part(depth)
            self.expect_closing()
            return ft.MapType(key_id, key, value_id, value, required)
        element_id = self._no_id()
        element, required = self._part(depth)
        self.expect_closing()
        return ft.ListType(element_id, element, required)

    def _part(self, depth: int) -> tuple[ft.Type, bool]:
        """Parse the element of a list or the value of a map."""
        prefix = self._requirement()
        start = self.peek()
        data_type = self.type_at(depth)
        suffix = self._nullability()
        required = (prefix if suffix is None else suffix) is True
        self._check_unknown(data_type, start, required=required)
        return data_type, required

    def _options(self, data_type: ft.Type) -> tuple[bool | None, Any, str | None]:
        required: bool | None = None
        default: Any = None
        doc: str | None = None
        has_default = False
        while True:
            start = self.peek()
            nullability = self._nullability()
            if nullability is not None:
                if required is not None:
                    self.fail("null or not null occurs twice", start)
                required = nullability
            elif self.take_words("default"):
                if has_default:
                    self.fail("a second default", start)
                has_default, default = True, self._default(data_type)
            elif self.take_words("comment"):
                doc = self._once(doc, start, self._string())
            elif self._has_ids and self.at_mark("("):
                doc = self._once(doc, start, self._parenthesized())
            else:
                return required, default, doc

    def _once(self, doc: str | None, start: Token, text: str) -> str:
        if doc is not None:
            self.fail("a second comment", start)
        return text

    def _requirement(self) -> bool | None:
        return True if self.take_words("required") else False if self.take_words("optional") else None

    def _nullability(self) -> bool | None:
        if self.take_words("not"):
            if not self.take_words("null"):
                self.fail("expected null after not")
            return True
        return False if self.take_words("null") else None

    def _check_unknown(self, data_type: ft.Type, start: Token, *, required: bool) -> None:
        if required and isinstance(data_type, ft.UnknownType):
            self.fail("values of type unknown are always null, so the field cannot be required", start)

    # --- types with parameters

    def _decimal(self, start: Token) -> ft.Type:
        if not self.take_mark("("):
            self.fail("a decimal needs its precision and scale", start, "Write decimal(9, 2).")
        precision = self._whole_number()
        scale = self._whole_number() if self.take_mark(",") else 0
        self.expect_mark(")")
        if scale > precision:
            self.fail("the scale must be from 0 to the precision", start)
        return self._build(lambda: ft.DecimalType(precision, scale), start)

    def _fixed(self, start: Token) -> ft.Type:
        closing = ")" if self.take_mark("(") else "]" if self.take_mark("[") else None
        if closing is None:
            self.fail("fixed needs its length", start, "Write fixed(16).")
        length = self._whole_number()
        self.expect_mark(closing)
        if length > 2**31 - 1:
            self.fail("the length does not fit 32 bits", start)
        return ft.FixedType(length)

    def _geospatial(self, word: str, start: Token) -> ft.Type:
        if not self._has_parameters():
            return ft.GeometryType() if word == "geometry" else ft.GeographyType()
        parameters = [piece.strip() for piece in self._parenthesized().split(",")]
        if word == "geometry":
            if len(parameters) > 1:
                self.fail("geometry has one parameter, the CRS", start)
            return self._build(lambda: ft.GeometryType(parameters[0]), start)
        if len(parameters) > 2:
            self.fail("geography has two parameters, the CRS and the edge algorithm", start)
        algorithm: Any = parameters[1].lower() if len(parameters) == 2 else ft.DEFAULT_EDGE_ALGORITHM
        return self._build(lambda: ft.GeographyType(parameters[0], algorithm), start)

    def _has_parameters(self) -> bool:
        """Return whether a parenthesis opens parameters; in text with ids, one after a space opens a doc."""
        return self.at_mark("(") and not (self._has_ids and self.text[self.peek().start - 1].isspace())

    def _build(self, create: Callable[[], ft.Type], start: Token) -> ft.Type:
        try:
            return create()
        except InvalidRequestError as error:
            return self.fail(error.message.partition(": ")[2], start, error.hint)

    # --- names, literals

    def name(self) -> str:
        token = self.peek()
        is_quoted = token.kind == QUOTED or (token.kind == STRING and token.text[0] == '"')
        if not is_quoted and (token.kind != WORD or token.text[0].isdigit()):
            self.fail("expected a name", hint="Names that are not words go in `backticks`.")
        if token.value == "":
            self.fail("a name cannot be empty", token)
        return self.take().value

    def _numbered_name(self, match: re.Match[str]) -> tuple[int, str]:
        field_id, name = int(match[1]), match[2].strip()
        if field_id > ft.MAX_FIELD_ID:
            self.fail(f"ids above {ft.MAX_FIELD_ID} are for metadata columns")
        if name[:1] in ("`", '"'):
            self._read_from(match.start(2))
            name = self.name()
            self.expect_mark(":")
        elif name == "":
            self.fail("expected a name after the id")
        else:
            self._read_from(match.end())
        return field_id, name

    def _default(self, data_type: ft.Type) -> Any:
        start = self.peek()
        literal = self._literal()
        if literal is not None and isinstance(data_type, NULL_DEFAULT_TYPES):
            self.fail(f"fields of type {data_type} must default to null", start)
        try:
            return to_internal(literal, data_type)
        except SchemaMismatchError as error:
            self.fail(f"the default does not fit {data_type}: {error.message.partition(': ')[2]}", start, error.hint)

    def _literal(self) -> Any:
        token = self.peek()
        if token.word == "x" and self._at_text(1):
            self.take()
            return read_hex(self.take().value)
        if self._at_text():
            return self.take().value
        if (match := _NUMBER.match(self.text, token.start)) is not None:
            self._read_from(match.end())
            return int(match[0]) if match[0].lstrip("+-").isdigit() else Decimal(match[0])
        if token.word in _CONSTANTS:
            return _CONSTANTS[self.take().word]
        return self.fail("expected a literal: null, true, false, a number, 'text' or X'hexadecimal'")

    def _string(self) -> str:
        if not self._at_text():
            self.fail("expected text in 'single quotes'")
        return self.take().value

    def _at_text(self, ahead: int = 0) -> bool:
        """Return whether text follows; in double quotes it is a name."""
        token = self.peek(ahead)
        return token.kind == STRING and token.text[0] != '"'

    def _parenthesized(self) -> str:
        """Return the raw text in balanced parentheses."""
        opening, depth = self.peek(), 0
        for offset in range(opening.start, len(self.text)):
            char = self.text[offset]
            depth += (char == "(") - (char == ")")
            if depth == 0:
                self._read_from(offset + 1)
                return self.text[opening.end : offset]
        return self.fail("the ( is not closed", opening)

    def _whole_number(self) -> int:
        if self.peek().kind != NUMBER or not self.peek().text.isdigit() or len(self.peek().text) > 10:
            self.fail("expected a number")
        return int(self.take().text)

    def _no_id(self) -> int:
        self._unnumbered -= 1
        return self._unnumbered

    # --- the text

    def expect_end(self) -> None:
        if self.peek().kind != END:
            self.fail("expected the end of the text")

    def _read_from(self, offset: int) -> None:
        """Continue at an offset of the text, after raw text."""
        self.read_on(cut_tokens(self.text, offset))
