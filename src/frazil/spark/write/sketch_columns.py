"""Sketches of the distinct values of columns, computed on Spark: the data half of `maintenance/table_stats.py`.

Files are sent in packs, as in `arrow_read.py`, and are read in Python workers with their deletes applied. A task
processes several packs and returns one sketch per column, so that results are small for tables of any size; the
sketches are merged here. The result equals that of a single process bit for bit.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from frazil.codec.theta_sketch import EMPTY_SKETCH, ThetaSketch
from frazil.maintenance.table_stats import SketchWork
from frazil.scan.split import SplitOptions, plan_groups
from frazil.scan.tasks import FileScanTask
from frazil.spark.jvm.ship_package import ship_package
from frazil.spark.read.arrow_read import can_travel
from frazil.threads import default_threads

_MAX_TASKS: Final = 200
_DDL: Final = "field_id int, theta bigint, hashes binary"
_SCHEMA: Final = pa.schema([("field_id", pa.int32()), ("theta", pa.int64()), ("hashes", pa.binary())])


class _WorkerSketch:
    """The function of a Python worker: from the numbers of packs to the sketches of all their files."""

    def __init__(self, work: SketchWork, packs: list[bytes]) -> None:
        self._work = work
        self._packs = packs

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        chosen = [number for batch in numbers for number in batch.column(0).to_pylist()]

        def tasks() -> Iterator[FileScanTask]:
            for number in chosen:
                # The driver of this query pickled it.
                yield from pickle.loads(self._packs[number])  # noqa: S301

        sketches = self._work.sketch(tasks())
        columns = [
            [*sketches],
            [theta_sketch.theta for theta_sketch in sketches.values()],
            [theta_sketch.hashes.tobytes() for theta_sketch in sketches.values()],
        ]
        yield pa.RecordBatch.from_arrays(
            [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA
        )


def sketcher_on(
    spark: SparkSession, options: SplitOptions | None = None
) -> Callable[[SketchWork, Iterable[FileScanTask]], dict[int, ThetaSketch]]:
    """Return a function that sketches columns on a session."""
    return lambda work, tasks: _sketch(spark, work, list(tasks), SplitOptions() if options is None else options)


def _sketch(
    spark: SparkSession, work: SketchWork, tasks: list[FileScanTask], options: SplitOptions
) -> dict[int, ThetaSketch]:
    if not can_travel(work.storage, tasks):
        return work.sketch(tasks, threads=default_threads())
    ship_package(spark)
    packs = [pickle.dumps(group.tasks) for group in plan_groups(iter(tasks), options)]
    count = len(packs)
    frame = spark.range(0, count, 1, max(min(count, _MAX_TASKS), 1)).mapInArrow(_WorkerSketch(work, packs), _DDL)
    by_field: dict[int, list[ThetaSketch]] = {field_id: [] for field_id in work.field_ids}
    for row in frame.collect():
        by_field[row[0]].append(ThetaSketch(np.frombuffer(bytes(row[2]), np.uint64), row[1]))
    return {key: reduce(ThetaSketch.union, sketches, EMPTY_SKETCH) for key, sketches in by_field.items()}
