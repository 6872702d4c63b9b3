"""A map of parts by size: each is a rectangle, as close to a square as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from frazil.pictures.markup import Html, element, svg

WIDTH: Final = 1160.0
HEIGHT: Final = 320.0
MAX_TILES: Final = 150
_HEAT_STEPS: Final = (2.0, 4.0, 8.0, 16.0)
"""The multiples of the median from which a part is drawn in a hotter colour."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A part of the map: its name, size, tooltip and link."""

    name: str
    size: float
    note: str = ""
    href: str | None = None


def draw_map(tiles: Sequence[Tile], label: str) -> Html:
    """Draw parts by size, those far above the median in hotter colours; one tile stands for all beyond the largest."""
    sized_tiles = sorted((tile for tile in tiles if tile.size > 0), key=lambda tile: -tile.size)
    if not sized_tiles:
        return svg(
            WIDTH,
            60.0,
            f"{label}: none",
            element("text", "no partitions with data", x=WIDTH / 2, y=34, text_anchor="middle", class_="fz-tick"),
        )
    middle = median(tile.size for tile in sized_tiles)
    drawn_tiles, rest = sized_tiles[:MAX_TILES], sized_tiles[MAX_TILES:]
    if rest:
        drawn_tiles.append(
            Tile(f"{len(rest):,} more", sum(tile.size for tile in rest), f"{len(rest):,} smaller partitions")
        )
    drawn = []
    for tile, (x, y, width, height) in zip(
        drawn_tiles, place_squares([tile.size for tile in drawn_tiles]), strict=True
    ):
        is_rest = bool(rest) and tile is drawn_tiles[-1]
        heat = 0 if is_rest else sum(tile.size >= step * middle for step in _HEAT_STEPS)
        cell: list[Html] = [
            element("title", f"{tile.name}\n{tile.note}"),
            element(
                "rect",
                x=x + 0.75,
                y=y + 0.75,
                width=max(width - 1.5, 0.5),
                height=max(height - 1.5, 0.5),
                rx=2.0,
                class_="fz-rest" if is_rest else f"fz-heat{heat}",
            ),
        ]
        room = int((width - 12) / 6.4)
        if room >= 4 and height >= 18:
            name = tile.name if len(tile.name) <= room else tile.name[: room - 1] + "…"
            cell.append(element("text", name, x=x + 7, y=y + 15, class_="fz-cell"))
        drawn.append(
            element("g", *cell)
            if tile.href is None
            else element("a", *cell, href=tile.href, aria_label=f"{tile.name}: {tile.note}")
        )
    return svg(
        WIDTH,
        HEIGHT,
        f"{label}: {len(sized_tiles):,}, the largest {sized_tiles[0].name}: {sized_tiles[0].note}",
        *drawn,
    )


def place_squares(
    sizes: Sequence[float], width: float = WIDTH, height: float = HEIGHT
) -> list[tuple[float, float, float, float]]:
    """Return a rectangle for each size, the largest first: rows along the shorter side, as square as possible."""
    total = sum(sizes)
    scaled = [size * width * height / total for size in sizes]
    placed: list[tuple[float, float, float, float]] = []
    x = y = 0.0
    index = 0
    while index < len(scaled):
        side = min(width, height)
        row = [scaled[index]]
        while index + len(row) < len(scaled):
            longer = [*row, scaled[index + len(row)]]
            if _worst(longer, side) > _worst(row, side):
                break
            row = longer
        depth = sum(row) / max(side, 1e-9)
        offset = 0.0
        for area in row:
            length = area / max(depth, 1e-9)
            placed.append((x, y + offset, depth, length) if width >= height else (x + offset, y, length, depth))
            offset += length
        if width >= height:
            x, width = x + depth, max(width - depth, 1e-9)
        else:
            y, height = y + depth, max(height - depth, 1e-9)
        index += len(row)
    return placed


def _worst(row: Sequence[float], side: float) -> float:
    total = sum(row)
    return max(side * side * max(row) / (total * total), total * total / (side * side * max(min(row), 1e-12)))
