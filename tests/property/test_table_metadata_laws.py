"""Laws of table metadata: files of each version round trip, and retention keeps what it promises."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.codec.json_text import parse_json
from frazil.codec.table_metadata_json import decode_table_metadata, encode_table_metadata
from frazil.errors import InvalidMetadataError
from frazil.spec.check_table_metadata import check_table_metadata
from frazil.spec.encryption import EncryptedKey
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.retention import snapshots_to_retain
from frazil.spec.schema import Schema
from frazil.spec.snapshot import MetadataLogEntry, Snapshot, SnapshotLogEntry, SnapshotRef, with_main_branch
from frazil.spec.snapshot_history import ancestor_ids
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from frazil.spec.table_metadata import TableMetadata
from frazil.spec.types import SIMPLE_TYPES, NestedField
from frazil.spec.upgrade import upgrade_table_metadata

few = settings(max_examples=20)
"""Tables are large to draw; these laws need few of them."""

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
NATURAL = st.integers(0, 2**63 - 1)
STRING_MAPS = st.dictionaries(TEXT, TEXT, max_size=3).map(FrozenMap)
SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
EXTRAS = st.just(FrozenMap[str, Any]()) | st.dictionaries(TEXT.map("x-{}".format), JSON, max_size=2).map(FrozenMap)


@st.composite
def histories(draw: st.DrawFn, version: int) -> list[Snapshot]:
    """Snapshots with unique ids; parents are earlier ones, none, or ones that have expired."""
    ids = draw(st.lists(NATURAL, max_size=6, unique=True))
    found: list[Snapshot] = []
    for at, snapshot_id in enumerate(ids):
        expired = draw(NATURAL.filter(lambda one: one not in ids))
        has_rows = version >= 3 and draw(st.booleans())
        is_inline = version == 1 and draw(st.booleans())
        found.append(
            Snapshot(
                snapshot_id=snapshot_id,
                timestamp_ms=draw(st.integers(0, 10**13)),
                manifest_list=None if is_inline else draw(TEXT),
                summary=draw(st.none() | STRING_MAPS),
                parent_snapshot_id=draw(st.sampled_from([None, expired, *ids[:at]])),
                sequence_number=0 if version == 1 else at + 1,
                schema_id=draw(st.none() | st.integers(0, 5)),
                manifests=tuple(draw(st.lists(TEXT, max_size=2))) if is_inline else None,
                first_row_id=draw(st.integers(0, 50)) if has_rows else None,
                added_rows=draw(st.integers(0, 50)) if has_rows else None,
                key_id=draw(st.none() | TEXT),
                extra=draw(EXTRAS),
            )
        )
    return found


@st.composite
def refs_to(draw: st.DrawFn, ids: list[int]) -> dict[str, SnapshotRef]:
    ages = st.none() | st.integers(1, 10**13)
    found = {}
    for name in draw(st.lists(TEXT.filter(lambda one: one != "main"), max_size=3, unique=True)) if ids else []:
        if draw(st.booleans()):
            found[name] = SnapshotRef(draw(st.sampled_from(ids)), "tag", None, None, draw(ages), draw(EXTRAS))
        else:
            counts = draw(st.none() | st.integers(1, 4))
            found[name] = SnapshotRef(
                draw(st.sampled_from(ids)), "branch", counts, draw(ages), draw(ages), draw(EXTRAS)
            )
    return found


@st.composite
def tables(draw: st.DrawFn) -> TableMetadata:
    version = draw(st.sampled_from([1, 2, 3]))
    kinds = [kind for kind in SIMPLE_TYPES.values() if kind.min_format_version <= version]
    schemas = [
        Schema(
            tuple(
                NestedField(at, name, draw(st.sampled_from(kinds)), doc=draw(st.none() | TEXT), extra=draw(EXTRAS))
                for at, name in enumerate(draw(st.lists(TEXT, max_size=3, unique=True)), 1)
            ),
            schema_id=schema_id,
            extra=draw(EXTRAS),
        )
        for schema_id in range(draw(st.integers(1, 2)))
    ]
    snapshots = draw(histories(version))
    ids = [one.snapshot_id for one in snapshots]
    current = draw(st.sampled_from([None, *ids]))
    times = sorted(draw(st.lists(st.integers(0, 10**13), max_size=4)))
    files = sorted(draw(st.lists(st.integers(0, 10**13), max_size=3)))
    blobs = st.builds(BlobMetadata, TEXT, NATURAL, NATURAL, st.tuples(st.integers(0, 9)), STRING_MAPS, EXTRAS)
    statistics = st.builds(
        StatisticsFile,
        NATURAL,
        TEXT,
        NATURAL,
        NATURAL,
        st.lists(blobs, max_size=2).map(tuple),
        st.none() | TEXT,
        EXTRAS,
    )
    keys = st.builds(EncryptedKey, TEXT, st.binary(max_size=9), st.none() | TEXT, STRING_MAPS, EXTRAS)
    return TableMetadata(
        format_version=version,
        table_uuid=draw(st.uuids().map(str)),
        location=draw(st.sampled_from(["s3://b/t", "/tmp/t", "file:///x/ü"])),
        last_updated_ms=10**13,
        last_column_id=draw(st.integers(3, 100)),
        schemas=tuple(schemas),
        current_schema_id=draw(st.integers(0, len(schemas) - 1)),
        last_partition_id=draw(st.integers(0, 2000)),
        last_sequence_number=0 if version == 1 else len(ids) + draw(st.integers(0, 3)),
        properties=draw(STRING_MAPS),
        current_snapshot_id=current,
        snapshots=SnapshotList(snapshots),
        snapshot_log=tuple(SnapshotLogEntry(one, draw(NATURAL), draw(EXTRAS)) for one in times),
        metadata_log=tuple(MetadataLogEntry(one, draw(TEXT), draw(EXTRAS)) for one in files),
        refs=with_main_branch(draw(refs_to(ids)), current),
        statistics=tuple(draw(st.lists(statistics, max_size=2))),
        partition_statistics=tuple(
            draw(st.lists(st.builds(PartitionStatisticsFile, NATURAL, TEXT, NATURAL, EXTRAS), max_size=2))
        ),
        next_row_id=draw(st.integers(100, 2**63 - 1)) if version >= 3 else 0,
        encryption_keys=tuple(draw(st.lists(keys, max_size=2, unique_by=lambda key: key.key_id))),
        extra=draw(EXTRAS),
    )


@given(tables())
def test_any_metadata_round_trips_through_its_file(table: TableMetadata) -> None:
    text = encode_table_metadata(table)
    read = decode_table_metadata(text)
    assert read == table
    assert encode_table_metadata(read) == text


@few
@given(tables())
def test_whitespace_and_escapes_do_not_change_the_metadata(table: TableMetadata) -> None:
    document = json.loads(encode_table_metadata(table))
    for text in (json.dumps(document, indent=2), json.dumps(document, ensure_ascii=True, separators=(" ,", " :"))):
        assert decode_table_metadata(text.encode()) == table


@few
@given(tables())
def test_gzip_does_not_change_the_metadata(table: TableMetadata) -> None:
    assert decode_table_metadata(encode_table_metadata(table, compression="gzip")) == table


@few
@given(tables(), st.data())
def test_upgrade_of_valid_metadata_is_valid(table: TableMetadata, data: st.DataObject) -> None:
    version = data.draw(st.integers(table.format_version, 3))
    upgraded = upgrade_table_metadata(table, version)
    check_table_metadata(upgraded)
    assert decode_table_metadata(encode_table_metadata(upgraded)) == upgraded
    assert upgrade_table_metadata(upgraded, version) is upgraded


@few
@given(tables(), st.integers(0, 2 * 10**13), st.none() | st.integers(0, 10**13))
def test_retention_keeps_referenced_heads_and_unbroken_chains(
    table: TableMetadata, now_ms: int, older_than_ms: int | None
) -> None:
    found = snapshots_to_retain(table, now_ms, older_than_ms=older_than_ms)
    assert found.retained_ids | found.expired_ids == set(table.snapshots.ids)
    assert not found.retained_ids & found.expired_ids
    for name, ref in table.refs.items():
        assert name != "main" or name not in found.expired_refs
        if name not in found.expired_refs:
            assert ref.snapshot_id in found.retained_ids


@few
@given(tables(), st.integers(0, 2 * 10**13))
def test_higher_retention_keeps_more_of_a_branch(table: TableMetadata, now_ms: int) -> None:
    few, many = (snapshots_to_retain(table, now_ms, min_snapshots_to_keep=count) for count in (1, 3))
    assert few.retained_ids <= many.retained_ids
    current = table.current_snapshot_id
    if current is not None and table.refs["main"].min_snapshots_to_keep is None:
        assert set(list(ancestor_ids(table, current))[:3]) <= many.retained_ids


def objects(keys: st.SearchStrategy[str]) -> st.SearchStrategy[list[tuple[str, Any]]]:
    """Objects as pairs, so that keys may repeat; their values may be such objects too."""
    values = st.integers(0, 9).map(str) | TEXT.map(json.dumps) | st.just('"\\":\\"a"') | st.just("[]")
    flat = st.lists(st.tuples(keys, values), max_size=4)
    return st.lists(st.tuples(keys, values | flat.map(spell)), max_size=4)


def spell(pairs: list[tuple[str, Any]]) -> str:
    return "{" + ", ".join(f"{json.dumps(key)} :{value}" for key, value in pairs) + "}"


@given(objects(st.sampled_from(["a", "b", ":", '"', "\\", "é"])))
def test_duplicate_keys_are_always_detected(pairs: list[tuple[str, Any]]) -> None:
    text = spell(pairs)
    has_duplicates = False

    def note(found: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_duplicates
        has_duplicates = has_duplicates or len({key for key, _ in found}) < len(found)
        return dict(found)

    expected = json.loads(text, object_pairs_hook=note)
    try:
        assert parse_json(text.encode(), heading="H") == expected
        assert not has_duplicates
    except InvalidMetadataError:
        assert has_duplicates
