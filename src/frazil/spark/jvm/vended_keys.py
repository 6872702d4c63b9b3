"""Renewal, in Spark's tasks, of the S3 credentials that a catalog service vends for a table's files.

Frames and jobs may outlive credentials, and only the driver may request new ones from the service. The driver sends
them to every executor, including those that start later, over the channel for Hadoop's delegation tokens
(`UpdateDelegationTokens`). There `TableKeys` (`spark/java_for_s3`), a class that the driver compiles and ships,
provides them for each request of Hadoop's S3 file system.

A table's credentials are renewed for a day after they were last used, as long as the service vends them.
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
"""Expiry in milliseconds, access key id, secret access key and session token."""
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
    """Send a table's credentials to a context's tasks and keep them renewed; return False if that is not possible."""
    with _lock:
        if context not in _deliveries:
            _deliveries[context] = _new_delivery(context)
        delivery = _deliveries[context]
    if delivery is None:
        return False
    delivery.keep(name, keys, ask)
    return True


@dataclass
class _Entry:
    ask: AskKeys
    keys: Keys
    renew_at: float
    used_at: float


class KeyDelivery:
    """Sends the credentials of tables to one context's tasks, and renews them in a thread."""

    def __init__(self, send: Callable[[Mapping[str, Keys]], None], now: Callable[[], float] = time.time) -> None:
        self._send = send
        self._now = now
        self._changed = threading.Condition()
        self._entries: dict[str, _Entry] = {}
        self._thread: threading.Thread | None = None

    def keep(self, name: str, keys: Keys, ask: AskKeys) -> None:
        """Send credentials now, and those that `ask` returns before they expire."""
        now = self._now()
        with self._changed:
            previous = self._entries.get(name)
            self._entries[name] = _Entry(ask, keys, _renew_at(keys, now), now)
            if previous is None or previous.keys != keys:
                self._send({name: keys})
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="frazil renews keys", daemon=True)
                self._thread.start()
            self._changed.notify()

    def renew(self) -> float | None:
        """Renew the credentials that are due; return the seconds until the next renewal, or None if there are none."""
        now = self._now()
        with self._changed:
            self._entries = {name: entry for name, entry in self._entries.items() if now - entry.used_at < _MAX_IDLE_S}
            due = {name: entry for name, entry in self._entries.items() if entry.renew_at <= now}
        # Request without holding the lock, so that new queries do not wait for the service.
        renewed: dict[str, Keys] = {}
        for name, entry in due.items():
            # If a request fails, a later one may succeed; the old credentials are valid until they expire.
            with suppress(Exception):
                keys = entry.ask()
                if keys is not None and keys != entry.keys:
                    renewed[name] = keys
        with self._changed:
            now = self._now()
            for name, entry in due.items():
                if self._entries.get(name) is entry:
                    entry.keys = renewed.get(name, entry.keys)
                    entry.renew_at = _renew_at(entry.keys, now)
                else:
                    renewed.pop(name, None)
            if renewed:
                self._send(renewed)
            return min((entry.renew_at - now for entry in self._entries.values()), default=None)

    def _run(self) -> None:
        while True:
            wait: float | None = None
            try:
                wait = self.renew()
            except Exception:
                # Spark has stopped.
                with self._changed:
                    self._entries.clear()
            with self._changed:
                if not self._entries:
                    self._thread = None
                    return
                self._changed.wait(0.1 if wait is None else max(0.1, wait))


def _renew_at(keys: Keys, now: float) -> float:
    """Return the time to renew credentials: five minutes before they expire, or halfway if they are short-lived."""
    remaining = keys[0] / 1000 - now
    return now + max(remaining - _RENEW_BEFORE_S, remaining / 2, 1.0 if remaining > 0 else 30.0)


def _new_delivery(context: SparkContext) -> KeyDelivery | None:
    """Return the delivery of credentials to a context's tasks, or None if its Spark has no S3 file system."""
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
        # Credentials are then not renewed.
        return None
    context_ref = ref(context)
    return KeyDelivery(lambda keys: send_keys(context_ref(), keys))


def send_keys(context: SparkContext | None, keys: Mapping[str, Keys]) -> None:
    """Add credentials to those of the user that runs the tasks, here and on every executor."""
    if context is None:
        raise EngineError("Cannot send credentials to Spark's tasks: the context is gone")
    jvm: Any = context._jvm
    user = jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser()
    added = jvm.org.apache.hadoop.security.Credentials()
    for name, key in keys.items():
        added.addSecretKey(jvm.org.apache.hadoop.io.Text(name), bytearray("\n".join(map(str, key)).encode()))
    user.addCredentials(added)
    if _has_executors(context):
        # Send all credentials of the user: an executor that starts later receives only the last message.
        every = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().serialize(user.getCredentials())
        (constructor,) = jvm.java.lang.Class.forName(_UPDATE).getConstructors()
        arguments = jvm.java.util.ArrayList()
        arguments.add(every)
        context._jsc.sc().schedulerBackend().driverEndpoint().send(constructor.newInstance(arguments.toArray()))


def _has_executors(context: SparkContext) -> bool:
    """Return whether tasks run in processes other than the driver's."""
    return not str(context.master).startswith("local") or str(context.master).startswith("local-cluster")


def _sources() -> list[Path]:
    return sorted(_SOURCES.glob("*.java"))


def _ship(context: SparkContext, classes: Mapping[str, bytes]) -> None:
    # Spark reads the file when the first task starts.
    folder = tempfile.TemporaryDirectory(prefix="frazil-", ignore_cleanup_errors=True)
    _folders.append(folder)
    path = Path(folder.name) / "frazil-table-keys.jar"
    with zipfile.ZipFile(path, "w") as archive:
        for name, code in classes.items():
            archive.writestr(name, code)
    context._jsc.sc().addJar(str(path))
