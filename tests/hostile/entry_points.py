"""Every entry point of the Python API, found by reflection, with arguments by the names of their parameters.

A new method is run by itself; a new parameter that must be given makes the tests fail until it is known here.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

import frazil
from frazil.errors import FrazilError
from frazil.metadata_tables.tables import METADATA_TABLES
from frazil.spec.statistics import PartitionStatisticsFile, StatisticsFile
from frazil.table.table import Table
from frazil.visible_text import visible
from tests.hostile.hostile_lake import SECRETS

NEEDS_SPARK = frozenset({"update", "upsert", "merge", "to_spark", "snapshot_table", "migrate_table", "spark"})
NOT_CALLED = frozenset({"close", "attached_spark", "catalog"})
LAST = ("drop_namespace", "rename_table", "rename_view", "drop_view", "drop_table")
ROWS = pa.table({"id": pa.array([5], pa.int64()), "note": ["new"]})
FAR_MS = 4_102_444_800_000


def arguments_of(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return a value for each parameter that must be given."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is inspect.Parameter.empty and parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            assert name in given, f"{function}: tell tests/hostile what to give for {name!r}"
            found[name] = given[name]
        elif name in ("older_than", "purge", "rewrite_all", "retain_last", "bounds"):
            found[name] = {"older_than": FAR_MS, "purge": True, "rewrite_all": True, "retain_last": 1, "bounds": True}[
                name
            ]
    return found


def members_of(thing: object, *, skip: frozenset[str] = NEEDS_SPARK | NOT_CALLED) -> Iterator[str]:
    """Yield the public names of a thing, those that take things away last."""
    names = [name for name in dir(type(thing)) if not name.startswith("_") and name not in skip]
    yield from sorted(names, key=lambda name: (LAST.index(name) + 1 if name in LAST else 0, name))


class Ear:
    """Hears everything that is printed, logged, raised, returned or pickled."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._log = io.StringIO()
        self._handler = logging.StreamHandler(self._log)

    def __enter__(self) -> Ear:
        logging.getLogger().addHandler(self._handler)
        self._level = logging.getLogger().level
        logging.getLogger().setLevel(logging.DEBUG)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self._handler)
        logging.getLogger().setLevel(self._level)
        self.heard.append(self._log.getvalue())

    def listen(self, what: str, call: Callable[[], Any]) -> Any:
        """Call something; what comes of it is heard. Only errors of frazil's may come out of it."""
        out = io.StringIO()
        result: Any = None
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                result = call()
                if inspect.isgenerator(result):
                    result = next(result, None)
        except FrazilError as error:
            self.heard += [str(error), repr(error), repr(error.context), *traceback.format_exception(error)]
            result = error
        except Exception as error:
            raise AssertionError(f"{what} raised {type(error).__name__}: {error}") from error
        self.heard += [out.getvalue(), repr(result), str(result)]
        self._pickle(result)
        if not isinstance(result, FrazilError):
            return result
        assert visible(str(result), keeps_lines=True) == str(result), f"{what}: its error steers terminals"
        return None

    def _pickle(self, result: object) -> None:
        with contextlib.suppress(Exception):
            self.heard.append(pickle.dumps(result).decode("latin-1"))

    def check(self, secrets: tuple[str, ...] = SECRETS) -> None:
        """Check that no secret was heard."""
        for text in self.heard:
            for secret in secrets:
                assert secret not in text, f"a planted secret came out: …{text[:2000]}"


