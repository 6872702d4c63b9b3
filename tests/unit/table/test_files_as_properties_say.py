"""Properties of files reach the files: what the writers of Parquet and ORC are told, and what Avro files hold."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import frazil
from frazil.commit.commit_loop import Limits
from frazil.sessions.scan_options import scan_with_options

ROWS = 3000
MERGE_ON_READ = {"write.delete.mode": "merge-on-read", "write.format.default": "parquet"}


def rows() -> pa.Table:
    numbers = np.random.default_rng(1).integers(0, 50, ROWS)
    return pa.table({"id": pa.array(range(ROWS), pa.int64()), "kind": [f"kind {one}" for one in numbers]})


def new_table(tmp_path: Path, name: str = "t", **properties: str) -> frazil.Table:
    lake = frazil.connect(tmp_path / "lake")
    table = lake.create_table(f"db.{name}", "id bigint, kind string", format_version=2, properties=properties)
    table.append(rows())
    return table


def path_of(table: frazil.Table, *, of_deletes: bool = False) -> Path:
    """Return the one file of rows or of deletes."""
    (task,) = table.refresh().scan().plan().tasks
    found = task.delete_files[0].data_file.file_path if of_deletes else task.data_file.file_path
    return Path(found.removeprefix("file://"))


def without_some(table: frazil.Table) -> frazil.Table:
    table.delete("id % 2 = 1", engine="local")
    assert table.scan().count() == ROWS // 2
    return table


@pytest.mark.parametrize(
    ("name", "value", "argument", "told"),
    [
        ("write.parquet.page-version", "v2", "data_page_version", "2.0"),
        ("write.parquet.page-size-bytes", "4096", "data_page_size", 4096),
        ("write.parquet.page-row-limit", "77", "max_rows_per_page", 77),
        ("write.parquet.dict-size-bytes", "512", "dictionary_pagesize_limit", 512),
        ("write.parquet.compression-codec", "snappy", "compression", "snappy"),
        ("write.parquet.compression-level", "7", "compression_level", 7),
        ("write.delete.parquet.page-size-bytes", "4096", "data_page_size", 4096),
        ("write.delete.parquet.page-row-limit", "77", "max_rows_per_page", 77),
        ("write.delete.parquet.page-version", "v2", "data_page_version", "2.0"),
        ("write.delete.parquet.dict-size-bytes", "512", "dictionary_pagesize_limit", 512),
        ("write.delete.parquet.compression-level", "7", "compression_level", 7),
    ],
)
def test_parquet_properties_are_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, argument: str, told: object
) -> None:
    seen: list[Any] = []

    class Spy(pq.ParquetWriter):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any) -> None:
            seen.append(named)
            super().__init__(*given, **named)

    monkeypatch.setattr("frazil.datafile.write_parquet.pq.ParquetWriter", Spy)
    table = without_some(new_table(tmp_path, **MERGE_ON_READ, **{name: value}))
    of_rows, of_deletes = (one[argument] for one in seen)
    is_of_deletes = name.startswith("write.delete.")
    assert (of_deletes if is_of_deletes else of_rows) == told
    # Delete files may follow the property of data files; data files never follow theirs.
    assert of_rows != told or not is_of_deletes
    assert table.check(bounds=True).ok


@pytest.mark.parametrize(
    ("name", "value", "argument", "told"),
    [
        ("write.orc.vectorized.batch-size", "100", "batch_size", 100),
        ("write.orc.stripe-size-bytes", "8388608", "stripe_size", 8388608),
        ("write.orc.compression-codec", "snappy", "compression", "snappy"),
        ("write.orc.bloom.filter.columns", "kind", "bloom_filter_columns", [2]),
        ("write.orc.bloom.filter.fpp", "0.2", "bloom_filter_fpp", 0.2),
        ("write.orc.compression-strategy", "compression", "compression_strategy", "compression"),
        ("write.delete.orc.stripe-size-bytes", "8388608", "stripe_size", 8388608),
        ("write.delete.orc.vectorized.batch-size", "100", "batch_size", 100),
        ("write.delete.orc.compression-codec", "snappy", "compression", "snappy"),
        ("write.delete.orc.compression-strategy", "compression", "compression_strategy", "compression"),
    ],
)
def test_orc_properties_are_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, argument: str, told: object
) -> None:
    seen: list[Any] = []

    class Spy(orc.ORCWriter):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any) -> None:
            seen.append(named)
            super().__init__(*given, **named)

    monkeypatch.setattr("frazil.datafile.write_orc.orc.ORCWriter", Spy)
    formats = {"write.format.default": "orc", "write.delete.format.default": "orc"}
    table = without_some(new_table(tmp_path, **{**MERGE_ON_READ, **formats, name: value}))
    of_rows, of_deletes = (one[argument] for one in seen)
    is_of_deletes = name.startswith("write.delete.")
    assert (of_deletes if is_of_deletes else of_rows) == told
    # Delete files may follow the property of data files; data files never follow theirs.
    assert of_rows != told or not is_of_deletes
    assert table.check(bounds=True).ok


def test_parquet_row_group_properties_are_applied(tmp_path: Path) -> None:
    def groups(name: str, **properties: str) -> int:
        table = new_table(tmp_path, name, **properties)
        return int(pq.read_metadata(path_of(table)).num_row_groups)

    small = {"write.parquet.row-group-size-bytes": "2000", "write.parquet.row-group-check-min-record-count": "1"}
    few = {**small, "write.parquet.row-group-check-min-record-count": "1000"}
    assert groups("few", **few) <= 3
    tracked = groups("tracked", **small, **{"write.parquet.row-group-size-track-uncompressed": "true"})
    assert tracked > groups("small", **small) > 3
    deleted = {**MERGE_ON_READ, "write.delete.parquet.row-group-size-bytes": "500"}
    cut = path_of(without_some(new_table(tmp_path, "cut", **deleted)), of_deletes=True)
    whole = path_of(without_some(new_table(tmp_path, "whole", **MERGE_ON_READ)), of_deletes=True)
    assert pq.read_metadata(cut).num_row_groups > pq.read_metadata(whole).num_row_groups == 1


def test_avro_codec_and_level_are_applied(tmp_path: Path) -> None:
    avro = {**MERGE_ON_READ, "write.format.default": "avro", "write.delete.format.default": "avro"}

    def sizes(name: str, codec: str, **properties: str) -> tuple[int, int]:
        asked = {**avro, "write.delete.avro.compression-codec": codec, **properties}
        table = without_some(new_table(tmp_path, name, **asked))
        with path_of(table, of_deletes=True).open("rb") as file:
            assert fastavro.reader(file).codec == {"gzip": "deflate"}.get(codec, codec)
        return path_of(table).stat().st_size, path_of(table, of_deletes=True).stat().st_size

    levels = ("write.avro.compression-level", "write.delete.avro.compression-level")
    least = sizes("least", "gzip", **dict(zip(levels, ("0", "0"), strict=True)))
    most = sizes("most", "gzip", **dict(zip(levels, ("9", "9"), strict=True)))
    assert most[0] < least[0]
    assert most[1] < least[1]
    sizes("other", "snappy")
    table = new_table(tmp_path, "rows", **{**avro, "write.avro.compression-codec": "snappy"})
    with path_of(table).open("rb") as file:
        assert fastavro.reader(file).codec == "snappy"


def test_manifest_codec_and_level_are_applied(tmp_path: Path) -> None:
    def size(level: str) -> int:
        table = frazil.connect(tmp_path / "lake").create_table(
            f"db.level_{level}",
            "id bigint, kind string",
            partition_by=["kind"],
            properties={"write.manifest.compression-level": level},
        )
        table.append(rows())
        (length,) = table.inspect.manifests()["length"].to_pylist()
        return int(length)

    assert size("9") < size("1")
    asked = {"write.manifest.compression-codec": "snappy"}
    table = new_table(tmp_path, "codec", **asked)
    (path,) = table.inspect.manifests()["path"].to_pylist()
    with Path(path.removeprefix("file://")).open("rb") as file:
        assert fastavro.reader(file).codec == "snappy"


def test_split_properties_are_applied(tmp_path: Path) -> None:
    table = new_table(tmp_path, **{"read.split.target-size": str(1 << 20)})
    for _ in range(5):
        table.append(rows())

    def groups(properties: dict[str, str], parallelism: int | None = None) -> int:
        table.set_properties(properties)
        found = len(table.scan().plan().splits(parallelism=parallelism))
        table.remove_properties(list(properties))
        return found

    assert groups({"read.split.open-file-cost": "1"}) == 1
    assert groups({"read.split.open-file-cost": str(1 << 20)}) == 6
    adaptive = {"read.split.adaptive-size.enabled": "true", "read.split.target-size": str(1 << 40)}
    assert groups({**adaptive, "read.split.open-file-cost": str(1 << 24)}, 1000) > 1
    fixed = {**adaptive, "read.split.adaptive-size.enabled": "false", "read.split.open-file-cost": str(1 << 24)}
    assert groups(fixed, 1000) == 1


@pytest.mark.parametrize("way", ["property", "option"])
def test_split_lookback_fills_groups(tmp_path: Path, way: str) -> None:
    # The newest files are planned first: two large ones, then two small ones.
    table = frazil.connect(tmp_path / "lake").create_table("db.t", "id bigint, kind string")
    for count in (1, 1, ROWS, ROWS):
        table.append(rows().slice(0, count))
    sizes = [one.data_file.file_size_in_bytes for one in table.scan().plan().tasks]
    table.set_properties({"read.split.open-file-cost": "1", "read.split.target-size": str(max(sizes) + min(sizes) + 2)})

    def groups(look_back: str) -> int:
        if way == "option":
            return len(scan_with_options(table.state, {"lookback": look_back}).plan().splits())
        table.set_properties({"read.split.planning-lookback": look_back})
        return len(table.scan().plan().splits())

    # A large one has room for a small one that is found later.
    assert (groups("10"), groups("1")) == (2, 3)


@pytest.mark.parametrize("verb", ["delete", "update", "merge"])
def test_change_mode_properties_are_applied(tmp_path: Path, verb: str) -> None:
    def delete_files(mode: str) -> int:
        modes = {f"write.{one}.mode": "copy-on-write" for one in ("delete", "update", "merge")}
        # Spelt out: write.delete.mode, write.update.mode, write.merge.mode.
        table = new_table(tmp_path, mode.replace("-", "_"), **{**modes, f"write.{verb}.mode": mode})
        if verb == "delete":
            table.delete("id = 1", engine="local")
        elif verb == "update":
            table.update({"kind": "'x'"}, where="id = 1", engine="local")
        else:
            table.upsert([{"id": 1, "kind": "x"}], ["id"], engine="local")
        assert table.refresh().scan().count() == ROWS - (verb == "delete")
        return len(table.inspect.delete_files())

    assert delete_files("copy-on-write") == 0
    assert delete_files("merge-on-read") == 1


def test_file_format_size_and_location_properties_are_applied(tmp_path: Path) -> None:
    def paths(name: str, **properties: str) -> list[str]:
        table = new_table(tmp_path, name, **properties)
        found: list[str] = table.inspect.files()["file_path"].to_pylist()
        return found

    assert [one.rpartition(".")[2] for one in paths("plain")] == ["parquet"]
    assert [one.rpartition(".")[2] for one in paths("other", **{"write.format.default": "avro"})] == ["avro"]
    small = {"write.target-file-size-bytes": "2000", "write.parquet.row-group-check-min-record-count": "1"}
    assert len(paths("small", **small)) > 3
    places = {"write.data.path": str(tmp_path / "rows"), "write.metadata.path": str(tmp_path / "about")}
    (path,) = paths("placed", **places)
    assert path.removeprefix("file://").startswith(f"{tmp_path}/rows/")
    table = frazil.connect(tmp_path / "lake").table("db.placed")
    about = [table.state.metadata_location, *table.inspect.manifests()["path"].to_pylist()]
    assert all(str(one).removeprefix("file://").startswith(f"{tmp_path}/about/") for one in about)


def test_reference_age_property_is_applied(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.create_tag("old")
    table.append(rows())
    time.sleep(0.01)
    table.maintain.expire_snapshots(retain_last=1)
    assert "old" in table.refresh().refs
    table.set_properties({"history.expire.max-ref-age-ms": "1"})
    table.maintain.expire_snapshots(retain_last=1)
    assert set(table.refresh().refs) == {"main"}


def test_status_check_properties_are_applied() -> None:
    limits = Limits([{"commit.status-check.max-wait-ms": "7", "commit.status-check.total-timeout-ms": "9"}])
    assert (limits.check_max_wait_ms, limits.check_total_ms) == (7, 9)
