"""What a service's refusals mean: from a status and a type to frazil's errors.

The type says it best, where the service gives one; else the status and what was asked for. A 404 of a table may be one
of its namespace.
"""

from __future__ import annotations

from frazil.catalog.names import (
    Identifier,
    Namespace,
    format_name,
    namespace_exists,
    namespace_not_found,
    table_exists,
    table_not_found,
    view_exists,
    view_not_found,
)
from frazil.errors import (
    AccessDeniedError,
    CommitConflictError,
    FrazilError,
    InvalidRequestError,
    NotFoundError,
    ServiceError,
    UnsupportedError,
)
from frazil.rest.session import RestSession, error_of
from frazil.storage.http import Answer

_WRONG = frozenset({400, 405, 406, 411, 412, 413, 414, 415, 422})


def refusal(
    session: RestSession,
    reply: Answer,
    what: str,
    *,
    namespace: Namespace = (),
    table: Identifier | None = None,
    view: Identifier | None = None,
) -> FrazilError:
    """Return the error that a refusal stands for; `what` is what was asked for, as in `load table db.t`."""
    error_type = error_of(reply)[1].rpartition(".")[2]
    said = session.explain(reply)
    if reply.status == 404:
        return _not_found(error_type, what, said, namespace, table, view)
    if reply.status == 409:
        return _conflict(error_type, what, said, namespace, table, view)
    if reply.status in (401, 403, 419):
        return AccessDeniedError(
            f"Cannot {what}: {said}", hint="Look at the token or credential, and at what it may do there."
        )
    if reply.status in (406, 501) or error_type == "UnsupportedOperationException":
        return UnsupportedError(f"Cannot {what}: {said}")
    if reply.status in _WRONG:
        return InvalidRequestError(f"Cannot {what}: {said}")
    if 300 <= reply.status < 400:
        return ServiceError(
            f"Cannot {what}: the service sends elsewhere ({reply.status}), which is not followed",
            hint="Connect to the address it names, if that is the catalog's.",
        )
    return ServiceError(f"Cannot {what}: {said}")


def _not_found(
    error_type: str, what: str, said: str, namespace: Namespace, table: Identifier | None, view: Identifier | None
) -> FrazilError:
    name = table if table is not None else view
    inside = namespace if name is None else name[:-1]
    if error_type == "NoSuchNamespaceException":
        return namespace_not_found(inside)
    if error_type == "NoSuchTableException" and table is not None:
        return table_not_found(table)
    if error_type == "NoSuchViewException" and view is not None:
        return view_not_found(view)
    if error_type in ("", "NotFoundException", "NoSuchElementException", "EntityNotFoundException"):
        if table is not None:
            return table_not_found(table)
        if view is not None:
            return view_not_found(view)
        if namespace:
            return namespace_not_found(namespace)
    return NotFoundError(f"Cannot {what}: {said}")


def _conflict(
    error_type: str, what: str, said: str, namespace: Namespace, table: Identifier | None, view: Identifier | None
) -> FrazilError:
    if error_type == "CommitFailedException":
        return CommitConflictError(f"Cannot {what}: {said}", hint="Another writer changed it. Refresh and try again.")
    if table is not None:
        # Tables and views share their names, and the service says which it is in words only.
        return view_exists(table) if "iew" in said and "able" not in said else table_exists(table)
    if view is not None:
        return (
            table_exists(view)
            if "able" in said and "iew" not in said.replace(format_name(view), "")
            else view_exists(view)
        )
    return namespace_exists(namespace)
