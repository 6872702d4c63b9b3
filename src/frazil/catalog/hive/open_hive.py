"""Open a Hive Metastore by its address, `thrift://host:9083`.

Properties have the names that Iceberg Java, PyIceberg and Hive's own clients gave them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

from frazil.catalog.base import NO_PLACE, random_id
from frazil.catalog.hive.connection import MetastoreClient, Transport, parse_hosts
from frazil.catalog.hive.hive_pointers import HiveCatalog, HivePointers
from frazil.catalog.hive.metastore import Metastore
from frazil.catalog.hive.table_lock import LockSettings, TableLocks, system_user
from frazil.catalog.hive.table_structs import ZONED, TableForm
from frazil.catalog.metastore_tables import MAX_PROPERTY_CHARS
from frazil.errors import InvalidPropertyError, InvalidRequestError, UnsupportedError
from frazil.storage.base import Storage

LOCK_ENABLED: Final = "iceberg.engine.hive.lock-enabled"
ENGINE_ENABLED: Final = "iceberg.engine.hive.enabled"
KEEP_STATISTICS: Final = "iceberg.hive.keep.stats"
LOCK_TIMEOUT_MS: Final = "iceberg.hive.lock-timeout-ms"
LOCK_CHECK_MIN_MS: Final = "iceberg.hive.lock-check-min-wait-ms"
LOCK_CHECK_MAX_MS: Final = "iceberg.hive.lock-check-max-wait-ms"
LOCK_HEARTBEAT_MS: Final = "iceberg.hive.lock-heartbeat-interval-ms"
MAX_PROPERTY_SIZE: Final = "iceberg.hive.table-property-max-size"
USER: Final = "ugi"
HIVE2_COMPATIBLE: Final = "hive.hive2-compatible"
FRAMED: Final = "hive.metastore.thrift.framed.transport.enabled"
USE_TLS: Final = "hive.metastore.use.SSL"
CA_FILE: Final = "hive.metastore.ca-file"
SOCKET_TIMEOUT: Final = "hive.metastore.client.socket.timeout"
_KERBEROS: Final = ("hive.kerberos-authentication", "hive.metastore.sasl.enabled")
_COMPACT: Final = "hive.metastore.thrift.compact.protocol.enabled"
_IGNORED: Final = frozenset(
    {
        "clients",
        "client.pool.cache.eviction-interval-ms",
        "client-pool-cache-keys",
        "iceberg.hive.lock-creation-timeout-ms",
        "iceberg.hive.lock-creation-min-wait-ms",
        "iceberg.hive.lock-creation-max-wait-ms",
        "iceberg.hive.table-level-lock-evict-ms",
        "iceberg.hive.metadata-refresh-max-retries",
        "hive.kerberos-service-name",
        "lock-check-min-wait-time",
        "lock-check-max-wait-time",
        "lock-check-retries",
        "list-all-tables",
    }
)
"""Known to other clients, of no use here: a client keeps as many connections as it has threads."""
PROPERTIES: Final = frozenset(
    {
        LOCK_ENABLED,
        ENGINE_ENABLED,
        KEEP_STATISTICS,
        LOCK_TIMEOUT_MS,
        LOCK_CHECK_MIN_MS,
        LOCK_CHECK_MAX_MS,
        LOCK_HEARTBEAT_MS,
        MAX_PROPERTY_SIZE,
        USER,
        HIVE2_COMPATIBLE,
        FRAMED,
        USE_TLS,
        CA_FILE,
        SOCKET_TIMEOUT,
        _COMPACT,
        *_KERBEROS,
        *_IGNORED,
    }
)
"""Every property of a connection to a metastore, beside those of storages."""
_MOST_TIMEOUT_SECONDS: Final = 60.0
"""A lock ends after some minutes without a word; one call may not take as long."""
_TIME: Final = re.compile(r"(\d{1,9})\s*(ms|msec|s|sec|m|min|)")
_UNITS: Final = {"ms": 0.001, "msec": 0.001, "": 1.0, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0}


def open_hive(
    name: str,
    uri: str,
    warehouse: str | None,
    storage: Storage,
    properties: Mapping[str, str],
    *,
    delete_roots: tuple[str, ...] = (),
) -> HiveCatalog:
    """Open the catalog in a metastore; without a warehouse, the metastore says where new namespaces lie."""

    def refuse(reason: str) -> InvalidRequestError:
        return InvalidRequestError(f"Cannot connect to the Hive Metastore: {reason}")

    for kerberos in _KERBEROS:
        if _is_true(properties, kerberos):
            raise UnsupportedError(
                f"Cannot use the property {kerberos}: Kerberos is not built",
                hint="Reach the metastore through one that takes connections without it, or by a REST catalog.",
            )
    if _is_true(properties, _COMPACT):
        raise UnsupportedError(f"Cannot use the property {_COMPACT}: only Thrift's binary protocol is built")
    user = [name_or_group for name_or_group in properties.get(USER, system_user()).split(":") if name_or_group]
    transport = Transport(
        is_framed=_is_true(properties, FRAMED),
        is_tls=_is_true(properties, USE_TLS),
        timeout=min(_seconds(properties, SOCKET_TIMEOUT, 60.0), _MOST_TIMEOUT_SECONDS),
        ca_file=properties.get(CA_FILE),
    )
    metastore = Metastore(MetastoreClient(parse_hosts(uri, refuse), transport, user))
    defaults = LockSettings()
    locks = LockSettings(
        timeout_seconds=_whole(properties, LOCK_TIMEOUT_MS, defaults.timeout_seconds * 1000) / 1000,
        check_seconds=_whole(properties, LOCK_CHECK_MIN_MS, defaults.check_seconds * 1000) / 1000,
        most_check_seconds=_whole(properties, LOCK_CHECK_MAX_MS, defaults.most_check_seconds * 1000) / 1000,
        heartbeat_seconds=min(
            _whole(properties, LOCK_HEARTBEAT_MS, defaults.heartbeat_seconds * 1000) / 1000,
            defaults.heartbeat_seconds,
        ),
    )
    owner = user[0] if user else system_user()
    form = TableForm(
        max_property_chars=int(_whole(properties, MAX_PROPERTY_SIZE, MAX_PROPERTY_CHARS)),
        is_engine_enabled=_is_true(properties, ENGINE_ENABLED),
        zoned_type="timestamp" if _is_true(properties, HIVE2_COMPATIBLE, default=True) else ZONED,
        keeps_statistics=_is_true(properties, KEEP_STATISTICS),
    )
    pointers = HivePointers(
        metastore,
        TableLocks(metastore, locks, user=owner, new_id=random_id),
        form,
        warehouse=warehouse,
        owner=owner,
        may_lock=_is_true(properties, LOCK_ENABLED, default=True),
    )
    return HiveCatalog(name, NO_PLACE if warehouse is None else warehouse, pointers, storage, delete_roots=delete_roots)


def _is_true(properties: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    text = properties.get(name)
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise InvalidPropertyError(f"Cannot use the property {name}: its value {text!r} is neither true nor false")
    return text.lower() == "true"


def _whole(properties: Mapping[str, str], name: str, default: float) -> float:
    text = properties.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidPropertyError(f"Cannot use the property {name}: its value {text[:40]!r} is not a whole number")
    return float(text)


def _seconds(properties: Mapping[str, str], name: str, default: float) -> float:
    """Return a span of time as Hive writes it: a number of seconds, or with a unit."""
    text = properties.get(name)
    if text is None:
        return default
    parsed = _TIME.fullmatch(text.strip().lower())
    if parsed is None or math.isclose(seconds := int(parsed[1]) * _UNITS[parsed[2]], 0):
        raise InvalidPropertyError(f"Cannot use the property {name}: {text[:40]!r} is not a time such as 600s")
    return seconds
