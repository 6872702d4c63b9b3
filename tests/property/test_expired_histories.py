"""Expiry on random histories of branches, tags, rewrites and rollbacks: whatever is left reads."""

from __future__ import annotations

import random

import pytest

from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.new_snapshot import Target
from frazil.commit.overwrite import Overwrite
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.commit.update_refs import CreateRef, Rollback
from frazil.errors import InvalidRequestError
from tests.support.commit_lab import Lab
from tests.support.expiry_lab import check_whole, expire, stored_file


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 40))])
def test_remaining_snapshots_are_readable_after_expiry_of_random_histories(seed: int) -> None:
    chance = random.Random(seed)
    version = chance.choice([2, 3])
    lab = Lab(partition_by=["k"], format_version=version, properties={"commit.manifest.min-count-to-merge": "2"})
    lab.commit(Append((stored_file(lab, [0]),)))
    for step in range(16):
        branch = chance.choice(["main", "b1", "b2"])
        target = Target(branch, is_staged=chance.random() < 0.1)
        head = lab.head(branch) or lab.snapshot
        files = [one.data_file for one in lab.live(head) if one.data_file.content == 0]
        kind = chance.randrange(8)
        if kind <= 2 or not files:
            lab.commit(Append((stored_file(lab, [step], chance.choice("ab")),), target))
        elif kind == 3:
            lab.commit(DeleteFiles(frozenset({chance.choice(files).file_path}), target=target))
        elif kind == 4:
            old = chance.choice(files)
            new = stored_file(lab, [step], old.partition[0])
            lab.commit(Overwrite((new,), ReadSet(head.snapshot_id), (old,), target=target))
        elif kind == 5:
            lab.commit(RewriteManifests(target=target))
        elif kind == 6:
            lab.commit(CreateRef(f"t{step}", "tag", head.snapshot_id))
        elif lab.head(branch) is not None:
            ancestors = list(lab.load().metadata.snapshots.ids)
            try:
                lab.commit(Rollback(chance.choice(ancestors), branch=branch))
            except InvalidRequestError:
                continue
        if chance.random() < 0.2:
            expire(lab, retain_last=chance.randint(1, 3))
            check_whole(lab)
    expire(lab)
    check_whole(lab)
    lab.check_readable()
