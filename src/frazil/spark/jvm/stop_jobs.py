"""Cancel the Spark jobs of a Python verb on ctrl-C. `Waited.java` cancels those of SQL statements.

PySpark's signal handler cancels jobs from the waiting thread, whose connection to Java is busy: the request fails, the
wait ends, and the jobs continue. Here another thread, with its own connection, cancels the jobs of the interrupted work
and waits until they have ended, so that their files can be deleted.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from frazil.spark.jvm.private_names import is_classic

_WAIT_SECONDS = 10.0
_LOOK_SECONDS = 0.05


@contextmanager
def stopping_jobs(spark: SparkSession) -> Iterator[None]:
    """Cancel the jobs of the work inside if it is interrupted; only the main thread receives signals."""
    if threading.current_thread() is not threading.main_thread() or not is_classic(spark):
        yield
        return
    context: Any = spark.sparkContext
    tag = f"frazil-{uuid.uuid4().hex}"
    context.addJobTag(tag)
    try:
        yield
    except KeyboardInterrupt:
        thread = threading.Thread(target=_stop, args=(context, tag), name="frazil stops jobs", daemon=True)
        thread.start()
        thread.join(_WAIT_SECONDS)
        raise
    finally:
        with suppress(Py4JError):
            context.removeJobTag(tag)


def _stop(context: Any, tag: str) -> None:
    """Cancel the jobs of a tag until none is running; one may start after the first request."""
    ends = time.monotonic() + _WAIT_SECONDS
    with suppress(Py4JError):
        while time.monotonic() < ends:
            context.cancelJobsWithTag(tag)
            running = set(context.statusTracker().getActiveJobsIds())
            if not running & set(context._jsc.sc().statusTracker().getJobIdsForTag(tag)):
                return
            time.sleep(_LOOK_SECONDS)
