"""A verb parses its condition once, plans at most twice, and reads the manifest list once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import frazil
from frazil.expr.parse import _Parser
from frazil.scan.plan import Plan
from frazil.storage.local import LocalStorage


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, counts: Counter[str], key: Any) -> None:
    """Count the calls of a method; its result is unchanged."""
    method = getattr(owner, name)

    def count(self: Any, *arguments: Any, **options: Any) -> Any:
        counts[key(*arguments)] += 1
        return method(self, *arguments, **options)

    monkeypatch.setattr(owner, name, count)


@pytest.mark.parametrize("where", ["id = 7", "id < 3", "length(kind) = 1 and id = 8", "kind = 'a'"])
@pytest.mark.parametrize("verb", ["delete", "overwrite", "update"])
def test_verb_parses_once_and_plans_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, where: str
) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        table = lake.create_table("db.t", "id bigint, kind string", partition_by=["kind"])
        table.append([{"id": number, "kind": "ab"[number % 2]} for number in range(10)])
        before = table.current_snapshot
        assert before is not None
        table = frazil.connect(tmp_path / "lake").table("db.t")
        counts: Counter[str] = Counter()
        counted(monkeypatch, _Parser, "__init__", counts, lambda text, *_: f"parse {text}")
        counted(monkeypatch, Plan, "__init__", counts, lambda *_: "plan")
        counted(monkeypatch, LocalStorage, "read", counts, lambda location, *_: f"read {location}")
        if verb == "delete":
            table.delete(where)
        elif verb == "update":
            table.update({"kind": "'c'"}, where=where)
        else:
            table.overwrite([{"id": 100, "kind": "c"}], where=where)
        assert counts[f"parse {where}"] == 1
        assert counts["plan"] <= 2
        assert counts[f"read {before.manifest_list}"] == 1
