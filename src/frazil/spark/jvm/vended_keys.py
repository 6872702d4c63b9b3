"""Credentials that a catalog service gives for a table's files in S3, sent to Spark's tasks anew before they end.

A task cannot ask the service: only the driver may. The driver asks, and sends new credentials as Spark sends
Hadoop's own tokens (`UpdateDelegationTokens`): to every executor, those that start later too, over Spark's own
connections. There `TableKeys` (`spark/java_for_s3`), a class that the driver compiles and gives to executors, has them
ready for each request of Hadoop's file system for S3. A frame may be kept, and a job may run, longer than credentials
last.

A table's credentials are renewed for a day after they were last asked for, as long as the service gives some.
"""

from __future__ import annotations

import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

from pyspark import SparkContext

from frazil.errors import EngineError
from frazil.spark.jvm.java_classes import compile_sources, define_in

Keys = tuple[int, str, str, str]
"""When they end, in milliseconds; the id, the secret, and the token of the session."""
AskKeys = Callable[[], Keys | None]

CLASS: Final = "frazil.TableKeys"
NAME_SETTING: Final = "fs.s3a.frazil.keys"
END_SETTING: Final = "fs.s3a.frazil.keys.end"
_SOURCES: Final = Path(__file__).parent.parent / "java_for_s3"
_S3A: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_UPDATE: Final = "org.apache.spark.scheduler.cluster.CoarseGrainedClusterMessages$UpdateDelegationTokens"
_RENEW_BEFORE_S: Final = 300.0
_MAX_IDLE_S: Final = 86_400.0
_folders: list[tempfile.TemporaryDirectory[str]] = []
_lock = threading.Lock()
_deliveries: WeakKeyDictionary[SparkContext, KeyDelivery | None] = WeakKeyDictionary()


def deliver_keys(context: SparkContext, name: str, keys: Keys, ask: AskKeys) -> bool:
    """Send a table's credentials to a context's tasks, and newer ones before they end; False where it cannot."""
    with _lock:
        if context not in _deliveries:
            _deliveries[context] = _new_delivery(context)
        delivery = _deliveries[context]
    if delivery is None:
        return False
    delivery.keep(name, keys, ask)
    return True


@dataclass
class _Kept:
    ask: AskKeys
    keys: Keys
    renew_at: float
    used_at: float


class KeyDelivery:
    """The tables whose credentials are sent to one context's tasks, and the thread that renews them."""

    def __init__(self, send: Callable[[Mapping[str, Keys]], None], now: Callable[[], float] = time.time) -> None:
        self._send = send
        self._now = now
        self._changed = threading.Condition()
        self._kept: dict[str, _Kept] = {}
        self._thread: threading.Thread | None = None

    def keep(self, name: str, keys: Keys, ask: AskKeys) -> None:
        """Send credentials now, and those that `ask` gives before they end."""
        now = self._now()
        with self._changed:
            known = self._kept.get(name)
            self._kept[name] = _Kept(ask, keys, _renew_at(keys, now), now)
            if known is None or known.keys != keys:
                self._send({name: keys})
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="frazil renews keys", daemon=True)
                self._thread.start()
            self._changed.notify()

    def renew(self) -> float | None:
        """Renew the credentials whose time has come; return the seconds until the next time, None if there are none."""
        now = self._now()
        with self._changed:
            self._kept = {
                name: entry_kept for name, entry_kept in self._kept.items() if now - entry_kept.used_at < _MAX_IDLE_S
            }
            due = {name: entry_kept for name, entry_kept in self._kept.items() if entry_kept.renew_at <= now}
        # The service is asked without the lock: queries that begin meanwhile do not wait for it.
        found: dict[str, Keys] = {}
        for name, entry in due.items():
            # Credentials that cannot be had now may be had in a while; until they end, the old ones are good.
            with suppress(Exception):
                keys = entry.ask()
                if keys is not None and keys != entry.keys:
                    found[name] = keys
        with self._changed:
            now = self._now()
            for name, entry in due.items():
                if self._kept.get(name) is entry:
                    entry.keys = found.get(name, entry.keys)
                    entry.renew_at = _renew_at(entry.keys, now)
                else:
                    found.pop(name, None)
            if found:
                self._send(found)
            return min((entry_kept.renew_at - now for entry_kept in self._kept.values()), default=None)

    def _run(self) -> None:
        while True:
            wait: float | None = None
            try:
                wait = self.renew()
            except Exception:
                # There is no Spark any more that could be sent something.
                with self._changed:
                    self._kept.clear()
            with self._changed:
                if not self._kept:
                    self._thread = None
                    return
                self._changed.wait(0.1 if wait is None else max(0.1, wait))


def _renew_at(keys: Keys, now: float) -> float:
    """Return when credentials are to be renewed: five minutes before they end, of short ones at half of their time."""
    left = keys[0] / 1000 - now
    return now + max(left - _RENEW_BEFORE_S, left / 2, 1.0 if left > 0 else 30.0)


def _new_delivery(context: SparkContext) -> KeyDelivery | None:
    """Return how credentials reach a context's tasks; None where its Spark has no file system for S3, or no way in."""
    gateway: Any = context._gateway
    jvm: Any = context._jvm
    try:
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        home = loader.loadClass(_S3A).getClassLoader()
        classes = compile_sources(
            gateway, home, {f"frazil/{source.name}": source.read_text("utf-8") for source in _sources()}
        )
        define_in(jvm, home, classes)
        if _has_executors(context):
            _ship(context, classes)
    except Exception:
        # Credentials then last as long as they do.
        return None
    found = ref(context)
    return KeyDelivery(lambda keys: send_keys(found(), keys))


def send_keys(context: SparkContext | None, keys: Mapping[str, Keys]) -> None:
    """Put credentials among the secrets of the user whom tasks run as, here and on every executor."""
    if context is None:
        raise EngineError("Cannot send credentials to Spark's tasks: the context is gone")
    jvm: Any = context._jvm
    user = jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser()
    added = jvm.org.apache.hadoop.security.Credentials()
    for name, key in keys.items():
        added.addSecretKey(jvm.org.apache.hadoop.io.Text(name), bytearray("\n".join(map(str, key)).encode()))
    user.addCredentials(added)
    if _has_executors(context):
        # All that the user has: an executor that starts later is given what was sent last.
        every = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().serialize(user.getCredentials())
        (made,) = jvm.java.lang.Class.forName(_UPDATE).getConstructors()
        arguments = jvm.java.util.ArrayList()
        arguments.add(every)
        context._jsc.sc().schedulerBackend().driverEndpoint().send(made.newInstance(arguments.toArray()))


def _has_executors(context: SparkContext) -> bool:
    """Return whether tasks run in other processes than the driver's."""
    return not str(context.master).startswith("local") or str(context.master).startswith("local-cluster")


def _sources() -> list[Path]:
    return sorted(_SOURCES.glob("*.java"))


def _ship(context: SparkContext, classes: Mapping[str, bytes]) -> None:
    # Spark reads it when the first task comes.
    folder = tempfile.TemporaryDirectory(prefix="frazil-", ignore_cleanup_errors=True)
    _folders.append(folder)
    made = Path(folder.name) / "frazil-table-keys.jar"
    with zipfile.ZipFile(made, "w") as archive:
        for name, code in classes.items():
            archive.writestr(name, code)
    context._jsc.sc().addJar(str(made))
