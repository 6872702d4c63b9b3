"""Accounts of object stores: an endpoint and the credentials used for it, as one value.

Endpoints and credentials have two sources: the user, by properties of the connection, and a catalog service, by its
configuration and by its responses for tables. Table metadata is neither. One rule decides which go together:

    the user's credentials        only to endpoints that the user named, or to the store's default hosts
    a service's endpoint          with the service's credentials, with its signatures, or anonymously
    a host only metadata names    never contacted

`StoreAccount` refuses any other combination when it is created, so no code can put one together by merging properties.
`credentials.endpoints` is the user's way to trust an endpoint that a service or a location names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

from frazil.errors import InvalidPropertyError, InvalidRequestError
from frazil.storage.locations import scheme_of
from frazil.storage.object_properties import (
    AZURE_ACCOUNT_NAMES,
    AZURE_ANONYMOUS,
    AZURE_ENDPOINT,
    AZURE_KEY_NAMES,
    AZURE_SAS,
    AZURE_TOKEN,
    CONNECT_TIMEOUT,
    CREDENTIAL_ENDPOINTS,
    GCS_ANONYMOUS,
    GCS_ENDPOINT,
    GCS_TOKEN,
    PROPERTIES,
    PROXY,
    REQUEST_TIMEOUT,
    ROLES,
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
)
from frazil.storage.origin import check_region, parse_endpoint

_ACCOUNT: Final = r"[a-z0-9]{1,24}"
AZURE_ACCOUNT_PATTERN: Final = re.compile(_ACCOUNT)
AZURE_BUCKET: Final = re.compile(
    rf"(?P<container>[a-z0-9$][a-z0-9\-]{{0,62}})(?:@(?P<account>{_ACCOUNT})(?:\.(?:dfs|blob)(?P<tail>\.[a-z0-9.\-]+))?)?"
)
"""The part of an Azure location after the scheme: a container, optionally with the account and the cloud's domain."""
AZURE_TAIL: Final = ".core.windows.net"
_AZURE_TAILS: Final = frozenset(
    {AZURE_TAIL, ".core.chinacloudapi.cn", ".core.usgovcloudapi.net", ".core.cloudapi.de", ".fabric.microsoft.com"}
)
_AMAZON: Final = re.compile(
    r"s3(-fips)?(\.dualstack)?([.-][a-z]{2}(-[a-z]{2,12}){1,3}-[0-9]{1,2})?\.amazonaws\.com(\.cn)?"
)
_GOOGLE: Final = re.compile(r"storage\.googleapis\.com|storage\.[a-z]+-[a-z]+[0-9]+\.rep\.googleapis\.com")
_COMMON: Final = frozenset({CONNECT_TIMEOUT, REQUEST_TIMEOUT})

_ADDRESSING: Final = frozenset({S3_PATH_STYLE, S3_VIRTUAL})
"""Whether a bucket is part of the host name, which only the user decides for the user's endpoint."""


class Source(Enum):
    """The origin of an endpoint or of credentials."""

    USER = "the user"
    SERVICE = "the catalog service"


@dataclass(frozen=True, slots=True)
class Store:
    """A type of object store: the names of its properties and its default hosts."""

    name: str
    schemes: tuple[str, ...]
    endpoint: str
    anonymous: str
    credentials: frozenset[str]
    settings: frozenset[str]
    """Properties that a service may set as well."""
    default_hosts: re.Pattern[str]

    def has_credentials(self, properties: Iterable[str]) -> bool:
        """Return whether properties hold credentials for this store."""
        return any(self.is_credential(name) for name in properties)

    def is_credential(self, name: str) -> bool:
        """Return whether a property is a credential for this store, or locates one."""
        return name in self.credentials or (self is AZURE and name.startswith(f"{AZURE_SAS}."))

    def is_default(self, endpoint: str) -> bool:
        """Return whether an endpoint is one of the store's own hosts, over TLS."""
        scheme, _, host = normal_endpoint(endpoint).partition("://")
        name, _, port = host.rpartition(":")
        return scheme == "https" and port == "443" and self.default_hosts.fullmatch(name) is not None


