"""The examples run as they stand, and print what they promise."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(
    "name, lines",
    [
        (
            "daily_upserts",
            [
                "2026-01-02 was written before",
                "{'id': 1, 'status': 'placed', 'price': 10.0}",
                "{'id': 2, 'status': 'shipped', 'price': 20.0}",
                "{'id': 3, 'status': 'placed', 'price': 5.0}",
            ],
        ),
        (
            "scd_type_2",
            ["ada London 2026-01-01 2026-02-01", "ada Turin 2026-02-01 None", "bob Paris 2026-01-01 None"],
        ),
        ("late_data", ["2026-01-01 8", "2026-01-02 7"]),
        (
            "gdpr_deletion",
            [
                "files that name ada-4711 before: 2",
                "files that name ada-4711 after: 0",
                "remaining rows: [{'person': 'bob-4712', 'page': '/b'}] table is intact: True",
            ],
        ),
        (
            "backfill_on_a_branch",
            [
                "discarded: prices are missing or negative",
                "published",
                "{'id': 1, 'price': 1.5}",
                "{'id': 2, 'price': 3.0}",
                "{'id': 200, 'price': 2.0}",
            ],
        ),
        (
            "checked_load",
            [
                "failed: expect_column_values_to_be_unique id",
                "failed: expect_column_values_to_be_between price",
                "published",
                "[1, 2]",
            ],
        ),
        (
            "incremental_pipeline",
            [
                "2 changes, totals of ada, bob",
                "1 changes, totals of ada",
                "no changes",
                "{'customer': 'ada', 'amount': 7}",
                "{'customer': 'bob', 'amount': 7}",
            ],
        ),
    ],
)
def test_example_prints_its_expected_output(
    name: str,
    lines: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if name == "checked_load":
        pytest.importorskip("great_expectations", reason="make test-recipes installs it")
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path / "warehouse")])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line in lines] == lines


def test_every_example_is_run_by_a_test() -> None:
    here = Path(__file__).read_text()
    elsewhere = {"demo", "streaming_orders"}
    assert [
        one.stem for one in EXAMPLES.glob("*.py") if one.stem not in elsewhere and f'"{one.stem}"' not in here
    ] == []
