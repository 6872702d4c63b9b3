"""The graph of a history, row by row, as in git tools: a lane for each line of descent, a dot for each state.

Rows are in display order, the newest first. A state without a newer child starts a lane, which is free again after its
oldest state was drawn; if a state has several children, their lanes join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from frazil.pictures.markup import Html, element

STEP: Final = 16.0
ROW: Final = 44.0
MAX_LANES: Final = 12
COLOURS: Final = 6


@dataclass(slots=True)
class Row:
    """One state in the graph: its lane, the passing lanes, those that end here, and whether its lane continues."""

    key: int
    lane: int
    passing: list[int] = field(default_factory=list)
    joining: list[int] = field(default_factory=list)
    """Lanes from above, other than its own, that end in this state."""
    comes: bool = False
    goes: bool = False
    lanes: int = 1


def lay_out(states: Sequence[tuple[int, int | None]]) -> list[Row]:
    """Assign states and their parents, the newest first, to rows and lanes."""
    keys = {key for key, _ in states}
    lanes: list[int | None] = []
    """For each lane, the state that it leads to next."""
    rows = []
    for key, parent in states:
        mine = [index for index, next_key in enumerate(lanes) if next_key == key]
        comes = bool(mine)
        if not mine:
            free = next((index for index, next_key in enumerate(lanes) if next_key is None), len(lanes))
            if free == len(lanes):
                lanes.append(None)
            mine = [free]
        lane, *others = mine
        row = Row(key, lane, joining=others, comes=comes)
        for position in mine:
            lanes[position] = None
        row.passing = [index for index, next_key in enumerate(lanes) if next_key is not None]
        if parent is not None and parent in keys:
            lanes[lane] = parent
            row.goes = True
        while lanes and lanes[-1] is None:
            lanes.pop()
        rows.append(row)
    widest = max((max(row.lane, *row.passing, *row.joining, 0) for row in rows), default=0) + 1
    for row in rows:
        row.lanes = min(widest, MAX_LANES)
    return rows


def draw_row(row: Row, operation: str = "append", *, is_current: bool = False) -> Html:
    """Draw one row of the graph."""
    middle, x = ROW / 2, _across(row.lane)
    parts = [element("path", d=f"M{_across(index):g} 0V{ROW:g}", class_=_colour(index)) for index in row.passing]
    parts += [
        element(
            "path",
            d=f"M{_across(index):g} 0C{_across(index):g} {middle:g} {x:g} {middle / 2:g} {x:g} {middle:g}",
            class_=_colour(index),
        )
        for index in row.joining
    ]
    if row.comes:
        parts.append(element("path", d=f"M{x:g} 0V{middle:g}", class_=_colour(row.lane)))
    if row.goes:
        parts.append(element("path", d=f"M{x:g} {middle:g}V{ROW:g}", class_=_colour(row.lane)))
    if is_current:
        parts.append(element("circle", cx=x, cy=middle, r=8.0, class_="fz-ring"))
    parts.append(element("circle", cx=x, cy=middle, r=4.5, class_=f"fz-node fz-{operation}"))
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {row.lanes * STEP + 4:g} {ROW:g}",
        width=row.lanes * STEP + 4,
        height=ROW,
        class_="fz-lanes",
        aria_hidden="true",
    )


def _across(lane: int) -> float:
    return min(lane, MAX_LANES - 1) * STEP + STEP / 2 + 2


def _colour(lane: int) -> str:
    return f"fz-lane fz-lane{lane % COLOURS}"
