"""Clients of Spark in other processes see lakes: Spark Connect by PySpark without a JVM, JDBC by Hive's own driver."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

import frazil
from frazil.spark.jvm.serve_clients import connect_settings, start_connect, stop_connect
from tests.support.sql_case_files import case_files

ROOT = Path(__file__).parents[2]
MISSING = [
    name for name in ("grpc", "grpc_status", "google.rpc", "zstandard") if find_spec(name.partition(".")[0]) is None
]
pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(bool(MISSING), reason=f"Spark Connect needs {', '.join(MISSING)}"),
]
SAMPLE = ("history", "partitioning")
TOUR = {
    "appended": [[1, "a"], [2, "b"], [3, "c"], [4, "c"]],
    "streamed": [[2], [3], [4]],
    "changed": [[2, "m"], [3, "c"], [4, "c"], [9, "n"]],
    "then": [[1, "a"], [2, "b"], [3, "c"], [4, "c"]],
    "read": [[1, "a"], [2, "b"], [3, "c"], [4, "c"]],
    "evolved": [[10, 5]],
    "files": True,
    "columns": True,
    "called": True,
    "tables": ["c"],
    "exists": [True, False],
    "missing": "TABLE_OR_VIEW_NOT_FOUND",
}


class Client:
    """A process that is a client of Connect."""

    def __init__(self, address: str) -> None:
        self.address = address
        # It has no Spark but the server's: what the tests' own session left in the environment is not for it.
        left = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK_GATEWAY", "SPARK_"))}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.connect_client", address],
            cwd=ROOT,
            env={**left, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, request: dict[str, str]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def ask(self, request: dict[str, str]) -> Any:
        assert self._process.stdout is not None
        self.tell(request)
        line = self._process.stdout.readline()
        assert line, f"the client ended with {self._process.wait(30)}"
        return json.loads(line)

    def end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def client(spark: SparkSession) -> Iterator[Client]:
    """A client of the tests' own session, which serves Connect for a while."""
    port = free_port()
    conf = spark.sparkContext._jsc.sc().conf()
    for key, value in connect_settings("127.0.0.1", port, None).items():
        conf.set(key, value)
    start_connect(spark)
    made = Client(f"sc://127.0.0.1:{port}")
    yield made
    made.end()
    stop_connect(spark)


def test_connect_client_can_use_every_feature_of_a_lake(client: Client, attached: SparkSession) -> None:
    assert client.ask({"tour": ""}) == TOUR


STREAMS = {
    "copied": [[1, "a"], [2, "b"], [3, "b"], [4, "c"]],
    "counted": [["a", 1], ["b", 2], ["c", 1]],
    "kept": [["a", 1], ["b", 2], ["c", 1]],
    "changed": [[1, "delete"], [1, "insert"], [2, "insert"], [3, "insert"], [4, "insert"]],
}


@pytest.mark.slow
def test_connect_client_streams_between_tables(client: Client, attached: SparkSession, tmp_path: Path) -> None:
    assert client.ask({"streams": str(tmp_path / "checkpoints")}) == STREAMS


USES = {
    "comment": [[3]],
    "bound": [[3]],
    "other session": 3,
    "observed": {"n": 2},
    "exists": ["c", "db"],
    "cached": [True, 5],
    "renewed": [True, 3],
    "catalogs": True,
    "no tables": [],
    "functions": True,
    "function": True,
    "procedures": True,
    "listed": True,
    "default": ["lake", 3],
    "view": [["a", 2], ["b", 1]],
    "several": [[12], [1], [3]],
    "spelt": [[3]],
    "misspelt": True,
    "missing": ["TABLE_OR_VIEW_NOT_FOUND", "42P01"],
    "there": ["TABLE_OR_VIEW_ALREADY_EXISTS", "42P07"],
    "nowhere": ["SCHEMA_NOT_FOUND", "42704"],
    "column": [True, False],
    "files": True,
    "explained": True,
    "native": [True, True, False],
    "created": True,
}


def test_failures_outside_spark_are_reported_to_connect_clients(client: Client, attached: SparkSession) -> None:
    assert client.ask({"uses": ""}) == USES


WRITERS = {
    "made": [True, True],
    "said": [["me"], ["you"]],
    "dynamic": [[2, "b"], [4, "c"], [5, "a"]],
    "static": [[4, "c"], [5, "a"]],
    "refused": ["one column", "sortBy", "clustering", "clusterBy", "bucketBy", "branch"],
    "nothing": False,
}


def test_writer_options_of_a_connect_client_are_honoured_or_refused(
    client: Client, attached: SparkSession, tmp_path: Path
) -> None:
    assert client.ask({"writers": str(tmp_path)}) == WRITERS


BATCHES = {
    "failed": "",
    "failed again": "",
    "rows": [[10, "m"], [11, "s"], [12, "s"]],
    "batches": ["0", "1"],
    "missing": True,
}


def test_foreach_batch_function_of_a_connect_client_runs(
    client: Client, attached: SparkSession, tmp_path: Path
) -> None:
    assert client.ask({"batches": str(tmp_path / "checkpoints")}) == BATCHES


def test_interrupted_writes_of_a_connect_client_leave_nothing(
    client: Client, attached: SparkSession, lake: frazil.Lake, tmp_path: Path
) -> None:
    found = client.ask({"cancelled": ""})
    assert found == {"raised": ["OPERATION_CANCELED", "OPERATION_CANCELED"], "rows": 0, "after": 1}
    assert len(lake.table("db.k").snapshots) == 1
    files = [one for one in tmp_path.rglob("*.parquet") if "/k/data/" in str(one)]
    assert len(files) == 1


