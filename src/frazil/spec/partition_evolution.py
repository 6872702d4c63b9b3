"""Changing a table's partition spec. Specification: "Partition Evolution".

`PartitionSpecUpdate` collects additions, removals and renamings against the default spec and builds the
spec that follows. It reads values only (schema, specs, the last partition field id), so that a commit that lost
a race can build it again from the new state.

Rules, in the order `build` applies them:

- Field ids keep their meaning. A field that some spec of a v2 table has had (same source, transform and,
  where one is given, name) gets its old id back; other new fields get the next id of the table.
- v2 and later drop removed fields. v1 has ids by position, so a removed field stays as `void`, new fields
  go to the end, and a spec whose ids are not 1000, 1001, … is refused.
- A void field gives up its name to a live one and becomes `name_<field id>`.
- A spec equivalent to one the table has is that spec: no new one is made.
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
    """The outcome of an update."""

    spec: PartitionSpec
    last_partition_id: int
    is_new: bool
    """Whether the table has to add the spec; otherwise it has it already."""


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
        known = (spec.last_assigned_field_id for spec in (*self._specs, default_spec))
        self._first_last_id = max(*known, last_partition_id or 0, FIRST_PARTITION_FIELD_ID - 1)
        self._last_id = self._first_last_id
        self._added: list[PartitionField] = []
        self._removed: set[int] = set()
        self._renamed: dict[int, str] = {}

    def add_field(self, term: PartitionTerm | str, name: str | None = None) -> PartitionSpecUpdate:
        """Partition by a term too; the name is the argument's, the term's or made of both.

        Adding what this update removed takes the removal back.
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
            chosen = name if name is not None else evolved_field_name(self._schema.name_of(source_id), transform)
            new = PartitionField((source_id,), self._last_id, chosen, transform)
        if any(added.name == new.name for added in self._added):
            raise SchemaChangeError(f"Cannot add partition field {new.name!r}: this update has already added that name")
        self._added.append(new)
        return self

    def remove_field(self, field: PartitionTerm | str) -> PartitionSpecUpdate:
        """Stop partitioning by a field, given by its name or by its term."""
        found = self._find_base_field(field, "remove")
        if found.field_id in self._renamed:
            raise SchemaChangeError(f"Cannot remove partition field {found.name!r}: this update renames it")
        self._removed.add(found.field_id)
        return self

    def rename_field(self, name: str, new_name: str) -> PartitionSpecUpdate:
        """Give a field of the default spec another name."""
        if any(added.name == name for added in self._added):
            raise SchemaChangeError(f"Cannot rename partition field {name!r}: this update adds it")
        found = self._base.find_field(name)
        if found is None:
            raise self._not_found("rename", name)
        if found.field_id in self._removed:
            raise SchemaChangeError(f"Cannot rename partition field {name!r}: this update removes it")
        if not new_name:
            raise SchemaChangeError(f"Cannot rename partition field {name!r}: the new name is empty")
        self._renamed[found.field_id] = new_name
        return self

    def build(self) -> EvolvedSpec:
        """Return the spec after all changes, and the table's last partition field id with it."""
        fields = self._give_up_names([*self._kept_fields(), *self._added])
        self._check_names(fields)
        spec = PartitionSpec(INITIAL_SPEC_ID, tuple(fields))
        check_writable(spec)
        check_partition_spec(self._schema, spec)
        for known in self._specs:
            if known.same_fields(spec):
                return EvolvedSpec(known, self._first_last_id, is_new=False)
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

    def _kept_fields(self) -> Iterator[PartitionField]:
        added_ids = {field.field_id for field in self._added}
        for field in self._base.fields:
            if field.field_id in added_ids:
                # A void field of a table that was v1: its id is being given back to what it stood for.
                continue
            name = self._renamed.get(field.field_id, field.name)
            if field.field_id not in self._removed:
                yield PartitionField(field.source_ids, field.field_id, name, field.transform, field.extra)
            elif self._format_version < 2:
                yield PartitionField(field.source_ids[:1], field.field_id, name, VOID)

    def _give_up_names(self, fields: list[PartitionField]) -> list[PartitionField]:
        """Rename void fields whose names live fields use."""
        taken = {field.name for field in fields if not field.transform.is_void}
        renamed = []
        for field in fields:
            name = field.name
            if field.transform.is_void:
                while name in taken:
                    name = f"{name}_{field.field_id}"
                taken.add(name)
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
            found = self._base.find_field(by_name)
            if found is not None:
                return found
        try:
            term = parse_partition_term(field) if isinstance(field, str) else field
            source_id, transform = self._resolve(term)
        except (TextSyntaxError, FieldNotFoundError) as problem:
            raise self._not_found(verb, field) from problem
        if _find_same(self._added, source_id, transform) is not None:
            raise SchemaChangeError(f"Cannot {verb} partition field {transform}({term.column}): this update adds it")
        found = _find_same(self._base.fields, source_id, transform)
        if found is None:
            raise self._not_found(verb, field)
        return found

    def _not_found(self, verb: str, field: PartitionTerm | str) -> SchemaChangeError:
        text = repr(field) if isinstance(field, str) else f"{field.transform}({field.column})"
        names = ", ".join(field.name for field in self._base.fields) or "(none)"
        return SchemaChangeError(
            f"Cannot {verb} partition field {text}: the spec has no such field",
            hint=f"The partition fields are: {names}.",
        )

    def _reuse(self, source_id: int, transform: Transform, name: str | None) -> PartitionField | None:
        """Return the field some spec had for this, newest first, so that its id is used again."""
        if self._format_version < 2:
            return None
        for spec in sorted(self._specs, key=lambda spec: spec.spec_id, reverse=True):
            found = _find_same(spec.fields, source_id, transform)
            if found is not None and (name is None or found.name == name) and self._means_one_thing(found):
                return PartitionField(found.source_ids, found.field_id, found.name, found.transform)
        return None

    def _means_one_thing(self, field: PartitionField) -> bool:
        """Return whether no spec uses a field's id for something else, as specs of former v1 tables may."""
        return all(
            partition_field.source_ids == field.source_ids
            and (partition_field.transform == field.transform or partition_field.transform.is_void)
            for spec in self._specs
            for partition_field in spec.fields
            if partition_field.field_id == field.field_id
        )


def _find_same(fields: Iterable[PartitionField], source_id: int, transform: Transform) -> PartitionField | None:
    return next((field for field in fields if field.source_ids == (source_id,) and field.transform == transform), None)
