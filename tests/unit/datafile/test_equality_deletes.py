from __future__ import annotations

import random
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.equality_deletes import KeySet, load_equality_deletes
from frazil.datafile.raw_batch import ReadRules
from frazil.errors import InvalidDataFileError
from frazil.scan.tasks import DeleteTask
from frazil.spec.data_file import DataFile
from frazil.spec.schema import Schema
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    ListType,
    NestedField,
    StructType,
    Type,
)
from frazil.table.scan import scan_table
from tests.support.tables import TableBuilder

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "text", STRING),
        NestedField(3, "num", INT),
        NestedField(4, "ratio", DOUBLE),
        NestedField(5, "s", StructType((NestedField(7, "a", INT), NestedField(8, "b", STRING)))),
        NestedField(6, "list", ListType(9, INT)),
    )
)


def left(table: TableBuilder, column: str = "id") -> list[Any]:
    found: list[Any] = scan_table(table.load(), columns=[column]).to_arrow().column(0).to_pylist()
    return sorted(found, key=lambda one: (one is not None, one))


def table_of(*rows: dict[str, Any], schema: Schema = SCHEMA, **options: Any) -> TableBuilder:
    table = TableBuilder(schema, **options)
    table.commit(table.write_data(list(rows)))
    return table


# --- sets of keys


def test_keys_of_several_columns_are_compared_as_a_whole() -> None:
    keys = KeySet([pa.array([1, 1, None]), pa.array(["a", "b", None])])
    found = keys.mask([pa.array([1, 1, 1, None, None, 2]), pa.array(["a", "c", "b", None, "a", "a"])])
    assert found.tolist() == [True, False, True, True, False, False]


def test_random_keys_match_a_set_of_tuples() -> None:
    rng = random.Random(1)
    for width in (1, 2, 3, 4):
        for _ in range(40):
            domain = rng.choice([2, 5, 50])

            def rows(count: int, width: int = width, domain: int = domain) -> list[tuple[Any, ...]]:
                return [tuple(rng.choice([None, *range(domain)]) for _ in range(width)) for _ in range(count)]

            deleted, probes = rows(rng.randrange(1, 40)), rows(rng.randrange(0, 60))
            for kind in (pa.int64(), pa.int32(), pa.decimal128(5, 0)):
                keys = KeySet([pa.array([one[at] for one in deleted], kind) for at in range(width)])
                found = keys.mask([pa.array([one[at] for one in probes], kind) for at in range(width)])
                assert found.tolist() == [one in set(deleted) for one in probes]


def test_integers_of_any_size_are_distinguished() -> None:
    rng = random.Random(2)
    ends = [-(2**63), 2**63 - 1, -1, 0, 1, 2**32, -(2**32)]
    deleted = ends + [rng.randrange(-(2**63), 2**63) for _ in range(1000)]
    probes = deleted + [one + 1 for one in deleted if one < 2**63 - 1] + [rng.randrange(2**63) for _ in range(1000)]
    found = KeySet([pa.array(deleted, pa.int64())]).mask([pa.array(probes, pa.int64())])
    assert found.tolist() == [one in set(deleted) for one in probes]
    assert KeySet([pa.array([None], pa.int64())]).mask([pa.array([0, None], pa.int64())]).tolist() == [False, True]


# --- through a scan


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_null_deletes_null(file_format: str) -> None:
    table = table_of({"id": 1, "text": "a"}, {"id": 2, "text": None}, {"id": 3, "text": "c"})
    table.commit(table.write_equality_deletes([{"text": None}, {"text": "c"}], ["text"], file_format=file_format))
    assert left(table) == [1]


def test_specification_example_deletes_its_rows() -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "category", STRING), NestedField(3, "name", STRING)))
    rows = [(1, "marsupial", "Koala"), (2, "toy", "Teddy"), (3, None, "Grizzly"), (4, None, "Polar")]
    animals = [dict(zip(("id", "category", "name"), row, strict=True)) for row in rows]

    def table() -> TableBuilder:
        return table_of(*animals, schema=schema)

    by_id = table()
    by_id.commit(by_id.write_equality_deletes([{"id": 3}], ["id"]))
    assert left(by_id) == [1, 2, 4]
    with_row = table()
    with_row.commit(with_row.write_equality_deletes([animals[2]], ["id"], other_columns=["category", "name"]))
    assert left(with_row) == [1, 2, 4]
    by_both = table()
    by_both.commit(by_both.write_equality_deletes([{"id": 4, "category": None}], ["id", "category"]))
    assert left(by_both) == [1, 2, 3]
    none = table()
    none.commit(none.write_equality_deletes([{"id": 4, "category": "toy"}], ["id", "category"]))
    assert left(none) == [1, 2, 3, 4]


