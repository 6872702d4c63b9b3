"""The first rows of a result as text and as HTML: what `show()` prints and what notebooks display."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Final

import pyarrow as pa

from frazil.pictures.markup import Html, element
from frazil.pictures.style import in_notebook
from frazil.table.cells import rows_of, type_text
from frazil.visible_text import visible

SHOWN_ROWS: Final = 10
"""The rows that a notebook displays."""
MAX_COUNTED: Final = 10_000
"""The rows that are read to count them; of more, only that there are more is known."""
_MAX_CELL: Final = 60


@dataclass(frozen=True, slots=True)
class ShownRows:
    """The first rows of a result, and how many there are."""

    rows: pa.Table
    count: int
    is_whole: bool
    """Whether `count` is the number of all rows, and not only of those that were read."""

    @property
    def caption(self) -> str:
        """How many rows there are, and how many of them are shown."""
        count = f"{self.count:,} row{'' if self.count == 1 else 's'}"
        if not self.is_whole:
            count = f"more than {self.count:,} rows" if self.count else "more rows"
        shown = self.rows.num_rows
        return count if self.is_whole and shown == self.count else f"{count}, the first {shown:,} shown"

    def text(self) -> str:
        """Return the rows as a table of text, with the types below the names."""
        fields = list(self.rows.schema)
        cells = [[_short(cell) for cell in row] for row in rows_of(self.rows)]
        columns = [
            [visible(field.name), type_text(field.type), *column]
            for field, column in zip(fields, zip(*cells, strict=True) if cells else repeat(()), strict=False)
        ]
        widths = [max(len(cell) for cell in column) for column in columns]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in zip(*columns, strict=True)
        ]
        lines.insert(2, "  ".join("-" * width for width in widths))
        return "\n".join([*lines, f"({self.caption})"])

    def html(self) -> Html:
        """Return the rows as an HTML table with a caption."""
        names = [
            element("th", field.name, element("div", type_text(field.type), class_="fz-muted"))
            for field in self.rows.schema
        ]
        lines = [
            element(
                "tr",
                *(
                    element("td", element("i", "null", class_="fz-muted") if cell is None else _cut(cell))
                    for cell in row
                ),
            )
            for row in rows_of(self.rows)
        ]
        table = element("table", element("thead", element("tr", *names)), element("tbody", *lines))
        return Html(in_notebook(table, element("p", self.caption, class_="fz-muted")))


def first_rows(batches: Iterator[pa.RecordBatch], schema: pa.Schema, shown: int, counted: int) -> ShownRows:
    """Read the first rows of a result, and count them up to a limit."""
    head: list[pa.RecordBatch] = []
    count, missing = 0, shown
    is_whole = True
    for batch in batches:
        if missing:
            head.append(batch.slice(0, missing))
            missing -= head[-1].num_rows
        count += batch.num_rows
        if count > max(shown, counted):
            count, is_whole = max(shown, counted), False
            break
    return ShownRows(pa.Table.from_batches(head, schema=schema), count, is_whole)


def _short(cell: str | None) -> str:
    return "null" if cell is None else visible(_cut(cell))


def _cut(cell: str) -> str:
    return cell if len(cell) <= _MAX_CELL else f"{cell[: _MAX_CELL - 1]}…"
