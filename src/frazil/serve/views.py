"""Operations on views: list, create, register, load, replace, drop, rename."""

from __future__ import annotations

from frazil.catalog.metadata_files import read_view_metadata
from frazil.catalog.names import Identifier
from frazil.codec.json_fields import JsonObject
from frazil.codec.json_text import encode_json
from frazil.codec.schema_json import decode_schema
from frazil.codec.view_metadata_json import decode_view_version, encode_view_metadata
from frazil.loaded import LoadedView
from frazil.serve.auth import Right
from frazil.serve.exchange import (
    HEADING,
    Answer,
    Refusal,
    Request,
    as_bad_request,
    decode_identifier,
    encode_identifier,
    json_answer,
    no_content,
)
from frazil.serve.pages import page_of
from frazil.serve.service import Service
from frazil.serve.tables import about_the_file, check_namespace, check_referenced_by, decode_change


def list_views(service: Service, request: Request) -> Answer:
    """Return the views of a namespace."""
    names, token = page_of(request, service.catalog.list_views(request.namespace))
    return json_answer({"identifiers": [encode_identifier(name) for name in names], "next-page-token": token})


def create_view(service: Service, request: Request) -> Answer:
    """Create a view."""
    body = request.json()
    with as_bad_request():
        name, location = body.string("name"), body.string("location", None)
        schema = decode_schema(body.object("schema"))
        _check_dialects(body.object("view-version"))
        version = decode_view_version(body.object("view-version"))
        properties = body.string_map("properties", {})
    roots = service.roots_of(request.caller, request.namespace)
    if location is not None:
        roots.check(location)
    roots.check_properties(properties, location or roots.home(service.catalog.warehouse))
    loaded = service.catalog.create_view(
        (*request.namespace, name), schema, version, location=location, properties=properties
    )
    return _answer(loaded)


def register_view(service: Service, request: Request) -> Answer:
    """Register an existing metadata file of a view under a name."""
    body = request.json()
    with as_bad_request():
        name, location = body.string("name"), body.string("metadata-location")
    check_namespace(service, request)
    roots = service.roots_of(request.caller, request.namespace)
    roots.check(location)
    with about_the_file(name):
        roots.check_metadata(read_view_metadata(service.catalog.storage, location))
        loaded = service.catalog.register_view((*request.namespace, name), location)
    return _answer(loaded)


def load_view(service: Service, request: Request) -> Answer:
    """Return a view's state."""
    check_referenced_by(request)
    current = service.cache.load_view(request.identifier)
    return _answer(current.loaded, current.text)


def view_exists(service: Service, request: Request) -> Answer:
    """Respond whether a view exists."""
    if service.catalog.locate_view(request.identifier) is None:
        service.catalog.load_view(request.identifier)
    return no_content()


def replace_view(service: Service, request: Request) -> Answer:
    """Commit a client's changes to a view."""
    body = request.json()
    with as_bad_request():
        for update in body.list("updates"):
            if isinstance(update, dict) and isinstance(update.get("view-version"), dict):
                _check_dialects(JsonObject(update["view-version"], heading=HEADING))
    change = decode_change(body, request.identifier, is_view=True)
    return _answer(service.committer.commit_view(change, request.caller))


def created_again(service: Service, request: Request, location: str) -> Answer:
    """Recreate the response of a creation, with the resulting state."""
    return _answer(_view_at(service, (*request.namespace, request.json().string("name")), location))


def replaced_again(service: Service, request: Request, location: str) -> Answer:
    """Recreate the response of a commit, with the resulting state."""
    return _answer(_view_at(service, request.identifier, location))


def _view_at(service: Service, identifier: Identifier, location: str) -> LoadedView:
    storage = service.catalog.storage
    return LoadedView(identifier, read_view_metadata(storage, location), location, storage)


def drop_view(service: Service, request: Request) -> Answer:
    """Drop a view."""
    service.catalog.drop_view(request.identifier)
    return no_content()


def rename_view(service: Service, request: Request) -> Answer:
    """Rename a view."""
    body = request.json()
    with as_bad_request():
        source, target = decode_identifier(body, "source"), decode_identifier(body, "destination")
    for name in (source, target):
        request.check_right(Right.WRITE, name[:-1])
    service.catalog.rename_view(source, target)
    return no_content()


def _answer(loaded: LoadedView, text: bytes | None = None) -> Answer:
    encoded = encode_view_metadata(loaded.metadata, compress=False) if text is None else text
    location = loaded.metadata_location
    parts = (b'{"metadata-location":', encode_json(location), b',"metadata":', encoded, b',"config":{}}')
    return Answer(200, b"".join(parts), location=location)


def _check_dialects(version: JsonObject) -> None:
    """Refuse two queries in one dialect, with the error type that clients expect for it."""
    dialects: set[str] = set()
    for representation in version.list("representations"):
        dialect = representation.get("dialect") if isinstance(representation, dict) else None
        if isinstance(dialect, str) and dialect.lower() in dialects:
            text = f"Invalid view version: Cannot add multiple queries for dialect {dialect.lower()}"
            raise Refusal(400, "IllegalArgumentException", text)
        dialects.add(str(dialect).lower())
