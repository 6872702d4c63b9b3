"""One of several processes that commit to one table. Run as a module: `python -m tests.concurrency.commit_worker`.

Arguments: the catalog's kind, its folder, the worker's number, how many commits. Every operation is told on standard
output as a line of JSON before it starts and after it ended, so that a reader knows what was under way when the
process died.
"""

from __future__ import annotations

import json
import random
import sys
import uuid
from pathlib import Path

from frazil.catalog.base import Catalog
from frazil.catalog.filesystem import FilesystemCatalog
from frazil.catalog.sql import SqlCatalog
from frazil.catalog.sqlite import SqliteDatabase
from frazil.commit.action import Action
from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.new_snapshot import Target
from frazil.commit.overwrite import Overwrite
from frazil.commit.rewrite_files import RewriteFiles
from frazil.commit.transaction import Transaction
from frazil.errors import CommitStateUnknownError, FrazilError
from frazil.spec.data_file import DataFile, FileFormat
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, NestedField
from frazil.storage.local import LocalStorage

TABLE = ("db", "t")
SCHEMA = Schema((NestedField(1, "id", LONG),))
PROPERTIES = {
    "commit.retry.num-retries": "1000",
    "commit.retry.min-wait-ms": "5",
    "commit.retry.max-wait-ms": "200",
    "commit.manifest.min-count-to-merge": "10",
}


def open_catalog(kind: str, folder: str) -> Catalog:
    """Return the catalog that all processes share."""
    storage = LocalStorage(durable=False)
    warehouse = (Path(folder) / "warehouse").as_uri()
    if kind == "filesystem":
        return FilesystemCatalog("lake", warehouse, storage)
    return SqlCatalog("lake", warehouse, SqliteDatabase(Path(folder) / "catalog.db"), storage)


def create_table(catalog: Catalog) -> None:
    """Create the table that all processes commit to."""
    catalog.create_namespace(("db",))
    catalog.create_table(TABLE, SCHEMA, properties=PROPERTIES)


def _tell(**line: object) -> None:
    print(json.dumps(line), flush=True)


def _new_file(location: str, rows: int) -> DataFile:
    return DataFile(f"{location}/data/{uuid.uuid4()}.parquet", FileFormat.PARQUET, rows, 100)


def main(kind: str, folder: str, number: int, commits: int) -> None:
    """Commit one operation after another, each tagged."""
    chance = random.Random(number)
    catalog = open_catalog(kind, folder)
    own: list[DataFile] = []
    for at in range(commits):
        tag = f"{number}-{at}-{uuid.uuid4()}"
        loaded = catalog.load_table(TABLE)
        target = Target(properties=FrozenMap({"tag": tag}))
        added: list[DataFile] = []
        removed: list[DataFile] = []
        choice = chance.random()
        read = ReadSet(loaded.metadata.current_snapshot_id, isolation="snapshot")
        action: Action
        if choice < 0.6 or not own:
            added = [_new_file(loaded.metadata.location, chance.randint(1, 5))]
            action = Append(tuple(added), target, is_fast=choice < 0.3)
        elif choice < 0.75:
            removed = [chance.choice(own)]
            action = DeleteFiles(frozenset({removed[0].file_path}), target=target)
        elif choice < 0.9:
            removed = [chance.choice(own)]
            added = [_new_file(loaded.metadata.location, 2)]
            action = Overwrite(tuple(added), read, tuple(removed), target=target)
        else:
            removed = chance.sample(own, min(len(own), 3))
            added = [_new_file(loaded.metadata.location, sum(one.record_count for one in removed))]
            action = RewriteFiles(tuple(removed), tuple(added), loaded.metadata.current_snapshot_id, target=target)
        change = {"added": [one.file_path for one in added], "removed": [one.file_path for one in removed]}
        _tell(tag=tag, event="invoke", **change)
        transaction = Transaction(catalog, threads=1)
        try:
            transaction.table(loaded).add(action)
            transaction.commit()
        except CommitStateUnknownError as error:
            _tell(tag=tag, event="unknown", reason=error.message)
            return
        except FrazilError as error:
            _tell(tag=tag, event="fail", reason=error.message)
            continue
        own = [one for one in own if one not in removed] + added
        _tell(tag=tag, event="ok", attempts=transaction.attempts)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
