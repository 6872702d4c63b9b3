"""PyIceberg reads our manifests and manifest lists, and we read PyIceberg's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from frazil.codec.encode_manifest import encode_manifest
from frazil.codec.json_text import encode_json
from frazil.codec.manifest_avro import decode_manifest, iter_entries
from frazil.codec.manifest_list_avro import decode_manifest_list, encode_manifest_list
from frazil.codec.partition_spec_json import encode_partition_spec
from frazil.codec.schema_json import encode_schema
from frazil.spec.data_file import METRIC_MAPS, DataFile
from frazil.spec.manifest import EntryStatus, FieldSummary, ManifestContent, ManifestEntry, ManifestFile
from frazil.spec.partitioning import UNPARTITIONED, PartitionSpec, build_partition_spec
from frazil.spec.schema import Schema
from frazil.spec.types import DOUBLE, LONG, STRING, TIMESTAMP, DecimalType, FixedType, NestedField
from tests.support.manifest_builders import added, data_file, deleted, existing, manifest_file

pyiceberg_manifest = pytest.importorskip("pyiceberg.manifest")
pytestmark = pytest.mark.filterwarnings("ignore")

SCHEMA = Schema(
    (
        NestedField(1, "id", LONG),
        NestedField(2, "ts", TIMESTAMP),
        NestedField(3, "kind", STRING),
        NestedField(4, "price", DecimalType(9, 2)),
        NestedField(5, "code", FixedType(4)),
        NestedField(6, "score", DOUBLE),
    )
)
SPECS: dict[str, PartitionSpec] = {
    "unpartitioned": UNPARTITIONED,
    "day": build_partition_spec(SCHEMA, ["day(ts)"], spec_id=1),
    "many": build_partition_spec(
        SCHEMA, ["kind", "bucket(16, id)", "month(ts)", "truncate(2, kind) as prefix"], spec_id=2
    ),
}
PARTITIONS: dict[str, list[tuple[Any, ...]]] = {
    "unpartitioned": [()],
    "day": [(19000,), (None,), (-1,)],
    "many": [("a", 3, 600, "a"), (None, None, None, None), ("å", 15, -1, "")],
}
SNAPSHOT_ID = 77


def foreign(spec: PartitionSpec) -> tuple[Any, Any, Any]:
    """PyIceberg's schema, spec and file access."""
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.partitioning import PartitionSpec as ForeignSpec
    from pyiceberg.schema import Schema as ForeignSchema

    schema = ForeignSchema.model_validate_json(encode_json(encode_schema(SCHEMA)))
    return schema, ForeignSpec.model_validate_json(encode_json(encode_partition_spec(spec))), PyArrowFileIO()


def files(name: str, count: int) -> list[DataFile]:
    tuples = PARTITIONS[name]
    return [
        data_file(
            at,
            spec_id=SPECS[name].spec_id,
            partition=tuples[at % len(tuples)],
            column_sizes={1: 10 + at, 2: 20},
            null_value_counts={1: 0, 3: at},
            nan_value_counts={6: 0},
        )
        for at in range(count)
    ]


def as_dict(file: DataFile) -> dict[str, Any]:
    names = ("file_path", "record_count", "file_size_in_bytes", "sort_order_id", *METRIC_MAPS)
    return {name: getattr(file, name) for name in names}


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("codec", ["gzip", "zstd", "none"])
def test_pyiceberg_reads_frazil_manifests(name: str, version: int, codec: str, tmp_path: Path) -> None:
    spec = SPECS[name]
    made_files = files(name, 30)
    entries: list[ManifestEntry] = [added(one) for one in made_files[:10]]
    entries += [existing(one) for one in made_files[10:20]]
    entries += [deleted(one) for one in made_files[20:]]
    path = tmp_path / "m.avro"
    made = encode_manifest(
        entries,
        path=str(path),
        spec=spec,
        schema=SCHEMA,
        format_version=version,
        snapshot_id=SNAPSHOT_ID,
        codec=codec,
    )
    path.write_bytes(made.data)
    line = made.manifest
    manifest = pyiceberg_manifest.ManifestFile.from_args(
        manifest_path=str(path),
        manifest_length=line.manifest_length,
        partition_spec_id=spec.spec_id,
        content=pyiceberg_manifest.ManifestContent.DATA,
        sequence_number=9 if version > 1 else 0,
        min_sequence_number=0,
        added_snapshot_id=SNAPSHOT_ID,
    )
    _, _, io = foreign(spec)
    found = manifest.fetch_manifest_entry(io, discard_deleted=False)
    assert [int(one.status) for one in found] == [int(one.status) for one in entries]
    assert [one.snapshot_id for one in found] == [one.snapshot_id for one in entries]
    if version > 1:
        assert [one.sequence_number for one in found] == [9] * 10 + [2] * 10 + [1] * 10
    for theirs, ours in zip(found, made_files, strict=True):
        assert {key: getattr(theirs.data_file, key) for key in as_dict(ours)} == as_dict(ours)
        assert theirs.data_file.file_format.value == "PARQUET"
        assert theirs.data_file.split_offsets == [4]
        assert tuple(theirs.data_file.partition[at] for at in range(len(ours.partition))) == ours.partition


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("codec", ["deflate", "null"])
def test_frazil_reads_pyiceberg_manifests(name: str, version: Any, codec: Any, tmp_path: Path) -> None:
    from pyiceberg.typedef import Record

    spec = SPECS[name]
    schema, foreign_spec, io = foreign(spec)
    path = tmp_path / "m.avro"
    made_files = files(name, 30)
    with pyiceberg_manifest.write_manifest(
        format_version=version,
        spec=foreign_spec,
        schema=schema,
        output_file=io.new_output(str(path)),
        snapshot_id=SNAPSHOT_ID,
        avro_compression=codec,
    ) as writer:
        for at, file in enumerate(made_files):
            theirs = pyiceberg_manifest.DataFile.from_args(
                content=pyiceberg_manifest.DataFileContent.DATA,
                file_path=file.file_path,
                file_format=pyiceberg_manifest.FileFormat.PARQUET,
                partition=Record(*file.partition),
                record_count=file.record_count,
                file_size_in_bytes=file.file_size_in_bytes,
                split_offsets=[4],
                sort_order_id=0,
                **{metric: dict(getattr(file, metric)) for metric in METRIC_MAPS},
            )
            entry = pyiceberg_manifest.ManifestEntry.from_args(
                status=pyiceberg_manifest.ManifestEntryStatus.ADDED,
                snapshot_id=SNAPSHOT_ID,
                sequence_number=None if at < 10 else 4,
                file_sequence_number=None if at < 10 else 4,
                data_file=theirs,
            )
            (writer.add if at < 10 else writer.existing)(entry)
    line = writer.to_manifest_file()
    manifest = ManifestFile(str(path), path.stat().st_size, spec.spec_id, SNAPSHOT_ID, sequence_number=9)
    columns = decode_manifest(path.read_bytes(), manifest=manifest, partition_type=spec.partition_type(SCHEMA))
    found = list(iter_entries(columns))
    assert [one.data_file for one in found] == made_files
    assert [one.status for one in found] == [EntryStatus.ADDED] * 10 + [EntryStatus.EXISTING] * 20
    assert [one.sequence_number for one in found] == [9] * 10 + ([4] * 20 if version > 1 else [0] * 20)
    assert columns.schema == SCHEMA
    assert columns.partition_spec == spec
    assert json.loads(columns.metadata["partition-spec"]) == [
        json.loads(one.model_dump_json()) for one in foreign_spec.fields
    ]
    ours = encode_manifest(
        found, path=str(path), spec=spec, schema=SCHEMA, format_version=2, snapshot_id=SNAPSHOT_ID
    ).manifest
    theirs_partitions = tuple(
        FieldSummary(one.contains_null, one.contains_nan, one.lower_bound, one.upper_bound) for one in line.partitions
    )
    assert ours.partitions == theirs_partitions
    assert (ours.added_files_count, ours.existing_rows_count) == (line.added_files_count, line.existing_rows_count)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("codec", ["gzip", "zstd", "none"])
