"""Following a table without Spark: what comes, in which order, from where it goes on, and what it cannot go on with."""

from __future__ import annotations

import datetime
import itertools
import threading
import time
import uuid
from typing import Any

import pyarrow as pa
import pytest

from frazil.catalog.memory import MemoryCatalog
from frazil.errors import FrazilError, InvalidRequestError, NotFoundError, SnapshotNotFoundError, StorageError
from frazil.table.lake import Lake
from frazil.table.table import Table


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "k": [f"k{one % 2}" for one in ids]})


@pytest.fixture(params=["copy-on-write", "merge-on-read"])
def table(request: pytest.FixtureRequest) -> Table:
    modes = {f"write.{verb}.mode": request.param for verb in ("delete", "update", "merge")}
    return Lake(MemoryCatalog()).create_table("db.t", "id bigint, k string", properties=modes)


def ids(batches: Any) -> list[int]:
    return [one for batch in batches for one in batch.column("id").to_pylist()]


def head(table: Table) -> int:
    assert table.refresh().current_snapshot is not None
    return table.refresh().metadata.current_snapshot_id or 0


def changed(batches: Any) -> list[tuple[str, int, str]]:
    return sorted((row["_change_type"], row["id"], row["k"]) for batch in batches for row in batch.to_pylist())


def test_appended_rows_are_followed_in_commit_order(table: Table) -> None:
    table.append(rows(1))
    start = head(table)
    table.append(rows(5, 4))
    table.append(rows(2))
    followed = table.follow(after=start, until="now")
    batches = list(followed)
    assert all(isinstance(one, pa.RecordBatch) for one in batches)
    assert ids(batches) == [5, 4, 2]
    assert followed.snapshot is not None
    assert followed.snapshot.snapshot_id == head(table)


def test_default_start_is_the_present(table: Table) -> None:
    table.append(rows(1))
    followed = table.follow(poll_seconds=0.01)
    table.append(rows(2))
    assert ids([next(followed)]) == [2]
    table.append(rows(3))
    assert ids([next(followed)]) == [3]


def test_following_from_the_beginning_starts_with_the_whole_table_and_deletes_applied(table: Table) -> None:
    table.append(rows(1, 2, 3))
    table.delete("id = 2")
    followed = table.follow(after="beginning", poll_seconds=0.01)
    table.append(rows(4))
    assert ids(itertools.islice(followed, 2)) == [1, 3, 4]


def test_follower_of_an_empty_table_sees_its_first_rows(table: Table) -> None:
    for after in (None, "beginning"):
        followed = table.follow(after=after, poll_seconds=0.01)
        table.append(rows(1))
        assert ids([next(followed)]) == [1]
        table.rollback_to(head(table))
        table = Lake(MemoryCatalog()).create_table("db.t", "id bigint, k string")


@pytest.mark.parametrize("after", ["beginning", "snapshot"])
def test_token_resumes_at_the_next_row_wherever_the_loop_stopped(table: Table, after: str) -> None:
    table.append(rows(0))
    start: Any = head(table) if after == "snapshot" else after
    for begin in range(1, 40, 4):
        table.append(rows(*range(begin, begin + 4)))
    expected = ids(table.follow(after=start, until="now"))
    assert sorted(expected) == sorted(range(0 if after == "beginning" else 1, 41))
    seen: list[int] = []
    while len(seen) < len(expected):
        followed = table.follow(after=start, until="now")
        batch = next(followed)
        seen += ids([batch])
        start = followed.token
    assert seen == expected
    assert list(table.follow(after=start, until="now")) == []


def test_token_within_a_snapshot_skips_delivered_rows(table: Table) -> None:
    table.append(rows(0))
    start = head(table)
    with table.transaction() as tx:
        tx.append(rows(1))
    table.append(rows(*range(10)))
    followed = table.follow(after=start, until="now")
    next(followed)
    second = next(followed)
    halfway = f'{{"table":"{table.metadata.table_uuid}","after":{followed.snapshot.parent_snapshot_id},'  # type: ignore[union-attr]
    halfway += f'"snapshot":{head(table)},"rows":7}}'
    assert second.num_rows == 10
    assert ids(table.follow(after=halfway, until="now")) == [7, 8, 9]


@pytest.mark.parametrize("what", ["delete", "update", "overwrite"])
def test_snapshot_removing_rows_is_an_error_naming_the_options(table: Table, what: str) -> None:
    table.append(rows(1, 2, 3))
    start = head(table)
    table.append(rows(4))
    if what == "delete":
        table.delete("id = 1")
    elif what == "update":
        table.update({"k": "'z'"}, where="id = 1")
    else:
        table.overwrite(rows(7), where="id = 1")
    changed_by = head(table)
    table.append(rows(5))
    followed = table.follow(after=start, until="now")
    assert ids([next(followed)]) == [4]
    with pytest.raises(InvalidRequestError, match=f"{changed_by}.*removes or replaces") as error:
        next(followed)
    assert all(choice in str(error.value) for choice in ('"changes"', '"skip"', '"added-files"'))
    assert ids(table.follow(after=start, until="now", changes="skip")) == [4, 5]
    assert ids(table.follow(after=followed.token, until="now", changes="skip")) == [5]


