"""Whether what is recorded of a file's rows holds: their number, counts, bounds and partition.

Part of `maintenance/check_table.py`, on request: it reads every row of every file. Planning skips files by these
numbers, so one that is too narrow hides rows from queries. Bounds may be wider than the values, as truncated ones
are; counts must be exact. Specification: "Field-level Metrics and Statistics".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final, NamedTuple

import pyarrow as pa

from frazil.codec.single_value import decode_bound
from frazil.datafile.collect_metrics import Metrics, MetricsCollector
from frazil.datafile.open_file import reading
from frazil.datafile.partition_values import Partitioner
from frazil.datafile.project import Projection, needed_leaves
from frazil.datafile.read_file import DEFAULT_BATCH_ROWS, open_reader, resolve
from frazil.datafile.read_task import HEADING, TableView
from frazil.errors import CorruptTableError, FrazilError
from frazil.spec.data_file import METRIC_MAPS, DataFile, FileContent
from frazil.spec.delete_schemas import POSITION_DELETE_SCHEMA
from frazil.spec.metrics_mode import FULL
from frazil.spec.partition_key import values_key
from frazil.spec.schema import Schema
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import (
    DoubleType,
    FloatType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    UnknownType,
    VariantType,
)
from frazil.storage.base import Storage

REWRITE_FILE: Final = "Rewrite the file (rewrite_data_files with a filter on its partition), which measures it anew."
_COUNTS: Final = ("value_counts", "null_value_counts", "nan_value_counts")

COUNTED_OTHERWISE: Final = (
    "Iceberg's Java writers do not count floats and doubles in structs that are null. Rows are read right here; a file "
    "that is rewritten (rewrite_data_files) is counted right, for others that trust the counts."
)


class Finding(NamedTuple):
    """One thing that is recorded wrongly; as a warning where what is read is right all the same."""

    code: str
    what: str
    to_do: str
    is_warning: bool = False


def check_rows(storage: Storage, file: DataFile, view: TableView, metadata: TableMetadata) -> Iterator[Finding]:
    """Read a file through and yield what is recorded wrongly."""
    schemas = (POSITION_DELETE_SCHEMA,) if file.content is FileContent.POSITION_DELETES else view.schemas
    with closing(open_reader(storage, file, view.rules)) as reader, reading("file", file.file_path, HEADING):
        wanted = _columns_of(file, schemas, set(reader.schema.field_ids), metadata)
        columns = resolve(wanted, reader.schema, file.file_path)
        leaves = needed_leaves(columns, reader.schema.fields)
        projection = Projection(columns, reader.pruned(leaves).fields)
        collector = MetricsCollector(wanted, dict.fromkeys(wanted.fields_by_id, FULL))
        partitions = _PartitionCheck(file, wanted, metadata)
        rows = 0
        for batch in reader.batches(leaves, batch_rows=DEFAULT_BATCH_ROWS):
            rows += batch.length
            if wanted.fields and batch.length:
                shown = projection.batch(batch.columns, batch.length)
                collector.add(pa.Table.from_batches([shown]))
                partitions.add(shown)
    if rows != file.record_count:
        what = f"the file has {rows:,} rows, and its entry says {file.record_count:,}"
        yield Finding(
            "wrong-count",
            what,
            "Take the file out of the table and add it anew, or roll back to before it was added.",
        )
    yield from _differences(file, wanted, collector.metrics())
    yield from partitions.findings()


def _columns_of(file: DataFile, schemas: tuple[Schema, ...], stored: set[int], metadata: TableMetadata) -> Schema:
    """Return the columns whose metrics or partition can be compared: recorded, stored, and known to some schema."""
    recorded: set[int] = set()
    for name in METRIC_MAPS:
        if name != "column_sizes":
            recorded |= set(getattr(file, name) or ())
    spec = metadata.specs_by_id.get(file.spec_id)
    if spec is not None and file.content is FileContent.DATA:
        recorded |= {source for field in spec.fields for source in field.source_ids}
    left = recorded & stored
    found: dict[int, NestedField] = {}
    for schema in schemas:
        own = {
            field_id for field_id in left if schema.find_field(field_id) is not None and _is_measured(schema, field_id)
        }
        left -= own
        for field in schema.project(own).fields if own else ():
            # Of a column that two schemas know different parts of, the newer one's are compared.
            found.setdefault(field.field_id, field)
    names: set[str] = set()
    kept = []
    for nested_field in found.values():
        if nested_field.name not in names:  # a dropped column may have left its name to another
            names.add(nested_field.name)
            kept.append(nested_field)
    return Schema(tuple(kept))


def _is_measured(schema: Schema, field_id: int) -> bool:
    """Return whether a field is a value outside of lists and maps."""
    nested_field = schema.find_field(field_id)
    if nested_field is None or isinstance(nested_field.field_type, StructType | ListType | MapType | UnknownType):
        return False
    return all(isinstance(field.field_type, StructType) for field in schema.ancestors_of(field_id))


def _differences(file: DataFile, wanted: Schema, actual: Metrics) -> Iterator[Finding]:
    for name in _COUNTS:
        recorded: Mapping[int, int] = getattr(file, name) or {}
        for field_id, count in getattr(actual, name).items():
            if field_id in recorded and recorded[field_id] not in (count, -1):
                what = (
                    f"column {wanted.name_of(field_id)!r} has {count:,} as its {_shown(name)}, and the entry says "
                    f"{recorded[field_id]:,}"
                )
                if recorded[field_id] < count and _may_lack_null_structs(wanted, field_id):
                    yield Finding("wrong-count", what, COUNTED_OTHERWISE, is_warning=True)
                else:
                    yield Finding("wrong-count", what, REWRITE_FILE)
    for name, is_lower in (("lower_bounds", True), ("upper_bounds", False)):
        bounds: Mapping[int, bytes] = getattr(file, name) or {}
        for field_id, value in getattr(actual, name).items():
            if field_id not in bounds:
                continue
            data_type = wanted.field(field_id).field_type
            text = _outside(bounds[field_id], value, data_type, is_lower=is_lower)
            if text is not None:
                what = f"the {_shown(name)[:-1]} of column {wanted.name_of(field_id)!r} {text}"
                yield Finding("wrong-bounds", what, REWRITE_FILE)


def _may_lack_null_structs(schema: Schema, field_id: int) -> bool:
    """Return whether a count may be low because structs around the field are null."""
    is_floating = isinstance(schema.field(field_id).field_type, FloatType | DoubleType)
    return is_floating and any(field.optional for field in schema.ancestors_of(field_id))


def _shown(name: str) -> str:
    return name.replace("_", " ")


def _outside(recorded: bytes, actual: bytes, data_type: Type, *, is_lower: bool) -> str | None:
    """Return how a recorded bound fails to hold for the values, or None."""
    if isinstance(data_type, GeometryType | GeographyType | VariantType):
        return None
    try:
        bound = decode_bound(recorded, data_type)
    except CorruptTableError as error:
        return f"cannot be read: {error.message}"
    value = decode_bound(actual, data_type)
    if bound != bound:
        return "is NaN, which is no bound"
    if (value < bound) if is_lower else (value > bound):
        return f"is {_cut(bound)}, and there is the value {_cut(value)}"
    return None


def _cut(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class _PartitionCheck:
    """Whether all rows of a data file belong to its partition, where its sources are stored in it."""

    def __init__(self, file: DataFile, columns: Schema, metadata: TableMetadata) -> None:
        self._file = file
        self._partitioner: Partitioner | None = None
        self._others: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        spec = metadata.specs_by_id.get(file.spec_id)
        if file.content is not FileContent.DATA or spec is None or spec.is_unpartitioned:
            return
        if any(columns.find_field(field.source_id) is None for field in spec.fields if not field.transform.is_void):
            return
        try:
            self._partitioner = Partitioner(columns, spec, metadata.current_schema)
        except FrazilError:
            return  # a spec of dropped columns or unknown transforms, which says nothing of rows

    def add(self, rows: pa.RecordBatch) -> None:
        """Compare some more rows."""
        if self._partitioner is None:
            return
        expected = values_key(self._file.partition)
        for values in self._partitioner.group(rows).partitions:
            key = values_key(values)
            if key != expected and len(self._others) < 3:
                self._others[key] = values

    def findings(self) -> Iterator[Finding]:
        """Yield the partitions that rows are in and should not be."""
        for values in self._others.values():
            what = f"there are rows of partition {values!r}, and the entry says {self._file.partition!r}"
            yield Finding(
                "wrong-partition",
                what,
                "Rewrite the file's partition (rewrite_data_files), which sorts its rows out.",
            )