def test_only_older_rows_are_deleted() -> None:
    table = table_of({"id": 1})
    table.commit(table.write_equality_deletes([{"id": 1}], ["id"]), table.write_data([{"id": 1}]))
    table.commit(table.write_data([{"id": 1}]))
    assert left(table) == [1, 1]
    table.commit(table.write_equality_deletes([{"id": 1}], ["id"]))
    assert left(table) == []


def test_deletes_with_several_column_sets_all_apply() -> None:
    table = table_of(*({"id": at, "text": f"t{at % 3}", "num": at % 2} for at in range(12)))
    table.commit(table.write_equality_deletes([{"id": 0}], ["id"]))
    table.commit(table.write_equality_deletes([{"text": "t1", "num": 1}], ["text", "num"]))
    table.commit(table.write_equality_deletes([{"num": 0, "text": "t2"}], ["num", "text"]))
    table.commit(table.write_equality_deletes([{"id": 11}], ["id"]))
    expected = [at for at in range(12) if at not in (0, 11) and (at % 3, at % 2) not in ((1, 1), (2, 0))]
    assert left(table) == expected


def test_struct_fields_are_compared_and_null_structs_match_null() -> None:
    table = table_of(
        {"id": 1, "s": {"a": 1, "b": "x"}},
        {"id": 2, "s": None},
        {"id": 3, "s": {"a": None, "b": "y"}},
        {"id": 4, "s": {"a": 4, "b": "z"}},
    )
    table.commit(table.write_equality_deletes([{"s": {"a": 1}}, {"s": None}], ["s.a"]))
    assert left(table) == [4]


def test_columns_that_are_not_selected_still_delete() -> None:
    table = table_of({"id": 1, "text": "a"}, {"id": 2, "text": "b"})
    table.commit(table.write_equality_deletes([{"text": "a"}], ["text"]))
    assert left(table, "num") == [None]
    assert scan_table(table.load(), "num is null", columns=["_pos"]).to_arrow().to_pydict() == {"_pos": [1]}


def test_dropped_or_renamed_columns_still_delete() -> None:
    table = table_of({"id": 1, "text": "a"}, {"id": 2, "text": "b"}, {"id": 3, "text": "c"})
    table.commit(table.write_equality_deletes([{"text": "a"}], ["text"]))
    table.update_schema(lambda u: u.rename_column("text", "words"))
    table.commit(table.write_equality_deletes([{"words": "b"}], ["words"]))
    table.update_schema(lambda u: u.drop_column("words"))
    table.update_schema(lambda u: u.add_column("text", "string"))
    assert left(table) == [3]


def test_later_columns_are_null_or_their_default_in_older_rows() -> None:
    table = table_of({"id": 1}, {"id": 2}, format_version=3)
    table.update_schema(lambda u: u.add_column("new", "string").add_column("filled", "int", default=7))
    table.commit(table.write_data([{"id": 3, "new": "x", "filled": 8}, {"id": 4, "new": None, "filled": 7}]))
    table.commit(table.write_equality_deletes([{"new": "x"}], ["new"]))
    assert left(table) == [1, 2, 4]
    table.commit(table.write_equality_deletes([{"id": 1, "filled": 7}, {"id": 4, "filled": 8}], ["id", "filled"]))
    assert left(table) == [2, 4]
    table.commit(table.write_equality_deletes([{"new": None}], ["new"]))
    assert left(table) == []


