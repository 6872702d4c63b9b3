"""What a change of rows would do, without doing it: `t.explain.delete("id < 5")`.

The answer says which engine would run it and why (`choose_engine.py`), what planning asks for, and which files are
read. A merge explains itself: `explain()` in the place of `execute()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frazil.change_rows.source_rows import open_source
from frazil.expr.fill_parameters import Parameters
from frazil.expr.predicates import TRUE
from frazil.spec.snapshot import MAIN_BRANCH
from frazil.table.choose_engine import Engine, check_engine
from frazil.table.on_spark import is_spark_frame
from frazil.table.sql_meaning import plain_predicate, takes_files_whole
from frazil.table.verbs import NO_PROPERTIES, TableVerbs, filled, keys_of, target_of

_WHOLE = "  by metadata alone, since every file that can hold such rows holds no others"


class ExplainChanges:
    """Says of changes what they would do; nothing is written. Get it from `Table.explain`."""

    def __init__(self, table: TableVerbs) -> None:
        self._table = table

    def __repr__(self) -> str:
        return "<what a change would do, as text: delete, update, upsert, overwrite>"

    def delete(self, where: Any, *, branch: str = MAIN_BRANCH, engine: Engine = "auto", **parameters: object) -> str:
        """Explain a delete."""
        where = filled(where, parameters)
        state = self._table._begin()
        check_engine(engine, state)
        predicate = plain_predicate(where, state.metadata.current_schema)
        what = f"delete from {state.name}"
        if predicate is not None and takes_files_whole(state, branch, predicate, self._table._cache):
            return f"{what}\n{_WHOLE}"
        return self._table._choose_delete(state, where, branch, NO_PROPERTIES, engine).explain(what)

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
        where = filled(where, parameters)
        state = self._table._begin()
        check_engine(engine, state, data)
        predicate = plain_predicate(where, state.metadata.current_schema)
        what = f"overwrite {state.name}"
        if predicate is not None and takes_files_whole(state, branch, predicate, self._table._cache):
            return f"{what}\n{_WHOLE}"
        target = target_of(state.metadata, branch, NO_PROPERTIES)
        return self._table._choose_overwrite(state, data, where, target, engine).explain(what)

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
        given = Parameters(parameters)
        where, values = given.fill(where), {name: given.fill(value) for name, value in values.items()}
        given.check()
        state = self._table._begin()
        choice = self._table._choose_update(state, values, where, branch, NO_PROPERTIES, engine)
        return choice.explain(f"update {state.name}")

    def upsert(
        self, data: Any, keys: Sequence[str] | None = None, *, branch: str = MAIN_BRANCH, engine: Engine = "auto"
    ) -> str:
        """Explain an upsert; the source is read."""
        state = self._table._begin()
        source = data if is_spark_frame(data) else open_source(data, state.metadata.current_schema)
        choice = self._table._choose_upsert(state, source, keys_of(state, keys), branch, NO_PROPERTIES, engine)
        return choice.explain(f"upsert into {state.name}")
