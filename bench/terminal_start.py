"""How long the terminal takes to answer, beside PyIceberg's: commands on one lake, each in a process of its own.

.venv/bin/python -m bench.terminal_start
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

import frazil

RUNS = 7
FILES = 200


def make_lake(folder: Path) -> None:
    """Make a lake of one table of many small files."""
    with frazil.connect(folder) as lake:
        table = lake.create_table("db.events", "id bigint, kind string")
        rows = pa.table({"id": [1, 2], "kind": ["a", "b"]})
        with table.transaction() as tx:
            for _ in range(FILES // 10):
                tx.append(rows)


def seconds(command: list[str]) -> list[float]:
    """Return how long a command took, each time; the first time is not counted."""
    found = []
    for _ in range(RUNS + 1):
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        found.append(time.perf_counter() - started)
    return found[1:]


def main() -> None:
    """Print the table."""
    here = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "lake"
        make_lake(folder)
        ours = [str(here / "frazil"), "-w", str(folder)]
        theirs = [str(here / "pyiceberg"), "--uri", f"sqlite:///{folder}/catalog.db", "--catalog", "lake"]
        print(f"{'command':<12} {'frazil s':>9} {'PyIceberg s':>12} {'ratio':>7}")
        for title, own, other in (
            ("--version", ["--version"], ["--version"]),
            ("--help", ["--help"], ["--help"]),
            ("list", ["table", "list"], ["list", "db"]),
            ("describe", ["table", "show", "db.events"], ["describe", "db.events"]),
            ("schema", ["table", "schema", "db.events"], ["schema", "db.events"]),
            ("properties", ["table", "properties", "db.events"], ["properties", "get", "table", "db.events"]),
            ("files", ["table", "files", "db.events"], ["files", "db.events"]),
            ("health", ["health", "db.events"], []),
            ("check", ["check", "db.events"], []),
        ):
            mine = statistics.median(seconds([*ours, *own]))
            peer = statistics.median(seconds([*theirs, *other])) if other else None
            shown = f"{peer:>12.2f} {mine / peer:>7.2f}" if peer is not None else f"{'-':>12} {'-':>7}"
            print(f"{title:<12} {mine:>9.2f} {shown}", flush=True)


if __name__ == "__main__":
    main()
