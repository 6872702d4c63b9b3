"""What an operation is given and what it gives back: a request and an answer, as values without a network.

Operations are plain functions from one to the other. `app.py` reads requests and sends answers; what goes wrong is an
error of frazil's, or a `Refusal` where the protocol has a code of its own; `error_answers.py` makes answers of both.
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
    """A request that ends with a code and a type of the protocol's own. Does not leave this room."""

    def __init__(self, code: int, error_type: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.kind = error_type
        self.message = message
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class Request:
    """One request: names from its path, its query and headers (names in lower case), its body, and who sent it."""

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
        """Return the body, a JSON object."""
        with as_bad_request():
            return JsonObject(parse_json(self.body, where="the request", heading=HEADING), heading=HEADING)

    def flag(self, name: str) -> bool:
        """Return a parameter of the query that is true or false."""
        text = self.query.get(name, "false").lower()
        if text not in ("true", "false"):
            raise InvalidRequestError(f"Cannot use {name}={text[:40]!r}: it is true or false")
        return text == "true"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: its code, its body and headers."""

    code: int = 200
    body: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    error_type: str | None = None
    """Of an error, its type."""
    location: str | None = None
    """The metadata file that the whole answer can be made of again; None where it cannot."""


def json_answer(value: Any, *, code: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer whose body is a JSON value."""
    return Answer(code, encode_json(value), headers or {})


def no_content() -> Answer:
    """Return the answer that says done, and nothing else."""
    return Answer(NO_CONTENT)


@contextmanager
def as_bad_request() -> Iterator[None]:
    """Make what is wrong with a body, or not known here, an error about the request."""
    try:
        yield
    except (CorruptTableError, UnsupportedError) as problem:
        raise InvalidRequestError(problem.message, hint=problem.hint) from problem


def split_namespace(text: str) -> Namespace:
    """Return the namespace that a path or a query names, its parts apart by the unit separator."""
    return tuple(text.split(UNIT_SEPARATOR))


def split_views(text: str) -> tuple[Identifier, ...]:
    """Return the views that a query names, with commas between them; a comma inside of a name is escaped."""
    return tuple(tuple(unquote(piece).split(UNIT_SEPARATOR)) for piece in text.split(","))


def decode_namespace(obj: JsonObject, name: str) -> Namespace:
    """Return a namespace of a body."""
    parts: tuple[str, ...] = obj.strings(name)
    return parts


def decode_identifier(obj: JsonObject, name: str) -> Identifier:
    """Return the name of a table or view in a body."""
    inner = obj.object(name)
    return (*decode_namespace(inner, "namespace"), inner.string("name"))


def encode_identifier(identifier: Identifier) -> dict[str, Any]:
    """Return the name of a table or view as JSON."""
    return {"namespace": list(identifier[:-1]), "name": identifier[-1]}
