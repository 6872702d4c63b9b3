"""Run tests in two processes side by side: those without a JVM on every core, and those on Spark in one session.

    python tools/run_tests.py quick         what `make test` runs
    python tools/run_tests.py extended      what it leaves out and CI runs too

Progress is shown line by line as it comes, the rest of what a process prints when it ends. Fails where either does.
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


QUICK_CASES = {"local": 2, "spark": 1}
"""How many cases of a test `make test` runs."""
CASES = {"local": 4, "spark": 2}
"""How many CI runs; `make test-all` runs all."""
TIERS = {
    "quick": ("not slow and not extended", lambda half: (f"--cases={QUICK_CASES[half]}", "--most-seconds=10")),
    "extended": ("not slow", lambda half: (f"--cases={CASES[half]}", f"--beyond={QUICK_CASES[half]}")),
}


def main(tier: str) -> int:
    """Run both halves of a tier; return what the process ends with."""
    markers, options = TIERS[tier]
    pytest = (sys.executable, "-m", "pytest", "-q", "-m")
    local = ("-nauto", "--dist=worksteal", "--ignore=tests/spark")
    halves = {
        "spark": (*pytest, f"spark and {markers}", *options("spark"), "-n0", *SPARK_FOLDERS),
        "local": (*pytest, f"not spark and {markers}", *options("local"), *local),
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
