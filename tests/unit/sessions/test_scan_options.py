"""Read options as Spark takes them."""

from __future__ import annotations

from typing import Any

import pytest

from frazil.errors import InvalidRequestError, NotFoundError
from frazil.loaded import LoadedTable
from frazil.sessions.scan_options import scan_with_options
from frazil.spec.schema import Schema
from frazil.spec.types import LONG, NestedField
from frazil.table.scan import Scan
from tests.support.tables import START_MS, STEP_MS, TableBuilder


@pytest.fixture
def loaded() -> LoadedTable:
    table = TableBuilder(Schema((NestedField(1, "id", LONG),)))
    for at in range(4):
        table.append([{"id": at}])
    table.set_ref("audit", 2)
    table.set_ref("end", 3, "tag")
    table.set_ref("7", 1, "tag")
    return table.load()


def ids(scan: Scan) -> list[int]:
    return sorted(scan.to_arrow().column("id").to_pylist())


def read(loaded: LoadedTable, options: dict[str, Any], **more: Any) -> list[int]:
    return ids(scan_with_options(loaded, options, **more))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0, 1, 2, 3]),
        ({"snapshot-id": "2"}, [0, 1]),
        ({"SNAPSHOT-ID": 2}, [0, 1]),
        ({"versionAsOf": "2"}, [0, 1]),
        ({"versionasof": "audit"}, [0, 1]),
        ({"versionAsOf": "7"}, [0]),
        ({"branch": "audit"}, [0, 1]),
        ({"tag": "end"}, [0, 1, 2]),
        ({"start-snapshot-id": "1"}, [1, 2, 3]),
        ({"start-snapshot-id": "1", "end-snapshot-id": "3"}, [1, 2]),
        ({"split-size": "1000", "file-open-cost": "0", "lookback": "3"}, [0, 1, 2, 3]),
        ({"snapshot-id": None}, [0, 1, 2, 3]),
    ],
)
def test_options_select_snapshot_columns_and_rows_to_read(
    loaded: LoadedTable, options: dict[str, Any], expected: list[int]
) -> None:
    assert read(loaded, options) == expected


def test_times_are_milliseconds_or_text_in_the_session_zone(loaded: LoadedTable) -> None:
    moments = [one.timestamp_ms for one in loaded.metadata.snapshots]
    assert read(loaded, {"as-of-timestamp": str(moments[1])}) == [0, 1]
    assert read(loaded, {"as-of-timestamp": str(moments[1] - 1)}) == [0]
    assert START_MS < moments[0] <= START_MS + 10 * STEP_MS
    # 1,700,000,000 s is 2023-11-14 22:13:20 UTC; in Kolkata it is 03:43:20 on the next day.
    minutes = (moments[1] - 1_700_000_000_000) // 60_000
    text = f"2023-11-14 22:{13 + minutes}:20"
    assert read(loaded, {"timestampAsOf": text}) == [0, 1]
    assert read(loaded, {"timestampAsOf": f"2023-11-15 03:{43 + minutes}:20"}, time_zone="Asia/Kolkata") == [0, 1]
    assert read(loaded, {"timestampAsOf": f"2023-11-14T22:{13 + minutes}:20Z"}, time_zone="Asia/Kolkata") == [0, 1]
    assert read(loaded, {"timestampAsOf": "2023-11-16"}) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"snapshot-id": "2", "branch": "audit"}, "snapshot-id and branch"),
        ({"snapshot-id": "two"}, "a whole number"),
        ({"end-snapshot-id": "2"}, "start-snapshot-id is missing"),
        ({"start-snapshot-id": "1", "snapshot-id": "2"}, "snapshot-id"),
        ({"start-timestamp": "1"}, "start-timestamp"),
        ({"split-size": "0"}, "from 1 to"),
        ({"tag": "audit"}, "it is a branch"),
        ({"branch": "end"}, "it is a tag"),
        ({"timestampAsOf": "yesterday"}, "not a time"),
        ({"timestampAsOf": "2023-11-14 22:13:20"}, "zone"),
        ({"start-snapshot-id": "3", "end-snapshot-id": "2"}, "3"),
    ],
)
def test_invalid_options_are_refused(loaded: LoadedTable, options: dict[str, Any], reason: str) -> None:
    zone = "Nowhere/Land" if reason == "zone" else "UTC"
    with pytest.raises(InvalidRequestError, match=reason):
        scan_with_options(loaded, options, time_zone=zone)


@pytest.mark.parametrize("options", [{"snapshot-id": "99"}, {"branch": "none"}, {"versionAsOf": "none"}])
def test_unknown_snapshots_are_refused(loaded: LoadedTable, options: dict[str, Any]) -> None:
    with pytest.raises(NotFoundError):
        scan_with_options(loaded, options)


def test_incremental_options_keep_columns_and_filters(loaded: LoadedTable) -> None:
    scan = scan_with_options(loaded, {"start-snapshot-id": "1"}, predicate="id > 1", columns=["id", "_pos"])
    assert ids(scan) == [2, 3]
    assert scan.count() == 2
    assert scan.arrow_schema.names == ["id", "_pos"]
