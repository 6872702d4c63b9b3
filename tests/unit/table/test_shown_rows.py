"""Results as people look at them: `head`, `show`, `list`, notebooks, and short tracebacks."""

from __future__ import annotations

from pathlib import Path

import pytest

import frazil

ROWS = [{"id": 1, "kind": "a"}, {"id": 2, "kind": None}]


@pytest.fixture
def table(tmp_path: Path) -> frazil.Table:
    return frazil.connect(str(tmp_path / "wh")).create_table("s.t", ROWS)


def test_head_has_the_first_rows(table: frazil.Table) -> None:
    table.append([{"id": number, "kind": "x"} for number in range(20)])
    assert len(table.head()) == 10
    assert len(table.head(3).to_pylist()) == 3
    assert len(table) == 22
    table.delete("kind = 'x'")
    assert len(table) == 2


def test_empty_table_is_true(tmp_path: Path) -> None:
    table = frazil.connect(str(tmp_path / "wh")).create_table("s.t", "id int")
    assert len(table) == 0
    assert table
    assert table.head()


def test_rows_of_scans_and_queries_are_dicts(table: frazil.Table, tmp_path: Path) -> None:
    assert list(table.scan()) == ROWS
    with frazil.connect(str(tmp_path / "wh")) as lake:
        assert list(lake.sql("from s.t order by id")) == ROWS
        assert list(lake.sql("from s.t order by id").df()["id"]) == [1, 2]


def test_show_prints_names_types_rows_and_their_number(table: frazil.Table, capsys: pytest.CaptureFixture[str]) -> None:
    table.scan().show()
    assert capsys.readouterr().out.splitlines() == [
        "id     kind",
        "int64  string",
        "-----  ------",
        "1      a",
        "2      null",
        "(2 rows)",
    ]
    table.scan().show(1)
    assert "(2 rows, the first 1 shown)" in capsys.readouterr().out


def test_notebooks_show_rows_as_escaped_html(table: frazil.Table) -> None:
    table.append([{"id": 3, "kind": "<b>"}])
    html = table.scan("id = 3")._repr_html_()
    assert "<td>&lt;b&gt;</td>" in html
    assert "int64" in html
    assert "1 row<" in html


def test_notebooks_list_the_tables_of_a_lake(table: frazil.Table, tmp_path: Path) -> None:
    with frazil.connect(str(tmp_path / "wh")) as lake:
        assert "<code>s.t</code>" in lake._repr_html_()


def test_tracebacks_in_notebooks_leave_out_the_lines_of_frazil(table: frazil.Table) -> None:
    with pytest.raises(frazil.FrazilError) as caught:
        table.scan("nothing = 1").to_arrow()
    lines = caught.value._render_traceback_()
    assert lines[-1].startswith("FieldNotFoundError: ")
    assert str(Path(__file__).name) in "".join(lines)
    assert "/frazil/table/" not in "".join(lines)
