"""Processes that race on one catalog: every commit that was acknowledged is there, once."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frazil.catalog.base import Catalog
from frazil.catalog.filesystem import FilesystemCatalog
from frazil.catalog.glue.open_glue import open_glue
from frazil.catalog.hive.open_hive import open_hive
from frazil.catalog.open_database import open_database
from frazil.catalog.sql import SqlCatalog
from frazil.errors import TableNotFoundError
from frazil.storage.local import LocalStorage
from tests.conftest import ROOT
from tests.support.catalog_cases import EVENTS, empty_catalog, made_table, set_property_until_it_works
from tests.support.glue_server import shared_glue
from tests.support.metastore_server import shared_metastore
from tests.support.postgres_server import postgres_server

__all__ = ["postgres_server"]
pytestmark = pytest.mark.slow

PROCESSES, COMMITS = 4, 25
WRITER = """
import sys
from tests.support.catalog_cases import EVENTS, set_property_until_it_works
from tests.contract.test_catalog_processes import open_catalog
kind, folder, uri, writer, commits = sys.argv[1:]
with open_catalog(kind, folder, uri) as catalog:
    for at in range(int(commits)):
        set_property_until_it_works(catalog, EVENTS, **{f"x{writer}-{at}": "done"})
        print(f"x{writer}-{at}", flush=True)
"""


def open_catalog(kind: str, folder: str, uri: str) -> Catalog:
    storage = LocalStorage()
    warehouse = f"file://{folder}/warehouse"
    if kind == "hive":
        return open_hive("processes", uri, warehouse, storage, {"iceberg.hive.lock-check-min-wait-ms": "5"})
    if kind == "glue":
        properties = {"glue.endpoint": uri, "client.region": "eu-central-1", "glue.access-key-id": "AKIAX"}
        return open_glue("processes", warehouse, storage, {**properties, "glue.secret-access-key": "secret"})
    if kind == "filesystem":
        return FilesystemCatalog("processes", warehouse, storage)
    return SqlCatalog("processes", warehouse, open_database(uri or f"sqlite:///{folder}/catalog.db"), storage)


def _uri(kind: str, request: pytest.FixtureRequest | None) -> str:
    if kind == "hive":
        return shared_metastore().uri
    if kind == "glue":
        shared_glue().forget()
        return shared_glue().endpoint
    if request is None or kind != "postgresql":
        return ""
    uri: str = request.getfixturevalue("postgres_server").uri
    return uri


@pytest.mark.parametrize("kind", ["sqlite", "filesystem", "postgresql", "hive", "glue"])
def test_acknowledged_commits_of_concurrent_processes_are_all_kept(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    uri = _uri(kind, request)
    with open_catalog(kind, str(tmp_path), uri) as catalog:
        # An earlier test may have left a table whose files are gone.
        with suppress(TableNotFoundError):
            catalog.drop_table(EVENTS)
        if catalog.namespace_exists(("db",)) and kind == "hive":
            empty_catalog(catalog)
        made_table(catalog)
        running = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, kind, str(tmp_path), uri, str(writer), str(COMMITS)],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for writer in range(PROCESSES)
        ]
        acknowledged: set[str] = set()
        for one in running:
            out, err = one.communicate(timeout=300)
            assert one.returncode == 0, err
            acknowledged |= set(out.split())
        table = catalog.load_table(EVENTS).metadata
    assert len(acknowledged) == PROCESSES * COMMITS
    assert acknowledged <= table.properties.keys()
    assert len(table.metadata_log) == PROCESSES * COMMITS
    assert len({one.metadata_file for one in table.metadata_log}) == PROCESSES * COMMITS


@pytest.mark.parametrize("kind", ["hive", "glue"])
def test_killed_writers_lose_no_commits(kind: str, tmp_path: Path) -> None:
    uri = _uri(kind, None)
    with open_catalog(kind, str(tmp_path), uri) as catalog:
        if catalog.namespace_exists(("db",)):
            empty_catalog(catalog, ())
        made_table(catalog)
        if kind == "hive":
            # Locks that a killed writer leaves are given back soon, by the writers here.
            locks: Any = catalog._pointers._locks  # type: ignore[attr-defined]
            locks._settings = replace(locks._settings, stale_seconds=1.0)
        acknowledged: set[str] = set()
        for turn in range(4):
            running = [
                subprocess.Popen(
                    [sys.executable, "-c", WRITER, kind, str(tmp_path), uri, f"{turn}.{writer}", "1000"],
                    cwd=ROOT,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
                for writer in range(2)
            ]
            for one in running:
                assert one.stdout is not None
                # Each has committed at least once before it ends in the middle of something.
                acknowledged.add(one.stdout.readline().strip())
                one.kill()
            for one in running:
                acknowledged |= set(one.communicate(timeout=300)[0].split())
            # What comes after them is not in anybody's way.
            set_property_until_it_works(catalog, EVENTS, **{f"after-{turn}": "done"})
        table = catalog.load_table(EVENTS).metadata
    assert acknowledged <= table.properties.keys()
    assert {f"after-{turn}" for turn in range(4)} <= table.properties.keys()
    files = [one.metadata_file for one in table.metadata_log]
    assert len(files) == len(set(files))
