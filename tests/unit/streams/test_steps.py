"""Streams over tables, without Spark: where they begin, how far batches reach, and which files they read."""

from __future__ import annotations

import pytest

from frazil.commit.append import Append
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.overwrite import Overwrite
from frazil.commit.rewrite_files import RewriteFiles
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.commit.update_properties import UpdateProperties
from frazil.commit.update_refs import Rollback
from frazil.errors import InvalidRequestError, SnapshotNotFoundError, UnsupportedError
from frazil.expr.extract import parse_predicate
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.read_manifests import read_manifest_list
from frazil.spec.data_file import DataFile
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.manifest import ManifestFile
from frazil.spec.retention import GUARD_PREFIX
from frazil.spec.snapshot import Snapshot
from frazil.storage.base import Storage
from frazil.streams.files import StreamFiles, plan_stream_files
from frazil.streams.offsets import START, StreamOffset, parse_offset
from frazil.streams.steps import (
    NO_LIMITS,
    NotAppends,
    StreamLimits,
    StreamRules,
    StreamStart,
    TableStream,
)
from tests.support.commit_lab import Lab

SKIP = StreamRules(not_appends=NotAppends.SKIP)


def stream(lab: Lab, rules: StreamRules | None = None) -> TableStream:
    return TableStream(lab.load(), rules or StreamRules())


def paths(files: StreamFiles | None, lab: Lab, text: str = "true") -> list[str]:
    if files is None:
        return []
    plan = plan_stream_files(lab.load(), files, parse_predicate(text))
    return [task.data_file.file_path for task in plan.tasks]


def read(lab: Lab, start: StreamOffset, end: StreamOffset, rules: StreamRules | None = None) -> list[str]:
    batch = stream(lab, rules).between(start, end)
    return sorted([*paths(batch.whole, lab), *paths(batch.added, lab)])


def drain(
    lab: Lab, start: StreamOffset, limits: StreamLimits = NO_LIMITS, rules: StreamRules | None = None
) -> tuple[list[list[str]], StreamOffset]:
    """Read batch by batch until nothing is left."""
    found: list[list[str]] = []
    while True:
        end = stream(lab, rules).advance(start, limits)
        assert end == parse_offset(end.text)
        if end == start:
            return found, end
        found.append(read(lab, start, end, rules))
        start = end


def append(lab: Lab, count: int = 1, rows: int = 1) -> list[DataFile]:
    files = [lab.file(range(1, rows + 1)) for _ in range(count)]
    lab.commit(Append(tuple(files)))
    return files


def named(files: list[DataFile]) -> list[str]:
    return [one.file_path for one in files]


@pytest.fixture
def lab() -> Lab:
    return Lab()


# Where it begins


def test_whole_table_comes_first_and_new_rows_follow(lab: Lab) -> None:
    old = append(lab, 2) + append(lab, 1)
    begun = stream(lab).begin(StreamStart())
    assert begun == StreamOffset(lab.snapshot.snapshot_id, 0, scan_all_files=True)
    new = append(lab, 2)
    batches, end = drain(lab, begun)
    assert [sorted(one) for one in batches] == [sorted(named(old + new))]
    assert end == StreamOffset(lab.snapshot.snapshot_id, 2, is_done=True)


def test_removed_files_are_not_part_of_the_initial_snapshot(lab: Lab) -> None:
    gone, kept = append(lab), append(lab)
    lab.commit(DeleteFiles(frozenset(named(gone))))
    assert drain(lab, stream(lab).begin(StreamStart()))[0] == [named(kept)]


def test_table_without_snapshots_is_streamed_from_its_first(lab: Lab) -> None:
    begun = stream(lab).begin(StreamStart())
    assert begun.is_start
    assert stream(lab).advance(begun) == begun
    files = append(lab) + append(lab, 2)
    assert drain(lab, begun)[0] == [named(files)]


def test_latest_skips_existing_rows(lab: Lab) -> None:
    append(lab, 3)
    begun = stream(lab).begin(StreamStart(is_latest=True))
    assert drain(lab, begun)[0] == []
    assert drain(lab, begun)[1] == begun
    new = append(lab)
    assert drain(lab, begun)[0] == [named(new)]


