"""Plans over whole tables: which snapshot, which manifests and files are kept, what tasks carry."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from typing import Any

import pytest

from frazil.codec.single_value import encode_value
from frazil.errors import InvalidManifestError, InvalidRequestError, ReferenceNotFoundError, SnapshotNotFoundError
from frazil.loaded import LoadedTable
from frazil.scan.choose_snapshot import SnapshotChoice
from frazil.scan.manifest_cache import ManifestCache
from frazil.scan.plan import Plan, plan_scan
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import Schema
from frazil.spec.snapshot import SnapshotRef
from frazil.spec.snapshot_list import SnapshotList
from frazil.spec.types import LONG, STRING, TIMESTAMP, NestedField
from frazil.storage.memory import MemoryStorage
from frazil.threads import map_in_order
from tests.support.tables import START_MS, STEP_MS, TableBuilder

SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "ts", TIMESTAMP), NestedField(3, "kind", STRING)))
DAY = 86_400_000_000


def described(name: str, low: int, high: int, *, day: int | None = 0, spec_id: int = 0, **fields: Any) -> DataFile:
    """A data file that nobody wrote: ids from `low` to `high`, in one day's partition."""
    return DataFile(
        f"memory://lake/db/t/data/{name}",
        FileFormat.PARQUET,
        10,
        1000,
        spec_id=spec_id,
        partition=() if day is None else (day,),
        value_counts={1: 10},
        null_value_counts={1: 0},
        lower_bounds={1: encode_value(low, LONG)},
        upper_bounds={1: encode_value(high, LONG)},
        **fields,
    )


def names(plan: Plan) -> list[str]:
    return [task.data_file.file_path.rpartition("/")[2] for task in plan.tasks]


@pytest.fixture
def table() -> TableBuilder:
    """Three commits of days 0, 1 and 2, a manifest each."""
    builder = TableBuilder(SCHEMA, partition_by=["day(ts)"])
    builder.commit(described("a", 0, 9), described("b", 10, 19))
    builder.commit(described("c", 20, 29, day=1))
    builder.commit(described("d", 30, 39, day=2), described("e", 40, 49, day=2))
    return builder


def test_without_a_filter_every_live_file_is_planned(table: TableBuilder) -> None:
    assert sorted(names(plan_scan(table.load()))) == ["a", "b", "c", "d", "e"]


def test_empty_table_has_an_empty_plan() -> None:
    plan = plan_scan(TableBuilder(SCHEMA).load(), "id = 1")
    assert list(plan.tasks) == []
    assert plan.to_arrow().num_rows == 0
    assert plan.splits() == []
    assert "no snapshot" in plan.explain()


def test_unneeded_manifest_is_not_read(table: TableBuilder) -> None:
    loaded = table.load()
    chosen = plan_scan(loaded, "ts < '1970-01-02'")
    kept = {
        one.manifest_path for one in chosen.manifests if one.partitions and one.partitions[0].lower_bound == bytes(4)
    }
    for manifest in chosen.manifests:
        if manifest.manifest_path not in kept:
            table.storage.delete(manifest.manifest_path)
    assert sorted(names(plan_scan(loaded, "ts < '1970-01-02'"))) == ["a", "b"]


def test_first_tasks_are_yielded_before_the_last_manifest_is_read(table: TableBuilder) -> None:
    loaded = table.load()
    manifests = plan_scan(loaded).manifests
    table.storage.delete(manifests[-1].manifest_path)
    plan = plan_scan(loaded, threads=1)
    first = next(iter(plan.tasks))
    assert first.data_file.record_count == 10
    with pytest.raises(Exception, match="Cannot read"):
        list(plan.tasks)


def test_residuals_are_reduced_by_partition(table: TableBuilder) -> None:
    plan = plan_scan(table.load(), "ts >= '1970-01-03' and id > 30")
    assert {str(task.residual) for task in plan.tasks} == {"id > 30"}
    plan = plan_scan(table.load(), "ts >= '1970-01-03T12:00:00'")
    assert {str(task.residual) for task in plan.tasks} == {f"ts >= {2 * DAY + DAY // 2}"}


def test_tasks_are_small_and_self_contained(table: TableBuilder) -> None:
    task = plan_scan(table.load(), "id > 5").tasks[0]
    assert task.data_file.lower_bounds is None
    again = pickle.loads(pickle.dumps(task))
    assert again == task
    assert len(pickle.dumps(task)) < 2_500


def test_metrics_are_kept_on_request(table: TableBuilder) -> None:
    plan = plan_scan(table.load(), with_metrics=True)
    assert all(task.data_file.lower_bounds is not None for task in plan.tasks)


