"""Add existing data files to a table in place. Specification: "Column Projection".

    find        the files below a folder, or named files, except those whose names start with a dot or an underscore
    describe    each: rows, sizes, bounds (`maintenance/describe_files.py`). Columns are matched by name. A file with
                field ids is refused unless all its columns have the table's ids
    place       in a partition: by `name=value` folders for identity fields, or else by bounds that allow one value
    commit      with a name mapping, which is added to the table if it has none; a file that is already in the table,
                or that another writer adds concurrently, is refused

Columns that exist only in the names of folders are read from the partition values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from frazil.catalog.base import Catalog
from frazil.codec.name_mapping_json import decode_name_mapping, encode_name_mapping
from frazil.codec.single_value import decode_bound
from frazil.commit.action import Changes, CommitContext
from frazil.commit.append import Append
from frazil.commit.new_snapshot import MAIN, Target, find_parent
from frazil.commit.transaction import Transaction
from frazil.commit.update_properties import UpdateProperties
from frazil.errors import InvalidDataFileError, InvalidRequestError, MissingFileError, SchemaMismatchError
from frazil.expr.columns.manifest_columns import live_mask
from frazil.expr.literals import place_literal
from frazil.loaded import LoadedTable
from frazil.maintenance.describe_files import DATA_FORMATS, FileDescriber, find_format
from frazil.maintenance.shown_work import with_progress
from frazil.progress import counted
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.read_manifests import read_manifest, read_manifest_list
from frazil.spec import properties
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.manifest import ManifestContent
from frazil.spec.metrics_config import metrics_modes
from frazil.spec.name_mapping import create_name_mapping
from frazil.spec.partition_key import partition_key_of
from frazil.spec.partitioning import PartitionField
from frazil.spec.types import BOOLEAN, StructType
from frazil.storage.base import Storage
from frazil.storage.locations import location_key, scheme_of, strip_slashes
from frazil.threads import default_threads, map_in_order

_HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_ENDINGS: Final = tuple(f".{data_format.value}" for data_format in DATA_FORMATS)


@dataclass(frozen=True, slots=True)
class AddFilesResult:
    """The number of files added, and of partitions they were added to."""

    added_files_count: int = 0
    changed_partition_count: int = 0


@dataclass(frozen=True, slots=True)
class AddFiles:
    """Append files that are not in the branch, checked at each attempt."""

    files: tuple[DataFile, ...]
    checks_duplicates: bool = True
    target: Target = MAIN

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the snapshot with the files; refuse a file that is in the branch already."""
        if self.checks_duplicates:
            check_duplicates(loaded, self.files, self.target, cache=context.cache)
        return Append(self.files, self.target).prepare(loaded, context)


