"""Changes of a table's partition spec. Specification: "Partition Evolution".

`PartitionSpecUpdate` collects additions, removals and renamings against the default spec and builds the new spec. It
depends on values only (schema, specs, the last partition field id), so that a commit that lost a race can build the
spec again from the new state.

Rules, in the order `build` applies them:

- Field ids keep their meaning. A field that some spec of a v2 table has had (same source, transform and,
  if given, name) gets its old id back; other new fields get the next id of the table.
- v2 and later drop removed fields. v1 has ids by position, so a removed field stays as `void`, new fields
  go to the end, and a spec whose ids are not 1000, 1001, … is refused.
- A void field with the name of a live one is renamed to `name_<field id>`.
- If the table already has an equivalent spec, that spec is used instead of a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from frazil.errors import FieldNotFoundError, SchemaChangeError, TextSyntaxError
from frazil.spec.partitioning import (
    FIRST_PARTITION_FIELD_ID,
    INITIAL_SPEC_ID,
    PartitionField,
    PartitionSpec,
    PartitionTerm,
    check_partition_spec,
    check_writable,
    evolved_field_name,
    parse_partition_term,
)
from frazil.spec.schema import Schema
from frazil.spec.transforms import VOID, Transform


@dataclass(frozen=True, slots=True)
class EvolvedSpec:
    """The result of an update."""

    spec: PartitionSpec
    last_partition_id: int
    is_new: bool
    """Whether the spec must be added to the table, which otherwise has it already."""


class PartitionSpecUpdate:
    """Changes to a table's default partition spec, collected and then built."""

    def __init__(
        self,
        schema: Schema,
        specs: Iterable[PartitionSpec],
        default_spec: PartitionSpec,
        *,
        format_version: int,
        last_partition_id: int | None = None,
        case_sensitive: bool = True,
    ) -> None:
        self._schema = schema
        self._specs = tuple(specs)
        self._base = default_spec
        self._format_version = format_version
        self._case_sensitive = case_sensitive
        last_ids = (spec.last_assigned_field_id for spec in (*self._specs, default_spec))
        self._first_last_id = max(*last_ids, last_partition_id or 0, FIRST_PARTITION_FIELD_ID - 1)
        self._last_id = self._first_last_id
        self._added: list[PartitionField] = []
        self._removed: set[int] = set()
        self._renamed: dict[int, str] = {}

    def add_field(self, term: PartitionTerm | str, name: str | None = None) -> PartitionSpecUpdate:
        """Add a partition field; its name is the argument's, the term's or derived from both.

        Adding a field that this update removed reverts the removal.
        """
        if isinstance(term, str):
            term = parse_partition_term(term)
        name = name if name is not None else term.name
        source_id, transform = self._resolve(term)
        existing = _find_same(self._base.fields, source_id, transform)
        if existing is not None:
            if existing.field_id not in self._removed:
                raise SchemaChangeError(
                    f"Cannot add partition field {transform}({term.column}): {existing.name!r} is the same"
                )
            self._removed.remove(existing.field_id)
            if name is not None and name != existing.name:
                self._renamed[existing.field_id] = name
            return self
        for added in self._added:
            if added.source_ids == (source_id,) and (
                added.transform == transform or (added.transform.is_time and transform.is_time)
            ):
                raise SchemaChangeError(
                    f"Cannot add partition field {transform}({term.column}): {added.name!r} of the same update "
                    f"already partitions {term.column!r} by {added.transform}"
                )
        new = self._reuse(source_id, transform, name)
        if new is None:
            self._last_id += 1
            field_name = name if name is not None else evolved_field_name(self._schema.name_of(source_id), transform)
            new = PartitionField((source_id,), self._last_id, field_name, transform)
        if any(added.name == new.name for added in self._added):
            raise SchemaChangeError(f"Cannot add partition field {new.name!r}: this update has already added that name")
        self._added.append(new)
        return self

    def remove_field(self, field: PartitionTerm | str) -> PartitionSpecUpdate:
        """Remove a partition field, given by its name or its term."""
        partition_field = self._find_base_field(field, "remove")
        if partition_field.field_id in self._renamed:
            raise SchemaChangeError(f"Cannot remove partition field {partition_field.name!r}: this update renames it")
        self._removed.add(partition_field.field_id)
        return self

    def rename_field(self, name: str, new_name: str) -> PartitionSpecUpdate:
        """Rename a field of the default spec."""
        if any(added.name == name for added in self._added):
            raise SchemaChangeError(f"Cannot rename partition field {name!r}: this update adds it")
        partition_field = self._base.find_field(name)
        if partition_field is None:
            raise self._not_found("rename", name)
        if partition_field.field_id in self._removed:
            raise SchemaChangeError(f"Cannot rename partition field {name!r}: this update removes it")
        if not new_name:
            raise SchemaChangeError(f"Cannot rename partition field {name!r}: the new name is empty")
        self._renamed[partition_field.field_id] = new_name
        return self

    def build(self) -> EvolvedSpec:
        """Return the spec after all changes, with the table's last partition field id."""
        fields = self._rename_voids([*self._retained_fields(), *self._added])
        self._check_names(fields)
        spec = PartitionSpec(INITIAL_SPEC_ID, tuple(fields))
        check_writable(spec)
        check_partition_spec(self._schema, spec)
        for existing in self._specs:
            if existing.same_fields(spec):
                return EvolvedSpec(existing, self._first_last_id, is_new=False)
        if self._format_version < 2 and not spec.has_sequential_ids:
            ids = ", ".join(str(field.field_id) for field in fields)
            raise SchemaChangeError(
                f"Cannot change the partition spec: v1 tables need field ids in order from "
                f"{FIRST_PARTITION_FIELD_ID}, these would be {ids}",
                hint="Upgrade the table to format version 2.",
            )
        spec_id = max((spec.spec_id for spec in self._specs), default=INITIAL_SPEC_ID - 1) + 1
        last_id = max(self._first_last_id, spec.last_assigned_field_id)
        return EvolvedSpec(spec.with_spec_id(spec_id), last_id, is_new=True)

    def _retained_fields(self) -> Iterator[PartitionField]:
        added_ids = {field.field_id for field in self._added}
        for field in self._base.fields:
            if field.field_id in added_ids:
                # A void field of a former v1 table, whose id returns to its original field.
                continue
            name = self._renamed.get(field.field_id, field.name)
            if field.field_id not in self._removed:
                yield PartitionField(field.source_ids, field.field_id, name, field.transform, field.extra)
            elif self._format_version < 2:
                yield PartitionField(field.source_ids[:1], field.field_id, name, VOID)

    def _rename_voids(self, fields: list[PartitionField]) -> list[PartitionField]:
        """Rename void fields whose names live fields use."""
        used_names = {field.name for field in fields if not field.transform.is_void}
        renamed = []
        for field in fields:
            name = field.name
            if field.transform.is_void:
                while name in used_names:
                    name = f"{name}_{field.field_id}"
                used_names.add(name)
            renamed.append(PartitionField(field.source_ids, field.field_id, name, field.transform, field.extra))
        return renamed

    def _check_names(self, fields: list[PartitionField]) -> None:
        seen: set[str] = set()
        for field in fields:
            if field.name in seen:
                raise SchemaChangeError(f"Cannot change the partition spec: two fields would be named {field.name!r}")
            seen.add(field.name)
            before = self._base.find_field(field.field_id)
            if before is not None and before.name == field.name:
                continue
            column = self._schema.find_field(field.name, case_sensitive=self._case_sensitive)
            if column is not None and column.field_id not in field.source_ids:
                raise SchemaChangeError(
                    f"Cannot name a partition field {field.name!r}: the schema has a column of that name",
                    hint="A partition field may have a column's name only if that column is its source.",
                )

    def _resolve(self, term: PartitionTerm) -> tuple[int, Transform]:
        source = self._schema.field(term.column, case_sensitive=self._case_sensitive)
        return source.field_id, term.transform

    def _find_base_field(self, field: PartitionTerm | str, verb: str) -> PartitionField:
        by_name = field if isinstance(field, str) else None
        if by_name is not None:
            if any(added.name == by_name for added in self._added):
                raise SchemaChangeError(f"Cannot {verb} partition field {by_name!r}: this update adds it")
            match = self._base.find_field(by_name)
            if match is not None:
                return match
        try:
            term = parse_partition_term(field) if isinstance(field, str) else field
            source_id, transform = self._resolve(term)
        except (TextSyntaxError, FieldNotFoundError) as problem:
            raise self._not_found(verb, field) from problem
        if _find_same(self._added, source_id, transform) is not None:
            raise SchemaChangeError(f"Cannot {verb} partition field {transform}({term.column}): this update adds it")
        match = _find_same(self._base.fields, source_id, transform)
        if match is None:
            raise self._not_found(verb, field)
        return match

    def _not_found(self, verb: str, field: PartitionTerm | str) -> SchemaChangeError:
        text = repr(field) if isinstance(field, str) else f"{field.transform}({field.column})"
        names = ", ".join(field.name for field in self._base.fields) or "(none)"
        return SchemaChangeError(
            f"Cannot {verb} partition field {text}: the spec has no such field",
            hint=f"The partition fields are: {names}.",
        )

    def _reuse(self, source_id: int, transform: Transform, name: str | None) -> PartitionField | None:
        """Return the field of an older spec, newest first, whose id can be reused for this one."""
        if self._format_version < 2:
            return None
        for spec in sorted(self._specs, key=lambda spec: spec.spec_id, reverse=True):
            match = _find_same(spec.fields, source_id, transform)
            if match is not None and (name is None or match.name == name) and self._means_one_thing(match):
                return PartitionField(match.source_ids, match.field_id, match.name, match.transform)
        return None

    def _means_one_thing(self, field: PartitionField) -> bool:
        """Return whether no spec uses a field's id for another field, as specs of former v1 tables may."""
        return all(
            partition_field.source_ids == field.source_ids
            and (partition_field.transform == field.transform or partition_field.transform.is_void)
            for spec in self._specs
            for partition_field in spec.fields
            if partition_field.field_id == field.field_id
        )


def _find_same(fields: Iterable[PartitionField], source_id: int, transform: Transform) -> PartitionField | None:
    return next((field for field in fields if field.source_ids == (source_id,) and field.transform == transform), None)
