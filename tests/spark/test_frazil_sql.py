"""`frazil sql` as a person and a script use it, each in a session of its own."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from tests.support.terminal import CTRL_C, CTRL_D, ENTER, TAB, UP, Terminal

pytestmark = pytest.mark.slow
PROMPT = "frazil>"
LONG = 120


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    folder = str(tmp_path / "lake")
    with frazil.connect(folder) as lake:
        lake.create_table("shop.orders", "id bigint not null, kind string").append(
            pa.table({"id": [1, 2, 3], "kind": ["web", "shop", None]})
        )
    return folder


def command(warehouse: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "frazil.cli", "-w", warehouse, *more]


def test_interactive_session_runs_statements(warehouse: str, tmp_path: Path) -> None:
    environment = {**os.environ, "FRAZIL_HISTORY": str(tmp_path / "history"), "INPUTRC": "/dev/null"}
    with Terminal(command(warehouse, "sql"), environment=environment) as terminal:
        lines = terminal.wait_for_prompt(PROMPT, seconds=LONG)
        assert lines[0].startswith("Spark 4.")
        assert (
            lines[1] == f"The lake {warehouse} is `lake`. Statements end with ;  help shows more, ctrl-D exits."[:100]
        )

        terminal.press("select kind, count(*) as orders" + ENTER)
        terminal.wait_for_prompt("...>")
        terminal.press("from lake.shop.or" + TAB)
        terminal.wait_for("from lake.shop.orders")
        terminal.press(" group by kind order by kind;" + ENTER)
        lines = terminal.wait_for_prompt(PROMPT, seconds=LONG)
        assert lines[-7:-2] == ["kind  orders", "────  ──────", "NULL       1", "shop       1", "web        1"]
        assert lines[-2].startswith("(3 rows, ")

        terminal.press("selec 1;" + ENTER)
        assert any("PARSE_SYNTAX_ERROR" in line for line in terminal.wait_for_prompt(PROMPT, seconds=LONG))
        terminal.press("select * from lake.shop.nothing;" + ENTER)
        assert any("nothing" in line for line in terminal.wait_for_prompt(PROMPT, seconds=LONG))

        terminal.press("insert into lake.shop.orders values (4, 'web');" + ENTER)
        assert terminal.wait_for_prompt(PROMPT, seconds=LONG)[-2].startswith("(1 row changed, ")
        terminal.press("select count(*) as orders from lake.shop.orders;" + ENTER)
        assert "4" in terminal.wait_for_prompt(PROMPT, seconds=LONG)[-3]

        terminal.press("select count(*) from range(10000000000000);" + ENTER)
        terminal.pause(4)
        terminal.press(CTRL_C)
        lines = terminal.wait_for_prompt(PROMPT, seconds=LONG)
        assert lines[-2] == "Stopped.", "\n".join(lines)
        terminal.press(UP + UP + ENTER)
        assert "4" in terminal.wait_for_prompt(PROMPT, seconds=LONG)[-3]
        # Nothing of what Spark logs gets between.
        assert b'{"ts"' not in terminal.raw
        assert b"WARN" not in terminal.raw
        terminal.press(CTRL_D)
        assert terminal.wait_for_end(seconds=LONG) == 0


def test_script_on_standard_input_stops_at_the_first_error(warehouse: str) -> None:
    script = """
        -- a note; with a semicolon
        select id, kind from lake.shop.orders order by id;
        insert into lake.shop.orders values (9, 'late');
        select nothing from lake.shop.orders;
        drop table lake.shop.orders;
    """
    found = subprocess.run(
        command(warehouse, "--format", "csv", "sql"),
        input=script.encode(),
        capture_output=True,
        check=False,
    )
    assert found.returncode == 1
    assert list(csv.reader(io.StringIO(found.stdout.decode()))) == [
        ["id", "kind"],
        ["1", "web"],
        ["2", "shop"],
        ["3", ""],
    ]
    said = found.stderr.decode()
    assert said.startswith("Statement 3 of 4, line 5:\n")
    assert "UNRESOLVED_COLUMN" in said
    assert "Traceback" not in said
    assert len(said.splitlines()) < 8
    with frazil.connect(warehouse) as lake:
        assert lake.table("shop.orders").scan().count() == 4
