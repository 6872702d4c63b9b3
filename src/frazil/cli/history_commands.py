"""Commands of `frazil table` for its history: changes, rollback, set-current, cherry-pick, publish."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from frazil.cli.ref_commands import open_table, snapshot_of
from frazil.cli.session import Settings, opened_catalog, wrong_usage
from frazil.cli.table_name import MAX_ROWS, Branch, TableName
from frazil.spec.snapshot import MAIN_BRANCH

State = Annotated[str, typer.Argument(metavar="SNAPSHOT", help="A snapshot's id, a branch, a tag, or a time")]
SnapshotId = Annotated[int, typer.Argument(metavar="SNAPSHOT", help="A snapshot's id")]


def changes(
    context: typer.Context,
    name: TableName,
    start: Annotated[
        str | None, typer.Option("--from", help="After a snapshot, branch or tag, or since a time; all by default")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="Up to and including a snapshot, or a time; now by default")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Only these columns, separated by commas")] = None,
    limit: Annotated[int, typer.Option(min=0, help="The most rows to show")] = MAX_ROWS,
) -> None:
    """List the rows that were added and removed, with the snapshot of the change, without Spark and Java.

    \b
    frazil -w warehouse table changes shop.orders --from yesterday
    frazil -w warehouse table changes shop.orders --from before-the-load --columns id,kind
    """
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        chosen = None if columns is None else [column.strip() for column in columns.split(",")]
        settings.show(
            table.changes(_snapshot_or_time(table, start), _snapshot_or_time(table, end), columns=chosen).slice(
                0, limit
            )
        )


def rollback(
    context: typer.Context,
    name: TableName,
    snapshot: Annotated[
        str | None, typer.Argument(metavar="[SNAPSHOT]", help="A snapshot's id, a tag, or a branch")
    ] = None,
    before: Annotated[
        str | None, typer.Option(help="To the last snapshot before a time: 7d, yesterday, '2 hours ago'")
    ] = None,
    branch: Branch = MAIN_BRANCH,
) -> None:
    """Roll a table back to a snapshot of its history; later snapshots stay until they expire.

    \b
    frazil -w warehouse table rollback shop.orders 4358109269873137077
    frazil -w warehouse table rollback shop.orders --before '2 hours ago'
    """
    with opened_catalog(context) as (catalog, settings):
        if (snapshot is None) == (before is None):
            raise wrong_usage(
                f"Cannot roll back {name}: pass either a snapshot or --before",
                f"frazil table history {name} lists its snapshots.",
            )
        table = open_table(catalog, name)
        table.rollback_to(snapshot_of(table, snapshot), before=before, branch=branch)
        _show(settings, table, name, branch)


def set_current(context: typer.Context, name: TableName, snapshot: State) -> None:
    """Make any snapshot the current one, regardless of its history.

    \b
    frazil -w warehouse table set-current shop.orders yesterday
    """
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        table.set_current_snapshot(snapshot_of(table, snapshot))
        _show(settings, table, name, MAIN_BRANCH)


def cherry_pick(context: typer.Context, name: TableName, snapshot: SnapshotId, branch: Branch = MAIN_BRANCH) -> None:
    """Repeat the change of a snapshot on a branch.

    \b
    frazil -w warehouse table cherry-pick shop.orders 4358109269873137077
    """
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        table.cherry_pick(snapshot, branch=branch)
        _show(settings, table, name, branch)


def publish(
    context: typer.Context,
    name: TableName,
    wap_id: Annotated[str, typer.Argument(metavar="WAP_ID", help="The wap.id that the write was staged under")],
    branch: Branch = MAIN_BRANCH,
) -> None:
    """Publish a staged write (write, audit, publish)."""
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        table.publish_changes(wap_id, branch=branch)
        _show(settings, table, name, branch)


def _snapshot_or_time(table: Any, text: str | None) -> int | str | None:
    is_named = text is not None and (text in table.refs or (text.isascii() and text.isdigit()))
    return snapshot_of(table, text) if is_named else text


def _show(settings: Settings, table: Any, name: str, branch: str) -> None:
    head = table.metadata.ref_snapshot(branch)
    settings.show([{"table": name, "branch": branch, "snapshot_id": head.snapshot_id}])