def test_deleted_entries_are_not_planned(table: TableBuilder) -> None:
    table.commit(deleted=["memory://lake/db/t/data/a"])
    assert sorted(names(plan_scan(table.load()))) == ["b", "c", "d", "e"]


def test_plan_can_be_iterated_again(table: TableBuilder) -> None:
    plan = plan_scan(table.load())
    assert names(plan) == names(plan)
    assert len(plan.tasks) == 5
    assert plan.tasks[0] == list(plan.tasks)[0]  # noqa: RUF015
    assert plan.tasks[1:3] == list(plan.tasks)[1:3]


def test_each_manifest_uses_its_own_spec(table: TableBuilder) -> None:
    table.update_spec(lambda update: update.remove_field("ts_day").add_field("bucket(4, id)"))
    spec_id = table.spec.spec_id
    table.commit(DataFile("memory://lake/db/t/data/f", FileFormat.PARQUET, 1, 1, spec_id=spec_id, partition=(0,)))
    plan = plan_scan(table.load(), "ts < '1970-01-02'")
    assert sorted(names(plan)) == ["a", "b", "f"]
    by_name = {task.data_file.file_path[-1]: task for task in plan.tasks}
    assert str(by_name["a"].residual) == "true"
    assert str(by_name["f"].residual) == f"ts < {DAY}"


def test_file_table_has_the_partitions_of_all_specs(table: TableBuilder) -> None:
    table.update_spec(lambda update: update.add_field("bucket(4, id)"))
    table.commit(DataFile("memory://x", FileFormat.PARQUET, 1, 1, spec_id=table.spec.spec_id, partition=(3, 2)))
    files = plan_scan(table.load()).to_arrow()
    assert files.num_rows == 6
    rows = {row["file_path"][-1]: row for row in files.to_pylist()}
    assert rows["x"]["partition"]["id_bucket_4"] == 2
    assert rows["a"]["partition"]["id_bucket_4"] is None
    assert rows["a"]["spec_id"] == 0
    assert rows["x"]["spec_id"] == table.spec.spec_id


def test_explain_counts_each_step(table: TableBuilder) -> None:
    text = plan_scan(table.load(), "ts >= '1970-01-03' and id = 42").explain()
    assert "1 read of 3 (2 pruned by partition summaries" in text
    assert "1 kept of 2 (0 pruned by partition, 1 by metrics)" in text
    assert "10 in 1 files, 1,000 bytes" in text


class TestChoosingTheSnapshot:
    """Which state is read, and with which schema."""

    def test_snapshot_by_id_time_branch_and_tag(self, table: TableBuilder) -> None:
        table.metadata = _with_refs(table, {"old": SnapshotRef(1, "branch"), "eom": SnapshotRef(2, "tag")})
        loaded = table.load()

        def planned(**choice: Any) -> list[str]:
            return sorted(names(plan_scan(loaded, choice=SnapshotChoice(**choice))))

        assert planned(snapshot_id=1) == ["a", "b"]
        assert planned(as_of_ms=START_MS + 2 * STEP_MS + 5) == ["a", "b", "c"]
        assert planned(ref="old") == ["a", "b"]
        assert planned(ref="eom") == ["a", "b", "c"]
        assert planned(ref="main") == ["a", "b", "c", "d", "e"]

    def test_branch_uses_the_table_schema_and_other_snapshots_their_own(self, table: TableBuilder) -> None:
        table.metadata = _with_refs(table, {"old": SnapshotRef(1, "branch"), "eom": SnapshotRef(1, "tag")})
        table.update_schema(lambda update: update.rename_column("id", "number"))
        loaded = table.load()
        assert plan_scan(loaded, "number = 5", choice=SnapshotChoice(ref="old")).schema.find_field("number")
        assert plan_scan(loaded, "id = 5", choice=SnapshotChoice(ref="eom")).schema.find_field("id")
        assert plan_scan(loaded, "id = 5", choice=SnapshotChoice(snapshot_id=1)).schema.find_field("id")
        as_of = SnapshotChoice(as_of_ms=START_MS + STEP_MS)
        assert plan_scan(loaded, "id = 5", choice=as_of).schema.find_field("id")

    def test_unknown_snapshot_is_refused(self, table: TableBuilder) -> None:
        loaded = table.load()
        with pytest.raises(SnapshotNotFoundError):
            plan_scan(loaded, choice=SnapshotChoice(snapshot_id=99))
        with pytest.raises(SnapshotNotFoundError):
            plan_scan(loaded, choice=SnapshotChoice(as_of_ms=5))
        with pytest.raises(ReferenceNotFoundError):
            plan_scan(loaded, choice=SnapshotChoice(ref="nope"))
        with pytest.raises(InvalidRequestError, match="at once"):
            SnapshotChoice(snapshot_id=1, ref="main")


