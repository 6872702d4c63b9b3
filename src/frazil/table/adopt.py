"""`lake.snapshot_table`, `lake.migrate_table`: tables of Spark's catalog, or folders of files, as tables of a lake.

A source is a name in Spark's catalog (`db.old`, `spark_catalog.db.old`), or a folder with its format before it
(`` parquet.`/data/old` ``). Folders need no Spark.

`migrate` needs two catalogs to change, and no commit spans both. The source is set aside under its backup name first,
so that nobody writes to it by its own; then the table is made in one commit. Where that fails the source gets its name
back. Where the process dies in between, the source is whole under the backup's name, and nothing else has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from frazil.catalog.base import Catalog
from frazil.errors import FrazilError, InvalidRequestError
from frazil.maintenance.adopt_results import MigrateTableResult, SnapshotTableResult
from frazil.maintenance.adopt_table import (
    FORMAT_VERSION,
    SourceTable,
    migrate_table,
    snapshot_table,
    source_of_folder,
    stage_migration,
)
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.data_file import FileFormat
from frazil.spec.versions import DEFAULT
from frazil.table.parse_name import parse_name
from frazil.verbs.on_spark import choose_session

BACKUP_SUFFIX: Final = "_BACKUP_"
FILE_FORMATS: Final = ("parquet", "orc", "avro")
_SPARK_CATALOG: Final = "spark_catalog"


class HasCatalog(Protocol):
    """A lake, which this module serves and so cannot import."""

    @property
    def catalog(self) -> Catalog:
        """Where its tables are."""


def find_source(
    lake: HasCatalog, source: str | tuple[str, ...], spark: Any = None, *, format_version: int = DEFAULT
) -> SourceTable:
    """Return a source by its name in Spark's catalog, or by its format and folder."""
    parts = parse_name(source)
    if is_folder(parts):
        file_format = FileFormat(parts[0].lower())
        return source_of_folder(lake.catalog.storage, parts[1], file_format, format_version=format_version)
    name = spark_name(parts)
    from frazil.spark.read.session_tables import describe_session_table

    found: SourceTable = describe_session_table(choose_session(spark, lake), name)
    return found


def is_folder(parts: tuple[str, ...]) -> bool:
    """Return whether a name is a format and a folder."""
    return len(parts) == 2 and parts[0].lower() in FILE_FORMATS


def spark_name(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return a name as Spark's own catalog has it: a table, perhaps with its database."""
    own = parts[1:] if len(parts) > 1 and parts[0] == _SPARK_CATALOG else parts
    if len(own) > 2:
        raise InvalidRequestError(
            f"Cannot find {'.'.join(parts)} in Spark's own catalog: names there are a database and a table",
            hint="Tables of other catalogs cannot be adopted; a lake's table can have a branch instead.",
        )
    return own


def snapshot_into(
    lake: HasCatalog,
    cache: ManifestCache,
    source: str | tuple[str, ...],
    name: tuple[str, ...],
    *,
    location: str | None,
    properties: Mapping[str, str] | None,
    parallelism: int | None,
    ignore_missing_files: bool,
    dry_run: bool,
    spark: Any = None,
) -> SnapshotTableResult:
    """Make a table over a source's files that leaves them alone."""
    _check_parallelism(parallelism)
    _, result = snapshot_table(
        lake.catalog,
        name,
        find_source(lake, source, spark, format_version=_version(properties)),
        location=location,
        properties=properties,
        threads=parallelism,
        ignores_missing=ignore_missing_files,
        dry_run=dry_run,
        cache=cache,
    )
    return result


def migrate_into(
    lake: HasCatalog,
    cache: ManifestCache,
    source: str | tuple[str, ...],
    *,
    properties: Mapping[str, str] | None,
    drop_backup: bool,
    backup_table_name: str | None,
    parallelism: int | None,
    ignore_missing_files: bool,
    dry_run: bool,
    spark: Any = None,
) -> MigrateTableResult:
    """Make a table of a source's files, under its name in the lake, and set the source aside."""
    _check_parallelism(parallelism)
    parts = parse_name(source)
    if is_folder(parts):
        raise InvalidRequestError(
            f"Cannot migrate {parts[1]}: it is a folder, and no catalog's table to be set aside",
            hint="Use snapshot_table, or create a table there and use add_files.",
        )
    name = spark_name(parts)
    session = choose_session(spark, lake)
    from frazil.spark.read import session_tables as tables

    described: SourceTable = tables.describe_session_table(session, name)
    source_name = tuple(described.name.split(".")) if len(name) == 1 else name
    identifier = source_name[-2:]
    backup = f"{identifier[-1]}{BACKUP_SUFFIX}" if backup_table_name is None else backup_table_name
    staged = stage_migration(lake.catalog, identifier, described, properties, dry_run=dry_run)
    options: dict[str, Any] = {"threads": parallelism, "ignores_missing": ignore_missing_files, "cache": cache}
    if dry_run:
        _, count = migrate_table(lake.catalog, staged, described, dry_run=True, **options)
        return MigrateTableResult(count, None if drop_backup else backup)
    put_back = tables.set_aside(session, name, backup)
    try:
        _, count = migrate_table(lake.catalog, staged, described, **options)
    except BaseException as error:
        # Where it is not known whether the table was made, two names for the same files would be worse than none.
        # An interruption does not say.
        is_known = error.may_clean_up if isinstance(error, FrazilError) else not lake.catalog.table_exists(identifier)
        if is_known:
            put_back()
        raise
    if drop_backup:
        tables.drop_set_aside(session, name, backup)
    return MigrateTableResult(count, None if drop_backup else backup)


def _version(properties: Mapping[str, str] | None) -> int:
    text = (properties or {}).get(FORMAT_VERSION, "")
    return int(text) if text.isascii() and text.isdigit() else DEFAULT


def _check_parallelism(parallelism: int | None) -> None:
    if parallelism is not None and parallelism < 1:
        raise InvalidRequestError(f"Cannot use {parallelism} threads: give one at least")
