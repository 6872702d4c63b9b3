"""How long `import frazil` takes, beside the packages it could have loaded: the best of several fresh interpreters."""

from __future__ import annotations

import subprocess
import sys

RUNS = 5
MODULES = ("frazil", "numpy", "pyarrow", "datafusion")


def import_seconds(module: str) -> float:
    """Return the best time of importing a module in a fresh interpreter, the interpreter's own start left out."""
    code = f"from time import perf_counter as now; start = now(); import {module}; print(now() - start)"
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(RUNS))


def main() -> None:
    """Print the table."""
    print(f"{'module':<12} {'ms':>8}")
    for module in MODULES:
        print(f"{module:<12} {import_seconds(module) * 1000:>8.1f}")


if __name__ == "__main__":
    main()
