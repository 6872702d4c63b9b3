"""Partition and sort terms as text."""

from __future__ import annotations

import pytest

from frazil.errors import TextSyntaxError
from frazil.spec.partitioning import PartitionTerm, parse_partition_term
from frazil.spec.sorting import NullOrder, SortDirection, SortTerm, parse_sort_term
from frazil.spec.transforms import DAY, HOUR, IDENTITY, MONTH, VOID, YEAR, Bucket, Truncate

FIRST, LAST = NullOrder.NULLS_FIRST, NullOrder.NULLS_LAST
ASC, DESC = SortDirection.ASC, SortDirection.DESC


@pytest.mark.parametrize(
    "text, expected",
    [
        ("x", PartitionTerm("x", IDENTITY)),
        ("  x  ", PartitionTerm("x", IDENTITY)),
        ("identity(x)", PartitionTerm("x", IDENTITY)),
        ("`a b`", PartitionTerm("a b", IDENTITY)),
        ("`a``b`", PartitionTerm("a`b", IDENTITY)),
        ("a.b.`c d`", PartitionTerm("a.b.c d", IDENTITY)),
        ("größe", PartitionTerm("größe", IDENTITY)),
        ("bucket", PartitionTerm("bucket", IDENTITY)),
        ("day", PartitionTerm("day", IDENTITY)),
        ("bucket(16, id)", PartitionTerm("id", Bucket(16))),
        ("bucket(id, 16)", PartitionTerm("id", Bucket(16))),
        ("BUCKET ( 16 , s.id )", PartitionTerm("s.id", Bucket(16))),
        ("truncate(4, name)", PartitionTerm("name", Truncate(4))),
        ("year(ts)", PartitionTerm("ts", YEAR)),
        ("years(ts)", PartitionTerm("ts", YEAR)),
        ("months(ts)", PartitionTerm("ts", MONTH)),
        ("day(ts)", PartitionTerm("ts", DAY)),
        ("days(ts)", PartitionTerm("ts", DAY)),
        ("date(ts)", PartitionTerm("ts", DAY)),
        ("hours(ts)", PartitionTerm("ts", HOUR)),
        ("date_hour(ts)", PartitionTerm("ts", HOUR)),
        ("void(x)", PartitionTerm("x", VOID)),
        ("day(ts) AS `the day`", PartitionTerm("ts", DAY, "the day")),
    ],
)
def test_partition_terms_are_parsed(text: str, expected: PartitionTerm) -> None:
    assert parse_partition_term(text) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("ts", SortTerm("ts", IDENTITY, ASC, FIRST)),
        ("ts asc", SortTerm("ts", IDENTITY, ASC, FIRST)),
        ("ts desc", SortTerm("ts", IDENTITY, DESC, LAST)),
        ("ts DESC NULLS FIRST", SortTerm("ts", IDENTITY, DESC, FIRST)),
        ("ts desc nulls last", SortTerm("ts", IDENTITY, DESC, LAST)),
        ("ts nulls last", SortTerm("ts", IDENTITY, ASC, LAST)),
        ("bucket(4, id) asc", SortTerm("id", Bucket(4), ASC, FIRST)),
        ("`nulls` desc", SortTerm("nulls", IDENTITY, DESC, LAST)),
        ("nulls nulls last", SortTerm("nulls", IDENTITY, ASC, LAST)),
    ],
)
def test_sort_terms_are_parsed(text: str, expected: SortTerm) -> None:
    assert parse_sort_term(text) == expected


@pytest.mark.parametrize(
    "text, reason, place",
    [
        ("", "expected a name", "line 1, column 1"),
        ("   ", "expected a name", "line 1, column 4"),
        ("16", "expected a name", "line 1, column 1"),
        ("bucket(16 id)", "expected ','", "line 1, column 11"),
        ("bucket(16, id", r"expected '\)'", "line 1, column 14"),
        ("bucket(16)", "expected ','", "line 1, column 10"),
        ("bucket(id)", "expected ','", "line 1, column 10"),
        ("bucket(id, x)", "expected a number", "line 1, column 12"),
        ("bucket(0, id)", "the number of buckets must be from 1 to 2147483647", "line 1, column 8"),
        ("truncate(2147483648, id)", "the width must be", "line 1, column 10"),
        ("truncate(99999999999, id)", "the number does not fit 32 bits", "line 1, column 10"),
        ("zorder(a, b)", r"unknown transform 'zorder' \(supported: bucket, date", "line 1, column 1"),
        ("day(ts) x", "expected the end, found 'x'", "line 1, column 9"),
        ("a b", "expected the end, found 'b'", "line 1, column 3"),
        ("a.", "expected a name", "line 1, column 3"),
        ("a-b", "expected the end", "line 1, column 2"),
        ("`ab", "the quoted name does not end", "line 1, column 1"),
        ("day(\n  ts,)", r"expected '\)'", "line 2, column 5"),
        ("day(ts) as", "expected a name", "line 1, column 11"),
    ],
)
def test_syntax_error_is_shown_with_its_position(text: str, reason: str, place: str) -> None:
    with pytest.raises(TextSyntaxError, match=rf"Cannot parse the partition term: {reason}") as caught:
        parse_partition_term(text)
    assert place in caught.value.message
    assert "^" in caught.value.message


def test_position_is_underlined() -> None:
    with pytest.raises(TextSyntaxError) as caught:
        parse_sort_term("ts desc nulls sometimes")
    assert caught.value.message == (
        "Cannot parse the sort term: expected first or last, found 'sometimes'\n"
        "  line 1, column 15:\n"
        "    ts desc nulls sometimes\n"
        "                  ^^^^^^^^^"
    )


def test_oversized_text_is_refused_quickly() -> None:
    with pytest.raises(TextSyntaxError, match="more than 10000"):
        parse_partition_term("a." * 1_000_000)
    with pytest.raises(TextSyntaxError):
        parse_partition_term("bucket(" + "9" * 5000 + ", id)")
