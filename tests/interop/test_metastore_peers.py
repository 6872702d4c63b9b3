"""frazil and PyIceberg over one Hive Metastore and one Glue catalog: by turns, and at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from tests.support.catalog_cases import opened_case
from tests.support.glue_server import KEY_ID, SECRET, shared_glue
from tests.support.metastore_server import shared_metastore

pytestmark = [pytest.mark.interop, pytest.mark.extended]
ROWS_EACH = 4
Opened = tuple[Callable[[], frazil.Lake], Callable[[], Any]]


def no_database() -> str:
    raise AssertionError("no metastore needs one")


@pytest.fixture(params=["hive", "glue"])
def peers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Ways to open one catalog with frazil and with PyIceberg."""
    warehouse = f"file://{tmp_path}/warehouse"
    with opened_case(request.param, tmp_path, no_database) as case:
        case.catalog.create_namespace(("db",), {"location": f"{warehouse}/db"})
    if request.param == "hive":
        pytest.importorskip("thrift")
        from pyiceberg.catalog.hive import HiveCatalog

        uri = shared_metastore().uri
        # This server is of Hive 2; and PyIceberg waits a second at first for a lock.
        more = {"hive.hive2-compatible": "true", "lock-check-min-wait-time": "0.05", "lock-check-max-wait-time": "0.5"}
        yield (
            lambda: frazil.connect(uri, warehouse=warehouse),
            lambda: HiveCatalog("peer", uri=uri, warehouse=warehouse, **more, **{"lock-check-retries": "200"}),
        )
        return
    from pyiceberg.catalog.glue import GlueCatalog

    server = shared_glue()
    theirs = {
        "glue.endpoint": server.endpoint,
        "glue.region": "eu-central-1",
        "glue.access-key-id": KEY_ID,
        "glue.secret-access-key": SECRET,
    }
    yield (
        lambda: frazil.connect(warehouse, catalog="glue", properties=server.properties),
        lambda: GlueCatalog("peer", warehouse=warehouse, **theirs),
    )


def row(number: int) -> pa.Table:
    return pa.table({"id": pa.array([number], pa.int64()), "s": ["x"]})


def test_both_clients_commit_in_turn(peers: Opened) -> None:
    open_frazil, open_peer = peers
    peer = open_peer()
    with open_frazil() as lake:
        lake.create_table("db.ours", "id bigint, s string")
        peer.create_table("db.theirs", pa.schema([("id", pa.int64()), ("s", pa.string())]))
        for name in ("db.ours", "db.theirs"):
            for at in range(0, 6, 2):
                lake.table(name).append(row(at))
                peer.load_table(name).append(row(at + 1))
            assert sorted(lake.table(name).scan().to_arrow()["id"].to_pylist()) == list(range(6))
            assert sorted(peer.load_table(name).scan().to_arrow()["id"].to_pylist()) == list(range(6))
        assert sorted(peer.list_tables("db")) == sorted(lake.list_tables("db")) == [("db", "ours"), ("db", "theirs")]
        peer.rename_table("db.theirs", "db.renamed")
        lake.rename_table("db.ours", "db.moved")
        assert lake.table("db.renamed").scan().count() == 6
        assert len(peer.load_table("db.moved").scan().to_arrow()) == 6
        lake.drop_table("db.renamed")
        peer.drop_table("db.moved")
        assert lake.list_tables("db") == []
        assert peer.list_tables("db") == []


def test_both_clients_commit_concurrently_without_losses(peers: Opened) -> None:
    open_frazil, open_peer = peers
    with open_frazil() as lake:
        lake.create_table("db.t", "id bigint, s string", properties={"commit.retry.num-retries": "50"})
    failures: list[str] = []

    def ours(writer: int) -> None:
        with open_frazil() as lake:
            for at in range(ROWS_EACH):
                lake.table("db.t").append(row(writer * 100 + at))

    def theirs(writer: int) -> None:
        peer = open_peer()
        for at in range(ROWS_EACH):
            while True:
                try:
                    peer.load_table("db.t").append(row(writer * 100 + at))
                    break
                except Exception as error:
                    # Its own words for having come second.
                    if "CommitFailed" not in type(error).__name__:
                        failures.append(repr(error))
                        return

    threads = [threading.Thread(target=act, args=(at,)) for at, act in enumerate((ours, ours, theirs, theirs), 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with open_frazil() as lake:
        found = lake.table("db.t").scan().to_arrow()["id"].to_pylist()
    assert sorted(found) == sorted(writer * 100 + at for writer in range(1, 5) for at in range(ROWS_EACH))
