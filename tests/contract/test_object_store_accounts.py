"""Who asks an object store, and which: the environment, Google's dialect, encryption, odd locations."""

from __future__ import annotations

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from frazil.errors import FileAlreadyExistsError, StorageError, UnsupportedError, WriteOutcomeUnknownError
from frazil.storage.choose import choose_storage
from frazil.storage.environment_credentials import EnvironmentCredentials
from frazil.storage.object_properties import S3_USE_ENVIRONMENT
from frazil.storage.object_requests import ObjectRequests
from frazil.storage.object_service import gcs_service, s3_service
from frazil.storage.object_store import ObjectStorage
from frazil.storage.sign_v4 import S3Credentials
from tests.support.s3_server import BUCKET, KEY_ID, Planned, S3Server


@pytest.fixture
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that offers no keys, and no network to find some."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


def test_environment_is_ignored_by_default(s3_server: S3Server, empty_environment: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIAFROMENVIRONMENT1",
        "AWS_SECRET_ACCESS_KEY": "from-the-environment",
        "AWS_SESSION_TOKEN": "from-the-environment",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
        "AWS_REGION": "mars-north-1",
        "AWS_DEFAULT_REGION": "mars-north-1",
        "AWS_PROFILE": "absent",
        "HTTP_PROXY": "http://127.0.0.1:1",
    }.items():
        empty_environment.setenv(name, value)
    storage = choose_storage(s3_server.properties)
    storage.create_exclusive(f"s3://{BUCKET}/{uuid.uuid4().hex}", b"")
    signatures = {one["authorization"].split("/s3/")[0].rpartition("/")[2] for one in s3_server.requests()}
    assert signatures == {"us-east-1"}
    assert all(KEY_ID in one["authorization"] for one in s3_server.requests())


def test_credentials_of_the_environment_are_used_on_request(
    s3_server: S3Server, empty_environment: pytest.MonkeyPatch
) -> None:
    empty_environment.setenv("AWS_ACCESS_KEY_ID", "AKIAFROMENVIRONMENT1")
    empty_environment.setenv("AWS_SECRET_ACCESS_KEY", "from-the-environment")
    storage = choose_storage({"s3.endpoint": s3_server.endpoint, S3_USE_ENVIRONMENT: "true"})
    storage.create_exclusive(f"s3://{BUCKET}/{uuid.uuid4().hex}", b"")
    assert all("AKIAFROMENVIRONMENT1" in one["authorization"] for one in s3_server.requests())


def test_environment_without_credentials_is_an_error(empty_environment: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageError, match="no environment variable, profile or role provides any"):
        EnvironmentCredentials()()


def test_broken_profile_is_an_error_without_its_content(empty_environment: pytest.MonkeyPatch) -> None:
    empty_environment.setenv("AWS_PROFILE", "canary-profile")
    with pytest.raises(StorageError, match="ProfileNotFound") as caught:
        EnvironmentCredentials()()
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_credentials_are_looked_up_for_each_request(s3_server: S3Server) -> None:
    names = iter(range(10_000))
    service = s3_service({"s3.endpoint": s3_server.endpoint}, lambda: S3Credentials(f"AKIA{next(names):016}", "secret"))
    storage = ObjectStorage(service)
    path = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    storage.replace(path, b"data")
    assert storage.read(path) == b"data"
    assert len({one["authorization"] for one in s3_server.requests()}) == 2


def test_requests_to_a_public_bucket_are_unsigned(s3_server: S3Server) -> None:
    storage = choose_storage({"s3.endpoint": s3_server.endpoint, "s3.anonymous": "true"})
    with pytest.raises(StorageError):
        storage.read(f"s3://{BUCKET}/{uuid.uuid4().hex}")
    assert {one["authorization"] for one in s3_server.requests()} == {""}


def test_every_write_requests_encryption(s3_server: S3Server) -> None:
    storage = choose_storage({**s3_server.properties, "s3.sse.type": "s3"})
    root = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    storage.create(f"{root}/a", b"")
    storage.create_exclusive(f"{root}/b", b"")
    storage.replace(f"{root}/b", b"")
    asked = {one["encryption"] for one in s3_server.requests() if one["method"] == "PUT"}
    assert asked == {"AES256"}


