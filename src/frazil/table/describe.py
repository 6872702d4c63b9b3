"""What `repr` says of a table and of a scan: a few lines of metadata that is loaded already; nothing is read."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.loaded import LoadedTable
from frazil.spec.snapshot import Snapshot
from frazil.sql.type_names import order_terms, partition_terms, plain_type_name
from frazil.visible_text import visible

MAX_COLUMNS = 12
MAX_TEXT = 200


def describe_table(table: LoadedTable) -> str:
    """Return a table's name, columns, partitioning and current snapshot."""
    metadata = table.metadata
    schema = metadata.current_schema
    columns = [
        f"{field.name} {plain_type_name(field.field_type)}{' not null' if field.required else ''}"
        for field in schema.fields
    ]
    return describe(
        f"Table {table.name!r}, format version {metadata.format_version}",
        columns=listed(columns),
        partitioned=", ".join(partition_terms(schema, metadata.default_spec)),
        sorted=", ".join(order_terms(schema, metadata.default_sort_order)),
        snapshot=snapshot_text(metadata.current_snapshot),
    )


def snapshot_text(snapshot: Snapshot | None) -> str:
    """Return what a snapshot is, where a line is about it."""
    return "none yet" if snapshot is None else repr(snapshot).removeprefix("<Snapshot ").removesuffix(">")


def listed(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = len(names) - MAX_COLUMNS
    return ", ".join(names[:MAX_COLUMNS]) + (f" and {more} more" if more > 0 else "")


def describe(title: str, **facts: str) -> str:
    """Return a title and a line for each fact that is not empty."""
    size = max(len(name) for name in facts)
    texts = {name: visible(text) for name, text in facts.items() if text}
    lines = [
        f"  {name:<{size}}  {text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + '…'}"
        for name, text in texts.items()
    ]
    return "\n".join([visible(title), *lines])
