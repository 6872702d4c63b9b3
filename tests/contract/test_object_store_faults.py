"""What an object store's failures mean: which writes happened, which did not, and which nobody can tell."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from frazil.errors import (
    FileAlreadyExistsError,
    MissingFileError,
    StorageError,
    UnsupportedError,
    WriteOutcomeUnknownError,
)
from frazil.storage.http import HttpClient
from frazil.storage.object_requests import ObjectRequests
from frazil.storage.object_service import s3_service
from frazil.storage.object_store import ObjectStorage
from tests.support.s3_server import BUCKET, KEY_ID, ROOT, SECRET, Planned, S3Server

ALWAYS = 1000


@pytest.fixture
def root(s3_server: S3Server, s3_storage: ObjectStorage) -> str:
    """A folder of the test's own, in a store that was tried already."""
    folder = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    s3_storage.create_exclusive(f"{folder}/tried", b"")
    s3_storage.delete(f"{folder}/tried")
    s3_server.plan()
    return folder


# Own writes are recognised


@pytest.mark.parametrize(
    "fault",
    [
        Planned("lose", method="PUT"),
        Planned("lose", method="PUT", times=3),
        Planned("lose", method="PUT", times=ALWAYS),
        Planned("twice", method="PUT"),
        Planned("twice", method="PUT", times=ALWAYS),
        Planned("late error", method="PUT", status=500),
        Planned("late error", method="PUT", status=503, code="SlowDown", times=ALWAYS),
        Planned("late error", method="PUT", status=412, code="PreconditionFailed"),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}-{fault.times}",
)
def test_successful_write_is_recognised_despite_an_error_response(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str, fault: Planned
) -> None:
    s3_server.plan(fault)
    s3_storage.create_exclusive(f"{root}/v1", b"mine")
    s3_server.plan()
    assert s3_storage.read(f"{root}/v1") == b"mine"


def test_identical_bytes_of_another_writer_are_not_mistaken_for_own_write(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str
) -> None:
    s3_storage.create_exclusive(f"{root}/v1", b"same")
    s3_server.plan(Planned("lose", method="PUT"))
    with pytest.raises(FileAlreadyExistsError):
        s3_storage.create_exclusive(f"{root}/v1", b"same")


def test_object_of_another_tool_is_not_mistaken_for_own_write(s3_storage: ObjectStorage, root: str) -> None:
    s3_storage.replace(f"{root}/v1", b"same")
    with pytest.raises(FileAlreadyExistsError):
        s3_storage.create_exclusive(f"{root}/v1", b"same")


# Conflicts


def test_conflict_is_retried_and_never_treated_as_an_existing_name(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str
) -> None:
    conflict = Planned("error", method="PUT", status=409, code="ConditionalRequestConflict", times=2)
    s3_server.plan(conflict)
    s3_storage.create_exclusive(f"{root}/v1", b"mine")
    assert s3_server.count("PUT") == 3
    assert s3_storage.read(f"{root}/v1") == b"mine"


def test_persistent_conflict_fails_without_writing(s3_server: S3Server, s3_storage: ObjectStorage, root: str) -> None:
    s3_server.plan(Planned("error", method="PUT", status=409, code="ConditionalRequestConflict", times=ALWAYS))
    with pytest.raises(StorageError, match="ConditionalRequestConflict") as caught:
        s3_storage.create_exclusive(f"{root}/v1", b"mine")
    assert not isinstance(caught.value, WriteOutcomeUnknownError | FileAlreadyExistsError | MissingFileError)
    s3_server.plan()
    assert not s3_storage.exists(f"{root}/v1")


def test_after_a_conflict_the_object_determines_the_winner(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str
) -> None:
    s3_storage.create_exclusive(f"{root}/v1", b"theirs")
    s3_server.plan(Planned("error", method="PUT", status=409, code="ConditionalRequestConflict", times=ALWAYS))
    with pytest.raises(FileAlreadyExistsError):
        s3_storage.create_exclusive(f"{root}/v1", b"mine")


