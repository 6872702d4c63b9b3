"""Options and settings: misspelt ones and wrong values are refused, what does nothing is named in one warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import pytest

from frazil.errors import InvalidRequestError, UnsupportedError
from frazil.spec.options import (
    FOREIGN,
    READ,
    READ_OPTIONS,
    SETTINGS,
    STREAM_READ,
    STREAM_WRITE,
    WRITE,
    WRITE_OPTIONS,
    Option,
    check_settings,
)

WRONG = "\x00"
"""A value that nothing but free text may have."""


def _with_wrong_values(options: Iterable[Option]) -> list[Option]:
    return [one for one in options if one.answer == "honoured" and one.kind.parse(WRONG) is None]


@pytest.mark.parametrize("name", ["target-file-size-byte", "distribution_mode", "Compression-Codecs", "isolationlevel"])
def test_a_misspelt_write_option_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="there is none of that name") as found:
        WRITE_OPTIONS.check({name: "1"})
    assert "Did you mean" in str(found.value)
    assert "target-file-size-bytes" in str(found.value)


def test_a_misspelt_read_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidRequestError, match="Did you mean snapshot-id"):
        READ_OPTIONS.check({"snapshotid": "1"})


@pytest.mark.parametrize("option", _with_wrong_values(WRITE), ids=lambda one: one.name)
def test_a_wrong_value_of_a_write_option_is_refused_with_what_is_allowed(option: Option) -> None:
    with pytest.raises(InvalidRequestError, match="Set it to") as found:
        WRITE_OPTIONS.check({option.name: WRONG})
    assert option.kind.allowed in str(found.value)


@pytest.mark.parametrize("option", _with_wrong_values(READ), ids=lambda one: one.name)
def test_a_wrong_value_of_a_read_option_is_refused_with_what_is_allowed(option: Option) -> None:
    with pytest.raises(InvalidRequestError, match="Set it to"):
        READ_OPTIONS.check({option.name: WRONG})


def _given(option: Option) -> str:
    return option.name.replace("*", "x")


@pytest.mark.parametrize("option", [one for one in WRITE if one.answer == "warned"], ids=lambda one: one.name)
def test_a_write_option_that_does_nothing_is_named_in_a_warning(option: Option) -> None:
    with pytest.warns(UserWarning, match=f"{_given(option)} .*options.md"):
        assert WRITE_OPTIONS.check({_given(option): "7"}) == {}


@pytest.mark.parametrize("option", [one for one in READ if one.answer == "warned"], ids=lambda one: one.name)
def test_a_read_option_that_does_nothing_is_named_in_a_warning(option: Option) -> None:
    with pytest.warns(UserWarning, match=f"{_given(option)} .*options.md"):
        assert READ_OPTIONS.check({_given(option): "7"}) == {}


@pytest.mark.parametrize("option", STREAM_READ, ids=lambda one: one.name)
def test_a_stream_option_of_a_read_that_is_no_stream_is_named_in_a_warning(option: Option) -> None:
    with pytest.warns(UserWarning, match=f"{option.name} .of readStream"):
        READ_OPTIONS.check({option.name: "7"})


def test_merging_appends_of_streams_is_what_happens_and_cannot_be_switched_off() -> None:
    (option,) = (one for one in STREAM_WRITE if one.name == "use-merge-append-for-streaming")
    assert WRITE_OPTIONS.check({option.name: "true"}) == {option.name: "true"}
    with pytest.raises(UnsupportedError, match=r"commit\.manifest-merge\.enabled"):
        WRITE_OPTIONS.check({option.name: "false"})


@pytest.mark.parametrize("option", FOREIGN, ids=lambda one: one.name)
def test_options_of_other_formats_are_refused_where_rows_would_be_wrong_and_warned_about_elsewhere(
    option: Option,
) -> None:
    for options in (READ_OPTIONS, WRITE_OPTIONS):
        if option.answer == "refused":
            with pytest.raises(UnsupportedError, match=option.name):
                options.check({option.name: "true"})
        else:
            with pytest.warns(UserWarning, match="do nothing"):
                options.check({_given(option): "true"})


def test_all_that_does_nothing_is_in_one_warning() -> None:
    with pytest.warns(UserWarning, match=r"batch-size .*header .*queer") as found:
        READ_OPTIONS.check({"header": "true", "queer": "1", "batch-size": "5000"})
    assert len(found) == 1


def test_what_asks_for_what_happens_anyway_is_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert WRITE_OPTIONS.check({"shred-variants": "false", "Branch": "x"}) == {
            "shred-variants": "false",
            "branch": "x",
        }


@pytest.mark.parametrize("option", [one for one in SETTINGS if one.answer == "warned"], ids=lambda one: one.name)
def test_a_setting_that_does_nothing_is_named_in_a_warning(option: Option) -> None:
    with pytest.warns(UserWarning, match="These settings do nothing") as found:
        assert check_settings({option.name: "7"}) == {}
    assert option.name in str(found[0].message)


@pytest.mark.parametrize(
    "option",
    [one for one in _with_wrong_values(SETTINGS) if one.name.startswith("spark.sql.iceberg.")],
    ids=lambda one: one.name,
)
def test_a_wrong_value_of_a_setting_is_refused_with_what_is_allowed(option: Option) -> None:
    with pytest.raises(InvalidRequestError, match="Set it to"):
        check_settings({option.name: WRONG})


def test_a_misspelt_setting_is_named_in_a_warning_with_the_right_one() -> None:
    with pytest.warns(UserWarning, match=r"did you mean spark\.sql\.iceberg\.distribution-mode"):
        check_settings({"spark.sql.iceberg.distribution-mod": "hash"})


def test_names_of_options_are_there_once() -> None:
    for options in (READ, WRITE, SETTINGS, (*STREAM_READ, *STREAM_WRITE)):
        names = [one.key for one in options]
        assert len(names) == len(set(names))
