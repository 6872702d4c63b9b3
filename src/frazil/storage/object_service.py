"""The service interface of object stores, for Amazon S3, compatible stores, and Google Cloud Storage.

All of them use the same HTTP and XML requests. This module holds the differences: the server's address, the
authentication of a request, and the header that makes a write fail if a name is taken.

The properties are in `object_properties.py`. Credentials come from properties or from a function passed by the caller;
the environment is used only with `s3.use-environment`. Keys are never shown in texts or errors, nor pickled: an
unpickled storage obtains its credentials from the environment or not at all.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from frazil.errors import InvalidPropertyError, InvalidRequestError, UnsupportedError
from frazil.storage.assume_role import RoleCredentials, role_of
from frazil.storage.environment_credentials import EnvironmentCredentials
from frazil.storage.object_properties import (
    GCS_ANONYMOUS,
    GCS_ENDPOINT,
    GCS_TOKEN,
    NOT_BUILT,
    S3_ACCESS_KEY_ID,
    S3_ANONYMOUS,
    S3_ENCRYPTION,
    S3_ENCRYPTION_KEY,
    S3_ENDPOINT,
    S3_PATH_STYLE,
    S3_REGION,
    S3_SECRET_ACCESS_KEY,
    S3_SESSION_TOKEN,
    S3_USE_ENVIRONMENT,
    S3_VIRTUAL,
    first_of,
    is_true,
)
from frazil.storage.origin import Origin, check_region, parse_endpoint
from frazil.storage.sign_v4 import CredentialSource, S3Credentials, sign_v4

_ENCRYPTIONS: Final = {"s3": "AES256", "kms": "aws:kms", "dsse-kms": "aws:kms:dsse"}
_EMPTY_SHA256: Final = hashlib.sha256(b"").hexdigest()
_MIN_SECRET: Final = 4


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a bucket: a server, and the path prefix of its keys."""

    origin: Origin
    path: str


