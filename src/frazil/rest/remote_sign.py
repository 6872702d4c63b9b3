"""Requests to S3 that a catalog service signs: it has the credentials, and sees each request before the store does.

Each request to the store is described to the service, and sent with the headers that it returns. The service may refuse
it. Deletions are sent one by one, since a service signs a bulk deletion only with its body.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from frazil.errors import StorageError
from frazil.rest.service import read_object
from frazil.storage.choose import S3_SCHEMES, SchemeStorage
from frazil.storage.http import Answer
from frazil.storage.object_properties import S3_ANONYMOUS
from frazil.storage.object_service import S3Service, UnsignedRequest, s3_service
from frazil.storage.object_store import ObjectStorage
from frazil.storage.object_stores import http_client
from frazil.storage.store_accounts import StoreAccount

ENABLED: Final = "s3.remote-signing-enabled"
SIGNER_URIS: Final = ("signer.uri", "s3.signer.uri")
SIGNER_ENDPOINTS: Final = ("signer.endpoint", "s3.signer.endpoint")
DEFAULT_SIGNER: Final = "v1/aws/s3/sign"
"""The signing path of services that name none."""

Sign: TypeAlias = Callable[[dict[str, Any]], Answer]
"""Sends a signing request to the service."""


@dataclass(frozen=True, slots=True)
class SigningService(S3Service):
    """Amazon S3, or a compatible store, with requests signed by a catalog service."""

    sign: Sign | None = field(default=None, repr=False)

    has_bulk_delete = False

    def authorize(self, request: UnsignedRequest) -> dict[str, str]:
        """Return the headers of a request, signed by the service."""
        if self.sign is None:
            raise StorageError(
                "Cannot reach S3: its requests are signed by a catalog service, which is not available in this process"
            )
        scheme = "http" if self.endpoint is not None and not self.endpoint.is_tls else "https"
        query = f"?{request.query}" if request.query else ""
        uri = f"{scheme}://{request.headers['host']}{request.path}{query}"
        headers = {**request.headers, "x-amz-content-sha256": request.body_sha256}
        reply = self.sign(
            {
                "region": self.region,
                "uri": uri,
                "method": request.method,
                "headers": {name: [value] for name, value in headers.items()},
                "provider": "s3",
            }
        )
        answer = read_object(reply, "the service's signature")
        if not _is_same_place(uri, answer.string("uri")):
            raise StorageError("Cannot reach S3: the catalog service signed another request than the requested one")
        signed = answer.raw("headers", None)
        signed_headers = {
            str(name).lower(): ", ".join(map(str, values)) if isinstance(values, list) else str(values)
            for name, values in (signed.items() if isinstance(signed, dict) else ())
        }
        return {**headers, **signed_headers}

    def without_secrets(self) -> S3Service:
        """Return the service without its signer, for display and pickling."""
        return S3Service(self.region, self.endpoint, self.is_path_style, is_anonymous=True)

    def _secrets(self) -> tuple[str, ...]:
        return ()


def signed_storage(account: StoreAccount, sign: Sign) -> SchemeStorage:
    """Return an S3 storage with requests that a service signs; no credentials are sent with them."""
    properties = account.properties
    plain = s3_service({**properties, S3_ANONYMOUS: "true"})
    service = SigningService(
        plain.region,
        plain.endpoint,
        plain.is_path_style,
        encryption=plain.encryption,
        encryption_key=plain.encryption_key,
        sign=sign,
    )
    storage = ObjectStorage(service, schemes=S3_SCHEMES, http=http_client(properties))
    return SchemeStorage(dict.fromkeys(S3_SCHEMES, storage))


def _is_same_place(requested: str, signed: str) -> bool:
    requested_parts, signed_parts = urlsplit(requested), urlsplit(signed)
    return (requested_parts.scheme, requested_parts.netloc, requested_parts.path) == (
        signed_parts.scheme,
        signed_parts.netloc,
        signed_parts.path,
    )
