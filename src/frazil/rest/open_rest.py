"""Opens a catalog service by its address: requests its configuration, and chooses the authentication."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from frazil.catalog.base import Catalog
from frazil.errors import InvalidPropertyError, InvalidRequestError
from frazil.rest import settings as names
from frazil.rest.auth import (
    Auth,
    AuthFunction,
    BasicAuth,
    BearerAuth,
    CallerAuth,
    GoogleAuth,
    NoAuth,
    sigv4_auth,
)
from frazil.rest.oauth2 import OAuth2Auth
from frazil.rest.refusals import refusal
from frazil.rest.rest_catalog import RestCatalog
from frazil.rest.service import read_service
from frazil.rest.session import RestSession
from frazil.rest.settings import PROPERTIES, Settings
from frazil.storage.choose import KNOWN_PROPERTIES, choose_storage, delete_roots
from frazil.storage.http import HttpClient, Proxy, TlsFiles
from frazil.storage.object_properties import CREDENTIAL_ENDPOINTS, NOT_BUILT
from frazil.storage.origin import is_loopback, shown_url, split_url
from frazil.storage.store_accounts import Stores, normal_endpoint, shown_endpoint, trusted_endpoints

_TYPES: Final = ("none", "basic", "oauth2", "sigv4", "google")
_MAX_CONFIG_BYTES: Final = 1 << 24
_USER_AGENT: Final = "frazil"


def open_rest(
    name: str,
    uri: str,
    properties: Mapping[str, str],
    *,
    auth: AuthFunction | None = None,
    is_read_only: bool = False,
) -> Catalog:
    """Open a catalog service; `properties` are those of services and of storages."""
    base = checked_uri(uri)
    settings = Settings({key: value for key, value in properties.items() if key not in KNOWN_PROPERTIES})
    storage_properties = {key: value for key, value in properties.items() if key in KNOWN_PROPERTIES}
    everything = Settings({**properties})
    transport = open_http(settings)
    auth_scheme = choose_auth(everything, base, transport, auth)
    has_certificate = names.CLIENT_CERTIFICATE in settings
    is_secret = not isinstance(auth_scheme, NoAuth) or bool(settings.header_secrets()) or has_certificate
    if is_secret:
        _check_private(base, settings)
    first = RestSession(
        transport,
        auth_scheme,
        headers={"user-agent": _USER_AGENT, **settings.headers()},
        max_retries=min(2, settings.whole(names.MAX_RETRIES, 5)),
        hidden=settings.header_secrets(),
    )
    query = {names.WAREHOUSE: settings[names.WAREHOUSE]} if names.WAREHOUSE in settings else {}
    answer = first.send("GET", f"{base}/v1/config", query=query, max_bytes=_MAX_CONFIG_BYTES)
    if not answer.reply.is_success:
        raise refusal(first, answer.reply, f"connect to the catalog service at {base}")
    service, merged = read_service(base, settings, answer.reply)
    checked_uri(service.base)
    if is_secret or settings.has_private_headers:
        _check_own(service.base, base, storage_properties)
    if is_secret:
        _check_private(service.base, settings)
    session = RestSession(
        transport,
        auth_scheme,
        headers={"user-agent": _USER_AGENT, **merged.headers()},
        max_retries=merged.whole(names.MAX_RETRIES, 5),
        honours_keys=names.IDEMPOTENCY_LIFETIME in merged,
        hidden=merged.header_secrets(),
    )
    storage_settings = {key: value for key, value in storage_properties.items() if key not in NOT_BUILT}
    roots = delete_roots(storage_settings)
    stores = Stores(storage_settings, defaults=merged, places=roots)
    storage = choose_storage(storage_settings, stores=stores, is_read_only=is_read_only)
    own_warehouse = settings.get(names.WAREHOUSE, "")
    may_delete = (*roots, own_warehouse) if "://" in own_warehouse else roots
    return RestCatalog(name, service, session, merged, storage, delete_roots=may_delete)


def checked_uri(uri: str) -> str:
    """Return the normalized address of a service, or raise an error if it is not one."""
    try:
        parts = urlsplit(uri)
        is_wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except ValueError:
        is_wrong, parts = True, urlsplit("")
    if is_wrong or not uri.isprintable() or " " in uri:
        raise InvalidRequestError(
            f"Cannot connect to {shown_url(uri) if not is_wrong else 'the address'}: "
            "it is not an http: or https: address"
        )
    if "@" in parts.netloc:
        raise InvalidRequestError(
            f"Cannot connect to {shown_url(uri)}: the address contains a user",
            hint="Use credential, token, or rest.auth.basic.username and rest.auth.basic.password.",
        )
    if parts.query or parts.fragment:
        raise InvalidRequestError(
            f"Cannot connect to {shown_url(uri)}: the address has a query", hint="Use properties."
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1')}"


def open_http(settings: Settings) -> HttpClient:
    """Create the HTTP client for a service, configured by its properties."""
    files = {name: settings.get(name) for name in (names.CA_FILE, names.CLIENT_CERTIFICATE, names.CLIENT_KEY)}
    for name, path in files.items():
        if path is not None and not os.access(path, os.R_OK):
            raise InvalidPropertyError(f"Cannot use {path!r} for TLS ({name}): the file cannot be read")
    host, port = settings.get(names.PROXY_HOST), settings.whole(names.PROXY_PORT, 8080)
    return HttpClient(
        connect_timeout=settings.whole(names.CONNECT_TIMEOUT_MS, 10_000) / 1000,
        timeout=settings.whole(names.TIMEOUT_MS, 60_000) / 1000,
        proxy=None if host is None else Proxy(split_url(f"http://{host}:{port}")[0]),
        tls=TlsFiles(*files.values()),
    )


def choose_auth(settings: Settings, base: str, transport: HttpClient, auth: AuthFunction | None) -> Auth:
    """Return the authentication that the properties configure."""
    if auth is not None:
        return CallerAuth(auth)
    auth_type = settings.get(names.AUTH_TYPE, "").lower()
    if auth_type == "" and settings.truth(names.SIGV4_ENABLED, default=False):
        auth_type = "sigv4"
    has_token = names.TOKEN in settings or names.CREDENTIAL in settings
    if auth_type == "":
        auth_type = "basic" if names.BASIC_USER in settings else "oauth2" if has_token else "none"
    _check_kind(names.AUTH_TYPE, auth_type, _TYPES)
    if auth_type != "sigv4":
        return _auth_of(auth_type, settings, base, transport)
    inner = settings.get(names.SIGV4_DELEGATE, "oauth2").lower()
    _check_kind(names.SIGV4_DELEGATE, inner, tuple(data_type for data_type in _TYPES if data_type != "sigv4"))
    is_none = inner == "none" or (inner == "oauth2" and not has_token)
    return sigv4_auth(settings, None if is_none else _auth_of(inner, settings, base, transport))


def _check_kind(name: str, auth_type: str, supported: tuple[str, ...]) -> None:
    if auth_type not in supported:
        raise InvalidPropertyError(
            f"Cannot use {name} {auth_type[:40]!r}: it is not supported", hint=f"Use one of {', '.join(supported)}."
        )


def _auth_of(auth_type: str, settings: Settings, base: str, transport: HttpClient) -> Auth:
    if auth_type == "basic":
        return BasicAuth(settings.get(names.BASIC_USER, ""), settings.get(names.BASIC_PASSWORD, ""))
    if auth_type == "oauth2":
        return _oauth2(settings, base, transport)
    return GoogleAuth() if auth_type == "google" else NoAuth()


def _oauth2(settings: Settings, base: str, transport: HttpClient) -> Auth:
    if names.CREDENTIAL not in settings and names.TOKEN not in settings:
        raise InvalidPropertyError(f"Cannot use OAuth2: it needs {names.CREDENTIAL} or {names.TOKEN}")
    url = settings.get(names.OAUTH2_URI, f"{base}/v1/oauth/tokens")
    if not url.startswith(("http://", "https://")):
        url = f"{base}/{url.lstrip('/')}"
    if names.CREDENTIAL not in settings and names.OAUTH2_URI not in settings:
        # The token cannot be renewed: most services do not exchange tokens.
        return BearerAuth(settings[names.TOKEN])
    _check_private(url, settings)
    return OAuth2Auth(settings, url, transport)


def _check_own(url: str, base: str, properties: Mapping[str, str]) -> None:
    """Refuse to send the user's secrets to another server than the one named by the user."""
    if normal_endpoint(url) in {normal_endpoint(base), *trusted_endpoints(properties)}:
        return
    raise InvalidRequestError(
        f"Cannot connect to the catalog service at {shown_url(base)}: it names {shown_endpoint(url)} as its address, "
        "and your credentials and headers are sent only to the address that you named",
        hint=f"Connect to that address, or set {CREDENTIAL_ENDPOINTS} to {shown_endpoint(url)}, if you trust it.",
    )


def _check_private(url: str, settings: Settings) -> None:
    """Refuse to send secrets unencrypted over a network."""
    if url.startswith("http://") and not is_loopback(url) and not settings.truth(names.PLAIN_HTTP, default=False):
        raise InvalidRequestError(
            f"Cannot connect to {shown_url(url)} with a token or another secret: it would be sent unencrypted",
            hint=f"Use https:, or set {names.PLAIN_HTTP} to true on a network that you trust.",
        )


__all__ = ["PROPERTIES", "checked_uri", "choose_auth", "open_rest"]
