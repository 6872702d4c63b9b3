"""What users hand over to be written, and how it becomes batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from frazil.datafile.input_rows import InputRows, open_input
from frazil.errors import InvalidRequestError, SchemaMismatchError
from frazil.spec.schema import Schema
from frazil.spec.types import INT, STRING, NestedField

SCHEMA = Schema((NestedField(1, "id", INT, True), NestedField(2, "name", STRING, False)))
ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
TABLE = pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", None]})


class Stream:
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return TABLE.__arrow_c_stream__(requested_schema)


class Array:
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


def rows_of(opened: InputRows) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.Table.from_batches(opened.batches, schema=opened.schema).to_pylist()
    return found


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        TABLE.to_pandas(),
        pads.dataset(TABLE),
        pads.dataset(TABLE).scanner(columns=["id", "name"]),
        Stream(),
        Array(),
        ROWS,
        tuple(ROWS),
        iter(ROWS),
        (row for row in ROWS),
        iter(TABLE.to_batches()),
        [TABLE.slice(0, 1), TABLE.slice(1)],
        (part for part in [Stream()]),
    ],
    ids=lambda data: type(data).__name__,
)
def test_every_input_form_gives_the_same_rows(data: Any) -> None:
    assert rows_of(open_input(data, SCHEMA)) == ROWS


def test_opened_input_is_not_opened_again() -> None:
    opened = open_input(TABLE, SCHEMA)
    assert open_input(opened, SCHEMA) is opened


def test_iterator_is_read_lazily() -> None:
    given = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal given
        for at in range(1000):
            given = at + 1
            yield pa.record_batch({"id": pa.array([at], pa.int32()), "name": ["x"]})

    opened = open_input(batches(), SCHEMA)
    next(opened.batches)
    assert given <= 2


def test_later_rows_of_an_iterator_may_have_new_columns() -> None:
    many = ({"id": at} if at < 40_000 else {"id": at, "name": "late"} for at in range(40_001))
    rows = rows_of(open_input(many, SCHEMA))
    assert rows[0] == {"id": 0, "name": None}
    assert rows[-1] == {"id": 40_000, "name": "late"}


def test_iterator_without_rows_has_the_columns_of_the_table() -> None:
    opened = open_input(iter(()), SCHEMA)
    assert opened.schema.names == ["id", "name"]
    assert list(opened.batches) == []


def test_batches_with_different_columns_are_refused() -> None:
    parts = [TABLE, pa.table({"id": ["x"]})]
    with pytest.raises(SchemaMismatchError, match="their columns differ: id int32, name string, then id string"):
        rows_of(open_input(iter(parts), SCHEMA))


def test_row_that_is_not_a_dict_is_refused_with_its_position() -> None:
    with pytest.raises(InvalidRequestError, match=r"of type builtins.int in a list of dicts: number 1 of 2"):
        rows_of(open_input(iter([{"id": 1}, 7]), SCHEMA))


def test_error_of_a_user_iterator_is_raised_unchanged() -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield {"id": 1}
        raise KeyError("theirs")

    with pytest.raises(KeyError, match="theirs"):
        rows_of(open_input(rows(), SCHEMA))
