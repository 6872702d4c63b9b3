"""The locks: everything pinned by hash, nothing said about where packages come from."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.architecture.source_files import ROOT

LOCKS = sorted((ROOT / "requirements").glob("*.lock"))


@pytest.mark.parametrize("name", [path.name for path in LOCKS])
def test_every_package_is_pinned_by_hash(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text("utf-8")
    entries = re.split(r"\n(?=[a-z0-9])", text.strip())
    assert [entry.splitlines()[0] for entry in entries if not re.match(r"[\w.-]+==\S+", entry)] == []
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize("name", [path.name for path in LOCKS])
def test_locks_name_no_host(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text("utf-8")
    assert "://" not in text
    assert "--index" not in text
    assert "--find-links" not in text


def test_every_dependency_is_locked() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = [*config["project"]["dependencies"], *config["build-system"]["requires"]]
    for group in config["dependency-groups"].values():
        wanted += group
    texts = [
        (ROOT / "requirements" / name).read_text("utf-8")
        for name in ("dev.lock", "interop.lock", "browser.lock", "recipes.lock")
    ]
    locked = {name for text in texts for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    assert {re.match(r"[\w.-]+", one)[0] for one in wanted} - locked == set()  # type: ignore[index]


def test_spark_has_its_own_lock() -> None:
    spark = (ROOT / "requirements" / "spark.lock").read_text("utf-8")
    assert "\npyspark==" in spark
    assert "\npyspark==" not in (ROOT / "requirements" / "dev.lock").read_text("utf-8")
