"""Run tests in two processes side by side: those without a JVM on every core, and those on Spark in one session.

    python tools/run_tests.py quick         what `make test` runs
    python tools/run_tests.py extended      what it leaves out and CI runs too

Which cases of a test run depends on a seed, by default the commit's hash, so that every case gets its turn as the
project moves on. It is printed; `FRAZIL_CASES_SEED=…` repeats a choice.

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
"""How many cases of a test `make test` runs, at most."""
CI_CASES = {"local": 4, "spark": 2}
"""How many CI runs."""


CASES_SEED = "FRAZIL_CASES_SEED"


def cases_seed() -> str:
    """Return the seed by which cases are chosen: from the environment, else the hash of the commit."""
    seed = os.environ.get(CASES_SEED)
    if seed is not None:
        return seed
    git = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "0"


def command(tier: str, half: str) -> list[str]:
    """Return the command that runs a half of a tier."""
    markers = "spark" if half == "spark" else "not spark"
    if tier == "quick":
        options = [
            "-m",
            f"{markers} and not slow and not extended",
            f"--cases={QUICK_CASES[half]}",
            "--most-seconds=10",
        ]
    else:
        options = ["-m", f"{markers} and not slow", f"--cases={CI_CASES[half]}", f"--beyond={QUICK_CASES[half]}"]
    pytest = [sys.executable, "-m", "pytest", "-q", *options]
    if half == "spark":
        return [*pytest, "-n0", *SPARK_FOLDERS]
    # Those on Spark run one after the other and end last: they go before.
    return ["nice", "-n10", *pytest, "-nauto", "--dist=worksteal", "--ignore=tests/spark"]


def main(tier: str) -> int:
    """Run both halves of a tier; return what the process ends with."""
    # Both import the same modules, and so do the processes that tests start: compile each once.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment[CASES_SEED] = cases_seed()
    print(f"cases are chosen by the seed {environment[CASES_SEED]}; {CASES_SEED}={environment[CASES_SEED]} repeats it")
    printing = threading.Lock()
    codes: dict[str, int] = {}

    def run(half: str) -> None:
        begun = time.monotonic()
        process = subprocess.Popen(
            command(tier, half), cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert process.stdout is not None
        report: list[str] = []
        for line in process.stdout:
            if line.endswith("%]\n"):
                with printing:
                    print(f"{half}  {line}", end="", flush=True)
            else:
                report.append(line)
        codes[half] = process.wait()
        with printing:
            print(f"\n{half}: ended with {codes[half]} after {time.monotonic() - begun:.0f} s\n{''.join(report)}")

    threads = [threading.Thread(target=run, args=[half]) for half in ("spark", "local")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return int(any(codes.values()))


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ("quick", "extended"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
