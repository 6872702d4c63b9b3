"""Decoding containers: DataFusion and Python agree, threads keep the order, and nothing is left behind."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from frazil.codec.avro_container import DEFAULT_LIMITS, AvroLimits, AvroOrigin, read_header
from frazil.codec.avro_decode import decode_leaves
from frazil.codec.avro_schema import flatten, has_bytes, parse_schema
from frazil.errors import CorruptTableError, InvalidManifestError
from tests.support.avro_builders import (
    DAY,
    compress,
    container,
    entry,
    entry_schema,
    optional,
    required,
    rows_of,
    varint,
)

ORIGIN = AvroOrigin("manifest", "Manifests")
PYTHON, DATAFUSION = 1 << 40, 0

EVERYTHING: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [
        required("boolean", "boolean", 1),
        required("int", "int", 2),
        required("long", "long", 3),
        required("float", "float", 4),
        required("double", "double", 5),
        required("bytes", "bytes", 6),
        required("string", "string", 7),
        required("fixed", {"type": "fixed", "name": "f5", "size": 5}, 8),
        required("array", {"type": "array", "items": ["null", "long"]}, 9),
        required("map", {"type": "map", "values": "string"}, 10),
        optional("o_boolean", "boolean", 11),
        optional("o_int", "int", 12),
        optional("o_double", "double", 13),
        optional("o_string", "string", 14),
        optional("o_fixed", "f5", 15),
        optional("o_array", {"type": "array", "items": "f5"}, 16),
        optional(
            "o_record",
            {
                "type": "record",
                "name": "inner",
                "fields": [required("a", "int", 18), optional("b", "bytes", 19), required("n", "null", 20)],
            },
            17,
        ),
    ],
}


def random_row(source: random.Random) -> dict[str, Any]:
    def maybe(value: Any) -> Any:
        return value if source.random() < 0.6 else None

    def fixed() -> bytes:
        return source.randbytes(5)

    return {
        "boolean": source.random() < 0.5,
        "int": source.randrange(-(2**31), 2**31),
        "long": source.randrange(-(2**63), 2**63),
        "float": float(source.randrange(1000)) / 8,
        "double": source.random(),
        "bytes": source.randbytes(source.randrange(5)),
        "string": "å" * source.randrange(5),
        "fixed": fixed(),
        "array": [maybe(source.randrange(1000)) for _ in range(source.randrange(4))],
        "map": {str(at): "v" for at in range(source.randrange(3))},
        "o_boolean": maybe(True),
        "o_int": maybe(-1),
        "o_double": maybe(-0.0),
        "o_string": maybe(""),
        "o_fixed": maybe(fixed()),
        "o_array": maybe([fixed()] * source.randrange(3)),
        "o_record": maybe({"a": 1, "b": maybe(b""), "n": None}),
    }


def decode(data: bytes, small_bytes: int, *, threads: int = 1, limits: AvroLimits = DEFAULT_LIMITS) -> pa.Table:
    header = read_header(data, ORIGIN)
    leaves = flatten(parse_schema(header.metadata["avro.schema"], ORIGIN), ORIGIN)
    wanted = [at for at, leaf in enumerate(leaves) if has_bytes(leaf)]
    return decode_leaves(data, header, leaves, wanted, ORIGIN, limits=limits, threads=threads, small_bytes=small_bytes)


def plain(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_datafusion_and_python_decode_the_same_columns(seed: int) -> None:
    source = random.Random(seed)
    rows = [random_row(source) for _ in range(40)]
    data = container(EVERYTHING, (15, rows_of(EVERYTHING, rows[:15])), (25, rows_of(EVERYTHING, rows[15:])))
    slow, fast = decode(data, PYTHON), decode(data, DATAFUSION)
    assert plain(slow) == plain(fast)
    assert [row["c6"] for row in plain(slow)] == [row["string"] for row in rows]
    assert [row["c16"] for row in plain(fast)] == [
        None if row["o_record"] is None else {"c0": 1, "c1": row["o_record"]["b"]} for row in rows
    ]


@pytest.mark.parametrize("seed", range(12))
def test_datafusion_and_python_refuse_the_same_bytes(seed: int) -> None:
    source = random.Random(seed)
    rows = rows_of(EVERYTHING, [random_row(source) for _ in range(4)])
    for _ in range(25):
        changed = bytearray(rows)
        for _ in range(source.randrange(1, 3)):
            changed[source.randrange(len(changed))] = source.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF])
        data = container(EVERYTHING, (4, bytes(changed)))
        found: list[str] = []
        for small_bytes in (PYTHON, DATAFUSION):
            try:
                found.append(repr(plain(decode(data, small_bytes))))
            except CorruptTableError as problem:
                found.append("refused" if "a union has no branch" not in str(problem) else "no branch")
        assert found[0] in (found[1], "no branch")


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard"])
def test_decoding_threads_keep_the_row_order(codec: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [required("n", "long", 1), required("pad", "bytes", 2)]}
    blocks = []
    for start in range(0, 6000, 250):
        content = b"".join(
            varint(at) + varint(2000) + random.Random(at).randbytes(2000) for at in range(start, start + 250)
        )
        blocks.append((250, compress(codec, content)))
    table = decode(container(schema, *blocks, codec=codec), DATAFUSION, threads=4)
    assert table.column("c0").to_pylist() == list(range(6000))
    assert table.column("c0").num_chunks > 1


@pytest.mark.parametrize("small_bytes", [PYTHON, DATAFUSION])
def test_container_without_rows_has_columns_of_the_same_types(small_bytes: int) -> None:
    one = container(EVERYTHING, (1, rows_of(EVERYTHING, [random_row(random.Random(1))])))
    empty = decode(container(EVERYTHING), small_bytes)
    assert empty.num_rows == 0
    assert [str(column.type).replace(" not null", "") for column in decode(one, small_bytes).columns] == [
        str(column.type).replace(" not null", "") for column in empty.columns
    ]


@pytest.mark.parametrize("kind", ["int", "long", "bytes", "string", {"type": "fixed", "name": "f", "size": 8}])
@pytest.mark.parametrize("is_optional", [False, True])
def test_misaligned_rows_are_detected_whatever_the_first_type(kind: Any, is_optional: bool) -> None:
    make = optional if is_optional else required
    schema = {"type": "record", "name": "r", "fields": [required("b", "boolean", 1), make("a", kind, 2)]}
    value: Any = 1 if kind in ("int", "long") else "x" * 8 if kind == "string" else b"x" * 8
    rows = rows_of(schema, [{"b": True, "a": value}] * 3)
    assert decode(container(schema, (3, rows)), DATAFUSION).num_rows == 3
    for count, content in ((2, rows), (3, rows + b"\x00"), (3, rows + b"\x01\x02"), (3, rows[:-1])):
        with pytest.raises(InvalidManifestError):
            decode(container(schema, (count, content)), DATAFUSION)


def test_no_temporary_files_remain() -> None:
    before = set(Path("/dev/shm").glob("frazil-*")) if Path("/dev/shm").is_dir() else set()
    rows = rows_of(entry_schema(DAY), [entry(at, partition={"ts_day": 1}) for at in range(50)])
    decode(container(entry_schema(DAY), (50, rows)), DATAFUSION)
    with pytest.raises(InvalidManifestError):
        decode(container(entry_schema(DAY), (50, rows[:-9])), DATAFUSION)
    after = set(Path("/dev/shm").glob("frazil-*")) if Path("/dev/shm").is_dir() else set()
    assert after <= before


FORK = """
import os, sys, warnings
from pathlib import Path
from frazil.codec.manifest_avro import decode_manifest
warnings.simplefilter("ignore")
data = Path(sys.argv[1]).read_bytes()
for _ in range(100):
    assert len(decode_manifest(data)) == 400
