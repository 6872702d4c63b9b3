"""The terminal as a person uses it: keys are typed on a pseudo-terminal, and screens are read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from tests.support.terminal import CTRL_C, CTRL_D, ENTER, TAB, UP, Terminal

SHELL = """
import sys, frazil
from pathlib import Path
from frazil.cli.complete_sql import complete_sql
from frazil.cli.shell import Shell
from frazil.errors import InvalidRequestError

def run(text):
    if "wrong" in text:
        raise InvalidRequestError("Cannot do that: it is wrong", hint="Do it right.")
    if "slow" in text:
        import time
        print("it runs", flush=True)
        try:
            time.sleep(60)
        finally:
            # As Spark does where a job is cancelled.
            raise InvalidRequestError("Cannot go on: the job was cancelled")
    print("ran " + repr(text))

with frazil.connect(sys.argv[1]) as lake:
    Shell(run, lambda word, typed: complete_sql(lake, word, typed), Path(sys.argv[2])).loop()
"""
PROMPT = "frazil>"
MORE = "...>"


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    folder = str(tmp_path / "lake")
    with frazil.connect(folder) as lake:
        table = lake.create_table("shop.orders", "id bigint not null, channel string", format_version=3)
        for _ in range(6):
            table.append(pa.table({"id": [1, 2], "channel": ["web", None]}))
        lake.create_table("shop.returns", "id bigint")
    return folder


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "CI")}
    return {**kept, "PYTHONUNBUFFERED": "1", **more}


def on_terminal(*command: str, columns: int = 100, height: int = 40) -> Terminal:
    return Terminal(
        [sys.executable, *command], environment=environment(INPUTRC="/dev/null"), columns=columns, height=height
    )


@pytest.fixture
def shell(warehouse: str, tmp_path: Path) -> Iterator[Terminal]:
    with on_terminal("-c", SHELL, warehouse, str(tmp_path / "state" / "history")) as terminal:
        terminal.wait_for_prompt(PROMPT)
        yield terminal


def test_statement_runs_at_its_semicolon(shell: Terminal) -> None:
    shell.press("select 1" + ENTER)
    assert shell.wait_for_prompt(MORE)[-2:] == ["frazil> select 1", "   ...>"]
    shell.press("+ ';';" + ENTER)
    assert shell.wait_for_prompt(PROMPT)[-2:] == ["""ran "select 1\\n+ ';'\"""", "frazil>"]


@pytest.mark.extended
def test_pasted_script_runs_at_once(shell: Terminal) -> None:
    shell.press("begin if 1 = 1 then select 1; end if; end; select 2;" + ENTER)
    lines = shell.wait_for_prompt(PROMPT)
    assert "ran 'begin if 1 = 1 then select 1; end if; end'" in lines
    assert "ran 'select 2'" in lines


def test_up_arrow_recalls_a_whole_statement(shell: Terminal) -> None:
    shell.press("select 1," + ENTER)
    shell.wait_for_prompt(MORE)
    shell.press("2;" + ENTER)
    shell.wait_for_prompt(PROMPT)
    shell.press("select 3;" + ENTER)
    shell.wait_for_prompt(PROMPT)
    shell.press(UP)
    shell.wait_for("select 3;")
    shell.press(UP)
    assert shell.wait_for("2;")[-2:] == ["frazil> select 1,", "2;"]
    shell.press(ENTER)
    assert shell.wait_for_prompt(PROMPT)[-2] == "ran 'select 1,\\n2'"


@pytest.mark.extended
def test_history_persists_between_sessions(shell: Terminal, warehouse: str, tmp_path: Path) -> None:
    shell.press("select 'once',\n2;" + ENTER)
    shell.wait_for_prompt(PROMPT)
    shell.press("quit" + ENTER)
    assert shell.wait_for_end() == 0
    history = tmp_path / "state" / "history"
    assert history.stat().st_mode & 0o077 == 0
    with on_terminal("-c", SHELL, warehouse, str(history)) as again:
        again.wait_for_prompt(PROMPT)
        again.press(UP)
        assert again.wait_for("2;")[-2:] == ["frazil> select 'once',", "2;"]


def test_tab_completes_keywords_and_names(shell: Terminal) -> None:
    shell.press("sel" + TAB)
    shell.wait_for("select")
    shell.press(" * from lake.sh" + TAB)
    shell.wait_for("lake.shop.")
    shell.press("o" + TAB)
    shell.wait_for("lake.shop.orders")
    shell.press(" where chan" + TAB)
    shell.wait_for("where channel")
    shell.press(" is null;" + ENTER)
    assert shell.wait_for_prompt(PROMPT)[-2] == "ran 'select * from lake.shop.orders where channel is null'"


@pytest.mark.extended
def test_double_tab_lists_completions(shell: Terminal) -> None:
    shell.press("describe lake.shop." + TAB + TAB)
    lines = shell.wait_for("describe lake.shop.")
    assert any("lake.shop.orders" in line and "lake.shop.returns" in line for line in lines)


def test_error_is_shown_and_the_next_statement_runs(shell: Terminal) -> None:
    shell.press("wrong; select 1;" + ENTER)
    lines = shell.wait_for_prompt(PROMPT)
    assert lines[-3:] == ["Cannot do that: it is wrong", "Hint: Do it right.", "frazil>"]
    assert b"\x1b[31mCannot do that" in shell.raw
    shell.press("select 2;" + ENTER)
    assert shell.wait_for_prompt(PROMPT)[-2] == "ran 'select 2'"


