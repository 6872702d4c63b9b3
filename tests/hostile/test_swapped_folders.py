"""Folders that are swapped for links between a check and what it was for: nothing outside is deleted or read."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil.catalog.owned_folders import OwnedFolders
from frazil.commit.delete_paths import delete_paths
from frazil.errors import FrazilError, StorageError
from frazil.storage.choose import choose_storage
from frazil.storage.local import LocalStorage

SECRET_ROW = "a-row-of-the-victim-71c3"


@contextlib.contextmanager
def turning(link: Path, *targets: Path) -> Iterator[None]:
    """Turn a link from one target to the other for as long as the block runs."""
    ended = threading.Event()

    def turn() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            other = link.with_name(f".turn{number % 2}")
            with contextlib.suppress(FileNotFoundError):
                other.unlink()
            other.symlink_to(targets[number % len(targets)])
            other.replace(link)

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def swapped(folder: Path, target: Path) -> None:
    folder.rename(folder.with_name(f".{folder.name}"))
    folder.symlink_to(target)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home" / ".ssh"
    made.mkdir(parents=True)
    (made / "id_rsa").write_text("a key")
    return made


def test_file_in_a_folder_swapped_after_the_check_is_not_deleted(tmp_path: Path, home: Path) -> None:
    own = tmp_path / "t" / "data"
    (own / "sub").mkdir(parents=True)
    (own / "sub" / "id_rsa").write_text("an orphan")
    storage = LocalStorage()
    within = [storage.resolve_folder(str(tmp_path / "t"))]
    swapped(own / "sub", home)
    path = f"file://{own}/sub/id_rsa"
    with pytest.raises(StorageError, match="replaced by a link"):
        storage.delete(path, within=within)
    assert path in storage.delete_many([path], within=within)
    with pytest.raises(StorageError, match="replaced by a link"):
        storage.delete_folder(f"file://{own}/sub/x", within=within)
    assert (home / "id_rsa").read_text() == "a key"
    (own / ".sub" / "id_rsa").unlink()


def test_swapped_table_folder_is_not_followed(tmp_path: Path, home: Path) -> None:
    table = tmp_path / "t"
    table.mkdir()
    storage = LocalStorage()
    within = [storage.resolve_folder(str(table))]
    swapped(table, home)
    with pytest.raises(StorageError):
        storage.delete(f"file://{table}/id_rsa", within=within)
    assert (home / "id_rsa").exists()


def test_deleting_jobs_use_the_opened_folder(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with frazil.connect(tmp_path / "lake") as lake:
        table = lake.create_table("db.t", "id bigint")
        table.append(pa.table({"id": [1]}))
        loaded = lake.catalog.load_table(("db", "t"))
        folder = tmp_path / "lake" / "db" / "t" / "data" / "sub"
        folder.mkdir()
        (folder / "id_rsa").write_text("an orphan")
        owned = OwnedFolders(lake.catalog, loaded)
        asked = owned.find_refusal

        def find_refusal(path: str) -> str | None:
            """Answer, and swap the folder then, as another process does that is quick enough."""
            found = asked(path)
            swapped(folder, home)
            return found

        monkeypatch.setattr(owned, "find_refusal", find_refusal)
        ((_, reason),) = delete_paths(loaded.storage, [f"file://{folder}/id_rsa"], owned)
        assert reason is not None and "replaced by a link" in reason
    assert (home / "id_rsa").read_text() == "a key"


def test_link_inside_the_table_folder_is_followed(tmp_path: Path) -> None:
    table = tmp_path / "t"
    (table / "real").mkdir(parents=True)
    (table / "real" / "f").write_text("x")
    (table / "link").symlink_to(table / "real")
    storage = LocalStorage()
    storage.delete(f"{table}/link/f", within=[storage.resolve_folder(str(table))])
    assert not (table / "real" / "f").exists()


def test_reads_cannot_escape_the_roots_while_a_link_is_swapped(tmp_path: Path) -> None:
    lake, outside = tmp_path / "lake", tmp_path / "outside"
    for folder in (lake / "real", lake / "fake", outside):
        folder.mkdir(parents=True)
    (lake / "real" / "f").write_text("mine")
    (outside / "f").write_text(SECRET_ROW)
    (lake / "fake" / "f").symlink_to(outside / "f")
    (lake / "data").symlink_to(lake / "real")
    storage = choose_storage({"read.roots": str(lake)})
    seen = set()
    with turning(lake / "data", lake / "real", lake / "fake", outside):
        for _ in range(3_000):
            with contextlib.suppress(FrazilError):
                seen.add(storage.read(f"{lake}/data/f"))
                seen.add(storage.read_range(f"{lake}/data/f", 0, 4))
    assert seen <= {b"mine"} and seen


def test_rooted_storage_verifies_the_opened_file(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "f").write_text("x")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    storage = LocalStorage(roots=[str(tmp_path / "in")])
    for read in (storage.read, lambda path: storage.read_range(path, 0, 1)):
        with pytest.raises(FrazilError, match="resolves to a file outside"):
            read(f"{tmp_path}/in/link/f")
    (tmp_path / "in" / "f").write_text("y")
    assert storage.read(f"{tmp_path}/in/f") == b"y"
    # A root may itself be named by a link.
    (tmp_path / "named").symlink_to(tmp_path / "in")
    assert LocalStorage(roots=[str(tmp_path / "named")]).read(f"{tmp_path}/named/f") == b"y"


@pytest.mark.extended
def test_rows_outside_the_roots_are_not_read_while_a_link_is_swapped(tmp_path: Path) -> None:
    victim = tmp_path / "victim.parquet"
    with frazil.connect(tmp_path / "lake") as lake:
        table = lake.create_table("db.t", "id bigint, note string")
        table.append(pa.table({"id": [1], "note": ["mine"]}))
    (file,) = (tmp_path / "lake" / "db" / "t" / "data").glob("*.parquet")
    rows = pq.read_table(file)
    pq.write_table(rows.set_column(1, rows.schema.field(1), pa.array([SECRET_ROW])), victim)
    data = file.parent
    fake = data.with_name("fake")
    data.rename(data.with_name("real"))
    fake.mkdir()
    (fake / file.name).symlink_to(victim)
    data.symlink_to(data.with_name("real"))
    seen: set[str] = set()
    with frazil.connect(tmp_path / "lake", trust="none") as lake, turning(data, data.with_name("real"), fake):
        for _ in range(200):
            with contextlib.suppress(FrazilError, pa.ArrowException, OSError):
                seen.update(lake.table("db.t").scan().to_arrow()["note"].to_pylist())
    assert SECRET_ROW not in seen
    assert victim.exists()
