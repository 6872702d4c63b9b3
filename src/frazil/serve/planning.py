"""Scan planning for clients that do not read manifests, and clients' reports.

The manifest list is read and manifests are pruned by their summaries, which takes milliseconds however large the table
is. A few files are returned immediately; many as tasks of a few manifests each, which the client fetches in any order
and
in parallel. If a filter may select few files of many, manifests are read immediately by several threads, for a few
seconds at most: the files found so far are returned with tasks for the rest. A plan is of one snapshot and never
changes.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any, Final

from frazil.codec.json_fields import JsonObject
from frazil.codec.json_text import encode_json
from frazil.errors import InvalidRequestError, NotFoundError
from frazil.expr.bind import bind
from frazil.expr.predicate_json import decode_predicate
from frazil.expr.predicates import TRUE
from frazil.loaded import LoadedTable
from frazil.scan.choose_snapshot import SnapshotChoice, choose_snapshot
from frazil.scan.incremental import AppendsPlan, plan_appends
from frazil.scan.plan import Plan
from frazil.serve.auth import Right
from frazil.serve.exchange import Answer, Refusal, Request, as_bad_request, json_answer, no_content
from frazil.serve.plan_cache import CachedPlan
from frazil.serve.scan_tasks_json import ScanTasks
from frazil.serve.server_state import MAX_REPORT_BYTES
from frazil.serve.service import Service
from frazil.spec.manifest import ManifestFile
from frazil.spec.schema import Schema
from frazil.threads import default_threads

FILES_AT_ONCE: Final = 2_000
"""The maximum number of files in the first response."""
SECONDS_AT_ONCE: Final = 5.0
"""The time limit for finding files for the first response; the rest is left to tasks."""
FILES_IN_TASK: Final = 10_000
"""The approximate number of files in a task; tasks consist of whole manifests."""


def plan_table_scan(service: Service, request: Request) -> Answer:
    """Plan a scan."""
    body = request.json() if request.body.strip() else JsonObject({}, heading="")
    loaded = service.cache.load_table(request.identifier).loaded
    with as_bad_request():
        try:
            plan, stats_ids = _plan(service, loaded, body)
        except NotFoundError as error:
            raise InvalidRequestError(error.message) from error
    _check_places(service, request, plan)
    manifests = plan.chosen_manifests()
    first_tasks, done = _find_at_once(plan, stats_ids, manifests)
    tasks = tuple(_cut(manifests[done:]))
    cached = CachedPlan(
        request.identifier, plan, stats_ids, manifests[:done], tasks, service.catalog.now_ms(), len(request.body)
    )
    service.plans.keep(cached)
    return json_answer({"plan-id": cached.plan_id, **_completed(service, request, cached, loaded, first_tasks)})


def fetch_planning_result(service: Service, request: Request) -> Answer:
    """Return an existing plan."""
    loaded = service.cache.load_table(request.identifier).loaded
    cached = _kept(service, request)
    return json_answer(_completed(service, request, cached, loaded, _files_of(cached, cached.at_once)))


def cancel_planning(service: Service, request: Request) -> Answer:
    """Remove a plan."""
    _exists(service, request)
    service.plans.forget(_kept(service, request).plan_id)
    return no_content()


def fetch_scan_tasks(service: Service, request: Request) -> Answer:
    """Return the files of one task."""
    with as_bad_request():
        name: str = request.json().string("plan-task")
    _exists(service, request)
    plan_id, _, number = name.rpartition(".")
    cached = service.plans.find(plan_id, request.identifier, service.catalog.now_ms())
    is_number = number.isascii() and number.isdigit() and len(number) < 10
    if cached is None or not is_number or int(number) >= len(cached.tasks):
        raise Refusal(404, "NoSuchPlanTaskException", "Cannot find the plan task: it does not exist")
    return json_answer(_files_of(cached, cached.tasks[int(number)]).fields())


def report_metrics(service: Service, request: Request) -> Answer:
    """Store a client's report on a scan or a commit."""
    body = request.json()
    with as_bad_request():
        report_type: str = body.string("report-type")
        if report_type not in ("scan-report", "commit-report"):
            raise InvalidRequestError(
                f"Cannot take a report of the type {report_type[:40]!r}: it must be scan-report or commit-report"
            )
        body.string("table-name")
    _exists(service, request)
    text = encode_json(body.values())
    if len(text) <= MAX_REPORT_BYTES:
        service.state.keep_report(request.identifier, text.decode(), service.catalog.now_ms())
    return no_content()


# Creating and presenting plans


def _check_places(service: Service, request: Request, plan: Plan) -> None:
    """Refuse to read metadata from folders that are closed to the caller."""
    if not request.caller.is_limited:
        return
    metadata = plan.loaded.metadata
    roots = service.roots_of(request.caller, request.namespace, Right.READ).beside(metadata)
    read = [] if plan.snapshot is None else [plan.snapshot]
    if isinstance(plan, AppendsPlan):
        read = [metadata.snapshot(snapshot_id) for snapshot_id in plan.append_ids]
    for snapshot in read:
        roots.check_snapshot(snapshot)
    for manifest in plan.manifests:
        roots.check(manifest.manifest_path)


