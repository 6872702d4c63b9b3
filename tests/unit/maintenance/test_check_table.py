"""`t.check()`: a sound table has no problems; every kind of damage is found, with the file and what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import frazil
from frazil.codec.puffin import PuffinWriter
from frazil.codec.single_value import encode_bound
from frazil.loaded import LoadedTable
from frazil.maintenance.check_table import check_table
from frazil.maintenance.report import Report
from frazil.spec.manifest import EntryStatus, ManifestContent, ManifestEntry
from frazil.spec.schema import Schema
from frazil.spec.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from frazil.spec.types import DOUBLE, LONG, STRING, NestedField, StructType, Type
from frazil.storage.failing import FailingStorage, Fault, FaultKind
from frazil.storage.memory import MemoryStorage
from tests.support.damage import Damaged, rows
from tests.support.tables import TableBuilder

DELETES = ManifestContent.DELETES


@pytest.fixture
def damaged() -> Damaged:
    return Damaged(3)


def kinds(report: Report) -> list[str]:
    return [one.kind for one in report.problems]


def only(report: Report, kind: str, path: str | None, text: str) -> None:
    """The one problem is of a kind, names the file, says what was found and what to do."""
    assert kinds(report) == [kind], str(report)
    (problem,) = report
    assert problem.path == path
    assert text in problem.what, problem.what
    assert problem.to_do != ""
    assert not report.ok
    assert kind in str(report)
    assert path is None or path in str(report)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("bounds", [False, True])
def test_valid_table_has_no_problems(version: int, bounds: bool) -> None:
    table = Damaged(version).table
    for report in (table.check(bounds=bounds), table.check(bounds=bounds, only_current=True)):
        assert report.ok, str(report)
        assert report.facts["data_files"] == 4
        assert str(report).endswith("No problems.")
    whole = table.check().facts
    assert whole["snapshots"] == (2 if version == 1 else 3)
    assert table.check(only_current=True).facts["snapshots"] == 1
    assert whole.get("deletion_vectors", 0) == (2 if version == 3 else 0)
    assert whole.get("equality_delete_files", 0) == (0 if version == 1 else 1)


def test_empty_table_has_no_problems() -> None:
    with frazil.connect("memory:") as lake:
        assert lake.create_table("db.t", "id bigint").check(bounds=True).ok


@pytest.mark.parametrize("file_format", ["orc", "avro"])
def test_rows_of_every_format_are_checked_against_their_metrics(file_format: str) -> None:
    table = Damaged(2, {"write.format.default": file_format}).table
    assert table.check(bounds=True).ok


def test_table_with_every_kind_of_change_has_no_problems() -> None:
    damaged = Damaged(2)
    table = damaged.table
    with table.update_schema() as change:
        change.rename_column("kind", "sort").add_column("extra", "int").drop_column("score")
    with table.update_spec() as spec:
        spec.add_field("bucket(4, id)")
    table.append(rows(100, 110).drop_columns(["score"]).rename_columns({"kind": "sort"}))
    table.upgrade(3)
    table.append(rows(200, 210).drop_columns(["score"]).rename_columns({"kind": "sort"}))
    table.create_branch("audit")
    table.append(rows(300, 310).drop_columns(["score"]).rename_columns({"kind": "sort"}), branch="audit")
    table.overwrite_partitions(rows(400, 405).drop_columns(["score"]).rename_columns({"kind": "sort"}))
    report = table.check(bounds=True)
    assert report.ok, str(report)
    table.expire_snapshots(older_than=2**62)
    assert table.check(bounds=True).ok


# Files that are missing, cut or exchanged


@pytest.mark.parametrize("what", ["list", "manifest", "data", "vectors", "equality"])
def test_error_names_the_missing_file(damaged: Damaged, what: str) -> None:
    path = {
        "list": damaged.snapshot.manifest_list,
        "manifest": damaged.manifests()[0].manifest_path,
        "data": damaged.files()[0].file_path,
        "vectors": damaged.vectors()[0].file_path,
        "equality": damaged.files(DELETES)[-1].file_path,
    }[what]
    assert path is not None
    damaged.storage.delete(path)
    report = damaged.table.check()
    only(report, "missing-file", path, "does not exist")
    assert "Restore the file" in report.problems[0].to_do


@pytest.mark.parametrize("version", [1, 2, 3])
def test_any_missing_or_truncated_file_is_detected(version: int) -> None:
    damaged = Damaged(version)
    storage = damaged.storage
    files = [one.path for one in storage.list(damaged.table.location)]
    assert len(files) == {1: 12, 2: 18, 3: 17}[version]
    for path in files:
        data = storage.read(path)
        storage.delete(path)
        assert path in {one.path for one in check_table(damaged.loaded)}, f"{path} is missing"
        if "/metadata/" not in path or not path.endswith(".json"):
            storage.create(path, data[: len(data) // 2])
            assert path in {one.path for one in check_table(damaged.loaded)}, f"{path} is cut"
            storage.delete(path)
        storage.create(path, data)
    assert damaged.table.check().ok


def test_missing_metadata_file_is_named(damaged: Damaged) -> None:
    location = damaged.table.metadata_location
    assert location is not None
    damaged.storage.delete(location)
    only(check_table(damaged.loaded), "missing-file", location, "does not exist")
    old = damaged.table.metadata.metadata_log[0].metadata_file
    fresh = Damaged(2)
    old = fresh.table.metadata.metadata_log[0].metadata_file
    fresh.storage.delete(old)
    only(fresh.table.check(), "missing-file", old, "older metadata file")
    assert fresh.table.check(only_current=True).ok


def test_metadata_differing_from_the_loaded_state_is_found(damaged: Damaged) -> None:
    location = damaged.table.metadata_location
    assert location is not None
    damaged.change_bytes(location, lambda data: data.replace(b'"write', b'"wrong', 1).replace(b"kept", b"keep"))
    only(check_table(damaged.loaded), "corrupt-file", location, "a different state")


@pytest.mark.parametrize("what", ["list", "manifest", "data", "vectors"])
def test_truncated_file_is_named(damaged: Damaged, what: str) -> None:
    path = {
        "list": damaged.snapshot.manifest_list,
        "manifest": damaged.manifests()[0].manifest_path,
        "data": damaged.files()[0].file_path,
        "vectors": damaged.vectors()[0].file_path,
    }[what]
    assert path is not None
    damaged.change_bytes(path, lambda data: data[:-7])
    report = damaged.table.check()
    assert {one.path for one in report} == {path}, str(report)
    assert set(kinds(report)) <= {"corrupt-file", "wrong-size"}
    assert ("wrong-size" in kinds(report)) == (what in ("data", "vectors"))


def test_changed_bytes_within_a_file_are_found(damaged: Damaged) -> None:
    path = damaged.files()[0].file_path
    damaged.change_bytes(path, lambda data: data[:40] + bytes(200) + data[240:])
    assert damaged.table.check().ok, "the size alone is right"
    report = damaged.table.check(bounds=True)
    assert {one.path for one in report} == {path}
    assert set(kinds(report)) <= {"corrupt-file", "wrong-bounds", "wrong-count", "wrong-partition"}


def test_unavailable_file_is_distinguished_from_a_damaged_one(damaged: Damaged) -> None:
    loaded = damaged.loaded
    failing = FailingStorage(loaded.storage, Fault(1, FaultKind.IO_ERROR, frozenset({"size"})))
    report = check_table(LoadedTable(loaded.identifier, loaded.metadata, None, failing), threads=1)
    assert kinds(report) == ["unreadable-file"]
    assert "Check the storage" in report.problems[0].to_do


def test_files_of_expired_snapshots_are_not_reported() -> None:
    damaged = Damaged(2)
    table = damaged.table
    stale = damaged.lake.table("db.t")
    table.drop_tag("kept")
    table.overwrite(rows(0, 3))
    table.expire_snapshots(older_than=2**62)
    assert not check_table(stale.state).ok, "the stale state leads to files that are gone"
    assert stale.check().ok, "but its snapshots have been expired, which is no damage"


# Numbers that do not agree


@pytest.mark.parametrize(
    ("content", "changes", "kind", "text"),
    [
        (ManifestContent.DATA, {"manifest_length": 17}, "wrong-size", "the list says 17"),
        (ManifestContent.DATA, {"added_files_count": 9}, "wrong-count", "2 added files, but the list says 9"),
        (ManifestContent.DATA, {"existing_rows_count": 3}, "wrong-count", "0 existing rows, but the list says 3"),
        (DELETES, {"added_rows_count": 1}, "wrong-count", "4 added rows, but the list says 1"),
        (ManifestContent.DATA, {"partition_spec_id": 7}, "wrong-partition-spec", "which the table does not have"),
        (DELETES, {"min_sequence_number": 4, "sequence_number": 4}, "wrong-sequence-number", "above the snapshot's"),
        (DELETES, {"sequence_number": 2, "min_sequence_number": 2}, "wrong-sequence-number", "added"),
    ],
)
def test_wrong_manifest_list_entry_is_found(
    damaged: Damaged, content: ManifestContent, changes: dict[str, Any], kind: str, text: str
) -> None:
    damaged.change_line(content, **changes)
    report = damaged.table.check()
    assert kind in kinds(report), str(report)
    assert any(text in one.what for one in report if one.kind == kind), str(report)


def test_wrong_minimum_sequence_number_is_found(damaged: Damaged) -> None:
    path = damaged.change_line(min_sequence_number=99, sequence_number=2)
    report = damaged.table.check()
    assert set(kinds(report)) == {"wrong-sequence-number"}
    assert any("99 is the lowest" in one.what and one.path == path for one in report), str(report)


def existing(entry: ManifestEntry, **changes: Any) -> ManifestEntry:
    """Make an entry one that says everything itself, and inherits nothing."""
    numbers = {"snapshot_id": 1, "sequence_number": 2, "file_sequence_number": 2}
    return replace(entry, status=EntryStatus.EXISTING, **{**numbers, **changes})


def test_entry_from_the_future_is_found(damaged: Damaged) -> None:
    def change(entries: list[ManifestEntry]) -> list[ManifestEntry]:
        return [existing(one, sequence_number=50, file_sequence_number=50) for one in entries]

    path = damaged.change_entries(change)
    report = damaged.table.check()
    assert set(kinds(report)) == {"wrong-sequence-number"}
    assert any("sequence number 50, above" in one.what and one.path == path for one in report), str(report)


def test_wrong_file_size_is_found(damaged: Damaged) -> None:
    right = damaged.files()[0].file_size_in_bytes
    path = damaged.change_file(file_size_in_bytes=right + 1)
    report = damaged.table.check()
    assert set(kinds(report)) == {"wrong-size", "wrong-total"}
    assert any(one.path == path and f"says {right + 1:,}" in one.what for one in report)


def test_wrong_record_count_is_found_by_reading(damaged: Damaged) -> None:
    path = damaged.change_file(record_count=4)
    assert "wrong-total" in kinds(damaged.table.check()), "the summary still knows"
    found = [one for one in damaged.table.check(bounds=True) if one.path == path]
    assert [one.kind for one in found] == ["wrong-count"]
    assert "the file has 5 rows, but its entry says 4" in found[0].what


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"lower_bounds": {1: encode_bound(11, LONG)}}, "wrong-bounds", "lower bound of column 'id' is 11"),
        ({"upper_bounds": {1: encode_bound(12, LONG)}}, "wrong-bounds", "a value is 14"),
        ({"upper_bounds": {3: encode_bound("a", STRING)}}, "wrong-bounds", "column 'kind'"),
        ({"lower_bounds": {1: b"xyz"}}, "wrong-bounds", "cannot be read"),
        ({"null_value_counts": {4: 0}}, "wrong-count", "column 'score' has 1 as its null value counts"),
        ({"nan_value_counts": {4: 3}}, "wrong-count", "nan value counts"),
        ({"value_counts": {1: 6}}, "wrong-count", "column 'id' has 5 as its value counts"),
        ({"partition": ("z",)}, "wrong-partition", "rows of partition ('b',), but the entry says ('z',)"),
    ],
)
def test_wrong_metrics_are_found_by_reading(damaged: Damaged, changes: dict[str, Any], kind: str, text: str) -> None:
    path = damaged.change_file(**changes)
    assert damaged.table.check().ok, "nothing but the rows can tell"
    report = damaged.table.check(bounds=True)
    assert any(one.kind == kind and one.path == path and text in one.what for one in report), str(report)


def test_wide_bounds_are_valid(damaged: Damaged) -> None:
    damaged.change_file(
        lower_bounds={1: encode_bound(-5, LONG), 3: encode_bound("", STRING)},
        upper_bounds={1: encode_bound(500, LONG), 3: encode_bound("zzz", STRING)},
    )
    assert damaged.table.check(bounds=True).ok


def test_partition_summary_that_would_prune_a_file_is_found(damaged: Damaged) -> None:
    lines = damaged.manifests()[0].partitions
    assert lines is not None
    narrow = (replace(lines[0], lower_bound=b"c"),)
    path = damaged.change_line(partitions=narrow)
    only(damaged.table.check(), "wrong-partition-summary", path, "range from 'b' to 'c'")


def test_null_missing_in_a_summary_is_found(damaged: Damaged) -> None:
    damaged.change_file(partition=(None,))
    lines = damaged.manifests()[0].partitions
    assert lines is not None
    path = damaged.change_line(partitions=(replace(lines[0], contains_null=False),))
    only(damaged.table.check(only_current=True), "wrong-partition-summary", path, "1 files have null in 'kind'")


def test_manifest_of_another_spec_than_listed_is_found(damaged: Damaged) -> None:
    with damaged.table.update_spec() as change:
        change.add_field("bucket(4, id)")
    path = damaged.change_line(partition_spec_id=1, partitions=None)
    report = damaged.table.check(only_current=True)
    assert set(kinds(report)) == {"wrong-partition-spec"}
    assert {one.path for one in report} == {path}
    assert any("written with partition spec 0, but the list says 1" in one.what for one in report)


def test_snapshots_with_the_same_sequence_number_are_found(damaged: Damaged) -> None:
    first, second, *others = damaged.table.metadata.snapshots
    same = (first, replace(second, sequence_number=first.sequence_number), *others)
    report = check_table(damaged.with_metadata(snapshots=same))
    assert any("both have number 1" in one.what for one in report), str(report)


def test_wrong_totals_are_found(damaged: Damaged) -> None:
    summary = {**(damaged.snapshot.summary or {}), "total-records": "21"}
    report = check_table(damaged.with_snapshot(summary=summary))
    only(report, "wrong-total", damaged.snapshot.manifest_list, "total-records is 21, but the manifests hold 20")


def test_snapshot_of_an_unknown_schema_is_found(damaged: Damaged) -> None:
    report = check_table(damaged.with_snapshot(schema_id=12))
    only(report, "wrong-schema", damaged.snapshot.manifest_list, "schema 12")


# Files that do not fit together


def test_duplicate_live_data_file_is_found(damaged: Damaged) -> None:
    damaged.change_entries(lambda entries: [*entries, entries[0]])
    report = damaged.table.check()
    assert "duplicate-file" in kinds(report)
    assert "wrong-row-ids" in kinds(report), "an inherited row id is given once"


def with_row_id(entry: ManifestEntry, first_row_id: int) -> ManifestEntry:
    return existing(replace(entry, data_file=replace(entry.data_file, first_row_id=first_row_id)))


def test_overlapping_row_ids_are_found(damaged: Damaged) -> None:
    damaged.change_entries(lambda entries: [with_row_id(one, 2) for one in entries])
    report = damaged.table.check()
    assert set(kinds(report)) == {"wrong-row-ids"}
    assert "overlap" in report.problems[0].what


def test_unassigned_row_ids_are_found(damaged: Damaged) -> None:
    path = damaged.change_entries(lambda entries: [with_row_id(entries[0], 1_000), *entries[1:]])
    only(damaged.table.check(), "wrong-row-ids", path, "up to 1,004")


def test_snapshots_assigning_the_same_row_ids_are_found(damaged: Damaged) -> None:
    first, second, *others = damaged.table.metadata.snapshots
    same = (first, replace(second, first_row_id=3), *others)
    report = check_table(damaged.with_metadata(snapshots=same))
    assert "wrong-row-ids" in kinds(report)
    assert any("both assigned the row ids" in one.what for one in report)


def test_manifests_without_row_ids_are_found(damaged: Damaged) -> None:
    reports = check_table(damaged.with_metadata(next_row_id=12))
    assert set(kinds(reports)) == {"wrong-row-ids"}


# Deletion vectors


def swapped(entries: list[ManifestEntry]) -> list[ManifestEntry]:
    """Let each of two vectors say it is about the other's data file."""
    one, other = (entry for entry in entries if entry.data_file.is_deletion_vector)
    return [
        replace(entry, data_file=replace(entry.data_file, referenced_data_file=name))
        for entry, name in (
            (one, other.data_file.referenced_data_file),
            (other, one.data_file.referenced_data_file),
        )
    ] + [entry for entry in entries if not entry.data_file.is_deletion_vector]


