"""Plots over time and over classes: growth, commits, histograms. Plain SVG; colours are classes of `style.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from frazil.pictures.markup import Html, element, svg
from frazil.pictures.words import moment, show_short, show_time

WIDTH: Final = 720
WIDE: Final = 1160
"""The width of a picture that fills a row of the page."""
HEIGHT: Final = 190
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 26
MAX_POINTS: Final = 300
"""The maximum number of distinguishable points: of neighbours the last is drawn."""


@dataclass(frozen=True, slots=True)
class Point:
    """A value at a time; `note` is its tooltip, `kind` a class of colour."""

    at_ms: int
    value: float
    note: str = ""
    kind: str = "append"


@dataclass(frozen=True, slots=True)
class Bar:
    """A class of a histogram: its name, and its values by kind."""

    name: str
    values: Mapping[str, float]
    note: str = ""

    @property
    def total(self) -> float:
        """The sum of all kinds."""
        return sum(self.values.values())


def draw_growth(
    points: Sequence[Point], label: str, show: Callable[[float], str] = show_short, *, base: int = 10
) -> Html:
    """Draw a value that is constant between changes, from the first point to the last; `base` is 1024 for bytes."""
    if not points:
        return _empty(label, "nothing was written yet")
    thinned = thin_out(sorted(points, key=lambda point: point.at_ms), MAX_POINTS)
    first, last = thinned[0].at_ms, thinned[-1].at_ms
    ticks = nice_ticks(max(point.value for point in thinned), base=base)
    across = _scale(first, last, LEFT, WIDTH - RIGHT) if last > first else lambda _: (LEFT + WIDTH - RIGHT) / 2
    down = _scale(0, ticks[-1], HEIGHT - BOTTOM, TOP)
    floor = down(0)
    line = f"M{across(first):.1f} {down(thinned[0].value):.1f}"
    for point in thinned[1:]:
        line += f"H{across(point.at_ms):.1f}V{down(point.value):.1f}"
    dots = [
        element(
            "circle",
            element(
                "title", f"{show_time(point.at_ms)}\n{show(point.value)}{f' · {point.note}' if point.note else ''}"
            ),
            cx=across(point.at_ms),
            cy=down(point.value),
            r=3.5 if len(thinned) <= 60 else 2.2,
            class_=f"fz-dot fz-{point.kind}",
        )
        for point in thinned
    ]
    area = f"{line}V{floor:.1f}H{across(first):.1f}Z"
    return svg(
        WIDTH,
        HEIGHT,
        f"{label}: {show(thinned[0].value)} at first, {show(thinned[-1].value)} now",
        *_grid(ticks, down, show),
        *_times(first, last, across),
        element("path", d=area, class_="fz-area") if last > first else None,
        element("path", d=line, class_="fz-line"),
        *dots,
    )


def draw_bars(
    bars: Sequence[Bar], label: str, show: Callable[[float], str] = show_short, *, width: int = WIDTH
) -> Html:
    """Draw classes side by side, with the kinds of each stacked."""
    if not bars or not any(bar.total for bar in bars):
        return _empty(label, "nothing to count")
    ticks = nice_ticks(max(bar.total for bar in bars))
    down = _scale(0, ticks[-1], HEIGHT - BOTTOM, TOP)
    step = (width - LEFT - RIGHT) / len(bars)
    gap = max(min(step * 0.25, 8), step - 64)
    parts = []
    # As many names as fit next to each other.
    every = math.ceil((max(len(bar.name) for bar in bars) * 6.2 + 10) / step)
    for index, bar in enumerate(bars):
        left, base = LEFT + index * step, 0.0
        pieces = []
        for key, value in bar.values.items():
            if value > 0:
                top = down(base + value)
                tall = max(down(base) - top, 1.0)
                pieces.append(
                    element("rect", x=left + gap / 2, y=top, width=step - gap, height=tall, rx=1.5, class_=f"fz-{key}")
                )
                base += value
        note = bar.note or f"{bar.name}: {show(bar.total)}"
        parts.append(element("g", element("title", note), *pieces))
        if index % every == 0:
            parts.append(
                element("text", bar.name, x=left + step / 2, y=HEIGHT - 9, text_anchor="middle", class_="fz-tick")
            )
    summary = ", ".join(f"{bar.name}: {show(bar.total)}" for bar in bars if bar.total)[:600]
    return svg(width, HEIGHT, f"{label}: {summary}", *_grid(ticks, down, show, width), *parts)


def bars_over_time(points: Sequence[tuple[int, str]], count: int = 48) -> list[Bar]:
    """Count events of each kind in equal intervals of their time span."""
    if not points:
        return []
    first, last = min(index for index, _ in points), max(index for index, _ in points)
    size = max((last - first) / count, 1.0)
    bars: list[dict[str, float]] = [{} for _ in range(count)]
    for position, operation in points:
        into = bars[min(int((position - first) / size), count - 1)]
        into[operation] = into.get(operation, 0) + 1
    span = last - first
    return [
        Bar(
            time_label(int(first + index * size), span),
            values,
            f"from {show_time(int(first + index * size))}: {sum(values.values()):.0f}",
        )
        for index, values in enumerate(bars)
    ]


def thin_out(points: Sequence[Point], limit: int) -> list[Point]:
    """Return the points that a plot can show: all, or the last of each group of neighbours."""
    if len(points) <= limit:
        return list(points)
    size = len(points) / limit
    return [points[0], *(points[min(int((index + 1) * size), len(points)) - 1] for index in range(limit))]


def nice_ticks(largest: float, tick_count: int = 4, base: int = 10) -> list[float]:
    """Return round numbers from 0 up to at least the largest value; for bytes, round in their unit."""
    if largest <= 0 or not math.isfinite(largest):
        return [0.0, 1.0]
    rough = largest / tick_count
    unit: float = 1 if base == 10 else base ** max(math.floor(math.log(rough, base)), 0)
    power: float = unit * 10 ** math.floor(math.log10(rough / unit))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    if largest >= tick_count:
        step = max(step, 1.0)
    return [index * step for index in range(math.ceil(largest / step - 1e-9) + 1)]


def time_label(at_ms: int, span_ms: int) -> str:
    """Format a time for an axis: the shorter the axis, the finer."""
    time = moment(at_ms)
    if time is None:
        return ""
    if span_ms < 2 * 3_600_000:
        return f"{time:%H:%M:%S}"
    if span_ms < 3 * 86_400_000:
        return f"{time:%d %b %H:%M}"
    return f"{time:%d %b %Y}" if span_ms < 700 * 86_400_000 else f"{time:%b %Y}"


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = (high - low) or 1
    return lambda value: start + (value - low) / span * (end - start)


def _grid(
    ticks: Sequence[float], down: Callable[[float], float], show: Callable[[float], str], width: int = WIDTH
) -> list[Html]:
    lines = [
        element("line", x1=LEFT, x2=width - RIGHT, y1=down(tick), y2=down(tick), class_="fz-grid") for tick in ticks
    ]
    names = [
        element("text", show(tick), x=LEFT - 8, y=down(tick) + 4, text_anchor="end", class_="fz-tick") for tick in ticks
    ]
    return [*lines, *names]


def _times(first: int, last: int, across: Callable[[float], float]) -> list[Html]:
    if last <= first:
        middle = (LEFT + WIDTH - RIGHT) / 2
        return [element("text", show_time(first), x=middle, y=HEIGHT - 9, text_anchor="middle", class_="fz-tick")]
    parts = []
    for index in range(5):
        when = first + (last - first) * index / 4
        anchor = ("start", "middle", "middle", "middle", "end")[index]
        name = time_label(int(when), last - first)
        parts.append(element("text", name, x=across(when), y=HEIGHT - 9, text_anchor=anchor, class_="fz-tick"))
    return parts


def _empty(label: str, why: str) -> Html:
    return svg(
        WIDTH,
        60,
        f"{label}: {why}",
        element("text", why, x=WIDTH / 2, y=34, text_anchor="middle", class_="fz-tick"),
    )
