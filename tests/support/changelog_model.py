"""What a change feed must say: the live places of adjacent snapshots, compared.

A row is known by its file and position. Those that a snapshot has and the one before it had not were inserted, the
others way round deleted; nothing is known here of manifests and deletes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from frazil.spec.schema import Schema
from tests.support.scan_model import Model, ModelFile, _today

Row = dict[str, Any]
Place = tuple[str, int]


@dataclass
class Feed:
    """The rows of every file that ever was, and the live places after each snapshot."""

    model: Model
    files: dict[str, tuple[ModelFile, list[dict[int, Any] | None]]] = field(default_factory=dict)
    states: list[tuple[int, set[Place]]] = field(default_factory=list)

    def watch(self) -> None:
        """Note the state of the model, if it has a new snapshot."""
        snapshot = self.model.table.snapshot
        if snapshot is None or (self.states and self.states[-1][0] == snapshot.snapshot_id):
            return
        live = set()
        for one in self.model.files:
            path = one.file.file_path
            self.files.setdefault(path, (one, list(one.rows)))
            live |= {(path, at) for at, row in enumerate(one.rows) if row is not None}
        self.states.append((snapshot.snapshot_id, live))

    def changes(self, schema: Schema, after: int | None = None, to: int | None = None) -> list[Row]:
        """Return the changed rows under a schema, with their places, and how they changed."""
        found: list[Row] = []
        before: set[Place] = set()
        ordinal = -1
        is_within = after is None
        for snapshot_id, live in self.states:
            if is_within:
                ordinal += 1
                for places, kind in ((live - before, "INSERT"), (before - live, "DELETE")):
                    found += [
                        self._row(schema, place)
                        | {"_change_type": kind, "_change_ordinal": ordinal, "_commit_snapshot_id": snapshot_id}
                        for place in places
                    ]
            before = live
            is_within = is_within or snapshot_id == after
            if snapshot_id == to:
                break
        return found

    def _row(self, schema: Schema, place: Place) -> Row:
        path, at = place
        file, rows = self.files[path]
        row = rows[at]
        assert row is not None
        return _today(row, schema.struct, file.schema) | {"_file": path, "_pos": at}
