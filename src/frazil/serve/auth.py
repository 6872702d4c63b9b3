"""Who may ask: tokens and clients that were configured, and the tokens that clients get for their secrets.

A secret is a token, sent as `Authorization: Bearer`, or a client's, for which `/v1/oauth/tokens` gives a token for an
hour. Such a token is signed with a key made of the clients' secrets: it is good after a restart and for other processes
with the same configuration, and none is once the secrets change. What a token may do is `read`, or `write`, which is
both. Secrets are compared in constant time, and are in no log, no message and no repr.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import msgspec

from frazil.errors import InvalidRequestError

TOKEN_SECONDS: Final = 3600
MIN_SECRET_CHARS: Final = 16
EVERY_SCOPE: Final = "catalog"
"""The scope that clients of the protocol ask for by default: all that they may do."""
_MARK: Final = "frazil1"


class Right(Enum):
    """What a caller may do."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, by name, and what that name may do."""

    name: str
    right: Right


ANYONE: Final = Caller("anyone", Right.WRITE)
"""Who asks a server that was told of no secrets, which is one on the loopback."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret that was configured: whose it is and what it lets do."""

    name: str
    value: str = field(repr=False)
    right: Right = Right.WRITE


class Denied(Exception):
    """No valid token; `is_expired` where there was one. Does not leave this room."""

    def __init__(self, message: str, *, is_expired: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_expired = is_expired


class OauthProblem(Exception):
    """A token that is not given, as OAuth2 says why. Does not leave this room."""

    def __init__(self, code: int, error: str, description: str) -> None:
        super().__init__(description)
        self.code = code
        self.error = error
        self.description = description


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token that was given out."""

    token: str = field(repr=False)
    right: Right
    seconds: int


class Auth:
    """The secrets of a server. With none, everyone may do everything: that is for the loopback alone."""

    def __init__(self, tokens: Sequence[Secret] = (), clients: Sequence[Secret] = ()) -> None:
        for secret in (*tokens, *clients):
            if len(secret.value) < MIN_SECRET_CHARS or not secret.value.isascii() or not secret.value.isprintable():
                raise InvalidRequestError(
                    f"Cannot use the secret of {secret.name!r}: it needs {MIN_SECRET_CHARS} or more ASCII characters"
                )
        names = [client.name for client in clients]
        if len(set(names)) < len(names):
            raise InvalidRequestError("Cannot use the clients: two have the same name")
        self._tokens = tuple(tokens)
        self._clients = {client.name: client for client in clients}
        seed = "\0".join(
            f"{client.name}\0{client.value}\0{client.right.value}" for client in sorted(clients, key=lambda c: c.name)
        )
        self._key = hashlib.sha256(f"{_MARK}\0{seed}".encode()).digest()

    @property
    def is_open(self) -> bool:
        """Whether no secret is asked for."""
        return not self._tokens and not self._clients

    def caller_of(self, authorization: str | None, now_seconds: int) -> Caller:
        """Return who sent a request with that header, or raise Denied."""
        if self.is_open:
            return ANYONE
        if authorization is None:
            raise Denied("Cannot carry out the request: it has no token")
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() != "bearer" or not given:
            raise Denied("Cannot carry out the request: its Authorization is no bearer token")
        return self._caller(given.strip(), now_seconds)

    def _caller(self, given: str, now_seconds: int) -> Caller:
        found: Caller | None = None
        for token in self._tokens:
            if _is_same(token.value, given):
                found = Caller(token.name, token.right)
        if found is not None:
            return found
        return self._issued_to(given, now_seconds)

    def _issued_to(self, given: str, now_seconds: int) -> Caller:
        mark, _, rest = given.partition(".")
        text, _, signature = rest.partition(".")
        if mark != _MARK or not self._clients or not _is_same(self._sign(text), signature):
            raise Denied("Cannot carry out the request: its token is not valid")
        try:
            name, right, ends = msgspec.json.decode(_unpack(text), type=tuple[str, str, int])
        except (msgspec.DecodeError, binascii.Error, ValueError):
            raise Denied("Cannot carry out the request: its token is not valid") from None
        client = self._clients.get(name)
        if client is None:
            raise Denied("Cannot carry out the request: its token is not valid")
        if now_seconds >= ends:
            raise Denied("Cannot carry out the request: its token has expired", is_expired=True)
        return Caller(name, Right(right))

    # Giving out tokens

    def issue(self, client_id: str, secret: str, scope: str | None, now_seconds: int) -> IssuedToken:
        """Return a token for a client's secret."""
        client = self._clients.get(client_id)
        # Compared in any case, so that the time it takes does not tell which clients there are.
        is_right = _is_same(client.value if client is not None else "\0" * MIN_SECRET_CHARS, secret)
        if client is None or not is_right:
            raise OauthProblem(401, "invalid_client", "the client or its secret is not known")
        return self._issue(client.name, _right_of(scope, client.right), now_seconds)

    def exchange(self, subject_token: str, scope: str | None, now_seconds: int) -> IssuedToken:
        """Return a new token for one that has not ended."""
        try:
            caller = self._caller(subject_token, now_seconds)
        except Denied as problem:
            raise OauthProblem(400, "invalid_grant", problem.message) from None
        if caller.name not in self._clients:
            # A token that was configured does not end, and is good as it is.
            return IssuedToken(subject_token, caller.right, TOKEN_SECONDS)
        return self._issue(caller.name, _right_of(scope, caller.right), now_seconds)

    def _issue(self, name: str, right: Right, now_seconds: int) -> IssuedToken:
        text = _pack(msgspec.json.encode((name, right.value, now_seconds + TOKEN_SECONDS)))
        return IssuedToken(f"{_MARK}.{text}.{self._sign(text)}", right, TOKEN_SECONDS)

    def _sign(self, text: str) -> str:
        return _pack(hmac.digest(self._key, text.encode(), "sha256"))


def parse_auth_file(text: str) -> tuple[list[Secret], list[Secret]]:
    """Return tokens and clients of lines such as `token NAME SECRET read` and `client NAME SECRET write`."""
    tokens: list[Secret] = []
    clients: list[Secret] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        is_known = len(words) == 4 and words[0] in ("token", "client") and words[3] in ("read", "write")
        if not is_known:
            # The line holds a secret: only its number is shown.
            raise InvalidRequestError(
                f"Cannot read line {number} of the secrets: it is not `token` or `client`, a name, a secret, and "
                "`read` or `write`"
            )
        (tokens if words[0] == "token" else clients).append(Secret(words[1], words[2], Right(words[3])))
    return tokens, clients


def _right_of(scope: str | None, allowed: Right) -> Right:
    """Return what a token for some scopes may do: no more than its client, and no more than asked for."""
    asked = set((scope or "").split())
    known = {EVERY_SCOPE, Right.READ.value, Right.WRITE.value}
    if not asked <= known or (Right.WRITE.value in asked and allowed is Right.READ):
        raise OauthProblem(400, "invalid_scope", f"the scopes are {', '.join(sorted(known))}, as the client has them")
    return Right.READ if asked == {Right.READ.value} else allowed


def _is_same(given: str, other: str) -> bool:
    return hmac.compare_digest(given.encode(), other.encode("utf-8", "surrogatepass"))


def _pack(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _unpack(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
