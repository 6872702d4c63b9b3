"""What every catalog promises (`frazil/catalog/base.py`). Add new catalogs to `tests/support/catalog_cases.py`."""

from __future__ import annotations

import json
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from frazil.catalog.base import Catalog
from frazil.catalog.change import TableChange
from frazil.catalog.memory import MemoryCatalog
from frazil.catalog.outcomes import Committed, Rejected, Unknown
from frazil.catalog.pointers import EntityType, PointerChange
from frazil.changes.apply import apply_updates
from frazil.changes.requirements import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertRefSnapshotId,
    AssertTableUuid,
    AssertViewUuid,
    TableRequirement,
)
from frazil.changes.updates import (
    AddSnapshot,
    AddViewVersion,
    AssignUuid,
    RemoveSnapshots,
    SetCurrentViewVersion,
    SetLocation,
    SetProperties,
    SetSnapshotRef,
    UpgradeFormatVersion,
    ViewUpdate,
)
from frazil.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    FrazilError,
    InvalidMetadataError,
    InvalidRequestError,
    MissingFileError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NamespaceNotFoundError,
    StorageError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
    ViewAlreadyExistsError,
    ViewNotFoundError,
)
from frazil.loaded import LoadedTable
from frazil.maintenance.purge_files import purge_files
from frazil.spec.frozen_map import FrozenMap
from frazil.spec.partitioning import build_partition_spec
from frazil.spec.snapshot import SnapshotRef
from frazil.spec.sorting import build_sort_order
from frazil.spec.view_metadata import SqlRepresentation, ViewVersion
from frazil.storage.failing import FailingStorage, Fault, FaultKind, SimulatedCrash
from frazil.storage.memory import MemoryStorage
from tests.support import builders
from tests.support.catalog_cases import (
    EVENTS,
    METASTORES,
    NAMES,
    SERVICE_VARIABLE,
    CatalogCase,
    commit,
    committed,
    failing_database,
    made_table,
    opened_case,
    rejected,
    service_differences,
    set_property,
    set_property_until_it_works,
    setting,
    write_snapshot,
)
from tests.support.postgres_server import postgres_server

__all__ = ["postgres_server"]

VERSION = ViewVersion(1, 0, 1_700_000_000_000, (SqlRepresentation("select 1", "spark"),), ("db",))
AWKWARD = [
    "plain", "with space", "UPPER", "upper", "a'b", 'a"b', "a;b", "drop table x;--", "a%b", "a_b", "%", "_", "ü",
    "日本", "😀", "a\u0301", "a`b", "a:b", "a=b", "a#b", "a?b", "%2e%2e", "x" * 100, "v1.metadata.json",
    "metadata", "-", "~",
]  # fmt: skip


NOT_OF_SERVICES = {
    # A service makes a change on the state it has, where the requirements hold there: it does not compare states.
    "test_stale_commit_is_rejected_and_leaves_no_files",
    "test_one_of_several_commits_from_the_same_state_succeeds",
    "test_multi_table_commit_is_atomic",
    "test_pointer_moved_at_the_last_moment_aborts_the_multi_table_commit",
    # Where files go, what may be registered, moved and purged, and what is checked first, is the service's to say.
    "test_table_is_created_as_requested",
    "test_dropped_table_is_gone_and_its_files_remain",
    "test_dropped_name_can_be_reused",
    "test_staged_table_in_a_dropped_namespace_is_not_created",
    "test_invalid_updates_are_refused",
    "test_new_table_does_not_share_the_folder_of_a_renamed_one",
    "test_registering_over_a_table_rejects_commits_based_on_the_old_one",
    "test_registering_a_file_that_is_not_metadata_is_refused",
    "test_registered_table_of_another_tool_continues_its_numbering",
    "test_metadata_location_is_available_without_reading_metadata",
    "test_missing_metadata_file_is_reported_by_the_catalog",
    "test_table_with_lost_metadata_can_be_dropped_but_not_purged",
    "test_view_metadata_file_is_registered_as_a_view",
    "test_view_cannot_be_replaced_by_a_table",
    "test_catalog_is_not_picklable_and_its_repr_shows_its_location",
    "test_table_is_relocated_if_the_catalog_supports_it",
}
NOT_OF_ALL_SERVICES = {
    # Java's own has no transaction over several tables, and cannot find names again that it took.
    "test_overlapping_transactions_do_not_deadlock",
    "test_table_is_created_together_with_changes_to_others",
    "test_any_printable_character_is_allowed_in_names",
    "test_names_differing_in_case_or_normalization_are_distinct",
    "test_names_with_a_common_prefix_are_distinct",
    "test_names_cannot_escape_the_warehouse",
}
NOT_OF_METASTORES = {
    # Namespaces have one level, and names are in lower case: tests/contract/test_metastores.py.
    "test_namespaces_are_created_listed_and_dropped",
    "test_creating_a_namespace_creates_its_parents",
    "test_only_an_empty_namespace_is_dropped",
    "test_namespace_properties_are_stored",
    "test_names_with_a_common_prefix_are_distinct",
    "test_any_printable_character_is_allowed_in_names",
    "test_names_differing_in_case_or_normalization_are_distinct",
    "test_names_cannot_escape_the_warehouse",
    "test_tables_are_listed_in_name_order",
    # A metastore moves one pointer at a time.
    "test_multi_table_commit_is_atomic",
    "test_pointer_moved_at_the_last_moment_aborts_the_multi_table_commit",
    "test_table_is_created_together_with_changes_to_others",
    "test_overlapping_transactions_do_not_deadlock",
}


@pytest.fixture(params=[*NAMES, *(pytest.param(name, marks=pytest.mark.extended) for name in METASTORES)])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CatalogCase]:
    # Never asked of a service elsewhere: what a hostile table names there is not ours to risk.
    is_purge = request.param == "rest-elsewhere" and request.cls is not None and request.cls.__name__ == "TestPurging"
    left_out = {"rest": NOT_OF_SERVICES, "rest-elsewhere": NOT_OF_SERVICES | NOT_OF_ALL_SERVICES}.get(request.param)
    if left_out is not None and (is_purge or request.node.originalname in left_out):
        pytest.skip("a service decides this by itself")
    if request.param in METASTORES and request.node.originalname in NOT_OF_METASTORES:
        pytest.skip("a metastore has no such names, or no transactions")
    if request.param == "rest-elsewhere":
        kind = json.loads(os.environ[SERVICE_VARIABLE])["kind"]
        known = service_differences(kind, "contract").get(request.node.originalname)
        if known is not None:
            request.applymarker(pytest.mark.xfail(reason=known, strict=True))

    def postgres_uri() -> str:
        uri: str = request.getfixturevalue("postgres_server").uri
        return uri

    with opened_case(request.param, tmp_path, postgres_uri) as made:
        yield made


@pytest.fixture
def catalog(case: CatalogCase) -> Catalog:
    return case.catalog


def in_threads(count: int, act: Callable[[int], Any]) -> list[Any]:
    """Run something at once in several threads; return what each returned or raised."""
    barrier = threading.Barrier(count)

    def run(at: int) -> Any:
        barrier.wait()
        try:
            return act(at)
        except FrazilError as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def every_file(case: CatalogCase) -> set[str]:
    return {one.path for one in case.storage.list(case.warehouse)}