@with_progress("add files to")
def add_files(
    catalog: Catalog,
    loaded: LoadedTable,
    source: str | Sequence[str] | Iterable[FoundFile],
    *,
    partition_filter: Mapping[str, Any] | None = None,
    file_format: FileFormat | None = None,
    checks_duplicates: bool = True,
    target: Target = MAIN,
    dry_run: bool = False,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> tuple[LoadedTable, AddFilesResult]:
    """Add files below a folder, or a list of files, to a table; return its new state and what was added."""
    partition = {name: None if value is None else str(value) for name, value in (partition_filter or {}).items()}
    files_found = [file for file in find_files(loaded.storage, source, file_format) if _matches(file, partition)]
    if not files_found:
        return loaded, AddFilesResult()
    files = describe_files(loaded, files_found, threads=threads)
    result = AddFilesResult(len(files), len({partition_key_of(file) for file in files}))
    if checks_duplicates:
        check_duplicates(loaded, files, target, cache=cache)
    if dry_run:
        return loaded, result
    transaction = Transaction(catalog, cache=cache)
    table = transaction.table(loaded)
    mapping = missing_name_mapping(loaded)
    if mapping is not None:
        table.add(mapping)
    table.add(AddFiles(files, checks_duplicates, target))
    return transaction.commit()[0], result


def missing_name_mapping(loaded: LoadedTable) -> UpdateProperties | None:
    """Return the update that gives a table a name mapping, for files without ids, or None if it has one."""
    name = properties.DEFAULT_NAME_MAPPING.name
    if name in loaded.metadata.properties:
        return None
    mapping = encode_name_mapping(create_name_mapping(loaded.metadata.current_schema))
    return UpdateProperties(FrozenMap({name: mapping}))


# Finding files


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, with the partition values in its `name=value` folders."""

    path: str
    size: int
    folders: Mapping[str, str | None]
    file_format: FileFormat | None = None


def find_files(
    storage: Storage, source: str | Sequence[str] | Iterable[FoundFile], file_format: FileFormat | None = None
) -> Iterator[FoundFile]:
    """Yield the files below a folder, or the listed files, in a given format or each in its own."""
    if not isinstance(source, str):
        for listed in source:
            if isinstance(listed, FoundFile):
                yield listed
            else:
                path = as_uri(listed)
                yield FoundFile(path, storage.size(path), partition_folders(path), file_format)
        return
    folder = strip_slashes(as_uri(source))
    if folder.endswith(_ENDINGS) and storage.exists(folder):
        yield FoundFile(folder, storage.size(folder), partition_folders(folder), file_format)
        return
    count = 0
    for found in list_data_files(storage, folder, file_format):
        count += 1
        yield found
    if count == 0:
        raise InvalidRequestError(f"Cannot add files of {folder!r}: no data files found")


def list_data_files(storage: Storage, folder: str, file_format: FileFormat | None = None) -> Iterator[FoundFile]:
    """Yield the data files below a folder, without hidden and empty files."""
    for file in sorted(storage.list(folder), key=lambda stored_file: stored_file.path):
        below = file.path[len(folder) :]
        if any(step.startswith(("_", ".")) and "=" not in step for step in below.split("/")) or file.size == 0:
            continue
        yield FoundFile(file.path, file.size, partition_folders(below), file_format)


def as_uri(location: str) -> str:
    """Return a location as metadata stores it: a local path as a URI."""
    return location if scheme_of(location) is not None else f"file://{Path(location).absolute()}"


def partition_folders(path: str) -> dict[str, str | None]:
    """Return the values in the `name=value` folders of a path, unescaped; None for null."""
    values: dict[str, str | None] = {}
    for step in path.split("/")[:-1]:
        name, mark, value = step.partition("=")
        if mark and name:
            text = unquote(value)
            values[unquote(name)] = None if text == _HIVE_NULL else text
    return values


def _matches(file: FoundFile, partition: Mapping[str, str | None]) -> bool:
    missing = [name for name in partition if name not in file.folders]
    if missing:
        raise InvalidRequestError(
            f"Cannot choose files by the partition {missing[0]!r}: {file.path} is not in a folder of that name"
        )
    return all(file.folders[name] == value for name, value in partition.items())


def check_duplicates(
    loaded: LoadedTable, files: Iterable[DataFile], target: Target, *, cache: ManifestCache | None = None
) -> None:
    """Refuse files that are already in a branch, in any spelling, and files that are listed twice."""
    keys: dict[str, str] = {}
    for file in files:
        key = location_key(file.file_path)
        if key in keys:
            raise InvalidRequestError(f"Cannot add {file.file_path}: it is listed twice")
        keys[key] = file.file_path
    snapshot = find_parent(loaded.metadata, target.branch)
    manifests = [] if snapshot is None else read_manifest_list(loaded.storage, snapshot)
    for manifest in manifests:
        if manifest.content is not ManifestContent.DATA or not manifest.has_live_files:
            continue
        # Partition values are not requested, so the spec does not matter.
        columns = read_manifest(loaded.storage, manifest, StructType(), ("status", "file_path"), cache=cache)
        for path, is_live in zip(columns.column("file_path").to_pylist(), live_mask(columns).tolist(), strict=True):
            if is_live and location_key(path) in keys:
                raise InvalidRequestError(
                    f"Cannot add {path}: it is already in the table",
                    hint="Leave it out, or set check_duplicate_files to false to add its rows again.",
                )


# Describing files


def describe_files(
    loaded: LoadedTable, found: Sequence[FoundFile], *, threads: int | None = None, ignores_missing: bool = False
) -> tuple[DataFile, ...]:
    """Return the descriptions of files for a table, several at a time; refuse files that it could not read.

    With `ignores_missing`, a file that has been deleted since it was found is left out.
    """
    describer = _Describer(loaded)

    def describe(found_file: FoundFile) -> DataFile | None:
        try:
            return describer.describe(found_file)
        except MissingFileError:
            if not ignores_missing:
                raise
            return None

    workers = default_threads() if threads is None else threads
    described = map_in_order(describe, found, threads=workers)
    return tuple(file for file in counted("files described", described, len(found)) if file is not None)


class _Describer:
    """Describes files for one table."""

    def __init__(self, loaded: LoadedTable) -> None:
        metadata = loaded.metadata
        self._storage = loaded.storage
        self._schema = metadata.current_schema
        self._spec = metadata.default_spec
        text = metadata.properties.get(properties.DEFAULT_NAME_MAPPING.name)
        mapping = create_name_mapping(self._schema) if text is None else decode_name_mapping(text)
        modes = metrics_modes(self._schema, metadata.properties)
        self._files = FileDescriber(
            loaded.storage, self._schema, modes, mapping, history=metadata.schemas, spec_id=self._spec.spec_id
        )

    def describe(self, found_file: FoundFile) -> DataFile:
        """Describe a file; refuse one that the table could not read."""
        file_format = found_file.file_format or find_format(self._storage, found_file.path, found_file.size)
        described = self._files.describe(found_file.path, found_file.size, file_format)
        partition = tuple(self._partition_value(field, described, found_file.folders) for field in self._spec.fields)
        file = replace(described, partition=partition)
        values = {
            field.source_id: value
            for field, value in zip(self._spec.fields, file.partition, strict=True)
            if field.transform.is_identity
        }
        self._files.check_readable(file, values)
        return file

    def _partition_value(self, field: PartitionField, file: DataFile, folders: Mapping[str, str | None]) -> Any:
        if field.transform.is_void:
            return None
        source = self._schema.field(field.source_id)
        name = next((each for each in (field.name, source.name) if each in folders), None)
        if field.transform.is_identity and name is not None:
            text = folders[name]
            return None if text is None else _parse(text, source.field_type, name, file.file_path)
        return self._value_by_bounds(field, file)

    def _value_by_bounds(self, field: PartitionField, file: DataFile) -> Any:
        """Return the single partition value that a file's bounds allow; refuse a file that may span several."""
        source = self._schema.field(field.source_id)
        nulls = (file.null_value_counts or {}).get(field.source_id)
        if nulls is not None and file.record_count > 0 and nulls == file.record_count:
            return None
        lower, upper = ((bounds or {}).get(field.source_id) for bounds in (file.lower_bounds, file.upper_bounds))
        if lower is not None and upper is not None and nulls == 0:
            first, last = decode_bound(lower, source.field_type), decode_bound(upper, source.field_type)
            values = [field.transform.apply(each, source.field_type) for each in (first, last)]
            if values[0] == values[1] and (field.transform.preserves_order or first == last):
                return values[0]
        raise InvalidDataFileError(
            f"Cannot add the file: it may span several partitions of {field.name!r}",
            hint="Split its rows into files of one partition each, in folders named name=value, or write them to the "
            "table.",
            path=file.file_path,
            heading="Partitioning",
        )


def _parse(text: str, data_type: Any, name: str, path: str) -> Any:
    try:
        if data_type == BOOLEAN and text.lower() in ("true", "false"):
            return text.lower() == "true"
        bounds = place_literal(text, data_type)
    except (SchemaMismatchError, InvalidRequestError) as error:
        raise InvalidDataFileError(
            f"Cannot add the file: its folder {name}={text!r} is not a valid {data_type}: {error.message}", path=path
        ) from error
    if not bounds.is_value:
        raise InvalidDataFileError(
            f"Cannot add the file: its folder {name}={text!r} is not a valid {data_type}", path=path
        )
    return bounds.below
