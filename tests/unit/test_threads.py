"""A lock that threads get in the order in which they asked."""

from __future__ import annotations

import threading
import time

from frazil.threads import FairLock


def waiting_for(lock: FairLock) -> int:
    return len(lock._waiting)


def test_lock_is_granted_in_order_of_request() -> None:
    lock, order = FairLock(), list[int]()

    def work(number: int) -> None:
        with lock:
            order.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    with lock:
        for number, thread in enumerate(threads):
            thread.start()
            while waiting_for(lock) <= number:
                time.sleep(0.001)
    # Who comes now stands behind those who wait.
    with lock:
        assert len(order) == 20
    for thread in threads:
        thread.join()
    assert order == list(range(20))


def test_lock_is_exclusive() -> None:
    lock, inside, most = FairLock(), [0], [0]

    def work() -> None:
        for _ in range(200):
            with lock:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_abandoned_request_does_not_block_others() -> None:
    lock = FairLock()
    assert lock.acquire()
    assert not lock.acquire(0.01)
    assert waiting_for(lock) == 0
    lock.release()
    assert lock.acquire(0.01)
    lock.release()
