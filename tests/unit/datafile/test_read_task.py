from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.codec.name_mapping_json import encode_name_mapping
from frazil.datafile.read_task import count_task, read_task, view_table
from frazil.errors import InvalidDataFileError, InvalidManifestError, MissingFileError
from frazil.expr.bind import bind
from frazil.expr.extract import parse_predicate
from frazil.scan.tasks import FileScanTask
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.name_mapping import MappedField, NameMapping, create_name_mapping
from frazil.spec.reserved_columns import (
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    POS,
    ROW_ID,
    SPEC_ID,
    partition_column,
    with_row_lineage,
)
from frazil.spec.schema import Schema
from frazil.spec.types import DATE, INT, LONG, STRING, NestedField, StructType
from frazil.table.scan import scan_table
from tests.support.file_writers import Rows, rows_to_table, table_to_rows
from tests.support.tables import TableBuilder

SCHEMA = Schema((NestedField(1, "id", LONG, required=True), NestedField(2, "kind", STRING), NestedField(3, "num", INT)))
ROWS: Rows = [{"id": at, "kind": "k", "num": at % 3 if at % 5 else None} for at in range(10)]
METADATA = (POS, FILE, SPEC_ID, DELETED, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)


def read(
    table: TableBuilder, file: DataFile, *columns: NestedField, residual: str = "true", **fields: Any
) -> dict[str, list[Any]]:
    loaded = table.load()
    view = view_table(loaded.metadata)
    predicate = bind(view.schema, parse_predicate(residual))
    task = FileScanTask(file, 3, residual=predicate, **fields)
    projection = Schema(columns or view.schema.fields)
    batches = list(read_task(task, view, projection, loaded.storage))
    made = pa.Table.from_batches(batches, to_arrow_schema(projection))
    made.validate(full=True)
    assert count_task(task, view, loaded.storage) == made.num_rows
    found: dict[str, list[Any]] = made.to_pydict()
    return found


