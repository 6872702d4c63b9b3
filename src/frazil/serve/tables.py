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
from frazil.serve.commit_changes import ChangeRequest
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
"""The maximum number of requirements and updates in a request."""
MAX_DEFINITIONS = 100
"""The maximum number of updates with definitions, each of which is compared with every earlier definition."""
_OF_KEYS: Final = uuid.UUID("5f6c1c4e-5a0c-4d5b-9a58-0c8f6a1f7b11")


def list_tables(service: Service, request: Request) -> Answer:
    """Return the tables of a namespace."""
    names, token = page_of(request, service.catalog.list_tables(request.namespace))
    return json_answer({"identifiers": [encode_identifier(name) for name in names], "next-page-token": token})


def create_table(service: Service, request: Request) -> Answer:
    """Create a table, or only stage it: the client then creates it with its first commit."""
    try:
        return _create_table(service, request)
    except AlreadyExistsError:
        created = find_created(service, request)
        if created is None:
            raise
        return table_answer(service, request, created)


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
    """Return the table that an earlier request with the same key created, or None."""
    if KEY_HEADER not in request.headers:
        return None
    with as_bad_request():
        name = request.json().string("name")
    try:
        created = service.cache.load_table((*request.namespace, name))
    except TableNotFoundError:
        return None
    return created if created.loaded.metadata.table_uuid == uuid_of(request, service) else None


def uuid_of(request: Request, service: Service) -> str:
    """Return a new table's UUID, derived from the request's key, so that a repeated request recognizes its table."""
    key = request.headers.get(KEY_HEADER)
    return service.catalog.new_id() if key is None else str(uuid.uuid5(_OF_KEYS, key.lower()))


def created_again(service: Service, request: Request, location: str) -> Answer:
    """Recreate the response of a creation, with the resulting state."""
    identifier = (*request.namespace, request.json().string("name"))
    return table_answer(service, request, table_at(service, identifier, location))


def table_at(service: Service, identifier: Identifier, location: str) -> TableText:
    """Return a table in the state of a metadata file."""
    storage = service.catalog.storage
    return service.cache.keep_table(LoadedTable(identifier, read_table_metadata(storage, location), location, storage))


def with_default(body: JsonObject, name: str, inner: str, value: int) -> JsonObject:
    """Return an object of a body, with an ID filled in if the client left it to the catalog."""
    value_json = body.raw(name)
    if isinstance(value_json, dict) and value_json.get(inner) is None:
        value_json = {**value_json, inner: value}
    return JsonObject(value_json, where=body.path_of(name), heading=HEADING)


def register_table(service: Service, request: Request) -> Answer:
    """Register an existing metadata file under a name."""
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
    """Return a table's state, or Not Modified if the client already has it."""
    shape = request.query.get("snapshots", "all")
    if shape not in ("all", "refs"):
        raise InvalidRequestError(f"Cannot load a table with snapshots={shape[:40]!r}: it must be `all` or `refs`")
    check_referenced_by(request)
    current = service.cache.load_table(request.identifier)
    tag = etag(current.loaded.metadata_location or "", shape)
    if is_known(request, tag):
        return Answer(NOT_MODIFIED, headers={"etag": tag})
    if shape == "refs":
        fewer = with_referenced_snapshots(current.loaded.metadata)
        if fewer is not current.loaded.metadata:
            current = TableText(current.loaded, encode_table_metadata(fewer))
    return table_answer(service, request, current, shape)


def table_exists(service: Service, request: Request) -> Answer:
    """Respond whether a table exists."""
    if service.catalog.locate_table(request.identifier) is None:
        service.catalog.load_table(request.identifier)
    return no_content()


def update_table(service: Service, request: Request) -> Answer:
    """Commit a client's changes to a table."""
    body = request.json()
    change = decode_change(body, request.identifier)
    try:
        (loaded,) = service.committer.commit_tables([change], request.caller)
        committed = service.cache.keep_table(loaded)
    except (CommitConflictError, AlreadyExistsError, InvalidRequestError):
        repeated = _find_repeated(service, request, [change])
        if repeated is None:
            raise
        committed = repeated[0]
    return committed_answer(committed)


def committed_answer(committed: TableText) -> Answer:
    """Return the response with the result of a commit."""
    location = committed.loaded.metadata_location
    parts = (b'{"metadata-location":', encode_json(location), b',"metadata":', committed.text, b"}")
    return Answer(200, b"".join(parts), {"etag": etag(location or "", "all")}, location=location)


def committed_again(service: Service, request: Request, location: str) -> Answer:
    """Recreate the response of a commit, with the resulting state."""
    return committed_answer(table_at(service, request.identifier, location))


def can_repeat_commit(request: Request) -> bool:
    """Return whether the result of a commit can be recognized."""
    return leaves_traces(decode_change(request.json(), request.identifier))


def can_repeat_commits(request: Request) -> bool:
    """Return whether the results of commits to several tables can be recognized."""
    return all(leaves_traces(change) for change in _decode_changes(request))