def test_swapped_vectors_are_found(damaged: Damaged) -> None:
    path = damaged.vectors()[0].file_path
    damaged.change_entries(swapped, DELETES)
    report = damaged.table.check()
    assert kinds(report) == ["wrong-deletion-vector"] * 2
    assert all(one.path == path and "is for" in one.what for one in report)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"record_count": 3}, "2 positions where 3 are recorded"),
        ({"content_offset": 5}, "is corrupt"),
        ({"content_size_in_bytes": 30}, "is corrupt"),
    ],
)
def test_entry_with_a_wrong_vector_position_is_found(damaged: Damaged, changes: dict[str, Any], text: str) -> None:
    def change(entries: list[ManifestEntry]) -> list[ManifestEntry]:
        return [
            replace(one, data_file=replace(one.data_file, **changes)) if one.data_file.record_count == 2 else one
            for one in entries
        ]

    damaged.change_entries(change, DELETES)
    report = damaged.table.check()
    assert any(one.kind == "wrong-deletion-vector" and text in one.what for one in report), str(report)


def test_vector_with_changed_bytes_is_found(damaged: Damaged) -> None:
    vector = damaged.vectors()[0]
    at = (vector.content_offset or 0) + (vector.content_size_in_bytes or 0) - 2
    damaged.change_bytes(vector.file_path, lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    only(damaged.table.check(), "wrong-deletion-vector", vector.file_path, "CRC-32")


def test_two_vectors_for_one_data_file_are_found(damaged: Damaged) -> None:
    def change(entries: list[ManifestEntry]) -> list[ManifestEntry]:
        vector = next(one for one in entries if one.data_file.is_deletion_vector)
        return [*entries, vector]

    damaged.change_entries(change, DELETES)
    report = damaged.table.check()
    assert "duplicate-deletion-vector" in kinds(report)


def test_vector_with_positions_beyond_its_file_is_found(damaged: Damaged) -> None:
    small = damaged.vectors()[0].referenced_data_file

    def change(entries: list[ManifestEntry]) -> list[ManifestEntry]:
        return [
            replace(one, data_file=replace(one.data_file, record_count=3)) if one.data_file.file_path == small else one
            for one in entries
        ]

    index = next(
        at
        for at, one in enumerate(damaged.manifests())
        if any(entry.data_file.file_path == small for entry in damaged._entries(one))
    )
    if index != 0:
        # The helper changes the newest manifest; make the one that is needed the newest.
        damaged.change_list(lambda lines: [lines[index], *(one for at, one in enumerate(lines) if at != index)])
    damaged.change_entries(change)
    report = damaged.table.check()
    assert any("has position 3, but that file has 3 rows" in one.what for one in report), str(report)


@pytest.mark.parametrize(("ids", "text"), [((99,), "columns [99]"), ((1, 98, 99), "columns [98, 99]")])
def test_equality_deletes_of_unknown_columns_are_found(damaged: Damaged, ids: tuple[int, ...], text: str) -> None:
    def change(entries: list[ManifestEntry]) -> list[ManifestEntry]:
        return [
            replace(one, data_file=replace(one.data_file, equality_ids=ids))
            if one.data_file.equality_ids is not None
            else one
            for one in entries
        ]

    path = damaged.change_entries(change, DELETES)
    only(damaged.table.check(), "wrong-equality-ids", path, text)


# Statistics


def with_statistics(damaged: Damaged, **changes: Any) -> str:
    """Give the table statistics of its current snapshot, described wrongly by the changes; return the file."""
    path = f"{damaged.table.location}/metadata/stats.puffin"
    snapshot_id = damaged.snapshot.snapshot_id
    writer = PuffinWriter()
    writer.add_blob("sketch", b"bytes", fields=(1,), snapshot_id=snapshot_id, sequence_number=1)
    data = writer.finish()
    damaged.storage.create(path, data)
    blob = BlobMetadata("sketch", snapshot_id, 1, (1,))
    statistics = StatisticsFile(snapshot_id, path, len(data), writer.footer.footer_size, (blob,))
    damaged.table.set_statistics(replace(statistics, **changes))
    return path


def test_correct_statistics_have_no_problems(damaged: Damaged) -> None:
    path = with_statistics(damaged)
    damaged.storage.create(f"{path}.parquet", b"12345")
    snapshot_id = damaged.snapshot.snapshot_id
    damaged.table.set_partition_statistics(PartitionStatisticsFile(snapshot_id, f"{path}.parquet", 5))
    report = damaged.table.check()
    assert report.ok, str(report)
    assert report.facts["statistics_files"] == 2


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"file_size_in_bytes": 12}, "wrong-statistics", "the metadata says 12"),
        ({"file_footer_size_in_bytes": 40}, "corrupt-file", "footer"),
        ({"blob_metadata": (BlobMetadata("other", 1, 1, (1,)),)}, "wrong-statistics", "no blob other"),
    ],
)
def test_wrong_statistics_are_found(damaged: Damaged, changes: dict[str, Any], kind: str, text: str) -> None:
    path = with_statistics(damaged, **changes)
    only(damaged.table.check(), kind, path, text)
    assert "informative only" in damaged.table.check().problems[0].to_do