def test_promoted_types_still_compare() -> None:
    schema = Schema(
        (NestedField(1, "id", INT), NestedField(2, "price", DecimalType(5, 2)), NestedField(3, "day", DATE))
    )
    table = table_of(
        *({"id": at, "price": Decimal(at).scaleb(-2), "day": at} for at in range(6)), schema=schema, format_version=3
    )
    table.commit(table.write_equality_deletes([{"id": 0}], ["id"]))
    table.update_schema(
        lambda u: u.set_type("id", "long").set_type("price", "decimal(20,2)").set_type("day", "timestamp")
    )
    table.commit(table.write_equality_deletes([{"id": 1}], ["id"]))
    table.commit(table.write_equality_deletes([{"price": Decimal("0.02")}], ["price"]))
    table.commit(table.write_equality_deletes([{"day": 3 * 86_400_000_000}], ["day"]))
    assert left(table) == [4, 5]


@pytest.mark.parametrize(
    "kind, values",
    [
        (BOOLEAN, [True, False, None]),
        (LONG, [-1, 0, 2**62]),
        (DecimalType(38, 2), [Decimal("1.00"), Decimal("-1.00"), None]),
        (DATE, [0, -1, None]),
        (TIMESTAMPTZ, [0, -1, 10**15]),
        (STRING, ["", "é", None]),
        (UUID, [uuid.UUID(int=1), uuid.UUID(int=2), None]),
        (FixedType(2), [b"ab", b"ba", None]),
        (BINARY, [b"", b"\x00", None]),
    ],
    ids=lambda one: str(one)[:30],
)
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_values_of_every_type_delete(kind: Type, values: list[Any], file_format: str) -> None:
    schema = Schema((NestedField(1, "id", LONG), NestedField(2, "v", kind)))
    for at, value in enumerate(values):
        table = table_of(*({"id": number, "v": one} for number, one in enumerate(values)), schema=schema)
        table.commit(table.write_equality_deletes([{"v": value}], ["v"], file_format=file_format))
        assert left(table) == [number for number in range(3) if number != at]


@pytest.mark.parametrize("column, reason", [("ratio", "exactly"), ("list.element", "list"), ("s", "primitive")])
def test_unsupported_key_columns_are_refused(column: str, reason: str) -> None:
    table = table_of({"id": 1, "ratio": 1.0, "list": [1], "s": {"a": 1, "b": "x"}})
    row: dict[str, Any] = {"ratio": 1.0, "list": [1], "s": {"a": 1, "b": "x"}}
    table.commit(table.write_equality_deletes([row], [column]))
    loaded = table.load()
    (task,) = [one for one in table.live_files() if one.data_file.equality_ids is not None]
    with pytest.raises(InvalidDataFileError, match=reason) as caught:
        load_equality_deletes(
            loaded.storage,
            [DeleteTask(task.data_file, 2)],
            loaded.metadata.schemas,
            ReadRules(table.schema),
            DeleteCache(),
        )
    assert caught.value.context["path"] == task.data_file.file_path


def test_delete_file_missing_its_column_is_refused() -> None:
    table = table_of({"id": 1, "text": "a"})
    file: DataFile = table.write_equality_deletes([{"id": 1}], ["id"])
    table.commit(DataFile(**{**{name: getattr(file, name) for name in file.__slots__}, "equality_ids": (1, 2)}))
    with pytest.raises(InvalidDataFileError, match="no column 'text'"):
        left(table)


def test_empty_delete_file_deletes_nothing() -> None:
    table = table_of({"id": 1})
    table.commit(table.write_equality_deletes([], ["id"]), table.write_equality_deletes([], ["id", "text"]))
    assert left(table) == [1]


def test_delete_files_shared_by_tasks_are_read_once() -> None:
    table = table_of({"id": 1}, {"id": 2})
    table.commit(table.write_data([{"id": 2}, {"id": 3}]))
    table.commit(table.write_equality_deletes([{"id": 2}], ["id"]))
    loaded = table.load()
    (entry,) = [one for one in table.live_files() if one.data_file.equality_ids is not None]
    cache = DeleteCache()
    arguments = ([DeleteTask(entry.data_file, 3)], loaded.metadata.schemas, ReadRules(table.schema), cache)
    first = load_equality_deletes(loaded.storage, *arguments)
    loaded.storage.delete(entry.data_file.file_path)
    assert load_equality_deletes(loaded.storage, *arguments)[0].keys is first[0].keys
