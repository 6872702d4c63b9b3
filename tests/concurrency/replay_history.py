"""Replays the history of a table against a model of it, state by state, and compares every snapshot.

A table's states are in one order: each names the one before it. Every commit has a tag, in its snapshot's summary or in
the table's properties, and its writer told beforehand what it does. So checking is linear:

    tags        what was acknowledged happened exactly once, what was refused never, what is not known at most once
    states      from one state to the next exactly one commit happened, and it did what its writer said: rows of each
                branch, columns, references, properties
    snapshots   the rows of every new snapshot, read from its files (`live_rows.py`), are the model's
    time        what was acknowledged before another began comes before it
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from frazil.catalog.base import Catalog
from frazil.catalog.filesystem import FilesystemCatalog
from frazil.catalog.metadata_files import read_table_metadata
from frazil.loaded import LoadedTable
from frazil.spec.snapshot import Snapshot
from frazil.spec.table_metadata import TableMetadata
from frazil.storage.base import Storage
from tests.concurrency.live_rows import Row, live_files

Files = dict[str, dict[int, Row]]
"""Live rows by file and position."""


@dataclass
class Replay:
    """What a replay saw."""

    states: int = 0
    snapshots: int = 0
    tags: list[str] = field(default_factory=list)


def states_of(catalog: Catalog, loaded: LoadedTable) -> Iterator[TableMetadata]:
    """Yield every state a table ever had, the newest first."""
    storage, metadata = loaded.storage, loaded.metadata
    yield metadata
    if isinstance(catalog, FilesystemCatalog):
        assert loaded.metadata_location is not None
        folder, _, name = loaded.metadata_location.rpartition("/")
        for version in range(int(name[1:].partition(".")[0]) - 1, 0, -1):
            yield read_table_metadata(storage, f"{folder}/v{version}.metadata.json")
        return
    while metadata.metadata_log:
        metadata = read_table_metadata(storage, metadata.metadata_log[-1].metadata_file)
        yield metadata


def check_history(catalog: Catalog, loaded: LoadedTable, told: list[dict[str, Any]]) -> Replay:
    """Replay a table's history against what its writers told."""
    changes = {line["tag"]: line for line in told if line["event"] == "invoke"}
    ended = {line["tag"]: line for line in told if line["event"] in ("ok", "fail", "nothing", "unknown")}
    model = _Model(loaded.storage)
    seen = Replay()
    states = [*states_of(catalog, loaded)][::-1]
    seen.states = len(states)
    for before, after in itertools.pairwise(states):
        tag = _tag_of(before, after)
        if tag is None:
            # A writer who could not hear its answer takes the name of the next state with the state before.
            assert after == before, "something changed, and nobody did it"
            continue
        seen.tags.append(tag)
        state = LoadedTable(loaded.identifier, after, None, loaded.storage)
        model.apply(changes.get(tag, {"op": "first"}), before, after)
        model.check(after)
        for snapshot in _new_snapshots(before, after):
            seen.snapshots += 1
            model.compare(state, snapshot)
    _check_tags(seen.tags, ended)
    _check_order([tag for tag in seen.tags if tag in changes], changes, ended)
    return seen


def _tag_of(before: TableMetadata, after: TableMetadata) -> str | None:
    new = [one.summary["tag"] for one in _new_snapshots(before, after) if one.summary is not None]
    if before.properties.get("tag") != after.properties.get("tag"):
        new.append(after.properties["tag"])
    assert len(new) <= 1, "two commits in one step"
    return new[0] if new else None


def _new_snapshots(before: TableMetadata, after: TableMetadata) -> list[Snapshot]:
    known = set(before.snapshots.ids)
    return [after.snapshot(one) for one in after.snapshots.ids if one not in known]


