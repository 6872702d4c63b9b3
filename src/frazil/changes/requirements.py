"""The requirements that a table or view must meet for a change. The REST protocol's `TableRequirement`.

Whoever prepares a change states what it relies on; `check_requirements` tests it against the metadata that the change
is about to be applied to. If another writer changed it, the commit is a conflict, and the change is prepared again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from frazil.errors import CommitConflictError, InvalidRequestError
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.view_metadata import ViewMetadata


@dataclass(frozen=True, slots=True)
class AssertCreate:
    """The table or view does not exist yet."""


@dataclass(frozen=True, slots=True)
class AssertTableUuid:
    """The table is the expected one, not another of the same name."""

    uuid: str


@dataclass(frozen=True, slots=True)
class AssertViewUuid:
    """The view is the expected one, not another of the same name."""

    uuid: str


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId:
    """A branch or tag is at the expected snapshot; None requires that it does not exist."""

    ref: str
    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId:
    """No column ID has been assigned since."""

    last_assigned_field_id: int


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId:
    """The current schema has not changed."""

    current_schema_id: int


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId:
    """No partition field ID has been assigned since."""

    last_assigned_partition_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId:
    """The default partition spec has not changed."""

    default_spec_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId:
    """The default sort order has not changed."""

    default_sort_order_id: int


TableRequirement: TypeAlias = (
    AssertCreate
    | AssertTableUuid
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId
)
ViewRequirement: TypeAlias = AssertCreate | AssertViewUuid
Requirement: TypeAlias = TableRequirement | ViewRequirement


def check_requirements(base: TableMetadata | None, requirements: Iterable[TableRequirement]) -> None:
    """Raise a CommitConflictError if a table does not meet the requirements; None stands for no table."""
    for requirement in requirements:
        if isinstance(requirement, AssertCreate):
            if base is not None:
                raise _conflict("table", "it already exists")
        elif base is None:
            raise _conflict("table", "it does not exist")
        else:
            _check(base, requirement)


def check_view_requirements(base: ViewMetadata | None, requirements: Iterable[ViewRequirement]) -> None:
    """Raise a CommitConflictError if a view does not meet the requirements; None stands for no view."""
    for requirement in requirements:
        if isinstance(requirement, AssertCreate):
            if base is not None:
                raise _conflict("view", "it already exists")
        elif not isinstance(requirement, AssertViewUuid):
            raise InvalidRequestError(f"Cannot require {type(requirement).__name__} of a view: it applies to tables")
        elif base is None:
            raise _conflict("view", "it does not exist")
        elif base.view_uuid.lower() != requirement.uuid.lower():
            raise _conflict("view", f"its UUID is {base.view_uuid}, and should be {requirement.uuid}")


def restate_requirements(base: TableMetadata, requirements: Iterable[TableRequirement]) -> tuple[TableRequirement, ...]:
    """Restate requirements with the present values of a table, for changes that build on each other.

    A later change relies on what an earlier one made, which no catalog has seen; so both rely on the state before.
    """
    return tuple(dict.fromkeys(_restated(base, requirement) for requirement in requirements))


def _restated(base: TableMetadata, requirement: TableRequirement) -> TableRequirement:
    match requirement:
        case AssertTableUuid(uuid):
            return AssertTableUuid(uuid if base.table_uuid is None else base.table_uuid)
        case AssertRefSnapshotId(name):
            ref = base.find_ref(name)
            return AssertRefSnapshotId(name, None if ref is None else ref.snapshot_id)
        case AssertLastAssignedFieldId():
            return AssertLastAssignedFieldId(base.last_column_id)
        case AssertCurrentSchemaId():
            return AssertCurrentSchemaId(base.current_schema_id)
        case AssertLastAssignedPartitionId():
            return AssertLastAssignedPartitionId(base.last_partition_id)
        case AssertDefaultSpecId():
            return AssertDefaultSpecId(base.default_spec_id)
        case AssertDefaultSortOrderId():
            return AssertDefaultSortOrderId(base.default_sort_order_id)
        case _:
            return requirement


def _check(base: TableMetadata, requirement: TableRequirement) -> None:
    if isinstance(requirement, AssertTableUuid):
        if base.table_uuid is None or base.table_uuid.lower() != requirement.uuid.lower():
            raise _conflict("table", f"its UUID is {base.table_uuid}, and should be {requirement.uuid}")
        return
    if isinstance(requirement, AssertRefSnapshotId):
        _check_ref(base, requirement)
        return
    what, actual, expected = _number(base, requirement)
    if actual != expected:
        raise _conflict("table", f"its {what} is {actual}, and should be {expected}")


def _check_ref(base: TableMetadata, requirement: AssertRefSnapshotId) -> None:
    ref = base.find_ref(requirement.ref)
    if ref is None:
        if requirement.snapshot_id is not None:
            raise _conflict(
                "table",
                f"branch or tag {requirement.ref!r} does not exist, and should be at {requirement.snapshot_id}",
            )
    elif requirement.snapshot_id is None:
        raise _conflict("table", f"{ref.type} {requirement.ref!r} was created meanwhile at {ref.snapshot_id}")
    elif ref.snapshot_id != requirement.snapshot_id:
        raise _conflict(
            "table",
            f"{ref.type} {requirement.ref!r} is at {ref.snapshot_id}, and should be at {requirement.snapshot_id}",
        )


def _number(base: TableMetadata, requirement: TableRequirement) -> tuple[str, int, int]:
    match requirement:
        case AssertLastAssignedFieldId(expected):
            return "last column id", base.last_column_id, expected
        case AssertCurrentSchemaId(expected):
            return "current schema id", base.current_schema_id, expected
        case AssertLastAssignedPartitionId(expected):
            return "last partition field id", base.last_partition_id, expected
        case AssertDefaultSpecId(expected):
            return "default spec id", base.default_spec_id, expected
        case AssertDefaultSortOrderId(expected):
            return "default sort order id", base.default_sort_order_id, expected
        case _:
            raise InvalidRequestError(f"Cannot require {type(requirement).__name__} of a table")


def _conflict(what: str, reason: str) -> CommitConflictError:
    return CommitConflictError(
        f"Cannot commit to the {what}: {reason}", hint="Another writer changed it. Refresh and try again."
    )
