"""Operations on tables: list, create, register, load, commit, drop, rename; and commits to several at once."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from frazil.catalog.metadata_files import read_table_metadata
from frazil.catalog.names import Identifier, namespace_not_found, split_identifier
from frazil.changes.changes_json import decode_requirement, decode_update
from frazil.changes.requirements import AssertCreate, AssertViewUuid
from frazil.changes.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    AddViewVersion,
    SetCurrentViewVersion,
)
from frazil.codec.json_fields import JsonObject
from frazil.codec.json_text import encode_json
from frazil.codec.partition_spec_json import decode_partition_spec
from frazil.codec.schema_json import decode_schema
from frazil.codec.sort_order_json import decode_sort_order
from frazil.codec.table_metadata_json import encode_table_metadata
from frazil.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptTableError,
    InvalidRequestError,
    MissingFileError,
    TableNotFoundError,
    UnsupportedError,
)
from frazil.loaded import LoadedTable
from frazil.maintenance.purge_files import purge_files
from frazil.serve.auth import Right
from frazil.serve.commit_changes import Asked
from frazil.serve.exchange import (
    HEADING,
    KEY_HEADER,
    Answer,
    Request,
    as_bad_request,
    decode_identifier,
    encode_identifier,
    json_answer,
    no_content,
    split_views,
)
from frazil.serve.idempotency import is_repeated, leaves_traces
from frazil.serve.loaded_cache import TableText, with_referenced_snapshots
from frazil.serve.pages import page_of
from frazil.serve.service import Service
from frazil.spec.partitioning import INITIAL_SPEC_ID, UNPARTITIONED
from frazil.spec.sorting import INITIAL_SORT_ORDER_ID, UNSORTED
from frazil.spec.versions import DEFAULT
from frazil.table.create_table import take_format_version

NOT_MODIFIED = 304
MAX_CHANGED_TABLES = 1_000
MAX_UPDATES = 10_000
"""How many requirements and updates a request may have."""
MAX_DEFINITIONS = 100
"""How many of its updates may define something, which is compared with every definition before it."""
_OF_KEYS: Final = uuid.UUID("5f6c1c4e-5a0c-4d5b-9a58-0c8f6a1f7b11")


def list_tables(service: Service, request: Request) -> Answer:
    """Answer with the tables of a namespace."""
    names, token = page_of(request, service.catalog.list_tables(request.namespace))
    return json_answer({"identifiers": [encode_identifier(name) for name in names], "next-page-token": token})


def create_table(service: Service, request: Request) -> Answer:
    """Create a table, or only say what it would be: the client then creates it with its first commit."""
    try:
        return _create_table(service, request)
    except AlreadyExistsError:
        found = find_created(service, request)
        if found is None:
            raise
        return table_answer(service, request, found)


def _create_table(service: Service, request: Request) -> Answer:
    body = request.json()
    with as_bad_request():
        name, location = body.string("name"), body.string("location", None)
        schema = decode_schema(body.object("schema"))
        spec = UNPARTITIONED
        if "partition-spec" in body:
            spec = decode_partition_spec(with_default(body, "partition-spec", "spec-id", INITIAL_SPEC_ID))
        order = UNSORTED
        if "write-order" in body:
            order = decode_sort_order(with_default(body, "write-order", "order-id", INITIAL_SORT_ORDER_ID))
        is_staged = body.boolean("stage-create", False)
        properties, version = take_format_version(body.string_map("properties", {}))
    identifier = (*request.namespace, name)
    roots = service.roots_of(request.caller, request.namespace)
    if location is not None:
        roots.check(location)
    roots.check_properties(properties, location or roots.home(service.catalog.warehouse))
    staged = service.catalog.stage_table(
        identifier,
        schema,
        spec,
        order,
        location=location,
        properties=properties,
        format_version=DEFAULT if version is None else version,
    )
    if is_staged:
        return table_answer(service, request, service.cache.keep_table(staged))
    staged = replace(staged, metadata=replace(staged.metadata, table_uuid=uuid_of(request, service)))
    loaded = service.catalog.settle(service.catalog.commit(staged, (), (AssertCreate(),)))
    return table_answer(service, request, service.cache.keep_table(loaded))


def find_created(service: Service, request: Request) -> TableText | None:
    """Return the table that a request with a key created before it was sent again, or None."""
    if KEY_HEADER not in request.headers:
        return None
    with as_bad_request():
        name = request.json().string("name")
    try:
        found = service.cache.load_table((*request.namespace, name))
    except TableNotFoundError:
        return None
    return found if found.loaded.metadata.table_uuid == uuid_of(request, service) else None


def uuid_of(request: Request, service: Service) -> str:
    """Return a new table's UUID; made of the request's key, so that a request sent again finds its own table."""
    key = request.headers.get(KEY_HEADER)
    return service.catalog.new_id() if key is None else str(uuid.uuid5(_OF_KEYS, key.lower()))


def created_again(service: Service, request: Request, location: str) -> Answer:
    """Answer as a creation does, with the state that it made."""
    identifier = (*request.namespace, request.json().string("name"))
    return table_answer(service, request, table_at(service, identifier, location))


def table_at(service: Service, identifier: Identifier, location: str) -> TableText:
    """Return a table in the state of a metadata file."""
    storage = service.catalog.storage
    return service.cache.keep_table(LoadedTable(identifier, read_table_metadata(storage, location), location, storage))


def with_default(body: JsonObject, name: str, inner: str, value: int) -> JsonObject:
    """Return an object of a body; an id that a client leaves to the catalog is filled in."""
    given = body.raw(name)
    if isinstance(given, dict) and given.get(inner) is None:
        given = {**given, inner: value}
    return JsonObject(given, where=body.path_of(name), heading=HEADING)


def register_table(service: Service, request: Request) -> Answer:
    """Give a name to a table whose metadata file exists."""
    body = request.json()
    with as_bad_request():
        name, location = body.string("name"), body.string("metadata-location")
        may_replace = body.boolean("overwrite", False)
    check_namespace(service, request)
    roots = service.roots_of(request.caller, request.namespace)
    roots.check(location)
    with about_the_file(name):
        roots.check_metadata(read_table_metadata(service.catalog.storage, location))
        loaded = service.catalog.register_table((*request.namespace, name), location, may_replace=may_replace)
    return table_answer(service, request, service.cache.keep_table(loaded))


def load_table(service: Service, request: Request) -> Answer:
    """Answer with a table's state; with nothing new, where the client has it already."""
    shape = request.query.get("snapshots", "all")
    if shape not in ("all", "refs"):
        raise InvalidRequestError(f"Cannot load a table with snapshots={shape[:40]!r}: it is `all` or `refs`")
    check_referenced_by(request)
    found = service.cache.load_table(request.identifier)
    tag = etag(found.loaded.metadata_location or "", shape)
    if is_known(request, tag):
        return Answer(NOT_MODIFIED, headers={"etag": tag})
    if shape == "refs":
        fewer = with_referenced_snapshots(found.loaded.metadata)
        if fewer is not found.loaded.metadata:
            found = TableText(found.loaded, encode_table_metadata(fewer))
    return table_answer(service, request, found, shape)


