"""`frazil branch …` and `frazil tag …`: create, move and drop references to snapshots, without a JVM."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from frazil.cli.session import Settings, opened_catalog, wrong_usage
from frazil.cli.table_name import TableName
from frazil.errors import NotFoundError
from frazil.spec.iso8601 import show_ms
from frazil.spec.snapshot_history import snapshot_as_of
from frazil.table.parse_name import parse_name
from frazil.table.point_in_time import age_ms, milliseconds_of

branch_app = typer.Typer(help="Branches of a table: list, create, move, retain, rename, drop.", no_args_is_help=True)
tag_app = typer.Typer(help="Tags of a table: list, create, retain, drop.", no_args_is_help=True)

BranchName = Annotated[str, typer.Argument(metavar="BRANCH", help="The branch's name")]
TagName = Annotated[str, typer.Argument(metavar="TAG", help="The tag's name")]
At = Annotated[
    str | None,
    typer.Option(
        "--at", help="A snapshot's id, a branch, a tag, or a time (7d, yesterday); the current one by default"
    ),
]
_KEEP_SNAPSHOTS = "The minimum number of its snapshots that expiry keeps"
KeepSnapshots = Annotated[int | None, typer.Option("--keep-snapshots", min=1, help=_KEEP_SNAPSHOTS)]
KeepFor = Annotated[str | None, typer.Option("--keep-for", help="How long expiry keeps its snapshots: 7d")]
LastsFor = Annotated[str | None, typer.Option("--lasts-for", help="How long expiry keeps it: 30d")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace an existing one of this name")]
IfNotExists = Annotated[bool, typer.Option("--if-not-exists", help="Do nothing if one of this name exists")]
IfExists = Annotated[bool, typer.Option("--if-exists", help="Do nothing if it does not exist")]


@branch_app.command("list")
def list_branches(context: typer.Context, name: TableName) -> None:
    """List a table's branches."""
    with opened_catalog(context) as (catalog, settings):
        _show(settings, open_table(catalog, name), "branch")


@branch_app.command("create")
def create_branch(
    context: typer.Context,
    name: TableName,
    branch: BranchName,
    at: At = None,
    keep_snapshots: KeepSnapshots = None,
    keep_for: KeepFor = None,
    lasts_for: LastsFor = None,
    replace: Replace = False,
    if_not_exists: IfNotExists = False,
) -> None:
    """Create a branch at a snapshot.

    \b
    frazil -w warehouse branch create shop.orders audit
    frazil -w warehouse branch create shop.orders audit --at yesterday --keep-snapshots 5 --keep-for 7d
    """
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        table.create_branch(
            branch,
            snapshot_of(table, at),
            min_snapshots_to_keep=keep_snapshots,
            max_snapshot_age_ms=_age(keep_for),
            max_ref_age_ms=_age(lasts_for),
            replaces=replace,
            exist_ok=if_not_exists,
        )
        _show(settings, table, "branch", branch)


@branch_app.command("drop")
def drop_branch(context: typer.Context, name: TableName, branch: BranchName, if_exists: IfExists = False) -> None:
    """Drop a branch; its snapshots stay until they expire."""
    with opened_catalog(context) as (catalog, settings):
        open_table(catalog, name).drop_branch(branch, missing_ok=if_exists)
        settings.show([{"dropped": branch, "of": name}])


@branch_app.command("rename")
def rename_branch(
    context: typer.Context,
    name: TableName,
    branch: BranchName,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="The new name")],
) -> None:
    """Rename a branch."""
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        table.rename_branch(branch, new_name)
        _show(settings, table, "branch", new_name)


@branch_app.command("retain")
def retain_branch(
    context: typer.Context,
    name: TableName,
    branch: BranchName,
    keep_snapshots: Annotated[int | None, typer.Option("--keep-snapshots", min=0, help=_KEEP_SNAPSHOTS)] = None,
    keep_for: KeepFor = None,
    lasts_for: LastsFor = None,
) -> None:
    """Set how long expiry keeps a branch and its snapshots; unset limits stay, 0 removes a limit.

    \b
    frazil -w warehouse branch retain shop.orders audit --keep-snapshots 5 --keep-for 7d
    frazil -w warehouse branch retain shop.orders audit --lasts-for 0
    """
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        _retain(table, branch, "branch", keep_snapshots, keep_for, lasts_for)
        _show(settings, table, "branch", branch)


@branch_app.command("fast-forward")
def fast_forward(
    context: typer.Context,
    name: TableName,
    branch: BranchName,
    to: Annotated[str, typer.Argument(metavar="TO", help="The branch or tag to move to, which descends from it")],
) -> None:
    """Move a branch to the head of another that descends from it, which publishes its changes.

    \b
    frazil -w warehouse branch fast-forward shop.orders main audit
    """
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        table.fast_forward(branch, to=to)
        _show(settings, table, "branch", branch)


