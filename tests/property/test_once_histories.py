"""Writes that happen once, in random histories: a write is done exactly where its row is in the branch.

Every write adds one row that names it, and nothing deletes rows. So the rows of a branch tell which writes are in its
history, whatever was rolled back, branched, forwarded, dropped or expired, and which write must be skipped.
"""

from __future__ import annotations

import contextlib

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.catalog.memory import MemoryCatalog
from frazil.errors import FrazilError
from frazil.table.lake import Lake
from frazil.table.table import Table

BRANCHES = ("main", "audit", "a.b")
APPLICATIONS = ("job", "other.job")


def rows_of(table: Table, branch: str) -> list[tuple[str, str]]:
    metadata = table.refresh().metadata
    if metadata.current_snapshot_id is None and metadata.find_ref(branch) is None:
        return []
    ref = None if metadata.find_ref(branch) is None else branch
    found = table.scan(ref=ref).to_arrow().to_pylist()
    return [(one["app"], one["version"]) for one in found]


def is_done(present: list[tuple[str, str]], application: str, version: int | str) -> bool:
    if isinstance(version, str):
        return (application, f"text {version}") in present
    numbers = [int(text.split()[1]) for app, text in present if app == application and text.startswith("number")]
    return any(version <= one for one in numbers)


STEP = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(BRANCHES), st.sampled_from(APPLICATIONS), st.integers(0, 6)),
    st.tuples(st.just("write"), st.sampled_from(BRANCHES), st.sampled_from(APPLICATIONS), st.sampled_from("abc")),
    st.tuples(st.just("other"), st.sampled_from(BRANCHES)),
    st.tuples(st.just("rollback"), st.sampled_from(BRANCHES), st.integers(0, 5)),
    st.tuples(st.just("current"), st.integers(0, 9)),
    st.tuples(st.just("branch"), st.sampled_from(BRANCHES[1:]), st.integers(0, 9)),
    st.tuples(st.just("drop"), st.sampled_from(BRANCHES[1:])),
    st.tuples(st.just("forward"), st.sampled_from(BRANCHES), st.sampled_from(BRANCHES)),
    st.tuples(st.just("expire"), st.integers(1, 3)),
)


@pytest.mark.extended
@settings(max_examples=60, deadline=None)
@given(st.sampled_from([1, 2, 3]), st.lists(STEP, min_size=3, max_size=25))
def test_write_is_skipped_exactly_if_its_row_is_in_the_branch(version: int, steps: list[tuple[object, ...]]) -> None:
    table = Lake(MemoryCatalog()).create_table("db.t", "app string, version string", format_version=version)
    for step in steps:
        take(table, step)


def take(table: Table, step: tuple[object, ...]) -> None:
    kind, *told = step
    snapshots = table.refresh().snapshots
    with contextlib.suppress(FrazilError):
        match kind, told:
            case "write", [str(branch), str(application), int() | str() as number]:
                write(table, branch, application, number)
            case "other", [str(branch)]:
                table.append(pa.table({"app": ["-"], "version": ["-"]}), branch=branch)
            case "rollback", [str(branch), int(at)]:
                chain = [one.snapshot_id for one in snapshots]
                table.rollback_to(chain[-1 - at % len(chain)], branch=branch) if chain else None
            case "current", [int(at)] if snapshots:
                table.set_current_snapshot(snapshots[at % len(snapshots)].snapshot_id)
            case "branch", [str(name), int(at)] if snapshots:
                table.create_branch(name, snapshots[at % len(snapshots)].snapshot_id)
            case "drop", [str(name)]:
                table.drop_branch(name)
            case "forward", [str(branch), str(to)]:
                table.fast_forward(branch, to=to)
            case "expire", [int(number)]:
                table.expire_snapshots(older_than=table._catalog.now_ms() + 1000, retain_last=number)
            case _:
                pass


def write(table: Table, branch: str, application: str, version: int | str) -> None:
    before = rows_of(table, branch)
    done = is_done(before, application, version)
    text = f"text {version}" if isinstance(version, str) else f"number {version}"
    row = pa.table({"app": [application], "version": [text]})
    made = table.append(row, branch=branch, once=(application, version))
    assert (made is None) == done, (branch, application, version, before)
    assert rows_of(table, branch).count((application, text)) <= 1