def table_exists(service: Service, request: Request) -> Answer:
    """Answer whether a table is there."""
    if service.catalog.locate_table(request.identifier) is None:
        service.catalog.load_table(request.identifier)
    return no_content()


def update_table(service: Service, request: Request) -> Answer:
    """Commit a client's changes to a table."""
    body = request.json()
    change = decode_change(body, request.identifier)
    try:
        (loaded,) = service.committer.commit_tables([change], request.caller)
        found = service.cache.keep_table(loaded)
    except (CommitConflictError, AlreadyExistsError, InvalidRequestError):
        repeated = _find_repeated(service, request, [change])
        if repeated is None:
            raise
        found = repeated[0]
    return committed_answer(found)


def committed_answer(found: TableText) -> Answer:
    """Return the answer that shows what a commit came to."""
    location = found.loaded.metadata_location
    parts = (b'{"metadata-location":', encode_json(location), b',"metadata":', found.text, b"}")
    return Answer(200, b"".join(parts), {"etag": etag(location or "", "all")}, location=location)


def committed_again(service: Service, request: Request, location: str) -> Answer:
    """Answer as a commit does, with the state that it made."""
    return committed_answer(table_at(service, request.identifier, location))


def can_repeat_commit(request: Request) -> bool:
    """Return whether a commit that may have been made can be recognised."""
    return leaves_traces(decode_change(request.json(), request.identifier))


