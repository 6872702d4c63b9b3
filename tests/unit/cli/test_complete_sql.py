"""What the tab key offers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import frazil
from frazil.cli.complete_sql import complete_sql


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[frazil.Lake]:
    with frazil.connect(tmp_path / "lake") as opened:
        opened.create_table("shop.orders", "id bigint, kind string")
        opened.create_view("shop.web", "select 1 as x")
        opened.create_namespace("shop.old")
        yield opened


@pytest.mark.parametrize(
    "word, typed, offered",
    [
        ("sel", "sel", ["select"]),
        ("SEL", "SEL", ["SELECT"]),
        ("la", "select * from la", ["lake."]),
        ("lake.", "select * from lake.", ["lake.shop.", "lake.system."]),
        ("lake.shop.", "select * from lake.shop.", ["lake.shop.old.", "lake.shop.orders", "lake.shop.web"]),
        ("lake.shop.orders.sn", "select * from lake.shop.orders.sn", ["lake.shop.orders.snapshots"]),
        ("ki", "select * from lake.shop.orders where ki", ["kind"]),
        ("ki", "select ki", []),
        ("other.x", "select * from other.x", []),
        ("lake.nothing.x", "select * from lake.nothing.x", []),
    ],
)
def test_names_and_keywords_are_completed(lake: frazil.Lake, word: str, typed: str, offered: list[str]) -> None:
    assert complete_sql(lake, word, typed) == offered
