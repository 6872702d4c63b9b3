"""Mutated manifests and manifest lists: an answer or an error of ours, soon, in bounded memory."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frazil.codec.manifest_avro import decode_manifest, iter_entries
from frazil.codec.manifest_list_avro import decode_manifest_list
from frazil.errors import CorruptTableError, UnsupportedError
from tests.support.avro_builders import (
    DAY,
    compress,
    container,
    entry,
    entry_schema,
    list_row,
    manifest_list_schema,
    rows_of,
)

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SECONDS_PER_INPUT = 5.0
MEMORY_GROWTH_MIB = 512
TOKENS = [b"\xff" * 9 + b"\x01", b"\x00", b"\x01", b"\x02", b"\x80", b"\xff", b"\x7f", b"\x80\x80\x80\x80\x08"]
CODECS = ("null", "deflate", "snappy", "zstandard")


def mutate(data: bytes, source: random.Random) -> bytes:
    """Flip, overwrite, cut, repeat or insert a few bytes."""
    changed = bytearray(data)
    for _ in range(source.randrange(1, 6)):
        at = source.randrange(len(changed) + 1)
        kind = source.randrange(6)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << source.randrange(8)
        elif kind == 1:
            token = source.choice(TOKENS)
            changed[at : at + len(token)] = token
        elif kind == 2:
            changed[at:at] = source.choice(TOKENS)
        elif kind == 3:
            del changed[at : at + source.randrange(1, 20)]
        elif kind == 4:
            changed[at:at] = changed[max(0, at - source.randrange(1, 200)) : at]
        elif at < len(changed):
            changed[at] = source.randrange(256)
    return bytes(changed)


def mutate_schema(schema: Any, source: random.Random) -> Any:
    """Change one node of a schema."""
    text = json.dumps(schema)
    words = [
        '"int"',
        '"long"',
        '"bytes"',
        '"string"',
        '"null"',
        '"record"',
        '"array"',
        '"boolean"',
        '"fixed"',
        "0",
        "2",
    ]
    old, new = source.choice(words), source.choice([*words, "[]", "{}", "-1", '["null", "int"]', "4294967296"])
    places = [at for at in range(len(text)) if text.startswith(old, at)]
    if not places:
        return schema
    at = source.choice(places)
    return (text[:at] + new + text[at + len(old) :]).encode()


def make_inputs(schema: dict[str, Any], rows: list[dict[str, Any]], source: random.Random) -> bytes:
    """One mutated container: its frames, its compressed blocks, its rows or its schema."""
    content = rows_of(schema, rows)
    codec = source.choice(CODECS)
    kind = source.randrange(4)
    if kind == 0:
        return mutate(container(schema, (len(rows), compress(codec, content)), codec=codec), source)
    if kind == 1:
        return container(schema, (len(rows), mutate(compress(codec, content), source)), codec=codec)
    if kind == 2:
        return container(schema, (len(rows), compress(codec, mutate(content, source))), codec=codec)
    return container(mutate_schema(schema, source), (len(rows), compress(codec, content)), codec=codec)


def fuzz(
    seconds: float, schema: dict[str, Any], sizes: dict[int, list[dict[str, Any]]], read: Callable[[bytes], Any]
) -> None:
    """Read mutated inputs for a while; the seed of each is its number, so that a failure can be repeated."""
    baseline = peak = 0
    number = refused = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        source = random.Random(number)
        data = make_inputs(schema, sizes[source.choice(list(sizes))], source)
        begin = time.monotonic()
        try:
            read(data)
        except (CorruptTableError, UnsupportedError):
            refused += 1
        assert time.monotonic() - begin < SECONDS_PER_INPUT, number
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        baseline = baseline or peak
        assert peak - baseline < MEMORY_GROWTH_MIB, number
        number += 1
    print(f"{number} inputs, {refused} refused, peak {peak} MiB")
    assert refused > number // 4


@pytest.mark.timeout(0)
def test_mutated_manifests_are_read_or_refused(fuzz_seconds: float) -> None:
    schema = entry_schema(DAY, version=3)
    sizes = {n: [entry(at, partition={"ts_day": at}) for at in range(n)] for n in (1, 5, 120)}

    def read(data: bytes) -> None:
        columns = decode_manifest(data)
        columns.table.validate(full=True)
        if len(columns) < 500:
            list(iter_entries(columns))

    fuzz(fuzz_seconds, schema, sizes, read)


@pytest.mark.timeout(0)
def test_mutated_manifest_lists_are_read_or_refused(fuzz_seconds: float) -> None:
    sizes = {n: [list_row(at) for at in range(n)] for n in (1, 5, 300)}
    fuzz(fuzz_seconds, manifest_list_schema(3), sizes, decode_manifest_list)


BOMBS = """
import resource, sys, time
from pathlib import Path
from frazil.codec.manifest_avro import decode_manifest
from frazil.errors import CorruptTableError
decode_manifest(Path(sys.argv[1]).read_bytes())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.monotonic()
try:
    decode_manifest(Path(sys.argv[2]).read_bytes())
except CorruptTableError as error:
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(round(time.monotonic() - begin, 2), (after - before) // 1024, error)
"""


def zero_rows(schema: dict[str, Any]) -> bytes:
    return rows_of(schema, [entry(0, file_path="", file_format="orc", record_count=0, file_size_in_bytes=0)])


@pytest.mark.parametrize("blocks", [1, 12])
@pytest.mark.parametrize(
    "codec, rows",
    [("deflate", "zeros"), ("zstandard", "zeros"), ("bzip2", "zeros"), ("deflate", "valid"), ("zstandard", "valid")],
)
def test_decompression_bombs_stay_within_time_and_memory(codec: str, blocks: int, rows: str, tmp_path: Path) -> None:
    schema = entry_schema()
    sound = rows_of(schema, [entry(at) for at in range(300)])
    (tmp_path / "sound.avro").write_bytes(container(schema, (300, sound)))
    row = zero_rows(schema) if rows == "valid" else bytes(64)
    count = (900 << 20) // blocks // len(row)
    content = compress(codec, row * count)
    data = container(schema, *[(count, content)] * blocks, codec=codec)
    assert len(data) <= 4 << 20
    (tmp_path / "bomb.avro").write_bytes(data)
    result = subprocess.run(
        [sys.executable, "-c", BOMBS, str(tmp_path / "sound.avro"), str(tmp_path / "bomb.avro")],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    seconds, mebibytes, reason = result.stdout.split(" ", 2)
    print(codec, blocks, rows, len(data), seconds, mebibytes)
    assert "Cannot read manifest" in reason
    assert float(seconds) < SECONDS_PER_INPUT
    if len(data) <= 1 << 20:
        assert int(mebibytes) < MEMORY_GROWTH_MIB
