"""Events of reads and writes for OpenLineage, where a lake was opened with the property `openlineage.enabled`.

A verb, a statement or a transaction that writes is a run: START before it, then COMPLETE or FAIL. What is read while
it runs is its input, what its commit makes is its output. A read by itself is a run too, told when its files are
planned. Events are sent by a thread of their own: whatever becomes of them, the work goes on, and one warning says so.

Verbs report their runs through `WriteSession.observe`, and `verbs/one_commit.py` reports commits; docs/lineage.md says
what.
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import queue
import sys
import threading
import uuid
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc

from frazil.catalog.base import Catalog
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.spec.schema import Schema
from frazil.spec.snapshot import Snapshot, Summary

ENABLED: Final = "openlineage.enabled"
JOB_NAMESPACE: Final = "openlineage.job-namespace"
JOB_NAME: Final = "openlineage.job-name"
PRODUCER: Final = "https://pypi.org/project/frazil/"
PARENT: Final = "openlineage.parent"
"""The run that all are a part of, as schedulers name it: `namespace/job/run`."""
_MOST_WAITING = 1000
_LAST_SECONDS = 5.0

_run: ContextVar[LineageRun | None] = ContextVar("lineage run", default=None)


def open_lineage(given: dict[str, str]) -> Lineage | None:
    """Take the properties of lineage out of those of a lake; return who is told, None where nobody is."""
    enabled = given.pop(ENABLED, "false").lower()
    namespace, name = given.pop(JOB_NAMESPACE, "frazil"), given.pop(JOB_NAME, None)
    parent = given.pop(PARENT, "").rsplit("/", 2)
    if enabled not in ("true", "false"):
        raise InvalidRequestError(f"Cannot connect with {ENABLED}={enabled!r}: it is true or false")
    if parent != [""] and len(parent) != 3:
        raise InvalidRequestError(f"Cannot connect with {PARENT}={'/'.join(parent)!r}: it is namespace/job/run")
    if enabled == "false":
        return None
    try:
        client = import_module("openlineage.client").OpenLineageClient()
    except ImportError:
        raise InvalidRequestError(
            f"Cannot connect with {ENABLED}: openlineage-python is not installed",
            hint='pip install "frazil[openlineage]"',
        ) from None
    return Lineage(client, namespace, name or Path(sys.argv[0]).stem or "python", parent)


@contextlib.contextmanager
def observe_run(catalog: Catalog | None, verb: str, table: str, data: Any = None) -> Iterator[None]:
    """Report the block as one run; within another run it belongs to that."""
    lineage = None if catalog is None else catalog.lineage
    if lineage is None or _run.get() is not None:
        yield
        return
    run = lineage.begin(verb, table, _tables_of(data) | {table})
    before = _run.set(run)
    try:
        yield
    except BaseException as error:
        lineage.end(run, error)
        raise
    else:
        lineage.end(run)
    finally:
        _run.reset(before)


@contextlib.contextmanager
def ending(run: AbstractContextManager[None], *error: Any) -> Iterator[None]:
    """End a run with the block's error, or with the one given."""
    try:
        yield
    except BaseException as problem:
        run.__exit__(type(problem), problem, problem.__traceback__)
        raise
    run.__exit__(*error)


def observe_commit(states: Sequence[LoadedTable], snapshot_ids: Collection[int]) -> None:
    """Report the tables that a commit changed, and its snapshots, to the current run, if there is one."""
    run = _run.get()
    if run is not None:
        run.wrote(states, snapshot_ids)


class LineageRun:
    """One run: what it read and wrote so far."""

    def __init__(self, job: str, names: frozenset[str]) -> None:
        self.job = job
        self.names = names
        """Tables of which it is known that it reads them."""
        self.run_id = str(uuid.uuid4())
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}

    def read(self, plan: Any) -> None:
        """Add what a plan reads."""
        self.inputs[plan.loaded.name] = plan

    def wrote(self, states: Sequence[LoadedTable], snapshot_ids: Collection[int]) -> None:
        """Add what a commit made: of each table the last of the snapshots that are its own."""
        for loaded in states:
            found = [loaded.metadata.find_snapshot(snapshot_id) for snapshot_id in snapshot_ids]
            made = sorted(
                (snapshot for snapshot in found if snapshot is not None), key=lambda snapshot: snapshot.sequence_number
            )
            self.outputs[loaded.name] = (loaded, made[-1] if made else None)


