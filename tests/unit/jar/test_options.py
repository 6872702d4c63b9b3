"""Options and settings: misspelt ones and wrong values are refused, what does nothing is named in one warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import pytest

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.jar.options import (
    CHANGE_FEED,
    CHANGE_FEED_OPTIONS,
    FOREIGN,
    METADATA_OPTIONS,
    READ,
    READ_OPTIONS,
    SETTINGS,
    SOURCE,
    SOURCE_OPTIONS,
    STREAM_FEED_OPTIONS,
    STREAM_READ,
    STREAM_READ_OPTIONS,
    STREAM_WRITE,
    STREAM_WRITE_OPTIONS,
    VIEW_OPTIONS,
    WRITE,
    WRITE_OPTIONS,
    Option,
    OptionList,
    check_settings,
)

WRONG = "\x00"
"""A value that nothing but free text may have."""
LISTS = {
    "read": READ_OPTIONS,
    "source": SOURCE_OPTIONS,
    "metadata": METADATA_OPTIONS,
    "view": VIEW_OPTIONS,
    "feed": CHANGE_FEED_OPTIONS,
    "stream": STREAM_READ_OPTIONS,
    "stream-feed": STREAM_FEED_OPTIONS,
    "write": WRITE_OPTIONS,
    "sink": STREAM_WRITE_OPTIONS,
}
"""The options of each way into a table."""


def _with_wrong_values(options: Iterable[Option]) -> list[Option]:
    return [one for one in options if one.value_type.parse(WRONG) is None]


def _given(option: Option) -> str:
    return option.name.replace("*", "x")


def _value(option: Option) -> str:
    """Return a value that the option may have and that asks for something else than what happens anyway."""
    words = ("true", "false", "distributed", "7")
    return next(one for one in words if option.value_type.parse(one) is not None and one not in option.fine)


@pytest.mark.parametrize("name", ["target-file-size-byte", "distribution_mode", "Compression-Codecs", "isolationlevel"])
def test_misspelt_write_option_is_refused_with_the_valid_ones(name: str) -> None:
    for options in (WRITE_OPTIONS, STREAM_WRITE_OPTIONS):
        with pytest.raises(InvalidRequestError, match="there is no such option") as found:
            options.check({name: "1"})
        assert "Did you mean" in str(found.value)
        assert "target-file-size-bytes" in str(found.value)


@pytest.mark.parametrize(
    ("way", "name", "meant"),
    [
        ("read", "snapshotid", "snapshot-id"),
        ("source", "filters", "filter"),
        ("metadata", "as-of-timestamps", "as-of-timestamp"),
        ("feed", "startingVersions", "startingVersion"),
        ("feed", "identifier-column", "identifier-columns"),
        ("stream", "stream-from-snapshots", "stream-from-snapshot"),
        ("stream", "split-sizes", "split-size"),
        ("stream", "identifier-column", "identifier-columns"),
        ("stream-feed", "computeUpdate", "computeUpdates"),
        ("sink", "upsert-key", "upsert-keys"),
        ("sink", "compact-every-batch", "compact-every-batches"),
    ],
)
def test_misspelt_option_is_refused_everywhere(way: str, name: str, meant: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"Did you mean {meant}"):
        LISTS[way].check({name: "1"})


@pytest.mark.parametrize("option", _with_wrong_values(WRITE), ids=lambda one: one.name)
def test_invalid_write_option_value_is_refused_with_valid_ones(option: Option) -> None:
    with pytest.raises(InvalidRequestError, match="Set it to") as found:
        WRITE_OPTIONS.check({option.name: WRONG})
    assert option.value_type.allowed in str(found.value)


@pytest.mark.parametrize("option", _with_wrong_values(READ), ids=lambda one: one.name)
def test_invalid_read_option_value_is_refused_with_valid_ones(option: Option) -> None:
    with pytest.raises(InvalidRequestError, match="Set it to"):
        READ_OPTIONS.check({option.name: WRONG})


@pytest.mark.parametrize("option", _with_wrong_values(STREAM_READ), ids=lambda one: one.name)
def test_invalid_stream_option_value_is_refused_with_valid_ones(option: Option) -> None:
    with pytest.raises(InvalidRequestError, match="Set it to"):
        STREAM_READ_OPTIONS.check({option.name: WRONG})


@pytest.mark.parametrize("option", [one for one in WRITE if one.answer == "warned"], ids=lambda one: one.name)
def test_ineffective_write_option_is_named_in_a_warning(option: Option) -> None:
    with pytest.warns(UserWarning, match=f"{_given(option)} .*options.md"):
        assert WRITE_OPTIONS.check({_given(option): _value(option)}) == {}


@pytest.mark.parametrize("option", [one for one in READ if one.answer == "warned"], ids=lambda one: one.name)
def test_ineffective_read_option_is_named_in_a_warning(option: Option) -> None:
    with pytest.warns(UserWarning, match=f"{_given(option)} .*options.md"):
        assert READ_OPTIONS.check({_given(option): _value(option)}) == {}


@pytest.mark.parametrize("option", [one for one in STREAM_READ if one.answer == "warned"], ids=lambda one: one.name)
def test_ineffective_stream_option_is_named_in_a_warning(option: Option) -> None:
    for options in (STREAM_READ_OPTIONS, STREAM_FEED_OPTIONS):
        with pytest.warns(UserWarning, match=f"{option.name} .*options.md"):
            assert options.check({option.name: _value(option)}) == {}


@pytest.mark.parametrize("name", ["lookback", "locality", "vectorization-enabled", "batch-size"])
def test_read_option_without_effect_on_a_stream_is_named_in_a_warning(name: str) -> None:
    with pytest.warns(UserWarning, match=f"{name} .an option of reads"):
        assert STREAM_READ_OPTIONS.check({name: "1"}) == {}


@pytest.mark.parametrize("option", STREAM_READ, ids=lambda one: one.name)
def test_stream_option_on_a_batch_read_is_reported(option: Option) -> None:
    if option.decides_rows:
        with pytest.raises(UnsupportedError, match=option.name):
            READ_OPTIONS.check({option.name: "7"})
    else:
        with pytest.warns(UserWarning, match=f"{option.name} .(an option of readStream|an option of change feeds)"):
            READ_OPTIONS.check({option.name: "7"})


def test_warning_links_to_the_documentation() -> None:
    with pytest.warns(UserWarning, match=r"docs/options\.md#options-of-streams-that-read of https://"):
        STREAM_READ_OPTIONS.check({"maxFilesPerTrigger": "10"})


@pytest.mark.parametrize("way", LISTS)
def test_options_that_select_rows_are_honoured_or_refused(way: str) -> None:
    """A warning is not enough: rows would be wrong."""
    taken = LISTS[way]
    for option in (*READ, *SOURCE, *CHANGE_FEED, *STREAM_READ, *STREAM_WRITE):
        if option.decides_rows:
            found = taken.find(option.name)
            assert found is not None
            assert found.answer in ("honoured", "refused"), option.name


@pytest.mark.parametrize(
    ("way", "name", "value", "hint"),
    [
        ("read", "filter", "id = 1", "use where"),
        ("read", "columns", "id", "use select"),
        ("read", "startingVersion", "3", "with readChangeFeed"),
        ("stream", "startingVersion", "3", "with readChangeFeed"),
        ("stream", "filter", "id = 1", "use where"),
        ("stream", "ignoreChanges", "true", "streaming-changes=added-files"),
        ("stream", "ignoreDeletes", "true", "streaming-skip-delete-snapshots"),
        ("stream", "skipChangeCommits", "true", "streaming-changes=skip"),
        ("stream", "tag", "eom", "stream-from-snapshot"),
        ("stream", "end-snapshot-id", "1", "stream-from-snapshot"),
        ("stream-feed", "stream-from-snapshot", "1", "startingVersion"),
        ("stream-feed", "compute-updates", "true", "computeUpdates"),
        ("stream-feed", "streaming-changes", "skip", "startingVersion"),
        ("metadata", "start-snapshot-id", "1", "an option of reads"),
        ("write", "upsert-keys", "id", "use MERGE"),
        ("sink", "overwrite-mode", "dynamic", "output mode"),
    ],
)
def test_options_that_would_return_wrong_rows_are_refused_with_an_alternative(
    way: str, name: str, value: str, hint: str
) -> None:
    with pytest.raises(UnsupportedError, match=hint):
        LISTS[way].check({name: value})


def test_append_merging_of_streams_is_always_on() -> None:
    (option,) = (one for one in STREAM_WRITE if one.name == "use-merge-append-for-streaming")
    assert STREAM_WRITE_OPTIONS.check({option.name: "true"}) == {option.name: "true"}
    with pytest.raises(UnsupportedError, match=r"commit\.manifest-merge\.enabled"):
        STREAM_WRITE_OPTIONS.check({option.name: "false"})


@pytest.mark.parametrize("option", FOREIGN, ids=lambda one: one.name)
def test_options_of_other_formats_are_refused_or_warned_about(
    option: Option,
) -> None:
    for options in (READ_OPTIONS, WRITE_OPTIONS, STREAM_READ_OPTIONS, STREAM_WRITE_OPTIONS):
        if option.answer == "refused":
            with pytest.raises(UnsupportedError, match=option.name):
                options.check({option.name: _value(option)})
        else:
            with pytest.warns(UserWarning, match="do nothing"):
                options.check({_given(option): _value(option)})


def test_all_ineffective_options_are_in_one_warning() -> None:
    with pytest.warns(UserWarning, match=r"batch-size .*header .*queer") as found:
        READ_OPTIONS.check({"header": "true", "queer": "1", "batch-size": "5000"})
    assert len(found) == 1


@pytest.mark.parametrize(
    ("options", "given"),
    [
        (WRITE_OPTIONS, {"shred-variants": "false", "Branch": "x"}),
        (STREAM_READ_OPTIONS, {"async-micro-batch-planning-enabled": "false", "failOnDataLoss": "true"}),
        (STREAM_READ_OPTIONS, {"readChangeFeed": "false", "path": "lake.db.t"}),
        (STREAM_FEED_OPTIONS, {"readChangeFeed": "true", "streaming-changes": "changes"}),
        (READ_OPTIONS, {"readChangeFeed": "false"}),
    ],
)
def test_option_requesting_the_default_behaviour_gives_no_warning(options: OptionList, given: dict[str, str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert options.check(given) == {name.lower(): value for name, value in given.items()}


@pytest.mark.parametrize("option", [one for one in SETTINGS if one.answer == "warned"], ids=lambda one: one.name)
def test_ineffective_setting_is_named_in_a_warning(option: Option) -> None:
    with pytest.warns(UserWarning, match="These settings do nothing") as found:
        assert check_settings({option.name: _value(option)}) == {}
    assert option.name in str(found[0].message)


@pytest.mark.parametrize(
    "option",
    [one for one in _with_wrong_values(SETTINGS) if one.name.startswith("spark.sql.iceberg.")],
    ids=lambda one: one.name,
)
def test_invalid_setting_value_is_refused_with_valid_ones(option: Option) -> None:
    with pytest.raises(InvalidRequestError, match="Set it to"):
        check_settings({option.name: WRONG})


def test_misspelt_setting_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InvalidRequestError, match=r"Did you mean spark\.sql\.iceberg\.distribution-mode"):
        check_settings({"spark.sql.iceberg.distribution-mod": "hash"})


def test_unknown_setting_is_named_in_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"spark\.sql\.iceberg\.queer .unknown"):
        assert check_settings({"spark.sql.iceberg.queer": "1"}) == {}


def test_option_names_are_unique() -> None:
    for options in (READ, SOURCE, CHANGE_FEED, WRITE, SETTINGS, STREAM_READ, STREAM_WRITE, FOREIGN):
        names = [one.key for one in options]
        assert len(names) == len(set(names))
