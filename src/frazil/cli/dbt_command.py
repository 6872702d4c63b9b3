"""`frazil dbt`: run dbt in a process whose Spark session has the lake, as dbt-spark's method `session` requires."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from frazil.cli.session import FAILED, opened
from frazil.errors import UnsupportedError

NAME = "lake"
BARE = "default"
"""The namespace of unqualified names, as in Spark's session catalog."""


def dbt(
    context: typer.Context,
    arguments: Annotated[
        list[str],
        typer.Argument(metavar="ARGUMENT...", help="Arguments of dbt; put -- before them if some are options"),
    ],
) -> None:
    """Run dbt on the lake: Spark starts with it as the default catalog, and dbt uses its session.

    \b
    frazil -w warehouse dbt -- build --project-dir shop --profiles-dir shop
    frazil -w warehouse dbt run

    Profiles have `type: spark` and `method: session`; docs/dbt.md.
    """
    with opened(context, makes=True) as (lake, _):
        runner = _runner()
        from frazil.cli.quiet_spark import start_spark

        spark = start_spark(lake)
        from frazil.sessions.attach import attach

        attach(spark, lake, NAME)
        # dbt-spark creates a view with an unqualified name when it takes a snapshot a second time.
        lake.create_namespace(BARE)
        spark.catalog.setCurrentCatalog(NAME)
        spark.catalog.setCurrentDatabase(BARE)
        done = runner.invoke(list(arguments))
        if not done.success:
            raise typer.Exit(FAILED)


def _runner() -> Any:
    try:
        return import_module("dbt.cli.main").dbtRunner()
    except ImportError as error:
        raise UnsupportedError(
            "Cannot run dbt: it is not installed", hint='Install it: pip install "dbt-core<1.11" dbt-spark.'
        ) from error
