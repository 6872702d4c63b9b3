"""Writes that happen once: whatever the verb, the engine, the branch, the order of commits and what has expired."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.memory import MemoryCatalog
from frazil.catalog.outcomes import Unknown
from frazil.commit.once import Once
from frazil.errors import CommitStateUnknownError, InvalidRequestError
from frazil.storage.failing import SimulatedCrash
from frazil.table.lake import Lake
from frazil.table.table import Table
from frazil.table.writable import Writable
from tests.support.races import Point, Race

DATA = pa.table({"id": [1, 2], "k": ["a", "b"]})
MORE = pa.table({"id": [2, 3], "k": ["x", "c"]})


def new_table(version: int = 2, properties: Mapping[str, str] | None = None) -> Table:
    lake = Lake(MemoryCatalog())
    return lake.create_table(
        "db.t", "id bigint, k string", partition_by=["k"], format_version=version, properties=properties
    )


def ids(table: Table, **scan: Any) -> list[int]:
    return sorted(table.refresh().scan(**scan).to_arrow()["id"].to_pylist())


Verb = Callable[[Writable, Any], object]
VERBS: dict[str, Verb] = {
    "append": lambda t, once: t.append(MORE, once=once),
    "append of new columns": lambda t, once: t.append(
        MORE.append_column("n", pa.array([1, 2])), merge_schema=True, once=once
    ),
    "overwrite": lambda t, once: t.overwrite(MORE, once=once),
    "overwrite where": lambda t, once: t.overwrite(MORE, where="id > :least", least=1, once=once),
    "overwrite_partitions": lambda t, once: t.overwrite_partitions(MORE, once=once),
    "delete": lambda t, once: t.delete("id = :x", x=2, once=once),
    "delete of a partition": lambda t, once: t.delete("k = 'a'", once=once),
    "update": lambda t, once: t.update({"k": "'z'"}, where="id = :x", x=2, once=once),
    "upsert": lambda t, once: t.upsert(MORE, keys=["id"], once=once),
    "merge": lambda t, once: (
        t.merge(MORE, on="target.id = source.id", once=once)
        .when_matched()
        .update_all()
        .when_not_matched()
        .insert_all()
        .execute()
    ),
}


@pytest.mark.every_case
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
def test_second_run_of_a_verb_writes_nothing_and_returns_none(verb: Verb) -> None:
    table = new_table()
    table.append(DATA)
    assert verb(table, ("job", "a")) is not None
    before = table.metadata
    table.append(pa.table({"id": [2, 7], "k": ["late", "a"]}))
    last = table.metadata_location
    assert verb(table, ("job", "a")) is None
    assert table.refresh().metadata_location == last
    assert len(table.snapshots) == len(before.snapshots) + 1
    assert verb(table, ("job", "b")) is not None


@pytest.mark.every_case
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
@pytest.mark.parametrize("point", ["begun", "commit"])
def test_one_of_two_concurrent_writers_commits_without_leftover_files(verb: Verb, point: Point) -> None:
    table = new_table(properties={"commit.retry.min-wait-ms": "1"})
    table.append(DATA)
    rival = Table(table._catalog, table.state)
    with Race(table._catalog, point, lambda: verb(rival, ("job", 1))) as race:
        assert verb(table, ("job", 1)) is None
    assert race.has_run
    assert len(table.refresh().snapshots) == 2
    stored = {one.path for one in table.state.storage.list(f"{table.location}/data")}
    named = {one["file_path"] for one in table.inspect.all_files().to_pylist()}
    assert stored == named


@pytest.mark.every_case
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
def test_transaction_skips_completed_writes_and_commits_the_rest(verb: Verb) -> None:
    table = new_table()
    table.append(DATA)
    verb(table, ("job", 1))
    before = len(table.snapshots)
    with table.transaction() as tx:
        assert verb(tx, ("job", 1)) is None
        tx.append(pa.table({"id": [9], "k": ["q"]}), once=("other", 1))
    assert len(table.snapshots) == before + 1
    assert 9 in ids(table)


def test_several_tables_in_a_transaction_are_written_once_each() -> None:
    lake = Lake(MemoryCatalog())
    tables = [lake.create_table(f"db.{name}", "id bigint, k string") for name in "ab"]
    for _ in range(2):
        with lake.transaction() as tx:
            for name in "ab":
                tx.table(f"db.{name}").append(DATA, once=("job", 1))
    assert [ids(one) for one in tables] == [[1, 2], [1, 2]]


def test_text_versions_compare_by_equality_and_numbers_by_order() -> None:
    table = new_table()
    assert table.append(DATA, once=("job", "2026-11-16"))
    assert table.append(DATA, once=("job", "2026-11-15"))
    assert table.append(DATA, once=("job", 7))
    assert table.append(DATA, once=("job", 6)) is None
    assert table.append(DATA, once=("job", "7"))
    assert table.append(DATA, once=("job", 8))
    assert table.append(DATA, once=("other", 6))


def test_write_without_changes_counts_as_done() -> None:
    table = new_table()
    assert table.delete("id = 5", once=("job", 1)) is None
    table.append(pa.table({"id": [5], "k": ["e"]}))
    assert table.delete("id = 5", once=("job", 1)) is None
    assert ids(table) == [5]
    assert table.append(DATA.slice(0, 0), once=("empty", "a")) is None
    assert table.append(DATA, once=("empty", "a")) is None


@pytest.mark.parametrize("version", [1, 2, 3])
def test_completed_write_stays_done_after_its_snapshot_expired(version: int) -> None:
    table = new_table(version)
    table.append(DATA, once=("job", "a"))
    table.append(MORE, once=("number", 3))
    for _ in range(3):
        table.append(MORE)
    table.expire_snapshots(older_than=table._catalog.now_ms() + 1000, retain_last=1)
    assert len(table.snapshots) == 1
    assert table.append(DATA, once=("job", "a")) is None
    assert table.append(MORE, once=("number", 2)) is None
    assert table.append(MORE, once=("number", 4)) is not None


@pytest.mark.parametrize("expires", [False, True], ids=["kept", "expired"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_rolled_back_write_is_repeated(version: int, expires: bool) -> None:
    table = new_table(version)
    first = table.append(DATA, once=("job", 1))
    assert first is not None
    table.append(MORE, once=("job", 2))
    table.append(MORE, once=("text", "x"))
    table.rollback_to(first.snapshot_id)
    if expires:
        table.append(MORE)
        table.append(MORE)
        table.expire_snapshots(older_than=table._catalog.now_ms() + 1000, retain_last=1)
    assert table.append(DATA, once=("job", 1)) is None
    assert table.append(MORE, once=("job", 2)) is not None
    assert table.append(MORE, once=("text", "x")) is not None
    assert table.append(MORE, once=("text", "x")) is None


def test_rollback_by_another_program_is_seen_along_the_parent_chain() -> None:
    """Others move branches and do not know of the record."""
    table = new_table()
    first = table.append(DATA)
    assert first is not None
    table.append(MORE, once=("job", 2))
    kept = {name: value for name, value in table.properties.items() if name.startswith("frazil.once.")}
    table.rollback_to(first.snapshot_id)
    table.set_properties(kept)
    table.append(MORE)
    gone = [one.snapshot_id for one in table.snapshots if one.summary and "frazil-once-application" in one.summary]
    table.expire_snapshots(snapshot_ids=gone)
    table.set_properties(kept)
    assert table.append(MORE, once=("job", 2)) is not None


def test_branches_have_their_own_record_and_share_common_history() -> None:
    table = new_table()
    table.append(DATA, once=("job", 1))
    table.create_branch("audit")
    assert table.append(DATA, once=("job", 1), branch="audit") is None
    assert table.append(MORE, once=("job", 2), branch="audit") is not None
    assert table.append(MORE, once=("job", 2)) is not None
    assert table.append(MORE, once=("job", 2), branch="new") is None
    assert table.append(MORE, once=("job", 3), branch="new.er") is not None
    assert table.append(MORE, once=("job", 3), branch="new.er") is None
    assert table.append(MORE, once=("job", 3), branch="new") is not None


@pytest.mark.parametrize("drops", [False, True])
def test_fast_forwarded_write_stays_done_after_expiry(drops: bool) -> None:
    table = new_table()
    table.append(DATA)
    table.append(MORE, once=("job", 2), branch="audit")
    table.append(MORE, branch="audit")
    table.fast_forward("main", to="audit")
    if drops:
        table.drop_branch("audit")
    table.append(MORE)
    table.expire_snapshots(older_than=table._catalog.now_ms() + 1000, retain_last=1)
    assert table.append(MORE, once=("job", 2)) is None


def test_recreated_branch_does_not_inherit_the_record() -> None:
    table = new_table()
    table.append(DATA)
    table.append(MORE, once=("job", 2), branch="audit")
    table.drop_branch("audit")
    table.append(MORE)
    table.append(MORE)
    table.expire_snapshots(older_than=table._catalog.now_ms() + 1000, retain_last=1)
    table.create_branch("audit")
    assert table.append(MORE, once=("job", 2), branch="audit") is not None


def test_staged_write_is_staged_once_and_stays_done_when_published() -> None:
    table = new_table(properties={"write.wap.enabled": "true"})
    table.append(DATA)
    staged = {"wap.id": "w1"}
    assert table.append(MORE, snapshot_properties=staged, once=("job", 1))
    assert table.append(MORE, snapshot_properties=staged, once=("job", 1)) is None
    table.append(DATA)
    table.publish_changes("w1")
    assert table.append(MORE, once=("job", 1)) is None
    table.append(DATA)
    table.expire_snapshots(older_than=table._catalog.now_ms() + 1000, retain_last=1)
    assert table.append(MORE, once=("job", 1)) is None


def test_query_moved_from_the_jar_continues_after_its_last_epoch() -> None:
    table = new_table()
    epoch = {"spark.sql.streaming.queryId": "q1", "spark.sql.streaming.epochId": "4"}
    table.append(DATA, snapshot_properties=epoch)
    assert table.append(DATA, once=("q1", 4)) is None
    assert table.append(DATA, once=("q1", 5)) is not None


@pytest.mark.parametrize("is_expired", [False, True])
def test_batch_number_with_different_input_is_refused(is_expired: bool) -> None:
    table = new_table()
    for number in range(3):
        once = Once("q1", number, is_epoch=True, input_digest=f"input {number}")
        assert table.append(DATA, once=once) is not None
    if is_expired:
        table.expire_snapshots(older_than=table._catalog.now_ms() + 1000, retain_last=1)
    for number in range(3):
        known = Once("q1", number, is_epoch=True, input_digest=f"input {number}")
        assert table.append(DATA, once=known) is None
        # Of the jar's batches nobody knows the input.
        assert table.append(DATA, once=replace(known, input_digest=None)) is None
        with pytest.raises(InvalidRequestError, match=f"Cannot write batch {number} of the query q1"):
            table.append(DATA, once=replace(known, input_digest="another"))


def test_second_of_two_queries_writing_different_rows_as_one_batch_is_refused() -> None:
    table = new_table(properties={"commit.retry.min-wait-ms": "1"})
    rival = Table(table._catalog, table.state)
    ours, theirs = (Once("q1", 0, is_epoch=True, input_digest=one) for one in ("ours", "theirs"))
    with (
        Race(table._catalog, "commit", lambda: rival.append(MORE, once=theirs)) as race,
        pytest.raises(InvalidRequestError, match="Cannot write batch 0 of the query q1"),
    ):
        table.append(DATA, once=ours)
    assert race.has_run
    assert ids(table) == [2, 3]


@pytest.mark.parametrize("after", [False, True], ids=["before the commit", "after the commit"])
def test_rerun_after_a_crash_at_the_commit_has_written_once(after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    commit = table._catalog.commit

    def dies(*arguments: Any) -> Any:
        if after:
            commit(*arguments)
        raise SimulatedCrash("dead")

    with monkeypatch.context() as patched:
        patched.setattr(table._catalog, "commit", dies)
        with pytest.raises(SimulatedCrash):
            table.append(DATA, once=("job", 1))
    assert (table.append(DATA, once=("job", 1)) is None) == after
    assert ids(table) == [1, 2]


def test_commit_with_an_unknown_outcome_is_found_by_the_next_run(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table(properties={"commit.status-check.num-retries": "0"})
    commit = table._catalog.commit

    def loses_the_answer(*arguments: Any) -> Any:
        commit(*arguments)
        return Unknown(CommitStateUnknownError("lost"), ())

    with monkeypatch.context() as patched:
        patched.setattr(table._catalog, "commit", loses_the_answer)
        patched.setattr(table._catalog, "resolve_unknown", lambda unknown: unknown)
        with pytest.raises(CommitStateUnknownError):
            table.append(DATA, once=("job", 1))
    assert table.append(DATA, once=("job", 1)) is None
    assert ids(table) == [1, 2]


def test_many_threads_with_one_name_write_one_snapshot() -> None:
    table = new_table(properties={"commit.retry.min-wait-ms": "1", "commit.retry.num-retries": "100"})
    made: list[object] = []

    def write() -> None:
        own = Table(table._catalog, table.state)
        made.append(own.append(DATA, once=("job", 1)))

    threads = [threading.Thread(target=write) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert ids(table) == [1, 2]
    assert sum(one is not None for one in made) == 1


@pytest.mark.extended
def test_record_is_bounded() -> None:
    table = new_table()
    for number in range(15):
        table.append(DATA, once=("job", number))
    for number in range(205):
        table.delete("false", once=(f"app {number}", "v"))
    records = {name: value for name, value in table.properties.items() if name.startswith("frazil.once.")}
    assert len(records) <= 200
    assert sum(map(len, records.values())) < 20_000
    assert table.append(DATA, once=("job", 3)) is None


def test_replaced_table_has_an_empty_record() -> None:
    table = new_table()
    table.append(DATA, once=("job", 1))
    name = next(one for one in table.properties if one.startswith("frazil.once."))
    other = new_table(properties={name: table.properties[name]})
    assert other.append(DATA, once=("job", 1)) is not None


@pytest.mark.parametrize(
    "once, says",
    [
        ("job", "pair of an application and a version"),
        (("job",), "pair"),
        (("", 1), "application"),
        ((3, 1), "application"),
        (("job", None), "neither a string nor an integer"),
        (("job", True), "neither a string nor an integer"),
        (("job", 1.5), "neither a string nor an integer"),
        (("job", ""), "1 to 500"),
        (("job", 1 << 70), "64 bits"),
    ],
)
def test_invalid_name_is_refused_before_writing(once: Any, says: str) -> None:
    table = new_table()
    with pytest.raises(InvalidRequestError, match=says):
        table.append(DATA, once=once)
    with pytest.raises(frazil.FrazilError, match=says):
        table.merge(DATA, on="target.id = source.id", once=once)
    assert table.refresh().current_snapshot is None


def test_corrupted_record_is_an_error_naming_it() -> None:
    table = new_table()
    table.set_properties({"frazil.once.main.job": "[[1]]"})
    with pytest.raises(InvalidRequestError, match=r"frazil\.once\.main\.job"):
        table.append(DATA, once=("job", 1))
