"""Authentication and rights: configured tokens and clients, and the tokens issued to clients for their secrets.

A secret is a token, sent as `Authorization: Bearer`, or a client secret, for which `/v1/oauth/tokens` issues a token
for
an hour. Such a token is signed with a random key of the server, stored in its state, together with the clients'
secrets:
it is valid after a restart and for other processes with the same state and secrets, but not after the secrets change.
Renewal ends a day after the secret was last presented. Secrets are compared in constant time, and do not appear in
logs,
messages or reprs.

A secret grants a right, everywhere or in namespaces that match a pattern:

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
"""The scope that clients of the protocol request by default: all their rights."""
_MARK: Final = "frazil2"


class Right(Enum):
    """The rights of callers; each includes the preceding ones."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        """The position in the order."""
        return _RANKS.index(self)


_RANKS: Final = (Right.READ, Right.WRITE, Right.ADMIN)
_EVERYWHERE: Final = ("*",)


@dataclass(frozen=True, slots=True)
class Grant:
    """A right in the namespaces that match a pattern. A final `*` matches any number of parts."""

    right: Right
    pattern: tuple[str, ...] = _EVERYWHERE

    @property
    def is_everywhere(self) -> bool:
        """Whether the grant applies to all namespaces."""
        return self.pattern == _EVERYWHERE

    def matches(self, namespace: tuple[str, ...]) -> bool:
        """Return whether a namespace matches the pattern."""
        if self.pattern[-1] == "*":
            head = self.pattern[:-1]
            return len(namespace) >= len(head) and _fits(head, namespace[: len(head)])
        return len(namespace) == len(self.pattern) and _fits(self.pattern, namespace)

    def may_hold(self, namespace: tuple[str, ...]) -> bool:
        """Return whether a namespace matches, or may contain one that does."""
        return self.matches(namespace) or (
            len(namespace) < len(self.pattern) and _fits(self.pattern[: len(namespace)], namespace)
        )


def _fits(pattern: tuple[str, ...], namespace: tuple[str, ...]) -> bool:
    # Brackets and question marks are ordinary characters of names.
    return all(
        fnmatchcase(step, piece.replace("[", "[[]").replace("?", "[?]"))
        for piece, step in zip(pattern, namespace, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, with their name and grants."""

    name: str
    grants: tuple[Grant, ...]

    @property
    def right(self) -> Right:
        """`read` for a caller without write access, else `write`."""
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
        """Return whether the caller may learn that a namespace exists: it, or one below it, is open to them."""
        return any(grant.may_hold(namespace) for grant in self.grants)

    def reading(self) -> Caller:
        """Return the caller limited to reading."""
        return Caller(self.name, tuple(Grant(Right.READ, grant.pattern) for grant in self.grants))


EVERYTHING: Final = (Grant(Right.ADMIN),)
ANYONE: Final = Caller("anyone", EVERYTHING)
"""The caller of a server without secrets, which listens on loopback only."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A configured secret: its owner and its grants. Without grants, its right applies everywhere."""

    name: str
    value: str = field(repr=False)
    right: Right = Right.WRITE
    grants: tuple[Grant, ...] = ()

    @property
    def caller(self) -> Caller:
        """The caller who presents the secret."""
        plain = (Grant(Right.READ),) if self.right is Right.READ else EVERYTHING
        return Caller(self.name, self.grants or plain)


