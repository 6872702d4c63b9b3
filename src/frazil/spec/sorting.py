"""Sort orders of rows in data files. Specification: "Sorting".

A sort order is a list of fields, each a transform of a source column with a direction and an order of
nulls. Order id 0 is the unsorted order. `sort_key` sorts rows given as dicts;
`codec/sort_order_json.py` reads and writes orders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import total_ordering
from typing import Any

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.spec.frozen_map import NO_EXTRA, FrozenMap, freeze_tuples
from frazil.spec.partitioning import check_source, check_sources
from frazil.spec.schema import Schema
from frazil.spec.transform_terms import TermReader, read_term
from frazil.spec.transforms import Transform
from frazil.spec.types import Type
from frazil.spec.values import sort_key_function

UNSORTED_ORDER_ID = 0
INITIAL_SORT_ORDER_ID = 1


class SortDirection(Enum):
    """Whether small or large values come first."""

    ASC = "asc"
    DESC = "desc"

    def __str__(self) -> str:
        return self.value


class NullOrder(Enum):
    """Whether nulls come first or last."""

    NULLS_FIRST = "nulls first"
    NULLS_LAST = "nulls last"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class SortField:
    """One key of a sort order. A field of several source columns always has an unknown transform."""

    source_ids: tuple[int, ...]
    transform: Transform
    direction: SortDirection
    null_order: NullOrder
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_tuples(self, "source_ids")
        check_sources("a sort field", self.source_ids, self.transform)

    @property
    def source_id(self) -> int:
        """The id of the single source column."""
        if len(self.source_ids) != 1:
            raise UnsupportedError(f"Cannot use the sort field: {self.transform} takes {len(self.source_ids)} columns")
        return self.source_ids[0]

    def same_field(self, other: SortField) -> bool:
        """Return whether both sort in the same way."""
        return (
            self.source_ids == other.source_ids
            and self.direction is other.direction
            and self.null_order is other.null_order
            and str(self.transform) == str(other.transform)
        )

    def satisfies(self, other: SortField, source_type: Type | None = None) -> bool:
        """Return whether rows sorted by this field are also sorted by the other."""
        return (
            self.source_ids == other.source_ids
            and self.direction is other.direction
            and self.null_order is other.null_order
            and self.transform.satisfies_order_of(other.transform, source_type)
        )

    def __str__(self) -> str:
        return f"{self.transform}({', '.join(map(str, self.source_ids))}) {self.direction} {self.null_order}"


@dataclass(frozen=True, slots=True)
class SortOrder:
    """A numbered list of sort fields."""

    order_id: int = UNSORTED_ORDER_ID
    fields: tuple[SortField, ...] = ()
    extra: FrozenMap[str, Any] = field(default=NO_EXTRA, hash=False, repr=False)

    def __post_init__(self) -> None:
        freeze_tuples(self, "fields")
        if self.order_id == UNSORTED_ORDER_ID and self.fields:
            raise InvalidRequestError("Cannot make the sort order: the id 0 is reserved for the unsorted order")

    @property
    def is_unsorted(self) -> bool:
        """Whether there are no sort fields."""
        return not self.fields

    @property
    def is_sorted(self) -> bool:
        """Whether there are sort fields."""
        return bool(self.fields)

    @property
    def order_preserving_source_ids(self) -> tuple[int, ...]:
        """The columns whose values follow the order, so that their file bounds are worth keeping."""
        return tuple(sort_field.source_id for sort_field in self.fields if sort_field.transform.preserves_order)

    def satisfies(self, other: SortOrder, schema: Schema | None = None) -> bool:
        """Return whether rows in this order are also in the other order.

        With a schema, truncations of different widths are compared according to their source types.
        """
        if len(other.fields) > len(self.fields):
            return False
        return all(
            sort_field.satisfies(another, _type_of(schema, sort_field))
            for sort_field, another in zip(self.fields, other.fields, strict=False)
        )

    def same_order(self, other: SortOrder) -> bool:
        """Return whether both sort in the same way, ignoring ids."""
        return len(self.fields) == len(other.fields) and all(
            sort_field.same_field(another) for sort_field, another in zip(self.fields, other.fields, strict=True)
        )

    def with_order_id(self, order_id: int) -> SortOrder:
        """Return this order with another id."""
        return SortOrder(order_id, self.fields, self.extra)

    def __str__(self) -> str:
        return "[" + "".join(f"\n  {sort_field}" for sort_field in self.fields) + ("\n]" if self.fields else "]")


UNSORTED = SortOrder()
"""The order of unsorted rows."""


@dataclass(frozen=True, slots=True)
class SortTerm:
    """A user's request for a sort field."""

    column: str
    transform: Transform
    direction: SortDirection = SortDirection.ASC
    null_order: NullOrder = NullOrder.NULLS_FIRST


