"""The fields and column names of data files, by which files that one relation can read are grouped.

Most tables need none of this: Spark finds columns by field id, and a missing column is null or its default. Footers are
read, on the driver and several at once, only in these cases:

- the table has a name mapping, so that some files may have no field ids: such files are read by their own column names,
  grouped by shape;
- a nested field has an initial default, which Spark fills at the top level only, and not for every type: files without
  the field are read without it, and the struct is rebuilt;
- a date was promoted to a timestamp in nanoseconds, which Spark does not support: files with dates are read as dates.

Schemas of footers are cached by path for the life of the process, since data files are immutable.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from pyarrow.types import is_date

from frazil.codec.manifest_avro import ManifestColumns
from frazil.datafile.file_schema import FileSchema, walk
from frazil.datafile.raw_batch import ReadRules
from frazil.datafile.read_parquet import ParquetReader
from frazil.spec import types as ft
from frazil.spec.schema import Schema
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.base import Storage
from frazil.threads import default_threads, map_in_order

_MAX_CACHED_FOOTERS = 200_000
_LONG_DIGITS = 18


@dataclass(frozen=True)
class FileShape:
    """The fields of a file: all but the `absent` ones by id, or, without ids, the mapped ones under their `names`."""

    has_ids: bool = True
    absent: frozenset[int] = frozenset()
    names: tuple[tuple[int, str], ...] = ()
    dates: frozenset[int] = frozenset()
    """Fields that are stored as dates and are now timestamps in nanoseconds."""

    def holds(self, field_id: int) -> bool:
        """Return whether the field is read from the file."""
        return field_id not in self.absent if self.has_ids else any(known_id == field_id for known_id, _ in self.names)

    def name_of(self, field_id: int) -> str:
        """Return the name of a field in a file without ids."""
        return next(name for known_id, name in self.names if known_id == field_id)

    @property
    def label(self) -> str:
        """The text of the shape in a relation's key."""
        fields = f"lacks {sorted(self.absent)}" if self.has_ids else f"named {list(self.names)}"
        return f"{fields} dates {sorted(self.dates)}"


BY_ID = FileShape()
"""The shape of files whose columns Spark finds by id, and whose missing columns it fills."""


def default_parts(fields: Sequence[ft.NestedField]) -> frozenset[int]:
    """Return the ids of fields with an initial default that Spark's reader does not fill."""
    schema = Schema(tuple(fields))
    top = {field.field_id for field in fields}
    return frozenset(
        field_id
        for field_id, field in schema.fields_by_id.items()
        if field.initial_default is not None and (field_id not in top or not is_filled_by_spark(field.field_type))
    )


def is_filled_by_spark(data_type: ft.Type) -> bool:
    """Return whether Spark's reader fills a missing top-level column of a type with its default."""
    if isinstance(data_type, ft.DecimalType):
        return data_type.precision <= _LONG_DIGITS
    return not data_type.is_nested and not isinstance(
        data_type, ft.BinaryType | ft.FixedType | ft.UuidType | ft.GeometryType | ft.GeographyType
    )


def former_dates(metadata: TableMetadata, fields: Sequence[ft.NestedField]) -> frozenset[int]:
    """Return the ids of nanosecond fields that files may store as dates, which Spark would misread."""
    ids = {schema.schema_id for schema in metadata.schemas}
    is_complete = ids == set(range(len(ids)))
    return frozenset(
        field_id
        for field_id, field in Schema(tuple(fields)).fields_by_id.items()
        if isinstance(field.field_type, ft.TimestampNsType)
        and (not is_complete or any(_is_date(schema.find_field(field_id)) for schema in metadata.schemas))
    )


def _is_date(field: ft.NestedField | None) -> bool:
    return field is not None and isinstance(field.field_type, ft.DateType)


class FileShapes:
    """The shapes of a scan's Parquet files: `optional` are ids whose absence matters, `dates` ids that may be dates."""

    def __init__(
        self,
        storage: Storage,
        rules: ReadRules,
        optional: frozenset[int],
        dates: frozenset[int],
        *,
        has_mapping: bool,
    ) -> None:
        self._storage = storage
        self._rules = rules
        self._optional = optional
        self._dates = dates
        self._has_mapping = has_mapping
        self._shapes: dict[str, FileShape] = {}

    @property
    def are_needed(self) -> bool:
        """Whether footers must be read to determine shapes."""
        return self._has_mapping or bool(self._optional) or bool(self._dates)

    def of(self, files: ManifestColumns) -> list[FileShape]:
        """Return the shape of each file of a batch, reading the footers that are not cached."""
        if not self.are_needed:
            return [BY_ID] * len(files)
        paths = files.column("file_path").to_pylist()
        sizes = files.column("file_size_in_bytes").to_pylist()
        formats = files.column("file_format").to_pylist()
        missing = [
            (path, size)
            for path, size, file_format in zip(paths, sizes, formats, strict=True)
            if path not in self._shapes and file_format.lower() == "parquet"
        ]
        shapes = map_in_order(lambda file: self._shape(*file), missing, threads=default_threads())
        for (path, _), shape in zip(missing, shapes, strict=True):
            self._shapes[path] = shape
        return [self._shapes.get(path, BY_ID) for path in paths]

    def _shape(self, path: str, size: int) -> FileShape:
        file_schema = _footers.schema_of(self._storage, path, size, self._rules)
        parts = [field for field in walk(file_schema.fields) if field.field_id in self._dates]
        dates = frozenset(field.field_id for field in parts if field.field_id is not None and is_date(field.arrow))
        if not file_schema.is_mapped:
            return FileShape(absent=self._optional - self._with_ancestors(file_schema.field_ids), dates=dates)
        names = {field.field_id: field.name for field in walk(file_schema.fields) if field.field_id is not None}
        return FileShape(has_ids=False, names=tuple(sorted(names.items())), dates=dates)

    def _with_ancestors(self, ids: frozenset[int]) -> frozenset[int]:
        """Return the ids and those of all enclosing fields, since some writers set ids on leaves only."""
        parents = self._rules.schema.parents_by_id
        with_ancestors = set(ids)
        for field_id in ids:
            parent = parents.get(field_id)
            while parent is not None and parent not in with_ancestors:
                with_ancestors.add(parent)
                parent = parents.get(parent)
        return frozenset(with_ancestors)


class _Footers:
    """A cache of file schemas by path, most recently used; equal schemas share one object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._schemas: OrderedDict[tuple[str, int, int], FileSchema] = OrderedDict()
        self._equal: dict[FileSchema, FileSchema] = {}

    def schema_of(self, storage: Storage, path: str, size: int, rules: ReadRules) -> FileSchema:
        key = (path, size, hash((rules.schema, repr(rules.name_mapping))))
        with self._lock:
            cached = self._schemas.get(key)
            if cached is not None:
                self._schemas.move_to_end(key)
                return cached
        reader = ParquetReader(storage, path, rules, size=size)
        try:
            schema = reader.schema
        finally:
            reader.close()
        with self._lock:
            schema = self._equal.setdefault(schema, schema)
            self._schemas[key] = schema
            if len(self._schemas) > _MAX_CACHED_FOOTERS:
                self._schemas.popitem(last=False)
        return schema


_footers = _Footers()