class TestNamespaces:
    def test_namespaces_are_created_listed_and_dropped(self, catalog: Catalog) -> None:
        assert catalog.list_namespaces() == ()
        for namespace in (("b",), ("a",), ("a", "y"), ("a", "x"), ("a", "x", "deep")):
            assert not catalog.namespace_exists(namespace)
            catalog.create_namespace(namespace)
            assert catalog.namespace_exists(namespace)
        assert catalog.list_namespaces() == (("a",), ("b",))
        assert catalog.list_namespaces(("a",)) == (("a", "x"), ("a", "y"))
        assert catalog.list_namespaces(("a", "y")) == ()
        catalog.drop_namespace(("b",))
        assert catalog.list_namespaces() == (("a",),)
        assert not catalog.namespace_exists(("b",))

    def test_namespace_is_created_once(self, catalog: Catalog) -> None:
        catalog.create_namespace(("db",))
        with pytest.raises(NamespaceAlreadyExistsError, match="db"):
            catalog.create_namespace(("db",))

    def test_creating_a_namespace_creates_its_parents(self, catalog: Catalog) -> None:
        catalog.create_namespace(("a", "b", "c"))
        assert catalog.namespace_exists(("a",))
        assert catalog.list_namespaces() == (("a",),)
        with pytest.raises(NamespaceAlreadyExistsError):
            catalog.create_namespace(("a", "b"))

    def test_error_names_the_missing_namespace(self, catalog: Catalog) -> None:
        for act in (
            catalog.drop_namespace,
            catalog.list_namespaces,
            catalog.list_tables,
            catalog.list_views,
            catalog.load_namespace_properties,
        ):
            with pytest.raises(NamespaceNotFoundError, match=r"no\.such"):
                act(("no", "such"))
        with pytest.raises(NamespaceNotFoundError):
            catalog.create_table(("no", "t"), builders.schema())

    def test_only_an_empty_namespace_is_dropped(self, catalog: Catalog) -> None:
        catalog.create_namespace(("a", "b"))
        with pytest.raises(NamespaceNotEmptyError, match="not empty"):
            catalog.drop_namespace(("a",))
        made_table(catalog, ("a", "b", "t"))
        with pytest.raises(NamespaceNotEmptyError, match="not empty"):
            catalog.drop_namespace(("a", "b"))
        catalog.drop_table(("a", "b", "t"), purge=purge_files)
        catalog.drop_namespace(("a", "b"))
        assert not catalog.namespace_exists(("a", "b"))

    def test_one_of_several_racing_namespace_creations_succeeds(self, case: CatalogCase) -> None:
        handles = [case.another() for _ in range(8)]
        results = in_threads(8, lambda at: handles[at].create_namespace(("db",)))
        assert results.count(None) == 1
        assert all(isinstance(one, NamespaceAlreadyExistsError) for one in results if one is not None)

    def test_namespace_properties_are_stored(self, case: CatalogCase) -> None:
        catalog = case.catalog
        if case.is_filesystem:
            with pytest.raises(UnsupportedError, match="properties"):
                catalog.create_namespace(("db",), {"a": "b"})
            catalog.create_namespace(("db",))
            assert catalog.load_namespace_properties(("db",)) == {}
            with pytest.raises(UnsupportedError, match="properties"):
                catalog.update_namespace_properties(("db",), {"a": "b"})
            return
        catalog.create_namespace(("db",), {"a": "1", "b": "", "owner's": 'x"y%'})
        other = case.another()
        assert other.load_namespace_properties(("db",)) == {"a": "1", "b": "", "owner's": 'x"y%'}
        other.update_namespace_properties(("db",), {"a": "2", "c": "3"}, ["b", "absent"])
        assert catalog.load_namespace_properties(("db",)) == {"a": "2", "c": "3", "owner's": 'x"y%'}
        other.update_namespace_properties(("db",), {}, ["a", "c", "owner's"])
        assert catalog.load_namespace_properties(("db",)) == {}
        assert catalog.namespace_exists(("db",))
        with pytest.raises(InvalidRequestError, match="both"):
            catalog.update_namespace_properties(("db",), {"a": "2"}, ["a"])
        with pytest.raises(NamespaceNotFoundError):
            catalog.update_namespace_properties(("no",), {"a": "2"})

    def test_names_with_a_common_prefix_are_distinct(self, catalog: Catalog) -> None:
        for namespace in (("a",), ("ab",), ("a_",), ("a%",), ("A",), ("a", "b")):
            if namespace == ("A",) and isinstance(catalog.storage, MemoryStorage) is False:
                continue
            catalog.create_namespace(namespace)
        assert catalog.list_namespaces(("a",)) == (("a", "b"),)
        for namespace in (("ab",), ("a_",), ("a%",)):
            assert catalog.list_namespaces(namespace) == ()
            catalog.drop_namespace(namespace)
        assert catalog.namespace_exists(("a", "b"))
        assert not catalog.namespace_exists(("a", "B"))


class TestNames:
    @pytest.mark.parametrize("name", AWKWARD)
    def test_any_printable_character_is_allowed_in_names(self, catalog: Catalog, name: str) -> None:
        identifier = (name if "." not in name else "db", name)
        loaded = made_table(catalog, identifier)
        assert catalog.list_namespaces() == (identifier[:1],)
        assert catalog.list_tables(identifier[:1]) == (identifier,)
        assert catalog.load_table(identifier).metadata.table_uuid == loaded.metadata.table_uuid
        changed = committed(set_property(catalog, loaded, a="b"))
        assert catalog.load_table(identifier).metadata == changed.metadata
        catalog.drop_table(identifier)
        assert catalog.list_tables(identifier[:1]) == ()

    def test_names_differing_in_case_or_normalization_are_distinct(self, case: CatalogCase) -> None:
        names = ["t", "T", "t ", "t_", "t%", "ä", "a\u0308"]
        for name in names:
            made_table(case.catalog, ("db", name), properties={"name": name})
        assert case.catalog.list_tables(("db",)) == tuple(sorted(("db", name) for name in names))
        for name in names:
            assert case.catalog.load_table(("db", name)).metadata.properties["name"] == name

    @pytest.mark.parametrize(
        "identifier",
        [(), ("t",), ("db", ""), ("", "t"), ("db", "a\0b"), ("d\0b", "t"), ("db", "\ud800"), ("db", "x" * 256),
         ("db", 5), "db.t", None],
    )  # fmt: skip
    def test_invalid_table_names_are_refused(self, catalog: Catalog, identifier: Any) -> None:
        catalog.create_namespace(("db",))
        for act in (
            catalog.load_table,
            catalog.drop_table,
            catalog.table_exists,
            lambda one: catalog.create_table(one, builders.schema()),
        ):
            with pytest.raises(InvalidRequestError, match="Cannot use"):
                act(identifier)

    @pytest.mark.parametrize("namespace", [(), ("",), ("a", ""), ("a\0",), "a", ("\udfff",), (None,)])
    def test_invalid_namespaces_are_refused(self, catalog: Catalog, namespace: Any) -> None:
        for act in (catalog.create_namespace, catalog.drop_namespace, catalog.list_tables):
            with pytest.raises(InvalidRequestError, match="Cannot use"):
                act(namespace)

    @pytest.mark.parametrize("name", ["..", ".", "a/b", "/", "../../etc", "a\\b", "a\nb", "\x7f"])
    def test_names_cannot_escape_the_warehouse(self, case: CatalogCase, name: str) -> None:
        case.catalog.create_namespace(("db",))
        if case.is_service and name in (".", ".."):
            for act in (case.catalog.load_table, case.catalog.drop_table, case.catalog.table_exists):
                with pytest.raises(InvalidRequestError, match="relative path segment"):
                    act(("db", name))
            with pytest.raises(InvalidRequestError, match="relative path segment"):
                case.catalog.drop_namespace((name,))
            return
        if case.is_service and "\n" in name:
            return
        if case.is_filesystem:
            for identifier in (("db", name), (name, "t")):
                with pytest.raises(InvalidRequestError, match="folder names"):
                    case.catalog.create_table(identifier, builders.schema())
            with pytest.raises(InvalidRequestError, match="folder names"):
                case.catalog.create_namespace((name,))
            return
        loaded = made_table(case.catalog, ("db", name))
        below = loaded.metadata.location.removeprefix(f"{case.warehouse}/db/")
        assert "/" not in below
        assert below not in ("", ".", "..")
        assert case.catalog.load_table(("db", name)).metadata == loaded.metadata