def run_table(ear: Ear, lake: frazil.Lake, name: tuple[str, ...]) -> None:
    """Do everything that can be done with a table."""
    table = ear.listen(f"table {name}", lambda: lake.table(name))
    if table is None:
        return
    assert isinstance(table, Table)
    current = table.metadata.current_snapshot_id or 1
    statistics = StatisticsFile(current, "file:///nowhere", 1, 1, ())
    given: dict[str, Any] = {
        "data": ROWS, "where": "id > 0", "name": "some_ref", "new_name": "other_ref", "names": ["a"],
        "snapshot_id": current,
        "before": current,
        "after": current,
        "branch": "main", "to": "main", "properties": {"a": "b"}, "terms": ["id"], "location": table.metadata.location,
        "format_version": 3, "wap_id": "x", "statistics": statistics, "source_table": "parquet.`/nowhere`",
        "source": table.metadata.location, "source_prefix": table.metadata.location, "target_prefix": "file:///nowhere/else",
    }  # fmt: skip
    scan = table.scan
    for way in (scan, lambda: scan("id > 0"), lambda: scan("note = 'x'", columns=["id"])):
        made = ear.listen(f"{name}.scan", way)
        if made is not None:
            # Other libraries take long to say no, and read by the same way each time.
            skipped = frozenset() if way is scan else frozenset({*TAKEN, "to_polars", "to_pandas"})
            for member in members_of(made, skip=NEEDS_SPARK | NOT_CALLED | skipped):
                ear.listen(f"{name}.scan().{member}", partial(_use, made, member, {}))
    for kind in METADATA_TABLES:
        ear.listen(f"{name}.inspect.{kind}", getattr(table.inspect, kind))
    for member in members_of(table):
        special = (
            {**given, "statistics": PartitionStatisticsFile(current, "file:///x", 1)}
            if "partition" in member
            else given
        )
        ear.listen(f"{name}.{member}", partial(_use, table, member, special))
    for member in members_of(table.maintain):
        ear.listen(f"{name}.maintain.{member}", partial(_use, table.maintain, member, given))


def run_view(ear: Ear, lake: frazil.Lake, name: tuple[str, ...]) -> None:
    """Do everything that can be done with a view."""
    view = ear.listen(f"view {name}", lambda: lake.view(name))
    if view is None:
        return
    given = {
        "dialect": "spark", "names": ["a"], "sql": "select 1", "version_id": 1, "location": view.location,
        "properties": {"a": "b"},
    }  # fmt: skip
    for member in members_of(view):
        ear.listen(f"{name}.{member}", partial(_use, view, member, given))


def run_lake(ear: Ear, lake: frazil.Lake, table: tuple[str, ...], view: tuple[str, ...]) -> None:
    """Do everything that can be done with a lake, on one table and one view."""
    given: dict[str, Any] = {
        "namespace": "db", "parent": (), "schema": "id bigint", "sql": "select 1", "metadata_location": "file:///nowhere",
        "data": ROWS,
        "query": f"select * from {'.'.join('`' + part.replace('`', '``') + '`' for part in table)}",
    }  # fmt: skip
    for member in members_of(lake):
        is_view = "view" in member
        names = {"name": view if is_view else table, "new_name": ("db", f"new_{member}")}
        if member.startswith(("create_", "register_")):
            names["name"] = ("db", f"made_by_{member}_of_{table[-1][:20]}")
        ear.listen(f"lake.{member}({names})", partial(_use, lake, member, {**given, **names}))


def _use(thing: object, member: str, given: dict[str, Any]) -> Any:
    found = getattr(thing, member)
    if not callable(found):
        return found
    if member == "sql":
        return next(found(given["query"]).to_batches(), None)
    made = found(**arguments_of(found, given))
    if member == "plan":
        return [made.explain(), made.tasks]
    return _taken(made, TAKEN[member]) if member in TAKEN else made


TAKEN: dict[str, Callable[[Any], Any]] = {
    "to_duckdb": lambda made: made.limit(1).to_arrow_table(),
    "to_polars_lazy": lambda made: made.head(1).collect(),
    "to_reader": lambda made: next(made, None),
    "to_dataset": lambda made: made.head(1),
}
"""What is lazy, and how its rows are taken."""


def _taken(made: Any, take: Callable[[Any], Any]) -> Any:
    try:
        return take(made)
    except FrazilError:
        raise
    except Exception as error:
        # Rows that are asked for inside another library fail with its error, which has ours in its text.
        return f"{type(error).__name__}: {error}"
