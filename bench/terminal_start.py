"""How long the terminal takes to answer, beside PyIceberg's: commands on one lake, each in a process of its own.

.venv/bin/python -m bench.terminal_start
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pyarrow as pa
from bench.measure import Results, alternate

import frazil

RUNS = 5
FILES = 200


def make_lake(folder: Path) -> None:
    """Make a lake of one table of many small files."""
    with frazil.connect(folder) as lake:
        table = lake.create_table("db.events", "id bigint, kind string")
        rows = pa.table({"id": [1, 2], "kind": ["a", "b"]})
        with table.transaction() as tx:
            for _ in range(FILES // 10):
                tx.append(rows)


def ask(command: list[str]) -> None:
    """Run a command, and let it answer."""
    subprocess.run(command, check=True, capture_output=True)


def main() -> None:
    """Print the table."""
    here = Path(sys.executable).parent
    results = Results("terminal_start", ["PyIceberg", "frazil"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "lake"
        make_lake(folder)
        ours = [str(here / "frazil"), "-w", str(folder)]
        theirs = [str(here / "pyiceberg"), "--uri", f"sqlite:///{folder}/catalog.db", "--catalog", "lake"]
        for title, own, other in (
            ("--version", ["--version"], ["--version"]),
            ("--help", ["--help"], ["--help"]),
            ("list", ["table", "list"], ["list", "db"]),
            ("describe", ["table", "show", "db.events"], ["describe", "db.events"]),
            ("schema", ["table", "schema", "db.events"], ["schema", "db.events"]),
            ("properties", ["table", "properties", "db.events"], ["properties", "get", "table", "db.events"]),
            ("files", ["table", "files", "db.events"], ["files", "db.events"]),
            ("head", ["head", "db.events"], []),
            ("sql --local", ["sql", "--local", "select count(*) from db.events"], []),
            ("health", ["health", "db.events"], []),
            ("check", ["check", "db.events"], []),
        ):
            work = {"PyIceberg": partial(ask, [*theirs, *other])} if other else {}
            work["frazil"] = partial(ask, [*ours, *own])
            results.add(title, 1, "table", alternate(work, RUNS))
    results.write()


if __name__ == "__main__":
    main()
