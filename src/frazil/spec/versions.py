"""Features and required fields of each format version. Specification: "Format Versioning", "Appendix E".

Used by everything that changes a table: schemas, transforms and delete files that the table's version does not allow
are refused before anything is written. The field tables list the fields that writers store in table metadata,
snapshots, manifest lists and manifests, and which of them codecs require. Field names are in snake case; codecs
handle the spelling in files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import Schema
from frazil.spec.types import DecimalType

MIN = 1
"""The oldest format version."""
DEFAULT = 2
"""The default version of a new table."""
LATEST = 3
"""The newest version that this build reads and writes."""


class Feature(Enum):
    """A feature that only some format versions allow."""

    SEQUENCE_NUMBERS = "sequence numbers"
    SNAPSHOT_ID_INHERITANCE = "inherited snapshot ids"
    ROW_LEVEL_DELETES = "row-level deletes"
    EQUALITY_DELETE_FILES = "equality delete files"
    POSITION_DELETE_FILES = "new position delete files"
    DELETION_VECTORS = "deletion vectors"
    DEFAULT_VALUES = "column defaults"
    NEW_TYPES = "the types timestamp_ns, timestamptz_ns, unknown, variant, geometry and geography"
    MULTI_ARGUMENT_TRANSFORMS = "transforms of several columns"
    ROW_LINEAGE = "row lineage"
    ENCRYPTION_KEYS = "table encryption keys"
    INLINE_MANIFESTS = "snapshots that list their manifests inline"
    REMOVABLE_PARTITION_FIELDS = "partition specs without their removed fields"


@dataclass(frozen=True, slots=True)
class FeatureRule:
    """The format versions in which a feature may be written."""

    since: int
    until: int | None
    heading: str
    instead: str | None = None
    """The alternative to a feature that was removed."""

    def allows(self, version: int) -> bool:
        """Return whether a format version allows the feature."""
        return self.since <= version and (self.until is None or version <= self.until)


FEATURES: Mapping[Feature, FeatureRule] = FrozenMap(
    {
        Feature.SEQUENCE_NUMBERS: FeatureRule(2, None, "Sequence Numbers"),
        Feature.SNAPSHOT_ID_INHERITANCE: FeatureRule(2, None, "Manifest Entry Fields"),
        Feature.ROW_LEVEL_DELETES: FeatureRule(2, None, "Row-level Deletes"),
        Feature.EQUALITY_DELETE_FILES: FeatureRule(2, None, "Equality Delete Files"),
        Feature.POSITION_DELETE_FILES: FeatureRule(2, 2, "Delete Formats", "Write deletion vectors instead."),
        Feature.DELETION_VECTORS: FeatureRule(3, None, "Deletion Vectors"),
        Feature.DEFAULT_VALUES: FeatureRule(3, None, "Default values"),
        Feature.NEW_TYPES: FeatureRule(3, None, "Primitive Types"),
        Feature.MULTI_ARGUMENT_TRANSFORMS: FeatureRule(3, None, "Partitioning"),
        Feature.ROW_LINEAGE: FeatureRule(3, None, "Row Lineage"),
        Feature.ENCRYPTION_KEYS: FeatureRule(3, None, "Encryption Keys"),
        Feature.INLINE_MANIFESTS: FeatureRule(1, 1, "Snapshots", "Write a manifest list."),
        Feature.REMOVABLE_PARTITION_FIELDS: FeatureRule(2, None, "Partition Evolution"),
    }
)


def check_version(version: int) -> int:
    """Return a format version, refusing one that this build does not support."""
    if MIN <= version <= LATEST:
        return version
    if version > LATEST:
        raise UnsupportedError(
            f"Cannot use format version {version}: the newest version of this build is {LATEST}",
            hint="Update frazil, or use the engine that wrote the table.",
        )
    raise InvalidRequestError(
        f"Cannot use format version {version}: versions start at {MIN}",
        hint=f"Use a version from {MIN} to {LATEST}.",
    )


def check_upgrade(current: int, target: int) -> int:
    """Return the version to upgrade to, refusing downgrades and unsupported versions."""
    check_version(target)
    if target < current:
        raise InvalidRequestError(
            f"Cannot change the format version from {current} to {target}: tables are never downgraded"
        )
    return target


def allows(version: int, feature: Feature) -> bool:
    """Return whether a format version has a feature."""
    return FEATURES[feature].allows(check_version(version))


def check_feature(version: int, feature: Feature) -> None:
    """Refuse a feature that a table's format version does not allow."""
    rule = FEATURES[feature]
    if rule.allows(check_version(version)):
        return
    if version < rule.since:
        raise InvalidRequestError(
            f"Cannot use {feature.value}: the table has format version {version} and this needs {rule.since}",
            hint=f"Upgrade the table first, with t.upgrade({rule.since}).",
            heading=rule.heading,
        )
    raise InvalidRequestError(
        f"Cannot use {feature.value}: the table has format version {version} and this ended with {rule.until}",
        hint=rule.instead,
        heading=rule.heading,
    )


def check_schema_allowed(schema: Schema, version: int) -> None:
    """Refuse a schema with types, defaults or impossible decimals that a new table or change must not have."""
    check_schema_version(schema, version)
    problems = impossible_decimals(schema)
    if problems:
        raise InvalidRequestError(
            f"Cannot use the schema: {'; '.join(problems)}",
            hint="Drop the column.",
            heading="Schemas and Data Types",
        )


