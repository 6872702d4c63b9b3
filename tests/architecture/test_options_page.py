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


def test_options_page_matches_the_option_tables() -> None:
    assert PAGE.read_text() == options_markdown(read_shown(), REWRITES), "run make names"


def test_tests_named_on_the_page_refer_to_existing_rows() -> None:
    shown, rows = set(read_shown()), all_rows()
    assert not shown - set(rows)
    without = [one for one in rows if one not in shown]
    assert len(without) <= MOST_WITHOUT, without


@pytest.mark.parametrize("row", sorted(read_shown().items()), ids=lambda row: " ".join(row[0]))
def test_named_tests_exist_and_mention_their_option(row: tuple[tuple[str, str], str]) -> None:
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
def test_tests_of_honoured_options_check_their_effect(row: tuple[tuple[str, str], str]) -> None:
    (section, name), test = row
    if answer_of(section, name) == "honoured":
        assert shows_something(test), f"{test} has no assert"


@pytest.mark.parametrize("name", PROCEDURES)
def test_procedures_accept_all_arguments_of_the_jar(name: str) -> None:
    assert set(PROCEDURES[name]) <= {one.name for one in OURS[name].parameters}
