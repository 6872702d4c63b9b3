"""Create a table from a definition, or from a frame together with its rows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from frazil.catalog.base import Catalog
from frazil.codec.name_mapping_json import check_name_mapping
from frazil.datafile.input_rows import Rows, open_input
from frazil.errors import InvalidRequestError, NamespaceAlreadyExistsError
from frazil.lineage import observe_run
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.partitioning import UNPARTITIONED, PartitionSpec, build_partition_spec
from frazil.spec.properties import FORMAT_VERSION
from frazil.spec.schema import Schema
from frazil.spec.sorting import UNSORTED, SortOrder, build_sort_order
from frazil.spec.versions import DEFAULT, check_version
from frazil.table.parse_name import parse_name
from frazil.table.schema_of import is_schema, schema_of
from frazil.verbs.append import append
from frazil.verbs.on_spark import is_spark_frame
from frazil.verbs.one_commit import OneCommit
from frazil.verbs.write_rows import schema_of_rows

Name = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table to be created."""

    identifier: tuple[str, ...]
    schema: Schema
    spec: PartitionSpec
    order: SortOrder
    properties: Mapping[str, str]
    format_version: int
    location: str | None

    def create(self, catalog: Catalog) -> LoadedTable:
        """Create it empty, and its namespace if that is missing."""
        make_namespace(catalog, self.identifier)
        return self._defined_by(catalog.create_table)

    def create_with(self, catalog: Catalog, cache: ManifestCache | None, rows: Rows) -> LoadedTable:
        """Create it together with its first rows, in one commit, and its namespace if that is missing."""
        make_namespace(catalog, self.identifier)
        with observe_run(catalog, "create", ".".join(self.identifier), rows), OneCommit(catalog, cache) as commit:
            append(commit.table(self._defined_by(catalog.stage_table)).session, rows)
        return commit.states[0]

    def _defined_by(self, make: Callable[..., LoadedTable]) -> LoadedTable:
        return make(
            self.identifier,
            self.schema,
            self.spec,
            self.order,
            location=self.location,
            properties=self.properties,
            format_version=self.format_version,
        )


def create_table(
    catalog: Catalog,
    name: Name,
    definition: Any,
    *,
    cache: ManifestCache | None = None,
    fill: bool = True,
    partition_by: Sequence[str] = (),
    sort_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    format_version: int | None = None,
    location: str | None = None,
) -> LoadedTable:
    """Create a table of a schema, or of the columns of a frame, with its rows unless `fill` is false.

    The format version may be given as the property `format-version` too.
    """
    kept, version = _choose_version(name, properties, format_version)
    if is_schema(definition):
        new = _define(name, schema_of(definition, version), kept, version, location, partition_by, sort_by)
        return new.create(catalog)
    rows = definition if is_spark_frame(definition) or _is_rows_of_dicts(definition) else open_frame(definition)
    columns = schema_of_rows(rows, Schema(()), version)
    if not columns.fields:
        raise InvalidRequestError(
            f"Cannot create {name!r}: the data has no columns whose types are known",
            hint="Pass a schema, and append the rows afterwards.",
        )
    new = _define(name, columns, kept, version, location, partition_by, sort_by)
    return new.create_with(catalog, cache, rows) if fill else new.create(catalog)


def open_frame(data: Rows) -> Rows:
    """Return a frame as a stream of batches that is read once; a dict of columns is a frame too."""
    if isinstance(data, Mapping):
        try:
            data = pa.table(dict(data))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InvalidRequestError(f"Cannot make a table of the dict of columns: {error}") from error
    if isinstance(data, Iterator) and not isinstance(data, pa.RecordBatchReader):
        raise InvalidRequestError(
            "Cannot create a table of an iterator: its columns are unknown before it is read",
            hint="Pass a pyarrow.RecordBatchReader, which knows its schema, or a list.",
        )
    return open_input(data, Schema(()))


def _is_rows_of_dicts(data: object) -> bool:
    return isinstance(data, Sequence) and bool(data) and all(isinstance(row, Mapping) for row in data)


def _choose_version(
    name: Name, properties: Mapping[str, str] | None, format_version: int | None
) -> tuple[dict[str, str], int]:
    kept, asked = take_format_version(properties or {})
    if asked is not None and format_version not in (None, asked):
        raise InvalidRequestError(
            f"Cannot create {name!r}: format_version is {format_version}, and {FORMAT_VERSION.name} is {asked}",
            hint="Give one of them.",
        )
    return kept, next(wanted for wanted in (format_version, asked, DEFAULT) if wanted is not None)


def _define(
    name: Name,
    columns: Schema,
    properties: Mapping[str, str],
    version: int,
    location: str | None,
    partition_by: Sequence[str],
    sort_by: Sequence[str],
) -> NewTable:
    if isinstance(partition_by, str) or isinstance(sort_by, str):
        raise InvalidRequestError(f"Cannot create {name!r}: partition_by and sort_by are lists of terms")
    check_name_mapping(properties)
    return NewTable(
        parse_name(name),
        columns,
        build_partition_spec(columns, partition_by) if partition_by else UNPARTITIONED,
        build_sort_order(columns, sort_by) if sort_by else UNSORTED,
        properties,
        version,
        location,
    )


def take_format_version(properties: Mapping[str, str]) -> tuple[dict[str, str], int | None]:
    """Return properties without the one that says the format version, and what it says."""
    kept = dict(properties)
    text = kept.pop(FORMAT_VERSION.name, None)
    if text is None:
        return kept, None
    if not str(text).isdigit():
        raise InvalidRequestError(f"Cannot create a table of format version {text!r}: it is not a number")
    return kept, check_version(int(text))


def make_namespace(catalog: Catalog, identifier: tuple[str, ...]) -> None:
    """Create the namespace of a name where it is missing."""
    if len(identifier) > 1 and not catalog.namespace_exists(identifier[:-1]):
        with contextlib.suppress(NamespaceAlreadyExistsError):
            catalog.create_namespace(identifier[:-1])