def can_repeat_commits(request: Request) -> bool:
    """Return whether commits to several tables, that may have been made, can be recognised."""
    return all(leaves_traces(change) for change in _decode_changes(request))


def _find_repeated(service: Service, request: Request, changes: list[Asked]) -> list[TableText] | None:
    """Return the tables, where a request with a key was carried out before it was sent again; else None."""
    if KEY_HEADER not in request.headers:
        return None
    try:
        found = [service.cache.load_table(change.identifier) for change in changes]
    except TableNotFoundError:
        return None
    is_done = all(is_repeated(change, it.loaded.metadata) for change, it in zip(changes, found, strict=True))
    return found if is_done else None


def commit_transaction(service: Service, request: Request) -> Answer:
    """Commit changes to several tables, all or none."""
    changes = _decode_changes(request)
    for change in changes:
        request.check_right(Right.WRITE, change.identifier[:-1])
    try:
        for loaded in service.committer.commit_tables(changes, request.caller):
            service.cache.keep_table(loaded)
    except (CommitConflictError, AlreadyExistsError, InvalidRequestError):
        if _find_repeated(service, request, changes) is None:
            raise
    return no_content()


def _decode_changes(request: Request) -> list[Asked]:
    body = request.json()
    with as_bad_request():
        parts = body.objects("table-changes")
        if not 1 <= len(parts) <= MAX_CHANGED_TABLES:
            raise InvalidRequestError(
                f"Cannot commit to {len(parts)} tables at once: 1 to {MAX_CHANGED_TABLES} are allowed"
            )
        count = sum(_count(item) for item in parts)
        if count > MAX_UPDATES:
            raise _too_many(count, "requirements and updates", MAX_UPDATES)
        return [decode_change(item, decode_identifier(item, "identifier")) for item in parts]


def decode_change(body: JsonObject, identifier: Identifier, *, is_view: bool = False) -> Asked:
    """Return the changes of a body; those that are not of tables, or not of views, are refused."""
    split_identifier(identifier)
    with as_bad_request():
        if "identifier" in body and decode_identifier(body, "identifier") != identifier:
            raise InvalidRequestError("Cannot commit: the identifier in the body is not that of the path")
        if _count(body) > MAX_UPDATES:
            raise _too_many(_count(body), "requirements and updates", MAX_UPDATES)
        required = body.list("requirements", []) if is_view else body.list("requirements")
        requirements = tuple(
            decode_requirement(entry, where=f"requirements[{index}]") for index, entry in enumerate(required)
        )
        updates = tuple(
            decode_update(entry, where=f"updates[{index}]") for index, entry in enumerate(body.list("updates"))
        )
    defined = sum(
        isinstance(update, AddSchema | AddPartitionSpec | AddSortOrder | AddViewVersion) for update in updates
    )
    if defined > MAX_DEFINITIONS:
        raise _too_many(defined, "definitions", MAX_DEFINITIONS)
    if not is_view:
        for item in (*requirements, *updates):
            if isinstance(item, AssertViewUuid | AddViewVersion | SetCurrentViewVersion):
                raise InvalidRequestError(f"Cannot commit to a table by {type(item).__name__}: that is for views")
    return Asked(identifier, requirements, updates)


