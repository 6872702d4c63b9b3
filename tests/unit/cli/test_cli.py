"""The terminal: what is printed, in which form, and with which exit code."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import frazil
from frazil.cli.main import app
from frazil.cli.render import OutputFormat, render_rows
from frazil.cli.session import secrets_of_environment

RUNNER = CliRunner()


@pytest.fixture
def warehouse(tmp_path: Path) -> str:
    folder = str(tmp_path / "lake")
    with frazil.connect(folder) as lake:
        table = lake.create_table("db.events", "id bigint not null, kind string", partition_by=["kind"])
        table.append(pa.table({"id": pa.array([1, 2, 3]), "kind": ["a", "b", None]}))
    return folder


def run(warehouse: str, *arguments: str, code: int = 0, form: str = "table") -> str:
    result = RUNNER.invoke(app, ["--warehouse", warehouse, "--format", form, *arguments])
    assert result.exit_code == code, result.output
    return result.output


def rows(warehouse: str, *arguments: str) -> list[dict[str, object]]:
    found = json.loads(run(warehouse, *arguments, form="json"))
    assert isinstance(found, list)
    return found


def test_tables_are_listed(warehouse: str) -> None:
    assert rows(warehouse, "table", "list") == [{"name": "db.events", "kind": "table"}]


def test_summary_is_shown(warehouse: str) -> None:
    (facts,) = rows(warehouse, "table", "show", "db.events")
    assert facts["rows"] == 3
    assert facts["format_version"] == 2
    assert facts["columns"] == [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "kind", "type": "string", "required": False},
    ]
    assert facts["partitioned_by"] == ["kind"]
    assert facts["refs"] == {"main": {"type": "branch", "snapshot_id": facts["current_snapshot"]}}
    assert "rows,3" in run(warehouse, "table", "show", "db.events", form="csv").splitlines()


def test_columns_are_listed_with_their_ids(warehouse: str) -> None:
    assert [(one["id"], one["name"], one["required"]) for one in rows(warehouse, "table", "schema", "db.events")] == [
        (1, "id", True),
        (2, "kind", False),
    ]


@pytest.mark.parametrize("command", ["history", "snapshots", "files", "partitions", "refs", "manifests"])
def test_metadata_tables_are_shown_in_every_format(warehouse: str, command: str) -> None:
    assert rows(warehouse, "table", command, "db.events")
    assert run(warehouse, "table", command, "db.events", form="csv").count("\n") >= 2
    assert "row" in run(warehouse, "table", command, "db.events")


def test_table_is_created_renamed_and_dropped(warehouse: str) -> None:
    run(warehouse, "table", "create", "db.t", "id bigint, ts timestamptz", "--partition-by", "day(ts)",
        "--property", "a=b", "--format-version", "3")  # fmt: skip
    assert {"name": "a", "value": "b"} in rows(warehouse, "table", "properties", "db.t")
    run(warehouse, "table", "rename", "db.t", "db.u")
    run(warehouse, "table", "drop", "db.u", "--purge", "--yes")
    assert rows(warehouse, "table", "list", "db") == [{"name": "db.events", "kind": "table"}]


def test_dropped_table_is_registered_again(warehouse: str) -> None:
    (facts,) = rows(warehouse, "table", "show", "db.events")
    run(warehouse, "table", "drop", "db.events")
    run(warehouse, "table", "register", "db.back", str(facts["metadata"]))
    assert rows(warehouse, "table", "list") == [{"name": "db.back", "kind": "table"}]


def test_valid_table_passes_the_check(warehouse: str) -> None:
    assert "No problems" in run(warehouse, "check", "db.events", "--bounds")


def test_lost_file_fails_the_check_with_exit_code_1(warehouse: str) -> None:
    next(Path(warehouse).rglob("*.parquet")).unlink()
    assert "missing" in run(warehouse, "check", "db.events", code=1)
    assert json.loads(run(warehouse, "check", "db.events", code=1, form="json"))


def test_health_shows_what_to_run(warehouse: str) -> None:
    said = run(warehouse, "health", "db.events")
    assert "db.events" in said
    assert "data files of 1 MiB to 16 MiB: 0" in said


@pytest.mark.parametrize(
    "command",
    [
        ["optimize"],
        ["rewrite-data-files", "--option", "rewrite-all=true"],
        ["rewrite-position-delete-files"],
        ["rewrite-manifests"],
        ["rewrite-manifests", "--spec-id", "0", "--sort-by", "kind", "--branch", "main"],
        ["expire-snapshots", "--retain-last", "1"],
        ["expire-snapshots", "--clean-expired-metadata", "--max-concurrent-deletes", "2"],
        ["remove-orphan-files"],
        ["remove-orphan-files", "--equal-scheme", "s3a=s3", "--prefix-mismatch-mode", "ignore", "--old-metadata"],
        ["compute-table-stats", "--column", "id"],
        ["compute-partition-stats"],
        ["convert-equality-deletes"],
        ["remove-dangling-deletes"],
    ],
    ids=lambda command: str(command[0]),
)
def test_maintenance_runs_and_keeps_the_rows(warehouse: str, command: list[str]) -> None:
    procedure, *options = command
    with frazil.connect(warehouse) as lake:
        before = lake.table("db.events").metadata_location
    run(warehouse, "maintain", procedure, "db.events", *options, "--dry-run")
    with frazil.connect(warehouse) as lake:
        assert lake.table("db.events").metadata_location == before
    run(warehouse, "maintain", procedure, "db.events", *options)
    with frazil.connect(warehouse) as lake:
        assert lake.table("db.events").scan().count() == 3
        assert lake.table("db.events").check().ok


def test_existing_files_and_folders_are_adopted(warehouse: str, tmp_path: Path) -> None:
    folder = tmp_path / "old" / "kind=x"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [7, 8]}), folder / "0.parquet")
    added = ["maintain", "add-files", "db.events", str(tmp_path / "old"), "--partition", "kind=x"]
    for options in (["--dry-run"], []):
        (found,) = rows(warehouse, *added, *options)
        assert found["added_files_count"] == 1
    run(warehouse, "maintain", "snapshot", f"parquet.`{tmp_path / 'old'}`", "db.new", "--property", "a=b")
    run(warehouse, "maintain", "migrate", f"parquet.`{tmp_path / 'old'}`", code=1)
    with frazil.connect(warehouse) as lake:
        assert lake.table("db.events").scan().count() == 5
        assert lake.table("db.new").scan().count() == 2
        assert lake.table("db.new").properties["a"] == "b"


def test_table_is_prepared_for_another_location(warehouse: str, tmp_path: Path) -> None:
    source, target = f"file://{warehouse}/db/events", f"file://{tmp_path}/copy"
    command = ["maintain", "rewrite-table-path", "db.events", source, target]
    (planned,) = rows(warehouse, *command, "--dry-run")
    (found,) = rows(warehouse, *command)
    assert planned["rewritten_manifest_file_paths_count"] == found["rewritten_manifest_file_paths_count"] == 1
    assert Path(str(found["file_list_location"]).removeprefix("file://")).exists()


def test_failed_command_exits_with_1_and_a_hint(warehouse: str) -> None:
    output = run(warehouse, "table", "show", "db.nothing", code=1)
    assert "Cannot" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (["table", "show", "db.event"], "Did you mean db.events?"),
        (["head", "db.evnets"], "Did you mean db.events?"),
        (["view", "show", "db.totals"], "`frazil table list` lists the tables and views."),
        (["table", "files", "nowhere.t"], "`frazil table list` lists the tables and views."),
        (["table", "show", "events"], "Use both, as in db.events."),
        (["sql", "--local", "selectt 1"], 'syntax error at or near "selectt"'),
        (["sql", "--local", "--file", "missing.sql"], "'missing.sql': No such file or directory"),
        (["table", "set", "db.events", "schema.name-mapping.default={"], "Set it to a name mapping as JSON"),
    ],
)
def test_error_suggests_similar_names(warehouse: str, command: list[str], hint: str) -> None:
    said = run(warehouse, *command, code=1)
    assert hint in said
    assert "Errno" not in said


def test_views_of_all_namespaces_are_listed(warehouse: str) -> None:
    run(warehouse, "view", "create", "db.kinds", "select distinct kind from db.events")
    assert rows(warehouse, "view", "list") == rows(warehouse, "view", "list", "db") == [{"view": "db.kinds"}]


def test_help_shows_a_placeholder_only_for_options_with_a_value() -> None:
    for command in ([], ["table", "create"], ["check"], ["maintain", "optimize"]):
        said = RUNNER.invoke(app, [*command, "--help"]).output
        assert "<bool>" not in said
        assert "<list" not in said
        assert "NAME=VALUE" in said


def test_columns_with_wide_names_are_aligned(warehouse: str) -> None:
    with frazil.connect(warehouse) as lake:
        lake.create_table("db.wide", "`汉字` string, plain string, `e\u0301` string")
    lines = run(warehouse, "table", "show", "db.wide").splitlines()
    assert [line for line in lines if "STRING" in line] == [
        "  汉字   STRING",
        "  plain  STRING",
        "  e\u0301      STRING",
    ]


def test_invalid_usage_exits_with_2(warehouse: str) -> None:
    run(warehouse, "table", "nonsense", code=2)
    run(warehouse, "table", "show", code=2)
    run(warehouse, "table", "set", "db.events", "comment", code=2)
    run(warehouse, "table", "rollback", "db.events", code=2)
    assert RUNNER.invoke(app, ["table", "list"], env={"FRAZIL_WAREHOUSE": ""}).exit_code == 2


def test_warehouse_may_come_from_the_environment(warehouse: str) -> None:
    result = RUNNER.invoke(app, ["--format", "json", "table", "list"], env={"FRAZIL_WAREHOUSE": warehouse})
    assert json.loads(result.output) == [{"name": "db.events", "kind": "table"}]


def test_property_without_a_value_is_refused(warehouse: str) -> None:
    assert "NAME=VALUE" in run(warehouse, "table", "create", "db.t", "id bigint", "--property", "a", code=2)


def test_queries_run_locally_without_spark(warehouse: str) -> None:
    assert "1,234" in run(warehouse, "sql", "--local", "select '1,234' n; select 2 m")
    said = run(warehouse, "-f", "csv", "sql", "--local", "select 1 a, 'x' b")
    assert said.splitlines() == ["a,b", "1,x"]
    assert "a\\" in run(warehouse, "sql", "--local", "select 'a\\' x; -- one; comment\nselect 2 y")


def test_first_rows_of_a_table_are_printed(warehouse: str) -> None:
    assert [one["id"] for one in rows(warehouse, "head", "db.events", "--where", "id >= 2")] in ([2, 3], [3, 2])
    assert len(rows(warehouse, "head", "db.events", "-n", "2")) == 2
    assert rows(warehouse, "head", "db.events", "--where", "kind = 'b'", "--columns", "id") == [{"id": 2}]
    assert "(0 rows)" in run(warehouse, "head", "db.events", "-n", "0")
    assert "The columns are: id, kind" in run(warehouse, "head", "db.events", "--where", "nobody = 1", code=1)
    run(warehouse, "head", "db.events", "-n", "-1", code=2)
    with frazil.connect(warehouse) as lake:
        lake.create_view("db.v", "select id from db.events where id > 1")
    assert "it is a view" in run(warehouse, "head", "db.v", code=1)
    assert rows(warehouse, "sql", "--local", "select count(*) n from db.v") == [{"n": 2}]


def test_sql_without_a_statement_is_refused_before_spark_starts(warehouse: str, tmp_path: Path) -> None:
    assert "pass only one of them" in run(warehouse, "sql", "select 1", "--file", "x", code=2)
    assert "no statement" in run(warehouse, "sql", code=1)
    assert "no statement" in run(warehouse, "sql", " -- a note;", code=1)
    assert "Cannot read statements" in run(warehouse, "sql", "--file", str(tmp_path / "nothing.sql"), code=1)


def test_table_page_shows_deletes_and_an_empty_table(warehouse: str) -> None:
    with frazil.connect(warehouse) as lake:
        lake.create_table("db.empty", "id bigint not null, n int", sort_by=["n desc"], properties={"comment": "about"})
    page = run(warehouse, "table", "show", "db.empty")
    assert "about" in page
    assert "Sorted by       n DESC" in page
    assert "Files\n  none" in page
    assert "Snapshots\n  none" in page


def test_demo_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shown = RUNNER.invoke(app, ["demo"]).output
    assert "A filter prunes" in shown
    assert f"frazil ui -w {tmp_path}" in shown
    assert len(list(tmp_path.glob("frazil-demo-*/catalog.db"))) == 1


@pytest.mark.parametrize(
    "command", [["table", "list"], ["head", "db.events"], ["sql", "--local", "select count(*) from db.events"]]
)
def test_commands_without_spark_import_neither_pyspark_nor_pandas(warehouse: str, command: list[str]) -> None:
    code = (
        "import atexit, os, sys; from frazil.cli.start import main; "
        "atexit.register(lambda: os._exit(any(name in sys.modules for name in ('pyspark', 'pandas')))); "
        f"sys.argv = ['frazil', '--warehouse', {warehouse!r}, *{command!r}]; main()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_local_query_loads_few_modules(warehouse: str) -> None:
    code = (
        "import atexit, os, sys; from frazil.cli.start import main; "
        "heavy = {'pyspark', 'py4j', 'pandas', 'polars', 'sqlglot', 'botocore', 'psycopg', 'urllib3', 'rich'}; "
        "atexit.register(lambda: os._exit(len(sys.modules) > 950 or bool(heavy & sys.modules.keys()))); "
        f"sys.argv = ['frazil', '-w', {warehouse!r}, 'sql', '--local', 'select count(*) from db.events']; main()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_local_query_prints_nothing_but_its_rows(warehouse: str) -> None:
    """DuckDB's client reports what is left of it when a process ends without a last collection of garbage."""
    command = [sys.executable, "-m", "frazil.cli", "-w", warehouse, "--format", "json", "sql", "--local"]
    done = subprocess.run([*command, "select 1 x"], check=True, capture_output=True, text=True)
    assert (json.loads(done.stdout), done.stderr) == ([{"x": 1}], "")
    failed = subprocess.run([*command, "select * from nobody"], check=False, capture_output=True, text=True)
    assert failed.stderr.splitlines()[0].startswith("Cannot find the table nobody")
    assert len(failed.stderr.splitlines()) == 2