def test_name_freed_meanwhile_is_written(s3_server: S3Server, s3_storage: ObjectStorage, root: str) -> None:
    # The answer says that the name is taken, and when we look, whoever had it has deleted it.
    s3_server.plan(Planned("error", method="PUT", status=412, code="PreconditionFailed"))
    s3_storage.create_exclusive(f"{root}/v1", b"mine")
    assert [one["method"] for one in s3_server.requests()] == ["PUT", "HEAD", "PUT"]
    assert s3_storage.read(f"{root}/v1") == b"mine"


def test_store_that_keeps_contradicting_itself_is_given_up(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str
) -> None:
    s3_server.plan(Planned("error", method="PUT", status=412, code="PreconditionFailed", times=ALWAYS))
    with pytest.raises(StorageError, match="PreconditionFailed"):
        s3_storage.create_exclusive(f"{root}/v1", b"mine")
    assert s3_server.count("PUT") == 3


# Doubt


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@pytest.mark.parametrize("verb", ["create", "create_exclusive", "replace"])
def test_server_errors_leave_the_outcome_unknown(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str, verb: str, status: int
) -> None:
    s3_server.plan(Planned("error", method="PUT", status=status, times=ALWAYS))
    with pytest.raises(WriteOutcomeUnknownError, match="Cannot tell whether") as caught:
        getattr(s3_storage, verb)(f"{root}/v1", b"mine")
    assert not caught.value.may_clean_up
    assert s3_server.count("PUT") == 4


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("verb", ["create", "create_exclusive", "replace"])
def test_transient_errors_are_retried(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str, verb: str, status: int
) -> None:
    s3_server.plan(Planned("error", method="PUT", status=status, code="SlowDown", times=3))
    getattr(s3_storage, verb)(f"{root}/v1", b"mine")
    assert s3_storage.read(f"{root}/v1") == b"mine"


@pytest.mark.parametrize(
    "fault", [Planned("lose", method="PUT", times=ALWAYS), Planned("twice", method="PUT", times=ALWAYS)]
)
def test_write_that_cannot_be_verified_has_an_unknown_outcome(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str, fault: Planned
) -> None:
    s3_server.plan(fault, Planned("error", method="HEAD", status=403, code="AccessDenied", times=ALWAYS))
    with pytest.raises(WriteOutcomeUnknownError):
        s3_storage.create_exclusive(f"{root}/v1", b"mine")


def test_refusal_after_a_lost_response_has_an_unknown_outcome(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str
) -> None:
    # The keys expire between two attempts: the first may have been carried out.
    s3_server.plan(
        Planned("error", method="PUT", status=500),
        Planned("error", method="PUT", status=403, code="ExpiredToken"),
    )
    with pytest.raises(WriteOutcomeUnknownError, match="ExpiredToken"):
        s3_storage.create_exclusive(f"{root}/v1", b"mine")


@pytest.mark.parametrize(
    "faults",
    [
        [Planned("error", method="PUT", status=500), Planned("error", method="PUT", status=429, times=ALWAYS)],
        [
            Planned("error", method="PUT", status=500),
            Planned("error", method="PUT", status=412, code="PreconditionFailed"),
            Planned("error", method="PUT", status=403, code="AccessDenied"),
        ],
    ],
    ids=["another-pause", "another-round"],
)
def test_unknown_outcome_is_not_resolved_by_later_responses(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str, faults: list[Planned]
) -> None:
    s3_server.plan(*faults)
    with pytest.raises(WriteOutcomeUnknownError):
        s3_storage.create_exclusive(f"{root}/v1", b"mine")


def test_unreachable_server_wrote_nothing() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    storage = quick_storage(f"http://127.0.0.1:{port}")
    for verb in (storage.create_exclusive, storage.create, storage.replace):
        with pytest.raises(StorageError, match=r"no connection to http://127\.0\.0\.1") as caught:
            verb("s3://bucket/v1", b"mine")
        assert not isinstance(caught.value, WriteOutcomeUnknownError)


