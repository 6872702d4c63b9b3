"""Random histories of a schema: whatever is done to it, what was written stays readable under the same ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from frazil.codec.name_mapping_json import decode_name_mapping, encode_name_mapping
from frazil.errors import InvalidRequestError, NotFoundError
from frazil.spec.column_projection import resolve_columns
from frazil.spec.name_mapping import apply_name_mapping, create_name_mapping, update_name_mapping
from frazil.spec.schema import Schema
from frazil.spec.schema_compatibility import check_read_compatible
from frazil.spec.schema_evolution import SchemaUpdate
from frazil.spec.type_promotion import is_promotion_allowed, promote_value
from frazil.spec.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    DecimalType,
    ListType,
    MapType,
    NestedField,
    NestedType,
    StructType,
    Type,
)
from frazil.spec.union_by_name import union_by_name

NAMES = st.sampled_from(["a", "b", "c", "d", "e", "f", "A", "a.b", "element", "key", "value", "ü"])
LEAVES = st.sampled_from([INT, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, STRING, DecimalType(9, 2), DecimalType(18, 2)])
DEFAULTS: dict[Type, Any] = {INT: 0, LONG: 7, STRING: "", DATE: 3, FLOAT: 0.5, DOUBLE: 1.5, TIMESTAMP: -1}


def structs(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    pairs = st.lists(st.tuples(NAMES, inner, st.booleans()), max_size=3, unique_by=lambda pair: pair[0])
    return pairs.map(
        lambda parts: StructType(tuple(NestedField(at, name, kind, one) for at, (name, kind, one) in enumerate(parts)))
    )


TYPES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        structs(inner),
        st.builds(ListType, st.just(1), inner, st.booleans()),
        st.builds(MapType, st.just(1), inner, st.just(2), inner, st.booleans()),
    ),
    max_leaves=5,
)
PICK = st.integers(0, 1000)
Step = Callable[[SchemaUpdate], object]


def path_at(schema: Schema, pick: int) -> tuple[str, ...]:
    """Return the exact path of some field, which need not be one that can be changed."""
    ids = list(schema.fields_by_id)
    if not ids:
        return ("none",)
    field_id = ids[pick % len(ids)]
    return (*(part.name for part in reversed(list(schema.ancestors_of(field_id)))), schema.field(field_id).name)


def steps() -> st.SearchStrategy[Step]:
    def add(pick: int, name: str, kind: Type, required: bool, top: bool) -> Step:
        def step(update: SchemaUpdate) -> object:
            parent = () if top else path_at(update.schema, pick)
            default = DEFAULTS.get(kind) if update.format_version == 3 else None
            return update.add_column((*parent, name), kind, required=required, default=default)

        return step

    def call(method: str, pick: int, *arguments: Any) -> Step:
        return lambda update: getattr(update, method)(path_at(update.schema, pick), *arguments)

    def move(method: str, pick: int, other: int) -> Step:
        return lambda update: getattr(update, method)(path_at(update.schema, pick), path_at(update.schema, other))

    added = st.builds(add, PICK, NAMES, TYPES, st.booleans(), st.booleans())
    return st.one_of(
        added,
        added,
        added,
        st.builds(add, PICK, NAMES, st.just(UNKNOWN), st.just(False), st.booleans()),
        st.builds(call, st.just("drop_column"), PICK),
        st.builds(call, st.just("rename_column"), PICK, NAMES),
        st.builds(call, st.just("set_type"), PICK, st.one_of(LEAVES, TYPES)),
        st.builds(call, st.just("make_optional"), PICK),
        st.builds(call, st.just("make_required"), PICK),
        st.builds(call, st.just("set_doc"), PICK, st.sampled_from([None, "", "text"])),
        st.builds(call, st.just("set_default"), PICK, st.sampled_from([None, 0, ""])),
        st.builds(call, st.just("move_first"), PICK),
        st.builds(move, st.sampled_from(["move_before", "move_after"]), PICK, PICK),
    )


class SchemaHistory(RuleBasedStateMachine):
    """A table's schemas, one after the other."""

    @initialize(version=st.sampled_from([2, 3]), kinds=st.lists(TYPES, min_size=3, max_size=6))
    def start(self, version: int, kinds: list[Type]) -> None:
        """Begin with a table of some columns."""
        first = numbered(StructType(tuple(NestedField(0, f"c{at}", kind) for at, kind in enumerate(kinds))))
        self.version = version
        self.history = [first or Schema()]
        self.last_column_id = self.history[0].highest_field_id
        self.mapping = create_name_mapping(self.history[0])

    @rule(chosen=st.lists(steps(), min_size=1, max_size=5), case_sensitive=st.booleans())
    def evolve(self, chosen: list[Step], case_sensitive: bool) -> None:
        """Take steps, skipping those that are refused, and make the result the next schema."""
        before = self.history[-1]
        update = SchemaUpdate(before, self.last_column_id, self.version, case_sensitive=case_sensitive)
        for step in chosen:
            try:
                step(update)
            except (InvalidRequestError, NotFoundError):
                continue
        try:
            after, last_column_id = update.apply(schema_id=len(self.history))
        except InvalidRequestError:
            return
        check_step(before, after, self.last_column_id, last_column_id)
        self.mapping = update_name_mapping(self.mapping, before, after)
        self.history.append(after)
        self.last_column_id = last_column_id

    @invariant()
    def names_lead_to_their_fields(self) -> None:
        """Each full name is of one field, and each field is found by it and by its path."""
        schema = self.history[-1]
        update = SchemaUpdate(schema, self.last_column_id, self.version)
        for at, field_id in enumerate(schema.fields_by_id):
            found = schema.find_field(schema.name_of(field_id))
            assert found is not None
            assert found.field_id == field_id
            by_path = update._pending.find(path_at(schema, at))
            assert by_path is not None
            assert by_path.field_id == field_id

    @invariant()
    def every_earlier_file_can_be_read(self) -> None:
        """A file of any schema so far fits the present one, each column from somewhere."""
        present = self.history[-1]
        for earlier in self.history:
            assert check_read_compatible(present, earlier, format_version=self.version) == []
            stored = {one for one, part in earlier.fields_by_id.items() if part.field_type != UNKNOWN}
            resolve_columns(present, stored)

    @invariant()
    def the_name_mapping_gives_present_names_their_ids(self) -> None:
        """A file written without ids by the present schema is read as that schema."""
        assert apply_name_mapping(self.history[-1].struct, self.mapping) == self.history[-1].struct
        assert decode_name_mapping(encode_name_mapping(self.mapping)) == self.mapping


