"""Rows as text: aligned, cut to the terminal, and harmless to it."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from dataclasses import dataclass

import pyarrow as pa
import pytest

from frazil.cli.render import OutputFormat, render_rows, show_size
from frazil.cli.session import error_text, was_stopped

TABLE = OutputFormat.TABLE


def test_numbers_are_right_aligned_and_null_is_named() -> None:
    rows = [{"n": 5, "kind": "web"}, {"n": 12345, "kind": None}, {"n": None, "kind": ""}]
    assert render_rows(rows, ["n", "kind"], TABLE).splitlines() == [
        "    n  kind",
        "─────  ────",
        "    5  web",
        "12345  NULL",
        " NULL",
        "(3 rows)",
    ]


def test_data_cannot_control_the_terminal() -> None:
    text = render_rows([{"a": "\x1b[31mred\x07\n"}], ["a"], TABLE)
    assert "\x1b" not in text
    assert "\\x1b[31mred\\x07\\n" in text


def test_wide_characters_keep_columns_aligned() -> None:
    lines = render_rows([{"a": "日本", "b": "x"}, {"a": "abcd", "b": "y"}], ["a", "b"], TABLE).splitlines()
    assert lines[2:4] == ["日本  x", "abcd  y"]


def test_columns_shrink_before_vertical_display() -> None:
    row = {"id": 1, "text": "x" * 60, "more": "y" * 60}
    narrow = render_rows([row], list(row), TABLE, width=60).splitlines()
    assert max(len(line) for line in narrow) <= 60
    assert "…" in narrow[2]
    records = render_rows([row], list(row), TABLE, width=20).splitlines()
    assert records[0].startswith("─ row 1 ")
    assert records[1] == "id    1"
    assert max(len(line) for line in records) <= 20


def test_piped_output_has_whole_values() -> None:
    row = {
        "d": decimal.Decimal("1.50"), "t": datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC),
        "i": datetime.timedelta(seconds=5), "s": "x" * 200, "b": b"\x01",
    }  # fmt: skip
    (found,) = json.loads(render_rows([row], list(row), OutputFormat.JSON))
    assert found == {"d": "1.50", "t": "2026-01-02T03:00:00+00:00", "i": "0:00:05", "s": "x" * 200, "b": "AQ=="}
    assert render_rows([{"a": None, "b": ""}], ["a", "b"], OutputFormat.CSV) == "a,b\n,"


@dataclass(frozen=True)
class Inner:
    path: str
    ids: frozenset[int] = frozenset({2, 1})


@dataclass(frozen=True)
class Outer:
    files: tuple[Inner, ...]
    form: OutputFormat = OutputFormat.CSV


def test_json_output_is_valid_at_any_depth() -> None:
    day = datetime.date(2026, 1, 2)
    key = uuid.UUID(int=5)
    row = {
        "report": Outer((Inner("a"), Inner("b"))),
        "map": {day: [b"\x01", {"at": datetime.datetime(2026, 1, 2, 3)}], 7: key, (1, 2): None},
        "floats": [1.5, float("nan"), float("inf"), float("-inf")],
    }
    (found,) = json.loads(render_rows([row], list(row), OutputFormat.JSON), parse_constant=pytest.fail)
    assert found == {
        "report": {"files": [{"path": "a", "ids": [1, 2]}, {"path": "b", "ids": [1, 2]}], "form": "csv"},
        "map": {"2026-01-02": ["AQ==", {"at": "2026-01-02T03:00:00"}], "7": str(key), "[1, 2]": None},
        "floats": [1.5, "NaN", "Infinity", "-Infinity"],
    }


def test_arrow_maps_become_objects_and_nested_values_stay_nested() -> None:
    kind = pa.struct({"m": pa.map_(pa.string(), pa.list_(pa.int64())), "b": pa.binary()})
    table = pa.table(
        {
            "s": pa.array([{"m": [("a", [1, 2])], "b": b"\x00"}], kind),
            "twice": pa.array([[("a", 1), ("a", 2)]], pa.map_(pa.string(), pa.int64())),
            "days": pa.array([[(datetime.date(2026, 1, 2), decimal.Decimal("1.5"))]],
                             pa.map_(pa.date32(), pa.decimal128(3, 1))),
            "far": pa.array([{"m": [("a", 2**62)]}], pa.struct({"m": pa.map_(pa.string(), pa.timestamp("us"))})),
        }
    )  # fmt: skip
    (found,) = json.loads(render_rows(table, table.column_names, OutputFormat.JSON))
    assert found["s"] == {"m": {"a": [1, 2]}, "b": "AA=="}
    assert found["twice"] == [["a", 1], ["a", 2]]
    assert found["days"] == {"2026-01-02": "1.5"}
    assert "struct" in found["far"]


def test_sizes_are_human_readable() -> None:
    assert [show_size(one) for one in (0, 999, 1000, 1_500_000, 2_000_000_000, 3_000_000_000_000)] == [
        "0 B", "999 B", "1.0 kB", "1.5 MB", "2.0 GB", "3.0 TB",
    ]  # fmt: skip


def test_spark_errors_are_shown_without_plans_and_traces() -> None:
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


def test_failure_while_handling_ctrl_c_counts_as_interrupted() -> None:
    def fail() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise OSError("cancelled")

    with pytest.raises(OSError, match="cancelled") as raised:
        fail()
    assert was_stopped(raised.value)
    assert not was_stopped(OSError("plain"))
