"""Stamps: rows read as blocks of bytes are the rows that reading item by item gives, or are refused."""

from __future__ import annotations

import copy
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frazil.codec import avro_scratch
from frazil.codec.avro_container import AvroOrigin, read_header
from frazil.codec.avro_decode import decode_leaves
from frazil.codec.avro_schema import flatten, has_bytes, parse_schema
from frazil.codec.avro_scratch import ScratchFile, SpareFiles
from frazil.codec.avro_stamps import PastGuesses, guess_shapes, make_stamps, past_guesses
from frazil.errors import CorruptTableError
from tests.support.avro_builders import container, entry, entry_schema, optional, pairs, required, rows_of

ORIGIN = AvroOrigin("manifest", "Manifests")
PYTHON, DATAFUSION = 1 << 40, 0
SCHEMA = entry_schema()
ROWS = 80
"""More than it takes for stamps to be looked for, in two blocks."""
SCHEMA_TEXT = read_header(container(SCHEMA), ORIGIN).metadata["avro.schema"]


def decode(data: bytes, small_bytes: int, names: set[str] | None = None) -> list[dict[str, Any]]:
    header = read_header(data, ORIGIN)
    leaves = flatten(parse_schema(header.metadata["avro.schema"], ORIGIN), ORIGIN)
    wanted = [at for at, leaf in enumerate(leaves) if has_bytes(leaf) and (names is None or leaf.name in names)]
    rows: list[dict[str, Any]] = decode_leaves(
        data, header, leaves, wanted, ORIGIN, small_bytes=small_bytes
    ).to_pylist()
    return rows


def stamped(content: bytes, count: int, schema: dict[str, Any] = SCHEMA) -> set[str]:
    """The names of the leaves that are read in stamps, if the first rows are as all others."""
    header = read_header(container(schema), ORIGIN)
    leaves = flatten(parse_schema(header.metadata["avro.schema"], ORIGIN), ORIGIN)
    shapes = guess_shapes([(count, content)], leaves, 0)
    return {leaves[at].name for stamp in make_stamps(shapes, leaves) for at in stamp.shapes}


def blocks_of(rows: list[dict[str, Any]], schema: dict[str, Any] = SCHEMA, size: int = 40) -> bytes:
    cut = [rows[at : at + size] for at in range(0, len(rows), size)]
    return container(schema, *((len(part), rows_of(schema, part)) for part in cut))


def file(at: int, **changes: Any) -> dict[str, Any]:
    """An entry whose lists have the same lengths for every number below 2000."""
    row = entry(
        at,
        column_sizes=[{"key": 1, "value": 500_000 + at}, {"key": 2, "value": -70 - at % 10}],
        value_counts=[{"key": 1, "value": 10_000 + at}, {"key": 2, "value": 10_000 + at}],
        lower_bounds=[{"key": 1, "value": at.to_bytes(8, "little")}, {"key": 2, "value": b"%05d" % at}],
        upper_bounds=[{"key": 1, "value": (at + 9).to_bytes(8, "little")}, {"key": 2, "value": b"%06d" % at}],
    )
    row["data_file"] |= changes
    return row


def test_uniform_lists_are_read_unchanged() -> None:
    rows = [file(at) for at in range(ROWS)]
    assert {"column_sizes", "value_counts", "lower_bounds", "upper_bounds", "nan_value_counts"} <= stamped(
        rows_of(SCHEMA, rows), ROWS
    )
    data = blocks_of(rows)
    assert decode(data, DATAFUSION) == decode(data, PYTHON)
    assert decode(data, DATAFUSION, {"upper_bounds"}) == decode(data, PYTHON, {"upper_bounds"})
    assert decode(data, DATAFUSION, {"record_count"}) == decode(data, PYTHON, {"record_count"})


