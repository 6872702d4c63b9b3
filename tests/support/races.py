"""A rival at a chosen point of what a verb does, and what a verb asks of its catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Literal, Self

from frazil.catalog.base import Catalog
from frazil.commit.action import Action
from frazil.loaded import LoadedTable
from frazil.table.table import Table, hold

Point = Literal["begun", "written", "commit"]
"""After the verb has loaded the table; while its rows are written; after that, before the catalog commits."""


class Race:
    """Lets a rival in, once, at a point of whatever uses a catalog inside the `with` block, and counts its loads."""

    def __init__(self, catalog: Catalog, point: Point | None = None, rival: Callable[[], object] | None = None) -> None:
        self._catalog: Any = catalog
        self._point = point
        self._rival = rival
        self.loads = 0

    @property
    def has_run(self) -> bool:
        """Whether the rival came."""
        return self._rival is None

    def reach(self, point: Point) -> None:
        """Say that a point is reached."""
        if point == self._point and self._rival is not None:
            rival, self._rival = self._rival, None
            before = self.loads
            rival()
            self.loads = before

    def __enter__(self) -> Self:
        load, commit, commit_many = self._catalog.load_table, self._catalog.commit, self._catalog.commit_many

        def load_table(identifier: Any) -> Any:
            found = load(identifier)
            self.loads += 1
            self.reach("begun")
            return found

        def before_commit(original: Any) -> Any:
            def run(*arguments: Any) -> Any:
                self.reach("commit")
                return original(*arguments)

            return run

        self._catalog.load_table = load_table
        self._catalog.commit, self._catalog.commit_many = before_commit(commit), before_commit(commit_many)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in ("load_table", "commit", "commit_many"):
            delattr(self._catalog, name)


def overtaken(table: Table, others: Callable[[Table], object], *, times: int = 1, held: bool = False) -> Table:
    """Return a handle on which others commit after a change is planned and before it commits, so many times."""
    handle = Table(table._catalog, table.refresh().state)
    handle = hold(handle) if held else handle
    session = handle._session
    left = [others] * times

    def commit(base: LoadedTable, actions: Sequence[Action], written: Sequence[str]) -> Any:
        if left:
            left.pop()(Table(table._catalog, table._catalog.load_table(table.identifier)))
        return session.commit(base, actions, written)

    handle._session = replace(session, commit=commit)
    return handle
