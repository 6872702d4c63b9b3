"""Operations on the configuration and on namespaces."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence

from frazil.catalog.names import Namespace
from frazil.errors import InvalidRequestError
from frazil.serve.auth import Right
from frazil.serve.error_answers import UNPROCESSABLE
from frazil.serve.exchange import (
    Answer,
    Refusal,
    Request,
    as_bad_request,
    decode_namespace,
    json_answer,
    no_content,
    split_namespace,
)
from frazil.serve.pages import page_of
from frazil.serve.service import Service

KEY_LIFETIME = "PT1H"
"""How long an Idempotency-Key is remembered, as announced to clients."""


def show_config(service: Service, _: Request) -> Answer:
    """Return the configuration for clients: the supported operations, and how long keys are remembered.

    The server has one warehouse, and accepts any name for it.
    """
    return json_answer(
        {
            "defaults": {},
            "overrides": {},
            "endpoints": list(service.endpoints),
            "idempotency-key-lifetime": KEY_LIFETIME,
        }
    )


def list_namespaces(service: Service, request: Request) -> Answer:
    """Return the child namespaces of a namespace, or the top-level ones."""
    text = request.query.get("parent", "")
    parent = split_namespace(text) if text else ()
    if parent and not request.caller.may_see(parent):
        request.check_right(Right.READ, parent)
    namespaces = service.catalog.list_namespaces(parent)
    names, token = page_of(request, [name for name in namespaces if request.caller.may_see(name)])
    return json_answer({"namespaces": names, "next-page-token": token})


def create_namespace(service: Service, request: Request) -> Answer:
    """Create a namespace."""
    namespace, properties = _decode_new(request)
    request.check_right(Right.ADMIN, namespace)
    service.roots_of(request.caller, namespace).check_properties(properties, service.catalog.warehouse)
    service.catalog.create_namespace(namespace, properties)
    return json_answer({"namespace": namespace, "properties": properties})


def created_again(_: Service, request: Request, _result: str) -> Answer:
    """Recreate the response of a creation."""
    namespace, properties = _decode_new(request)
    return json_answer({"namespace": namespace, "properties": properties})


def _decode_new(request: Request) -> tuple[Namespace, dict[str, str]]:
    body = request.json()
    with as_bad_request():
        return decode_namespace(body, "namespace"), dict(body.string_map("properties", {}))


def load_namespace(service: Service, request: Request) -> Answer:
    """Return a namespace's properties."""
    properties = service.catalog.load_namespace_properties(request.namespace)
    return json_answer({"namespace": request.namespace, "properties": properties})


def namespace_exists(service: Service, request: Request) -> Answer:
    """Respond whether a namespace exists."""
    if not request.caller.may_see(request.namespace):
        request.check_right(Right.READ, request.namespace)
    if not service.catalog.namespace_exists(request.namespace):
        # The response to HEAD has only a status.
        service.catalog.load_namespace_properties(request.namespace)
    return no_content()


def drop_namespace(service: Service, request: Request) -> Answer:
    """Drop an empty namespace."""
    service.catalog.drop_namespace(request.namespace)
    return no_content()


def update_properties(service: Service, request: Request) -> Answer:
    """Set and remove properties of a namespace."""
    updates, removals = _decode_changes(request)
    service.roots_of(request.caller, request.namespace).check_properties(updates, service.catalog.warehouse)
    both = sorted(set(removals) & set(updates))
    if both:
        raise Refusal(422, UNPROCESSABLE, f"Cannot set and remove the property {both[0]!r} in one request")
    if len(set(removals)) < len(removals):
        raise InvalidRequestError("Cannot remove a property twice in one request")
    before = service.catalog.load_namespace_properties(request.namespace)
    if updates or removals:
        service.catalog.update_namespace_properties(request.namespace, updates, removals)
    return _updated(updates, removals, before)


def updated_again(_: Service, request: Request, removed: str) -> Answer:
    """Recreate the response of a change of properties."""
    return _updated(*_decode_changes(request), json.loads(removed))


def _decode_changes(request: Request) -> tuple[dict[str, str], tuple[str, ...]]:
    body = request.json()
    with as_bad_request():
        return dict(body.string_map("updates", {})), body.strings("removals", ())


def _updated(updates: Mapping[str, str], removals: Sequence[str], before: Container[str]) -> Answer:
    return json_answer(
        {
            "updated": list(updates),
            "removed": [removal for removal in removals if removal in before],
            "missing": [removal for removal in removals if removal not in before],
        }
    )


def list_functions(service: Service, request: Request) -> Answer:
    """Return an empty list: catalogs have no functions."""
    service.catalog.load_namespace_properties(request.namespace)
    names, token = page_of(request, ())
    return json_answer({"identifiers": names, "next-page-token": token})


def load_function(service: Service, request: Request) -> Answer:
    """Respond that the function does not exist."""
    service.catalog.load_namespace_properties(request.namespace)
    raise Refusal(
        404,
        "NoSuchFunctionException",
        f"Cannot find the function {request.names['name']!r}: this catalog has no functions",
    )
