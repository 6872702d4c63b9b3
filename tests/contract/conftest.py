"""The loopback S3 server: one for all tests of a process, started when the first one asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from frazil.storage.azure import AzureRequests, AzureStorage, azure_service
from frazil.storage.http import HttpClient
from frazil.storage.multipart import PART_BYTES
from frazil.storage.object_requests import ObjectKey, ObjectRequests
from frazil.storage.object_service import s3_service
from frazil.storage.object_store import ObjectStorage
from tests.support import azure_server
from tests.support.s3_server import S3Server, running


@pytest.fixture(scope="session")
def s3_running() -> Iterator[S3Server]:
    with running() as server:
        yield server


@pytest.fixture
def s3_server(s3_running: S3Server) -> Iterator[S3Server]:
    """The server without faults, and with no requests to show."""
    s3_running.plan()
    yield s3_running
    s3_running.plan()


def new_storage(properties: dict[str, str], *, part_bytes: int = PART_BYTES) -> ObjectStorage:
    """A storage that does not wait between its attempts."""
    return ObjectStorage(
        s3_service(properties),
        requests=lambda service, http: ObjectRequests(service, http, sleep=lambda seconds: None),
        part_bytes=part_bytes,
    )


@pytest.fixture
def s3_storage(s3_server: S3Server) -> ObjectStorage:
    return new_storage(s3_server.properties)


@pytest.fixture
def s3_parts(s3_server: S3Server) -> ObjectStorage:
    """A storage that sends files from 64 KiB on in parts."""
    return new_storage(s3_server.properties, part_bytes=1 << 16)


@pytest.fixture(scope="session")
def azure_running() -> Iterator[dict[str, str]]:
    with azure_server.running() as properties:
        requests = AzureRequests(azure_service(properties), HttpClient())
        made = requests.send(
            "PUT", ObjectKey(azure_server.CONTAINER, "", "container"), query=(("restype", "container"),)
        )
        assert made.is_success, made
        yield properties


@pytest.fixture
def azure_storage(azure_running: dict[str, str]) -> AzureStorage:
    return AzureStorage(azure_service(azure_running), schemes=("abfss", "abfs"))


@pytest.fixture
def azure_parts(azure_running: dict[str, str]) -> AzureStorage:
    """A storage that sends files from 64 KiB on in blocks."""
    return AzureStorage(azure_service(azure_running), schemes=("abfss", "abfs"), part_bytes=1 << 16)
