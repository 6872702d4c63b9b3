from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from frazil.datafile.read_tasks import read_in_order


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_batches_come_in_the_order_of_their_tasks(threads: int) -> None:
    def read(item: int) -> Iterator[tuple[int, int]]:
        for at in range(item % 7):
            time.sleep(0.001 * (item % 3))
            yield item, at

    expected = [(item, at) for item in range(20) for at in range(item % 7)]
    assert list(read_in_order(read, range(20), threads=threads)) == expected


@pytest.mark.parametrize("threads", [1, 3])
def test_error_is_raised_at_its_position(threads: int) -> None:
    def read(item: int) -> Iterator[int]:
        yield item
        if item == 2:
            raise ValueError("broken file")

    found = []
    with pytest.raises(ValueError, match="broken file"):
        for batch in read_in_order(read, range(10), threads=threads):
            found.append(batch)
    assert found == [0, 1, 2]


def test_error_of_the_task_iterator_is_raised() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken plan")

    with pytest.raises(ValueError, match="broken plan"):
        list(read_in_order(lambda item: iter([item]), items(), threads=3))


def test_readers_do_not_run_far_ahead() -> None:
    produced = 0
    lock = threading.Lock()

    def read(item: int) -> Iterator[int]:
        nonlocal produced
        for at in range(1000):
            with lock:
                produced += 1
            yield at

    stream = read_in_order(read, range(100), threads=3)
    next(stream)
    time.sleep(0.2)
    assert produced < 30
    stream.close()


def test_stopping_early_stops_threads_and_closes_streams() -> None:
    closed: list[int] = []

    def read(item: int) -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            closed.append(item)

    before = threading.active_count()
    stream = read_in_order(read, range(100), threads=3)
    assert [next(stream) for _ in range(5)] == [0, 1, 2, 3, 4]
    stream.close()
    assert threading.active_count() == before
    assert sorted(closed) == [0, 1, 2]


def test_no_tasks_give_no_batches() -> None:
    assert list(read_in_order(lambda item: iter([item]), [], threads=4)) == []


def test_interpreter_exits_while_a_reader_is_half_read() -> None:
    script = """
from frazil.datafile.read_tasks import read_in_order
held = read_in_order(lambda item: iter(range(1000)), range(100), threads=4)
print(next(held))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=True)
    assert ended.stdout == "0\n"
