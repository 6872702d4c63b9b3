"""Run tests in two processes side by side: those without a JVM on every core, and those on Spark in one session.

    python tools/run_tests.py "not slow and not extended"

The argument is an expression over markers, as pytest's `-m` takes it; what follows it goes to both. Progress is shown
line by line as it comes, the rest of what a process prints when it ends. Fails where either does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPARK_FOLDERS = ("tests/spark", "tests/hostile", "tests/interop")
"""Where quick tests on Spark may be: collecting all others takes longer than starting Spark does."""


def main(markers: str, *options: str) -> int:
    """Run both halves of the tests that the markers choose; return what the process ends with."""
    pytest = [sys.executable, "-m", "pytest", "-q", *options]
    local = ("-nauto", "--dist=worksteal", "--cases=4", "--ignore=tests/spark")
    halves = {
        "spark": [*pytest, "-m", f"spark and ({markers})", "-n0", "--cases=2", *SPARK_FOLDERS],
        "local": [*pytest, "-m", f"not spark and ({markers})", *local],
    }
    # Both import the same modules, and so do the processes that tests start: compile each once.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    printing = threading.Lock()
    codes: dict[str, int] = {}

    def run(name: str) -> None:
        begun = time.monotonic()
        process = subprocess.Popen(
            halves[name], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        report: list[str] = []
        for line in process.stdout:
            if line.endswith("%]\n"):
                with printing:
                    print(f"{name}  {line}", end="", flush=True)
            else:
                report.append(line)
        codes[name] = process.wait()
        with printing:
            print(f"\n{name}: ended with {codes[name]} after {time.monotonic() - begun:.0f} s\n{''.join(report)}")

    threads = [threading.Thread(target=run, args=[name]) for name in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(codes.values())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
