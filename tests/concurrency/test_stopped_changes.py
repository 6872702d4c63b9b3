"""A change of rows that is stopped at any write, by ctrl-C or by a storage that fails: nothing of it is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa
import pytest

import frazil
from frazil.catalog.memory import MemoryCatalog
from frazil.errors import StorageError
from frazil.storage.failing import Call, FailingStorage
from frazil.storage.memory import MemoryStorage
from frazil.table.lake import Lake
from tests.support.write_history import VERSIONS_AND_MODES

T = TypeVar("T")
ROWS = [{"id": at, "k": "abc"[at % 3]} for at in range(12)]
CHANGES: dict[str, Callable[[frazil.Table], Any]] = {
    "append": lambda t: t.append(ROWS),
    "delete": lambda t: t.delete("id % 5 = 3 or id < 3", engine="local"),
    "update": lambda t: t.update({"id": "id + 100"}, "id % 2 = 0", engine="local"),
    "upsert": lambda t: t.upsert([{"id": 1, "k": "new"}, {"id": 77, "k": "a"}], keys=["id"], engine="local"),
    "merge": lambda t: (
        t.merge([{"id": 3}, {"id": 4}, {"id": 5}, {"id": 78}], on="target.id = source.id", engine="local")
        .when_matched("source.id = 3")
        .delete()
        .when_matched()
        .update({"id": "target.id + 50"})
        .when_not_matched()
        .insert({"id": "source.id"})
        .execute()
    ),
    "overwrite": lambda t: t.overwrite(ROWS[:4], where="id % 4 = 0", engine="local"),
    "overwrite_partitions": lambda t: t.overwrite_partitions(ROWS[:4]),
}


class StoppingStorage(FailingStorage):
    """A storage that raises at the n-th write of a data or delete file."""

    __slots__ = ("error", "stop_at", "writes")

    def __init__(self, inner: MemoryStorage, stop_at: int = 0, error: type[BaseException] = StorageError) -> None:
        super().__init__(inner)
        self.stop_at, self.error, self.writes = stop_at, error, 0

    def _run(self, verb: str, path: str, act: Callable[[], T], data: bytes | None = None) -> T:
        if data is not None and "/data/" in path:
            self.writes += 1
            if self.writes == self.stop_at:
                self.calls.append(Call(len(self.calls) + 1, verb, path))
                raise self.error("Cannot go on: it was stopped")
        return super()._run(verb, path, act, data)


def new_table(version: int, mode: str) -> tuple[MemoryStorage, str]:
    inner = MemoryStorage()
    modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    table = Lake(MemoryCatalog(storage=inner)).create_table(
        "db.t",
        "id bigint, k string",
        partition_by=["k"],
        properties={**modes, "write.delete.granularity": "file"},
        format_version=version,
    )
    for at in range(2):
        table.append(pa.Table.from_pylist(ROWS[at * 6 : at * 6 + 6]))
    assert table.metadata_location is not None
    return inner, table.metadata_location


@pytest.mark.parametrize("error", [StorageError, KeyboardInterrupt])
@pytest.mark.parametrize(("version", "mode"), VERSIONS_AND_MODES)
@pytest.mark.parametrize("change", CHANGES)
def test_change_stopped_at_any_file_leaves_no_files(
    change: str, version: int, mode: str, error: type[BaseException]
) -> None:
    inner, metadata_location = new_table(version, mode)
    before = {one.path for one in inner.list("memory://")}
    for stop_at in range(1, 50):
        storage = StoppingStorage(inner, stop_at, error)
        lake = Lake(MemoryCatalog(storage=storage))
        lake.create_namespace("db")
        table = lake.register_table("db.t", metadata_location)
        try:
            CHANGES[change](table)
        except error:
            assert {one.path for one in inner.list("memory://")} == before
            assert table.refresh().metadata_location == metadata_location
        else:
            assert storage.writes < stop_at
            break
    assert stop_at > 1
