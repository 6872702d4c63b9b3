"""The storage that fails on purpose."""

from __future__ import annotations

import pytest

from frazil.errors import FileAlreadyExistsError, InvalidRequestError, StorageError, WriteOutcomeUnknownError
from frazil.storage.failing import Call, FailingStorage, Fault, FaultKind, SimulatedCrash
from frazil.storage.memory import MemoryStorage


def commit(storage: FailingStorage) -> None:
    """Three writes and a read, with a clean-up that a dead process could not run."""
    written = []
    try:
        for name in ("m/manifest", "m/list"):
            storage.create(name, b"12345678")
            written.append(name)
        storage.create_exclusive("m/v1", b"12345678")
        storage.read("m/v1")
    except BaseException:
        storage.delete_many(written)
        raise


def files(storage: FailingStorage) -> dict[str, bytes]:
    return {one.path: storage.inner.read(one.path) for one in storage.inner.list("m")}


def test_without_faults_it_logs_and_forwards_every_call() -> None:
    storage = FailingStorage(MemoryStorage())
    commit(storage)
    assert storage.calls == [
        Call(1, "create", "m/manifest"),
        Call(2, "create", "m/list"),
        Call(3, "create_exclusive", "m/v1"),
        Call(4, "read", "m/v1"),
    ]


@pytest.mark.parametrize("kind", [FaultKind.IO_ERROR, FaultKind.NO_SPACE])
def test_failed_call_has_no_effect(kind: FaultKind) -> None:
    storage = FailingStorage(MemoryStorage(), Fault(3, kind))
    with pytest.raises(StorageError, match="Cannot create_exclusive m/v1") as caught:
        commit(storage)
    assert not isinstance(caught.value, WriteOutcomeUnknownError)
    assert files(storage) == {}
    assert storage.calls[2].fault is kind


def test_call_with_a_lost_response_takes_effect() -> None:
    storage = FailingStorage(MemoryStorage(), Fault(3, FaultKind.APPLIED_BUT_ERROR))
    with pytest.raises(WriteOutcomeUnknownError):
        commit(storage)
    assert "m/v1" in files(storage)


def test_refusal_with_a_lost_response_is_unknown_too() -> None:
    storage = FailingStorage(MemoryStorage(), Fault(2, FaultKind.APPLIED_BUT_ERROR))
    storage.create_exclusive("m/v1", b"theirs")
    with pytest.raises(WriteOutcomeUnknownError):
        storage.create_exclusive("m/v1", b"mine")
    assert files(storage) == {"m/v1": b"theirs"}
    with pytest.raises(FileAlreadyExistsError):
        storage.create_exclusive("m/v1", b"mine")


def test_lost_response_to_a_read_is_an_error() -> None:
    storage = FailingStorage(MemoryStorage(), Fault(1, FaultKind.APPLIED_BUT_ERROR))
    with pytest.raises(StorageError):
        storage.exists("m/v1")


def test_after_a_crash_no_call_has_an_effect() -> None:
    for call in range(1, 5):
        before = FailingStorage(MemoryStorage(), Fault(call, FaultKind.CRASH_BEFORE))
        with pytest.raises(SimulatedCrash):
            commit(before)
        assert len(files(before)) == call - 1
        after = FailingStorage(MemoryStorage(), Fault(call, FaultKind.CRASH_AFTER))
        with pytest.raises(SimulatedCrash):
            commit(after)
        assert len(files(after)) == min(call, 3)
        assert after.has_crashed
        with pytest.raises(SimulatedCrash):
            after.read("m/v1")


def test_torn_write_leaves_half_a_file() -> None:
    storage = FailingStorage(MemoryStorage(), Fault(2, FaultKind.TORN))
    with pytest.raises(SimulatedCrash):
        commit(storage)
    assert files(storage) == {"m/manifest": b"12345678", "m/list": b"1234"}


def test_atomic_write_is_torn_under_a_temporary_name_only() -> None:
    storage = FailingStorage(MemoryStorage(), Fault(3, FaultKind.TORN))
    with pytest.raises(SimulatedCrash):
        commit(storage)
    assert "m/v1" not in files(storage)
    assert files(storage)["m/v1.torn.tmp"] == b"1234"


def test_faults_may_count_calls_of_some_methods_only() -> None:
    storage = FailingStorage(
        MemoryStorage(),
        Fault(1, FaultKind.IO_ERROR, frozenset({"read"})),
        Fault(2, FaultKind.IO_ERROR, frozenset({"list", "size"})),
    )
    storage.create("m/f", b"")
    with pytest.raises(StorageError):
        storage.read("m/f")
    assert storage.read("m/f") == b""
    assert len(list(storage.list("m"))) == 1
    with pytest.raises(StorageError):
        storage.size("m/f")


def test_bulk_delete_meets_faults_per_file() -> None:
    storage = FailingStorage(MemoryStorage(), Fault(2, FaultKind.IO_ERROR, frozenset({"delete"})))
    for name in "abc":
        storage.create(f"m/{name}", b"")
    assert list(storage.delete_many(["m/a", "m/b", "m/c"])) == ["m/b"]
    assert list(files(storage)) == ["m/b"]


def test_invalid_plan_is_refused() -> None:
    with pytest.raises(InvalidRequestError):
        Fault(0, FaultKind.IO_ERROR)
    with pytest.raises(InvalidRequestError, match="'rename'"):
        Fault(1, FaultKind.IO_ERROR, frozenset({"rename"}))
