"""A thousand random graphs of snapshots through expiry and the removal of orphans: no live file is ever deleted.

Branches that diverge, tags, rollbacks, staged snapshots that are published or not, references that are dropped, files
that are removed and rewritten, manifests that are merged. What each snapshot led to is noted when it is made, before
any of the code that is tested here has a say in it.
"""

from __future__ import annotations

import random

import pytest

from frazil.commit.append import Append
from frazil.commit.cherry_pick import CherryPick
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.new_snapshot import Target
from frazil.commit.overwrite import Overwrite
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.commit.row_delta import RowDelta
from frazil.commit.update_refs import CreateRef, DropRef, Rollback
from frazil.errors import FrazilError
from frazil.maintenance.expire_snapshots import expire_snapshots
from frazil.maintenance.orphan_files import DAY_MS, remove_orphan_files
from frazil.spec.data_file import DataFile
from frazil.spec.snapshot import Snapshot
from tests.support.commit_lab import Lab

GRAPHS = 1_000
AT_ONCE = 10
STEPS = 14


class Graph:
    """A table whose history is made at random, and what each of its snapshots led to when it was made."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        merges = {"commit.manifest.min-count-to-merge": str(self.chance.choice([2, 3, 100]))}
        self.lab = Lab(partition_by=["k"], format_version=self.chance.choice([2, 3]), properties=merges)
        self.noted: dict[int, frozenset[str]] = {}
        self.told: list[str] = []

    def new_file(self, k: str | None = None) -> DataFile:
        file = self.lab.file([self.chance.randrange(1000)], k or self.chance.choice("ab"))
        self.lab.storage.create(file.file_path, b"rows")
        return file

    def run(self) -> None:
        self.lab.commit(Append((self.new_file(), self.new_file())))
        self.note()
        changes = [self.append, self.append, self.delete, self.overwrite, self.delete_rows, self.merge, self.stray]
        steps = [*changes, self.refer, self.forget, self.go_back, self.publish, self.expire, self.clean]
        for _ in range(STEPS):
            step = self.chance.choice(steps)
            self.told.append(step.__name__)
            try:
                step()
            except FrazilError as error:
                # What the history does not allow is no change; it must be one all the same.
                self.told.append(error.message)
            self.note()
        self.expire_by_age()
        self.clean()
        self.check(no_more=True)

    def note(self) -> None:
        """Keep what new snapshots lead to."""
        for snapshot in self.lab.load().metadata.snapshots:
            if snapshot.snapshot_id not in self.noted:
                self.noted[snapshot.snapshot_id] = self.paths(snapshot)

    def paths(self, snapshot: Snapshot) -> frozenset[str]:
        """Return every file that a snapshot leads to: lists, manifests, data, deletes."""
        assert snapshot.manifest_list is not None
        manifests = [one.manifest_path for one in self.lab.manifests(snapshot)]
        return frozenset(
            (snapshot.manifest_list, *manifests, *(one.data_file.file_path for one in self.lab.live(snapshot)))
        )

    def check(self, *, no_more: bool = False) -> None:
        """Check that all snapshots lead to what they did, and that it is there; at the end also that no more is."""
        left: set[str] = set()
        stored = self.lab.stored()
        for snapshot in self.lab.load().metadata.snapshots:
            paths = self.paths(snapshot)
            assert paths == self.noted[snapshot.snapshot_id], self.told
            assert paths <= stored, (sorted(paths - stored), self.told)
            left |= paths
        if no_more:
            others = {one for one in stored - left if not one.endswith(".metadata.json")}
            assert others == set(), (sorted(others), self.told)

    # What happens to the table

    def target(self) -> Target:
        return Target(self.chance.choice(["main", "main", "b1", "b2"]), is_staged=self.chance.random() < 0.15)

    def files(self, target: Target) -> list[DataFile]:
        head = self.lab.head(target.branch)
        return [] if head is None else [one.data_file for one in self.lab.live(head) if one.data_file.content == 0]

    def append(self) -> None:
        self.lab.commit(Append((self.new_file(),), self.target()))

    def delete(self) -> None:
        target = self.target()
        files = self.files(target)
        if files:
            self.lab.commit(DeleteFiles(frozenset({self.chance.choice(files).file_path}), target=target))

    def overwrite(self) -> None:
        target = self.target()
        files = self.files(target)
        head = self.lab.head(target.branch)
        if files and head is not None:
            old = self.chance.choice(files)
            new = self.new_file(old.partition[0])
            self.lab.commit(Overwrite((new,), ReadSet(head.snapshot_id), (old,), target=target))

    def delete_rows(self) -> None:
        target = Target(self.chance.choice(["main", "b1"]))
        head = self.lab.head(target.branch)
        if head is not None:
            deletes = self.lab.equality_deletes([self.chance.randrange(1000)])
            if not self.lab.storage.exists(deletes.file_path):
                self.lab.storage.create(deletes.file_path, b"deletes")
            self.lab.commit(RowDelta((deletes,), None, target=target))

    def merge(self) -> None:
        self.lab.commit(RewriteManifests(target=Target(self.chance.choice(["main", "b1", "b2"]))))

    def refer(self) -> None:
        known = sorted(self.lab.load().metadata.snapshots.ids)
        kind = self.chance.choice(["tag", "branch"])
        name = f"t{len(self.told)}" if kind == "tag" else self.chance.choice(["b1", "b2", "b3"])
        self.lab.commit(CreateRef(name, kind, self.chance.choice(known)))  # type: ignore[arg-type]

    def forget(self) -> None:
        names = [one for one in self.lab.load().metadata.refs if one != "main"]
        if names:
            name = self.chance.choice(names)
            ref = self.lab.load().metadata.ref(name)
            self.lab.commit(DropRef(name, "branch" if ref.is_branch else "tag"))

    def go_back(self) -> None:
        known = sorted(self.lab.load().metadata.snapshots.ids)
        self.lab.commit(Rollback(self.chance.choice(known), branch=self.chance.choice(["main", "b1"])))

    def publish(self) -> None:
        self.lab.commit(CherryPick(self.chance.choice(sorted(self.lab.load().metadata.snapshots.ids))))

    def stray(self) -> None:
        self.new_file()

    # What must lose nothing

    def expire(self) -> None:
        if self.chance.random() < 0.3:
            # By name, wherever it stands in the graph: one that a reference leads to is refused.
            loaded = self.lab.load()
            chosen = (self.chance.choice(sorted(loaded.metadata.snapshots.ids)),)
            expire_snapshots(self.lab.catalog, loaded, ExpireSnapshots(snapshot_ids=chosen), threads=1)
            self.check()
        else:
            self.expire_by_age()

    def expire_by_age(self) -> None:
        action = ExpireSnapshots(older_than_ms=self.lab.now_ms + 1000, retain_last=self.chance.randint(1, 3))
        expire_snapshots(self.lab.catalog, self.lab.load(), action, threads=1)
        self.check()

    def clean(self) -> None:
        self.lab.now_ms += 4 * DAY_MS
        remove_orphan_files(self.lab.catalog, self.lab.load(), threads=1)
        self.check()


@pytest.mark.parametrize("seed", range(3))
def test_no_live_file_is_deleted_from_random_graphs(seed: int) -> None:
    Graph(GRAPHS + seed).run()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(GRAPHS // AT_ONCE))
def test_no_live_file_is_deleted_from_a_thousand_graphs(part: int) -> None:
    for seed in range(part * AT_ONCE, (part + 1) * AT_ONCE):
        Graph(seed).run()
