"""The table that new files are written for, and the names of the files. Specification: "Path Construction".

A `WriteTarget` is the part of a table that a writer needs: small, frozen and picklable, so that it can be sent to
executors. Names contain a unique id of the write, so that no two writers collide; the storage also refuses existing
names.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from frazil.errors import NotFoundError, UnsupportedError
from frazil.loaded import LoadedTable
from frazil.spec import properties as known
from frazil.spec.data_file import FileFormat
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partitioning import UNPARTITIONED, PartitionSpec
from frazil.spec.properties import read_property
from frazil.spec.schema import Schema
from frazil.spec.sorting import UNSORTED, SortOrder
from frazil.spec.versions import DEFAULT
from frazil.storage.base import Storage
from frazil.storage.locations import DataLocations, data_file_name, data_locations

NO_PROPERTIES: FrozenMap[str, str] = FrozenMap()


def new_uuid() -> str:
    """Return a new random id, the default source of ids."""
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """The form of new files of a table, and their location."""

    schema: Schema
    location: str
    storage: Storage
    spec: PartitionSpec = UNPARTITIONED
    sort_order: SortOrder = UNSORTED
    properties: Mapping[str, str] = NO_PROPERTIES
    format_version: int = DEFAULT
    older_specs: tuple[PartitionSpec, ...] = ()
    older_schemas: tuple[Schema, ...] = ()
    """With the specs, used for deletes of rows in files from before a schema change."""

    def __post_init__(self) -> None:
        if not isinstance(self.properties, FrozenMap):
            object.__setattr__(self, "properties", FrozenMap(self.properties))
        key = read_property(self.properties, known.ENCRYPTION_TABLE_KEY)
        if key is not None:
            raise UnsupportedError(
                f"Cannot write data files: the table is encrypted ({known.ENCRYPTION_TABLE_KEY} is set)",
                hint="Encrypted tables are not supported yet.",
            )

    def find_spec(self, spec_id: int) -> PartitionSpec:
        """Return the spec with an id, the current one or an older one."""
        match = next((spec for spec in (self.spec, *self.older_specs) if spec.spec_id == spec_id), None)
        if match is None:
            raise NotFoundError(f"Cannot find partition spec {spec_id}: the table has no such spec")
        return match


def write_target(
    table: LoadedTable | WriteTarget, *, spec_id: int | None = None, sort_order_id: int | None = None
) -> WriteTarget:
    """Return the target of a table with its current schema and, by default, its default spec and sort order."""
    if isinstance(table, WriteTarget):
        return table
    metadata = table.metadata
    return WriteTarget(
        schema=metadata.current_schema,
        location=metadata.location,
        storage=table.storage,
        spec=metadata.default_spec if spec_id is None else metadata.spec(spec_id),
        sort_order=metadata.default_sort_order if sort_order_id is None else metadata.sort_order(sort_order_id),
        properties=metadata.properties,
        format_version=metadata.format_version,
        older_specs=metadata.partition_specs,
        older_schemas=tuple(reversed(metadata.schemas)),
    )


class FileNames:
    """Generates a new location for each file of a write."""

    __slots__ = ("_count", "_extension", "_locations", "_lock", "_operation_id", "_partition_id", "_suffix", "_task_id")

    def __init__(
        self,
        target: WriteTarget,
        file_format: FileFormat,
        new_id: Callable[[], str],
        *,
        partition_id: int = 0,
        task_id: int = 0,
        suffix: str | None = None,
    ) -> None:
        self._locations: DataLocations = data_locations(target.location, target.properties)
        self._extension = str(file_format)
        self._operation_id = new_id()
        self._partition_id = partition_id
        self._task_id = task_id
        self._suffix = suffix
        self._count = 0
        self._lock = threading.Lock()

    def next_location(self, partition_path: str | None) -> str:
        """Return the location of the next file."""
        with self._lock:
            self._count += 1
            count = self._count
        name = data_file_name(
            partition_id=self._partition_id,
            task_id=self._task_id,
            operation_id=self._operation_id,
            file_count=count,
            extension=self._extension,
            suffix=self._suffix,
        )
        return self._locations.new_data_location(name, partition_path)


def partition_paths_of(target: WriteTarget, spec: PartitionSpec) -> Callable[[tuple[Any, ...]], str | None]:
    """Return the function from a partition to its folder below the data folder.

    It returns None if there is only one partition.
    """
    if spec.is_unpartitioned:
        return lambda values: None
    return spec.partition_paths(target.schema, other_schemas=target.older_schemas)
