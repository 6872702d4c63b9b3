"""What properties say about an object store: where it is, who asks, and what is refused."""

from __future__ import annotations

import pickle

import pytest

from frazil.errors import InvalidPropertyError, InvalidRequestError, UnsupportedError
from frazil.storage.object_requests import ObjectKey, place_of
from frazil.storage.object_service import GcsService, S3Service, gcs_service, s3_service
from frazil.storage.object_store import ObjectStorage
from frazil.storage.origin import Origin, parse_endpoint
from frazil.storage.sign_v4 import S3Credentials

KEYS = {
    "s3.access-key-id": "AKIACANARY00000001",
    "s3.secret-access-key": "canary-secret-01",
    "s3.session-token": "tok-01",
}


def address(properties: dict[str, str], bucket: str = "my-bucket") -> str:
    found = s3_service({**KEYS, **properties}).address(bucket)
    return f"{found.origin}{found.path}"


def test_amazon_bucket_is_in_the_host_name() -> None:
    assert address({}) == "https://my-bucket.s3.us-east-1.amazonaws.com/"
    assert address({"s3.region": "eu-west-1"}) == "https://my-bucket.s3.eu-west-1.amazonaws.com/"
    assert address({"client.region": "eu-west-1"}) == "https://my-bucket.s3.eu-west-1.amazonaws.com/"
    assert address({"s3.region": "cn-north-1"}) == "https://my-bucket.s3.cn-north-1.amazonaws.com.cn/"
    assert address({"s3.path-style-access": "true"}) == "https://s3.us-east-1.amazonaws.com/my-bucket/"


def test_bucket_with_a_dot_is_in_the_path_for_certificates() -> None:
    assert address({}, "my.bucket") == "https://s3.us-east-1.amazonaws.com/my.bucket/"


def test_bucket_behind_an_endpoint_is_in_the_path_by_default() -> None:
    assert address({"s3.endpoint": "http://127.0.0.1:9000"}) == "http://127.0.0.1:9000/my-bucket/"
    assert address({"s3.endpoint": "https://minio.example/"}) == "https://minio.example/my-bucket/"
    for switch in ({"s3.force-virtual-addressing": "true"}, {"s3.path-style-access": "false"}):
        assert address({"s3.endpoint": "https://minio.example", **switch}) == "https://my-bucket.minio.example/"


def test_only_amazon_and_google_are_trusted_unprobed() -> None:
    assert s3_service(KEYS).is_proven
    assert not s3_service({**KEYS, "s3.endpoint": "https://minio.example"}).is_proven
    assert gcs_service({"gcs.oauth2.token": "t"}).is_proven
    assert not gcs_service({"gcs.oauth2.token": "t", "gcs.service.host": "http://127.0.0.1:1"}).is_proven


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://h", Origin("h")),
        ("https://h:443/", Origin("h")),
        ("http://h:80", Origin("h", None, is_tls=False)),
        ("http://h:443", Origin("h", 443, is_tls=False)),
        ("http://[::1]:9000", Origin("[::1]", 9000, is_tls=False)),
    ],
)
def test_endpoints_are_parsed(text: str, origin: Origin) -> None:
    assert parse_endpoint("p", text) == origin


@pytest.mark.parametrize(
    "text",
    ["", "h", "h:9000", "ftp://h", "https://", "https://u:hunter2@h", "https://h/path", "https://h?q", "https://h#f",
     "https://h:99999", "https://h:x", "https://a b", "https://-h", "https://h\r\nx", "https://[zz]"],
)  # fmt: skip
def test_endpoint_that_is_more_than_a_server_is_refused_and_hidden(text: str) -> None:
    with pytest.raises(InvalidPropertyError, match=r"s3\.endpoint") as caught:
        s3_service({**KEYS, "s3.endpoint": text})
    assert "hunter2" not in str(caught.value)


def test_credentials_have_either_family_of_names() -> None:
    for family in ("s3", "client"):
        service = s3_service({f"{family}.access-key-id": "a", f"{family}.secret-access-key": "b"})
        assert service.credentials is not None
        assert service.credentials() == S3Credentials("a", "b")


def test_credential_provider_of_the_caller_wins_over_properties() -> None:
    service = s3_service(KEYS, lambda: S3Credentials("other", "keys"))
    assert service.credentials is not None
    assert service.credentials().access_key_id == "other"


def test_without_credentials_the_environment_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "from-the-environment")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "from-the-environment")
    with pytest.raises(InvalidRequestError, match="no credentials are configured") as caught:
        s3_service({})
    assert "s3.use-environment" in str(caught.value)


