"""Pictures: what they draw is right, well-formed, and bounded in size."""

from __future__ import annotations

from xml.dom.minidom import parseString

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.pictures.lanes import draw_row, lay_out
from frazil.pictures.markup import Html, element
from frazil.pictures.plots import Bar, Point, bars_over_time, draw_bars, draw_growth, nice_ticks
from frazil.pictures.pruning import PrunedManifest, draw_pruning
from frazil.pictures.tree_map import HEIGHT, WIDTH, Tile, draw_map, place_squares
from frazil.pictures.words import show_ago, show_bytes, show_short, show_time


def test_text_is_escaped() -> None:
    assert element("p", "<b>&\"'", class_='"><b>') == ('<p class="&quot;&gt;&lt;b&gt;">&lt;b&gt;&amp;&quot;&#x27;</p>')
    assert element("p", Html("<b>x</b>")) == "<p><b>x</b></p>"
    assert "\\u202e" in element("p", "\u202e")


@pytest.mark.parametrize("largest, ticks", [(0, [0, 1]), (7, [0, 2, 4, 6, 8]), (100, [0, 50, 100]), (1, [0, 0.5, 1])])
def test_ticks_are_round_and_reach_the_maximum(largest: float, ticks: list[float]) -> None:
    assert nice_ticks(largest) == ticks


@given(st.floats(1e-6, 1e18))
def test_ticks_are_few_for_any_value(largest: float) -> None:
    for base in (10, 1024):
        ticks = nice_ticks(largest, base=base)
        assert ticks[0] == 0
        assert ticks[-1] >= largest * (1 - 1e-6)
        assert len(ticks) <= 8


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=60).map(lambda one: sorted(one, reverse=True)))
def test_treemap_areas_are_proportional(sizes: list[float]) -> None:
    placed = place_squares(sizes)
    total = sum(sizes)
    for size, (x, y, width, height) in zip(sizes, placed, strict=True):
        assert abs(width * height - size / total * WIDTH * HEIGHT) < 1e-3 * WIDTH * HEIGHT
        assert x >= -1e-6
        assert x + width <= WIDTH + 1e-3
        assert y >= -1e-6
        assert y + height <= HEIGHT + 1e-3


def test_pictures_are_well_formed_and_bounded() -> None:
    evil = "</svg><script>\x00\u202e"
    many = [Point(at * 1000, at, evil) for at in range(100_000)]
    pictures = [
        draw_growth(many, evil),
        draw_growth([], "x"),
        draw_growth([Point(5, 1)], "x"),
        draw_growth([Point(2**62, 1), Point(-(2**62), 3)], "x"),
        draw_bars([Bar(evil, {"append": 1}, evil)] * 48, evil),
        draw_bars([], "x"),
        draw_map([Tile(evil, at + 1, evil, "/x") for at in range(50_000)], evil),
        draw_map([], "x"),
        Html(f"<div>{draw_pruning([PrunedManifest(evil, 1, 2, 3, 4)] * 5_000)}</div>"),
    ]
    for one in pictures:
        parseString(one)
        assert len(one) < 150_000


def test_history_lanes_fork_and_join() -> None:
    #  4 on main, 5 and 3 on a branch that left main at 2
    rows = {one.key: one for one in lay_out([(5, 3), (4, 2), (3, 2), (2, 1), (1, None)])}
    assert [rows[key].lane for key in (5, 4, 3, 2, 1)] == [0, 1, 0, 0, 0]
    assert rows[2].joining == [1]
    assert rows[4].passing == [0]
    assert not rows[5].comes
    assert not rows[1].goes
    for one in rows.values():
        parseString(draw_row(one, is_current=True))


@given(st.integers(1, 40).flatmap(lambda size: st.lists(st.integers(0, 6), min_size=size, max_size=size)))
def test_any_history_can_be_drawn(back: list[int]) -> None:
    states = [(at, at - step if 0 < step <= at else None) for at, step in enumerate(back)]
    rows = lay_out(list(reversed(states)))
    assert [one.key for one in rows] == list(reversed(range(len(back))))
    for one in rows:
        assert one.lane not in one.passing
        parseString(draw_row(one))


def test_timeline_counts_every_commit() -> None:
    bars = bars_over_time([(at * 1000, "append" if at % 2 else "delete") for at in range(500)])
    assert sum(one.total for one in bars) == 500
    assert bars_over_time([]) == []


def test_sizes_counts_and_times_are_abbreviated() -> None:
    assert [show_bytes(one) for one in (0, 1023, 1024, 150 << 20, 3 << 50)] == [
        *("0 B", "1023 B", "1.0 KiB", "150 MiB", "3.0 PiB"),
    ]
    assert [show_short(one) for one in (0, 950, 1200, 34_000_000)] == ["0", "950", "1.2k", "34M"]
    assert show_time(2**62).endswith("ms since 1970")
    assert [show_ago(0, one) for one in (0, 61_000, 7_200_000, 40 * 86_400_000)] == [
        *("just now", "1 minute ago", "2 hours ago", "1 month ago"),
    ]
