"""The request and response values of operations, independent of the network.

Operations are plain functions from requests to responses. `app.py` reads requests and sends responses; failures are
frazil errors, or a `Refusal` with a code of the protocol; `error_answers.py` translates both into responses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from frazil.catalog.names import Identifier, Namespace, format_name
from frazil.codec.json_fields import JsonObject
from frazil.codec.json_text import encode_json, parse_json
from frazil.errors import CorruptTableError, InvalidRequestError, UnsupportedError
from frazil.serve.auth import ANYONE, Caller, Right

HEADING: Final = "REST catalog protocol"
UNIT_SEPARATOR: Final = "\x1f"
NO_CONTENT: Final = 204
KEY_HEADER: Final = "idempotency-key"


class Refusal(Exception):
    """A failure with a code and a type of the protocol. Internal to this room."""

    def __init__(self, code: int, error_type: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.kind = error_type
        self.message = message
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class Request:
    """One request: the names in its path, its query and headers (names in lower case), its body, and its caller."""

    method: str = "GET"
    path: str = "/"
    names: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)
    caller: Caller = ANYONE
    request_id: str = ""

    @property
    def namespace(self) -> Namespace:
        """The namespace in the path."""
        return split_namespace(self.names["namespace"])

    def check_right(self, right: Right, namespace: Namespace) -> None:
        """Refuse a request whose caller lacks a right in a namespace."""
        if self.caller.may(right, namespace):
            return
        raise Refusal(
            403,
            "ForbiddenException",
            f"Cannot carry out the request: the token of {self.caller.name!r} does not allow to {right.value} "
            f"in the namespace {format_name(namespace)}",
        )

    @property
    def can_write(self) -> bool:
        """Whether the caller may write in the namespace of the path."""
        return self.caller.may(Right.WRITE, self.namespace)

    @property
    def identifier(self) -> Identifier:
        """The table or view in the path."""
        return (*self.namespace, self.names["name"])

    def json(self) -> JsonObject:
        """Return the body as a JSON object."""
        with as_bad_request():
            return JsonObject(parse_json(self.body, where="the request", heading=HEADING), heading=HEADING)

    def flag(self, name: str) -> bool:
        """Return a boolean query parameter."""
        text = self.query.get(name, "false").lower()
        if text not in ("true", "false"):
            raise InvalidRequestError(f"Cannot use {name}={text[:40]!r}: it must be true or false")
        return text == "true"


@dataclass(frozen=True, slots=True)
class Answer:
    """One response: its code, body and headers."""

    code: int = 200
    body: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    error_type: str | None = None
    """The type of an error response."""
    location: str | None = None
    """The metadata file from which the whole response can be recreated, or None if it cannot."""


def json_answer(value: Any, *, code: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return a response with a JSON body."""
    return Answer(code, encode_json(value), headers or {})


def no_content() -> Answer:
    """Return the response for success without content."""
    return Answer(NO_CONTENT)


@contextmanager
def as_bad_request() -> Iterator[None]:
    """Turn errors in a body, or unsupported content, into errors of the request."""
    try:
        yield
    except (CorruptTableError, UnsupportedError) as problem:
        raise InvalidRequestError(problem.message, hint=problem.hint) from problem


def split_namespace(text: str) -> Namespace:
    """Return the namespace named in a path or query, split at the unit separator."""
    return tuple(text.split(UNIT_SEPARATOR))


def split_views(text: str) -> tuple[Identifier, ...]:
    """Return the comma-separated views of a query; commas inside names are escaped."""
    return tuple(tuple(unquote(piece).split(UNIT_SEPARATOR)) for piece in text.split(","))


def decode_namespace(obj: JsonObject, name: str) -> Namespace:
    """Return a namespace in a body."""
    parts: tuple[str, ...] = obj.strings(name)
    return parts


def decode_identifier(obj: JsonObject, name: str) -> Identifier:
    """Return the name of a table or view in a body."""
    inner = obj.object(name)
    return (*decode_namespace(inner, "namespace"), inner.string("name"))


def encode_identifier(identifier: Identifier) -> dict[str, Any]:
    """Return the name of a table or view as JSON."""
    return {"namespace": list(identifier[:-1]), "name": identifier[-1]}
