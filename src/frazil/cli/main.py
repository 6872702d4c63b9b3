"""`frazil`: the lake in a terminal. Where each command is; what they share is in `session.py`.

frazil [--warehouse W] [--catalog C] [--format table|json|csv] COMMAND …
"""

from __future__ import annotations

from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer

from frazil.cli.demo import run_demo
from frazil.cli.demo_spark import run_spark_demo
from frazil.cli.maintain_commands import maintain_app
from frazil.cli.render import OutputFormat
from frazil.cli.session import FAILED, Settings, opened, reported
from frazil.cli.table_commands import table_app
from frazil.lake.attach import attach, detach
from frazil.lake.on_spark import choose_session

app = typer.Typer(
    name="frazil",
    help="Apache Iceberg tables from the terminal.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(table_app, name="table")
app.add_typer(maintain_app, name="maintain")


@app.callback()
def options(
    context: typer.Context,
    warehouse: Annotated[
        str | None, typer.Option("--warehouse", "-w", envvar="FRAZIL_WAREHOUSE", help="The lake: a folder or a URI")
    ] = None,
    catalog: Annotated[
        str | None,
        typer.Option(
            "--catalog", "-c", envvar="FRAZIL_CATALOG", help="sqlite:///…, postgresql://…, filesystem", show_envvar=True
        ),
    ] = None,
    form: Annotated[OutputFormat, typer.Option("--format", "-f", help="How results are printed")] = OutputFormat.TABLE,
) -> None:
    """Take the options that come before a command."""
    context.obj = Settings(warehouse, catalog, form)


@app.command()
def sql(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="One statement; the lake's name in it is `lake`")],
) -> None:
    """Run a statement on Spark, in a local session."""
    with opened(context) as (lake, settings):
        spark = choose_session(None, lake)
        attach(spark, lake)
        try:
            frame = spark.sql(text)
            settings.show(frame.toArrow() if frame.columns else [], frame.columns)
        finally:
            detach(spark)


@app.command()
def check(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TABLE")],
    bounds: Annotated[
        bool, typer.Option("--bounds", help="Read data files too, and compare them with metadata")
    ] = False,
) -> None:
    """Check that every file a table leads to is there and agrees with its metadata; exit with 1 where not."""
    with opened(context) as (lake, settings):
        _report(lake.table(name).check(bounds=bounds), settings)


@app.command()
def health(context: typer.Context, name: Annotated[str, typer.Argument(metavar="TABLE")]) -> None:
    """Tell what maintenance a table needs."""
    with opened(context) as (lake, settings):
        _report(lake.table(name).health(), settings, fails=False)


@app.command()
def demo(
    spark: Annotated[
        bool, typer.Option("--spark", help="Go on with the second half, on a local Spark session")
    ] = False,
) -> None:
    """Show what frazil does, in a temporary folder."""
    with reported():
        run_demo(typer.echo)
        if spark:
            run_spark_demo(typer.echo)


@app.command()
def version() -> None:
    """Print frazil's version."""
    typer.echo(installed_version("frazil"))


def _report(report: Any, settings: Settings, *, fails: bool = True) -> None:
    if settings.form is OutputFormat.TABLE:
        typer.echo(str(report))
    else:
        settings.show(
            [
                {"kind": one.kind, "what": one.what, "to_do": one.to_do, "path": one.path, "procedure": one.procedure}
                for one in report.problems
            ],
            ["kind", "what", "to_do", "path", "procedure"],
        )
    if fails and not report.ok:
        raise typer.Exit(FAILED)
