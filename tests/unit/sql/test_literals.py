from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from frazil.sql.literals import NOT_A_LITERAL, read_literal


@pytest.mark.parametrize(
    "text, expected",
    [
        ("null", None),
        ("TRUE", True),
        ("'it''s'", "it's"),
        ("'a' 'b'", "ab"),
        ("1", 1),
        ("-7L", -7),
        ("+3", 3),
        ("1.50", Decimal("1.50")),
        ("2.5BD", Decimal("2.5")),
        ("1e3", 1000.0),
        ("1.5D", 1.5),
        ("X'1fA0'", b"\x1f\xa0"),
        ("date '2024-01-02'", "2024-01-02"),
        ("array(1, 2)", [1, 2]),
        ("ARRAY()", []),
        ("map('a', 'b', 'c', 1)", {"a": "b", "c": 1}),
        ("map()", {}),
    ],
)
def test_literal_is_read(text: str, expected: Any) -> None:
    found = read_literal(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "text",
    ["1 + 1", "now()", "timestamp '2024-01-01'", "X'1'", "- 'a'", "array(1, x)", "map(1, 2)", "array(1", "", "a", "-"],
)
def test_expression_is_not_a_literal(text: str) -> None:
    assert read_literal(text) is NOT_A_LITERAL
