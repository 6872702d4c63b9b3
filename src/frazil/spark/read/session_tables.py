"""Tables of Spark's session catalog, for migration: describing, renaming and dropping them without touching files.

    describe    columns, partition columns, provider and folders, from the catalog entry; no file is read
    set aside   the entry is renamed and becomes an external table, so that neither the rename nor a later drop moves or
                deletes a file
    put back    the entry gets its old name again

Spark moves the folder of a managed table that is renamed, and deletes it when the table is dropped. The entry of an
external table is only a name. PySpark has no API for this, so the session catalog is called on the JVM.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyspark
import pyspark.sql.types as st
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from frazil.errors import InvalidRequestError, TableNotFoundError, UnsupportedError
from frazil.maintenance.adopt_table import SourcePart, SourceTable
from frazil.spark.jvm.engine_errors import engine_errors
from frazil.spark.jvm.exact_sql import parse_exactly
from frazil.spark.jvm.private_names import is_classic
from frazil.spark.types import from_spark_schema
from frazil.spec.data_file import FileFormat
from frazil.sql.quote_names import quote

_PROVIDERS = {"parquet": FileFormat.PARQUET, "orc": FileFormat.ORC, "avro": FileFormat.AVRO, "hive": None}
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_MANAGED = "MANAGED"


def describe_session_table(spark: SparkSession, name: tuple[str, ...]) -> SourceTable:
    """Describe a table of Spark's session catalog; raise if frazil cannot read its files."""
    with _session_catalog_calls(spark, f"read the table {'.'.join(name)}"):
        catalog = _catalog(spark)
        entry = _entry(spark, name)
        source_name = entry.identifier().unquotedString()
        provider = entry.provider().get().lower() if entry.provider().isDefined() else "hive"
        if provider not in _PROVIDERS or not entry.storage().locationUri().isDefined():
            raise UnsupportedError(
                f"Cannot adopt {source_name}: its provider is {provider!r}",
                hint=f"Tables with the provider {', '.join(_PROVIDERS)} can be adopted.",
            )
        if entry.bucketSpec().isDefined():
            raise UnsupportedError(f"Cannot adopt {source_name}: it is bucketed by Spark's own hash function")
        location = _location(spark, entry.storage())
        partitions = tuple(_items(spark, entry.partitionColumnNames()))
        parts: tuple[SourcePart, ...] = (SourcePart(location),)
        if partitions and entry.tracksPartitionsInCatalog():
            none = _jvm(spark).scala.Option.empty()
            partition_entries = _items(spark, catalog.listPartitions(entry.identifier(), none))
            parts = tuple(
                SourcePart(_location(spark, partition.storage()), _values(_mapping(spark, partition.spec())))
                for partition in partition_entries
            )
        schema = from_spark_schema(st.StructType.fromJson(_json(entry.schema().json())))
        return SourceTable(
            source_name,
            location,
            schema,
            partitions,
            parts,
            _PROVIDERS[provider],
            _mapping(spark, entry.properties()),
        )


def set_aside(spark: SparkSession, name: tuple[str, ...], backup: str) -> Callable[[], None]:
    """Rename a table in its database without touching its files; return a function to undo it."""
    with _session_catalog_calls(spark, f"rename the table {'.'.join(name)}"):
        catalog = _catalog(spark)
        entry = _entry(spark, name)
        own = entry.identifier()
        other = _identifier(spark, (own.database().get(), backup))
        if catalog.tableExists(other):
            raise InvalidRequestError(
                f"Cannot keep {own.unquotedString()} as {other.unquotedString()}: there is a table of that name",
                hint="Pass another name as backup_table_name.",
            )
        location = _location(spark, entry.storage())
        was_managed = entry.tableType().name() == _MANAGED
        if was_managed:
            _set_type(spark, entry, "EXTERNAL")

        def put_back(now: Any) -> None:
            with _session_catalog_calls(spark, f"give {own.unquotedString()} its name back"):
                catalog.renameTable(now, own)
                if was_managed:
                    _set_type(spark, catalog.getTableMetadata(own), _MANAGED)

        try:
            catalog.renameTable(own, other)
        except Py4JError:
            if was_managed:
                _set_type(spark, catalog.getTableMetadata(own), _MANAGED)
            raise
        new_location = _location(spark, catalog.getTableMetadata(other).storage())
        if new_location != location:
            put_back(other)
            raise UnsupportedError(
                f"Cannot rename {own.unquotedString()}: its catalog would move its files to {new_location}",
                hint="Make it an external table first.",
            )
        return lambda: put_back(other)


