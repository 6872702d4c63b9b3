"""`docs/options.md` says what the code does, and every row of it names a test that is about it."""

from __future__ import annotations

import re

import pytest

from frazil.jar.surface import PROCEDURES
from frazil.maintenance.procedures import PROCEDURES as OURS
from tests.architecture.options_page import PAGE, REWRITES, all_rows, answer_of, names_of, read_shown, shows_something
from tests.architecture.options_page import test_text as text_of
from tools.options_markdown import options_markdown

MOST_WITHOUT = 0
"""So many rows have no test yet; the number may fall and not rise."""


def test_the_page_is_what_the_lists_say() -> None:
    assert PAGE.read_text() == options_markdown(read_shown(), REWRITES), (
        "run python -m tests.architecture.options_page --write"
    )


def test_tests_are_of_rows_that_there_are_and_few_rows_have_none() -> None:
    shown, rows = set(read_shown()), all_rows()
    assert not shown - set(rows)
    without = [one for one in rows if one not in shown]
    assert len(without) <= MOST_WITHOUT, without


@pytest.mark.parametrize("row", sorted(read_shown().items()), ids=lambda row: " ".join(row[0]))
def test_the_test_of_a_row_is_there_and_names_it(row: tuple[tuple[str, str], str]) -> None:
    (section, name), test = row
    text = text_of(test)
    assert text is not None, f"there is no {test}"
    if section == "procedure":
        procedure, _, argument = name.rstrip(")").partition("(")
        assert re.search(rf"\b{procedure}\b", text), test
        # The argument by its name, in Python or in SQL.
        assert re.search(rf"\b{argument}\"?\s*(=>|=|:)", text), test
        return
    assert any(re.search(rf"(?<![\w-]){re.escape(one)}", text) for one in names_of(section, name)), test


@pytest.mark.parametrize("row", sorted(read_shown().items()), ids=lambda row: " ".join(row[0]))
def test_the_test_of_what_is_honoured_looks_at_what_came_out(row: tuple[tuple[str, str], str]) -> None:
    (section, name), test = row
    if answer_of(section, name) == "honoured":
        assert shows_something(test), f"{test} has no assert"


@pytest.mark.parametrize("name", PROCEDURES)
def test_every_procedure_takes_the_arguments_that_the_jars_takes(name: str) -> None:
    assert set(PROCEDURES[name]) <= {one.name for one in OURS[name].parameters}
