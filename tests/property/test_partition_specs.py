"""Laws of partition specs and sort orders: JSON round trips, evolution keeps the meaning of ids."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.codec.json_fields import JsonObject
from frazil.codec.partition_spec_json import decode_partition_spec, encode_partition_spec
from frazil.codec.sort_order_json import decode_sort_order, encode_sort_order
from frazil.errors import FrazilError, SchemaChangeError
from frazil.spec.partition_evolution import PartitionSpecUpdate
from frazil.spec.partitioning import (
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    PartitionTerm,
    parse_partition_term,
    unified_partition_type,
)
from frazil.spec.schema import Schema
from frazil.spec.sorting import NullOrder, SortDirection, SortField, SortOrder, parse_sort_term
from frazil.spec.transforms import (
    DAY,
    HOUR,
    IDENTITY,
    MONTH,
    VOID,
    YEAR,
    Bucket,
    Transform,
    Truncate,
    UnknownTransform,
    parse_transform,
)
from frazil.spec.types import LONG, STRING, TIMESTAMPTZ, NestedField

PARAMETERS = st.integers(1, 2**31 - 1)
KNOWN: st.SearchStrategy[Transform] = st.one_of(
    st.sampled_from([IDENTITY, YEAR, MONTH, DAY, HOUR, VOID]),
    st.builds(Bucket, PARAMETERS),
    st.builds(Truncate, PARAMETERS),
)
UNKNOWN_TEXTS = st.text(max_size=20).map(lambda text: UnknownTransform(f"custom-{text}"))
IDS = st.integers(-(2**31), 2**31 - 1)
SOURCES = st.one_of(
    st.tuples(st.tuples(IDS), st.one_of(KNOWN, UNKNOWN_TEXTS)),
    st.tuples(st.lists(IDS, min_size=2, max_size=4).map(tuple), UNKNOWN_TEXTS),
)


@st.composite
def specs(draw: st.DrawFn) -> PartitionSpec:
    names = draw(st.lists(st.text(min_size=1, max_size=8), max_size=5, unique=True))
    ids = draw(st.lists(IDS, min_size=len(names), max_size=len(names), unique=True))
    fields = []
    for name, field_id in zip(names, ids, strict=True):
        source_ids, transform = draw(SOURCES)
        fields.append(PartitionField(source_ids, field_id, name, transform))
    return PartitionSpec(draw(IDS), tuple(fields))


@st.composite
def orders(draw: st.DrawFn) -> SortOrder:
    fields = []
    for source_ids, transform in draw(st.lists(SOURCES, max_size=4)):
        direction, nulls = draw(st.sampled_from(SortDirection)), draw(st.sampled_from(NullOrder))
        fields.append(SortField(source_ids, transform, direction, nulls))
    return SortOrder(draw(st.integers(1, 2**31 - 1)), tuple(fields))


def through_json(value: Any) -> JsonObject:
    return JsonObject(json.loads(json.dumps(value)), heading="Appendix C")


@given(specs())
def test_partition_spec_round_trips_through_json(spec: PartitionSpec) -> None:
    assert decode_partition_spec(through_json(encode_partition_spec(spec))) == spec


@given(orders())
def test_sort_order_round_trips_through_json(order: SortOrder) -> None:
    assert decode_sort_order(through_json(encode_sort_order(order))) == order


@given(st.one_of(KNOWN, UNKNOWN_TEXTS))
def test_transform_round_trips_through_text(transform: Transform) -> None:
    assert parse_transform(str(transform)) == transform


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=5,
)
NEAR_FIELDS = st.dictionaries(
    st.sampled_from(["name", "transform", "source-id", "source-ids", "field-id", "direction", "null-order", "other"]),
    st.one_of(JSON_VALUES, st.sampled_from(["day", "bucket[4]", "asc", "nulls-first", 1, 1000, [1], [1, 2], []])),
)
NEAR_SPECS = st.fixed_dictionaries(
    {"spec-id": st.one_of(IDS, JSON_VALUES), "order-id": st.one_of(IDS, JSON_VALUES)},
    optional={"fields": st.one_of(st.lists(NEAR_FIELDS, max_size=3), JSON_VALUES)},
)


@given(st.one_of(NEAR_SPECS, JSON_VALUES))
def test_any_json_spec_is_read_or_refused_with_a_frazil_error(value: object) -> None:
    for decode in (decode_partition_spec, decode_sort_order):
        try:
            decode(JsonObject(value, heading="Appendix C"))
        except FrazilError:
            pass


@given(st.one_of(st.text(max_size=40), st.text("bucketdays(),.` 0123456789ascnulfirt", max_size=40)))
def test_any_text_is_a_term_or_refused_with_a_frazil_error(text: str) -> None:
    for parse in (parse_partition_term, parse_sort_term, parse_transform):
        try:
            parse(text)
        except FrazilError:
            pass


SCHEMA = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "ts", TIMESTAMPTZ),
        NestedField(3, "data", STRING),
    )
)
TERMS = ["id", "bucket(4, id)", "bucket(8, id)", "day(ts)", "hour(ts)", "truncate(2, data)", "data"]
NAMES = ["a", "b", "ts_day", "id_bucket_4"]
CHANGES = st.lists(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from(TERMS), st.none() | st.sampled_from(NAMES)),
            st.tuples(st.just("remove"), st.sampled_from([*TERMS, *NAMES]), st.none()),
            st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
        ),
        min_size=1,
        max_size=3,
    ),
    max_size=8,
)


@pytest.mark.parametrize("version", [1, 2, 3])
@given(CHANGES)
def test_evolution_never_changes_what_a_field_id_means(version: int, updates: list[list[Any]]) -> None:
    known: list[PartitionSpec] = [UNPARTITIONED]
    current, last_id = UNPARTITIONED, 999
    for steps in updates:
        changes = PartitionSpecUpdate(SCHEMA, known, current, format_version=version, last_partition_id=last_id)
        try:
            for verb, what, name in steps:
                if verb == "add":
                    changes.add_field(what, name)
                elif verb == "remove":
                    changes.remove_field(what)
                else:
                    changes.rename_field(what, name)
            evolved = changes.build()
        except SchemaChangeError:
            continue
        assert evolved.last_partition_id >= last_id
        assert all(one.field_id <= evolved.last_partition_id for one in evolved.spec.fields)
        if evolved.is_new:
            assert not any(one.same_fields(evolved.spec) or one.spec_id == evolved.spec.spec_id for one in known)
            known.append(evolved.spec)
        else:
            assert evolved.spec in known
        if version == 1:
            assert evolved.spec.has_sequential_ids
        current, last_id = evolved.spec, evolved.last_partition_id
    meanings: dict[int, set[tuple[Any, ...]]] = {}
    for spec in known:
        for one in spec.fields:
            if not one.transform.is_void:
                meanings.setdefault(one.field_id, set()).add((one.source_ids, str(one.transform)))
    assert all(len(each) == 1 for each in meanings.values())
    unified = unified_partition_type(known, SCHEMA)
    assert {one.field_id for one in unified} == {one.field_id for spec in known for one in spec.fields}
    assert len({one.name for one in unified}) == len(unified)


@pytest.mark.parametrize("version", [2, 3])
@given(st.permutations(TERMS[:4]), st.data())
def test_equivalent_fields_have_equal_ids_in_v2(version: int, terms: list[str], data: st.DataObject) -> None:
    known: list[PartitionSpec] = [UNPARTITIONED]
    current, last_id = UNPARTITIONED, 999
    ids: dict[PartitionTerm, int] = {}
    for text in [*terms, *data.draw(st.lists(st.sampled_from(terms), max_size=6))]:
        term = parse_partition_term(text)
        changes = PartitionSpecUpdate(SCHEMA, known, current, format_version=version, last_partition_id=last_id)
        has_it = any(one.field_id == ids.get(term) for one in current.fields)
        evolved = (changes.remove_field(term) if has_it else changes.add_field(term)).build()
        if evolved.is_new:
            known.append(evolved.spec)
        if not has_it:
            added = next(one for one in evolved.spec.fields if one not in current.fields)
            assert ids.setdefault(term, added.field_id) == added.field_id
        current, last_id = evolved.spec, evolved.last_partition_id
