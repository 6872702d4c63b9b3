"""Lakes for tests: in memory, and with a storage that fails as planned."""

from __future__ import annotations

import os
from pathlib import Path

from frazil.catalog.filesystem import FilesystemCatalog
from frazil.storage.failing import Call, FailingStorage, Fault
from frazil.storage.local import LocalStorage
from frazil.storage.memory import MemoryStorage
from frazil.table.connect import connect
from frazil.table.lake import Lake


def memory_lake() -> Lake:
    """Return an empty lake in the memory of this process; two calls return two lakes."""
    return connect("memory:")


class FailingLake(Lake):
    """A lake whose storage fails as planned, and logs every call. Commits are calls of storage too."""

    def __init__(self, storage: FailingStorage, warehouse: str) -> None:
        super().__init__(FilesystemCatalog("lake", warehouse, storage))
        self._storage = storage

    @property
    def calls(self) -> list[Call]:
        """The calls so far, each with the fault that it met."""
        return self._storage.calls

    def fail_at(self, *faults: Fault) -> None:
        """Replace the planned faults. The next call is number 1."""
        self._storage.plan_faults(*faults)


def failing_lake(*faults: Fault, warehouse: str | os.PathLike[str] | None = None) -> FailingLake:
    """Return an empty lake whose storage fails at the given calls; in memory, or in the folder `warehouse`.

    Commits fail too: they are `create_exclusive` calls. A crash raises `SimulatedCrash`, which `except Exception` does
    not catch, and every later call fails. Spark reads and writes data files itself: only metadata meets faults there.

    ```python
    lake = failing_lake()
    table = lake.create_table("db.orders", schema)
    lake.fail_at(Fault(1, FaultKind.IO_ERROR, frozenset({"create_exclusive"})))
    with pytest.raises(frazil.StorageError):
        my_pipeline(lake)
    ```
    """
    if warehouse is None:
        return FailingLake(FailingStorage(MemoryStorage(), *faults), "memory://warehouse")
    folder = Path(warehouse).absolute()
    return FailingLake(FailingStorage(LocalStorage(), *faults), f"file://{folder}")
