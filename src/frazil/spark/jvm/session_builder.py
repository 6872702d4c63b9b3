"""PySpark's session builder, extended by lakes to attach and the file systems that they need.

    spark.frazil.lake.<name>.warehouse      a folder, a URI, an address, or a name from ~/.config/frazil.toml
    spark.frazil.lake.<name>.catalog        the catalog's URI, if the warehouse is a folder or store
    spark.frazil.lake.<name>.catalog-name   the catalog's name in its database
    spark.frazil.lake.<name>.property.<p>   a property of the connection

Lakes are defined by calls, by the builder's settings, or by settings of `spark-submit`, in this order of precedence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from frazil.errors import InvalidRequestError
from frazil.spark.jvm.file_systems import add_package, reach_files
from frazil.spark.jvm.java_classes import compile_meanwhile
from frazil.spark.jvm.start_jvm import start_jvm
from frazil.storage.store_accounts import Stores

PREFIX = "spark.frazil.lake."
_KEY = re.compile(r"(?P<name>[^.]+)\.(?P<what>warehouse|catalog|catalog-name|property\.(?P<property>.+))", re.DOTALL)


@dataclass
class LakeSettings:
    """The arguments of `frazil.connect` for a lake of a session."""

    warehouse: str = ""
    catalog: str | None = field(default=None, repr=False)
    catalog_name: str = "lake"
    properties: dict[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class OpenedLake:
    """An open lake: the location and stores of its files, and functions to attach it to a session and to close it."""

    location: str
    stores: Stores = field(repr=False)
    attach: Callable[[SparkSession, str], object]
    close: Callable[[], None]


class SessionBuilder(SparkSession.Builder):
    """PySpark's session builder, which also attaches lakes to the session."""

    def __init__(self, open_lake: Callable[[LakeSettings], OpenedLake]) -> None:
        # PySpark's own builders share their options.
        self._options: dict[str, Any] = {}
        self._lakes: dict[str, LakeSettings] = {}
        self._open = open_lake
        self._session: SparkSession | None = None

    def lake(
        self,
        name: str,
        warehouse: str | os.PathLike[str],
        *,
        catalog: str | None = None,
        catalog_name: str = "lake",
        properties: Mapping[str, str] | None = None,
    ) -> SessionBuilder:
        """Attach a lake under a name to the session; the other arguments are those of `frazil.connect`."""
        self._lakes[name] = LakeSettings(os.fspath(warehouse), catalog, catalog_name, dict(properties or {}))
        return self

    def getOrCreate(self) -> SparkSession:  # noqa: N802 - PySpark's name
        """Return the running session or a new one, with the lakes attached."""
        return self._with_lakes(super().getOrCreate)

    def create(self) -> SparkSession:
        """Return a new session with the lakes attached."""
        return self._with_lakes(super().create)

    def _with_lakes(self, start: Callable[[], SparkSession]) -> SparkSession:
        lakes = {**lakes_of(self._options), **self._lakes}
        with ExitStack() as unused:
            # Opened before Spark starts, since only then can it load the packages for their files.
            opened = {name: self._open_lake(lake, unused) for name, lake in lakes.items()}
            for lake in opened.values():
                add_package(self._options, lake.location)
            self._start_jvm()
            session = start()
            # Settings of spark-submit are known once Spark runs.
            configured = lakes_of(dict(session.sparkContext.getConf().getAll()))
            opened = {
                name: self._open_lake(configured[name], unused) for name in configured if name not in opened
            } | opened
            if not opened:
                raise InvalidRequestError(
                    "Cannot attach lakes to the session: none is defined",
                    hint=f'Write frazil.session("warehouse"), .lake(name, warehouse), or set {PREFIX}<name>.warehouse.',
                )
            for name, lake in opened.items():
                reach_files(session, name, lake.location, lake.stores)
                lake.attach(session, name)
            unused.pop_all()
        return session

    def _open_lake(self, lake: LakeSettings, unused: ExitStack) -> OpenedLake:
        opened = self._open(lake)
        unused.callback(opened.close)
        return opened

    def __getattr__(self, name: str) -> Any:
        """Delegate attributes that the builder lacks, such as `sql`, to the session, which is started on demand."""
        if name.startswith("_") or not hasattr(SparkSession, name):
            raise AttributeError(f"neither PySpark's builder nor its session has {name!r}")
        if self._session is None or self._session.sparkContext._jsc is None:
            self._session = self.getOrCreate()
        return getattr(self._session, name)

    def _start_jvm(self) -> None:
        """Start Spark's JVM if there is none, and compile frazil's classes while the context starts."""
        if SparkContext._active_spark_context is not None or "spark.remote" in self._options:
            return
        start_jvm(self._options)
        compile_meanwhile(SparkContext._gateway)


def lakes_of(settings: Mapping[str, Any]) -> dict[str, LakeSettings]:
    """Return the lakes that Spark settings define, by name; raise on unknown settings."""
    lakes: dict[str, LakeSettings] = {}
    for key, value in settings.items():
        if not key.startswith(PREFIX):
            continue
        parts = _KEY.fullmatch(key.removeprefix(PREFIX))
        if parts is None:
            raise InvalidRequestError(
                f"Cannot read the setting {key!r}: it is unknown",
                hint=f"Settings after {PREFIX}<name>. are warehouse, catalog, catalog-name and property.<property>.",
            )
        lake_settings = lakes.setdefault(parts["name"], LakeSettings())
        if parts["property"] is not None:
            lake_settings.properties[parts["property"]] = str(value)
        else:
            setattr(lake_settings, parts["what"].replace("-", "_"), str(value))
    for name, lake_settings in lakes.items():
        if not lake_settings.warehouse:
            raise InvalidRequestError(f"Cannot open lake {name!r}: {PREFIX}{name}.warehouse is not set")
    return lakes
