"""What must still hold of a table or view for a change to be made. The REST protocol's `TableRequirement`.

Whoever prepares a change names what it relied on; `check_requirements` asks the metadata the change is about
to be applied to. Another writer who changed it makes the commit a conflict, and the change is prepared anew.
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
    """There is no such table yet."""


@dataclass(frozen=True, slots=True)
class AssertTableUuid:
    """The table is the one meant, and not another of its name."""

    uuid: str


@dataclass(frozen=True, slots=True)
class AssertViewUuid:
    """The view is the one meant, and not another of its name."""

    uuid: str


@dataclass(frozen=True, slots=True)
class AssertRefSnapshotId:
    """A branch or tag is where it was; with None, there is none of the name."""

    ref: str
    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class AssertLastAssignedFieldId:
    """No column id has been assigned since."""

    last_assigned_field_id: int


@dataclass(frozen=True, slots=True)
class AssertCurrentSchemaId:
    """The current schema is the same."""

    current_schema_id: int


@dataclass(frozen=True, slots=True)
class AssertLastAssignedPartitionId:
    """No partition field id has been assigned since."""

    last_assigned_partition_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSpecId:
    """The default partition spec is the same."""

    default_spec_id: int


@dataclass(frozen=True, slots=True)
class AssertDefaultSortOrderId:
    """The default sort order is the same."""

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
    """Raise CommitConflictError where a table is not as a change requires; None stands for no table."""
    for requirement in requirements:
        if isinstance(requirement, AssertCreate):
            if base is not None:
                raise _conflict("table", "it exists already")
        elif base is None:
            raise _conflict("table", "it does not exist")
        else:
            _check(base, requirement)


def check_view_requirements(base: ViewMetadata | None, requirements: Iterable[ViewRequirement]) -> None:
    """Raise CommitConflictError where a view is not as a change requires; None stands for no view."""
    for requirement in requirements:
        if isinstance(requirement, AssertCreate):
            if base is not None:
                raise _conflict("view", "it exists already")
        elif not isinstance(requirement, AssertViewUuid):
            raise InvalidRequestError(f"Cannot require {type(requirement).__name__} of a view: it is about tables")
        elif base is None:
            raise _conflict("view", "it does not exist")
        elif base.view_uuid.lower() != requirement.uuid.lower():
            raise _conflict("view", f"its UUID is {base.view_uuid}, and should be {requirement.uuid}")


def restate_requirements(base: TableMetadata, requirements: Iterable[TableRequirement]) -> tuple[TableRequirement, ...]:
    """Return what requirements are about as it is in a table: for changes that were made one upon the other.

    A later change relies on what an earlier one made, which no catalog has seen; both rely on what was there before.
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
    what, found, wanted = _number(base, requirement)
    if found != wanted:
        raise _conflict("table", f"its {what} is {found}, and should be {wanted}")


def _check_ref(base: TableMetadata, requirement: AssertRefSnapshotId) -> None:
    ref = base.find_ref(requirement.ref)
    if ref is None:
        if requirement.snapshot_id is not None:
            raise _conflict(
                "table",
                f"branch or tag {requirement.ref!r} is gone, and should be at {requirement.snapshot_id}",
            )
    elif requirement.snapshot_id is None:
        raise _conflict("table", f"{ref.type} {requirement.ref!r} was created meanwhile, at {ref.snapshot_id}")
    elif ref.snapshot_id != requirement.snapshot_id:
        raise _conflict(
            "table",
            f"{ref.type} {requirement.ref!r} is at {ref.snapshot_id}, and should be at {requirement.snapshot_id}",
        )


def _number(base: TableMetadata, requirement: TableRequirement) -> tuple[str, int, int]:
    match requirement:
        case AssertLastAssignedFieldId(wanted):
            return "last column id", base.last_column_id, wanted
        case AssertCurrentSchemaId(wanted):
            return "current schema id", base.current_schema_id, wanted
        case AssertLastAssignedPartitionId(wanted):
            return "last partition field id", base.last_partition_id, wanted
        case AssertDefaultSpecId(wanted):
            return "default spec id", base.default_spec_id, wanted
        case AssertDefaultSortOrderId(wanted):
            return "default sort order id", base.default_sort_order_id, wanted
        case _:
            raise InvalidRequestError(f"Cannot require {type(requirement).__name__} of a table")


def _conflict(what: str, reason: str) -> CommitConflictError:
    return CommitConflictError(
        f"Cannot commit to the {what}: {reason}", hint="Another writer changed it. Refresh and try again."
    )
