"""Rows of an Avro container as Arrow columns, decoded in large batches.

The Avro reader of DataFusion decodes about half a million manifest entries a second, twenty times as many as Python.
However, it only reads files, selects fields by name, refuses records without fields, trusts its input, and never
returns from a block that holds more bytes than its rows take. It is therefore given specially prepared files:

1. The blocks are found, checked and inflated here, within limits (`codec/avro_container.py`).
2. The schema is flattened (`codec/avro_schema.py`): every leaf is a column with a generated name, so that unrequested
   columns are skipped and not built.
3. The rows of several blocks become one uncompressed block of a new file, followed by one more row, the sentinel,
   which holds a random token.
4. Exactly that many rows are read in one batch. If the last of them holds the token, the rows ended where the blocks
   said. If not, a count or a length was wrong.

The files have no names and live in memory if the system supports that (`codec/avro_scratch.py`). Lists with the same
layout in every row are read as blocks of bytes (`codec/avro_stamps.py`); this is checked, and abandoned if the check
fails. Chunks of a large container are decoded on several threads; inflating and decoding both release the GIL.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from frazil.codec.avro_arrow import arrow_type
from frazil.codec.avro_codecs import CodecRefusal, decompress_block
from frazil.codec.avro_container import (
    CODEC_KEY,
    DEFAULT_LIMITS,
    SCHEMA_KEY,
    AvroBlock,
    AvroHeader,
    AvroLimits,
    AvroOrigin,
    encode_header,
    find_blocks,
)
from frazil.codec.avro_rows import RowsRefusal, decode_rows
from frazil.codec.avro_schema import AvroType, Leaf, plain_schema
from frazil.codec.avro_scratch import ScratchFile, spare_files
from frazil.codec.avro_stamps import (
    Shape,
    Stamp,
    StampRefusal,
    first_row_fits,
    guess_shapes,
    make_stamps,
    past_guesses,
    read_stamp,
)
from frazil.codec.varint import encode_zigzag
from frazil.errors import CorruptTableError, StorageError
from frazil.threads import map_in_order

_CHUNK_BYTES = 8 << 20
"""Inflated bytes decoded at once; more brings no gain, less costs more calls."""
_MIN_TASK_BYTES = 1 << 20
"""The fewest compressed bytes that a thread takes at a time."""
_FEW_BYTES = 16 << 10
_STAMPED_ROWS = 64
"""With fewer rows, guessing a common layout takes longer than reading them."""
_STAMPED_BYTES = 64 << 20
"""Larger chunks, which consist of one huge block, are read item by item."""
_ARROW_WIDTHS = {"boolean": 1, "int": 4, "long": 8, "float": 4, "double": 8}


def decode_leaves(
    data: bytes,
    header: AvroHeader,
    leaves: list[Leaf],
    wanted: Sequence[int],
    origin: AvroOrigin,
    *,
    limits: AvroLimits = DEFAULT_LIMITS,
    threads: int = 1,
    small_bytes: int | None = None,
) -> pa.Table:
    """Return the leaves at some positions for all rows, as columns `c<position>` of their Avro types.

    Rows keep their order, and columns have one chunk per decoded piece of the container. Containers whose rows take
    fewer than `small_bytes` are decoded in Python; without it, those for which that is faster.
    """
    blocks = find_blocks(data, header, origin)
    job = _Job(data, header, leaves, wanted, origin, limits)
    small_bytes = _decoders.small_bytes() if small_bytes is None else small_bytes
    if sum(block.end - block.start for block in blocks) < small_bytes:
        contents = [job.inflate(block) for block in blocks]
        if sum(map(len, contents)) < small_bytes:
            return job.decode_in_python(blocks, contents)
        job.budget.forget()
    tasks = list(_split(blocks, threads))
    batches = [batch for group in map_in_order(job.decode, tasks, threads=min(threads, len(tasks))) for batch in group]
    return pa.Table.from_batches(batches) if batches else _empty(leaves, wanted)


class _Decoders:
    """The choice of decoder, by the size of a container and what the process has decoded so far."""

    def __init__(self) -> None:
        self._python_bytes_left = 512 << 10
        self._datafusion_process: int | None = None

    def small_bytes(self) -> int:
        """Return the size below which rows are decoded in Python.

        Loading DataFusion takes as long as decoding half a MiB in Python. In a fork of a process that has used it,
        its threads are missing and it would wait for them forever.
        """
        if self._datafusion_process is None:
            return max(_FEW_BYTES, min(64 << 10, self._python_bytes_left))
        return _FEW_BYTES if self._datafusion_process == os.getpid() else sys.maxsize

    def count_python(self, size: int) -> None:
        """Count bytes decoded in Python."""
        self._python_bytes_left -= size

    def use_datafusion(self) -> None:
        """Record that DataFusion has threads in this process."""
        if self._datafusion_process is None:
            self._datafusion_process = os.getpid()


_decoders = _Decoders()


def _split(blocks: list[AvroBlock], threads: int) -> Iterator[list[AvroBlock]]:
    """Yield runs of blocks for threads to take, three per thread, so that none waits long for the last."""
    if threads <= 1:
        yield blocks
        return
    share = sum(block.end - block.start for block in blocks) // (3 * threads)
    task: list[AvroBlock] = []
    size = 0
    for block in blocks:
        task.append(block)
        size += block.end - block.start
        if size >= max(share, _MIN_TASK_BYTES):
            yield task
            task, size = [], 0
    if task:
        yield task


class _Budget:
    """The bytes a file may still inflate to and its columns may still take; thread-safe."""

    def __init__(self, limit: int, origin: AvroOrigin) -> None:
        self.limit = limit
        self.origin = origin
        self._inflated = 0
        self._kept = 0
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """The number of bytes that blocks may still inflate to."""
        return self.limit - self._inflated

    def forget(self) -> None:
        """Restart the count, for blocks that are inflated a second time."""
        self._inflated = 0

    def inflate(self, size: int) -> None:
        """Count the bytes of an inflated block."""
        with self._lock:
            self._inflated += size
            if self._inflated > self.limit:
                raise self._exceeded()

    def check_chunk(self, worst: int) -> None:
        """Refuse to decode a chunk whose columns could exceed the remaining budget."""
        if self._kept + worst > self.limit:
            raise self._exceeded()

    def keep(self, size: int) -> None:
        """Count the memory of decoded columns."""
        with self._lock:
            self._kept += size

    def _exceeded(self) -> Exception:
        return self.origin.fail(
            f"it inflates to more than the {self.limit} bytes that a file of its size may",
            hint="If the file is sound, raise the limits of reading (AvroLimits).",
        )


class _Job:
    """The decoding of one container; thread-safe."""

    def __init__(
        self,
        data: bytes,
        header: AvroHeader,
        leaves: list[Leaf],
        wanted: Sequence[int],
        origin: AvroOrigin,
        limits: AvroLimits,
    ) -> None:
        self.data = memoryview(data)
        self.header = header
        self.leaves = leaves
        self.wanted = tuple(wanted)
        self.origin = origin
        self.budget = _Budget(limits.inflated_bytes(len(data)), origin)
        self.row_bytes = sum(leaf.avro_type.min_size for leaf in leaves)
        """The fewest bytes a row takes."""
        self._schema = header.metadata[SCHEMA_KEY]
        self._shapes: Mapping[int, Shape] | None = None
        self._borrowed: Mapping[int, Shape] | None = None
        """Shapes that fitted another file with the same schema."""

    def decode(self, blocks: list[AvroBlock]) -> list[pa.RecordBatch]:
        """Return the rows of some blocks."""
        batches: list[pa.RecordBatch] = []
        chunk = _Chunk([])
        with spare_files.borrow() as file:
            for block in blocks:
                chunk.blocks.append((block.count, self.inflate(block)))
                chunk.rows += block.count
                chunk.size += len(chunk.blocks[-1][1])
                if chunk.size >= _CHUNK_BYTES:
                    batches.append(self._decode_chunk(chunk, file))
                    chunk = _Chunk([])
            if chunk.rows:
                batches.append(self._decode_chunk(chunk, file))
        return batches

    def inflate(self, block: AvroBlock) -> bytes:
        """Return the rows of a block as bytes, within the budget."""
        try:
            content = decompress_block(self.header.codec, self.data[block.start : block.end], self.budget.left)
        except CodecRefusal as problem:
            raise self.origin.fail(f"the block at byte {block.start} cannot be inflated: {problem}") from problem
        self.budget.inflate(len(content))
        # Rows of no bytes cannot be counted.
        if self.row_bytes == 0 or block.count * self.row_bytes > len(content):
            raise self.origin.fail(
                f"the block at byte {block.start} declares {block.count} rows in {len(content)} bytes"
            )
        return content

    def decode_in_python(self, blocks: list[AvroBlock], contents: list[bytes]) -> pa.Table:
        """Return the rows of small blocks without DataFusion."""
        size = sum(map(len, contents))
        _decoders.count_python(size)
        self.budget.check_chunk(size * max((_growth(self.leaves[index].avro_type) for index in self.wanted), default=1))
        counts = [block.count for block in blocks]
        try:
            arrays = decode_rows(zip(counts, contents, strict=True), self.leaves, self.wanted)
        except RowsRefusal as problem:
            raise self.origin.fail(f"its rows do not follow its schema ({problem})") from None
        return pa.Table.from_arrays(arrays, names=[f"c{index}" for index in self.wanted])

    def _decode_chunk(self, chunk: _Chunk, file: ScratchFile) -> pa.RecordBatch:
        """Return the rows of a chunk, reading as stamps the leaves that allow it."""
        guessed = shapes = self._shapes_for(chunk)
        while True:
            layout = _Layout(self.leaves, make_stamps(shapes, self.leaves), self.origin)
            try:
                batch = self._read_chunk(chunk, layout, file)
            except (StampRefusal, CorruptTableError) as problem:
                if shapes and shapes is self._borrowed:
                    # A layout from another file proves nothing about this one.
                    self._borrowed = None
                    guessed = shapes = self._shapes = self._guess_anew(chunk)
                    continue
                if isinstance(problem, StampRefusal):
                    shapes = {index: shape for index, shape in shapes.items() if index != problem.leaf}
                    continue
                if not shapes:
                    raise
                # Either the guess or the bytes are wrong. Try a better guess, then item by item.
                better = self._guess(chunk, few=False)
                better = {index: better[index] for index in shapes if index in better}
                shapes = better if len(better) < len(shapes) else {}
            else:
                if guessed and shapes is not past_guesses.of(self._schema).right:
                    self._shapes = shapes
                    past_guesses.remember(self._schema, shapes, guessed.keys() - shapes.keys())
                return batch

    def _shapes_for(self, chunk: _Chunk) -> Mapping[int, Shape]:
        """Return the shapes to try: those of a previous file with this schema, or a guess from the first chunk."""
        if chunk.rows < _STAMPED_ROWS or chunk.size > _STAMPED_BYTES:
            return {}
        if self._shapes is None:
            past = past_guesses.of(self._schema).right
            if past and first_row_fits(chunk.blocks[0][1], self.leaves, past):
                self._shapes = self._borrowed = past
            else:
                self._shapes = self._guess_anew(chunk)
        return self._shapes

    def _guess_anew(self, chunk: _Chunk) -> Mapping[int, Shape]:
        unshaped = past_guesses.of(self._schema).wrong
        return {index: shape for index, shape in self._guess(chunk, few=True).items() if index not in unshaped}

    def _guess(self, chunk: _Chunk, *, few: bool) -> dict[int, Shape]:
        return guess_shapes(chunk.blocks, self.leaves, _token_position(self.leaves, self.origin), few=few)

    def _read_chunk(self, chunk: _Chunk, layout: _Layout, file: ScratchFile) -> pa.RecordBatch:
        rows, size = chunk.rows, chunk.size
        stamped = {index for stamp in layout.stamps for index in stamp.shapes}
        plain = [index for index in dict.fromkeys((layout.token_at, *self.wanted)) if index not in stamped]
        self.budget.check_chunk(
            size * max(_growth(self.leaves[position].avro_type) for position in (*plain, *self.wanted))
        )
        sync = self.header.sync
        head = layout.header(sync) + encode_zigzag(rows + 1) + encode_zigzag(size + len(layout.sentinel))
        try:
            path = file.write((head, *(content for _, content in chunk.blocks), layout.sentinel, sync), size)
        except OSError as error:
            raise StorageError(
                f"Cannot read {self.origin.what}: no temporary file of {size} bytes can be written",
                hint="Free some space where temporary files are kept.",
                path=self.origin.path,
            ) from error
        names = [*(f"c{position}" for position in plain), *(stamp.name for stamp in layout.stamps)]
        batch = _read_batch(path, names, rows + 1, self.origin)
        if batch is None or batch.num_rows != rows + 1 or not _is_token(batch.column(0)[rows].as_py(), layout.token):
            raise self.origin.fail(f"{rows} rows do not end where their blocks do")
        arrays = {position: batch.column(index).slice(0, rows) for index, position in enumerate(plain)}
        if layout.stamps:
            # The columns of a batch share their memory; copying releases that of the stamps.
            memory = pa.default_cpu_memory_manager()
            arrays = {position: array.copy_to(memory) for position, array in arrays.items() if position in self.wanted}
        for index, stamp in enumerate(layout.stamps, len(plain)):
            arrays |= read_stamp(stamp, batch.column(index), self.wanted, self.leaves)
        batch_of_leaves = pa.RecordBatch.from_arrays(
            [arrays[position] for position in self.wanted], names=[f"c{position}" for position in self.wanted]
        )
        self.budget.keep(batch_of_leaves.nbytes)
        return batch_of_leaves


@dataclass(slots=True)
class _Chunk:
    """Inflated blocks to be decoded at once, each with its number of rows."""

    blocks: list[tuple[int, bytes]]
    rows: int = 0
    size: int = 0


class _Layout:
    """The schema and the sentinel of a file prepared for DataFusion."""

    def __init__(self, leaves: list[Leaf], stamps: list[Stamp], origin: AvroOrigin) -> None:
        self.stamps = stamps
        patterns = {index: shape.pattern for stamp in stamps for index, shape in stamp.shapes.items()}
        self.token_at = _token_position(leaves, origin)
        self.token, encoded = _make_token(leaves[self.token_at].avro_type)
        pieces = [
            patterns[index] if index in patterns else _default(leaf.avro_type) for index, leaf in enumerate(leaves)
        ]
        pieces[self.token_at] = encoded
        self.sentinel = b"".join(pieces)
        self._fields: list[dict[str, Any]] = []
        first = {min(stamp.shapes): stamp for stamp in stamps}
        for field in plain_schema(leaves)["fields"]:
            position = int(field["name"][1:])
            if position in first:
                fixed = {"type": "fixed", "name": first[position].name, "size": len(first[position].pattern)}
                self._fields.append({"name": first[position].name, "type": fixed})
            elif position not in patterns:
                self._fields.append(field)

    def header(self, sync: bytes) -> bytes:
        """Return the container header of a prepared file."""
        schema = {"type": "record", "name": "row", "fields": self._fields}
        return encode_header({SCHEMA_KEY: json.dumps(schema).encode(), CODEC_KEY: b"null"}, sync)


def _read_batch(path: Path, columns: list[str], rows: int, origin: AvroOrigin) -> pa.RecordBatch | None:
    """Return the first batch of a file, which holds all of its rows, or None if there are several batches."""
    import datafusion

    _decoders.use_datafusion()
    config = datafusion.SessionConfig().with_target_partitions(1).with_batch_size(rows)
    try:
        context = datafusion.SessionContext(config)
        frame = context.read_avro(path.as_uri(), file_extension="").select(*columns).limit(rows)
        batches = [batch.to_pyarrow() for batch in frame.execute_stream()]
    except Exception as error:
        raise origin.fail(f"its rows do not follow its schema ({_reason(error)})") from None
    except BaseException as error:
        # A Rust panic is not an Exception; here it means that the bytes are invalid.
        if type(error).__name__ != "PanicException":
            raise
        raise origin.fail(f"its rows do not follow its schema ({_reason(error)})") from None
    return batches[0] if len(batches) == 1 else None


def _reason(error: BaseException) -> str:
    return str(error).splitlines()[0].rpartition("error: ")[2][:120] if str(error) else type(error).__name__


def _token_position(leaves: list[Leaf], origin: AvroOrigin) -> int:
    """Return the position of the first leaf that can hold a token.

    It must be the first, so that surplus bytes before the sentinel cannot pass as the fields in front of it.
    """
    position = next((index for index, leaf in enumerate(leaves) if _can_hold_token(leaf.avro_type)), None)
    if position is None:
        raise origin.fail("its schema has no field that manifests have")
    return position


def _can_hold_token(avro_type: AvroType) -> bool:
    return avro_type.kind in ("int", "long", "bytes", "string") or (avro_type.kind == "fixed" and avro_type.size >= 4)


def _make_token(avro_type: AvroType) -> tuple[Any, bytes]:
    """Return a random value of a type, and its encoded bytes."""
    token, encoded = _random_value(avro_type)
    return token, encode_zigzag(1 - avro_type.null_branch) + encoded if avro_type.is_optional else encoded


def _random_value(avro_type: AvroType) -> tuple[Any, bytes]:
    if avro_type.kind in ("int", "long"):
        number = (1 << 30) | secrets.randbits(30)
        return number, encode_zigzag(number)
    if avro_type.kind == "fixed":
        raw = secrets.token_bytes(avro_type.size)
        return raw, raw
    text = secrets.token_hex(16)
    return text, encode_zigzag(len(text)) + text.encode()


def _is_token(value: Any, token: Any) -> bool:
    return bool(value == token or (isinstance(value, bytes) and isinstance(token, str) and value == token.encode()))


def _default(avro_type: AvroType) -> bytes:
    """Return the encoding of the shortest value of a type, null if it is optional."""
    if avro_type.is_optional:
        return encode_zigzag(avro_type.null_branch)
    if avro_type.kind == "record":
        return b"".join(_default(field.avro_type) for field in avro_type.fields)
    return bytes(avro_type.size if avro_type.kind == "fixed" else avro_type.min_size)


def _growth(avro_type: AvroType) -> int:
    """Return the most bytes of columns that one byte of rows can become, rounded up."""
    if avro_type.kind in ("array", "map"):
        assert avro_type.items is not None
        width = max(5, _growth(avro_type.items))
    elif avro_type.kind == "record":
        width = max((_growth(field.avro_type) for field in avro_type.fields), default=1)
    else:
        width = 1 if avro_type.kind == "fixed" else _ARROW_WIDTHS.get(avro_type.kind, 5)
    return max(width, _null_width(avro_type)) if avro_type.is_optional else width


def _null_width(avro_type: AvroType) -> int:
    """Return how many bytes of columns a null takes, which is one byte of a row."""
    if avro_type.kind == "record":
        return sum(_null_width(field.avro_type) for field in avro_type.fields)
    return avro_type.size if avro_type.kind == "fixed" else _ARROW_WIDTHS.get(avro_type.kind, 5)


def _empty(leaves: list[Leaf], wanted: Sequence[int]) -> pa.Table:
    """Return the table of a container without rows."""
    return pa.table({f"c{index}": pa.array([], arrow_type(leaves[index].avro_type)) for index in wanted})
