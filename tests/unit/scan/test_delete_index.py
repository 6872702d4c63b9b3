"""Which deletes reach which files: the scope rules of the specification, one by one, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.codec.single_value import encode_value
from frazil.errors import InvalidManifestError
from frazil.scan.plan import plan_scan
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.reserved_columns import DELETE_FILE_PATH
from frazil.spec.schema import Schema
from frazil.spec.types import DOUBLE, LONG, STRING, NestedField
from tests.support.tables import TableBuilder

SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "kind", STRING), NestedField(3, "p", LONG)))
ROOT = "memory://lake/db/t/data/"


def data(name: str, partition: tuple[Any, ...] = (), *, spec_id: int = 0, low: int = 0, high: int = 100) -> DataFile:
    return DataFile(
        ROOT + name,
        FileFormat.PARQUET,
        10,
        100,
        spec_id=spec_id,
        partition=partition,
        value_counts={1: 10, 2: 10},
        null_value_counts={1: 0, 2: 3},
        lower_bounds={1: encode_value(low, LONG)},
        upper_bounds={1: encode_value(high, LONG)},
    )


def positions(
    name: str, partition: tuple[Any, ...] = (), *, of: str | None = None, by_bounds: str | None = None, spec_id: int = 0
) -> DataFile:
    bounds = None if by_bounds is None else {DELETE_FILE_PATH.field_id: (ROOT + by_bounds).encode()}
    return DataFile(
        ROOT + name,
        FileFormat.PARQUET,
        1,
        50,
        FileContent.POSITION_DELETES,
        spec_id,
        partition,
        referenced_data_file=None if of is None else ROOT + of,
        lower_bounds=bounds,
        upper_bounds=bounds,
    )


def vector(name: str, of: str, partition: tuple[Any, ...] = (), *, spec_id: int = 0) -> DataFile:
    return DataFile(
        ROOT + name,
        FileFormat.PUFFIN,
        1,
        500,
        FileContent.POSITION_DELETES,
        spec_id,
        partition,
        referenced_data_file=ROOT + of,
        content_offset=4,
        content_size_in_bytes=40,
    )


def equality(
    name: str, partition: tuple[Any, ...] = (), *, ids: tuple[int, ...] = (1,), spec_id: int = 0, **metrics: Any
) -> DataFile:
    return DataFile(
        ROOT + name,
        FileFormat.PARQUET,
        1,
        60,
        FileContent.EQUALITY_DELETES,
        spec_id,
        partition,
        equality_ids=ids,
        **metrics,
    )


def of_id(low: int, high: int) -> dict[str, Any]:
    return {
        "value_counts": {1: 2},
        "null_value_counts": {1: 0},
        "lower_bounds": {1: encode_value(low, LONG)},
        "upper_bounds": {1: encode_value(high, LONG)},
    }


def planned(table: TableBuilder, text: str = "true") -> dict[str, list[str]]:
    """Return the names of each planned file's deletes."""
    return {
        task.data_file.file_path.removeprefix(ROOT): [
            one.data_file.file_path.removeprefix(ROOT) for one in task.delete_files
        ]
        for task in plan_scan(table.load(), text).tasks
    }


def table_of(*commits: tuple[DataFile, ...], version: int = 2, partition_by: tuple[str, ...] = ()) -> TableBuilder:
    table = TableBuilder(SCHEMA, format_version=version, partition_by=list(partition_by))
    for files in commits:
        table.commit(*files)
    return table


def test_position_deletes_apply_to_files_of_the_same_commit_and_earlier() -> None:
    table = table_of((data("old"),), (data("same"), positions("deletes")), (data("new"),))
    assert planned(table) == {"old": ["deletes"], "same": ["deletes"], "new": []}


def test_equality_deletes_apply_to_earlier_commits_only() -> None:
    table = table_of((data("old"),), (data("same"), equality("deletes")), (data("new"),))
    assert planned(table) == {"old": ["deletes"], "same": [], "new": []}


def test_deletes_apply_within_their_partition() -> None:
    table = table_of(
        (data("a", (1,)), data("b", (2,)), data("n", (None,))),
        (positions("p1", (1,)), equality("e2", (2,)), positions("pn", (None,))),
        partition_by=("p",),
    )
    assert planned(table) == {"a": ["p1"], "b": ["e2"], "n": ["pn"]}


def test_equality_deletes_of_an_unpartitioned_spec_are_global() -> None:
    table = TableBuilder(SCHEMA)
    table.commit(data("before"))
    table.update_spec(lambda update: update.add_field("p"))
    spec_id = table.spec.spec_id
    table.commit(data("a", (1,), spec_id=spec_id))
    table.commit(equality("global", spec_id=0), positions("local", spec_id=0))
    assert planned(table) == {"before": ["local", "global"], "a": ["global"]}


@pytest.mark.parametrize("scope", ["of", "by_bounds"])
def test_file_scoped_position_deletes_apply_to_their_file_only(scope: str) -> None:
    table = table_of((data("a"), data("b")), (positions("d", **{scope: "a"}),))  # type: ignore[arg-type]
    assert planned(table) == {"a": ["d"], "b": []}


