"""Signatures of requests to S3 and other AWS services: AWS Signature Version 4, with signed bodies.

A signature covers the caller, the request, its bytes and its time. The server computes it as well, from what it
received,
so both must use the same canonical form: names and values escaped alike, sorted, one per line.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import quote

from frazil.errors import InvalidRequestError

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SPACES: Final = re.compile(r" +")
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class S3Credentials:
    """Credentials of an account. They are not shown, and not pickled."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, value in zip(("access key id", "secret access key", "session token"), self.secrets(), strict=False):
            if not _PRINTABLE.fullmatch(value):
                raise InvalidRequestError(
                    f"Cannot use the credentials: the {name} is empty or contains invalid characters"
                )

    def secrets(self) -> tuple[str, ...]:
        """Return all texts that must not be shown."""
        pair = (self.access_key_id, self.secret_access_key)
        return pair if self.session_token is None else (*pair, self.session_token)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("S3Credentials cannot be pickled, since they are secret")


CredentialSource = Callable[[], S3Credentials]
"""Called for credentials at each request."""


def escape(text: str, *, is_path: bool = False) -> str:
    """Percent-encode a text for signatures; in a path, slashes are preserved."""
    return quote(text, safe="/-_.~" if is_path else "-_.~")


def query_text(query: Iterable[tuple[str, str]]) -> str:
    """Return a query in the form in which it is both sent and signed."""
    return "&".join(f"{name}={value}" for name, value in sorted((escape(name), escape(value)) for name, value in query))


def sign_v4(
    credentials: S3Credentials,
    *,
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    body_sha256: str,
    region: str,
    now: datetime,
    service: str = "s3",
) -> dict[str, str]:
    """Return the headers of a request, including its signature.

    Path and query must be escaped already; header names are in lower case and include `host`; `now` is in UTC. Services
    other than S3 sign the path escaped once more.
    """
    time_text = now.strftime("%Y%m%dT%H%M%SZ")
    signed = {**headers, "x-amz-content-sha256": body_sha256, "x-amz-date": time_text}
    if credentials.session_token is not None:
        signed["x-amz-security-token"] = credentials.session_token
    names = sorted(signed)
    signed_path = path if service == "s3" else escape(path, is_path=True)
    lines = [method, signed_path, query, *(f"{name}:{_SPACES.sub(' ', signed[name].strip())}" for name in names)]
    request = "\n".join([*lines, "", ";".join(names), body_sha256])
    scope = f"{time_text[:8]}/{region}/{service}/aws4_request"
    to_sign = "\n".join([_ALGORITHM, time_text, scope, hashlib.sha256(request.encode()).hexdigest()])
    key = f"AWS4{credentials.secret_access_key}".encode()
    for step in scope.split("/"):
        key = _hmac(key, step)
    signed["authorization"] = (
        f"{_ALGORITHM} Credential={credentials.access_key_id}/{scope}, "
        f"SignedHeaders={';'.join(names)}, Signature={_hmac(key, to_sign).hex()}"
    )
    return signed


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
