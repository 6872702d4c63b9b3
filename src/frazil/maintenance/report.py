"""Reports on a table: facts, and problems with what to do about each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from frazil.pictures.markup import Html, element, join
from frazil.pictures.style import in_notebook
from frazil.spec.frozen_map import FrozenMap
from frazil.visible_text import visible

MAX_PROBLEMS: Final = 1000
"""The most problems that a report lists; further ones are counted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One defect or possible improvement.

    `kind` is a short name such as `missing-file`, `what` describes the finding with its numbers, and `to_do` the
    remedy. `path` is the file in question and `snapshot_id` a snapshot that references it, if there are any;
    `procedure` is the name of the maintenance procedure that helps. With `is_warning` nothing is broken: reads are
    correct.
    """

    kind: str
    what: str
    to_do: str
    path: str | None = None
    snapshot_id: int | None = None
    procedure: str | None = None
    is_warning: bool = False

    def __str__(self) -> str:
        path_line = "" if self.path is None else f"\n    {visible(self.path)}"
        mark = "warning, " if self.is_warning else ""
        return f"{mark}{self.kind}: {visible(self.what)}{path_line}\n    {visible(self.to_do)}"


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a check, printable in full; `ok` if it found nothing worse than warnings."""

    title: str
    facts: Mapping[str, int] = field(default_factory=FrozenMap)
    problems: tuple[Problem, ...] = ()
    further_problems: int = 0
    further_warnings: int = 0

    @property
    def ok(self) -> bool:
        """Whether there are no problems except warnings."""
        return self.further_problems == 0 and all(problem.is_warning for problem in self.problems)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.problems)

    def __repr__(self) -> str:
        total = len(self.problems) + self.further_problems + self.further_warnings
        return f"<Report {visible(self.title)!r}: {counted(total, 'problem') if total else 'no problems'}; print it>"

    def __str__(self) -> str:
        lines = [visible(self.title)]
        lines += [f"  {_fact(name)}: {count:,}" for name, count in self.facts.items()]
        if not self.problems:
            return "\n".join([*lines, "No problems."])
        count = sum(not problem.is_warning for problem in self.problems) + self.further_problems
        warnings = sum(problem.is_warning for problem in self.problems) + self.further_warnings
        parts = [(count, "problem"), (warnings, "warning")]
        lines.append(f"{' and '.join(counted(*pair) for pair in parts if pair[0])}:")
        lines += [f"  {problem}" for problem in self.problems]
        if self.further_problems or self.further_warnings:
            lines.append(f"  ... and {self.further_problems + self.further_warnings:,} more that are only counted.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return in_notebook(draw_report(self))


def draw_report(report: Report) -> Html:
    """Render a report as a short HTML page."""
    facts = element(
        "table",
        *(
            element("tr", element("td", _fact(name)), element("td", f"{count:,}", class_="fz-number"))
            for name, count in report.facts.items()
        ),
    )
    problems = [
        element("p", element("strong", problem.kind), f" {problem.what}", element("br"), element("span", problem.to_do))
        for problem in report.problems
    ]
    further = report.further_problems + report.further_warnings
    elements = [
        element("h4", report.title),
        *(problems or [element("p", "No problems.")]),
        element("p", f"… and {further:,} more") if further else None,
        element("details", element("summary", "Counts"), facts),
    ]
    return join(elements)


def counted(number: int, noun: str) -> str:
    """Format a number with its noun: 1 file, 2 files."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Findings:
    """Collects facts and a bounded number of problems and warnings, in one thread."""

    def __init__(self, max_problems: int = MAX_PROBLEMS) -> None:
        self.facts: dict[str, int] = {}
        self._problems: list[Problem] = []
        self._kept = {False: 0, True: 0}
        self._further = {False: 0, True: 0}
        """The number of problems and of warnings that are not kept."""
        self._max = max_problems

    def count(self, fact: str, number: int = 1) -> None:
        """Add to a fact."""
        self.facts[fact] = self.facts.get(fact, 0) + number

    def add(self, *problems: Problem) -> None:
        """Add problems, or only count them if there are many already."""
        for problem in problems:
            if self._kept[problem.is_warning] < self._max:
                self._kept[problem.is_warning] += 1
                self._problems.append(problem)
            else:
                self._further[problem.is_warning] += 1

    def report(self, title: str) -> Report:
        """Return a report of all findings so far."""
        return Report(title, FrozenMap(self.facts), tuple(self._problems), self._further[False], self._further[True])


def _fact(name: str) -> str:
    """Return the name of a fact for display: `data files below 1 MiB`."""
    return name.replace("_", " ").replace(" mib", " MiB")
