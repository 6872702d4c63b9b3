"""Laws of changes: whatever is asked for in whatever order, metadata stays sound and no reference is lost."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from frazil.catalog.metadata_files import forgotten_metadata_files
from frazil.changes import updates as change
from frazil.changes.apply import apply_updates
from frazil.changes.changes_json import decode_update, encode_update
from frazil.changes.updates import TableUpdate
from frazil.codec.table_metadata_json import decode_table_metadata, encode_table_metadata
from frazil.errors import CommitConflictError, FrazilError
from frazil.spec.check_table_metadata import check_table_metadata
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import SnapshotRef
from frazil.spec.table_metadata import TableMetadata
from tests.support import builders
from tests.support.metadata_builders import START_MS, metadata, snapshot

NAMES = st.sampled_from(["main", "a", "b", "c"])
SMALL = st.integers(0, 12)


class MetadataChanges(RuleBasedStateMachine):
    """A table under changes by several writers, some with bad clocks; refused changes leave it as it was."""

    table: TableMetadata

    @initialize(version=st.sampled_from([1, 2, 3]), limit=st.sampled_from(["0", "1", "3", "100"]))
    def start(self, version: int, limit: str) -> None:
        self.table = metadata(format_version=version, properties={"write.metadata.previous-versions-max": limit})
        self.next_id = 0
        self.files: list[str] = []

    def change(self, now_ms: int, *updates: TableUpdate) -> bool:
        before = self.table
        location = f"f{len(self.files)}"
        sent = [decode_update(encode_update(one)) for one in updates]
        try:
            after = apply_updates(before, sent, now_ms=now_ms, base_location=location)  # type: ignore[arg-type]
        except FrazilError:
            return False
        if after is before:
            return True
        self.check_step(before, after, location)
        self.files.append(location)
        self.table = after
        return True

    def check_step(self, before: TableMetadata, after: TableMetadata, location: str) -> None:
        assert after.table_uuid == before.table_uuid
        assert after.format_version >= before.format_version
        assert after.last_updated_ms >= before.last_updated_ms
        assert after.last_sequence_number >= before.last_sequence_number
        assert after.last_column_id >= before.last_column_id
        assert after.next_row_id >= before.next_row_id
        assert after.metadata_log[-1].metadata_file == location
        logged = [one.metadata_file for one in forgotten_metadata_files(before, after)]
        assert logged + [one.metadata_file for one in after.metadata_log] == [
            *(one.metadata_file for one in before.metadata_log),
            location,
        ]
        assert len(after.snapshot_log) <= len(before.snapshot_log) + 1

    @rule(
        back_ms=st.integers(-(10**6), 10**6),
        branch=NAMES,
        count=st.integers(1, 3),
        rows=st.integers(0, 5),
        is_staged=st.booleans(),
    )
    def append(self, back_ms: int, branch: str, count: int, rows: int, is_staged: bool) -> None:
        updates: list[TableUpdate] = []
        version = self.table.format_version
        number, row_id = self.table.last_sequence_number, self.table.next_row_id
        ref = self.table.find_ref(branch)
        parent = None if ref is None else ref.snapshot_id
        time_ms = START_MS + back_ms
        for _ in range(count):
            self.next_id += 1
            number += 1
            fields: dict[str, Any] = {"timestamp_ms": time_ms, "sequence_number": number if version > 1 else 0}
            fields["schema_id"] = self.table.current_schema_id
            if version >= 3:
                fields |= {"first_row_id": row_id, "added_rows": rows}
                row_id += rows
            updates.append(change.AddSnapshot(snapshot(self.next_id, parent, **fields)))
            if not is_staged:
                updates.append(change.SetSnapshotRef(branch, SnapshotRef(self.next_id)))
            parent = self.next_id
        is_tag = ref is not None and ref.is_tag and not is_staged
        assert self.change(time_ms, *updates) != is_tag

    @rule(name=NAMES, snapshot_id=SMALL, kind=st.sampled_from(["branch", "tag"]))
    def set_ref(self, name: str, snapshot_id: int, kind: Any) -> None:
        self.change(START_MS, change.SetSnapshotRef(name, SnapshotRef(snapshot_id, kind)))

    @rule(name=NAMES)
    def remove_ref(self, name: str) -> None:
        assert self.change(START_MS, change.RemoveSnapshotRef(name))
        assert name not in self.table.refs

    @rule(ids=st.sets(SMALL, max_size=6))
    def remove_snapshots(self, ids: set[int]) -> None:
        named = {ref.snapshot_id for ref in self.table.refs.values()}
        refs = self.table.refs
        assert self.change(START_MS, change.RemoveSnapshots(tuple(ids))) == (not named & ids)
        assert self.table.refs == refs

    @rule(column=st.integers(4, 8), is_current=st.booleans())
    def add_schema(self, column: int, is_current: bool) -> None:
        schema = builders.schema(*builders.schema().fields, builders.field(column))
        updates: list[TableUpdate] = [change.AddSchema(schema)]
        if is_current:
            updates.append(change.SetCurrentSchema())
        assert self.change(START_MS, *updates)

    @rule(ids=st.sets(st.integers(0, 5)))
    def remove_schemas(self, ids: set[int]) -> None:
        in_use = {one.schema_id for one in self.table.snapshots} | {self.table.current_schema_id}
        present = set(self.table.schemas_by_id)
        done = self.change(START_MS, change.RemoveSchemas(tuple(ids)))
        assert done == (not ids & in_use & present)

    @rule(value=st.text(max_size=3))
    def set_property(self, value: str) -> None:
        assert self.change(START_MS, change.SetProperties(FrozenMap({"p": value})))

    @precondition(lambda self: self.table.format_version < 3)
    @rule()
    def upgrade(self) -> None:
        assert self.change(START_MS, change.UpgradeFormatVersion(self.table.format_version + 1))

    @rule()
    def lose_a_race(self) -> None:
        if self.table.format_version > 1 and self.table.last_sequence_number > 0:
            late = snapshot(10**6, sequence_number=self.table.last_sequence_number, first_row_id=None)
            try:
                apply_updates(self.table, [change.AddSnapshot(late)], now_ms=START_MS)
            except (CommitConflictError, FrazilError):
                return
            raise AssertionError("a sequence number was given out twice")

    @invariant()
    def is_sound(self) -> None:
        if not hasattr(self, "table"):
            return
        check_table_metadata(self.table)
        assert decode_table_metadata(encode_table_metadata(self.table)) == self.table
        if self.table.current_snapshot_id is not None:
            assert self.table.snapshot_log[-1].snapshot_id == self.table.current_snapshot_id
        times = [one.timestamp_ms for one in self.table.snapshot_log]
        assert times == sorted(times)
        if self.table.format_version > 1:
            numbers = [head.sequence_number for head in self.table.snapshots.heads if head.sequence_number > 0]
            assert len(set(numbers)) == len(numbers)
        if self.table.format_version >= 3:
            ranges = sorted(
                (head.first_row_id, head.first_row_id + (head.added_rows or 0))
                for head in self.table.snapshots.heads
                if head.first_row_id is not None
            )
            assert all(one[1] <= other[0] for one, other in pairwise(ranges))


TestMetadataChanges = MetadataChanges.TestCase
TestMetadataChanges.settings = settings(max_examples=40, stateful_step_count=25)
