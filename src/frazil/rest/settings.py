"""The settings of a catalog service, from the user and from the service, by their property names.

A service's `defaults` have lower precedence than the user's properties, its `overrides` higher. The names are those of
other clients, so that configurations can be shared. Secrets stay in an object that is neither shown nor pickled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NoReturn

from frazil.errors import InvalidPropertyError

URI: Final = "uri"
WAREHOUSE: Final = "warehouse"
PREFIX: Final = "prefix"
TOKEN: Final = "token"
CREDENTIAL: Final = "credential"
SCOPE: Final = "scope"
AUDIENCE: Final = "audience"
RESOURCE: Final = "resource"
OAUTH2_URI: Final = "oauth2-server-uri"
TOKEN_EXPIRES_MS: Final = "token-expires-in-ms"
TOKEN_REFRESH: Final = "token-refresh-enabled"
TOKEN_EXCHANGE: Final = "token-exchange-enabled"
AUTH_TYPE: Final = "rest.auth.type"
BASIC_USER: Final = "rest.auth.basic.username"
BASIC_PASSWORD: Final = "rest.auth.basic.password"
SIGV4_ENABLED: Final = "rest.sigv4-enabled"
SIGV4_DELEGATE: Final = "rest.auth.sigv4.delegate-auth-type"
SIGNING_NAME: Final = "rest.signing-name"
SIGNING_REGION: Final = "rest.signing-region"
SIGNING_KEY_ID: Final = "rest.access-key-id"
SIGNING_SECRET: Final = "rest.secret-access-key"
SIGNING_SESSION: Final = "rest.session-token"
MAX_RETRIES: Final = "rest.client.max-retries"
CONNECT_TIMEOUT_MS: Final = "rest.client.connection-timeout-ms"
TIMEOUT_MS: Final = "rest.client.socket-timeout-ms"
PROXY_HOST: Final = "rest.client.proxy.hostname"
PROXY_PORT: Final = "rest.client.proxy.port"
PAGE_SIZE: Final = "rest-page-size"
CACHE_ENTRIES: Final = "rest-table-cache.max-entries"
CACHE_AGE_MS: Final = "rest-table-cache.expire-after-write-ms"
METRICS: Final = "rest-metrics-reporting-enabled"
VIEWS_SUPPORTED: Final = "view-endpoints-supported"
SEPARATOR: Final = "namespace-separator"
PLANNING_MODE: Final = "scan-planning-mode"
PLANNING_TIMEOUT_MS: Final = "rest-scan-planning.poll-timeout-ms"
IDEMPOTENCY_LIFETIME: Final = "idempotency-key-lifetime"
PLAIN_HTTP: Final = "rest.allow-plain-http"
SERVICE_PURGES: Final = "rest.service-purges"
CA_FILE: Final = "ssl.cabundle"
CLIENT_CERTIFICATE: Final = "ssl.client.cert"
CLIENT_KEY: Final = "ssl.client.key"
HEADER_PREFIX: Final = "header."
_PUBLIC_HEADERS: Final = frozenset({"accept", "accept-language", "user-agent", "x-iceberg-access-delegation"})
"""What a header of the user may be named to be sent where a service moves to: any other may say who asks."""
_SECRET_HEADER: Final = re.compile(r"auth|cookie|token|secret|password|credential|key")

PROPERTIES: Final = frozenset(
    {
        WAREHOUSE, PREFIX, TOKEN, CREDENTIAL, SCOPE, AUDIENCE, RESOURCE, OAUTH2_URI, TOKEN_EXPIRES_MS, TOKEN_REFRESH,
        TOKEN_EXCHANGE, AUTH_TYPE, BASIC_USER, BASIC_PASSWORD, SIGV4_ENABLED, SIGV4_DELEGATE, SIGNING_NAME,
        SIGNING_REGION, SIGNING_KEY_ID, SIGNING_SECRET, SIGNING_SESSION, MAX_RETRIES, CONNECT_TIMEOUT_MS, TIMEOUT_MS,
        PROXY_HOST, PROXY_PORT, PAGE_SIZE, CACHE_ENTRIES, CACHE_AGE_MS, METRICS, VIEWS_SUPPORTED, SEPARATOR,
        PLANNING_MODE, PLANNING_TIMEOUT_MS, PLAIN_HTTP, SERVICE_PURGES, CA_FILE, CLIENT_CERTIFICATE, CLIENT_KEY,
    }
)  # fmt: skip
"""All supported properties of a catalog service, besides those that start with `header.`."""
SECRETS: Final = frozenset({TOKEN, CREDENTIAL, BASIC_PASSWORD, SIGNING_SECRET, SIGNING_SESSION})
"""The properties whose values grant access."""


class Settings(Mapping[str, str]):
    """Properties of a catalog service. Their values are not shown, and not pickled."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Settings({', '.join(sorted(self._values))})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Settings cannot be pickled, since they may hold secrets")

    def merged(self, defaults: Mapping[str, str], overrides: Mapping[str, str]) -> Settings:
        """Return the settings with a service's defaults below and its overrides above."""
        return Settings({**defaults, **self._values, **overrides})

    def whole(self, name: str, default: int) -> int:
        """Return a property as a non-negative integer."""
        text = self._values.get(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise InvalidPropertyError(f"Cannot use the property {name}: {text[:40]!r} is not a non-negative integer")
        return int(text)

    def truth(self, name: str, *, default: bool) -> bool:
        """Return whether a property is true."""
        text = self._values.get(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise InvalidPropertyError(f"Cannot use the property {name}: {text[:40]!r} is neither true nor false")
        return text.lower() == "true"

    def headers(self) -> dict[str, str]:
        """Return the headers configured by properties."""
        headers = {
            name.removeprefix(HEADER_PREFIX).lower(): value
            for name, value in self._values.items()
            if name.lower().startswith(HEADER_PREFIX)
        }
        for name, value in headers.items():
            if not name or not (name + value).isascii() or not (name + value).isprintable():
                raise InvalidPropertyError(f"Cannot use the property {HEADER_PREFIX}{name}: it is not a valid header")
        return headers

    @property
    def has_private_headers(self) -> bool:
        """Whether there are headers that belong to the service's own host."""
        return not self.headers().keys() <= _PUBLIC_HEADERS

    def secrets(self) -> tuple[str, ...]:
        """Return all texts that must not be shown."""
        secrets = [value for name, value in self._values.items() if name in SECRETS]
        credential = self._values.get(CREDENTIAL, "")
        return (*secrets, credential.partition(":")[2], *self.header_secrets())

    def header_secrets(self) -> tuple[str, ...]:
        """Return the values of headers that grant access, by their names: tokens, keys and cookies."""
        secrets = [value for name, value in self.headers().items() if _SECRET_HEADER.search(name)]
        return (*secrets, *(value.rpartition(" ")[2] for value in secrets))