def _find_repeated(service: Service, request: Request, changes: list[ChangeRequest]) -> list[TableText] | None:
    """Return the tables if a request with the same key was already carried out, else None."""
    if KEY_HEADER not in request.headers:
        return None
    try:
        tables = [service.cache.load_table(change.identifier) for change in changes]
    except TableNotFoundError:
        return None
    is_done = all(is_repeated(change, it.loaded.metadata) for change, it in zip(changes, tables, strict=True))
    return tables if is_done else None


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


def _decode_changes(request: Request) -> list[ChangeRequest]:
    body = request.json()
    with as_bad_request():
        parts = body.objects("table-changes")
        if not 1 <= len(parts) <= MAX_CHANGED_TABLES:
            raise InvalidRequestError(
                f"Cannot commit to {len(parts)} tables at once: the limit is {MAX_CHANGED_TABLES}"
            )
        count = sum(_count(item) for item in parts)
        if count > MAX_UPDATES:
            raise _too_many(count, "requirements and updates", MAX_UPDATES)
        return [decode_change(item, decode_identifier(item, "identifier")) for item in parts]


def decode_change(body: JsonObject, identifier: Identifier, *, is_view: bool = False) -> ChangeRequest:
    """Decode the change in a body; refuse updates of views for a table, and the reverse."""
    split_identifier(identifier)
    with as_bad_request():
        if "identifier" in body and decode_identifier(body, "identifier") != identifier:
            raise InvalidRequestError("Cannot commit: the identifier in the body differs from that of the path")
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
                raise InvalidRequestError(f"Cannot commit to a table by {type(item).__name__}: it is for views")
    return ChangeRequest(identifier, requirements, updates)


def _count(body: JsonObject) -> int:
    """Return the number of requirements and updates in a body."""
    return len(body.list("requirements", [])) + len(body.list("updates"))


def _too_many(count: int, what: str, most: int) -> InvalidRequestError:
    return InvalidRequestError(f"Cannot commit {count} {what} in one request: the limit is {most}")


def drop_table(service: Service, request: Request) -> Answer:
    """Drop a table; its files stay unless a purge is requested."""
    purge = purge_files if request.flag("purgeRequested") else None
    service.catalog.drop_table(request.identifier, purge=purge)
    return no_content()


def unregister_table(service: Service, request: Request) -> Answer:
    """Drop a table, keep its files, and return its last state."""
    return _unregistered_answer(service.catalog.unregister_table(request.identifier))


def unregistered_again(service: Service, request: Request, location: str) -> Answer:
    """Recreate the response of unregistering a table, with its last state."""
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
    """Rename a table."""
    body = request.json()
    with as_bad_request():
        source, target = decode_identifier(body, "source"), decode_identifier(body, "destination")
    for name in (source, target):
        request.check_right(Right.WRITE, name[:-1])
    service.catalog.rename_table(source, target)
    return no_content()


@contextmanager
def about_the_file(name: str) -> Iterator[None]:
    """Turn all errors of a metadata file named by a client into one that does not reveal what exists."""
    try:
        yield
    except (MissingFileError, CorruptTableError, UnsupportedError) as error:
        raise InvalidRequestError(f"Cannot register {name!r}: there is no readable metadata") from error


# Responses


def table_answer(service: Service, request: Request, state: TableText, shape: str = "all") -> Answer:
    """Return the response that shows a table, with the access to its files."""
    loaded = state.loaded
    rest: dict[str, Any] = {"config": service.access.config(loaded)}
    requested_ways = request.headers.get("x-iceberg-access-delegation", "")
    if requested_ways:
        rest |= service.access.delegated(
            loaded, requested_ways, can_write=request.can_write, closed=service.closed_folders(request)
        )
    parts = (
        b'{"metadata-location":',
        encode_json(loaded.metadata_location),
        b',"metadata":',
        state.text,
        b",",
        encode_json(rest)[1:],
    )
    tag = {} if loaded.metadata_location is None else {"etag": etag(loaded.metadata_location, shape)}
    return Answer(200, b"".join(parts), tag)


def etag(location: str, shape: str) -> str:
    """Return an ETag for one state of a table in one shape."""
    digest = hashlib.sha256(location.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f'W/"{digest}-{shape}"'


def is_known(request: Request, tag: str) -> bool:
    """Return whether the client already has the state of an ETag."""
    tags = request.headers.get("if-none-match")
    if tags is None:
        return False
    strong = tag.removeprefix("W/")
    return any(piece.strip().removeprefix("W/") == strong or piece.strip() == "*" for piece in tags.split(","))


def check_namespace(service: Service, request: Request) -> None:
    """Raise an error if a namespace does not exist."""
    if not service.catalog.namespace_exists(request.namespace):
        raise namespace_not_found(request.namespace)


def check_referenced_by(request: Request) -> tuple[Identifier, ...]:
    """Return the views through which a table is loaded, the outermost first; refuse an invalid list."""
    text = request.query.get("referenced-by")
    if text is None:
        return ()
    names = split_views(text)
    for name in names:
        split_identifier(name)
    return names
