from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest

from frazil.datafile.open_file import StorageFile, open_file, reading
from frazil.errors import InvalidDataFileError, InvalidPuffinError, MissingFileError, StorageError
from frazil.storage.base import Storage
from frazil.storage.local import LocalStorage
from frazil.storage.memory import MemoryStorage

DATA = bytes(range(256)) * 1024


@pytest.fixture(params=["memory", "local"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, str]:
    storage: Storage = MemoryStorage() if request.param == "memory" else LocalStorage(durable=False)
    path = f"file://{tmp_path}/f"
    storage.create(path, DATA)
    return storage, path


def test_any_range_can_be_read(place: tuple[Storage, str]) -> None:
    with open_file(*place).handle as file:
        assert file.size() == len(DATA)
        for start, length in [(0, 10), (len(DATA) - 4, 4), (100_000, 80_000), (5, 0), (len(DATA), 10)]:
            file.seek(start)
            assert file.read(length) == DATA[start : start + length]


def test_error_names_the_missing_file(place: tuple[Storage, str]) -> None:
    storage, path = place
    with pytest.raises(MissingFileError, match="f2"):
        open_file(storage, path + "2")


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="folder"):
        open_file(LocalStorage(), str(tmp_path))


def test_adjacent_small_reads_fetch_once() -> None:
    fetched: list[tuple[int, int]] = []

    class Counting(MemoryStorage):
        def read_range(self, path: str, offset: int, length: int) -> bytes:
            fetched.append((offset, length))
            return super().read_range(path, offset, length)

    storage = Counting()
    storage.create("f", DATA)
    file = StorageFile(storage, "f", len(DATA))
    assert b"".join(file.read(100) for _ in range(50)) == DATA[:5000]
    assert len(fetched) == 1
    file.seek(-8, io.SEEK_END)
    assert file.read() == DATA[-8:]
    assert file.seek(2, io.SEEK_CUR) == file.tell()
    assert file.read(5) == b""
    assert len(fetched) == 2


def test_large_reads_fetch_exactly_the_requested_range() -> None:
    storage = MemoryStorage()
    storage.create("f", DATA)
    file = StorageFile(storage, "f", len(DATA))
    assert file.read(200_000) == DATA[:200_000]
    assert file.read(-1) == DATA[200_000:]


def test_storage_errors_pass_through_pyarrow_unchanged() -> None:
    class Broken(MemoryStorage):
        def read_range(self, path: str, offset: int, length: int) -> bytes:
            raise StorageError("Cannot read f: the network is gone", path=path)

    storage = Broken()
    storage.create("f", DATA)
    opened = open_file(storage, "f")
    with pytest.raises(StorageError, match="network is gone"):
        opened.handle.read(10)
    with pytest.raises(StorageError, match="network is gone"), reading("ORC file", "f", "ORC", opened):
        # Some decoders turn what they met into an error of their own.
        raise pa.ArrowInvalid("something about the network")


def test_decoder_errors_name_the_file() -> None:
    for error in (pa.ArrowInvalid("bad page"), OSError("bad footer"), ValueError("bad number")):
        with pytest.raises(InvalidDataFileError, match="Cannot read Parquet file: bad") as caught:
            with reading("Parquet file", "f", "Parquet"):
                raise error
        assert caught.value.context == {"path": "f", "heading": "Parquet"}


def test_errno_errors_come_from_the_storage() -> None:
    with pytest.raises(StorageError, match="Input/output error"):
        with reading("ORC file", "f", "ORC"):
            raise OSError(5, "Input/output error")


def test_corruption_error_gets_the_path() -> None:
    with pytest.raises(InvalidPuffinError) as caught:
        with reading("file", "f", "ORC"):
            raise InvalidPuffinError("Cannot read it", heading="Blob")
    assert caught.value.context["path"] == "f"