def test_ctrl_c_clears_the_input_and_stops_a_query(shell: Terminal) -> None:
    shell.press("select" + ENTER)
    shell.wait_for_prompt(MORE)
    shell.press("1" + CTRL_C)
    shell.wait_for_prompt(PROMPT)
    shell.press("slow;" + ENTER)
    shell.wait_for("it runs")
    shell.press(CTRL_C)
    assert "Stopped." in shell.wait_for_prompt(PROMPT)
    shell.press("select 3;" + ENTER)
    assert shell.wait_for_prompt(PROMPT)[-2] == "ran 'select 3'"


@pytest.mark.extended
def test_ctrl_d_exits(shell: Terminal) -> None:
    shell.press(CTRL_D)
    assert shell.wait_for_end() == 0


def test_help_lists_the_commands(shell: Terminal) -> None:
    shell.press("help" + ENTER)
    assert any("ctrl-D exits" in line for line in shell.wait_for_prompt(PROMPT))


# Commands


@pytest.mark.extended
def test_table_page_is_coloured_only_on_a_terminal(warehouse: str) -> None:
    command = ["-m", "frazil.cli", "-w", warehouse, "table", "show", "shop.orders"]
    with on_terminal(*command) as terminal:
        assert terminal.wait_for_end() == 0
        lines = terminal.lines()
        assert b"\x1b[1mshop.orders" in terminal.raw
    for title in ("Columns", "Files", "Branches and tags", "Advice"):
        assert title in lines
    assert "  6 data files," in "\n".join(lines)
    assert any("under 1 MiB" in line and "█" in line for line in lines)
    assert "    frazil maintain rewrite-data-files shop.orders" in lines
    piped = subprocess.run([sys.executable, *command], check=True, capture_output=True, env=environment())
    assert b"\x1b" not in piped.stdout
    assert piped.stdout.startswith(b"shop.orders")


@pytest.mark.extended
def test_wide_rows_are_shown_vertically(warehouse: str) -> None:
    with on_terminal("-m", "frazil.cli", "-w", warehouse, "table", "files", "shop.orders", "--limit", "1") as terminal:
        assert terminal.wait_for_end() == 0
        lines = terminal.lines()
    assert any(line.startswith("─ row 1 ─") for line in lines)
    assert any(line.split() == ["record_count", "2"] for line in lines)
    assert max(len(line) for line in lines) <= 100


@pytest.mark.extended
def test_long_values_are_truncated_to_the_terminal(warehouse: str) -> None:
    with on_terminal("-m", "frazil.cli", "-w", warehouse, "table", "history", "shop.orders", columns=90) as terminal:
        assert terminal.wait_for_end() == 0
        assert terminal.lines()[0].split() == ["made_current_at", "snapshot_id", "parent_id", "is_current_ancestor"]
        assert max(len(line) for line in terminal.lines()) <= 90


def test_long_output_is_paged_and_ctrl_c_goes_to_the_pager(warehouse: str) -> None:
    command = ["-m", "frazil.cli", "-w", warehouse, "table", "show", "shop.orders"]
    with Terminal(
        [sys.executable, *command], environment=environment(PAGER="less", LESS="RX"), columns=100, height=12
    ) as terminal:
        terminal.wait_for(":")
        assert any("shop.orders" in line for line in terminal.lines())
        assert not any("Advice" in line for line in terminal.lines())
        terminal.press(CTRL_C)
        # The pager throws away what is typed while it deals with ctrl-C.
        for _ in range(50):
            terminal.press("G")
            terminal.pause(0.3)
            if "(END)" in terminal.lines()[-1]:
                break
        terminal.wait_for("(END)")
        terminal.press("q")
        assert terminal.wait_for_end() == 0


@pytest.mark.extended
@pytest.mark.parametrize("pager", ["", "cat", "no-such-pager", "'"])
def test_disabled_or_missing_pager_is_skipped(warehouse: str, pager: str) -> None:
    command = ["-m", "frazil.cli", "-w", warehouse, "table", "show", "shop.orders"]
    with Terminal([sys.executable, *command], environment=environment(PAGER=pager), height=12) as terminal:
        assert terminal.wait_for_end() == 0
        assert any("rewrite-data-files" in line for line in terminal.lines())


def test_purge_asks_for_confirmation(warehouse: str) -> None:
    command = ["-m", "frazil.cli", "-w", warehouse, "table", "drop", "shop.orders", "--purge"]
    for answer, code, is_there in (("n", 1, True), ("y", 0, False)):
        with on_terminal(*command) as terminal:
            terminal.wait_for("[y/N]:")
            terminal.press(answer + ENTER)
            assert terminal.wait_for_end() == code
        with frazil.connect(warehouse) as lake:
            assert lake.table_exists("shop.orders") is is_there
        assert bool(list(Path(warehouse).rglob("*.parquet"))) is is_there


@pytest.mark.extended
@pytest.mark.parametrize("command", [[], ["sql"], ["table", "show"], ["check"], ["demo"]], ids=" ".join)
def test_help_has_examples(command: list[str]) -> None:
    with on_terminal("-m", "frazil.cli", *command, "--help", height=80) as terminal:
        assert terminal.wait_for_end() == 0
        assert any(line.strip().startswith("frazil ") for line in terminal.lines())


def test_version_is_shown_by_option_and_command() -> None:
    for command, text in (("--version", "frazil 0."), ("version", "0.")):
        with on_terminal("-m", "frazil.cli", command) as terminal:
            assert terminal.wait_for_end() == 0
            assert terminal.lines()[-1].startswith(text)


def test_shells_complete_table_names(warehouse: str) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "frazil.cli"],
        env=environment(
            _FRAZIL_COMPLETE="complete_bash",
            COMP_WORDS="frazil table show shop.o",
            COMP_CWORD="3",
            FRAZIL_WAREHOUSE=warehouse,
        ),
        capture_output=True,
        check=False,
    )
    assert found.stdout.decode().split() == ["shop.orders"]