def test_metadata_columns_follow_the_remaining_rows() -> None:
    table = TableBuilder(SCHEMA, format_version=3)
    file = replace(table.write_data(ROWS, row_group_size=3), first_row_id=100)
    found = read(table, file, POS, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER, FILE, SPEC_ID, residual="id in (2, 5, 9)")
    assert found == {
        "_pos": [2, 5, 9],
        "_row_id": [102, 105, 109],
        "_last_updated_sequence_number": [3, 3, 3],
        "_file": [file.file_path] * 3,
        "_spec_id": [0, 0, 0],
    }


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_stored_lineage_is_used_unless_null(file_format: str) -> None:
    table = TableBuilder(SCHEMA, format_version=3)
    rows: Rows = [
        {"id": 1, "_row_id": 7, "_last_updated_sequence_number": 1},
        {"id": 2, "_row_id": None, "_last_updated_sequence_number": None},
        {"id": 3, "_row_id": 9, "_last_updated_sequence_number": None},
    ]
    file = table.write_data(rows, schema=with_row_lineage(table.schema), file_format=file_format)
    columns = (ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
    assert read(table, replace(file, first_row_id=50), *columns) == {
        "_row_id": [7, 51, 9],
        "_last_updated_sequence_number": [1, 3, 3],
    }
    # A file that no snapshot gave row ids has none, whatever it stores.
    assert read(table, file, *columns) == {"_row_id": [None] * 3, "_last_updated_sequence_number": [None] * 3}


def test_deleted_rows_are_shown_if_their_column_is_requested() -> None:
    table = TableBuilder(SCHEMA)
    file = table.write_data(ROWS)
    table.commit(file)
    table.commit(table.write_position_deletes({file: [1, 2]}), table.write_equality_deletes([{"id": 5}], ["id"]))
    scan = scan_table(table.load(), "id < 6", columns=["id", "_deleted"])
    assert scan.to_arrow().to_pydict() == {
        "id": [0, 1, 2, 3, 4, 5],
        "_deleted": [False, True, True, False, False, True],
    }
    assert scan_table(table.load(), "id < 6").count() == 3


def test_partition_column_uses_the_union_of_all_specs() -> None:
    table = TableBuilder(SCHEMA, partition_by=["kind"])
    (first,) = table.append([{"id": 1, "kind": "a"}])
    table.update_spec(lambda u: u.add_field("bucket(4, id)", "b").remove_field("kind"))
    (second,) = table.append([{"id": 1, "kind": "a"}])
    kind = view_table(table.metadata).partition_type
    column = partition_column(kind)
    assert read(table, first, column, SPEC_ID) == {"_partition": [{"kind": "a", "b": None}], "_spec_id": [0]}
    assert read(table, second, column, SPEC_ID) == {
        "_partition": [{"kind": None, "b": second.partition[0]}],
        "_spec_id": [1],
    }


def test_unpartitioned_table_has_an_empty_partition() -> None:
    table = TableBuilder(SCHEMA)
    file = table.write_data(ROWS[:2])
    assert read(table, file, partition_column(StructType(()))) == {"_partition": [None, None]}


def test_metadata_columns_alone_read_no_data() -> None:
    table = TableBuilder(SCHEMA)
    file = table.write_data(ROWS, row_group_size=4)
    assert read(table, file, POS)["_pos"] == list(range(10))


def test_identity_partition_values_fill_missing_columns() -> None:
    table = TableBuilder(SCHEMA, partition_by=["kind", "num"])
    stored = table.schema.select(["id"])
    file = table.write_data([{"id": 1}, {"id": 2}], schema=stored, partition=("hive", 7))
    assert read(table, file) == {"id": [1, 2], "kind": ["hive"] * 2, "num": [7, 7]}
    assert read(table, file, residual="kind = 'hive' and num > 6 and id = 2") == {
        "id": [2],
        "kind": ["hive"],
        "num": [7],
    }
    assert read(table, file, residual="num > 7") == {"id": [], "kind": [], "num": []}
    null = table.write_data([{"id": 1}], schema=stored, partition=(None, None))
    assert read(table, null) == {"id": [1], "kind": [None], "num": [None]}


def test_struct_with_a_partition_value_is_present_for_any_projection() -> None:
    place = StructType((NestedField(4, "land", STRING), NestedField(5, "zone", INT, initial_default=7)))
    table = TableBuilder(
        Schema((*SCHEMA.fields, NestedField(3_000, "place", place))), partition_by=["place.land"], format_version=3
    )
    stored = table.schema.select(["id"])
    told = table.write_data([{"id": 1}, {"id": 2}], schema=stored, partition=("fi",))
    unknown = table.write_data([{"id": 3}], schema=stored, partition=(None,))
    assert read(table, told, residual="place.zone = 7 and id = 2")["id"] == [2]
    assert read(table, told, residual="place.zone = 8")["id"] == []
    assert read(table, told, residual="place.zone is null")["id"] == []
    zone = table.schema.select(["place.zone"])
    assert read(table, told, *zone.fields) == {"place": [{"zone": 7}] * 2}
    assert read(table, unknown, *zone.fields) == {"place": [None]}
    assert read(table, unknown, residual="place.zone is null")["id"] == [3]
    table.commit(told, unknown)
    assert scan_table(table.load(), "place.zone = 7").to_arrow().column("id").to_pylist() == [1, 2]


def test_struct_with_ids_on_its_fields_only_is_present_for_any_projection() -> None:
    place = StructType((NestedField(3, "land", STRING), NestedField(4, "zone", INT, initial_default=7)))
    table = TableBuilder(Schema((NestedField(1, "id", LONG), NestedField(2, "place", place))), format_version=3)
    file = table.write_data([{"id": 1}], schema=table.schema.select(["id"]))
    land = pa.field("land", pa.string(), metadata={"PARQUET:field_id": "3"})
    fields = [pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}), pa.field("place", pa.struct([land]))]
    rows = pa.Table.from_pylist([{"id": 1, "place": {"land": "x"}}, {"id": 2, "place": None}], pa.schema(fields))
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, store_schema=False)
    path = f"{table.metadata.location}/leaves.parquet"
    data = sink.getvalue().to_pybytes()
    table.storage.create(path, data)
    found = replace(file, file_path=path, file_size_in_bytes=len(data), record_count=2)
    assert read(table, found, residual="place.zone = 7") == {"id": [1], "place": [{"land": "x", "zone": 7}]}
    assert read(table, found, *table.schema.select(["place.zone"]).fields) == {"place": [{"zone": 7}, None]}


def test_stored_values_win_over_partition_values() -> None:
    table = TableBuilder(SCHEMA, partition_by=["kind"])
    file = table.write_data([{"id": 1, "kind": "stored", "num": 1}], partition=("other",))
    assert read(table, file)["kind"] == ["stored"]


def test_transformed_partition_values_are_not_used_as_values() -> None:
    table = TableBuilder(SCHEMA, partition_by=["truncate(1, kind)"])
    file = table.write_data([{"id": 1}], schema=table.schema.select(["id"]), partition=("h",))
    assert read(table, file)["kind"] == [None]


def test_name_mapping_gives_ids_to_files_without() -> None:
    table = TableBuilder(SCHEMA)
    file = table.write_data(ROWS[:2], with_ids=False)
    mapping = NameMapping((MappedField(("num",), 3), MappedField(("id",), 1)))
    table.set_properties(schema__name_mapping__default=encode_name_mapping(mapping))
    assert read(table, file) == {"id": [0, 1], "kind": [None, None], "num": [None, 1]}


def test_renamed_column_is_found_by_its_former_names() -> None:
    table = TableBuilder(SCHEMA)
    file = table.write_data(ROWS[:1], with_ids=False)
    table.set_properties(schema__name_mapping__default=encode_name_mapping(create_name_mapping(table.schema)))
    table.update_schema(lambda u: u.rename_column("kind", "sort"))
    assert read(table, file)["sort"] == ["k"]


def test_without_ids_and_mapping_parquet_uses_positions_and_others_names() -> None:
    table = TableBuilder(SCHEMA)
    files = {one: table.write_data(ROWS[:1], with_ids=False, file_format=one) for one in ("parquet", "orc", "avro")}
    table.update_schema(lambda u: u.rename_column("kind", "sort"))
    assert read(table, files["parquet"])["sort"] == ["k"]
    assert read(table, files["orc"])["sort"] == [None]
    assert read(table, files["avro"])["sort"] == [None]


