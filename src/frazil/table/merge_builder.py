"""A merge, clause by clause: `t.merge(source, on="target.id = source.id").when_matched().update_all().execute()`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from frazil.change_rows.merge_clauses import MergeClause, When
from frazil.spec.snapshot import Snapshot
from frazil.verbs.merge import Merge, explain_merge, merge_rows
from frazil.verbs.write_session import WriteSession


@dataclass
class MergeBuilder:
    """Collects the clauses of a merge; nothing happens before `execute`.

    Conditions and values are Spark SQL (or columns of Spark's functions) over `target` and `source`. The first clause
    of a kind whose condition holds decides; a row of the table that matches several rows of the source is an error.
    """

    _session: WriteSession
    _merge: Merge

    def __repr__(self) -> str:
        clauses = ", ".join(f"when {clause.when.replace('_', ' ')} then {clause.do}" for clause in self._merge.clauses)
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
        return merge_rows(self._session, self._merge)

    def explain(self) -> str:
        """Return which engine would carry the merge out, why, and what it would read."""
        return explain_merge(self._session, self._merge)

    def _add(self, clause: MergeClause) -> Self:
        self._merge = replace(self._merge, clauses=(*self._merge.clauses, clause))
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
