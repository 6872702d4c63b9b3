"""View metadata: the versions of a view's definition and the current one. Specification: the view specification.

A catalog's entry for a view points to it. A version holds the definition in one or more representations, today
SQL in several dialects; other representations are kept unchanged. Values are checked on creation, so every
`ViewMetadata` conforms to the specification. `spec/view_evolution.py` changes views, `codec/view_metadata_json.py`
reads and writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, TypeAlias

from frazil.errors import InvalidRequestError, NotFoundError, UnsupportedError
from frazil.spec.frozen_map import NO_EXTRA, FrozenMap, freeze_maps, freeze_tuples
from frazil.spec.schema import Schema

VIEW_FORMAT_VERSION = 1
"""The only version of the view format."""

NO_TEXTS: FrozenMap[str, str] = FrozenMap()

_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_TUPLES = ("schemas", "versions", "version_log")
_SHOWN_IDS = 20


@dataclass(frozen=True, slots=True)
class SqlRepresentation:
    """A view's definition as a SELECT in one dialect. Specification: "SQL representation"."""

    sql: str
    dialect: str
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)


@dataclass(frozen=True, slots=True)
class UnknownRepresentation:
    """A definition of an unrecognised kind; `fields` holds all of its fields, including `type`."""

    type: str
    fields: FrozenMap[str, Any] = field(hash=False)


Representation: TypeAlias = SqlRepresentation | UnknownRepresentation


@dataclass(frozen=True, slots=True)
class ViewVersion:
    """A view's definition at one time; it never changes. Specification: "Versions".

    If `default_catalog` is None, names without a catalog are looked up in the view's own.
    """

    version_id: int
    schema_id: int
    timestamp_ms: int
    representations: tuple[Representation, ...]
    default_namespace: tuple[str, ...] = ()
    default_catalog: str | None = None
    summary: FrozenMap[str, str] = NO_TEXTS
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_tuples(self, "representations", "default_namespace")
        freeze_maps(self, "summary")
        if not _INT_MIN <= self.version_id <= _INT_MAX:
            raise InvalidRequestError(f"Cannot make a view version: the id {self.version_id} does not fit 32 bits")
        seen: set[str] = set()
        for dialect in (sql_representation.dialect.lower() for sql_representation in self.sql_representations):
            if dialect in seen:
                raise InvalidRequestError(
                    f"Cannot make view version {self.version_id}: it has two queries for the dialect {dialect!r}",
                    heading="SQL representation",
                )
            seen.add(dialect)

    @property
    def sql_representations(self) -> tuple[SqlRepresentation, ...]:
        """The definitions in SQL."""
        return tuple(
            representation for representation in self.representations if isinstance(representation, SqlRepresentation)
        )

    @property
    def dialects(self) -> frozenset[str]:
        """The SQL dialects of its definitions, in lower case."""
        return frozenset(sql_representation.dialect.lower() for sql_representation in self.sql_representations)

    def find_sql(self, dialect: str) -> SqlRepresentation | None:
        """Return the definition in a dialect, given in any case, or None."""
        lowered = dialect.lower()
        return next(
            (
                sql_representation
                for sql_representation in self.sql_representations
                if sql_representation.dialect.lower() == lowered
            ),
            None,
        )

    def same_definition(self, other: ViewVersion) -> bool:
        """Return whether both have the same definition, ignoring ids and times."""
        return (
            self.schema_id == other.schema_id
            and self.representations == other.representations
            and self.default_catalog == other.default_catalog
            and self.default_namespace == other.default_namespace
            and self.summary == other.summary
            and self.extra == other.extra
        )


