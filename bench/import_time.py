"""How long `import frazil` takes, beside the packages it could have loaded, and the first row of a small table.

The best of several fresh interpreters, without the interpreter's own start.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

RUNS = 5
MODULES = ("frazil", "numpy", "pyarrow", "duckdb", "datafusion")
FIRST_ROWS = {
    "lake.sql": "lake.sql('select * from db.t').to_pylist()[0]",
    "a scan": "lake.table('db.t').scan(limit=1).to_arrow().to_pylist()[0]",
}
LIMIT_SECONDS = 0.5
"""From `import frazil` to the first row of a small table."""


def import_seconds(module: str) -> float:
    """Return the best time of importing a module in a fresh interpreter, the interpreter's own start left out."""
    return best_seconds(f"import {module}")


def best_seconds(code: str) -> float:
    """Return the best time of some code in a fresh interpreter, which finds modules compiled."""
    timed = f"from time import perf_counter as now; start = now(); {code}; print(now() - start)"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", timed]
    return min(float(subprocess.check_output(command, env=environment)) for _ in range(RUNS))


def main() -> int:
    """Print the table; return 1 if the first row takes too long."""
    print(f"{'module':<12} {'ms':>8}")
    for module in MODULES:
        print(f"{module:<12} {import_seconds(module) * 1000:>8.1f}")
    is_late = False
    with tempfile.TemporaryDirectory() as folder:
        make = f"import frazil; table = frazil.connect({folder!r}).create_table('db.t', 'id bigint')"
        subprocess.run([sys.executable, "-c", f"{make}; table.append([{{'id': 1}}, {{'id': 2}}])"], check=True)
        print(f"\n{'first row of':<12} {'ms':>8}")
        for name, code in FIRST_ROWS.items():
            seconds = best_seconds(f"import frazil; lake = frazil.connect({folder!r}); {code}")
            print(f"{name:<12} {seconds * 1000:>8.1f}")
            is_late = is_late or seconds > LIMIT_SECONDS
    return int(is_late)


if __name__ == "__main__":
    sys.exit(main())
