"""Scans that a service plans: the files that planning here finds, waits, parts, failures, and plans nobody reads on."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import frazil
from frazil.changes.apply import apply_updates
from frazil.changes.updates import AddSnapshot, SetSnapshotRef
from frazil.errors import InvalidRequestError, ServiceError, UnsupportedError
from frazil.expr.extract import parse_predicate
from frazil.expr.predicates import TRUE
from frazil.rest.load_result import LoadResult
from frazil.rest.rest_catalog import RestCatalog
from frazil.rest.scan_planning import ScanPlanner
from frazil.rest.table_storage import VendedStorage
from frazil.scan.plan import plan_scan
from frazil.serve.store_access import StoreAccess
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.snapshot import Snapshot, SnapshotRef
from tests.support.guarded_tables import guarded
from tests.support.rest_lab import LOST, ScriptedService, error_json, metadata_of, opened, scripted_service, table_json
from tests.support.s3_server import BUCKET, running
from tests.support.served_lake import served

TABLE = ("db", "t")
AT = "/v1/namespaces/db/tables/t"
_T = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
ENDPOINTS = [f"POST {_T}/plan", f"GET {_T}/plan/{{plan-id}}", f"DELETE {_T}/plan/{{plan-id}}", f"POST {_T}/tasks"]


@pytest.fixture
def service() -> Iterator[ScriptedService]:
    with scripted_service({"defaults": {}, "overrides": {}, "endpoints": ENDPOINTS}) as made:
        yield made


class Planning:
    """A table of a scripted service, and a planner that waits for nothing."""

    def __init__(self, service: ScriptedService, **properties: str) -> None:
        snapshot = Snapshot(
            7, 1_700_000_000_001, "memory://w/snap.avro", FrozenMap({"operation": "append"}), None, 1, 0
        )
        updates = (AddSnapshot(snapshot), SetSnapshotRef("main", SnapshotRef(7)))
        metadata = apply_updates(metadata_of(), updates, now_ms=1_700_000_000_002)
        service.on(f"GET {AT}", (200, table_json(metadata)))
        self.service = service
        self.catalog = opened(service, properties)
        self.loaded = self.catalog.load_table(TABLE)
        self.waits: list[float] = []
        self.planner = ScanPlanner(self.catalog, sleep=self.waits.append, monotonic=lambda: sum(self.waits))

    def paths(self) -> list[str]:
        return [one.data_file.file_path for one in self.planner.plan(self.loaded)]


def file(path: str, **more: Any) -> dict[str, Any]:
    return {
        "data-file": {
            "content": "data",
            "file-path": path,
            "file-format": "PARQUET",
            "spec-id": 0,
            "partition": [],
            "file-size-in-bytes": 10,
            "record-count": 1,
        },
        **more,
    }


@pytest.mark.parametrize("where", ["true", "id > 5", "id = 3 or s = 'x7'"])
def test_server_side_plan_equals_local_plan(tmp_path: Path, where: str) -> None:
    with served(tmp_path / "wh") as server, frazil.connect(f"http://127.0.0.1:{server.port}") as lake:
        table = lake.create_table("db.t", "id bigint, s string", partition_by=["bucket(3, id)"])
        for at in range(3):
            ids = [at * 3 + one for one in range(3)]
            table.append(pa.table({"id": pa.array(ids, pa.int64()), "s": [f"x{one}" for one in ids]}))
        table.delete("id = 4", engine="local")
        catalog = lake.catalog
        assert isinstance(catalog, RestCatalog)
        loaded = catalog.load_table(TABLE)
        theirs = list(catalog.plan_tasks(loaded, parse_predicate(where)))
        ours = list(plan_scan(loaded, where).iter_tasks())

        def shown(tasks: Any) -> Any:
            return sorted(
                (one.data_file.file_path, one.data_file.partition, one.data_file.spec_id, str(one.residual),
                 sorted(each.data_file.file_path for each in one.delete_files))
                for one in tasks
            )  # fmt: skip

        assert shown(theirs) == shown(ours)
        assert theirs or where != "true"


def test_table_with_server_side_planning_reads_the_same_and_is_picklable(tmp_path: Path) -> None:
    with served(tmp_path / "wh") as server:
        address = f"http://127.0.0.1:{server.port}"
        with frazil.connect(address) as lake:
            table = lake.create_table("db.t", "id bigint, s string", partition_by=["bucket(3, id)"])
            for at in range(3):
                table.append(pa.table({"id": pa.array([at, at + 10], pa.int64()), "s": ["x", "y"]}))
            table.delete("id = 11", engine="local")
            here = [table.scan(where).to_arrow().sort_by("id") for where in ("true", "id > 1", "s = 'y'")]
        with frazil.connect(address, properties={"scan-planning-mode": "server"}) as lake:
            asked: list[str] = []
            catalog = lake.catalog
            assert isinstance(catalog, RestCatalog)
            send = catalog.session.send

            def noted(method: str, url: str, **options: Any) -> Any:
                asked.append(url.rpartition("/")[2])
                return send(method, url, **options)

            catalog.session.send = noted  # type: ignore[method-assign]
            table = lake.table("db.t")
            there = [table.scan(where).to_arrow().sort_by("id") for where in ("true", "id > 1", "s = 'y'")]
            assert there == here
            assert table.scan("id > 1").count() == len(here[1])
            assert asked.count("plan") == 4
            loaded = catalog.load_table(TABLE)
            assert loaded.planner is not None
            assert pickle.loads(pickle.dumps(loaded)).planner is None


def test_columns_unsupported_by_the_service_use_a_local_plan(tmp_path: Path) -> None:
    with served(tmp_path / "wh") as server:
        address = f"http://127.0.0.1:{server.port}"
        lineage = ["id", "_last_updated_sequence_number", "_row_id"]
        with frazil.connect(address) as lake:
            table = lake.create_table("db.t", "id bigint", format_version=3)
            for at in range(3):
                table.append(pa.table({"id": pa.array([at], pa.int64())}))
            here = table.scan(columns=lineage).to_arrow().sort_by("id")
            assert here["_last_updated_sequence_number"].to_pylist() == [1, 2, 3]
        with frazil.connect(address, properties={"scan-planning-mode": "server"}) as lake:
            assert lake.table("db.t").scan(columns=lineage).to_arrow().sort_by("id") == here


def test_selected_columns_are_sent_to_the_service(service: ScriptedService) -> None:
    planning = Planning(service, **{"scan-planning-mode": "server"})
    names = [one.name for one in planning.loaded.metadata.current_schema.fields]
    service.on(f"POST {AT}/plan", (200, {"status": "completed"}))
    with frazil.Lake(planning.catalog) as lake:
        table = lake.table("db.t")
        assert table.scan(columns=[names[1], "_file", names[0]]).to_arrow().num_rows == 0
        assert table.scan().to_arrow().num_rows == 0
    sent = [one.body.get("select") for one in service.of(f"POST {AT}/plan")]
    assert sent == [[names[1], names[0]], None]


def test_asynchronous_plan_is_awaited(service: ScriptedService) -> None:
    planning = Planning(service)
    service.on(f"POST {AT}/plan", (200, {"status": "submitted", "plan-id": "p 1"}))
    submitted = {"status": "submitted"}
    done = {"status": "completed", "file-scan-tasks": [file("a")]}
    service.on(f"GET {AT}/plan/p%201", (200, submitted), (200, submitted), (200, done))
    assert planning.paths() == ["a"]
    assert planning.waits == [1.0, 2.0, 4.0]
    assert f"DELETE {AT}/plan/p%201" not in service.lines()


def test_lost_response_is_requested_again(service: ScriptedService) -> None:
    planning = Planning(service)
    service.on(f"POST {AT}/plan", LOST, (502, None), (200, {"status": "completed", "plan-tasks": ["x"]}))
    service.on(f"POST {AT}/tasks", LOST, (200, {"file-scan-tasks": [file("a")]}))
    assert planning.paths() == ["a"]
    service.on(f"POST {AT}/plan", LOST)
    with pytest.raises(ServiceError, match="Cannot reach"):
        planning.paths()


def test_plan_tasks_are_fetched_one_by_one_and_may_nest(service: ScriptedService) -> None:
    planning = Planning(service)
    first = {"status": "completed", "plan-id": "p", "file-scan-tasks": [file("a")], "plan-tasks": ["x", "y"]}
    service.on(f"POST {AT}/plan", (200, first))
    answers = {
        "x": {"file-scan-tasks": [file("b")], "plan-tasks": ["z"]},
        "y": {"file-scan-tasks": [file("c")]},
        "z": {"file-scan-tasks": [file("d")]},
    }
    service.on(f"POST {AT}/tasks", lambda asked: (200, answers[asked.body["plan-task"]]))
    assert planning.paths() == ["a", "b", "c", "d"]


def test_abandoned_plan_is_cancelled(service: ScriptedService) -> None:
    planning = Planning(service)
    first = {"status": "completed", "plan-id": "p", "file-scan-tasks": [file("a"), file("b")], "plan-tasks": ["x"]}
    service.on(f"POST {AT}/plan", (200, first))
    service.on(f"DELETE {AT}/plan/p", (204, None))
    tasks = planning.planner.plan(planning.loaded)
    assert len(list(islice(tasks, 1))) == 1
    tasks.close()  # type: ignore[attr-defined]
    assert service.lines()[-1] == f"DELETE {AT}/plan/p"
    assert f"POST {AT}/tasks" not in service.lines()


def test_plan_exceeding_its_time_is_cancelled(service: ScriptedService) -> None:
    planning = Planning(service, **{"rest-scan-planning.poll-timeout-ms": "5000"})
    service.on(f"POST {AT}/plan", (200, {"status": "submitted", "plan-id": "p"}))
    service.on(f"GET {AT}/plan/p", (200, {"status": "submitted"}))
    service.on(f"DELETE {AT}/plan/p", (204, None))
    with pytest.raises(ServiceError, match="within 5000 ms"):
        planning.paths()
    assert planning.waits == [1.0, 2.0]
    assert service.lines()[-1] == f"DELETE {AT}/plan/p"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((200, {"status": "failed", "error": {"message": "out of room", "type": "X", "code": 500}}), "out of room"),
        ((200, {"status": "cancelled"}), "cancelled"),
        ((200, {"status": "submitted"}), "no plan ID"),
        (
            (200, {"status": "completed", "file-scan-tasks": [file("a", **{"delete-file-references": [0]})]}),
            "delete file 0 does not exist",
        ),
        ((200, {"status": "completed", "file-scan-tasks": [{"data-file": {}}]}), "violates the protocol"),
    ],
)
def test_malformed_plan_is_a_service_error(service: ScriptedService, answer: Any, message: str) -> None:
    planning = Planning(service)
    service.on(f"POST {AT}/plan", answer)
    with pytest.raises(ServiceError, match=message):
        planning.paths()


def test_file_without_residual_uses_the_whole_filter(service: ScriptedService) -> None:
    planning = Planning(service)
    tasks = [file("a"), file("b", **{"residual-filter": True})]
    service.on(f"POST {AT}/plan", (200, {"status": "completed", "file-scan-tasks": tasks}))
    name = planning.loaded.metadata.current_schema.fields[0].name
    found = list(planning.planner.plan(planning.loaded, parse_predicate(f"{name} is not null")))
    assert found[0].residual != TRUE or planning.loaded.metadata.current_schema.fields[0].required
    assert found[1].residual == TRUE


def test_service_without_planning_is_not_asked_to_plan(service: ScriptedService) -> None:
    planning = Planning(service)
    service.on("GET /v1/config", (200, {"defaults": {}, "overrides": {}}))
    with pytest.raises(UnsupportedError, match="does not have this operation"):
        opened(service).plan_tasks(planning.loaded)
    service.on(f"POST {AT}/plan", error_json(406, "UnsupportedOperationException"))
    with pytest.raises(UnsupportedError):
        planning.paths()


def test_planned_files_are_read_with_their_credentials(tmp_path: Path) -> None:
    with running() as store:
        warehouse = f"s3://{BUCKET}/planned"
        access = StoreAccess(store.properties, vend="keys", roots=(warehouse,))
        catalog, seen = f"sqlite:///{tmp_path}/catalog.db", list[Any]()
        with (
            served(warehouse, catalog=catalog, access=access, properties=store.properties) as server,
            guarded(server, {}) as guard,
        ):
            lake = frazil.Lake(server.catalog)
            table = lake.create_table("db.t", "id bigint, s string", format_version=3)
            table.append(pa.table({"id": list(range(10)), "s": ["x"] * 10}))
            table.delete("id = 3")
            plain = guard.answer

            def answer(asked: Any) -> Any:
                seen.append(asked)
                code, body, *more = plain(asked)
                if asked.method == "GET" and asked.path == AT and code == 200:
                    # Without keys for the table, only those of a plan are left.
                    body = {**json.loads(body), "storage-credentials": []}
                    return code, body, *more
                return code, body, *more

            guard.answer = answer  # type: ignore[method-assign]
            for mode in ("server", "client"):
                with frazil.connect(guard.address, properties={"scan-planning-mode": mode}) as client:
                    scan = client.table("db.t").scan("id > 1")
                    if mode == "client":
                        with pytest.raises(InvalidRequestError, match="no credentials"):
                            scan.to_arrow()
                        continue
                    assert sorted(scan.to_arrow()["id"].to_pylist()) == [2, 4, 5, 6, 7, 8, 9]
                    assert scan.count() == 7
    plans = [one for one in seen if one.path == f"{AT}/plan"]
    assert plans
    assert {one.headers["x-iceberg-access-delegation"].partition(",")[0] for one in plans} == {"vended-credentials"}


def test_plan_credentials_are_renewed_by_plan_id() -> None:
    listed = {"defaults": {}, "overrides": {}, "endpoints": [*ENDPOINTS, f"GET {_T}/credentials"]}
    with scripted_service(listed) as service:
        planning = Planning(service)
        ends = {"s3.access-key-id": "old", "s3.secret-access-key": "x", "s3.session-token-expires-at-ms": "1"}
        keys = [{"prefix": "s3://w/", "config": ends}]
        answer = {"status": "completed", "plan-id": "p 1", "file-scan-tasks": [file("memory://w/a")]}
        service.on(f"POST {AT}/plan", (200, {**answer, "storage-credentials": keys}))
        fresh = [{"prefix": "s3://w/", "config": {**ends, "s3.access-key-id": "new"}}]
        service.on(f"GET {AT}/credentials", (200, {"storage-credentials": fresh}))
        access = planning.catalog.access
        storage_for = partial(access.storage, TABLE, LoadResult(planning.loaded.metadata, None))
        (task,) = ScanPlanner(planning.catalog, storage_for).plan(planning.loaded)
        assert isinstance(task.storage, VendedStorage)
        assert task.part(0, 5).storage is task.storage
        account = task.storage.reach("s3://w/a")
        assert account is not None and account.properties["s3.access-key-id"] == "new"
        assert [asked.query for asked in service.of(f"GET {AT}/credentials")] == [{"planId": "p 1"}]