def test_silent_server_leaves_the_outcome_unknown() -> None:
    with silent_server() as endpoint:
        storage = quick_storage(endpoint, timeout=0.1)
        with pytest.raises(WriteOutcomeUnknownError, match="timed out"):
            storage.replace("s3://bucket/v1", b"mine")
        with pytest.raises(WriteOutcomeUnknownError, match="timed out"):
            storage.delete("s3://bucket/v1")
        with pytest.raises(StorageError, match="timed out") as caught:
            storage.read("s3://bucket/v1")
        assert not isinstance(caught.value, WriteOutcomeUnknownError)


@pytest.mark.parametrize(("status", "code"), [(400, "InvalidArgument"), (403, "AccessDenied"), (405, "NotAllowed")])
@pytest.mark.parametrize("verb", ["create", "create_exclusive", "replace"])
def test_refusal_is_a_failure_without_a_write(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str, verb: str, status: int, code: str
) -> None:
    s3_server.plan(Planned("error", method="PUT", status=status, code=code))
    with pytest.raises(StorageError, match=code) as caught:
        getattr(s3_storage, verb)(f"{root}/v1", b"mine")
    assert not isinstance(caught.value, WriteOutcomeUnknownError)
    assert s3_server.count("PUT") == 1
    assert not s3_storage.exists(f"{root}/v1")


def test_error_names_the_missing_bucket(s3_storage: ObjectStorage) -> None:
    for act in (
        lambda path: s3_storage.read(path),
        lambda path: s3_storage.create(path, b""),
        lambda path: s3_storage.replace(path, b""),
        lambda path: s3_storage.delete(path),
        lambda path: list(s3_storage.list(path)),
    ):
        with pytest.raises(MissingFileError, match="the bucket does not exist"):
            act("s3://absent-bucket/f")


# Stores that cannot refuse


def test_store_that_ignores_preconditions_accepts_no_exclusive_files(
    s3_server: S3Server, s3_storage: ObjectStorage
) -> None:
    root = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    s3_server.plan(Planned("unconditional", times=ALWAYS))
    for _ in range(2):
        with pytest.raises(UnsupportedError, match="two writers could both succeed"):
            s3_storage.create_exclusive(f"{root}/v1", b"mine")
    with pytest.raises(UnsupportedError):
        s3_storage.create_folder(f"{root}/folder")
    assert s3_server.count("PUT") == 2, "the store is tried once, by two writes"
    assert list(s3_storage.list(root)) == []


def test_store_that_ignores_preconditions_accepts_uniquely_named_files(
    s3_server: S3Server, s3_storage: ObjectStorage
) -> None:
    root = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    s3_server.plan(Planned("unconditional", times=ALWAYS))
    s3_storage.create(f"{root}/f", b"first")
    with pytest.raises(FileAlreadyExistsError):
        s3_storage.create(f"{root}/f", b"second")
    assert s3_storage.read(f"{root}/f") == b"first"


def test_store_without_the_precondition_is_detected_by_its_response(
    s3_server: S3Server, s3_storage: ObjectStorage
) -> None:
    s3_server.plan(Planned("error", method="PUT", status=501, code="NotImplemented"))
    with pytest.raises(UnsupportedError):
        s3_storage.create_exclusive(f"s3://{BUCKET}/{uuid.uuid4().hex}/v1", b"mine")


def test_failed_probe_decides_nothing(s3_server: S3Server, s3_storage: ObjectStorage) -> None:
    path = f"s3://{BUCKET}/{uuid.uuid4().hex}/v1"
    s3_server.plan(Planned("error", method="PUT", status=403, code="AccessDenied"))
    with pytest.raises(StorageError, match="AccessDenied"):
        s3_storage.create_exclusive(path, b"mine")
    s3_storage.create_exclusive(path, b"mine")
    assert s3_storage.read(path) == b"mine"


def test_probe_runs_once_and_leaves_no_object(s3_server: S3Server, s3_storage: ObjectStorage) -> None:
    root = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    s3_storage.create_exclusive(f"{root}/a", b"")
    s3_storage.create_exclusive(f"{root}/b", b"")
    assert s3_server.count("PUT", "trial") == 2
    assert {one.path for one in s3_storage.list(root)} == {f"{root}/a", f"{root}/b"}


