"""Every guard that `tools/mutate_commits.py` switches off is in the sources, where the list says it is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.architecture.source_files import SOURCE
from tools.mutate_commits import GROUPS, Mutant, apply

MUTANTS = [mutant for group in GROUPS.values() for mutant in group]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_guard_has_a_mutant_that_disables_it(mutant: Mutant, tmp_path: Path) -> None:
    copied = tmp_path / "frazil" / mutant.file
    copied.parent.mkdir(parents=True)
    shutil.copy(SOURCE / mutant.file, copied)
    before = copied.read_text("utf-8")
    apply(tmp_path, mutant)
    assert copied.read_text("utf-8") != before
