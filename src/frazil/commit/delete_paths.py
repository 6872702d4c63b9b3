"""Delete files that are no longer referenced and that the table owns, several at a time.

The last step of expiry and of orphan removal. Files that the table does not own (`catalog/owned_folders.py`), or that
the storage fails to delete, stay and are yielded with the reason. A second run finds them again.
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

_BATCH_SIZE = 500
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=,+@-]*", re.ASCII)
"""A name without path syntax: whether the file may be deleted depends on its folder alone."""


def delete_paths(
    storage: Storage, paths: Iterable[str], owned: OwnedFolders, *, threads: int = 1, dry_run: bool = False
) -> Iterator[tuple[str, str | None]]:
    """Yield each path with None once it is deleted, or with the reason why it was not, in constant memory."""

    def delete_some(batch: list[str]) -> list[tuple[str, str | None]]:
        outcome = dict(zip(batch, _refusals(batch, owned), strict=True))
        if dry_run:
            return list(outcome.items())
        allowed = [path for path, reason in outcome.items() if reason is None]
        failed = storage.delete_many(allowed, within=owned.real_folders)
        outcome.update({path: error.message for path, error in failed.items()})
        return list(outcome.items())

    for done in map_in_order(delete_some, in_batches(paths, _BATCH_SIZE), threads=threads):
        if not dry_run:
            count("files deleted", sum(reason is None for _, reason in done))
        yield from done


def _refusals(paths: Sequence[str], owned: OwnedFolders) -> Iterator[str | None]:
    """Yield for each path the reason why it may not be deleted, or None; folders are checked once."""
    refusals: dict[str, str | None] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        if not _PLAIN_NAME.fullmatch(name):
            yield owned.find_refusal(path)
            continue
        if folder not in refusals:
            refusals[folder] = owned.find_refusal(path)
        yield refusals[folder]


def in_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield items in batches."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
