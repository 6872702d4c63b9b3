"""A random history of a table with random maintenance in between, and what must stay as it is: its rows.

Appends, deletes of every kind, overwrites, branches, tags and changes of the spec. After each procedure the rows of
every reference, with their ids in version 3, are those before it; snapshots that are left read as they did; and at the
end `check` finds nothing wrong. For tests without Spark and on it.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa

import frazil
from frazil.commit.conflicts import ReadSet
from frazil.commit.new_snapshot import Target
from frazil.commit.row_delta import RowDelta
from frazil.datafile.apply_deletes import load_positions, position_tasks
from frazil.datafile.delete_cache import DeleteCache
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors, write_position_deletes
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.scan.plan import plan_scan
from frazil.scan.tasks import FileScanTask
from frazil.spec.data_file import DataFile
from tests.support.equality_delete_writer import write_equality_deletes

STEPS = 14
LATER = 2**62


class History:
    """A table, and random things to do to it; `options` are for every rewrite of data files."""

    def __init__(
        self,
        seed: int,
        version: int,
        lake: frazil.Lake | None = None,
        *,
        steps: int = STEPS,
        has_equality_deletes: bool = True,
        **options: Any,
    ) -> None:
        self.chance = random.Random(seed)
        self.steps = steps
        self.has_equality_deletes = has_equality_deletes
        self.options = options
        self.table = (frazil.connect("memory:") if lake is None else lake).create_table(
            "db.t",
            "id bigint, kind string, v double",
            partition_by=["kind"] if self.chance.random() < 0.7 else [],
            format_version=version,
            properties={"commit.manifest-merge.enabled": self.chance.choice(["true", "false"])},
        )
        self.next_id = 0
        self.told: list[str] = []
        self.append()

    # Changes

    @property
    def branch(self) -> str:
        branches = [name for name, ref in self.table.refs.items() if ref.is_branch]
        return self.chance.choice(branches) if branches else "main"

    def append(self) -> None:
        count = self.chance.randint(1, 6)
        ids = list(range(self.next_id, self.next_id + count))
        self.next_id += count
        kinds = [self.chance.choice(["a", "b", None]) for _ in ids]
        values = pa.array([self.chance.choice([None, 0.5 * one, float("nan")]) for one in ids], pa.float64())
        rows = pa.table({"id": pa.array(ids, pa.int64()), "kind": pa.array(kinds, pa.string()), "v": values})
        self.table.append(rows, branch=self.branch)

    def tasks(self, branch: str) -> list[FileScanTask]:
        choice = SnapshotChoice() if branch == "main" else SnapshotChoice(ref=branch)
        return list(plan_scan(self.table.state, choice=choice).iter_tasks())

    def delete_positions(self) -> None:
        """Delete rows of some files by position."""
        branch = self.branch
        tasks = self.tasks(branch)
        loaded = self.table.state
        if not tasks or self.table.format_version < 2:
            return
        chosen = self.chance.sample(tasks, min(len(tasks), 2))
        rows: list[DeletedRows] = []
        removed: list[DataFile] = []
        included: list[DataFile] = []
        for task in chosen:
            count = task.data_file.record_count
            positions = self.chance.sample(range(count), self.chance.randint(1, count))
            found = DeletedRows.of(task.data_file, positions)
            if self.table.format_version >= 3:
                before = load_positions(loaded.storage, task, DeleteCache())
                if before is not None:
                    found = DeletedRows.of(task.data_file, found.positions.union(before))
                for one in position_tasks(task):
                    own = one.data_file.is_deletion_vector
                    (removed if own else included).append(one.data_file)
            rows.append(found)
        if self.table.format_version >= 3:
            files = write_deletion_vectors(rows, loaded)
        else:
            files = write_position_deletes(rows, loaded, granularity=self.chance.choice(["file", "partition"]))
        head = self.table.metadata.ref_snapshot(branch)
        self.table._run(
            RowDelta(
                tuple(files),
                ReadSet(head.snapshot_id),
                "delete",
                tuple(one.data_file for one in chosen),
                removed_deletes=tuple(removed),
                included_deletes=tuple(included),
                target=Target(branch),
            )
        )

    def delete_values(self) -> None:
        """Delete rows by their ids, in the partitions of one spec."""
        if self.table.format_version < 2 or self.next_id == 0 or not self.has_equality_deletes:
            return
        spec = self.chance.choice(self.table.metadata.partition_specs)
        ids = self.chance.sample(range(self.next_id), min(self.next_id, 3))
        partition = tuple(self.chance.choice(["a", "b", None]) for _ in spec.fields)
        files = write_equality_deletes(
            pa.table({"id": pa.array(ids, pa.int64())}),
            self.table.state,
            ["id"],
            spec_id=spec.spec_id,
            partition=partition,
        )
        self.table._run(RowDelta(tuple(files), None, target=Target(self.branch)))

    def overwrite(self) -> None:
        ids = [self.next_id]
        self.next_id += 1
        data = pa.table({"id": ids, "kind": pa.array(["a"]), "v": pa.array([1.0])})
        self.table.overwrite_partitions(data, branch=self.branch)

    def evolve(self) -> None:
        with self.table.update_spec() as update:
            if self.table.spec.fields and not self.table.spec.is_unpartitioned:
                update.remove_field(next(one.name for one in self.table.spec.fields if not one.transform.is_void))
            else:
                update.add_field("kind")

    def branch_off(self) -> None:
        name = f"b{len(self.table.refs)}"
        if self.chance.random() < 0.5:
            self.table.create_branch(name)
        else:
            self.table.create_tag(name)

    def upgrade(self) -> None:
        if self.table.format_version < 3:
            self.table.upgrade(self.table.format_version + 1)

    # Maintenance

    def maintain(self) -> None:
        """Run one procedure, and see that rows stay what they are."""
        name = self.chance.choice(
            [
                "rewrite_data_files",
                "rewrite_data_files",
                "rewrite_position_delete_files",
                "convert_equality_deletes",
                "remove_dangling_deletes",
                "rewrite_manifests",
                "expire_snapshots",
                "remove_orphan_files",
                "optimize",
            ]
        )
        options: dict[str, Any] = {}
        branch = self.branch
        if name == "rewrite_data_files":
            options = {
                "branch": branch,
                "min_input_files": self.chance.randint(1, 3),
                "rewrite_all": self.chance.random() < 0.4,
                "remove_dangling_deletes": self.chance.random() < 0.3,
                "use_starting_sequence_number": self.chance.random() < 0.7,
                "partial_progress_enabled": self.chance.random() < 0.4,
                "delete_file_threshold": self.chance.choice([1, 100]),
                "where": self.chance.choice([None, "kind = 'a'", "id >= 5", "v > 1"]),
            }
            options |= self.chance.choice(
                [{}, {"strategy": "sort", "sort_by": "v desc, id"}, {"strategy": "zorder", "sort_by": "id, v"}]
            )
            options |= self.options
        elif name == "rewrite_position_delete_files":
            options = {"branch": branch, "rewrite_all": True}
        elif name in ("convert_equality_deletes", "remove_dangling_deletes", "rewrite_manifests"):
            options = {"branch": branch}
        elif name == "expire_snapshots":
            options = {"older_than": LATER, "retain_last": self.chance.randint(1, 4)}
        elif name == "remove_orphan_files":
            listed = [(one.path, 0) for one in self.table.state.storage.list(self.table.location)]
            options = {"file_list": listed}
        before = self.state()
        self.told.append(f"{name}({options if name != 'remove_orphan_files' else ''})")
        getattr(self.table.maintain, name)(**options)
        after = self.state()
        for key, rows in before.items():
            if key in after:
                assert after[key] == rows, (key, self.told)
        assert {one for one in before if isinstance(one, str)} <= {*after}, self.told
        self.after_maintenance(after)

    def after_maintenance(self, state: dict[Any, list[str]]) -> None:
        """Look at the table after a procedure; `state` is what it holds as read in this process."""

    def state(self) -> dict[Any, list[str]]:
        """Return the rows of every reference and of every snapshot, with their ids where they have some."""
        table = self.table.refresh()
        found: dict[Any, list[str]] = {name: self.rows(ref=name) for name in table.refs}
        return found | {one.snapshot_id: self.rows(snapshot_id=one.snapshot_id) for one in table.snapshots}

    def rows(self, **choice: Any) -> list[str]:
        columns = ["id", "kind", "v"]
        if self.table.format_version >= 3:
            columns += ["_row_id", "_last_updated_sequence_number"]
        rows = self.table.scan(columns=columns, **choice).to_arrow().to_pylist()
        for row in rows:
            # Rows of before the upgrade get their ids at the first commit after it, whatever that is.
            if row.get("_row_id", 0) is None:
                row.pop("_row_id", None)
                row.pop("_last_updated_sequence_number", None)
        return sorted(map(repr, rows))

    def run(self) -> None:
        changes = [
            self.append,
            self.append,
            self.delete_positions,
            self.delete_values,
            self.overwrite,
            self.evolve,
            self.branch_off,
        ]
        upgrade_at = self.chance.randrange(self.steps)
        for at in range(self.steps):
            change = self.chance.choice(changes)
            if at == upgrade_at and self.chance.random() < 0.5:
                change = self.upgrade
            self.told.append(change.__name__)
            change()
            if change == self.upgrade:
                # Give rows their ids, so that from here on they must keep them.
                for name, ref in self.table.refs.items():
                    if ref.is_branch:
                        self.table.append(pa.table({"id": [10_000 + at], "kind": ["a"], "v": [0.0]}), branch=name)
            if self.chance.random() < 0.7:
                self.maintain()
        report = self.table.refresh().check(bounds=True)
        assert report.ok, (str(report), self.told)