@pytest.mark.parametrize("command", [["list"], ["schema", "db.events"], ["properties", "db.events"]])
def test_metadata_commands_load_neither_arrow_nor_http(warehouse: str, command: list[str]) -> None:
    code = (
        "import sys; from frazil.cli.main import app; "
        f"app(['--warehouse', {warehouse!r}, 'table', *{command!r}], standalone_mode=False); "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'pyarrow', 'frazil.storage.http', 'urllib3')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_values_of_every_kind_are_formatted() -> None:
    row = {"a": b"\x00", "b": None, "c": [1, {"d": 2}], "e": "x" * 100, "f": 'say "hi", now'}
    assert json.loads(render_rows([row], list(row), OutputFormat.JSON))[0]["c"] == [1, {"d": 2}]
    assert '"say ""hi"", now"' in render_rows([row], list(row), OutputFormat.CSV)
    assert "…" in render_rows([row], list(row), OutputFormat.TABLE)


@pytest.mark.parametrize(
    "arguments", [("table", "list"), ("table", "show", "db.t"), ("check", "db.t"), ("maintain", "optimize", "db.t")]
)
def test_misspelt_warehouse_is_refused_and_not_created(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    for catalog in ([], ["--catalog", f"sqlite:///{tmp_path}/typo.db"], ["--catalog", "filesystem"]):
        result = RUNNER.invoke(app, ["-w", str(tmp_path / "typo"), *catalog, *arguments])
        assert result.exit_code == 1
        assert "it does not exist" in result.output
        assert list(tmp_path.iterdir()) == []


def test_created_lake_is_reported(tmp_path: Path) -> None:
    made = run(str(tmp_path / "new"), "table", "create", "db.t", "id bigint")
    assert "Creating a new lake in" in made
    assert "A new lake" not in run(str(tmp_path / "new"), "table", "list")


# Properties of the connection, and folders to delete in


def test_connection_properties_come_from_options_and_files(tmp_path: Path, warehouse: str) -> None:
    with frazil.connect(warehouse) as lake:
        location = str(lake.table("db.events").state.metadata_location)
    outside = tmp_path / "outside.metadata.json"
    outside.write_bytes(Path(location.removeprefix("file://")).read_bytes())
    stored = tmp_path / "lake.properties"
    stored.write_text(f"# what may be read\n\nread.roots = {tmp_path}/nowhere\n")
    before = ["--warehouse", warehouse]
    register = ["table", "register", "db.other", str(outside)]
    for given in (["--property", f"read.roots={tmp_path}/nowhere"], ["--properties-file", str(stored)]):
        refused = RUNNER.invoke(app, [*before, *given, *register])
        assert refused.exit_code == 1
        assert "outside the folders that may be read" in refused.output
    # What is on the line comes on top.
    both = ["--properties-file", str(stored), "-p", f"read.roots={tmp_path}"]
    assert RUNNER.invoke(app, [*before, *both, *register]).exit_code == 0


@pytest.mark.parametrize(
    ("given", "message", "code"),
    [
        (["--property", "read.roots"], "is not NAME=VALUE", 2),
        (["--property", "read.root=/x"], "Did you mean read.roots?", 1),
        (["--properties-file", "/nowhere"], "Cannot read the properties in /nowhere", 1),
    ],
)
def test_invalid_connection_properties_are_refused(warehouse: str, given: list[str], message: str, code: int) -> None:
    result = RUNNER.invoke(app, ["--warehouse", warehouse, *given, "table", "list"])
    assert result.exit_code == code
    assert message in result.output


def test_deletable_folders_can_be_named(tmp_path: Path, warehouse: str) -> None:
    data = str(tmp_path / "data")
    with frazil.connect(warehouse) as lake:
        table = lake.create_table("db.apart", "id bigint", properties={"write.data.path": data})
        table.append(pa.table({"id": pa.array([1], pa.int64())}))
        table.overwrite(pa.table({"id": pa.array([2], pa.int64())}))
    assert "outside the warehouse" in run(warehouse, "maintain", "remove-orphan-files", "db.apart", code=1)
    run(warehouse, "maintain", "remove-orphan-files", "db.apart", "--delete-root", data)
    expire = ["maintain", "expire-snapshots", "db.apart", "--older-than", "2100-01-01T00:00:00Z", "--retain-last", "1"]
    assert rows(warehouse, *expire, "--dry-run")[0]["kept_count"] == 1
    assert rows(warehouse, *expire, "--delete-root", data)[0]["deleted_data_files_count"] == 1
    assert "outside the warehouse" in run(warehouse, "table", "drop", "db.apart", "--purge", "--yes", code=1)
    run(warehouse, "table", "drop", "db.apart", "--purge", "--yes", "--delete-root", data)
    assert list(Path(data).rglob("*")) == []


def test_environment_supplies_service_credentials_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAZIL_TOKEN", "from-the-environment")
    assert secrets_of_environment("https://catalog.example") == {"token": "from-the-environment"}
    assert secrets_of_environment("warehouse") == {}


def commands_of(group: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in group.commands:
        found = group.commands.get(name)
        if hasattr(found, "commands"):
            yield from commands_of(found, *path, name)
        else:
            yield (*path, name), found


def test_every_command_accepts_the_lake_options() -> None:
    seen = dict(commands_of(get_command(app)))
    assert ("table", "list") in seen
    assert ("serve",) in seen
    for path, command in seen.items():
        taken = [text for one in command.params for text in one.opts]
        for text in ("--warehouse", "-w", "--catalog", "--property", "-p", "--properties-file", "--format", "--trust"):
            assert taken.count(text) == 1, (path, text)


def test_lake_options_may_precede_or_follow_the_command(warehouse: str) -> None:
    found = [{"name": "db.events", "kind": "table"}]
    for arguments in (
        ["-w", warehouse, "-f", "json", "table", "list"],
        ["table", "list", "-w", warehouse, "-f", "json"],
        ["table", "-w", warehouse, "list", "db", "-f", "json"],
        ["-w", "/no/such/lake", "-f", "csv", "table", "list", "--warehouse", warehouse, "--format", "json"],
    ):
        result = RUNNER.invoke(app, arguments)
        assert result.exit_code == 0, result.output
        assert json.loads(result.output) == found


def test_properties_from_both_places_are_merged_and_the_later_wins(warehouse: str, tmp_path: Path) -> None:
    file = tmp_path / "properties"
    file.write_text(f"read.roots = {tmp_path}\n")
    lake = ["table", "show", "db.events", "-w", warehouse]
    assert RUNNER.invoke(app, ["-p", "read.roots=/nowhere", *lake]).exit_code == 0
    refused = RUNNER.invoke(app, ["-p", "read.roots=/nowhere", *lake, "-p", "read.rots=/x"])
    assert refused.exit_code == 1
    assert "read.rots" in refused.output
    assert RUNNER.invoke(app, [*lake, "--properties-file", str(file)]).exit_code == 0
    missing = RUNNER.invoke(app, [*lake, "--properties-file", str(tmp_path / "none")])
    assert missing.exit_code == 1
    assert "Cannot read the properties" in missing.output


def test_table_property_goes_to_the_table_unless_it_is_a_connection_property(warehouse: str) -> None:
    made = ["table", "create", "db.own", "id bigint", "-w", warehouse]
    both = ["--property", "owner=ann", "--property", "s3.secret-access-key=canary", "-p", "s3.region=eu-west-1"]
    result = RUNNER.invoke(app, [*made, *both])
    assert result.exit_code == 0, result.output
    with frazil.connect(warehouse) as lake:
        table = lake.table("db.own")
        assert table.properties["owner"] == "ann"
        assert not any("canary" in value or "s3" in name for name, value in table.properties.items())


def test_follow_prints_new_rows_and_the_resume_token(warehouse: str) -> None:
    def follow(*arguments: str, form: str = "json") -> tuple[list[str], str]:
        result = RUNNER.invoke(app, ["-w", warehouse, "-f", form, "table", "follow", "db.events", *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines(), result.stderr.strip().removeprefix("token: ")

    lines, token = follow("--after", "beginning", "--until", "now")
    assert sorted(json.loads(one)["id"] for one in lines) == [1, 2, 3]
    with frazil.connect(warehouse) as lake:
        lake.table("db.events").append(pa.table({"id": [7], "kind": ["x"]}))
        lake.table("db.events").append(pa.table({"id": [8], "kind": ["y"]}))
    assert follow("--after", token, "--until", "now", form="csv")[0] == ["id,kind", "7,x", "8,y"]
    assert follow("--after", token, "--until", "now", "--where", "id > 7")[0] == ['{"id": 8, "kind": "y"}']
    assert "7" in "".join(follow("--after", token, "--until", "now", form="table")[0])


def test_follow_refuses_a_token_of_another_table(warehouse: str) -> None:
    said = run(warehouse, "table", "follow", "db.events", "--after", '{"table":"x","after":1}', code=1)
    assert "another table" in said