def check_step(before: Schema, after: Schema, old_last: int, new_last: int) -> None:
    """Check what one update may do to ids, types, parents, nullability and defaults."""
    assert new_last >= max(old_last, after.highest_field_id)
    for field_id, now in after.fields_by_id.items():
        was = before.find_field(field_id)
        if was is None:
            assert field_id > old_last
            continue
        assert after.parents_by_id.get(field_id) == before.parents_by_id.get(field_id)
        assert was.required or now.optional
        if isinstance(was.field_type, NestedType):
            assert type(now.field_type) is type(was.field_type)
        else:
            assert is_promotion_allowed(was.field_type, now.field_type)
            assert now.initial_default == promote_value(was.initial_default, was.field_type, now.field_type)


SchemaHistory.TestCase.settings = settings(max_examples=60, stateful_step_count=12)
TestSchemaHistory = pytest.mark.extended(SchemaHistory.TestCase)


def numbered(struct: Type) -> Schema | None:
    """Return a struct as a schema of its own, or None where its names collide."""
    assert isinstance(struct, StructType)
    update = SchemaUpdate(Schema(), 0, 3)
    try:
        for part in struct.fields:
            update.add_column((part.name,), part.field_type)
        return update.apply().schema
    except InvalidRequestError:
        return None


@given(structs(TYPES), structs(TYPES), st.booleans())
def test_schema_union_contains_both_and_is_idempotent(left: Type, right: Type, case_sensitive: bool) -> None:
    table, other = numbered(left), numbered(right)
    if table is None or other is None:
        return

    def union(schema: Schema) -> Schema:
        update = SchemaUpdate(schema, schema.highest_field_id, 3, case_sensitive=case_sensitive)
        return union_by_name(update, other).apply().schema

    try:
        once = union(table)
    except InvalidRequestError:
        return
    check_step(table, once, table.highest_field_id, once.highest_field_id)
    assert set(table.fields_by_id) <= set(once.fields_by_id)
    assert union(once) == once
