"""Maintenance that reports its progress (`frazil/progress.py`) with the name of the table."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from frazil.catalog.base import Catalog
from frazil.loaded import LoadedTable
from frazil.progress import showing

Params = ParamSpec("Params")
Result = TypeVar("Result")
Job = Callable[Concatenate[Catalog, LoadedTable, Params], Result]


def with_progress(what: str) -> Callable[[Job[Params, Result]], Job[Params, Result]]:
    """Make a function on a table report its progress; `what` precedes the table's name."""

    def decorate(run: Job[Params, Result]) -> Job[Params, Result]:
        @wraps(run)
        def run_shown(catalog: Catalog, loaded: LoadedTable, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
            with showing(f"{what} {loaded.name}"):
                return run(catalog, loaded, *args, **kwargs)

        return run_shown

    return decorate
