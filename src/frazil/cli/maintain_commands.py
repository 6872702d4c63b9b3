"""`frazil maintain PROCEDURE TABLE`: the procedures of `t.maintain`, with a dry run that shows what would happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

import typer

from frazil.cli.session import opened, pairs_of

maintain_app = typer.Typer(help="Keep tables fast and small.", no_args_is_help=True)

TableName = Annotated[str, typer.Argument(metavar="TABLE", help="A table's name: db.events")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing, and show what would happen")]
Options = Annotated[
    list[str] | None, typer.Option("--option", help="NAME=VALUE, as the procedure has it. May be repeated")
]
Where = Annotated[str | None, typer.Option(help="Only files that can hold such rows")]


@maintain_app.command()
def optimize(
    context: typer.Context,
    name: TableName,
    budget_bytes: Annotated[int | None, typer.Option(help="Rewrite at most so many bytes")] = None,
) -> None:
    """Do whatever is worth doing."""
    _run(context, name, "optimize", budget_bytes=budget_bytes)


@maintain_app.command("rewrite-data-files")
def rewrite_data_files(
    context: typer.Context,
    name: TableName,
    strategy: Annotated[str, typer.Option(help="binpack or sort")] = "binpack",
    sort_by: Annotated[
        str | None, typer.Option(help="An order, or zorder(a, b); the table's own where not given")
    ] = None,
    where: Where = None,
    options: Options = None,
    dry_run: DryRun = False,
) -> None:
    """Make large files of small ones, and apply deletes."""
    _run(
        context,
        name,
        "rewrite_data_files",
        strategy=strategy,
        sort_by=sort_by,
        where=where,
        options=options,
        dry_run=dry_run,
    )


@maintain_app.command("rewrite-position-delete-files")
def rewrite_position_delete_files(
    context: typer.Context, name: TableName, where: Where = None, options: Options = None, dry_run: DryRun = False
) -> None:
    """Make few delete files, or deletion vectors, of many."""
    _run(context, name, "rewrite_position_delete_files", where=where, options=options, dry_run=dry_run)


@maintain_app.command("rewrite-manifests")
def rewrite_manifests(context: typer.Context, name: TableName, dry_run: DryRun = False) -> None:
    """Cluster manifests by partition."""
    _run(context, name, "rewrite_manifests", dry_run=dry_run)


@maintain_app.command("expire-snapshots")
def expire_snapshots(
    context: typer.Context,
    name: TableName,
    older_than: Annotated[str | None, typer.Option(help="A time: 2024-06-01T00:00:00Z")] = None,
    retain_last: Annotated[int | None, typer.Option(help="Keep so many of each branch")] = None,
    dry_run: DryRun = False,
) -> None:
    """Forget old snapshots and delete the files that only they lead to."""
    _run(context, name, "expire_snapshots", older_than=older_than, retain_last=retain_last, dry_run=dry_run)


@maintain_app.command("remove-orphan-files")
def remove_orphan_files(
    context: typer.Context,
    name: TableName,
    older_than: Annotated[
        str | None, typer.Option(help="A time: 2024-06-01T00:00:00Z; three days ago by default")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Delete files in the table's folder that nothing leads to."""
    _run(context, name, "remove_orphan_files", older_than=older_than, dry_run=dry_run)


@maintain_app.command("compute-table-stats")
def compute_table_stats(context: typer.Context, name: TableName) -> None:
    """Count distinct values of columns, for optimisers."""
    _run(context, name, "compute_table_stats")


@maintain_app.command("compute-partition-stats")
def compute_partition_stats(context: typer.Context, name: TableName) -> None:
    """Write a table of the partitions' counts."""
    _run(context, name, "compute_partition_stats")


def _run(context: typer.Context, table_name: str, procedure: str, **arguments: Any) -> None:
    with opened(context) as (lake, settings):
        if "options" in arguments:
            arguments["options"] = pairs_of(arguments["options"], "option")
        result = getattr(lake.table(table_name).maintain, procedure)(**arguments)
        settings.show([{"result": name, "value": value} for name, value in _facts(result).items()], ["result", "value"])


def _facts(result: Any) -> Mapping[str, Any]:
    if result is None:
        return {"nothing to do": None}
    if is_dataclass(result):
        return {one.name: _brief(getattr(result, one.name)) for one in fields(result)}
    return {"result": _brief(result)}


def _brief(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_brief(one) for one in value]
    if isinstance(value, Mapping):
        return {str(name): _brief(one) for name, one in value.items()}
    return value if isinstance(value, str | int | float | bool | None) else str(value)
