"""Files that this package writes, read by PyIceberg: rows, partitions, deletes, and the metrics it would have written.

Needs no JVM, so it runs with the unit tests.
"""

from __future__ import annotations

import datetime
import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.datafile.write import write_data_files
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors, write_position_deletes
from frazil.loaded import LoadedTable
from frazil.spec.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    StructType,
)
from frazil.storage.local import LocalStorage
from tests.support.builders import field, schema
from tests.support.tables import TableBuilder

pyiceberg = pytest.importorskip("pyiceberg.table")
pyiceberg_arrow = pytest.importorskip("pyiceberg.io.pyarrow")

COLUMNS = schema(
    field(1, "id", LONG, required=True),
    field(2, "i", INT),
    field(3, "b", BOOLEAN),
    field(4, "f", FLOAT),
    field(5, "d", DOUBLE),
    field(6, "dec", DecimalType(9, 2)),
    field(7, "wide", DecimalType(30, 5)),
    field(8, "day", DATE),
    field(9, "time", TIME),
    field(10, "ts", TIMESTAMP),
    field(11, "tz", TIMESTAMPTZ),
    field(12, "a text", STRING),
    field(13, "u", UUID),
    field(14, "fx", FixedType(3)),
    field(15, "bin", BINARY),
    field(16, "st", StructType((field(17, "x", INT), field(18, "y", STRING)))),
    field(19, "li", ListType(20, LONG)),
    field(21, "ma", MapType(22, STRING, 23, DOUBLE)),
)


def rows(count: int = 50) -> list[dict[str, Any]]:
    made = []
    for at in range(count):
        row: dict[str, Any] = {
            "id": at,
            "i": at - 20,
            "b": at % 2 == 0,
            "f": at / 4,
            "d": math.nan if at == 3 else -at / 3,
            "dec": Decimal(at) / 4,
            "wide": Decimal(at) * 10**20,
            "day": datetime.date(2024, 1, 1) + datetime.timedelta(days=at % 5),
            "time": datetime.time(at % 24, 1, 2, at),
            "ts": datetime.datetime(2024, 1, 1, 1) + datetime.timedelta(hours=at),
            "tz": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=at),
            "a text": f"{'long ' * (at % 7)}text {at}",
            "u": uuid.UUID(int=at),
            "fx": b"%03d" % at,
            "bin": bytes([at]) * (at % 40),
            "st": None if at % 4 == 0 else {"x": at, "y": f"y{at}"},
            "li": None if at % 5 == 0 else list(range(at % 3)),
            "ma": {"a": 1.5, "b": None} if at % 3 else {},
        }
        made.append({key: None if at % 10 == 7 and key != "id" else value for key, value in row.items()})
    return made


def build(folder: Path, version: int, partition_by: list[str]) -> tuple[TableBuilder, LoadedTable]:
    table = TableBuilder(
        COLUMNS,
        partition_by=partition_by,
        format_version=version,
        storage=LocalStorage(),
        location=f"file://{folder}/t",
    )
    return table, table.load()


