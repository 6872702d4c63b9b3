"""Descriptions of many data files, as manifests hold them: what the manifest benchmarks write and decode.

Three kinds, so that no figure rests on one choice of data:

`regular`: the table of the planning benchmarks (`planning_table.py`). Ten columns of numbers, the bounds of each rise
from file to file, every file has as many rows as any other. There is as little in it as there can be.

`ingest`: a table of events with ten columns of different types, partitioned by day, filled in the order of time by a
job that commits 40 files at a time, each of about 100,000 rows. Paths are named as Spark names them: number of the
task, number of the attempt, a UUID for each job. Nothing is more regular than such a table makes it:

    ts           the first and last event of the file, to the microsecond
    event_id     rises from file to file without a gap
    user_id      a draw from 50 million; the least and greatest of 100,000 draws, 2 per cent null
    country      nearly the same two codes everywhere; device, url: the same texts everywhere
    amount       a double in cents: the cheapest nearly the same, the dearest with a long tail
    quantity     1, and mostly 20; is_new: false and true
    session_id   a UUID as text: the least and greatest, cut after 16 characters

Sizes of columns follow the rows of a file, with half a per cent of noise; the size of the file is their sum.

`random`: the harsh case, as Iceberg Java's own benchmark of manifests has it. Ten columns of 8 bytes, whose bounds are
random bytes; counts and sizes are random numbers. Most of it cannot be compressed by anyone.
"""

from __future__ import annotations

import uuid
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from bench.planning_table import SCHEMA as PLANNING_SCHEMA
from bench.planning_table import planning_entries

from frazil.spec.partitioning import PartitionSpec, build_partition_spec
from frazil.spec.schema import Schema
from frazil.spec.types import BOOLEAN, DOUBLE, INT, LONG, STRING, TIMESTAMP, NestedField

COLUMNS = 10
FILES_PER_COMMIT = 40
FILES_PER_DAY = 1_000
FIRST_DAY = 19_000
ROWS = 100_000
USERS = 50_000_000
LOCATION = "s3://company-lake/warehouse/analytics.db/events"

_MICROS_PER_DAY = 86_400_000_000
_DOUBLE_AT = 6

Longs: TypeAlias = npt.NDArray[np.int64]

SCHEMAS: dict[str, Schema] = {
    "regular": PLANNING_SCHEMA,
    "ingest": Schema(
        (
            NestedField(1, "ts", TIMESTAMP),
            NestedField(2, "event_id", LONG),
            NestedField(3, "user_id", LONG),
            NestedField(4, "country", STRING),
            NestedField(5, "device", STRING),
            NestedField(_DOUBLE_AT, "amount", DOUBLE),
            NestedField(7, "quantity", INT),
            NestedField(8, "is_new", BOOLEAN),
            NestedField(9, "session_id", STRING),
            NestedField(10, "url", STRING),
        )
    ),
    "random": Schema(
        (NestedField(1, "ts", TIMESTAMP), *(NestedField(at, f"c{at}", LONG) for at in range(2, COLUMNS + 1)))
    ),
}
KINDS = tuple(SCHEMAS)


def spec_of(kind: str) -> PartitionSpec:
    """Return the partition spec of a kind's table: by day."""
    return build_partition_spec(SCHEMAS[kind], ["day(ts)"])