def test_disconnected_client_leaves_a_complete_write_or_none(
    client: Client, spark: SparkSession, lake: frazil.Lake
) -> None:
    """Spark goes on with what a client has begun, for as long as it may come back."""
    frazil.attach(spark, lake)
    leaving = Client(client.address)
    try:
        leaving.tell({"leave": ""})
        leaving.end()
        rows = -1
        for _ in range(240):
            rows = lake.table("db.gone").refresh().scan().count() if lake.table_exists("db.gone") else -1
            if rows > 0 and not spark.sparkContext.statusTracker().getActiveJobsIds():
                break
            time.sleep(0.5)
        assert rows in (0, 400)
    finally:
        frazil.detach(spark)


@pytest.mark.slow
def test_statements_of_connect_clients_leave_no_threads(client: Client, attached: SparkSession) -> None:
    """Each statement of a client is a thread of Spark's, which asks Python."""
    client.ask({"tour": ""})
    before = threading.active_count()
    for _ in range(2):
        client.ask({"tour": ""})
    assert threading.active_count() < before + 20


@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore:.*the format has no lengths")
@pytest.mark.parametrize(
    "name", [one if one in SAMPLE else pytest.param(one, marks=pytest.mark.slow) for one in case_files()]
)
def test_sql_cases_hold_for_a_connect_client(name: str, client: Client, spark: SparkSession, tmp_path: Path) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        frazil.attach(spark, lake)
        try:
            wrong = client.ask({"cases": name, "folder": str(tmp_path / "lake")})
        finally:
            frazil.detach(spark)
    assert not wrong, "\n\n".join(wrong)


class Server:
    """`frazil spark-server` on ports of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        left = {key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK_GATEWAY", "SPARK_"))}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "frazil.cli", "-w", str(folder), "spark-server", *options],
            cwd=folder.parent,
            env={**left, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        self._is_ready = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if line.startswith("The lake is"):
                self._is_ready.set()
        self._is_ready.set()

    def ready(self) -> None:
        assert self._is_ready.wait(300), self.said
        assert self.process.poll() is None, "".join(self.said)

    def port(self, word: str) -> int:
        found = re.search(rf"{word}://127\.0\.0\.1:(\d+)", "".join(self.said))
        assert found is not None, self.said
        return int(found[1])

    def stop(self, how: int) -> int:
        self.process.send_signal(how)
        code = self.process.wait(120)
        self._listener.join(30)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


def beeline(port: int, *statements: str) -> str:
    """Run statements by Hive's JDBC driver and its terminal; return what it printed as CSV."""
    jars = Path(pyspark.__file__).parent / "jars"
    given = [part for one in statements for part in ("-e", one)]
    done = subprocess.run(
        ["java", "-cp", f"{jars}/*", "org.apache.hive.beeline.BeeLine", "-u", f"jdbc:hive2://127.0.0.1:{port}/",
         "--outputformat=csv2", "--silent=true", "--showHeader=false", *given],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    # What it asks with stands before what it prints.
    return re.sub(rf"0: jdbc:hive2://127\.0\.0\.1:{port}/> ", "", done.stdout)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_server_accepts_connect_and_jdbc_and_stops_on_request(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    with frazil.connect(folder) as lake:
        lake.create_namespace("db")
    server = Server(folder, "--connect", "0", "--open", "--thrift", "0", "--master", "local[2]")
    try:
        server.ready()
        said = "".join(server.said)
        assert "any user of this machine has access" in said
        assert "run programs, as this user" in said
        made = Client(f"sc://127.0.0.1:{server.port('sc')}")
        assert made.ask({"tour": ""}) == TOUR
        assert made.ask({"streams": str(tmp_path / "checkpoints")}) == STREAMS
        made.end()
        printed = beeline(
            server.port("jdbc:hive2"),
            "create table lake.db.j (id bigint, kind string) partitioned by (kind)",
            "insert into lake.db.j values (1, 'a'), (2, 'b'), (3, 'b')",
            "update lake.db.j set kind = 'z' where id = 1",
            "delete from lake.db.j where id = 2",
            "merge into lake.db.j t using (select 7L id) s on t.id = s.id when not matched then insert (id) values (7)",
            "select id, kind from lake.db.j order by id",
            "select count(*) from lake.db.j.snapshots",
            "call lake.system.rewrite_data_files('db.j')",
            "show tables in lake.db",
            "alter table lake.db.j create tag before",
            "alter table lake.db.j add column more int",
            "insert into lake.db.j values (8, 'y', 80)",
            "analyze table lake.db.j compute statistics for columns id",
            "create view lake.db.v as select concat('seen ', id) s from lake.db.j",
            "select max(s) from lake.db.v",
            "select concat('then ', count(*)) from lake.db.j version as of 'before'",
            "select concat('more ', more) from lake.db.j where more is not null",
            "explain delete from lake.db.j",
            "describe table lake.db.j",
        )
        lines = [one for one in printed.splitlines() if one.strip()]
        assert lines[0] == "3,3", "what a change of rows answers: rows changed, rows inserted"
        at = lines.index("1,z")
        assert lines[at : at + 3] == ["1,z", "3,b", "7,NULL"]
        assert "4" in lines[at + 3 :]
        assert any("j" in one.split(",") for one in lines)
        for said in ("seen 8", "then 3", "more 80", "Lake delete", "more,int"):
            assert said in printed, printed
        with frazil.connect(folder) as lake:
            assert lake.table("db.j").scan().to_arrow().num_rows == 4
            assert len(lake.table("db.j").metadata.statistics) == 1
    finally:
        code = server.stop(signal.SIGTERM)
    assert code == 0, server.said
    assert server.said[-1].startswith("Stopping") or "Stopping.\n" in server.said
