"""Mutated files end in the library's errors, soon, whatever was changed: JSON, gzip, Puffin, vectors, variants, WKB.

Manifests and manifest lists have a fuzzer of their own. Runs for FRAZIL_FUZZ_SECONDS in `make test-all`.
"""

from __future__ import annotations

import gzip
import random
import resource
import time
from collections.abc import Callable
from typing import Any

import pytest

from frazil.codec.deletion_vector import DeletionVector, decode_deletion_vector, encode_deletion_vector
from frazil.codec.name_mapping_json import decode_name_mapping
from frazil.codec.puffin import PuffinWriter, decode_puffin_footer, range_reader, read_blob
from frazil.codec.table_metadata_json import decode_table_metadata, encode_table_metadata
from frazil.codec.variant import encode_variant
from frazil.codec.view_metadata_json import decode_view_metadata, encode_view_metadata
from frazil.codec.wkb import decode_wkb
from frazil.codec.wkt import parse_wkt, wkt_to_wkb
from frazil.errors import FrazilError
from frazil.expr.extract import parse_predicate
from frazil.spec.parse_type import parse_schema
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, NestedField
from frazil.spec.view_evolution import new_view_metadata
from frazil.spec.view_metadata import SqlRepresentation, ViewVersion
from tests.support.tables import TableBuilder
from tests.support.variants import decode_variant, variant_of

MAX_SECONDS_EACH = 5.0
MAX_MEGABYTES = 1_500
INTERESTING = (
    b"\x00",
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\xff\xff\xff\xff",
    b"{",
    b"}",
    b"[",
    b'"',
    b"-1",
    b"1e999",
    b"null",
)


def table_metadata() -> bytes:
    builder = TableBuilder(Schema((NestedField(1, "id", LONG),)), format_version=3)
    builder.append([{"id": 1}])
    builder.append([{"id": 2}])
    return encode_table_metadata(builder.metadata)


def view_metadata() -> bytes:
    version = ViewVersion(1, 0, 5, (SqlRepresentation("select 1", "spark"),), ("db",))
    schema = Schema((NestedField(1, "a", LONG),))
    made = new_view_metadata(
        view_uuid="9c12d441-03fe-4693-9a96-a0705ddf69c1", location="file:/v", schema=schema, version=version
    )
    return encode_view_metadata(made, compress=False)


def puffin_file() -> bytes:
    writer = PuffinWriter({"created-by": "tests"}, compress_footer=True)
    for codec in (None, "zstd", "lz4"):
        writer.add_blob("t", b"some data " * 50, fields=(1,), snapshot_id=1, sequence_number=1, compression_codec=codec)
    return writer.finish()


def read_puffin(data: bytes) -> None:
    footer = decode_puffin_footer(data)
    for blob in footer.file_metadata.blobs:
        read_blob(range_reader(data), blob, max_bytes=1 << 20)


def variant_bytes() -> bytes:
    metadata, value = encode_variant(variant_of({"a": [1, 2.5, "x", None], "b": {"c": True}}))
    return bytes([len(metadata)]) + metadata + value


def read_variant(data: bytes) -> None:
    size = data[0] if data else 0
    decode_variant(data[1 : 1 + size], data[1 + size :])


def read_text(parse: Callable[[str], Any]) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        parse(data.decode("utf-8", "replace"))

    return read


TARGETS: dict[str, tuple[Callable[[], bytes], Callable[[bytes], Any]]] = {
    "table metadata": (table_metadata, decode_table_metadata),
    "gzipped table metadata": (lambda: gzip_of(table_metadata()), decode_table_metadata),
    "view metadata": (view_metadata, decode_view_metadata),
    "puffin": (puffin_file, read_puffin),
    "deletion vector": (
        lambda: encode_deletion_vector(DeletionVector([1, 5, *range(100, 300), 1 << 33])),
        decode_deletion_vector,
    ),
    "variant": (variant_bytes, read_variant),
    "wkb": (lambda: wkt_to_wkb("MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)), ((1 1, 2 1, 2 2, 1 1)))"), decode_wkb),
    "wkt": (lambda: b"GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (0 0, 1 1))", read_text(parse_wkt)),
    "name mapping": (lambda: b'[{"field-id": 1, "names": ["a", "b"], "fields": []}]', read_text(decode_name_mapping)),
    "filter text": (
        lambda: (
            b"a >= 1.5 and not (b in ('x', null) or c like 'y%') and system.days(ts) = date '2024-01-01' "
            b"and s = 'a\\tb\\u0041'"
        ),
        read_text(parse_predicate),
    ),
    "schema text": (
        lambda: b"id bigint not null comment 'x', m map<string, struct<a: list<decimal(9, 2)>>>",
        read_text(parse_schema),
    ),
}


def gzip_of(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def mutate(data: bytes, random_: random.Random) -> bytes:
    """Return a file with a few bytes changed, dropped, repeated or replaced by troublesome ones."""
    changed = bytearray(data)
    for _ in range(random_.choice((1, 1, 2, 4, 8))):
        at = random_.randrange(len(changed) + 1)
        kind = random_.randrange(6)
        if kind == 0 and at < len(changed):
            changed[at] = random_.randrange(256)
        elif kind == 1:
            changed[at:at] = random_.choice(INTERESTING)
        elif kind == 2:
            del changed[at : at + random_.randrange(1, 20)]
        elif kind == 3:
            changed[at : at + 4] = random_.choice(INTERESTING)
        elif kind == 4:
            piece = changed[at : at + random_.randrange(1, 60)]
            changed[at:at] = piece * random_.choice((1, 2, 50))
        else:
            del changed[at:]
    return bytes(changed)


def fuzz(name: str, seconds: float, seed: int) -> int:
    """Read mutations of one kind of file for some time; return how many."""
    make, read = TARGETS[name]
    original = make()
    read(original)
    random_ = random.Random(f"{name} {seed}")
    deadline = time.monotonic() + seconds
    count = 0
    while time.monotonic() < deadline:
        count += 1
        data = mutate(original, random_)
        start = time.monotonic()
        try:
            read(data)
        except FrazilError:
            pass
        except BaseException as error:
            raise AssertionError(f"{name}: {type(error).__name__} escaped for {data!r}") from error
        assert time.monotonic() - start < MAX_SECONDS_EACH, f"{name}: {data!r}"
    return count


@pytest.mark.parametrize("name", TARGETS)
def test_short_fuzz_raises_only_frazil_errors(name: str) -> None:
    assert fuzz(name, 0.15, seed=1) > 0


@pytest.mark.slow
def test_long_fuzz_raises_only_frazil_errors_within_limits(fuzz_seconds: float) -> None:
    counts = {name: fuzz(name, fuzz_seconds / len(TARGETS), seed=2) for name in TARGETS}
    print(counts)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 < MAX_MEGABYTES
