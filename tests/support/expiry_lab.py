"""Expiry in a lab: files that are in storage, and whether what is left still reads."""

from __future__ import annotations

from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.expired_files import ExpiredFiles, delete_expired_files
from frazil.spec.data_file import DataFile
from tests.support.commit_lab import Lab


def stored_file(lab: Lab, ids: list[int], k: str = "a") -> DataFile:
    """Return a data file that is in storage too."""
    file = lab.file(ids, k)
    lab.storage.create(file.file_path, b"rows")
    return file


def expire(lab: Lab, **options: object) -> ExpiredFiles:
    """Expire snapshots and delete their files."""
    before = lab.load()
    lab.commit(ExpireSnapshots(**{"older_than_ms": lab.now_ms + 1000, **options}))  # type: ignore[arg-type]
    return delete_expired_files(lab.catalog, before, lab.load(), threads=1)


def check_whole(lab: Lab) -> None:
    """Check that every snapshot is readable down to its data files."""
    for snapshot in lab.load().metadata.snapshots:
        for path in lab.paths(snapshot):
            assert lab.storage.exists(path), path
