"""What the format versions allow and require. Specification: "Format Versioning", "Appendix E"."""

from __future__ import annotations

import pytest

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.spec import versions
from frazil.spec.schema import Schema
from frazil.spec.types import (
    INT,
    LONG,
    TIMESTAMP_NS,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    VARIANT,
    GeographyType,
    GeometryType,
    ListType,
    NestedField,
    StructType,
    Type,
)
from frazil.spec.versions import FEATURES, Feature

SINCE = {
    Feature.SEQUENCE_NUMBERS: (2, 3),
    Feature.SNAPSHOT_ID_INHERITANCE: (2, 3),
    Feature.ROW_LEVEL_DELETES: (2, 3),
    Feature.EQUALITY_DELETE_FILES: (2, 3),
    Feature.POSITION_DELETE_FILES: (2,),
    Feature.DELETION_VECTORS: (3,),
    Feature.DEFAULT_VALUES: (3,),
    Feature.NEW_TYPES: (3,),
    Feature.MULTI_ARGUMENT_TRANSFORMS: (3,),
    Feature.ROW_LINEAGE: (3,),
    Feature.ENCRYPTION_KEYS: (3,),
    Feature.INLINE_MANIFESTS: (1,),
    Feature.REMOVABLE_PARTITION_FIELDS: (2, 3),
}


@pytest.mark.parametrize("feature", list(Feature))
def test_features_are_allowed_in_their_specified_versions(feature: Feature) -> None:
    allowed = tuple(version for version in (1, 2, 3) if versions.allows(version, feature))
    assert allowed == SINCE[feature]
    for version in allowed:
        versions.check_feature(version, feature)


def test_every_feature_has_a_rule() -> None:
    assert set(FEATURES) == set(Feature)


def test_newer_feature_is_refused_with_the_upgrade_to_run() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        versions.check_feature(2, Feature.DELETION_VECTORS)
    assert "Cannot use deletion vectors: the table has format version 2 and this needs 3" in str(caught.value)
    assert "t.upgrade(3)" in str(caught.value)


def test_removed_feature_is_refused_with_its_replacement() -> None:
    with pytest.raises(InvalidRequestError, match="new position delete files") as caught:
        versions.check_feature(3, Feature.POSITION_DELETE_FILES)
    assert "deletion vectors" in str(caught.value)


def test_newer_format_version_is_unsupported_and_an_older_one_invalid() -> None:
    assert [versions.check_version(version) for version in (1, 2, 3)] == [1, 2, 3]
    with pytest.raises(UnsupportedError, match="format version 4"):
        versions.check_version(4)
    with pytest.raises(InvalidRequestError, match="format version 0"):
        versions.check_version(0)
    with pytest.raises(UnsupportedError):
        versions.check_feature(4, Feature.ROW_LINEAGE)


def test_upgrades_only_increase_the_version() -> None:
    assert versions.check_upgrade(1, 3) == 3
    assert versions.check_upgrade(2, 2) == 2
    with pytest.raises(InvalidRequestError, match="from 3 to 2"):
        versions.check_upgrade(3, 2)
    with pytest.raises(UnsupportedError):
        versions.check_upgrade(3, 4)


@pytest.mark.parametrize(
    "new_type", [TIMESTAMP_NS, TIMESTAMPTZ_NS, UNKNOWN, VARIANT, GeometryType(), GeographyType()], ids=str
)
@pytest.mark.parametrize("version", [1, 2])
def test_version_3_types_are_refused_before_it(new_type: Type, version: int) -> None:
    nested = StructType((NestedField(3, "inner", ListType(4, new_type)),))
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "outer", nested)))
    with pytest.raises(InvalidRequestError, match=r"outer\.inner\.element is .*needs version 3"):
        versions.check_schema_allowed(schema, version)
    versions.check_schema_allowed(schema, 3)


def test_all_problems_of_a_schema_are_named_at_once() -> None:
    schema = Schema((NestedField(1, "a", VARIANT), NestedField(2, "b", INT, initial_default=0)))
    with pytest.raises(InvalidRequestError) as caught:
        versions.check_schema_allowed(schema, 2)
    assert "a is variant" in caught.value.message
    assert "b has an initial default" in caught.value.message
    assert caught.value.hint == "Upgrade the table first, with t.upgrade(3)."


def test_write_default_is_allowed_in_every_version() -> None:
    versions.check_schema_allowed(Schema((NestedField(1, "a", INT, write_default=5),)), 1)


def required_fields(rules: versions.FieldRules, version: int) -> tuple[str, ...]:
    return tuple(name for name in rules if versions.requirement_of(rules, name, version) == "required")


def test_required_fields_follow_the_specification() -> None:
    assert required_fields(versions.TABLE_METADATA_FIELDS, 1) == (
        "format_version",
        "location",
        "last_updated_ms",
        "last_column_id",
        "schema",
        "partition_spec",
    )
    assert set(required_fields(versions.TABLE_METADATA_FIELDS, 3)) - set(
        required_fields(versions.TABLE_METADATA_FIELDS, 2)
    ) == {"next_row_id"}
    assert required_fields(versions.SNAPSHOT_FIELDS, 3)[-2:] == ("first_row_id", "added_rows")
    assert versions.requirement_of(versions.MANIFEST_ENTRY_FIELDS, "snapshot_id", 1) == "required"
    assert versions.requirement_of(versions.MANIFEST_ENTRY_FIELDS, "snapshot_id", 2) == "optional"
    assert versions.requirement_of(versions.DATA_FILE_FIELDS, "content_offset", 2) == "omitted"
    assert versions.requirement_of(versions.MANIFEST_FILE_FIELDS, "first_row_id", 3) == "optional"
    assert versions.requirement_of(versions.MANIFEST_HEADER_FIELDS, "content", 1) == "omitted"
