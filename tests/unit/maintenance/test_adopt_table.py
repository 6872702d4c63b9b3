"""Folders of files as tables of their own: columns and partitions told from the files, the files left alone."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import frazil
from frazil.errors import FrazilError, InvalidRequestError, TableAlreadyExistsError
from frazil.maintenance.infer_schema import with_partitions
from frazil.spec.types import DATE, INT, LONG, STRING

MOMENT = datetime.datetime(2024, 1, 2, 3, 4, 5)


def write(folder: Path, name: str, ids: list[int], **options: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = pa.table({"id": ids, "ts": pa.array([MOMENT] * len(ids), pa.timestamp("us")), "kind": ["a"] * len(ids)})
    if name.endswith(".orc"):
        orc.write_table(rows, path)
    else:
        pq.write_table(rows, path, **options)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


@pytest.fixture
def lake(tmp_path: Path) -> frazil.Lake:
    return frazil.connect(tmp_path / "lake")


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_folder_becomes_a_table_over_the_same_files(tmp_path: Path, lake: frazil.Lake, kind: str) -> None:
    source = tmp_path / "old"
    for at in range(3):
        write(source, f"day=2024-01-0{at + 1}/n={at}/part-0.{kind}", [at, at + 10])
    before = contents(source)
    name = f"{kind}.`{source}`"
    assert lake.snapshot_table(name, "db.new", dry_run=True).imported_files_count == 3
    assert not lake.table_exists("db.new")
    assert lake.snapshot_table(name, "db.new").imported_files_count == 3
    table = lake.table("db.new")
    assert [str(one.field_type) for one in table.schema.fields] == ["long", "timestamp", "string", "date", "int"]
    assert [one.name for one in table.spec.fields] == ["day", "n"]
    assert table.properties["gc.enabled"] == "false"
    assert table.properties["snapshot"] == "true"
    assert table.scan("day = '2024-01-02'").to_arrow().to_pylist() == [
        {"id": one, "ts": MOMENT, "kind": "a", "day": datetime.date(2024, 1, 2), "n": 1} for one in (1, 11)
    ]
    assert len(table.scan("n = 2").plan().tasks) == 1
    assert table.check(bounds=True).ok

    # Whatever is done to it, the source stays as it is.
    table.append(table.scan("n = 0").to_arrow())
    table.maintain.rewrite_data_files(options={"rewrite-all": True})
    table.overwrite(table.scan("n = 1").to_arrow())
    for refused in (
        lambda: table.maintain.expire_snapshots(older_than=2**62),
        lambda: table.maintain.remove_orphan_files(),
        lambda: lake.drop_table("db.new", purge=True),
    ):
        with pytest.raises(FrazilError, match=r"gc\.enabled"):
            refused()
    table.set_properties({"gc.enabled": "true"})
    table.maintain.expire_snapshots(older_than=2**62)
    lake.drop_table("db.new", purge=True)
    assert contents(source) == before, "files outside the table's folders are never deleted"


def test_spark_parquet_timestamps_become_timestamptz(tmp_path: Path, lake: frazil.Lake) -> None:
    write(tmp_path / "old", "0.parquet", [1], use_deprecated_int96_timestamps=True)
    lake.snapshot_table(f"parquet.`{tmp_path / 'old'}`", "db.new")
    assert str(lake.table("db.new").schema.field("ts").field_type) == "timestamptz"
    found = lake.table("db.new").scan().to_arrow()["ts"].to_pylist()
    assert found == [MOMENT.replace(tzinfo=datetime.UTC)]


def test_properties_and_location_are_taken_over_but_arguments_win(tmp_path: Path, lake: frazil.Lake) -> None:
    write(tmp_path / "old", "0.parquet", [1])
    lake.snapshot_table(
        f"parquet.`{tmp_path / 'old'}`",
        "db.new",
        location=str(tmp_path / "elsewhere"),
        properties={"a": "b", "gc.enabled": "true", "format-version": "3"},
        parallelism=1,
    )
    table = lake.table("db.new")
    assert table.location == f"file://{tmp_path}/elsewhere"
    assert (table.properties["a"], table.properties["gc.enabled"], table.format_version) == ("b", "false", 3)


@pytest.mark.parametrize("location", ["old", "old/below", "."])
def test_location_overlapping_the_source_is_refused(tmp_path: Path, lake: frazil.Lake, location: str) -> None:
    write(tmp_path / "old", "0.parquet", [1])
    with pytest.raises(InvalidRequestError, match="would mix with those of the source"):
        lake.snapshot_table(f"parquet.`{tmp_path / 'old'}`", "db.new", location=str(tmp_path / location))
    assert not lake.table_exists("db.new")


def test_unsuitable_folder_is_refused(tmp_path: Path, lake: frazil.Lake) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidRequestError, match="no data files found"):
        lake.snapshot_table(f"parquet.`{tmp_path / 'empty'}`", "db.new")
    write(tmp_path / "odd", "k=1/0.parquet", [1])
    write(tmp_path / "odd", "0.parquet", [1])
    with pytest.raises(InvalidRequestError, match="Cannot infer the partitions"):
        lake.snapshot_table(f"parquet.`{tmp_path / 'odd'}`", "db.new")
    with pytest.raises(InvalidRequestError, match="it is a folder"):
        lake.migrate_table(f"parquet.`{tmp_path / 'odd'}`")
    write(tmp_path / "old", "0.parquet", [1])
    lake.create_table("db.taken", "id bigint")
    with pytest.raises(TableAlreadyExistsError):
        lake.snapshot_table(f"parquet.`{tmp_path / 'old'}`", "db.taken")
    with pytest.raises(InvalidRequestError, match="one at least"):
        lake.snapshot_table(f"parquet.`{tmp_path / 'old'}`", "db.new", parallelism=0)
    with pytest.raises(InvalidRequestError, match="database and a table"):
        lake.snapshot_table("a.b.c", "db.new")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-20"], INT),
        (["1", str(2**40)], LONG),
        (["1", "01"], STRING),
        (["2024-01-01", None], DATE),
        (["2024-01-01", "2024-13-01"], STRING),
        ([str(2**70)], STRING),
        ([None], STRING),
    ],
)
def test_partition_values_have_the_narrowest_type(values: list[str | None], kind: Any) -> None:
    schema, names = with_partitions((), [{"k": one} for one in values])
    assert schema.field("k").field_type == kind
    assert names == ("k",)