@tag_app.command("list")
def list_tags(context: typer.Context, name: TableName) -> None:
    """List a table's tags."""
    with opened_catalog(context) as (catalog, settings):
        _show(settings, open_table(catalog, name), "tag")


@tag_app.command("create")
def create_tag(
    context: typer.Context,
    name: TableName,
    tag: TagName,
    at: At = None,
    lasts_for: LastsFor = None,
    replace: Replace = False,
    if_not_exists: IfNotExists = False,
) -> None:
    """Create a tag at a snapshot.

    \b
    frazil -w warehouse tag create shop.orders 2026-q1
    frazil -w warehouse tag create shop.orders before-the-load --at '2 hours ago' --lasts-for 30d
    """
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        table.create_tag(
            tag, snapshot_of(table, at), max_ref_age_ms=_age(lasts_for), replaces=replace, exist_ok=if_not_exists
        )
        _show(settings, table, "tag", tag)


@tag_app.command("retain")
def retain_tag(
    context: typer.Context,
    name: TableName,
    tag: TagName,
    lasts_for: Annotated[str, typer.Option("--lasts-for", help="How long expiry keeps it: 30d; 0 means forever")],
) -> None:
    """Set how long expiry keeps a tag.

    \b
    frazil -w warehouse tag retain shop.orders 2026-q1 --lasts-for 365d
    """
    with opened_catalog(context) as (catalog, settings):
        table = open_table(catalog, name)
        _retain(table, tag, "tag", None, None, lasts_for)
        _show(settings, table, "tag", tag)


@tag_app.command("drop")
def drop_tag(context: typer.Context, name: TableName, tag: TagName, if_exists: IfExists = False) -> None:
    """Drop a tag; its snapshot stays until it expires."""
    with opened_catalog(context) as (catalog, settings):
        open_table(catalog, name).drop_tag(tag, missing_ok=if_exists)
        settings.show([{"dropped": tag, "of": name}])


def snapshot_of(table: Any, text: str | None) -> int | None:
    """Return the snapshot that a text names: by branch, tag, id or time; None is the current one."""
    if text is None:
        return None
    metadata = table.metadata
    ref = metadata.refs.get(text)
    if ref is not None:
        return int(ref.snapshot_id)
    if text.isascii() and text.isdigit():
        return int(metadata.snapshot(int(text)).snapshot_id)
    return int(snapshot_as_of(metadata, milliseconds_of(text)).snapshot_id)


def open_table(catalog: Any, name: str) -> Any:
    """Return a `Table`, importing what it needs on demand."""
    from frazil.table.table import Table

    return Table(catalog, catalog.load_table(parse_name(name)))


def _retain(
    table: Any, name: str, ref_type: str, keep_snapshots: int | None, keep_for: str | None, lasts_for: str | None
) -> None:
    ref = table.refs.get(name)
    if ref is None or ref.type != ref_type:
        raise NotFoundError(
            f"Cannot change the {ref_type} {name!r} of {table.name}: it does not exist",
            hint=f"frazil {ref_type} list {table.name} lists them.",
        )
    if keep_snapshots is None and keep_for is None and lasts_for is None:
        raise wrong_usage(
            f"Cannot change the {ref_type} {name!r} of {table.name}: no setting was given",
            "Pass --keep-snapshots, --keep-for or --lasts-for.",
        )
    table.set_retention(
        name,
        min_snapshots_to_keep=keep_snapshots,
        max_snapshot_age_ms=0 if keep_for == "0" else _age(keep_for),
        max_ref_age_ms=0 if lasts_for == "0" else _age(lasts_for),
    )


def _age(text: str | None) -> int | None:
    return None if text is None else age_ms(text)


def _show(settings: Settings, table: Any, ref_type: str, name: str | None = None) -> None:
    """Print the references of a type, or one of them."""
    refs = {key: ref for key, ref in table.refs.items() if ref.type == ref_type and name in (None, key)}
    heads = {key: table.metadata.snapshots.find_head(ref.snapshot_id) for key, ref in refs.items()}
    ages = ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms")
    limits = ages if ref_type == "branch" else ages[2:]
    rows = [
        {
            ref_type: ref_name,
            "snapshot_id": ref.snapshot_id,
            "at": None if heads[ref_name] is None else show_ms(heads[ref_name].timestamp_ms),
            **{limit: getattr(ref, limit) for limit in limits},
        }
        for ref_name, ref in sorted(refs.items())
    ]
    settings.show(rows, [ref_type, "snapshot_id", "at", *limits])
