"""Which columns get which metrics; the cases are those of Iceberg Java's TestMetricsConfig and TestMetricsModes."""

from __future__ import annotations

import pickle

import pytest

from frazil.errors import InvalidPropertyError, InvalidRequestError
from frazil.spec.metrics_config import POSITION_DELETE_METRICS_MODES, check_metrics_columns, metrics_modes
from frazil.spec.metrics_mode import COUNTS, FULL, NONE, TRUNCATE_16, MetricsMode, parse_metrics_mode
from frazil.spec.schema import Schema
from frazil.spec.sorting import NullOrder, SortDirection, SortField, SortOrder
from frazil.spec.transforms import Bucket, Identity, Transform, Truncate
from frazil.spec.types import BOOLEAN, INT, STRING, VARIANT, ListType, MapType, NestedField, StructType

DEFAULT = "write.metadata.metrics.default"
LIMIT = "write.metadata.metrics.max-inferred-column-defaults"
COLUMN = "write.metadata.metrics.column."


def flat(count: int) -> Schema:
    return Schema(tuple(NestedField(at, f"col{at}", INT, required=True) for at in range(1, count + 1)))


def order(*keys: tuple[int, Transform]) -> SortOrder:
    fields = (SortField((field_id,), how, SortDirection.ASC, NullOrder.NULLS_FIRST) for field_id, how in keys)
    return SortOrder(1, tuple(fields))


def measured(schema: Schema, limit: int) -> set[int]:
    return {field_id for field_id, mode in metrics_modes(schema, {LIMIT: str(limit)}).items() if mode != NONE}


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("none", NONE),
        ("nOnE", NONE),
        ("counts", COUNTS),
        ("coUntS", COUNTS),
        ("truncate(1)", MetricsMode("truncate", 1)),
        ("truNcAte(10)", MetricsMode("truncate", 10)),
        ("full", FULL),
        ("FULL", FULL),
    ],
)
def test_modes_are_case_insensitive(text: str, mode: MetricsMode) -> None:
    assert parse_metrics_mode(text) == mode
    assert parse_metrics_mode(str(mode)) == mode
    assert pickle.loads(pickle.dumps(mode)) == mode


@pytest.mark.parametrize(
    "text",
    ["", "half", "truncate", "truncate()", "truncate(0)", "truncate(-1)", "truncate(2147483648)", "full ", "9" * 99],
)
def test_invalid_mode_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        parse_metrics_mode(text)


def test_modes_define_recorded_metrics() -> None:
    assert [(mode.has_counts, mode.has_bounds) for mode in (NONE, COUNTS, TRUNCATE_16, FULL)] == [
        (False, False),
        (True, False),
        (True, True),
        (True, True),
    ]
    with pytest.raises(InvalidRequestError):
        MetricsMode("full", 3)
    with pytest.raises(InvalidRequestError):
        MetricsMode("truncate")


def test_default_mode_truncates_bounds() -> None:
    assert metrics_modes(flat(3), {}) == {1: TRUNCATE_16, 2: TRUNCATE_16, 3: TRUNCATE_16}


def test_column_mode_wins() -> None:
    properties = {f"{COLUMN}col1": "full", f"{COLUMN}col2": "none", f"{COLUMN}gone": "full"}
    assert metrics_modes(flat(3), properties) == {1: FULL, 2: NONE, 3: TRUNCATE_16}


def test_columns_past_the_limit_get_no_metrics() -> None:
    assert measured(flat(5), 2) == {1, 2}
    assert measured(flat(5), 3) == {1, 2, 3}
    assert measured(flat(5), 5) == {1, 2, 3, 4, 5}
    assert measured(flat(5), 0) == set()
    assert len([mode for mode in metrics_modes(flat(150), {}).values() if mode == TRUNCATE_16]) == 100


def test_explicit_default_applies_to_every_column() -> None:
    assert set(metrics_modes(flat(150), {DEFAULT: "counts"}).values()) == {COUNTS}


