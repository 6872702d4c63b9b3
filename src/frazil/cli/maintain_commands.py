"""`frazil maintain PROCEDURE TABLE`: what `t.maintain` does, and adopting tables of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

import typer

from frazil.cli.lake_options import TableProperties
from frazil.cli.render import OutputFormat
from frazil.cli.session import Settings, opened, pairs_of, reported, take_properties
from frazil.cli.table_name import Branch, DeleteRoots, TableName

maintain_app = typer.Typer(help="Keep tables fast and small.", no_args_is_help=True)

DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing, and show what would happen")]
Options = Annotated[
    list[str] | None, typer.Option("--option", help="NAME=VALUE, as the procedure has it. May be repeated")
]
Where = Annotated[str | None, typer.Option(help="Only files that can hold such rows")]
SnapshotId = Annotated[int | None, typer.Option(help="The snapshot; the current one by default")]
Concurrent = Annotated[int | None, typer.Option("--max-concurrent-deletes", help="How many files to delete at once")]
IgnoreMissing = Annotated[
    bool, typer.Option("--ignore-missing-files", help="Leave out files that go while they are looked at")
]


@maintain_app.command()
def optimize(
    context: typer.Context,
    name: TableName,
    budget_bytes: Annotated[int | None, typer.Option(help="Rewrite at most so many bytes")] = None,
    budget_minutes: Annotated[float | None, typer.Option(help="Begin nothing after so many minutes")] = None,
    dry_run: DryRun = False,
) -> None:
    """Do whatever is worth doing."""
    _run(context, name, "optimize", budget_bytes=budget_bytes, budget_minutes=budget_minutes, dry_run=dry_run)


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
    branch: Branch = "main",
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
        branch=branch,
        dry_run=dry_run,
    )


@maintain_app.command("rewrite-position-delete-files")
def rewrite_position_delete_files(
    context: typer.Context,
    name: TableName,
    where: Where = None,
    options: Options = None,
    branch: Branch = "main",
    dry_run: DryRun = False,
) -> None:
    """Make few delete files, or deletion vectors, of many."""
    _run(context, name, "rewrite_position_delete_files", where=where, options=options, branch=branch, dry_run=dry_run)


@maintain_app.command("rewrite-manifests")
def rewrite_manifests(
    context: typer.Context,
    name: TableName,
    spec_id: Annotated[int | None, typer.Option(help="Only manifests of one partition spec")] = None,
    sort_by: Annotated[
        list[str] | None, typer.Option("--sort-by", help="A partition field that comes first. May be repeated")
    ] = None,
    branch: Branch = "main",
    dry_run: DryRun = False,
) -> None:
    """Cluster manifests by partition."""
    _run(context, name, "rewrite_manifests", spec_id=spec_id, sort_by=sort_by, branch=branch, dry_run=dry_run)


@maintain_app.command("expire-snapshots")
def expire_snapshots(
    context: typer.Context,
    name: TableName,
    older_than: Annotated[
        str | None, typer.Option(help="A time: 7d, yesterday, 2024-06-01, 2024-06-01T00:00:00Z")
    ] = None,
    retain_last: Annotated[int | None, typer.Option(help="Keep so many of each branch")] = None,
    snapshot_ids: Annotated[
        list[int] | None, typer.Option("--snapshot-id", help="This snapshot. May be repeated")
    ] = None,
    clean_expired_metadata: Annotated[
        bool, typer.Option("--clean-expired-metadata", help="Forget schemas and specs that nothing uses then")
    ] = False,
    delete_roots: DeleteRoots = None,
    max_concurrent_deletes: Concurrent = None,
    dry_run: DryRun = False,
) -> None:
    """Forget old snapshots and delete the files that only they lead to."""
    _run(
        context,
        name,
        "expire_snapshots",
        older_than=older_than,
        retain_last=retain_last,
        snapshot_ids=snapshot_ids or None,
        clean_expired_metadata=clean_expired_metadata,
        delete_roots=delete_roots or (),
        max_concurrent_deletes=max_concurrent_deletes,
        dry_run=dry_run,
    )


@maintain_app.command("remove-orphan-files")
def remove_orphan_files(
    context: typer.Context,
    name: TableName,
    older_than: Annotated[
        str | None, typer.Option(help="A time: 7d, yesterday, 2024-06-01T00:00:00Z; three days ago by default")
    ] = None,
    location: Annotated[str | None, typer.Option(help="Only this folder of the table")] = None,
    equal_schemes: Annotated[
        list[str] | None, typer.Option("--equal-scheme", help="s3a=s3: the first means the second. May be repeated")
    ] = None,
    equal_authorities: Annotated[
        list[str] | None, typer.Option("--equal-authority", help="OLD=NEW: the first means the second. May be repeated")
    ] = None,
    prefix_mismatch_mode: Annotated[
        str, typer.Option(help="Files that differ in scheme or authority only: ERROR, IGNORE or DELETE")
    ] = "ERROR",
    old_metadata: Annotated[
        bool, typer.Option("--old-metadata", help="Also metadata files that the log has forgotten")
    ] = False,
    delete_roots: DeleteRoots = None,
    max_concurrent_deletes: Concurrent = None,
    dry_run: DryRun = False,
) -> None:
    """Delete files in the table's folder that nothing leads to."""
    _run(
        context,
        name,
        "remove_orphan_files",
        older_than=older_than,
        location=location,
        equal_schemes=equal_schemes,
        equal_authorities=equal_authorities,
        prefix_mismatch_mode=prefix_mismatch_mode,
        old_metadata=old_metadata,
        delete_roots=delete_roots or (),
        max_concurrent_deletes=max_concurrent_deletes,
        dry_run=dry_run,
    )


