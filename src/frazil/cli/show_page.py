"""`frazil table show`: a table on one page for users, and the same facts for programs."""

from __future__ import annotations

import datetime
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer

from frazil.cli.render import columns_of, fit, show_size
from frazil.loaded import LoadedTable
from frazil.maintenance.table_health import table_health
from frazil.metadata_tables.files import files
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.snapshot import Snapshot
from frazil.sql.type_names import order_terms, partition_terms, plain_type_name, sql_type_name
from frazil.visible_text import visible

MAX_COLUMNS = 40
MAX_SNAPSHOTS = 5
BAR = 32
_STEPS = (1 << 20, 8 << 20, 32 << 20, 128 << 20, 512 << 20, 1 << 30)
_STEP_NAMES = (
    "under 1 MiB",
    "1 – 8 MiB",
    "8 – 32 MiB",
    "32 – 128 MiB",
    "128 – 512 MiB",
    "512 MiB – 1 GiB",
    "over 1 GiB",
)
_DATA = 0


def table_facts(table: LoadedTable) -> dict[str, Any]:
    """Return the main facts of a table by name; counts that the snapshot's summary lacks are None."""
    metadata = table.metadata
    schema, snapshot = metadata.current_schema, metadata.current_snapshot
    summary = _summary(snapshot)
    counts = {"rows": "total-records", "data_files": "total-data-files", "delete_files": "total-delete-files"}
    return {
        "name": _name(table),
        "format_version": metadata.format_version,
        "uuid": metadata.table_uuid,
        "location": metadata.location,
        "metadata": table.metadata_location,
        "columns": [
            {
                "id": field.field_id,
                "name": field.name,
                "type": plain_type_name(field.field_type),
                "required": field.required,
            }
            for field in schema.fields
        ],
        "partitioned_by": list(partition_terms(schema, metadata.default_spec)),
        "sorted_by": list(order_terms(schema, metadata.default_sort_order)),
        "properties": dict(metadata.properties),
        "refs": {
            name: {"type": str(ref.type), "snapshot_id": ref.snapshot_id} for name, ref in sorted(metadata.refs.items())
        },
        "snapshots": len(metadata.snapshots),
        "current_snapshot": None if snapshot is None else snapshot.snapshot_id,
        **{name: _count_of(summary, key) for name, key in {**counts, "bytes": "total-files-size"}.items()},
    }


def _count_of(summary: Mapping[str, str], name: str) -> int | None:
    return _number(summary[name]) if name in summary else None


def show_page(table: LoadedTable, *, now_ms: int, width: int | None = None) -> str:
    """Return a page about a table; styles are for terminals, and are removed from other output."""
    width = 100 if width is None else max(width, 40)
    cache = ManifestCache()
    # Advice needs more manifest columns than the page, so it comes first: then each manifest is read once.
    advice = list(_advice(table, now_ms, width, cache))
    lines = [*_head(table), *_columns(table), *_shape(table), *_files(table, cache)]
    return "\n".join([*lines, *_snapshots(table), *_references(table), *advice])


def _head(table: LoadedTable) -> Iterator[str]:
    about = f"format version {table.metadata.format_version}"
    comment = table.metadata.properties.get("comment")
    yield f"{_styled(_name(table), bold=True)}  {about}"
    if comment is not None:
        yield visible(comment)
    yield _styled(table.metadata.location, dim=True)


def _columns(table: LoadedTable) -> Iterator[str]:
    fields = table.metadata.current_schema.fields
    yield from _title("Columns")
    listed = fields[:MAX_COLUMNS]
    names = [visible(nested_field.name) for nested_field in listed]
    name_size = max((columns_of(name) for name in names), default=0)
    types = [visible(sql_type_name(field.field_type)) for field in listed]
    type_size = min(max((columns_of(type_text) for type_text in types), default=0), 40)
    keys = table.metadata.current_schema.identifier_field_ids
    for field, name, data_type in zip(listed, names, types, strict=True):
        notes = [
            note for note, holds in (("required", field.required), ("identifier", field.field_id in keys)) if holds
        ]
        if field.write_default is not None:
            notes.append(f"default {field.write_default}")
        if field.doc is not None:
            notes.append(field.doc)
        # A type that is longer than its column overflows it.
        type_text = fit(data_type, max(type_size, columns_of(data_type)))
        yield f"  {fit(name, name_size)}  {type_text}  {visible(', '.join(notes))}".rstrip()
    if len(fields) > MAX_COLUMNS:
        yield f"  … and {len(fields) - MAX_COLUMNS} more: frazil table schema {visible(_name(table))}"


