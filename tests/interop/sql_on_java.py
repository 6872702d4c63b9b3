"""The SQL cases through Iceberg's Java runtime: each statement's answer beside what its case says.

The JDBC catalog stands behind the name `lake`, so that statements run as they are written. Errors are compared as error
or none, answers as values. A statement that the jar does not have leaves its tables behind ours; what brings them to
the same state is kept beside the reason, in `tests/sql_cases/java_differences.toml`, and is run in its place.
"""

from __future__ import annotations

import getpass
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.interop.interop_cases import CannotDo
from tests.interop.java_runtime import JavaLake
from tests.support.sql_case_files import FOLDER, Outcome, case_files, read_cases, run_case

KINDS = {
    "jar lacks": "The jar has no such statement or form",
    "jar refuses": "The jar refuses what frazil does",
    "jar accepts": "frazil refuses what the jar accepts",
    "jar shows": "Both do it, and show it in other words",
    "catalog": "The JDBC catalog does it in another way",
    "jar's bug": "A bug of the jar",
}


def compared_files() -> list[str]:
    """Return the files of cases that the jar can be held to; plans and descriptions are in words of one's own."""
    return [name for name in case_files() if name != "shown"]


class Known(NamedTuple):
    """A difference that is known: of which kind, why it is there, and what brings the jar to the same state."""

    kind: str
    why: str
    instead: tuple[str, ...]


class Difference(NamedTuple):
    """A case that the jar answers otherwise."""

    file: str
    nth: int
    found: Outcome
    known: Known | None


def known_differences() -> dict[tuple[str, str, int], Known]:
    """Return the known differences by file, statement and how often the statement stood before in that file."""
    listed = tomllib.loads((FOLDER / "java_differences.toml").read_text("utf-8"))["difference"]
    return {
        (one["file"], one["statement"].strip(), one.get("nth", 1)): Known(
            one["kind"], one["why"], tuple(one.get("instead", ()))
        )
        for one in listed
    }


def run_file(name: str, folder: Path) -> Iterator[Difference | None]:
    """Run a file's cases in a catalog of their own; yield a difference, or None, for each."""
    known = known_differences()
    lake = JavaLake(folder, settings={"spark.sql.session.timeZone": "Asia/Kolkata"})
    cases = list(read_cases(name))
    if not cases[0].statement.startswith("create namespace"):
        lake.run("create namespace lake.db")

    def id_of(table: str, at: int) -> str:
        return str(lake.run(f"select snapshot_id from lake.{table}.snapshots")[at][0])

    seen: Counter[str] = Counter()
    for case in cases:
        seen[case.statement] += 1
        nth = seen[case.statement]
        found = run_case(case, lake.run, id_of, messages=False)
        if found.problem is None:
            yield None
            continue
        reason = known.get((name, case.statement, nth))
        for text in reason.instead if reason is not None else ():
            lake.run(text)
        yield Difference(name, nth, found, reason)


def said_by_frazil(difference: Difference) -> str:
    """Return what the case says."""
    case: Any = difference.found.case
    if case.error is not None:
        return "an error"
    if case.matches is not None:
        return f"text like `{case.matches}`"
    if case.rows is None:
        return "done"
    return "; ".join(case.rows) or "no rows"


def said_by_java(difference: Difference) -> str:
    """Return what the jar said."""
    found = difference.found
    if found.error is not None:
        return f"an error: {_always_the_same(found.error.splitlines()[0])}"
    if found.case.error is not None:
        return "done"
    return _always_the_same("; ".join(sorted(found.rows))) or "no rows"


def _always_the_same(text: str) -> str:
    """Return a text without what differs from run to run: folders, users, addresses of objects."""
    text = re.sub(r"file:/+\S+/warehouse", "file:///warehouse", text)
    text = re.sub(rf"\b{re.escape(getpass.getuser())}\b", "someone", text)
    return re.sub(r"@[0-9a-f]+\b", "", text)


def as_seen(difference: Difference) -> dict[str, str]:
    """Return what the page needs to know of a difference."""
    assert difference.known is not None
    return {
        "kind": difference.known.kind,
        "why": difference.known.why,
        "place": f"{difference.file}.txt:{difference.found.case.line}",
        "statement": difference.found.case.statement,
        "frazil": said_by_frazil(difference),
        "jar": said_by_java(difference),
    }


def main() -> None:
    """Print what differs, for those who write the reasons."""
    import sys
    import tempfile

    from tests.interop.java_runtime import close_worker

    try:
        for name in sys.argv[1:] or compared_files():
            with tempfile.TemporaryDirectory() as folder:
                for one in run_file(name, Path(folder)):
                    if one is not None:
                        mark = "known" if one.known is not None else "NEW"
                        print(f"{mark} {name}:{one.found.case.line} #{one.nth} {one.found.case.statement}")
                        print(f"    ours: {said_by_frazil(one)}\n    jar:  {said_by_java(one)}", flush=True)
    except CannotDo as reason:
        print(reason)
    finally:
        close_worker()


if __name__ == "__main__":
    main()
