"""Every command of the terminal over a stranger's lake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from frazil.cli.main import app
from frazil.visible_text import visible
from tests.hostile.hostile_lake import CANARY_ROW, ENVIRONMENT_SECRET, EVIL, SECRETS, VARIABLE, Outside, Stranger

NEEDS_SPARK_OR_MORE = ("sql", "demo", "serve", "spark-server", "ui", "dbt")
VALUES = {
    "name": "{table}",
    "table_name": "{table}",
    "new_name": "db.renamed",
    "namespace": "db",
    "metadata_location": "file:///nowhere/v1.metadata.json",
    "metadata": "file:///nowhere/v1.metadata.json",
    "columns": "id bigint",
    "schema": "id bigint",
    "source": "file:///nowhere",
    "source_table": "parquet.`/nowhere`",
    "source_prefix": "file:///nowhere",
    "target_prefix": "file:///nowhere/else",
    "snapshot_id": "1",
    "target": "file:///nowhere/else",
    "table": "{table}",
    "files": "/nowhere/script.py",
    "snapshot": "1",
    "branch": "audit",
    "tag": "start",
    "to": "main",
    "wap_id": "night",
    "pairs": "owner=me",
    "names": "owner",
    "column": "id",
    "column_type": "bigint",
    "term": "bucket(4, id)",
    "field": "id_bucket",
    "format_version": "3",
    "location": "file:///nowhere/else",
    "lasts_for": "7d",
    "sql": "select 1 x",
    "version_id": "1",
}

ENDS: dict[tuple[str, ...], tuple[str, ...]] = {("table", "follow"): ("--after", "beginning", "--until", "now")}
"""What a command is told that would go on for ever."""


def commands() -> Iterator[tuple[str, ...]]:
    """Yield each command as the words that call it, with what it must be given."""

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if hasattr(command, "list_commands"):
            context = typer.Context(command)
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                if not words and name in NEEDS_SPARK_OR_MORE:
                    continue
                yield from walk(found, (*words, name))
            return
        given: list[str] = []
        for parameter in command.params:
            if not parameter.required:
                continue
            assert parameter.name in VALUES, f"{words}: tell tests/hostile what to give for {parameter.name!r}"
            value = VALUES[parameter.name]
            given += [value] if parameter.param_type_name == "argument" else [parameter.opts[0], value]
        yield (*words, *given, *ENDS.get(words, ()))

    yield from walk(typer.main.get_command(app), ())


ALL = list(commands())


def test_every_command_is_covered() -> None:
    assert len(ALL) > 20


@pytest.mark.extended
def test_commands_do_no_harm_and_print_no_control_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, ENVIRONMENT_SECRET)
    outside = Outside(tmp_path / "outside")
    stranger = Stranger(tmp_path, outside)
    others = ("outside", "http", "home", "far_vector", "zipped", "counts", EVIL)
    try:
        for number, words in enumerate(ALL):
            for name in ("names", others[number % len(others)]):
                table = f"db.`{name.replace('`', '``')}`"
                form = ("table", "json", "csv")[number % 3]
                line = [word.replace("{table}", table) for word in words]
                done = CliRunner().invoke(app, ["-w", str(stranger.warehouse), "--trust", "none", "-f", form, *line])
                what = f"frazil {' '.join(words)} of {name!r}"
                assert done.exception is None or isinstance(done.exception, SystemExit), (what, done.exc_info)
                assert visible(done.output, keeps_lines=True) == done.output, f"{what} steers the terminal"
                for secret in (*SECRETS, CANARY_ROW):
                    assert secret not in done.output, what
            outside.check(name)
    finally:
        outside.close()
