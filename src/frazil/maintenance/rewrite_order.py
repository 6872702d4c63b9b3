"""The sort order of a rewrite, parsed from text: `id desc nulls last, bucket(4, k)`, or `zorder(a, b)`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from frazil.errors import InvalidRequestError
from frazil.maintenance.plan_rewrite import STRATEGIES, Strategy
from frazil.spec.sorting import UNSORTED, SortOrder, build_sort_order
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import PrimitiveType

_ZORDER: Final = re.compile(r"\s*zorder\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)


def choose_order(
    metadata: TableMetadata,
    strategy: str,
    sort_by: str | Sequence[str] | None,
    *,
    case_sensitive: bool = True,
) -> tuple[Strategy, SortOrder, tuple[int, ...]]:
    """Return the strategy of a rewrite, its sort order and its z-order columns; refuse contradictions.

    `sort` without an order uses the table's own.
    """
    named = strategy.strip().lower().replace("-", "")
    chosen = next((strategy for strategy in STRATEGIES if strategy == named), None)
    if chosen is None:
        raise InvalidRequestError(
            f"Cannot rewrite data files by the strategy {strategy!r}", hint=f"Choose from: {', '.join(STRATEGIES)}."
        )
    terms = list(_terms(sort_by)) if isinstance(sort_by, str) else list(sort_by or ())
    zorder = _ZORDER.fullmatch(terms[0]) if len(terms) == 1 else None
    if chosen == "zorder" or zorder is not None:
        if chosen == "binpack":
            raise _no_order()
        names = list(_terms(zorder.group(1))) if zorder is not None else terms
        return "zorder", UNSORTED, _zorder_ids(metadata, names, case_sensitive=case_sensitive)
    if any(_ZORDER.fullmatch(term) for term in terms):
        raise InvalidRequestError("Cannot sort by columns and in z-order at once", hint="Pass only zorder(...).")
    if chosen == "binpack":
        if terms:
            raise _no_order()
        return "binpack", UNSORTED, ()
    if terms:
        return "sort", build_sort_order(metadata.current_schema, terms, case_sensitive=case_sensitive), ()
    order = metadata.default_sort_order
    if order.is_unsorted:
        raise InvalidRequestError(
            "Cannot rewrite data files by the strategy 'sort': the table has no sort order",
            hint="Set what to sort by, such as 'id desc', or set the table's sort order.",
        )
    return "sort", order, ()


def _no_order() -> InvalidRequestError:
    return InvalidRequestError(
        "Cannot sort in a rewrite by the strategy 'binpack': it keeps rows in their order",
        hint="Use the strategy 'sort'.",
    )


def _zorder_ids(metadata: TableMetadata, names: Sequence[str], *, case_sensitive: bool) -> tuple[int, ...]:
    if not names:
        raise InvalidRequestError("Cannot sort in z-order: there are no columns", hint="Write zorder(a, b).")
    ids = []
    for name in names:
        field = metadata.current_schema.field(name.strip().strip("`"), case_sensitive=case_sensitive)
        if not isinstance(field.field_type, PrimitiveType):
            raise InvalidRequestError(f"Cannot sort in z-order by {name!r}: it is a {field.field_type}")
        if field.field_id in ids:
            raise InvalidRequestError(f"Cannot sort in z-order by {name!r} twice")
        ids.append(field.field_id)
    return tuple(ids)


def _terms(text: str) -> Iterator[str]:
    """Yield the comma-separated terms of a text; commas in brackets do not separate."""
    depth, start = 0, 0
    for index, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            yield text[start:index].strip()
            start = index + 1
    if text[start:].strip():
        yield text[start:].strip()
