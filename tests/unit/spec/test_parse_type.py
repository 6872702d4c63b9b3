from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from frazil.errors import InvalidRequestError, TextSyntaxError
from frazil.spec.parse_type import MAX_TEXT_CHARS, parse_schema, parse_type
from frazil.spec.schema import MAX_NESTING_DEPTH
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
)


@pytest.mark.parametrize(
    "text, kind",
    [
        ("int", INT),
        (" INTEGER ", INT),
        ("smallint", INT),
        ("tinyint", INT),
        ("long", LONG),
        ("BIGINT", LONG),
        ("bool", BOOLEAN),
        ("real", FLOAT),
        ("float", FLOAT),
        ("double", DOUBLE),
        ("timestamp", TIMESTAMP),
        ("timestamp_ntz", TIMESTAMP),
        ("timestamptz", TIMESTAMPTZ),
        ("timestamp_ltz", TIMESTAMPTZ),
        ("void", UNKNOWN),
        ("decimal(9,2)", DecimalType(9, 2)),
        ("decimal( 9 , 2 )", DecimalType(9, 2)),
        ("numeric(9)", DecimalType(9, 0)),
        ("fixed(16)", FixedType(16)),
        ("fixed[16]", FixedType(16)),
        ("geometry", GeometryType()),
        ("geometry( EPSG:3857 )", GeometryType("EPSG:3857")),
        ("geography(srid:4326, Karney)", GeographyType("srid:4326", "karney")),
        ("geography(srid:4326)", GeographyType("srid:4326")),
        ("list<int>", ListType(1, INT)),
        ("array<int not null>", ListType(1, INT, element_required=True)),
        ("list<required int>", ListType(1, INT, element_required=True)),
        ("map<string, long>", MapType(1, STRING, 2, LONG)),
        ("map<string not null, long not null>", MapType(1, STRING, 2, LONG, value_required=True)),
        ("struct<>", StructType()),
        ("struct<a: int>", StructType((NestedField(1, "a", INT),))),
        (
            "struct<a int, `b c` string not null>",
            StructType((NestedField(1, "a", INT), NestedField(2, "b c", STRING, required=True))),
        ),
        ("struct<1: g: optional geometry (a doc)>", StructType((NestedField(1, "g", GeometryType(), False, "a doc"),))),
        (
            "struct<1: g: optional geometry(EPSG:1) (a doc)>",
            StructType((NestedField(1, "g", GeometryType("EPSG:1"), False, "a doc"),)),
        ),
        ("struct<g: geometry (EPSG:1)>", StructType((NestedField(1, "g", GeometryType("EPSG:1")),))),
        (
            "struct<7: a: required int (a doc (nested)), 9: b: optional list<int>>",
            StructType((NestedField(7, "a", INT, True, "a doc (nested)"), NestedField(9, "b", ListType(10, INT)))),
        ),
        ("struct<3: my col: optional int>", StructType((NestedField(3, "my col", INT),))),
        ("struct<3: `a:b`: optional int>", StructType((NestedField(3, "a:b", INT),))),
        ("list<list<map<int,int>>>", ListType(1, ListType(2, MapType(3, INT, 4, INT)))),
    ],
)  # fmt: skip
def test_types_are_parsed_from_text(text: str, kind: Type) -> None:
    assert parse_type(text) == kind


def test_parsed_schema_has_ids_of_a_new_table() -> None:
    schema = parse_schema(
        "id bigint not null, ts timestamptz comment 'it''s when', "
        "payload struct<a: int not null, b: list<string>>, m map<string, long>"
    )
    assert str(schema) == (
        "table {\n"
        "  1: id: required long\n"
        "  2: ts: optional timestamptz (it's when)\n"
        "  3: payload: optional struct<5: a: required int, 6: b: optional list<string>>\n"
        "  4: m: optional map<string, long>\n"
        "}"
    )
    assert schema.name_of(7) == "payload.b.element"
    assert (schema.name_of(8), schema.name_of(9)) == ("m.key", "m.value")


