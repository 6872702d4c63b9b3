"""Streams over random histories: every file that was appended is read once."""

from __future__ import annotations

import random

import pytest

from frazil.commit.append import Append
from frazil.commit.rewrite_files import RewriteFiles
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.spec.data_file import DataFile
from frazil.streams.files import plan_stream_files
from frazil.streams.offsets import StreamOffset, parse_offset
from frazil.streams.steps import StreamLimits, StreamStart, TableStream
from tests.support.commit_lab import Lab


def read(lab: Lab, start: StreamOffset, end: StreamOffset) -> list[str]:
    batch = TableStream(lab.load()).between(start, end)
    files = [one for one in (batch.whole, batch.added) if one is not None]
    return [task.data_file.file_path for one in files for task in plan_stream_files(lab.load(), one).tasks]


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(20))
def test_every_appended_file_is_streamed_once_under_any_limits_and_history(seed: int) -> None:
    """Appends with merged and unmerged manifests, compactions, restarts and limits that change."""
    chance = random.Random(seed)
    lab = Lab(properties={"commit.manifest.min-count-to-merge": str(chance.choice([2, 3, 100]))})
    live: list[DataFile] = []

    def append(*, is_fast: bool = False) -> list[DataFile]:
        new = [lab.file([1]) for _ in range(chance.randrange(1, 5))]
        lab.commit(Append(tuple(new), is_fast=is_fast))
        return new

    for _ in range(chance.randrange(4)):
        live += append()
    offset = TableStream(lab.load()).begin(StreamStart())
    expected = [one.file_path for one in live]
    seen: list[str] = []
    for _ in range(25):
        what = chance.random()
        if what < 0.45:
            new = append(is_fast=chance.random() < 0.5)
            expected += [one.file_path for one in new]
            live += new
        elif what < 0.55 and len(live) > 1:
            removed, live = live[:2], live[2:]
            compacted = lab.file([1, 2])
            lab.commit(RewriteFiles(tuple(removed), (compacted,), lab.snapshot.snapshot_id))
            live.append(compacted)
        elif what < 0.62 and live:
            lab.commit(RewriteManifests())
        else:
            limits = StreamLimits(files=chance.choice([None, 1, 2, 3, 7]), rows=chance.choice([None, None, 2]))
            end = TableStream(lab.load()).advance(offset, limits)
            if end != offset:
                seen += read(lab, offset, end)
            offset = parse_offset(end.text)
    end = TableStream(lab.load()).advance(offset)
    seen += read(lab, offset, end) if end != offset else []
    assert sorted(seen) == sorted(expected)
