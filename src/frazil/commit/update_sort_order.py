"""Change the order that new data is sorted by. Specification: "Sorting"."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.changes.requirements import AssertCurrentSchemaId, AssertDefaultSortOrderId
from frazil.changes.updates import AddSortOrder, SetDefaultSortOrder
from frazil.commit.action import NOTHING, Changes, CommitContext
from frazil.commit.new_snapshot import table_requirement
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.spec.sorting import SortTerm, build_sort_order


@dataclass(frozen=True, slots=True)
class UpdateSortOrder:
    """Sort new data by terms, such as `ts desc nulls last`; no terms make it unsorted."""

    terms: tuple[SortTerm | str, ...] = ()
    case_sensitive: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.terms, str):
            raise InvalidRequestError(f"Cannot sort by {self.terms!r}: pass a list of terms")
        object.__setattr__(self, "terms", tuple(self.terms))

    def prepare(self, loaded: LoadedTable, context: CommitContext) -> Changes:
        """Return the order over the present schema, or nothing if it is already the default."""
        metadata = loaded.metadata
        order = build_sort_order(metadata.current_schema, self.terms, case_sensitive=self.case_sensitive)
        if order.same_order(metadata.default_sort_order):
            return NOTHING
        return Changes(
            (AddSortOrder(order), SetDefaultSortOrder()),
            (
                *table_requirement(metadata),
                AssertDefaultSortOrderId(metadata.default_sort_order_id),
                AssertCurrentSchemaId(metadata.current_schema_id),
            ),
        )
