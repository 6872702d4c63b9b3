"""Every method of the Python API over a stranger's lake."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import frazil
from frazil.metadata_tables import position_deletes
from tests.hostile.entry_points import Ear, run_lake, run_table, run_view
from tests.hostile.hostile_lake import (
    CANARY_ROW,
    ENVIRONMENT_SECRET,
    PROPERTIES,
    SECRETS,
    VARIABLE,
    Outside,
    Stranger,
)

FEW = ("names", "dots", "http", "link", "home", "victims_path", "forgets", "list_http", "far_vector", "zipped")
HOW_MANY = pytest.mark.parametrize(
    "is_whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some tables", "every table"]
)
ROOM_BYTES = 6 << 30
MOST_SECONDS = 60.0


@pytest.fixture(autouse=True)
def _bounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(VARIABLE, ENVIRONMENT_SECRET)
    monkeypatch.setattr(position_deletes, "MAX_TABLE_BYTES", 16 << 20)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM_BYTES, before[1]))
    start = time.process_time()
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)
    assert time.process_time() - start < MOST_SECONDS


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Outside]:
    made = Outside(tmp_path / "outside")
    yield made
    made.close()


def chosen(stranger: Stranger, *, is_whole: bool) -> list[tuple[str, str]]:
    return [one for one in stranger.tables if is_whole or one[-1] in FEW]


@HOW_MANY
def test_inspecting_an_untrusted_lake_is_harmless(tmp_path: Path, outside: Outside, is_whole: bool) -> None:
    stranger = Stranger(tmp_path, outside)
    with Ear() as ear, frazil.connect(stranger.warehouse, trust="none", properties=PROPERTIES) as lake:
        ear.listen("repr", lambda: lake)
        for name in [*chosen(stranger, is_whole=is_whole), ("db", "victim")]:
            run_table(ear, lake, name)
            outside.check(str(name))
        for name in stranger.views:
            run_view(ear, lake, name)
        run_lake(ear, lake, ("db", "names"), ("db", "v_env"))
        outside.check("the lake")
        assert lake.table("db.victim").scan().to_arrow().to_pylist() == [{"id": 7, "note": "mine"}]
    ear.check((*SECRETS, CANARY_ROW))


@pytest.mark.extended
@HOW_MANY
def test_using_untrusted_tables_is_harmless(tmp_path: Path, outside: Outside, is_whole: bool) -> None:
    # What is appended goes where the table says: only `trust="none"` and `read.roots` close that.
    stranger = Stranger(tmp_path, outside)
    with Ear() as ear, frazil.connect(stranger.warehouse, properties=PROPERTIES) as lake:
        for name in chosen(stranger, is_whole=is_whole):
            run_table(ear, lake, name)
            outside.check_kept(str(name))
            assert lake.table("db.victim").scan().to_arrow().to_pylist() == [{"id": 7, "note": "mine"}], name
        for name in stranger.views:
            run_view(ear, lake, name)
        for name in chosen(stranger, is_whole=is_whole):
            run_lake(ear, lake, name, ("db", "v_env"))
            outside.check_kept(str(name))
        assert lake.table("db.victim").check(bounds=True).ok
    ear.check()
