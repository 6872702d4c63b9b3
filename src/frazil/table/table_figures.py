"""A table's figures and growth, from metadata alone: what the console lists and notebooks show of a table."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.catalog.names import Identifier
from frazil.loaded import LoadedTable
from frazil.pictures.markup import Html, element, join
from frazil.pictures.plots import MAX_POINTS, Point, draw_growth
from frazil.pictures.style import operation_kind
from frazil.pictures.words import show_bytes, show_count, show_time
from frazil.spec.snapshot import Snapshot, Summary, summary_number
from frazil.spec.snapshot_history import ancestor_heads
from frazil.spec.table_metadata import TableMetadata
from frazil.sql.type_names import partition_terms, plain_type_name

MAX_COLUMNS = 50


@dataclass(frozen=True, slots=True)
class TableFigures:
    """A table in a line. What is not known is None."""

    identifier: Identifier
    rows: int | None = None
    is_most: bool = False
    """Whether the rows are that many at most: equality deletes are not counted."""
    bytes: int | None = None
    files: int | None = None
    changed_ms: int | None = None
    engine: str | None = None
    version: int | None = None
    snapshots: int | None = None


def figures_of(loaded: LoadedTable) -> TableFigures:
    """Return a table's figures, by the summary of its current snapshot."""
    metadata = loaded.metadata
    snapshot = metadata.current_snapshot
    if snapshot is None:
        changed, version = metadata.last_updated_ms, metadata.format_version
        return TableFigures(loaded.identifier, 0, False, 0, 0, changed, None, version, len(metadata.snapshots))
    total = summary_number(snapshot, Summary.TOTAL_RECORDS)
    deleted = summary_number(snapshot, Summary.TOTAL_POSITION_DELETES) or 0
    return TableFigures(
        loaded.identifier,
        None if total is None else max(total - deleted, 0),
        bool(summary_number(snapshot, Summary.TOTAL_EQUALITY_DELETES)),
        summary_number(snapshot, Summary.TOTAL_FILES_SIZE),
        summary_number(snapshot, Summary.TOTAL_DATA_FILES),
        snapshot.timestamp_ms,
        engine_of(snapshot),
        metadata.format_version,
        len(metadata.snapshots),
    )


def engine_of(snapshot: Snapshot | None) -> str | None:
    """Return who wrote a snapshot: its engine and version, or what else its summary says."""
    facts = {} if snapshot is None or snapshot.summary is None else snapshot.summary
    name = facts.get(Summary.ENGINE_NAME)
    if name is not None:
        return f"{name} {facts.get(Summary.ENGINE_VERSION, '')}".strip()
    if "spark.app.id" in facts:
        return "spark"
    return facts.get("iceberg-version") or None


def draw_rows_growth(metadata: TableMetadata) -> Html:
    """Draw how many rows the current line of snapshots had."""
    points = [_point(snapshot, Summary.TOTAL_RECORDS, Summary.TOTAL_POSITION_DELETES) for snapshot in _line(metadata)]
    return draw_growth(points, "Rows")


def draw_bytes_growth(metadata: TableMetadata) -> Html:
    """Draw how many bytes the current line of snapshots had."""
    return draw_growth(
        [_point(snapshot, Summary.TOTAL_FILES_SIZE) for snapshot in _line(metadata)], "Bytes", show_bytes, base=1024
    )


def _line(metadata: TableMetadata) -> list[Snapshot]:
    """Return snapshots of the current line, the oldest first: as many as a plot can show, the rest is not read."""
    current = metadata.current_snapshot
    if current is None:
        return []
    ids = [ancestor.snapshot_id for ancestor in ancestor_heads(metadata.snapshots, current.snapshot_id)]
    step = max(-(-len(ids) // MAX_POINTS), 1)
    return [metadata.snapshot(snapshot_id) for snapshot_id in reversed(ids[::step])]


def _point(snapshot: Snapshot, key: str, less: str | None = None) -> Point:
    value = (summary_number(snapshot, key) or 0) - (0 if less is None else summary_number(snapshot, less) or 0)
    texts = [snapshot.operation or "no summary", engine_of(snapshot) or ""]
    added = summary_number(snapshot, Summary.ADDED_RECORDS)
    if added:
        texts.append(f"+{show_count(added)} rows")
    operation = operation_kind(snapshot.operation)
    return Point(snapshot.timestamp_ms, max(value, 0), " · ".join(text for text in texts if text), operation)


def draw_table(loaded: LoadedTable) -> Html:
    """Return a table as a short page: its figures, its columns, its growth."""
    figures, metadata = figures_of(loaded), loaded.metadata
    said = [
        f"version {figures.version}",
        "rows not known"
        if figures.rows is None
        else f"{'≤ ' if figures.is_most else ''}{show_count(figures.rows)} rows",
        "" if figures.bytes is None else show_bytes(figures.bytes),
        "" if figures.files is None else "1 file" if figures.files == 1 else f"{show_count(figures.files)} files",
        "1 snapshot" if figures.snapshots == 1 else f"{show_count(figures.snapshots or 0)} snapshots",
        "" if figures.changed_ms is None else f"changed {show_time(figures.changed_ms)}",
    ]
    fields = metadata.current_schema.fields
    terms = ", ".join(partition_terms(metadata.current_schema, metadata.default_spec))
    columns = element(
        "table",
        element("tr", *(element("th", text) for text in ("id", "column", "type", "comment"))),
        *(
            element(
                "tr",
                element("td", field.field_id, class_="fz-number"),
                element("td", element("code", field.name)),
                element(
                    "td", element("code", f"{plain_type_name(field.field_type)}{' required' if field.required else ''}")
                ),
                element("td", field.doc or ""),
            )
            for field in fields[:MAX_COLUMNS]
        ),
    )
    more = len(fields) - MAX_COLUMNS
    return join(
        [
            element("h4", loaded.name),
            element("p", " · ".join(text for text in said if text), class_="fz-muted"),
            element("p", "partitioned by ", element("code", terms)) if terms else None,
            columns,
            element("p", f"… and {more:,} more columns", class_="fz-muted") if more > 0 else None,
            draw_rows_growth(metadata) if figures.snapshots else None,
        ]
    )
