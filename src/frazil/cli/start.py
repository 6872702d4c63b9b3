"""The `frazil` command: it starts without what the terminal needs, to be able to say what to install."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec


def main() -> None:
    """Run the command line."""
    if find_spec("typer") is None:
        print("Cannot run frazil in the terminal: typer is not installed", file=sys.stderr)
        print("Hint: pip install 'frazil[cli]'.", file=sys.stderr)
        sys.exit(2)
    import_module("frazil.cli.main").app()
