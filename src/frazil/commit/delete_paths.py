"""Delete files that nothing leads to any more, inside a table's own folders only, several at a time.

The last step of expiry and of the removal of orphans. A file outside the table's folders, links followed, stays, and so
does one that the storage does not delete; each with the reason. A second run finds and deletes what stayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from frazil.errors import FrazilError
from frazil.scan.read_manifests import map_in_order
from frazil.storage.base import Storage
from frazil.storage.locations import check_may_delete

_AT_ONCE = 500


def delete_paths(
    storage: Storage, paths: Iterable[str], folders: Sequence[str], *, threads: int = 1
) -> Iterator[tuple[str, str | None]]:
    """Yield each path with None once it is deleted, or with the reason why it is not; memory stays flat."""

    def delete_some(part: list[str]) -> list[tuple[str, str | None]]:
        outcome: dict[str, str | None] = {}
        for path in part:
            try:
                check_may_delete(storage, path, folders)
                outcome[path] = None
            except FrazilError as error:
                outcome[path] = error.message
        allowed = [path for path, reason in outcome.items() if reason is None]
        outcome.update({path: error.message for path, error in storage.delete_many(allowed).items()})
        return list(outcome.items())

    for done in map_in_order(delete_some, _parts(paths, _AT_ONCE), threads=threads):
        yield from done


def _parts(paths: Iterable[str], size: int) -> Iterator[list[str]]:
    rest = iter(paths)
    while part := list(islice(rest, size)):
        yield part
