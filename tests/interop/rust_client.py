"""iceberg-rust's client of REST catalogs: the small program in `rust/`, built once by cargo, run once for each step."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("rust")
CACHE = Path(os.environ.get("FRAZIL_RUST_CACHE", Path.home() / ".cache" / "frazil-rust"))
_BUILD_SECONDS = 1800
_STEP_SECONDS = 60


class CannotBuild(Exception):
    """The program cannot be had here; the text says why."""


class RustError(Exception):
    """iceberg-rust refused a step; the text is its own."""


@cache
def rust_program() -> Path:
    """Return the program, built where it is missing or older than its source."""
    if shutil.which("cargo") is None:
        raise CannotBuild("iceberg-rust's client needs cargo")
    command = ["cargo", "build", "--quiet", "--locked", "--manifest-path", str(SOURCE / "Cargo.toml"),
               "--target-dir", str(CACHE / "target")]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False)
    if done.returncode != 0:
        raise CannotBuild(f"iceberg-rust's client could not be built: {done.stderr[-500:]}")
    return CACHE / "target" / "debug" / "frazil-rust-client"


def run_step(uri: str, verb: str, name: str, argument: object = None) -> Any:
    """Run one step against a service; return what it printed, read as JSON."""
    given = [] if argument is None else [json.dumps(argument)]
    done = subprocess.run(
        [rust_program(), uri, verb, name, *given], capture_output=True, text=True, timeout=_STEP_SECONDS, check=False
    )
    if done.returncode != 0:
        raise RustError(done.stderr.strip())
    return json.loads(done.stdout) if done.stdout else None
