"""Untrusted queries, each in a separate process that is killed at a deadline.

Servers, the console and lakes with untrusted content run queries here. If the process dies, the query gets an error,
and the next one a new process. A spare is started in advance, so that a query does not wait for Python.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from frazil import errors
from frazil.errors import CancelledError, EngineError, FrazilError
from frazil.query.column_types import read_columns
from frazil.query.engine import too_long
from frazil.query.limits import Limits
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
    encode_schema,
    head_size,
    parse_head,
    write_message,
)
from frazil.query.native_scan import Footers
from frazil.query.prepared import PreparedQuery
from frazil.query.worker_process import Request
from frazil.threads import default_threads

DEFAULT_SECONDS: Final = 60.0
DEFAULT_MEMORY_BYTES: Final = 1 << 30
_ANSWER_SECONDS: Final = 0.5


class _Spare:
    """A process that is ready for the next query."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def take(self) -> subprocess.Popen[bytes]:
        """Return a process, and start another for the next query."""
        with self._lock:
            process, self._process = self._process, None
        if process is None or process.poll() is not None:
            if process is not None:
                _end(process)
            process = _start()
        threading.Thread(target=self._refill, daemon=True).start()
        return process

    def forget(self) -> None:
        """Forget the waiting process after a fork: it belongs to the parent."""
        self._lock = threading.Lock()
        self._process = None

    def end(self) -> None:
        """End the waiting process."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            _end(process)

    def _refill(self) -> None:
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                _end(self._process)
                self._process = None
            if self._process is None:
                with contextlib.suppress(OSError):
                    self._process = _start()


_SPARE: Final = _Spare()
os.register_at_fork(after_in_child=_SPARE.forget)
_RUNNING: Final[weakref.WeakSet[WorkerEngine]] = weakref.WeakSet()


def end_queries() -> None:
    """End all queries in separate processes, because the server stops."""
    for engine in list(_RUNNING):
        engine.end()
    _SPARE.end()


def _start() -> subprocess.Popen[bytes]:
    # It inherits none of this process's environment variables, which may contain keys.
    environment = {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "LC_ALL": "C.UTF-8"}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "frazil.query.worker_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd="/",
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)


def _end_all(processes: list[subprocess.Popen[bytes]]) -> None:
    while processes:
        _end(processes.pop())


class WorkerEngine:
    """DuckDB in a separate process, for one query and the time of its limits."""

    def __init__(self, limits: Limits) -> None:
        seconds = DEFAULT_SECONDS if limits.timeout_seconds is None else limits.timeout_seconds
        self.limits = replace(
            limits, timeout_seconds=seconds, memory_bytes=min(limits.memory_bytes, DEFAULT_MEMORY_BYTES)
        )
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds
        self._held: list[subprocess.Popen[bytes]] = []
        weakref.finalize(self, _end_all, self._held)
        _RUNNING.add(self)

    # --- requests

    def serialize(self, text: str) -> str:
        """Return the JSON of a query's tree."""
        return str(self._json(Request("serialize", text)))

    def describe(self, paths: Sequence[str]) -> Footers:
        """Return the columns of Parquet files; none if one of them cannot be read."""
        columns_by_path: dict[str, Any] = {}
        for files, rows in self._json(Request("describe", paths=tuple(paths))):
            columns_by_path.update(dict.fromkeys(files, read_columns(rows)))
        return columns_by_path

    def run(self, query: PreparedQuery) -> WorkerRun:
        """Start a query."""
        return WorkerRun(self, query)

    def _json(self, request: Request) -> Any:
        self.send(request)
        tag, payload = self.receive()
        if tag != JSON:
            raise self._failed("it sent an invalid response")
        return json.loads(payload)

    # --- messages

    def begin(self) -> None:
        """Start a process for another run of the query."""
        self._deadline = time.monotonic() + self._seconds

    def send(self, request: Request) -> None:
        """Send a request, to a new process if there is none."""
        self._write(PICKLE, pickle.dumps(request))

    def _write(self, tag: bytes, payload: bytes | pa.Buffer) -> None:
        if not self._held:
            self._held.append(_SPARE.take())
            self._write(PICKLE, pickle.dumps((self.limits.memory_bytes, self._seconds * default_threads() + 5)))
        process = self._held[0]
        assert process.stdin is not None
        # A process that no longer reads must not block the server: it is killed at the deadline.
        timer = threading.Timer(max(0.0, self._deadline - time.monotonic()), process.kill)
        timer.start()
        try:
            write_message(process.stdin, tag, payload)
        except (BrokenPipeError, ValueError, OSError):
            raise self._failed("its process ended") from None
        finally:
            timer.cancel()

    def send_batches(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Send the rows of one table."""
        for batch in batches:
            self._write(BATCH, encode_batch(batch))
        self._write(END, b"")

    def receive(self) -> tuple[bytes, bytes]:
        """Return the next message, or raise the error that the process sent."""
        tag, length = parse_head(self._read(head_size()))
        payload = self._read(length)
        if tag == ERROR:
            raise _error_of(payload)
        return tag, payload

    def _read(self, size: int) -> bytes:
        if not self._held or self._held[0].stdout is None:
            raise self._failed("its process ended")
        process = self._held[0]
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        parts: list[bytes] = []
        while size:
            remaining = self._deadline - time.monotonic()
            # DuckDB's own limit is reached first and has a better message.
            if (
                remaining + _ANSWER_SECONDS <= 0
                or not select.select([descriptor], [], [], remaining + _ANSWER_SECONDS)[0]
            ):
                self.close()
                raise self._too_long()
            data = os.read(descriptor, min(size, 1 << 20))
            if not data:
                raise self._failed("its process ended")
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def _too_long(self) -> CancelledError:
        return too_long(self._seconds, "Narrow the query down, or run it in your own process.")

    def _failed(self, reason: str) -> FrazilError:
        code = None
        for process in self._held:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(1)
        self.close()
        if time.monotonic() >= self._deadline or code == -signal.SIGXCPU:
            return self._too_long()
        if code is not None and code < 0:
            reason = f"its process was ended by signal {-code}, probably for lack of memory"
        return EngineError(f"Cannot finish the query: {reason}", hint="Narrow the query down, or run it on Spark.")

    def close(self) -> None:
        """End the process."""
        _end_all(self._held)

    def end(self) -> None:
        """Kill the process from another thread: the thread that reads from it gets an error."""
        for process in list(self._held):
            process.kill()


class WorkerRun:
    """A query in a separate process. It is sent when its first result is needed."""

    def __init__(self, engine: WorkerEngine, query: PreparedQuery) -> None:
        self._engine = engine
        self._query = replace(query, limits=engine.limits)
        self._schema: pa.Schema | None = None

    @property
    def limits(self) -> Limits:
        """The limits of the query."""
        return self._query.limits

    def _send(self, what: str) -> None:
        sources = self._query.sources
        streams = tuple((name, encode_schema(source.schema)) for name, source in sources.items())
        self._engine.send(Request(what, query=replace(self._query, sources={}), streams=streams))
        for source in sources.values():
            self._engine.send_batches(source.to_batches())

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The names of the columns, with the names of their types in DuckDB."""
        self._send("columns")
        return [(str(name), str(tag)) for name, tag in json.loads(self._engine.receive()[1])]

    def explain(self) -> str:
        """Return DuckDB's plan."""
        self._send("explain")
        return str(json.loads(self._engine.receive()[1]))

    def schema(self) -> pa.Schema:
        """Return the columns; the query begins to run."""
        if self._schema is None:
            self._send("rows")
            tag, payload = self._engine.receive()
            if tag != SCHEMA:
                raise EngineError("Cannot finish the query: its process sent an invalid response")
            self._schema = decode_schema(payload)
        return self._schema

    def reader(self, batch_rows: int) -> Any:
        """Return the rows as they are computed."""
        self.schema()
        return self._batches()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        while True:
            tag, payload = self._engine.receive()
            if tag == END:
                return
            yield decode_batch(payload)

    def progress(self) -> float:
        """Return -1: the progress is unknown."""
        return -1.0

    def interrupt(self) -> None:
        """End the process."""
        self._engine.close()

    def close(self) -> None:
        """End the process."""
        self._engine.close()


def _error_of(payload: bytes) -> FrazilError:
    try:
        fields = json.loads(payload)
        tag = getattr(errors, str(fields["kind"]), FrazilError)
        tag = tag if isinstance(tag, type) and issubclass(tag, FrazilError) else FrazilError
        if tag.__init__ is not FrazilError.__init__:
            tag = EngineError
        return tag(str(fields["message"]), hint=fields.get("hint"))
    except (ValueError, KeyError, TypeError):
        return EngineError("Cannot finish the query: its process sent an invalid response")