def _check_tags(tags: list[str], ended: dict[str, dict[str, Any]]) -> None:
    assert len(set(tags)) == len(tags), "a commit happened twice"
    happened = set(tags)
    acknowledged = {tag for tag, line in ended.items() if line["event"] == "ok"}
    assert acknowledged <= happened, f"{len(acknowledged - happened)} acknowledged commits are lost"
    refused = {tag for tag, line in ended.items() if line["event"] in ("fail", "nothing")}
    assert not refused & happened, "a refused commit happened"


def _check_order(tags: list[str], changes: dict[str, dict[str, Any]], ended: dict[str, dict[str, Any]]) -> None:
    earliest_end = float("inf")
    for tag in reversed(tags):
        assert changes[tag]["at"] <= earliest_end, "a commit comes before one that had ended when it began"
        end = ended.get(tag)
        if end is not None and end["event"] == "ok":
            earliest_end = min(earliest_end, end["at"])


class _Model:
    """The table as its writers meant it to be."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._branches: dict[str, Files] = {"main": {}, "side": {}}
        self._columns = {"id", "v"}
        self._refs: dict[str, int] = {}

    def apply(self, change: dict[str, Any], before: TableMetadata, after: TableMetadata) -> None:
        """Do what a writer said it does."""
        if change["op"] == "first":
            self._first(after)
            return
        files = self._branches[change.get("branch", "main")]
        op = change["op"]
        if op == "compact":
            self._compact(files, change)
            return
        for path in change.get("removed", ()):
            assert path in files, "a file was removed that was not there"
            del files[path]
        if op in ("delete_row", "update_row"):
            rows = files.get(change["file"])
            if rows is None:
                assert op == "delete_row", "a row of a file that is gone was updated"
            else:
                assert change["position"] in rows or op == "delete_row", "a row was changed twice"
                rows.pop(change["position"], None)
        if op == "upsert":
            for rows in files.values():
                for at in [at for at, row in rows.items() if row.id == change["id"]]:
                    del rows[at]
        for path, rows_told in change.get("added", {}).items():
            files[path] = {at: Row(*row) for at, row in enumerate(rows_told)}
        if op == "schema":
            self._columns -= {change.get("dropped")}
            self._columns |= {change["new"]} if "new" in change else set()
        if op == "ref":
            self._refs.pop(change.get("dropped", ""), None)
            if "new" in change:
                self._refs[change["new"]] = change["snapshot_id"]
        if op == "expire":
            assert len(after.snapshots) <= len(before.snapshots)

    def _first(self, after: TableMetadata) -> None:
        state = LoadedTable(("first",), after, None, self._storage)
        for snapshot in after.snapshots:
            for one in live_files(state, snapshot):
                for files in self._branches.values():
                    files[one.path] = dict(one.live)

    def _compact(self, files: Files, change: dict[str, Any]) -> None:
        """Rows stay what they are, in other files; those deleted since they were read stay deleted."""
        left = {row for path in change["removed"] for row in files.pop(path).values()}
        for path, rows_told in change["added"].items():
            rows = {at: Row(*row) for at, row in enumerate(rows_told)}
            files[path] = {at: row for at, row in rows.items() if row in left}
            left -= set(rows.values())
        assert not left, "a compaction lost rows"

    def check(self, after: TableMetadata) -> None:
        """Check what is in the metadata itself."""
        assert {one.name for one in after.current_schema.fields} == self._columns
        refs = {name: one.snapshot_id for name, one in after.refs.items() if name not in self._branches}
        assert refs == self._refs
        assert {one.snapshot_id for one in after.refs.values()} <= set(after.snapshots.ids)

    def compare(self, state: LoadedTable, snapshot: Snapshot) -> None:
        """Compare the rows of a snapshot."""
        heads = {name: state.metadata.refs[name].snapshot_id for name in self._branches if name in state.metadata.refs}
        names = [name for name, one in heads.items() if one == snapshot.snapshot_id]
        assert names, "a snapshot is on no branch"
        found = live_files(state, snapshot)
        for name in names:
            expected = {path: rows for path, rows in self._branches[name].items() if rows}
            assert {one.path: one.live for one in found if one.live} == expected, f"other rows in {name}"
