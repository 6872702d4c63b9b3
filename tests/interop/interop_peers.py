"""Implementations as producers and consumers of the matrix."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import math
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_avro
import duckdb_extension_httpfs
import duckdb_extension_iceberg
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.table import StaticTable
from pyiceberg.table.sorting import NullOrder, SortDirection, SortField, SortOrder
from pyiceberg.transforms import parse_transform

import frazil
from frazil.codec.arrow_schema import to_arrow_schema
from frazil.commit.conflicts import ReadSet
from frazil.commit.row_delta import RowDelta
from frazil.table.schema_of import schema_of
from tests.interop.interop_cases import CannotDo, Row
from tests.interop.java_runtime import Java, read_java
from tests.support.equality_delete_writer import write_equality_deletes


def table_of(rows: list[Row], schema: pa.Schema) -> pa.Table:
    """Return rows as Arrow; uuids are 16 bytes there."""
    return pa.Table.from_pylist([{name: _storage(value) for name, value in row.items()} for row in rows], schema)


def _storage(value: Any) -> Any:
    return value.bytes if isinstance(value, uuid.UUID) else value


class Frazil:
    """frazil without Spark."""

    name = "frazil"

    def __init__(self, folder: Path, spark: Any = None) -> None:
        self.lake = frazil.connect(folder / "lake")
        self.lake.create_namespace("db")
        self.spark = spark
        self.table: frazil.Table

    def create(
        self,
        columns: str,
        *,
        version: int,
        partition_by: tuple[str, ...] = (),
        sort_by: tuple[str, ...] = (),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.table = self.lake.create_table(
            "db.t", columns, partition_by=partition_by, sort_by=sort_by, properties=properties, format_version=version
        )

    def data(self, rows: list[Row]) -> Any:
        return table_of(rows, to_arrow_schema(self.table.schema))

    def append(self, rows: list[Row]) -> None:
        self.table.append(self.data(rows))

    def overwrite(self, rows: list[Row], where: str) -> None:
        self.table.overwrite(self.data(rows), where=where)

    def delete(self, where: str) -> None:
        try:
            self.table.delete(where)
        except frazil.UnsupportedError as error:
            raise CannotDo(error.message) from error

    def change_schema(self, *steps: tuple[str, ...]) -> None:
        with self.table.update_schema() as update:
            for step, *names in steps:
                if step == "rename":
                    update.rename_column(*names)
                elif step == "drop":
                    update.drop_column(*names)
                elif step == "promote":
                    update.set_type(*names)
                else:
                    name, column_type, *default = names
                    update.add_column(name, column_type, default=int(default[0]) if default else None)

    def change_spec(self, *steps: tuple[str, ...]) -> None:
        with self.table.update_spec() as update:
            for step, term in steps:
                if step == "remove":
                    update.remove_field(term)
                else:
                    update.add_field(term)

    def tag(self, name: str) -> None:
        self.table.create_tag(name)

    def branch(self, name: str, rows: list[Row]) -> None:
        self.table.create_branch(name)
        self.table.append(self.data(rows), branch=name)

    def delete_equal(self, column: str, values: list[str | None]) -> None:
        head = self.table.current_snapshot
        assert head is not None
        files = write_equality_deletes(pa.table({column: pa.array(values, pa.string())}), self.table.state, [column])
        self.table._run(RowDelta(tuple(files), ReadSet(head.snapshot_id), "delete"))

    def metadata_location(self) -> str:
        return str(self.table.metadata_location)


class FrazilOnSpark(Frazil):
    """frazil with its writes on Spark."""

    name = "frazil on Spark"

    def data(self, rows: list[Row]) -> Any:
        schema = to_arrow_schema(self.table.schema)
        names = [one.name for one in schema if not pa.types.is_time(one.type)]
        if len(names) != len(schema):
            raise CannotDo("Spark has no time values unless its TIME type is switched on")
        if any(pa.types.is_timestamp(one.type) and one.type.unit == "ns" for one in schema):
            raise CannotDo("Spark has no nanoseconds")
        plain = [
            {name: str(value) if isinstance(value, uuid.UUID) else value for name, value in row.items()} for row in rows
        ]
        fields = [pa.field(one.name, pa.string()) if one.type == pa.uuid() else one for one in schema]
        fields = [pa.field(one.name, pa.binary()) if pa.types.is_fixed_size_binary(one.type) else one for one in fields]
        return self.spark.createDataFrame(pa.Table.from_pylist(plain, pa.schema(fields)))


class PyIceberg:
    """PyIceberg, with its SQL catalog."""

    name = "PyIceberg"

    def __init__(self, folder: Path, spark: Any = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/peer.db", warehouse=f"file://{folder}/peer")
        self.catalog.create_namespace("db")
        self.table: Any = None

    def create(
        self,
        columns: str,
        *,
        version: int,
        partition_by: tuple[str, ...] = (),
        sort_by: tuple[str, ...] = (),
        properties: Mapping[str, str] | None = None,
    ) -> None:
        if version == 3:
            raise CannotDo("PyIceberg writes no v3 tables")
        schema = PeerSchema.model_validate_json(_schema_json(columns))
        spec = PartitionSpec(*[_peer_field(term, schema, 1000 + at) for at, term in enumerate(partition_by)])
        order = SortOrder(*[_peer_sort(term, schema) for term in sort_by])
        self.table = self.catalog.create_table(
            "db.t",
            schema,
            partition_spec=spec,
            sort_order=order,
            properties={**(properties or {}), "format-version": str(version)},
        )

    def append(self, rows: list[Row]) -> None:
        with _cannot():
            self.table.append(table_of(rows, self.table.schema().as_arrow()))

    def overwrite(self, rows: list[Row], where: str) -> None:
        with _cannot():
            self.table.overwrite(table_of(rows, self.table.schema().as_arrow()), overwrite_filter=where)

    def delete(self, where: str) -> None:
        if self.table.properties.get("write.delete.mode") == "merge-on-read":
            raise CannotDo("PyIceberg has no merge-on-read")
        with _cannot():
            self.table.delete(where)

    def change_schema(self, *steps: tuple[str, ...]) -> None:
        with self.table.update_schema() as update:
            for step, *names in steps:
                path = tuple(names[0].split("."))
                if step == "rename":
                    update.rename_column(path, names[1])
                elif step == "drop":
                    update.delete_column(path)
                elif step == "promote":
                    update.update_column(path, _peer_type(names[1]))
                elif len(names) > 2:
                    raise CannotDo("PyIceberg writes no v3 tables")
                else:
                    update.add_column(path, _peer_type(names[1]))

    def change_spec(self, *steps: tuple[str, ...]) -> None:
        with self.table.update_spec() as update:
            for step, term in steps:
                if step == "remove":
                    update.remove_field(term)
                else:
                    column, transform = _term(term)
                    update.add_field(column, parse_transform(transform))

    def tag(self, name: str) -> None:
        self.table.manage_snapshots().create_tag(self.table.current_snapshot().snapshot_id, name).commit()

    def branch(self, name: str, rows: list[Row]) -> None:
        self.table.manage_snapshots().create_branch(self.table.current_snapshot().snapshot_id, name).commit()
        with _cannot():
            self.table.append(table_of(rows, self.table.schema().as_arrow()), branch=name)

    def delete_equal(self, column: str, values: list[str | None]) -> None:
        raise CannotDo("PyIceberg writes no equality deletes")

    def metadata_location(self) -> str:
        return str(self.table.metadata_location)


@contextlib.contextmanager
def _cannot() -> Any:
    try:
        yield
    except (NotImplementedError, TypeError, ValueError) as error:
        raise CannotDo(f"PyIceberg: {str(error).splitlines()[0][:120]}") from error


def _schema_json(columns: str) -> str:
    import json

    from frazil.codec.schema_json import encode_schema

    return json.dumps(encode_schema(schema_of(columns, 2)))


def _peer_type(text: str) -> Any:
    return PeerSchema.model_validate_json(_schema_json(f"c {text}")).fields[0].field_type


def _term(text: str) -> tuple[str, str]:
    """Return the column of a term and its transform as the specification writes it."""
    if "(" not in text:
        return text, "identity"
    name, _, rest = text.partition("(")
    arguments = [one.strip() for one in rest.rstrip(")").split(",")]
    return arguments[-1], name if len(arguments) == 1 else f"{name}[{arguments[0]}]"


def _peer_field(text: str, schema: Any, field_id: int) -> PartitionField:
    column, transform = _term(text)
    name = column if transform == "identity" else f"{column}_{transform.partition('[')[0]}"
    return PartitionField(schema.find_field(column).field_id, field_id, parse_transform(transform), name)


def _peer_sort(text: str, schema: Any) -> SortField:
    column, direction, *nulls = text.split()
    last = bool(nulls) and nulls[-1] == "last"
    return SortField(
        schema.find_field(column).field_id,
        transform=parse_transform("identity"),
        direction=SortDirection.DESC if direction == "desc" else SortDirection.ASC,
        null_order=NullOrder.NULLS_LAST if last else NullOrder.NULLS_FIRST,
    )


def read_frazil(location: str, ref: str | None, spark: Any) -> list[Row]:
    with frazil.connect("memory:", catalog="memory") as lake:
        lake.create_namespace("db")
        return list(_static(location).scan(ref=ref).to_arrow().to_pylist())


def _static(location: str) -> Any:
    folder = Path(location.removeprefix("file://")).parent.parent
    lake = frazil.connect(folder / "consumer")
    lake.create_namespace("db")
    name = f"db.t{uuid.uuid4().hex}"
    return lake.register_table(name, location)


def read_frazil_on_spark(location: str, ref: str | None, spark: Any) -> list[Row]:
    frame = _static(location).scan(ref=ref).to_spark(spark)
    return list(frame.toArrow().to_pylist())


def read_pyiceberg(location: str, ref: str | None, spark: Any) -> list[Row]:
    table = StaticTable.from_metadata(location)
    scan = table.scan()
    if ref is not None:
        scan = scan.use_ref(ref)
    return list(scan.to_arrow().to_pylist())


def open_duckdb() -> Any:
    """Return a connection to DuckDB that knows Iceberg."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for module in (duckdb_extension_avro, duckdb_extension_httpfs, duckdb_extension_iceberg):
        found = next(Path(str(module.__file__)).parent.glob("extensions/*/*.duckdb_extension"))
        connection.execute(f"load '{found}'")
    return connection


