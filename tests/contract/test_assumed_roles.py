"""Keys of a role, by moto's token service."""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from frazil.errors import StorageError
from frazil.storage.assume_role import Role, RoleCredentials, role_of
from frazil.storage.choose import choose_storage
from frazil.storage.object_service import s3_service
from frazil.storage.sign_v4 import S3Credentials

OWN = S3Credentials("AKIACANARYKEYID00009", "canary-own-secret-0009")
ARN = "arn:aws:iam::123456789012:role/reader"
SERVER = "from moto.server import main; main(['-H', '127.0.0.1', '-p', '%d'])"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SERVER % port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            assert process.poll() is None and time.monotonic() < deadline
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def test_role_credentials_are_renewed_before_they_expire(endpoint: str) -> None:
    now = [int(time.time() * 1000)]
    source = RoleCredentials(lambda: OWN, Role(ARN, endpoint=endpoint, seconds=900), now_ms=lambda: now[0])
    first = source()
    assert first.session_token is not None
    assert first.access_key_id != OWN.access_key_id
    assert source() is first
    now[0] += 700_000
    assert source() is not first
    with pytest.raises(TypeError, match="secret"):
        pickle.dumps(source)


def test_role_is_configured_by_properties(endpoint: str) -> None:
    given = {
        "s3.access-key-id": OWN.access_key_id,
        "s3.secret-access-key": OWN.secret_access_key,
        "s3.region": "eu-central-1",
        "client.assume-role.arn": ARN,
        "client.assume-role.external-id": "canary-external",
        "client.assume-role.endpoint": endpoint,
    }
    credentials = s3_service(given).credentials
    assert credentials is not None
    assert credentials().session_token is not None
    assert role_of({**given, "client.assume-role.session-name": "job"}) == Role(
        ARN, "eu-central-1", "job", 3600, "canary-external", endpoint
    )
    storage = choose_storage(given)
    inner = storage.storage_of("s3://bucket/f")
    for text in (repr(storage), repr(inner), pickle.dumps(inner).decode("latin-1")):
        assert "canary" not in text


def test_failure_to_assume_a_role_is_an_error_without_secrets() -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{found.getsockname()[1]}"
    with pytest.raises(StorageError, match="Cannot use the role") as caught:
        RoleCredentials(lambda: OWN, Role(ARN, endpoint=nobody))()
    assert "canary" not in str(caught.value)
