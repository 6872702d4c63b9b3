"""Whatever is done to a table through its verbs, the check finds nothing: no false alarms, and no bad commits."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import frazil
from frazil.commit.conflicts import ReadSet
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.commit.row_delta import RowDelta
from frazil.commit.transaction import commit_actions
from frazil.datafile.write_deletes import DeletedRows, write_deletion_vectors, write_position_deletes
from frazil.expr.predicates import TRUE
from frazil.table.table import Table

KINDS = ("a", "b", "c", None)


class World:
    """A table, and what may be done to it. Each step takes a number to choose by."""

    def __init__(self, format_version: int) -> None:
        self.lake = frazil.connect("memory:")
        self.table: Table = self.lake.create_table(
            "db.t",
            "id bigint, kind string, score double",
            partition_by=["kind"],
            format_version=format_version,
            properties={"commit.manifest.min-count-to-merge": "3"},
        )
        self.next_id = 0
        self.columns = 0

    def rows(self, choice: int) -> pa.Table:
        count = choice % 5 + 1
        ids = range(self.next_id, self.next_id + count)
        self.next_id += count
        scores = [None if at % 3 == 0 else float("nan") if at % 3 == 1 else at / 7 for at in ids]
        kinds = [KINDS[(choice + at) % len(KINDS)] for at in ids]
        return pa.table({"id": pa.array(ids, pa.int64()), "kind": pa.array(kinds, pa.string()), "score": scores})

    def append(self, choice: int) -> None:
        self.table.append(self.rows(choice))

    def append_to_branch(self, choice: int) -> None:
        self.table.append(self.rows(choice), branch=f"b{choice % 2}")

    def overwrite(self, choice: int) -> None:
        self.table.overwrite(self.rows(choice), where="kind = 'a'")

    def overwrite_partitions(self, choice: int) -> None:
        self.table.overwrite_partitions(self.rows(choice))

    def delete_partition(self, choice: int) -> None:
        self.table.delete(f"kind = '{KINDS[choice % 3]}'")

    def delete_rows(self, choice: int) -> None:
        snapshot = self.table.refresh().current_snapshot
        tasks = list(self.table.scan().plan().tasks)
        if snapshot is None or not tasks or self.table.format_version == 1:
            return
        chosen = [one.data_file for one in tasks[: choice % 3 + 1] if not one.delete_files]
        deletes = [DeletedRows.of(one, [choice % one.record_count]) for one in chosen]
        write = write_deletion_vectors if self.table.format_version >= 3 else write_position_deletes
        added = tuple(write(deletes, self.table.state))
        if added:
            action = RowDelta(added, ReadSet(snapshot.snapshot_id, TRUE), "delete", tuple(chosen))
            commit_actions(self.lake.catalog, self.table.state, action)
            self.table.refresh()

    def rewrite_manifests(self, choice: int) -> None:
        if self.table.current_snapshot is not None:
            commit_actions(self.lake.catalog, self.table.refresh().state, RewriteManifests(includes_deletes=True))
            self.table.refresh()

    def add_column(self, choice: int) -> None:
        self.columns += 1
        with self.table.update_schema() as update:
            update.add_column(f"extra{self.columns}", "string")

    def change_spec(self, choice: int) -> None:
        with self.table.update_spec() as update:
            if len(self.table.spec.fields) == 1:
                update.add_field("bucket(2, id)")
            else:
                update.remove_field(self.table.spec.fields[-1].name)

    def upgrade(self, choice: int) -> None:
        self.table.upgrade(min(self.table.format_version + 1, 3))

    def roll_back(self, choice: int) -> None:
        history = [one.snapshot_id for one in self.table.snapshots]
        if history:
            self.table.set_current_snapshot(history[choice % len(history)])

    def expire(self, choice: int) -> None:
        self.table.expire_snapshots(older_than=2**62, retain_last=choice % 3 + 1)


STEPS: tuple[Callable[[World, int], None], ...] = (
    World.append,
    World.append,
    World.append_to_branch,
    World.overwrite,
    World.overwrite_partitions,
    World.delete_partition,
    World.delete_rows,
    World.delete_rows,
    World.rewrite_manifests,
    World.add_column,
    World.change_spec,
    World.upgrade,
    World.roll_back,
    World.expire,
)


CHANGES = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 100)), min_size=3, max_size=10)
Change = tuple[Callable[[World, int], None], int]


def check_each(version: int, steps: list[Change]) -> None:
    """Make the changes, and examine the table after each."""
    world = World(version)
    world.append(3)
    done: list[str] = []
    for step, choice in steps:
        done.append(step.__name__)
        try:
            step(world, choice)
        except frazil.InvalidRequestError as error:
            # What cannot be done to this table (a delete that would need rows) is refused, and changes nothing.
            done.append(f"refused: {error.message}")
        report = world.table.refresh().check(threads=1)
        assert report.ok, f"{done}\n{report}"
    report = world.table.check(bounds=True, threads=1)
    assert report.ok, f"{done}\n{report}"


@pytest.mark.extended
@settings(max_examples=6)
@given(st.integers(1, 3), CHANGES)
def test_check_finds_no_problem_after_any_sequence_of_changes(version: int, steps: list[Change]) -> None:
    check_each(version, steps)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(1, 3), CHANGES)
def test_check_finds_no_problem_after_many_sequences_of_changes(version: int, steps: list[Change]) -> None:
    check_each(version, steps)
