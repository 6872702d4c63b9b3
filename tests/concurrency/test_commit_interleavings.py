"""All pairs of operations on one table, and triples by chance, in every order of their load and commit steps.

Rows are modelled: a file is a list of rows known to the test, deletes are read as a reader would. An operation plans
on the rows it sees, then commits. Whatever two of them do to each other, the rows afterwards must be those of one
after the other, in some order, or the one that came second must have been refused and changed nothing. Operations
that change no rows are held to the same, by columns, sort order, properties and references.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest

from frazil.commit.action import Action
from frazil.commit.append import Append
from frazil.commit.cherry_pick import PublishChanges
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.new_snapshot import Target
from frazil.commit.overwrite import Overwrite
from frazil.commit.replace_partitions import ReplacePartitions
from frazil.commit.rewrite_files import RewriteFiles
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.commit.row_delta import RowDelta
from frazil.commit.update_properties import UpdateProperties
from frazil.commit.update_refs import CreateRef, Rollback
from frazil.commit.update_schema import UpdateSchema
from frazil.commit.update_sort_order import UpdateSortOrder
from frazil.commit.write_manifests import AddedFile
from frazil.errors import AlreadyExistsError, ConcurrentChangeError, InvalidRequestError, NotFoundError
from frazil.expr.extract import parse_predicate
from frazil.expr.predicates import Predicate
from frazil.loaded import LoadedTable
from frazil.scan.plan import plan_scan
from frazil.scan.tasks import FileScanTask
from frazil.spec.data_file import DataFile, FileContent
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.properties import IsolationLevel
from tests.support.commit_lab import Lab

Row = tuple[int, str, int]
"""Id, partition and value."""
View = tuple[list[Row], tuple[str, ...], str, str, tuple[str, ...]]


class World:
    """A table whose rows the test knows."""

    def __init__(self, version: int, isolation: IsolationLevel) -> None:
        self.lab = Lab(
            partition_by=["k"], format_version=version, properties={"commit.manifest.min-count-to-merge": "3"}
        )
        self.version = version
        self.isolation = isolation
        self.files: dict[str, list[Row]] = {}
        self.positions: dict[str, list[int]] = {}
        self.ids: dict[str, int] = {}
        self.lab.commit(Append((self.write([(1, "a", 1), (2, "a", 2)]), self.write([(3, "a", 3)]))))
        self.lab.commit(Append((self.write([(4, "b", 4)]),)))

    def write(self, rows: list[Row]) -> DataFile:
        """Return a data file with rows of one partition."""
        file = self.lab.file([one[0] for one in rows], rows[0][1])
        self.files[file.file_path] = rows
        return file

    def tasks(self, loaded: LoadedTable) -> list[FileScanTask]:
        """Return the files of a state with their deletes."""
        return list(plan_scan(loaded, threads=1).tasks)

    def gone(self, task: FileScanTask) -> set[int]:
        """Return the positions of a file that are deleted."""
        found: set[int] = set()
        for delete in task.delete_files:
            file = delete.data_file
            if file.is_deletion_vector:
                found |= set(self.lab.positions(file))
            elif file.content is FileContent.POSITION_DELETES:
                found |= set(self.positions[file.file_path])
            else:
                rows = self.files[task.data_file.file_path]
                found |= {at for at, row in enumerate(rows) if row[0] == self.ids[file.file_path]}
        return found

    def live(self, task: FileScanTask) -> list[tuple[int, Row]]:
        """Return the rows of a file that are not deleted, with their positions."""
        gone = self.gone(task)
        return [(at, row) for at, row in enumerate(self.files[task.data_file.file_path]) if at not in gone]

    def rows(self, loaded: LoadedTable | None = None) -> list[Row]:
        """Return all rows of a state, in order."""
        state = self.lab.load() if loaded is None else loaded
        return sorted(row for task in self.tasks(state) for _, row in self.live(task))

    def view(self) -> View:
        """Return what the table is to a reader: rows, columns, order, properties, references."""
        metadata = self.lab.load().metadata
        return (
            self.rows(),
            tuple(one.name for one in metadata.current_schema.fields),
            str(metadata.default_sort_order.fields),
            metadata.properties.get("mark", ""),
            tuple(sorted(metadata.refs)),
        )

    def read(self, loaded: LoadedTable, where: Predicate) -> ReadSet:
        """Return the read set of an operation."""
        return ReadSet(loaded.metadata.current_snapshot_id, where, self.isolation)

    def deletes(self, task: FileScanTask, positions: list[int]) -> tuple[DataFile, tuple[DataFile, ...]]:
        """Return a file that deletes rows, and the vector it takes the place of."""
        if self.version < 3:
            file = self.lab.position_deletes(task.data_file, len(positions))
            self.positions[file.file_path] = positions
            return file, ()
        old = tuple(one.data_file for one in task.delete_files if one.data_file.is_deletion_vector)
        known = set(positions)
        for one in old:
            known |= set(self.lab.positions(one))
        return self.lab.vectors({task.data_file: known})[0], old


Plan = Callable[[World, LoadedTable], Action | None]


def append(world: World, loaded: LoadedTable) -> Action:
    return Append((world.write([(100, "a", 100)]),))


def insert_if_absent(world: World, loaded: LoadedTable) -> Action | None:
    if any(row[0] == 100 for row in world.rows(loaded)):
        return None
    return Append((world.write([(100, "a", 5)]),), read=world.read(loaded, parse_predicate("id = 100")))


def delete_partition(world: World, loaded: LoadedTable) -> Action:
    return DeleteFiles(where=parse_predicate("k = 'a'"))


def _row_delta(
    world: World,
    loaded: LoadedTable,
    where: Predicate,
    hits: Callable[[Row], bool],
    change: Callable[[Row], Row] | None,
) -> Action | None:
    added: list[DataFile] = []
    removed: list[DataFile] = []
    new: list[Row] = []
    for task in world.tasks(loaded):
        found = [(at, row) for at, row in world.live(task) if hits(row)]
        if found:
            file, old = world.deletes(task, [at for at, _ in found])
            added.append(file)
            removed += old
            new += [] if change is None else [change(row) for _, row in found]
    if not added:
        return None
    if new:
        added.append(world.write(new))
    command = "delete" if change is None else "update"
    return RowDelta(tuple(added), world.read(loaded, where), command, removed_deletes=tuple(removed))  # type: ignore[arg-type]


def row_delete(world: World, loaded: LoadedTable) -> Action | None:
    return _row_delta(world, loaded, parse_predicate("id = 1"), lambda row: row[0] == 1, None)


def row_delete_partition(world: World, loaded: LoadedTable) -> Action | None:
    return _row_delta(world, loaded, parse_predicate("k = 'a'"), lambda row: row[1] == "a", None)


def row_add(world: World, loaded: LoadedTable) -> Action | None:
    where = parse_predicate("id = 1")
    return _row_delta(world, loaded, where, lambda row: row[0] == 1, lambda row: (row[0], row[1], row[2] + 10))


def row_double(world: World, loaded: LoadedTable) -> Action | None:
    where = parse_predicate("k = 'a'")
    return _row_delta(world, loaded, where, lambda row: row[1] == "a", lambda row: (row[0], row[1], row[2] * 2))


def _copy(
    world: World,
    loaded: LoadedTable,
    where: Predicate,
    hits: Callable[[Row], bool],
    change: Callable[[Row], Row | None],
) -> Action | None:
    removed: list[DataFile] = []
    added: list[DataFile] = []
    for task in world.tasks(loaded):
        live = [row for _, row in world.live(task)]
        if not any(map(hits, live)):
            continue
        removed.append(task.data_file)
        changed = [change(row) if hits(row) else row for row in live]
        new = [row for row in changed if row is not None]
        if new:
            added.append(world.write(new))
    return Overwrite(tuple(added), world.read(loaded, where), tuple(removed)) if removed else None


def copy_delete(world: World, loaded: LoadedTable) -> Action | None:
    return _copy(world, loaded, parse_predicate("id = 1"), lambda row: row[0] == 1, lambda row: None)


def copy_double(world: World, loaded: LoadedTable) -> Action | None:
    where = parse_predicate("id = 1")
    return _copy(world, loaded, where, lambda row: row[0] == 1, lambda row: (row[0], row[1], row[2] * 2))


def compact(world: World, loaded: LoadedTable) -> Action | None:
    tasks = [task for task in world.tasks(loaded) if task.data_file.partition == ("a",)]
    rows = [row for task in tasks for _, row in world.live(task)]
    if not rows:
        return None
    new = world.write(rows)
    current = loaded.metadata.current_snapshot
    assert current is not None
    return RewriteFiles(
        tuple(task.data_file for task in tasks),
        (new,),
        current.snapshot_id,
        data_sequence_number=current.sequence_number,
    )


def replace_partition(world: World, loaded: LoadedTable) -> Action:
    return ReplacePartitions((world.write([(50, "a", 50)]),), world.read(loaded, parse_predicate("k = 'a'")))


def overwrite(world: World, loaded: LoadedTable) -> Action:
    where = parse_predicate("k = 'a'")
    return Overwrite((world.write([(60, "a", 60)]),), world.read(loaded, where), where=where)


def upsert(world: World, loaded: LoadedTable) -> Action:
    deletes = world.lab.equality_deletes([1], partition=("a",))
    world.ids[deletes.file_path] = 1
    return RowDelta((deletes, world.write([(1, "a", 7)])), None)


def rewrite_manifests(world: World, loaded: LoadedTable) -> Action:
    return RewriteManifests()


def delete_file(world: World, loaded: LoadedTable) -> Action | None:
    found = [task.data_file.file_path for task in world.tasks(loaded) if task.data_file.partition == ("b",)]
    return DeleteFiles(frozenset(found[:1])) if found else None


def rewrite_deletes(world: World, loaded: LoadedTable) -> Action | None:
    old = next(
        (
            one
            for one in world.lab.live(loaded.metadata.current_snapshot)
            if one.data_file.content is FileContent.EQUALITY_DELETES
        ),
        None,
    )
    if old is None:
        return None
    new = world.lab.equality_deletes([4], partition=("b",))
    world.ids[new.file_path] = world.ids[old.data_file.file_path]
    start = loaded.metadata.current_snapshot_id
    return RewriteFiles((), (), start, (old.data_file,), (AddedFile(new, old.sequence_number),))


def _add_equality_delete(world: World) -> None:
    """Delete row 4, and write it anew: a delete that must not reach what came after it."""
    deletes = world.lab.equality_deletes([4], partition=("b",))
    world.ids[deletes.file_path] = 4
    world.lab.commit(RowDelta((deletes, world.write([(4, "b", 44)])), None))


def publish(world: World, loaded: LoadedTable) -> Action:
    return PublishChanges("w1")


def _stage(world: World) -> None:
    target = Target(properties=FrozenMap({"wap.id": "w1"}), is_staged=True)
    world.lab.commit(Append((world.write([(200, "b", 200)]),), target))


def add_column(world: World, loaded: LoadedTable) -> Action:
    return UpdateSchema(lambda update: update.add_column("x", "long"))


def set_order(world: World, loaded: LoadedTable) -> Action:
    return UpdateSortOrder(("id",))


def set_property(world: World, loaded: LoadedTable) -> Action:
    return UpdateProperties(FrozenMap({"mark": "set"}))


def create_tag(world: World, loaded: LoadedTable) -> Action | None:
    return None if "tag" in loaded.metadata.refs else CreateRef("tag", "tag", loaded.metadata.current_snapshot_id)


def expire(world: World, loaded: LoadedTable) -> Action:
    return ExpireSnapshots(older_than_ms=world.lab.now_ms + 10_000, retain_last=1)


def roll_back(world: World, loaded: LoadedTable) -> Action:
    return Rollback(min(world.lab.load().metadata.snapshots, key=lambda one: one.sequence_number).snapshot_id)


SETUPS: dict[Plan, Callable[[World], None]] = {rewrite_deletes: _add_equality_delete, publish: _stage}
"""What an operation needs to find; done before either of two operations begins."""

OPERATIONS: tuple[Plan, ...] = (
    append,
    insert_if_absent,
    delete_partition,
    row_delete,
    row_delete_partition,
    row_add,
    row_double,
    copy_delete,
    copy_double,
    compact,
    replace_partition,
    overwrite,
    upsert,
    rewrite_manifests,
    delete_file,
    rewrite_deletes,
    publish,
    add_column,
    set_order,
    set_property,
    create_tag,
    expire,
    roll_back,
)


@dataclass(frozen=True)
class Outcome:
    """What became of two operations: the table, and whether the second was refused."""

    view: View
    is_refused: bool


@cache
def run(version: int, isolation: IsolationLevel, *plans: Plan, interleaved: bool) -> Outcome:
    """Run operations; interleaved, each has loaded the table before the first of them commits."""
    world = World(version, isolation)
    for one in sorted(set(plans), key=lambda one: one.__name__):
        if one in SETUPS:
            SETUPS[one](world)
    seen = world.lab.load()
    early = [one(world, seen) for one in plans] if interleaved else []
    is_refused = False
    for at, plan in enumerate(plans):
        if not interleaved:
            seen = world.lab.load()
        before = world.view()
        try:
            # What an operation cannot even plan, since an earlier one took away what it needs, or made what it makes,
            # is refused too.
            action = early[at] if interleaved else plan(world, seen)
            if action is not None:
                world.lab.commit(action, loaded=seen)
        except (AlreadyExistsError, ConcurrentChangeError, InvalidRequestError, NotFoundError):
            assert world.view() == before, "a refused operation changed the table"
            is_refused = True
    world.lab.check_readable()
    return Outcome(world.view(), is_refused)


PAIRS = list(itertools.product(OPERATIONS, repeat=2))


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda one: one.__name__)
def test_two_concurrent_operations_are_serializable(
    first: Plan, second: Plan, isolation: IsolationLevel, version: int
) -> None:
    check_like_some_order(version, isolation, first, second)


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("at", range(10))
def test_three_concurrent_operations_are_serializable(at: int, version: int) -> None:
    chance = random.Random(at)
    for _ in range(20):
        check_like_some_order(version, "serializable", *chance.sample(OPERATIONS, 3))


def check_like_some_order(version: int, isolation: IsolationLevel, *plans: Plan) -> None:
    """Check that operations that all began together end as if some of them had run in turn, and the others not at all.

    Those that were refused are the ones that did not run.
    """
    result = run(version, isolation, *plans, interleaved=True)
    if isolation == "snapshot" and set(plans) <= {insert_if_absent, append}:
        # Under snapshot isolation two who find nothing may both insert: a write skew.
        return
    orders = list(itertools.permutations(plans))
    if result.is_refused:
        orders = [part for size in range(1, len(plans) + 1) for part in itertools.permutations(plans, size)]
    views = (run(version, isolation, *order, interleaved=False).view for order in orders)
    assert any(result.view == view for view in views)


def test_updates_that_iceberg_java_loses_are_not_lost() -> None:
    # An UPDATE and a DELETE of the same row, merge-on-read: the row must not survive both.
    for version in (2, 3):
        assert run(version, "snapshot", row_add, row_delete, interleaved=True).is_refused
        assert run(version, "snapshot", row_delete, row_add, interleaved=True).is_refused
