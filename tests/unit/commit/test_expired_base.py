"""A commit whose starting state expires while it is being made: it starts from the present state instead."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import frazil
from frazil.commit.append import Append
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.expired_files import delete_expired_files
from frazil.errors import ConcurrentChangeError, MissingFileError
from tests.support.commit_lab import Lab


def expire(lab: Lab) -> None:
    before = lab.load()
    lab.commit(ExpireSnapshots(older_than_ms=lab.now_ms + 1000))
    delete_expired_files(lab.catalog, before, lab.load(), threads=1)


def test_append_survives_expiry_of_its_base() -> None:
    lab = Lab()
    one, two, mine = lab.file([1]), lab.file([2]), lab.file([3])
    lab.commit(Append((one,)))
    stale = lab.load()
    lab.commit(Append((two,)))
    expire(lab)
    lab.commit(Append((mine,)), loaded=stale)
    assert lab.paths() == {one.file_path, two.file_path, mine.file_path}
    lab.check_readable()


def test_concurrent_removal_is_still_a_conflict() -> None:
    lab = Lab()
    one = lab.file([1])
    lab.commit(Append((one, lab.file([2]))))
    stale = lab.load()
    lab.commit(DeleteFiles(frozenset({one.file_path})))
    expire(lab)
    with pytest.raises(ConcurrentChangeError):
        lab.commit(DeleteFiles(frozenset({one.file_path})), loaded=stale)


def test_file_missing_from_the_current_state_is_reported() -> None:
    lab = Lab()
    lab.commit(Append((lab.file([1]),)))
    lab.storage.delete(lab.snapshot.manifest_list or "")
    files = lab.stored()
    with pytest.raises(MissingFileError):
        lab.commit(Append((lab.file([2]),)))
    assert lab.stored() == files


def test_long_append_survives_an_expiry() -> None:
    lake = frazil.connect("memory:")
    table = lake.create_table("db.t", "id bigint")
    table.append(pa.table({"id": [1]}))
    other = lake.table("db.t")

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": pa.array([2])})
        other.append(pa.table({"id": [3]}))
        other.expire_snapshots(older_than=2**62)
        yield pa.record_batch({"id": pa.array([4])})

    table.append(pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches()))
    assert sorted(table.scan().to_arrow().column(0).to_pylist()) == [1, 2, 3, 4]
    assert table.check(bounds=True).ok
