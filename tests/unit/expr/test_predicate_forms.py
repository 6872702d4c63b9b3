"""Predicates as JSON and as text for logs."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.errors import InvalidRequestError
from frazil.expr.bind import bind
from frazil.expr.extract import parse_predicate
from frazil.expr.predicate_json import MAX_DEPTH, decode_predicate, encode_predicate
from frazil.expr.predicates import any_of, equal
from frazil.expr.sanitize import sanitize
from frazil.spec.schema import Schema
from frazil.spec.types import DATE, INT, STRING, NestedField

SCHEMA = Schema((NestedField(1, "id", INT), NestedField(2, "name", STRING), NestedField(3, "d", DATE)))

FORMS = [
    ("true", True),
    ("id is null", {"type": "is-null", "term": "id"}),
    ("id = 5", {"type": "eq", "term": "id", "value": 5}),
    ("id in (1, 2)", {"type": "in", "term": "id", "values": [1, 2]}),
    (
        "system.bucket(16, id) = 3",
        {"type": "eq", "term": {"type": "transform", "transform": "bucket[16]", "term": "id"}, "value": 3},
    ),
    ("name like 'a%'", {"type": "starts-with", "term": "name", "value": "a"}),
    (
        "id = 1 and name = 'a'",
        {
            "type": "and",
            "left": {"type": "eq", "term": "id", "value": 1},
            "right": {"type": "eq", "term": "name", "value": "a"},
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "encoded"), FORMS, ids=[text for text, _ in FORMS])
def test_json_of_the_rest_protocol_round_trips(text: str, encoded: Any) -> None:
    predicate = bind(SCHEMA, parse_predicate(text))
    assert encode_predicate(predicate) == encoded
    assert bind(SCHEMA, decode_predicate(encoded)) == predicate


NEW_FORMS = [
    ({"type": "true"}, "true"),
    ({"type": "literal", "value": False}, "false"),
    ({"type": "is-null", "child": {"type": "reference", "name": "id"}}, "id is null"),
    ({"type": "is-null", "child": {"type": "reference", "id": 1}}, "id is null"),
    ({"type": "lt", "left": {"type": "reference", "name": "id"}, "right": {"type": "literal", "value": 3}}, "id < 3"),
    (
        {
            "type": "in",
            "child": {"type": "reference", "name": "id"},
            "values": {"type": "literals", "values": [1, 2], "data-type": "int"},
        },
        "id in (1, 2)",
    ),
    (
        {
            "type": "eq",
            "left": {"type": "apply", "function": "bucket", "arguments": [16, {"type": "reference", "name": "id"}]},
            "right": 3,
        },
        "bucket(16, id) = 3",
    ),
    (
        {
            "type": "eq",
            "left": {
                "type": "apply",
                "function": {"catalog": "iceberg_functions", "identifier": ["day"]},
                "arguments": [{"type": "reference", "name": "d"}],
            },
            "right": "2024-01-01",
        },
        "day(d) = 19723",
    ),
    ({"type": "not", "child": {"type": "eq", "term": "id", "value": 1}}, "not (id = 1)"),
    ({"type": "NOT_EQ", "term": "id", "value": 1}, "id != 1"),
]


@pytest.mark.parametrize(("encoded", "text"), NEW_FORMS, ids=[text for _, text in NEW_FORMS])
def test_both_json_forms_are_read(encoded: Any, text: str) -> None:
    assert str(decode_predicate(encoded, SCHEMA)) == text


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        (5, "expected an object"),
        ({"type": "eq"}, "'left' is missing"),
        ({"type": "and", "left": True}, "'right' is missing"),
        ({"type": "nope", "term": "id"}, "unknown type"),
        ({"type": "eq", "term": "id"}, "'right' is missing"),
        ({"type": "eq", "term": "id", "value": None}, "expected a literal"),
        ({"type": "in", "term": "id", "values": 5}, "list of literals"),
        ({"type": "eq", "term": {"type": "what"}, "value": 5}, "column or a transform"),
        ({"type": "is-null", "child": {"type": "reference", "id": 1}}, "needs a schema"),
    ],
)
def test_invalid_json_is_refused(encoded: Any, reason: str) -> None:
    with pytest.raises(InvalidRequestError, match=reason):
        decode_predicate(encoded)


def test_deep_json_is_refused() -> None:
    nested: Any = True
    for _ in range(MAX_DEPTH + 2):
        nested = {"type": "not", "child": nested}
    with pytest.raises(InvalidRequestError, match="nested deeper"):
        decode_predicate(nested)


def test_long_chain_becomes_a_shallow_tree() -> None:
    chain = any_of(*(equal("id", at) for at in range(5000)))
    assert decode_predicate(encode_predicate(chain)) == chain


def test_bound_literals_are_written_in_the_form_of_their_type() -> None:
    bound = bind(SCHEMA, parse_predicate("d = '2024-01-01'"))
    assert encode_predicate(bound) == {"type": "eq", "term": "d", "value": "2024-01-01"}


def test_type_dependent_text_has_no_json_form() -> None:
    with pytest.raises(InvalidRequestError, match="depends on the column's type"):
        encode_predicate(parse_predicate("id > 5"))


SANITIZED = [
    ("id > 1234", "id > (4-digit-int)"),
    ("d = '2024-01-01'", "d = (date)"),
    ("id in (1, 2, 3, 4, 5)", "id in ((1-digit-int), (1-digit-int), (1-digit-int), ... (5 values))"),
    ("d = date '2024-01-01'", "d = (date)"),
    ("id = 1 or (id = 22 and d is null)", "id = (1-digit-int) or (id = (2-digit-int) and d is null)"),
]


@pytest.mark.parametrize(("text", "shown"), SANITIZED, ids=[text for text, _ in SANITIZED])
def test_sanitized_text_contains_no_literal(text: str, shown: str) -> None:
    assert sanitize(parse_predicate(text)) == shown
    assert sanitize(bind(SCHEMA, parse_predicate(text))) == shown


def test_equal_text_is_recognisable_as_equal_when_sanitized() -> None:
    assert sanitize(parse_predicate("name = 'Smith'")) == sanitize(parse_predicate("name = 'Smith'"))
    assert sanitize(parse_predicate("name = 'Smith'")) != sanitize(parse_predicate("name = 'Jones'"))