def read_duckdb(location: str, ref: str | None, spark: Any) -> list[Row]:
    connection = open_duckdb()
    try:
        option = ""
        if ref is not None:
            metadata = StaticTable.from_metadata(location).metadata
            option = f", snapshot_from_id={metadata.refs[ref].snapshot_id}"
        path = location.removeprefix("file://")
        connection.execute("set timezone = 'UTC'")
        found = connection.execute(f"select * from iceberg_scan('{path}'{option})").to_arrow_table()
        return list(found.to_pylist())
    finally:
        connection.close()


PRODUCERS = (Frazil, FrazilOnSpark, PyIceberg, Java)
CONSUMERS = {
    "frazil": read_frazil,
    "frazil on Spark": read_frazil_on_spark,
    "PyIceberg": read_pyiceberg,
    "DuckDB": read_duckdb,
    "Java": read_java,
}


def comparable(rows: list[Row]) -> list[str]:
    """Return rows so that equal values are equal text, whatever types an implementation gives them."""
    return sorted(str({name: _plain(value) for name, value in sorted(row.items())}) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value)
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, datetime.datetime):
        shown = value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
        return shown.isoformat()
    if isinstance(value, datetime.time):
        return value.strftime("%H:%M:%S.%f")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in sorted(value.items())}
    if isinstance(value, list):
        if value and all(isinstance(one, tuple) and len(one) == 2 for one in value):
            return {str(name): _plain(one) for name, one in sorted(value)}
        return [_plain(one) for one in value]
    return value