@maintain_app.command("compute-table-stats")
def compute_table_stats(
    context: typer.Context,
    name: TableName,
    columns: Annotated[
        list[str] | None, typer.Option("--column", help="A column; all by default. May be repeated")
    ] = None,
    snapshot_id: SnapshotId = None,
    dry_run: DryRun = False,
) -> None:
    """Count distinct values of columns, for optimisers."""
    _run(context, name, "compute_table_stats", columns=columns or None, snapshot_id=snapshot_id, dry_run=dry_run)


@maintain_app.command("compute-partition-stats")
def compute_partition_stats(
    context: typer.Context, name: TableName, snapshot_id: SnapshotId = None, dry_run: DryRun = False
) -> None:
    """Write a table of the partitions' counts."""
    _run(context, name, "compute_partition_stats", snapshot_id=snapshot_id, dry_run=dry_run)


@maintain_app.command("convert-equality-deletes")
def convert_equality_deletes(
    context: typer.Context, name: TableName, branch: Branch = "main", dry_run: DryRun = False
) -> None:
    """Make position deletes, or deletion vectors, of equality deletes."""
    _run(context, name, "convert_equality_deletes", branch=branch, dry_run=dry_run)


@maintain_app.command("remove-dangling-deletes")
def remove_dangling_deletes(
    context: typer.Context, name: TableName, branch: Branch = "main", dry_run: DryRun = False
) -> None:
    """Remove delete files that apply to no data file any more."""
    _run(context, name, "remove_dangling_deletes", branch=branch, dry_run=dry_run)


# Tables and files of others


@maintain_app.command("add-files")
def add_files(
    context: typer.Context,
    name: TableName,
    source: Annotated[
        str, typer.Argument(metavar="FOLDER", help="A folder of Parquet, ORC or Avro files, or one file")
    ],
    partition: Annotated[
        list[str] | None, typer.Option("--partition", help="NAME=VALUE: only files of such folders. May be repeated")
    ] = None,
    file_format: Annotated[
        str | None, typer.Option("--file-format", help="parquet, orc or avro; each file's own by default")
    ] = None,
    check_duplicate_files: Annotated[bool, typer.Option(help="Refuse files that the table has already")] = True,
    dry_run: DryRun = False,
) -> None:
    """Take files of others into a table, where they are."""
    _run(
        context,
        name,
        "add_files",
        source=source,
        partition_filter=partition,
        file_format=file_format,
        check_duplicate_files=check_duplicate_files,
        dry_run=dry_run,
    )


