"""The storage of a service's tables, with vended credentials that are renewed in time.

A service may vend credentials with a table, for all its files or for those below a prefix; the longest matching prefix
wins. They expire after minutes or hours; five minutes before that, the next reader renews them. If the service signs
requests itself, each request to the store is first sent to it for a signature (`rest/remote_sign.py`). If it vends
nothing, the user's properties apply. `storage/store_accounts.py` decides which credentials are sent to which endpoint.

A pickled storage does not include its credentials.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from frazil.errors import UnsupportedError
from frazil.rest.load_result import VendedCredentials
from frazil.rest.remote_sign import ENABLED, Sign, signed_storage
from frazil.storage.base import Storage
from frazil.storage.choose import SchemeStorage, choose_storage
from frazil.storage.object_properties import AZURE_SAS, GCS_TOKEN, KEYS_OF, S3_ACCESS_KEY_ID, S3_KEYS_END
from frazil.storage.store_accounts import S3, Source, StoreAccount, store_of

_RENEW_BEFORE_MS: Final = 300_000
_LASTING_MS: Final = 1_800_000
"""The desired validity of credentials for Spark tasks, not all of which can receive new ones."""
_MAX_DIGITS: Final = 18
_EXPIRES: Final = (S3_KEYS_END, "gcs.oauth2.token-expires-at", "adls.sas-token-expires-at-ms")

_SPELLINGS: Final = (
    ("s3a://", "s3://"), ("s3n://", "s3://"), ("gcs://", "gs://"), ("abfs://", "abfss://"), ("wasb://", "wasbs://"),
)  # fmt: skip
FetchCredentials = Callable[[], "tuple[VendedCredentials, ...]"]
"""Requests new credentials for a table from the service."""


class KeyRing:
    """The credentials vended for one table, renewed before they expire. Thread-safe."""

    def __init__(
        self, keys: tuple[VendedCredentials, ...], fetch: FetchCredentials, *, now_ms: Callable[[], int] | None = None
    ) -> None:
        self._keys = {key.prefix: dict(key.config) for key in keys}
        self._fetch = fetch
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._lock = threading.Lock()

    def config(self, prefix: str, lasting_ms: int = _RENEW_BEFORE_MS) -> Mapping[str, str]:
        """Return the present credentials for a prefix, or new ones if they expire soon."""
        with self._lock:
            ends = _ends_ms(self._keys[prefix])
            if ends is not None and self._now_ms() >= ends - lasting_ms:
                try:
                    renewed = {credentials.prefix: dict(credentials.config) for credentials in self._fetch()}
                except Exception:
                    # Credentials that are valid a little longer are better than none.
                    if self._now_ms() >= ends:
                        raise
                    renewed = {}
                if prefix in renewed:
                    self._keys |= renewed
            return self._keys[prefix]


class VendedStorage(SchemeStorage):
    """The storages of one table: below some prefixes with vended credentials, elsewhere with the user's own."""

    __slots__ = ("_by_prefix", "_plain", "_reach", "is_signed")

    def __init__(
        self,
        plain: SchemeStorage,
        by_prefix: Mapping[str, SchemeStorage],
        *,
        is_signed: bool = False,
        reach: Callable[[str, str], StoreAccount | None] = lambda _prefix, _location: None,
    ) -> None:
        """Take the user's own storage, those of prefixes, and Spark's access to a location below a prefix."""
        super().__init__(
            {}, roots=plain.roots, schemes=plain.schemes, stores=plain.stores, is_read_only=plain.is_read_only
        )
        self._plain = plain
        self._reach = reach
        self.is_signed = is_signed
        """Whether the service signs each request, as long as it has the table."""
        self._by_prefix = dict(sorted(by_prefix.items(), key=lambda pair: -len(pair[0])))

    def __repr__(self) -> str:
        return f"VendedStorage({', '.join(self._by_prefix)})"

    def __reduce__(self) -> tuple[object, ...]:
        return self._plain.__reduce__()

    def _find_storage(self, location: str) -> Storage:
        """Return the storage of a location, with the credentials for it."""
        for prefix, storage in self._by_prefix.items():
            if _is_below(location, prefix):
                return storage.storage_of(location)
        return self._plain.storage_of(location)

    def check_host(self, location: str) -> None:
        """Refuse a location on a host that only metadata names."""
        for prefix, storage in self._by_prefix.items():
            if _is_below(location, prefix):
                storage.check_host(location)
                return
        self._plain.check_host(location)

    def reach(self, location: str) -> StoreAccount | None:
        """Return how Spark reaches a location, with credentials that are valid for a while."""
        for prefix in self._by_prefix:
            # A folder may be named without the trailing slash of a prefix.
            if _is_below(f"{location.rstrip('/')}/", prefix):
                account = self._reach(prefix, location)
                if account is None and self.is_signed:
                    raise UnsupportedError(
                        f"Cannot reach {location} on Spark: the catalog service signs each request to the store, "
                        "which Spark's file systems do not support",
                        hint="Read and write it without Spark, have the service vend credentials, or connect with "
                        "your own (s3.access-key-id, s3.secret-access-key).",
                    )
                return account
        return self._plain.reach(location)


