"""Bearer tokens that are fetched and renewed: OAuth2 by client credentials, and by token exchange (RFC 8693).

A token is renewed shortly before it expires, by a tenth of its lifetime or five minutes, whichever is less. With
`credential` a new one is fetched; without it, or with `token-exchange-enabled`, the old one is exchanged. The expiry is
that of the response, else that in the token itself, else `token-expires-in-ms`.
"""

from __future__ import annotations

import base64
import binascii
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from frazil.errors import AccessDeniedError, FrazilError, ServiceError
from frazil.rest import settings as names
from frazil.rest.auth import Auth, checked_token, hide
from frazil.rest.settings import Settings
from frazil.storage.http import Answer, AnswerLost, HttpClient, RequestNotSent
from frazil.storage.origin import shown_url

_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"
_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_MAX_ANSWER_BYTES: Final = 1 << 20
_RENEW_BEFORE_S: Final = 300.0
_TRIES: Final = 3
_MAX_SECONDS: Final = 1e15


class OAuth2Auth(Auth):
    """A bearer token that is fetched if there is none, and renewed before it expires."""

    def __init__(
        self,
        settings: Settings,
        token_url: str,
        transport: HttpClient,
        *,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._settings = settings
        self._token_url = token_url
        self._transport = transport
        self._now = now
        self._sleep = sleep
        self._lock = threading.Lock()
        self._token: str | None = None
        self._renew_at: float | None = None
        token = settings.get(names.TOKEN)
        if token is not None:
            self._token = checked_token(token)
            ends = find_expiry(token)
            self._renew_at = None if ends is None else self._renewal(ends - self._now())

    def headers(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Add a valid token to the headers."""
        return {**headers, "authorization": f"Bearer {self._current()}"}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Fetch another token, unless another thread did since the request was sent; return whether there is one."""
        with self._lock:
            if self._token is not None and f"Bearer {self._token}" not in refused.values():
                return True
            if not self._can_renew():
                return False
            self._fetch()
            return True

    def secrets(self) -> tuple[str, ...]:
        """Return the token and the credential."""
        return (*self._settings.secrets(), *(() if self._token is None else (self._token,)))

    def _current(self) -> str:
        token = self._token
        if token is not None and self._lock.locked():
            # Another thread is fetching a token; this one may still be valid, which the service decides.
            return token
        with self._lock:
            is_due = self._renew_at is not None and self._now() >= self._renew_at
            if self._token is None:
                self._fetch()
            elif is_due and self._can_renew():
                try:
                    self._fetch()
                except FrazilError:
                    # The present token may still be valid; the service decides.
                    self._renew_at = self._now() + 10
            if self._token is None:
                raise AccessDeniedError("Cannot authenticate to the catalog service: no token is configured")
            return self._token

    def _can_renew(self) -> bool:
        if not self._settings.truth(names.TOKEN_REFRESH, default=True):
            return False
        return names.CREDENTIAL in self._settings or self._token is not None

    def _fetch(self) -> None:
        has_credential = names.CREDENTIAL in self._settings
        wants_exchange = self._settings.truth(names.TOKEN_EXCHANGE, default=not has_credential)
        if self._token is not None and wants_exchange:
            try:
                self._take(self._ask(self._exchange_form(self._token), f"Bearer {self._token}"))
                return
            except FrazilError:
                if not has_credential:
                    raise
        self._take(self._ask(self._credential_form(), None))

    def _credential_form(self) -> dict[str, str]:
        client_id, colon, secret = self._settings[names.CREDENTIAL].partition(":")
        form = {"grant_type": "client_credentials", **self._optional()}
        return (
            {**form, "client_id": client_id, "client_secret": secret} if colon else {**form, "client_secret": client_id}
        )

    def _exchange_form(self, token: str) -> dict[str, str]:
        return {
            "grant_type": _EXCHANGE,
            **self._optional(),
            "subject_token": token,
            "subject_token_type": _ACCESS_TOKEN,
        }

    def _optional(self) -> dict[str, str]:
        parameters = {"scope": self._settings.get(names.SCOPE, "catalog")}
        extra = (names.AUDIENCE, names.RESOURCE)
        return parameters | {name: self._settings[name] for name in extra if name in self._settings}

    def _ask(self, form: Mapping[str, str], authorization: str | None) -> dict[str, Any]:
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        if authorization is not None:
            headers["authorization"] = authorization
        reason = ""
        for index in range(_TRIES):
            if index:
                self._sleep(0.5 * 2**index)
            try:
                # Fetching a token twice is harmless.
                reply = self._transport.fetch(
                    "POST", self._token_url, headers, urlencode(form).encode(), max_bytes=_MAX_ANSWER_BYTES
                )
            except (RequestNotSent, AnswerLost) as error:
                reason = str(error)
                continue
            if reply.is_success:
                return _answer(reply)
            reason = self._explain(reply)
            if reply.status < 500 and reply.status != 429:
                raise AccessDeniedError(
                    f"Cannot get a token from {shown_url(self._token_url)}: {reason}",
                    hint="Check the credential and the scope.",
                )
        raise ServiceError(f"Cannot get a token from {shown_url(self._token_url)}: {reason}")

    def _explain(self, reply: Answer) -> str:
        reason = ""
        try:
            document = msgspec.json.decode(reply.body)
            if isinstance(document, dict):
                parts = [document.get("error"), document.get("error_description")]
                reason = ": ".join(str(text) for text in parts if isinstance(text, str))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        return f"{hide(reason, self.secrets())[:300] or 'the server responded'} ({reply.status})"

    def _take(self, response: Mapping[str, Any]) -> None:
        token = response.get("access_token")
        if not isinstance(token, str):
            raise ServiceError(f"Cannot get a token from {shown_url(self._token_url)}: the response has none")
        self._token = checked_token(token)
        lasts = _seconds(response.get("expires_in"))
        if lasts is None:
            ends = find_expiry(token)
            usual_ms = self._settings.whole(names.TOKEN_EXPIRES_MS, 3_600_000)
            lasts = usual_ms / 1000 if ends is None else ends - self._now()
        self._renew_at = self._renewal(lasts)

    def _renewal(self, lasts_s: float) -> float:
        return self._now() + max(0.0, lasts_s - min(lasts_s / 10, _RENEW_BEFORE_S))


def _answer(reply: Answer) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ServiceError("Cannot get a token: the response is not a JSON object")
    return document


def find_expiry(token: str) -> float | None:
    """Return the expiry stated in a JSON Web Token, in seconds from 1970; None for other tokens."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > 1 << 16:
        return None
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError):
        return None
    return _seconds(claims.get("exp")) if isinstance(claims, dict) else None


def _seconds(value: object) -> float | None:
    """Return the value as seconds, or None if it is not a number or out of range."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < _MAX_SECONDS else None  # type: ignore[arg-type]