def test_half_a_pair_of_credentials_is_refused() -> None:
    for name in ("s3.access-key-id", "s3.secret-access-key"):
        with pytest.raises(InvalidPropertyError, match="must be set together"):
            s3_service({name: "canary"})


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        ({"s3.remote-signing-enabled": "true"}, UnsupportedError),
        ({"s3.signer": "S3V4RestSigner"}, UnsupportedError),
        (
            {"client.assume-role.arn": "arn:aws:iam::1:role/r", "client.assume-role.timeout-sec": "1"},
            InvalidPropertyError,
        ),
        ({"s3.acceleration-enabled": "true"}, UnsupportedError),
        ({"s3.sse.type": "custom"}, UnsupportedError),
        ({"s3.path-style-access": "yes"}, InvalidPropertyError),
        ({"s3.path-style-access": "true", "s3.force-virtual-addressing": "true"}, InvalidPropertyError),
        ({"s3.region": "eu west"}, InvalidPropertyError),
        ({"s3.region": "evil.example/"}, InvalidPropertyError),
    ],
)
def test_settings_that_change_identity_or_host_are_never_ignored(
    properties: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        s3_service({**KEYS, **properties})


def test_every_write_requests_encryption() -> None:
    assert s3_service(KEYS).write_headers() == {}
    assert s3_service({**KEYS, "s3.sse.type": "s3"}).write_headers() == {"x-amz-server-side-encryption": "AES256"}
    assert s3_service({**KEYS, "s3.sse.type": "kms", "s3.sse.key": "k"}).write_headers() == {
        "x-amz-server-side-encryption": "aws:kms",
        "x-amz-server-side-encryption-aws-kms-key-id": "k",
    }


def test_google_requires_a_token_or_a_public_bucket() -> None:
    with pytest.raises(InvalidRequestError, match="no token"):
        gcs_service({})
    assert gcs_service({"gcs.no-auth": "true"}).is_anonymous
    with pytest.raises(InvalidPropertyError, match="invalid characters") as caught:
        gcs_service({"gcs.oauth2.token": "canary\r\nevil: 1"})
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "storage",
    [
        ObjectStorage(s3_service(KEYS)),
        ObjectStorage(gcs_service({"gcs.oauth2.token": "canary-secret-01"}), schemes=("gs",)),
    ],
    ids=["s3", "gcs"],
)
def test_no_secret_is_shown_or_pickled(storage: ObjectStorage) -> None:
    again = pickle.loads(pickle.dumps(storage))
    for text in (repr(storage), str(storage), repr(pickle.dumps(storage)), repr(again)):
        assert not any(secret in text for secret in KEYS.values())
    with pytest.raises(InvalidRequestError, match="not included in a pickled storage"):
        again.read("s3://bucket/f" if "S3" in repr(storage) else "gs://bucket/f")


def test_use_of_environment_credentials_is_pickled_without_credentials() -> None:
    service = pickle.loads(pickle.dumps(s3_service({"s3.use-environment": "true"}).without_secrets()))
    assert isinstance(service, S3Service)
    assert service.credentials is not None


def test_requests_to_a_public_bucket_are_unsigned() -> None:
    service = s3_service({"s3.anonymous": "true"})
    assert service.credentials is None
    assert isinstance(gcs_service({"gcs.no-auth": "true"}), GcsService)


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("s3://bucket/a/b", ("bucket", "a/b")),
        ("s3://bucket//a//b", ("bucket", "/a//b")),
        ("s3://bucket/a%20b?c#d", ("bucket", "a%20b?c#d")),
        ("s3://bucket", ("bucket", "")),
        ("s3://my.buck-et_1/a", ("my.buck-et_1", "a")),
    ],
)
def test_locations_are_used_literally(location: str, place: tuple[str, str]) -> None:
    assert place_of(location, "s3") == ObjectKey(*place, location)


@pytest.mark.parametrize(
    "location",
    ["s3:bucket/a", "s3:/bucket/a", "s3:///a", "s3://", "s3://b/a", "s3://user:hunter2@bucket/a", "s3://bu cket/a",
     "s3://bucket:80/a", "s3://bucket?x/a", "s3://-bucket/a", "s3://bucket\r\n/a", "s3://evil.com#/a"],
)  # fmt: skip
def test_invalid_bucket_is_refused_and_hidden(location: str) -> None:
    with pytest.raises(InvalidRequestError, match="not a bucket name") as caught:
        place_of(location, "s3")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["..", "a/../b", "a/.", "./a", "\ud800"])
def test_credentials_that_cannot_be_sent_unchanged_are_refused(key: str) -> None:
    with pytest.raises(InvalidRequestError):
        place_of(f"s3://bucket/{key}", "s3")


@pytest.mark.parametrize("location", ["s3://bucket", "s3://bucket/", "s3://bucket/folder/", "gs://bucket/f", "/f"])
def test_file_is_neither_a_folder_nor_of_another_scheme(location: str) -> None:
    storage = ObjectStorage(s3_service(KEYS))
    with pytest.raises(InvalidRequestError):
        storage.read(location)
    with pytest.raises(InvalidRequestError):
        storage.delete(location)
