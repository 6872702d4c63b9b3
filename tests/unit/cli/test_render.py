"""Rows as text: aligned, cut to the terminal, and harmless to it."""

from __future__ import annotations

import datetime
import decimal
import json

import pytest

from frazil.cli.render import OutputFormat, render_rows, show_size
from frazil.cli.session import error_text, was_stopped

TABLE = OutputFormat.TABLE


def test_numbers_stand_right_and_null_has_a_name() -> None:
    rows = [{"n": 5, "kind": "web"}, {"n": 12345, "kind": None}, {"n": None, "kind": ""}]
    assert render_rows(rows, ["n", "kind"], TABLE).splitlines() == [
        "    n  kind",
        "─────  ────",
        "    5  web",
        "12345  NULL",
        " NULL",
        "(3 rows)",
    ]


def test_data_cannot_steer_the_terminal() -> None:
    text = render_rows([{"a": "\x1b[31mred\x07\n"}], ["a"], TABLE)
    assert "\x1b" not in text
    assert "\\x1b[31mred\\x07\\n" in text


def test_wide_characters_keep_columns_in_line() -> None:
    lines = render_rows([{"a": "日本", "b": "x"}, {"a": "abcd", "b": "y"}], ["a", "b"], TABLE).splitlines()
    assert lines[2:4] == ["日本  x", "abcd  y"]


def test_columns_get_narrower_before_they_are_shown_value_by_value() -> None:
    row = {"id": 1, "text": "x" * 60, "more": "y" * 60}
    narrow = render_rows([row], list(row), TABLE, width=60).splitlines()
    assert max(len(line) for line in narrow) <= 60
    assert "…" in narrow[2]
    records = render_rows([row], list(row), TABLE, width=20).splitlines()
    assert records[0].startswith("─ row 1 ")
    assert records[1] == "id    1"
    assert max(len(line) for line in records) <= 20


def test_programs_get_values_whole() -> None:
    row = {
        "d": decimal.Decimal("1.50"), "t": datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC),
        "i": datetime.timedelta(seconds=5), "s": "x" * 200, "b": b"\x01",
    }  # fmt: skip
    (found,) = json.loads(render_rows([row], list(row), OutputFormat.JSON))
    assert found == {"d": "1.50", "t": "2026-01-02T03:00:00+00:00", "i": "0:00:05", "s": "x" * 200, "b": "AQ=="}
    assert render_rows([{"a": None, "b": ""}], ["a", "b"], OutputFormat.CSV) == "a,b\n,"


def test_sizes_read_well() -> None:
    assert [show_size(one) for one in (0, 999, 1000, 1_500_000, 2_000_000_000, 3_000_000_000_000)] == [
        "0 B", "999 B", "1.0 kB", "1.5 MB", "2.0 GB", "3.0 TB",
    ]  # fmt: skip


def test_errors_of_spark_are_told_without_plans_and_traces() -> None:
    text = (
        "[UNRESOLVED_COLUMN] A column `a` cannot be resolved. SQLSTATE: 42703; line 1 pos 7;\n"
        "'Project ['a]\n+- Relation\n"
        "\n\nJVM stacktrace:\norg.apache.spark.X\n\tat org.apache.spark.Y\n"
    )
    assert error_text(Exception(text)) == (
        "[UNRESOLVED_COLUMN] A column `a` cannot be resolved. SQLSTATE: 42703; line 1 pos 7"
    )
    trace = "An error occurred while calling o1.x.\n: org.apache.spark.SparkException: lost\n\tat a.b\n\t... 5 more\n"
    assert (
        error_text(Exception(trace)) == "An error occurred while calling o1.x.\n: org.apache.spark.SparkException: lost"
    )


def test_what_fails_while_ctrl_c_is_dealt_with_was_stopped() -> None:
    def fail() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise OSError("cancelled")

    with pytest.raises(OSError, match="cancelled") as raised:
        fail()
    assert was_stopped(raised.value)
    assert not was_stopped(OSError("plain"))
