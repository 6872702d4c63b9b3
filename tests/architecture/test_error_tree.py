"""The error tree: drawn in full, exported, and fit to cross a process boundary."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

import frazil
from frazil import errors


def error_classes() -> list[type[errors.FrazilError]]:
    return [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, errors.FrazilError) and value.__module__ == errors.__name__
    ]


def drawn_tree() -> dict[str, str | None]:
    """Read the tree at the top of errors.py: each class with its parent."""
    parents: dict[str, str | None] = {}
    open_branches: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^([│├└─ ]*)([A-Z]\w+Error)\b", line)
        if found is None:
            continue
        depth, name = len(found.group(1)), found.group(2)
        while open_branches and open_branches[-1][0] >= depth:
            open_branches.pop()
        parents[name] = open_branches[-1][1] if open_branches else None
        open_branches.append((depth, name))
    return parents


def test_documented_error_tree_matches_the_classes() -> None:
    actual = {
        kind.__name__: next((base.__name__ for base in kind.__bases__ if issubclass(base, errors.FrazilError)), None)
        for kind in error_classes()
    }
    assert drawn_tree() == actual


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__name__)
def test_every_error_is_exported(kind: type[errors.FrazilError]) -> None:
    assert kind.__name__ in frazil.__all__
    assert getattr(frazil, kind.__name__) is kind


@pytest.mark.parametrize("kind", error_classes(), ids=lambda kind: kind.__name__)
def test_every_error_survives_pickling(kind: type[errors.FrazilError]) -> None:
    error = kind("Cannot read a: b", hint="Do c.", path="file:///a", count=0)
    error.__cause__ = OSError("disk")

    back = pickle.loads(pickle.dumps(error))

    assert type(back) is kind
    assert (back.message, back.hint, back.context) == (error.message, error.hint, error.context)
    assert str(back) == str(error) == "Cannot read a: b\n  path: file:///a\n  count: 0\nHint: Do c."
    assert isinstance(back.__cause__, OSError)


def test_only_an_unknown_outcome_forbids_cleaning_up() -> None:
    unknown = {errors.CommitStateUnknownError, errors.WriteOutcomeUnknownError}
    assert {kind for kind in error_classes() if not kind.may_clean_up} == unknown


def test_only_a_lost_race_is_retryable() -> None:
    assert [kind for kind in error_classes() if kind.retryable] == [errors.CommitConflictError]


def test_every_error_has_a_docstring() -> None:
    assert [kind.__name__ for kind in error_classes() if not kind.__dict__.get("__doc__")] == []