@dataclass(frozen=True, slots=True)
class UnsignedRequest:
    """A request before authentication.

    Path and query are escaped; header names are in lower case and include `host`; `now` is in UTC.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body_sha256: str
    body_bytes: int
    now: datetime


class ObjectService(ABC):
    """One store and one account."""

    __slots__ = ()

    name: str
    id_header: str
    """The metadata header of an object with the ID of the call that wrote it."""
    condition: tuple[str, str]
    """The header that makes a write fail if the name is taken."""
    has_bulk_delete: bool
    has_conditional_parts: bool
    """Whether a file written in parts can be completed under the same condition."""
    taken_codes: frozenset[str] = frozenset()
    """Codes of a conflict (409) that mean that the name is taken; otherwise 412 means that."""
    bucket_pattern: re.Pattern[str] = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{1,221}[A-Za-z0-9]")

    @property
    @abstractmethod
    def is_proven(self) -> bool:
        """Whether the store is known to honour the condition, so that no trial is needed."""

    @abstractmethod
    def address(self, bucket: str) -> Address:
        """Return the address of a bucket."""

    def path(self, bucket: str, key: str) -> str:
        """Return the path of an object, or of a bucket if the key is empty."""
        return f"{self.address(bucket).path}{key}"

    @abstractmethod
    def authorize(self, request: UnsignedRequest) -> dict[str, str]:
        """Add the headers that authenticate a request."""

    def secret_query(self, path: str, host: str) -> str:
        """Return the suffix of the query that authenticates a request, if any; it is not signed."""
        return ""

    @abstractmethod
    def without_secrets(self) -> ObjectService:
        """Return the service without secrets, for display and pickling."""

    def write_headers(self) -> Mapping[str, str]:
        """Return the additional headers of every write."""
        return {}

    def hide_secrets(self, text: str) -> str:
        """Remove all secrets from a server's text."""
        for secret in self._secrets():
            if len(secret) >= _MIN_SECRET:
                text = text.replace(secret, "***")
        return text

    @abstractmethod
    def _secrets(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class S3Service(ObjectService):
    """Amazon S3, or a compatible store at an endpoint."""

    region: str = "us-east-1"
    endpoint: Origin | None = None
    is_path_style: bool = False
    is_anonymous: bool = False
    credentials: CredentialSource | None = field(default=None, repr=False)
    encryption: str | None = None
    encryption_key: str | None = None

    name = "S3"
    id_header = "x-amz-meta-frazil-write"
    condition = ("if-none-match", "*")
    has_bulk_delete = True
    has_conditional_parts = True

    def __post_init__(self) -> None:
        check_region(self.region)

    @property
    def is_proven(self) -> bool:
        """Amazon's own store honours the condition."""
        return self.endpoint is None

    def address(self, bucket: str) -> Address:
        """Return the address of a bucket: in the host name, or first in the path."""
        origin = self.endpoint
        if origin is None:
            tail = "amazonaws.com.cn" if self.region.startswith("cn-") else "amazonaws.com"
            origin = Origin(f"s3.{self.region}.{tail}")
        # A certificate for *.s3 covers one label, so a bucket with a dot in its name goes into the path.
        if self.is_path_style or (origin.is_tls and "." in bucket):
            return Address(origin, f"/{bucket}/")
        return Address(replace(origin, host=f"{bucket}.{origin.host}"), "/")

    def authorize(self, request: UnsignedRequest) -> dict[str, str]:
        """Sign a request; return its headers."""
        if self.is_anonymous:
            return dict(request.headers)
        if self.credentials is None:
            raise InvalidRequestError(
                "Cannot use the object store: its credentials are not included in a pickled storage",
                hint=f"Choose the storage from its properties where it is used, or set {S3_USE_ENVIRONMENT}.",
            )
        return sign_v4(
            self.credentials(),
            method=request.method,
            path=request.path,
            query=request.query,
            headers=request.headers,
            body_sha256=request.body_sha256,
            region=self.region,
            now=request.now,
        )

    def without_secrets(self) -> S3Service:
        """Return the service without credentials, unless they come from the environment."""
        return self if isinstance(self.credentials, EnvironmentCredentials) else replace(self, credentials=None)

    def write_headers(self) -> Mapping[str, str]:
        """Return the headers for server-side encryption."""
        if self.encryption is None:
            return {}
        headers = {"x-amz-server-side-encryption": self.encryption}
        if self.encryption_key is not None:
            headers["x-amz-server-side-encryption-aws-kms-key-id"] = self.encryption_key
        return headers

    def _secrets(self) -> tuple[str, ...]:
        return () if self.credentials is None or self.is_anonymous else self.credentials().secrets()


@dataclass(frozen=True, slots=True)
class GcsService(ObjectService):
    """Google Cloud Storage, through its XML interface."""

    endpoint: Origin | None = None
    token: Callable[[], str] | None = field(default=None, repr=False)
    is_anonymous: bool = False

    name = "Google Cloud Storage"
    id_header = "x-goog-meta-frazil-write"
    condition = ("x-goog-if-generation-match", "0")
    has_bulk_delete = False
    has_conditional_parts = False

    @property
    def is_proven(self) -> bool:
        """Google's own store honours the condition."""
        return self.endpoint is None

    def address(self, bucket: str) -> Address:
        """Return the address of a bucket."""
        return Address(Origin("storage.googleapis.com") if self.endpoint is None else self.endpoint, f"/{bucket}/")

    def authorize(self, request: UnsignedRequest) -> dict[str, str]:
        """Add the token to the headers of a request."""
        if self.is_anonymous:
            return dict(request.headers)
        if self.token is None:
            raise InvalidRequestError(
                "Cannot use the object store: its token is not included in a pickled storage",
                hint="Choose the storage from its properties where it is used.",
            )
        return {**request.headers, "authorization": f"Bearer {self.token()}"}

    def without_secrets(self) -> GcsService:
        """Return the service without its token."""
        return replace(self, token=None)

    def _secrets(self) -> tuple[str, ...]:
        return () if self.token is None else (self.token(),)


def s3_service(properties: Mapping[str, str], credentials: CredentialSource | None = None) -> S3Service:
    """Return the S3 service configured by properties; a credential source passed by the caller takes precedence."""
    for name, what in NOT_BUILT.items():
        if properties.get(name, "false").lower() != "false":
            raise UnsupportedError(f"Cannot use the property {name}: {what} is not supported")
    endpoint = parse_endpoint(S3_ENDPOINT, properties[S3_ENDPOINT]) if S3_ENDPOINT in properties else None
    is_virtual = is_true(properties, S3_VIRTUAL)
    is_path_style = is_true(properties, S3_PATH_STYLE, default=endpoint is not None and not is_virtual)
    if is_virtual and is_path_style:
        raise InvalidPropertyError(f"Cannot use both {S3_VIRTUAL} and {S3_PATH_STYLE}: they contradict each other")
    encryption, encryption_key = _encryption(properties)
    is_anonymous = is_true(properties, S3_ANONYMOUS)
    return S3Service(
        region=first_of(properties, S3_REGION) or "us-east-1",
        endpoint=endpoint,
        is_path_style=is_path_style,
        is_anonymous=is_anonymous,
        credentials=None if is_anonymous else credentials or _with_role(properties, _credentials(properties)),
        encryption=encryption,
        encryption_key=encryption_key,
    )


def gcs_service(properties: Mapping[str, str], token: Callable[[], str] | None = None) -> GcsService:
    """Return the Google Cloud Storage service of properties; a token source passed by the caller takes precedence."""
    endpoint = parse_endpoint(GCS_ENDPOINT, properties[GCS_ENDPOINT]) if GCS_ENDPOINT in properties else None
    is_anonymous = is_true(properties, GCS_ANONYMOUS)
    if token is None and not is_anonymous:
        if GCS_TOKEN not in properties:
            raise InvalidRequestError(
                "Cannot use Google Cloud Storage: no token is configured",
                hint=f"Set {GCS_TOKEN}, or {GCS_ANONYMOUS} for a public bucket.",
            )
        token = _Fixed(properties[GCS_TOKEN])
    return GcsService(endpoint, token, is_anonymous)


class _Fixed:
    """A token from a property; not shown, and not pickled."""

    __slots__ = ("_token",)

    def __init__(self, token: str) -> None:
        if not token.isascii() or not token.isprintable() or token == "" or " " in token:
            raise InvalidPropertyError(f"Cannot use {GCS_TOKEN}: it is empty or contains invalid characters")
        self._token = token

    def __call__(self) -> str:
        return self._token

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("tokens cannot be pickled, since they are secret")


def _with_role(properties: Mapping[str, str], own: CredentialSource) -> CredentialSource:
    role = role_of(properties)
    return own if role is None else RoleCredentials(own, role)


def _credentials(properties: Mapping[str, str]) -> CredentialSource:
    key_id = first_of(properties, S3_ACCESS_KEY_ID)
    secret = first_of(properties, S3_SECRET_ACCESS_KEY)
    if key_id is None and secret is None:
        if is_true(properties, S3_USE_ENVIRONMENT):
            return EnvironmentCredentials()
        raise InvalidRequestError(
            "Cannot use S3: no credentials are configured",
            hint=f"Set {S3_ACCESS_KEY_ID[0]} and {S3_SECRET_ACCESS_KEY[0]}; or {S3_USE_ENVIRONMENT} for those of this "
            f"machine's profile or role; or {S3_ANONYMOUS} for a public bucket.",
        )
    if key_id is None or secret is None:
        raise InvalidPropertyError(
            f"Cannot use S3: {S3_ACCESS_KEY_ID[0]} and {S3_SECRET_ACCESS_KEY[0]} must be set together"
        )
    credentials = S3Credentials(key_id, secret, first_of(properties, S3_SESSION_TOKEN))
    return lambda: credentials


def _encryption(properties: Mapping[str, str]) -> tuple[str | None, str | None]:
    encryption = properties.get(S3_ENCRYPTION, "none").lower()
    if encryption == "none":
        return None, None
    if encryption not in _ENCRYPTIONS:
        raise UnsupportedError(
            f"Cannot use {S3_ENCRYPTION} {encryption!r}: only none, {', '.join(_ENCRYPTIONS)} are supported"
        )
    return _ENCRYPTIONS[encryption], properties.get(S3_ENCRYPTION_KEY) if encryption != "s3" else None
