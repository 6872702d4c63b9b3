"""What is printed is text: nothing that a table says steers the terminal that shows it."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import frazil
from frazil.cli.complete_sql import complete_sql
from frazil.cli.main import app
from frazil.cli.render import OutputFormat, render_rows
from frazil.cli.show_page import show_page
from frazil.codec.table_metadata_json import encode_table_metadata
from frazil.errors import InvalidRequestError
from frazil.maintenance.report import Problem, Report
from frazil.progress import NotebookLine, TerminalLine
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import SnapshotRef
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.types import STRING, NestedField
from frazil.visible_text import visible

EVIL = "\x1b]52;c;bmFzdHk=\x07\x1b[2J\x9b31m\u202eevil\u2066\ud800\r\nHint: run this"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
OUR_STYLES = re.compile(r"\x1b\[(?:\d{1,2})?m")


def is_text(printed: str) -> bool:
    return STEERING.search(printed) is None


def test_every_control_character_is_escaped_and_no_other() -> None:
    steering = [chr(one) for one in range(0x110000) if STEERING.match(chr(one))]
    assert is_text("".join(visible(one) for one in steering))
    kept = "a\tb\nÄ雪🧊e\u0301\u200d\u00a0"
    assert visible(kept, keeps_lines=True) == kept
    assert visible("a\tb\n") == "a\\tb\\n"
    assert visible("\x1b\x9b\u202e\ud800") == "\\x1b\\x9b\\u202e\\ud800"


def test_errors_are_escaped_and_keep_their_values() -> None:
    error = InvalidRequestError(f"Cannot read {EVIL}: no", hint=EVIL, path=EVIL)
    assert is_text(str(error))
    assert len(str(error).splitlines()) == 5
    assert (error.message, error.context["path"]) == (f"Cannot read {EVIL}: no", EVIL)


def test_reports_are_escaped() -> None:
    report = Report(EVIL, problems=(Problem("kind", EVIL, EVIL, EVIL),))
    assert is_text(str(report))
    assert len(str(report).splitlines()) == 5


def test_progress_lines_are_escaped() -> None:
    out = io.StringIO()
    TerminalLine(out).end(f"expire snapshots of {EVIL}")
    assert is_text(out.getvalue().removeprefix("\r\x1b[K"))
    shown: list[Any] = []
    NotebookLine(lambda data, **_: shown.append(data)).show(EVIL)
    assert all(is_text(one["text/plain"]) for one in shown)


@pytest.mark.parametrize("form", OutputFormat)
def test_rows_of_every_format_are_escaped(form: OutputFormat) -> None:
    rows = [{EVIL: EVIL, "nested": {EVIL: [EVIL]}}]
    printed = render_rows(rows, [EVIL, "nested"], form)
    assert is_text(printed)
    if form is OutputFormat.JSON:
        assert json.loads(printed) == rows


def test_times_beyond_the_python_range_are_shown() -> None:
    far = 253402300800000000
    table = pa.table(
        {"at": pa.array([0, far, None], pa.timestamp("us")), "day": pa.array([0, 5_000_000, 1], pa.date32())}
    )
    printed = render_rows(table, table.column_names, OutputFormat.CSV)
    assert f"{far} (timestamp[us])" in printed
    assert "5000000 (date32[day])" in printed
    assert "1970-01-01T00:00:00" in printed


def hostile_lake(folder: Path) -> frazil.Lake:
    """Return a lake with a table whose every text is hostile."""
    lake = frazil.connect(folder / "warehouse")
    lake.create_namespace("db")
    made = lake.create_table("db.plain", "id bigint")
    made.append(pa.table({"id": [1]}))
    stored = lake.table("db.plain").metadata
    evil = EVIL.replace("\ud800", "")
    schema = replace(
        stored.current_schema,
        fields=(*stored.current_schema.fields, NestedField(2, evil, STRING, doc=evil, write_default=evil)),
    )
    current = stored.current_snapshot
    assert current is not None
    summary = {**(current.summary or {}), "added-records": "many", "deleted-records": "-1", "total-records": evil}
    changed = replace(current, summary=FrozenMap(summary), timestamp_ms=300_000_000_000_000)
    made_so = replace(
        stored,
        schemas=(schema,),
        last_column_id=2,
        properties=FrozenMap({"comment": evil, evil: evil}),
        snapshots=SnapshotList((changed,)),
        refs=FrozenMap({**stored.refs, evil: SnapshotRef(changed.snapshot_id)}),
        last_updated_ms=300_000_000_000_000,
        snapshot_log=(),
    )
    path = folder / "stranger.metadata.json"
    path.write_bytes(encode_table_metadata(made_so))
    lake.register_table(("db", f"t{evil}"), str(path))
    return lake


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[str, ...]]:
    """A warehouse with a hostile table, and the table's name."""
    folder = tmp_path_factory.mktemp("hostile")
    with hostile_lake(folder) as lake:
        (name,) = [one for one in lake.list_tables("db") if one[-1] != "plain"]
    return folder / "warehouse", name


def test_table_page_is_escaped(hostile: tuple[Path, tuple[str, ...]]) -> None:
    warehouse, name = hostile
    with frazil.connect(warehouse) as lake:
        loaded = lake.catalog.load_table(name)
        page = show_page(loaded, now_ms=0)
        ours = OUR_STYLES.findall(show_page(lake.catalog.load_table(("db", "plain")), now_ms=0))
        assert is_text(OUR_STYLES.sub("", page))
        assert len(OUR_STYLES.findall(page)) <= len(ours) + 8
        assert "300000000000000 ms since 1970" in page
        assert complete_sql(lake, "lake.db.", "select * from lake.db.") == ["lake.db.plain"]


@pytest.mark.parametrize("form", ["table", "json", "csv"])
@pytest.mark.parametrize(
    "command",
    ["table list db", "table show {}", "table schema {}", "table properties {}", "table snapshots {}", "table refs {}"],
)
def test_commands_print_escaped_text(hostile: tuple[Path, tuple[str, ...]], form: str, command: str) -> None:
    warehouse, name = hostile
    quoted = f"db.`{name[-1]}`"
    words = [quoted if word == "{}" else word for word in command.split()]
    result = CliRunner().invoke(app, ["-w", str(warehouse), "-f", form, *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    assert result.exit_code == 0, result.output
    assert is_text(result.output)


def test_command_errors_are_escaped(tmp_path: Path) -> None:
    frazil.connect(tmp_path / "warehouse").close()
    result = CliRunner().invoke(app, ["-w", str(tmp_path / "warehouse"), "table", "show", "db.`\x1b]0;x\x07`"])
    assert result.exit_code == 1
    assert is_text(result.output)
    assert "\\x1b]0;x\\x07" in result.output
