"""Delete files that nothing leads to any more, inside a table's own folders only, several at a time.

The last step of expiry and of the removal of orphans. A file outside the table's folders, links followed, stays, and so
does one that the storage does not delete; each with the reason. A second run finds and deletes what stayed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from frazil.errors import FrazilError
from frazil.progress import count
from frazil.scan.read_manifests import map_in_order
from frazil.storage.base import Storage
from frazil.storage.locations import check_may_delete

Item = TypeVar("Item")

_AT_ONCE = 500
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=,+@-]*", re.ASCII)
"""A name that says nothing about where a file is: whether it may be deleted depends on its folder alone."""


def delete_paths(
    storage: Storage, paths: Iterable[str], folders: Sequence[str], *, threads: int = 1
) -> Iterator[tuple[str, str | None]]:
    """Yield each path with None once it is deleted, or with the reason why it is not; memory stays flat."""

    def delete_some(part: list[str]) -> list[tuple[str, str | None]]:
        outcome = dict(zip(part, _refusals(storage, part, folders), strict=True))
        allowed = [path for path, reason in outcome.items() if reason is None]
        outcome.update({path: error.message for path, error in storage.delete_many(allowed).items()})
        return list(outcome.items())

    for done in map_in_order(delete_some, in_parts(paths, _AT_ONCE), threads=threads):
        count("files deleted", sum(reason is None for _, reason in done))
        yield from done


def _refusals(storage: Storage, paths: Sequence[str], folders: Sequence[str]) -> Iterator[str | None]:
    """Yield for each path why it may not be deleted, None where it may; a folder is asked about once."""
    above_of: dict[str, bool] = {}
    for path in paths:
        above, _, name = path.rpartition("/")
        is_allowed = False
        if _PLAIN_NAME.fullmatch(name):
            known = above_of.get(above)
            if known is None:
                known = above_of[above] = _refusal(storage, path, folders) is None
            is_allowed = known
        yield None if is_allowed else _refusal(storage, path, folders)


def _refusal(storage: Storage, path: str, folders: Sequence[str]) -> str | None:
    try:
        check_may_delete(storage, path, folders)
    except FrazilError as error:
        return error.message
    return None


def in_parts(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield items some at a time."""
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part
