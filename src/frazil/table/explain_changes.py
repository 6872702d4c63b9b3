"""What a change of rows would do, without doing it: `t.explain.delete("id < 5")`.

The answer says which engine would run it and why (`verbs/choose_engine.py`), what planning asks for, and which files
are read. A merge explains itself: `explain()` in the place of `execute()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from frazil.expr.predicates import TRUE
from frazil.spec.snapshot import MAIN_BRANCH
from frazil.verbs.choose_engine import Engine
from frazil.verbs.delete import explain_delete
from frazil.verbs.overwrite import explain_overwrite
from frazil.verbs.update import explain_update
from frazil.verbs.upsert import explain_upsert
from frazil.verbs.write_session import WriteSession


class ExplainChanges:
    """Says of changes what they would do; nothing is written. Get it from `Table.explain`."""

    def __init__(self, session: WriteSession) -> None:
        self._session = session

    def __repr__(self) -> str:
        return "<what a change would do, as text: delete, update, upsert, overwrite>"

    def delete(self, where: Any, *, branch: str = MAIN_BRANCH, engine: Engine = "auto", **parameters: object) -> str:
        """Explain a delete."""
        return explain_delete(self._on(branch), where, engine=engine, parameters=parameters)

    def overwrite(
        self,
        data: Any,
        where: Any = TRUE,
        *,
        branch: str = MAIN_BRANCH,
        engine: Engine = "auto",
        **parameters: object,
    ) -> str:
        """Explain an overwrite; the new rows are not read."""
        return explain_overwrite(self._on(branch), data, where, engine=engine, parameters=parameters)

    def update(
        self,
        values: Mapping[str, Any],
        where: Any = "true",
        *,
        branch: str = MAIN_BRANCH,
        engine: Engine = "auto",
        **parameters: object,
    ) -> str:
        """Explain an update."""
        return explain_update(self._on(branch), values, where, engine=engine, parameters=parameters)

    def upsert(
        self, data: Any, keys: Sequence[str] | None = None, *, branch: str = MAIN_BRANCH, engine: Engine = "auto"
    ) -> str:
        """Explain an upsert; the source is read."""
        return explain_upsert(self._on(branch), data, keys, engine=engine)

    def _on(self, branch: str) -> WriteSession:
        return replace(self._session, branch=branch)