def impossible_decimals(schema: Schema) -> list[str]:
    """Return the problems with decimals whose scale exceeds their precision, which other writers accept."""
    return [
        f"{schema.name_of(field_id)} is {field.field_type}, and a scale is at most the precision"
        for field_id, field in sorted(schema.fields_by_id.items())
        if isinstance(field.field_type, DecimalType) and field.field_type.scale > field.field_type.precision
    ]


def check_schema_version(schema: Schema, version: int) -> None:
    """Refuse a schema with types or initial defaults that a format version does not allow.

    Write defaults are allowed in every version: readers never use them, so they cannot mislead old readers.
    """
    check_version(version)
    problems: list[str] = []
    needed = version
    for field_id, field in sorted(schema.fields_by_id.items()):
        if field.field_type.min_format_version > version:
            needed = max(needed, field.field_type.min_format_version)
            since = field.field_type.min_format_version
            problems.append(f"{schema.name_of(field_id)} is {field.field_type}, which needs version {since}")
        since = FEATURES[Feature.DEFAULT_VALUES].since
        if field.initial_default is not None and version < since:
            needed = max(needed, since)
            problems.append(f"{schema.name_of(field_id)} has an initial default, which needs version {since}")
    if problems:
        raise InvalidRequestError(
            f"Cannot use the schema in a table of format version {version}: {'; '.join(problems)}",
            hint=f"Upgrade the table first, with t.upgrade({needed}).",
            heading="Schemas and Data Types",
        )


Requirement: TypeAlias = Literal["required", "optional", "omitted"]
"""How a writer treats a field. Specification: "Writer requirements"."""

_LETTERS: Mapping[str, Requirement] = FrozenMap({"r": "required", "o": "optional", "-": "omitted"})
FieldRules: TypeAlias = Mapping[str, tuple[Requirement, Requirement, Requirement]]


def _rules(table: str) -> FieldRules:
    """Parse lines of `name v1 v2 v3`: r for required, o for optional, - for omitted."""
    rows = (line.split() for line in table.strip().splitlines())
    return FrozenMap({name: (_LETTERS[v1], _LETTERS[v2], _LETTERS[v3]) for name, v1, v2, v3 in rows})


TABLE_METADATA_FIELDS: FieldRules = _rules("""
    format_version         r r r
    table_uuid             o r r
    location               r r r
    last_sequence_number   - r r
    last_updated_ms        r r r
    last_column_id         r r r
    schema                 r - -
    schemas                o r r
    current_schema_id      o r r
    partition_spec         r - -
    partition_specs        o r r
    default_spec_id        o r r
    last_partition_id      o r r
    properties             o o o
    current_snapshot_id    o o o
    snapshots              o o o
    snapshot_log           o o o
    metadata_log           o o o
    sort_orders            o r r
    default_sort_order_id  o r r
    refs                   - o o
    statistics             o o o
    partition_statistics   o o o
    next_row_id            - - r
    encryption_keys        - - o
""")
"""Specification: "Table Metadata Fields"."""

SNAPSHOT_FIELDS: FieldRules = _rules("""
    snapshot_id            r r r
    parent_snapshot_id     o o o
    sequence_number        - r r
    timestamp_ms           r r r
    manifest_list          o r r
    manifests              o - -
    summary                o r r
    schema_id              o o o
    first_row_id           - - r
    added_rows             - - r
    key_id                 - - o
""")
"""Specification: "Snapshots"."""

MANIFEST_FILE_FIELDS: FieldRules = _rules("""
    manifest_path          r r r
    manifest_length        r r r
    partition_spec_id      r r r
    content                - r r
    sequence_number        - r r
    min_sequence_number    - r r
    added_snapshot_id      r r r
    added_files_count      o r r
    existing_files_count   o r r
    deleted_files_count    o r r
    added_rows_count       o r r
    existing_rows_count    o r r
    deleted_rows_count     o r r
    partitions             o o o
    key_metadata           o o o
    first_row_id           - - o
""")
"""Specification: "Manifest Lists"."""

MANIFEST_HEADER_FIELDS: FieldRules = _rules("""
    schema                 r r r
    schema_id              o r r
    partition_spec         r r r
    partition_spec_id      o r r
    format_version         o r r
    content                - r r
""")
"""The key-value metadata of a manifest. Specification: "Manifests"."""

MANIFEST_ENTRY_FIELDS: FieldRules = _rules("""
    status                 r r r
    snapshot_id            r o o
    sequence_number        - o o
    file_sequence_number   - o o
    data_file              r r r
""")
"""Specification: "Manifest Entry Fields"."""

DATA_FILE_FIELDS: FieldRules = _rules("""
    content                - r r
    file_path              r r r
    file_format            r r r
    partition              r r r
    record_count           r r r
    file_size_in_bytes     r r r
    content_stats          - - -
    block_size_in_bytes    r - -
    file_ordinal           o - -
    sort_columns           o - -
    column_sizes           o o o
    value_counts           o o o
    null_value_counts      o o o
    nan_value_counts       o o o
    distinct_counts        o o -
    lower_bounds           o o o
    upper_bounds           o o o
    key_metadata           o o o
    split_offsets          o o o
    equality_ids           - o o
    sort_order_id          o o o
    first_row_id           - - o
    referenced_data_file   - o o
    content_offset         - - o
    content_size_in_bytes  - - o
""")
"""Specification: "Data File Fields"."""


def requirement_of(rules: FieldRules, field: str, version: int) -> Requirement:
    """Return how a writer of a format version treats a field of one of the tables above."""
    return rules[field][check_version(version) - MIN]