# Reading


@pytest.mark.parametrize(
    "fault",
    [
        Planned("error", method="GET", status=503, times=3),
        Planned("lose", method="GET", times=3),
        Planned("cut", method="GET", times=3),
    ],
    ids=lambda fault: fault.kind,
)
def test_reads_are_retried(s3_server: S3Server, s3_storage: ObjectStorage, root: str, fault: Planned) -> None:
    s3_storage.create(f"{root}/f", b"0123456789" * 1000)
    s3_server.plan(fault)
    assert s3_storage.read(f"{root}/f") == b"0123456789" * 1000
    s3_server.plan(fault)
    assert s3_storage.read_range(f"{root}/f", 5, 10) == b"5678901234"
    s3_server.plan(fault)
    assert [one.path for one in s3_storage.list(root)] == [f"{root}/f"]


@pytest.mark.parametrize("kind", ["lose", "cut", "error"])
def test_failed_read_is_an_error_and_never_a_partial_file(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str, kind: str
) -> None:
    s3_storage.create(f"{root}/f", b"0123456789" * 1000)
    s3_server.plan(Planned(kind, method="GET", times=ALWAYS))
    for read in (
        lambda: s3_storage.read(f"{root}/f"),
        lambda: s3_storage.read_range(f"{root}/f", 5, 10),
        lambda: list(s3_storage.list(root)),
    ):
        with pytest.raises(StorageError) as caught:
            read()
        assert not isinstance(caught.value, WriteOutcomeUnknownError)


def test_failed_existence_check_is_an_error(s3_server: S3Server, s3_storage: ObjectStorage, root: str) -> None:
    s3_server.plan(Planned("error", method="HEAD", status=403, code="AccessDenied"))
    with pytest.raises(StorageError) as caught:
        s3_storage.exists(f"{root}/f")
    assert "Check the credentials" in str(caught.value)


def test_oversized_file_is_refused_before_download(s3_server: S3Server, s3_storage: ObjectStorage, root: str) -> None:
    s3_storage.create(f"{root}/f", b"x" * 100_000)
    with pytest.raises(StorageError, match="100000 bytes, more than the limit of 10"):
        s3_storage.read(f"{root}/f", max_bytes=10)
    with pytest.raises(StorageError, match="the file has 100000 bytes"):
        s3_storage.read_range(f"{root}/f", 0, 2**40)
    assert s3_storage.read_range(f"{root}/f", 99_999, 1) == b"x"


def test_listings_are_paginated(s3_server: S3Server, s3_storage: ObjectStorage, root: str) -> None:
    names = {f"{root}/{at}/f" for at in range(5)}
    for name in names:
        s3_storage.create(name, b"")
    s3_server.plan(Planned("page", method="GET", times=ALWAYS))
    assert {one.path for one in s3_storage.list(root)} == names
    assert s3_server.count("GET") == 3
    assert s3_storage.list_children(root) == ((), ("0", "1", "2", "3", "4"))


def test_response_that_is_not_a_listing_is_an_error(s3_server: S3Server, s3_storage: ObjectStorage, root: str) -> None:
    s3_server.plan(Planned("error", method="GET", status=200, code="Surprise", times=ALWAYS))
    with pytest.raises(StorageError, match="not a listing"):
        list(s3_storage.list(root))
    with pytest.raises(StorageError, match="not a listing"):
        s3_storage.list_children(root)


def test_folder_markers_of_other_tools_are_folders(s3_server: S3Server, s3_storage: ObjectStorage, root: str) -> None:
    s3_storage.create_folder(f"{root}/empty")
    s3_storage.create(f"{root}/full/f", b"")
    s3_storage.create(f"{root}/full//g", b"")
    assert {one.path for one in s3_storage.list(root)} == {f"{root}/full/f", f"{root}/full//g"}
    assert s3_storage.list_children(root) == ((), ("empty", "full"))
    assert s3_storage.list_children(f"{root}/full") == (("f",), ())


