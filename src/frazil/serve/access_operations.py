"""Operations that give clients access to files: credentials, and signatures of requests."""

from __future__ import annotations

from frazil.errors import UnsupportedError
from frazil.serve.exchange import Answer, Request, as_bad_request, json_answer
from frazil.serve.service import Service
from frazil.serve.sign_requests import SignRequest
from frazil.serve.tables import check_referenced_by

_PRIVATE = {"cache-control": "private, no-cache"}


def load_credentials(service: Service, request: Request) -> Answer:
    """Return credentials for a table's files, or none if the server vends none."""
    check_referenced_by(request)
    loaded = service.cache.load_table(request.identifier).loaded
    credentials = service.access.credentials(
        loaded, can_write=request.can_write, closed=service.closed_folders(request)
    )
    return json_answer({"storage-credentials": credentials}, headers={"cache-control": "no-store"})


def sign_request(service: Service, request: Request) -> Answer:
    """Sign a client's request to the object store."""
    body = request.json()
    with as_bad_request():
        provider = body.string("provider", "s3")
        headers = body.object("headers")
        sign = SignRequest(
            body.string("method").upper(),
            body.string("uri"),
            body.string("region"),
            {name: headers.strings(name) for name in headers.keys()},  # noqa: SIM118
            body.string("body", None),
        )
        body.string_map("properties", {})
    loaded = service.cache.load_table(request.identifier).loaded
    if provider != "s3":
        raise UnsupportedError(f"Cannot sign a request to {provider[:40]!r}: this server signs for s3")
    uri, signed = service.access.sign(loaded, sign, can_write=request.can_write, closed=service.closed_folders(request))
    return json_answer({"uri": uri, "headers": signed}, headers=_PRIVATE)