class Lineage:
    """Sends events of one lake."""

    def __init__(self, client: Any, namespace: str, job: str, parent: Sequence[str] = ()) -> None:
        self._client = client
        self._parent = parent
        self._namespace = namespace
        self._job = job
        self._events = import_module("openlineage.client.event_v2")
        self._waiting: queue.Queue[Any] = queue.Queue(_MOST_WAITING)
        self._has_warned = False
        self._lock = threading.Lock()
        self._running: list[LineageRun] = []
        threading.Thread(target=self._send, name="frazil-lineage", daemon=True).start()
        atexit.register(self.flush)

    def watch(self, loaded: LoadedTable) -> LoadedTable:
        """Return a table whose scans are told."""
        return loaded if loaded.on_read is not None else replace(loaded, on_read=_Watch(self))

    def planned(self, plan: Any) -> None:
        """Add a scan to the run that it is of, or tell of it by itself."""
        own = _run.get()
        name = plan.loaded.name
        with self._lock:
            # What Spark reads for a run is planned in another thread.
            runs = [own] if own is not None else [run for run in self._running if name in run.names]
        for lineage_run in runs:
            lineage_run.read(plan)
        if not runs:
            run = LineageRun(f"{self._job}.scan.{name}", frozenset())
            self._tell("START", run)
            run.read(plan)
            self._tell("COMPLETE", run)

    def begin(self, verb: str, table: str, names: frozenset[str]) -> LineageRun:
        """Begin a run."""
        run = LineageRun(f"{self._job}.{verb}.{table}", names)
        with self._lock:
            self._running.append(run)
        self._tell("START", run)
        return run

    def end(self, run: LineageRun, error: BaseException | None = None) -> None:
        """End a run."""
        with self._lock:
            self._running.remove(run)
        self._tell("COMPLETE" if error is None else "FAIL", run, error)

    def flush(self, seconds: float = _LAST_SECONDS) -> None:
        """Wait until what was told is sent, a few seconds at most."""
        done = threading.Event()
        self._put(done.set)
        done.wait(seconds)

    # Events

    def _tell(self, state: str, run: LineageRun, error: BaseException | None = None) -> None:
        """Have an event sent. What it says is put together here, since tables go on; nothing of it may fail a write."""
        try:
            self._put(self._event(state, run, error))
        except Exception as problem:
            self._warn(problem)

    def _event(self, state: str, run: LineageRun, error: BaseException | None) -> Any:
        made = self._events
        facets: dict[str, Any] = {}
        if len(self._parent) == 3:
            facet = _facet("parent_run")
            space, job, parent = self._parent
            facets["parent"] = facet.ParentRunFacet(
                run=facet.Run(runId=parent), job=facet.Job(namespace=space, name=job)
            )
        if error is not None:
            facets["errorMessage"] = _facet("error_message_run").ErrorMessageRunFacet(
                message=f"{type(error).__name__}: {error}"[:2000], programmingLanguage="python"
            )
        inputs = [self._input(dataset) for dataset in run.inputs.values()]
        outputs = [self._output(*output) for output in run.outputs.values()]
        return made.RunEvent(
            eventType=getattr(made.RunState, state),
            eventTime=datetime.datetime.now(datetime.UTC).isoformat(),
            run=made.Run(runId=run.run_id, facets=facets),
            job=made.Job(namespace=self._namespace, name=run.job, facets={}),
            producer=PRODUCER,
            inputs=inputs,
            outputs=outputs,
        )

    def _input(self, plan: Any) -> Any:
        counts = _facet("input_statistics_input_dataset").InputStatisticsInputDatasetFacet(**_counts_of(plan))
        return self._events.InputDataset(
            **_place(plan.loaded),
            facets=_about(plan.loaded, plan.schema, plan.snapshot),
            inputFacets={"inputStatistics": counts},
        )

    def _output(self, loaded: LoadedTable, snapshot: Snapshot | None) -> Any:
        facets = {}
        summary = None if snapshot is None else snapshot.summary
        if summary is not None:
            figures = {
                "rowCount": summary.get(Summary.ADDED_RECORDS, "0"),
                "size": summary.get(Summary.ADDED_FILES_SIZE, "0"),
                "fileCount": summary.get(Summary.ADDED_DATA_FILES, "0"),
            }
            numbers = {name: int(text) for name, text in figures.items() if text.isdigit()}
            facet = _facet("output_statistics_output_dataset").OutputStatisticsOutputDatasetFacet(**numbers)
            facets["outputStatistics"] = facet
        return self._events.OutputDataset(
            **_place(loaded),
            facets=_about(loaded, loaded.metadata.current_schema, snapshot),
            outputFacets=facets,
        )

    # Sending

    def _put(self, event: Any) -> None:
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self._warn(RuntimeError(f"{_MOST_WAITING} events wait to be sent"))

    def _send(self) -> None:
        while True:
            event = self._waiting.get()
            try:
                event() if callable(event) else self._client.emit(event)
            except Exception as problem:
                self._warn(problem)

    def _warn(self, problem: Exception) -> None:
        if not self._has_warned:
            self._has_warned = True
            message = f"OpenLineage events are lost: {type(problem).__name__}: {problem}"
            # Where warnings are errors, this one still stops nothing.
            with contextlib.suppress(RuntimeWarning):
                warnings.warn(message, RuntimeWarning, stacklevel=2)


