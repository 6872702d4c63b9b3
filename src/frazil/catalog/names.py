"""Names of tables, views and namespaces: their validation, and the errors about them.

A name is a tuple of parts, so that quotes, dots, `%`, spaces and all other characters have no special meaning.
A catalog that could not distinguish two names refuses them (`catalog/sql.py`, `catalog/filesystem.py`).
"""

from __future__ import annotations

from typing import Final, TypeAlias

from frazil.errors import (
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    TableNotFoundError,
    ViewAlreadyExistsError,
    ViewNotFoundError,
)

Identifier: TypeAlias = tuple[str, ...]
"""A table's or view's name: the parts of its namespace, then the name itself."""
Namespace: TypeAlias = tuple[str, ...]

MAX_NAME_CHARS: Final = 255
_SHOWN_CHARS = 60


def check_namespace(namespace: Namespace, *, may_be_root: bool = False) -> Namespace:
    """Return a namespace's parts as a tuple, or raise an error if it is not valid."""
    parts = _parts("namespace", namespace)
    if not parts and not may_be_root:
        raise InvalidRequestError("Cannot use the namespace (): it has no name")
    return parts


def split_identifier(identifier: Identifier) -> tuple[Namespace, str]:
    """Split an identifier into namespace and name, or raise an error if it is not valid."""
    parts = _parts("identifier", identifier)
    if len(parts) < 2:
        raise InvalidRequestError(
            f"Cannot use the identifier {format_name(parts)!r}: it needs a namespace and a name",
            hint="Use both, as in db.events.",
        )
    return parts[:-1], parts[-1]


def format_name(parts: tuple[str, ...]) -> str:
    """Format a name for messages."""
    return ".".join(parts)


def _parts(what: str, parts: object) -> tuple[str, ...]:
    if isinstance(parts, str) or not isinstance(parts, tuple | list):
        raise InvalidRequestError(f"Cannot use the {what} {_short(parts)}: pass its parts as a tuple")
    for part in parts:
        if not isinstance(part, str):
            raise InvalidRequestError(f"Cannot use the {what} {_short(parts)}: {_short(part)} is not text")
        _check_part(what, part)
    return tuple(parts)


def _check_part(what: str, part: str) -> None:
    if part == "":
        raise InvalidRequestError(f"Cannot use the {what}: one of its names is empty")
    if "\0" in part:
        raise InvalidRequestError(f"Cannot use the {what} {_short(part)}: it contains a NUL character")
    if len(part) > MAX_NAME_CHARS:
        raise InvalidRequestError(
            f"Cannot use the {what} {_short(part)}: it has {len(part)} characters, more than {MAX_NAME_CHARS}"
        )
    try:
        part.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequestError(f"Cannot use the {what} {_short(part)}: it is not Unicode text") from error


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def table_not_found(identifier: Identifier) -> TableNotFoundError:
    """Return the error for a table that does not exist."""
    return TableNotFoundError(f"Cannot find table {format_name(identifier)}: the catalog has no such table")


def view_not_found(identifier: Identifier) -> ViewNotFoundError:
    """Return the error for a view that does not exist."""
    return ViewNotFoundError(f"Cannot find view {format_name(identifier)}: the catalog has no such view")


def namespace_not_found(namespace: Namespace) -> NamespaceNotFoundError:
    """Return the error for a namespace that does not exist."""
    return NamespaceNotFoundError(
        f"Cannot find namespace {format_name(namespace)}: the catalog has no such namespace",
        hint="Check the name, or create the namespace first.",
    )


def table_exists(identifier: Identifier) -> TableAlreadyExistsError:
    """Return the error for a name that is a table's."""
    return TableAlreadyExistsError(f"Cannot create {format_name(identifier)}: there is a table of that name")


def view_exists(identifier: Identifier) -> ViewAlreadyExistsError:
    """Return the error for a name that is a view's."""
    return ViewAlreadyExistsError(f"Cannot create {format_name(identifier)}: there is a view of that name")


def namespace_exists(namespace: Namespace) -> NamespaceAlreadyExistsError:
    """Return the error for a namespace that exists."""
    return NamespaceAlreadyExistsError(f"Cannot create namespace {format_name(namespace)}: it exists")


def namespace_not_empty(namespace: Namespace, what: str) -> NamespaceNotEmptyError:
    """Return the error for a namespace that is not empty."""
    return NamespaceNotEmptyError(
        f"Cannot drop namespace {format_name(namespace)}: it is not empty, it holds {what}", hint="Drop that first."
    )
