"""Whether an entry's size of a file agrees with what else it says of it. Specification: "Data File Fields".

Spark cuts files by the sizes it is told and reads nothing behind the last one: a size that is too small hides rows. To
look at each file would be a request for each. But an entry says how many bytes its columns take, and where row groups
start: a file is larger than these, and not by orders of magnitude. Sizes that fit are trusted to cut a file by; for
the others, and where an entry says nothing else, the storage must be asked.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.codec.manifest_avro import ManifestColumns
from frazil.columns.manifest_columns import single_chunk
from frazil.spec.data_file import DataFile

SIZE_FIELDS = ("column_sizes", "split_offsets")
"""What a manifest must be read with for sizes to be judged."""

_LEAST_FRAME_BYTES = 12
"""What a Parquet file has beside its columns and its footer; an ORC file has no less."""
_MOST_TIMES, _MOST_BYTES = 16, 1 << 30
"""A size beyond so many times the columns' bytes and so many more would make Spark plan parts that are not there."""


def has_likely_size(files: ManifestColumns) -> npt.NDArray[np.bool_]:
    """Return which files are likely as large as their entries say; those of which nothing else is known are not."""
    if any(name not in files.table.column_names for name in SIZE_FIELDS):
        return np.zeros(len(files), np.bool_)
    sizes = files.column("file_size_in_bytes").to_numpy()
    columns = _row_sums(single_chunk(files.column("column_sizes")))
    last = _row_last(single_chunk(files.column("split_offsets")))
    return _is_likely(sizes, columns, last)


def is_likely_size(file: DataFile) -> bool:
    """Return the same for one file."""
    columns = sum((file.column_sizes or {}).values())
    last = max(file.split_offsets or (-1,))
    return bool(_is_likely(np.array([file.file_size_in_bytes]), np.array([columns]), np.array([last]))[0])


def _is_likely(
    sizes: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], last_offsets: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    is_enough = (sizes >= columns + _LEAST_FRAME_BYTES) & (sizes > last_offsets)
    found: npt.NDArray[np.bool_] = (columns > 0) & is_enough & (sizes <= columns * _MOST_TIMES + _MOST_BYTES)
    return found


def _row_sums(lists: pa.Array) -> npt.NDArray[np.int64]:
    """Return the sum of the second parts of each list of pairs."""
    values = lists.values.field(1).to_numpy(zero_copy_only=False)
    before = np.concatenate(([0], np.cumsum(np.maximum(values, 0))))
    starts, ends = _ends(lists)
    found: npt.NDArray[np.int64] = before[ends] - before[starts]
    return found


def _row_last(lists: pa.Array) -> npt.NDArray[np.int64]:
    """Return the last value of each list, -1 of an empty one."""
    values = np.append(lists.values.to_numpy(zero_copy_only=False), -1)
    starts, ends = _ends(lists)
    found: npt.NDArray[np.int64] = np.where(ends > starts, values[ends - 1], -1)
    return found


def _ends(lists: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return where the values of each list start and end; nothing is in a null one."""
    offsets = (
        np.frombuffer(lists.buffers()[1], np.int32, len(lists) + 1, lists.offset * 4)
        if len(lists)
        else np.zeros(1, np.int32)
    )
    starts, ends = offsets[:-1], offsets[1:]
    return starts, np.where(lists.is_valid().to_numpy(zero_copy_only=False), ends, starts)
