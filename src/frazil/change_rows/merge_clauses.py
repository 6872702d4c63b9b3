"""The clauses of a merge for all engines: their definition, validation and counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from frazil.errors import InvalidRequestError
from frazil.spec.snapshot import Summary

When: TypeAlias = Literal["matched", "not_matched", "not_matched_by_source"]
Do: TypeAlias = Literal["update", "delete", "insert"]

SHOWN_KEYS = 3
"""The number of keys shown in an error."""


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One clause of a merge. `values` None stands for all columns, by name, from the source."""

    when: When
    do: Do
    condition: Any = None
    values: Mapping[str, Any] | None = None

    def filled(self, fill: Callable[[Any], Any]) -> MergeClause:
        """Return the clause with parameters filled into its texts."""
        values = None if self.values is None else {name: fill(value) for name, value in self.values.items()}
        return replace(self, condition=fill(self.condition), values=values)


def check_clauses(clauses: Sequence[MergeClause]) -> None:
    """Refuse clauses that can never apply."""
    if not clauses:
        raise InvalidRequestError("Cannot merge: it has no clauses")
    for when in ("matched", "not_matched", "not_matched_by_source"):
        same_type = [clause for clause in clauses if clause.when == when]
        if any(merge_clause.condition is None for merge_clause in same_type[:-1]):
            raise InvalidRequestError(
                f"Cannot merge: a clause for rows {when.replace('_', ' ')} comes after one without a condition",
                hint="Only the last clause of a type may omit its condition.",
            )


def needs_single_match(clauses: Sequence[MergeClause]) -> bool:
    """Return whether several matches for one row are an error, since their order is undefined."""
    matched = [clause for clause in clauses if clause.when == "matched"]
    return bool(matched) and not (len(matched) == 1 and matched[0].do == "delete" and matched[0].condition is None)


def keys_twice(table: str, keys: Sequence[Mapping[str, Any]]) -> InvalidRequestError:
    """Return the error for an upsert whose source has duplicate keys; the first few are shown."""
    texts = [", ".join(f"{name} = {value!r}" for name, value in key.items()) for key in keys[:SHOWN_KEYS]]
    more = ["and more"] if len(keys) > SHOWN_KEYS else []
    return InvalidRequestError(
        f"Cannot upsert into {table}: the source has more than one row with {'; '.join(texts + more)}",
        hint="Keep one row per key in the source.",
    )


KINDS: Final = ("inserted", "updated", "deleted")
"""What clauses do with rows; a merge counts all kinds, an upsert those that it has."""


def summary_of(
    clauses: Sequence[MergeClause],
    counts: Mapping[int, int],
    *,
    copied: int,
    unchanged: int,
    always: Sequence[str] = KINDS,
) -> dict[str, str]:
    """Return the number of rows for each type of clause; `counts` are by the number of the clause, from 1.

    `copied` rows were rewritten unchanged. `unchanged` ones matched the source but no clause applied; if no clause is
    for matched rows, they are not counted. The types of rows in `always` are counted without a
    clause for them too.
    """
    totals = dict.fromkeys(always, 0)
    for index, clause in enumerate(clauses):
        count = counts.get(index + 1, 0)
        done = {"update": "updated", "delete": "deleted", "insert": "inserted"}[clause.do]
        totals[done] = totals.get(done, 0) + count
        if clause.when != "not_matched":
            name = f"{clause.when.replace('_', '-')}-{done}"
            totals[name] = totals.get(name, 0) + count
    totals["copied"] = copied
    if any(matched.when == "matched" for matched in clauses):
        totals["unchanged"] = unchanged
    return {f"{Summary.MERGED_ROWS_PREFIX}{name}": str(count) for name, count in totals.items()}
