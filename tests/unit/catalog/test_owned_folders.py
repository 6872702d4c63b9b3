"""The rule for what may be deleted: spellings, links, roots, other tables, and how many metadata files it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from frazil.catalog.memory import MemoryCatalog
from frazil.catalog.names import Identifier
from frazil.catalog.owned_folders import OwnedFolders, pointer_folder
from frazil.errors import InvalidRequestError
from frazil.loaded import LoadedTable
from frazil.spec.new_table import new_table_metadata
from frazil.storage.base import Storage
from frazil.storage.local import LocalStorage
from frazil.storage.memory import MemoryStorage
from tests.support.commit_lab import SCHEMA


class CountingCatalog(MemoryCatalog):
    """A catalog that counts how often tables are loaded."""

    loads = 0

    def load_table(self, identifier: Identifier) -> LoadedTable:
        self.loads += 1
        return super().load_table(identifier)


def state(storage: Storage, location: str, pointer: str | None, data: str | None) -> LoadedTable:
    properties = {} if data is None else {"write.data.path": data}
    metadata = new_table_metadata(
        SCHEMA, location=location, uuid="00000000-0000-0000-0000-000000000001", now_ms=1, properties=properties
    )
    return LoadedTable(("db", "t"), metadata, pointer, storage)


def owned(
    location: str,
    pointer: str | None = None,
    *,
    warehouse: str = "s3://b/wh",
    roots: tuple[str, ...] = (),
    named: tuple[str, ...] = (),
    storage: Storage | None = None,
    data: str | None = None,
) -> OwnedFolders:
    chosen = MemoryStorage() if storage is None else storage
    catalog = MemoryCatalog("lake", warehouse, chosen, delete_roots=roots)
    return OwnedFolders(catalog, state(chosen, location, pointer, data), named)


def test_table_file_may_be_deleted_under_any_spelling() -> None:
    rule = owned("s3://b/wh/t", data="s3a://x/d", roots=("s3n://x",))
    for path in ("s3://b/wh/t/data/f", "s3a://b/wh/t/f", "s3://x/d/f", "s3n://x/d/e/f"):
        rule.check(path)
    for path in ("s3://b/wh/t2/f", "s3://b/wh/t", "s3://b/wh/t/../f", "s3://b/wh/t/%2e%2e/f", "/etc/passwd", "f", ""):
        with pytest.raises(InvalidRequestError, match="outside the table's folders"):
            rule.check(path)


def test_google_schemes_address_one_store() -> None:
    rule = owned("gs://b/wh/t", warehouse="gcs://b/wh")
    rule.check("gcs://b/wh/t/data/f")
    rule.check("gs://b/wh/t/data/f")


@pytest.mark.parametrize(
    ("location", "pointer", "roots", "named", "is_owned"),
    [
        ("s3://b/wh/t", None, (), (), True),
        ("s3://b/elsewhere/t", None, (), (), False),
        ("s3://b/whale/t", None, (), (), False),
        ("s3://b/elsewhere/t", "s3a://b/elsewhere/t/metadata/1.metadata.json", (), (), True),
        ("s3://b/elsewhere", "s3://b/elsewhere/t/metadata/1.metadata.json", (), (), False),
        ("s3://b/elsewhere/t", "s3://b/elsewhere/metadata/1.metadata.json", (), (), True),
        ("s3://b/elsewhere/t", "s3://b/metadata/1.metadata.json", (), (), False),
        ("s3://b/elsewhere/t", "s3://b/elsewhere/t/meta/1.metadata.json", (), (), False),
        ("s3://b/elsewhere/t", None, ("s3://b/elsewhere",), (), True),
        ("s3://b/elsewhere/t", None, (), ("s3a://b/elsewhere/t/",), True),
        ("s3://b/elsewhere/t", None, (), ("s3://b/elsewhere/t/data",), True),
        ("s3://b/elsewhere/t", None, (), ("s3://b/elsewhere/t2",), False),
    ],
)
def test_metadata_alone_does_not_make_a_folder_owned(
    location: str, pointer: str | None, roots: tuple[str, ...], named: tuple[str, ...], is_owned: bool
) -> None:
    rule = owned(location, pointer, roots=roots, named=named)
    assert (rule.find_refusal(f"{location}/data/f") is None) == is_owned


@pytest.mark.parametrize(
    ("location", "folder"),
    [
        ("s3://b/db/t/metadata/1-u.metadata.json", "s3://b/db/t"),
        ("s3://b/db/t/meta/1-u.metadata.json", "s3://b/db/t/meta"),
        ("s3://b/metadata/1-u.metadata.json", "s3://b/metadata"),
        ("s3://b/1-u.metadata.json", "s3://b"),
        ("/metadata/1-u.metadata.json", "/metadata"),
        ("file:///metadata/1-u.metadata.json", "file:///metadata"),
        ("file:/a/metadata/1-u.metadata.json", "file:/a"),
        ("/a/metadata/1-u.metadata.json", "/a"),
        ("1-u.metadata.json", ""),
    ],
)
def test_folder_of_the_pointer_is_owned_unless_it_is_a_whole_store(location: str, folder: str) -> None:
    assert pointer_folder(location) == folder


def test_links_do_not_lead_a_delete_out_of_the_table(tmp_path: Path) -> None:
    table, other = tmp_path / "wh" / "t", tmp_path / "other"
    (table / "data").mkdir(parents=True)
    other.mkdir()
    (other / "f").write_bytes(b"")
    (table / "away").symlink_to(other)
    (table / "data" / "link").symlink_to(other / "f")
    (tmp_path / "alias").symlink_to(table)
    options: Any = {"warehouse": str(tmp_path / "wh"), "storage": LocalStorage(durable=False)}
    rule = owned(str(table), **options)
    rule.check(f"file:{table}/data/f")
    rule.check(f"{table}/data/link")
    owned(f"{tmp_path}/alias", **options).check(f"file://{tmp_path}/alias/data/f")
    for path in (f"{table}/away/f", f"{table}/away/deeper/f"):
        with pytest.raises(InvalidRequestError, match="outside the table's folders"):
            rule.check(path)
    (tmp_path / "wh" / "out").symlink_to(other)
    with pytest.raises(InvalidRequestError, match="outside the warehouse"):
        owned(f"{tmp_path}/wh/out", **options).check(f"{tmp_path}/wh/out/f")


def test_unresolvable_paths_are_not_deleted() -> None:
    class Blind(MemoryStorage):
        def resolve_folder(self, folder: str) -> str:
            raise InvalidRequestError("Cannot look")

    assert owned("s3://b/wh/t", storage=Blind()).find_refusal("s3://b/wh/t/f") == (
        "its location cannot be resolved (Cannot look)"
    )


def lake_of(*locations: str, **properties: str) -> tuple[CountingCatalog, LoadedTable]:
    """Return a catalog with a table `t` at the first location, and others; the properties are the first one's."""
    catalog = CountingCatalog("lake", "memory://wh")
    catalog.create_namespace(("db",))
    first = catalog.create_table(("db", "t"), SCHEMA, location=locations[0], properties=properties)
    for at, one in enumerate(locations[1:]):
        catalog.create_table(("db", f"other{at}"), SCHEMA, location=one)
    return catalog, first


