"""Delete files that nothing leads to any more, and that are the table's own, several at a time.

The last step of expiry and of the removal of orphans. A file that is not the table's own (`catalog/owned_folders.py`)
stays, and so does one that the storage does not delete; each with the reason. A second run finds what stayed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from frazil.catalog.owned_folders import OwnedFolders
from frazil.progress import count
from frazil.storage.base import Storage
from frazil.threads import map_in_order

Item = TypeVar("Item")

_AT_ONCE = 500
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=,+@-]*", re.ASCII)
"""A name that says nothing about where a file is: whether it may be deleted depends on its folder alone."""


def delete_paths(
    storage: Storage, paths: Iterable[str], owned: OwnedFolders, *, threads: int = 1, dry_run: bool = False
) -> Iterator[tuple[str, str | None]]:
    """Yield each path with None once it is deleted, or with the reason why it is not; memory stays flat."""

    def delete_some(batch: list[str]) -> list[tuple[str, str | None]]:
        outcome = dict(zip(batch, _refusals(batch, owned), strict=True))
        if dry_run:
            return list(outcome.items())
        allowed = [path for path, reason in outcome.items() if reason is None]
        failed = storage.delete_many(allowed, within=owned.real_folders)
        outcome.update({path: error.message for path, error in failed.items()})
        return list(outcome.items())

    for done in map_in_order(delete_some, in_parts(paths, _AT_ONCE), threads=threads):
        if not dry_run:
            count("files deleted", sum(reason is None for _, reason in done))
        yield from done


def _refusals(paths: Sequence[str], owned: OwnedFolders) -> Iterator[str | None]:
    """Yield for each path why it may not be deleted, None where it may; a folder is asked about once."""
    known: dict[str, str | None] = {}
    for path in paths:
        above, _, name = path.rpartition("/")
        if not _PLAIN_NAME.fullmatch(name):
            yield owned.find_refusal(path)
            continue
        if above not in known:
            known[above] = owned.find_refusal(path)
        yield known[above]


def in_parts(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield items some at a time."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
