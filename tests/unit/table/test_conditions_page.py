"""Every condition of `docs/conditions.md` keeps the rows that the page says, or is refused as it says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import frazil
from frazil.table.table import Table
from tests.support.conditions_page import DDL, page_conditions, page_rows

KEPT, REFUSED = page_conditions()


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    with frazil.connect("memory:", catalog="memory") as lake:
        made = lake.create_table("db.t", DDL)
        made.append(page_rows())
        yield made


def test_page_has_conditions() -> None:
    assert len(KEPT) > 40
    assert len(REFUSED) > 5


@pytest.mark.every_case
@pytest.mark.parametrize(("text", "rows"), KEPT, ids=[text for text, _ in KEPT])
def test_condition_keeps_the_documented_rows(table: Table, text: str, rows: set[int]) -> None:
    assert set(table.scan(text).to_arrow()["id"].to_pylist()) == rows


@pytest.mark.every_case
@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=[text for text, _ in REFUSED])
def test_condition_is_refused_for_the_documented_reason(table: Table, text: str, reason: str) -> None:
    with pytest.raises(frazil.FrazilError) as caught:
        table.scan(text)
    assert reason in str(caught.value)
    assert "Spark" in str(caught.value) or "quotes" in str(caught.value) or "isnan" in str(caught.value)


def test_parameters_are_values(table: Table) -> None:
    assert table.scan("kind = :k and id < :n", k="it's", n=10).to_arrow()["id"].to_pylist() == [2]
    with pytest.raises(frazil.FrazilError, match=":n has no value"):
        table.scan("id < :n")
    with pytest.raises(frazil.FrazilError, match="does not name it"):
        table.scan("id < 5", n=10)