def test_partition_values_win_over_mapped_columns() -> None:
    table = TableBuilder(SCHEMA, partition_by=["kind"])
    file = table.write_data([{"id": 1, "kind": "stored", "num": 1}], with_ids=False, partition=("path",))
    assert read(table, file)["kind"] == ["path"]


def test_filters_on_unselected_columns_are_applied() -> None:
    table = TableBuilder(SCHEMA)
    file = table.write_data(ROWS)
    (num,) = table.schema.select(["num"]).fields
    assert read(table, file, num, residual="id >= 8") == {"num": [2, 0]}


def test_filters_on_low_cardinality_text_use_dictionaries() -> None:
    table = TableBuilder(SCHEMA)
    rows: Rows = [{"id": at, "kind": [None, "a", "b", "ab"][at % 4]} for at in range(2000)]
    file = table.write_data(rows)
    expected: dict[str, set[str | None]] = {
        "kind = 'a'": {"a"},
        "kind != 'a'": {None, "b", "ab"},
        "kind is null": {None},
        "kind is not null": {"a", "b", "ab"},
        "kind in ('a', 'b')": {"a", "b"},
        "kind not in ('a', 'b')": {None, "ab"},
        "startswith(kind, 'a')": {"a", "ab"},
        "kind > 'a'": {"b", "ab"},
    }
    for text, kinds in expected.items():
        if text in ("kind != 'a'", "kind not in ('a', 'b')"):
            # Text follows SQL, in which null is neither equal nor different.
            kinds = kinds - {None}
        found = read(table, file, residual=text)
        assert set(found["kind"]) == kinds, text
        assert len(found["id"]) == sum(row["kind"] in kinds for row in rows), text


def test_batches_are_as_small_as_requested() -> None:
    table = TableBuilder(SCHEMA)
    table.commit(table.write_data(ROWS))
    loaded = table.load()
    (task,) = scan_table(loaded).plan().tasks
    lengths = [
        one.num_rows for one in read_task(task, view_table(loaded.metadata), table.schema, loaded.storage, batch_rows=4)
    ]
    assert lengths == [4, 4, 2]


def test_task_is_picklable_for_executors() -> None:
    table = TableBuilder(SCHEMA, partition_by=["kind"], format_version=3)
    (file,) = table.append(ROWS)
    table.commit(*table.write_vectors({file: [0]}))
    loaded = table.load()
    (task,) = scan_table(loaded, "num = 1").plan().tasks
    task, view = pickle.loads(pickle.dumps((task, view_table(loaded.metadata))))
    found = [
        row
        for batch in read_task(task, view, table.schema, loaded.storage)
        for row in table_to_rows(batch, table.schema)
    ]
    assert [row["id"] for row in found] == [1, 4, 7]


def test_required_columns_with_nulls_are_refused_with_the_path() -> None:
    table = TableBuilder(SCHEMA)
    loose = Schema((NestedField(1, "id", LONG),))
    file = table.write_data([{"id": None}], schema=loose)
    with pytest.raises(InvalidDataFileError, match=r"'id'.*required") as caught:
        read(table, file)
    assert caught.value.context["path"] == file.file_path


def test_invalid_type_promotion_is_refused_with_the_path() -> None:
    table = TableBuilder(SCHEMA)
    file = table.write_data([{"id": 1}], schema=Schema((NestedField(1, "id", DATE),)))
    with pytest.raises(InvalidDataFileError, match=r"'id' .* date32") as caught:
        read(table, file)
    assert caught.value.context["path"] == file.file_path


def test_error_names_the_missing_file() -> None:
    table = TableBuilder(SCHEMA)
    file = table.write_data(ROWS)
    table.storage.delete(file.file_path)
    with pytest.raises(MissingFileError, match="00001"):
        read(table, file)


def test_file_of_an_unknown_spec_or_format_is_refused() -> None:
    table = TableBuilder(SCHEMA)
    file = table.write_data(ROWS)
    with pytest.raises(InvalidManifestError, match="no partition spec 9"):
        read(table, replace(file, spec_id=9))
    with pytest.raises(InvalidManifestError, match="puffin is not a format of data files"):
        read(table, replace(file, file_format=FileFormat.PUFFIN))


def test_always_false_filter_opens_nothing() -> None:
    table = TableBuilder(SCHEMA)
    file = table.write_data(ROWS)
    table.storage.delete(file.file_path)
    assert read(table, file, residual="false") == {"id": [], "kind": [], "num": []}


def test_table_column_shadows_a_metadata_column() -> None:
    schema = Schema((NestedField(1, "_row_id", STRING), NestedField(2, "id", LONG)))
    table = TableBuilder(schema, format_version=2, keeps_ids=True)
    file = table.write_data([{"_row_id": "mine", "id": 1}])
    assert read(table, file) == {"_row_id": ["mine"], "id": [1]}
    assert rows_to_table([{"_row_id": "mine", "id": 1}], schema).num_rows == 1
