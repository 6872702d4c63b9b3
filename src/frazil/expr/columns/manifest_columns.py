"""Metrics of one table column for all files of a manifest. Specification: "Field-level Metrics and Statistics".

This is between `codec/manifest_avro.py`, which keeps a file's metrics as stored in the manifest (a list of column ids
and values for each file), and pruning, which needs one array per table column, aligned with the files. There is no loop
over files: all ids of a manifest are one flat array, and a column's entries are at the positions of its id.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from frazil.codec.manifest_avro import ManifestColumns
from frazil.codec.partition_arrow import arrow_type_of
from frazil.spec.manifest import EntryStatus
from frazil.spec.types import StructType

BoundName: TypeAlias = Literal["lower_bounds", "upper_bounds"]
CountName: TypeAlias = Literal["column_sizes", "value_counts", "null_value_counts", "nan_value_counts"]


def bounds_of(manifest: ManifestColumns, field_id: int, name: BoundName) -> pa.Array:
    """Return a column's lower or upper bounds as bytes, one per file, or null if a file has none."""
    return _metric(manifest, field_id, name)


def counts_of(manifest: ManifestColumns, field_id: int, name: CountName) -> pa.Array:
    """Return a column's counts or sizes, one per file, or null if a file has none."""
    return _metric(manifest, field_id, name)


def live_mask(manifest: ManifestColumns) -> npt.NDArray[np.bool_]:
    """Return which entries are live: added and existing ones."""
    mask: npt.NDArray[np.bool_] = manifest.column("status").to_numpy() != EntryStatus.DELETED.value
    return mask


def single_chunk(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, without copying a single chunk."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def partition_children(manifest: ManifestColumns, data_type: StructType) -> list[pa.Array]:
    """Return each file's partition tuple as fields of a unified type of several specs, in plain Arrow types.

    Fields are matched by id; if the manifest's spec lacks a field, the values are null.
    """
    positions_by_id = {field.field_id: index for index, field in enumerate(manifest.partition_type.fields)}
    stored = single_chunk(manifest.column("partition")).flatten()
    children = []
    for field in data_type.fields:
        target = arrow_type_of(field.field_type)
        position = positions_by_id.get(field.field_id)
        # A void field may have another type than the field it replaced; its values are all null.
        is_same = position is not None and stored[position].type == target
        children.append(stored[position] if is_same else pa.nulls(len(manifest), target))
    return children


def _metric(manifest: ManifestColumns, field_id: int, name: str) -> pa.Array:
    column = manifest.column(name)
    picked = [_pick(chunk, field_id) for chunk in column.chunks]
    if not picked:
        return pa.nulls(0, column.type.value_type.field(1).type)
    return picked[0] if len(picked) == 1 else pa.concat_arrays(picked)


def _pick(lists: pa.Array, field_id: int) -> pa.Array:
    """Return the value for an id in each list of pairs; if a list has the id twice, the last."""
    rows = len(lists)
    pairs = lists.values
    if rows == 0 or len(pairs) == 0:
        return pa.nulls(rows, pairs.type.field(1).type)
    offsets = np.frombuffer(lists.buffers()[1], np.int32, rows + 1, lists.offset * 4)
    keys = pairs.field(0).to_numpy()[offsets[0] : offsets[-1]]
    values = pairs.field(1)
    width = _shared_width(offsets)
    if width and np.array_equal(keys[width:], keys[:-width]):
        # Most manifests have the same columns in every file.
        positions = np.flatnonzero(keys[:width] == field_id)
        if len(positions) == 0:
            return pa.nulls(rows, values.type)
        first = int(offsets[0] + positions[-1])
        if pa.types.is_integer(values.type) and values.null_count == 0:
            return pa.array(values.to_numpy()[first : offsets[-1] : width])
        return values.take(pa.array(np.arange(first, offsets[-1], width)))
    hits = np.flatnonzero(keys == field_id) + offsets[0]
    owners = np.searchsorted(offsets, hits, side="right") - 1
    indexes = np.zeros(rows, np.int64)
    missing = np.ones(rows, np.bool_)
    # If an index occurs twice, the last assignment wins.
    indexes[owners] = hits
    missing[owners] = False
    return values.take(pa.array(indexes, mask=missing))


def _shared_width(offsets: npt.NDArray[np.int32]) -> int:
    """Return the length of each list, or 0 if lengths differ."""
    width = int(offsets[1] - offsets[0])
    is_shared = int(offsets[-1] - offsets[0]) == width * (len(offsets) - 1) and bool((np.diff(offsets) == width).all())
    return width if is_shared else 0
