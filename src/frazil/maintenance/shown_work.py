"""Maintenance that shows how far it is: `frazil/progress.py`, with the name of the table."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from frazil.catalog.base import Catalog
from frazil.loaded import LoadedTable
from frazil.progress import showing

Given = ParamSpec("Given")
Result = TypeVar("Result")
Job = Callable[Concatenate[Catalog, LoadedTable, Given], Result]


def with_progress(what: str) -> Callable[[Job[Given, Result]], Job[Given, Result]]:
    """Make a function over a table show how far it is; `what` goes before the table's name."""

    def decorate(run: Job[Given, Result]) -> Job[Given, Result]:
        @wraps(run)
        def run_shown(catalog: Catalog, loaded: LoadedTable, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
            with showing(f"{what} {loaded.name}"):
                return run(catalog, loaded, *args, **kwargs)

        return run_shown

    return decorate
