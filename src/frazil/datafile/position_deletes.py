"""Read the deleted positions of a data file. Specification: "Position Delete Files", "Deletion Vectors".

A deletion vector is one ranged read. Only the paths and positions of a position delete file are read. If it may refer
to many data files, it is split by path once and cached for later tasks, unless it is too large: then each task reads
the part for its own file.

Paths are compared as strings, as in Iceberg Java: a delete with another spelling of a path deletes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.deletion_vector import DeletionVector, read_deletion_vector
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.open_file import reading
from frazil.datafile.raw_batch import ReadRules
from frazil.datafile.read_file import read_columns
from frazil.errors import (
    CorruptTableError,
    InvalidDataFileError,
    InvalidManifestError,
    InvalidPuffinError,
    InvalidRequestError,
)
from frazil.expr.bind import reference_to
from frazil.expr.predicates import TRUE, Bound, Op, Predicate
from frazil.scan.tasks import DeleteTask
from frazil.spec.data_file import DataFile
from frazil.spec.delete_schemas import POSITION_DELETE_SCHEMA, POSITION_HEADING
from frazil.spec.name_mapping import create_name_mapping
from frazil.spec.reserved_columns import DELETE_FILE_PATH
from frazil.storage.base import Storage

_RULES = ReadRules(POSITION_DELETE_SCHEMA, create_name_mapping(POSITION_DELETE_SCHEMA))
_PATH = reference_to(POSITION_DELETE_SCHEMA, DELETE_FILE_PATH.field_id)
_BYTES_PER_POSITION = 8


def read_file_positions(storage: Storage, task: DeleteTask, data_file: DataFile, cache: DeleteCache) -> DeletionVector:
    """Return the positions of a data file deleted by one delete; a vector must not go beyond the file's end."""
    positions = read_positions(storage, task, data_file.file_path, cache)
    rows, last = data_file.record_count, positions.last
    if task.data_file.is_deletion_vector and last is not None and 0 <= rows <= last:
        raise InvalidPuffinError(
            f"Cannot read the deletion vector of {data_file.file_path}: it deletes row {last}, but the file has {rows} "
            "rows, counted from 0",
            hint="Restore the vector or read another snapshot; `check()` lists what is wrong.",
            path=task.data_file.file_path,
            heading="Deletion Vectors",
        )
    return positions


def read_positions(storage: Storage, task: DeleteTask, data_path: str, cache: DeleteCache) -> DeletionVector:
    """Return the positions of one data file in a deletion vector or a position delete file."""
    file = task.data_file
    if file.is_deletion_vector:
        # Parts of a large data file use the same vector.
        key = ("vector", file.file_path, file.content_offset, data_path)
        return cache.load(key, lambda: (_read_vector(storage, task, data_path), file.content_size_in_bytes or 0))
    if file.record_count * _BYTES_PER_POSITION > cache.budget_bytes:
        return _positions_of(storage, task, data_path)
    by_path = cache.load(("positions", file.file_path), lambda: _read_all(storage, task))
    return by_path.get(data_path, DeletionVector())


def _read_vector(storage: Storage, task: DeleteTask, data_path: str) -> DeletionVector:
    file = task.data_file
    if file.content_offset is None or file.content_size_in_bytes is None:
        raise InvalidManifestError(
            f"Cannot read the deletion vector of {data_path}: its entry has no offset or no size",
            path=file.file_path,
            heading="Deletion Vectors",
        )
    if file.referenced_data_file != data_path:
        raise InvalidManifestError(
            f"Cannot read the deletion vector of {data_path}: its entry refers to {file.referenced_data_file}",
            path=file.file_path,
            heading="Deletion Vectors",
        )
    try:
        return read_deletion_vector(
            lambda offset, length: storage.read_range(file.file_path, offset, length),
            file.content_offset,
            file.content_size_in_bytes,
            record_count=file.record_count,
        )
    except CorruptTableError as error:
        raise error.at_path(file.file_path) from error


def _batches(
    storage: Storage, task: DeleteTask, predicate: Predicate = TRUE
) -> Iterator[tuple[pa.Array, npt.NDArray[np.int64]]]:
    """Yield the paths and positions of a position delete file."""
    for batch in read_columns(storage, task.data_file, POSITION_DELETE_SCHEMA, _RULES, predicate=predicate):
        yield batch.column(0), batch.column(1).to_numpy()


def _positions_of(storage: Storage, task: DeleteTask, data_path: str) -> DeletionVector:
    """Return the positions of one data file, without caching those of others."""
    groups = []
    for paths, positions in _batches(storage, task, Bound(Op.EQ, _PATH, (data_path,))):
        is_own = pc.equal(paths, data_path)
        if task.data_file.referenced_data_file is not None and not pc.all(is_own).as_py():
            _check_paths(task, pc.unique(paths).to_pylist())
        groups.append(positions[is_own.to_numpy(zero_copy_only=False)])
    return _vector(np.concatenate(groups) if groups else np.empty(0, np.int64), task)


def _check_paths(task: DeleteTask, paths: Collection[str]) -> None:
    """Refuse a file that declares one data file and deletes rows of another, perhaps another table's."""
    declared = task.data_file.referenced_data_file
    others = [] if declared is None else sorted(path for path in paths if path != declared)
    if others:
        raise InvalidDataFileError(
            f"Cannot read position deletes: the manifest declares {declared}, but the file deletes rows of {others[0]}",
            hint="Restore the delete file or read another snapshot; it may belong to another table.",
            path=task.data_file.file_path,
            heading=POSITION_HEADING,
        )


def _read_all(storage: Storage, task: DeleteTask) -> tuple[dict[str, DeletionVector], int]:
    """Return the positions by data file path, and their approximate size."""
    parts: dict[str, list[npt.NDArray[np.int64]]] = {}
    for paths, positions in _batches(storage, task):
        encoded = paths.dictionary_encode()
        with reading("position delete file", task.data_file.file_path, POSITION_HEADING):
            names = encoded.dictionary.to_pylist()
        if len(names) == 1:
            parts.setdefault(names[0], []).append(positions)
            continue
        codes = encoded.indices.to_numpy()
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(names)))
        for name, group in zip(names, np.split(positions[order], ends[:-1]), strict=True):
            parts.setdefault(name, []).append(group)
    _check_paths(task, parts)
    vectors = {path: _vector(np.concatenate(groups), task) for path, groups in parts.items()}
    size = sum(len(path) + 200 + _BYTES_PER_POSITION * vector.cardinality for path, vector in vectors.items())
    return vectors, size


def _vector(positions: npt.NDArray[np.int64], task: DeleteTask) -> DeletionVector:
    try:
        return DeletionVector(positions)
    except InvalidRequestError as error:
        raise InvalidDataFileError(
            f"Cannot read position deletes: {error.message}", path=task.data_file.file_path, heading=POSITION_HEADING
        ) from error