assert "datafusion" in sys.modules
child = os.fork()
if child == 0:
    os._exit(0 if len(decode_manifest(data)) == 400 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_forked_process_decodes_without_datafusion_threads(tmp_path: Path) -> None:
    path = tmp_path / "m.avro"
    rows = rows_of(entry_schema(DAY), [entry(at, partition={"ts_day": 1}) for at in range(400)])
    path.write_bytes(container(entry_schema(DAY), (400, rows)))
    assert subprocess.run([sys.executable, "-c", FORK, str(path)], timeout=60, check=False).returncode == 0


def test_oversized_columns_are_refused_before_allocation() -> None:
    fields = [required("n", "int", 1), *(optional(f"o{at}", "long", 2 + at) for at in range(30))]
    schema = {"type": "record", "name": "r", "fields": fields}
    content = bytes(31 * 100_000)
    data = container(schema, (100_000, compress("deflate", content)), codec="deflate")
    assert decode(data, DATAFUSION).num_rows == 100_000
    with pytest.raises(InvalidManifestError, match="inflates to more than"):
        decode(data, DATAFUSION, limits=AvroLimits(inflated_floor_bytes=8 << 20, inflated_ratio=1))


def test_schema_needs_a_field_that_distinguishes_rows() -> None:
    schema = {"type": "record", "name": "r", "fields": [required("a", "boolean", 1)]}
    with pytest.raises(InvalidManifestError, match="no field that manifests have"):
        decode(container(json.dumps(schema).encode(), (1, b"\x01")), DATAFUSION)