class TestTables:
    def test_table_is_created_as_requested(self, case: CatalogCase) -> None:
        catalog = case.catalog
        schema = builders.schema()
        loaded = made_table(
            catalog,
            spec=build_partition_spec(schema, ["day(ts)"]),
            sort_order=build_sort_order(schema, ["id desc"]),
            properties={"owner": "me"},
            format_version=3,
        )
        again = case.another().load_table(EVENTS)
        assert again.metadata == loaded.metadata
        assert again.metadata_location == loaded.metadata_location
        assert again.identifier == EVENTS
        assert (again.metadata.format_version, again.metadata.properties["owner"]) == (3, "me")
        assert again.metadata.default_spec.fields[0].name == "ts_day"
        assert again.metadata.location == f"{case.warehouse}/db/events"
        assert case.storage.exists(loaded.metadata_location or "")

    def test_a_loaded_table_can_be_pickled(self, case: CatalogCase) -> None:
        if not isinstance(case.storage, MemoryStorage):
            loaded = made_table(case.catalog)
            back = pickle.loads(pickle.dumps(loaded))
            assert back.metadata == loaded.metadata

    def test_tables_are_listed_in_name_order(self, catalog: Catalog) -> None:
        catalog.create_namespace(("db",))
        catalog.create_namespace(("db", "sub"))
        for name in ("c", "a", "b"):
            made_table(catalog, ("db", name))
        made_table(catalog, ("db", "sub", "d"))
        assert catalog.list_tables(("db",)) == (("db", "a"), ("db", "b"), ("db", "c"))
        assert catalog.list_tables(("db", "sub")) == (("db", "sub", "d"),)
        assert catalog.list_namespaces(("db",)) == (("db", "sub"),)

    def test_error_names_the_missing_table(self, catalog: Catalog) -> None:
        catalog.create_namespace(("db",))
        for identifier in (("db", "none"), ("no", "none")):
            assert not catalog.table_exists(identifier)
            for act in (catalog.load_table, catalog.drop_table, lambda one: catalog.drop_table(one, purge=purge_files)):
                with pytest.raises(TableNotFoundError, match="none"):
                    act(identifier)

    def test_existing_table_name_is_refused(self, catalog: Catalog) -> None:
        first = made_table(catalog)
        with pytest.raises(TableAlreadyExistsError, match=r"db\.events"):
            catalog.create_table(EVENTS, builders.schema())
        assert catalog.load_table(EVENTS).metadata == first.metadata

    @pytest.mark.parametrize("turn", range(3))
    def test_one_of_several_racing_table_creations_succeeds(self, case: CatalogCase, turn: int) -> None:
        case.catalog.create_namespace(("db",))
        handles = [case.another() for _ in range(8)]
        results = in_threads(8, lambda at: made_table(handles[at]))
        winners = [one for one in results if isinstance(one, LoadedTable)]
        assert len(winners) == 1, results
        assert all(isinstance(one, TableAlreadyExistsError) for one in results if one not in winners)
        assert case.catalog.load_table(EVENTS).metadata.table_uuid == winners[0].metadata.table_uuid

    def test_staged_table_is_created_with_its_changes(self, case: CatalogCase) -> None:
        catalog = case.catalog
        catalog.create_namespace(("db",))
        staged = catalog.stage_table(EVENTS, builders.schema())
        assert staged.metadata_location is None
        assert not catalog.table_exists(EVENTS)
        loaded = committed(set_property(catalog, staged, a="b"))
        assert catalog.load_table(EVENTS).metadata == loaded.metadata
        assert loaded.metadata.metadata_log == ()
        if case.is_service:
            # To a service that knows the table by its UUID, this is the same creation once more.
            catalog.drop_table(EVENTS)
            made_table(catalog)
        late = rejected(set_property(catalog, staged, a="c"))
        assert isinstance(late.reason, TableAlreadyExistsError)
        assert case.is_service or late.current_location == loaded.metadata_location

    def test_staged_table_in_a_dropped_namespace_is_not_created(self, case: CatalogCase) -> None:
        case.catalog.create_namespace(("db",))
        staged = case.catalog.stage_table(EVENTS, builders.schema())
        case.catalog.drop_namespace(("db",))
        with pytest.raises(NamespaceNotFoundError):
            case.catalog.commit(staged, ())
        assert every_file(case) == set()

    def test_dropped_table_is_gone_and_its_files_remain(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        data = f"{loaded.metadata.location}/data/f.parquet"
        case.storage.create(data, b"rows")
        case.catalog.drop_table(EVENTS)
        assert not case.another().table_exists(EVENTS)
        assert case.catalog.list_tables(("db",)) == ()
        assert case.catalog.list_namespaces(("db",)) == ()
        assert case.storage.exists(data)
        assert case.storage.exists(loaded.metadata_location or "") != case.is_filesystem

    def test_dropped_name_can_be_reused(self, case: CatalogCase) -> None:
        first = made_table(case.catalog)
        case.storage.create(f"{first.metadata.location}/data/f.parquet", b"rows")
        case.catalog.drop_table(EVENTS)
        second = made_table(case.catalog)
        assert second.metadata.table_uuid != first.metadata.table_uuid
        # No two tables share a folder, where there is a choice.
        assert (second.metadata.location == first.metadata.location) == case.is_filesystem
        assert case.catalog.load_table(EVENTS).metadata == second.metadata


class TestCommits:
    def test_commit_moves_the_table_to_the_new_state(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        changed = committed(set_property(case.catalog, loaded, a="b"))
        assert changed.metadata_location != loaded.metadata_location
        found = case.another().load_table(EVENTS)
        assert found.metadata == changed.metadata
        assert found.metadata.properties["a"] == "b"
        assert [one.metadata_file for one in found.metadata.metadata_log] == [loaded.metadata_location]
        assert case.catalog.refresh(loaded).metadata == found.metadata

    def test_commit_without_changes_writes_nothing(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        before = every_file(case)
        assert committed(case.catalog.commit(loaded, ())) is loaded
        assert every_file(case) == before

    def test_stale_commit_is_rejected_and_leaves_no_files(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        first = committed(set_property(case.catalog, loaded, a="first"))
        before = every_file(case)
        late = rejected(set_property(case.another(), loaded, a="second"))
        assert isinstance(late.reason, CommitConflictError)
        assert late.reason.retryable
        assert late.current_location == first.metadata_location
        assert every_file(case) == before
        assert case.catalog.load_table(EVENTS).metadata == first.metadata

    @pytest.mark.parametrize("turn", range(3))
    def test_one_of_several_commits_from_the_same_state_succeeds(self, case: CatalogCase, turn: int) -> None:
        base = made_table(case.catalog)
        handles = [case.another() for _ in range(8)]
        results = in_threads(8, lambda at: set_property(handles[at], base, winner=str(at)))
        winners = [at for at, one in enumerate(results) if isinstance(one, Committed)]
        assert len(winners) == 1, results
        for one in results:
            assert isinstance(one, Committed) or isinstance(rejected(one).reason, CommitConflictError)
        assert case.catalog.load_table(EVENTS).metadata.properties["winner"] == str(winners[0])

    @pytest.mark.extended
    def test_no_commit_is_lost_under_contention(self, case: CatalogCase) -> None:
        made_table(case.catalog)
        writers, commits = 8, 25
        handles = [case.another() for _ in range(writers)]

        def write(writer: int) -> None:
            for at in range(commits):
                set_property_until_it_works(handles[writer], EVENTS, **{f"w{writer}-{at}": "done"})

        assert in_threads(writers, write) == [None] * writers
        table = case.catalog.load_table(EVENTS).metadata
        wanted = {f"w{writer}-{at}" for writer in range(writers) for at in range(commits)}
        assert wanted <= table.properties.keys()
        assert len(table.metadata_log) == 100
        files = {one.metadata_file for one in table.metadata_log}
        assert len(files) == 100

    def test_commit_to_a_dropped_table_is_refused(self, catalog: Catalog) -> None:
        loaded = made_table(catalog)
        catalog.drop_table(EVENTS)
        late = rejected(set_property(catalog, loaded, a="b"))
        assert isinstance(late.reason, TableNotFoundError)
        assert late.current_location is None
        assert not catalog.table_exists(EVENTS)

    def test_recreated_table_is_a_different_table(self, case: CatalogCase) -> None:
        old = made_table(case.catalog)
        handle = case.another()
        case.catalog.drop_table(EVENTS)
        new = made_table(case.catalog)
        late = rejected(set_property(handle, old, a="b"))
        assert isinstance(late.reason, CommitConflictError)
        with pytest.raises(TableNotFoundError, match=r"any more: its UUID was"):
            handle.refresh(old)
        assert handle.load_table(EVENTS).metadata == new.metadata

    def test_invalid_updates_are_refused(self, catalog: Catalog) -> None:
        loaded = made_table(catalog)
        for update, message in (
            (AssignUuid("00000000-0000-0000-0000-000000000007"), "UUID"),
            (UpgradeFormatVersion(1), "version"),
            (AddViewVersion(VERSION), "AddViewVersion"),
        ):
            with pytest.raises(InvalidRequestError, match=message):
                catalog.commit(loaded, [update])  # type: ignore[list-item]
        assert catalog.load_table(EVENTS).metadata == loaded.metadata

    def test_update_is_applied_only_if_its_requirements_hold(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        before = every_file(case)
        change = [SetProperties(FrozenMap({"a": "b"}))]
        wrong_ones: list[TableRequirement] = [
            AssertTableUuid("00000000-0000-0000-0000-000000000007"),
            AssertRefSnapshotId("main", 7),
            AssertCurrentSchemaId(7),
            AssertCreate(),
        ]
        for wrong in wrong_ones:
            with pytest.raises(CommitConflictError):
                case.catalog.settle(case.catalog.commit(loaded, change, [wrong]))
        assert every_file(case) == before
        right: list[TableRequirement] = [
            AssertTableUuid(loaded.metadata.table_uuid or ""),
            AssertRefSnapshotId("main", None),
        ]
        assert committed(case.catalog.commit(loaded, change, right)).metadata.properties["a"] == "b"

    def test_creation_is_applied_only_if_its_requirements_hold(self, case: CatalogCase) -> None:
        case.catalog.create_namespace(("db",))
        staged = case.catalog.stage_table(EVENTS, builders.schema())
        with pytest.raises(CommitConflictError):
            case.catalog.settle(case.catalog.commit(staged, (), [AssertTableUuid(staged.metadata.table_uuid or "")]))
        assert not case.catalog.table_exists(EVENTS)
        committed(case.catalog.commit(staged, (), [AssertCreate()]))

    def test_long_chain_of_commits_is_readable(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        for at in range(12):
            loaded = committed(set_property(case.catalog, loaded, at=str(at)))
        assert case.another().load_table(EVENTS).metadata == loaded.metadata
        assert len(loaded.metadata.metadata_log) == 12

    @pytest.mark.parametrize("codec", ["none", "gzip"])
    def test_metadata_is_readable_with_either_codec(self, case: CatalogCase, codec: str) -> None:
        loaded = made_table(case.catalog, properties={"write.metadata.compression-codec": codec})
        changed = committed(set_property(case.catalog, loaded, a="b"))
        assert case.another().load_table(EVENTS).metadata == changed.metadata
        is_gzip = case.storage.read(changed.metadata_location or "").startswith(b"\x1f\x8b")
        assert is_gzip == (codec == "gzip" and not case.is_filesystem)
        assert (".gz.metadata.json" in (changed.metadata_location or "")) == is_gzip

    def test_old_metadata_files_are_deleted_if_requested(self, case: CatalogCase) -> None:
        limit = {"write.metadata.previous-versions-max": "2"}
        kept = made_table(case.catalog, ("db", "kept"), properties=limit)
        asked = {**limit, "write.metadata.delete-after-commit.enabled": "true"}
        forgets = made_table(case.catalog, ("db", "forgets"), properties=asked)
        states: dict[str, list[str]] = {"kept": [], "forgets": []}
        for at in range(6):
            kept = committed(set_property(case.catalog, kept, at=str(at)))
            forgets = committed(set_property(case.catalog, forgets, at=str(at)))
            states["kept"].append(kept.metadata_location or "")
            states["forgets"].append(forgets.metadata_location or "")
        assert all(case.storage.exists(one) for one in states["kept"])
        gone, left = states["forgets"][:-3], states["forgets"][-3:]
        assert all(case.storage.size(one) > 0 for one in left)
        for one in gone:
            assert not case.storage.exists(one) or case.storage.size(one) == 0
        assert case.another().load_table(("db", "forgets")).metadata == forgets.metadata

    def test_unusable_property_does_not_undo_a_commit(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        odd = {"write.metadata.delete-after-commit.enabled": "perhaps", "write.folder-storage.path": "x"}
        changed = committed(set_property(case.catalog, loaded, **odd))
        assert case.catalog.load_table(EVENTS).metadata == changed.metadata

    def test_hostile_metadata_log_causes_no_other_deletions(self, case: CatalogCase) -> None:
        victim = f"{case.warehouse}/precious.txt"
        inside = f"{case.warehouse}/db/events/data/f.parquet"
        asked = {"write.metadata.previous-versions-max": "1", "write.metadata.delete-after-commit.enabled": "true"}
        loaded = made_table(case.catalog, properties=asked)
        for path in (victim, inside):
            case.storage.create(path, b"data")
        base = apply_updates(
            loaded.metadata,
            [SetProperties(FrozenMap({"a": "1"}))],
            now_ms=case.catalog.now_ms(),
            base_location=victim,
        )
        lying = LoadedTable(EVENTS, base, loaded.metadata_location, case.storage)
        committed(set_property(case.catalog, lying, b="2"))
        assert case.storage.read(victim) == b"data"


class TestSeveralTables:
    def test_multi_table_commit_is_atomic(self, case: CatalogCase) -> None:
        catalog = case.catalog
        tables = [made_table(catalog, ("db", name)) for name in ("b", "a", "c")]
        changes = [setting(one, n="1") for one in tables]
        if case.is_filesystem:
            with pytest.raises(UnsupportedError, match="3 tables"):
                catalog.commit_many(changes)
            committed(catalog.commit_many(changes[:1]))
            return
        outcome = catalog.commit_many(changes)
        assert isinstance(outcome, Committed)
        assert [one.identifier for one in outcome.all_loaded] == [one.identifier for one in tables]
        for one in outcome.all_loaded:
            assert case.another().load_table(one.identifier).metadata == one.metadata
        moved = committed(set_property(catalog, outcome.all_loaded[2], n="2"))
        before = every_file(case)
        late = rejected(catalog.commit_many([setting(one, n="3") for one in outcome.all_loaded]))
        assert isinstance(late.reason, CommitConflictError)
        assert late.current_location == moved.metadata_location
        assert [catalog.load_table(one.identifier).metadata.properties["n"] for one in tables] == ["1", "1", "2"]
        assert every_file(case) == before

    @pytest.mark.parametrize("at", [0, 1, 2])
    def test_pointer_moved_at_the_last_moment_aborts_the_multi_table_commit(self, case: CatalogCase, at: int) -> None:
        if case.is_filesystem:
            return
        tables = [made_table(case.catalog, ("db", name)) for name in "abc"]
        pointers = case.catalog._pointers  # type: ignore[attr-defined]
        expected = [one.metadata_location for one in tables]
        expected[at] = "moved"
        changes = [
            PointerChange(EntityType.TABLE, one.identifier, location, f"new-{one.name}")
            for one, location in zip(tables, expected, strict=True)
        ]
        changes.append(PointerChange(EntityType.TABLE, ("db", "new"), None, "new"))
        stale = pointers.swap(changes)
        assert stale is not None
        assert stale.change == changes[at]
        assert stale.current.metadata_location == tables[at].metadata_location
        for one in tables:
            assert pointers.find(one.identifier).metadata_location == one.metadata_location
        assert pointers.find(("db", "new")) is None

    def test_table_is_created_together_with_changes_to_others(self, case: CatalogCase) -> None:
        if case.is_filesystem:
            return
        catalog = case.catalog
        old = made_table(catalog, ("db", "old"))
        staged = catalog.stage_table(("db", "new"), builders.schema())
        outcome = catalog.commit_many([setting(old, n="1"), TableChange(staged)])
        assert isinstance(outcome, Committed)
        assert catalog.list_tables(("db",)) == (("db", "new"), ("db", "old"))

    def test_multi_table_commit_with_no_table_or_duplicates_is_refused(self, case: CatalogCase) -> None:
        if case.is_filesystem:
            return
        loaded = made_table(case.catalog)
        change = setting(loaded, n="1")
        with pytest.raises(InvalidRequestError, match="twice"):
            case.catalog.commit_many([change, change])
        with pytest.raises(InvalidRequestError, match="list of changes is empty"):
            case.catalog.commit_many([])

    def test_overlapping_transactions_do_not_deadlock(self, case: CatalogCase) -> None:
        if case.is_filesystem:
            return
        for name in ("a", "b"):
            made_table(case.catalog, ("db", name))
        handles = [case.another() for _ in range(4)]

        def transfer(at: int) -> int:
            done = 0
            while done < 10:
                names = (("db", "a"), ("db", "b")) if at % 2 else (("db", "b"), ("db", "a"))
                tables = [handles[at].load_table(one) for one in names]
                changes = [setting(one, **{f"x{at}-{done}": "x"}) for one in tables]
                outcome = handles[at].commit_many(changes)
                done += isinstance(outcome, Committed)
            return done

        assert in_threads(4, transfer) == [10] * 4
        first, second = (case.catalog.load_table(("db", name)).metadata.properties for name in ("a", "b"))
        assert sum(key.startswith("x") for key in first) == 40
        assert {key for key in first if key.startswith("x")} == {key for key in second if key.startswith("x")}


class TestRenaming:
    def test_table_is_renamed(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        if case.is_filesystem:
            with pytest.raises(UnsupportedError, match="rename"):
                case.catalog.rename_table(EVENTS, ("db", "e2"))
            return
        case.catalog.create_namespace(("other",))
        case.catalog.rename_table(EVENTS, ("other", "e2"))
        other = case.another()
        assert not other.table_exists(EVENTS)
        renamed = other.load_table(("other", "e2"))
        assert renamed.metadata == loaded.metadata
        assert renamed.metadata_location == loaded.metadata_location
        # A writer with the old name is told so; one with the new name goes on.
        assert isinstance(rejected(set_property(other, loaded, a="b")).reason, TableNotFoundError)
        committed(set_property(other, renamed, a="b"))

    def test_new_table_does_not_share_the_folder_of_a_renamed_one(self, case: CatalogCase) -> None:
        if case.is_filesystem:
            return
        old = made_table(case.catalog)
        case.catalog.rename_table(EVENTS, ("db", "renamed"))
        new = made_table(case.catalog)
        assert new.metadata.location != old.metadata.location
        assert new.metadata.location.startswith(f"{old.metadata.location}-")
        with pytest.raises(InvalidRequestError, match=r"files of db\.renamed are there"):
            case.catalog.create_table(("db", "third"), builders.schema(), location=old.metadata.location + "/")

    def test_error_names_what_occupies_the_new_name(self, case: CatalogCase) -> None:
        if case.is_filesystem:
            return
        catalog = case.catalog
        made_table(catalog)
        made_table(catalog, ("db", "taken"))
        catalog.create_view(("db", "v"), builders.schema(), VERSION)
        catalog.rename_table(EVENTS, EVENTS)
        for target, error in (
            (("db", "taken"), TableAlreadyExistsError),
            (("db", "v"), ViewAlreadyExistsError),
            (("no", "t"), NamespaceNotFoundError),
        ):
            with pytest.raises(error):
                catalog.rename_table(EVENTS, target)
        for source in (("db", "none"), ("db", "v")):
            with pytest.raises(TableNotFoundError):
                catalog.rename_table(source, ("db", "x"))
        assert catalog.table_exists(EVENTS)

    def test_one_of_several_renames_to_the_same_name_succeeds(self, case: CatalogCase) -> None:
        if case.is_filesystem:
            return
        for at in range(6):
            made_table(case.catalog, ("db", f"t{at}"))
        handles = [case.another() for _ in range(6)]
        results = in_threads(6, lambda at: handles[at].rename_table(("db", f"t{at}"), ("db", "goal")))
        assert results.count(None) == 1, results
        assert all(isinstance(one, TableAlreadyExistsError) for one in results if one is not None)
        assert len(case.catalog.list_tables(("db",))) == 6


class TestRegistering:
    def test_metadata_file_is_registered_as_a_table(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        location = loaded.metadata_location or ""
        if case.is_filesystem:
            with pytest.raises(UnsupportedError, match="register"):
                case.catalog.register_table(("db", "copy"), location)
            return
        case.catalog.drop_table(EVENTS)
        back = case.catalog.register_table(("db", "back"), location)
        assert back.metadata == loaded.metadata
        assert case.another().load_table(("db", "back")).metadata_location == location
        changed = committed(set_property(case.catalog, back, a="b"))
        assert "/metadata/00001-" in (changed.metadata_location or "")
        with pytest.raises(TableAlreadyExistsError):
            case.catalog.register_table(("db", "back"), location)

    def test_registering_over_a_table_rejects_commits_based_on_the_old_one(self, case: CatalogCase) -> None:
        if case.is_filesystem:
            return
        first = made_table(case.catalog)
        newer = committed(set_property(case.catalog, first, a="b"))
        back = case.catalog.register_table(EVENTS, first.metadata_location or "", may_replace=True)
        assert back.metadata == first.metadata
        assert case.another().load_table(EVENTS).metadata_location == first.metadata_location
        assert isinstance(rejected(set_property(case.catalog, newer, c="d")).reason, CommitConflictError)
        fresh = case.catalog.register_table(("db", "fresh"), newer.metadata_location or "", may_replace=True)
        assert fresh.metadata == newer.metadata

    def test_unregistering_returns_the_last_state_and_keeps_files(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        if case.is_filesystem:
            with pytest.raises(UnsupportedError, match="unregister"):
                case.catalog.unregister_table(EVENTS)
            return
        last = committed(set_property(case.catalog, loaded, a="b"))
        gone = case.catalog.unregister_table(EVENTS)
        assert (gone.metadata_location, gone.metadata) == (last.metadata_location, last.metadata)
        assert not case.another().table_exists(EVENTS)
        assert isinstance(rejected(set_property(case.catalog, last, c="d")).reason, TableNotFoundError)
        assert case.catalog.register_table(EVENTS, last.metadata_location or "").metadata == last.metadata
        with pytest.raises(TableNotFoundError):
            case.catalog.unregister_table(("db", "other"))

    def test_metadata_location_is_available_without_reading_metadata(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        if case.is_filesystem:
            assert case.catalog.locate_table(EVENTS) is None
            return
        case.storage.delete(loaded.metadata_location or "")
        assert case.catalog.locate_table(EVENTS) == loaded.metadata_location
        with pytest.raises(TableNotFoundError):
            case.catalog.locate_table(("db", "other"))
        with pytest.raises(ViewNotFoundError):
            case.catalog.locate_view(EVENTS)

    def test_registering_a_file_that_is_not_metadata_is_refused(self, case: CatalogCase) -> None:
        if case.is_filesystem:
            return
        case.catalog.create_namespace(("db",))
        with pytest.raises(MissingFileError):
            case.catalog.register_table(EVENTS, f"{case.warehouse}/none.json")
        case.storage.create(f"{case.warehouse}/bad.json", b"{}")
        with pytest.raises(InvalidMetadataError, match="format-version"):
            case.catalog.register_table(EVENTS, f"{case.warehouse}/bad.json")
        assert not case.catalog.table_exists(EVENTS)

    def test_registered_table_of_another_tool_continues_its_numbering(self, case: CatalogCase) -> None:
        if case.is_filesystem:
            return
        loaded = made_table(case.catalog)
        copy = f"{case.warehouse}/db/events/metadata/v41.metadata.json"
        case.storage.create(copy, case.storage.read(loaded.metadata_location or ""))
        case.catalog.drop_table(EVENTS)
        back = case.catalog.register_table(EVENTS, copy)
        assert "/00042-" in (committed(set_property(case.catalog, back, a="b")).metadata_location or "")

    def test_missing_metadata_file_is_reported_by_the_catalog(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        case.storage.delete(loaded.metadata_location or "")
        if case.is_filesystem:
            with pytest.raises(TableNotFoundError):
                case.catalog.load_table(EVENTS)
            return
        with pytest.raises(InvalidMetadataError, match="metadata file is missing") as caught:
            case.catalog.load_table(EVENTS)
        assert caught.value.context["path"] == loaded.metadata_location
        case.catalog.drop_table(EVENTS)


class TestViews:
    def test_view_metadata_file_is_registered_as_a_view(self, case: CatalogCase) -> None:
        case.catalog.create_namespace(("db",))
        if case.is_filesystem:
            with pytest.raises(UnsupportedError, match="views"):
                case.catalog.register_view(("db", "v"), "file:///none.json")
            return
        view = case.catalog.create_view(("db", "v"), builders.schema(), VERSION)
        location = view.metadata_location or ""
        assert case.catalog.locate_view(("db", "v")) == location
        assert case.catalog.register_view(("db", "copy"), location).metadata == view.metadata
        assert case.another().load_view(("db", "copy")).metadata_location == location
        with pytest.raises(ViewAlreadyExistsError):
            case.catalog.register_view(("db", "copy"), location)

    def test_views_are_created_replaced_listed_renamed_and_dropped(self, case: CatalogCase) -> None:
        catalog = case.catalog
        catalog.create_namespace(("db",))
        assert catalog.list_views(("db",)) == ()
        if case.is_filesystem:
            with pytest.raises(UnsupportedError, match="views"):
                catalog.create_view(("db", "v"), builders.schema(), VERSION)
            for act in (catalog.load_view, catalog.drop_view):
                with pytest.raises(ViewNotFoundError):
                    act(("db", "v"))
            assert not catalog.view_exists(("db", "v"))
            return
        view = catalog.create_view(("db", "v"), builders.schema(), VERSION, properties={"comment": "mine"})
        assert case.another().load_view(("db", "v")).metadata == view.metadata
        assert catalog.list_views(("db",)) == (("db", "v"),)
        assert catalog.list_tables(("db",)) == ()
        second = SqlRepresentation("select 2", "spark")
        updates: list[ViewUpdate] = [
            AddViewVersion(replace(VERSION, representations=(second,))),
            SetCurrentViewVersion(),
        ]
        outcome = catalog.commit_view(view, updates, [AssertViewUuid(view.metadata.view_uuid)])
        assert isinstance(outcome, Committed)
        assert catalog.view_exists(("db", "v"))
        assert catalog.refresh_view(view).metadata == outcome.loaded.metadata
        assert outcome.loaded.metadata.current_version.representations == (second,)
        if not case.is_service:
            late = rejected(catalog.commit_view(view, updates))
            assert isinstance(late.reason, CommitConflictError)
        with pytest.raises(CommitConflictError):
            other = AssertViewUuid("00000000-0000-0000-0000-000000000007")
            catalog.settle(catalog.commit_view(outcome.loaded, [SetProperties(FrozenMap({"a": "b"}))], [other]))
        catalog.rename_view(("db", "v"), ("db", "w"))
        assert catalog.list_views(("db",)) == (("db", "w"),)
        catalog.drop_view(("db", "w"))
        assert not catalog.view_exists(("db", "w"))
        with pytest.raises(ViewNotFoundError):
            catalog.drop_view(("db", "w"))

    def test_tables_and_views_share_one_set_of_names(self, case: CatalogCase) -> None:
        if case.is_filesystem:
            return
        catalog = case.catalog
        made_table(catalog)
        catalog.create_view(("db", "v"), builders.schema(), VERSION)
        with pytest.raises(TableAlreadyExistsError):
            catalog.create_view(EVENTS, builders.schema(), VERSION)
        with pytest.raises(ViewAlreadyExistsError):
            catalog.create_table(("db", "v"), builders.schema())
        for act in (catalog.load_table, catalog.drop_table):
            with pytest.raises(TableNotFoundError):
                act(("db", "v"))
        for view_act in (catalog.load_view, catalog.drop_view):
            with pytest.raises(ViewNotFoundError):
                view_act(EVENTS)
        with pytest.raises(NamespaceNotEmptyError, match="not empty"):
            catalog.drop_namespace(("db",))

    def test_view_cannot_be_replaced_by_a_table(self, case: CatalogCase) -> None:
        if case.is_filesystem:
            return
        case.catalog.create_namespace(("db",))
        view = case.catalog.create_view(("db", "v"), builders.schema(), VERSION)
        wrong: list[Any] = [AssignUuid("00000000-0000-0000-0000-000000000007"), RemoveSnapshots((1,))]
        for update in wrong:
            with pytest.raises(InvalidRequestError, match="view"):
                case.catalog.commit_view(view, [update])
        assert case.catalog.load_view(("db", "v")).metadata == view.metadata


UNHEARD = [FaultKind.APPLIED_BUT_ERROR, FaultKind.TORN]


class TestUnknownOutcomes:
    @pytest.mark.parametrize("follower", [False, True], ids=["still-current", "another-follows"])
    def test_commit_with_a_lost_response_is_found(self, case: CatalogCase, follower: bool) -> None:
        if not (case.is_sql or case.is_filesystem):
            return
        loaded = made_table(case.catalog)
        failing = case.commit_fault(FaultKind.APPLIED_BUT_ERROR)
        outcome = set_property(failing, loaded, mine="yes")
        assert isinstance(outcome, Unknown)
        assert not outcome.error.may_clean_up
        if follower:
            for at in range(3):
                set_property_until_it_works(case.catalog, EVENTS, at=str(at))
        found = committed(case.catalog.resolve_unknown(outcome))
        assert found.metadata.properties["mine"] == "yes"
        current = case.catalog.load_table(EVENTS)
        assert current.metadata.properties["mine"] == "yes"
        reached = {current.metadata_location, *(one.metadata_file for one in current.metadata.metadata_log)}
        assert all(case.storage.exists(one or "") for one in reached)

    def test_commit_that_never_arrived_is_rejected_and_can_be_retried(self, case: CatalogCase) -> None:
        if not case.is_sql:
            return
        loaded = made_table(case.catalog)
        outcome = set_property(case.commit_fault(FaultKind.TORN), loaded, mine="yes")
        assert isinstance(outcome, Unknown)
        verdict = rejected(case.catalog.resolve_unknown(outcome))
        assert isinstance(verdict.reason, CommitConflictError)
        assert case.catalog.load_table(EVENTS).metadata == loaded.metadata
        committed(set_property(case.catalog, loaded, mine="again"))

    @pytest.mark.parametrize("followers", [1, 3])
    def test_commit_that_never_arrived_is_rejected_after_concurrent_commits(
        self, case: CatalogCase, followers: int
    ) -> None:
        if not case.is_sql:
            return
        loaded = made_table(case.catalog)
        outcome = set_property(case.commit_fault(FaultKind.TORN), loaded, mine="yes")
        assert isinstance(outcome, Unknown)
        for at in range(followers):
            set_property_until_it_works(case.catalog, EVENTS, at=str(at))
        verdict = rejected(case.catalog.resolve_unknown(outcome))
        assert verdict.current_location == case.catalog.load_table(EVENTS).metadata_location
        assert "mine" not in case.catalog.load_table(EVENTS).metadata.properties

    def test_lost_race_with_a_lost_response_is_rejected(self, case: CatalogCase) -> None:
        if not case.is_filesystem:
            return
        loaded = made_table(case.catalog)
        # The other writer comes between the look and the write.
        sneaky = case.another(storage=_Sneaky(case.storage, lambda: set_property(case.catalog, loaded, theirs="yes")))
        outcome = set_property(sneaky, loaded, mine="yes")
        assert isinstance(outcome, Unknown)
        rejected(case.catalog.resolve_unknown(outcome))
        assert case.catalog.load_table(EVENTS).metadata.properties["theirs"] == "yes"

    def test_truncated_history_leaves_the_outcome_unknown(self, case: CatalogCase) -> None:
        if not case.is_sql:
            return
        limit = {"write.metadata.previous-versions-max": "1"}
        loaded = made_table(case.catalog, properties=limit)
        outcome = set_property(case.commit_fault(FaultKind.APPLIED_BUT_ERROR), loaded, mine="yes")
        assert isinstance(outcome, Unknown)
        for at in range(4):
            set_property_until_it_works(case.catalog, EVENTS, at=str(at))
        before = every_file(case)
        verdict = case.catalog.resolve_unknown(outcome)
        assert isinstance(verdict, Unknown)
        assert every_file(case) == before

    def test_commit_to_a_table_dropped_since_has_an_unknown_outcome(self, case: CatalogCase) -> None:
        if not case.is_sql:
            return
        loaded = made_table(case.catalog)
        outcome = set_property(case.commit_fault(FaultKind.TORN), loaded, mine="yes")
        assert isinstance(outcome, Unknown)
        case.catalog.drop_table(EVENTS)
        assert isinstance(case.catalog.resolve_unknown(outcome), Unknown)

    @pytest.mark.parametrize("kind", UNHEARD)
    @pytest.mark.parametrize("followers", [0, 1, 2])
    def test_view_commit_with_a_lost_response_is_found_by_its_row(
        self, case: CatalogCase, kind: FaultKind, followers: int
    ) -> None:
        if not case.is_sql:
            return
        case.catalog.create_namespace(("db",))
        view = case.catalog.create_view(("db", "v"), builders.schema(), VERSION)
        outcome = case.commit_fault(kind).commit_view(view, [SetProperties(FrozenMap({"mine": "yes"}))])
        assert isinstance(outcome, Unknown)
        for at in range(followers):
            current = case.catalog.load_view(("db", "v"))
            next_one = [SetProperties(FrozenMap({"at": str(at)}))]
            assert isinstance(case.catalog.commit_view(current, next_one), Committed)
        verdict = case.catalog.resolve_unknown(outcome)
        happened = kind is FaultKind.APPLIED_BUT_ERROR
        if followers < 2:
            assert isinstance(verdict, Committed) == happened
            assert isinstance(verdict, Rejected) != happened
        else:
            # A view keeps no log of its metadata files.
            assert isinstance(verdict, Unknown)

    def test_commit_with_a_lost_response_is_found_after_a_rename(self, case: CatalogCase) -> None:
        if not case.is_sql:
            return
        loaded = made_table(case.catalog)
        outcome = set_property(case.commit_fault(FaultKind.APPLIED_BUT_ERROR), loaded, mine="yes")
        assert isinstance(outcome, Unknown)
        case.catalog.rename_table(EVENTS, ("db", "e2"))
        committed(case.catalog.resolve_unknown(outcome))

    @pytest.mark.parametrize("kind", UNHEARD)
    def test_creation_is_resolved_whatever_the_response_was(self, case: CatalogCase, kind: FaultKind) -> None:
        if not (case.is_sql or case.is_filesystem) or (case.is_filesystem and kind is FaultKind.TORN):
            return
        case.catalog.create_namespace(("db",))
        staged = case.catalog.stage_table(EVENTS, builders.schema())
        outcome = case.commit_fault(kind).commit(staged, ())
        assert isinstance(outcome, Unknown)
        verdict = case.catalog.resolve_unknown(outcome)
        assert isinstance(verdict, Committed) == (kind is FaultKind.APPLIED_BUT_ERROR)
        assert case.catalog.table_exists(EVENTS) == isinstance(verdict, Committed)

    def test_creation_verifies_itself_after_a_lost_response(self, case: CatalogCase) -> None:
        if not (case.is_sql or case.is_filesystem):
            return
        case.catalog.create_namespace(("db",))
        failing = case.commit_fault(FaultKind.APPLIED_BUT_ERROR)
        if case.is_sql:
            database = failing_database(failing)
            database.faults = {}
            calls = len(database.calls)
            failing.stage_table(EVENTS, builders.schema())
            database.faults = {2 * len(database.calls) - calls + 2: FaultKind.APPLIED_BUT_ERROR}
        loaded = failing.create_table(EVENTS, builders.schema())
        assert case.catalog.load_table(EVENTS).metadata == loaded.metadata

    @pytest.mark.parametrize("kind", UNHEARD)
    def test_multi_table_commit_with_a_lost_response_is_found(self, case: CatalogCase, kind: FaultKind) -> None:
        if not case.is_sql:
            return
        tables = [made_table(case.catalog, ("db", name)) for name in "ab"]
        failing = case.another(faults={})
        database = failing_database(failing)
        database.faults[len(database.calls) + 3] = kind
        outcome = failing.commit_many([setting(one, mine="yes") for one in tables])
        assert isinstance(outcome, Unknown)
        verdict = case.catalog.resolve_unknown(outcome)
        assert isinstance(verdict, Committed) == (kind is FaultKind.APPLIED_BUT_ERROR)
        for one in tables:
            found = case.catalog.load_table(one.identifier).metadata.properties
            assert ("mine" in found) == isinstance(verdict, Committed)

    def test_unreachable_catalog_leaves_the_outcome_unknown(self, case: CatalogCase) -> None:
        if not case.is_sql:
            return
        loaded = made_table(case.catalog)
        failing = case.commit_fault(FaultKind.APPLIED_BUT_ERROR)
        outcome = set_property(failing, loaded, mine="yes")
        assert isinstance(outcome, Unknown)
        database = failing_database(failing)
        for kind in (FaultKind.IO_ERROR, FaultKind.NO_SPACE):
            database.faults = {len(database.calls) + 1: kind}
            still = failing.resolve_unknown(outcome)
            assert isinstance(still, Unknown)
            with pytest.raises(CommitStateUnknownError):
                database.faults = {len(database.calls) + 1: kind}
                failing.settle(still)
        committed(failing.resolve_unknown(outcome))


class _Sneaky(FailingStorage):
    """Lets another writer in before an exclusive create, and then loses the answer."""

    __slots__ = ("_act",)

    def __init__(self, inner: Any, act: Callable[[], Any]) -> None:
        super().__init__(inner, Fault(1, FaultKind.APPLIED_BUT_ERROR, frozenset({"create_exclusive"})))
        self._act = act

    def create_exclusive(self, path: str, data: bytes) -> None:
        self._act()
        super().create_exclusive(path, data)


class TestFaultsAtEveryCall:
    """A fault at each call to the storage, one after the other: the table is whole, and says truly what happened."""

    @pytest.mark.parametrize("kind", list(FaultKind))
    def test_commit_is_applied_exactly_once_or_not_at_all(self, case: CatalogCase, kind: FaultKind) -> None:
        if case.catalog is case.another():
            return
        loaded = made_table(case.catalog)
        for call in range(1, 30):
            storage = FailingStorage(case.storage, Fault(call, kind))
            handle = case.another(storage=storage)
            mark = f"call{call}"
            heard: str
            try:
                outcome = set_property(
                    handle, LoadedTable(EVENTS, loaded.metadata, loaded.metadata_location, storage), mark=mark
                )
                if isinstance(outcome, Unknown):
                    outcome = case.catalog.resolve_unknown(outcome)
                heard = type(outcome).__name__
            except SimulatedCrash:
                heard = "crash"
            except StorageError:
                heard = "error"
            after = case.catalog.load_table(EVENTS)
            happened = after.metadata.properties.get("mark") == mark
            if heard == "Committed":
                assert happened, (call, kind)
            if heard in ("Rejected", "error"):
                assert not happened, (call, kind)
            loaded = after
            if all(one.fault is None for one in storage.calls):
                break
        else:
            raise AssertionError("the faults never ended")
        committed(set_property(case.catalog, loaded, mark="last"))

    def test_pointer_never_names_metadata_that_may_not_exist(self, case: CatalogCase) -> None:
        if not case.is_sql:
            return
        loaded = made_table(case.catalog)
        # The file is there, but a power loss could undo it, and the database would still point to it.
        fault = Fault(1, FaultKind.APPLIED_BUT_ERROR, frozenset({"create"}))
        with pytest.raises(StorageError, match="Cannot write") as caught:
            set_property(case.another(storage=FailingStorage(case.storage, fault)), loaded, a="b")
        assert caught.value.may_clean_up
        assert case.catalog.load_table(EVENTS).metadata == loaded.metadata


class TestPurging:
    def appended(self, case: CatalogCase, *paths: str) -> LoadedTable:
        loaded = made_table(case.catalog)
        snapshot = write_snapshot(loaded, 1, *paths)
        return committed(commit(case.catalog, loaded, AddSnapshot(snapshot), SetSnapshotRef("main", SnapshotRef(1))))

    def test_purge_deletes_all_files_of_the_table(self, case: CatalogCase) -> None:
        keeper = made_table(case.catalog, ("db", "events2"))
        data = [f"{case.warehouse}/db/events/data/{at}.parquet" for at in range(3)]
        self.appended(case, *data)
        for path in data:
            case.storage.create(path, b"rows")
        report = case.catalog.drop_table(EVENTS, purge=purge_files)
        assert not case.catalog.table_exists(EVENTS)
        assert list(case.storage.list(f"{case.warehouse}/db/events")) == []
        assert report.kept == ()
        assert report.deleted_count >= 5
        assert case.catalog.load_table(("db", "events2")).metadata == keeper.metadata

    def test_purge_deletes_nothing_outside_the_folders_of_the_table(self, case: CatalogCase) -> None:
        own = f"{case.warehouse}/db/events/data/own.parquet"
        outside = [
            f"{case.warehouse}/db/events2/data/f.parquet",
            f"{case.warehouse}/db/f.parquet",
            f"{case.warehouse}/precious.txt",
        ]
        hostile = [
            *outside,
            f"{case.warehouse}/db/events/../f.parquet",
            f"{case.warehouse}/db/events/%2e%2e/f.parquet",
            f"{case.warehouse}/db/events/data/../../../precious.txt",
            "/etc/hostname",
            "relative.parquet",
        ]
        self.appended(case, own, *hostile)
        for path in (own, *outside):
            case.storage.create(path, b"rows")
        report = case.catalog.drop_table(EVENTS, purge=purge_files)
        assert all(case.storage.read(path) == b"rows" for path in outside)
        assert Path("/etc/hostname").exists()
        assert not case.storage.exists(own)
        assert report.kept_count == len(hostile)
        assert {path for path, _ in report.kept} == set(hostile)

    def test_table_with_possibly_shared_files_is_not_purged(self, case: CatalogCase) -> None:
        made_table(case.catalog, properties={"gc.enabled": "false"})
        before = every_file(case)
        with pytest.raises(InvalidRequestError, match=r"gc\.enabled"):
            case.catalog.drop_table(EVENTS, purge=purge_files)
        assert every_file(case) == before
        case.catalog.drop_table(EVENTS)
        assert not case.catalog.table_exists(EVENTS)

    def test_folder_shared_by_two_tables_is_not_purged(self, case: CatalogCase) -> None:
        if case.is_filesystem:
            return
        loaded = made_table(case.catalog)
        case.catalog.register_table(("db", "twin"), loaded.metadata_location or "")
        before = every_file(case)
        with pytest.raises(InvalidRequestError, match=r"db\.twin"):
            case.catalog.drop_table(EVENTS, purge=purge_files)
        assert every_file(case) == before
        assert case.catalog.table_exists(EVENTS)
        case.catalog.drop_table(("db", "twin"))
        case.catalog.drop_table(EVENTS, purge=purge_files)
        assert list(case.storage.list(f"{case.warehouse}/db")) == []

    def test_purge_keeps_unreadable_files(self, case: CatalogCase) -> None:
        data = f"{case.warehouse}/db/events/data/f.parquet"
        loaded = self.appended(case, data)
        case.storage.create(data, b"rows")
        manifest = f"{loaded.metadata.location}/metadata/m1.avro"
        case.storage.replace(manifest, b"not avro")
        report = case.catalog.drop_table(EVENTS, purge=purge_files)
        assert case.storage.exists(data)
        assert case.storage.exists(manifest)
        assert case.storage.exists(f"{loaded.metadata.location}/metadata/snap-1.avro")
        assert [path for path, _ in report.kept] == [manifest]

    def test_table_with_lost_metadata_can_be_dropped_but_not_purged(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        case.storage.replace(loaded.metadata_location or "", b"garbage")
        with pytest.raises(InvalidMetadataError):
            case.catalog.drop_table(EVENTS, purge=purge_files)
        case.catalog.drop_table(EVENTS)
        assert not case.catalog.table_exists(EVENTS)


class TestHandles:
    def test_catalog_is_not_picklable_and_its_repr_shows_its_location(self, catalog: Catalog) -> None:
        with pytest.raises(TypeError, match="open it again"):
            pickle.dumps(catalog)
        assert catalog.warehouse in repr(catalog)

    def test_catalog_closes_when_its_with_block_ends(self, case: CatalogCase) -> None:
        with case.another() as handle:
            handle.create_namespace(("db",))
        assert case.catalog.namespace_exists(("db",))

    def test_catalog_requires_a_name(self) -> None:
        for name in ("", "a\0b"):
            with pytest.raises(InvalidRequestError, match="name"):
                MemoryCatalog(name)

    def test_caller_provides_clock_and_ids(self) -> None:
        catalog = MemoryCatalog("lake", now_ms=lambda: 1234, new_id=lambda: "9c12d441-03fe-4693-9a96-a0705ddf69c1")
        loaded = made_table(catalog)
        assert loaded.metadata.last_updated_ms == 1234
        assert loaded.metadata.table_uuid == "9c12d441-03fe-4693-9a96-a0705ddf69c1"
        assert (loaded.metadata_location or "").endswith("/00000-9c12d441-03fe-4693-9a96-a0705ddf69c1.metadata.json")

    def test_table_is_relocated_if_the_catalog_supports_it(self, case: CatalogCase) -> None:
        loaded = made_table(case.catalog)
        elsewhere = f"{case.warehouse}/elsewhere"
        if case.is_filesystem:
            with pytest.raises(InvalidRequestError, match="cannot be moved"):
                commit(case.catalog, loaded, SetLocation(elsewhere))
            with pytest.raises(InvalidRequestError, match=r"write\.metadata\.path"):
                set_property(case.catalog, loaded, **{"write.metadata.path": elsewhere})
            with pytest.raises(InvalidRequestError, match="keeps this table at"):
                case.catalog.create_table(("db", "t2"), builders.schema(), location=elsewhere)
            return
        moved = committed(commit(case.catalog, loaded, SetLocation(elsewhere)))
        assert (moved.metadata_location or "").startswith(f"{elsewhere}/metadata/00001-")
        apart = {"write.metadata.path": f"{case.warehouse}/meta"}
        again = committed(set_property(case.catalog, moved, **apart))
        assert (again.metadata_location or "").startswith(f"{case.warehouse}/meta/00002-")
        assert case.another().load_table(EVENTS).metadata == again.metadata