def test_start_snapshot_is_inclusive(lab: Lab) -> None:
    append(lab)
    one = append(lab)
    at = lab.snapshot.snapshot_id
    two = append(lab)
    assert drain(lab, stream(lab).begin(StreamStart(snapshot_id=at)))[0] == [named(one + two)]
    assert drain(lab, stream(lab).begin(StreamStart(after_snapshot_id=at)))[0] == [named(two)]
    with pytest.raises(SnapshotNotFoundError, match="stream-from-snapshot 99: branch 'main' has no such snapshot"):
        stream(lab).begin(StreamStart(snapshot_id=99))


def test_start_time_is_the_first_snapshot_at_or_after_it(lab: Lab) -> None:
    append(lab)
    one = append(lab)
    at = lab.snapshot.timestamp_ms
    two = append(lab)
    assert drain(lab, stream(lab).begin(StreamStart(timestamp_ms=at)))[0] == [named(one + two)]
    later = StreamStart(timestamp_ms=lab.now_ms + 100)
    begun = stream(lab).begin(later)
    assert begun.is_start
    # What a checkpoint keeps is enough to go on.
    begun = parse_offset(begun.text)
    assert drain(lab, begun)[0] == []
    lab.now_ms += 200
    three = append(lab)
    assert drain(lab, begun)[0] == [named(three)]


def test_earliest_start_after_expiry_is_all_live_files(lab: Lab) -> None:
    first, second = append(lab), append(lab)
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1, retain_last=1))
    third = append(lab)
    begun = stream(lab).begin(StreamStart(is_earliest=True))
    assert begun.scan_all_files
    assert sorted(drain(lab, begun)[0][0]) == named(first + second + third)


# Limits


def test_file_limit_is_exact_and_row_and_byte_limits_are_soft(lab: Lab) -> None:
    begun = stream(lab).begin(StreamStart())
    files = append(lab, 2, rows=10) + append(lab, 3, rows=10) + append(lab, 1, rows=10)
    expected = named(files)

    def sizes(limits: StreamLimits) -> list[int]:
        batches = drain(lab, begun, limits)[0]
        assert [path for batch in batches for path in batch] == expected
        return [len(batch) for batch in batches]

    assert sizes(StreamLimits(files=1)) == [1] * 6
    assert sizes(StreamLimits(files=2)) == [2, 2, 2]
    assert sizes(StreamLimits(files=4)) == [4, 2]
    assert sizes(StreamLimits(rows=25)) == [3, 3]
    assert sizes(StreamLimits(rows=1)) == [1] * 6
    assert sizes(StreamLimits(size_bytes=2000)) == [2, 2, 2]
    assert sizes(StreamLimits(files=3, rows=15)) == [2, 2, 2]


def test_limits_split_the_initial_snapshot_with_deletes_applied(lab: Lab) -> None:
    files = append(lab, 5)
    begun = stream(lab).begin(StreamStart())
    batches, end = drain(lab, begun, StreamLimits(files=2))
    assert [len(one) for one in batches] == [2, 2, 1]
    assert sorted(path for one in batches for path in one) == named(files)
    assert not end.scan_all_files