def test_fields_of_a_struct_count_before_nested_structs() -> None:
    level_2_a = StructType(
        (
            NestedField(21, "i", INT),
            NestedField(22, "s", StructType((NestedField(31, "t", STRING),))),
            NestedField(23, "b", BOOLEAN),
        )
    )
    level_2_b = StructType(
        (NestedField(24, "i", INT), NestedField(25, "s", StructType((NestedField(32, "t", STRING),))))
    )
    schema = Schema((NestedField(11, "a", level_2_a), NestedField(12, "b", level_2_b), NestedField(13, "i", INT)))
    expected = [13, 21, 23, 31, 24, 32]
    for limit in range(1, 8):
        assert measured(schema, limit) == set(expected[:limit])


def test_map_keys_values_and_list_elements_are_columns() -> None:
    of_map = Schema((NestedField(1, "map", MapType(2, INT, 3, INT)), NestedField(4, "top", INT)))
    for limit in range(1, 5):
        assert measured(of_map, limit) == set([4, 2, 3][:limit])
    of_list = Schema((NestedField(1, "maps", ListType(2, MapType(3, INT, 4, INT))), NestedField(5, "top", INT)))
    for limit in range(1, 5):
        assert measured(of_list, limit) == set([5, 3, 4][:limit])
    assert measured(Schema((NestedField(1, "v", VARIANT), NestedField(2, "i", INT))), 1) == {1}


def test_short_name_matches_a_field_inside_a_list() -> None:
    schema = Schema((NestedField(1, "points", ListType(2, StructType((NestedField(3, "x", INT),)))),))
    assert metrics_modes(schema, {f"{COLUMN}points.x": "full"}) == {3: FULL}
    assert metrics_modes(schema, {f"{COLUMN}points.element.x": "counts"}) == {3: COUNTS}
    assert metrics_modes(schema, {f"{COLUMN}points": "full"}) == {3: TRUNCATE_16}


def test_sorted_columns_get_bounds_unless_their_own_mode_differs() -> None:
    properties = {DEFAULT: "counts", f"{COLUMN}col1": "counts", f"{COLUMN}col2": "none"}
    modes = metrics_modes(flat(4), properties, order((2, Identity()), (3, Truncate(4))))
    assert modes == {1: COUNTS, 2: NONE, 3: TRUNCATE_16, 4: COUNTS}


def test_sorted_columns_past_the_limit_get_bounds() -> None:
    modes = metrics_modes(flat(3), {LIMIT: "1"}, order((3, Identity())))
    assert modes == {1: TRUNCATE_16, 2: NONE, 3: TRUNCATE_16}


def test_bucket_sort_does_not_change_metrics_modes() -> None:
    assert metrics_modes(flat(2), {DEFAULT: "none"}, order((2, Bucket(4)))) == {1: NONE, 2: NONE}


def test_default_mode_with_bounds_is_not_changed_by_sorting() -> None:
    assert metrics_modes(flat(1), {DEFAULT: "full"}, order((1, Identity()))) == {1: FULL}
    assert metrics_modes(flat(1), {}, order((9, Identity()))) == {1: TRUNCATE_16}


@pytest.mark.parametrize("key", [DEFAULT, f"{COLUMN}col1", LIMIT])
def test_invalid_mode_or_limit_is_an_error(key: str) -> None:
    with pytest.raises(InvalidPropertyError, match="Cannot use the property") as caught:
        metrics_modes(flat(2), {key: "-5"})
    assert key in caught.value.message


def test_metrics_of_a_missing_column_can_be_refused() -> None:
    check_metrics_columns(flat(2), {f"{COLUMN}col2": "full"})
    with pytest.raises(InvalidPropertyError, match="'col3'"):
        check_metrics_columns(flat(2), {f"{COLUMN}col3": "full"})


def test_position_delete_files_have_full_metrics() -> None:
    assert POSITION_DELETE_METRICS_MODES == {2147483546: FULL, 2147483545: FULL}
