"""The result of a statement: rows under named columns. Spark turns it into a DataFrame, the terminal into a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows, and their columns in Spark's DDL form: `namespace string not null`."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.split(" ", maxsplit=1)[0] for column in self.columns)

    @property
    def ddl(self) -> str:
        """The columns as one DDL text."""
        return ", ".join(self.columns)


NOTHING = Answer()


def answer(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Answer:
    """Return an answer with rows under columns."""
    return Answer(tuple(columns), tuple(tuple(row) for row in rows))