def _with_refs(table: TableBuilder, refs: dict[str, SnapshotRef]) -> Any:
    return replace(table.metadata, refs=FrozenMap({**table.metadata.refs, **refs}))


class CountingStorage(MemoryStorage):
    """Counts reads."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def read(self, path: str, **options: Any) -> bytes:
        self.reads.append(path)
        return super().read(path, **options)


def test_decoded_manifests_are_cached_within_a_budget() -> None:
    storage = CountingStorage()
    table = TableBuilder(SCHEMA, storage=storage)
    for at in range(5):
        table.commit(described(f"f{at}", at, at, day=None))
    loaded = table.load()
    cache = ManifestCache()
    assert len(plan_scan(loaded, cache=cache).tasks) == 5
    storage.reads.clear()
    assert len(plan_scan(loaded, cache=cache).tasks) == 5
    assert storage.reads == []
    assert len(plan_scan(loaded, "id = 3", cache=cache).tasks) == 1
    storage.reads.clear()
    assert len(plan_scan(loaded, cache=cache).tasks) == 5
    assert storage.reads == []
    assert cache.size_bytes <= cache.budget_bytes


def test_plan_for_several_filters_reads_each_manifest_once() -> None:
    storage = CountingStorage()
    table = TableBuilder(SCHEMA, storage=storage)
    for at in range(5):
        table.commit(described(f"f{at}", at, at, day=None))
    loaded = table.load()
    cache = ManifestCache()
    assert len(plan_scan(loaded, cache=cache, expects_filters=True).tasks) == 5
    storage.reads.clear()
    assert len(plan_scan(loaded, "id = 3", cache=cache).tasks) == 1
    assert storage.reads == []


def test_undersized_cache_does_not_prevent_planning() -> None:
    table = TableBuilder(SCHEMA)
    table.commit(described("a", 0, 1, day=None))
    cache = ManifestCache(budget_bytes=10)
    assert len(plan_scan(table.load(), cache=cache).tasks) == 1
    assert len(cache) == 0


def test_oversized_plan_evicts_nothing_from_the_cache() -> None:
    storage = CountingStorage()
    table = TableBuilder(SCHEMA, partition_by=["day(ts)"], storage=storage)
    for at in range(4):
        table.commit(described(f"f{at}", at, at, day=at))
    loaded = table.load()
    cache = ManifestCache(budget_bytes=1000)
    assert len(plan_scan(loaded, "ts >= '1970-01-02' and ts < '1970-01-03'", cache=cache).tasks) == 1
    kept = len(cache)
    assert len(plan_scan(loaded, "id >= 0", cache=cache).tasks) == 4
    assert len(cache) == kept == 1
    storage.reads.clear()
    assert len(plan_scan(loaded, "id >= 0", cache=cache).tasks) == 4
    assert len(storage.reads) == 3


def test_manifest_of_an_unknown_spec_is_refused(table: TableBuilder) -> None:
    plan = plan_scan(table.load())
    plan.manifests[0] = replace(plan.manifests[0], partition_spec_id=7)
    with pytest.raises(InvalidManifestError, match="no partition spec 7"):
        list(plan.tasks)


def test_encrypted_snapshot_is_recognised(table: TableBuilder) -> None:
    loaded = table.load()
    snapshot = loaded.metadata.current_snapshot
    assert snapshot is not None
    metadata = replace(loaded.metadata, snapshots=SnapshotList((replace(snapshot, key_id="k1"),)))
    encrypted = LoadedTable(loaded.identifier, metadata, None, loaded.storage)
    with pytest.raises(Exception, match="encrypted with key 'k1'"):
        list(plan_scan(encrypted).tasks)


def test_long_value_list_keeps_a_file_whose_upper_bound_is_in_it() -> None:
    table = TableBuilder(SCHEMA)
    table.commit(described("meets", 41, 42, day=None), described("between", 43, 43, day=None))
    for count in (25, 40, 400):
        evens = ", ".join(str(2 * at) for at in range(count))
        assert names(plan_scan(table.load(), f"id in ({evens})")) == ["meets"], count


def test_abandoned_plan_does_not_block() -> None:
    # The garbage collector may drop it while its thread holds a lock of `threading`: waiting would never end.
    running, may_end = threading.Event(), threading.Event()

    def wait(item: int) -> int:
        if item > 0:
            running.set()
            may_end.wait(60)
        return item

    results = map_in_order(wait, iter(range(4)), threads=2, ahead=2)
    assert next(results) == 0
    assert running.wait(60)
    results.close()  # type: ignore[attr-defined]
    assert not may_end.is_set()
    may_end.set()
