"""Checkpointed rows: computed once, held by executors, and collected by the driver only if they are few.

Row-level changes need some rows twice: a source for its keys and then for the join, changed rows for their positions
and then to write them. The first query that reads them computes them, and they stay on the executors. That query
collects at most a few rows of each task. If those are all, nothing more has to run; otherwise the caller runs an
aggregate, so that the memory of the driver does not grow with the number of rows.

A lost executor loses its rows, and they cannot be recomputed. The change then starts over (`start_over_if_lost`), since
nothing refers to the files that it has written so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame

from frazil.errors import EngineError
from frazil.spark.jvm.jvm_write import is_deterministic, is_local_relation, kept_partitions, limit_each_task
from frazil.spark.own_columns import F

FEW_ROWS = 1 << 18
"""The most rows to collect from all tasks together; above it, an aggregate runs."""
_MIN_TASK_ROWS = 16
_TASK = "__frazil_part"
_LOST = "Checkpoint block rdd_"
_RUNS = 3

T = TypeVar("T")


def checkpoint_rows(frame: DataFrame) -> DataFrame:
    """Return a frame whose rows are computed once, by the first query that reads all of them.

    Rows of a nondeterministic query are computed immediately, before any query can read some of them.
    """
    if is_local_relation(frame):
        return frame
    return frame.localCheckpoint(eager=not is_deterministic(frame))


def collect_few(frame: DataFrame, columns: Sequence[Column], max_rows: int = FEW_ROWS) -> pa.Table | None:
    """Return columns of checkpointed rows, or None if they are too many; in both cases this computes all rows."""
    parts = kept_partitions(frame)
    each = max(max_rows // parts, _MIN_TASK_ROWS)
    some = limit_each_task(frame.select(*columns, F.spark_partition_id().alias(_TASK)), each + 1)
    collected = some.toArrow()
    tasks = collected.column(_TASK).to_numpy()
    if len(tasks) and int(np.bincount(tasks).max()) > each:
        return None
    return collected.drop_columns([_TASK])


def start_over_if_lost(plan: Callable[[], T]) -> T:
    """Run the part of a change before its commit, and run it again if checkpointed rows were lost with an executor."""
    for _ in range(_RUNS - 1):
        try:
            return plan()
        except EngineError as error:
            if not _is_loss(error):
                raise
    return plan()


def _is_loss(error: Any) -> bool:
    return _LOST in str(error)
