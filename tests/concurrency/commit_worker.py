"""Processes that commit to one table, all operations mixed. Run as a module, it is a server that forks them.

    python -m tests.concurrency.commit_worker     reads orders as lines of JSON and answers each with a line
        {"start": {...}}                          forks a writer (`Order`), answers with its process id
        {"wait": true}                            answers when every writer has ended

Everything is imported once, before the first fork, so that a writer starts in a moment. Nothing that starts threads
runs in the server.

A writer tells of every operation in a file of its own, a line of JSON before it starts and one after it ended, so
that a reader knows what was under way when the process died. The story is enough to replay.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.catalog.base import Catalog
from frazil.catalog.filesystem import FilesystemCatalog
from frazil.catalog.postgres import PostgresDatabase
from frazil.catalog.sql import SqlCatalog
from frazil.catalog.sqlite import SqliteDatabase
from frazil.codec.deletion_vector import DeletionVector, encode_deletion_vector_file
from frazil.codec.single_value import encode_bound
from frazil.commit.action import Action
from frazil.commit.append import Append
from frazil.commit.conflicts import ReadSet
from frazil.commit.delete_files import DeleteFiles
from frazil.commit.expire_snapshots import ExpireSnapshots
from frazil.commit.expired_files import delete_expired_files
from frazil.commit.new_snapshot import Target
from frazil.commit.overwrite import Overwrite
from frazil.commit.rewrite_files import RewriteFiles
from frazil.commit.rewrite_manifests import RewriteManifests
from frazil.commit.row_delta import RowDelta
from frazil.commit.transaction import Transaction
from frazil.commit.update_properties import UpdateProperties
from frazil.commit.update_refs import CreateRef, DropRef
from frazil.commit.update_schema import UpdateSchema
from frazil.errors import CommitStateUnknownError, FrazilError, StorageError
from frazil.expr.extract import parse_predicate
from frazil.loaded import LoadedTable
from frazil.spec.data_file import DataFile, FileContent, FileFormat
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, NestedField
from frazil.storage.base import MAX_READ_BYTES
from frazil.storage.local import LocalStorage, local_path
from tests.concurrency.live_rows import LiveFile, Row, live_files

TABLE = ("db", "t")
SCHEMA = Schema((NestedField(1, "id", LONG), NestedField(2, "v", LONG)))
SIDE = "side"
"""A branch that some appends go to."""
KEPT_SNAPSHOTS = 15
PROPERTIES = {
    "commit.retry.num-retries": "100000",
    "commit.retry.min-wait-ms": "2",
    "commit.retry.max-wait-ms": "100",
    "commit.manifest.min-count-to-merge": "8",
}
_FILE = pa.schema(
    [pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(at)}) for at, name in enumerate(("id", "v"), 1)]
)


class KeepingStorage(LocalStorage):
    """Local files, of which those deleted are kept aside; with `sees_all` they are read as if they were there."""

    __slots__ = ("_aside", "_sees_all")

    def __init__(self, aside: Path, *, sees_all: bool = False) -> None:
        super().__init__(durable=False)
        self._aside = aside
        self._sees_all = sees_all

    def delete(self, path: str, *, within: Sequence[str] | None = None) -> None:
        self._aside.mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            os.link(local_path(path), self._kept(path))
        super().delete(path, within=within)

    def read(self, path: str, *, max_bytes: int = MAX_READ_BYTES) -> bytes:
        return super().read(self._found(path), max_bytes=max_bytes)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return super().read_range(self._found(path), offset, length)

    def _kept(self, path: str) -> Path:
        return self._aside / path.rpartition("/")[2]

    def _found(self, path: str) -> str:
        return str(self._kept(path)) if self._sees_all and self._kept(path).exists() else path


@dataclass(frozen=True)
class Order:
    """What a writer is to do: until when, on which catalog, and where to tell of it."""

    kind: str
    folder: str
    uri: str
    number: int
    commits: int
    deletes_files: bool
    story: str


def open_catalog(kind: str, folder: str, uri: str) -> Catalog:
    """Return the catalog that all processes share."""
    storage = KeepingStorage(Path(folder) / "deleted")
    warehouse = (Path(folder) / "warehouse").as_uri()
    if kind == "filesystem":
        return FilesystemCatalog("lake", warehouse, storage)
    # One server has the catalogs of many tests.
    name = Path(folder).name
    database = PostgresDatabase(uri) if kind == "postgresql" else SqliteDatabase(Path(folder) / "catalog.db")
    return SqlCatalog(name, warehouse, database, storage)


def create_table(catalog: Catalog, version: int) -> None:
    """Create the table that all processes commit to, with a first snapshot and a branch."""
    catalog.create_namespace(("db",))
    loaded = catalog.create_table(TABLE, SCHEMA, properties=PROPERTIES, format_version=version)
    transaction = Transaction(catalog, threads=1)
    table = transaction.table(loaded)
    table.add(Append((write_rows(loaded, [Row(1, 1)]),), Target(properties=FrozenMap({"tag": "first"}))))
    table.add(CreateRef(SIDE, "branch"))
    transaction.commit()


def write_rows(loaded: LoadedTable, rows: list[Row], content: FileContent = FileContent.DATA) -> DataFile:
    """Write a data file, or a file of ids that are deleted."""
    fields = _FILE if content is FileContent.DATA else pa.schema([_FILE.field("id")])
    columns = {"id": [one.id for one in rows], "v": [one.v for one in rows]}
    buffer = io.BytesIO()
    pq.write_table(pa.table({name: columns[name] for name in fields.names}, fields), buffer, compression="none")
    return _described(loaded, buffer.getvalue(), rows, content)


def write_positions(loaded: LoadedTable, path: str, positions: list[int]) -> DataFile:
    """Write a file of positions that are deleted."""
    fields = pa.schema(
        [
            pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483545"}),
        ]
    )
    buffer = io.BytesIO()
    pq.write_table(pa.table({"file_path": [path] * len(positions), "pos": positions}, fields), buffer)
    name = _new_path(loaded, "parquet")
    loaded.storage.create(name, buffer.getvalue())
    return DataFile(
        name,
        FileFormat.PARQUET,
        len(positions),
        len(buffer.getvalue()),
        FileContent.POSITION_DELETES,
        referenced_data_file=path,
    )


def write_vector(loaded: LoadedTable, path: str, positions: list[int]) -> DataFile:
    """Write a deletion vector."""
    encoded = encode_deletion_vector_file({path: DeletionVector(sorted(positions))}, created_by="tests")
    name = _new_path(loaded, "puffin")
    loaded.storage.create(name, encoded.data)
    stored = encoded.vectors[0]
    return DataFile(
        name,
        FileFormat.PUFFIN,
        stored.cardinality,
        len(encoded.data),
        FileContent.POSITION_DELETES,
        referenced_data_file=path,
        content_offset=stored.content_offset,
        content_size_in_bytes=stored.content_size_in_bytes,
    )


def _new_path(loaded: LoadedTable, extension: str) -> str:
    return f"{loaded.metadata.location}/data/{uuid.uuid4()}.{extension}"


def _described(loaded: LoadedTable, data: bytes, rows: list[Row], content: FileContent) -> DataFile:
    path = _new_path(loaded, "parquet")
    loaded.storage.create(path, data)
    ids, values = [one.id for one in rows], [one.v for one in rows]
    bounds = {1: ids, 2: values} if content is FileContent.DATA else {1: ids}
    return DataFile(
        path,
        FileFormat.PARQUET,
        len(rows),
        len(data),
        content,
        equality_ids=None if content is FileContent.DATA else (1,),
        value_counts=dict.fromkeys(bounds, len(rows)),
        null_value_counts=dict.fromkeys(bounds, 0),
        lower_bounds={at: encode_bound(min(found), LONG) for at, found in bounds.items()},
        upper_bounds={at: encode_bound(max(found), LONG) for at, found in bounds.items()},
    )


@dataclass
class Plan:
    """Actions of one commit, and what they do to rows, columns and references, for the one who replays them."""

    actions: list[Action]
    change: dict[str, Any]


class Writer:
    """One process: plans an operation on the table as it is, commits it, tells of it, and goes on."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.catalog = open_catalog(order.kind, order.folder, order.uri)
        self.chance = random.Random(f"{order.number} {order.story}")
        self._story = os.open(order.story, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._value = order.number * 10_000_000
        self._tag = ""
        self._choices: list[tuple[float, Callable[[LoadedTable], Plan | None]]] = [
            (0.30, lambda loaded: self._append(loaded, is_fast=True)),
            (0.14, lambda loaded: self._append(loaded, is_fast=False)),
            (0.06, self._append_to_branch),
            (0.07, self._delete_file),
            (0.05, self._overwrite),
            (0.06, self._delete_row),
            (0.04, self._update_row),
            (0.03, self._upsert),
            (0.05, self._compact),
            (0.02, self._rewrite_manifests),
            (0.04, self._change_schema),
            (0.05, self._set_property),
            (0.05, self._change_refs),
            (0.04, self._expire),
        ]

    def tell(self, **line: object) -> None:
        """Add a line to the story, in one write: a kill leaves whole lines, but for the last."""
        os.write(self._story, (json.dumps({**line, "at": time.monotonic()}) + "\n").encode())

    def work(self) -> None:
        """Commit until enough commits were acknowledged."""
        done = 0
        while done < self.order.commits:
            done += self._one()
        self.tell(event="end")

    def _one(self) -> bool:
        self._tag = str(uuid.uuid4())
        began = time.monotonic()
        try:
            loaded = self.catalog.load_table(TABLE)
            plan = self._plan(loaded)
        except StorageError:
            # Another writer's expiry has deleted files of the state that was loaded.
            if not self.order.deletes_files:
                raise
            return False
        if plan is None:
            return False
        self.tell(event="invoke", tag=self._tag, began=began, **plan.change)
        transaction = Transaction(self.catalog, threads=1)
        try:
            table = transaction.table(loaded)
            for one in plan.actions:
                table.add(one)
            after = transaction.commit()[0]
        except CommitStateUnknownError as error:
            self.tell(event="unknown", tag=self._tag, reason=error.message)
            return False
        except FrazilError as error:
            self.tell(event="fail", tag=self._tag, kind=type(error).__name__, reason=error.message)
            return False
        if not self._is_in(after):
            assert plan.change["op"] in ("rewrite_manifests", "delete_row"), "nothing was done"
            self.tell(event="nothing", tag=self._tag)
            return False
        self.tell(event="ok", tag=self._tag, attempts=transaction.attempts)
        if plan.change["op"] == "expire" and self.order.deletes_files:
            # Another writer's expiry may have come after this one, and have deleted what is read here.
            with contextlib.suppress(StorageError):
                delete_expired_files(self.catalog, loaded, after, threads=1)
        return True

    def _is_in(self, after: LoadedTable) -> bool:
        """Return whether the commit is in a state; one that found nothing to do, since others had done it, is not."""
        if after.metadata.properties.get("tag") == self._tag:
            return True
        return any(one.summary is not None and one.summary.get("tag") == self._tag for one in after.metadata.snapshots)

    def _plan(self, loaded: LoadedTable) -> Plan | None:
        at = self.chance.random() * sum(share for share, _ in self._choices)
        for share, make in self._choices:
            at -= share
            if at < 0:
                return make(loaded)
        return None

    # What an operation does

    @property
    def _target(self) -> Target:
        return Target(properties=FrozenMap({"tag": self._tag}))

    def _new_rows(self, count: int) -> list[Row]:
        self._value += count
        return [Row(self.chance.randrange(1000), self._value - at) for at in range(count)]

    def _read(self, loaded: LoadedTable, row_id: int) -> ReadSet:
        isolation = self.chance.choice(("serializable", "snapshot"))
        return ReadSet(loaded.metadata.current_snapshot_id, parse_predicate(f"id = {row_id}"), isolation)  # type: ignore[arg-type]

    def _some_file(self, loaded: LoadedTable) -> LiveFile | None:
        head = loaded.metadata.current_snapshot
        assert head is not None
        found = [one for one in live_files(loaded, head) if one.live]
        return self.chance.choice(found) if found else None

    def _append(self, loaded: LoadedTable, *, is_fast: bool) -> Plan:
        rows = self._new_rows(self.chance.randint(1, 4))
        new = write_rows(loaded, rows)
        return Plan([Append((new,), self._target, is_fast=is_fast)], {"op": "append", "added": {new.file_path: rows}})

    def _append_to_branch(self, loaded: LoadedTable) -> Plan:
        rows = self._new_rows(1)
        new = write_rows(loaded, rows)
        target = Target(SIDE, FrozenMap({"tag": self._tag}))
        return Plan([Append((new,), target)], {"op": "append", "branch": SIDE, "added": {new.file_path: rows}})

    def _delete_file(self, loaded: LoadedTable) -> Plan | None:
        file = self._some_file(loaded)
        if file is None:
            return None
        action = DeleteFiles(frozenset({file.path}), target=self._target)
        return Plan([action], {"op": "delete_files", "removed": [file.path]})

    def _overwrite(self, loaded: LoadedTable) -> Plan | None:
        file = self._some_file(loaded)
        if file is None:
            return None
        hit = self.chance.choice(list(file.live.values()))
        (new_row,) = self._new_rows(1)
        rows = [Row(one.id, new_row.v) if one == hit else one for one in file.live.values()]
        new = write_rows(loaded, rows)
        action = Overwrite((new,), self._read(loaded, hit.id), (file.data_file,), target=self._target)
        return Plan([action], {"op": "overwrite", "added": {new.file_path: rows}, "removed": [file.path]})

    def _deletes(self, loaded: LoadedTable, file: LiveFile, position: int) -> tuple[DataFile, tuple[DataFile, ...]]:
        if loaded.metadata.format_version < 3:
            return write_positions(loaded, file.path, [position]), ()
        return write_vector(loaded, file.path, [*file.by_position, position]), file.vectors

    def _delete_row(self, loaded: LoadedTable) -> Plan | None:
        file = self._some_file(loaded)
        if file is None:
            return None
        position, row = self.chance.choice(list(file.live.items()))
        deletes, old = self._deletes(loaded, file, position)
        action = RowDelta((deletes,), self._read(loaded, row.id), "delete", removed_deletes=old, target=self._target)
        return Plan([action], {"op": "delete_row", "file": file.path, "position": position})

    def _update_row(self, loaded: LoadedTable) -> Plan | None:
        file = self._some_file(loaded)
        if file is None:
            return None
        position, row = self.chance.choice(list(file.live.items()))
        deletes, old = self._deletes(loaded, file, position)
        changed = Row(row.id, self._new_rows(1)[0].v)
        new = write_rows(loaded, [changed])
        read = self._read(loaded, row.id)
        action = RowDelta((deletes, new), read, "update", removed_deletes=old, target=self._target)
        change = {"op": "update_row", "file": file.path, "position": position, "added": {new.file_path: [changed]}}
        return Plan([action], change)

    def _upsert(self, loaded: LoadedTable) -> Plan:
        (row,) = self._new_rows(1)
        deletes = write_rows(loaded, [row], FileContent.EQUALITY_DELETES)
        new = write_rows(loaded, [row])
        action = RowDelta((deletes, new), None, target=self._target)
        return Plan([action], {"op": "upsert", "id": row.id, "added": {new.file_path: [row]}})

    def _compact(self, loaded: LoadedTable) -> Plan | None:
        head = loaded.metadata.current_snapshot
        assert head is not None
        files = live_files(loaded, head)
        chosen = self.chance.sample(files, min(len(files), 12))
        rows = [row for one in chosen for row in one.live.values()]
        if len(chosen) < 2:
            return None
        new = (write_rows(loaded, rows),) if rows else ()
        action = RewriteFiles(
            tuple(one.data_file for one in chosen),
            new,
            head.snapshot_id,
            data_sequence_number=head.sequence_number,
            target=self._target,
        )
        change = {
            "op": "compact",
            "added": {one.file_path: rows for one in new},
            "removed": [one.path for one in chosen],
        }
        return Plan([action], change)

    def _rewrite_manifests(self, loaded: LoadedTable) -> Plan:
        return Plan([RewriteManifests(target=self._target)], {"op": "rewrite_manifests"})

    # What makes no snapshot is told apart by a property

    def _marked(self, *actions: Action) -> list[Action]:
        return [*actions, UpdateProperties(FrozenMap({"tag": self._tag}))]

    def _change_schema(self, loaded: LoadedTable) -> Plan:
        extra = [one.name for one in loaded.metadata.current_schema.fields if one.name not in ("id", "v")]
        if len(extra) > 5:
            name = self.chance.choice(extra)
            action = UpdateSchema(lambda update: update.drop_column(name))
            return Plan(self._marked(action), {"op": "schema", "dropped": name})
        name = f"c{self._tag}"
        return Plan(
            self._marked(UpdateSchema(lambda update: update.add_column(name, "long"))), {"op": "schema", "new": name}
        )

    def _set_property(self, loaded: LoadedTable) -> Plan:
        return Plan(self._marked(), {"op": "property"})

    def _change_refs(self, loaded: LoadedTable) -> Plan:
        extra = [name for name in loaded.metadata.refs if name not in ("main", SIDE)]
        if len(extra) > 5:
            name = self.chance.choice(extra)
            return Plan(self._marked(DropRef(name, "tag")), {"op": "ref", "dropped": name})
        snapshot_id = loaded.metadata.current_snapshot_id
        action = CreateRef(f"r{self._tag}", "tag", snapshot_id)
        return Plan(self._marked(action), {"op": "ref", "new": f"r{self._tag}", "snapshot_id": snapshot_id})

    def _expire(self, loaded: LoadedTable) -> Plan:
        action = ExpireSnapshots(older_than_ms=self.catalog.now_ms() + 1000, retain_last=KEPT_SNAPSHOTS)
        return Plan(self._marked(action), {"op": "expire"})


# The server


class WriterServer:
    """A process that forks writers; as a context, it ends with the block."""

    def __init__(self) -> None:
        root = Path(__file__).resolve().parent.parent.parent
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.concurrency.commit_worker"],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> WriterServer:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def start(self, order: Order) -> int:
        """Fork a writer and return its process id."""
        return int(self._ask({"start": asdict(order)}))

    def wait(self) -> None:
        """Wait until every writer has ended."""
        self._ask({"wait": True})

    def _ask(self, order: dict[str, Any]) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the server of writers has ended"
        return answer.strip()


def serve() -> None:
    """Take orders until there are none, or nobody is left to give any."""
    # Writers that end are forgotten by the system at once, killed ones too.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    master = os.getppid()
    # Arrow loads it when it first makes a table, which would take each writer a second.
    importlib.import_module("pandas")
    for line in sys.stdin:
        order = json.loads(line)
        if "wait" in order:
            while os.getppid() == master and _has_writers():
                time.sleep(0.02)
            print("done", flush=True)
            continue
        child = os.fork()
        if child == 0:
            _be_writer(Order(**order["start"]))
        print(child, flush=True)


def _has_writers() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _be_writer(order: Order) -> None:
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # A writer whose server is gone has nobody left to write for.
        threading.Thread(target=_end_with_server, args=(os.getppid(),), daemon=True).start()
        Writer(order).work()
        code = 0
    except BaseException:
        traceback.print_exc()
        Path(f"{order.story}.error").write_text(traceback.format_exc())
    finally:
        os._exit(code)


def _end_with_server(server: int) -> None:
    while os.getppid() == server:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    serve()
