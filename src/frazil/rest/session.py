"""Authenticated requests to one catalog service, retried only when that is safe.

Retries:

    not sent, 429, 503 with Retry-After            always: the service did not carry it out
    401, 419                                       once, after the token was renewed
    a lost response, 408, 500, 502, 503, 504       queries (GET, HEAD, plans, signatures); deletions, since a second
                                                   one changes nothing; and requests with an idempotency key that the
                                                   service honours

A change whose response was lost and that must not be sent again raises `OutcomeLost`: the caller decides what that
means. Pauses double from one second up to 64, with a tenth of jitter, or follow `Retry-After`.
"""

from __future__ import annotations

import random
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import quote

import msgspec

from frazil.codec.json_text import encode_json
from frazil.errors import InvalidRequestError, ServiceError
from frazil.rest.auth import Auth, hide
from frazil.storage.http import MAX_BODY_BYTES, Answer, AnswerLost, AnswerTooLarge, HttpClient, RequestNotSent
from frazil.storage.origin import shown_url

_DOUBTFUL: Final = frozenset({408, 500, 502, 503, 504})
"""Statuses after which it is unknown whether a request was carried out."""
_UNAUTHORIZED: Final = frozenset({401, 419})
_MAX_WAIT_S: Final = 64.0
_MAX_RETRY_AFTER_S: Final = 300.0
_FAILURE_RETRIES: Final = 2
"""The number of retries of a query after server errors."""
_SHOWN_CHARS: Final = 500
_MAX_HIDDEN: Final = 200
"""The maximum number of table secrets that are remembered, the newest."""


class OutcomeLost(Exception):
    """A change may or may not have been carried out."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A usable response, and whether an earlier attempt may have been carried out before it."""

    reply: Answer
    is_after_doubt: bool = False

    @property
    def status(self) -> int:
        """The status of the response."""
        return self.reply.status


class RestSession:
    """The connection to one service as one user. Any number of threads may share it."""

    def __init__(
        self,
        transport: HttpClient,
        auth: Auth,
        *,
        headers: Mapping[str, str] | None = None,
        max_retries: int = 5,
        honours_keys: bool = False,
        hidden: Iterable[str] = (),
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.transport = transport
        self.auth = auth
        self.honours_keys = honours_keys
        self._headers = {"accept": "application/json", **(headers or {})}
        self._max_retries = max_retries
        self._sleep = sleep
        self._chance = chance
        self._now_ms = now_ms
        self._hidden = deque(hidden, _MAX_HIDDEN)

    def without_retries(self) -> RestSession:
        """Return a session of the same user that does not retry."""
        return RestSession(self.transport, self.auth, headers=self._headers, max_retries=0, hidden=self._hidden)

    def with_auth(self, auth: Auth) -> RestSession:
        """Return a session with the same service and other authentication."""
        session = copy(self)
        session.auth, session._hidden = auth, self._hidden.copy()
        return session

    def hide(self, secret: str) -> None:
        """Remove a secret from all texts of the service that are shown from now on."""
        if secret not in self._hidden:
            self._hidden.append(secret)

    def new_key(self) -> str | None:
        """Return a new idempotency key, a UUID of version 7, or None if the service does not honour keys."""
        return new_uuid7(self._now_ms()) if self.honours_keys else None

    def send(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        is_question: bool = False,
        max_bytes: int = MAX_BODY_BYTES,
    ) -> Answered:
        """Send a request, with retries, until there is a usable response or the attempts are exhausted.

        `is_question` marks a request that changes nothing, whatever its method.
        """
        target = url if not query else f"{url}?{query_text(query)}"
        data = b"" if body is None else encode_json(body)
        all_headers = {**self._headers, **(headers or {})}
        if body is not None:
            all_headers["content-type"] = "application/json"
        if key is not None:
            all_headers["idempotency-key"] = key
        is_question = is_question or method in ("GET", "HEAD")
        is_repeatable = is_question or method == "DELETE" or key is not None
        is_doubtful = has_renewed = False
        reason, failures, attempt = "", 0, 0
        while True:
            attempt += 1
            wait_s: float | None = None
            sent = self.auth.headers(method, target, all_headers, data)
            try:
                reply = self.transport.fetch(method, target, sent, data, max_bytes=max_bytes)
            except RequestNotSent as error:
                reason = str(error)
                may_repeat = True
            except AnswerTooLarge as error:
                # A retry would fail alike; for a change, the outcome is unknown.
                if is_question:
                    raise InvalidRequestError(f"Cannot read the service's response: {error}") from None
                raise OutcomeLost(str(error)) from None
            except AnswerLost as error:
                reason, is_doubtful = str(error), True
                may_repeat = is_repeatable
            else:
                if reply.status in _UNAUTHORIZED and not has_renewed and self.auth.renew(sent):
                    has_renewed = True
                    continue
                wait_s = _retry_after(reply, self._now_ms())
                was_refused = reply.status == 429 or (reply.status == 503 and wait_s is not None)
                if not was_refused and reply.status not in _DOUBTFUL:
                    return Answered(reply, is_doubtful)
                reason = self.explain(reply)
                if not was_refused:
                    is_doubtful = True
                    failures += reply.status == 500
                may_repeat = was_refused or (is_repeatable and failures <= _FAILURE_RETRIES)
                if wait_s is not None and wait_s > _MAX_RETRY_AFTER_S:
                    may_repeat = False
            if not may_repeat or attempt > self._max_retries:
                break
            usual = min(2.0 ** (attempt - 1), _MAX_WAIT_S) * (1 + self._chance() / 10)
            self._sleep(usual if wait_s is None else wait_s)
        if is_doubtful and not is_question:
            raise OutcomeLost(reason)
        raise ServiceError(f"Cannot reach the catalog service at {shown_url(url)}: {reason}")

    def explain(self, reply: Answer) -> str:
        """Return the service's error message, in one line and without secrets."""
        message, error_type = error_of(reply)
        text = " ".join(message.split())[:_SHOWN_CHARS] or "the service responded"
        tail = f"{reply.status}, {error_type}" if error_type else f"{reply.status}"
        return f"{hide(text, (*self.auth.secrets(), *self._hidden))} ({tail})"


def error_of(reply: Answer) -> tuple[str, str]:
    """Return the message and the type of an error response; empty if it has none."""
    try:
        document = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "", ""
    inner: Any = document.get("error", document) if isinstance(document, dict) else None
    if isinstance(inner, str):
        return inner, ""
    if not isinstance(inner, dict):
        return "", ""
    message, error_type = inner.get("message"), inner.get("type")
    return message if isinstance(message, str) else "", error_type[:100] if isinstance(error_type, str) else ""


def query_text(query: Mapping[str, str]) -> str:
    """Return a query as it is sent, sorted by name."""
    return "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query))


def _retry_after(reply: Answer, now_ms: int) -> float | None:
    """Return the seconds of a `Retry-After` header, or None if there is none."""
    text = reply.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    until = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.fromtimestamp(now_ms / 1000, UTC)).total_seconds())


def new_uuid7(now_ms: int) -> str:
    """Return a UUID of version 7: the time, then random bits."""
    chance = secrets.randbits(74)
    number = (now_ms & ((1 << 48) - 1)) << 80 | 0x7 << 76 | (chance >> 62) << 64 | 0b10 << 62 | chance & ((1 << 62) - 1)
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
