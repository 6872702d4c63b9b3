"""Compile the Java sources of `src/frazil/spark/java` as a driver does, against the Spark that is installed.

javac would refuse some of them: classes that extend Scala's have methods which Java's generics cannot express, and
which Spark's own compiler, Janino, does not look at. It is the one that compiles them on a driver.
"""

from __future__ import annotations

import sys
import time

import pyspark
from py4j.protocol import Py4JError
from pyspark.java_gateway import launch_gateway

from frazil.spark.jvm.java_classes import compile_classes


def main() -> int:
    """Compile, and say with which Spark."""
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    try:
        start = time.perf_counter()
        classes = compile_classes(gateway)
    except Py4JError as error:
        reason = next((one for one in str(error).splitlines() if "CompileException" in one), str(error))
        print(f"Cannot compile for Spark {pyspark.__version__}: {reason}", file=sys.stderr)
        return 1
    finally:
        gateway.shutdown()
    taken = time.perf_counter() - start
    print(f"{len(classes)} classes compiled for Spark {pyspark.__version__} in {taken:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
