"""Finds the rows of a condition by position, for the verbs without a source: DELETE, UPDATE, OVERWRITE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from frazil.change_rows.change_rows import Decided, LocalChange
from frazil.change_rows.new_values import NewValues, updated_values
from frazil.commit.action import PlannedChange
from frazil.commit.new_snapshot import Target
from frazil.commit.row_delta import Command
from frazil.errors import FrazilError
from frazil.evaluate.compile_expression import TARGET, Compiler, mask_of
from frazil.evaluate.condition import Condition, Session, read_condition, table_columns
from frazil.expr.predicates import TRUE, Predicate, not_
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.tasks import FileScanTask
from frazil.spec.data_file import DataFile

_UPDATE = 1


@dataclass
class ConditionChange:
    """A compiled change of the rows of a condition; created by the functions below."""

    change: LocalChange
    condition: Condition
    updates: NewValues | None = None
    is_rewrite: bool = False

    @property
    def predicate(self) -> Predicate:
        """The filter for planning."""
        return self.condition.predicate

    @cached_property
    def tasks(self) -> dict[str, FileScanTask]:
        """The files that can contain matching rows."""
        return self.change.plan_files(self.condition.predicate)

    @cached_property
    def whole(self) -> list[FileScanTask]:
        """Files that contain only matching rows according to metadata; they are not read."""
        if self.updates is not None or self.condition.test is not None:
            return []
        if self.condition.predicate == TRUE:
            return list(self.tasks.values())
        others = self.change.plan_files(not_(self.condition.predicate))
        return [task for path, task in self.tasks.items() if path not in others]

    @property
    def read_tasks(self) -> list[FileScanTask]:
        """The files to read."""
        whole_paths = {task.data_file.file_path for task in self.whole}
        return [task for path, task in self.tasks.items() if path not in whole_paths]

    def run(self, added: Sequence[DataFile] = ()) -> PlannedChange | None:
        """Find the rows and write the files of the change; return the commit, or None if nothing changes."""
        decided = list(self._find())
        updates = {} if self.updates is None else {_UPDATE: self.updates}
        planned = self.change.carry_out(
            self.condition.predicate, decided, updates, whole=self.whole, added=added, is_rewrite=self.is_rewrite
        )
        if planned is None:
            return None
        return replace(
            planned, rows=self.change.count_rows(sum(len(decision.positions) for decision in decided), self.whole)
        )

    def _find(self) -> list[Decided]:
        positions_by_file: dict[str, list[Any]] = {}
        tasks = self.read_tasks
        columns = self.condition.columns
        for task, batch in self.change.read(tasks, columns):
            positions = batch.column(batch.num_columns - 1).to_numpy()
            test = self.condition.test
            if test is not None:
                positions = positions[mask_of(test.array(self.change.target_rows(batch, columns)))]
            if len(positions):
                positions_by_file.setdefault(task.data_file.file_path, []).append(positions)
        decisions = []
        for path, parts in positions_by_file.items():
            positions = np.concatenate(parts)
            small = positions.astype(np.uint32) if positions[-1] < 2**32 else positions
            decisions.append(Decided(self.tasks[path], small, np.full(len(small), _UPDATE, np.int16)))
        return decisions


def prepare_delete(
    loaded: LoadedTable, where: Any, target: Target, session: Session, cache: ManifestCache | None = None
) -> ConditionChange:
    """Compile a delete; refuse expressions that only Spark supports."""
    return _prepare(loaded, "delete", where, target, session, cache)


def prepare_update(
    loaded: LoadedTable,
    values: Mapping[str, Any],
    where: Any,
    target: Target,
    session: Session,
    cache: ManifestCache | None = None,
) -> ConditionChange:
    """Compile an update; refuse expressions that only Spark supports."""
    change = _prepare(loaded, "update", where, target, session, cache)
    compiler = Compiler({TARGET: table_columns(change.change.schema)}, session.now_us)
    change.updates = updated_values(change.change.schema, values, compiler)
    session.check(compiler)
    return change


def prepare_overwrite(
    loaded: LoadedTable, where: Any, target: Target, session: Session, cache: ManifestCache | None = None
) -> ConditionChange:
    """Compile the replacement of the rows of a condition; refuse expressions that only Spark supports."""
    change = _prepare(loaded, "delete", where, target, session, cache)
    change.is_rewrite = True
    return change


def run_overwrite(change: ConditionChange, files: Sequence[DataFile]) -> PlannedChange | None:
    """Replace the rows of a condition by files that are already written; on an error the files are deleted."""
    try:
        return change.run(files)
    except BaseException as error:
        if not isinstance(error, FrazilError) or error.may_clean_up:
            change.change.loaded.storage.delete_many([file.file_path for file in files])
        raise


def _prepare(
    loaded: LoadedTable, command: Command, where: Any, target: Target, session: Session, cache: ManifestCache | None
) -> ConditionChange:
    change = LocalChange(loaded, command, target, cache)
    return ConditionChange(change, read_condition(where, change.schema, session))
