"""Object stores set up from a catalog's properties. Loaded when a location first asks for one: HTTP takes its time."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from urllib.parse import unquote

from frazil.errors import InvalidPropertyError
from frazil.storage.azure import AzureStorage, azure_service
from frazil.storage.base import Storage
from frazil.storage.http import HttpClient, Proxy
from frazil.storage.object_properties import CONNECT_TIMEOUT, PROXY, REQUEST_TIMEOUT
from frazil.storage.object_service import gcs_service, parse_endpoint, s3_service
from frazil.storage.object_store import ObjectStorage
from frazil.storage.sign_v4 import CredentialSource


def open_s3(
    properties: Mapping[str, str], credentials: CredentialSource | None, *, schemes: tuple[str, ...]
) -> Storage:
    """Return Amazon S3, or a store that speaks its protocol."""
    return ObjectStorage(s3_service(properties, credentials), schemes=schemes, http=_http(properties))


def open_gcs(properties: Mapping[str, str], token: Callable[[], str] | None, *, schemes: tuple[str, ...]) -> Storage:
    """Return Google Cloud Storage."""
    return ObjectStorage(gcs_service(properties, token), schemes=schemes, http=_http(properties))


def open_azure(
    properties: Mapping[str, str], secrets: Callable[[], Mapping[str, str]] | None, *, schemes: tuple[str, ...]
) -> Storage:
    """Return Azure's object store."""
    return AzureStorage(azure_service(properties, secrets), schemes=schemes, http=_http(properties))


def _http(properties: Mapping[str, str]) -> HttpClient:
    return HttpClient(
        connect_timeout=_seconds(properties, CONNECT_TIMEOUT, 5.0),
        timeout=_seconds(properties, REQUEST_TIMEOUT, 30.0),
        proxy=_proxy(properties),
    )


def _proxy(properties: Mapping[str, str]) -> Proxy | None:
    """Return the proxy that a property names: http://host:port, perhaps with user:password@ before the host."""
    name = next((name_given for name_given in PROXY if name_given in properties), None)
    if name is None:
        return None
    scheme, mark, rest = properties[name].partition("://")
    user, at, host = rest.rpartition("@")
    if scheme.lower() != "http" or not mark:
        raise InvalidPropertyError(f"Cannot use the property {name}: a proxy is http://host:port")
    authorization = "" if not at else "Basic " + base64.b64encode(unquote(user).encode()).decode()
    return Proxy(parse_endpoint(name, f"http://{host}"), authorization or None)


def _seconds(properties: Mapping[str, str], name: str, default: float) -> float:
    text = properties.get(name)
    if text is None:
        return default
    try:
        return float(text)
    except ValueError as error:
        raise InvalidPropertyError(f"Cannot use the property {name}: {text!r} is not a number of seconds") from error
