"""Types and schemas from text: `decimal(9,2)`, `id bigint not null, points list<struct<x: double>>`.

What users write in `create_table` and `add_column`. Type names are the specification's ("Schemas and Data Types");
Spark's are accepted where they mean one thing. `str(type)` is read back too, with the field ids it shows. Fields
whose ids the text does not give are numbered as in a new table (`spec/fresh_ids.py`).

    columns    column, column, ...
    column     name type [not null | null] [default literal] [comment 'text']      in any order after the type
    struct     struct<name: type ..., ...>  or  struct<1: name: required type (doc), ...>
    list, map  list<type [not null]>, array<...>, map<type, type [not null]>
    name       a word, or anything in `backticks` or "double quotes" (doubled to stand for themselves)
    literal    null, true, false, a number, 'text' (dates, times and uuids too), X'hexadecimal'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from difflib import get_close_matches
from itertools import count
from typing import Any, NoReturn

from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.spec.defaults import NULL_DEFAULT_TYPES
from frazil.spec.fresh_ids import reassign_ids
from frazil.spec.schema import MAX_NESTING_DEPTH, Schema, walk_fields
from frazil.spec.text_place import syntax_error
from frazil.spec.types import (
    BOOLEAN,
    DEFAULT_EDGE_ALGORITHM,
    INT,
    LONG,
    MAX_FIELD_ID,
    SIMPLE_TYPES,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    DecimalType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    NestedType,
    StructType,
    Type,
    UnknownType,
)
from frazil.spec.values import to_internal

MAX_TEXT_CHARS = 4_000_000

TYPE_NAMES: dict[str, Type] = {
    **SIMPLE_TYPES,
    "bool": BOOLEAN,
    "integer": INT,
    "smallint": INT,
    "short": INT,
    "tinyint": INT,
    "byte": INT,
    "bigint": LONG,
    "real": FloatType(),
    "timestamp_ntz": TIMESTAMP,
    "timestamp_ltz": TIMESTAMPTZ,
    "void": UNKNOWN,
}
"""Types without parameters by the names the text may use."""

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

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[^\W\d]\w*")
_WHOLE_NUMBER = re.compile(r"\d{1,10}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d{1,60}(?:\.\d{0,60})?|\.\d{1,60})(?:[eE][+-]?\d{1,4})?", re.ASCII)
_FIELD_ID = re.compile(r"(\d{1,10})\s*:([^:]*):", re.ASCII)
_QUOTED = {
    '"': re.compile(r'"((?:[^"]|"")*)"'),
    "`": re.compile(r"`((?:[^`]|``)*)`"),
    "'": re.compile(r"'((?:[^']|'')*)'"),
}
_HEX = re.compile(r"[xX]'((?:[0-9a-fA-F]{2})*)'")


def parse_type(text: str) -> Type:
    """Return the type that text names."""
    parser = _Parser(text, "type")
    kind = parser.type_at(depth=0)
    parser.expect_end()
    return _number_type(kind)


def parse_schema(text: str) -> Schema:
    """Return the schema that a list of columns describes."""
    parser = _Parser(text, "schema")
    fields = [parser.field(depth=1)]
    while parser.take(","):
        fields.append(parser.field(depth=1))
    parser.expect_end()
    numbered = _number_type(StructType(tuple(fields)))
    assert isinstance(numbered, StructType)
    return Schema(numbered.fields)


def _number_type(kind: Type) -> Type:
    """Return a type with ids in place of the negative ones that stand for "not given"."""
    if not isinstance(kind, NestedType):
        return kind
    given = [part.field_id for part, _, _ in walk_fields(kind) if part.field_id >= 0]
    fresh = count(max(given, default=0) + 1)
    return reassign_ids(kind, lambda old_id: next(fresh) if old_id < 0 else old_id)


def _advice(word: str) -> str | None:
    """Return what to write in place of a name that is no type."""
    near = get_close_matches(word, (*TYPE_NAMES, *_NAMES_WITH_PARTS), n=1)
    return _ADVICE.get(word) or (f"Did you mean {near[0]}?" if near else None)


class _Parser:
    """A place in a text, and one method for each rule of the grammar."""

    def __init__(self, text: str, what: str) -> None:
        if len(text) > MAX_TEXT_CHARS:
            raise InvalidRequestError(
                f"Cannot parse the {what}: the text has {len(text)} characters, more than {MAX_TEXT_CHARS}"
            )
        self._text = text
        self._what = what
        self._at = 0
        self._unnumbered = 0
        self._has_ids = False
        self._skip_space()

    # --- the grammar

    def field(self, depth: int) -> NestedField:
        match = _FIELD_ID.match(self._text, self._at)
        if match is not None:
            self._has_ids = True
            field_id, name = self._numbered_name(match)
        else:
            field_id, name = self._no_id(), self.name()
            self.take(":")
        prefix = self._requirement()
        start = self._at
        kind = self.type_at(depth)
        required, write_default, doc = self._options(kind)
        if prefix is not None and required is not None:
            self.fail(f"{name!r} is said to be required or optional twice")
        required = prefix if required is None else required
        self._check_unknown(kind, start, required=required is True)
        return NestedField(field_id, name, kind, required is True, doc, None, write_default)

    def type_at(self, depth: int) -> Type:
        start = self._at
        word = self._word()
        if word is None:
            self.fail("expected a type")
        if word in ("struct", "list", "array", "map") and self.peek("<"):
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

    def _nested(self, word: str, depth: int) -> Type:
        self.expect("<")
        if word == "struct":
            fields: list[NestedField] = []
            if not self.peek(">"):
                fields.append(self.field(depth))
                while self.take(","):
                    fields.append(self.field(depth))
            self.expect(">")
            return StructType(tuple(fields))
        if word == "map":
            start = self._at
            key_id, value_id = self._no_id(), self._no_id()
            key = self.type_at(depth)
            if self._nullability() is False:
                self.fail("the keys of a map are never null")
            self._check_unknown(key, start, required=True)
            self.expect(",")
            value, required = self._part(depth)
            self.expect(">")
            return MapType(key_id, key, value_id, value, required)
        element_id = self._no_id()
        element, required = self._part(depth)
        self.expect(">")
        return ListType(element_id, element, required)

    def _part(self, depth: int) -> tuple[Type, bool]:
        """Read the element of a list or the value of a map."""
        prefix = self._requirement()
        start = self._at
        kind = self.type_at(depth)
        suffix = self._nullability()
        required = (prefix if suffix is None else suffix) is True
        self._check_unknown(kind, start, required=required)
        return kind, required

    def _options(self, kind: Type) -> tuple[bool | None, Any, str | None]:
        required: bool | None = None
        default: Any = None
        doc: str | None = None
        has_default = False
        while True:
            start = self._at
            nullability = self._nullability()
            if nullability is not None:
                if required is not None:
                    self.fail("null or not null is given twice", start)
                required = nullability
            elif self._keyword("default"):
                if has_default:
                    self.fail("a second default", start)
                has_default, default = True, self._default(kind)
            elif self._keyword("comment"):
                doc = self._once(doc, start, self._string())
            elif self._has_ids and self.peek("("):
                doc = self._once(doc, start, self._parenthesized())
            else:
                return required, default, doc

    def _once(self, doc: str | None, start: int, text: str) -> str:
        if doc is not None:
            self.fail("a second comment", start)
        return text

    def _requirement(self) -> bool | None:
        return True if self._keyword("required") else False if self._keyword("optional") else None

    def _nullability(self) -> bool | None:
        if self._keyword("not"):
            if not self._keyword("null"):
                self.fail("expected null after not")
            return True
        return False if self._keyword("null") else None

    def _check_unknown(self, kind: Type, start: int, *, required: bool) -> None:
        if required and isinstance(kind, UnknownType):
            self.fail("values of type unknown are always null, so the field cannot be required", start)

    # --- types with parameters

    def _decimal(self, start: int) -> Type:
        if not self.take("("):
            self.fail("a decimal needs its precision and scale", start, "Write decimal(9, 2).")
        precision = self._whole_number()
        scale = self._whole_number() if self.take(",") else 0
        self.expect(")")
        if scale > precision:
            self.fail("the scale must be from 0 to the precision", start)
        return self._made(lambda: DecimalType(precision, scale), start)

    def _fixed(self, start: int) -> Type:
        closing = ")" if self.take("(") else "]" if self.take("[") else None
        if closing is None:
            self.fail("fixed needs its length", start, "Write fixed(16).")
        length = self._whole_number()
        self.expect(closing)
        if length > 2**31 - 1:
            self.fail("the length does not fit 32 bits", start)
        return FixedType(length)

    def _geospatial(self, word: str, start: int) -> Type:
        if not self._has_parameters():
            return GeometryType() if word == "geometry" else GeographyType()
        parameters = [one.strip() for one in self._parenthesized().split(",")]
        if word == "geometry":
            if len(parameters) > 1:
                self.fail("geometry has one parameter, the CRS", start)
            return self._made(lambda: GeometryType(parameters[0]), start)
        if len(parameters) > 2:
            self.fail("geography has two parameters, the CRS and the edge algorithm", start)
        algorithm: Any = parameters[1].lower() if len(parameters) == 2 else DEFAULT_EDGE_ALGORITHM
        return self._made(lambda: GeographyType(parameters[0], algorithm), start)

    def _has_parameters(self) -> bool:
        """Return whether a parenthesis opens parameters; after a space, in the form with ids, it opens a doc."""
        return self.peek("(") and not (self._has_ids and self._text[self._at - 1].isspace())

    def _made(self, make: Callable[[], Type], start: int) -> Type:
        try:
            return make()
        except InvalidRequestError as error:
            return self.fail(error.message.partition(": ")[2], start, error.hint)

    # --- names, literals

    def name(self) -> str:
        quote = self._text[self._at : self._at + 1]
        if quote in ("`", '"'):
            start = self._at
            name = self._quoted(quote)
            if name == "":
                self.fail("a name cannot be empty", start)
            return name
        match = _WORD.match(self._text, self._at)
        if match is None:
            self.fail("expected a name", hint="Names that are not words go in `backticks`.")
        self._advance(match)
        return match[0]

    def _numbered_name(self, match: re.Match[str]) -> tuple[int, str]:
        field_id, name = int(match[1]), match[2].strip()
        if field_id > MAX_FIELD_ID:
            self.fail(f"ids above {MAX_FIELD_ID} are for metadata columns")
        if name[:1] in ("`", '"'):
            self._at = match.start(2)
            self._skip_space()
            name = self.name()
            self.expect(":")
        elif name == "":
            self.fail("expected a name after the id")
        else:
            self._advance(match)
        return field_id, name

    def _default(self, kind: Type) -> Any:
        start = self._at
        literal = self._literal()
        if literal is not None and isinstance(kind, NULL_DEFAULT_TYPES):
            self.fail(f"fields of type {kind} must default to null", start)
        try:
            return to_internal(literal, kind)
        except SchemaMismatchError as error:
            self.fail(f"the default does not fit {kind}: {error.message.partition(': ')[2]}", start, error.hint)

    def _literal(self) -> Any:
        if (match := _HEX.match(self._text, self._at)) is not None:
            self._advance(match)
            return bytes.fromhex(match[1])
        if self.peek("'"):
            return self._quoted("'")
        if (match := _NUMBER.match(self._text, self._at)) is not None:
            self._advance(match)
            return int(match[0]) if match[0].lstrip("+-").isdigit() else Decimal(match[0])
        for word, value in (("null", None), ("true", True), ("false", False)):
            if self._keyword(word):
                return value
        return self.fail("expected a literal: null, true, false, a number, 'text' or X'hexadecimal'")

    def _string(self) -> str:
        if not self.peek("'"):
            self.fail("expected text in 'single quotes'")
        return self._quoted("'")

    def _quoted(self, quote: str) -> str:
        match = _QUOTED[quote].match(self._text, self._at)
        if match is None:
            self.fail(f"the {quote} is not closed")
        self._advance(match)
        return match[1].replace(quote * 2, quote)

    def _parenthesized(self) -> str:
        """Read text in balanced parentheses, as it is."""
        start, depth = self._at, 0
        for at in range(start, len(self._text)):
            char = self._text[at]
            depth += (char == "(") - (char == ")")
            if depth == 0:
                self._at = at + 1
                self._skip_space()
                return self._text[start + 1 : at]
        return self.fail("the ( is not closed", start)

    def _whole_number(self) -> int:
        match = _WHOLE_NUMBER.match(self._text, self._at)
        if match is None:
            self.fail("expected a number")
        self._advance(match)
        return int(match[0])

    def _no_id(self) -> int:
        self._unnumbered -= 1
        return self._unnumbered

    # --- the text

    def _word(self) -> str | None:
        match = _WORD.match(self._text, self._at)
        if match is None:
            return None
        self._advance(match)
        return match[0].lower()

    def _keyword(self, word: str) -> bool:
        match = _WORD.match(self._text, self._at)
        if match is None or match[0].lower() != word:
            return False
        self._advance(match)
        return True

    def peek(self, symbol: str) -> bool:
        return self._text.startswith(symbol, self._at)

    def take(self, symbol: str) -> bool:
        if not self.peek(symbol):
            return False
        self._at += len(symbol)
        self._skip_space()
        return True

    def expect(self, symbol: str) -> None:
        if not self.take(symbol):
            self.fail(f"expected {symbol!r}")

    def expect_end(self) -> None:
        if self._at < len(self._text):
            self.fail("expected the end of the text")

    def _advance(self, match: re.Match[str]) -> None:
        self._at = match.end()
        self._skip_space()

    def _skip_space(self) -> None:
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()

    def fail(self, reason: str, at: int | None = None, hint: str | None = None) -> NoReturn:
        """Raise the error for a place in the text, the current one unless another is given."""
        place = self._at if at is None else at
        found = self._found_text(place)
        if at is None:
            reason += f", found {found[:60]!r}" if found else ", found the end of the text"
        raise syntax_error(f"the {self._what}", self._text, place, reason, length=len(found), hint=hint)

    def _found_text(self, place: int) -> str:
        match = _WORD.match(self._text, place) or _WHOLE_NUMBER.match(self._text, place)
        return match[0] if match is not None else self._text[place : place + 1].strip()
