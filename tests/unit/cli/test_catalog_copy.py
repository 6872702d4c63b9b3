"""`frazil catalog copy`: names move to another catalog, and nothing is lost on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import frazil
from frazil.catalog.base import Catalog
from frazil.catalog.copy_catalog import copy_catalog
from frazil.catalog.memory import MemoryCatalog
from frazil.cli.main import app
from frazil.errors import InvalidRequestError, ServiceError
from frazil.loaded import LoadedTable
from frazil.table.open_catalog import open_catalog
from tests.support.catalog_cases import made_table, set_property
from tests.support.served_lake import served

RUNNER = CliRunner()


@pytest.fixture
def source(tmp_path: Path) -> str:
    folder = str(tmp_path / "source")
    with frazil.connect(folder) as lake:
        lake.create_namespace("shop.eu", properties={"owner": "ann"})
        for name in ("shop.orders", "shop.eu.orders", "plain.t"):
            lake.create_table(name, "id bigint").append(pa.table({"id": pa.array([1, 2], pa.int64())}))
        lake.create_view("shop.v", "select id from shop.orders")
    return folder


@pytest.fixture(params=["folder", "service"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "folder":
        yield str(tmp_path / "target")
    else:
        with served(tmp_path / "target", more_roots=[str(tmp_path)]) as server:
            yield server.uri


def run(*arguments: str, code: int = 0) -> list[dict[str, Any]]:
    result = RUNNER.invoke(app, ["catalog", "copy", *arguments, "-f", "json"])
    assert result.exit_code == code, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def outcomes(rows: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    return {(one["kind"], one["name"]): one["outcome"] for one in rows}


def names(place: str) -> list[str]:
    with open_catalog(place) as catalog:
        spaces = [
            *catalog.list_namespaces(),
            *(two for one in catalog.list_namespaces() for two in catalog.list_namespaces(one)),
        ]
        found = [name for one in spaces for name in (*catalog.list_tables(one), *catalog.list_views(one))]
    return sorted(".".join(one) for one in found)


ALL = ["plain.t", "shop.eu.orders", "shop.orders", "shop.v"]


def test_copied_tables_have_the_same_metadata(source: str, target: str) -> None:
    with open_catalog(source) as catalog:
        before = {name: catalog.load_table(name).metadata_location for name in catalog.all_tables()}
    assert outcomes(run(source, target)) == {
        ("namespace", "plain"): "copied", ("namespace", "shop"): "copied", ("namespace", "shop.eu"): "copied",
        ("table", "plain.t"): "moved", ("table", "shop.orders"): "moved", ("table", "shop.eu.orders"): "moved",
        ("view", "shop.v"): "moved",
    }  # fmt: skip
    assert names(source) == []
    assert names(target) == ALL
    with frazil.connect(target) as lake:
        assert {name: lake.table(".".join(name)).metadata_location for name in before} == before
        assert lake.table("shop.orders").scan().count() == 2
        lake.table("shop.orders").append(pa.table({"id": pa.array([3], pa.int64())}))
        assert lake.table("shop.orders").check().ok
        assert "shop.orders" in lake.view("shop.v").sql
    with open_catalog(target) as catalog:
        assert catalog.load_namespace_properties(("shop", "eu"))["owner"] == "ann"


def test_dry_run_shows_the_same_and_changes_nothing(source: str, target: str, tmp_path: Path) -> None:
    assert set(outcomes(run(source, target, "--dry-run")).values()) == {"to do"}
    assert names(source) == ALL
    assert not (tmp_path / "target" / "catalog.db").exists() or names(target) == []


def test_selected_tables_are_moved_with_their_namespaces(source: str, target: str) -> None:
    run(source, target, "--tables", "shop.eu.*", "--tables", "shop.v")
    assert names(source) == ["plain.t", "shop.orders"]
    assert names(target) == ["shop.eu.orders", "shop.v"]
    wrong = RUNNER.invoke(app, ["catalog", "copy", source, target, "--tables", "shop.ordres"])
    assert wrong.exit_code == 1
    assert "shop.ordres" in wrong.output


def test_kept_names_stay_and_a_second_copy_updates_the_target(source: str, target: str) -> None:
    run(source, target, "--keep")
    assert names(source) == names(target) == ALL
    with frazil.connect(source) as lake:
        lake.table("plain.t").append(pa.table({"id": pa.array([3], pa.int64())}))
    again = outcomes(run(source, target, "--keep"))
    assert again["table", "plain.t"] == "copied"
    assert again["table", "shop.orders"] == "was there"
    with frazil.connect(target) as lake:
        assert lake.table("plain.t").scan().count() == 3


def test_tables_changed_on_both_sides_are_refused_and_the_rest_moves(source: str, target: str) -> None:
    run(source, target, "--keep")
    for place in (source, target):
        with frazil.connect(place) as lake:
            lake.table("plain.t").append(pa.table({"id": pa.array([3], pa.int64())}))
    done = run(source, target, code=1)
    failed = [one for one in done if one["outcome"] == "failed"]
    assert [one["name"] for one in failed] == ["plain.t"]
    assert "both catalogs have changed it" in failed[0]["why"]
    assert names(source) == ["plain.t"]


def test_different_table_with_the_same_name_is_left_unchanged(source: str, target: str) -> None:
    with frazil.connect(target) as lake:
        lake.create_table("plain.t", "other string")
    done = run(source, target, code=1)
    assert "another table" in next(one["why"] for one in done if one["outcome"] == "failed")
    with frazil.connect(target) as lake:
        assert lake.table("plain.t").schema.fields[0].name == "other"
    assert names(source) == ["plain.t"]


def test_catalog_cannot_be_copied_onto_itself(tmp_path: Path, source: str) -> None:
    with served(source) as server:
        for other in (source, server.uri):
            result = RUNNER.invoke(app, ["catalog", "copy", source, other])
            assert result.exit_code == 1
            assert "onto itself" in result.output
    assert names(source) == ALL


@pytest.mark.parametrize("option", ["-w", "--catalog"])
def test_single_lake_options_are_refused(source: str, target: str, option: str) -> None:
    result = RUNNER.invoke(app, ["catalog", "copy", source, target, option, "x"])
    assert result.exit_code == 2
    assert "SRC and DST" in result.output


class Stopping(MemoryCatalog):
    """A catalog whose answers are lost from some call on, as when the copy is killed."""

    calls = 0
    left = 0

    def _count(self) -> None:
        self.calls += 1
        if self.calls > self.left:
            raise ServiceError("Cannot go on: stopped here")

    def unregister_table(self, *given: Any, **named: Any) -> LoadedTable:
        self._count()
        found = super().unregister_table(*given, **named)
        self._count()
        return found

    def drop_view(self, *given: Any) -> None:
        self._count()
        super().drop_view(*given)

    def load_table(self, *given: Any) -> LoadedTable:
        self._count()
        return super().load_table(*given)


def everything(catalog: Catalog) -> set[tuple[str, ...]]:
    return set(catalog.all_tables())


@pytest.mark.parametrize("left", range(14))
def test_interrupted_copy_resumes_when_rerun(left: int) -> None:
    source = Stopping("source")
    target = MemoryCatalog("target", "memory://elsewhere", source.storage)
    source.left = 1000
    wanted = {("db", f"t{at}") for at in range(3)}
    for name in wanted:
        made_table(source, name)
    source.calls, source.left = 0, left
    try:
        list(copy_catalog(source, target))
    except ServiceError:
        pass
    source.left = 1000
    # Where the answer to the last step was lost, the source has no name any more: nobody is without one.
    assert everything(source) | everything(target) == wanted
    done = list(copy_catalog(source, target))
    assert all(one.outcome != "failed" for one in done), done
    assert everything(source) == set()
    assert everything(target) == wanted


class Contended(MemoryCatalog):
    """A catalog in which another writer commits just before a table is unregistered."""

    turns = 2

    def unregister_table(self, identifier: Any, **named: Any) -> LoadedTable:
        if self.turns:
            self.turns -= 1
            set_property(self, self.load_table(identifier), turn=str(self.turns))
        return super().unregister_table(identifier, **named)


def test_concurrent_commit_is_moved_too() -> None:
    source = Contended("source")
    target = MemoryCatalog("target", "memory://elsewhere", source.storage)
    made_table(source)
    done = list(copy_catalog(source, target))
    assert [one.outcome for one in done] == ["copied", "moved"]
    assert target.load_table(("db", "events")).metadata.properties["turn"] == "0"


def test_filesystem_lake_keeps_its_names(tmp_path: Path) -> None:
    source = open_catalog(tmp_path / "files", catalog="filesystem")
    made_table(source)
    target = open_catalog(tmp_path / "target")
    assert [one.outcome for one in copy_catalog(source, target)] == ["copied", "failed"]
    assert [one.outcome for one in copy_catalog(source, target, keep=True)] == ["was there", "was there"]
    with pytest.raises(InvalidRequestError):
        list(copy_catalog(source, target, names=["no.such"]))
