"""What is typed or read is cut into statements at the right places."""

from __future__ import annotations

import pytest

from frazil.cli.cut_statements import all_statements, cut_statements


@pytest.mark.parametrize(
    "text, statements, rest",
    [
        ("select 1;", ["select 1"], ""),
        ("select 1", [], "select 1"),
        ("select ';'; select 2", ["select ';'"], " select 2"),
        ("select 1 -- not; here\n;", ["select 1"], ""),
        ("select /* ; */ 1;;;", ["select /* ; */ 1"], ""),
        ("select 'open ; quote", [], "select 'open ; quote"),
        ("select `odd;name`;", ["select `odd;name`"], ""),
        ("begin select 1; select 2; end;", ["begin select 1; select 2; end"], ""),
        ("begin select 1;", [], "begin select 1;"),
        ("begin if x then select 1; end if; end; select 2;", ["begin if x then select 1; end if; end", "select 2"], ""),
        ("begin select case when a then 1 else 2 end; end;", ["begin select case when a then 1 else 2 end; end"], ""),
        ("begin select if(a, 1, 2); end;", ["begin select if(a, 1, 2); end"], ""),
        (
            "begin l: loop leave l; end loop; while a do begin set a = 1; end; end while; end;",
            ["begin l: loop leave l; end loop; while a do begin set a = 1; end; end while; end"],
            "",
        ),
        (
            "begin for r as select 1 do select 2; end for; end;",
            ["begin for r as select 1 do select 2; end for; end"],
            "",
        ),
        ("begin repeat set a = 1; until b end repeat; end;", ["begin repeat set a = 1; until b end repeat; end"], ""),
    ],
)
def test_semicolons_end_statements(text: str, statements: list[str], rest: str) -> None:
    found, left = cut_statements(text)
    assert [one.text for one in found] == statements
    assert left == rest


def test_last_statement_needs_no_semicolon_and_lines_are_counted() -> None:
    text = "-- a note\nselect 1;\n\n  select\n2;\nselect 3\n"
    assert [(one.text, one.line) for one in all_statements(text)] == [
        ("select 1", 2),
        ("select\n2", 4),
        ("select 3", 6),
    ]
    assert all_statements(" -- nothing\n") == []
