"""The files of a table: sizes, deletes, a map of partitions, and one file in detail."""

from __future__ import annotations

from statistics import median
from typing import Any, Final

from frazil.console.visit import PageSection, Visit, table_address
from frazil.datafile.parquet_layout import read_parquet_layout
from frazil.errors import FrazilError, NotFoundError
from frazil.metadata_tables.file_figures import SHARES, FileFigures, file_figures
from frazil.metadata_tables.files import find_file
from frazil.pictures.markup import Html
from frazil.pictures.plots import WIDE, WIDTH, Bar, draw_bars
from frazil.pictures.tree_map import Tile, draw_map
from frazil.pictures.words import show_bytes, show_count
from frazil.serve.exchange import Answer
from frazil.table.cells import cell_text

MAX_MANIFESTS: Final = 100
MAX_METRICS: Final = 300
_SHARE_NAMES: Final = ("none", "below 1%", "1–10%", "10–30%", "30–60%", "60% and more")


def files_page(visit: Visit) -> Answer:
    """Show the size distribution of a state's files."""
    table, partition = visit.table, visit.query.get("partition")

    def make() -> Html:
        return _figures(visit, file_figures(table.state, visit.choice(), partition=partition))

    return visit.page(
        "files.html",
        {
            "figures": PageSection(
                ("files", visit.state_key, visit.text("at"), partition), f"files of {table.name}", make
            )
        },
        tab="files",
        table=table,
        partition=partition,
        refs=sorted(table.refs),
    )


def _figures(visit: Visit, figures: FileFigures) -> Html:
    table = visit.table
    steps = range(min(figures.sizes), max(figures.sizes) + 1) if figures.sizes else range(0)
    sizes = [
        Bar(
            show_bytes(2**step),
            {"append": figures.sizes[step]},
            f"{show_bytes(2**step)} to {show_bytes(2 ** (step + 1))}: {show_count(figures.sizes[step])} files",
        )
        for step in steps
    ]
    shares = [
        Bar(
            name,
            {"none" if index == 0 else "delete": figures.shares[index]},
            f"{name}: {show_count(figures.shares[index])} files",
        )
        for index, name in enumerate(_SHARE_NAMES)
    ]
    parts = sorted(figures.partitions.items(), key=lambda pair: -pair[1].bytes)
    middle = median(partition_figures.bytes for _, partition_figures in parts) if parts else 0
    # The name of the only field is shown once, above the map.
    has_one_field = all(len(partition_spec.fields) <= 1 for partition_spec in table.metadata.partition_specs)
    drawn = [
        Tile(
            (text.partition("=")[2] if has_one_field else text) or "(the whole table)",
            partition_figures.bytes,
            f"{show_bytes(partition_figures.bytes)} in {show_count(partition_figures.files)} files, "
            f"{show_count(partition_figures.rows)} rows",
            table_address(table.identifier, "files", at=visit.text("at"), partition=text) + "#listed",
        )
        for text, partition_figures in parts
    ]
    return visit.html(
        "files_figures.html",
        table=table,
        found=figures,
        sizes=draw_bars(sizes, "Data files by size", width=WIDTH if figures.delete_files else WIDE),
        shares=draw_bars(shares, "Data files by deleted share") if figures.delete_files else None,
        field=parts[0][0].partition("=")[0] if parts and has_one_field else "",
        map=draw_map(drawn, "Partitions by size"),
        partitions=parts[:20],
        middle=middle,
        skew=parts[0][1].bytes / middle if parts and middle else None,
        share_steps=SHARES,
    )


def file_page(visit: Visit) -> Answer:
    """Show one file: its columns' bounds and counts, and its row groups."""
    table, choice = visit.table, visit.choice()
    path = visit.query.get("path", "")
    file = find_file(table.state, path, choice)
    if file is None:
        raise NotFoundError(
            f"Cannot show the file {path[:300]!r}: it is not in this state of {table.name}",
            hint="A snapshot that had it may still exist: choose it in the history.",
        )
    metrics = file.pop("readable_metrics", None) or {}
    columns = [
        (name, value, cell_text(value["lower_bound"]), cell_text(value["upper_bound"]))
        for name, value in list(metrics.items())[:MAX_METRICS]
    ]
    facts: list[tuple[str, Any]] = [
        (key, cell_text(value))
        for key, value in file.items()
        if value is not None and not key.endswith(("_counts", "_bounds", "_sizes"))
    ]
    layout, problem = None, None
    if file["file_format"] == "PARQUET":
        try:
            layout = read_parquet_layout(table.state.storage, path)
        except FrazilError as error:
            problem = str(error)
    return visit.page(
        "file.html",
        tab="files",
        table=table,
        path=path,
        facts=facts,
        columns=columns,
        further=max(len(metrics) - MAX_METRICS, 0),
        layout=layout,
        problem=problem,
    )