@pytest.mark.parametrize("where", [0, 1, 2, ROWS // 2, ROWS - 1])
@pytest.mark.parametrize(
    "changes",
    [
        {"lower_bounds": None},
        {"lower_bounds": []},
        {"lower_bounds": [{"key": 1, "value": b""}, {"key": 2, "value": b"x" * 12}]},
        {"lower_bounds": [{"key": 2, "value": b"%08d" % 1}, {"key": 1, "value": b"12345"}]},
        {"lower_bounds": [{"key": 1, "value": b"12345"}, {"key": 2, "value": b"%08d" % 1}]},
        {"upper_bounds": [{"key": 1, "value": b"x" * 200}]},
        {"column_sizes": [{"key": 1, "value": 1}, {"key": 2, "value": 1}]},
        {"column_sizes": [{"key": 1, "value": 2**62}, {"key": 2, "value": -(2**62)}]},
        {"nan_value_counts": [{"key": 1, "value": 7}]},
        {"split_offsets": [4, 400, 4000]},
        {"split_offsets": None, "equality_ids": [1, 2]},
        {"key_metadata": b"secret"},
        # Two lists differ by a byte in opposite ways: after the second, everything is in its place again.
        {
            "value_counts": [{"key": 1, "value": 10_000}, {"key": 2, "value": 10}],
            "lower_bounds": [{"key": 1, "value": b"12345678"}, {"key": 2, "value": b"123456"}],
        },
        {
            "column_sizes": [{"key": 1, "value": 500_000}, {"key": 2, "value": 10}],
            "value_counts": [{"key": 1, "value": 10_000}, {"key": 2, "value": 1_000_000}],
        },
    ],
)
def test_irregular_row_is_read_unchanged(changes: dict[str, Any], where: int) -> None:
    rows = [file(at) for at in range(ROWS)]
    rows[where] = file(where, **changes)
    data = blocks_of(rows)
    expected = decode(data, PYTHON)
    assert decode(data, DATAFUSION) == expected
    few = decode(data, DATAFUSION, {"file_path", "sort_order_id"})
    assert len(few[0]) == 2
    assert few == [{name: row[name] for name in few[0]} for row in expected]


def test_failed_guess_is_not_repeated() -> None:
    schema = copy.deepcopy(SCHEMA)
    schema["name"] = "entries_of_a_table_of_its_own"
    rows = [file(at) for at in range(ROWS)]
    for at in (5, ROWS - 5):
        rows[at] = file(at, upper_bounds=[{"key": 1, "value": b"12345678"}, {"key": 2, "value": b"a longer text"}])
    data = blocks_of(rows, schema)
    text = read_header(data, ORIGIN).metadata["avro.schema"]
    for _ in range(3):
        assert decode(data, DATAFUSION) == decode(data, PYTHON)
    leaves = flatten(parse_schema(text, ORIGIN), ORIGIN)
    assert {leaves[at].name for at in past_guesses.of(text).wrong} == {"upper_bounds"}


@pytest.mark.parametrize("where", [0, 1, 5, ROWS - 1])
@pytest.mark.parametrize(
    "changes",
    [
        {"upper_bounds": [{"key": 1, "value": b"12345678"}, {"key": 2, "value": b"a longer text"}]},
        {"column_sizes": [{"key": 1, "value": 5}]},
        {"value_counts": None},
    ],
)
def test_pattern_of_one_file_is_tried_on_the_next_and_verified(changes: dict[str, Any], where: int) -> None:
    decode(blocks_of([file(at) for at in range(ROWS)]), DATAFUSION)
    alike = past_guesses.of(SCHEMA_TEXT)
    assert alike.right and not alike.wrong
    other = [file(at) for at in range(ROWS)]
    other[where] = file(where, **changes)
    data = blocks_of(other)
    assert decode(data, DATAFUSION) == decode(data, PYTHON)
    # And back again, from a file whose rows all lie in another way.
    different = blocks_of([file(at, **changes) for at in range(ROWS)])
    assert decode(different, DATAFUSION) == decode(different, PYTHON)
    plain = blocks_of([file(at) for at in range(ROWS)])
    assert decode(plain, DATAFUSION) == decode(plain, PYTHON)


def test_uniform_files_share_a_pattern() -> None:
    decode(blocks_of([file(at) for at in range(ROWS)]), DATAFUSION)
    before = past_guesses.of(SCHEMA_TEXT)
    decode(blocks_of([file(at + 1) for at in range(ROWS)]), DATAFUSION)
    assert past_guesses.of(SCHEMA_TEXT) is before


def test_patterns_are_bounded_over_many_tables() -> None:
    memory = PastGuesses(limit=2)
    for name in (b"a", b"b", b"a", b"c"):
        memory.remember(name, {}, {len(memory.of(name).wrong)})
    assert [set(memory.of(name).wrong) for name in (b"a", b"b", b"c")] == [{0, 1}, set(), {0}]


@pytest.fixture(autouse=True)
def _no_guesses() -> Iterator[None]:
    past_guesses.clear()
    yield
    past_guesses.clear()


@pytest.mark.parametrize("bits", [0, 5, 6, 7, 13, 14, 20, 27, 28, 41, 54, 55, 56, 62, 63])
def test_numbers_of_every_encoded_length_are_read(bits: int) -> None:
    source = random.Random(bits)
    low, high = (1 << bits) // 2, max(1, (1 << bits) - 1)
    rows = []
    for at in range(ROWS):
        number = source.randint(low, high) * source.choice([1, -1] if bits < 63 else [1])
        counts = [{"key": key, "value": number if key == 2 else source.randint(low, high)} for key in (1, 2, 3, 4)]
        rows.append(file(at, column_sizes=counts, split_offsets=[number, 7, number]))
    data = blocks_of(rows)
    assert decode(data, DATAFUSION) == decode(data, PYTHON)


@pytest.mark.extended
def test_tables_with_a_thousand_columns_are_read() -> None:
    wide = [{"key": key, "value": b"%08d" % key} for key in range(1, 1001)]
    rows = [file(at, lower_bounds=wide, upper_bounds=wide) for at in range(80)]
    assert "lower_bounds" in stamped(rows_of(SCHEMA, rows), 80)
    data = blocks_of(rows)
    assert decode(data, DATAFUSION) == decode(data, PYTHON)


def test_required_lists_and_reversed_unions_are_read() -> None:
    wide = pairs("a", 11, 12, "long", 10)
    wide["type"] = wide["type"][::-1]
    del wide["default"]
    plain = pairs("b", 21, 22, "bytes", 20)
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            required("n", "long", 1),
            wide,
            {"name": "b", "type": plain["type"][1], "field-id": 20},
            optional("c", {"type": "array", "items": ["null", "long"]}, 30),
        ],
    }
    rows = [
        {"n": at, "a": [{"key": 3, "value": 70 + at % 9}], "b": [{"key": at % 2, "value": b"xy"}], "c": [1, None]}
        for at in range(ROWS)
    ]
    for at in (0, 1, 2):
        rows[at]["b"] = [{"key": 0, "value": b"xy"}]
    assert stamped(rows_of(schema, rows), ROWS, schema) == {"a", "b"}
    data = blocks_of(rows, schema)
    assert decode(data, DATAFUSION) == decode(data, PYTHON)


