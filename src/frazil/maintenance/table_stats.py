"""Estimate the distinct values of columns, as sketches in a statistics file. Specification: "Table Statistics".

All rows of a snapshot are read with deletes applied, column by column into theta sketches (`codec/theta_sketch.py`), in
bounded memory: in this process, or by a sketcher such as Spark (`spark/write/sketch_columns.py`). The Puffin file is
written to the metadata folder and listed for the snapshot. Planners use it to choose join orders; nothing breaks if it
is missing or old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.catalog.base import Catalog
from frazil.codec.puffin import PuffinWriter
from frazil.codec.single_value import value_encoder
from frazil.codec.theta_sketch import (
    EMPTY_SKETCH,
    NO_HASHES,
    Hashes,
    ThetaSketch,
    encode_theta_sketch,
    hash_buffer,
    hash_bytes_of,
    hash_fixed,
)
from frazil.commit.summary import frazil_version
from frazil.commit.transaction import commit_actions
from frazil.commit.update_statistics import UpdateStatistics
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.partition_values import column_at, find_path
from frazil.datafile.read_task import TableView, read_task, view_table
from frazil.datafile.read_tasks import read_in_order
from frazil.datafile.value_arrays import values_of
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.maintenance.shown_work import with_progress
from frazil.progress import count
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import plan_scan
from frazil.scan.tasks import FileScanTask
from frazil.spec.puffin import CREATED_BY, NDV, THETA_SKETCH_V1
from frazil.spec.schema import Schema
from frazil.spec.snapshot_history import schema_of_snapshot
from frazil.spec.statistics import BlobMetadata, StatisticsFile
from frazil.spec.types import PrimitiveType, StructType, UnknownType
from frazil.storage.base import Storage
from frazil.storage.locations import metadata_folder
from frazil.threads import default_threads


@dataclass(frozen=True)
class SketchWork:
    """The inputs for sketching columns of files, in this process or on an executor."""

    view: TableView
    projection: Schema
    field_ids: tuple[int, ...]
    storage: Storage

    def sketch(self, tasks: Iterable[FileScanTask], *, threads: int = 1) -> dict[int, ThetaSketch]:
        """Return the sketches of the columns of files, by field id, by reading their rows."""
        read = partial(read_task, view=self.view, projection=self.projection, storage=self.storage, cache=DeleteCache())
        paths = {field_id: find_path(self.projection, field_id) or () for field_id in self.field_ids}
        kinds = {field_id: self.projection.field(field_id).field_type for field_id in self.field_ids}
        sketches = dict.fromkeys(self.field_ids, EMPTY_SKETCH)
        for batch in read_in_order(read, tasks, threads=threads):
            count("rows read", batch.num_rows)
            for field_id in self.field_ids:
                hashes = hash_column(column_at(batch, paths[field_id]), kinds[field_id])
                sketches[field_id] = sketches[field_id].with_hashes(hashes)
        return sketches


Sketcher: TypeAlias = Callable[[SketchWork, Iterable[FileScanTask]], dict[int, ThetaSketch]]
"""Sketches columns of files."""


@with_progress("compute statistics of")
def compute_table_stats(
    catalog: Catalog,
    loaded: LoadedTable,
    snapshot_id: int | None = None,
    columns: Sequence[str] | None = None,
    *,
    dry_run: bool = False,
    sketcher: Sketcher | None = None,
    cache: ManifestCache | None = None,
    threads: int | None = None,
) -> tuple[LoadedTable, StatisticsFile | None]:
    """Write the statistics file of a snapshot, by default the current one; return the new state and the file.

    By default all columns that are not nested are included. The file is None if the table has no snapshot. Other
    writers do not conflict. With `dry_run` rows are read, but nothing is written.
    """
    metadata = loaded.metadata
    snapshot = metadata.current_snapshot if snapshot_id is None else metadata.snapshot(snapshot_id)
    if snapshot is None:
        return loaded, None
    schema = schema_of_snapshot(metadata, snapshot)
    field_ids = _field_ids(schema, columns)
    if not field_ids:
        raise InvalidRequestError(f"Cannot compute statistics of {loaded.name}: it has no column of a primitive type")
    work = SketchWork(view_table(metadata, schema), schema.project(set(field_ids)), tuple(field_ids), loaded.storage)
    tasks = plan_scan(loaded, choice=SnapshotChoice(snapshot_id=snapshot.snapshot_id), cache=cache).iter_tasks()
    workers = default_threads() if threads is None else threads
    sketches = work.sketch(tasks, threads=workers) if sketcher is None else sketcher(work, tasks)
    writer = PuffinWriter({CREATED_BY: f"frazil {frazil_version()}"})
    for field_id, sketch in sketches.items():
        writer.add_blob(
            THETA_SKETCH_V1,
            encode_theta_sketch(sketch),
            fields=(field_id,),
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
            compression_codec="zstd",
            properties={NDV: str(int(sketch.estimate))},
        )
    data = writer.finish()
    name = f"{snapshot.snapshot_id}-{catalog.new_id()}.stats"
    path = f"{metadata_folder(metadata.location, metadata.properties)}/{name}"
    blobs = tuple(
        BlobMetadata(blob.type, blob.snapshot_id, blob.sequence_number, blob.fields, blob.properties)  # type: ignore[arg-type]
        for blob in writer.footer.file_metadata.blobs
    )
    statistics = StatisticsFile(snapshot.snapshot_id, path, len(data), writer.footer.footer_size, blobs)
    if dry_run:
        return loaded, statistics
    loaded.storage.create(path, data)
    return commit_actions(catalog, loaded, UpdateStatistics(statistics=(statistics,)), cache=cache), statistics


def _field_ids(schema: Schema, columns: Sequence[str] | None) -> list[int]:
    if columns is None:
        return [field.field_id for field in schema.fields if _is_simple(field.field_type)]
    if isinstance(columns, str) or not columns:
        raise InvalidRequestError(f"Cannot compute statistics of the columns {columns!r}: pass a list of names")
    field_ids = []
    for name in columns:
        nested_field = schema.field(name)
        if not _is_simple(nested_field.field_type):
            raise InvalidRequestError(
                f"Cannot compute statistics of column {name!r}: it is a {nested_field.field_type}"
            )
        if not all(isinstance(parent.field_type, StructType) for parent in schema.ancestors_of(nested_field.field_id)):
            raise InvalidRequestError(f"Cannot compute statistics of column {name!r}: it is in a list or map")
        field_ids.append(nested_field.field_id)
    return list(dict.fromkeys(field_ids))


def _is_simple(data_type: object) -> bool:
    return isinstance(data_type, PrimitiveType) and not isinstance(data_type, UnknownType)


def hash_column(column: pa.Array, data_type: Any) -> Hashes:
    """Return the hashes of a column's values, by their single-value bytes; nulls have none."""
    array = column.storage if isinstance(column.type, pa.BaseExtensionType) else column
    array = array.drop_null()
    if len(array) == 0:
        return NO_HASHES
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        return _hash_variable(array)
    if pa.types.is_fixed_size_binary(array.type) and not pa.types.is_decimal(array.type):
        return hash_fixed(_fixed_bytes(array, array.type.byte_width))
    if pa.types.is_boolean(array.type):
        return hash_fixed(array.cast(pa.uint8()).to_numpy().reshape(-1, 1))
    if pa.types.is_decimal(array.type) or pa.types.is_nested(array.type) or pa.types.is_dictionary(array.type):
        encode = value_encoder(data_type)
        return hash_bytes_of([encode(value) for value in values_of(pc.unique(array), data_type)])
    return hash_fixed(_fixed_bytes(array, array.type.bit_width // 8))


def _fixed_bytes(array: pa.Array, width: int) -> npt.NDArray[np.uint8]:
    data = np.frombuffer(array.buffers()[1], np.uint8)
    start = array.offset * width
    return data[start : start + len(array) * width].reshape(len(array), width)


def _hash_variable(array: pa.Array) -> Hashes:
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    buffer = array.buffers()[2]
    data = np.empty(0, np.uint8) if buffer is None else np.frombuffer(buffer, np.uint8)
    starts = offsets[:-1].astype(np.int64)
    return hash_buffer(data, starts, offsets[1:].astype(np.int64) - starts)