def parse_sort_term(text: str) -> SortTerm:
    """Parse a sort term such as `ts desc nulls last` or `bucket(4, id)`.

    The default is ascending; by default, nulls come first in ascending and last in descending order.
    """
    reader = TermReader(text, "sort term")
    column, transform = read_term(reader)
    direction = SortDirection(reader.take_any("asc", "desc") or "asc")
    null_order = NullOrder.NULLS_FIRST if direction is SortDirection.ASC else NullOrder.NULLS_LAST
    if reader.take_words("nulls"):
        end = reader.take_any("first", "last")
        if end is None:
            reader.fail("expected first or last")
        null_order = NullOrder(f"nulls {end}")
    reader.end()
    return SortTerm(column, transform, direction, null_order)


def build_sort_order(
    schema: Schema,
    terms: Iterable[SortTerm | str],
    order_id: int = INITIAL_SORT_ORDER_ID,
    *,
    case_sensitive: bool = True,
) -> SortOrder:
    """Return the order that sorts a schema's rows by these terms; without terms, the unsorted order."""
    fields = []
    for term in terms:
        if isinstance(term, str):
            term = parse_sort_term(term)
        source = schema.field(term.column, case_sensitive=case_sensitive)
        fields.append(SortField((source.field_id,), term.transform, term.direction, term.null_order))
    if not fields:
        return UNSORTED
    order = SortOrder(order_id, tuple(fields))
    check_sort_order(schema, order)
    return order


def check_sort_order(schema: Schema, order: SortOrder) -> None:
    """Refuse an order whose sources are missing from a schema or have types that the transforms do not accept."""
    for sort_field in order.fields:
        for source_id in sort_field.source_ids:
            check_source(f"sort by {sort_field}", schema, source_id, sort_field.transform)


def sort_key(order: SortOrder, schema: Schema) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Return a key function for sorting rows, given as dicts by column name."""
    parts = [_key_part(sort_field, schema) for sort_field in order.fields]
    return lambda row: tuple(make_key(row) for make_key in parts)


def _key_part(sort_field: SortField, schema: Schema) -> Callable[[Mapping[str, Any]], tuple[int, Any]]:
    if sort_field.transform.is_unknown:
        raise UnsupportedError(f"Cannot sort by {sort_field}: the transform {sort_field.transform} is not supported")
    check_source(f"sort by {sort_field}", schema, sort_field.source_id, sort_field.transform)
    source = schema.field(sort_field.source_id)
    path = [*(nested_field.name for nested_field in reversed(schema.ancestors_of(sort_field.source_id))), source.name]
    key_of = sort_key_function(sort_field.transform.result_type(source.field_type))
    is_descending = sort_field.direction is SortDirection.DESC
    null_rank = 0 if sort_field.null_order is NullOrder.NULLS_FIRST else 1

    def key(row: Mapping[str, Any]) -> tuple[int, Any]:
        value: Any = row
        for name in path:
            value = None if value is None else value.get(name)
        value = sort_field.transform.apply(value, source.field_type)
        if value is None:
            return null_rank, 0
        ordered = key_of(value)
        return 1 - null_rank, _Descending(ordered) if is_descending else ordered

    return key


@total_ordering
class _Descending:
    """A value with reversed comparison."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and bool(self.value == other.value)

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)

    def __hash__(self) -> int:
        return hash(self.value)


def _type_of(schema: Schema | None, sort_field: SortField) -> Type | None:
    source = None if schema is None else schema.find_field(sort_field.source_ids[0])
    return None if source is None else source.field_type
