"""Signatures: the published example, and botocore's answer to everything else."""

from __future__ import annotations

import copy
import hashlib
import pickle
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import InvalidRequestError
from frazil.storage.sign_v4 import S3Credentials, escape, query_text, sign_v4

KEY_ID, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
NOTHING = hashlib.sha256(b"").hexdigest()
AT = datetime(2013, 5, 24, tzinfo=UTC)

texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20)


def test_published_example_has_its_signature() -> None:
    # "Example: GET Object" of "Authenticating Requests: Using the Authorization Header" in Amazon's S3 reference.
    headers = sign_v4(
        S3Credentials(KEY_ID, SECRET),
        method="GET",
        path="/test.txt",
        query="",
        headers={"host": "examplebucket.s3.amazonaws.com", "range": "bytes=0-9"},
        body_sha256=NOTHING,
        region="us-east-1",
        now=AT,
    )
    assert headers["authorization"] == (
        f"AWS4-HMAC-SHA256 Credential={KEY_ID}/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


@given(
    key=texts,
    query=st.dictionaries(st.sampled_from(["prefix", "list-type", "uploads", "delimiter"]), texts),
    meta=st.text("abc XYZ", max_size=10),
    body=st.binary(max_size=50),
    token=st.none() | st.text("abcXYZ/+=", min_size=1, max_size=30),
    method=st.sampled_from(["GET", "PUT", "POST", "HEAD", "DELETE"]),
    now=st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)),
)
def test_signatures_match_botocore(
    key: str, query: dict[str, str], meta: str, body: bytes, token: str | None, method: str, now: datetime
) -> None:
    now = now.replace(tzinfo=UTC)
    path = escape(f"/bucket/{key}", is_path=True)
    query_string = query_text(query.items())
    digest = hashlib.sha256(body).hexdigest()
    headers = {"host": "127.0.0.1:9000", "x-amz-meta-a": meta, "if-none-match": "*"}
    ours = sign_v4(
        S3Credentials(KEY_ID, SECRET, token),
        method=method,
        path=path,
        query=query_string,
        headers=headers,
        body_sha256=digest,
        region="eu-west-1",
        now=now,
    )
    request = AWSRequest(method, f"http://127.0.0.1:9000{path}?{query_string}", dict(headers), body)
    request.headers["X-Amz-Content-SHA256"] = digest
    request.context["timestamp"] = ours["x-amz-date"]
    request.headers["X-Amz-Date"] = ours["x-amz-date"]
    if token is not None:
        request.headers["X-Amz-Security-Token"] = token
    signer = S3SigV4Auth(Credentials(KEY_ID, SECRET, token), "s3", "eu-west-1")
    signer.payload = lambda _: digest
    canonical = signer.canonical_request(request)
    signature = signer.signature(signer.string_to_sign(request, canonical), request)
    assert ours["authorization"].endswith(f"Signature={signature}")


@pytest.mark.parametrize("text", ["a b", "a+b", "a%20b", "ü", "日本", "a\nb", "~", "a*b", "'", "&", "\0"])
def test_escaping_is_reversible(text: str) -> None:
    assert unquote(escape(text)) == text
    assert set(escape(text)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~%")


def test_credentials_are_neither_shown_nor_pickled() -> None:
    keys = S3Credentials(KEY_ID, SECRET, "a-session-token")
    assert repr(keys) == "S3Credentials()"
    assert str(keys) == "S3Credentials()"
    with pytest.raises(TypeError, match="secret"):
        pickle.dumps(keys)
    with pytest.raises(TypeError, match="secret"):
        copy.deepcopy(keys)


@pytest.mark.parametrize("keys", [("", "s"), ("a", ""), ("a", "s", ""), ("a b", "s"), ("a", "s\n"), ("a", "s", "ü")])
def test_credentials_that_fit_no_header_are_refused_and_hidden(keys: tuple[str, ...]) -> None:
    with pytest.raises(InvalidRequestError, match="invalid characters") as caught:
        S3Credentials(*keys)
    assert "\n" not in str(caught.value)
