"""`frazil`: the lake in the terminal. Commands are registered here; their common part is in `session.py`.

frazil [--warehouse W] [--catalog C] [--property NAME=VALUE] [--format table|json|csv] COMMAND …

The options may also follow the command (`lake_options.py`).

Commands import their dependencies when they run, so that help is instant.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Annotated, Any

import typer

from frazil.cli.command_groups import CommandGroups
from frazil.cli.dbt_command import dbt
from frazil.cli.doctor_command import doctor
from frazil.cli.lake_options import (
    CatalogName,
    CatalogUri,
    Form,
    LakeOptions,
    Properties,
    PropertiesFile,
    TrustLevel,
    Warehouse,
)
from frazil.cli.pager import print_paged
from frazil.cli.render import OutputFormat, Trust
from frazil.cli.serve_command import serve
from frazil.cli.session import FAILED, Settings, opened, opened_catalog, reported
from frazil.cli.spark_server import spark_server
from frazil.cli.table_name import TableName
from frazil.cli.ui_command import ui
from frazil.errors import InvalidRequestError, TableNotFoundError
from frazil.table.parse_name import parse_name

app = typer.Typer(
    name="frazil",
    cls=CommandGroups,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _installed_version() -> str:
    found: str = import_module("importlib.metadata").version("frazil")
    return found


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"frazil {_installed_version()}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    warehouse: Warehouse = None,
    catalog: CatalogUri = None,
    name: CatalogName = None,
    form: Form = OutputFormat.TABLE,
    properties: Properties = None,
    properties_file: PropertiesFile = None,
    trust: TrustLevel = Trust.ALL,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit")
    ] = False,
) -> None:
    """Apache Iceberg tables from the terminal.

    \b
    frazil -w warehouse table list
    frazil -w warehouse table show shop.orders
    frazil -w warehouse head shop.orders
    frazil -w warehouse -f json table snapshots shop.orders
    frazil -w warehouse sql "select count(*) from lake.shop.orders"
    frazil -w warehouse --property read.roots=/srv/lake table list
    frazil demo

    The options that name the lake may also come after the command. FRAZIL_WAREHOUSE replaces -w.
    """
    context.obj = LakeOptions(warehouse, catalog, form, tuple(properties or ()), properties_file, trust, name)
    if os.environ.get("NO_COLOR"):
        context.color = False


@app.command()
def sql(
    context: typer.Context,
    text: Annotated[
        str | None,
        typer.Argument(metavar="[SQL]", help="Statements separated by semicolons; the lake is named `lake`"),
    ] = None,
    file: Annotated[
        str | None, typer.Option("--file", help="Read the statements from a file; - is standard input")
    ] = None,
    local: Annotated[
        bool, typer.Option("--local", help="Run in this process with DuckDB, without Spark and Java; docs/local-sql.md")
    ] = False,
) -> None:
    """Run SQL on a local Spark session; without a statement, open a prompt.

    \b
    frazil -w warehouse sql "select * from lake.shop.orders limit 10"
    frazil -w warehouse sql --local "select count(*) from shop.orders"
    frazil -w warehouse sql --file nightly.sql
    echo "show tables in lake.shop" | frazil -w warehouse -f csv sql
    frazil -w warehouse sql

    At the prompt, a statement ends with a semicolon and may span lines. Tab completes names; the arrow keys recall
    earlier statements.
    """
    with opened(context, makes=not local) as (lake, settings):
        from frazil.cli.run_sql import run_sql

        run_sql(lake, settings, text, file, is_local=local)


@app.command()
def head(
    context: typer.Context,
    name: TableName,
    rows: Annotated[int, typer.Option("-n", "--rows", min=0, help="The number of rows")] = 10,
    where: Annotated[str | None, typer.Option(help="Only rows that match this condition; docs/conditions.md")] = None,
    columns: Annotated[str | None, typer.Option(help="Only these columns, separated by commas")] = None,
) -> None:
    """Print the first rows of a table, without Spark and Java, reading only the files that contain them.

    \b
    frazil -w warehouse head shop.orders
    frazil -w warehouse head shop.orders -n 100 --where "amount > 10 and day = '2024-06-01'" --columns id,amount
    """
    with opened_catalog(context) as (catalog, settings):
        try:
            loaded = catalog.load_table(parse_name(name))
        except TableNotFoundError:
            if not catalog.view_exists(parse_name(name)):
                raise
            raise InvalidRequestError(
                f"Cannot print rows of {name}: it is a view", hint=f'frazil sql --local "select * from {name} limit 10"'
            ) from None
        chosen = None if columns is None else [column.strip() for column in columns.split(",")]
        from frazil.table.scan import scan_table

        scan = scan_table(loaded, where, columns=chosen, limit=rows)
        settings.show(scan.to_arrow())


@app.command()
def check(
    context: typer.Context,
    name: TableName,
    bounds: Annotated[
        bool, typer.Option("--bounds", help="Also read data files, and compare them with the metadata")
    ] = False,
) -> None:
    """Check that every file of a table exists and agrees with its metadata; exit with 1 if not.

    \b
    frazil -w warehouse check shop.orders
    frazil -w warehouse check shop.orders --bounds
    """
    with opened_catalog(context) as (catalog, settings):
        loaded = catalog.load_table(parse_name(name))
        from frazil.maintenance.check_table import check_beside_writers as check

        _report(check(catalog, loaded, with_rows=bounds), settings)


@app.command()
def health(context: typer.Context, name: TableName) -> None:
    """Report the maintenance that a table needs.

    \b
    frazil -w warehouse health shop.orders
    """
    with opened_catalog(context) as (catalog, settings):
        loaded = catalog.load_table(parse_name(name))
        from frazil.maintenance.table_health import table_health

        report = table_health(loaded, now_ms=catalog.now_ms())
        _report(report, settings, fails=False)


@app.command()
def demo() -> None:
    """Show what frazil does, in a temporary folder.

    \b
    frazil demo
    """
    with reported():
        from frazil.cli.demo import run_demo

        run_demo(typer.echo)


app.command()(serve)
app.command()(ui)
app.command("spark-server")(spark_server)
app.command()(dbt)
app.command()(doctor)


@app.command()
def version() -> None:
    """Print frazil's version."""
    typer.echo(_installed_version())


def _report(report: Any, settings: Settings, *, fails: bool = True) -> None:
    if settings.form is OutputFormat.TABLE:
        print_paged(str(report))
    else:
        settings.show(
            [
                {
                    "kind": problem.kind,
                    "what": problem.what,
                    "to_do": problem.to_do,
                    "path": problem.path,
                    "procedure": problem.procedure,
                }
                for problem in report.problems
            ],
            ["kind", "what", "to_do", "path", "procedure"],
        )
    if fails and not report.ok:
        raise typer.Exit(FAILED)
