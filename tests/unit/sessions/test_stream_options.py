"""Options of streams."""

from __future__ import annotations

import pytest

from frazil.errors import FrazilError
from frazil.sessions.stream_options import stream_options
from frazil.streams.steps import NotAppends, StreamLimits, StreamStart


def test_known_and_unsupported_names_are_recognised_in_any_case() -> None:
    found = stream_options(
        {
            "Stream-From-Timestamp": "1700000000000",
            "streaming-max-files-per-micro-batch": "10",
            "streaming-max-rows-per-micro-batch": "2147483647",
            "streaming-max-bytes-per-micro-batch": "5000000000",
            "streaming-skip-delete-snapshots": "true",
            "branch": "audit",
            "split-size": "1000",
        }
    )
    assert found.start == StreamStart(timestamp_ms=1_700_000_000_000)
    assert found.limits == StreamLimits(10, None, 5_000_000_000)
    assert found.rules.skips_deletes and not found.rules.skips_overwrites
    assert (found.rules.branch, found.split_bytes) == ("audit", 1000)


def test_defaults_start_with_the_whole_table_and_refuse_non_appends() -> None:
    found = stream_options({})
    assert found.start == StreamStart()
    assert found.rules.not_appends is NotAppends.ERROR
    assert found.limits == StreamLimits()
    assert found.computes_updates is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("async-micro-batch-planning-enabled", "true"),
        ("streaming-snapshot-polling-interval-ms", "1000"),
        ("async-queue-preload-file-limit", "10"),
        ("async-queue-preload-row-limit", "10"),
    ],
)
def test_planner_tuning_options_are_warned_about(name: str, value: str) -> None:
    with pytest.warns(UserWarning, match=f"{name} .batches are planned"):
        stream_options({name: value})


def test_overwrites_are_skipped_and_a_guard_named_on_request() -> None:
    found = stream_options({"streaming-skip-overwrite-snapshots": "true", "stream-guard": "nightly"})
    assert found.rules.skips_overwrites and not found.rules.skips_deletes
    assert found.guard == "nightly"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"streaming-max-file-per-micro-batch": "1"}, "there is no such option"),
        ({"streaming-max-files": "1"}, "there is no such option"),
        ({"streaming-max-rows-per-micro-batch": "-1"}, "a whole number from 1"),
        ({"streaming-max-rows-per-micro-batch": "many"}, "a whole number from 1"),
        ({"stream-from-snapshot": "1", "stream-from-timestamp": "1"}, "both stream-from-snapshot and"),
        ({"stream-from-snapshot": "first"}, "earliest or latest"),
        ({"streaming-changes": "yes"}, "error, skip, added-files or changes"),
        ({"streaming-changes": "changes", "streaming-skip-delete-snapshots": "true"}, "changes omit nothing"),
        ({"streaming-skip-delete-snapshots": "1"}, "true or false"),
        ({"compute-updates": "true"}, "without streaming-changes=changes"),
        ({"end-snapshot-id": "1"}, "a stream has no end"),
        ({"tag": "eom"}, "a stream has no end"),
        ({"streaming-changes": "changes", "deduplicationMode": "netChanges"}, "none or dropCarryovers"),
    ],
)
def test_contradictory_or_unknown_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(FrazilError, match=message):
        stream_options(options)


def test_branch_is_named_once() -> None:
    assert stream_options({}, "audit").rules.branch == "audit"
    with pytest.raises(FrazilError, match="use one of them"):
        stream_options({"branch": "other"}, "audit")
