"""A fault at every call to storage and to the catalog, of every action, on every catalog: nothing is lost or repeated.

An action is planned on a prepared table. It runs once for each call it makes and each kind of fault, and then:

    whole     every file the table leads to is there and says what the metadata says of it (`check_files.py`)
    all       what was acknowledged is there, once: the table is as after a run without faults
    nothing   what was refused did not happen: the table is as before
    either    what crashed, or was said to be unknown, is one of the two
    again     the same action can be run again, or another one if it has happened; what was left behind is in
              nobody's way

`rival`: another writer commits before the action does, so that its retry meets faults too. Every point is run; the
counts are printed at the end of the run (`conftest.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import frazil.commit
from frazil.commit import action
from frazil.commit.append import Append
from frazil.errors import CommitStateUnknownError, FrazilError
from frazil.storage.failing import FailingStorage, Fault, FaultKind, SimulatedCrash
from tests.concurrency.check_files import check_table
from tests.concurrency.fault_actions import SCENARIOS, Progress, Run, Scenario, prepare, tagged
from tests.concurrency.fault_world import KINDS, Saved, World
from tests.support.postgres_server import shared_server

ON_DISK = "filesystem-on-disk"
"""The filesystem catalog on a real disk, which is slow and no other; a few actions show that it is no other."""
QUICK = {"merge_append", "row_delta_vectors", "several_actions"}
CASES = [
    pytest.param(
        scenario,
        kind,
        version,
        rival,
        id=f"{scenario.name}-{kind}-v{version}{'-rival' if rival else ''}",
        marks=pytest.mark.slow
        if scenario.name not in QUICK or version != 3 or rival or kind in ("postgresql", ON_DISK)
        else ()
        if scenario.name == "merge_append"
        else pytest.mark.extended,
    )
    for scenario in SCENARIOS
    for kind in scenario.kinds
    for version in scenario.versions
    for rival in (False, True)
    # A retry is the same in both versions; in memory it is tried in both all the same.
    if not rival or kind == "memory" or version == scenario.versions[-1]
    if kind != ON_DISK or (scenario.name in QUICK and version == 3)
]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("scenario", "kind", "version", "rival"), CASES)
def test_fault_at_any_call_loses_and_duplicates_nothing(
    scenario: Scenario,
    kind: str,
    version: int,
    rival: bool,
    fast_folder: Path,
    record_property: Callable[[str, object], None],
) -> None:
    world = World(kind, fast_folder, lambda: shared_server().uri)
    try:
        prepare(world, version)
        points = Points(world, scenario.plan(world), has_rival=rival)
        for storage_or_catalog in ("storage", "catalog"):
            if storage_or_catalog == "catalog" and world.is_filesystem:
                # Its calls are calls to storage.
                continue
            for fault in FaultKind:
                count = sum(1 for _ in points.run_all(storage_or_catalog, fault))
                assert count > 0, "no call was counted"
                record_property(f"{kind} {storage_or_catalog} {fault.name.lower()}", count)
    finally:
        world.close()


class Points:
    """The points of one action at which something can go wrong, and what must be true after each."""

    def __init__(self, world: World, run: Run, *, has_rival: bool) -> None:
        self.world = world
        self.run = run
        lab = world.lab
        rivals = Append((lab.file([70], "c"),), tagged("rival"))
        self.later = Append((lab.file([71], "c"),), tagged("later"))
        self.rival = (lambda: lab.commit(rivals)) if has_rival else None
        self.start: Saved = world.save()
        self.before = {False: world.state()}
        self.after = {False: self._clean_state(None)}
        if self.rival is not None:
            world.restore(self.start)
            self.rival()
            self.before[True] = world.state()
            self.after[True] = self._clean_state(self.rival)
        world.restore(self.start)
        for has_run, state in self.before.items():
            assert self.after[has_run] != state, "the action does nothing"

    def _clean_state(self, rival: Callable[[], object] | None) -> object:
        self.world.restore(self.start)
        self.run(self.world.catalog, Progress(rival))
        self._check()
        return self.world.state()

    def _check(self) -> None:
        for one in self.world.tables():
            check_table(one)

    def run_all(self, place: str, kind: FaultKind) -> Iterator[int]:
        """Run every point of a kind; yield the number of each call."""
        call = 1
        while self._run_one(place, call, kind):
            yield call
            call += 1

    def _run_one(self, place: str, call: int, kind: FaultKind) -> bool:
        world = self.world
        world.restore(self.start)
        storage = FailingStorage(world.storage, *([Fault(call, kind)] if place == "storage" else []))
        catalog = world.open(storage)
        if place == "catalog":
            world.faults.arm(call, kind)
        progress = Progress(self.rival)
        raised: BaseException | None = None
        try:
            self.run(catalog, progress)
        except (FrazilError, SimulatedCrash) as error:
            raised = error
        if isinstance(raised, SimulatedCrash):
            world.end_process()
        self._judge(progress, raised, f"{kind.name} at {place} call {call}")
        return world.faults.has_fired or any(one.fault for one in storage.calls)

    def _judge(self, progress: Progress, raised: BaseException | None, where: str) -> None:
        world = self.world
        self._check()
        state = world.state()
        before, after = self.before[progress.has_rival_run], self.after[progress.has_rival_run]
        if progress.is_acknowledged:
            assert state == after, f"an acknowledged commit is not there: {where}"
        elif isinstance(raised, SimulatedCrash | CommitStateUnknownError):
            assert state in (before, after), f"neither all nor nothing happened: {where}"
        else:
            assert state == before, f"a refused commit happened ({raised}): {where}"
        if state == before:
            self.run(world.catalog, Progress())
            assert world.state() == after, f"another try does not do the same: {where}"
        else:
            world.lab.commit(self.later)
        self._check()


def test_every_action_is_covered_by_fault_tests() -> None:
    found = [import_module(f"frazil.commit.{one.name}") for one in iter_modules(frazil.commit.__path__)]
    rooms = [one for one in found if one is not action]
    actions = {
        name
        for room in rooms
        for name, made in vars(room).items()
        if isinstance(made, type) and made.__module__ == room.__name__ and hasattr(made, "prepare")
    }
    text = Path(__file__).with_name("fault_actions.py").read_text("utf-8")
    assert {name for name in actions if f"{name}(" not in text} == set()
    assert {one for scenario in SCENARIOS for one in scenario.kinds} == set(KINDS)
