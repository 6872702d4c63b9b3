"""A merge, clause by clause: `t.merge(source, on="target.id = source.id").when_matched().update_all().execute()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from frazil.change_rows.merge_clauses import MergeClause, When
from frazil.spec.snapshot import Snapshot


@dataclass
class MergeBuilder:
    """Collects the clauses of a merge; nothing happens before `execute`.

    Conditions and values are Spark SQL (or columns of Spark's functions) over `target` and `source`. The first clause
    of a kind whose condition holds decides; a row of the table that matches several rows of the source is an error.
    """

    _run: Callable[[tuple[MergeClause, ...]], Snapshot | None]
    _explain: Callable[[tuple[MergeClause, ...]], str]
    _clauses: list[MergeClause] = field(default_factory=list)

    def __repr__(self) -> str:
        clauses = ", ".join(f"when {clause.when.replace('_', ' ')} then {clause.do}" for clause in self._clauses)
        return f"<merge, clauses: {clauses or 'none yet'}; execute() carries it out, explain() says how>"

    def when_matched(self, condition: Any = None) -> MatchedClause:
        """Say what becomes of rows of the table that match a row of the source."""
        return MatchedClause(self, "matched", condition)

    def when_not_matched(self, condition: Any = None) -> NotMatchedClause:
        """Say what becomes of rows of the source that match no row of the table."""
        return NotMatchedClause(self, condition)

    def when_not_matched_by_source(self, condition: Any = None) -> OwnClause:
        """Say what becomes of rows of the table that match no row of the source."""
        return OwnClause(self, "not_matched_by_source", condition)

    def execute(self) -> Snapshot | None:
        """Carry the merge out in one commit; None where it changes nothing."""
        return self._run(tuple(self._clauses))

    def explain(self) -> str:
        """Return which engine would carry the merge out, why, and what it would read."""
        return self._explain(tuple(self._clauses))

    def _add(self, clause: MergeClause) -> Self:
        self._clauses.append(clause)
        return self


class OwnClause:
    """A clause about rows of the table: what becomes of them."""

    def __init__(self, merge: MergeBuilder, when: When, condition: Any) -> None:
        self._merge = merge
        self._when = when
        self._condition = condition

    def delete(self) -> MergeBuilder:
        """Delete the rows."""
        return self._merge._add(MergeClause(self._when, "delete", self._condition))

    def update(self, values: Mapping[str, Any]) -> MergeBuilder:
        """Set columns to the values of expressions; the others stay as they are."""
        return self._merge._add(MergeClause(self._when, "update", self._condition, dict(values)))


class MatchedClause(OwnClause):
    """A clause about rows of the table that match a row of the source."""

    def update_all(self) -> MergeBuilder:
        """Set every column to the source's column of the same name."""
        return self._merge._add(MergeClause(self._when, "update", self._condition))


class NotMatchedClause:
    """A clause about rows of the source that match no row of the table."""

    def __init__(self, merge: MergeBuilder, condition: Any) -> None:
        self._merge = merge
        self._condition = condition

    def insert(self, values: Mapping[str, Any]) -> MergeBuilder:
        """Insert a row with the values of expressions; columns that are not named get their default."""
        return self._merge._add(MergeClause("not_matched", "insert", self._condition, dict(values)))

    def insert_all(self) -> MergeBuilder:
        """Insert a row with the source's columns of the same names."""
        return self._merge._add(MergeClause("not_matched", "insert", self._condition))
