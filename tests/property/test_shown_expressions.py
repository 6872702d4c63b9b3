"""An expression that is shown as SQL parses to itself."""

from __future__ import annotations

import random

import pytest

from frazil.errors import FrazilError
from frazil.expr.parse import parse_expression
from frazil.expr.show_sql import show_sql
from tests.support.expression_texts import TEXTS, make_expression


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("quotes_names", [False, True])
def test_shown_expression_parses_to_itself(seed: int, quotes_names: bool) -> None:
    chance = random.Random(seed)
    for text in [*TEXTS, *(make_expression(chance, depth=4) for _ in range(400))]:
        try:
            expression = parse_expression(text)
        except FrazilError:
            continue
        shown = show_sql(expression, quotes_names=quotes_names)
        assert parse_expression(shown) == expression, shown


@pytest.mark.parametrize(
    "text",
    [
        "(a is null) <=> (b in (1, 2))",
        "not (a like 'x%') = true",
        "(a = b) = c",
        "a - (b - c)",
        "-(-(5))",
        "not not a",
        "(a or b) and (c and d) or e",
        "(a is null) is not null",
        "cast(a as decimal(9,2))::int + 1Y - 2S * 3L / 4BD % 5F",
        "case when a then b end is distinct from `from`",
    ],
)
def test_nested_tests_keep_their_brackets(text: str) -> None:
    expression = parse_expression(text)
    assert parse_expression(show_sql(expression)) == expression
