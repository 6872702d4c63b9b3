"""Rows that a query has computed once, kept by executors, and brought here only where they are few.

Changes need some rows twice: a source to learn its keys and then to join it, changed rows for their positions and
then to write them. They are computed by the first query that asks for them and stay where they were computed. That
query brings at most a few rows of each task here: where that is all of them, nothing more has to run; where it is not,
the caller asks for an aggregate, so that what the driver holds does not follow the number of rows.

An executor that is lost takes its rows with it, and there is nothing to compute them from again. A change that meets
this starts over (`start_over_if_lost`): nothing refers to what it has written so far.
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
"""So many rows at most come here, of all tasks together: keys or positions; an aggregate takes longer."""
_MIN_TASK_ROWS = 16
_PART = "__frazil_part"
_LOST = "Checkpoint block rdd_"
_RUNS = 3

T = TypeVar("T")


def checkpoint_rows(frame: DataFrame) -> DataFrame:
    """Return a frame whose rows are computed once, by the first query over it that reads all of them.

    Rows of a query that may give others each time are computed now, before anybody has seen some of them.
    """
    if is_local_relation(frame):
        return frame
    return frame.localCheckpoint(eager=not is_deterministic(frame))


def collect_few(kept: DataFrame, columns: Sequence[Column], most: int = FEW_ROWS) -> pa.Table | None:
    """Return columns of kept rows, None where they are more than a few; either way all rows are computed then."""
    parts = kept_partitions(kept)
    each = max(most // parts, _MIN_TASK_ROWS)
    some = limit_each_task(kept.select(*columns, F.spark_partition_id().alias(_PART)), each + 1)
    found = some.toArrow()
    tasks = found.column(_PART).to_numpy()
    if len(tasks) and int(np.bincount(tasks).max()) > each:
        return None
    return found.drop_columns([_PART])


def start_over_if_lost(plan: Callable[[], T]) -> T:
    """Run the part of a change that comes before its commit, again where kept rows were lost with an executor."""
    for _ in range(_RUNS - 1):
        try:
            return plan()
        except EngineError as error:
            if not _is_loss(error):
                raise
    return plan()


def _is_loss(error: Any) -> bool:
    return _LOST in str(error)
