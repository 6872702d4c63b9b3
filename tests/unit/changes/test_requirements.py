"""What a change requires of the table or view it is applied to."""

from __future__ import annotations

import pytest

from frazil.changes import requirements as required
from frazil.changes.requirements import TableRequirement, check_requirements, check_view_requirements
from frazil.changes.updates import RemoveProperties
from frazil.errors import CommitConflictError, InvalidRequestError
from frazil.spec.snapshot import SnapshotRef
from frazil.spec.view_evolution import new_view_metadata
from frazil.spec.view_metadata import SqlRepresentation, ViewVersion
from tests.support import builders
from tests.support.metadata_builders import UUID, chain, metadata

TABLE = chain(2, refs={"eom": SnapshotRef(1, "tag")})
OTHER_UUID = "00000000-0000-0000-0000-000000000000"

MET: list[TableRequirement] = [
    required.AssertTableUuid(UUID),
    required.AssertTableUuid(UUID.upper()),
    required.AssertRefSnapshotId("main", 2),
    required.AssertRefSnapshotId("eom", 1),
    required.AssertRefSnapshotId("absent", None),
    required.AssertLastAssignedFieldId(3),
    required.AssertCurrentSchemaId(0),
    required.AssertLastAssignedPartitionId(999),
    required.AssertDefaultSpecId(0),
    required.AssertDefaultSortOrderId(0),
]
UNMET: list[tuple[TableRequirement, str]] = [
    (required.AssertCreate(), "already exists"),
    (required.AssertTableUuid(OTHER_UUID), "UUID"),
    (required.AssertRefSnapshotId("main", 1), "branch 'main' is at 2, and should be at 1"),
    (required.AssertRefSnapshotId("eom", None), "tag 'eom' was created meanwhile"),
    (required.AssertRefSnapshotId("absent", 1), "'absent' does not exist"),
    (required.AssertLastAssignedFieldId(2), "last column id is 3, and should be 2"),
    (required.AssertCurrentSchemaId(1), "current schema id"),
    (required.AssertLastAssignedPartitionId(1000), "last partition field id"),
    (required.AssertDefaultSpecId(1), "default spec id"),
    (required.AssertDefaultSortOrderId(1), "default sort order id"),
]


def test_satisfied_requirements_pass() -> None:
    check_requirements(TABLE, MET)
    check_requirements(None, [required.AssertCreate()])
    check_requirements(None, [])


@pytest.mark.parametrize(("requirement", "message"), UNMET, ids=lambda one: type(one).__name__)
def test_violated_requirements_are_conflicts(requirement: TableRequirement, message: str) -> None:
    with pytest.raises(CommitConflictError, match=message) as caught:
        check_requirements(TABLE, [*MET, requirement])
    assert caught.value.retryable


@pytest.mark.parametrize("requirement", MET, ids=lambda one: type(one).__name__)
def test_requirements_fail_for_a_dropped_table(requirement: TableRequirement) -> None:
    with pytest.raises(CommitConflictError, match="does not exist"):
        check_requirements(None, [requirement])


def test_table_without_uuid_does_not_match() -> None:
    with pytest.raises(CommitConflictError, match="UUID is None"):
        check_requirements(metadata(format_version=1, table_uuid=None), [required.AssertTableUuid(UUID)])


def test_unknown_requirement_is_refused() -> None:
    with pytest.raises(InvalidRequestError):
        check_requirements(TABLE, [RemoveProperties(())])  # type: ignore[list-item]
    with pytest.raises(InvalidRequestError, match="AssertViewUuid"):
        check_requirements(TABLE, [required.AssertViewUuid(UUID)])  # type: ignore[list-item]


def test_view_requirements() -> None:
    version = ViewVersion(1, 0, 5, (SqlRepresentation("select 1", "spark"),))
    view = new_view_metadata(view_uuid=UUID, location="s3://a/v", schema=builders.schema(), version=version)
    check_view_requirements(view, [required.AssertViewUuid(UUID.upper())])
    check_view_requirements(None, [required.AssertCreate()])
    for base, requirement in (
        (view, required.AssertCreate()),
        (None, required.AssertViewUuid(UUID)),
        (view, required.AssertViewUuid(OTHER_UUID)),
    ):
        with pytest.raises(CommitConflictError):
            check_view_requirements(base, [requirement])
    with pytest.raises(InvalidRequestError, match="applies to tables"):
        check_view_requirements(view, [required.AssertDefaultSpecId(0)])  # type: ignore[list-item]
