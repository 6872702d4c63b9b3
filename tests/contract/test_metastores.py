"""What catalogs in metastores promise where they differ from others: flat namespaces, names in any case, parameters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from frazil.catalog.base import Catalog
from frazil.catalog.hive.hive_pointers import HiveCatalog
from frazil.catalog.pointers import EntityType
from frazil.errors import (
    InvalidRequestError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    TableAlreadyExistsError,
    UnsupportedError,
)
from frazil.maintenance.purge_files import purge_files
from frazil.spec.view_metadata import SqlRepresentation, ViewVersion
from tests.support import builders
from tests.support.catalog_cases import (
    EVENTS,
    METASTORES,
    CatalogCase,
    committed,
    made_table,
    opened_case,
    set_property,
    setting,
)

pytestmark = pytest.mark.extended
VERSION = ViewVersion(1, 0, 1_700_000_000_000, (SqlRepresentation("select 1", "spark"),), ("db",))
RESERVED = {"location", "comment", "hive.metastore.database.owner", "hive.metastore.database.owner-type"}


def no_database() -> str:
    raise AssertionError("no metastore needs one")


@pytest.fixture(params=METASTORES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CatalogCase]:
    with opened_case(request.param, tmp_path, no_database) as made:
        yield made


@pytest.fixture
def catalog(case: CatalogCase) -> Catalog:
    return case.catalog


def own_namespaces(catalog: Catalog) -> tuple[tuple[str, ...], ...]:
    return tuple(name for name in catalog.list_namespaces() if name != ("default",))


class TestNamespaces:
    def test_namespaces_are_made_listed_and_dropped(self, catalog: Catalog) -> None:
        for name in ("b", "a", "a_1"):
            catalog.create_namespace((name,))
        assert own_namespaces(catalog) == (("a",), ("a_1",), ("b",))
        assert catalog.list_namespaces(("a",)) == ()
        with pytest.raises(NamespaceAlreadyExistsError):
            catalog.create_namespace(("A",))
        catalog.drop_namespace(("b",))
        assert own_namespaces(catalog) == (("a",), ("a_1",))

    def test_only_an_empty_namespace_is_dropped(self, catalog: Catalog) -> None:
        made_table(catalog)
        with pytest.raises(NamespaceNotEmptyError, match=r"db\.events"):
            catalog.drop_namespace(("db",))
        catalog.drop_table(EVENTS, purge=purge_files)
        catalog.drop_namespace(("db",))
        assert not catalog.namespace_exists(("db",))

    @pytest.mark.parametrize("name", [("a", "b"), ("a.b",), ("a b",), ("@hive#a",), ("ä",), ("a/b",), ("..",)])
    def test_invalid_namespace_names_are_refused_and_never_found(self, catalog: Catalog, name: tuple[str, ...]) -> None:
        with pytest.raises(InvalidRequestError, match="Cannot create namespace"):
            catalog.create_namespace(name)
        assert not catalog.namespace_exists(name)
        assert not catalog.table_exists((*name, "t"))
        with pytest.raises(NamespaceNotFoundError):
            catalog.list_tables(name)

    def test_namespace_properties_are_stored_beside_location_and_comment(self, case: CatalogCase) -> None:
        catalog = case.catalog
        catalog.create_namespace(("db",), {"a": "1", "b": "", "owner's": 'x"y%', "comment": "mine"})
        found = case.another().load_namespace_properties(("db",))
        assert {name: value for name, value in found.items() if name not in RESERVED} == {
            "a": "1", "b": "", "owner's": 'x"y%'
        }  # fmt: skip
        assert found["comment"] == "mine"
        assert found["location"] == f"{case.warehouse}/db.db"
        catalog.update_namespace_properties(("db",), {"a": "2", "c": "3"}, ["b", "absent"])
        found = case.another().load_namespace_properties(("db",))
        assert found["comment"] == "mine"
        assert found["location"] == f"{case.warehouse}/db.db"
        assert {name: value for name, value in found.items() if name not in RESERVED} == {
            "a": "2", "c": "3", "owner's": 'x"y%'
        }  # fmt: skip
        with pytest.raises(NamespaceNotFoundError):
            catalog.update_namespace_properties(("no",), {"a": "2"})

    def test_comments_change_if_the_metastore_can_change_them(self, case: CatalogCase) -> None:
        case.catalog.create_namespace(("db",), {"a": "1", "comment": "mine"})
        if isinstance(case.catalog, HiveCatalog):
            # Hive 2.3 keeps what it was given first, and does not say so.
            for updates, removals in (({"comment": "ours", "a": "2"}, []), ({"a": "3"}, ["comment"])):
                with pytest.raises(UnsupportedError, match="keeps it once it is set"):
                    case.catalog.update_namespace_properties(("db",), updates, removals)
            assert case.catalog.load_namespace_properties(("db",)).items() >= {("a", "1"), ("comment", "mine")}
            return
        case.catalog.update_namespace_properties(("db",), {"comment": "ours", "a": "2"})
        assert case.catalog.load_namespace_properties(("db",)).items() >= {("a", "2"), ("comment", "ours")}
        case.catalog.update_namespace_properties(("db",), {"a": "3"}, ["comment"])
        assert "comment" not in case.catalog.load_namespace_properties(("db",))

    def test_table_location_follows_the_namespace_location(self, case: CatalogCase) -> None:
        place = f"{case.warehouse}/elsewhere"
        case.catalog.create_namespace(("db",), {"location": place})
        assert made_table(case.catalog).metadata.location == f"{place}/events"


class TestNames:
    def test_names_are_case_insensitive_and_stored_in_lower_case(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog, ("db", "Events"))
        for name in (("db", "events"), ("DB", "EVENTS")):
            found = case.another().load_table(name)
            assert found.metadata == loaded.metadata
        assert case.catalog.list_tables(("db",)) == (("db", "events"),)
        with pytest.raises(TableAlreadyExistsError):
            case.catalog.create_table(("DB", "EVENTS"), builders.schema())
        changed = committed(set_property(case.catalog, case.catalog.load_table(("DB", "EVENTS")), a="b"))
        assert case.catalog.load_table(EVENTS).metadata == changed.metadata
        case.catalog.rename_table(("DB", "EVENTS"), EVENTS)
        case.catalog.drop_table(("Db", "eventS"), purge=purge_files)
        assert case.catalog.list_tables(("db",)) == ()

    def test_multi_table_commits_are_refused(self, case: CatalogCase) -> None:
        tables = [made_table(case.catalog, ("db", name)) for name in "ab"]
        with pytest.raises(UnsupportedError, match="2 tables at once"):
            case.catalog.commit_many([setting(one, n="1") for one in tables])
        committed(case.catalog.commit_many([setting(tables[0], n="1")]))


class TestDropping:
    def test_unregistering_returns_the_latest_state(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        newer = committed(set_property(case.another(), loaded, a="b"))
        pointers = case.catalog._pointers  # type: ignore[attr-defined]
        assert pointers.drop(EntityType.TABLE, EVENTS, loaded.metadata_location) is None
        assert case.catalog.unregister_table(EVENTS).metadata == newer.metadata
        assert case.catalog.list_tables(("db",)) == ()
