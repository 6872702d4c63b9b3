"""Processes that race on one catalog: every commit that was acknowledged is there, once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from frazil.catalog.base import Catalog
from frazil.catalog.filesystem import FilesystemCatalog
from frazil.catalog.open_database import open_database
from frazil.catalog.sql import SqlCatalog
from frazil.storage.local import LocalStorage
from tests.conftest import ROOT
from tests.support.catalog_cases import EVENTS, made_table
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
    if kind == "filesystem":
        return FilesystemCatalog("processes", warehouse, storage)
    return SqlCatalog("processes", warehouse, open_database(uri or f"sqlite:///{folder}/catalog.db"), storage)


@pytest.mark.parametrize("kind", ["sqlite", "filesystem", "postgresql"])
def test_acknowledged_commits_of_concurrent_processes_are_all_kept(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    uri: str = request.getfixturevalue("postgres_server").uri if kind == "postgresql" else ""
    with open_catalog(kind, str(tmp_path), uri) as catalog:
        if catalog.namespace_exists(("db",)):
            catalog.drop_table(EVENTS)
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
            out, err = one.communicate(timeout=100)
            assert one.returncode == 0, err
            acknowledged |= set(out.split())
        table = catalog.load_table(EVENTS).metadata
    assert len(acknowledged) == PROCESSES * COMMITS
    assert acknowledged <= table.properties.keys()
    assert len(table.metadata_log) == PROCESSES * COMMITS
    assert len({one.metadata_file for one in table.metadata_log}) == PROCESSES * COMMITS