S3: Final = Store(
    "S3",
    ("s3", "s3a", "s3n"),
    S3_ENDPOINT,
    S3_ANONYMOUS,
    frozenset({*S3_ACCESS_KEY_ID, *S3_SECRET_ACCESS_KEY, *S3_SESSION_TOKEN, S3_USE_ENVIRONMENT, *ROLES}),
    frozenset({*S3_REGION, S3_PATH_STYLE, S3_VIRTUAL, S3_ANONYMOUS, S3_ENCRYPTION, S3_ENCRYPTION_KEY}),
    _AMAZON,
)
GCS: Final = Store(
    "Google Cloud Storage",
    ("gs", "gcs"),
    GCS_ENDPOINT,
    GCS_ANONYMOUS,
    frozenset({GCS_TOKEN}),
    frozenset({GCS_ANONYMOUS}),
    _GOOGLE,
)
AZURE: Final = Store(
    "Azure's store",
    ("abfss", "abfs", "wasbs", "wasb", "az"),
    AZURE_ENDPOINT,
    AZURE_ANONYMOUS,
    frozenset({*AZURE_KEY_NAMES, AZURE_SAS, AZURE_TOKEN}),
    frozenset({*AZURE_ACCOUNT_NAMES, AZURE_ANONYMOUS}),
    re.compile(r"(?!)"),  # Its default hosts are in locations; an endpoint is an emulator's.
)
STORES: Final = (S3, GCS, AZURE)
_NEVER_FROM_SERVICE: Final = frozenset({S3_USE_ENVIRONMENT, *ROLES})


def store_of(location: str) -> Store | None:
    """Return the type of object store of a location, or None."""
    scheme = scheme_of(location)
    return next((store for store in STORES if scheme in store.schemes), None)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a store and its source; None means the store's default hosts."""

    url: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of one store and their source; those of a service are read for each request."""

    current: Callable[[], Mapping[str, str]] = field(repr=False)
    source: Source


@dataclass(frozen=True, slots=True)
class AzureHosts:
    """The hosts in Azure locations that may be contacted, and the accounts to which the user's keys belong."""

    tails: frozenset[str] = _AZURE_TAILS
    """Domains in which all accounts are allowed."""
    hosts: frozenset[str] = frozenset()
    """Single accounts in other domains, as `account.blob.domain`."""
    accounts: frozenset[str] = frozenset()
    """The accounts of the user's key; empty if the user named none."""

    def check(self, account: str, tail: str) -> None:
        """Refuse a host that neither the user nor the service named."""
        if tail not in self.tails and f"{account}.blob{tail}" not in self.hosts:
            raise InvalidRequestError(
                f"Cannot use the host {account}.dfs{tail}: only a location names it",
                hint=f"Set {CREDENTIAL_ENDPOINTS} to https://{account}.dfs{tail}, if you trust it with your "
                "credentials.",
            )

    def owns(self, account: str, host: str) -> bool:
        """Return whether a key or signature of the user may be used for an account."""
        return not self.accounts or account in self.accounts or host in self.hosts

    def check_location(self, location: str) -> None:
        """Refuse a location that cannot be parsed, or whose host neither the user nor the service named."""
        if scheme_of(location) not in AZURE.schemes:
            return
        parts = _azure_parts(location)
        if parts is None:
            raise InvalidRequestError(
                f"Cannot use the location {location[:200]!r}: the part after // is neither a container nor "
                "a container and its account"
            )
        if parts["tail"] is not None:
            self.check(parts["account"], parts["tail"])