# Deleting


def test_many_files_are_deleted_in_few_requests(s3_server: S3Server, s3_storage: ObjectStorage, root: str) -> None:
    names = [f"{root}/{at} &<>\n" for at in range(7)]
    for name in names:
        s3_storage.create(name, b"")
    absent = [f"{root}/absent{at}" for at in range(1500)]
    s3_server.plan()
    assert s3_storage.delete_many([*names, *absent]) == {}
    assert [one["method"] for one in s3_server.requests()] == ["POST", "POST"]
    assert list(s3_storage.list(root)) == []


@pytest.mark.parametrize("status", [403, 501])
def test_refused_bulk_delete_falls_back_to_single_deletes(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str, status: int
) -> None:
    names = [f"{root}/file{at}" for at in range(4)]
    for name in names:
        s3_storage.create(name, b"")
    s3_server.plan(
        Planned("error", method="POST", status=status, code="Refused"),
        Planned("error", method="DELETE", status=403, code="AccessDenied", text="/file2"),
    )
    failed = s3_storage.delete_many(iter(names))
    assert list(failed) == [f"{root}/file2"]
    assert "AccessDenied" in str(failed[f"{root}/file2"])
    assert [one.path for one in s3_storage.list(root)] == [f"{root}/file2"]


def test_file_left_by_a_bulk_delete_is_retried_and_reported(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str
) -> None:
    key = f"{root.rpartition('/')[2]}/file1"
    said = f"<DeleteResult><Error><Key>{key}</Key><Code>AccessDenied</Code></Error></DeleteResult>"
    s3_server.plan(
        Planned("error", method="POST", status=200, body=said),
        Planned("error", method="DELETE", status=403, code="AccessDenied"),
    )
    failed = s3_storage.delete_many([f"{root}/file0", f"{root}/file1"])
    assert list(failed) == [f"{root}/file1"]
    assert s3_server.count("DELETE") == 1


def test_bulk_delete_without_a_response_has_an_unknown_outcome(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str
) -> None:
    names = [f"{root}/{at}" for at in range(3)]
    s3_server.plan(Planned("error", method="POST", status=503, times=ALWAYS))
    failed = s3_storage.delete_many(names)
    assert set(failed) == set(names)
    assert all(isinstance(error, WriteOutcomeUnknownError) for error in failed.values())


@pytest.mark.parametrize("kind", ["lose", "error", "twice"])
def test_delete_is_retried_until_acknowledged(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str, kind: str
) -> None:
    s3_storage.create(f"{root}/f", b"")
    s3_server.plan(Planned(kind, method="DELETE", times=3))
    s3_storage.delete(f"{root}/f")
    assert not s3_storage.exists(f"{root}/f")


# Files in parts


@pytest.mark.parametrize(
    "fault",
    [
        Planned("lose", method="POST", text="uploadId"),
        Planned("lose", method="POST", text="uploadId", times=ALWAYS),
        Planned("late error", method="POST", text="uploadId"),
        Planned("late error", method="POST", text="uploadId", status=200, code="InternalError"),
        Planned("error", method="POST", text="uploadId", status=200, code="InternalError", times=2),
        Planned("lose", method="PUT", text="partNumber", times=2),
        Planned("error", method="PUT", text="partNumber=2", status=503, times=3),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.method}-{fault.times}",
)
def test_multipart_upload_survives_lost_responses(
    s3_server: S3Server, s3_parts: ObjectStorage, root: str, fault: Planned
) -> None:
    s3_parts.create_exclusive(f"{root}/tried", b"")
    s3_server.plan(fault)
    with s3_parts.open_new(f"{root}/f") as file:
        file.write(b"x" * 200_000)
        file.publish()
    s3_server.plan()
    assert s3_parts.read(f"{root}/f") == b"x" * 200_000


