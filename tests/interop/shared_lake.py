"""One SQLite catalog that frazil, PyIceberg and Iceberg's JDBC catalog have open at once, and verbs of each.

Tables are `db.<name>`. Each implementation keeps the table object that it has, as programs do: a commit of another one
makes it old, and the next verb has to cope with that.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

import frazil
from frazil.codec.arrow_schema import to_arrow_schema
from tests.interop.interop_cases import CannotDo, Row
from tests.interop.interop_peers import _peer_type, read_duckdb, table_of
from tests.interop.java_runtime import JavaLake, has_java


class Writer(Protocol):
    """An implementation that commits to a table which others commit to as well."""

    def append(self, rows: list[Row]) -> None: ...

    def delete(self, where: str) -> None: ...

    def merge(self, rows: list[Row]) -> None: ...

    def add_column(self, name: str, column_type: str) -> None: ...

    def expire(self) -> None: ...


class Shared:
    """The catalog, and who has it open."""

    def __init__(self, folder: Path, spark: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.spark = spark
        database = folder / "catalog.db"
        self.lake = frazil.connect(folder / "warehouse", catalog=f"sqlite:///{database}")
        self.lake.create_namespace("db")
        self.peer: Any = SqlCatalog("lake", uri=f"sqlite:///{database}", warehouse=f"file://{folder}/warehouse")
        self.java = JavaLake(folder, "catalog.db") if has_java() else None

    def close(self) -> None:
        self.peer.close()
        self.lake.close()

    def create(self, name: str, columns: str, version: int, **more: Any) -> frazil.Table:
        return self.lake.create_table(f"db.{name}", columns, format_version=version, **more)

    def writer(self, who: str, name: str) -> Writer:
        if who == "Java" and self.java is None:
            raise CannotDo("the Java runtime could not be had")
        makers: dict[str, Callable[[Shared, str], Writer]] = {
            "frazil": FrazilWriter,
            "PyIceberg": PyIcebergWriter,
            "Java": JavaWriter,
        }
        return makers[who](self, name)

    def read(self, name: str) -> Iterator[tuple[str, Callable[[], list[Row]]]]:
        """Yield who can read a table by its name, and how."""
        table = self.lake.table(f"db.{name}")
        yield "frazil", lambda: list(table.scan().to_arrow().to_pylist())
        yield "frazil on Spark", lambda: list(table.scan().to_spark(self.spark).toArrow().to_pylist())
        yield "PyIceberg", lambda: list(self.peer.load_table(f"db.{name}").scan().to_arrow().to_pylist())
        yield "DuckDB", lambda: read_duckdb(str(table.metadata_location), None, None)
        if self.java is not None:
            java = self.java
            yield "Java", lambda: java.rows(f"select * from lake.db.{name}")

    def snapshots(self, name: str) -> dict[str, list[int]]:
        """Return the snapshots of a table as each implementation lists them."""
        found = {
            "frazil": [one.snapshot_id for one in self.lake.table(f"db.{name}").snapshots],
            "PyIceberg": [one.snapshot_id for one in self.peer.load_table(f"db.{name}").metadata.snapshots],
        }
        if self.java is not None:
            found["Java"] = [row["snapshot_id"] for row in self.java.rows(f"select * from lake.db.{name}.snapshots")]
        return found


@contextmanager
def shared_lake(folder: Path, spark: Any) -> Iterator[Shared]:
    """Open the catalog with all who can."""
    made = Shared(folder, spark)
    try:
        yield made
    finally:
        made.close()


class FrazilWriter:
    """frazil; merges run on Spark."""

    def __init__(self, shared: Shared, name: str) -> None:
        self.table = shared.lake.table(f"db.{name}")
        self.spark = shared.spark

    def data(self, rows: list[Row]) -> pa.Table:
        return table_of(rows, to_arrow_schema(self.table.refresh().schema))

    def append(self, rows: list[Row]) -> None:
        self.table.append(self.data(rows))

    def delete(self, where: str) -> None:
        self.table.delete(where)

    def merge(self, rows: list[Row]) -> None:
        self.table.upsert(self.spark.createDataFrame(self.data(rows)), keys=["id"])

    def add_column(self, name: str, column_type: str) -> None:
        with self.table.update_schema() as update:
            update.add_column(name, column_type)

    def expire(self) -> None:
        self.table.expire_snapshots(older_than=datetime.datetime.now(datetime.UTC), retain_last=1)


class PyIcebergWriter:
    """PyIceberg. It starts again from the newest state, as it does not commit on top of others' by itself."""

    def __init__(self, shared: Shared, name: str) -> None:
        self.held = shared.peer.load_table(f"db.{name}")

    @property
    def table(self) -> Any:
        return self.held.refresh()

    def data(self, rows: list[Row]) -> pa.Table:
        return table_of(rows, self.table.schema().as_arrow())

    def append(self, rows: list[Row]) -> None:
        self.table.append(self.data(rows))

    def delete(self, where: str) -> None:
        self.table.delete(where)

    def merge(self, rows: list[Row]) -> None:
        self.table.upsert(self.data(rows), join_cols=["id"])

    def add_column(self, name: str, column_type: str) -> None:
        with self.table.update_schema() as update:
            update.add_column(name, _peer_type(column_type))

    def expire(self) -> None:
        self.table.maintenance.expire_snapshots().older_than(datetime.datetime.now()).commit()


class JavaWriter:
    """Iceberg's Java runtime, by SQL."""

    def __init__(self, shared: Shared, name: str) -> None:
        assert shared.java is not None
        self.java = shared.java
        self.shared = shared
        self.name = name
        self.table = f"lake.db.{name}"

    def data(self, rows: list[Row]) -> pa.Table:
        return table_of(rows, to_arrow_schema(self.shared.lake.table(f"db.{self.name}").schema))

    def append(self, rows: list[Row]) -> None:
        self.java.append(self.data(rows), f"insert into {self.table} by name select * from given")

    def delete(self, where: str) -> None:
        self.java.run(f"delete from {self.table} where {where}")

    def merge(self, rows: list[Row]) -> None:
        self.java.append(
            self.data(rows),
            f"merge into {self.table} t using given g on t.id = g.id when matched then update set * "
            "when not matched then insert *",
        )

    def add_column(self, name: str, column_type: str) -> None:
        self.java.run(f"alter table {self.table} add column {name} {column_type}")

    def expire(self) -> None:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        self.java.run(
            f"call lake.system.expire_snapshots(table => 'db.{self.name}', older_than => timestamp '{now}', "
            "retain_last => 1)"
        )
