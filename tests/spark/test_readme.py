"""The quickstart of README.md runs, and prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import frazil
from tools.run_notebook import cell_outputs, output_text, settled

README = Path(__file__).parents[2] / "README.md"


def test_first_lines_print_what_the_page_shows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = README.read_text("utf-8").partition("\n## ")[0]
    [(code, said)] = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    try:
        assert output_text(cell_outputs(code, names, 1)).strip() == said.strip()
    finally:
        frazil.detach(spark)
        names["lake"].close()


def test_quickstart_prints_what_the_page_shows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = README.read_text("utf-8").partition("## Quickstart")[2].partition("\n## ")[0]
    pairs = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    assert len(pairs) == 2
    names: dict[str, Any] = {"spark": spark}
    try:
        for number, (code, said) in enumerate(pairs, 1):
            printed = output_text(cell_outputs(code, names, number))
            assert settled(printed).split() == settled(said).split(), printed
    finally:
        frazil.detach(spark)
        names["lake"].close()
