"""What a procedure takes is declared once: verbs and the page follow the declaration."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import frazil
from frazil.maintenance.procedures import PROCEDURES, Procedure
from frazil.table.maintain import Maintain
from tools.procedures_markdown import procedures_markdown

PAGE = Path(__file__).parents[3] / "docs" / "procedures.md"
ON_THE_LAKE: dict[str, Any] = {"snapshot": frazil.Lake.snapshot_table, "migrate": frazil.Lake.migrate_table}
OF_PYTHON = {"on_spark", "on_progress", "more", "self"}
"""What Python's verbs have beside what is declared."""


def verbs() -> list[str]:
    return [name for name in PROCEDURES if hasattr(Maintain, name) or name in ON_THE_LAKE]


@pytest.mark.parametrize("name", verbs())
def test_verb_accepts_its_declared_arguments(name: str) -> None:
    procedure = PROCEDURES[name]
    taken = inspect.signature(ON_THE_LAKE.get(name) or getattr(Maintain, name)).parameters
    declared = {one.python_name: one for one in procedure.parameters if one.name != "table"}
    ignored = {one.python_name for one in procedure.parameters if one.is_ignored}
    if name == "remove_orphan_files":
        # How many files an answer of SQL shows.
        ignored.add("stream_results")
    assert set(declared) - set(taken) - ignored == set(), "declared, and no verb takes it"
    names = {one for one in taken if one not in OF_PYTHON} - {"name", "table", "source", "target"}
    if name != "add_files":
        assert names - set(declared) == set(), "a verb takes it, and CALL and the terminal do not"
    for python_name, one in declared.items():
        if one.default is None or python_name not in taken:
            continue
        default = taken[python_name].default
        assert str(default).lower() == one.default.lower(), python_name


def test_every_maintenance_verb_is_declared() -> None:
    public = {one for one, _ in inspect.getmembers(Maintain, inspect.isfunction) if not one.startswith("_")}
    assert public <= set(PROCEDURES)


@pytest.mark.parametrize("procedure", PROCEDURES.values(), ids=lambda one: str(one.name))
def test_every_declaration_is_complete(procedure: Procedure) -> None:
    assert procedure.doc.endswith(".")
    seen_optional = False
    for one in procedure.call_parameters:
        assert one.doc
        assert not (one.is_required and seen_optional), "what must be given comes first"
        seen_optional |= not one.is_required
    names = [one.name for one in procedure.parameters]
    assert len(set(names)) == len(names)


def test_procedures_page_matches_the_declarations() -> None:
    assert PAGE.read_text("utf-8") == procedures_markdown(), "run make names"