def test_names_may_be_quoted_and_non_ascii() -> None:
    schema = parse_schema('`select` int, "a ""b""" int, `c``d` int, größe int, `x.y` int, "not" int')
    assert [part.name for part in schema] == ["select", 'a "b"', "c`d", "größe", "x.y", "not"]


def test_keywords_can_be_names() -> None:
    schema = parse_schema("comment string comment 'c', default int default 1, required int, not int")
    assert [part.name for part in schema] == ["comment", "default", "required", "not"]


@pytest.mark.parametrize(
    "column, value",
    [
        ("c int default 5", 5),
        ("c int default -5 not null", -5),
        ("c double default 1", 1.0),
        ("c double default 1.5e3", 1500.0),
        ("c decimal(9,2) default 1.5", Decimal("1.50")),
        ("c string default ''", ""),
        ("c boolean default false", False),
        ("c date default '2017-11-16'", 17486),
        ("c timestamptz default '1970-01-01T00:00:01Z'", 10**6),
        ("c binary default X'00ff'", b"\x00\xff"),
        ("c int default null", None),
        ("c geometry default null", None),
    ],
)
def test_default_becomes_the_write_default(column: str, value: Any) -> None:
    part = parse_schema(column).fields[0]
    assert part.write_default == value
    assert type(part.write_default) is type(value)
    assert part.initial_default is None


def test_options_may_be_in_any_order() -> None:
    assert parse_schema("a int comment 'x' default 1 not null") == parse_schema("a int not null default 1 comment 'x'")
    assert parse_schema("a int null").fields[0].optional


@pytest.mark.parametrize(
    "text, reason, place",
    [
        ("", "expected a type, found the end of the text", "line 1, column 1"),
        ("strin", "there is no type 'strin'", "line 1, column 1"),
        ("list<int", "expected '>', found the end of the text", "line 1, column 9"),
        ("list<int, int>", "expected '>', found ','", "line 1, column 9"),
        ("list", "expected '<' after list, found the end", "line 1, column 5"),
        ("map<int>", "expected ',', found '>'", "line 1, column 8"),
        ("map<unknown, int>", "cannot be required", "line 1, column 5"),
        ("map<int null, int>", "the keys of a map are never null", "line 1, column 13"),
        ("list<unknown not null>", "cannot be required", "line 1, column 6"),
        ("int int", "expected the end of the text, found 'int'", "line 1, column 5"),
        ("int(3)", "the type int has no parameters", "line 1, column 4"),
        ("decimal", "needs its precision and scale", "line 1, column 1"),
        ("decimal(a)", "expected a number, found 'a'", "line 1, column 9"),
        ("decimal(39,1)", "the precision must be from 1 to 38", "line 1, column 1"),
        ("fixed", "fixed needs its length", "line 1, column 1"),
        ("fixed(3", "expected ')'", "line 1, column 8"),
        ("fixed(9999999999)", "does not fit 32 bits", "line 1, column 1"),
        ("fixed(99999999999999)", "expected a number, found", "line 1, column 7"),
        ("geometry(", "the ( is not closed", "line 1, column 9"),
        ("geometry(a, b)", "geometry has one parameter", "line 1, column 1"),
        ("geography(a, b, c)", "geography has two parameters", "line 1, column 1"),
        ("geography(a, b)", "unknown edge algorithm", "line 1, column 1"),
        ("geometry()", "a CRS is a name", "line 1, column 1"),
        ("struct<\n  a: int,\n  b: foo>", "there is no type 'foo'", "line 3, column 6"),
        ("struct<a: int,>", "expected a name, found '>'", "line 1, column 15"),
        ("struct<`` int>", "a name cannot be empty", "line 1, column 8"),
        ("struct<`a int>", "the quoted name does not end", "line 1, column 8"),
        ("struct<1: : int>", "expected a name after the id", "line 1, column 8"),
        ("struct<2147483640: a: int>", "ids above 2147483447", "line 1, column 8"),
        ("struct<a: required int not null>", "required or optional twice", "line 1"),
        ("struct<a: int not null null>", "occurs twice", "line 1, column 24"),
        ("struct<a: int not>", "expected null after not", "line 1, column 18"),
        ("struct<a: int comment x>", "expected text in 'single quotes'", "line 1, column 23"),
        ("struct<a: int comment 'x' comment 'y'>", "a second comment", "line 1, column 27"),
        ("struct<a: int default 1 default 2>", "a second default", "line 1, column 25"),
        ("struct<a: int default x>", "expected a literal", "line 1, column 23"),
        ("struct<a: int default 'x'>", "the default does not fit int: expected an int, not str", "line 1, column 23"),
        ("struct<a: unknown not null>", "cannot be required", "line 1, column 11"),
        ("struct<a: list<int> default 1>", "the default does not fit", "line 1, column 29"),
        ("struct<a: geometry default X'00'>", "must default to null", "line 1, column 28"),
        ("struct<a: variant default 1>", "must default to null", "line 1, column 27"),
        ("struct<a: struct<b: int> default 1>", "the default does not fit", "line 1, column 34"),
        ("varchar(10)", "there is no type 'varchar'", "line 1, column 1"),
        ("struct<a: int (a doc)>", "the type int has no parameters", "line 1, column 15"),
        ("struct<a: list<int> (a doc)>", "expected '>', found '('", "line 1, column 21"),
    ],
)
def test_syntax_error_is_reported_with_its_position(text: str, reason: str, place: str) -> None:
    with pytest.raises(TextSyntaxError) as caught:
        parse_type(text)
    assert reason in caught.value.message
    assert place in caught.value.message
    assert caught.value.message.splitlines()[-1].strip(" ^") == ""
    assert "^" in caught.value.message


