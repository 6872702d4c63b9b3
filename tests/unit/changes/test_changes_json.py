"""Updates and requirements as the REST protocol spells them."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from frazil.changes import requirements as required
from frazil.changes import updates as change
from frazil.changes.changes_json import decode_requirement, decode_update, encode_requirement, encode_update
from frazil.changes.requirements import Requirement
from frazil.changes.updates import Update
from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.spec.encryption import EncryptedKey
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partitioning import PartitionField, PartitionSpec, build_partition_spec
from frazil.spec.snapshot import SnapshotRef
from frazil.spec.sorting import UNSORTED, build_sort_order
from frazil.spec.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from frazil.spec.transforms import parse_transform
from frazil.spec.view_metadata import SqlRepresentation, ViewVersion
from tests.support import builders
from tests.support.metadata_builders import LOCATION, START_MS, UUID, snapshot

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "ts", "required": False, "type": "timestamptz"},
        {"id": 3, "name": "kind", "required": False, "type": "string"},
    ],
}
BLOB = BlobMetadata("apache-datasketches-theta-v1", 7, 2, (1,), FrozenMap({"ndv": "3"}))
VIEW_VERSION = ViewVersion(1, -1, START_MS, (SqlRepresentation("select 1", "spark"),), ("db",))

UPDATES: list[tuple[Update, dict[str, Any]]] = [
    (change.AssignUuid(UUID), {"action": "assign-uuid", "uuid": UUID}),
    (change.UpgradeFormatVersion(3), {"action": "upgrade-format-version", "format-version": 3}),
    (change.AddSchema(builders.schema()), {"action": "add-schema", "schema": SCHEMA, "last-column-id": 3}),
    (change.SetCurrentSchema(-1), {"action": "set-current-schema", "schema-id": -1}),
    (
        change.AddPartitionSpec(build_partition_spec(builders.schema(), ["day(ts)"])),
        {
            "action": "add-spec",
            "spec": {
                "spec-id": 0,
                "fields": [{"name": "ts_day", "transform": "day", "source-id": 2, "field-id": 1000}],
            },
        },
    ),
    (change.SetDefaultSpec(4), {"action": "set-default-spec", "spec-id": 4}),
    (
        change.AddSortOrder(build_sort_order(builders.schema(), ["id desc"])),
        {
            "action": "add-sort-order",
            "sort-order": {
                "order-id": 1,
                "fields": [{"transform": "identity", "source-id": 1, "direction": "desc", "null-order": "nulls-last"}],
            },
        },
    ),
    (
        change.AddSortOrder(UNSORTED),
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    ),
    (change.SetDefaultSortOrder(0), {"action": "set-default-sort-order", "sort-order-id": 0}),
    (
        change.AddSnapshot(snapshot(2, 1)),
        {
            "action": "add-snapshot",
            "snapshot": {
                "sequence-number": 2,
                "snapshot-id": 2,
                "parent-snapshot-id": 1,
                "timestamp-ms": START_MS + 2,
                "summary": {"operation": "append"},
                "manifest-list": f"{LOCATION}/metadata/snap-2.avro",
                "schema-id": 0,
            },
        },
    ),
    (
        change.AddSnapshot(snapshot(2, sequence_number=0, schema_id=None)),
        {
            "action": "add-snapshot",
            "snapshot": {
                "snapshot-id": 2,
                "timestamp-ms": START_MS + 2,
                "summary": {"operation": "append"},
                "manifest-list": f"{LOCATION}/metadata/snap-2.avro",
            },
        },
    ),
    (
        change.SetSnapshotRef("eom", SnapshotRef(2**62, "tag", max_ref_age_ms=5)),
        {
            "action": "set-snapshot-ref",
            "ref-name": "eom",
            "snapshot-id": 2**62,
            "type": "tag",
            "max-ref-age-ms": 5,
        },
    ),
    (
        change.SetSnapshotRef("b", SnapshotRef(0, "branch", 3, 4)),
        {
            "action": "set-snapshot-ref",
            "ref-name": "b",
            "snapshot-id": 0,
            "type": "branch",
            "min-snapshots-to-keep": 3,
            "max-snapshot-age-ms": 4,
        },
    ),
    (change.RemoveSnapshots((2**62, 1)), {"action": "remove-snapshots", "snapshot-ids": [2**62, 1]}),
    (change.RemoveSnapshotRef("eom"), {"action": "remove-snapshot-ref", "ref-name": "eom"}),
    (change.SetLocation(LOCATION), {"action": "set-location", "location": LOCATION}),
    (change.SetProperties(FrozenMap({"a": ""})), {"action": "set-properties", "updates": {"a": ""}}),
    (change.RemoveProperties(("a", "b")), {"action": "remove-properties", "removals": ["a", "b"]}),
    (
        change.SetStatistics(StatisticsFile(7, f"{LOCATION}/s.puffin", 100, 40, (BLOB,))),
        {
            "action": "set-statistics",
            "snapshot-id": 7,
            "statistics": {
                "snapshot-id": 7,
                "statistics-path": f"{LOCATION}/s.puffin",
                "file-size-in-bytes": 100,
                "file-footer-size-in-bytes": 40,
                "blob-metadata": [
                    {
                        "type": "apache-datasketches-theta-v1",
                        "snapshot-id": 7,
                        "sequence-number": 2,
                        "fields": [1],
                        "properties": {"ndv": "3"},
                    }
                ],
            },
        },
    ),
    (change.RemoveStatistics(2**62), {"action": "remove-statistics", "snapshot-id": 2**62}),
    (
        change.SetPartitionStatistics(PartitionStatisticsFile(7, f"{LOCATION}/p.parquet", 100)),
        {
            "action": "set-partition-statistics",
            "partition-statistics": {
                "snapshot-id": 7,
                "statistics-path": f"{LOCATION}/p.parquet",
                "file-size-in-bytes": 100,
            },
        },
    ),
    (change.RemovePartitionStatistics(7), {"action": "remove-partition-statistics", "snapshot-id": 7}),
    (change.RemovePartitionSpecs((1, 2)), {"action": "remove-partition-specs", "spec-ids": [1, 2]}),
    (change.RemoveSchemas((1, 2)), {"action": "remove-schemas", "schema-ids": [1, 2]}),
    (
        change.AddEncryptionKey(EncryptedKey("k", b"secret", "master", FrozenMap({"a": "b"}))),
        {
            "action": "add-encryption-key",
            "encryption-key": {
                "key-id": "k",
                "encrypted-key-metadata": "c2VjcmV0",
                "encrypted-by-id": "master",
                "properties": {"a": "b"},
            },
        },
    ),
    (change.RemoveEncryptionKey("k"), {"action": "remove-encryption-key", "key-id": "k"}),
    (
        change.AddViewVersion(VIEW_VERSION),
        {
            "action": "add-view-version",
            "view-version": {
                "version-id": 1,
                "timestamp-ms": START_MS,
                "schema-id": -1,
                "summary": {},
                "default-namespace": ["db"],
                "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
            },
        },
    ),
    (change.SetCurrentViewVersion(-1), {"action": "set-current-view-version", "view-version-id": -1}),
]

REQUIREMENTS: list[tuple[Requirement, dict[str, Any]]] = [
    (required.AssertCreate(), {"type": "assert-create"}),
    (required.AssertTableUuid(UUID), {"type": "assert-table-uuid", "uuid": UUID}),
    (required.AssertViewUuid(UUID), {"type": "assert-view-uuid", "uuid": UUID}),
    (
        required.AssertRefSnapshotId("main", 2**62),
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 2**62},
    ),
    (
        required.AssertRefSnapshotId("new", None),
        {"type": "assert-ref-snapshot-id", "ref": "new", "snapshot-id": None},
    ),
    (
        required.AssertLastAssignedFieldId(3),
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 3},
    ),
    (required.AssertCurrentSchemaId(0), {"type": "assert-current-schema-id", "current-schema-id": 0}),
    (
        required.AssertLastAssignedPartitionId(1000),
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
    ),
    (required.AssertDefaultSpecId(0), {"type": "assert-default-spec-id", "default-spec-id": 0}),
    (required.AssertDefaultSortOrderId(0), {"type": "assert-default-sort-order-id", "default-sort-order-id": 0}),
]


@pytest.mark.parametrize(("update", "encoded"), UPDATES, ids=lambda one: type(one).__name__)
def test_updates_have_the_json_of_the_protocol(update: Update, encoded: dict[str, Any]) -> None:
    assert encode_update(update) == encoded
    assert decode_update(json.loads(json.dumps(encoded))) == update


@pytest.mark.parametrize(("requirement", "encoded"), REQUIREMENTS, ids=lambda one: type(one).__name__)
def test_requirements_have_the_json_of_the_protocol(requirement: Requirement, encoded: dict[str, Any]) -> None:
    assert encode_requirement(requirement) == encoded
    assert decode_requirement(json.loads(json.dumps(encoded))) == requirement


def test_every_kind_is_covered_above() -> None:
    assert {type(update) for update, _ in UPDATES} == set(get_args(Update))
    assert {type(requirement) for requirement, _ in REQUIREMENTS} == set(get_args(Requirement))


def test_upper_case_and_unknown_fields_are_accepted() -> None:
    assert decode_update({"action": "Assign-UUID", "uuid": UUID, "new": 1}) == change.AssignUuid(UUID)


def test_field_names_of_old_clients_are_accepted() -> None:
    assert decode_update({"action": "set-properties", "updated": {"a": "b"}}) == change.SetProperties(
        FrozenMap({"a": "b"})
    )
    assert decode_update({"action": "remove-properties", "removed": ["a"]}) == change.RemoveProperties(("a",))


def test_spec_without_ids_numbers_fields_from_1000() -> None:
    sent = {"action": "add-spec", "spec": {"fields": [{"name": "d", "transform": "day", "source-id": 2}]}}
    wanted = PartitionSpec(0, (PartitionField((2,), 1000, "d", parse_transform("day")),))
    assert decode_update(sent) == change.AddPartitionSpec(wanted)


def test_reference_retention_fields_are_not_treated_as_unknown() -> None:
    decoded = decode_update({"action": "set-snapshot-ref", "ref-name": "x", "snapshot-id": 1, "type": "branch"})
    assert isinstance(decoded, change.SetSnapshotRef)
    assert decoded.ref.extra == {}


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (None, "expected an object"),
        ([], "expected an object"),
        ({}, r"updates\[3\].action"),
        ({"action": 1}, "expected a string"),
        ({"action": "assign-uuid"}, r"updates\[3\].uuid"),
        ({"action": "set-current-schema", "schema-id": "1"}, "expected an integer"),
        ({"action": "set-current-schema", "schema-id": 2**31}, "32 bits"),
        ({"action": "remove-statistics", "snapshot-id": 2**63}, "64 bits"),
        ({"action": "remove-snapshots", "snapshot-ids": [1, True]}, r"snapshot-ids\[1\]"),
        ({"action": "remove-snapshots", "snapshot-ids": [2**63]}, r"snapshot-ids\[0\]"),
        ({"action": "add-schema", "schema": {"type": "struct"}}, r"schema.fields"),
        ({"action": "add-spec", "spec": 5}, "expected an object"),
        ({"action": "add-snapshot", "snapshot": {"snapshot-id": -1}}, "negative"),
        ({"action": "set-snapshot-ref", "ref-name": "x", "snapshot-id": 1, "type": "x"}, "branch or tag"),
        ({"action": "set-properties", "updates": {"a": 1}}, "expected a string"),
    ],
)
def test_invalid_update_is_reported_with_its_position(sent: Any, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        decode_update(sent, where="updates[3]")


def test_unknown_kind_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="'drop-everything' is not supported"):
        decode_update({"action": "drop-everything"})
    with pytest.raises(UnsupportedError, match="'assert-luck' is not supported"):
        decode_requirement({"type": "assert-luck"})
    with pytest.raises(InvalidRequestError, match="not an update"):
        encode_update("x")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="not a requirement"):
        encode_requirement("x")  # type: ignore[arg-type]