class _Watch:
    """What is called for each plan of a table. Nothing of it is pickled."""

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage

    def __reduce__(self) -> tuple[object, ...]:
        return _nobody, ()

    def __call__(self, plan: Any) -> None:
        self._lineage.planned(plan)


def _nobody() -> None:
    return None


def _facet(name: str) -> Any:
    return import_module(f"openlineage.client.generated.{name}")


def _place(loaded: LoadedTable) -> dict[str, str]:
    """Return how OpenLineage names a table: by where it is."""
    scheme, mark, rest = loaded.metadata.location.partition("://")
    if not mark:
        return {"namespace": "file", "name": loaded.metadata.location}
    host, _, path = rest.partition("/")
    return {"namespace": f"{scheme}://{host}" if host else scheme, "name": path if host else f"/{path}"}


def _about(loaded: LoadedTable, schema: Schema, snapshot: Snapshot | None) -> dict[str, Any]:
    """Return what is said of a table wherever it is named: its columns, its version, its name in the catalog."""
    columns, names = _facet("schema_dataset"), _facet("symlinks_dataset")
    fields = [columns.SchemaDatasetFacetFields(name=field.name, type=str(field.field_type)) for field in schema.fields]
    facets: dict[str, Any] = {
        "schema": columns.SchemaDatasetFacet(fields=fields),
        "symlinks": names.SymlinksDatasetFacet(
            identifiers=[names.Identifier(namespace=PRODUCER, name=loaded.name, type="TABLE")]
        ),
    }
    if snapshot is not None:
        version = _facet("dataset_version_dataset").DatasetVersionDatasetFacet
        facets["version"] = version(datasetVersion=str(snapshot.snapshot_id))
    return facets


def _counts_of(plan: Any) -> dict[str, int]:
    """Return rows, bytes and files of what a plan leaves to read."""
    files = [batch.files for batch in plan._done]

    def total(name: str) -> int:
        return sum(pc.sum(file.column(name)).as_py() or 0 for file in files)

    return {
        "rowCount": total("record_count"),
        "size": total("file_size_in_bytes"),
        "fileCount": sum(len(file.column("record_count")) for file in files),
    }


def _tables_of(data: Any) -> frozenset[str]:
    """Return the names of tables that a Spark DataFrame reads."""
    if not hasattr(data, "_jdf"):
        return frozenset()
    found = set()
    with contextlib.suppress(Exception):
        leaves = data._jdf.queryExecution().analyzed().collectLeaves()
        for index in range(leaves.size()):
            leaf = leaves.apply(index)
            if leaf.getClass().getSimpleName() == "LogicalRelation" and leaf.catalogTable().isDefined():
                found.add(leaf.catalogTable().get().identifier().table())
    return frozenset(found)
