"""Who may see the console: requests that a page of another site may have sent are refused, and tokens are asked for.

    host       without secrets, the console answers under names of this machine only: another's name that leads here
               (DNS rebinding) is refused
    origin     a request that a browser says another site sent is refused, but for the navigation to a page: links can
               be followed from anywhere
    form       what changes something is a POST from a page of this console, with the token that its forms hold
    session    with secrets, a cookie stands for a token that was typed in; scripts and other sites do not get it

Pages load scripts and styles from here alone, are in no frame, and tell no other site where they are.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Final

from frazil.errors import AccessDeniedError
from frazil.serve.app import check_origin
from frazil.serve.auth import ANYONE, Caller, Denied, Right
from frazil.serve.service import Service

COOKIE: Final = "frazil_console"
SESSION_SECONDS: Final = 12 * 3600
MAX_SESSIONS: Final = 1_000
OWN_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class NotKnown(Exception):
    """Nobody we know asks: they are shown where to type a token. Does not leave this room."""


@dataclass
class Guard:
    """The checks of one console."""

    service: Service
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    _sessions: OrderedDict[str, tuple[Caller, float]] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def check_place(self, method: str, headers: Mapping[str, str]) -> None:
        """Refuse what another site sent, and names that are not this machine's where no secret is asked for."""
        check_origin(self.service, dict(headers))
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        if origin is not None and origin.lower().partition("://")[2] != host:
            raise AccessDeniedError("Cannot answer: the request is from a page of another site")
        if not is_own(headers) and (method != "GET" or headers.get("sec-fetch-mode", "navigate") != "navigate"):
            raise AccessDeniedError("Cannot answer: the request is from a page of another site")

    def caller_of(self, headers: Mapping[str, str]) -> Caller:
        """Return who asks: by a bearer token, by the cookie of a session, or anyone where no secret is asked for."""
        if self.service.auth.is_open:
            return ANYONE
        if "authorization" in headers:
            try:
                return self.service.auth.caller_of(headers["authorization"], self.service.now_seconds)
            except Denied:
                raise NotKnown from None
        key = _cookie(headers)
        with self._lock:
            found = self._sessions.get(key)
        if found is None or time.monotonic() > found[1]:
            raise NotKnown
        return found[0]

    def begin_session(self, token: str) -> str:
        """Return the value of a cookie for a token, or raise NotKnown."""
        try:
            caller = self.service.auth.caller_of(f"Bearer {token.strip()}", self.service.now_seconds)
        except Denied:
            raise NotKnown from None
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[key] = (caller, time.monotonic() + SESSION_SECONDS)
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return key

    def end_session(self, headers: Mapping[str, str]) -> None:
        """Forget the session of a cookie."""
        with self._lock:
            self._sessions.pop(_cookie(headers), None)

    def check_form(self, form: Mapping[str, str]) -> None:
        """Refuse a form that no page of this console held."""
        if not hmac.compare_digest(form.get("form_token", "").encode(), self.form_token.encode()):
            raise AccessDeniedError("Cannot take the form: it is not from this console, or from before its start")

    def may_write(self, caller: Caller) -> bool:
        """Return whether a caller may change tables at all."""
        return caller.may_everywhere(Right.WRITE)


def is_own(headers: Mapping[str, str]) -> bool:
    """Return whether a request is from a page of this console, or typed in, as far as the browser says."""
    return headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def _cookie(headers: Mapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value
