"""What is remembered between requests, and when it is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Sized
from typing import Any, cast

import frazil
from frazil.sessions.remembered import MOST_PLANS, MOST_STATEMENTS, Recent, Remembered, remember
from frazil.sessions.resolved_name import ResolvedName
from frazil.sessions.stream_compaction import Compactions
from frazil.sessions.stream_source import StreamSource
from frazil.table.sql_session import FullName, Relation


def filled(lake: frazil.Lake) -> Remembered:
    """Return what two sessions remember of a table."""
    table = lake.create_table("db.t", "id bigint")
    full_name = FullName("lake", lake, ("db", "t"))
    remembered = Remembered()
    remember(remembered.tables, ResolvedName(Relation(full_name, table), full_name))
    remember(remembered.statements, (cast(Any, None), None))
    remembered.written.recall(("statement", "lake.db.t"), lambda: table)
    for session in ("a", "b"):
        remembered.plans.recall((session, table.location), object)
    remembered.streams["query"] = cast(StreamSource, None)
    remembered.compactions.recall("query", Compactions)
    return remembered


def counts(remembered: Remembered) -> list[int]:
    """Return how much there is of each."""
    recent: list[Sized] = [
        remembered.tables,
        remembered.statements,
        remembered.written,
        remembered.plans,
        remembered.compactions,
    ]
    return [*(len(one) for one in recent), len(remembered.streams)]


def test_nothing_accumulates_over_a_thousand_statements() -> None:
    with frazil.connect("memory:") as lake:
        remembered = filled(lake)
        table = lake.table("db.t")
        full_name = FullName("lake", lake, ("db", "t"))
        name = ResolvedName(Relation(full_name, table), full_name)
        for number in range(3 * MOST_STATEMENTS):
            remember(remembered.tables, name)
            remember(remembered.statements, (cast(Any, None), None))
            remembered.written.recall((str(number), "lake.db.t"), lambda: table)
            remembered.plans.recall(("a", number), object)
            remembered.compactions.recall(str(number), Compactions)
        assert counts(remembered) == [*[MOST_STATEMENTS] * 3, MOST_PLANS, MOST_STATEMENTS, 1]


def test_most_recently_used_entries_are_kept() -> None:
    recent: Recent[str, int] = Recent(2)
    recent.recall("a", lambda: 1)
    recent.recall("b", lambda: 2)
    assert recent.find("a") == 1
    recent.recall("c", lambda: 3)
    assert list(recent) == ["a", "c"]
    assert (recent.find("b"), recent.recall("a", lambda: 4)) == (None, 1)


def test_detach_releases_the_plans_of_its_session_only() -> None:
    with frazil.connect("memory:") as lake:
        remembered = filled(lake)
        remembered.forget_plans("a")
        assert [key[0] for key in remembered.plans] == ["b"]
        assert counts(remembered) == [1, 1, 1, 1, 1, 1]


def test_forget_clears_everything() -> None:
    with frazil.connect("memory:") as lake:
        remembered = filled(lake)
        assert counts(remembered) == [1, 1, 1, 2, 1, 1]
        remembered.forget()
        assert counts(remembered) == [0] * 6


def test_computing_a_value_may_request_another() -> None:
    recent: Recent[str, str] = Recent()
    assert recent.recall("outer", lambda: recent.recall("inner", lambda: "a") + "b") == "ab"


def test_two_threads_computing_a_value_get_the_same_one() -> None:
    recent: Recent[str, object] = Recent()
    barrier, values = threading.Barrier(2), []

    def make() -> object:
        barrier.wait(10)
        return object()

    threads = [threading.Thread(target=lambda: values.append(recent.recall("key", make))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(values) == 2 and values[0] is values[1]