def test_missing_statistics_are_named(damaged: Damaged) -> None:
    path = with_statistics(damaged)
    snapshot_id = damaged.snapshot.snapshot_id
    damaged.table.set_partition_statistics(PartitionStatisticsFile(snapshot_id, f"{path}.parquet", 5))
    only(damaged.table.check(), "missing-file", f"{path}.parquet", "does not exist")
    damaged.table.remove_partition_statistics(snapshot_id)
    damaged.storage.delete(path)
    only(damaged.table.check(), "missing-file", path, "does not exist")
    damaged.table.remove_statistics(snapshot_id)
    assert damaged.table.check().ok


# The report itself


def test_check_can_be_limited_to_the_current_snapshot(damaged: Damaged) -> None:
    first = damaged.table.snapshots[0]
    assert first.manifest_list is not None
    damaged.storage.delete(first.manifest_list)
    report = damaged.table.check()
    only(report, "missing-file", first.manifest_list, "manifest list")
    assert report.problems[0].snapshot_id == first.snapshot_id
    assert damaged.table.check(only_current=True).ok


def test_report_lists_a_bounded_number_of_problems(damaged: Damaged) -> None:
    for one in damaged.files():
        damaged.storage.delete(one.file_path)
    report = check_table(damaged.loaded, max_problems=2)
    assert (len(report.problems), report.further_problems) == (2, 2)
    assert "4 problems:" in str(report)
    assert "and 2 more" in str(report)
    with pytest.raises(frazil.InvalidRequestError, match="at least 1"):
        check_table(damaged.loaded, max_problems=0)


