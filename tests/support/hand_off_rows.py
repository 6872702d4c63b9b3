"""Rows of every type that other libraries know, and which files of them are read."""

from __future__ import annotations

import datetime
import threading
import uuid
from decimal import Decimal
from typing import Any

import pytest

from frazil.storage.memory import MemoryStorage

UTC = datetime.UTC
DDL = (
    "id bigint, x double, s string, ts timestamptz, n timestamp, d date, dec decimal(9, 2), u uuid, "
    "st struct<a: int, b: string>, l list<int>, m map<string, int>, f fixed(3), flag boolean"
)
NAN = float("nan")


def row(at: int) -> dict[str, Any]:
    days = datetime.timedelta(days=at)
    return {
        "id": at,
        "x": [1.5, NAN, None, -2.0][at % 4],
        "s": ["a", "b", None][at % 3],
        "ts": datetime.datetime(2024, 1, 1, tzinfo=UTC) + days,
        "n": datetime.datetime(2024, 1, 1) + days,
        "d": datetime.date(2024, 1, 1) + days,
        "dec": Decimal(at) / 4,
        "u": uuid.UUID(int=at),
        "st": {"a": at, "b": "z"},
        "l": [at, None],
        "m": {"k": at},
        "f": b"abc",
        "flag": at % 2 == 0,
    }


ROWS = [row(at) for at in range(20)]


class Watched:
    """Which data files are read while it is watched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: set[str] = set()
        lock = threading.Lock()

        def watch(name: str) -> None:
            original = getattr(MemoryStorage, name)

            def seen(storage: MemoryStorage, path: str, *arguments: Any, **options: Any) -> Any:
                if path.endswith(".parquet"):
                    with lock:
                        self.paths.add(path)
                return original(storage, path, *arguments, **options)

            monkeypatch.setattr(MemoryStorage, name, seen)

        watch("read")
        watch("read_range")