def make_entries(count: int, kind: str = "ingest") -> pa.Table:
    """Describe so many added files, as columns of a manifest."""
    if kind == "regular":
        return planning_entries(0, count, LOCATION)
    random = np.random.default_rng(7)
    rows = np.asarray(random.normal(ROWS, 1_500, count), np.int64)
    days = np.asarray(FIRST_DAY + np.arange(count) // FILES_PER_DAY, np.int32)
    metrics = (_ingest_metrics if kind == "ingest" else _random_metrics)(random, rows, days)
    total = metrics.pop("total_bytes")
    return pa.table(
        {
            "status": np.ones(count, np.int32),
            "file_path": _paths(random, days),
            "file_format": pa.array(["parquet"]).take(np.zeros(count, np.int64)),
            "partition": pa.StructArray.from_arrays([pa.array(days).cast(pa.date32())], names=["ts_day"]),
            "record_count": rows,
            "file_size_in_bytes": total,
            "value_counts": _pairs(pa.array(np.repeat(rows, COLUMNS))),
            **metrics,
            "split_offsets": pa.ListArray.from_arrays(
                np.arange(count + 1, dtype=np.int32), pa.array(np.full(count, 4))
            ),
            "sort_order_id": np.zeros(count, np.int32),
        }
    )


def _paths(random: np.random.Generator, days: npt.NDArray[np.int32]) -> list[str]:
    names = []
    job = uuid.UUID(int=0)
    for number, day in enumerate(days.astype("datetime64[D]").astype(str).tolist()):
        task = number % FILES_PER_COMMIT
        if task == 0:
            job = uuid.UUID(bytes=random.bytes(16), version=4)
        names.append(f"{LOCATION}/data/ts_day={day}/{task:05d}-{number + 17}-{job}-0-00001.parquet")
    return names


def _ingest_metrics(random: np.random.Generator, rows: Longs, days: npt.NDArray[np.int32]) -> dict[str, Any]:
    count = len(rows)
    step = _MICROS_PER_DAY // FILES_PER_DAY
    begin = days.astype(np.int64) * _MICROS_PER_DAY + np.arange(count) % FILES_PER_DAY * step
    gap = step / ROWS
    first = begin + random.exponential(gap, count).astype(np.int64)
    last = begin + step - 1 - random.exponential(gap, count).astype(np.int64)
    after = np.cumsum(rows)
    users = [random.exponential(USERS / ROWS, count).astype(np.int64) for _ in range(2)]
    cents = np.floor(random.pareto(2.5, count) * 100 * ROWS**0.4) + 20_000
    lower: list[list[bytes]] = [
        _numbers(first),
        _numbers(after - rows),
        _numbers(users[0] + 1),
        _texts(random, count, ["AD", "AE"], 0.02),
        _texts(random, count, ["android"], 0),
        _numbers((1 + random.geometric(0.9, count)) / 100),
        _numbers(np.ones(count, np.int32)),
        [b"\x00"] * count,
        _sessions(random, count, is_least=True),
        _texts(random, count, ["https://www.shop"], 0),
    ]
    upper: list[list[bytes]] = [
        _numbers(last),
        _numbers(after - 1),
        _numbers(USERS - users[1]),
        _texts(random, count, ["ZW", "ZM"], 0.02),
        _texts(random, count, ["web"], 0),
        _numbers(cents / 100),
        _numbers(np.where(random.random(count) < 0.9, 20, 19).astype(np.int32)),
        [b"\x01"] * count,
        _sessions(random, count, is_least=False),
        _texts(random, count, ["https://www.shoq"], 0),
    ]
    nulls = np.zeros((count, COLUMNS), np.int64)
    nulls[:, 2] = random.binomial(rows, 0.02)
    bytes_of_row = np.array([3.1, 1.2, 4.0, 0.9, 0.3, 3.6, 0.6, 0.12, 17.5, 9.8])
    sizes = (rows[:, None] * bytes_of_row * random.normal(1, 0.005, (count, COLUMNS))).astype(np.int64)
    return {
        "column_sizes": _pairs(pa.array(sizes.reshape(-1))),
        "null_value_counts": _pairs(pa.array(nulls.reshape(-1))),
        "nan_value_counts": _pairs(pa.array(np.zeros(count, np.int64)), ids=(_DOUBLE_AT,)),
        "lower_bounds": _pairs(_interleave(lower)),
        "upper_bounds": _pairs(_interleave(upper)),
        "total_bytes": sizes.sum(axis=1) + random.integers(4_000, 4_200, count),
    }


def _random_metrics(random: np.random.Generator, rows: Longs, days: npt.NDArray[np.int32]) -> dict[str, Any]:
    count = len(rows)
    places = pa.py_buffer(np.arange(count * COLUMNS + 1, dtype=np.int32) * 8)

    def bounds() -> pa.Array:
        raw = pa.py_buffer(random.bytes(count * COLUMNS * 8))
        return _pairs(pa.Array.from_buffers(pa.binary(), count * COLUMNS, [None, places, raw]))

    sizes = random.integers(1_000_000, 1_100_000, (count, COLUMNS))
    return {
        "column_sizes": _pairs(pa.array(sizes.reshape(-1))),
        "null_value_counts": _pairs(pa.array(random.integers(0, 5, count * COLUMNS))),
        "nan_value_counts": _pairs(pa.array(random.integers(0, 5, count * COLUMNS))),
        "lower_bounds": bounds(),
        "upper_bounds": bounds(),
        "total_bytes": sizes.sum(axis=1) + random.integers(4_000, 4_200, count),
    }


def _numbers(values: npt.NDArray[Any]) -> list[bytes]:
    raw, width = values.astype(values.dtype.newbyteorder("<")).tobytes(), values.dtype.itemsize
    return [raw[at : at + width] for at in range(0, len(raw), width)]


def _texts(random: np.random.Generator, count: int, choices: list[str], rare: float) -> list[bytes]:
    """Return the first text for nearly all files, the last for the share that is rare."""
    usual, unusual = choices[0].encode(), choices[-1].encode()
    return [unusual if odd else usual for odd in (random.random(count) < rare).tolist()]


def _sessions(random: np.random.Generator, count: int, *, is_least: bool) -> list[bytes]:
    """Return the least or greatest of as many random UUIDs as a file has rows, cut as bounds of texts are."""
    share = random.exponential(1 / ROWS, count)
    if not is_least:
        share = 1 - share
    heads = (share * 2.0**64).astype(np.uint64).tolist()
    texts = [f"{head:016x}" for head in heads]
    found = [f"{text[:8]}-{text[8:12]}-{text[12:14]}".encode() for text in texts]
    if is_least:
        return found
    return [text[:-1] + bytes((text[-1] + 1,)) for text in found]


def _interleave(columns: list[list[bytes]]) -> pa.Array:
    return pa.array([value for row in zip(*columns, strict=True) for value in row], pa.binary())


def _pairs(values: pa.Array, ids: tuple[int, ...] = tuple(range(1, COLUMNS + 1))) -> pa.Array:
    count = len(values) // len(ids)
    keys = pa.array(np.tile(np.array(ids, np.int32), count))
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * len(ids))
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([keys, values], names=["key", "value"]))