def test_files_of_enclosing_and_nested_tables_are_foreign() -> None:
    catalog, loaded = lake_of("memory://wh/db/t", "memory://wh/db/t/data/inner", "memory://wh/db/t2")
    rule = OwnedFolders(catalog, loaded)
    rule.check("memory://wh/db/t/data/f")
    assert rule.find_refusal("memory://wh/db/t/data/inner/data/f") == (
        "db.other0 has its files in memory://wh/db/t/data/inner"
    )
    inner = OwnedFolders(catalog, catalog.load_table(("db", "other0")))
    assert "db.t has its files in" in str(inner.find_refusal("memory://wh/db/t/data/inner/data/f"))
    for one in (rule, inner):
        with pytest.raises(InvalidRequestError, match="has its files in"):
            one.check_folders("purge table")


def test_named_folder_overrides_another_table_only_if_it_is_inside_that_folder() -> None:
    catalog, _ = lake_of("memory://wh/db/a", "memory://wh/db/a/t")
    loaded = catalog.load_table(("db", "other0"))
    path = "memory://wh/db/a/t/data/f"
    for named, may in (
        ("memory://wh", False),
        ("memory://wh/db/a", True),
        ("memory://wh/db/a/t", True),
        ("memory://wh/db/a/t/metadata", False),
    ):
        assert (OwnedFolders(catalog, loaded, [named]).find_refusal(path) is None) == may


def test_files_below_the_pointer_need_no_metadata_reads() -> None:
    names = [f"memory://wh/db/o{at}" for at in range(20)]
    catalog, loaded = lake_of("memory://wh/db/t", *names, **{"write.data.path": "memory://wh/data/t"})
    rule = OwnedFolders(catalog, loaded)
    catalog.loads = 0
    for at in range(100):
        rule.check(f"memory://wh/db/t/data/{at}")
    assert catalog.loads == 0
    for at in range(100):
        rule.check(f"memory://wh/data/t/{at}")
    assert catalog.loads == len(names)


def test_unloadable_table_may_own_anything_not_below_the_pointer() -> None:
    catalog, loaded = lake_of("memory://wh/db/t", "memory://wh/db/o", **{"write.data.path": "memory://wh/data/t"})
    catalog.storage.delete(str(catalog.load_table(("db", "other0")).metadata_location))
    rule = OwnedFolders(catalog, loaded)
    rule.check("memory://wh/db/t/data/f")
    assert "db.other0 may have files there but cannot be loaded" in str(rule.find_refusal("memory://wh/data/t/f"))
    assert OwnedFolders(catalog, loaded, ["memory://wh/data/t"]).find_refusal("memory://wh/data/t/f") is None
