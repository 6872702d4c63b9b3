"""The notebook runs in a session of its own, and prints what is stored in it and on the page that is made from it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.run_notebook import NOTEBOOK, PAGE, notebook_page

ROOT = Path(__file__).parents[2]


def test_quickstart_page_matches_the_notebook() -> None:
    page = notebook_page(json.loads(NOTEBOOK.read_text("utf-8")))
    assert PAGE.read_text("utf-8") == page, "docs/quickstart.md is old; write it: tools/run_notebook.py --write"


@pytest.mark.slow
def test_notebook_prints_its_stored_outputs() -> None:
    command = [sys.executable, "tools/run_notebook.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
