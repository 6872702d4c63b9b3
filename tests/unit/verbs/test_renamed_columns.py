"""Conditions keep their columns while others rename them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import frazil
from frazil.errors import ConcurrentChangeError
from frazil.expr.predicates import equal
from tests.support.races import overtaken

ROWS = [{"id": 1, "v": 2}, {"id": 2, "v": 1}]


def swap_names(table: frazil.Table) -> None:
    with table.update_schema() as update:
        update.rename_column("v", "w")
        update.rename_column("id", "v")


@pytest.mark.parametrize(
    "change",
    [
        lambda table, where: table.delete(where),
        lambda table, where: table.overwrite(pa.table({"id": [3], "v": [3]}), where),
    ],
    ids=["delete", "overwrite"],
)
@pytest.mark.parametrize("is_text", [True, False])
def test_condition_is_refused_if_its_column_is_renamed_concurrently(
    change: Callable[[frazil.Table, object], object], is_text: bool
) -> None:
    with frazil.connect("memory:", catalog="memory") as lake:
        table = lake.create_table("db.t", "id bigint, v bigint")
        for row in ROWS:
            table.append([row])
        with pytest.raises(ConcurrentChangeError, match="changed"):
            change(overtaken(table, swap_names), "v = 1" if is_text else equal("v", 1))
        assert table.refresh().scan().to_arrow().num_rows == 2