def read(table: TableBuilder) -> list[dict[str, Any]]:
    found = pyiceberg.StaticTable.from_metadata(table.load().metadata_location).scan().to_arrow()
    return sorted(found.to_pylist(), key=lambda row: row["id"])


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row in the form in which Arrow shows it."""
    shown = {key: value.bytes if isinstance(value, uuid.UUID) else value for key, value in row.items()}
    shown["ma"] = (
        None if shown["ma"] is None else list(shown["ma"].items()) if isinstance(shown["ma"], dict) else shown["ma"]
    )
    return {key: "nan" if isinstance(value, float) and math.isnan(value) else value for key, value in shown.items()}


@pytest.mark.parametrize(
    "partition_by", [[], ["day"], ["bucket(3, id)", "truncate(4, `a text`)"], ["month(ts)", "u"]], ids=str
)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_the_rows(version: int, partition_by: list[str], tmp_path: Path) -> None:
    table, loaded = build(tmp_path, version, partition_by)
    table.commit(*write_data_files(rows(), loaded))
    assert [plain(row) for row in read(table)] == [plain(row) for row in rows()]


def test_pyiceberg_finds_rows_by_metrics(tmp_path: Path) -> None:
    table, loaded = build(tmp_path, 2, [])
    table.commit(
        *(file for start in range(5) for file in write_data_files(rows()[start * 10 : start * 10 + 10], loaded))
    )
    static = pyiceberg.StaticTable.from_metadata(table.load().metadata_location)
    for text, files, count in (
        ("id >= 20 and id < 30", 1, 10),
        ("id = 45", 1, 1),
        ("`a text` = 'text 7'", 0, 0),
        ("day is null", 5, 5),
        ("d is nan", 1, 1),
        ("u = '00000000-0000-0000-0000-000000000014'", 1, 1),
        ("st.x = 31", 1, 1),
    ):
        scan = static.scan(row_filter=text.replace("`a text`", '"a text"'))
        assert len(list(scan.plan_files())) <= max(files, 1), text
        assert scan.to_arrow().num_rows == count, text


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_pyiceberg_applies_position_deletes(granularity: Any, tmp_path: Path) -> None:
    table, loaded = build(tmp_path, 2, ["day"])
    files = write_data_files(rows(), loaded)
    table.commit(*files)
    deletes = [DeletedRows.of(file, range(0, file.record_count, 2)) for file in files]
    kept = {row["id"] for row in rows()} - _deleted(files)
    table.commit(*write_position_deletes(deletes, loaded, granularity=granularity))
    assert {row["id"] for row in read(table)} == kept


def test_pyiceberg_applies_deletion_vectors(tmp_path: Path) -> None:
    table, loaded = build(tmp_path, 3, ["day"])
    files = write_data_files(rows(), loaded)
    table.commit(*files)
    kept = {row["id"] for row in rows()} - _deleted(files)
    table.commit(
        *write_deletion_vectors([DeletedRows.of(file, range(0, file.record_count, 2)) for file in files], loaded)
    )
    assert {row["id"] for row in read(table)} == kept


def _deleted(files: list[Any]) -> set[int]:
    gone: set[int] = set()
    for file in files:
        ids = pq.read_table(file.file_path.removeprefix("file://"), columns=["id"]).column("id").to_pylist()
        gone |= set(ids[::2])
    return gone


def test_metrics_equal_those_pyiceberg_reads_from_the_file(tmp_path: Path) -> None:
    _, loaded = build(tmp_path, 2, [])
    (file,) = write_data_files(rows(), loaded)
    static = pyiceberg.StaticTable.from_metadata(loaded.metadata_location)
    mapping = pyiceberg_arrow.parquet_path_to_id_mapping(static.schema())
    statistics = pyiceberg_arrow.data_file_statistics_from_parquet_metadata(
        parquet_metadata=pq.read_metadata(file.file_path.removeprefix("file://")),
        stats_columns=pyiceberg_arrow.compute_statistics_plan(static.schema(), static.properties),
        parquet_column_mapping={path.replace(" ", "_x20"): field_id for path, field_id in mapping.items()},
    )
    theirs = statistics.to_serialized_dict()
    assert file.column_sizes == theirs["column_sizes"]
    assert file.split_offsets == tuple(theirs["split_offsets"])
    measured = set(file.value_counts or {})
    nested = [loaded.metadata.current_schema.field(name).field_id for name in ("st.x", "st.y")]
    for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds"):
        found = {key: value for key, value in theirs[name].items() if key in measured}
        # It measures no fields of structs.
        missing = set(getattr(file, name)) - set(found)
        assert missing <= set(nested), name
        assert {key: value for key, value in getattr(file, name).items() if key not in missing} == found, name


def test_pyarrow_reads_the_data_files(tmp_path: Path) -> None:
    _, loaded = build(tmp_path, 3, [])
    (file,) = write_data_files(rows(), loaded)
    found = pq.read_table(file.file_path.removeprefix("file://"))
    assert found.column("id").to_pylist() == list(range(50))
    assert found.column("a_x20text").to_pylist() == [row["a text"] for row in rows()]
    assert found.schema.field("tz").type == pa.timestamp("us", "UTC")