def _count(body: JsonObject) -> int:
    """Return how many requirements and updates a body has."""
    return len(body.list("requirements", [])) + len(body.list("updates"))


def _too_many(count: int, what: str, most: int) -> InvalidRequestError:
    return InvalidRequestError(f"Cannot commit {count} {what} in one request: {most} are allowed")


def drop_table(service: Service, request: Request) -> Answer:
    """Drop a table; its files stay unless a purge is asked for."""
    purge = purge_files if request.flag("purgeRequested") else None
    service.catalog.drop_table(request.identifier, purge=purge)
    return no_content()


def unregister_table(service: Service, request: Request) -> Answer:
    """Drop a table, keep its files, and answer with its last state."""
    return _unregistered_answer(service.catalog.unregister_table(request.identifier))


def unregistered_again(service: Service, request: Request, location: str) -> Answer:
    """Answer as unregistering a table does, with its last state."""
    return _unregistered_answer(table_at(service, request.identifier, location).loaded)


def _unregistered_answer(loaded: LoadedTable) -> Answer:
    parts = (
        b'{"metadata-location":',
        encode_json(loaded.metadata_location),
        b',"metadata":',
        encode_table_metadata(loaded.metadata),
        b"}",
    )
    return Answer(200, b"".join(parts))


def rename_table(service: Service, request: Request) -> Answer:
    """Give a table another name."""
    body = request.json()
    with as_bad_request():
        source, target = decode_identifier(body, "source"), decode_identifier(body, "destination")
    for name in (source, target):
        request.check_right(Right.WRITE, name[:-1])
    service.catalog.rename_table(source, target)
    return no_content()


@contextmanager
def about_the_file(name: str) -> Iterator[None]:
    """Make what is wrong with a metadata file that a client names one error, which does not say what is there."""
    try:
        yield
    except (MissingFileError, CorruptTableError, UnsupportedError) as error:
        raise InvalidRequestError(f"Cannot register {name!r}: there is no metadata that can be read there") from error


# What answers are made of


def table_answer(service: Service, request: Request, found: TableText, shape: str = "all") -> Answer:
    """Return the answer that shows a table, with what its files are reached by."""
    loaded = found.loaded
    rest: dict[str, Any] = {"config": service.access.config(loaded)}
    asked = request.headers.get("x-iceberg-access-delegation", "")
    if asked:
        rest |= service.access.delegated(
            loaded, asked, can_write=request.can_write, closed=service.closed_folders(request)
        )
    parts = (
        b'{"metadata-location":',
        encode_json(loaded.metadata_location),
        b',"metadata":',
        found.text,
        b",",
        encode_json(rest)[1:],
    )
    tag = {} if loaded.metadata_location is None else {"etag": etag(loaded.metadata_location, shape)}
    return Answer(200, b"".join(parts), tag)


def etag(location: str, shape: str) -> str:
    """Return what tells one state of a table in one shape from all others."""
    digest = hashlib.sha256(location.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f'W/"{digest}-{shape}"'


def is_known(request: Request, tag: str) -> bool:
    """Return whether the client has the state of a tag."""
    given = request.headers.get("if-none-match")
    if given is None:
        return False
    strong = tag.removeprefix("W/")
    return any(piece.strip().removeprefix("W/") == strong or piece.strip() == "*" for piece in given.split(","))


def check_namespace(service: Service, request: Request) -> None:
    """Refuse a namespace that is not there."""
    if not service.catalog.namespace_exists(request.namespace):
        raise namespace_not_found(request.namespace)


def check_referenced_by(request: Request) -> tuple[Identifier, ...]:
    """Return the views by which a table is loaded, the outermost first; refuse what names none."""
    text = request.query.get("referenced-by")
    if text is None:
        return ()
    names = split_views(text)
    for name in names:
        split_identifier(name)
    return names
