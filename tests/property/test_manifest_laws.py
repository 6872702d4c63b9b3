"""Laws of manifests: what is written is read back, by us and by fastavro, in every version and partition type."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.codec.encode_manifest import encode_manifest
from frazil.codec.manifest_avro import decode_manifest, iter_entries
from frazil.codec.manifest_list_avro import decode_manifest_list, encode_manifest_list
from frazil.codec.single_value import decode_value
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.manifest import EntryStatus, FieldSummary, ManifestContent, ManifestEntry, ManifestFile
from frazil.spec.partitioning import PartitionField, PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.transforms import Identity
from frazil.spec.types import FixedType, NestedField, Type
from tests.property.type_strategies import INT64, TEXT, VALUE_TYPES, values_of

SNAPSHOT_ID = 2**62
COUNTS = st.integers(0, 2**40)
IDS = st.integers(1, 2**31 - 1)
COUNT_MAPS = st.none() | st.dictionaries(IDS, INT64, max_size=4)
BOUND_MAPS = st.none() | st.dictionaries(IDS, st.binary(max_size=20), max_size=4)
PATHS = TEXT.filter(bool)
PARTITION_TYPES = VALUE_TYPES.filter(lambda kind: kind != FixedType(0))


@st.composite
def specs(draw: st.DrawFn) -> tuple[Schema, PartitionSpec]:
    kinds = draw(st.lists(PARTITION_TYPES, max_size=3))
    schema = Schema(tuple(NestedField(at + 1, f"c {at}", kind) for at, kind in enumerate(kinds)))
    fields = tuple(PartitionField((at + 1,), 1000 + at, f"c {at}", Identity()) for at in range(len(kinds)))
    return schema, PartitionSpec(draw(st.integers(0, 5)), fields)


@st.composite
def data_files(draw: st.DrawFn, spec_id: int, kinds: list[Type], version: int, content: ManifestContent) -> DataFile:
    file = DataFile(
        draw(PATHS),
        draw(st.sampled_from([FileFormat.AVRO, FileFormat.ORC, FileFormat.PARQUET])),
        draw(COUNTS),
        draw(COUNTS),
        spec_id=spec_id,
        partition=tuple(draw(st.none() | values_of(kind)) for kind in kinds),
        column_sizes=draw(COUNT_MAPS),
        value_counts=draw(COUNT_MAPS),
        null_value_counts=draw(COUNT_MAPS),
        nan_value_counts=draw(COUNT_MAPS),
        lower_bounds=draw(BOUND_MAPS),
        upper_bounds=draw(BOUND_MAPS),
        split_offsets=draw(st.none() | st.lists(INT64, max_size=3).map(tuple)),
        sort_order_id=draw(st.none() | st.integers(0, 9)),
    )
    if content is ManifestContent.DATA:
        return file
    if draw(st.booleans()):
        ids = draw(st.lists(IDS, min_size=1, max_size=3).map(tuple))
        return replace(file, content=FileContent.EQUALITY_DELETES, equality_ids=ids)
    file = replace(file, content=FileContent.POSITION_DELETES, referenced_data_file=draw(st.none() | PATHS))
    if version > 2 and draw(st.booleans()):
        return replace(
            file,
            file_format=FileFormat.PUFFIN,
            referenced_data_file=draw(PATHS),
            content_offset=draw(COUNTS),
            content_size_in_bytes=draw(COUNTS),
        )
    return file


@st.composite
def entries(draw: st.DrawFn, spec_id: int, kinds: list[Type], version: int, content: ManifestContent) -> ManifestEntry:
    file = draw(data_files(spec_id, kinds, version, content))
    status = draw(st.sampled_from(EntryStatus))
    if version == 1:
        return ManifestEntry(status, file, draw(INT64))
    if status is EntryStatus.ADDED:
        return ManifestEntry(status, file, draw(st.none() | st.just(SNAPSHOT_ID)), draw(st.none() | COUNTS))
    if version > 2 and content is ManifestContent.DATA:
        file = replace(file, first_row_id=draw(st.none() | COUNTS))
    return ManifestEntry(status, file, draw(INT64), draw(COUNTS), draw(st.none() | COUNTS))


@st.composite
def manifests(draw: st.DrawFn) -> tuple[Schema, PartitionSpec, int, ManifestContent, list[ManifestEntry]]:
    schema, spec = draw(specs())
    version = draw(st.sampled_from([1, 2, 3]))
    content = draw(st.sampled_from(ManifestContent)) if version > 1 else ManifestContent.DATA
    kinds = [part.field_type for part in schema.fields]
    few = draw(st.lists(entries(spec.spec_id, kinds, version, content), max_size=4))
    return schema, spec, version, content, few * draw(st.sampled_from([1, 1, 60]))


def same(one: Any, other: Any) -> bool:
    """Equality under which NaN equals itself and -0.0 does not equal 0.0."""
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or (
            one == other and math.copysign(1, one) == math.copysign(1, other)
        )
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return one.as_tuple() == other.as_tuple()
    return type(one) is type(other) and bool(one == other)


def assert_same_entries(found: list[ManifestEntry], expected: list[ManifestEntry]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        values = zip(one.data_file.partition, other.data_file.partition, strict=True)
        assert all(same(value, wanted) for value, wanted in values)
        assert replace(one, data_file=replace(one.data_file, partition=())) == replace(
            other, data_file=replace(other.data_file, partition=())
        )


@given(manifests(), st.sampled_from(["none", "gzip", "zstd", "snappy"]))
@settings(max_examples=80)
def test_entries_round_trip_through_a_manifest(
    given_manifest: tuple[Schema, PartitionSpec, int, ManifestContent, list[ManifestEntry]], codec: str
) -> None:
    schema, spec, version, content, expected = given_manifest
    made = encode_manifest(
        expected,
        path="m.avro",
        spec=spec,
        schema=schema,
        format_version=version,
        content=content,
        snapshot_id=SNAPSHOT_ID,
        codec=codec,
    )
    columns = decode_manifest(made.data, partition_type=spec.partition_type(schema))
    assert (columns.schema, columns.partition_spec) == (schema, spec)
    assert (columns.format_version, columns.content, columns.spec_id) == (version, content, spec.spec_id)
    assert_same_entries(list(iter_entries(columns)), expected)
    # A reader without a partition type finds the same values.
    assert_same_entries(list(iter_entries(decode_manifest(made.data))), expected)
    again = encode_manifest(
        columns.table,
        path="m.avro",
        spec=spec,
        schema=schema,
        format_version=version,
        content=content,
        snapshot_id=SNAPSHOT_ID,
        codec=codec,
    )
    assert again == made


@given(manifests())
@settings(max_examples=40)
def test_fastavro_reads_the_same_values(
    given_manifest: tuple[Schema, PartitionSpec, int, ManifestContent, list[ManifestEntry]],
) -> None:
    schema, spec, version, content, expected = given_manifest
    made = encode_manifest(
        expected,
        path="m.avro",
        spec=spec,
        schema=schema,
        format_version=version,
        content=content,
        snapshot_id=SNAPSHOT_ID,
        codec="none",
    )
    # Blocks, not values: dates before year 1 are beyond fastavro's Python types.
    blocks = list(fastavro.block_reader(io.BytesIO(made.data)))
    assert sum(block.num_records for block in blocks) == len(expected)
    parsed = _without_logical_types(blocks[0].writer_schema) if blocks else None
    found: list[Any] = []
    for block in blocks:
        stream = io.BytesIO(block.bytes_.getvalue())  # type: ignore[attr-defined]
        found += [fastavro.schemaless_reader(stream, parsed, None) for _ in range(block.num_records)]  # type: ignore[arg-type]
        assert stream.read() == b""
    for row, entry in zip(found, expected, strict=True):
        file = row["data_file"]
        assert row["status"] == int(entry.status)
        assert file["file_path"] == entry.data_file.file_path
        for name in ("column_sizes", "lower_bounds"):
            pairs = file[name]
            assert (None if pairs is None else {one["key"]: one["value"] for one in pairs}) == getattr(
                entry.data_file, name
            )
        if version > 1:
            assert row["sequence_number"] == entry.sequence_number


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        kept = {key: _without_logical_types(one) for key, one in schema.items() if key != "logicalType"}
        return {key: one for key, one in kept.items() if not key.startswith("__")}
    return [_without_logical_types(one) for one in schema] if isinstance(schema, list) else schema


@given(st.data())
def test_summaries_cover_every_partition_value(data: st.DataObject) -> None:
    kind = data.draw(PARTITION_TYPES)
    values = data.draw(st.lists(st.none() | values_of(kind), max_size=6))
    schema = Schema((NestedField(1, "x", kind),))
    spec = PartitionSpec(0, (PartitionField((1,), 1000, "x", Identity()),))
    found = [
        ManifestEntry(EntryStatus.ADDED, DataFile(f"f{at}", FileFormat.PARQUET, 1, 1, partition=(value,)))
        for at, value in enumerate(values)
    ]
    made = encode_manifest(found, path="m", spec=spec, schema=schema, format_version=2, snapshot_id=None)
    (summary,) = made.manifest.partitions or ()
    known = [value for value in values if value is not None and not (isinstance(value, float) and math.isnan(value))]
    assert summary.contains_null == (None in values)
    assert summary.contains_nan == any(isinstance(value, float) and math.isnan(value) for value in values)
    if not known:
        assert (summary.lower_bound, summary.upper_bound) == (None, None)
        return
    assert summary.lower_bound is not None
    assert summary.upper_bound is not None
    low, high = decode_value(summary.lower_bound, kind), decode_value(summary.upper_bound, kind)
    assert any(same(low, value) for value in known)
    assert any(same(high, value) for value in known)
    if isinstance(low, str):
        low, high, known = low.encode(), high.encode(), [value.encode() for value in known]
    assert all(low <= value <= high for value in known)


SUMMARIES = st.builds(
    FieldSummary, st.booleans(), st.none() | st.booleans(), st.none() | st.binary(), st.none() | st.binary()
)
FILES = st.integers(0, 2**31 - 1)
LINES = st.builds(
    ManifestFile,
    PATHS,
    COUNTS,
    st.integers(0, 2**31 - 1),
    INT64,
    sequence_number=COUNTS,
    min_sequence_number=COUNTS,
    added_files_count=FILES,
    existing_files_count=FILES,
    deleted_files_count=FILES,
    added_rows_count=COUNTS,
    existing_rows_count=COUNTS,
    deleted_rows_count=COUNTS,
    partitions=st.none() | st.lists(SUMMARIES, max_size=3).map(tuple),
    key_metadata=st.none() | st.binary(max_size=9),
    first_row_id=st.none() | COUNTS,
)


@given(st.lists(LINES, max_size=4), st.sampled_from([1, 40]), st.sampled_from([1, 2, 3]))
def test_manifests_round_trip_through_a_manifest_list(few: list[ManifestFile], times: int, version: int) -> None:
    made = encode_manifest_list(
        few * times,
        format_version=version,
        snapshot_id=SNAPSHOT_ID,
        parent_snapshot_id=None,
        sequence_number=0 if version == 1 else 7,
        first_row_id=0 if version == 3 else None,
    )
    found = decode_manifest_list(made.data)
    assert found == list(made.manifests)
    if version == 3:
        taken = [one.added_rows_count or 0 for one in few * times if one.first_row_id is None]
        taken += [one.existing_rows_count or 0 for one in few * times if one.first_row_id is None]
        assert made.next_row_id == sum(taken)
