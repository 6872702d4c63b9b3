"""The tables made of table metadata alone."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from frazil.errors import FieldNotFoundError, InvalidMetadataError, InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.metadata_tables.snapshots import history, metadata_log_entries, refs, snapshots
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import MetadataLogEntry, SnapshotLogEntry, SnapshotRef
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.memory import MemoryStorage
from tests.support import metadata_builders as build
from tests.support.metadata_builders import START_MS

CURRENT_FILE = "s3://bucket/db/events/metadata/9.metadata.json"


def loaded(metadata: TableMetadata, location: str | None = CURRENT_FILE) -> LoadedTable:
    return LoadedTable(("db", "events"), metadata, location, MemoryStorage())


def at(ms: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(milliseconds=ms)


def rows(table: pa.Table) -> list[dict[str, Any]]:
    table.validate(full=True)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def test_snapshot_summary_excludes_the_operation() -> None:
    first = build.snapshot(1, summary={"operation": "append", "added-records": "3"})
    second = build.snapshot(2, 1, summary={"operation": "delete"})
    assert rows(snapshots(loaded(build.metadata(first, second)))) == [
        {
            "committed_at": at(START_MS + 1),
            "snapshot_id": 1,
            "parent_id": None,
            "operation": "append",
            "manifest_list": first.manifest_list,
            "summary": [("added-records", "3")],
        },
        {
            "committed_at": at(START_MS + 2),
            "snapshot_id": 2,
            "parent_id": 1,
            "operation": "delete",
            "manifest_list": second.manifest_list,
            "summary": [],
        },
    ]


def test_snapshot_of_an_old_writer_has_no_summary_operation_or_manifest_list() -> None:
    old = build.snapshot(1, summary=None, manifest_list=None, manifests=("s3://b/m.avro",))
    (row,) = rows(snapshots(loaded(build.metadata(old, format_version=1))))
    assert (row["operation"], row["summary"], row["manifest_list"]) == (None, None, None)


def test_summary_without_an_operation_counts_as_overwrite() -> None:
    (row,) = rows(snapshots(loaded(build.metadata(build.snapshot(1, summary={"a": "b"})))))
    assert (row["operation"], row["summary"]) == ("overwrite", [("a", "b")])


def test_time_beyond_the_timestamp_range_is_refused() -> None:
    broken = build.metadata(build.snapshot(1, timestamp_ms=2**62))
    with pytest.raises(InvalidMetadataError, match="outside the range of timestamps"):
        snapshots(loaded(broken))


def test_history_marks_ancestors_of_the_current_snapshot() -> None:
    one, two, three = build.snapshot(1), build.snapshot(2, 1), build.snapshot(3, 1)
    log = tuple(SnapshotLogEntry(START_MS + ms, sid) for ms, sid in ((1, 1), (2, 2), (3, 1), (4, 3)))
    table = build.metadata(one, two, three, snapshot_log=log)
    assert [tuple(row.values()) for row in rows(history(loaded(table)))] == [
        (at(START_MS + 1), 1, None, True),
        (at(START_MS + 2), 2, 1, False),
        (at(START_MS + 3), 1, None, True),
        (at(START_MS + 4), 3, 1, True),
    ]


def test_history_keeps_expired_snapshots_without_parent() -> None:
    table = build.metadata(build.snapshot(2, 1))
    table = replace(table, snapshot_log=(SnapshotLogEntry(START_MS, 1), *table.snapshot_log))
    assert [tuple(row.values())[1:] for row in rows(history(loaded(table)))] == [(1, None, False), (2, 1, True)]


def test_refs_show_branches_and_tags_with_retention() -> None:
    table = build.metadata(
        build.snapshot(1),
        build.snapshot(2, 1),
        refs={
            "audit": SnapshotRef(1, min_snapshots_to_keep=3, max_snapshot_age_ms=5, max_ref_age_ms=7),
            "eom": SnapshotRef(1, "tag", max_ref_age_ms=9),
        },
    )
    assert sorted(tuple(row.values()) for row in rows(refs(loaded(table)))) == [
        ("audit", "BRANCH", 1, 7, 3, 5),
        ("eom", "TAG", 1, 9, None, None),
        ("main", "BRANCH", 2, None, None, None),
    ]


def test_metadata_log_entries_name_their_snapshot_and_end_with_the_current_file() -> None:
    table = build.metadata(
        build.snapshot(1, schema_id=0),
        build.snapshot(2, 1, schema_id=None),
        metadata_log=tuple(MetadataLogEntry(START_MS + ms, f"{ms}.json") for ms in (0, 1, 2)),
        last_updated_ms=START_MS + 9,
    )
    assert [tuple(row.values()) for row in rows(metadata_log_entries(loaded(table)))] == [
        (at(START_MS), "0.json", None, None, None),
        (at(START_MS + 1), "1.json", 1, 0, 1),
        (at(START_MS + 2), "2.json", 2, None, 2),
        (at(START_MS + 9), CURRENT_FILE, 2, None, 2),
    ]


def test_metadata_log_entries_of_expired_snapshots_keep_only_the_id() -> None:
    table = build.metadata(
        build.snapshot(2, 1),
        snapshot_log=(SnapshotLogEntry(START_MS + 1, 1), SnapshotLogEntry(START_MS + 2, 2)),
        metadata_log=(MetadataLogEntry(START_MS + 1, "1.json"),),
    )
    assert tuple(rows(metadata_log_entries(loaded(table)))[0].values()) == (at(START_MS + 1), "1.json", 1, None, None)


def test_snapshot_log_with_a_decreasing_clock_is_read_in_order() -> None:
    log = tuple(SnapshotLogEntry(START_MS + ms, sid) for ms, sid in ((5, 1), (9, 2), (7, 3)))
    times = (4, 5, 6, 7, 8, 9, 10)
    table = build.metadata(
        *(build.snapshot(one) for one in (1, 2, 3)),
        snapshot_log=log,
        metadata_log=tuple(MetadataLogEntry(START_MS + ms, f"{ms}.json") for ms in times),
    )
    found = metadata_log_entries(loaded(table, None), columns=["latest_snapshot_id"])
    assert found.column(0).to_pylist() == [None, 1, 1, 3, 3, 3, 3]


def test_table_without_a_metadata_file_shows_only_the_log() -> None:
    assert rows(metadata_log_entries(loaded(build.metadata(), None))) == []


def test_empty_table_has_empty_metadata_tables_with_columns() -> None:
    table = loaded(build.metadata(refs=FrozenMap()))
    for read in (snapshots, history, refs):
        assert read(table).num_rows == 0
        assert read(table).num_columns > 3


def test_columns_have_the_requested_order() -> None:
    table = loaded(build.chain(2))
    assert snapshots(table, columns=["operation", "snapshot_id"]).to_pylist() == [
        {"operation": "append", "snapshot_id": 1},
        {"operation": "append", "snapshot_id": 2},
    ]
    with pytest.raises(FieldNotFoundError, match="'when': the metadata table has no such column"):
        snapshots(table, columns=["when"])
    with pytest.raises(InvalidRequestError, match="Pass a list of names"):
        snapshots(table, columns="operation")
    with pytest.raises(InvalidRequestError, match="there are no names"):
        snapshots(table, columns=[])
