"""Check for a suitable Java before starting Spark, whose own error says little.

Java is looked up as by Spark's scripts: below JAVA_HOME if that is set, or else on the PATH. Its version is read from
the `release` file beside it; without that file, Spark is left to find out.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from frazil.errors import UnsupportedError

NEEDED = 17
_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d{1,3})', re.MULTILINE)
_HINT = (
    f"Install Java {NEEDED} or newer, or set JAVA_HOME to it. Debian: apt install openjdk-{NEEDED}-jre-headless; "
    f"Mac: brew install openjdk@{NEEDED}. `frazil sql --local`, `frazil head` and `frazil table` work without Java."
)


def check_java(environment: Mapping[str, str] | None = None) -> None:
    """Refuse to start Spark without Java, or with a Java that is too old."""
    environment = os.environ if environment is None else environment
    home = environment.get("JAVA_HOME")
    if home:
        java = shutil.which("java", path=str(Path(home, "bin")))
        reason = f"JAVA_HOME is {home!r}, which contains no Java"
    else:
        java = shutil.which("java", path=environment.get("PATH"))
        reason = "there is no Java on the PATH, and JAVA_HOME is not set"
    if java is None:
        raise UnsupportedError(f"Cannot start Spark: it needs Java {NEEDED} or newer, but {reason}", hint=_HINT)
    version = _version_of(Path(java))
    if version is not None and version < NEEDED:
        raise UnsupportedError(
            f"Cannot start Spark: it needs Java {NEEDED} or newer, but {java} is Java {version}", hint=_HINT
        )


def _version_of(java: Path) -> int | None:
    try:
        match = _VERSION.search((java.resolve().parent.parent / "release").read_text("utf-8", "replace")[:10_000])
    except OSError:
        return None
    return None if match is None else int(match[1])
