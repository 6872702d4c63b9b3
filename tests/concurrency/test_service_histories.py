"""Random histories of several clients of `frazil serve`: appends, upserts, transactions, renames, drops, views.

Requests and answers get lost, are sent twice, or are refused for a moment. Some clients send idempotency keys, some
hold tables that were renamed or dropped meanwhile, some write to the lake beside the server. Whatever a client was told
must be so: what is acknowledged is there once, what is refused is not there, a transaction is whole, and no row is in a
table that its writer did not mean.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.errors import AlreadyExistsError, CommitError, CommitStateUnknownError, NotFoundError, ServiceError
from frazil.rest.rest_catalog import RestCatalog
from frazil.storage.http import Answer, AnswerLost, RequestNotSent
from tests.support.served_lake import Served, served

NAMES = [("a", f"t{number}") for number in range(4)] + [("b", f"t{number}") for number in range(3)]
QUICK = {
    "commit.retry.min-wait-ms": "1",
    "commit.retry.max-wait-ms": "20",
    "commit.retry.num-retries": "60",
    "commit.status-check.min-wait-ms": "1",
}
OPERATIONS = {
    "append": 25, "stale": 14, "beside": 8, "upsert": 5, "transaction": 12, "rename": 10, "drop": 3, "create": 8,
    "property": 10, "load": 12, "list": 5, "view": 5,
}  # fmt: skip
Name = tuple[str, str]
SEEDS = int(os.environ.get("FRAZIL_SERVICE_HISTORIES", "3"))
WORKERS, STEPS = 4, 25


class Faulty:
    """A transport that loses requests and answers by chance, or sends them twice; it notes errors of the server."""

    def __init__(self, inner: Any, chance: random.Random, share: float) -> None:
        self._inner = inner
        self._chance = chance
        self._share = share
        self.failures: list[str] = []

    def fetch(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", **options: Any) -> Answer:
        def pass_on() -> Answer:
            reply: Answer = self._inner.fetch(method, url, headers, body, **options)
            if reply.status >= 500:
                self.failures.append(f"{method} {url}: {reply.status} {bytes(reply.body)[:200]!r}")
            return reply

        if self._chance.random() >= self._share:
            return pass_on()
        fate = self._chance.randrange(6)
        if fate == 0:
            raise RequestNotSent("it was never sent")
        if fate == 1:
            raise AnswerLost("it never arrived")
        if fate == 2:
            return Answer(503, {"retry-after": "0"}, b"")
        reply = pass_on()
        if fate == 3:
            raise AnswerLost("the answer was lost")
        if fate == 4:
            return Answer(504, {}, b"")
        is_repeatable = method in ("GET", "HEAD") or "idempotency-key" in map(str.lower, headers)
        return pass_on() if is_repeatable else reply

    def close(self) -> None:
        self._inner.close()


@dataclass
class Told:
    """What a client was told of a row in tables, or of a property of one."""

    number: int
    tables: tuple[str, ...]
    outcome: str
    is_property: bool = False


@dataclass
class History:
    """What all clients did."""

    server: Served
    warehouse: Path
    told: list[Told] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    numbers: Any = field(default_factory=lambda: count(1))


class Client:
    """One client, and the tables that it holds."""

    def __init__(self, history: History, seed: int, share: float, stack: ExitStack) -> None:
        self.history = history
        self.chance = random.Random(seed)
        pages = {"rest-page-size": str(self.chance.choice([1, 2, 100]))}
        self.lake = stack.enter_context(frazil.connect(history.server.uri, properties=pages))
        self.own_lake = stack.enter_context(frazil.connect(history.warehouse))
        catalog = self.lake.catalog
        assert isinstance(catalog, RestCatalog)
        self.transport = Faulty(catalog.session.transport, random.Random(seed + 1), share)
        catalog.session.transport = self.transport  # type: ignore[assignment]
        catalog.session.honours_keys = self.chance.random() < 0.6
        catalog.session._sleep = lambda seconds: None
        self.held: list[frazil.Table] = []
        self.sequence_numbers: dict[str, int] = {}
        self.meant: tuple[str, ...] = ()

    def run(self) -> None:
        for _ in range(STEPS):
            self.step()
        self.history.problems += self.transport.failures

    def step(self) -> None:
        operation = self.chance.choices([*OPERATIONS], [*OPERATIONS.values()])[0]
        first, second = self.chance.sample(NAMES, 2)
        number, self.meant, outcome = next(self.history.numbers), (), "done"
        try:
            self.do(operation, number, first, second)
        except (CommitStateUnknownError, ServiceError):
            outcome = "unknown"
        except (NotFoundError, AlreadyExistsError, CommitError):
            outcome = "refused"
        except Exception as error:
            outcome = "unknown"
            self.history.problems.append(f"{operation}: {type(error).__name__}: {error}")
        if self.meant:
            self.history.told.append(Told(number, self.meant, outcome, operation == "property"))

    def do(self, operation: str, number: int, name: Name, other: Name) -> None:
        match operation:
            case "append":
                self.held.append(self.meaning(self.lake.table(name)))
                self.held[-1].append(rows(number))
            case "stale" if self.held:
                self.meaning(self.chance.choice(self.held)).append(rows(number))
            case "beside":
                self.meaning(self.own_lake.table(name)).append(rows(number))
            case "upsert":
                self.meaning(self.lake.table(name)).upsert(rows(number), keys=["id"])
            case "property":
                self.meaning(self.lake.table(name)).set_properties({f"p{number}": "set"})
            case "transaction":
                with self.lake.transaction() as transaction:
                    tables = [transaction.table(name), transaction.table(other)]
                    self.meant = tuple(str(table._staged.state.metadata.table_uuid) for table in tables)
                    for table in tables:
                        table.append(rows(number))
            case "rename":
                self.lake.rename_table(name, other)
            case "drop":
                self.lake.drop_table(name)
            case "create":
                self.lake.create_table(name, "id bigint", properties=QUICK)
            case "list":
                self.lake.list_tables(name[0])
                self.lake.list_namespaces()
            case "view":
                view = (name[0], f"view_of_{name[1]}")
                self.lake.create_view(view, f"select id from {name[1]}", schema="id bigint", replaces=True)
                self.lake.sql(f"select count(*) as n from {'.'.join(view)}").to_pylist()
                self.lake.drop_view(view)
            case "load":
                metadata = self.lake.table(name).metadata
                uuid = str(metadata.table_uuid)
                if metadata.last_sequence_number < self.sequence_numbers.get(uuid, 0):
                    self.history.problems.append(f"{name} is in an older state than before")
                self.sequence_numbers[uuid] = metadata.last_sequence_number
            case _:
                assert operation == "stale"

    def meaning(self, table: frazil.Table) -> frazil.Table:
        self.meant = (str(table.metadata.table_uuid),)
        return table


def rows(number: int) -> pa.Table:
    return pa.table({"id": [number]})


def judge(history: History) -> list[str]:
    """Return what is not as clients were told."""
    found = list(history.problems)
    lake = frazil.Lake(history.server.catalog)
    tables = [lake.table(name) for namespace in ("a", "b") for name in lake.list_tables(namespace)]
    rows_of = {str(one.metadata.table_uuid): Counter(one.scan().to_arrow()["id"].to_pylist()) for one in tables}
    properties_of = {str(one.metadata.table_uuid): one.properties for one in tables}
    meant: dict[int, set[str]] = defaultdict(set)
    for told in history.told:
        if not told.is_property:
            meant[told.number] |= set(told.tables)
        there = [
            int(f"p{told.number}" in properties_of[uuid]) if told.is_property else rows_of[uuid][told.number]
            for uuid in told.tables
            if uuid in rows_of
        ]
        wanted = {"done": {1}, "refused": {0}, "unknown": {0, 1}}[told.outcome]
        if not set(there) <= wanted or len(set(there)) > 1:
            found.append(f"{told} is there {there} times")
    found += [
        f"row {number} is in a table that it was not meant for"
        for uuid, numbers in rows_of.items()
        for number in numbers
        if uuid not in meant[number]
    ]
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_responses_to_clients_match_the_history_of_the_table(tmp_path: Path, seed: int) -> None:
    with served(tmp_path / "wh", state=tmp_path / "serve.db") as server, ExitStack() as stack:
        history = History(server, tmp_path / "wh")
        with frazil.connect(server.uri) as lake:
            for name in NAMES:
                lake.create_table(name, "id bigint", properties=QUICK)
        share = (0.1, 0.3, 0.0)[seed % 3]
        clients = [Client(history, seed * 1000 + number * 2, share, stack) for number in range(WORKERS)]
        threads = [threading.Thread(target=client.run) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert judge(history) == []
    outcomes = Counter(told.outcome for told in history.told)
    assert outcomes["done"] > WORKERS * STEPS / 5, outcomes
