"""When keys that are sent to Spark's tasks are renewed: before they end, and for as long as somebody may use them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import pytest

from frazil.spark.jvm.vended_keys import KeyDelivery, Keys

DAY_S = 86_400


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Service:
    """Gives keys that last, and counts how often."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock = clock
        self.seconds = seconds
        self.asked = 0
        self.fails = False

    def __call__(self) -> Keys:
        self.asked += 1
        if self.fails:
            raise OSError("no answer")
        return (int((self.clock.now + self.seconds) * 1000), f"id{self.asked}", "secret", "token")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sent() -> list[Mapping[str, Keys]]:
    return []


@pytest.fixture
def delivery(clock: Clock, sent: list[Mapping[str, Keys]], monkeypatch: pytest.MonkeyPatch) -> KeyDelivery:
    # The thread's work is done here, step by step.
    monkeypatch.setattr(KeyDelivery, "_run", lambda self: None)
    return KeyDelivery(sent.append, clock)


def test_credentials_are_sent_once_at_once(delivery: KeyDelivery, clock: Clock, sent: list[Mapping[str, Keys]]) -> None:
    service = Service(clock, 3600)
    keys = service()
    delivery.keep("t", keys, service)
    delivery.keep("t", keys, service)
    assert sent == [{"t": keys}]
    delivery.keep("u", keys, service)
    assert sent == [{"t": keys}, {"u": keys}]


def test_credentials_are_renewed_five_minutes_before_expiry(
    delivery: KeyDelivery, clock: Clock, sent: list[Mapping[str, Keys]]
) -> None:
    service = Service(clock, 3600)
    delivery.keep("t", service(), service)
    assert delivery.renew() == pytest.approx(3300)
    clock.now += 3299
    delivery.renew()
    assert len(sent) == 1
    clock.now += 1
    assert delivery.renew() == pytest.approx(3300)
    assert [one["t"][1] for one in sent] == ["id1", "id2"]


def test_short_lived_credentials_are_renewed_at_half_life(delivery: KeyDelivery, clock: Clock) -> None:
    service = Service(clock, 10)
    delivery.keep("t", service(), service)
    assert delivery.renew() == pytest.approx(5)
    clock.now += 5
    assert delivery.renew() == pytest.approx(5)
    assert service.asked == 2


def test_unavailable_service_is_retried_before_and_after_expiry(
    delivery: KeyDelivery, clock: Clock, sent: list[Mapping[str, Keys]]
) -> None:
    service = Service(clock, 600)
    delivery.keep("t", service(), service)
    service.fails = True
    waits = []
    for _ in range(20):
        wait = delivery.renew()
        assert wait is not None
        assert wait > 0
        waits.append(wait)
        clock.now += wait
    assert clock.now > 1600, "past their end"
    assert waits[-1] == 30
    assert len(sent) == 1
    service.fails = False
    delivery.renew()
    assert len(sent) == 2


def test_credentials_unused_for_a_day_are_left_to_expire(delivery: KeyDelivery, clock: Clock) -> None:
    old, used = Service(clock, 7 * DAY_S), Service(clock, 7 * DAY_S)
    delivery.keep("old", old(), old)
    delivery.keep("used", used(), used)
    clock.now += DAY_S - 1
    delivery.keep("used", used(), used)
    clock.now += 2
    assert delivery.renew() is not None
    assert list(delivery._entries) == ["used"]
    clock.now += DAY_S
    assert delivery.renew() is None


def test_newer_credentials_are_not_replaced_by_older_ones(
    delivery: KeyDelivery, clock: Clock, sent: list[Mapping[str, Keys]]
) -> None:
    service = Service(clock, 10)
    newest: Keys = (10**9, "newest", "secret", "token")

    def ask() -> Keys:
        delivery.keep("t", newest, service)
        return service()

    delivery.keep("t", service(), ask)
    clock.now += 6
    delivery.renew()
    assert sent[-1] == {"t": newest}


def test_thread_renews_on_its_own_and_ends_with_the_last_credentials() -> None:
    sent: list[Mapping[str, Keys]] = []
    renewed = threading.Event()

    def send(keys: Mapping[str, Keys]) -> None:
        sent.append(keys)
        if len(sent) == 2:
            renewed.set()

    def ask() -> Keys:
        return (int((time.time() + 2) * 1000), "id", "secret", "token")

    delivery = KeyDelivery(send)
    delivery.keep("t", ask(), ask)
    thread = delivery._thread
    assert thread is not None
    assert renewed.wait(60)
    delivery._entries["t"].used_at = 0
    thread.join(30)
    assert not thread.is_alive()


def test_thread_ends_quietly_without_spark() -> None:
    sent: list[Mapping[str, Keys]] = []

    def send(keys: Mapping[str, Keys]) -> None:
        if sent:
            raise OSError("the JVM is gone")
        sent.append(keys)

    def ask() -> Keys:
        return (int((time.time() + 2) * 1000), "id", "secret", "token")

    delivery = KeyDelivery(send)
    delivery.keep("t", ask(), ask)
    thread = delivery._thread
    assert thread is not None
    thread.join(30)
    assert not thread.is_alive()
    assert delivery._entries == {}
