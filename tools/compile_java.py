"""Compile the Java sources of `src/frazil/spark/java` as a driver does, against the Spark that is installed.

javac would refuse some of them: classes that extend Scala's have methods which Java's generics cannot express, and
which Spark's own compiler, Janino, does not look at. It is the one that compiles them on a driver.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyspark

ROOT = Path(__file__).parent.parent


def main() -> int:
    """Compile, and say with which Spark."""
    jars = Path(pyspark.__file__).parent / "jars"
    command = ["java", "-cp", f"{jars}/*", str(ROOT / "tools/CompileJava.java"), str(ROOT / "src/frazil/spark/java")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = next((one for one in done.stderr.splitlines() if "CompileException" in one), done.stderr)
        print(f"Cannot compile for Spark {pyspark.__version__}: {reason}", file=sys.stderr)
        return 1
    print(f"{done.stdout.strip()} compiled for Spark {pyspark.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
