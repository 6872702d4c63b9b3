from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from frazil.datafile.delete_cache import DeleteCache


def test_value_is_computed_once() -> None:
    cache = DeleteCache()
    made: list[int] = []

    def make() -> tuple[str, int]:
        made.append(1)
        return "value", 10

    assert [cache.load("key", make) for _ in range(3)] == ["value"] * 3
    assert (len(made), cache.size_bytes) == (1, 10)


def test_concurrent_threads_wait_for_the_computing_one() -> None:
    cache = DeleteCache()
    made: list[int] = []

    def make() -> tuple[int, int]:
        made.append(1)
        time.sleep(0.05)
        return 7, 10

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: cache.load("key", make), range(8))) == [7] * 8
    assert len(made) == 1


def test_different_keys_do_not_wait_for_each_other() -> None:
    cache = DeleteCache()
    inside = threading.Barrier(2, timeout=60)

    def make() -> tuple[int, int]:
        inside.wait()
        return 1, 1

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda key: cache.load(key, make), ["a", "b"])) == [1, 1]


def test_least_recently_used_entry_is_evicted_first() -> None:
    cache = DeleteCache(budget_bytes=25)
    made: list[str] = []

    def load(key: str) -> None:
        def make() -> tuple[str, int]:
            made.append(key)
            return key, 10

        cache.load(key, make)

    for key in ("a", "b", "a", "c", "a", "b"):
        load(key)
    assert made == ["a", "b", "c", "b"]
    assert cache.size_bytes == 20


def test_value_exceeding_the_budget_is_not_cached() -> None:
    cache = DeleteCache(budget_bytes=5)
    assert cache.load("key", lambda: ("value", 6)) == "value"
    assert cache.size_bytes == 0


def test_failure_is_not_cached() -> None:
    cache = DeleteCache()

    def fail() -> tuple[int, int]:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        cache.load("key", fail)
    assert cache.load("key", lambda: (5, 1)) == 5


def test_none_is_a_cached_value() -> None:
    cache = DeleteCache()
    assert cache.load("key", lambda: (None, 0)) is None
    assert cache.load("key", lambda: (1, 0)) is None