def test_one_of_several_multipart_uploads_to_a_name_wins(s3_parts: ObjectStorage, root: str) -> None:
    barrier = threading.Barrier(4)

    def race(racer: int) -> bool:
        file = s3_parts.open_new(f"{root}/f")
        file.write(b"%d" % racer * 100_000)
        barrier.wait()
        try:
            file.publish()
        except FileAlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        wins = list(pool.map(race, range(4)))
    assert wins.count(True) == 1
    assert s3_parts.read(f"{root}/f") == b"%d" % wins.index(True) * 100_000


@pytest.mark.parametrize("statuses", [[500] * 20, [200] * 20, [200, 403]], ids=lambda statuses: str(statuses[:2]))
def test_multipart_upload_with_unknown_completion_is_not_aborted(
    s3_server: S3Server, s3_parts: ObjectStorage, root: str, statuses: list[int]
) -> None:
    s3_parts.create_exclusive(f"{root}/tried", b"")
    s3_server.plan(*(Planned("error", method="POST", text="uploadId", status=status) for status in statuses))
    with s3_parts.open_new(f"{root}/f") as file:
        file.write(b"x" * 100_000)
        with pytest.raises(WriteOutcomeUnknownError):
            file.publish()
    assert s3_server.count("DELETE") == 0


def test_refused_multipart_upload_is_aborted(s3_server: S3Server, s3_parts: ObjectStorage, root: str) -> None:
    s3_parts.create_exclusive(f"{root}/tried", b"")
    s3_server.plan(Planned("error", method="PUT", text="partNumber=2", status=403, code="AccessDenied"))
    with s3_parts.open_new(f"{root}/f") as file, pytest.raises(StorageError, match="AccessDenied"):
        file.write(b"x" * 200_000)
    assert s3_server.count("DELETE", "uploadId") == 1
    assert not s3_parts.exists(f"{root}/f")


# Secrets, processes


@pytest.mark.parametrize("verb", ["read", "create", "delete", "list", "delete_many"])
def test_server_messages_are_shown_without_credentials(
    s3_server: S3Server, s3_storage: ObjectStorage, root: str, verb: str
) -> None:
    s3_server.plan(Planned("error", status=400, code="SignatureDoesNotMatch", times=ALWAYS))
    acts: dict[str, Callable[[], object]] = {
        "read": lambda: s3_storage.read(f"{root}/f"),
        "create": lambda: s3_storage.create(f"{root}/f", b""),
        "delete": lambda: s3_storage.delete(f"{root}/f"),
        "list": lambda: list(s3_storage.list(root)),
        "delete_many": lambda: raise_first(s3_storage.delete_many([f"{root}/f", f"{root}/g"])),
    }
    with pytest.raises(StorageError, match=r"Planned for \*\*\* \*\*\*") as caught:
        acts[verb]()
    text = f"{caught.value!r} {caught.value} {caught.value.__cause__!r}"
    assert KEY_ID not in text
    assert SECRET not in text


def test_forked_process_and_its_parent_do_not_share_connections(s3_server: S3Server) -> None:
    code = f"""
import os
from frazil.storage.choose import choose_storage
storage = choose_storage({s3_server.properties!r})
root = "s3://{BUCKET}/{uuid.uuid4().hex}"
storage.create_exclusive(root + "/parent", b"1")
child = os.fork()
if child == 0:
    for at in range(20):
        storage.create_exclusive(f"{{root}}/child{{at}}", b"2")
    os._exit(0)
for at in range(20):
    storage.create_exclusive(f"{{root}}/parent{{at}}", b"3")
assert os.waitpid(child, 0)[1] == 0
assert len(list(storage.list(root))) == 41
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


def raise_first(failed: dict[str, StorageError]) -> None:
    raise next(iter(failed.values()))


def quick_storage(endpoint: str, *, timeout: float = 5) -> ObjectStorage:
    properties = {"s3.endpoint": endpoint, "s3.access-key-id": KEY_ID, "s3.secret-access-key": SECRET}
    return ObjectStorage(
        s3_service(properties),
        http=HttpClient(timeout=timeout),
        requests=lambda service, http: ObjectRequests(service, http, sleep=lambda seconds: None),
    )


@contextmanager
def silent_server() -> Iterator[str]:
    """A server that takes requests and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