@dataclass(frozen=True, slots=True)
class StoreAccount:
    """One store with its endpoint and the credentials that belong to it.

    Combining the user's credentials with an endpoint that only a service named is refused.
    """

    store: Store
    endpoint: Endpoint
    credentials: Credentials | None = None
    """None for anonymous requests, and for requests signed by a service."""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    trusted: frozenset[str] = frozenset()
    """The endpoints that the user trusts with their credentials."""
    azure_hosts: AzureHosts = AzureHosts()

    def __post_init__(self) -> None:
        url = self.endpoint.url
        # Other readers parse URLs differently, so only a plain one that means the same host to all is accepted.
        if url is not None:
            parse_endpoint(self.store.endpoint, url)
        check_region(first_of(self.settings, S3_REGION))
        is_user_credential = self.credentials is not None and self.credentials.source is Source.USER
        if url is None or not is_user_credential or not self.is_strange:
            return
        raise InvalidRequestError(
            f"Cannot use {self.store.name} at {shown_endpoint(url)}: the catalog service names this endpoint, and your "
            "credentials are sent only to endpoints that you named",
            hint=f"Set {CREDENTIAL_ENDPOINTS} to {shown_endpoint(url)}, if you trust it with your credentials.",
        )

    @property
    def is_named_by_service(self) -> bool:
        """Whether the catalog service names the endpoint, trusted or not."""
        return self.endpoint.url is not None and self.endpoint.source is Source.SERVICE

    @property
    def is_strange(self) -> bool:
        """Whether only the catalog service named the endpoint."""
        url = self.endpoint.url
        if url is None or not self.is_named_by_service:
            return False
        return not self.store.is_default(url) and normal_endpoint(url) not in self.trusted

    @property
    def is_vended(self) -> bool:
        """Whether the catalog service vended the credentials."""
        return self.credentials is not None and self.credentials.source is Source.SERVICE

    @property
    def properties(self) -> dict[str, str]:
        """The account as properties, with the present credentials."""
        account = dict(self.settings)
        if self.endpoint.url is not None:
            account[self.store.endpoint] = self.endpoint.url
        return account if self.credentials is None else {**account, **self.credentials.current()}


class Stores:
    """The access to each object store: by the user's properties, and by what a catalog service sends."""

    __slots__ = ("_current", "_defaults", "_table_config", "_hosts", "_own", "_places", "_trusted")

    def __init__(
        self,
        own: Mapping[str, str] | None = None,
        *,
        defaults: Mapping[str, str] | None = None,
        table_config: Mapping[str, str] | None = None,
        current: Callable[[], Mapping[str, str]] | None = None,
        places: Iterable[str] = (),
    ) -> None:
        """Take the user's properties, a service's configuration, and what the service sends with a table.

        `current` returns the service's credentials for each request. `places` are locations that the user named.
        """
        self._own = dict(own or {})
        self._defaults = dict(defaults or {})
        self._table_config = dict(table_config or {})
        self._current = current
        self._places = tuple(places)
        self._trusted = trusted_endpoints(self._own)
        self._hosts = self._azure_hosts()

    def __repr__(self) -> str:
        return "Stores()"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("accounts of stores cannot be pickled, since they hold credentials")

    @property
    def own(self) -> Mapping[str, str]:
        """The user's properties."""
        return self._own

    def with_service(
        self, table_config: Mapping[str, str], current: Callable[[], Mapping[str, str]] | None = None
    ) -> Stores:
        """Return the stores with the configuration and credentials that a service sends for a table."""
        return Stores(
            self._own, defaults=self._defaults, table_config=table_config, current=current, places=self._places
        )

    def names_store(self, store: Store) -> bool:
        """Return whether the user or the service configures a store."""
        names = self._named()
        return store.has_credentials(names) or any(name in names for name in (store.endpoint, *store.settings))

    def has_settings(self, config: Mapping[str, str]) -> bool:
        """Return whether a service's settings change how a store is reached."""
        relevant = {name for store in STORES for name in (store.endpoint, *store.settings)} | _COMMON
        return any(name in relevant and self._own.get(name) != value for name, value in config.items())

    def account(self, store: Store, *, is_signed: bool = False) -> StoreAccount:
        """Return how a store is reached; refuse to send the user's credentials to an endpoint of a service.

        With `is_signed`, the service signs each request, so that it has no credentials.
        """
        vended = self._vended(store)
        endpoint = self._endpoint(store, is_service_first=vended is not None or is_signed)
        settings = self._settings(store, endpoint)
        is_anonymous = settings.get(store.anonymous, "").lower() == "true"
        credentials: Credentials | None = None
        if vended is not None or is_signed:
            credentials = vended
        elif not is_anonymous and store.has_credentials(self._own):
            secrets = {name: value for name, value in self._own.items() if store.is_credential(name)}
            credentials = Credentials(lambda: secrets, Source.USER)
        return StoreAccount(
            store,
            endpoint,
            credentials,
            settings,
            self._trusted,
            self._hosts,
        )

    def check_location(self, location: str) -> None:
        """Refuse a location whose host only metadata names."""
        self._hosts.check_location(location)

    def _named(self) -> frozenset[str]:
        return frozenset({*self._own, *self._defaults, *self._table_config})

    def _endpoint(self, store: Store, *, is_service_first: bool) -> Endpoint:
        service = self._table_config.get(store.endpoint, self._defaults.get(store.endpoint))
        own = self._own.get(store.endpoint)
        if service is not None and (is_service_first or own is None) and service != own:
            return Endpoint(service, Source.SERVICE)
        return Endpoint(own, Source.USER)

    def _vended(self, store: Store) -> Credentials | None:
        def names(config: Mapping[str, str]) -> dict[str, str]:
            return {
                name: value
                for name, value in config.items()
                if store.is_credential(name) and name not in _NEVER_FROM_SERVICE
            }

        current = self._current
        if current is None or not names(self._table_config):
            return None
        return Credentials(lambda: names(current()), Source.SERVICE)

    def _settings(self, store: Store, endpoint: Endpoint) -> dict[str, str]:
        supported = store.settings | _COMMON
        if endpoint.url is not None and endpoint.source is Source.USER:
            supported -= _ADDRESSING
        own = {
            name: value
            for name, value in self._own.items()
            if name in (PROPERTIES - store.credentials - {store.endpoint}) and not _is_elsewhere(name, store)
        }
        defaults, vended = (
            {name: value for name, value in config.items() if name in supported}
            for config in (self._defaults, self._table_config)
        )
        return {**defaults, **own, **vended}

    def _azure_hosts(self) -> AzureHosts:
        places = [parts for parts in map(_azure_parts, self._places) if parts is not None]
        hosts = set() if self._current is None else set(_hosts_of_signatures(self._table_config))
        accounts = {self._own[name] for name in AZURE_ACCOUNT_NAMES if name in self._own}
        accounts |= {parts["account"] for parts in places if parts["account"] is not None}
        return AzureHosts(
            _AZURE_TAILS | {parts["tail"] for parts in places if parts["tail"] is not None},
            frozenset(hosts | {_as_blob_host(urlsplit(url).hostname or "") for url in self._trusted}),
            frozenset(accounts),
        )


