"""Object stores by a catalog's properties. Loaded when a location first needs one, since importing HTTP is slow."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from frazil.errors import InvalidPropertyError, StorageError
from frazil.storage.azure import AzureStorage, azure_service
from frazil.storage.base import Storage
from frazil.storage.http import HttpClient, Proxy
from frazil.storage.object_properties import (
    CONNECT_TIMEOUT,
    GCS_TOKEN,
    PROXY,
    REQUEST_TIMEOUT,
    S3_ACCESS_KEY_ID,
    S3_SECRET_ACCESS_KEY,
    S3_SESSION_TOKEN,
    first_of,
)
from frazil.storage.object_service import gcs_service, s3_service
from frazil.storage.object_store import ObjectStorage
from frazil.storage.origin import parse_endpoint
from frazil.storage.sign_v4 import S3Credentials
from frazil.storage.store_accounts import Credentials, StoreAccount
from frazil.storage.webhdfs import HdfsStorage, hdfs_service


def open_s3(account: StoreAccount) -> Storage:
    """Open Amazon S3, or a compatible store."""
    properties = account.properties
    vended = account.credentials if account.is_vended else None
    service = s3_service(properties, None if vended is None else lambda: _vended_keys(vended))
    return ObjectStorage(service, schemes=account.store.schemes, http=http_client(properties))


def open_gcs(account: StoreAccount) -> Storage:
    """Open Google Cloud Storage."""
    properties = account.properties
    vended = account.credentials if account.is_vended else None
    service = gcs_service(properties, None if vended is None else lambda: _vended_token(vended))
    return ObjectStorage(service, schemes=account.store.schemes, http=http_client(properties))


def open_azure(account: StoreAccount) -> Storage:
    """Open Azure's object store."""
    properties = account.properties
    vended = account.credentials if account.is_vended else None
    service = azure_service(properties, None if vended is None else vended.current, hosts=account.azure_hosts)
    return AzureStorage(service, schemes=account.store.schemes, http=http_client(properties))


def open_hdfs(properties: Mapping[str, str], places: Sequence[str]) -> Storage:
    """Return the HDFS cluster that the places are in."""
    return HdfsStorage(hdfs_service(properties, places))


def _vended_keys(vended: Credentials) -> S3Credentials:
    config = vended.current()
    key_id, secret = first_of(config, S3_ACCESS_KEY_ID), first_of(config, S3_SECRET_ACCESS_KEY)
    if key_id is None or secret is None:
        raise StorageError("Cannot read the table's files: the service vended no credentials for S3")
    return S3Credentials(key_id, secret, first_of(config, S3_SESSION_TOKEN))


def _vended_token(vended: Credentials) -> str:
    token = vended.current().get(GCS_TOKEN)
    if token is None:
        raise StorageError("Cannot read the table's files: the service vended no token for Google Cloud Storage")
    return token


def http_client(properties: Mapping[str, str]) -> HttpClient:
    """Return the HTTP client configured by properties: its timeouts and its proxy."""
    return HttpClient(
        connect_timeout=_seconds(properties, CONNECT_TIMEOUT, 5.0),
        timeout=_seconds(properties, REQUEST_TIMEOUT, 30.0),
        proxy=_proxy(properties),
    )


def _proxy(properties: Mapping[str, str]) -> Proxy | None:
    """Return the proxy of a property: http://host:port, optionally with user:password@ before the host."""
    name = next((name_given for name_given in PROXY if name_given in properties), None)
    if name is None:
        return None
    scheme, mark, rest = properties[name].partition("://")
    user, at, host = rest.rpartition("@")
    if scheme.lower() != "http" or not mark:
        raise InvalidPropertyError(f"Cannot use the property {name}: a proxy must be http://host:port")
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
