"""The process of one untrusted query, with limits on memory, processor time and files, and without secrets.

    python -m frazil.query.worker_process

It reads requests from standard input and writes responses to standard output. It opens no lake and has no credentials:
the server sends the data of the query, and the paths of the files that DuckDB may open. It ends when its input ends.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO, Final

import pyarrow as pa

from frazil.errors import FrazilError
from frazil.query.arrow_types import plain_batch, plain_schema
from frazil.query.batches import BATCH_ROWS
from frazil.query.engine import connect, engine_errors
from frazil.query.messages import (
    BATCH,
    END,
    ERROR,
    JSON,
    PICKLE,
    SCHEMA,
    decode_batch,
    decode_schema,
    encode_batch,
    encode_json,
    encode_schema,
    read_message,
    write_message,
)
from frazil.query.prepared import LocalEngine, PreparedQuery, QueryRun, footer_rows

ADDRESS_SPACE_BYTES: Final = 3 << 30
"""The address space beyond the memory of the query: code, stacks, buffers."""
_MAX_FILE_BYTES: Final = 8 << 30


@dataclass(frozen=True)
class Request:
    """A request to the process of a query; `what` is serialize, describe, columns, explain or rows."""

    what: str
    text: str = ""
    paths: tuple[str, ...] = ()
    query: PreparedQuery | None = None
    streams: tuple[tuple[str, bytes], ...] = ()
    """Names and schemas of tables whose batches follow; the batches of each end with a separate message."""


def limit_process(memory_bytes: int, processor_seconds: float) -> None:
    """Limit the resources of this process."""
    space = ADDRESS_SPACE_BYTES + 2 * memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    seconds = max(1, int(processor_seconds))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MAX_FILE_BYTES, _MAX_FILE_BYTES))


def main() -> None:
    """Handle requests until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides when a query ends
    source, out = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write between messages
    import duckdb  # noqa: F401 - loaded before a query waits for it

    limits = _limits(source)
    if limits is None:
        return
    limit_process(*limits)
    while True:
        try:
            tag, payload = read_message(source)
        except EOFError:
            return
        if tag != PICKLE:
            return
        try:
            _answer(pickle.loads(payload), source, out)  # noqa: S301 - of the server, which started this process
        except FrazilError as error:
            _write_error(out, error)
        except MemoryError:
            _write_error(out, FrazilError("Cannot finish the query: it needs more memory than it may have"))
        except RecursionError:
            _write_error(out, FrazilError("Cannot run the query: it is nested too deeply"))


def _limits(source: BinaryIO) -> tuple[int, float] | None:
    try:
        _, payload = read_message(source)
    except EOFError:
        return None
    memory, seconds = pickle.loads(payload)  # noqa: S301 - of the server
    return memory, seconds


def _write_error(out: BinaryIO, error: FrazilError) -> None:
    tag = type(error).__name__
    write_message(out, ERROR, encode_json({"kind": tag, "message": error.message, "hint": error.hint}))


def _answer(request: Request, source: BinaryIO, out: BinaryIO) -> None:
    engine = LocalEngine()
    if request.what == "serialize":
        write_message(out, JSON, encode_json(engine.serialize(request.text)))
        return
    if request.what == "describe":
        import duckdb

        connection = connect(paths=request.paths)
        try:
            write_message(out, JSON, encode_json(footer_rows(connection, request.paths)))
        except duckdb.Error:
            write_message(out, JSON, encode_json([]))
        finally:
            connection.close()
        return
    assert request.query is not None
    tables = {name: _read_stream(schema, source) for name, schema in request.streams}
    query = replace(request.query, tables={**request.query.tables, **tables})
    run = engine.run(query)
    try:
        if request.what == "columns":
            write_message(out, JSON, encode_json(run.columns))
        elif request.what == "explain":
            write_message(out, JSON, encode_json(run.explain()))
        else:
            _write_rows(run, out)
    finally:
        run.close()


def _write_rows(run: QueryRun, out: BinaryIO) -> None:
    write_message(out, SCHEMA, encode_schema(plain_schema(run.schema())))
    reader = run.reader(BATCH_ROWS)
    while True:
        with engine_errors(run.limits):
            batch = next(reader, None)
        if batch is None:
            break
        write_message(out, BATCH, encode_batch(plain_batch(batch)))
    write_message(out, END)


def _read_stream(schema: bytes, source: BinaryIO) -> pa.Table:
    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            tag, payload = read_message(source)
            if tag == END:
                return
            yield decode_batch(payload)

    return pa.Table.from_batches(batches(), schema=decode_schema(schema))


def _end_with_parent() -> None:
    """End this process when its parent is gone, whatever it is doing."""
    parent = os.getppid()

    def watch() -> None:
        event = threading.Event()
        while not event.wait(1):
            if os.getppid() != parent:
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    _end_with_parent()
    main()
