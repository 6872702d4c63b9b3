"""Ship the frazil package to executors, for work that runs in their Python workers.

Only reads and writes that Spark's own readers and writer do not support, and bucket transforms of text and bytes, need
it. Executors still need pyarrow and frazil's other dependencies. A local session runs its workers where frazil is
installed.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import zipfile
from pathlib import Path
from weakref import WeakSet

from pyspark import SparkContext
from pyspark.sql import SparkSession

import frazil

_ANY_PYTHON = "python3"
_lock = threading.Lock()
_folders: list[tempfile.TemporaryDirectory[str]] = []
_shipped: WeakSet[SparkContext] = WeakSet()


def ship_package(spark: SparkSession) -> None:
    """Make frazil importable in the Python workers of a session, once per Spark context."""
    context = getattr(spark, "sparkContext", None)
    if context is None:
        spark.addArtifacts(str(_package_file()), pyfile=True)
        return
    if str(context.master).startswith("local"):
        # By default, Spark runs the first `python3` on the path, which may lack frazil.
        if context.pythonExec == _ANY_PYTHON:
            context.pythonExec = sys.executable
        return
    with _lock:
        if context not in _shipped:
            context.addPyFile(str(_package_file()))
            _shipped.add(context)


def _package_file() -> Path:
    """Zip the package into a temporary folder that lives as long as this process, since Spark reads it later."""
    root = Path(frazil.__file__).parent
    folder = tempfile.TemporaryDirectory(prefix="frazil-", ignore_cleanup_errors=True)
    _folders.append(folder)
    made = Path(folder.name) / "frazil-package.zip"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*.py")):
            archive.write(path, str(Path("frazil") / path.relative_to(root)))
    return made
