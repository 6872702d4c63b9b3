"""Collection of the positions of changed rows, by file.

A few positions are collected one by one. If there are many, executors first combine 64 adjacent positions of a file
into a word of bits, so that the result is bounded by the number of rows in the files, a quarter of a byte each, and not
by how many of them change. The same aggregate detects duplicate positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from frazil.codec.deletion_vector import DeletionVector
from frazil.spark.jvm.exact_sql import expression
from frazil.spark.own_columns import F
from frazil.spark.read.kept_rows import FEW_ROWS, collect_few

FILE_COLUMN = "__frazil_file"
POS_COLUMN = "__frazil_pos"
ACTION_COLUMN = "__frazil_action"
_BITS = 64
_WORDS_AT_ONCE = 1 << 12


@dataclass(frozen=True, slots=True)
class RowPositions:
    """Positions by file number, the number of rows of each action, and whether any position occurred twice."""

    positions: Mapping[int, DeletionVector]
    counts: Mapping[int, int]
    is_twice: bool = False


def read_positions(frame: DataFrame, *, few_rows: int = FEW_ROWS) -> RowPositions:
    """Collect the positions of checkpointed rows whose action is above 0; rows without a file are only counted."""
    columns = [F.col(name) for name in (FILE_COLUMN, POS_COLUMN, ACTION_COLUMN)]
    rows = collect_few(frame, columns, few_rows)
    return _from_rows(rows) if rows is not None else _from_words(frame)


def _from_rows(table: pa.Table) -> RowPositions:
    actions = table.column(2).to_numpy()
    counts = dict(zip(*(array.tolist() for array in np.unique(actions, return_counts=True)), strict=True))
    has_place = table.column(0).is_valid().to_numpy()
    files = table.column(0).filter(has_place).to_numpy()
    rows = table.column(1).filter(has_place).to_numpy()
    order = np.lexsort((rows, files))
    files, rows, actions = files[order], rows[order], actions[has_place][order]
    is_twice = bool(((np.diff(files) == 0) & (np.diff(rows) == 0)).any())
    files, rows = files[actions > 0], rows[actions > 0]
    return RowPositions(
        {number: DeletionVector(rows[rows_of_file]) for number, rows_of_file in _by_file(files)}, counts, is_twice
    )


def _from_words(frame: DataFrame) -> RowPositions:
    bit = f"shiftleft(1L, cast({POS_COLUMN} & 63 as int))"
    words = (
        frame.filter(f"{FILE_COLUMN} is not null")
        .groupBy(FILE_COLUMN, expression(f"cast(shiftright({POS_COLUMN}, 6) as int)").alias("word"))
        .agg(
            expression(f"bit_or(case when {ACTION_COLUMN} > 0 then {bit} else 0L end)").alias("bits"),
            expression(f"count(1) > bit_count(bit_or({bit}))").alias("is_twice"),
        )
        .filter("bits <> 0L or is_twice")
        .toArrow()
    )
    numbers = words.column(0).to_numpy()
    positions_of_words, bits = words.column(1).to_numpy(), words.column(2).to_numpy()
    order = np.lexsort((positions_of_words, numbers))
    numbers, positions_of_words, bits = numbers[order], positions_of_words[order], bits[order]
    positions = {
        number: _vector(positions_of_words[rows_of_file], bits[rows_of_file])
        for number, rows_of_file in _by_file(numbers)
    }
    counted = frame.groupBy(ACTION_COLUMN).count().collect()
    is_twice = bool(words.column(3).to_numpy(zero_copy_only=False).any())
    non_empty = {number: vector for number, vector in positions.items() if not vector.is_empty}
    return RowPositions(non_empty, {row[0]: row[1] for row in counted}, is_twice)


def _by_file(files: npt.NDArray[np.int32]) -> list[tuple[int, slice]]:
    """Return each file's number and the slice of its rows in a sorted array."""
    starts = np.flatnonzero(np.diff(files, prepend=-1)).tolist()
    ends = [*starts[1:], len(files)]
    return [(int(files[start]), slice(start, ends[index])) for index, start in enumerate(starts)]


def _vector(words: npt.NDArray[np.int32], bits: npt.NDArray[np.int64]) -> DeletionVector:
    parts = []
    for start in range(0, len(words), _WORDS_AT_ONCE):
        chosen = bits[start : start + _WORDS_AT_ONCE].astype("<i8").view(np.uint8)
        row, bit = np.nonzero(np.unpackbits(chosen, bitorder="little").reshape(-1, _BITS))
        parts.append(DeletionVector(words[start : start + _WORDS_AT_ONCE].astype(np.int64)[row] * _BITS + bit))
    return parts[0].union(*parts[1:])
