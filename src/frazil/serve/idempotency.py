"""Requests with an `Idempotency-Key`: when repeated they get the same response, and nothing is done twice.

The key and the response are stored when the request has ended (`server_state.py`), except for server errors, so that
the
request can be retried. Of two concurrent requests with one key, the second waits.

A server may be killed between a change and storing its response. In a SQL catalog the change has left a record
(`catalog/idempotency_records.py`): a repeated request changes nothing, and its response is made from the record. In
other catalogs the start of the request is stored before the change. A repeated request is carried out again if that
cannot make the change twice (`can_repeat`), since its snapshots or the new table's UUID would exist (`is_repeated`).
Otherwise the outcome is unknown, and the response says so.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from frazil.catalog.idempotency_records import IdempotencyRecord, recording
from frazil.changes.updates import AddSnapshot, AssignUuid
from frazil.codec.json_text import encode_json
from frazil.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    FrazilError,
    InvalidRequestError,
    MissingFileError,
    StorageError,
)
from frazil.serve.auth import Right
from frazil.serve.commit_changes import ChangeRequest
from frazil.serve.error_answers import STATE_UNKNOWN, error_answer
from frazil.serve.exchange import KEY_HEADER, Answer, Refusal, Request
from frazil.serve.name_locks import NameLocks
from frazil.serve.server_state import KEY_MS
from frazil.serve.service import Service
from frazil.spec.table_metadata import TableMetadata

_KEY_VERSION = 7
_NOT_FINAL = frozenset({401, 403, 419, 429})

_running = NameLocks()


class Repeatable(Protocol):
    """The required part of an operation."""

    @property
    def right(self) -> Right:
        """The right that a caller needs."""

    @property
    def again(self) -> Callable[[Service, Request, str], Answer]:
        """Recreates a response from the result in a record, or from the metadata file if it was too large to store."""

    @property
    def can_repeat(self) -> Callable[[Request], bool]:
        """Whether a request that may have been carried out can be carried out again without being done twice."""

    def carry_out(self, service: Service, request: Request) -> Answer:
        """Carry out a request."""


def answered_once(service: Service, request: Request, operation: Repeatable) -> Answer:
    """Return the response to a request, or that to the same request before."""
    key = _key_of(request)
    if key is None or operation.right is Right.READ:
        # Requests that only read may be repeated.
        return operation.carry_out(service, request)
    query = encode_json(dict(sorted(request.query.items())))
    # Another caller with the same key must not get this caller's response.
    parts = (request.caller.name.encode(), request.method.encode(), request.path.encode(), query, request.body)
    fingerprint = hashlib.sha256(b"\0".join(parts)).hexdigest()
    with _running.held([(key,)]):
        now_ms = service.catalog.now_ms()
        stored = service.state.find_answer(key, now_ms)
        if stored is not None:
            _check_same(stored.print, fingerprint)
            if not stored.is_begun:
                return stored.answer if stored.has_body else _again(service, request, operation, stored.answer.location)
            if service.idempotency_records is None and not operation.can_repeat(request):
                raise CommitStateUnknownError(
                    "Cannot tell whether the request was carried out: the server was stopped during the request",
                    hint="Check what it was to change, and send it with another Idempotency-Key.",
                )
        if service.idempotency_records is None:
            service.state.begin(key, fingerprint, now_ms)
        answer = _marked_answer(service, request, operation, IdempotencyRecord(key, fingerprint, now_ms + KEY_MS))
        # The change has happened: a response that cannot be stored is sent nevertheless.
        with suppress(StorageError, CommitConflictError):
            is_cleaned = service.state.keep_answer(key, fingerprint, answer, now_ms)
            if is_cleaned and service.idempotency_records is not None:
                service.idempotency_records.forget(now_ms)
        return answer


def _marked_answer(service: Service, request: Request, operation: Repeatable, record: IdempotencyRecord) -> Answer:
    """Carry out a request and record its changes; for one that was carried out before, recreate the response."""
    try:
        with recording(record):
            return operation.carry_out(service, request)
    except Exception as error:
        answer = error_answer(error)
        if answer.code >= 500 or answer.code in _NOT_FINAL:
            if (
                service.idempotency_records is None
                and isinstance(error, FrazilError | Refusal)
                and answer.error_type != STATE_UNKNOWN
            ):
                service.state.forget(record.key)
            raise
    # A request that was carried out before is refused now: its table was dropped, changed or created.
    completed = None if service.idempotency_records is None else service.idempotency_records.find(record.key)
    if completed is None:
        return answer
    _check_same(completed.print, record.print)
    return _again(service, request, operation, completed.result)


def _again(service: Service, request: Request, operation: Repeatable, result: str | None) -> Answer:
    """Recreate the response to a request from its result, since its table may have changed."""
    try:
        return operation.again(service, request, result or "")
    except MissingFileError as error:
        raise CommitStateUnknownError(
            "Cannot answer the request again: it was carried out, but the resulting metadata no longer exists"
        ) from error


def _check_same(before: str, fingerprint: str) -> None:
    if before != fingerprint:
        raise InvalidRequestError("Cannot use the Idempotency-Key: it was used for another request")


def _key_of(request: Request) -> str | None:
    text = request.headers.get(KEY_HEADER)
    if text is None:
        return None
    try:
        key = uuid.UUID(text) if len(text) == 36 else None
    except ValueError:
        key = None
    if key is None or key.version != _KEY_VERSION:
        raise Refusal(400, "BadRequestException", "Cannot use the Idempotency-Key: it is not a UUID of version 7")
    return str(key)


def leaves_traces(change: ChangeRequest) -> bool:
    """Return whether `is_repeated` can detect that a change was made."""
    return any(
        isinstance(update, AddSnapshot) or (change.creates and isinstance(update, AssignUuid))
        for update in change.updates
    )


def is_repeated(change: ChangeRequest, metadata: TableMetadata) -> bool:
    """Return whether a table already has a change: its snapshots, or the new table, exist."""
    added = [update.snapshot.snapshot_id for update in change.updates if isinstance(update, AddSnapshot)]
    if added:
        return all(metadata.snapshots.find_head(snapshot_id) is not None for snapshot_id in added)
    uuids = [update.uuid.lower() for update in change.updates if isinstance(update, AssignUuid)]
    return change.creates and uuids == [(metadata.table_uuid or "").lower()]
