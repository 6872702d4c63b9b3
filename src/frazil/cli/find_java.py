"""Whether there is a Java that Spark can start with; asked before Spark is started, whose own words say little.

Java is looked for where Spark's scripts look: below JAVA_HOME where that is set, else on the PATH. Its version is read
from the `release` file beside it; where there is none, Spark is left to find out.
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
    f"Mac: brew install openjdk@{NEEDED}. `frazil sql --local`, `frazil head` and `frazil table` need none."
)


def check_java(environment: Mapping[str, str] | None = None) -> None:
    """Refuse to start Spark where there is no Java, or one that is too old."""
    environment = os.environ if environment is None else environment
    home = environment.get("JAVA_HOME")
    if home:
        found = shutil.which("java", path=str(Path(home, "bin")))
        where = f"JAVA_HOME is {home!r}, where there is none"
    else:
        found = shutil.which("java", path=environment.get("PATH"))
        where = "there is none on the PATH, and JAVA_HOME is not set"
    if found is None:
        raise UnsupportedError(f"Cannot start Spark: it needs Java {NEEDED} or newer, and {where}", hint=_HINT)
    version = _version_of(Path(found))
    if version is not None and version < NEEDED:
        raise UnsupportedError(
            f"Cannot start Spark: it needs Java {NEEDED} or newer, and {found} is Java {version}", hint=_HINT
        )


def _version_of(java: Path) -> int | None:
    try:
        match = _VERSION.search((java.resolve().parent.parent / "release").read_text("utf-8", "replace")[:10_000])
    except OSError:
        return None
    return None if match is None else int(match[1])
