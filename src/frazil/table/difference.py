"""The difference of two snapshots: in rows by the change feed, in the schema, in files. `t.difference(a, b)`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from frazil.codec.manifest_avro import ManifestColumns
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.metadata_tables.reachable import read_rows
from frazil.pictures.markup import Html, element, join
from frazil.pictures.style import in_notebook
from frazil.pictures.words import show_bytes, show_count
from frazil.scan.changelog import INSERT, Changelog
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec.reserved_columns import CHANGE_COLUMNS
from frazil.spec.schema_difference import ColumnChange, schema_changes
from frazil.spec.snapshot import Snapshot
from frazil.spec.snapshot_history import is_ancestor_of, schema_of_snapshot
from frazil.table.changed_rows import without_copies
from frazil.table.scan import Scan, ScanOptions

MAX_ROWS: Final = 100_000
"""Of more changed rows than these, the first are looked at."""
MAX_FILES: Final = 1_000_000
_SHOWN: Final = 20
_CHANGE_NAMES: Final = tuple(change_column.name for change_column in CHANGE_COLUMNS)


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Rows that one of two snapshots has and the other has not, as far as they were looked at."""

    rows: pa.Table
    """The rows, with `_change_type` and the other columns of the change feed."""
    added: int
    removed: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class FileChanges:
    """Data and delete files that one of two snapshots has and the other has not."""

    added: int = 0
    added_bytes: int = 0
    removed: int = 0
    removed_bytes: int = 0
    added_paths: tuple[str, ...] = ()
    removed_paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    """What a later snapshot of a table has otherwise than an earlier one. Nothing is read before it is asked for."""

    loaded: LoadedTable
    before: Snapshot
    after: Snapshot
    cache: ManifestCache | None = None

    def __repr__(self) -> str:
        return f"Difference({self.loaded.name!r}, {self.before.snapshot_id}, {self.after.snapshot_id})"

    @property
    def schema(self) -> list[ColumnChange]:
        """What changed of the columns."""
        metadata = self.loaded.metadata
        return schema_changes(schema_of_snapshot(metadata, self.before), schema_of_snapshot(metadata, self.after))

    @cached_property
    def rows(self) -> RowChanges:
        """The rows that were added and removed; rows that were only copied are left out."""
        if not is_ancestor_of(self.loaded.metadata, self.after.snapshot_id, self.before.snapshot_id):
            raise InvalidRequestError(
                f"Cannot compare rows: snapshot {self.before.snapshot_id} is not an ancestor of "
                f"{self.after.snapshot_id}",
                hint="Compare snapshots of one branch.",
            )
        scan = Scan(
            self.loaded,
            options=ScanOptions(manifest_cache=self.cache),
            changelog=Changelog(self.before.snapshot_id, self.after.snapshot_id),
            limit=MAX_ROWS + 1,
        )
        if self.before.snapshot_id == self.after.snapshot_id:
            scan = replace(scan, limit=0)
        return _net(scan.to_arrow())

    @cached_property
    def files(self) -> FileChanges:
        """The files that came and went; manifests that both snapshots have are not read."""
        before, after = (read_manifest_list(self.loaded.storage, snapshot) for snapshot in (self.before, self.after))
        shared = {manifest.manifest_path for manifest in before} & {manifest.manifest_path for manifest in after}

        def read(manifests: Any) -> dict[str, int]:
            found: dict[str, int] = {}
            chosen = [manifest for manifest in manifests if manifest.manifest_path not in shared]
            for more in read_rows(self.loaded, chosen, _FIELDS, _sizes, only_live=True, cache=self.cache):
                found |= more
                if len(found) > MAX_FILES:
                    raise InvalidRequestError(f"Cannot compare files: more than {MAX_FILES:,} are not shared")
            return found

        old, new = read(before), read(after)
        added = {path: size for path, size in new.items() if path not in old}
        removed = {path: size for path, size in old.items() if path not in new}
        return FileChanges(
            len(added), sum(added.values()), len(removed), sum(removed.values()), tuple(added), tuple(removed)
        )

    def _repr_html_(self) -> str:
        return in_notebook(draw_difference(self))


_FIELDS: Final = ("file_path", "file_size_in_bytes")


def _sizes(files: ManifestColumns) -> dict[str, int]:
    return dict(zip(*(files.column(name).to_pylist() for name in _FIELDS), strict=True))


def _net(changes: pa.Table) -> RowChanges:
    """Return changes without pairs of a removed and an added row that are alike."""
    is_whole = changes.num_rows <= MAX_ROWS
    changes = without_copies(changes.slice(0, MAX_ROWS))
    types = changes.column(_CHANGE_NAMES[0])
    added = int(pc.sum(pc.equal(types, INSERT)).as_py() or 0)
    return RowChanges(changes, added, changes.num_rows - added, is_whole)


def draw_difference(difference: Difference) -> Html:
    """Return a difference as a short page."""
    rows, files = difference.rows, difference.files
    head = element(
        "p",
        element("strong", f"+{show_count(rows.added)}", class_="fz-plus"),
        " rows, ",
        element("strong", f"−{show_count(rows.removed)}"),
        f" rows; files +{show_count(files.added)} ({show_bytes(files.added_bytes)}), "
        f"−{show_count(files.removed)} ({show_bytes(files.removed_bytes)})",
    )
    title = element("h4", f"From {difference.before.snapshot_id} to {difference.after.snapshot_id}")
    changes = (
        element("ul", *(element("li", str(column_change)) for column_change in difference.schema))
        if difference.schema
        else None
    )
    drawn = rows.rows.slice(0, _SHOWN)
    columns = [column_name for column_name in drawn.column_names if column_name not in _CHANGE_NAMES[1:]]
    table = element(
        "table",
        element("tr", *(element("th", column) for column in columns)),
        *(element("tr", *(element("td", row[column]) for column in columns)) for row in drawn.to_pylist()),
    )
    return join([title, head, changes, table if drawn.num_rows else None])