def drop_set_aside(spark: SparkSession, name: tuple[str, ...], backup: str) -> None:
    """Drop the catalog entry of a table that was set aside; its files stay."""
    with _session_catalog_calls(spark, f"drop the table {backup}"):
        catalog = _catalog(spark)
        own = _identifier(spark, name)
        database = own.database().get() if own.database().isDefined() else catalog.getCurrentDatabase()
        other = _identifier(spark, (database, backup))
        if catalog.getTableMetadata(other).tableType().name() == _MANAGED:
            raise InvalidRequestError(f"Cannot drop {backup}: it is a managed table, and its files would go with it")
        catalog.dropTable(other, False, False)


def _entry(spark: SparkSession, name: tuple[str, ...]) -> Any:
    identifier = _identifier(spark, name)
    catalog = _catalog(spark)
    if not catalog.tableExists(identifier):
        raise TableNotFoundError(f"Cannot find table {'.'.join(name)} in Spark's own catalog")
    return catalog.getTableMetadata(identifier)


def _set_type(spark: SparkSession, entry: Any, table_type: str) -> None:
    """Change the table type of a catalog entry."""
    values = _jvm(spark).java.util.ArrayList()
    names = [entry.productElementName(index) for index in range(entry.productArity())]
    for index, name in enumerate(names):
        values.add(_table_type(spark, table_type) if name == "tableType" else entry.productElement(index))
    copies = [method for method in entry.getClass().getMethods() if method.getName() == "copy"]
    _catalog(spark).alterTable(copies[0].invoke(entry, values.toArray()))


def _table_type(spark: SparkSession, type_name: str) -> Any:
    types = _jvm(spark).org.apache.spark.sql.catalyst.catalog.CatalogTableType
    return types.EXTERNAL() if type_name == "EXTERNAL" else types.MANAGED()


def _values(spec: Mapping[str, str]) -> dict[str, str | None]:
    return {name: None if value == _HIVE_NULL else value for name, value in spec.items()}


def _location(spark: SparkSession, storage: Any) -> str:
    """Return the folder of a table as a location, with an unescaped path."""
    path = _jvm(spark).org.apache.hadoop.fs.Path(storage.locationUri().get())
    scheme = path.toUri().getScheme()
    if scheme in (None, "file"):
        return f"file://{path.toUri().getPath()}"
    return str(path.toString())


def _identifier(spark: SparkSession, name: tuple[str, ...]) -> Any:
    return parse_exactly(spark, "parseTableIdentifier", ".".join(map(quote, name)))


def _catalog(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().catalog()


def _items(spark: SparkSession, items: Any) -> list[Any]:
    return list(_jvm(spark).scala.jdk.javaapi.CollectionConverters.asJava(items))


def _mapping(spark: SparkSession, mapping: Any) -> dict[str, str]:
    return {str(item._1()): str(item._2()) for item in _items(spark, mapping.toSeq())}


def _json(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text)
    return value


def _jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm


@contextmanager
def _session_catalog_calls(spark: SparkSession, what: str) -> Iterator[None]:
    """Raise in a Spark Connect session, and translate errors of the calls inside; `what` follows `Cannot`."""
    if not is_classic(spark):
        raise UnsupportedError(f"Cannot {what}: Spark Connect gives no access to the session catalog")
    try:
        with engine_errors(what):
            yield
    except (TypeError, AttributeError) as error:
        raise UnsupportedError(
            f"Cannot {what} with Spark {pyspark.__version__}: an internal API of Spark that frazil uses is missing",
            cause=str(error),
        ) from error