def test_files_added_by_a_change_include_copied_rows(table: Table) -> None:
    copies = [2, 3] if table.properties["write.update.mode"] == "copy-on-write" else []
    table.append(rows(1, 2, 3))
    start = head(table)
    table.update({"k": "'z'"}, where="id = 1")
    table.append(rows(4))
    table.delete("id = 4")
    batches = list(table.follow(after=start, until="now", changes="added-files"))
    assert ids(batches) == [*copies, 1, 4]
    assert {one["id"]: one["k"] for batch in batches for one in batch.to_pylist()}[1] == "z"
    few = table.follow(after=start, until="now", changes="added-files", predicate="id = 1", columns=["k"])
    assert [batch.to_pydict() for batch in few] == [{"k": ["z"]}]


def test_changes_have_their_type_and_no_copied_rows(table: Table) -> None:
    table.append(rows(1, 2, 3))
    start = head(table)
    table.update({"k": "'z'"}, where="id = 1")
    table.delete("id = 2")
    table.append(rows(4))
    table.maintain.rewrite_data_files(rewrite_all=True)
    expected = [("DELETE", 1, "k1"), ("DELETE", 2, "k0"), ("INSERT", 1, "z"), ("INSERT", 4, "k0")]
    assert changed(table.follow(after=start, until="now", changes="changes")) == expected
    whole = table.changes(start=start)
    assert changed([whole]) == expected
    assert sorted(whole["_change_ordinal"].to_pylist()) == [0, 0, 1, 2]
    assert changed([table.changes(end=start)]) == [("INSERT", 1, "k1"), ("INSERT", 2, "k0"), ("INSERT", 3, "k1")]
    assert table.changes(start=head(table)).num_rows == 0
    first = table.changes(start=start, end=table.snapshots[1].snapshot_id, columns=["id"])
    assert (
        sorted(zip(first["_change_type"].to_pylist(), first["id"].to_pylist(), strict=True))
        == [
            ("DELETE", 1),
            ("INSERT", 1),
        ]
        or first.num_rows == 0
    )


def test_changes_between_times_are_those_of_their_snapshots(table: Table) -> None:
    table.append(rows(1))
    first = table.current_snapshot
    assert first is not None
    time.sleep(0.01)
    table.append(rows(2))
    later = "2100-01-01T00:00:00Z"
    assert table.changes(end=later)["id"].to_pylist() == [1, 2]
    with pytest.raises(SnapshotNotFoundError, match="no snapshot 77"):
        table.changes(start=77)


def test_changes_of_nested_columns_and_equal_rows_cancel_by_count() -> None:
    table = Lake(MemoryCatalog()).create_table("db.t", "id bigint, l list<int>, f double")
    data = pa.table(
        {"id": [1, 1, 1, 2], "l": pa.array([[1], [1], None, [2, None]], pa.list_(pa.int32())), "f": [float("nan")] * 4}
    )
    table.append(data)
    start = head(table)
    table.update({"f": "1.0d"}, where="id = 2")
    found = table.changes(start=start)
    assert sorted(zip(found["_change_type"].to_pylist(), found["id"].to_pylist(), strict=True)) == [
        ("DELETE", 2),
        ("INSERT", 2),
    ]


def test_changes_of_every_column_type_leave_out_copied_rows() -> None:
    columns = "id bigint, u uuid, f fixed(2), l list<uuid>, s struct<x: uuid>, at time, v variant, nothing unknown"
    with Lake(MemoryCatalog()) as lake:
        table = lake.create_table("db.t", columns, format_version=3)
        u = uuid.UUID(int=7)
        row = {"u": u, "f": b"ab", "l": [u], "s": {"x": u}, "at": datetime.time(1, 2)}
        table.append([{"id": 1, **row}, {"id": 2, **row}])
        table.delete("id = 2")
        changed = table.changes(start=table.snapshots[0].snapshot_id)
    assert changed.select(["id", "_change_type"]).to_pylist() == [{"id": 2, "_change_type": "DELETE"}]


def test_unknown_snapshot_is_an_error(table: Table) -> None:
    table.append(rows(1))
    with pytest.raises(SnapshotNotFoundError, match="after snapshot 123: the table has no such snapshot"):
        list(table.follow(after=123, until="now"))