def trusted_endpoints(properties: Mapping[str, str]) -> frozenset[str]:
    """Return the endpoints of `credentials.endpoints`, which the user trusts."""
    text = properties.get(CREDENTIAL_ENDPOINTS)
    urls = () if text is None else tuple(piece.strip() for piece in text.split(","))
    for url in urls:
        if not url.lower().startswith(("http://", "https://")) or "@" in url or normal_endpoint(url) == "":
            raise InvalidPropertyError(
                f"Cannot use {CREDENTIAL_ENDPOINTS}: {shown_endpoint(url)!r} is not an endpoint",
                hint="Use https://host or http://host:port, separated by commas.",
            )
    return frozenset(normal_endpoint(url) for url in urls)


def normal_endpoint(url: str) -> str:
    """Reduce an address to scheme, host and port, for comparison; empty if it has no host."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return ""
    host = (parts.hostname or "").rstrip(".")
    return f"{parts.scheme}://{host}:{port}" if host else ""


def shown_endpoint(url: str) -> str:
    """Return an endpoint for display in an error."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an invalid address"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"[:200]


def _hosts_of_signatures(config: Mapping[str, str]) -> Iterable[str]:
    """Return the Azure hosts for which a service sends its own signature, as `account.blob.domain`."""
    for name in config:
        account, dot, rest = name.removeprefix(f"{AZURE_SAS}.").partition(".")
        if name.startswith(f"{AZURE_SAS}.") and dot and account:
            yield _as_blob_host(f"{account}.{rest}")


def _is_elsewhere(name: str, store: Store) -> bool:
    """Return whether a property belongs to another store."""
    if name in _COMMON or name in PROXY:
        return False
    others = (other for other in STORES if other is not store)
    return any(name == other.endpoint or name in other.settings or other.is_credential(name) for other in others)


def _azure_parts(location: str) -> re.Match[str] | None:
    if scheme_of(location) not in AZURE.schemes:
        return None
    return AZURE_BUCKET.fullmatch(location.partition("://")[2].partition("/")[0])


def _as_blob_host(host: str) -> str:
    account, _, rest = host.lower().partition(".")
    return f"{account}.blob.{rest.removeprefix('dfs.').removeprefix('blob.')}"
