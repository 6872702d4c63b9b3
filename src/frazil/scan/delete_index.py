"""The deletes that apply to each data file. Specification: "Scan Planning", scope rules; "Delete Formats".

    deletion vector     its referenced file is the data file; its sequence number is not lower.
                        It replaces all position deletes of that file.
    position deletes    of one file (named, or both path bounds equal): by path. Others: by partition.
                        The sequence number is not lower than the data file's.
    equality deletes    by partition, or for all files if their spec is unpartitioned. The sequence number
                        is strictly higher. Left out if metrics prove that no row can be equal.

Partitions are equal if spec and tuple are; floats compare by their bits, with all NaN equal. Fields of equality deletes
are looked up in every schema of the table: a dropped column still deletes.

Tables whose rows would depend on the reader are refused as corrupt: two deletion vectors for one file, a vector older
than its file, a vector or a file's own position deletes in another partition than the file, equality deletes without
columns.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns, iter_entries
from frazil.errors import FieldNotFoundError, InvalidManifestError
from frazil.expr.bind import reference_to
from frazil.expr.columns.manifest_columns import bounds_of
from frazil.expr.columns.partition_keys import partition_keys
from frazil.expr.columns.stats_masks import Mask, StatsColumns, to_mask
from frazil.expr.predicates import BoundReference
from frazil.scan.prune import stats_columns
from frazil.scan.tasks import DeleteTask
from frazil.spec.data_file import FileContent, FileFormat, PartitionKey
from frazil.spec.reserved_columns import DELETE_FILE_PATH
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import PrimitiveType

DELETE_FIELDS = (
    "status",
    "sequence_number",
    "content",
    "file_path",
    "file_format",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "equality_ids",
    "sort_order_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)
"""The columns of a delete manifest that a plan reads."""

HEADING = "Scan Planning"


@dataclass(slots=True)
class _BySequence:
    """Deletes of one scope, in the order of their sequence numbers."""

    numbers: list[int]
    sequences: list[int]

    def at_least(self, sequence: int) -> list[int]:
        return self.numbers[bisect_left(self.sequences, sequence) :]

    def above(self, sequence: int) -> list[int]:
        return self.numbers[bisect_right(self.sequences, sequence) :]


@dataclass(frozen=True, slots=True)
class _EqualityDelete:
    """One equality delete file: its number among all deletes, and the metrics of its columns."""

    number: int
    sequence: int
    columns: tuple[tuple[BoundReference, StatsColumns, int], ...]


class DeleteIndex:
    """The live deletes of a snapshot, numbered in the order of their manifests."""

    def __init__(self, files: list[ManifestColumns], metadata: TableMetadata) -> None:
        self._files = files
        self._metadata = metadata
        self._starts = np.cumsum([0, *(len(group) for group in files)])
        self._tasks: dict[int, DeleteTask] = {}
        self._sequences: list[int] = []
        self._vectors: dict[str, int] = {}
        self._by_path: dict[str, _BySequence] = {}
        self._by_partition: dict[PartitionKey, _BySequence] = {}
        self._global_equality: list[_EqualityDelete] = []
        self._equality: dict[PartitionKey, list[_EqualityDelete]] = {}
        self._keys: dict[int, PartitionKey] = {}
        self._build()

    @property
    def is_empty(self) -> bool:
        """Whether there are no deletes."""
        return len(self._sequences) == 0

    @property
    def has_equality_deletes(self) -> bool:
        """Whether some delete is an equality delete, so that data files' metrics are needed."""
        return bool(self._global_equality) or bool(self._equality)

    @property
    def tasks(self) -> Sequence[DeleteTask]:
        """All deletes by number."""
        return [self.task(number) for number in range(len(self._sequences))]

    def task(self, number: int) -> DeleteTask:
        """Return a delete by its number."""
        cached = self._tasks.get(number)
        if cached is None:
            index = int(np.searchsorted(self._starts, number, side="right")) - 1
            files = self._files[index]
            row = replace(files, table=files.table.slice(number - int(self._starts[index]), 1).drop_columns(_METRICS))
            cached = DeleteTask(next(iter_entries(row)).data_file, self._sequences[number])
            self._tasks[number] = cached
        return cached

    def _build(self) -> None:
        by_path: dict[str, list[int]] = defaultdict(list)
        by_partition: dict[PartitionKey, list[int]] = defaultdict(list)
        for files in self._files:
            start = len(self._sequences)
            self._sequences += [value or 0 for value in files.column("sequence_number").to_pylist()]
            contents = files.column("content").to_pylist()
            keys = partition_keys(files)
            vectors = to_mask(pc.equal(files.column("file_format"), FileFormat.PUFFIN.value))
            paths = scoped_paths(files)
            for index, content in enumerate(contents):
                number = start + index
                if content == FileContent.EQUALITY_DELETES:
                    self._add_equality(files, index, number, keys[index])
                    continue
                path = paths[index]
                if vectors[index]:
                    self._add_vector(files, path, number)
                    self._keys[number] = keys[index]
                elif path is not None:
                    by_path[path].append(number)
                    self._keys[number] = keys[index]
                else:
                    by_partition[keys[index]].append(number)
        self._by_path = {path: self._ordered(numbers) for path, numbers in by_path.items()}
        self._by_partition = {key: self._ordered(numbers) for key, numbers in by_partition.items()}

    def _ordered(self, numbers: list[int]) -> _BySequence:
        ordered = sorted(numbers, key=self._sequences.__getitem__)
        return _BySequence(ordered, [self._sequences[number] for number in ordered])

    def _add_vector(self, files: ManifestColumns, path: str | None, number: int) -> None:
        if path is None:
            raise _corrupt("a deletion vector does not name its data file", files)
        if path in self._vectors:
            raise _corrupt(f"two deletion vectors are live for data file {path}", files)
        self._vectors[path] = number

    def _add_equality(self, files: ManifestColumns, index: int, number: int, key: PartitionKey) -> None:
        ids = files.column("equality_ids")[index].as_py()
        if not ids:
            path = files.column("file_path")[index].as_py()
            raise _corrupt(f"equality delete file {path} has no equality ids", files)
        row = replace(files, table=files.table.slice(index, 1))
        columns = []
        for field_id in ids:
            reference = self._reference(field_id, files)
            columns.append((reference, stats_columns(reference, row), field_id))
        delete = _EqualityDelete(number, self._sequences[number], tuple(columns))
        if self._metadata.spec(files.spec_id).is_unpartitioned:
            self._global_equality.append(delete)
        else:
            self._equality.setdefault(key, []).append(delete)

    def _reference(self, field_id: int, files: ManifestColumns) -> BoundReference:
        """Return the reference to an equality column, from the newest schema that has it."""
        newest_first = sorted(self._metadata.schemas, key=lambda schema: schema.schema_id, reverse=True)
        for schema in (self._metadata.current_schema, *newest_first):
            if schema.find_field(field_id) is not None:
                return reference_to(schema, field_id)
        try:
            return reference_to(files.schema, field_id)
        except FieldNotFoundError:
            raise _corrupt(f"equality deletes use field id {field_id}, which no schema has", files) from None

    def deletes_for(self, files: ManifestColumns) -> list[tuple[int, ...]]:
        """Return for each data file the numbers of the deletes that apply to it, oldest first."""
        sequences = [value or 0 for value in files.column("sequence_number").to_pylist()]
        paths = files.column("file_path").to_pylist()
        keys = partition_keys(files) if self._by_partition or self._equality or self._keys else [()] * len(files)
        applying = [self._positions(path, sequences[index], keys[index], files) for index, path in enumerate(paths)]
        if self.has_equality_deletes:
            for position, numbers in self._equality_rows(files, np.array(sequences, dtype=np.int64), keys).items():
                applying[position] += numbers
        order = self._sequences.__getitem__
        return [tuple(numbers) if len(numbers) < 2 else tuple(sorted(numbers, key=order)) for numbers in applying]

    def _positions(self, path: str, sequence: int, key: PartitionKey, files: ManifestColumns) -> list[int]:
        vector = self._vectors.get(path)
        if vector is not None:
            if self._sequences[vector] < sequence:
                raise _corrupt(
                    f"the deletion vector of {path} has sequence number {self._sequences[vector]}, "
                    f"lower than its data file's {sequence}",
                    files,
                )
            self._check_partition(vector, path, key, files)
            return [vector]
        own = self._by_path.get(path)
        numbers = [] if own is None else own.at_least(sequence)
        for number in numbers:
            self._check_partition(number, path, key, files)
        shared = self._by_partition.get(key)
        return numbers if shared is None else numbers + shared.at_least(sequence)

    def _check_partition(self, number: int, path: str, key: PartitionKey, files: ManifestColumns) -> None:
        if self._keys[number] != key:
            raise _corrupt(f"position deletes of {path} are in another partition than the file", files)

    def _equality_rows(self, files: ManifestColumns, sequences: Any, keys: list[PartitionKey]) -> dict[int, list[int]]:
        """Return the equality deletes of each row that has any."""
        rows: dict[int, list[int]] = defaultdict(list)
        cached: dict[int, StatsColumns] = {}
        for delete in self._global_equality:
            for position in np.nonzero(self._may_delete(delete, files, sequences, cached))[0].tolist():
                rows[position].append(delete.number)
        if self._equality:
            by_key: dict[PartitionKey, list[int]] = defaultdict(list)
            for index, key in enumerate(keys):
                by_key[key].append(index)
            for key, members in by_key.items():
                for delete in self._equality.get(key, ()):
                    applies = self._may_delete(delete, files, sequences, cached)
                    for file_index in members:
                        if applies[file_index]:
                            rows[file_index].append(delete.number)
        return rows

    def _may_delete(
        self, delete: _EqualityDelete, files: ManifestColumns, sequences: Any, cached: dict[int, StatsColumns]
    ) -> Mask:
        applies: Mask = sequences < delete.sequence
        for reference, deleted, field_id in delete.columns:
            if not applies.any():
                break
            if not isinstance(reference.result_type, PrimitiveType):
                continue
            own = cached.get(field_id)
            if own is None:
                own = cached[field_id] = stats_columns(reference, files)
            applies = applies & ~_cannot_be_equal(own, deleted)
        return applies