def test_caret_points_below_the_position() -> None:
    with pytest.raises(TextSyntaxError) as caught:
        parse_schema("id bigint,\n  name strin")
    lines = caught.value.message.splitlines()
    assert lines[-2].index("strin") == lines[-1].index("^^^^^")
    assert caught.value.hint == "Did you mean string?"


@pytest.mark.parametrize("name, advice", [("varchar", "Use string"), ("datetime", "timestamptz"), ("bytes", "binary")])
def test_foreign_type_names_get_a_suggestion(name: str, advice: str) -> None:
    with pytest.raises(TextSyntaxError) as caught:
        parse_type(name)
    assert advice in str(caught.value.hint)


@pytest.mark.parametrize(
    "text", ["", "  ", "a", "a int,", ", a int", "a int b int", "(a int)", "1a int", "a int; b int"]
)
def test_malformed_column_lists_are_refused(text: str) -> None:
    with pytest.raises(TextSyntaxError):
        parse_schema(text)


def test_duplicate_column_names_or_ids_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="two fields are named 'a'"):
        parse_schema("a int, a long")
    with pytest.raises(InvalidRequestError, match="share the id 1"):
        parse_schema("1: a: int, 1: b: int")


def test_nesting_is_bounded_without_recursion_errors() -> None:
    deepest = "list<" * MAX_NESTING_DEPTH + "int" + ">" * MAX_NESTING_DEPTH
    assert str(parse_type(deepest)) == deepest
    for levels in (MAX_NESTING_DEPTH + 1, 100_000):
        with pytest.raises(TextSyntaxError, match=f"nested deeper than {MAX_NESTING_DEPTH} levels"):
            parse_type("struct<a: " * levels + "int" + ">" * levels)


def test_oversized_text_is_refused_quickly() -> None:
    with pytest.raises(InvalidRequestError, match="characters, more than"):
        parse_type("x" * (MAX_TEXT_CHARS + 1))


def test_hidden_partition_type_names_match_the_specification() -> None:
    assert parse_type("date") == DATE
    assert parse_type("binary") == BINARY