class Denied(Exception):
    """The token is invalid; `is_expired` tells whether it has expired. Internal to this room."""

    def __init__(self, message: str, *, is_expired: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_expired = is_expired


class OauthProblem(Exception):
    """A token request that is denied, with the reason as in OAuth2. Internal to this room."""

    def __init__(self, code: int, error: str, description: str) -> None:
        super().__init__(description)
        self.code = code
        self.error = error
        self.description = description


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token issued by the server."""

    token: str = field(repr=False)
    right: Right
    seconds: int


class Auth:
    """The secrets of a server. Without any, everyone may do everything; that is for loopback only."""

    def __init__(
        self, tokens: Sequence[Secret] = (), clients: Sequence[Secret] = (), *, key: bytes | None = None
    ) -> None:
        """Take the secrets, and the random key that signs issued tokens; by default a new one."""
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
        server_key = secrets.token_bytes(32) if key is None else key
        self._key = hmac.digest(server_key, f"{_MARK}\0{seed}".encode(), "sha256")

    @property
    def is_open(self) -> bool:
        """Whether no secret is required."""
        return not self._tokens and not self._clients

    def caller_of(self, authorization: str | None, now_seconds: int) -> Caller:
        """Authenticate an Authorization header, or raise Denied."""
        if self.is_open:
            return ANYONE
        if authorization is None:
            raise Denied("Cannot carry out the request: it has no token")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Denied("Cannot carry out the request: its Authorization header has no bearer token")
        return self._caller(token.strip(), now_seconds)

    def _caller(self, secret: str, now_seconds: int) -> Caller:
        caller: Caller | None = None
        for token in self._tokens:
            if _is_same(token.value, secret):
                caller = token.caller
        if caller is not None:
            return caller
        return self._issued_to(secret, now_seconds)[0]

    def _issued_to(self, token: str, now_seconds: int) -> tuple[Caller, int]:
        """Return the caller of an issued token, and the time when their secret was last presented."""
        prefix, _, rest = token.partition(".")
        text, _, signature = rest.partition(".")
        if prefix != _MARK or not self._clients or not _is_same(self._sign(text), signature):
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

    # Issuing tokens

    def issue(self, client_id: str, secret: str, scope: str | None, now_seconds: int) -> IssuedToken:
        """Issue a token for a client secret."""
        client = self._clients.get(client_id)
        # The secrets are compared in any case, so that the time does not reveal which clients exist.
        is_right = _is_same(client.value if client is not None else "\0" * MIN_SECRET_CHARS, secret)
        if client is None or not is_right:
            raise OauthProblem(401, "invalid_client", "the client or its secret is unknown")
        return self._issue(client.name, _right_of(scope, client.caller.right), now_seconds, now_seconds)

    def exchange(self, subject_token: str, scope: str | None, now_seconds: int) -> IssuedToken:
        """Exchange a valid token for a new one."""
        for token in self._tokens:
            if _is_same(token.value, subject_token):
                # A configured token does not expire, and is returned unchanged.
                return IssuedToken(subject_token, token.caller.right, TOKEN_SECONDS)
        try:
            caller, first = self._issued_to(subject_token, now_seconds)
        except Denied as problem:
            raise OauthProblem(400, "invalid_grant", problem.message) from None
        return self._issue(caller.name, _right_of(scope, caller.right), now_seconds, first)

    def _issue(self, name: str, right: Right, now_seconds: int, first: int) -> IssuedToken:
        """Issue a token; a renewed one expires at most a day after the first was issued."""
        ends = min(now_seconds + TOKEN_SECONDS, first + RENEWAL_SECONDS)
        if ends <= now_seconds:
            raise OauthProblem(400, "invalid_grant", "the token has been renewed for a day: present the secret again")
        text = _pack(msgspec.json.encode((name, right.value, ends, first)))
        return IssuedToken(f"{_MARK}.{text}.{self._sign(text)}", right, ends - now_seconds)

    def _sign(self, text: str) -> str:
        return _pack(hmac.digest(self._key, text.encode(), "sha256"))


def parse_auth_file(text: str) -> tuple[list[Secret], list[Secret]]:
    """Parse tokens and clients from lines such as `token NAME SECRET read` and `client NAME SECRET write@sales.*`."""
    tokens: list[Secret] = []
    clients: list[Secret] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        grants = [_grant(word) for word in words[3:]]
        if len(words) < 4 or words[0] not in ("token", "client") or None in grants:
            # The line contains a secret: only its number is shown.
            raise InvalidRequestError(
                f"Cannot read line {number} of the secrets: it must be `token` or `client`, a name, a secret, and "
                "`read`, `write` or `admin`, each optionally with @ and a namespace pattern"
            )
        parsed_grants = tuple(grant for grant in grants if grant is not None)
        right = Right.READ if all(grant.right is Right.READ for grant in parsed_grants) else Right.WRITE
        (tokens if words[0] == "token" else clients).append(Secret(words[1], words[2], right, parsed_grants))
    return tokens, clients


def _grant(word: str) -> Grant | None:
    """Parse a grant such as `read` or `write@sales.*`; return None if it is not one."""
    name, at_sign, pattern = word.partition("@")
    parts = tuple(pattern.split(".")) if at_sign else _EVERYWHERE
    if name not in (right.value for right in Right) or "" in parts:
        return None
    # Without a pattern, `write` includes namespaces.
    right = Right(name) if at_sign or name == Right.READ.value else Right.ADMIN
    return Grant(right, parts)


def _right_of(scope: str | None, allowed: Right) -> Right:
    """Return the right of a token for the requested scopes, at most that of its client."""
    requested = set((scope or "").split())
    supported = {EVERY_SCOPE, Right.READ.value, Right.WRITE.value}
    if not requested <= supported or (Right.WRITE.value in requested and allowed is Right.READ):
        raise OauthProblem(
            400, "invalid_scope", f"the scopes are {', '.join(sorted(supported))}, as far as granted to the client"
        )
    return Right.READ if requested == {Right.READ.value} else allowed


def _is_same(secret: str, other: str) -> bool:
    return hmac.compare_digest(secret.encode(), other.encode("utf-8", "surrogatepass"))


def _pack(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _unpack(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