def _plan(service: Service, loaded: LoadedTable, body: JsonObject) -> tuple[Plan, frozenset[int]]:
    snapshot_id = body.int64("snapshot-id", None)
    start, end = body.int64("start-snapshot-id", None), body.int64("end-snapshot-id", None)
    is_case_sensitive = body.boolean("case-sensitive", True)
    if snapshot_id is not None and (start is not None or end is not None):
        raise InvalidRequestError("Cannot plan the scan: it needs one snapshot, or the range between two")
    if start is not None and end is None:
        raise InvalidRequestError("Cannot plan the scan: start-snapshot-id needs end-snapshot-id")
    snapshot, schema = choose_snapshot(loaded.metadata, SnapshotChoice(snapshot_id=snapshot_id))
    if not body.boolean("use-snapshot-schema", False):
        schema = loaded.metadata.current_schema
    filter_json = body.raw("filter")
    predicate = TRUE if filter_json is None else decode_predicate(filter_json, schema if is_case_sensitive else None)
    select = body.strings("select", ())
    _ids_of(schema, select, is_case_sensitive)
    stats = _ids_of(schema, body.strings("stats-fields", ()), is_case_sensitive)
    body.int64("min-rows-requested", None)
    if end is not None:
        appends = plan_appends(
            loaded,
            predicate,
            from_snapshot_id=start,
            to_snapshot_id=end,
            case_sensitive=is_case_sensitive,
            cache=service.manifests,
        )
        return appends, stats
    bound = bind(schema, predicate, case_sensitive=is_case_sensitive)
    plan = Plan(loaded, snapshot, schema, bound, service.manifests, default_threads(), with_metrics=bool(stats))
    return plan, stats


def _ids_of(schema: Schema, names: tuple[str, ...], is_case_sensitive: bool) -> frozenset[int]:
    return frozenset(schema.field(name, case_sensitive=is_case_sensitive).field_id for name in names)


def _files_of(cached: CachedPlan, manifests: list[ManifestFile]) -> ScanTasks:
    """Return the files of some of a plan's manifests."""
    tasks = ScanTasks(cached.plan, cached.stats_ids)
    tasks.add(cached.plan.batches_of(manifests))
    return tasks


def _find_at_once(plan: Plan, stats_ids: frozenset[int], manifests: list[ManifestFile]) -> tuple[ScanTasks, int]:
    """Return the files for the first response, and the number of manifests that they cover."""
    tasks = ScanTasks(plan, stats_ids)
    is_small = sum(map(_files_in, manifests)) <= FILES_AT_ONCE
    if not is_small and not plan.prunes_files:
        return tasks, 0
    done, until = 0, time.monotonic() + SECONDS_AT_ONCE
    with contextlib.closing(plan.batches_of(manifests)) as batches:
        for batch in batches:
            if not is_small and (len(tasks.files) + len(batch.files) > FILES_AT_ONCE or time.monotonic() > until):
                break
            tasks.add([batch])
            done += 1
    return tasks, done


def _completed(
    service: Service, request: Request, cached: CachedPlan, loaded: LoadedTable, first_tasks: ScanTasks
) -> dict[str, Any]:
    fields: dict[str, Any] = {"status": "completed"}
    requested_ways = request.headers.get("x-iceberg-access-delegation", "")
    if requested_ways:
        access = service.access.delegated(
            loaded, requested_ways, can_write=request.can_write, closed=service.closed_folders(request)
        )
        if "storage-credentials" in access:
            fields["storage-credentials"] = access["storage-credentials"]
    if cached.tasks:
        fields["plan-tasks"] = cached.task_names
    return fields if cached.tasks and not first_tasks.files else {**fields, **first_tasks.fields()}


def _kept(service: Service, request: Request) -> CachedPlan:
    cached = service.plans.find(request.names["plan-id"], request.identifier, service.catalog.now_ms())
    if cached is None:
        raise Refusal(404, "NoSuchPlanIdException", "Cannot find the plan: no plan has that ID")
    return cached


def _exists(service: Service, request: Request) -> None:
    if service.catalog.locate_table(request.identifier) is None:
        service.catalog.load_table(request.identifier)


def _files_in(manifest: ManifestFile) -> int:
    """Return the number of live files in a manifest; if unknown, the number that makes a task."""
    if manifest.added_files_count is None or manifest.existing_files_count is None:
        return FILES_IN_TASK
    return manifest.added_files_count + manifest.existing_files_count


def _cut(manifests: list[ManifestFile]) -> list[list[ManifestFile]]:
    tasks: list[list[ManifestFile]] = []
    size = FILES_IN_TASK
    for manifest in manifests:
        count = _files_in(manifest)
        if size + count > FILES_IN_TASK:
            tasks.append([])
            size = 0
        tasks[-1].append(manifest)
        size += count
    return tasks
