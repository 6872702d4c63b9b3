"""Points in time and ages, as people write them."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import frazil
from frazil.table.point_in_time import PointInTime, age_ms, milliseconds_of

NOW = dt.datetime(2026, 11, 16, 18, 30, 5, 250_000, tzinfo=dt.UTC)
NOW_MS = int(NOW.timestamp() * 1000)
DAY = dt.timedelta(days=1)


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("now", NOW),
        ("today", at("2026-11-16T00:00:00Z")),
        ("Yesterday", at("2026-11-15T00:00:00Z")),
        ("2026-11-01", at("2026-11-01T00:00:00Z")),
        ("1969-12-31", at("1969-12-31T00:00:00Z")),
        ("2026-11-01T10:00:00+02:00", at("2026-11-01T08:00:00Z")),
        (" 2026-11-01 10:00Z ", at("2026-11-01T10:00:00Z")),
        ("7d", NOW - 7 * DAY),
        ("7 days ago", NOW - 7 * DAY),
        ("2 hours ago", NOW - dt.timedelta(hours=2)),
        ("an hour ago", NOW - dt.timedelta(hours=1)),
        ("1.5h", NOW - dt.timedelta(minutes=90)),
        ("90 minutes", NOW - dt.timedelta(minutes=90)),
        ("30S", NOW - dt.timedelta(seconds=30)),
        ("2w", NOW - 14 * DAY),
        (NOW, NOW),
        (NOW_MS, NOW),
    ],
)
def test_times_are_interpreted_as_people_mean_them(written: PointInTime, meant: dt.datetime) -> None:
    assert milliseconds_of(written, now_ms=NOW_MS) == int(meant.timestamp() * 1000)


@pytest.mark.parametrize(
    "written", ["", "soon", "7", "7y", "-7d", "d", "1 month ago", "7d ago ago", "2026-13-01", "tomorrow", "٧d"]
)
def test_invalid_time_is_refused_with_the_valid_form(written: str) -> None:
    with pytest.raises(frazil.InvalidRequestError, match=r"it is not a time\nHint: Write .*yesterday, 7d"):
        milliseconds_of(written, now_ms=NOW_MS)


def test_time_without_a_zone_is_refused() -> None:
    for written in ("2026-11-01T10:00:00", "2026-11-01 10:00", dt.datetime(2026, 11, 1)):
        with pytest.raises(frazil.InvalidRequestError, match="no time zone"):
            milliseconds_of(written, now_ms=NOW_MS)


def test_durations_are_parsed() -> None:
    assert [age_ms(one) for one in ("1s", "2 min", "3h", "1d", "2 weeks")] == [
        1000, 120_000, 10_800_000, 86_400_000, 1_209_600_000,
    ]  # fmt: skip
    for wrong in ("7", "yesterday", "7d ago", ""):
        with pytest.raises(frazil.InvalidRequestError, match=r"Cannot use .* as a length of time"):
            age_ms(wrong)


def test_scans_rollbacks_and_maintenance_accept_times_and_durations() -> None:
    with frazil.connect("memory:") as lake:
        table = lake.create_table("db.t", "id bigint")
        for number in (1, 2):
            table.append(pa.table({"id": [number]}))
        assert table.scan(as_of="now").count() == 2
        with pytest.raises(frazil.FrazilError, match="Cannot"):
            table.scan(as_of="yesterday")
        with pytest.raises(frazil.FrazilError, match="Cannot"):
            table.rollback_to(before="7d")
        assert table.maintain.expire_snapshots(older_than="2 hours ago", retain_last=1).expired_snapshot_ids == ()
        assert len(table.snapshots) == 2
