"""Make `docs/evidence/benchmarks.md` and its plots from the JSON that benchmarks left (`measure.py`).

    python -m bench.benchmarks_page [--results bench/results] [--into docs]

A table for each benchmark: a row for each workload and size, a column for each contender with its median and, in
brackets, frazil's time divided by it. Workloads of three sizes and more get a plot, drawn here as SVG: time against
size, both by powers of ten, so that a straight line of slope one is time that grows with the size; the slopes stand in
a table too. What benchmarks print that are not of times beside a contender is shown as it was printed.
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
    "tpch": "TPC-H",
    "stream_backlog": "A stream that reads a backlog",
    "stream_latency": "A stream that follows a table",
    "stream_sink": "A stream that appends to a table",
    "spark_read": "Reading on Spark, beside plain Parquet",
    "spark_append": "Appending on Spark, beside plain Parquet",
    "spark_merge": "Changing rows on Spark",
    "plan_scan": "Planning a scan",
    "decode_manifest": "Decoding a manifest",
    "write_manifest": "Writing a manifest",
    "load_table_metadata": "Loading a table's metadata",
    "commit_cost": "Committing",
    "metadata_tables": "Metadata tables",
    "local_scan": "Reading and appending without Spark",
    "local_sql": "SQL without Spark, beside DuckDB",
    "local_tpc": "TPC-H and TPC-DS without Spark, beside DuckDB",
    "odd_shapes": "Appending odd shapes without Spark",
    "local_changes": "Changing rows without Spark",
    "rewrite_files": "Maintaining a table",
    "terminal_start": "The terminal",
}
PRINTED = {
    "spark_memory": "Memory of the driver on Spark",
    "sql_names": "What an attached lake costs `spark.sql`",
    "rest_server": "The REST server, beside Iceberg Java's",
    "console": "The console: first paint and memory",
    "import_time": "Importing, and the first row of a small table",
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
        spreads = [max(one.seconds) / min(one.seconds) for one in found.values() if len(one.seconds) > 1]
        spread = f"{max(spreads):.2f}" if spreads else "one run"
        lines.append(f"| {workload} | {size:,} {unit} | " + " | ".join(cells) + f" | {spread} |")
    return lines


def growing(measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    """Return the measurements of the workloads that have three sizes and more, by workload."""
    found: dict[str, list[Measured]] = {}
    for one in measured:
        if one.seconds:
            found.setdefault(one.workload, []).append(one)
    return {name: every for name, every in found.items() if len({one.size for one in every}) >= 3}


def slopes_of(contenders: Sequence[str], measured: Sequence[Measured]) -> list[str]:
    """Return the lines of a table that says how times grow from the least size to the largest."""
    lines = []
    for workload, every in growing(measured).items():
        cells = []
        for name in contenders:
            points = sorted((one.size, one.median) for one in every if one.contender == name)
            if len(points) < 2:
                cells.append("")
            else:
                (least, fast), (most, slow) = points[0], points[-1]
                cells.append(f"{math.log(slow / fast) / math.log(most / least):.2f}")
        sizes = sorted({one.size for one in every})
        lines.append(f"| {workload} | {sizes[0]:,} to {sizes[-1]:,} {every[0].unit} | " + " | ".join(cells) + " |")
    head = ["| slope | from size to size | " + " | ".join(contenders) + " |", "|---|---:|" + "---:|" * len(contenders)]
    return [*head, *lines] if lines else []


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
    for workload, found in growing(measured).items():
        slug = re.sub(r"[^a-z0-9]+", "-", f"{document['benchmark']}-{workload}".lower()).strip("-")
        (folder / f"{slug}.svg").write_text(plot(f"{workload}: seconds by {found[0].unit}", found))
        yield f"{slug}.svg"


def time_taken(results: Path) -> list[str]:
    """Return the lines that say how long the run took, where it says so itself (`tools/run_bench.sh`)."""
    path = results / "seconds.txt"
    if not path.exists():
        return []
    taken = {name: int(seconds) for name, seconds in (line.split() for line in path.read_text().splitlines())}
    total = sum(taken.values())
    scales = {float(json.loads(one.read_text()).get("scale", 1)) for one in results.glob("*.json")}
    sized = "".join(f", sizes times {one:g}" for one in scales if one != 1)
    each = ", ".join(f"`{name}` {seconds}" for name, seconds in taken.items())
    return ["", f"All of it took {total // 60} min {total % 60} s{sized}; in seconds: {each}."]


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
        "A slope of 1 is time that grows in step with the size, one of 0 time that does not grow; plots show the same.",
        "Plain Parquet knows nothing of tables, deletes and commits: it is the limit. What is behind, and why, is in",
        "[benchmark-notes.md](benchmark-notes.md).",
        *time_taken(results),
    ]
    for document, measured in read_results(results):
        versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
        machine = document["machine"]
        lines += ["", f"## {TITLES.get(document['benchmark'], document['benchmark'])}", ""]
        memory = f", {machine['memory_gib']} GiB" if "memory_gib" in machine else ""
        lines += [f"{machine['cores']} cores{memory}, {machine['architecture']}, {machine['system']}; {versions}.", ""]
        lines += table_of(document["contenders"], measured)
        slopes = slopes_of(document["contenders"], measured)
        lines += ["", *slopes] if slopes else []
        drawn = [f"![{name}](plots/{name})" for name in plots_of(document, measured, pictures)]
        lines += ["", *drawn] if drawn else []
    for name, title in PRINTED.items():
        path = results / f"{name}.txt"
        if path.exists():
            lines += ["", f"## {title}", "", "```text", path.read_text().strip("\n"), "```"]
    (into / "benchmarks.md").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("bench/results"))
    parser.add_argument("--into", type=Path, default=Path("docs/evidence"))
    given = parser.parse_args()
    make_page(given.results, given.into)


if __name__ == "__main__":
    main()
