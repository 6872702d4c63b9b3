"""Requests with an `Idempotency-Key`: sent again they get the same answer, and nothing is done twice.

The key and the answer are kept when the request has ended (`kept_state.py`); errors of the server are not, so that the
request can be sent again. Two at once with one key: the second waits.

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
from frazil.serve.commit_changes import Asked
from frazil.serve.error_answers import STATE_UNKNOWN, error_answer
from frazil.serve.exchange import KEY_HEADER, Answer, Refusal, Request
from frazil.serve.kept_state import KEY_MS
from frazil.serve.name_locks import NameLocks
from frazil.serve.service import Service
from frazil.spec.table_metadata import TableMetadata

_KEY_VERSION = 7
_NOT_FINAL = frozenset({401, 403, 419, 429})

_running = NameLocks()


class Repeatable(Protocol):
    """What is asked of an operation."""

    @property
    def right(self) -> Right:
        """What a caller needs to be allowed."""

    @property
    def again(self) -> Callable[[Service, Request, str], Answer]:
        """What makes the answer of the result in a mark, or of the metadata file where it was too large to keep."""

    @property
    def can_repeat(self) -> Callable[[Request], bool]:
        """Whether a request can be carried out again where it may have been before, and is still done once."""

    def carry_out(self, service: Service, request: Request) -> Answer:
        """Carry out a request."""


def answered_once(service: Service, request: Request, operation: Repeatable) -> Answer:
    """Return the answer to a request: the one it got before, where it was sent before."""
    key = _key_of(request)
    if key is None or operation.right is Right.READ:
        # What only reads may be done again.
        return operation.carry_out(service, request)
    query = encode_json(dict(sorted(request.query.items())))
    # Another caller with the same key gets no answer that was made for this one.
    parts = (request.caller.name.encode(), request.method.encode(), request.path.encode(), query, request.body)
    seen = hashlib.sha256(b"\0".join(parts)).hexdigest()
    with _running.held([(key,)]):
        now_ms = service.catalog.now_ms()
        kept = service.state.find_answer(key, now_ms)
        if kept is not None:
            _check_same(kept.print, seen)
            if not kept.is_begun:
                return kept.answer if kept.has_body else _again(service, request, operation, kept.answer.location)
            if service.idempotency_records is None and not operation.can_repeat(request):
                raise CommitStateUnknownError(
                    "Cannot tell whether the request was carried out: the server was stopped meanwhile",
                    hint="Look at what it was to change, and send it with another Idempotency-Key.",
                )
        if service.idempotency_records is None:
            service.state.begin(key, seen, now_ms)
        answer = _marked_answer(service, request, operation, IdempotencyRecord(key, seen, now_ms + KEY_MS))
        # It has happened: an answer that cannot be kept is given all the same.
        with suppress(StorageError, CommitConflictError):
            is_cleaned = service.state.keep_answer(key, seen, answer, now_ms)
            if is_cleaned and service.idempotency_records is not None:
                service.idempotency_records.forget(now_ms)
        return answer


def _marked_answer(service: Service, request: Request, operation: Repeatable, mark: IdempotencyRecord) -> Answer:
    """Carry out a request and mark what it changes; of one that was carried out before, make the answer again."""
    try:
        with recording(mark):
            return operation.carry_out(service, request)
    except Exception as error:
        answer = error_answer(error)
        if answer.code >= 500 or answer.code in _NOT_FINAL:
            if (
                service.idempotency_records is None
                and isinstance(error, FrazilError | Refusal)
                and answer.error_type != STATE_UNKNOWN
            ):
                service.state.forget(mark.key)
            raise
    # What was carried out before is refused now: its table is gone, or has changed, or is there.
    found = None if service.idempotency_records is None else service.idempotency_records.find(mark.key)
    if found is None:
        return answer
    _check_same(found.print, mark.print)
    return _again(service, request, operation, found.result)


def _again(service: Service, request: Request, operation: Repeatable, result: str | None) -> Answer:
    """Make the answer again to a request that was carried out, of its result: its table may have changed since."""
    try:
        return operation.again(service, request, result or "")
    except MissingFileError as error:
        raise CommitStateUnknownError(
            "Cannot answer the request again: it was carried out, and the metadata it led to is gone since"
        ) from error


def _check_same(before: str, seen: str) -> None:
    if before != seen:
        raise InvalidRequestError("Cannot use the Idempotency-Key: another request had it")


def _key_of(request: Request) -> str | None:
    text = request.headers.get(KEY_HEADER)
    if text is None:
        return None
    try:
        key = uuid.UUID(text) if len(text) == 36 else None
    except ValueError:
        key = None
    if key is None or key.version != _KEY_VERSION:
        raise Refusal(400, "BadRequestException", "Cannot use the Idempotency-Key: it is no UUID of version 7")
    return str(key)


def leaves_traces(change: Asked) -> bool:
    """Return whether `is_repeated` can tell that a change was made."""
    return any(
        isinstance(update, AddSnapshot) or (change.creates and isinstance(update, AssignUuid))
        for update in change.updates
    )


def is_repeated(change: Asked, metadata: TableMetadata) -> bool:
    """Return whether a change is in a table already: its snapshots, or the new table, are there."""
    added = [update.snapshot.snapshot_id for update in change.updates if isinstance(update, AddSnapshot)]
    if added:
        return all(metadata.snapshots.find_head(snapshot_id) is not None for snapshot_id in added)
    given = [update.uuid.lower() for update in change.updates if isinstance(update, AssignUuid)]
    return change.creates and given == [(metadata.table_uuid or "").lower()]
