"""Every action on one prepared table, each as a plan made in peace and a run that faults may meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from frazil.catalog.base import Catalog
from frazil.codec.puffin import PuffinWriter
from frazil.commit.action import Action
from frazil.commit.append import Append
from frazil.commit.cherry_pick import CherryPick, PublishChanges
from frazil.commit.commit_loop import Pace
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.expired_files import delete_expired_files
from frazil.commit.new_snapshot import Target
from frazil.commit.once import Once, RecordOnly, WriteOnce
from frazil.commit.overwrite import Overwrite
from frazil.commit.remove_dangling_deletes import RemoveDanglingDeletes
from frazil.commit.replace_partitions import ReplacePartitions
from frazil.commit.replace_table import ReplaceTable
from frazil.commit.rewrite_files import RewriteFiles
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.commit.row_delta import RowDelta
from frazil.commit.transaction import Transaction
from frazil.commit.update_properties import UpdateLocation, UpdateProperties, UpgradeFormat
from frazil.commit.update_refs import (
    CreateRef,
    DropRef,
    FastForward,
    RenameBranch,
    ReplaceBranch,
    Rollback,
    SetCurrentSnapshot,
    SetRetention,
)
from frazil.commit.update_schema import UpdateSchema
from frazil.commit.update_sort_order import UpdateSortOrder
from frazil.commit.update_spec import UpdateSpec
from frazil.commit.update_statistics import UpdateStatistics
from frazil.commit.write_manifests import AddedFile
from frazil.expr.extract import parse_predicate
from frazil.spec.data_file import DataFile, FileContent
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import RefType, Snapshot
from frazil.spec.statistics import PartitionStatisticsFile, StatisticsFile
from tests.concurrency.fault_world import KINDS, World
from tests.support.commit_lab import SCHEMA, TABLE

OTHER = ("db", "other")
NEW = ("db", "new")
PROPERTIES = {"commit.manifest.min-count-to-merge": "3", "write.metadata.delete-after-commit.enabled": "true"}
PACE = Pace(lambda seconds: None, lambda: 0.0, lambda: 0.5)


class Progress:
    """How far a run came: whether it was told that it had committed, and what another writer does before it does."""

    def __init__(self, rival: Callable[[], object] | None = None) -> None:
        self.is_acknowledged = False
        self.has_rival_run = False
        self._rival = rival

    def let_rival_come(self) -> None:
        """Let another writer commit."""
        if self._rival is not None:
            self._rival()
            self.has_rival_run = True


Run = Callable[[Catalog, Progress], None]


@dataclass(frozen=True)
class Scenario:
    """An action, by its name, and where it exists."""

    name: str
    plan: Callable[[World], Run]
    versions: tuple[int, ...] = (2, 3)
    kinds: tuple[str, ...] = tuple(KINDS)


def tagged(tag: str = "tag", **options: object) -> Target:
    """Return where a snapshot goes, with a tag in its summary."""
    return Target(properties=FrozenMap({"tag": tag}), **options)  # type: ignore[arg-type]


def commit(*made: Action) -> Run:
    """Return the commit of some actions in one transaction."""

    def run(catalog: Catalog, progress: Progress) -> None:
        transaction = Transaction(catalog, pace=PACE, threads=1)
        table = transaction.table(catalog.load_table(TABLE))
        for one in made:
            table.add(one)
        progress.let_rival_come()
        transaction.commit()
        progress.is_acknowledged = True

    return run


def prepare(world: World, version: int) -> None:
    """Make the table: two partitions, deletes, a tag, branches, staged snapshots, statistics."""
    lab = world.lab
    world.catalog.create_namespace(("db",))
    lab.add_table(TABLE, partition_by=["k"], format_version=version, properties=PROPERTIES)
    lab.commit(Append((lab.file([1, 2, 3], "a", v=1),), tagged("one")))
    lab.commit(CreateRef("kept", "tag"), CreateRef("behind", "branch"), CreateRef("dev", "branch"))
    lab.commit(Append((lab.file([4, 5], "b", v=2), lab.file([6], "a", v=2)), tagged("two")))
    first = data_file(world, 3)
    deletes = lab.vectors({first: [0]}) if version > 2 else (lab.position_deletes(first),)
    lab.commit(RowDelta(deletes, ReadSet(lab.snapshot.snapshot_id), "delete", target=tagged("three")))
    lab.commit(RowDelta((lab.equality_deletes([99], partition=("b",)),), None, target=tagged("four")))
    lab.commit(Append((lab.file([7], "d"),), tagged("on dev", branch="dev")))
    staged = Target(properties=FrozenMap({"wap.id": "w1"}), is_staged=True)
    lab.commit(Append((lab.file([8], "d"),), staged))
    lab.commit(Append((lab.file([9], "b", v=3),), tagged("five")))
    lab.commit(UpdateStatistics((statistics(world, "first.puffin"),)))


def prepare_other(world: World, version: int) -> None:
    """Make another table."""
    world.lab.add_table(OTHER, partition_by=["k"], format_version=version, properties=PROPERTIES)


def data_file(world: World, rows: int) -> DataFile:
    """Return the live data file with a number of rows."""
    files = [one.data_file for one in world.lab.live()]
    return next(one for one in files if one.content is FileContent.DATA and one.record_count == rows)


def statistics(world: World, name: str) -> StatisticsFile:
    """Write a file of statistics for the current snapshot."""
    path = f"{world.lab.load().metadata.location}/metadata/{name}"
    writer = PuffinWriter()
    data = writer.finish()
    world.storage.create(path, data)
    return StatisticsFile(world.lab.snapshot.snapshot_id, path, len(data), writer.footer.footer_size)


def read(world: World, where: str = "k = 'a'") -> ReadSet:
    """Return what an operation read of the present state."""
    return ReadSet(world.lab.snapshot.snapshot_id, parse_predicate(where))


def tagged_snapshot(world: World, tag: str) -> Snapshot:
    """Return the snapshot with a tag."""
    found = world.lab.load().metadata.snapshots
    return next(one for one in found if one.summary is not None and one.summary.get("tag") == tag)


# Files


def fast_append(world: World) -> Run:
    return commit(Append((world.lab.file([10], "a"),), tagged(), is_fast=True))


def write_once(world: World) -> Run:
    return commit(WriteOnce(Append((world.lab.file([10], "a"),), tagged()), Once("job", 1), "main"))


def write_once_that_changes_nothing(world: World) -> Run:
    return commit(WriteOnce(RecordOnly(), Once("job", "nothing"), "main"))


def merge_append(world: World) -> Run:
    return commit(Append((world.lab.file([10], "a"), world.lab.file([11], "b")), tagged()))


def append_that_read(world: World) -> Run:
    return commit(Append((world.lab.file([10], "a"),), tagged(), read=read(world)))


def overwrite_files(world: World) -> Run:
    old = data_file(world, 3)
    return commit(Overwrite((world.lab.file([2, 3], "a"),), read(world), (old,), target=tagged()))


def overwrite_filter(world: World) -> Run:
    where = parse_predicate("k = 'a'")
    return commit(Overwrite((world.lab.file([20], "a"),), read(world), where=where, target=tagged()))


def replace_partitions(world: World) -> Run:
    return commit(ReplacePartitions((world.lab.file([20], "a"),), read(world), tagged()))


def delete_files(world: World) -> Run:
    return commit(DeleteFiles(frozenset({data_file(world, 3).file_path}), target=tagged()))


def delete_filter(world: World) -> Run:
    return commit(DeleteFiles(where=parse_predicate("k = 'a'"), target=tagged()))


def row_delta_positions(world: World) -> Run:
    deletes = world.lab.position_deletes(data_file(world, 2))
    return commit(RowDelta((deletes,), read(world, "k = 'b'"), "delete", target=tagged()))


def row_delta_vectors(world: World) -> Run:
    # The file has a vector that this one does not know of: the two are united.
    vectors = world.lab.vectors({data_file(world, 3): [1], data_file(world, 2): [0]})
    return commit(RowDelta(vectors, read(world, "k <= 'b'"), "delete", target=tagged()))


def row_delta_update(world: World) -> Run:
    old = data_file(world, 2)
    new = world.lab.file([4], "b", v=50)
    made = world.lab.vectors({old: [0]}) if _version(world) > 2 else (world.lab.position_deletes(old),)
    return commit(RowDelta((*made, new), read(world, "k = 'b'"), "update", target=tagged()))


def row_delta_equality(world: World) -> Run:
    files = (world.lab.equality_deletes([4], partition=("b",)), world.lab.file([4], "b", v=70))
    return commit(RowDelta(files, None, target=tagged()))


def rewrite_files(world: World) -> Run:
    old = tuple(data_file(world, rows) for rows in (3,))
    head = world.lab.snapshot
    new = (world.lab.file([2, 3], "a"),)
    number = head.sequence_number
    return commit(RewriteFiles(old, new, head.snapshot_id, data_sequence_number=number, target=tagged()))


def rewrite_delete_files(world: World) -> Run:
    found = [one for one in world.lab.live() if one.data_file.content is FileContent.EQUALITY_DELETES]
    new = AddedFile(world.lab.equality_deletes([99], partition=("b",)), found[0].sequence_number)
    head = world.lab.snapshot.snapshot_id
    return commit(RewriteFiles((), (), head, (found[0].data_file,), (new,), target=tagged()))


def rewrite_manifests(world: World) -> Run:
    return commit(RewriteManifests(includes_deletes=True, target=tagged()))


# Metadata


def update_schema(world: World) -> Run:
    return commit(UpdateSchema(lambda update: update.add_column("x", "long")))


def update_spec(world: World) -> Run:
    return commit(UpdateSpec(lambda update: update.add_field("bucket(4, id)")))


def update_sort_order(world: World) -> Run:
    return commit(UpdateSortOrder(("id desc",)))


def update_properties(world: World) -> Run:
    return commit(UpdateProperties(FrozenMap({"one": "1"}), frozenset({"commit.manifest.min-count-to-merge"})))


def update_location(world: World) -> Run:
    return commit(UpdateLocation("memory://lake/elsewhere"))


def upgrade_format(world: World) -> Run:
    return commit(UpgradeFormat(3))


def set_statistics(world: World) -> Run:
    new = statistics(world, "second.puffin")
    partition = PartitionStatisticsFile(new.snapshot_id, new.statistics_path, new.file_size_in_bytes)
    return commit(UpdateStatistics((new,), (partition,)))


def remove_statistics(world: World) -> Run:
    return commit(UpdateStatistics(removed=(world.lab.snapshot.snapshot_id,)))


# References and history


def create_branch(world: World) -> Run:
    return commit(CreateRef("fresh", "branch", tagged_snapshot(world, "two").snapshot_id))


def create_tag(world: World) -> Run:
    return commit(CreateRef("fresh", "tag", tagged_snapshot(world, "two").snapshot_id, max_ref_age_ms=10**12))


def replace_tag(world: World) -> Run:
    return commit(CreateRef("kept", "tag", tagged_snapshot(world, "two").snapshot_id, replaces=True))


def drop_ref(world: World) -> Run:
    return commit(DropRef("kept", "tag"))


def rename_branch(world: World) -> Run:
    return commit(RenameBranch("dev", "work"))


def fast_forward(world: World) -> Run:
    return commit(FastForward("behind", "main"))


def replace_branch(world: World) -> Run:
    return commit(ReplaceBranch("dev", tagged_snapshot(world, "two").snapshot_id))


def set_retention(world: World) -> Run:
    return commit(SetRetention("dev", max_ref_age_ms=10**12))


def rollback(world: World) -> Run:
    return commit(Rollback(tagged_snapshot(world, "two").snapshot_id))


def set_current(world: World) -> Run:
    return commit(SetCurrentSnapshot(ref="dev"))


def commit_to_branch(world: World) -> Run:
    return commit(Append((world.lab.file([10], "a"),), tagged(branch="dev")))


def cherry_pick(world: World) -> Run:
    return commit(CherryPick(tagged_snapshot(world, "on dev").snapshot_id, tagged()))


def stage(world: World) -> Run:
    target = Target(properties=FrozenMap({"wap.id": "w2", "tag": "tag"}), is_staged=True)
    return commit(Append((world.lab.file([10], "a"),), target))


def publish(world: World) -> Run:
    return commit(PublishChanges("w1", tagged()))


def _expiry(world: World) -> ExpireSnapshots:
    return ExpireSnapshots(older_than_ms=world.lab.now_ms + 10**6, retain_last=1)


def expire_snapshots(world: World) -> Run:
    return commit(_expiry(world))


def expire_and_delete_files(world: World) -> Run:
    expiry = _expiry(world)

    def run(catalog: Catalog, progress: Progress) -> None:
        before = catalog.load_table(TABLE)
        transaction = Transaction(catalog, pace=PACE, threads=1)
        transaction.table(before).add(expiry)
        progress.let_rival_come()
        after = transaction.commit()[0]
        progress.is_acknowledged = True
        delete_expired_files(catalog, before, after, threads=1)

    return run


# Several


def several_actions(world: World) -> Run:
    lab = world.lab
    return commit(
        UpdateSchema(lambda update: update.add_column("x", "long")),
        Append((lab.file([10], "b"),), tagged("tag one")),
        DeleteFiles(where=parse_predicate("k = 'a'"), target=tagged("tag two")),
        CreateRef("fresh", "branch"),
        UpdateProperties(FrozenMap({"one": "1"})),
    )


def remove_dangling_deletes(world: World) -> Run:
    # No file of the partition is there to be deleted from.
    dangling = world.lab.equality_deletes([98], partition=("z",))
    world.lab.commit(RowDelta((dangling,), None, target=tagged("dangling")))
    return commit(RemoveDanglingDeletes(tagged()))


def replace_table_as_select(world: World) -> Run:
    anew = ReplaceTable(SCHEMA, ("bucket(4, id)",), properties=FrozenMap({"anew": "yes"}))
    spec = 1 + max(one.spec_id for one in world.lab.load().metadata.partition_specs)
    file = replace(world.lab.file([10], "a"), spec_id=spec, partition=(3,))
    return commit(anew, Append((file,), tagged()))


def several_tables(world: World) -> Run:
    prepare_other(world, _version(world))
    files = world.lab.file([10], "a"), world.lab.file([11], "b")

    def run(catalog: Catalog, progress: Progress) -> None:
        transaction = Transaction(catalog, pace=PACE, threads=1)
        for name, file in zip((TABLE, OTHER), files, strict=True):
            transaction.table(catalog.load_table(name)).add(Append((file,), tagged()))
        progress.let_rival_come()
        transaction.commit()
        progress.is_acknowledged = True

    return run


def create_table(world: World) -> Run:
    version = _version(world)

    def run(catalog: Catalog, progress: Progress) -> None:
        progress.let_rival_come()
        catalog.create_table(NEW, SCHEMA, format_version=version)
        progress.is_acknowledged = True

    return run


def create_table_as_select(world: World) -> Run:
    version = _version(world)
    file = world.lab.file([10], "a", spec_id=0, partition=())

    def run(catalog: Catalog, progress: Progress) -> None:
        staged = catalog.stage_table(NEW, SCHEMA, format_version=version)
        transaction = Transaction(catalog, pace=PACE, threads=1)
        transaction.table(staged).add(Append((file,), tagged()))
        progress.let_rival_come()
        transaction.commit()
        progress.is_acknowledged = True

    return run


def _version(world: World) -> int:
    return world.lab.load().metadata.format_version


_NOT_IN_FILES = ("memory", "sqlite", "postgresql")
_ALL: tuple[Callable[[World], Run], ...] = (
    write_once, write_once_that_changes_nothing,
    fast_append, merge_append, append_that_read, overwrite_files, overwrite_filter, replace_partitions, delete_files,
    delete_filter, row_delta_update, row_delta_equality, rewrite_files, rewrite_delete_files, rewrite_manifests,
    update_schema, update_spec, update_sort_order, update_properties, set_statistics, remove_statistics, create_branch,
    create_tag, replace_tag, drop_ref, rename_branch, fast_forward, replace_branch, set_retention, rollback,
    set_current, commit_to_branch, cherry_pick, stage, publish, expire_snapshots, expire_and_delete_files,
    several_actions, create_table, create_table_as_select, remove_dangling_deletes, replace_table_as_select,
)  # fmt: skip
SCENARIOS: tuple[Scenario, ...] = (
    *(Scenario(one.__name__, one) for one in _ALL),
    Scenario("row_delta_positions", row_delta_positions, versions=(2,)),
    Scenario("row_delta_vectors", row_delta_vectors, versions=(3,)),
    Scenario("upgrade_format", upgrade_format, versions=(2,)),
    Scenario("update_location", update_location, kinds=_NOT_IN_FILES),
    Scenario("several_tables", several_tables, kinds=_NOT_IN_FILES),
)
__all__ = ["PACE", "SCENARIOS", "Progress", "RefType", "Run", "Scenario", "commit", "prepare"]