def _shape(table: LoadedTable) -> Iterator[str]:
    metadata = table.metadata
    schema = metadata.current_schema
    yield ""
    yield f"{_styled('Partitioned by', bold=True)}  {visible(_terms(partition_terms(schema, metadata.default_spec)))}"
    yield f"{_styled('Sorted by', bold=True)}       {visible(_terms(order_terms(schema, metadata.default_sort_order)))}"
    properties = {name: value for name, value in metadata.properties.items() if name != "comment"}
    if properties:
        yield from _title("Properties")
        yield from (visible(f"  {name} = {value}") for name, value in sorted(properties.items()))


def _files(table: LoadedTable, cache: ManifestCache) -> Iterator[str]:
    yield from _title("Files")
    listed = files(table, columns=["content", "file_size_in_bytes", "record_count"], cache=cache).to_pylist()
    data = [file for file in listed if file["content"] == _DATA]
    if not data:
        yield "  none"
        return
    sizes = [int(file["file_size_in_bytes"]) for file in data]
    rows = sum(int(file["record_count"]) for file in data)
    yield f"  {_count(len(data), 'data file')}, {show_size(sum(sizes))}, {_count(rows, 'row')}"
    deletes = [file for file in listed if file["content"] != _DATA]
    if deletes:
        # For vectors and position deletes this is the number of rows, for equality deletes that of keys.
        marked = sum(int(delete["record_count"]) for delete in deletes)
        bytes_ = sum(int(delete["file_size_in_bytes"]) for delete in deletes)
        what = "delete file or vector" if len(deletes) == 1 else "delete files and vectors"
        yield f"  {len(deletes):,} {what}, {show_size(bytes_)}, with {marked:,} deletes"
    yield from _histogram(sizes)


def _histogram(sizes: Sequence[int]) -> Iterator[str]:
    counts = [0] * len(_STEP_NAMES)
    for size in sizes:
        counts[sum(size >= step for step in _STEPS)] += 1
    used = [index for index, count in enumerate(counts) if count]
    for index in range(used[0], used[-1] + 1):
        bar = "█" * max(round(BAR * counts[index] / max(counts)), 1 if counts[index] else 0)
        yield f"  {_STEP_NAMES[index]:>15}  {_styled(bar, fg='cyan')} {counts[index]:,}"


def _snapshots(table: LoadedTable) -> Iterator[str]:
    last = table.metadata.snapshots[-MAX_SNAPSHOTS:]
    yield from _title(f"Snapshots, the last {len(last)} of {len(table.metadata.snapshots):,}" if last else "Snapshots")
    if not last:
        yield "  none"
    for snapshot in reversed(last):
        mark = "*" if snapshot.snapshot_id == table.metadata.current_snapshot_id else " "
        summary = _summary(snapshot)
        changes = [
            f"{sign}{_number(summary[name]):,} {what}"
            for sign, name, what in (
                ("+", "added-records", "rows"),
                ("-", "deleted-records", "rows"),
                ("-", "added-position-deletes", "rows by position"),
                ("-", "added-equality-deletes", "keys"),
            )
            if _number(summary.get(name, "0"))
        ]
        description = f"{visible(str(snapshot.operation or '')):<9}  {snapshot.snapshot_id:<19}  {', '.join(changes)}"
        yield f"  {mark} {_time(snapshot.timestamp_ms)}  {description}".rstrip()


def _references(table: LoadedTable) -> Iterator[str]:
    if not table.metadata.refs:
        return
    yield from _title("Branches and tags")
    refs = [(visible(name), ref) for name, ref in sorted(table.metadata.refs.items())]
    size = max(columns_of(name) for name, _ in refs)
    for name, ref in refs:
        yield f"  {fit(name, size)}  {ref.type!s:<6}  {ref.snapshot_id}"


def _advice(table: LoadedTable, now_ms: int, width: int, cache: ManifestCache) -> Iterator[str]:
    problems = table_health(table, now_ms=now_ms, cache=cache).problems
    yield from _title("Advice")
    if not problems:
        yield "  " + _styled("nothing to do", fg="green")
    for problem in problems:
        yield "  " + _styled(problem.what, fg="yellow")
        if problem.procedure is not None:
            command = problem.procedure.replace("_", "-")
            yield f"    frazil maintain {command} {visible(_name(table))}"
        else:
            yield from (f"    {line}" for line in textwrap.wrap(visible(problem.to_do), width - 4))


def _title(text: str) -> tuple[str, str]:
    return "", _styled(text, bold=True)


def _styled(text: str, **style: Any) -> str:
    """Style a text, escaping any styles in it."""
    return typer.style(visible(text), **style)


def _number(text: str) -> int:
    """Return a count of a summary, or 0 if it is not a number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _time(timestamp_ms: int) -> str:
    try:
        time = datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return f"{timestamp_ms} ms since 1970"
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _terms(terms: Sequence[str]) -> str:
    return ", ".join(terms) or "nothing"


def _name(table: LoadedTable) -> str:
    return ".".join(table.identifier)


def _summary(snapshot: Snapshot | None) -> Mapping[str, str]:
    return {} if snapshot is None or snapshot.summary is None else snapshot.summary