@pytest.mark.parametrize("seed", range(20))
def test_corrupted_bytes_give_the_same_result_with_and_without_patterns(seed: int) -> None:
    source = random.Random(seed)
    content = rows_of(SCHEMA, [file(at) for at in range(100)])
    for _ in range(6):
        changed = bytearray(content)
        for _ in range(source.randrange(1, 4)):
            changed[source.randrange(len(changed))] = source.choice([0, 1, 2, 3, 4, 0x10, 0x7F, 0x80, 0xFF])
        if source.random() < 0.3:
            at = source.randrange(len(changed))
            del changed[at : at + source.randrange(1, 3)]
        data = container(SCHEMA, (100, bytes(changed)))
        found: list[Any] = []
        for small_bytes in (PYTHON, DATAFUSION):
            try:
                found.append(decode(data, small_bytes))
            except CorruptTableError as problem:
                found.append("no branch" if "a union has no branch" in str(problem) else "refused")
        assert found[0] == found[1] or found[0] == "no branch"


def test_scratch_files_are_unnamed_and_truncated() -> None:
    with ScratchFile() as scratch:
        first = scratch.write([b"a" * 100] * 1500, 150_000)
        assert first.read_bytes() == b"a" * 150_000
        second = scratch.write([b"b", b"", b"c"], 2)
        assert second.read_bytes() == b"bc"
        if hasattr(os, "memfd_create"):
            assert "deleted" in str(second.readlink())


def test_scratch_files_are_reused_unless_large_or_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    spare = SpareFiles()
    monkeypatch.setattr(avro_scratch, "_SPARE_BYTES", 10)

    def use(*pieces: bytes) -> ScratchFile:
        with spare.borrow() as file:
            assert file.write(pieces, sum(map(len, pieces))).read_bytes() == b"".join(pieces)
            return file

    first = use(b"123")
    assert use(b"45") is first
    with spare.borrow() as outer:
        assert outer is first
        assert use(b"6") is not first
    large = use(b"x" * 11)
    assert use(b"7") is not large
    with pytest.raises(KeyError), spare.borrow() as failed:
        failed.write([b"8"], 1)
        raise KeyError
    assert use(b"9") is not failed


FORK = """
import os
from frazil.codec.avro_scratch import SpareFiles
spare = SpareFiles()
with spare.borrow() as file:
    path = file.write([b"parent"], 6)
child = os.fork()
if child == 0:
    with spare.borrow() as own:
        own.write([b"child"], 5)
    os._exit(0)
os.waitpid(child, 0)
assert path.read_bytes() == b"parent"
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forked_process_does_not_touch_scratch_files_of_its_parent() -> None:
    subprocess.run([sys.executable, "-c", FORK], timeout=60, check=True)


def test_large_scratch_files_are_unnamed_on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(avro_scratch, "_MEMORY_BYTES", 10)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with ScratchFile() as scratch:
        assert scratch.write([b"12345678901"], 11).read_bytes() == b"12345678901"
        assert scratch.write([b"1"], 1).read_bytes() == b"1"
        assert list(tmp_path.iterdir()) == []


def test_systems_without_fd_paths_use_named_scratch_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(avro_scratch, "_OPEN_FILES", tmp_path / "absent")
    with ScratchFile() as scratch:
        path = scratch.write([b"12"], 2)
        assert path.read_bytes() == b"12"
    assert not path.exists()
