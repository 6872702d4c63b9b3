"""Protects the console: refuses requests that a page of another site may have sent, and requires tokens.

    host       without secrets, the console responds only under names of this machine: other names that resolve to it
               (DNS rebinding) are refused
    origin     a request that the browser marks as sent by another site is refused, except navigation to a page, since
               links can be followed from anywhere
    form       a change is a POST from a page of this console, with the token in its forms
    session    with secrets, a cookie represents the token that was typed in; scripts and other sites cannot read it

Pages load scripts and styles only from this origin, cannot be framed, and send no referrer to other sites.
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


class Unauthenticated(Exception):
    """The caller is not authenticated and is shown the sign-in page. Internal to this room."""


@dataclass
class Guard:
    """The checks of one console."""

    service: Service
    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    _sessions: OrderedDict[str, tuple[Caller, float]] = field(default_factory=OrderedDict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def check_place(self, method: str, headers: Mapping[str, str]) -> None:
        """Refuse requests of other sites, and foreign host names if no secret is required."""
        check_origin(self.service, dict(headers))
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        if origin is not None and origin.lower().partition("://")[2] != host:
            raise AccessDeniedError("Cannot respond: the request is from a page of another site")
        if not is_own(headers) and (method != "GET" or headers.get("sec-fetch-mode", "navigate") != "navigate"):
            raise AccessDeniedError("Cannot respond: the request is from a page of another site")

    def caller_of(self, headers: Mapping[str, str]) -> Caller:
        """Authenticate by a bearer token or a session cookie; anyone is accepted if no secret is required."""
        if self.service.auth.is_open:
            return ANYONE
        if "authorization" in headers:
            try:
                return self.service.auth.caller_of(headers["authorization"], self.service.now_seconds)
            except Denied:
                raise Unauthenticated from None
        key = _cookie(headers)
        with self._lock:
            session = self._sessions.get(key)
        if session is None or time.monotonic() > session[1]:
            raise Unauthenticated
        return session[0]

    def begin_session(self, token: str) -> str:
        """Start a session for a token and return its cookie value; raise Unauthenticated for an invalid one."""
        try:
            caller = self.service.auth.caller_of(f"Bearer {token.strip()}", self.service.now_seconds)
        except Denied:
            raise Unauthenticated from None
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._sessions[key] = (caller, time.monotonic() + SESSION_SECONDS)
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return key

    def end_session(self, headers: Mapping[str, str]) -> None:
        """End the session of a cookie."""
        with self._lock:
            self._sessions.pop(_cookie(headers), None)

    def check_form(self, form: Mapping[str, str]) -> None:
        """Refuse a form that does not come from a page of this console."""
        if not hmac.compare_digest(form.get("form_token", "").encode(), self.form_token.encode()):
            raise AccessDeniedError(
                "Cannot accept the form: it is not from this console, or from before it was started"
            )

    def may_write(self, caller: Caller) -> bool:
        """Return whether a caller may change tables at all."""
        return caller.may_everywhere(Right.WRITE)


def is_own(headers: Mapping[str, str]) -> bool:
    """Return whether a request is from a page of this console or typed in, according to the browser."""
    return headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def _cookie(headers: Mapping[str, str]) -> str:
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if cookie is None else cookie.value
