"""A builder of sessions like PySpark's, that also knows which lakes the session will have, and gives Spark their files.

    spark.frazil.lake.<name>.warehouse      a folder, a URI, an address, or a name of ~/.config/frazil.toml
    spark.frazil.lake.<name>.catalog        the catalog's URI, where the warehouse is files
    spark.frazil.lake.<name>.catalog-name   the catalog's name in its database
    spark.frazil.lake.<name>.property.<p>   a property of the connection

Lakes are named by calls, by the builder's settings, or by those that `spark-submit` was given, in this order.
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
from frazil.spark.jvm.file_systems import add_package, settings_of
from frazil.spark.jvm.java_classes import compile_meanwhile
from frazil.spark.jvm.start_jvm import start_jvm
from frazil.storage.store_accounts import Stores

PREFIX = "spark.frazil.lake."
_HADOOP = "spark.hadoop."
_KEY = re.compile(r"(?P<name>[^.]+)\.(?P<what>warehouse|catalog|catalog-name|property\.(?P<property>.+))", re.DOTALL)


@dataclass
class LakeSettings:
    """How a lake of a session is opened: what `frazil.connect` takes."""

    warehouse: str = ""
    catalog: str | None = field(default=None, repr=False)
    catalog_name: str = "lake"
    properties: dict[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class OpenedLake:
    """A lake that was opened: where its files are, how they are reached, and how a session gets it."""

    location: str
    stores: Stores = field(repr=False)
    attach: Callable[[SparkSession, str], object]
    close: Callable[[], None]


class SessionBuilder(SparkSession.Builder):
    """PySpark's builder of sessions, and lakes that the session will have."""

    def __init__(self, open_lake: Callable[[LakeSettings], OpenedLake]) -> None:
        # PySpark's own builder shares its options with every other one.
        self._options: dict[str, Any] = {}
        self._lakes: dict[str, LakeSettings] = {}
        self._open = open_lake
        self._made: SparkSession | None = None

    def lake(
        self,
        name: str,
        warehouse: str | os.PathLike[str],
        *,
        catalog: str | None = None,
        catalog_name: str = "lake",
        properties: Mapping[str, str] | None = None,
    ) -> SessionBuilder:
        """Give the session a lake under a name; `warehouse` and the others are what `frazil.connect` takes."""
        self._lakes[name] = LakeSettings(os.fspath(warehouse), catalog, catalog_name, dict(properties or {}))
        return self

    def getOrCreate(self) -> SparkSession:  # noqa: N802 - PySpark's name
        """Return a session with the lakes; a session that runs already is given them."""
        return self._with_lakes(super().getOrCreate)

    def create(self) -> SparkSession:
        """Return a new session with the lakes."""
        return self._with_lakes(super().create)

    def _with_lakes(self, start: Callable[[], SparkSession]) -> SparkSession:
        lakes = {**lakes_of(self._options), **self._lakes}
        with ExitStack() as unused:
            # Where their files are is known before Spark starts, since it takes packages then.
            opened = {name: self._opened(lake, unused) for name, lake in lakes.items()}
            for lake in opened.values():
                add_package(self._options, lake.location)
            self._start_jvm()
            made = start()
            # What spark-submit was told is known when Spark runs.
            configured = lakes_of(dict(made.sparkContext.getConf().getAll()))
            opened = {
                name: self._opened(configured[name], unused) for name in configured if name not in opened
            } | opened
            if not opened:
                raise InvalidRequestError(
                    "Cannot give a session lakes: none is named",
                    hint=f'Write frazil.session("warehouse"), .lake(name, warehouse), or set {PREFIX}<name>.warehouse.',
                )
            hadoop = made.sparkContext._jsc.hadoopConfiguration()
            for name, lake in opened.items():
                for key, value in settings_of(lake.location, lake.stores).items():
                    hadoop.setIfUnset(key.removeprefix(_HADOOP), value)
                lake.attach(made, name)
            unused.pop_all()
        return made

    def _opened(self, lake: LakeSettings, unused: ExitStack) -> OpenedLake:
        opened = self._open(lake)
        unused.callback(opened.close)
        return opened

    def __getattr__(self, name: str) -> Any:
        """Return what a session has and a builder lacks, such as `sql`, of the session: it is started on first need."""
        if name.startswith("_") or not hasattr(SparkSession, name):
            raise AttributeError(f"neither PySpark's builder nor its session has {name!r}")
        if self._made is None or self._made.sparkContext._jsc is None:
            self._made = self.getOrCreate()
        return getattr(self._made, name)

    def _start_jvm(self) -> None:
        """Start Spark's JVM where there is none, and compile frazil's classes there while the context starts."""
        if SparkContext._active_spark_context is not None or "spark.remote" in self._options:
            return
        start_jvm(self._options)
        compile_meanwhile(SparkContext._gateway)


def lakes_of(settings: Mapping[str, Any]) -> dict[str, LakeSettings]:
    """Return the lakes that settings of Spark's name; refuse what they say that is not known."""
    found: dict[str, LakeSettings] = {}
    for key, value in settings.items():
        if not key.startswith(PREFIX):
            continue
        parts = _KEY.fullmatch(key.removeprefix(PREFIX))
        if parts is None:
            raise InvalidRequestError(
                f"Cannot read the setting {key!r}: it is not known",
                hint=f"After {PREFIX}<name>. come warehouse, catalog, catalog-name and property.<property>.",
            )
        lake_settings = found.setdefault(parts["name"], LakeSettings())
        if parts["property"] is not None:
            lake_settings.properties[parts["property"]] = str(value)
        else:
            setattr(lake_settings, parts["what"].replace("-", "_"), str(value))
    for name, lake_settings in found.items():
        if not lake_settings.warehouse:
            raise InvalidRequestError(f"Cannot open lake {name!r}: {PREFIX}{name}.warehouse is not set")
    return found
