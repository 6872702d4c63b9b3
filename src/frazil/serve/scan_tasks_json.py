"""Planned files as JSON of the protocol: `FileScanTask`, `DataFile`, `DeleteFile`.

Files stay columnar up to here: values shared by all files of a manifest are computed once, and the rest are lists that
the encoder iterates over. Bounds are sent as hexadecimal bytes, as clients of the protocol expect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from frazil.codec.manifest_avro import ManifestColumns, iter_entries
from frazil.codec.partition_arrow import values_of
from frazil.codec.single_value_json import encode_json_value
from frazil.expr.predicate_json import encode_predicate
from frazil.expr.predicates import TRUE, Predicate
from frazil.scan.plan import FileBatch, Plan
from frazil.spec.data_file import METRIC_MAPS, DataFile, FileContent, parse_file_format
from frazil.spec.types import StructType

_CONTENTS = {
    FileContent.DATA: "data",
    FileContent.POSITION_DELETES: "position-deletes",
    FileContent.EQUALITY_DELETES: "equality-deletes",
}
_OPTIONAL = (
    "split_offsets",
    "sort_order_id",
    "first_row_id",
    "equality_ids",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
)
_BOUNDS = ("lower_bounds", "upper_bounds")
_PLAIN = (
    "file_path",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "split_offsets",
    "sort_order_id",
    "first_row_id",
)
"""The columns of a file without metrics, in the order in which they are read."""


class ScanTasks:
    """The tasks of one response: files, and the deletes that they reference by number."""

    def __init__(self, plan: Plan, stats_ids: frozenset[int]) -> None:
        self._plan = plan
        self._stats_ids = stats_ids
        self._deletes: dict[int, int] = {}
        self._residuals: dict[int, tuple[Predicate, Any]] = {}
        self.files: list[dict[str, Any]] = []
        self.delete_files: list[dict[str, Any]] = []

    def add(self, batches: Iterable[FileBatch]) -> None:
        """Add the files of batches."""
        for batch in batches:
            self.files += self._tasks_of(batch)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the response; deletes only if a file references one."""
        fields: dict[str, Any] = {"file-scan-tasks": self.files}
        return {**fields, "delete-files": self.delete_files} if self.delete_files else fields

    def _tasks_of(self, batch: FileBatch) -> Iterator[dict[str, Any]]:
        residuals = self._plan.residuals_of(batch)
        has_filter = self._plan.predicate != TRUE
        files = self._files_with_metrics(batch) if self._stats_ids else _files_of(batch.files)
        for index, (partition, file) in enumerate(files):
            task: dict[str, Any] = {"data-file": file}
            if batch.deletes is not None and batch.deletes[index]:
                task["delete-file-references"] = [self._reference(number) for number in batch.deletes[index]]
            if has_filter:
                task["residual-filter"] = self._residual(residuals.of(partition))
            yield task

    def _files_with_metrics(self, batch: FileBatch) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        for entry in iter_entries(batch.files):
            file = entry.data_file
            yield file.partition, encode_file(file, batch.files.partition_type, self._stats_ids)

    def _reference(self, number: int) -> int:
        """Return the position of a delete in this response."""
        index = self._deletes.get(number)
        if index is None:
            index = self._deletes[number] = len(self.delete_files)
            file = self._plan.delete_task(number).data_file
            self.delete_files.append(encode_file(file, self._plan.partition_type(file.spec_id), frozenset()))
        return index

    def _residual(self, predicate: Predicate) -> Any:
        # Files of one partition share the predicate object, which is kept here so that its id() stays unique.
        cached = self._residuals.get(id(predicate))
        if cached is None:
            cached = self._residuals[id(predicate)] = (predicate, encode_predicate(predicate))
        return cached[1]


def _files_of(files: ManifestColumns) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Yield the data files of a manifest as JSON without metrics, each with its partition, without other objects."""
    parts = files.partition_type.fields
    partitions: list[tuple[Any, ...]] = [()] * len(files)
    if parts:
        struct = files.column("partition").combine_chunks()
        by_field = [values_of(struct.field(index), field.field_type) for index, field in enumerate(parts)]
        partitions = list(zip(*by_field, strict=True))
    formats = {text: parse_file_format(text).value for text in set(files.column("file_format").to_pylist())}
    by_partition: dict[tuple[Any, ...], list[Any]] = {}
    columns = zip(partitions, *(files.column(name).to_pylist() for name in _PLAIN), strict=True)
    for partition, path, form, rows, size, offsets, order, first_row in columns:
        values = by_partition.get(partition)
        if values is None:
            values = by_partition[partition] = _partition_values(partition, files.partition_type)
        file = {
            "spec-id": files.spec_id,
            "content": "data",
            "file-path": path,
            "file-format": formats[form],
            "partition": values,
            "file-size-in-bytes": size,
            "record-count": rows,
        }
        if offsets is not None:
            file["split-offsets"] = offsets
        if order is not None:
            file["sort-order-id"] = order
        if first_row is not None:
            file["first-row-id"] = first_row
        yield partition, file


def _partition_values(partition: tuple[Any, ...], partition_type: StructType) -> list[Any]:
    return [
        None if value is None else encode_json_value(value, field.field_type)
        for field, value in zip(partition_type.fields, partition, strict=True)
    ]


def encode_file(file: DataFile, partition_type: StructType, stats_ids: frozenset[int]) -> dict[str, Any]:
    """Return a data or delete file as JSON, with the metrics of selected columns."""
    encoded: dict[str, Any] = {
        "spec-id": file.spec_id,
        "content": _CONTENTS[file.content],
        "file-path": file.file_path,
        "file-format": file.file_format.value,
        "partition": _partition_values(file.partition, partition_type),
        "file-size-in-bytes": file.file_size_in_bytes,
        "record-count": file.record_count,
    }
    if file.key_metadata is not None:
        encoded["key-metadata"] = file.key_metadata.hex()
    for name in _OPTIONAL:
        value = getattr(file, name)
        if value is not None:
            encoded[name.replace("_", "-")] = value
    if stats_ids:
        for name in METRIC_MAPS:
            metrics: Mapping[int, Any] | None = getattr(file, name)
            if metrics is not None:
                chosen = {key: value for key, value in metrics.items() if key in stats_ids}
                values = [value.hex() for value in chosen.values()] if name in _BOUNDS else list(chosen.values())
                encoded[name.replace("_", "-")] = {"keys": list(chosen), "values": values}
    return encoded
