"""Handles requests for tables that are read as streams.

Spark sends the requests of a query from one thread, one after the other.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from frazil.catalog.names import format_name
from frazil.codec.json_fields import JsonObject
from frazil.codec.schema_json import decode_schema, encode_schema
from frazil.errors import InvalidRequestError
from frazil.jar.options import STREAM_FEED_OPTIONS, STREAM_READ_OPTIONS
from frazil.sessions import requests as r
from frazil.sessions.change_feeds import stream_options_of
from frazil.sessions.context import Context, Reply, handler, lake_of, own_names
from frazil.sessions.source_names import BY_PATH, check_path, find_relation
from frazil.sessions.stream_options import CHANGES_OPTION, StreamOptions, stream_options, update_identifiers
from frazil.sessions.stream_source import StreamSource
from frazil.spark.stream.source_frames import StreamColumns, stream_schema
from frazil.spec.schema import Schema
from frazil.spec.snapshot import MAIN_BRANCH
from frazil.streams.offsets import START, StreamOffset, parse_offset
from frazil.streams.steps import NotAppends, StreamLimits
from frazil.table.sql_session import CURRENT, FullName, Relation, State


def named_stream(
    context: Context, relation: Relation, options: Mapping[str, str], changes: r.Changes | None
) -> tuple[str, r.NamedStream]:
    """Return the columns of a table as a stream, and the stream; refuse unsuitable tables.

    `changes` is the change feed, if one is requested. Options are not checked, since a sink named by its format is
    loaded
    in the same way.
    """
    full_name, state = relation.full_name, relation.state
    if relation.metadata_table is not None:
        raise InvalidRequestError(f"Cannot stream {full_name}.{relation.metadata_table}: it is a metadata table")
    if state != CURRENT and state.branch is None:
        raise InvalidRequestError(
            f"Cannot stream {full_name} in one state: it never changes", hint="Stream the table, or a branch of it."
        )
    current_schema = relation.table.metadata.current_schema
    word = next((value for key, value in options.items() if key.lower() == CHANGES_OPTION), "")
    has_changes = changes is not None or word.strip().lower() == NotAppends.CHANGES.value
    stream = r.NamedStream(
        schema=encode_schema(current_schema),
        uuid=str(relation.table.metadata.table_uuid),
        name=full_name.name,
        branch=state.branch,
        options=dict(options),
        changes=changes,
    )
    return stream_schema(StreamColumns(current_schema, has_changes), context.spark).json(), stream


def checked_stream(context: Context, relation: Relation, stream: r.NamedStream) -> r.NamedStream:
    """Return a stream with the session's settings added to its options; refuse unsupported options."""
    check_path(relation, stream.options)
    option_list = STREAM_READ_OPTIONS if stream.changes is None else STREAM_FEED_OPTIONS
    checked = msgspec.structs.replace(
        stream, options={**context.engine().read_settings(), **option_list.check(stream.options)}
    )
    options = _options(relation, checked)
    metadata, branch = relation.table.metadata, options.rules.branch
    if branch != MAIN_BRANCH and not metadata.ref(branch).is_branch:
        raise InvalidRequestError(f"Cannot stream {relation.full_name}: {branch!r} is a tag, which never moves")
    columns_of(metadata.current_schema, options)
    return checked


def _options(relation: Relation, stream: r.NamedStream) -> StreamOptions:
    options = stream.options
    if stream.changes is not None:
        state = State(branch=stream.branch or options.get("branch"))
        options = stream_options_of(replace(relation, state=state), stream.changes, options)
    return stream_options(options, stream.branch)


def columns_of(schema: Schema, options: StreamOptions) -> StreamColumns:
    """Return the columns of a stream's rows."""
    if not options.rules.has_changes:
        return StreamColumns(schema)
    identifiers = update_identifiers(schema, options.identifiers, computes=options.computes_updates)
    return StreamColumns(schema, True, identifiers, keeps_copies=options.keeps_copies)


def _check(request: r.StreamCheck, context: Context) -> Reply:
    relation = find_relation(own_names(request), _full_name(request))
    return r.encode(checked_stream(context, relation, request.stream))


def _full_name(request: r.StreamCheck | r.StreamOpen) -> FullName:
    return FullName(request.catalog, lake_of(request), request.stream.name)


