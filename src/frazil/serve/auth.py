"""Who may ask: tokens and clients that were configured, and the tokens that clients get for their secrets.

A secret is a token, sent as `Authorization: Bearer`, or a client's, for which `/v1/oauth/tokens` gives a token for an
hour. Such a token is signed with a random key of the server, kept in its state, together with the clients' secrets: it
is valid after a restart, for other processes with the same state and secrets, and no longer once the secrets change.
Renewal ends a day after the secret was last given. Secrets are compared in constant time, and are in no log, no
message and no repr.

What a secret allows is a right, everywhere or in namespaces that match a pattern:

    read     list and read tables and views
    write    read, and create, change, rename and drop tables and views
    admin    write, and create, change and drop namespaces

    token board SECRET read                       read everything
    token etl   SECRET write                      everything, namespaces included
    client team SECRET write@sales.* read@shared  tables in `sales` and below; read those in `shared`
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from frazil.errors import InvalidRequestError

TOKEN_SECONDS: Final = 3600
RENEWAL_SECONDS: Final = 86_400
"""How long after its first issue a token can be renewed."""
MIN_SECRET_CHARS: Final = 16
EVERY_SCOPE: Final = "catalog"
"""The scope that clients of the protocol ask for by default: all that they may do."""
_MARK: Final = "frazil2"


class Right(Enum):
    """What a caller may do; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """The place in the order."""
        return _RANKS.index(self)


_RANKS: Final = (Right.READ, Right.WRITE, Right.ADMIN)
_EVERYWHERE: Final = ("*",)


@dataclass(frozen=True, slots=True)
class Grant:
    """A right in the namespaces that match a pattern. A last part `*` also matches no part, and several."""

    right: Right
    pattern: tuple[str, ...] = _EVERYWHERE

    @property
    def is_everywhere(self) -> bool:
        """Whether the grant is for all namespaces."""
        return self.pattern == _EVERYWHERE

    def matches(self, namespace: tuple[str, ...]) -> bool:
        """Return whether a namespace matches the pattern."""
        if self.pattern[-1] == "*":
            head = self.pattern[:-1]
            return len(namespace) >= len(head) and _fits(head, namespace[: len(head)])
        return len(namespace) == len(self.pattern) and _fits(self.pattern, namespace)

    def may_hold(self, namespace: tuple[str, ...]) -> bool:
        """Return whether a namespace matches, or may have one below it that does."""
        return self.matches(namespace) or (
            len(namespace) < len(self.pattern) and _fits(self.pattern[: len(namespace)], namespace)
        )