def test_vector_replaces_position_deletes_but_not_equality_deletes() -> None:
    table = table_of((data("a"), data("b")), (positions("d", of="a"), positions("shared"), equality("e")))
    table.upgrade(3)
    table.commit(vector("v", of="a"))
    assert planned(table) == {"a": ["e", "v"], "b": ["shared", "e"]}


def test_equality_deletes_with_disjoint_bounds_are_skipped() -> None:
    table = table_of(
        (data("low", low=0, high=9), data("high", low=50, high=99)),
        (equality("e", **of_id(60, 70)),),
    )
    assert planned(table) == {"low": [], "high": ["e"]}


def test_nulls_on_both_sides_keep_an_equality_delete() -> None:
    kind: dict[str, Any] = {"value_counts": {2: 1}, "null_value_counts": {2: 1}}
    some: dict[str, Any] = {"value_counts": {2: 1}, "null_value_counts": {2: 0}}
    table = table_of((data("a"),), (equality("null", ids=(2,), **kind),), (equality("value", ids=(2,), **some),))
    assert planned(table) == {"a": ["null", "value"]}
    table = table_of((data("a"),), (equality("null", ids=(1,), value_counts={1: 1}, null_value_counts={1: 1}),))
    assert planned(table) == {"a": []}


def test_dropped_equality_columns_are_found() -> None:
    table = table_of((data("a"),), (equality("e", ids=(3,)),))
    table.update_schema(lambda update: update.drop_column("p"))
    assert planned(table) == {"a": ["e"]}


def test_filter_disjoint_from_equality_deletes_skips_them() -> None:
    table = table_of((data("a"),), (equality("e", **of_id(60, 70)),))
    assert planned(table, "id < 50") == {"a": []}
    assert planned(table, "id < 65") == {"a": ["e"]}


def test_deletes_are_sorted_by_age() -> None:
    table = table_of((data("a"),), (positions("p1"),), (equality("e1"),), (positions("p2", of="a"),))
    assert planned(table) == {"a": ["p1", "e1", "p2"]}


def test_file_table_refers_to_deletes_by_index() -> None:
    table = table_of((data("a"), data("b")), (positions("d", of="a"),))
    plan = plan_scan(table.load())
    rows = {row["file_path"].removeprefix(ROOT): row["delete_files"] for row in plan.to_arrow().to_pylist()}
    assert rows == {"a": [0], "b": []}
    assert plan.delete_files[0].data_file.file_path == ROOT + "d"
    assert "deletes: 1 applied to files" in plan.explain()


def test_float_partitions_are_compared_by_bits_and_nan_is_one_partition() -> None:
    table = TableBuilder(Schema((NestedField(1, "x", DOUBLE),)), partition_by=["x"])

    def file(name: str, value: float) -> DataFile:
        return DataFile(ROOT + name, FileFormat.PARQUET, 1, 1, partition=(value,))

    table.commit(file("nan", float("nan")), file("zero", 0.0), file("minus", -0.0))
    table.commit(positions("dn", (float("nan"),)), positions("dz", (0.0,)))
    assert planned(table) == {"nan": ["dn"], "zero": ["dz"], "minus": []}


CORRUPT: list[tuple[str, tuple[DataFile, ...], str]] = [
    ("two vectors", (vector("v1", of="a"), vector("v2", of="a")), "two deletion vectors are live"),
    ("an unknown column", (equality("e", ids=(77,)),), "field id 77, which no schema has"),
]


@pytest.mark.parametrize(("_", "files", "reason"), CORRUPT, ids=[one[0] for one in CORRUPT])
def test_ambiguous_deletes_are_refused(_: str, files: tuple[DataFile, ...], reason: str) -> None:
    table = table_of((data("a"),), version=3)
    table.commit(*files, manifests=1)
    with pytest.raises(InvalidManifestError, match=reason):
        planned(table)


def test_deletes_in_another_partition_than_their_file_are_refused() -> None:
    for delete in (vector("v", of="a", partition=(2,)), positions("d", (2,), of="a")):
        version = 3 if delete.is_deletion_vector else 2
        table = table_of((data("a", (1,)),), version=version, partition_by=("p",))
        table.commit(delete)
        with pytest.raises(InvalidManifestError, match="another partition"):
            planned(table)


def test_vector_older_than_its_file_is_refused() -> None:
    table = table_of((data("a"),), (data("b"),), version=3)
    table.commit(vector("v", of="b"), sequence_numbers={ROOT + "v": 1})
    with pytest.raises(InvalidManifestError, match="lower than its data file's"):
        planned(table)


def test_equality_deletes_with_nulls_match_null_rows_despite_bounds() -> None:
    def with_nulls(low: str, high: str) -> dict[str, Any]:
        return {
            "value_counts": {2: 10},
            "null_value_counts": {2: 3},
            "lower_bounds": {2: encode_value(low, STRING)},
            "upper_bounds": {2: encode_value(high, STRING)},
        }

    rows = DataFile(ROOT + "a", FileFormat.PARQUET, 10, 100, **with_nulls("a", "c"))
    table = table_of((rows,), (equality("e", ids=(2,), **with_nulls("x", "z")),))
    assert planned(table) == {"a": ["e"]}
