"""Start Spark's JVM without secrets on its command line, which every user of the machine can read.

PySpark passes all settings to `java` as `--conf`. Settings with credentials, passwords or tokens are not needed to
start it: the context receives them over the gateway once the JVM runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pyspark import SparkConf, SparkContext

_SECRET_NAME: Final = re.compile(
    r"secret|passw|token|credential|access[._-]?key|account[._-]?key|private[._-]?key|session[._-]?key|[._-]key$|sas"
    r"|auth|cookie|proxy|header\.|external-id",
    re.IGNORECASE,
)
_SECRET_VALUE: Final = re.compile(r"://[^/\s]*:[^/\s]*@|passw(or)?d=|[?&]sig=|bearer ", re.IGNORECASE)


def is_secret_setting(name: str, value: object) -> bool:
    """Return whether a setting may be a secret, judging by its name or value."""
    return _SECRET_NAME.search(name) is not None or _SECRET_VALUE.search(str(value)) is not None


def start_jvm(settings: Mapping[str, Any]) -> None:
    """Start Spark's JVM if there is none, with the settings that are not secret."""
    if SparkContext._active_spark_context is not None:
        return
    public = SparkConf()
    for name, value in settings.items():
        if not is_secret_setting(name, value):
            public.set(name, str(value))
    SparkContext._ensure_initialized(conf=public)
