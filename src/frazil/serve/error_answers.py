"""Translates errors of operations into responses with the protocol's codes and types.

A body is `{"error": {"message", "type", "code"}}`. A commit that did not happen is 409, which clients may retry; one
that may have happened is a CommitStateUnknownException with 500, after which clients delete nothing. Temporary failures
(of storage or the database) are 503 with `Retry-After`, and nothing happened.
"""

from __future__ import annotations

from typing import Final

from frazil.errors import (
    AlreadyExistsError,
    CommitError,
    CommitStateUnknownError,
    CorruptTableError,
    FrazilError,
    InvalidRequestError,
    MissingFileError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    NotFoundError,
    StorageError,
    TableNotFoundError,
    UnsupportedError,
    ViewNotFoundError,
    WriteOutcomeUnknownError,
)
from frazil.serve.exchange import Answer, Refusal, json_answer

BAD_REQUEST: Final = "BadRequestException"
NOT_AUTHORIZED: Final = "NotAuthorizedException"
FORBIDDEN: Final = "ForbiddenException"
TIMED_OUT: Final = "AuthenticationTimeoutException"
UNAVAILABLE: Final = "ServiceUnavailableException"
SLOW_DOWN: Final = "SlowDownException"
UNPROCESSABLE: Final = "UnprocessableEntityException"
INTERNAL: Final = "InternalServerError"
STATE_UNKNOWN: Final = "CommitStateUnknownException"
"""The request may have been carried out."""

RETRY_SECONDS: Final = "1"

_CODES: Final[tuple[tuple[type[FrazilError], int, str], ...]] = (
    (CommitStateUnknownError, 500, STATE_UNKNOWN),
    (WriteOutcomeUnknownError, 500, STATE_UNKNOWN),
    (CommitError, 409, "CommitFailedException"),
    (NamespaceNotFoundError, 404, "NoSuchNamespaceException"),
    (TableNotFoundError, 404, "NoSuchTableException"),
    (ViewNotFoundError, 404, "NoSuchViewException"),
    (AlreadyExistsError, 409, "AlreadyExistsException"),
    (NamespaceNotEmptyError, 409, "NamespaceNotEmptyException"),
    (InvalidRequestError, 400, BAD_REQUEST),
    (UnsupportedError, 406, "UnsupportedOperationException"),
    (MissingFileError, 500, INTERNAL),
    (NotFoundError, 400, BAD_REQUEST),
    (StorageError, 503, UNAVAILABLE),
    (CorruptTableError, 500, INTERNAL),
)
"""The first entry that an error is an instance of applies."""


def error_answer(error: BaseException) -> Answer:
    """Return the response for an error; errors other than frazil's are not revealed."""
    if isinstance(error, Refusal):
        return make_error(error.code, error.kind, error.message, error.headers)
    if isinstance(error, FrazilError):
        for cls, code, name in _CODES:
            if isinstance(error, cls):
                headers = {"retry-after": RETRY_SECONDS} if code == 503 else None
                return make_error(code, name, _message(error), headers)
    return make_error(500, INTERNAL, "Cannot carry out the request: internal server error")


def make_error(code: int, error_type: str, message: str, headers: dict[str, str] | None = None) -> Answer:
    """Return an error response."""
    response = json_answer(
        {"error": {"message": message, "type": error_type, "code": code}}, code=code, headers=headers
    )
    return Answer(code, response.body, response.headers, error_type)


def _message(error: FrazilError) -> str:
    return error.message if error.hint is None else f"{error.message}. {error.hint}"
