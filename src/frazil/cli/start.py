"""The `frazil` command: it starts without what the terminal needs, to be able to say what to install."""

from __future__ import annotations

import atexit
import gc
import sys
from importlib.util import find_spec

ALLOCATIONS_BETWEEN_COLLECTIONS = 1_000_000
"""Python's own 700 make it look for garbage again and again while modules load, a sixth of a short command's time."""


class WithoutPandas:
    """Makes pandas look as if it were not installed.

    Arrow imports it where it is, which takes longer than most commands do. Commands print rows and need none of it;
    `quiet_spark.py` takes this back for what users run on Spark.
    """

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse to find pandas; leave everything else to others."""
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


def main() -> None:
    """Run the command line."""
    if find_spec("typer") is None:
        print("Cannot run frazil in the terminal: typer is not installed", file=sys.stderr)
        print("Hint: pip install 'frazil[cli]'.", file=sys.stderr)
        sys.exit(2)
    gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)
    # Nothing is left to collect of a process that ends, and looking takes as long as loading a third of the modules.
    atexit.register(gc.freeze)
    sys.meta_path.insert(0, WithoutPandas())
    from frazil.cli.main import app

    app(prog_name="frazil")


def allow_pandas() -> None:
    """Let pandas be found again."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, WithoutPandas)]