def test_summaries_suffice_to_admit_whole_snapshots(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = stream(lab).begin(StreamStart())
    for _ in range(20):
        append(lab)
    lists: list[int] = []

    def counted(storage: Storage, snapshot: Snapshot, cache: ManifestCache | None) -> list[ManifestFile]:
        lists.append(snapshot.snapshot_id)
        return read_manifest_list(storage, snapshot, cache)

    monkeypatch.setattr("frazil.streams.files.read_manifest_list", counted)
    monkeypatch.setattr("frazil.streams.files.read_manifest", None)
    end = stream(lab).advance(begun, StreamLimits(files=10))
    assert end.snapshot_id == lab.load().metadata.snapshots[9].snapshot_id
    assert lists == [end.snapshot_id]
    batch = stream(lab).between(begun, end)
    assert batch.added is not None and [len(run) for run in batch.added.runs] == [10]


# What is no append


def overwritten(lab: Lab) -> tuple[list[DataFile], list[DataFile], list[DataFile]]:
    first = append(lab)
    new = lab.file([7])
    lab.commit(Overwrite((new,), None, removed=tuple(first)))
    return first, [new], append(lab)


def test_non_append_is_refused_by_name_after_earlier_rows(lab: Lab) -> None:
    begun = stream(lab).begin(StreamStart())
    first, _, _ = overwritten(lab)
    end = stream(lab).advance(begun)
    assert read(lab, begun, end) == named(first)
    changed = lab.load().metadata.snapshots[1].snapshot_id
    with pytest.raises(UnsupportedError, match=f"past snapshot {changed} .*not an append .overwrite") as refused:
        stream(lab).advance(end)
    assert "streaming-changes: changes" in str(refused.value)


def test_non_append_is_skipped_on_request(lab: Lab) -> None:
    begun = stream(lab).begin(StreamStart())
    first, _, last = overwritten(lab)
    assert drain(lab, begun, rules=SKIP)[0] == [named(first + last)]
    assert drain(lab, begun, rules=StreamRules(skips_overwrites=True))[0] == [named(first + last)]
    with pytest.raises(UnsupportedError):
        drain(lab, begun, rules=StreamRules(skips_deletes=True))


def test_files_added_by_an_overwrite_are_read_on_request(lab: Lab) -> None:
    begun = stream(lab).begin(StreamStart())
    first, new, last = overwritten(lab)
    rules = StreamRules(not_appends=NotAppends.ADDED_FILES)
    assert sorted(drain(lab, begun, rules=rules)[0][0]) == sorted(named(first + new + last))


def test_compactions_are_skipped_without_a_batch(lab: Lab) -> None:
    begun = stream(lab).begin(StreamStart())
    files = append(lab, 2)
    _, end = drain(lab, begun)
    lab.commit(RewriteFiles(tuple(files), (lab.file([1, 2]),), lab.snapshot.snapshot_id))
    lab.commit(RewriteManifests())
    assert stream(lab).advance(end) == end
    new = append(lab)
    assert drain(lab, end)[0] == [named(new)]


def test_long_series_of_compactions_moves_the_offset_before_expiry(lab: Lab) -> None:
    begun = stream(lab).begin(StreamStart())
    files = append(lab, 2)
    _, end = drain(lab, begun)
    old = tuple(files)
    for _ in range(3):
        new = (lab.file([1, 2]),)
        lab.commit(RewriteFiles(old, new, lab.snapshot.snapshot_id))
        old = new
        lab.now_ms += 3_600_000
    moved = stream(lab).advance(end)
    assert moved.snapshot_id == lab.snapshot.snapshot_id
    assert read(lab, end, moved) == []
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1, retain_last=1))
    added = append(lab)
    assert drain(lab, moved)[0] == [named(added)]


def test_files_compacted_meanwhile_are_read_as_added(lab: Lab) -> None:
    begun = stream(lab).begin(StreamStart())
    files = append(lab, 2)
    lab.commit(RewriteFiles(tuple(files), (lab.file([1, 2]),), lab.snapshot.snapshot_id))
    last = append(lab)
    assert drain(lab, begun)[0] == [named(files + last)]


# What is lost


def test_expired_first_snapshot_does_not_affect_a_later_offset(lab: Lab) -> None:
    begun = stream(lab).begin(StreamStart())
    for _ in range(3):
        append(lab)
    _, end = drain(lab, begun)
    append(lab)
    lab.commit(ExpireSnapshots(snapshot_ids=tuple(one.snapshot_id for one in lab.load().metadata.snapshots[:2])))
    new = append(lab)
    assert len(drain(lab, end)[0][0]) == 2
    assert named(new)[0] in drain(lab, end)[0][0]


def test_snapshot_of_an_offset_may_expire_once_read(lab: Lab) -> None:
    append(lab, 2)
    end = stream(lab).advance(stream(lab).begin(StreamStart()))
    new = append(lab)
    lab.commit(ExpireSnapshots(snapshot_ids=(end.snapshot_id,)))
    assert drain(lab, end)[0] == [named(new)]
    half = StreamOffset(end.snapshot_id, 1)
    with pytest.raises(SnapshotNotFoundError, match="expired before it was read to its end"):
        drain(lab, half)


