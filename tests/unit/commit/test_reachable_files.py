"""The set by which reachable files are known: a file that was added is always found, whatever its hash."""

from __future__ import annotations

from frazil.commit.reachable_files import ReachableFiles
from frazil.storage.memory import MemoryStorage


def test_every_file_ever_added_is_reachable() -> None:
    for count in (1, 2, 3, 10, 500):
        paths = [f"memory://lake/db/t/data/{count}-{at}.parquet" for at in range(count)]
        files = ReachableFiles(MemoryStorage())
        files._add(paths)
        assert files.find_unreachable(paths) == ([], [])
        more = [f"memory://lake/db/t/data/late-{count}-{at}.parquet" for at in range(count)]
        assert files.find_unreachable(more) == (more, [])
        files._add(more)
        assert files.find_unreachable(paths + more) == ([], [])
