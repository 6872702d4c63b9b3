"""dbt-tests-adapter on lakes: every class of it runs, with Iceberg as the file format, or is listed with a reason.

`docs/evidence/dbt-tests.md` has what came of each class here and with the jar.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.dbt.adapter_classes import FAILING, LEFT_OUT, OF_OTHERS, OF_THE_JAR

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]


class OnLakes:
    """What projects say to have Iceberg tables, where they say nothing else."""

    @pytest.fixture(scope="class")
    def dbt_project_yml(self, dbt_project_yml: dict[str, Any], project_root: Any) -> dict[str, Any]:
        path = Path(str(project_root)) / "dbt_project.yml"
        project: dict[str, Any] = yaml.safe_load(path.read_text())
        for part in ("models", "seeds", "snapshots", "data_tests"):
            project.setdefault(part, {}).setdefault("+file_format", "iceberg")
        project["models"].setdefault("+incremental_strategy", "merge")
        path.write_text(yaml.safe_dump(project))
        return project


def classes_of_dbt() -> Iterator[type]:
    """Return the classes of dbt-tests-adapter that have tests, and are for adapters to inherit."""
    root = Path(import_module("dbt.tests.adapter").__path__[0])
    for path in sorted(root.rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        if path.stem == "__init__" or any(module.startswith(one) for one in OF_OTHERS):
            continue
        loaded = import_module(f"dbt.tests.adapter.{module}")
        for name, found in vars(loaded).items():
            if isinstance(found, type) and found.__module__ == loaded.__name__ and not name.startswith("Test"):
                if any(one.startswith("test") for one in dir(found)):
                    yield found


_FOUND = {one.__name__: one for one in classes_of_dbt()}
for _name, _base in _FOUND.items():
    if _name not in LEFT_OUT:
        globals()[f"Test{_name}"] = type(f"Test{_name}", (OnLakes, _base), {"__module__": __name__})


def test_every_listed_class_is_a_dbt_test_class() -> None:
    assert sorted(set(LEFT_OUT) - set(_FOUND)) == []
    assert sorted({one.partition(".")[0] for one in {**FAILING, **OF_THE_JAR}} - set(_FOUND)) == []
    assert sorted(set(LEFT_OUT) & {one.partition(".")[0] for one in FAILING}) == []
