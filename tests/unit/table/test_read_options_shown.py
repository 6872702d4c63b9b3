"""Every read option of the jar chooses what it says, without Spark; `docs/options.md` names these tests."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import ConcurrentChangeError
from frazil.sessions.scan_options import scan_changes, scan_with_options
from frazil.table.table import hold


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "kind": ["a"] * len(ids)})


@pytest.fixture
def table() -> frazil.Table:
    """Snapshots with the rows 1; 1 and 2; 1, 2 and 3. A tag is at the first, a branch at the second with 9 more."""
    made = frazil.connect("memory:").create_table("db.t", "id bigint, kind string")
    made.append(rows(1))
    made.create_tag("start")
    made.append(rows(2))
    made.create_branch("audit")
    made.append(rows(9), branch="audit")
    made.append(rows(3))
    return made


def ids(table: frazil.Table, **options: Any) -> list[int]:
    texts = {name.replace("_", "-"): str(value) for name, value in options.items()}
    found: list[int] = sorted(scan_with_options(table.state, texts, time_zone="UTC").to_arrow()["id"].to_pylist())
    return found


def test_each_option_that_names_a_snapshot_reads_it(table: frazil.Table) -> None:
    main = [one for one in table.snapshots if one.snapshot_id != table.refs["audit"].snapshot_id]
    first, second, third = main
    assert ids(table) == [1, 2, 3]
    assert ids(table, branch="audit") == [1, 2, 9]
    assert ids(table, tag="start") == [1]
    assert ids(table, **{"snapshot-id": second.snapshot_id}) == [1, 2]
    for version, found in (("start", [1]), ("audit", [1, 2, 9]), (str(second.snapshot_id), [1, 2])):
        assert ids(table, versionAsOf=version) == found
    assert ids(table, **{"as-of-timestamp": third.timestamp_ms}) == [1, 2, 3]
    at = pa.scalar(third.timestamp_ms, pa.timestamp("ms", "UTC")).as_py()
    assert ids(table, timestampAsOf=at.isoformat()) == [1, 2, 3]
    assert ids(table, **{"start-snapshot-id": first.snapshot_id}) == [2, 3]
    between = {"start-snapshot-id": first.snapshot_id, "end-snapshot-id": second.snapshot_id}
    assert ids(table, **between) == [2]


def test_change_window_between_times(table: frazil.Table) -> None:
    first, *_ = table.snapshots
    last = table.current_snapshot
    assert last is not None
    for options, found in (
        ({"start-timestamp": "0", "end-timestamp": str(last.timestamp_ms)}, [1, 2, 3]),
        ({"start-timestamp": "0", "end-timestamp": str(first.timestamp_ms - 1)}, []),
    ):
        scan = scan_changes(table.state, options)
        assert sorted(scan.to_arrow()["id"].to_pylist()) == found


@pytest.mark.parametrize("level", ["serializable", "snapshot"])
@pytest.mark.parametrize(
    "name", ["write.delete.isolation-level", "write.update.isolation-level", "write.merge.isolation-level"]
)
def test_concurrently_added_rows_stop_changes_only_if_serializable(table: frazil.Table, name: str, level: str) -> None:
    table.set_properties({name: level})
    table.append(rows(5, 6))
    held = hold(table.refresh())
    table.append(rows(5))

    def change() -> None:
        if "delete" in name:
            held.delete("id = 5", engine="local")
        elif "update" in name:
            held.update({"kind": "'b'"}, where="id = 5", engine="local")
        else:
            held.merge(rows(5), "target.id = source.id", engine="local").when_matched().update_all().execute()

    if level == "serializable":
        with pytest.raises(ConcurrentChangeError):
            change()
        assert ids(table.refresh()) == [1, 2, 3, 5, 5, 6]
    else:
        change()
        assert ids(table.refresh()) == [1, 2, 3, 5, *([] if "delete" in name else [5]), 6]
