"""Compatibility of a data schema with a read schema. Specification: "Schema Evolution", "Column Projection".

Both schemas use the same field ids: those of the table. All problems are reported, not only the first, each with the
full name of its column, so that a single error lists everything to fix.
"""

from __future__ import annotations

from dataclasses import dataclass

from frazil.spec.schema import Schema
from frazil.spec.type_promotion import LATEST_PROMOTIONS, describe_promotions, describe_type, is_promotion_allowed
from frazil.spec.types import ListType, MapType, NestedField, NestedType, StructType, Type


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """A reason why data cannot be read: the full name of the column and the problem with it."""

    column: str
    problem: str

    def __str__(self) -> str:
        return f"{self.column}: {self.problem}"


def check_read_compatible(
    read_schema: Schema,
    data_schema: Schema,
    *,
    check_nullability: bool = True,
    format_version: int = LATEST_PROMOTIONS,
) -> list[Incompatibility]:
    """Return why data of `data_schema` cannot be read as `read_schema`; empty if it can.

    Order does not matter, and columns that are not requested are ignored. A required column that the data
    lacks is a problem unless it has an initial default.
    """
    check = _Check(format_version, check_nullability=check_nullability)
    check.compare(read_schema.struct, data_schema.struct, "")
    return check.problems


class _Check:
    """A comparison: its options and the problems so far."""

    def __init__(self, format_version: int, *, check_nullability: bool) -> None:
        self.check_nullability = check_nullability
        self.format_version = format_version
        self.problems: list[Incompatibility] = []

    def report(self, column: str, problem: str) -> None:
        self.problems.append(Incompatibility(column, problem))

    def compare(self, want: Type, have: Type, column: str) -> None:
        """Compare two types and their parts, recursively; schemas limit the depth."""
        if isinstance(want, StructType) and isinstance(have, StructType):
            self.compare_structs(want, have, column)
        elif isinstance(want, ListType) and isinstance(have, ListType):
            self.compare_parts(want.element_field, have.element_field, f"{column}.element")
        elif isinstance(want, MapType) and isinstance(have, MapType):
            self.compare_parts(want.key_field, have.key_field, f"{column}.key")
            self.compare_parts(want.value_field, have.value_field, f"{column}.value")
        elif not is_promotion_allowed(have, want, format_version=self.format_version):
            if isinstance(have, NestedType) or isinstance(want, NestedType) or not have.is_primitive:
                self.report(column, f"{describe_type(have)} cannot be read as {describe_type(want)}")
            else:
                may = describe_promotions(have, format_version=self.format_version)
                self.report(column, f"{have} cannot be promoted to {want} (it may {may})")

    def compare_parts(self, want: NestedField, have: NestedField, column: str) -> None:
        if self.check_nullability and want.required and have.optional:
            self.report(column, "it must be required, but the data has it optional")
        self.compare(want.field_type, have.field_type, column)

    def compare_structs(self, want: StructType, have: StructType, column: str) -> None:
        prefix = f"{column}." if column else ""
        by_id = {field.field_id: field for field in have.fields}
        for field in want.fields:
            stored = by_id.get(field.field_id)
            if stored is not None:
                self.compare_parts(field, stored, prefix + field.name)
            elif field.required and field.initial_default is None:
                self.report(prefix + field.name, "it is required, but the data lacks it and it has no default")