def _fits(pattern: tuple[str, ...], namespace: tuple[str, ...]) -> bool:
    # Brackets are characters of names here.
    return all(
        fnmatchcase(step, wanted.replace("[", "[[]").replace("?", "[?]"))
        for wanted, step in zip(pattern, namespace, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, by name, and what that name may do."""

    name: str
    grants: tuple[Grant, ...]

    @property
    def right(self) -> Right:
        """`read` for a caller who may write nowhere, else `write`."""
        return Right.READ if all(grant.right is Right.READ for grant in self.grants) else Right.WRITE

    @property
    def is_limited(self) -> bool:
        """Whether some namespaces are closed to the caller."""
        return not any(grant.is_everywhere for grant in self.grants)

    def may(self, right: Right, namespace: tuple[str, ...]) -> bool:
        """Return whether the caller has a right in a namespace."""
        return any(grant.right.rank >= right.rank and grant.matches(namespace) for grant in self.grants)

    def may_everywhere(self, right: Right) -> bool:
        """Return whether the caller has a right in all namespaces."""
        return any(grant.right.rank >= right.rank and grant.is_everywhere for grant in self.grants)

    def may_see(self, namespace: tuple[str, ...]) -> bool:
        """Return whether the caller may know that a namespace exists: it, or one below it, is open to them."""
        return any(grant.may_hold(namespace) for grant in self.grants)

    def reading(self) -> Caller:
        """Return the caller with the right to read alone, if they have any right."""
        return Caller(self.name, tuple(Grant(Right.READ, grant.pattern) for grant in self.grants))


EVERYTHING: Final = (Grant(Right.ADMIN),)
ANYONE: Final = Caller("anyone", EVERYTHING)
"""The caller of a server without secrets, which is one on the loopback."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret that was configured: whose it is and what it allows. Without grants, its right is for everything."""

    name: str
    value: str = field(repr=False)
    right: Right = Right.WRITE
    grants: tuple[Grant, ...] = ()

    @property
    def caller(self) -> Caller:
        """The caller who gives the secret."""
        plain = (Grant(Right.READ),) if self.right is Right.READ else EVERYTHING
        return Caller(self.name, self.grants or plain)


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

    def __init__(
        self, tokens: Sequence[Secret] = (), clients: Sequence[Secret] = (), *, key: bytes | None = None
    ) -> None:
        """Take the secrets, and the random key that issued tokens are signed with; without it, a new one."""
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
            f"{client.name}\0{client.value}\0{client.caller.grants}" for client in sorted(clients, key=lambda c: c.name)
        )
        own = secrets.token_bytes(32) if key is None else key
        self._key = hmac.digest(own, f"{_MARK}\0{seed}".encode(), "sha256")

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
                found = token.caller
        if found is not None:
            return found
        return self._issued_to(given, now_seconds)[0]

    def _issued_to(self, given: str, now_seconds: int) -> tuple[Caller, int]:
        """Return the caller of an issued token, and when their secret was last given."""
        mark, _, rest = given.partition(".")
        text, _, signature = rest.partition(".")
        if mark != _MARK or not self._clients or not _is_same(self._sign(text), signature):
            raise Denied("Cannot carry out the request: its token is not valid")
        try:
            name, right, ends, first = msgspec.json.decode(_unpack(text), type=tuple[str, str, int, int])
        except (msgspec.DecodeError, binascii.Error, ValueError):
            raise Denied("Cannot carry out the request: its token is not valid") from None
        client = self._clients.get(name)
        if client is None:
            raise Denied("Cannot carry out the request: its token is not valid")
        if now_seconds >= ends:
            raise Denied("Cannot carry out the request: its token has expired", is_expired=True)
        return (client.caller.reading() if right == Right.READ.value else client.caller), first

    # Giving out tokens

    def issue(self, client_id: str, secret: str, scope: str | None, now_seconds: int) -> IssuedToken:
        """Return a token for a client's secret."""
        client = self._clients.get(client_id)
        # Compared in any case, so that the time it takes does not tell which clients there are.
        is_right = _is_same(client.value if client is not None else "\0" * MIN_SECRET_CHARS, secret)
        if client is None or not is_right:
            raise OauthProblem(401, "invalid_client", "the client or its secret is not known")
        return self._issue(client.name, _right_of(scope, client.caller.right), now_seconds, now_seconds)

    def exchange(self, subject_token: str, scope: str | None, now_seconds: int) -> IssuedToken:
        """Return a new token for one that has not ended."""
        for token in self._tokens:
            if _is_same(token.value, subject_token):
                # A token that was configured does not end, and is good as it is.
                return IssuedToken(subject_token, token.caller.right, TOKEN_SECONDS)
        try:
            caller, first = self._issued_to(subject_token, now_seconds)
        except Denied as problem:
            raise OauthProblem(400, "invalid_grant", problem.message) from None
        return self._issue(caller.name, _right_of(scope, caller.right), now_seconds, first)

    def _issue(self, name: str, right: Right, now_seconds: int, first: int) -> IssuedToken:
        """Return a token; one that renews another ends a day after the first was issued at the latest."""
        ends = min(now_seconds + TOKEN_SECONDS, first + RENEWAL_SECONDS)
        if ends <= now_seconds:
            raise OauthProblem(400, "invalid_grant", "the token was renewed for a day: give the secret again")
        text = _pack(msgspec.json.encode((name, right.value, ends, first)))
        return IssuedToken(f"{_MARK}.{text}.{self._sign(text)}", right, ends - now_seconds)

    def _sign(self, text: str) -> str:
        return _pack(hmac.digest(self._key, text.encode(), "sha256"))


def parse_auth_file(text: str) -> tuple[list[Secret], list[Secret]]:
    """Return tokens and clients of lines such as `token NAME SECRET read` and `client NAME SECRET write@sales.*`."""
    tokens: list[Secret] = []
    clients: list[Secret] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        grants = [_grant(word) for word in words[3:]]
        if len(words) < 4 or words[0] not in ("token", "client") or None in grants:
            # The line holds a secret: only its number is shown.
            raise InvalidRequestError(
                f"Cannot read line {number} of the secrets: it is not `token` or `client`, a name, a secret, and "
                "`read`, `write` or `admin`, each perhaps with @ and a pattern of namespaces"
            )
        given = tuple(grant for grant in grants if grant is not None)
        right = Right.READ if all(grant.right is Right.READ for grant in given) else Right.WRITE
        (tokens if words[0] == "token" else clients).append(Secret(words[1], words[2], right, given))
    return tokens, clients


def _grant(word: str) -> Grant | None:
    """Return the grant of a word such as `read` or `write@sales.*`; None if it is not one."""
    name, mark, pattern = word.partition("@")
    parts = tuple(pattern.split(".")) if mark else _EVERYWHERE
    if name not in (right.value for right in Right) or "" in parts:
        return None
    # Without a pattern, `write` includes namespaces.
    right = Right(name) if mark or name == Right.READ.value else Right.ADMIN
    return Grant(right, parts)


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
