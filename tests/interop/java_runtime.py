"""Iceberg's Java runtime as a producer and a consumer: requests to the process that `java_worker.py` is."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from frazil.codec.arrow_schema import to_arrow_schema
from frazil.table.schema_of import schema_of
from tests.interop.interop_cases import CannotDo, Row

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / ".venv-spark-4.1" / "bin" / "python"
PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
DRIVER = "org.xerial:sqlite-jdbc:3.46.0.0"
_SPARK_NAMES = {"timestamptz": "timestamp", "timestamp": "timestamp_ntz"}
_worker: list[Worker] = []


class Worker:
    """The process, started on first need."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="frazil-java-")
        self.process = subprocess.Popen(
            [PYTHON, Path(__file__).with_name("java_worker.py"), f"{PACKAGE},{DRIVER}", self.folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.is_up = self._answer().get("ok") is True

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            if not line:
                return {"ok": False, "why": "the process with the Java runtime ended"}
            if line.startswith("{"):
                found = json.loads(line)
                assert isinstance(found, dict)
                return found

    def ask(self, **request: Any) -> None:
        assert self.process.stdin is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        said = self._answer()
        if not said["ok"]:
            raise CannotDo(str(said["why"]))

    def path(self) -> str:
        return f"{self.folder.name}/{uuid.uuid4().hex}.arrow"

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.folder.cleanup()


def worker() -> Worker:
    """Return the process; `CannotDo` where it cannot be had."""
    if not _worker:
        if not PYTHON.exists():
            raise CannotDo("no environment with PySpark 4.1")
        _worker.append(Worker())
    if not _worker[0].is_up:
        raise CannotDo("the Java runtime could not be had from Maven Central")
    return _worker[0]


def has_java() -> bool:
    """Return whether the process can be had."""
    try:
        worker()
    except CannotDo:
        return False
    return True


def close_worker() -> None:
    """Stop the process, where it was started."""
    while _worker:
        _worker.pop().close()


def ask_java_verb(verb: str, *arguments: Any, session: str | None = None) -> Any:
    """Return what a verb of `java_verbs.py` returns: what SQL has no words for."""
    path = Path(worker().path())
    script = str(Path(__file__).with_name("java_verbs.py"))
    worker().ask(do="script", session=session, path=script, arguments=(verb, *arguments), into=str(path))
    found = pickle.loads(path.read_bytes())
    path.unlink()
    return found


class JavaLake:
    """A session of the process with a catalog `lake`: Iceberg's JDBC catalog over a SQLite file."""

    def __init__(self, folder: Path, database: str = "java.db", settings: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.worker = worker()
        self.name = uuid.uuid4().hex
        self.worker.ask(
            do="open",
            session=self.name,
            database=str(folder / database),
            warehouse=f"file://{folder}/warehouse",
            settings=dict(settings or {}),
        )

    def run(self, text: str) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        found: list[tuple[Any, ...]] = self._ask(do="run", text=text)
        return found

    def rows(self, text: str) -> list[Row]:
        """Run a query and return its rows by the names of columns."""
        path = self.worker.path()
        self.worker.ask(do="sql", session=self.name, text=text, into=path)
        return _read(path)

    def verb(self, verb: str, *arguments: Any) -> Any:
        """Return what a verb of `java_verbs.py` returns in this session."""
        return ask_java_verb(verb, *arguments, session=self.name)

    def script(self, path: Path, *arguments: Any) -> Any:
        """Return what a file's function `run` returns for the session."""
        return self._ask(do="script", path=str(path), arguments=arguments)

    def append(self, rows: pa.Table, text: str) -> None:
        """Run a statement that reads rows as the view `given`."""
        path = self.worker.path()
        _write(rows, path)
        self.worker.ask(do="append", session=self.name, rows=path, text=text)

    def _ask(self, **request: Any) -> Any:
        path = Path(self.worker.path())
        self.worker.ask(session=self.name, into=str(path), **request)
        found = pickle.loads(path.read_bytes())
        path.unlink()
        return found


def _write(table: pa.Table, path: str) -> None:
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _read(path: str) -> list[Row]:
    with pa.ipc.open_file(path) as file:
        return list(file.read_all().to_pylist())


def read_java(location: str, ref: str | None, spark: Any) -> list[Row]:
    """Read a table by its metadata file."""
    path = worker().path()
    worker().ask(do="read", location=location, ref=ref, into=path)
    return _read(path)


class Java:
    """Iceberg's Java runtime on Spark, with its Hadoop catalog."""

    name = "Java"

    def __init__(self, folder: Path, spark: Any = None) -> None:
        self.worker = worker()
        self.table = f"java.db.t{uuid.uuid4().hex}"
        self.columns = ""

    def sql(self, text: str) -> None:
        self.worker.ask(do="sql", text=text)

    def create(
        self,
        columns: str,
        *,
        version: int,
        partition_by: tuple[str, ...] = (),
        sort_by: tuple[str, ...] = (),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        if re.search(r"\b(timestamp_ns|timestamptz_ns)\b", columns):
            raise CannotDo("Spark has no nanoseconds")
        if re.search(r"\b(uuid|fixed|time)\b", columns):
            raise CannotDo("Java's Spark catalog creates no uuid, fixed or time columns")
        self.columns = columns
        shown = _spark_types(columns)
        pairs = {**(properties or {}), "format-version": str(version)}
        listed = ", ".join(f"'{name}'='{value}'" for name, value in pairs.items())
        parts = f"partitioned by ({', '.join(map(_plural, partition_by))})" if partition_by else ""
        self.sql(f"create table {self.table} ({shown}) using iceberg {parts} tblproperties ({listed})")
        if sort_by:
            self.sql(f"alter table {self.table} write ordered by {', '.join(sort_by)}")

    def append(self, rows: list[Row]) -> None:
        self._give(rows, f"insert into {self.table} by name select * from given")

    def overwrite(self, rows: list[Row], where: str) -> None:
        raise CannotDo("the worker writes by SQL, which has no overwrite by filter")

    def _give(self, rows: list[Row], text: str) -> None:
        path = self.worker.path()
        table = pa.Table.from_pylist(rows, _schema_of_rows(rows, self.columns))
        _write(table, path)
        self.worker.ask(do="append", rows=path, text=text)

    def delete(self, where: str) -> None:
        self.sql(f"delete from {self.table} where {where}")

    def change_schema(self, *steps: tuple[str, ...]) -> None:
        for step, *names in steps:
            if step == "rename":
                self.sql(f"alter table {self.table} rename column {names[0]} to {names[1]}")
            elif step == "drop":
                self.sql(f"alter table {self.table} drop column {names[0]}")
            elif step == "promote":
                self.sql(f"alter table {self.table} alter column {names[0]} type {names[1]}")
            elif len(names) > 2:
                raise CannotDo("Java's Spark catalog takes no column defaults")
            else:
                self.sql(f"alter table {self.table} add column {names[0]} {names[1]}")

    def change_spec(self, *steps: tuple[str, ...]) -> None:
        for step, term in steps:
            self.sql(f"alter table {self.table} {'drop' if step == 'remove' else 'add'} partition field {term}")

    def tag(self, name: str) -> None:
        self.sql(f"alter table {self.table} create tag `{name}`")

    def branch(self, name: str, rows: list[Row]) -> None:
        self.sql(f"alter table {self.table} create branch `{name}`")
        self._give(rows, f"insert into {self.table}.branch_{name} by name select * from given")

    def delete_equal(self, column: str, values: list[str | None]) -> None:
        ask_java_verb("delete_equal", self.table, column, values)

    def metadata_location(self) -> str:
        path = self.worker.path()
        text = f"select file from {self.table}.metadata_log_entries order by timestamp desc, file desc limit 1"
        self.worker.ask(do="sql", text=text, into=path)
        return str(_read(path)[0]["file"])


def _spark_types(columns: str) -> str:
    text = re.sub(r"\b(timestamptz|timestamp)\b", lambda found: _SPARK_NAMES[found[1]], columns)
    return text.replace("list<", "array<")


def _plural(term: str) -> str:
    return re.sub(r"^(year|month|day|hour)\(", r"\1s(", term)


def _schema_of_rows(rows: list[Row], columns: str) -> pa.Schema | None:
    """Return the Arrow types of the table as it was created, where the rows still have its columns."""
    schema = to_arrow_schema(schema_of(columns, 2))
    return schema if rows and set(rows[0]) == set(schema.names) else None
