"""Commit one action and return the snapshot it created, for procedures that report their results."""

from __future__ import annotations

from frazil.catalog.base import Catalog
from frazil.commit.action import Action
from frazil.commit.transaction import Transaction
from frazil.loaded import LoadedTable
from frazil.scan.manifest_cache import ManifestCache
from frazil.spec.snapshot import Snapshot


def commit_snapshot(
    catalog: Catalog, loaded: LoadedTable, action: Action, *, cache: ManifestCache | None = None
) -> tuple[LoadedTable, Snapshot | None]:
    """Commit an action; return the table's new state and the action's own snapshot, or None if it created none.

    The action is prepared on the present state of the table: the preceding work may have taken hours, and even the
    manifests of the state that it started from may have been deleted since.
    """
    transaction = Transaction(catalog, cache=cache)
    planned = transaction.table(catalog.refresh(loaded)).add(action)
    state = transaction.commit()[0]
    return state, None if planned is None else state.metadata.find_snapshot(planned.snapshot_id)


def summary_count(snapshot: Snapshot | None, name: str) -> int:
    """Return a count of a snapshot's summary, or 0 if it has none."""
    text = None if snapshot is None or snapshot.summary is None else snapshot.summary.get(name)
    return int(text) if text is not None and text.isascii() and text.isdigit() else 0