def table_storage(
    plain: SchemeStorage,
    config: Mapping[str, str],
    keys: tuple[VendedCredentials, ...],
    fetch: FetchCredentials,
    sign: Sign,
    *,
    owner: str = "",
    now_ms: Callable[[], int] | None = None,
) -> Storage:
    """Return the storage of a table: the user's own, unless the service sent settings or credentials for it, or signs.

    `owner` identifies the table among all catalogs of this process.
    """
    stores = plain.stores
    has_keys = bool(keys) or any(name in config for name in S3_ACCESS_KEY_ID)
    if config.get(ENABLED, "false").lower() == "true" and not has_keys:
        signed = stores.with_service(config)

        def own_account(_prefix: str, _location: str) -> StoreAccount | None:
            # Spark does not request signatures; the user's credentials are used, at an endpoint that may receive them.
            return signed.account(S3) if any(name in stores.own for name in S3_ACCESS_KEY_ID) else None

        account = signed.account(S3, is_signed=True)
        return VendedStorage(plain, {"s3://": signed_storage(account, sign)}, is_signed=True, reach=own_account)
    vended = [*keys]
    if any(name in (*S3_ACCESS_KEY_ID, GCS_TOKEN) or name.startswith(AZURE_SAS) for name in config):
        vended.append(VendedCredentials("", config))
    if not vended:
        if not stores.has_settings(config):
            return plain
        return choose_storage(stores.own, stores=stores.with_service(config), is_read_only=plain.is_read_only)
    ring = KeyRing(tuple(vended), fetch, now_ms=now_ms)
    by_prefix = {
        credentials.prefix: stores.with_service(
            {**config, **credentials.config}, partial(ring.config, credentials.prefix)
        )
        for credentials in vended
    }

    def reached(prefix: str, location: str) -> StoreAccount | None:
        store = store_of(location)
        if store is None:
            return None
        lasting = dict(ring.config(prefix, _LASTING_MS))
        account = stores.with_service({**config, **lasting}, lambda: lasting).account(store)
        if account.credentials is None or account.credentials.source is Source.USER:
            return account
        about = {name: value for name, value in lasting.items() if name == S3_KEYS_END}
        return replace(account, settings={**account.settings, **about, KEYS_OF: f"{owner} {prefix}"})

    storages = {prefix: choose_storage(stores.own, stores=found) for prefix, found in by_prefix.items()}
    return VendedStorage(plain, storages, reach=reached)


def _is_below(location: str, prefix: str) -> bool:
    """Return whether a location starts with a prefix, however the store's scheme is spelled."""
    return location.startswith(prefix) or _plain_scheme(location).startswith(_plain_scheme(prefix))


def _plain_scheme(location: str) -> str:
    for scheme, usual in _SPELLINGS:
        if location.startswith(scheme):
            return usual + location.removeprefix(scheme)
    return location


def _ends_ms(config: Mapping[str, str]) -> int | None:
    texts = [value for name, value in config.items() if name.startswith(_EXPIRES)]
    ends = [int(text) for text in texts if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS]
    return min(ends, default=None)
