"""One action, one commit, and the snapshot it made: what every procedure that commits needs to tell what it did."""

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
    """Commit an action; return the table's new state and the action's own snapshot, None where it made none.

    It is prepared on the table as it is now: the work before may have taken hours, and of the state it began with even
    the manifests may be gone since.
    """
    transaction = Transaction(catalog, cache=cache)
    planned = transaction.table(catalog.refresh(loaded)).add(action)
    state = transaction.commit()[0]
    return state, None if planned is None else state.metadata.find_snapshot(planned.snapshot_id)


def summary_count(snapshot: Snapshot | None, name: str) -> int:
    """Return a count of a snapshot's summary, 0 where it has none."""
    text = None if snapshot is None or snapshot.summary is None else snapshot.summary.get(name)
    return int(text) if text is not None and text.isascii() and text.isdigit() else 0
