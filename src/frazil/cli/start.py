"""The `frazil` command: starts without the terminal's dependencies, to be able to tell the user what to install."""

from __future__ import annotations

import atexit
import gc
import sys
from importlib.util import find_spec

GC_THRESHOLD = 1_000_000
"""With Python's default of 700, collections while modules load take a sixth of a short command's time."""


class WithoutPandas:
    """Makes pandas appear not installed.

    Arrow imports it if it is installed, which takes longer than most commands. Commands print rows without it;
    `quiet_spark.py` reverts this for users' code on Spark.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Report pandas as missing, and leave other modules to other finders."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


def _freeze() -> None:
    """Skip the last collection of garbage, unless DuckDB would print what it holds then."""
    if "duckdb" not in sys.modules:
        gc.freeze()


def main() -> None:
    """Run the command line."""
    if find_spec("typer") is None:
        print("Cannot run frazil in the terminal: typer is not installed", file=sys.stderr)
        print("Hint: pip install 'frazil[cli]'.", file=sys.stderr)
        sys.exit(2)
    gc.set_threshold(GC_THRESHOLD)
    # A process that exits needs no collection, which takes as long as loading a third of the modules.
    atexit.register(_freeze)
    sys.meta_path.insert(0, WithoutPandas())
    from frazil.cli.main import app

    app(prog_name="frazil")


def allow_pandas() -> None:
    """Make pandas importable again."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, WithoutPandas)]
