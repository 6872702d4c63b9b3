"""Answers for tables that are read as streams: one `StreamSource` for each running query.

Spark sends the requests of a query from one thread, one after the other.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from frazil.catalog.names import format_name
from frazil.codec.json_fields import JsonObject
from frazil.codec.schema_json import decode_schema, encode_schema
from frazil.errors import CommitError, FrazilError, InvalidRequestError, SnapshotNotFoundError
from frazil.lake.sql_session import CURRENT, FullName, Relation, State
from frazil.lake.stream_options import CHANGES_OPTION, StreamOptions, stream_options, update_identifiers
from frazil.lake.table import Table
from frazil.loaded import LoadedTable
from frazil.scan.stream_offsets import START, StreamOffset, parse_offset
from frazil.scan.stream_schema import check_stream_schema
from frazil.scan.stream_steps import NotAppends, StreamLimits, TableStream
from frazil.sessions import requests as r
from frazil.sessions.change_feeds import stream_options_of
from frazil.sessions.context import Context, Reply, handler, lake_of, own_names
from frazil.sessions.source_names import BY_PATH, check_path, find_relation
from frazil.spark.stream.source_frames import BatchReader, StreamColumns, stream_schema
from frazil.spec.options import STREAM_FEED_OPTIONS, STREAM_READ_OPTIONS
from frazil.spec.retention import GUARD_PREFIX
from frazil.spec.schema import Schema
from frazil.spec.snapshot import MAIN_BRANCH
from frazil.spec.table_metadata import TableMetadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GUARD_SECONDS = 60
_TRIES = 10


def named_stream(
    context: Context, relation: Relation, options: Mapping[str, str], changes: r.Changes | None
) -> tuple[str, r.NamedStream]:
    """Return the columns of a table as a stream, and the stream; refuse what cannot be one.

    `changes` are those that a change feed asks for. Options are not checked: a sink that is named by its format is
    loaded in the same way.
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
    """Return a stream with the session's settings among its options; refuse options that it does not take."""
    check_path(relation, stream.options)
    taken = STREAM_READ_OPTIONS if stream.changes is None else STREAM_FEED_OPTIONS
    checked = msgspec.structs.replace(
        stream, options={**context.engine().read_settings(), **taken.check(stream.options)}
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
    """Return what the rows of a stream show."""
    if not options.rules.has_changes:
        return StreamColumns(schema)
    identifiers = update_identifiers(schema, options.identifiers, computes=options.computes_updates)
    return StreamColumns(schema, True, identifiers, keeps_copies=options.keeps_copies)


@dataclass
class StreamSource:
    """One query's stream of one table."""

    full_name: FullName
    table: Table
    options: StreamOptions
    columns: StreamColumns
    begun: StreamOffset = START
    has_end: bool = False
    end_snapshot_id: int | None = None
    reload: Callable[[], LoadedTable] | None = None
    guarded: tuple[float, int] | None = None
    held: set[str] = field(default_factory=set)
    """What the guard of this query was set to."""
    committed: StreamOffset | None = None
    loaded: LoadedTable | None = None
    """The table as it was when the catalog was asked last."""
    newest: tuple[int | None, StreamOffset | None] | None = None
    """The newest snapshot that was seen, and the offset behind it."""
    idle: tuple[int | None, StreamOffset, StreamLimits] | None = None
    """What was asked last, where there was nothing to read."""

    def load(self, *, may_be_old: bool = False) -> LoadedTable:
        """Return the table as it is now; or as it was when the catalog was asked last, once a trigger."""
        if self.loaded is None or not may_be_old:
            loaded = self.table.refresh().state if self.reload is None else self.reload()
            check_stream_schema(str(self.full_name), self.columns.output_schema, loaded.metadata.current_schema)
            self.loaded = loaded
        return self.loaded

    def stream(self, *, is_bounded: bool = True, may_be_old: bool = False) -> TableStream:
        """Return the table's snapshots, up to where the query ends."""
        end = self.end_snapshot_id if is_bounded and self.has_end else None
        found = TableStream(self.load(may_be_old=may_be_old), self.options.rules, self.table._cache)
        if end is None:
            return found
        found.check_reaches(end)
        return replace(found, end_snapshot_id=end)

    def latest(self) -> StreamOffset | None:
        """Return where the table is now."""
        found = self.stream(is_bounded=False, may_be_old=True)
        if self.newest is None or self.newest[0] != found.head_id:
            self.newest = (found.head_id, found.latest())
        return self.newest[1]

    def advance(self, start: StreamOffset | None, limits: StreamLimits) -> StreamOffset | None:
        """Return how far the next batch may read; None where there is nothing to read yet."""
        if start is not None:
            # Spark asks from where the last batch ended that is done for good.
            self.committed = start
            self.hold(start)
        if self.has_end and self.end_snapshot_id is None:
            return start
        begun = self.begun if start is None else start
        stream = self.stream()
        asked = (stream.head_id, begun, limits)
        if asked == self.idle:
            return start
        found = stream.advance(begun, limits)
        self.idle = asked if found == begun else None
        return None if start is None and found == begun else found

    def batch(self, spark: SparkSession, start: StreamOffset | None, end: StreamOffset) -> DataFrame:
        """Return the rows between two offsets.

        Spark asks again for a batch that is done when a query goes on, and never reads it: what is not there any more
        is an error when it is read.
        """
        is_known = self.loaded is not None and self.loaded.metadata.find_snapshot(end.snapshot_id) is not None
        stream = self.stream(is_bounded=False, may_be_old=is_known)
        options = self.options
        reader = BatchReader(
            spark, stream.loaded, self.columns, self.table._cache, options.split_bytes, options.open_file_cost_bytes
        )
        try:
            return reader.rows(stream.between(self.begun if start is None else start, end))
        except SnapshotNotFoundError as error:
            return reader.lost(str(error))

    def lag(self, start: StreamOffset | None) -> dict[str, str]:
        """Return what is not read yet, for the query's progress."""
        try:
            found = self.stream(is_bounded=False, may_be_old=True).lag(self.begun if start is None else start)
        except FrazilError:
            # The next batch says what is wrong.
            return {}
        return {
            "snapshotsBehind": str(found.snapshots),
            "filesBehind": str(found.files),
            "rowsBehind": str(found.rows),
            "bytesBehind": str(found.size_bytes),
        }

    def begin(self) -> StreamOffset:
        """Return where a new stream begins; with a guard, a snapshot that expiry spares from now on."""
        begun = START
        for _ in range(_TRIES):
            begun = self.stream().begin(self.options.start)
            if self.options.guard is None:
                return begun
            metadata = self._guard(self.options.guard, begun)
            if begun.is_start or metadata.find_snapshot(begun.snapshot_id) is not None:
                return begun
            # It expired before it was guarded.
        raise SnapshotNotFoundError(
            f"Cannot begin a stream of {self.full_name}: snapshot {begun.snapshot_id} has expired, "
            "and so did those before",
            hint="Others expire every snapshot at once. Start the query again.",
        )

    def hold(self, offset: StreamOffset, *, is_last: bool = False) -> None:
        """Note how far the stream is, for expiry; at most once a minute, and when the query ends.

        Where others come first, it is noted the next time: an older snapshot holds more.
        """
        name = self.options.guard
        if name is None:
            return
        if self.guarded is not None:
            since, snapshot_id = self.guarded
            is_early = time.monotonic() - since < _GUARD_SECONDS and not is_last
            if snapshot_id == offset.snapshot_id or is_early:
                return
        with contextlib.suppress(CommitError):
            self._guard(name, offset)

    def _guard(self, name: str, offset: StreamOffset) -> TableMetadata:
        table = self.table.refresh()
        key, value = f"{GUARD_PREFIX}{name}", str(offset.snapshot_id)
        found = table.properties.get(key)
        if self.held and found is not None and found not in self.held:
            warnings.warn(
                f"The guard {name!r} of {self.full_name} was moved by another query, and spares what only one of them "
                "needs: give each query a stream-guard of its own",
                stacklevel=2,
            )
        self.held.add(value)
        if found != value:
            table.set_properties({key: value})
        self.guarded = (time.monotonic(), offset.snapshot_id)
        return table.metadata


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
    """Refuse the checkpoint of another table, and a name that another table took since the stream was named."""
    if request.stream.uuid != table_uuid:
        raise InvalidRequestError(
            f"Cannot start a stream of {full_name}: another table has taken its name", hint="Name the table again."
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
            hint="Use another checkpoint, or the one that was used before for this table.",
        )


def _source(request: r.OfTable, context: Context) -> StreamSource:
    source = context.remembered.streams.get(request.key)
    if source is None:
        full_name = format_name((request.catalog, *request.name))
        raise InvalidRequestError(f"Cannot go on with the stream of {full_name}: its query has ended")
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
