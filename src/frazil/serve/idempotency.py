"""Requests with an `Idempotency-Key`: sent again they get the same answer, and nothing is done twice.

The key and the answer are kept when the request has ended (`kept_state.py`); errors of the server are not, so that the
request can be sent again. Two at once with one key: the second waits. A server that is killed between a commit and
keeping its answer tells by what is in the table that the commit was this one (`is_repeated`): its snapshots or the
new table's UUID are there.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from typing import Protocol

from frazil.changes.updates import AddSnapshot, AssignUuid
from frazil.codec.json_text import encode_json
from frazil.errors import InvalidRequestError, StorageError
from frazil.serve.auth import Right
from frazil.serve.commit_changes import Asked
from frazil.serve.error_answers import error_answer
from frazil.serve.exchange import KEY_HEADER, Answer, Refusal, Request
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
    def reload(self) -> Callable[[Service, Request], Answer] | None:
        """What makes the answer again, where it was too large to keep."""

    def carry_out(self, service: Service, request: Request) -> Answer:
        """Carry out a request."""


def answered_once(service: Service, request: Request, operation: Repeatable) -> Answer:
    """Return the answer to a request: the one it got before, where it was sent before."""
    key = _key_of(request)
    if key is None or operation.right is Right.READ:
        # What only reads may be done again.
        return operation.carry_out(service, request)
    query = encode_json(dict(sorted(request.query.items())))
    parts = (request.method.encode(), request.path.encode(), query, request.body)
    seen = hashlib.sha256(b"\0".join(parts)).hexdigest()
    with _running.held([(key,)]):
        kept = service.state.find_answer(key, service.catalog.now_ms())
        if kept is not None:
            if kept.print != seen:
                raise InvalidRequestError("Cannot use the Idempotency-Key: another request had it")
            return kept.answer if kept.has_body or operation.reload is None else operation.reload(service, request)
        try:
            answer = operation.carry_out(service, request)
        except Exception as error:
            answer = error_answer(error)
            if answer.code >= 500 or answer.code in _NOT_FINAL:
                raise
        # It has happened: an answer that cannot be kept is given all the same.
        try:
            can_remake = answer.error_type is None and operation.reload is not None
            service.state.keep_answer(key, seen, answer, service.catalog.now_ms(), can_remake=can_remake)
        except StorageError:
            return answer
        return answer


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


def is_repeated(change: Asked, metadata: TableMetadata) -> bool:
    """Return whether a change is in a table already: its snapshots, or the new table, are there."""
    added = [update.snapshot.snapshot_id for update in change.updates if isinstance(update, AddSnapshot)]
    if added:
        return all(metadata.snapshots.find_head(snapshot_id) is not None for snapshot_id in added)
    given = [update.uuid.lower() for update in change.updates if isinstance(update, AssignUuid)]
    return change.creates and given == [(metadata.table_uuid or "").lower()]