def test_all_spellings_of_a_scheme_address_the_same_objects(s3_server: S3Server) -> None:
    storage = choose_storage(s3_server.properties)
    rest = f"://{BUCKET}/{uuid.uuid4().hex}/f"
    storage.create_exclusive(f"s3a{rest}", b"data")
    assert storage.read(f"s3{rest}") == b"data"
    assert storage.size(f"S3N{rest}") == 4
    with pytest.raises(FileAlreadyExistsError):
        storage.create_exclusive(f"s3{rest}", b"other")


def google(server: S3Server) -> dict[str, str]:
    return {"gcs.service.host": server.endpoint, "gcs.oauth2.token": "canary-token"}


def test_google_conditional_create_succeeds_for_one_writer(s3_server: S3Server) -> None:
    storage = choose_storage(google(s3_server))
    root = f"gs://{BUCKET}/{uuid.uuid4().hex}"
    barrier = threading.Barrier(6)

    def race(racer: int) -> bool:
        barrier.wait()
        try:
            storage.create_exclusive(f"{root}/v1", b"%d" % racer)
        except FileAlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        wins = list(pool.map(race, range(6)))
    assert wins.count(True) == 1
    assert storage.read(f"{root}/v1") == b"%d" % wins.index(True)
    assert all(one["authorization"] == "Bearer canary-token" for one in s3_server.requests())


def test_google_objects_are_read_listed_and_deleted(s3_server: S3Server) -> None:
    storage = choose_storage(google(s3_server))
    root = f"gs://{BUCKET}/{uuid.uuid4().hex}"
    names = [f"{root}/{at} {at}" for at in range(3)]
    for name in names:
        storage.create(name, b"0123456789")
    storage.create_folder(f"{root}/folder")
    assert storage.read_range(names[0], 2, 3) == b"234"
    assert {one.path for one in storage.list(root)} == set(names)
    assert storage.list_children(root) == (("0 0", "1 1", "2 2"), ("folder",))
    s3_server.plan()
    assert storage.delete_many([*names, f"{root}/absent"]) == {}
    assert {one["method"] for one in s3_server.requests()} == {"DELETE"}
    storage.delete_folder(f"{root}/folder")
    assert storage.list_children(root) == ((), ())


def test_google_writes_are_recognised_after_lost_responses(s3_server: S3Server) -> None:
    storage = choose_storage(google(s3_server))
    root = f"gs://{BUCKET}/{uuid.uuid4().hex}"
    storage.create_exclusive(f"{root}/v1", b"1")
    s3_server.plan(Planned("twice", method="PUT"))
    storage.create_exclusive(f"{root}/v2", b"2")
    with pytest.raises(FileAlreadyExistsError):
        storage.create_exclusive(f"{root}/v1", b"1")


def test_google_multipart_uploads_are_completed(s3_server: S3Server) -> None:
    storage = ObjectStorage(
        gcs_service(google(s3_server)),
        schemes=("gs",),
        requests=lambda service, http: ObjectRequests(service, http, sleep=lambda seconds: None),
        part_bytes=1000,
    )
    root = f"gs://{BUCKET}/{uuid.uuid4().hex}"
    with storage.open_new(f"{root}/f") as file:
        file.write(b"x" * 2500)
        file.publish()
    assert storage.read(f"{root}/f") == b"x" * 2500
    with storage.open_new(f"{root}/f") as file:
        file.write(b"y" * 2500)
        with pytest.raises(FileAlreadyExistsError):
            file.publish()
    # The name seems free, the completion is not answered, and then somebody else's object is there. Nothing would
    # refuse a completion that is still on its way, so nothing is known.
    s3_server.plan(
        Planned("error", method="HEAD", status=404), Planned("error", method="POST", text="uploadId", times=100)
    )
    with storage.open_new(f"{root}/f") as file:
        file.write(b"y" * 2500)
        with pytest.raises(WriteOutcomeUnknownError):
            file.publish()


def test_store_ignoring_the_google_precondition_is_detected(s3_server: S3Server) -> None:
    storage = choose_storage(google(s3_server))
    s3_server.plan(Planned("unconditional", times=100))
    with pytest.raises(UnsupportedError, match="two writers could both succeed"):
        storage.create_exclusive(f"gs://{BUCKET}/{uuid.uuid4().hex}", b"")