@dataclass(frozen=True, slots=True)
class VersionLogEntry:
    """A version and the time when it became current. Specification: "Version log"."""

    timestamp_ms: int
    version_id: int
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class ViewMetadata:
    """The metadata of a view at one time. Specification: "View Metadata".

    `view_uuid` is text as written by the view's creator.
    """

    view_uuid: str
    location: str
    schemas: tuple[Schema, ...]
    current_version_id: int
    versions: tuple[ViewVersion, ...]
    version_log: tuple[VersionLogEntry, ...]
    properties: FrozenMap[str, str] = NO_TEXTS
    format_version: int = VIEW_FORMAT_VERSION
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_tuples(self, *_TUPLES)
        freeze_maps(self, "properties")
        _check(self)

    def __getstate__(self) -> dict[str, Any]:
        return {member.name: self.__dict__[member.name] for member in fields(self)}

    @cached_property
    def versions_by_id(self) -> dict[int, ViewVersion]:
        """The versions, by id."""
        return {version.version_id: version for version in self.versions}

    @cached_property
    def schemas_by_id(self) -> dict[int, Schema]:
        """The schemas, by id."""
        return {schema.schema_id: schema for schema in self.schemas}

    @property
    def current_version(self) -> ViewVersion:
        """The version that queries use."""
        return self.versions_by_id[self.current_version_id]

    @property
    def current_schema(self) -> Schema:
        """The columns of the current version."""
        return self.schemas_by_id[self.current_version.schema_id]

    def version(self, version_id: int) -> ViewVersion:
        """Return a version by id."""
        version = self.versions_by_id.get(version_id)
        if version is None:
            raise NotFoundError(
                f"Cannot find version {version_id}: the view has no such version",
                hint=f"Its versions are: {_listed(self.versions_by_id)}.",
            )
        return version

    def schema(self, schema_id: int) -> Schema:
        """Return a schema by id."""
        schema = self.schemas_by_id.get(schema_id)
        if schema is None:
            raise NotFoundError(
                f"Cannot find schema {schema_id}: the view has no such schema",
                hint=f"Its schemas are: {_listed(self.schemas_by_id)}.",
            )
        return schema


def check_same_view(known: ViewMetadata, refreshed: ViewMetadata) -> None:
    """Refuse metadata of another view with the same name, as after a drop and a create."""
    if known.view_uuid.lower() != refreshed.view_uuid.lower():
        raise InvalidRequestError(
            f"Cannot refresh the view: its UUID was {known.view_uuid} and is now {refreshed.view_uuid}",
            hint="The view was dropped and created again; load it again.",
            heading="View Metadata",
        )


def _check(metadata: ViewMetadata) -> None:
    if metadata.format_version > VIEW_FORMAT_VERSION:
        raise UnsupportedError(
            f"Cannot use view format version {metadata.format_version}: the newest version of this build is "
            f"{VIEW_FORMAT_VERSION}",
            hint="Update frazil, or use the engine that wrote the view.",
            heading="View Metadata",
        )
    if metadata.format_version < VIEW_FORMAT_VERSION:
        raise _fail(f"format_version is {metadata.format_version}, and versions start at {VIEW_FORMAT_VERSION}")
    if _UUID.fullmatch(metadata.view_uuid) is None:
        raise _fail(f"view_uuid {metadata.view_uuid[:60]!r} is not a UUID")
    if metadata.location == "":
        raise _fail("location is empty")
    _check_unique("schemas", (schema.schema_id for schema in metadata.schemas))
    _check_unique("versions", (version.version_id for version in metadata.versions))
    if metadata.current_version_id not in metadata.versions_by_id:
        raise _fail(
            f"current_version_id {metadata.current_version_id} is not among the versions "
            f"{_listed(metadata.versions_by_id) or '(none)'}"
        )
    for version in metadata.versions:
        if version.schema_id not in metadata.schemas_by_id:
            raise _fail(
                f"schema_id {version.schema_id} of version {version.version_id} is not among the schemas "
                f"{_listed(metadata.schemas_by_id) or '(none)'}"
            )


def _check_unique(what: str, ids: Iterable[int]) -> None:
    seen: set[int] = set()
    for item_id in ids:
        if item_id in seen:
            raise _fail(f"two of the {what} have the id {item_id}")
        seen.add(item_id)


def _fail(reason: str) -> InvalidRequestError:
    return InvalidRequestError(f"Cannot make view metadata: {reason}", heading="View Metadata")


def _listed(ids: Iterable[int]) -> str:
    sorted_ids = sorted(ids)
    text = ", ".join(map(str, sorted_ids[:_SHOWN_IDS]))
    return text if len(sorted_ids) <= _SHOWN_IDS else f"{text}, ... ({len(sorted_ids)} in all)"
