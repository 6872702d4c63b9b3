"""Translates the refusals of a service into frazil's errors, by their status and type.

The error type is the most precise, if the service sends one; otherwise the status and the request decide. A 404 for a
table may refer to its namespace.
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
    """Return the error for a refusal; `what` describes the request, as in `load table db.t`."""
    error_type = error_of(reply)[1].rpartition(".")[2]
    reason = session.explain(reply)
    if reply.status == 404:
        return _not_found(error_type, what, reason, namespace, table, view)
    if reply.status == 409:
        return _conflict(error_type, what, reason, namespace, table, view)
    if reply.status in (401, 403, 419):
        return AccessDeniedError(f"Cannot {what}: {reason}", hint="Check the token or credential and its permissions.")
    if reply.status in (406, 501) or error_type == "UnsupportedOperationException":
        return UnsupportedError(f"Cannot {what}: {reason}")
    if reply.status in _WRONG:
        return InvalidRequestError(f"Cannot {what}: {reason}")
    if 300 <= reply.status < 400:
        return ServiceError(
            f"Cannot {what}: the service redirects ({reply.status}), which is not followed",
            hint="Connect to the new address if it belongs to the catalog.",
        )
    return ServiceError(f"Cannot {what}: {reason}")


def _not_found(
    error_type: str, what: str, reason: str, namespace: Namespace, table: Identifier | None, view: Identifier | None
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
    return NotFoundError(f"Cannot {what}: {reason}")


def _conflict(
    error_type: str, what: str, reason: str, namespace: Namespace, table: Identifier | None, view: Identifier | None
) -> FrazilError:
    if error_type == "CommitFailedException":
        return CommitConflictError(f"Cannot {what}: {reason}", hint="Another writer changed it. Refresh and try again.")
    if table is not None:
        # Tables and views share their names, and only the service's message says which it is.
        return view_exists(table) if "iew" in reason and "able" not in reason else table_exists(table)
    if view is not None:
        return (
            table_exists(view)
            if "able" in reason and "iew" not in reason.replace(format_name(view), "")
            else view_exists(view)
        )
    return namespace_exists(namespace)