def test_expired_token_is_an_error_with_a_remedy(table: Table) -> None:
    table.append(rows(1))
    start = head(table)
    for number in range(2, 6):
        table.append(rows(number))
    table.expire_snapshots(older_than=table._catalog.now_ms() + 1000, retain_last=2)
    with pytest.raises(SnapshotNotFoundError, match="have expired") as error:
        table.follow(after=start)
    assert "beginning" in str(error.value)
    known = table.snapshots[0].parent_snapshot_id
    assert f"after={known}" in str(error.value)
    assert ids(table.follow(after=known, until="now")) == [4, 5]
    assert sorted(ids(table.follow(after="beginning", until="now", predicate="id > 3", columns=["id"]))) == [4, 5]


def test_snapshot_expiring_under_a_slow_follower_is_an_error(table: Table) -> None:
    table.append(rows(1))
    followed = table.follow(poll_seconds=0.01)
    for number in range(2, 6):
        table.append(rows(number))
    table.expire_snapshots(older_than=table._catalog.now_ms() + 1000, retain_last=1)
    with pytest.raises(SnapshotNotFoundError, match="have expired"):
        next(followed)


def test_rollback_behind_the_follower_is_an_error(table: Table) -> None:
    table.append(rows(1))
    start = head(table)
    table.append(rows(2))
    followed = table.follow(poll_seconds=0.01)
    table.rollback_to(start)
    with pytest.raises(InvalidRequestError, match="rolled back"):
        next(followed)


def test_dropped_or_recreated_table_is_an_error() -> None:
    lake = Lake(MemoryCatalog())
    table = lake.create_table("db.t", "id bigint, k string")
    table.append(rows(1))
    followed = table.follow(poll_seconds=0.01)
    token = followed.token
    lake.drop_table("db.t")
    with pytest.raises(NotFoundError):
        next(followed)
    again = lake.create_table("db.t", "id bigint, k string")
    again.append(rows(2))
    with pytest.raises(InvalidRequestError, match="another table"):
        again.follow(after=token)
    with pytest.raises(FrazilError):
        next(table.follow(poll_seconds=0.01))


def test_branch_is_followed_by_name(table: Table) -> None:
    table.append(rows(1))
    table.create_branch("audit")
    followed = table.follow(branch="audit", poll_seconds=0.01)
    table.append(rows(2))
    table.append(rows(3), branch="audit")
    assert ids([next(followed)]) == [3]


def test_added_column_appears_in_later_batches(table: Table) -> None:
    table.append(rows(1))
    followed = table.follow(poll_seconds=0.01)
    table.append(rows(2))
    assert next(followed).schema.names == ["id", "k"]
    with table.update_schema() as update:
        update.add_column("n", "int")
    table.append(rows(3).append_column("n", pa.array([9], pa.int32())))
    assert next(followed).column("n").to_pylist() == [9]


def test_stop_ends_a_waiting_loop_from_another_thread(table: Table) -> None:
    followed = table.follow(poll_seconds=30)
    threading.Timer(0.05, followed.stop).start()
    started = time.monotonic()
    assert list(followed) == []
    assert time.monotonic() - started < 10


def test_until_a_snapshot_or_time_ends_the_loop(table: Table) -> None:
    table.append(rows(1))
    start = head(table)
    table.append(rows(2))
    middle = head(table)
    table.append(rows(3))
    assert ids(table.follow(after=start, until=middle)) == [2]
    assert ids(table.follow(after=middle, until=start)) == []
    assert ids(table.follow(after=start, until="2001-01-01T00:00:00Z", poll_seconds=0.01)) == [2, 3]
    with pytest.raises(SnapshotNotFoundError):
        table.follow(until=12)


def test_temporarily_unreachable_catalog_is_retried(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(rows(1))
    followed = table.follow(poll_seconds=0.01)
    table.append(rows(2))
    refresh, calls = table._catalog.refresh, []

    def lost(loaded: Any) -> Any:
        calls.append(1)
        if len(calls) < 4:
            raise StorageError("Cannot read: the catalog is away")
        return refresh(loaded)

    monkeypatch.setattr(table._catalog, "refresh", lost)
    assert ids([next(followed)]) == [2]
    assert len(calls) == 4


@pytest.mark.parametrize(
    "asked, says",
    [
        ({"after": "nonsense"}, "no token"),
        ({"after": '{"table": 3}'}, "no token"),
        ({"after": '{"table":null,"after":"x"}'}, "no token"),
        ({"after": True}, "snapshot's id or a token"),
        ({"after": 12}, "12"),
        ({"changes": "all"}, "changes='all'"),
        ({"poll_seconds": 0}, "positive"),
        ({"columns": ["nope"]}, "nope"),
        ({"columns": "id"}, "list of names"),
        ({"predicate": "nope = 1"}, "nope"),
        ({"branch": "nope"}, "nope"),
        ({"until": "someday"}, "point in time"),
    ],
)
def test_unfollowable_source_is_refused_at_once(table: Table, asked: dict[str, Any], says: str) -> None:
    table.append(rows(1))
    with pytest.raises(FrazilError, match=says):
        table.follow(**asked)