def test_pyiceberg_reads_frazil_manifest_lists(version: int, codec: str, tmp_path: Path) -> None:
    manifests = [manifest_file(at, partitions=None if at % 2 else manifest_file().partitions) for at in range(20)]
    made = encode_manifest_list(
        manifests,
        format_version=version,
        snapshot_id=SNAPSHOT_ID,
        parent_snapshot_id=None,
        sequence_number=9 if version > 1 else 0,
        codec=codec,
    )
    path = tmp_path / "snap.avro"
    path.write_bytes(made.data)
    _, _, io = foreign(UNPARTITIONED)
    found = list(pyiceberg_manifest.read_manifest_list(io.new_input(str(path))))
    for theirs, ours in zip(found, made.manifests, strict=True):
        for name in ("manifest_path", "manifest_length", "partition_spec_id", "added_snapshot_id", "added_files_count",
                     "existing_files_count", "deleted_files_count", "added_rows_count", "existing_rows_count",
                     "deleted_rows_count", "key_metadata"):  # fmt: skip
            assert getattr(theirs, name) == getattr(ours, name), name
        if version > 1:
            assert (theirs.sequence_number, theirs.min_sequence_number) == (2, 1)
        summaries = None if theirs.partitions is None else [one.lower_bound for one in theirs.partitions]
        assert summaries == (None if ours.partitions is None else [one.lower_bound for one in ours.partitions])


@pytest.mark.parametrize("version", [1, 2])
def test_frazil_reads_pyiceberg_manifest_lists(version: Any, tmp_path: Path) -> None:
    _, _, io = foreign(UNPARTITIONED)
    path = tmp_path / "snap.avro"
    theirs = [
        pyiceberg_manifest.ManifestFile.from_args(
            manifest_path=f"s3://b/m{at}.avro",
            manifest_length=100 + at,
            partition_spec_id=0,
            content=pyiceberg_manifest.ManifestContent.DELETES
            if version > 1 and at == 2
            else pyiceberg_manifest.ManifestContent.DATA,
            sequence_number=3,
            min_sequence_number=2,
            added_snapshot_id=5,
            added_files_count=1,
            existing_files_count=2,
            deleted_files_count=3,
            added_rows_count=4,
            existing_rows_count=5,
            deleted_rows_count=6,
            partitions=[pyiceberg_manifest.PartitionFieldSummary(True, None, b"a", b"b")],
            key_metadata=None,
        )
        for at in range(5)
    ]
    with pyiceberg_manifest.write_manifest_list(
        format_version=version,
        output_file=io.new_output(str(path)),
        snapshot_id=SNAPSHOT_ID,
        parent_snapshot_id=5,
        sequence_number=9,
        avro_compression="deflate",
    ) as writer:
        writer.add_manifests(theirs)
    found = decode_manifest_list(path.read_bytes(), path=str(path))
    assert [one.manifest_length for one in found] == [100, 101, 102, 103, 104]
    assert found[2].content is (ManifestContent.DELETES if version > 1 else ManifestContent.DATA)
    assert (found[0].sequence_number, found[0].min_sequence_number) == ((3, 2) if version > 1 else (0, 0))
    assert (found[0].added_rows_count, found[0].deleted_rows_count) == (4, 6)
    assert found[0].partitions == (FieldSummary(True, None, b"a", b"b"),)
