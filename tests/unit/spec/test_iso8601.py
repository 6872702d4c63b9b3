from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.spec import iso8601

EPOCH = datetime.date(1970, 1, 1)


@given(st.dates())
def test_days_match_the_python_calendar(date: datetime.date) -> None:
    days = (date - EPOCH).days
    assert iso8601.days_from_civil(date.year, date.month, date.day) == days
    assert iso8601.civil_from_days(days) == (date.year, date.month, date.day)


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_32_bit_day_round_trips_through_text(days: int) -> None:
    assert iso8601.days_from_civil(*iso8601.civil_from_days(days)) == days
    assert iso8601.parse_date(iso8601.format_date(days)) == days


@given(st.integers(-(2**63) * 1000, 2**63 * 1000))
def test_every_timestamp_round_trips_through_text(nanos: int) -> None:
    assert iso8601.parse_timestamp(iso8601.format_timestamp(nanos)) == (nanos, None)


@pytest.mark.parametrize(
    "days, text",
    [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (17486, "2017-11-16"),
        (-719162, "0001-01-01"),
        (-719163, "0000-12-31"),
        (-719529, "-0001-12-31"),
        (2932896, "9999-12-31"),
        (2932897, "+10000-01-01"),
        (2**31 - 1, "+5881580-07-11"),
        (-(2**31), "-5877641-06-23"),
    ],
)
def test_dates_are_written_as_iso_8601(days: int, text: str) -> None:
    assert iso8601.format_date(days) == text
    assert iso8601.parse_date(text) == days


@pytest.mark.parametrize(
    "text",
    [
        "", "2017", "2017-11", "2017-1-01", "2017-13-01", "2017-00-01", "2017-02-29", "2017-04-31", "17-01-01",
        "10000-01-01", "+2017-01-01", "-0000-01-01", "2017-11-16 ", "2017-11-16\n", "２017-11-16", "2017/11/16",
        "9" * 5000 + "-01-01",
    ],
)  # fmt: skip
def test_invalid_dates_are_refused(text: str) -> None:
    assert iso8601.parse_date(text) is None


@pytest.mark.parametrize(
    "text, nanos",
    [
        ("00:00", 0),
        ("10:15", 36_900 * 10**9),
        ("10:15:30", 36_930 * 10**9),
        ("10:15:30.1", 36_930_100_000_000),
        ("23:59:59.999999999", 86_399_999_999_999),
    ],
)
def test_times_of_day_are_read(text: str, nanos: int) -> None:
    assert iso8601.parse_time(text) == nanos


@pytest.mark.parametrize(
    "text", ["24:00", "23:60", "23:59:60", "1:00", "10:15:30.", "10:15:30.1234567890", "10:15Z", ""]
)
def test_invalid_times_are_refused(text: str) -> None:
    assert iso8601.parse_time(text) is None


@pytest.mark.parametrize(
    "text, seconds, offset",
    [
        ("1970-01-01T00:00:00", 0, None),
        ("1970-01-01 00:00", 0, None),
        ("1970-01-01t00:00:01z", 1, 0),
        ("1970-01-01T00:00:00+00:00", 0, 0),
        ("1970-01-01T00:00:00-08:00", 0, -28_800),
        ("1970-01-01T00:00:00+0530", 0, 19_800),
        ("1970-01-01T00:00:00+05", 0, 18_000),
        ("1970-01-01T00:00:00+01:02:03", 0, 3723),
    ],
)
def test_timestamps_are_read_with_their_offset(text: str, seconds: int, offset: int | None) -> None:
    assert iso8601.parse_timestamp(text) == (seconds * 10**9, offset)


@pytest.mark.parametrize(
    "text",
    ["1970-01-01", "1970-01-01T", "1970-02-30T00:00", "1970-01-01T24:00", "1970-01-01T00:00+19:00",
     "1970-01-01T00:00+01:60", "1970-01-01T00:00:00Europe/Paris", "now"],
)  # fmt: skip
def test_invalid_timestamps_are_refused(text: str) -> None:
    assert iso8601.parse_timestamp(text) is None


def test_space_is_refused_in_place_of_t() -> None:
    assert iso8601.parse_timestamp("1970-01-01 00:00", needs_t=True) is None
