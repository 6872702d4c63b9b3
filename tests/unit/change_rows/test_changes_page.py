"""The expressions of `docs/conditions.md` are computed as it says, and it names every function there is."""

from __future__ import annotations

import pyarrow as pa
import pytest

from frazil.evaluate import condition  # noqa: F401 - it fills the table of functions
from frazil.evaluate.compile_expression import _SPECIAL, FUNCTIONS, TARGET, Compiler, Rows
from frazil.expr.parse import parse_expression
from tests.support.changes_page import KINDS, ROW, page_expressions, page_functions, shown


@pytest.mark.every_case
@pytest.mark.parametrize(("text", "value"), page_expressions())
def test_documented_expression_has_its_value(text: str, value: str) -> None:
    made = Compiler({TARGET: KINDS}).compile(parse_expression(text))
    rows = Rows({(TARGET, name): pa.array([ROW[name]], kind) for name, kind in KINDS.items()}, 1)
    assert shown(made.array(rows).to_pylist()[0]) == value


def test_page_names_every_function() -> None:
    operators = {"and", "or", "not", "in", "like", "div", "negative", "positive"}
    known = {name for name in {*FUNCTIONS, *_SPECIAL} - operators if name.isidentifier()}
    assert page_functions() == sorted(known)
