"""Scans planned by a catalog service: requested, polled, fetched in parts, and cancelled if not read to the end.

A service responds either with the files or with a plan ID: then it is polled after a second, and with doubled pauses
after that, up to `rest-scan-planning.poll-timeout-ms`. A large plan comes as tasks, each fetched when needed. A plan
that
is not read to its end is cancelled.

Services do not send the sequence number of files, so `_last_updated_sequence_number` of unchanged rows cannot be read
from such tasks.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from frazil.catalog.names import format_name
from frazil.codec.json_fields import JsonObject
from frazil.codec.single_value_json import decode_json_value
from frazil.errors import CorruptTableError, FrazilError, InvalidRequestError, ServiceError
from frazil.expr.bind import bind
from frazil.expr.predicate_json import decode_predicate, encode_predicate
from frazil.expr.predicates import TRUE, Predicate
from frazil.loaded import LoadedTable
from frazil.rest import service as has
from frazil.rest import settings as names
from frazil.rest.load_result import read_credentials
from frazil.rest.rest_names import RestNames
from frazil.rest.service import HEADING, escape, read_object
from frazil.scan.choose_snapshot import CURRENT, SnapshotChoice, choose_snapshot, partition_types
from frazil.scan.plan import Plan
from frazil.scan.tasks import DeleteTask, FileScanTask
from frazil.spec.data_file import DataFile, FileContent, parse_file_format
from frazil.spec.partitioning import PartitionSpec
from frazil.spec.schema import Schema
from frazil.spec.types import StructType
from frazil.storage.base import Storage

StorageFor = Callable[..., Storage]
"""Creates the storage of a plan from its `plan_id` and the `keys` vended with it."""
_CONTENTS: Final = {
    "data": FileContent.DATA,
    "position-deletes": FileContent.POSITION_DELETES,
    "equality-deletes": FileContent.EQUALITY_DELETES,
}
_FIRST_WAIT_S: Final = 1.0
_MAX_WAIT_S: Final = 60.0
_TIMEOUT_MS: Final = 300_000
_MAX_TASKS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class _Scan:
    """The scan that is planned, and the context for parsing responses."""

    loaded: LoadedTable
    schema: Schema
    predicate: Predicate
    types: dict[int, tuple[PartitionSpec, StructType]]
    storage: Storage | None = None
    """The storage for reading the files, if the service vended keys with the plan."""


class ScanPlanner:
    """Plans scans of a service's tables on the service."""

    def __init__(
        self,
        catalog: RestNames,
        storage_for: StorageFor | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._catalog = catalog
        self._storage_for = storage_for
        self._sleep = sleep
        self._monotonic = monotonic

    def plan(
        self,
        loaded: LoadedTable,
        predicate: Predicate = TRUE,
        *,
        choice: SnapshotChoice = CURRENT,
        columns: Sequence[str] | None = None,
        case_sensitive: bool = True,
    ) -> Iterator[FileScanTask]:
        """Yield the files of a scan as planned by the service; an invalid request is refused at once."""
        what = f"plan a scan of {format_name(loaded.identifier)}"
        self._catalog.service.check(has.PLAN, what)
        snapshot, schema = choose_snapshot(loaded.metadata, choice)
        bound = bind(schema, predicate, case_sensitive=case_sensitive)
        if snapshot is None:
            return iter(())
        body: dict[str, Any] = {"snapshot-id": snapshot.snapshot_id, "case-sensitive": case_sensitive}
        if bound != TRUE:
            body["filter"] = encode_predicate(bound)
        if columns is not None:
            body["select"] = list(columns)
        if schema.schema_id != loaded.metadata.current_schema_id:
            body["use-snapshot-schema"] = True
        scan = _Scan(loaded, schema, bound, partition_types(loaded.metadata))
        return self._tasks(scan, body, what)

    def _tasks(self, scan: _Scan, body: dict[str, Any], what: str) -> Iterator[FileScanTask]:
        url = self._catalog.service.table(scan.loaded.identifier)
        answer = self._ask("POST", f"{url}/plan", what, scan, body)
        plan_id = answer.raw("plan-id", None)
        plan_url = f"{url}/plan/{escape(plan_id)}" if isinstance(plan_id, str) and plan_id else None
        is_over = False
        try:
            answer = self._completed(answer, plan_url, what, scan)
            keys = read_credentials(answer.raw("storage-credentials", None))
            if keys and self._storage_for is not None:
                scan = replace(scan, storage=self._storage_for(plan_id=plan_id, keys=keys))
            waiting = _texts(answer, "plan-tasks")
            yield from _read_tasks(answer, scan, what)
            fetched = 0
            while waiting:
                fetched += 1
                if fetched > _MAX_TASKS:
                    raise ServiceError(f"Cannot {what}: the service's tasks do not end")
                obj = self._ask("POST", f"{url}/tasks", what, scan, {"plan-task": waiting.pop(0)})
                waiting += _texts(obj, "plan-tasks")
                yield from _read_tasks(obj, scan, what)
            is_over = True
        finally:
            if not is_over and plan_url is not None and self._catalog.service.has(has.CANCEL_PLAN):
                # Nobody waits for the plan, so it does not matter whether the service receives this.
                with contextlib.suppress(FrazilError):
                    self._catalog.ask("DELETE", plan_url, what=f"cancel to {what}")

    def _completed(self, answer: JsonObject, plan_url: str | None, what: str, scan: _Scan) -> JsonObject:
        timeout_ms = self._catalog.settings.whole(names.PLANNING_TIMEOUT_MS, _TIMEOUT_MS)
        started, wait_s = self._monotonic(), _FIRST_WAIT_S
        while True:
            status = answer.raw("status", None)
            if status == "completed":
                return answer
            if status != "submitted":
                error = answer.raw("error", None)
                message = error.get("message") if isinstance(error, dict) else None
                reason = message if isinstance(message, str) else f"its status is {str(status)[:40]!r}"
                raise ServiceError(f"Cannot {what}: {reason}")
            if plan_url is None:
                raise ServiceError(f"Cannot {what}: the response has no plan ID")
            if (self._monotonic() - started) * 1000 + wait_s * 1000 > timeout_ms:
                raise ServiceError(
                    f"Cannot {what}: the service did not finish planning within {timeout_ms} ms",
                    hint=f"Raise {names.PLANNING_TIMEOUT_MS}.",
                )
            self._sleep(wait_s)
            wait_s = min(wait_s * 2, _MAX_WAIT_S)
            answer = self._ask("GET", plan_url, what, scan)

    def _ask(self, method: str, url: str, what: str, scan: _Scan, body: Any = None) -> JsonObject:
        # Planning twice has no side effects.
        session = self._catalog.access.session_of(scan.loaded.identifier, scan.loaded.referenced_by)
        answer = session.send(method, url, body=body, headers=self._catalog.access.header, is_question=True)
        self._catalog.check(answer, what, table=scan.loaded.identifier)
        return read_object(answer.reply, f"the response to {what}")


class TablePlanner:
    """Plans the scans of a service's tables on the service. A pickled copy plans locally."""

    def __init__(self, catalog: RestNames, storage_for: StorageFor) -> None:
        self._planner = ScanPlanner(catalog, storage_for)

    def __reduce__(self) -> tuple[object, ...]:
        return _no_planner, ()

    def __call__(self, loaded: LoadedTable, predicate: Predicate, **options: Any) -> Iterator[FileScanTask]:
        """Yield the files of a scan."""
        return self._planner.plan(loaded, predicate, **options)


class ScanReports:
    """Reports locally planned scans of a service's tables to the service. Pickles as nothing."""

    def __init__(self, catalog: RestNames) -> None:
        self._catalog = catalog

    def __reduce__(self) -> tuple[object, ...]:
        return _no_planner, ()

    def __call__(self, plan: Plan) -> None:
        """Queue a report of a plan; errors do not affect the scan."""
        with contextlib.suppress(Exception):
            self._catalog.report_scan(plan)


def _no_planner() -> None:
    return None


def _texts(answer: JsonObject, field: str) -> list[str]:
    value = answer.raw(field, None)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _read_tasks(answer: JsonObject, scan: _Scan, what: str) -> Iterator[FileScanTask]:
    try:
        deletes = [DeleteTask(_file(file_item, scan), 0) for file_item in answer.objects("delete-files", ())]
        for item in answer.objects("file-scan-tasks", ()):
            yield _task(item, scan, deletes)
    except (CorruptTableError, InvalidRequestError, IndexError, TypeError) as error:
        reason = error.message if isinstance(error, FrazilError) else type(error).__name__
        raise ServiceError(f"Cannot {what}: the response violates the protocol ({reason})") from error


def _task(task: JsonObject, scan: _Scan, deletes: Sequence[DeleteTask]) -> FileScanTask:
    chosen = []
    for index in task.int32s("delete-file-references", ()):
        if not 0 <= index < len(deletes):
            raise task.fail(f"delete file {index} does not exist", field="delete-file-references")
        chosen.append(deletes[index])
    residual = scan.predicate
    if "residual-filter" in task:
        residual = bind(scan.schema, decode_predicate(task.raw("residual-filter"), scan.schema))
    return FileScanTask(_file(task.object("data-file"), scan), 0, tuple(chosen), residual, storage=scan.storage)


def _file(file: JsonObject, scan: _Scan) -> DataFile:
    content = _CONTENTS.get(file.string("content").lower().replace("_", "-"))
    spec_id = file.int32("spec-id")
    if content is None or spec_id not in scan.types:
        raise file.fail("its content type or partition spec does not exist in the table")
    fields = scan.types[spec_id][1].fields
    values = file.list("partition")
    if len(values) != len(fields):
        raise file.fail(f"its partition has {len(values)} values, and the spec {len(fields)} fields", field="partition")
    partition = tuple(
        None if value is None else decode_json_value(value, field.field_type)
        for field, value in zip(fields, values, strict=True)
    )
    return DataFile(
        file.string("file-path"),
        parse_file_format(file.string("file-format").lower()),
        file.int64("record-count"),
        file.int64("file-size-in-bytes"),
        content,
        spec_id,
        partition,
        key_metadata=_bytes(file.string("key-metadata", None)),
        split_offsets=_optional(file.raw("split-offsets", None)),
        equality_ids=_optional(file.raw("equality-ids", None)),
        sort_order_id=file.int32("sort-order-id", None),
        first_row_id=file.int64("first-row-id", None),
        referenced_data_file=file.string("referenced-data-file", None),
        content_offset=file.int64("content-offset", None),
        content_size_in_bytes=file.int64("content-size-in-bytes", None),
    )


def _bytes(text: str | None) -> bytes | None:
    try:
        return None if text is None else bytes.fromhex(text)
    except ValueError as error:
        raise CorruptTableError("Cannot read key-metadata: it is not hexadecimal", heading=HEADING) from error


def _optional(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        raise CorruptTableError("Cannot read a list of numbers: the value is not one", heading=HEADING)
    return tuple(value)
