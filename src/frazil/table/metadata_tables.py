"""`t.inspect`: the metadata tables of a table as Arrow, each a method with its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from frazil.loaded import LoadedTable
from frazil.metadata_tables.tables import METADATA_TABLES, read_metadata_table
from frazil.scan.choose_snapshot import SnapshotChoice


class MetadataTableReader:
    """One metadata table of a table: call it, and its rows are read."""

    def __init__(self, load: Callable[[], LoadedTable], name: str) -> None:
        self._load = load
        self._name = name

    def __call__(
        self,
        *,
        snapshot_id: int | None = None,
        as_of_ms: int | None = None,
        ref: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Return the rows, of the current snapshot unless another is chosen; with `columns`, those alone are read."""
        choice = SnapshotChoice(snapshot_id, as_of_ms, ref)
        return read_metadata_table(self._load(), self._name, choice=choice, columns=columns)

    def __repr__(self) -> str:
        return f"<metadata table {self._name!r}: call it to read its rows>"


class _Named:
    """A metadata table by the name of the attribute."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, tables: MetadataTables, owner: type | None = None) -> MetadataTableReader:
        return MetadataTableReader(tables._load, self._name)


class MetadataTables:
    """The metadata tables of a table, each a method that returns an Arrow table."""

    entries = _Named()
    files = _Named()
    data_files = _Named()
    delete_files = _Named()
    history = _Named()
    metadata_log_entries = _Named()
    snapshots = _Named()
    refs = _Named()
    manifests = _Named()
    partitions = _Named()
    all_data_files = _Named()
    all_delete_files = _Named()
    all_files = _Named()
    all_manifests = _Named()
    all_entries = _Named()
    position_deletes = _Named()

    def __init__(self, load: Callable[[], LoadedTable]) -> None:
        self._load = load

    def __repr__(self) -> str:
        return f"<metadata tables, each to be called: {', '.join(METADATA_TABLES)}>"

    def __getattr__(self, name: str) -> MetadataTableReader:
        raise AttributeError(f"no metadata table {name!r}; there are: {', '.join(METADATA_TABLES)}")
