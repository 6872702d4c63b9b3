"""Check the recorded metrics of a file against its rows: number, counts, bounds and partition.

Part of `maintenance/check_table.py`, on request: it reads every row of every file. Planning skips files by these
metrics, so a range that is too narrow hides rows from queries. Bounds may be wider than the values, as truncated bounds
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
from frazil.spec import types as ft
from frazil.spec.data_file import METRIC_MAPS, DataFile, FileContent
from frazil.spec.delete_schemas import POSITION_DELETE_SCHEMA
from frazil.spec.metrics_mode import FULL
from frazil.spec.partition_key import values_key
from frazil.spec.schema import Schema
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.base import Storage

REWRITE_FILE: Final = "Rewrite the file (rewrite_data_files with a filter on its partition), which measures it again."
_COUNTS: Final = ("value_counts", "null_value_counts", "nan_value_counts")

KNOWN_MISCOUNT: Final = (
    "Iceberg's Java writers do not count floats and doubles in null structs. frazil reads the rows correctly; rewrite "
    "the file (rewrite_data_files) to correct the counts for readers that trust them."
)


class Finding(NamedTuple):
    """One wrong record; a warning if reads are correct nevertheless."""

    code: str
    what: str
    to_do: str
    is_warning: bool = False


def check_rows(storage: Storage, file: DataFile, view: TableView, metadata: TableMetadata) -> Iterator[Finding]:
    """Read a whole file and yield the records that are wrong."""
    schemas = (POSITION_DELETE_SCHEMA,) if file.content is FileContent.POSITION_DELETES else view.schemas
    with closing(open_reader(storage, file, view.rules)) as reader, reading("file", file.file_path, HEADING):
        columns_schema = _columns_of(file, schemas, set(reader.schema.field_ids), metadata)
        columns = resolve(columns_schema, reader.schema, file.file_path)
        leaves = needed_leaves(columns, reader.schema.fields)
        projection = Projection(columns, reader.pruned(leaves).fields)
        collector = MetricsCollector(columns_schema, dict.fromkeys(columns_schema.fields_by_id, FULL))
        partitions = _PartitionCheck(file, columns_schema, metadata)
        rows = 0
        for batch in reader.batches(leaves, batch_rows=DEFAULT_BATCH_ROWS):
            rows += batch.length
            if columns_schema.fields and batch.length:
                projected = projection.batch(batch.columns, batch.length)
                collector.add(pa.Table.from_batches([projected]))
                partitions.add(projected)
    if rows != file.record_count:
        what = f"the file has {rows:,} rows, but its entry says {file.record_count:,}"
        yield Finding(
            "wrong-count",
            what,
            "Remove the file from the table and add it again, or roll back to before it was added.",
        )
    yield from _differences(file, columns_schema, collector.metrics())
    yield from partitions.findings()


def _columns_of(file: DataFile, schemas: tuple[Schema, ...], stored: set[int], metadata: TableMetadata) -> Schema:
    """Return the columns whose metrics or partition can be compared: recorded, stored, and in some schema."""
    recorded: set[int] = set()
    for name in METRIC_MAPS:
        if name != "column_sizes":
            recorded |= set(getattr(file, name) or ())
    spec = metadata.specs_by_id.get(file.spec_id)
    if spec is not None and file.content is FileContent.DATA:
        recorded |= {source for field in spec.fields for source in field.source_ids}
    remaining = recorded & stored
    fields: dict[int, ft.NestedField] = {}
    for schema in schemas:
        own = {
            field_id
            for field_id in remaining
            if schema.find_field(field_id) is not None and _is_measured(schema, field_id)
        }
        remaining -= own
        for field in schema.project(own).fields if own else ():
            # If two schemas have different parts of a column, those of the newer one are compared.
            fields.setdefault(field.field_id, field)
    names: set[str] = set()
    distinct = []
    for nested_field in fields.values():
        if nested_field.name not in names:  # the name of a dropped column may have been reused
            names.add(nested_field.name)
            distinct.append(nested_field)
    return Schema(tuple(distinct))


def _is_measured(schema: Schema, field_id: int) -> bool:
    """Return whether a field is a value that is not in a list or map."""
    nested_field = schema.find_field(field_id)
    if nested_field is None or isinstance(
        nested_field.field_type, ft.StructType | ft.ListType | ft.MapType | ft.UnknownType
    ):
        return False
    return all(isinstance(field.field_type, ft.StructType) for field in schema.ancestors_of(field_id))


def _differences(file: DataFile, schema: Schema, actual: Metrics) -> Iterator[Finding]:
    for name in _COUNTS:
        recorded: Mapping[int, int] = getattr(file, name) or {}
        for field_id, count in getattr(actual, name).items():
            if field_id in recorded and recorded[field_id] not in (count, -1):
                what = (
                    f"column {schema.name_of(field_id)!r} has {count:,} as its {_label(name)}, but the entry says "
                    f"{recorded[field_id]:,}"
                )
                if recorded[field_id] < count and _may_lack_null_structs(schema, field_id):
                    yield Finding("wrong-count", what, KNOWN_MISCOUNT, is_warning=True)
                else:
                    yield Finding("wrong-count", what, REWRITE_FILE)
    for name, is_lower in (("lower_bounds", True), ("upper_bounds", False)):
        bounds: Mapping[int, bytes] = getattr(file, name) or {}
        for field_id, value in getattr(actual, name).items():
            if field_id not in bounds:
                continue
            data_type = schema.field(field_id).field_type
            text = _outside(bounds[field_id], value, data_type, is_lower=is_lower)
            if text is not None:
                what = f"the {_label(name)[:-1]} of column {schema.name_of(field_id)!r} {text}"
                yield Finding("wrong-bounds", what, REWRITE_FILE)


def _may_lack_null_structs(schema: Schema, field_id: int) -> bool:
    """Return whether a count may be too low because enclosing structs are null."""
    is_floating = isinstance(schema.field(field_id).field_type, ft.FloatType | ft.DoubleType)
    return is_floating and any(field.optional for field in schema.ancestors_of(field_id))


def _label(name: str) -> str:
    return name.replace("_", " ")


def _outside(recorded: bytes, actual: bytes, data_type: ft.Type, *, is_lower: bool) -> str | None:
    """Return how the values violate a recorded bound, or None."""
    if isinstance(data_type, ft.GeometryType | ft.GeographyType | ft.VariantType):
        return None
    try:
        bound = decode_bound(recorded, data_type)
    except CorruptTableError as error:
        return f"cannot be read: {error.message}"
    value = decode_bound(actual, data_type)
    if bound != bound:
        return "is NaN, which is not a valid bound"
    if (value < bound) if is_lower else (value > bound):
        return f"is {_shorten(bound)}, but a value is {_shorten(value)}"
    return None


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class _PartitionCheck:
    """Checks that all rows of a data file belong to its partition, if its sources are stored in the file."""

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
            return  # dropped columns or unknown transforms, which cannot be checked

    def add(self, rows: pa.RecordBatch) -> None:
        """Compare further rows."""
        if self._partitioner is None:
            return
        expected = values_key(self._file.partition)
        for values in self._partitioner.group(rows).partitions:
            key = values_key(values)
            if key != expected and len(self._others) < 3:
                self._others[key] = values

    def findings(self) -> Iterator[Finding]:
        """Yield the wrong partitions that rows are in."""
        for values in self._others.values():
            what = f"there are rows of partition {values!r}, but the entry says {self._file.partition!r}"
            yield Finding(
                "wrong-partition",
                what,
                "Rewrite the file's partition (rewrite_data_files), which moves the rows to the right partitions.",
            )
