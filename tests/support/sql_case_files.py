"""SQL cases as data: `tests/sql_cases/*.txt`. A case is a statement and what it answers.

    > statement, which may go on
    > in further lines
    row | of | values         in any order; (none) for no rows
    + row | of | values       this row and others; any number of such lines
    ~ expression              the first value of the answer matches it
    ! expression              it is refused, and the message matches it

Nothing after a statement: any answer will do. Lines with # are comments; an empty line ends a case. In statements and
rows, `$snapshot(db.t, 0)` is the id of a table's first snapshot.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import frazil

FOLDER = Path(__file__).parents[1] / "sql_cases"
WITHOUT_SPARK = ("namespaces", "tables", "columns", "partitioning", "properties")
_SNAPSHOT = re.compile(r"\$snapshot\(([\w.]+), (\d+)\)")


class SqlCase(NamedTuple):
    line: int
    statement: str
    rows: tuple[str, ...] | None
    matches: str | None
    error: str | None
    among: tuple[str, ...] = ()
    """Rows that the answer has, beside others."""


def case_files() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def read_cases(name: str) -> Iterator[SqlCase]:
    lines = (FOLDER / f"{name}.txt").read_text("utf-8").splitlines()
    at = 0
    while at < len(lines):
        if not lines[at].startswith(">"):
            assert lines[at] == "" or lines[at].startswith("# "), f"{name}.txt:{at + 1}: {lines[at]}"
            at += 1
            continue
        first = at
        statement: list[str] = []
        while at < len(lines) and lines[at].startswith(">"):
            statement.append(lines[at][1:].strip())
            at += 1
        answer: list[str] = []
        while at < len(lines) and lines[at] != "":
            answer.append(lines[at])
            at += 1
        yield _case(first + 1, "\n".join(statement), answer)


def _case(line: int, statement: str, answer: list[str]) -> SqlCase:
    if not answer:
        return SqlCase(line, statement, None, None, None)
    if answer[0].startswith("! "):
        return SqlCase(line, statement, None, None, answer[0][2:])
    if answer[0].startswith("~ "):
        return SqlCase(line, statement, None, answer[0][2:], None)
    if answer[0].startswith("+ "):
        return SqlCase(line, statement, None, None, None, tuple(_trimmed(one.removeprefix("+ ")) for one in answer))
    if answer == ["(none)"]:
        return SqlCase(line, statement, (), None, None)
    return SqlCase(line, statement, tuple(_trimmed(one) for one in answer), None, None)


def _trimmed(line: str) -> str:
    return " | ".join(part.strip() for part in line.split("|"))


def show_value(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float | Decimal):
        return f"{value:f}".rstrip("0").rstrip(".")
    return str(value)


def snapshots_of(lake: frazil.Lake) -> Callable[[str, int], str]:
    """Return a function that says the id of a table's n-th snapshot."""
    return lambda table, at: str(lake.table(table).snapshots[at].snapshot_id)


class Outcome(NamedTuple):
    """What a statement answered, beside what its case says."""

    case: SqlCase
    statement: str
    rows: list[str]
    error: str | None
    problem: str | None
    """Why the case does not hold; nothing where it does."""


def run_case(
    case: SqlCase, run: Callable[[str], Iterable[Iterable[Any]]], id_of: Callable[[str, int], str], *, messages: bool
) -> Outcome:
    """Run one case; `messages` says whether the texts of errors are compared, or only that there is one."""

    def filled(text: str) -> str:
        return _SNAPSHOT.sub(lambda found: id_of(found[1], int(found[2])), text)

    try:
        statement = filled(case.statement)
        for text in (*case.among, *(case.rows or ())):
            filled(text)
    except IndexError:
        return Outcome(case, case.statement, [], None, "the table has no such snapshot")
    try:
        rows = [tuple(row) for row in run(statement)]
    except Exception as error:
        said = str(error)
        if case.error is None:
            return Outcome(case, statement, [], said, f"{type(error).__name__}: {said}")
        holds = not messages or re.search(case.error, said, re.DOTALL)
        return Outcome(case, statement, [], said, None if holds else said)
    shown = [_trimmed(" | ".join(show_value(value) for value in row)) for row in rows]
    problem: str | None = None
    if case.error is not None:
        problem = "was not refused"
    elif case.matches is not None and (not rows or not re.search(case.matches, str(rows[0][0]))):
        problem = str(rows[0][0]) if rows else "no rows"
    elif not set(map(filled, case.among)) <= set(shown):
        problem = str(shown)
    elif case.rows is not None and sorted(shown) != sorted(map(filled, case.rows)):
        problem = str(sorted(shown))
    return Outcome(case, statement, shown, None, problem)


def run_cases(
    name: str,
    lake: frazil.Lake,
    run: Callable[[str], Iterable[Iterable[Any]]],
    *,
    left_out: str | None = None,
    known: Mapping[str, str] | None = None,
) -> int:
    """Run a file's cases one after the other, but for those that begin with a word; return how many there were.

    `known` has the cases that do not hold, as `tables.txt:12`, each with the reason; one that holds after all is wrong.
    """
    cases = [one for one in read_cases(name) if left_out is None or not one.statement.startswith(left_out)]
    wrong: list[str] = []
    for case in cases:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*the format has no text lengths")
            found = run_case(case, run, snapshots_of(lake), messages=True)
        place = f"{name}.txt:{case.line}"
        if found.problem is not None and place not in (known or {}):
            wrong.append(f"{place}: {case.statement}\n{found.problem}")
        if found.problem is None and place in (known or {}):
            wrong.append(f"{place}: {case.statement}\nholds, and is listed as one that does not")
    assert not wrong, "\n\n".join(wrong)
    return len(cases)