@pytest.mark.parametrize("rewrite", ["files", "manifests", "merged manifests"])
def test_snapshot_of_an_offset_may_expire_once_read_after_rewrites(lab: Lab, rewrite: str) -> None:
    if rewrite == "merged manifests":
        lab.commit(UpdateProperties(FrozenMap({"commit.manifest.min-count-to-merge": "2"})))
    append(lab)
    files = append(lab, 2)
    end = parse_offset(drain(lab, stream(lab).begin(StreamStart()))[1].text)
    if rewrite == "files":
        lab.commit(RewriteFiles(tuple(files), (lab.file([1, 2]),), lab.snapshot.snapshot_id))
    elif rewrite == "manifests":
        lab.commit(RewriteManifests())
    merged = append(lab) if rewrite == "merged manifests" else []
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1, retain_last=1))
    assert [one.snapshot_id for one in lab.load().metadata.snapshots] == [lab.snapshot.snapshot_id]
    assert [path for one in drain(lab, end)[0] for path in one] == named(merged)
    new = append(lab)
    batches, end = drain(lab, end)
    assert [path for one in batches for path in one] == named(merged + new)
    assert end.snapshot_id == lab.snapshot.snapshot_id


def test_unread_expired_snapshots_are_reported(lab: Lab) -> None:
    append(lab)
    end = stream(lab).advance(stream(lab).begin(StreamStart()))
    for _ in range(3):
        append(lab)
    gone = tuple(one.snapshot_id for one in lab.load().metadata.snapshots[:3])
    oldest = lab.snapshot.snapshot_id
    lab.commit(ExpireSnapshots(snapshot_ids=gone))
    with pytest.raises(SnapshotNotFoundError) as lost:
        stream(lab).advance(end)
    assert f"snapshot {end.snapshot_id} and its successors up to snapshot {gone[2]} have expired" in str(lost.value)
    assert f"stream-from-snapshot={oldest}" in str(lost.value)


def test_expiry_keeps_what_a_guarded_stream_needs(lab: Lab) -> None:
    append(lab)
    append(lab)
    end = stream(lab).advance(stream(lab).begin(StreamStart()))
    guard = f"{GUARD_PREFIX}orders"
    lab.commit(UpdateProperties(FrozenMap({guard: str(end.snapshot_id)})))
    new = append(lab) + append(lab)
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1, retain_last=1))
    left = [one.snapshot_id for one in lab.load().metadata.snapshots]
    assert len(left) == 3 and left[0] == end.snapshot_id
    assert drain(lab, end)[0] == [named(new)]
    with pytest.raises(InvalidRequestError, match="the stream 'orders' still needs it"):
        lab.commit(ExpireSnapshots(snapshot_ids=(left[1],)))
    lab.commit(UpdateProperties(removals=frozenset({guard})))
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1, retain_last=1))
    assert len(lab.load().metadata.snapshots) == 1


def test_expiry_keeps_everything_for_a_guarded_stream_started_on_an_empty_table(lab: Lab) -> None:
    guard = f"{GUARD_PREFIX}orders"
    lab.commit(UpdateProperties(FrozenMap({guard: str(START.snapshot_id)})))
    new = append(lab) + append(lab)
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1, retain_last=1))
    assert drain(lab, START)[0] == [named(new)]
    lab.commit(UpdateProperties(removals=frozenset({guard})))
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1, retain_last=1))
    assert len(lab.load().metadata.snapshots) == 1


def test_expiry_keeps_everything_for_a_guarded_stream_with_a_future_start(lab: Lab) -> None:
    append(lab)
    append(lab)
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1, retain_last=1))
    begun = stream(lab).begin(StreamStart(timestamp_ms=lab.now_ms + 100))
    lab.commit(UpdateProperties(FrozenMap({f"{GUARD_PREFIX}orders": str(begun.snapshot_id)})))
    lab.now_ms += 200
    new = append(lab) + append(lab)
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1, retain_last=1))
    assert drain(lab, begun)[0] == [named(new)]


def test_rolled_back_table_is_reported(lab: Lab) -> None:
    append(lab)
    first = lab.snapshot.snapshot_id
    append(lab)
    end = stream(lab).advance(stream(lab).begin(StreamStart()))
    lab.commit(Rollback(first))
    with pytest.raises(SnapshotNotFoundError, match="set back or replaced"):
        stream(lab).advance(end)
    append(lab)
    with pytest.raises(SnapshotNotFoundError, match="set back or replaced"):
        stream(lab).advance(end)


