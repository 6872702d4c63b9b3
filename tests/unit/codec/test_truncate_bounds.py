from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.codec.truncate_bounds import (
    truncate_lower_bound,
    truncate_upper_bound,
    truncate_upper_bytes,
    truncate_upper_text,
)
from frazil.errors import InvalidRequestError
from frazil.spec.types import BINARY, LONG, STRING, FixedType

EDGE_CHARACTERS = st.sampled_from(["a", "\x00", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff", "😀"])
EDGE_TEXT = st.text(EDGE_CHARACTERS | st.characters(codec="utf-8"), max_size=20)
EDGE_BYTES = st.lists(st.sampled_from([0, 1, 0x7F, 0x80, 0xFE, 0xFF]), max_size=20).map(bytes)


@pytest.mark.parametrize(
    "text, length, lower, upper",
    [
        ("abcde", 3, "abc", "abd"),
        ("abc", 3, "abc", "abc"),
        ("abc", 5, "abc", "abc"),
        ("", 3, "", ""),
        ("a😀b", 2, "a😀", "a😁"),
        ("a\U0010ffffc", 2, "a\U0010ffff", "b"),
        ("\ud7ffextra", 1, "\ud7ff", "\ue000"),
        ("\U0010ffff\U0010ffff", 1, "\U0010ffff", None),
        ("a\U0010ffff\U0010ffff\U0010ffffx", 4, "a\U0010ffff\U0010ffff\U0010ffff", "b"),
        ("\uffffx", 1, "\uffff", "\U00010000"),
    ],
)
def test_text_bounds_are_truncated_by_code_points(text: str, length: int, lower: str, upper: str | None) -> None:
    assert truncate_lower_bound(text, STRING, length) == lower
    assert truncate_upper_bound(text, STRING, length) == upper


@pytest.mark.parametrize(
    "data, length, lower, upper",
    [
        ("01020304", 2, "0102", "0103"),
        ("010203", 3, "010203", "010203"),
        ("0102ff04", 3, "0102ff", "0103"),
        ("ffff01", 2, "ffff", None),
        ("", 1, "", ""),
        ("7f00", 1, "7f", "80"),
    ],
)
def test_binary_bounds_are_truncated_by_bytes(data: str, length: int, lower: str, upper: str | None) -> None:
    value = bytes.fromhex(data)
    assert truncate_lower_bound(value, BINARY, length).hex() == lower
    truncated = truncate_upper_bound(value, BINARY, length)
    assert truncated is None if upper is None else truncated.hex() == upper


def test_other_types_are_not_truncated() -> None:
    assert truncate_lower_bound(12345, LONG, 1) == 12345
    assert truncate_upper_bound(b"abcdef", FixedType(6), 1) == b"abcdef"


@pytest.mark.parametrize("length", [0, -1])
def test_non_positive_length_is_refused(length: int) -> None:
    for kind, value in ((STRING, "a"), (BINARY, b"a")):
        with pytest.raises(InvalidRequestError, match="the length must be positive"):
            truncate_lower_bound(value, kind, length)
        with pytest.raises(InvalidRequestError, match="the length must be positive"):
            truncate_upper_bound(value, kind, length)


@pytest.mark.extended
@given(EDGE_TEXT, st.integers(1, 18))
def test_text_is_within_its_bounds_also_in_utf_8(text: str, length: int) -> None:
    lower = truncate_lower_bound(text, STRING, length)
    upper = truncate_upper_text(text, length)
    assert lower.encode() <= text.encode()
    assert len(lower) <= length
    if upper is None:
        assert set(text[:length]) == {"\U0010ffff"}
    else:
        assert text.encode() <= upper.encode()
        assert len(upper) <= length


@given(EDGE_BYTES | st.binary(max_size=20), st.integers(1, 18))
def test_bytes_are_within_their_bounds(data: bytes, length: int) -> None:
    upper = truncate_upper_bytes(data, length)
    assert truncate_lower_bound(data, BINARY, length) <= data
    if upper is None:
        assert set(data[:length]) == {0xFF}
    else:
        assert data <= upper
        assert len(upper) <= length
