"""Error messages that REST clients match on.

Names are taken from the messages of `catalog/names.py`.
"""

from __future__ import annotations

import re
from typing import Final

from frazil.changes import requirements as required
from frazil.changes.requirements import Requirement
from frazil.errors import (
    AlreadyExistsError,
    FrazilError,
    InvalidMetadataError,
    MissingFileError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    ViewAlreadyExistsError,
    ViewNotFoundError,
)
from frazil.serve.exchange import Refusal

_NOT_FOUND: Final = re.compile(r"Cannot find \w+ (?P<name>.*): the catalog has no such \w+", re.DOTALL)
_EXISTS: Final = re.compile(
    r"Cannot create (namespace )?(?P<name>.*): (it exists|there is a \w+ of that name)", re.DOTALL
)

_MISSING: Final[tuple[tuple[type[FrazilError], str, str], ...]] = (
    (NamespaceNotFoundError, "NoSuchNamespaceException", "Namespace"),
    (TableNotFoundError, "NoSuchTableException", "Table"),
    (ViewNotFoundError, "NoSuchViewException", "View"),
)
_TAKEN: Final[tuple[tuple[type[FrazilError], str], ...]] = (
    (NamespaceAlreadyExistsError, "Namespace"),
    (TableAlreadyExistsError, "Table"),
    (ViewAlreadyExistsError, "View"),
)


def protocol_refusal(error: FrazilError, subject: str, rename: tuple[str, str] | None = None) -> Refusal | None:
    """Translate an error into the protocol's message, or return None if its own message serves.

    `subject` is the subject of the operation, such as `Table` or `View`; `rename` has the two names of a rename.
    """
    for cls, type_name, noun in _MISSING:
        match = _NOT_FOUND.fullmatch(error.message) if isinstance(error, cls) else None
        if match is not None:
            return Refusal(404, type_name, f"{noun} does not exist: {match['name']}")
    if isinstance(error, AlreadyExistsError):
        return _taken(error, subject, rename)
    if isinstance(error, InvalidMetadataError) and isinstance(error.__cause__, MissingFileError):
        path = error.context.get("path")
        return Refusal(404, "NotFoundException", f"Failed to open input stream for file: {path}")
    return None


def _taken(error: AlreadyExistsError, subject: str, rename: tuple[str, str] | None) -> Refusal | None:
    match = _EXISTS.fullmatch(error.message)
    noun = next((noun for cls, noun in _TAKEN if isinstance(error, cls)), None)
    if match is None or noun is None:
        return None
    if rename is not None:
        text = f"Cannot rename {rename[0]} to {rename[1]}. {noun} already exists"
    elif noun == subject:
        text = f"{noun} already exists: {match['name']}"
    else:
        text = f"{noun} with same name already exists: {match['name']}"
    return Refusal(409, "AlreadyExistsException", text)


def failed_requirement(requirement: Requirement) -> str:
    """Return the message for a failed requirement."""
    return f"Requirement failed: {_WORDS[type(requirement)].format(requirement)}"


_WORDS: Final[dict[type, str]] = {
    required.AssertCreate: "table already exists",
    required.AssertTableUuid: "UUID does not match",
    required.AssertViewUuid: "view UUID does not match",
    required.AssertRefSnapshotId: "branch or tag {0.ref} has changed",
    required.AssertLastAssignedFieldId: "last assigned field id changed",
    required.AssertCurrentSchemaId: "current schema changed",
    required.AssertLastAssignedPartitionId: "last assigned partition id changed",
    required.AssertDefaultSpecId: "default partition spec changed",
    required.AssertDefaultSortOrderId: "default sort order changed",
}
