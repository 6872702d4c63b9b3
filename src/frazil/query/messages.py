"""Messages between a server and the process of one query: a kind, a length, and bytes.

The process of a query sends JSON and Arrow, never pickles, since the query is untrusted.
"""

from __future__ import annotations

import json
import struct
from typing import IO, Any, Final

import pyarrow as pa

from frazil.errors import EngineError

_HEAD: Final = struct.Struct("<cQ")
JSON: Final = b"j"
BATCH: Final = b"b"
SCHEMA: Final = b"s"
END: Final = b"e"
ERROR: Final = b"x"
PICKLE: Final = b"p"
MAX_MESSAGE_BYTES: Final = 1 << 32


def write_message(out: IO[bytes], tag: bytes, payload: bytes | pa.Buffer = b"") -> None:
    """Write one message."""
    out.write(_HEAD.pack(tag, len(payload)))
    out.write(payload)
    out.flush()


def head_size() -> int:
    """Return the number of bytes before a message's content."""
    return _HEAD.size


def parse_head(data: bytes) -> tuple[bytes, int]:
    """Return a message's kind and the length of its content."""
    tag, length = _HEAD.unpack(data)
    if length > MAX_MESSAGE_BYTES:
        raise EngineError(f"Cannot read the answer of a query: it declares a message of {length:,} bytes")
    return tag, length


def read_message(source: IO[bytes]) -> tuple[bytes, bytes]:
    """Read one message; EOFError if there are no more."""
    head = source.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    tag, length = parse_head(head)
    payload = source.read(length)
    if len(payload) < length:
        raise EOFError
    return tag, payload


def encode_json(value: Any) -> bytes:
    """Return a value as JSON."""
    return json.dumps(value).encode()


def encode_batch(batch: pa.RecordBatch) -> pa.Buffer:
    """Return a batch with its schema, as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def encode_schema(schema: pa.Schema) -> bytes:
    """Return the columns of batches that follow."""
    payload: bytes = schema.serialize().to_pybytes()
    return payload


def decode_schema(data: bytes) -> pa.Schema:
    """Return the columns of batches that follow."""
    try:
        return pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, OSError) as error:
        raise EngineError(f"Cannot read the answer of a query: {error}") from error


def decode_batch(data: bytes) -> pa.RecordBatch:
    """Return the batch of an Arrow stream, checked."""
    try:
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
        batch.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise EngineError(f"Cannot read the answer of a query: {error}") from error
    return batch