def test_each_file_is_checked_once_across_snapshots() -> None:
    damaged = Damaged(2)
    for at in range(5):
        damaged.table.append(rows(1000 + at, 1001 + at))
    assert damaged.table.check().facts["data_files"] == 9
    assert damaged.table.check().facts["manifests"] == 8


def test_odd_metadata_is_a_warning_and_not_a_problem(damaged: Damaged) -> None:
    loaded = damaged.table.state
    odd = replace(loaded, metadata=replace(loaded.metadata, oddities=("last-column-id is 1",)))
    report = check_table(odd)
    assert report.ok
    assert kinds(report) == ["odd-metadata"]
    assert "1 warning:\n  warning, odd-metadata: last-column-id is 1" in str(report)


@pytest.mark.parametrize(("kind", "is_warning"), [(DOUBLE, True), (LONG, False)])
def test_counts_missing_null_structs_are_a_warning_like_in_iceberg_java(kind: Type, *, is_warning: bool) -> None:
    struct = StructType((NestedField(2, "d", kind),))
    table = TableBuilder(Schema((NestedField(1, "s", struct),)), storage=MemoryStorage(), keeps_ids=True)
    file = table.write_data([{"s": None}, {"s": {"d": 1}}])
    table.commit(replace(file, value_counts={2: 2}, null_value_counts={2: 0}))
    report = check_table(table.load(), with_rows=True)
    assert kinds(report) == ["wrong-count"]
    assert report.ok is is_warning
    assert ("reads the rows correctly" in report.problems[0].to_do) is is_warning