@maintain_app.command()
def snapshot(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A table of Spark's own catalog, or parquet.`/a/folder`")
    ],
    name: TableName,
    location: Annotated[str | None, typer.Option(help="Where the new table keeps its own files")] = None,
    properties: TableProperties = None,
    ignore_missing_files: IgnoreMissing = False,
    dry_run: DryRun = False,
) -> None:
    """Make a table over the files of another, which are read and never deleted."""
    with reported():
        own = take_properties(context, properties)
    with opened(context, makes=True) as (lake, settings):
        result = lake.snapshot_table(
            source,
            name,
            location=location,
            properties=own,
            ignore_missing_files=ignore_missing_files,
            dry_run=dry_run,
        )
        _show(settings, result)


@maintain_app.command()
def migrate(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TABLE", help="A table of Spark's own catalog: db.events")],
    properties: TableProperties = None,
    drop_backup: Annotated[bool, typer.Option("--drop-backup", help="Keep no name for the old table")] = False,
    backup_table_name: Annotated[
        str | None, typer.Option(help="The old table's name; <name>_BACKUP_ by default")
    ] = None,
    ignore_missing_files: IgnoreMissing = False,
    dry_run: DryRun = False,
) -> None:
    """Turn a table of Spark's own catalog into one of the lake, over its files."""
    with reported():
        own = take_properties(context, properties)
    with opened(context, makes=True) as (lake, settings):
        result = lake.migrate_table(
            name,
            properties=own,
            drop_backup=drop_backup,
            backup_table_name=backup_table_name,
            ignore_missing_files=ignore_missing_files,
            dry_run=dry_run,
        )
        _show(settings, result)


@maintain_app.command("rewrite-table-path")
def rewrite_table_path(
    context: typer.Context,
    name: TableName,
    source_prefix: Annotated[str, typer.Argument(metavar="SOURCE", help="What all paths of the table start with")],
    target_prefix: Annotated[str, typer.Argument(metavar="TARGET", help="What they start with after the copy")],
    start_version: Annotated[
        str | None, typer.Option(help="The metadata file that was copied before: only what came after it")
    ] = None,
    end_version: Annotated[
        str | None, typer.Option(help="The metadata file to copy; the current one by default")
    ] = None,
    staging_location: Annotated[str | None, typer.Option(help="Where new metadata is kept before it is copied")] = None,
    dry_run: DryRun = False,
) -> None:
    """Write a table's metadata for another place, and list the files to copy."""
    _run(
        context,
        name,
        "rewrite_table_path",
        source_prefix=source_prefix,
        target_prefix=target_prefix,
        start_version=start_version,
        end_version=end_version,
        staging_location=staging_location,
        dry_run=dry_run,
    )


_PAIRS = {
    "options": "option",
    "partition_filter": "partition",
    "equal_schemes": "equal scheme",
    "equal_authorities": "equal authority",
}
"""Arguments that are given as NAME=VALUE, and what messages call one."""


def _run(context: typer.Context, table_name: str, procedure: str, **arguments: Any) -> None:
    with opened(context) as (lake, settings):
        for one, what in _PAIRS.items():
            if one in arguments:
                arguments[one] = pairs_of(arguments[one], what)
        _show(settings, getattr(lake.table(table_name).maintain, procedure)(**arguments))


def _show(settings: Settings, result: Any) -> None:
    """Print what a procedure did: a line for each fact, or one object of them in JSON."""
    facts = _facts(result)
    if settings.form is OutputFormat.JSON:
        settings.show([facts])
    else:
        settings.show([{"result": name, "value": value} for name, value in facts.items()], ["result", "value"])


def _facts(result: Any) -> Mapping[str, Any]:
    if result is None:
        return {"nothing to do": None}
    if is_dataclass(result):
        return {one.name: getattr(result, one.name) for one in fields(result)}
    return {"result": result}