_METRICS = ["value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"]


def _cannot_be_equal(own: StatsColumns, deleted: StatsColumns) -> Mask:
    """Return for which files one column proves that no row equals a deleted one."""
    no_null, all_null = bool(deleted.has_no_null[0]), bool(deleted.is_all_null[0])
    proven: Mask = (own.is_all_null & no_null) | (own.has_no_null & all_null)
    both_may_have_null = ~own.has_no_null & (not no_null)
    lower, upper = deleted.lower[0], deleted.upper[0]
    apart = np.zeros(len(own.has_no_null), dtype=bool)
    if upper.is_valid:
        apart |= to_mask(pc.greater(own.lower, upper))
    if lower.is_valid:
        apart |= to_mask(pc.less(own.upper, lower))
    return proven | (apart & ~both_may_have_null)


def scoped_paths(files: ManifestColumns) -> list[str | None]:
    """Return for each delete file the single data file it refers to, or None if there may be several."""
    named: list[str | None] = files.column("referenced_data_file").to_pylist()
    if all(path is not None for path in named):
        return named
    lower = bounds_of(files, DELETE_FILE_PATH.field_id, "lower_bounds")
    upper = bounds_of(files, DELETE_FILE_PATH.field_id, "upper_bounds")
    same = to_mask(pc.equal(lower, upper))
    return [
        path if path is not None else lower[index].as_py().decode("utf-8", "replace") if same[index] else None
        for index, path in enumerate(named)
    ]


def _corrupt(reason: str, files: ManifestColumns) -> InvalidManifestError:
    return InvalidManifestError(f"Cannot plan the scan: {reason}", path=files.path, heading=HEADING)
