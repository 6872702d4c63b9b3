"""Make `docs/benchmarks.md` and its plots from the JSON that benchmarks left (`measure.py`).

    python -m bench.benchmarks_page [--results bench/results] [--into docs]

A table for each benchmark: a row for each workload and size, a column for each contender with its median and, in
brackets, frazil's time divided by it. Workloads of three sizes and more get a plot, drawn here as SVG: time against
size, both by powers of ten, so that a straight line of slope one is time that grows with the size.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from bench.measure import Measured

OURS = "frazil"
BEHIND = 1.1
TITLES = {
    "engines": "Spark: plain Parquet, Iceberg's jar and frazil in one session",
    "tpch": "TPC-H on Spark",
    "plan_scan": "Planning a scan",
    "decode_manifest": "Decoding a manifest",
    "write_manifest": "Writing a manifest",
    "load_table_metadata": "Loading a table's metadata",
    "commit_cost": "Committing",
    "local_scan": "Reading without Spark",
    "rewrite_files": "Maintaining a table",
}
COLOURS = ("#9a6700", "#8250df", "#0969da", "#1a7f37", "#cf222e")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 420, 250, 58, 34, 26, 12


def read_results(folder: Path) -> Iterator[tuple[dict[str, Any], list[Measured]]]:
    """Yield each benchmark's document and its measurements, in the order of the page."""
    found = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    for name in sorted(
        found, key=lambda one: (one not in TITLES, list(TITLES).index(one) if one in TITLES else 0, one)
    ):
        document = found[name]
        yield document, [Measured(**one) for one in document["measured"]]


def seconds_text(seconds: float) -> str:
    """Return a time with three digits."""
    if seconds < 0.01:
        return f"{seconds * 1e6:,.0f} µs" if seconds < 0.001 else f"{seconds * 1000:.1f} ms"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s" if seconds < 100 else f"{seconds:,.0f} s"


def table_of(contenders: Sequence[str], measured: Sequence[Measured]) -> list[str]:
    """Return the lines of a benchmark's table."""
    rows: dict[tuple[str, int, str], dict[str, Measured]] = {}
    for one in measured:
        rows.setdefault((one.workload, one.size, one.unit), {})[one.contender] = one
    lines = [
        "| workload | size | " + " | ".join(contenders) + " | spread |",
        "|---|---:|" + "---:|" * (len(contenders) + 1),
    ]
    for (workload, size, unit), found in rows.items():
        ours = found.get(OURS)
        cells = []
        for name in contenders:
            theirs = found.get(name)
            if theirs is None:
                cells.append("")
            elif not theirs.seconds:
                cells.append(f"failed: {theirs.failed}")
            elif name == OURS or ours is None or not ours.seconds:
                cells.append(seconds_text(theirs.median))
            else:
                ratio = ours.median / theirs.median
                mark = "**" if ratio > BEHIND else ""
                shown = f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"
                cells.append(f"{seconds_text(theirs.median)} ({mark}{shown}{mark})")
        spread = max((max(one.seconds) / min(one.seconds) for one in found.values() if one.seconds), default=1.0)
        lines.append(f"| {workload} | {size:,} {unit} | " + " | ".join(cells) + f" | {spread:.2f} |")
    return lines


def plot(title: str, measured: Sequence[Measured]) -> str:
    """Return a plot of times against sizes as SVG."""
    points = [(math.log10(one.size), math.log10(max(one.median, 1e-6))) for one in measured]
    least, most = (min(one[0] for one in points), max(one[0] for one in points))
    low, high = math.floor(min(one[1] for one in points)), math.ceil(max(one[1] for one in points))
    high = max(high, low + 1)

    def place(size: float, seconds: float) -> tuple[float, float]:
        across = LEFT + (size - least) / (most - least) * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - (seconds - low) / (high - low) * (HEIGHT - BOTTOM - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-size="11">',
        "<style>text { font-family: sans-serif }</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="16" font-weight="bold">{escape(title)}</text>',
    ]
    for power in range(low, high + 1):
        _, y = place(least, power)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{seconds_text(10.0**power)}</text>')
    for size in sorted({one.size for one in measured}):
        x, _ = place(math.log10(size), low)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 16}" text-anchor="middle">{size:,}</text>')
    names = list(dict.fromkeys(one.contender for one in measured))
    for at, name in enumerate(names):
        colour = COLOURS[at % len(COLOURS)]
        line = sorted(
            place(math.log10(one.size), math.log10(max(one.median, 1e-6))) for one in measured if one.contender == name
        )
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in line]
        parts.append(f'<text x="{LEFT + at * 110}" y="{HEIGHT - 3}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def plots_of(document: dict[str, Any], measured: Sequence[Measured], folder: Path) -> Iterator[str]:
    """Draw the workloads that have three sizes; yield the names of the files."""
    by_workload: dict[str, list[Measured]] = {}
    for one in measured:
        if one.seconds:
            by_workload.setdefault(one.workload, []).append(one)
    for workload, found in by_workload.items():
        if len({one.size for one in found}) < 3:
            continue
        slug = re.sub(r"[^a-z0-9]+", "-", f"{document['benchmark']}-{workload}".lower()).strip("-")
        (folder / f"{slug}.svg").write_text(plot(f"{workload}: seconds by {found[0].unit}", found))
        yield f"{slug}.svg"


def make_page(results: Path, into: Path) -> None:
    """Write the page and its plots."""
    pictures = into / "plots"
    pictures.mkdir(parents=True, exist_ok=True)
    for old in pictures.glob("*.svg"):
        old.unlink()
    lines = [
        "# Benchmarks",
        "",
        "Made by `make bench` from what it measured; do not edit. Each workload's contenders ran in turn on the same",
        "machine and the same data. Times are medians; in brackets, frazil's time divided by the contender's: below 1",
        "frazil is faster, **above 1.1 it is behind**. The spread is the largest of a contender's times by its least.",
        "Plain Parquet knows nothing of tables, deletes and commits: it is the limit. What is behind, and why, is in",
        "[benchmark-notes.md](benchmark-notes.md).",
    ]
    for document, measured in read_results(results):
        versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
        machine = document["machine"]
        lines += ["", f"## {TITLES.get(document['benchmark'], document['benchmark'])}", ""]
        lines += [f"{machine['cores']} cores, {machine['architecture']}, {machine['system']}; {versions}.", ""]
        lines += table_of(document["contenders"], measured)
        drawn = [f"![{name}](plots/{name})" for name in plots_of(document, measured, pictures)]
        lines += ["", *drawn] if drawn else []
    (into / "benchmarks.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("bench/results"))
    parser.add_argument("--into", type=Path, default=Path("docs"))
    given = parser.parse_args()
    make_page(given.results, given.into)


if __name__ == "__main__":
    main()