def _open(request: r.StreamOpen, context: Context) -> Reply:
    full_name, names = _full_name(request), own_names(request)
    relation = find_relation(names, full_name)
    options = _options(relation, request.stream)
    schema = decode_schema(JsonObject(request.stream.schema, heading="Schemas and Data Types"))
    source = StreamSource(full_name, relation.table, options, columns_of(schema, options))
    if full_name.name[0] == BY_PATH:
        source.reload = lambda: find_relation(names, full_name).table.state
    stream = source.stream()
    table_uuid = str(stream.loaded.metadata.table_uuid)
    _check_table(request, full_name, table_uuid)
    source.begun = source.begin() if request.begun is None else parse_offset(request.begun)
    if source.begun.is_start and source.begun.since_ms is None:
        source.begun = replace(source.begun, since_ms=options.start.timestamp_ms)
    key = uuid.uuid4().hex
    context.remembered.streams[key] = source
    limits = options.limits
    return r.encode(
        r.Opened(
            key=key,
            begun=source.begun.text,
            table=json.dumps({"version": 1, "table-uuid": table_uuid, "name": str(full_name)}),
            limits=r.Limits(files=limits.files, rows=limits.rows, bytes=limits.size_bytes),
            guards=options.guard is not None,
        )
    )


def _check_table(request: r.StreamOpen, full_name: FullName, table_uuid: str) -> None:
    """Refuse the checkpoint of another table, and a name that now belongs to another table."""
    if request.stream.uuid != table_uuid:
        raise InvalidRequestError(
            f"Cannot start a stream of {full_name}: another table has replaced it", hint="Name the table again."
        )
    if request.table is None:
        return
    try:
        checkpoint = json.loads(request.table)
        read_uuid, read_name = checkpoint["table-uuid"], checkpoint["name"]
    except (ValueError, KeyError, TypeError):
        raise InvalidRequestError(
            f"Cannot start a stream of {full_name}: the checkpoint's {request.checkpoint}/table is damaged",
            hint="Delete that file if the checkpoint is this table's.",
        ) from None
    if read_uuid != table_uuid:
        raise InvalidRequestError(
            f"Cannot start a stream of {full_name}: the checkpoint is of {read_name}, another table "
            f"({read_uuid}, not {table_uuid})",
            hint="Use another checkpoint, or the previous one of this table.",
        )


def _source(request: r.OfTable, context: Context) -> StreamSource:
    source = context.remembered.streams.get(request.key)
    if source is None:
        full_name = format_name((request.catalog, *request.name))
        raise InvalidRequestError(f"Cannot continue the stream of {full_name}: its query has ended")
    return source


def _offset(text: str | None) -> StreamOffset | None:
    return None if text is None else parse_offset(text)


def _text(offset: StreamOffset | None) -> str | None:
    return None if offset is None else offset.text


def _advance(request: r.StreamAdvance, context: Context) -> Reply:
    limits = StreamLimits(request.limits.files, request.limits.rows, request.limits.bytes)
    source = _source(request, context)
    offset, latest = source.advance(_offset(request.start), limits), source.latest()
    return r.encode(r.Advanced(offset=_text(offset), latest=_text(latest), lag=source.lag(offset)))


def _batch(request: r.StreamBatch, context: Context) -> Reply:
    frame = _source(request, context).batch(context.spark, _offset(request.start), _offset(request.end) or START)
    return frame._jdf


def _latest(request: r.StreamLatest, context: Context) -> Reply:
    return r.encode(_text(_source(request, context).latest()))


def _lag(request: r.StreamLag, context: Context) -> Reply:
    return r.encode(_source(request, context).lag(_offset(request.start)))


def _end(request: r.StreamEnd, context: Context) -> Reply:
    source = _source(request, context)
    source.end_snapshot_id, source.has_end = source.stream().head_id, True


def _commit(request: r.StreamCommit, context: Context) -> Reply:
    end = _offset(request.end)
    if end is not None:
        source = _source(request, context)
        source.committed = end
        source.hold(end)


def _stop(request: r.StreamStop, context: Context) -> Reply:
    source = context.remembered.streams.pop(request.key, None)
    if source is not None and source.committed is not None:
        source.hold(source.committed, is_last=True)


STREAM_HANDLERS = dict(
    (
        handler(r.StreamCheck, _check),
        handler(r.StreamOpen, _open),
        handler(r.StreamAdvance, _advance),
        handler(r.StreamBatch, _batch),
        handler(r.StreamLatest, _latest),
        handler(r.StreamLag, _lag),
        handler(r.StreamEnd, _end),
        handler(r.StreamCommit, _commit),
        handler(r.StreamStop, _stop),
    )
)
