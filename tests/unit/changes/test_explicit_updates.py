"""Updates as they are sent to services: what makes a new table, and what adds only what is new."""

from __future__ import annotations

from dataclasses import replace

import pytest

from frazil.changes.apply import apply_updates
from frazil.changes.apply_view import apply_view_updates
from frazil.changes.creation import creation_updates
from frazil.changes.explicit import explicit_updates, explicit_view_updates
from frazil.changes.updates import (
    LAST_ADDED,
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    AddViewVersion,
    SetCurrentSchema,
    SetCurrentViewVersion,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetProperties,
    TableUpdate,
    ViewUpdate,
)
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.new_table import new_table_metadata
from frazil.spec.partitioning import UNPARTITIONED, build_partition_spec
from frazil.spec.schema import Schema
from frazil.spec.sorting import UNSORTED, build_sort_order
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import LONG, STRING, NestedField
from frazil.spec.view_evolution import new_view_metadata
from frazil.spec.view_metadata import SqlRepresentation, ViewMetadata, ViewVersion

ONE = Schema((NestedField(1, "id", LONG), NestedField(2, "s", STRING)))
TWO = Schema((NestedField(1, "id", LONG), NestedField(2, "t", STRING)))
NOW_MS = 1_700_000_000_000


def table(**options: object) -> TableMetadata:
    given = {"location": "memory://w/t", "uuid": "00000000-0000-0000-0000-000000000001", "now_ms": NOW_MS, **options}
    return new_table_metadata(ONE, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("format_version", [1, 2, 3])
@pytest.mark.parametrize("is_partitioned", [False, True])
def test_updates_of_a_staged_table_rebuild_it(format_version: int, is_partitioned: bool) -> None:
    spec = build_partition_spec(ONE, ["bucket(4, id)"]) if is_partitioned else UNPARTITIONED
    order = build_sort_order(ONE, ["s desc"]) if is_partitioned else UNSORTED
    staged = table(spec=spec, sort_order=order, properties={"a": "b"}, format_version=format_version)
    assert apply_updates(None, creation_updates(staged), now_ms=NOW_MS) == staged


def test_existing_schema_is_referenced_and_not_added() -> None:
    base = apply_updates(table(), [AddSchema(TWO), SetCurrentSchema()], now_ms=NOW_MS)
    back: list[TableUpdate] = [AddSchema(ONE), SetCurrentSchema(), SetProperties(FrozenMap({"a": "b"}))]
    assert explicit_updates(base, back) == (SetCurrentSchema(0), SetProperties(FrozenMap({"a": "b"})))
    forth: list[TableUpdate] = [AddSchema(TWO), SetCurrentSchema()]
    assert explicit_updates(table(), forth) == (AddSchema(replace(TWO, schema_id=1)), SetCurrentSchema())


def test_existing_specs_and_orders_are_referenced_and_not_added() -> None:
    spec, order = build_partition_spec(ONE, ["bucket(4, id)"]), build_sort_order(ONE, ["s desc"])
    steps: list[TableUpdate] = [AddPartitionSpec(spec), SetDefaultSpec(), AddSortOrder(order), SetDefaultSortOrder()]
    assert explicit_updates(table(), steps) == (
        AddPartitionSpec(replace(spec, spec_id=1)), SetDefaultSpec(),
        AddSortOrder(replace(order, order_id=1)), SetDefaultSortOrder(),
    )  # fmt: skip
    base = apply_updates(table(), steps, now_ms=NOW_MS)
    back: list[TableUpdate] = [
        AddPartitionSpec(UNPARTITIONED), SetDefaultSpec(), AddSortOrder(UNSORTED), SetDefaultSortOrder(),
    ]  # fmt: skip
    assert explicit_updates(base, back) == (SetDefaultSpec(0), SetDefaultSortOrder(0))


def test_new_objects_have_their_final_id() -> None:
    """Some services take the id that they are told."""
    base = apply_updates(table(), [AddSchema(TWO), SetCurrentSchema()], now_ms=NOW_MS)
    third = Schema((NestedField(1, "id", LONG), NestedField(3, "u", STRING)))
    made = explicit_updates(base, [AddSchema(third, 3), SetCurrentSchema()])
    assert made == (AddSchema(replace(third, schema_id=2), 3), SetCurrentSchema())
    shown = explicit_view_updates(view(), replacing("select 2", TWO))
    assert shown[0] == AddSchema(replace(TWO, schema_id=1))


@pytest.mark.parametrize("schemas", [(ONE, TWO), (TWO, ONE), (TWO, TWO), (ONE, ONE)])
def test_explicit_updates_have_the_same_effect(schemas: tuple[Schema, Schema]) -> None:
    base = apply_updates(table(), [AddSchema(TWO)], now_ms=NOW_MS)
    steps: list[TableUpdate] = []
    for one in schemas:
        steps += [AddSchema(one), SetCurrentSchema()]
    expected = apply_updates(base, steps, now_ms=NOW_MS)
    assert apply_updates(base, explicit_updates(base, steps), now_ms=NOW_MS) == expected


def version(text: str, schema_id: int = LAST_ADDED) -> ViewVersion:
    return ViewVersion(1, schema_id, NOW_MS, (SqlRepresentation(text, "spark"),), ("db",))


def view() -> ViewMetadata:
    return new_view_metadata(
        view_uuid="00000000-0000-0000-0000-000000000002",
        location="memory://w/v",
        schema=ONE,
        version=version("select 1", 0),
    )


def replacing(text: str, schema: Schema) -> list[ViewUpdate]:
    return [AddSchema(schema), AddViewVersion(version(text)), SetCurrentViewVersion()]


def test_view_with_the_same_columns_sends_no_schema() -> None:
    made = explicit_view_updates(view(), replacing("select 2", ONE))
    assert made == (AddViewVersion(version("select 2", 0)), SetCurrentViewVersion())


def test_existing_version_is_referenced_and_not_added() -> None:
    base = apply_view_updates(view(), replacing("select 2", TWO), now_ms=NOW_MS)
    assert explicit_view_updates(base, replacing("select 1", ONE)) == (SetCurrentViewVersion(1),)
    assert explicit_view_updates(base, [SetCurrentViewVersion(1)]) == (SetCurrentViewVersion(1),)


@pytest.mark.parametrize(
    ("text", "schema"), [("select 1", ONE), ("select 2", ONE), ("select 1", TWO), ("select 3", TWO)]
)
def test_explicit_view_updates_have_the_same_effect(text: str, schema: Schema) -> None:
    base = apply_view_updates(view(), replacing("select 2", TWO), now_ms=NOW_MS)
    steps = replacing(text, schema)
    expected = apply_view_updates(base, steps, now_ms=NOW_MS)
    assert apply_view_updates(base, explicit_view_updates(base, steps), now_ms=NOW_MS) == replace(expected)
