"""Views from a user's side, on every catalog: define, replace, roll back, rename, drop; two who do it at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import frazil
from frazil.codec.view_metadata_json import decode_view_metadata
from frazil.storage.failing import FaultKind
from frazil.table.lake import Lake
from tests.support.catalog_cases import NAMES, CatalogCase, opened_case
from tests.support.postgres_server import postgres_server

__all__ = ["postgres_server"]

QUERY = "select kind, count(*) n from db.events group by kind"


@pytest.fixture(params=[name for name in NAMES if not name.startswith("filesystem")])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CatalogCase]:
    def uri() -> str:
        found: str = request.getfixturevalue("postgres_server").uri
        return found

    with opened_case(request.param, tmp_path, uri) as opened:
        yield opened


@pytest.fixture
def lake(case: CatalogCase) -> Lake:
    return Lake(case.catalog)


def test_view_definition_can_be_loaded_again(lake: Lake, case: CatalogCase) -> None:
    view = lake.create_view("db.v", QUERY, properties={"comment": "by kind"})
    assert lake.list_views("db") == [("db", "v")]
    assert lake.list_tables("db") == []
    assert lake.view_exists("db.v")
    for found in (view, lake.view("db.v"), Lake(case.another()).view("db.v")):
        assert (found.name, found.identifier, found.sql) == ("db.v", ("db", "v"), QUERY)
        assert found.dialects == {"spark"}
        assert found.sql_for("SPARK") == QUERY
        assert found.properties["comment"] == "by kind"
        assert found.current_version.default_namespace == ("db",)
        assert found.current_version.default_catalog is None
        assert list(found.schema) == []
        assert [one.version_id for one in found.history()] == [1]
    location = view.metadata_location
    assert location is not None
    assert location.startswith(view.location)
    assert decode_view_metadata(case.storage.read(location), path=location) == view.metadata


def test_view_has_the_columns_its_creator_declares(lake: Lake) -> None:
    view = lake.create_view("db.v", QUERY, schema="kind string, n bigint not null", default_catalog="other")
    assert [(one.name, str(one.field_type)) for one in view.schema] == [("kind", "string"), ("n", "long")]
    again = view.replace("select 1 one", schema=pa.schema([("one", pa.int32())]), default_namespace="a.b")
    assert [one.name for one in again.schema] == ["one"]
    assert view.current_version.default_namespace == ("a", "b")
    assert len(lake.view("db.v").metadata.schemas) == 2


def test_every_definition_is_a_version_that_can_be_restored(lake: Lake) -> None:
    view = lake.create_view("db.v", "select 1")
    view.replace("select 2")
    view.replace("select 3")
    assert [one.version_id for one in view.versions] == [1, 2, 3]
    assert lake.view("db.v").sql == "select 3"
    view.rollback_to(1)
    assert (view.sql, view.current_version.version_id) == ("select 1", 1)
    view.replace("select 2")
    assert view.current_version.version_id == 2, "a definition that is there already is that version"
    assert [one.version_id for one in view.history()] == [1, 2, 3, 1, 2]
    times = [one.timestamp_ms for one in view.history()]
    assert times == sorted(times)
    before = view.metadata_location
    view.replace("select 2")
    assert view.metadata_location == before, "nothing new commits nothing"
    with pytest.raises(frazil.NotFoundError, match="no such version"):
        view.rollback_to(9)


def test_dialect_is_not_dropped_by_accident(lake: Lake) -> None:
    view = lake.create_view("db.v", {"spark": "select 1", "trino": "SELECT 1"})
    assert view.dialects == {"spark", "trino"}
    assert view.sql_for("trino") == "SELECT 1"
    with pytest.raises(frazil.NotFoundError, match="no query for it"):
        view.sql_for("duckdb")
    with pytest.raises(frazil.InvalidRequestError, match="would lose the SQL dialects trino"):
        view.replace("select 2")
    assert lake.view("db.v").sql == "select 1"
    view.replace({"trino": "SELECT 2", "spark": "select 2", "duckdb": "SELECT 2"})
    assert view.dialects == {"spark", "trino", "duckdb"}
    view.set_properties({"replace.drop-dialect.allowed": "true"})
    view.replace("SELECT 3", dialect="trino")
    assert view.dialects == {"trino"}
    assert view.sql == "SELECT 3", "the only query there is"


def test_versions_beyond_the_limit_expire(lake: Lake) -> None:
    view = lake.create_view("db.v", "select 0", properties={"version.history.num-entries": "3"})
    for at in range(1, 8):
        view.replace(f"select {at}")
    assert [one.sql_representations[0].sql for one in view.versions] == ["select 5", "select 6", "select 7"]
    assert {one.version_id for one in view.history()} == {one.version_id for one in view.versions}
    with pytest.raises(frazil.InvalidPropertyError):
        view.set_properties({"version.history.num-entries": "0"})


def test_view_properties_are_set_and_removed(lake: Lake) -> None:
    view = lake.create_view("db.v", "select 1", properties={"a": "1", "b": "2"})
    view.set_properties({"b": "3", "c": "4"}).remove_properties(["a", "never-set"])
    assert dict(lake.view("db.v").properties) == {"b": "3", "c": "4"}
    view.replace("select 2", properties={"d": "5"})
    assert dict(view.properties) == {"b": "3", "c": "4", "d": "5"}


def test_views_are_replaced_or_kept_as_requested(lake: Lake) -> None:
    lake.create_view("db.v", "select 1")
    with pytest.raises(frazil.ViewAlreadyExistsError):
        lake.create_view("db.v", "select 2")
    assert lake.create_view("db.v", "select 2", exist_ok=True).sql == "select 1"
    assert lake.create_view("db.v", "select 2", replaces=True).sql == "select 2"
    assert len(lake.view("db.v").versions) == 2
    assert lake.create_view("db.w", "select 3", replaces=True).sql == "select 3"


def test_views_and_tables_share_one_set_of_names(lake: Lake) -> None:
    lake.create_table("db.t", "id bigint")
    lake.create_view("db.v", "select 1")
    with pytest.raises(frazil.TableAlreadyExistsError):
        lake.create_view("db.t", "select 1")
    with pytest.raises(frazil.ViewAlreadyExistsError):
        lake.create_table("db.v", "id bigint")
    with pytest.raises(frazil.ViewNotFoundError):
        lake.view("db.t")
    with pytest.raises(frazil.TableNotFoundError):
        lake.table("db.v")
    with pytest.raises(frazil.AlreadyExistsError):
        lake.rename_view("db.v", "db.t")


def test_views_are_renamed_and_dropped(lake: Lake) -> None:
    view = lake.create_view("db.v", "select 1")
    lake.rename_view("db.v", "db.w")
    assert lake.list_views("db") == [("db", "w")]
    assert lake.view("db.w").metadata == view.metadata
    with pytest.raises(frazil.ViewNotFoundError):
        view.refresh()
    lake.drop_view("db.w")
    assert not lake.view_exists("db.w")
    with pytest.raises(frazil.ViewNotFoundError):
        lake.drop_view("db.w")


def test_recreated_view_is_a_different_view(lake: Lake) -> None:
    view = lake.create_view("db.v", "select 1")
    lake.drop_view("db.v")
    lake.create_view("db.v", "select 2")
    with pytest.raises(frazil.InvalidRequestError, match="UUID"):
        view.replace("select 3")
    assert lake.view("db.v").sql == "select 2"


def test_concurrent_view_replacements_are_both_in_the_history(lake: Lake, case: CatalogCase) -> None:
    first = lake.create_view("db.v", "select 1")
    second = Lake(case.another()).view("db.v")
    second.replace("select 2")
    first.replace("select 3")
    assert [one.sql_representations[0].sql for one in first.versions] == ["select 1", "select 2", "select 3"]
    assert second.refresh().sql == "select 3"


def test_view_change_with_a_lost_response_is_found(lake: Lake, case: CatalogCase) -> None:
    if not case.is_sql:
        pytest.skip("only databases lose answers")
    lake.create_view("db.v", "select 1")
    faulty = case.another(faults={})
    view = Lake(faulty).view("db.v")
    database = faulty._pointers._database  # type: ignore[attr-defined]
    # A change reads the view, then a swap is one read and the transaction.
    database.faults[len(database.calls) + 3] = FaultKind.APPLIED_BUT_ERROR
    view.replace("select 2")
    assert view.sql == "select 2"
    assert lake.view("db.v").sql == "select 2"
    assert len(lake.view("db.v").versions) == 2


@pytest.mark.parametrize("sql", ["", "  ", {}, {"spark": ""}, {"": "select 1"}, {"a": "x", "A": "y"}])
def test_view_without_a_query_is_refused(lake: Lake, sql: object) -> None:
    with pytest.raises(frazil.InvalidRequestError, match="view"):
        lake.create_view("db.v", sql)  # type: ignore[arg-type]
    assert not lake.view_exists("db.v")


def test_filesystem_catalog_reports_that_it_has_no_views(tmp_path: Path) -> None:
    with frazil.connect(tmp_path, catalog="filesystem") as lake:
        with pytest.raises(frazil.UnsupportedError, match="views"):
            lake.create_view("db.v", "select 1")
        with pytest.raises(frazil.UnsupportedError, match="views"):
            lake.rename_view("db.v", "db.w")
        with pytest.raises(frazil.ViewNotFoundError):
            lake.view("db.v")
        assert lake.list_views("db") == []
