"""Create a table as users ask for one: for a `Lake`, and for commands that need no more than a catalog."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from frazil.catalog.base import Catalog
from frazil.codec.name_mapping_json import check_name_mapping
from frazil.errors import InvalidRequestError, NamespaceAlreadyExistsError
from frazil.loaded import LoadedTable
from frazil.spec.partitioning import UNPARTITIONED, build_partition_spec
from frazil.spec.properties import FORMAT_VERSION
from frazil.spec.schema import Schema
from frazil.spec.sorting import UNSORTED, build_sort_order
from frazil.spec.versions import DEFAULT, check_version
from frazil.table.parse_name import parse_name
from frazil.table.schema_of import schema_of


def create_table(
    catalog: Catalog,
    name: str | tuple[str, ...],
    schema: Schema | pa.Schema | str | Any,
    *,
    partition_by: Sequence[str] = (),
    sort_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    format_version: int | None = None,
    location: str | None = None,
) -> LoadedTable:
    """Create an empty table; its namespace is created where it is missing.

    The format version may be given as the property `format-version` too.
    """
    kept, asked = take_format_version(properties or {})
    if asked is not None and format_version not in (None, asked):
        raise InvalidRequestError(
            f"Cannot create {name!r}: format_version is {format_version}, and {FORMAT_VERSION.name} is {asked}",
            hint="Give one of them.",
        )
    version = next(wanted for wanted in (format_version, asked, DEFAULT) if wanted is not None)
    if isinstance(partition_by, str) or isinstance(sort_by, str):
        raise InvalidRequestError(f"Cannot create {name!r}: partition_by and sort_by are lists of terms")
    check_name_mapping(kept)
    identifier = parse_name(name)
    columns = schema_of(schema, version)
    spec = build_partition_spec(columns, partition_by) if partition_by else UNPARTITIONED
    order = build_sort_order(columns, sort_by) if sort_by else UNSORTED
    make_namespace(catalog, identifier)
    return catalog.create_table(
        identifier,
        columns,
        spec,
        order,
        location=location,
        properties=kept,
        format_version=version,
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
