"""What is told of errors, in the words that clients of the protocol know: some look into messages.

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


def in_protocol_words(error: FrazilError, asked_for: str, rename: tuple[str, str] | None = None) -> Refusal | None:
    """Return an error as the protocol has it; None where its own words serve.

    `asked_for` is what the operation is about, `Table` or `View` say; `rename` the two names of a rename.
    """
    for cls, type_name, noun in _MISSING:
        found = _NOT_FOUND.fullmatch(error.message) if isinstance(error, cls) else None
        if found is not None:
            return Refusal(404, type_name, f"{noun} does not exist: {found['name']}")
    if isinstance(error, AlreadyExistsError):
        return _taken(error, asked_for, rename)
    if isinstance(error, InvalidMetadataError) and isinstance(error.__cause__, MissingFileError):
        path = error.context.get("path")
        return Refusal(404, "NotFoundException", f"Failed to open input stream for file: {path}")
    return None


def _taken(error: AlreadyExistsError, asked_for: str, rename: tuple[str, str] | None) -> Refusal | None:
    found = _EXISTS.fullmatch(error.message)
    noun = next((noun for cls, noun in _TAKEN if isinstance(error, cls)), None)
    if found is None or noun is None:
        return None
    if rename is not None:
        text = f"Cannot rename {rename[0]} to {rename[1]}. {noun} already exists"
    elif noun == asked_for:
        text = f"{noun} already exists: {found['name']}"
    else:
        text = f"{noun} with same name already exists: {found['name']}"
    return Refusal(409, "AlreadyExistsException", text)


def failed_requirement(requirement: Requirement) -> str:
    """Return what is told of a requirement that does not hold."""
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