def test_offset_of_another_table_is_reported(lab: Lab) -> None:
    append(lab)
    with pytest.raises(SnapshotNotFoundError, match="the checkpoint is of another table"):
        stream(lab).advance(StreamOffset(12345, 1))


# How far behind


def behind(lab: Lab, offset: StreamOffset, rules: StreamRules | None = None) -> tuple[int, int, int]:
    lag = stream(lab, rules).lag(offset)
    return lag.snapshots, lag.files, lag.rows


def test_backlog_includes_the_rest_of_the_current_snapshot(lab: Lab) -> None:
    append(lab, 5, rows=10)
    whole = stream(lab).begin(StreamStart())
    assert behind(lab, whole) == (1, 5, 50)
    part = stream(lab).advance(whole, StreamLimits(files=2))
    assert behind(lab, part) == (1, 3, 30)
    append(lab, 3, rows=10)
    assert behind(lab, part) == (2, 6, 60)
    done = stream(lab).advance(part)
    assert behind(lab, done) == (0, 0, 0)
    append(lab, 4, rows=10)
    assert behind(lab, stream(lab).advance(done, StreamLimits(files=1))) == (1, 3, 30)
    assert behind(lab, START) == (3, 12, 120)


def test_skipped_snapshots_are_not_part_of_the_backlog(lab: Lab) -> None:
    files = append(lab, 2, rows=10)
    done = stream(lab).advance(stream(lab).begin(StreamStart()))
    lab.commit(RewriteFiles(tuple(files), (merged := lab.file(range(1, 21)),), lab.snapshot.snapshot_id))
    assert behind(lab, done) == (0, 0, 0)
    lab.commit(Overwrite((lab.file([1, 2, 3]),), None, removed=(merged,)))
    assert behind(lab, done, SKIP) == (0, 0, 0)
    assert behind(lab, done) == (1, 1, 3), "the next batch refuses it"
    append(lab, 1, rows=10)
    assert behind(lab, done, SKIP) == (1, 1, 10)


# Offsets


def test_offsets_match_the_format_of_iceberg_java() -> None:
    assert StreamOffset(7, 2).text == '{"version":1,"snapshot_id":7,"position":2,"scan_all_files":false}'
    assert START.text == '{"version":1,"snapshot_id":-1,"position":-1,"scan_all_files":false}'


def test_offset_beyond_the_files_of_its_snapshot_is_recognised() -> None:
    done = StreamOffset(7, 2, is_done=True)
    assert done.text == '{"version":1,"snapshot_id":7,"position":2,"scan_all_files":false,"done":true}'
    assert parse_offset(done.text) == done


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "7",
        '{"version":1}',
        '{"version":2,"snapshot_id":7,"position":2,"scan_all_files":false}',
        '{"version":1,"snapshot_id":"7","position":2,"scan_all_files":false}',
        '{"version":1,"snapshot_id":7,"position":-2,"scan_all_files":false}',
        '{"version":1,"snapshot_id":7,"position":2}',
        '{"version":1,"snapshot_id":7,"position":true,"scan_all_files":false}',
        '{"version":1,"snapshot_id":7,"position":2,"scan_all_files":true,"done":true}',
        '{"version":1,"snapshot_id":7,"position":2,"scan_all_files":false,"done":"yes"}',
        '{"version":1,"snapshot_id":-1,"position":-1,"scan_all_files":false,"done":true}',
        '{"version":1,"snapshot_id":-1,"position":-1,"scan_all_files":false,"since_ms":"now"}',
        '{"version":1,"snapshot_id":7,"position":2,"scan_all_files":false,"since_ms":5}',
        '{"version":1,"snapshot_id":7,"posi',
    ],
)
def test_damaged_offset_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="Cannot continue a stream from the offset"):
        parse_offset(text)


def test_filters_prune_the_files_of_a_batch(lab: Lab) -> None:
    begun = stream(lab).begin(StreamStart())
    one, two = lab.file([1]), lab.file([50])
    lab.commit(Append((one, two)))
    three = lab.file([60])
    lab.commit(Append((three,)))
    batch = stream(lab).between(begun, stream(lab).advance(begun))
    assert sorted(paths(batch.added, lab, "id > 10")) == named([two, three])
