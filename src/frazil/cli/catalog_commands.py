"""`frazil catalog …`: commands for whole catalogs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from frazil.cli.lake_options import is_given
from frazil.cli.render import OutputFormat
from frazil.cli.session import (
    FAILED,
    connection_properties,
    reported,
    secrets_of_environment,
    settings_of,
    wrong_usage,
)
from frazil.errors import NotFoundError

catalog_app = typer.Typer(help="Work on whole catalogs.", no_args_is_help=True)

_LAKE = "A folder, a URI, a catalog service, or a connection's name"
_COLUMNS = ["kind", "name", "outcome", "metadata", "why"]
Texts = list[str] | None


@catalog_app.callback()
def group() -> None:
    """Work on whole catalogs."""


@catalog_app.command("copy")
def copy(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SRC", help=_LAKE)],
    target: Annotated[str, typer.Argument(metavar="DST", help=f"{_LAKE}; a missing folder is created")],
    tables: Annotated[
        Texts, typer.Option("--tables", help="Only these tables and views: db.t, 'db.*'. May be repeated")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the names in the source; write to only one of the two")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing, and show what would happen")] = False,
    source_catalog: Annotated[str | None, typer.Option(help="--catalog for the source")] = None,
    target_catalog: Annotated[str | None, typer.Option(help="--catalog for the target")] = None,
    source_name: Annotated[str, typer.Option(help="The source's name in a SQL database")] = "lake",
    target_name: Annotated[str, typer.Option(help="The target's name in a SQL database")] = "lake",
    source_property: Annotated[Texts, typer.Option(help="--property for the source. May be repeated")] = None,
    target_property: Annotated[Texts, typer.Option(help="--property for the target. May be repeated")] = None,
    source_properties_file: Annotated[str | None, typer.Option(help="--properties-file for the source")] = None,
    target_properties_file: Annotated[str | None, typer.Option(help="--properties-file for the target")] = None,
) -> None:
    """Move tables and views to another catalog: register them there, check them, and unregister them here. Files stay.

    \b
    frazil catalog copy warehouse https://catalog.example --dry-run
    frazil catalog copy warehouse https://catalog.example --tables 'shop.*' --target-properties-file service.properties
    frazil catalog copy prod new --keep

    A stopped copy continues when it is run again. --property applies to both.
    """
    with reported():
        shared = settings_of(context)
        for name in ("warehouse", "catalog", "name"):
            if is_given(context, name):
                raise wrong_usage(
                    f"Cannot copy with --{name}: there are two lakes",
                    "SRC and DST name the lakes; set their catalogs with --source-catalog and --source-name, "
                    "--target-catalog and --target-name.",
                )
        sides = [
            (source, source_catalog, source_name, connection_properties(source_property, source_properties_file)),
            (target, target_catalog, target_name, connection_properties(target_property, target_properties_file)),
        ]
        with (
            _opened(shared.properties, *sides[0], is_target=False, dry_run=dry_run) as own,
            _opened(shared.properties, *sides[1], is_target=True, dry_run=dry_run) as other,
        ):
            from frazil.catalog.copy_catalog import copy_catalog

            steps = copy_catalog(own, other, names=tables or (), keep=keep, dry_run=dry_run)
            done = list(steps)
            shared.show([{name: getattr(step, name) for name in step.__slots__} for step in done], _COLUMNS)
        failed = sum(step.outcome == "failed" for step in done)
        if failed:
            typer.echo(f"{failed} of {len(done)} failed; run it again once the causes are resolved.", err=True)
            raise typer.Exit(FAILED)
        if shared.form is OutputFormat.TABLE and not dry_run and keep:
            typer.echo("Both catalogs have these tables now: write to only one of them.", err=True)


def _opened(
    shared: Mapping[str, str],
    address: str,
    catalog: str | None,
    name: str,
    own: Mapping[str, str],
    *,
    is_target: bool,
    dry_run: bool,
) -> Any:
    from frazil.table import open_catalog as opening

    if not opening.lake_exists(address, catalog):
        if not is_target:
            raise NotFoundError(f"Cannot open the lake {address!r}: it does not exist", hint="Check its path or name.")
        if dry_run:
            # A new lake would be empty.
            return opening.open_catalog("memory:")
        typer.echo(f"Creating a new lake in {address}.", err=True)
    properties = {**secrets_of_environment(address), **shared, **own}
    return opening.open_catalog(address, catalog=catalog, name=name, properties=properties)
