"""A table's history: which snapshot was current when, and all snapshots on a graph of branches. `t.history()`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from frazil.pictures.lanes import draw_row, lay_out
from frazil.pictures.markup import Html, element
from frazil.pictures.style import in_notebook, operation_kind
from frazil.pictures.words import show_count, show_time
from frazil.spec.snapshot import Snapshot, SnapshotLogEntry, SnapshotRef, Summary, summary_number
from frazil.spec.table_metadata import TableMetadata
from frazil.table.table_figures import engine_of

MAX_LINES: Final = 200


@dataclass(frozen=True, slots=True)
class HistoryLine:
    """One snapshot on the graph: what it did, and the branches and tags at it."""

    snapshot: Snapshot
    graph: Html
    refs: tuple[tuple[str, SnapshotRef], ...]
    is_current: bool

    @property
    def kind(self) -> str:
        """The class of colour of what it did."""
        return operation_kind(self.snapshot.operation)

    @property
    def engine(self) -> str | None:
        """Who wrote it."""
        return engine_of(self.snapshot)

    @property
    def added_rows(self) -> int:
        """Rows in the files it added."""
        return summary_number(self.snapshot, Summary.ADDED_RECORDS) or 0

    @property
    def removed_rows(self) -> int:
        """Rows in the files it removed, and those it deleted by position."""
        by_position = summary_number(self.snapshot, Summary.ADDED_POSITION_DELETES) or 0
        back = summary_number(self.snapshot, Summary.REMOVED_POSITION_DELETES) or 0
        return (summary_number(self.snapshot, Summary.DELETED_RECORDS) or 0) + max(by_position - back, 0)

    @property
    def added_files(self) -> int:
        """Data and delete files that it added."""
        return _sum(self.snapshot, Summary.ADDED_DATA_FILES, Summary.ADDED_DELETE_FILES)

    @property
    def removed_files(self) -> int:
        """Data and delete files that it removed."""
        return _sum(self.snapshot, Summary.DELETED_DATA_FILES, Summary.REMOVED_DELETE_FILES)

    @property
    def added_manifests(self) -> int:
        """Manifests that it wrote, where it says so: rewrites do."""
        return _sum(self.snapshot, Summary.MANIFESTS_CREATED)

    @property
    def removed_manifests(self) -> int:
        """Manifests that it replaced."""
        return _sum(self.snapshot, Summary.MANIFESTS_REPLACED)

    @property
    def total_rows(self) -> int | None:
        """Rows of the table after it."""
        total = summary_number(self.snapshot, Summary.TOTAL_RECORDS)
        deleted = summary_number(self.snapshot, Summary.TOTAL_POSITION_DELETES) or 0
        return None if total is None else max(total - deleted, 0)


def _sum(snapshot: Snapshot, *keys: str) -> int:
    return sum(summary_number(snapshot, key) or 0 for key in keys)


def history_lines(metadata: TableMetadata, first: int = 0, count: int = MAX_LINES) -> list[HistoryLine]:
    """Return some snapshots on the graph, the newest first; only those are read whole."""
    heads = list(reversed(metadata.snapshots.heads))[first : first + count]
    rows = lay_out([(head.snapshot_id, head.parent_snapshot_id) for head in heads])
    refs: dict[int, list[tuple[str, SnapshotRef]]] = {}
    for name, ref in sorted(metadata.refs.items()):
        refs.setdefault(ref.snapshot_id, []).append((name, ref))
    lines = []
    for row in rows:
        snapshot, is_current = metadata.snapshot(row.key), row.key == metadata.current_snapshot_id
        graph = draw_row(row, operation_kind(snapshot.operation), is_current=is_current)
        lines.append(HistoryLine(snapshot, graph, tuple(refs.get(row.key, ())), is_current))
    return lines


class History(tuple[SnapshotLogEntry, ...]):  # noqa: SLOT001 - a tuple with slots can hold nothing more
    """Which snapshot was current since when, oldest first; in a notebook, all snapshots on a graph of branches."""

    _metadata: TableMetadata

    def __new__(cls, entries: Iterable[SnapshotLogEntry], metadata: TableMetadata) -> History:
        """Make a history of a table's log."""
        made = super().__new__(cls, entries)
        made._metadata = metadata
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return History, (tuple(self), self._metadata)

    def _repr_html_(self) -> str:
        lines = history_lines(self._metadata)
        titles = ("", "when", "snapshot", "did", "rows", "files", "by", "")
        head = element("tr", *(element("th", title) for title in titles))
        body = [
            element(
                "tr",
                element("td", line.graph),
                element("td", show_time(line.snapshot.timestamp_ms)),
                element("td", element("code", line.snapshot.snapshot_id)),
                element("td", line.snapshot.operation or ""),
                element("td", _signed(line.added_rows, line.removed_rows), class_="fz-number"),
                element("td", _signed(line.added_files, line.removed_files), class_="fz-number"),
                element("td", line.engine or ""),
                element("td", ", ".join(name for name, _ in line.refs)),
            )
            for line in lines
        ]
        more = len(self._metadata.snapshots) - len(lines)
        rest = element("p", f"… and {more:,} older snapshots", class_="fz-muted") if more > 0 else None
        return in_notebook(element("table", head, *body), rest)


def _signed(added: int, removed: int) -> str:
    return " ".join(([f"+{show_count(added)}"] if added else []) + ([f"−{show_count(removed)}"] if removed else []))
