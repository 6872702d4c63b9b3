"""What the matrix saw, kept for docs/interop.md: `python -m tests.interop.interop_page` writes the page."""

from __future__ import annotations

import json
import os
from importlib.metadata import version as installed
from pathlib import Path

SEEN = os.environ.get("FRAZIL_INTEROP_SEEN")
"""A file to which each combination adds a line; none is kept where it is not named."""
ROOT = Path(__file__).resolve().parent.parent.parent


def record(case: str, version: int, producer: str, seen: dict[str, str]) -> None:
    """Keep what each consumer made of a table."""
    if SEEN is not None:
        with Path(SEEN).open("a") as file:
            file.write(json.dumps([case, version, producer, seen]) + "\n")


def page(lines: list[list[object]]) -> str:
    """Return the page: a table for each producer, and the reasons below."""
    producers = list(dict.fromkeys(str(line[2]) for line in lines))
    versions = ", ".join(f"{name} {installed(name)}" for name in ("pyiceberg", "duckdb", "pyspark", "pyarrow"))
    text = [
        "# Who reads what",
        "",
        "Made by `make test-interop` from what it saw: ✓ where every value was equal, ✗ with the reason, *not made*",
        f"where the producer cannot make such a table. Versions: {versions}.",
    ]
    for producer in producers:
        own = [line for line in lines if line[2] == producer]
        consumers = list(dict.fromkeys(name for line in own for name in _seen(line)))
        text += ["", f"## Tables made by {producer}", "", f"| table | version | {' | '.join(consumers)} |"]
        text.append("|---|---|" + "---|" * len(consumers))
        reasons: dict[str, int] = {}
        for case, version, _, seen in own:
            assert isinstance(seen, dict)
            cells = []
            for name in consumers:
                said = seen.get(name, "not run")
                if said == "✓" or said == "not run":
                    cells.append(said)
                else:
                    number = reasons.setdefault(said, len(reasons) + 1)
                    cells.append(f"{'✗' if said.startswith('✗') else 'not made'} [{number}]")
            text.append(f"| {case} | v{version} | {' | '.join(cells)} |")
        text += [""] if reasons else []
        text += [f"[{number}] {reason.removeprefix('✗ ')}  " for reason, number in reasons.items()]
    return "\n".join(text) + "\n"


def _seen(line: list[object]) -> dict[str, str]:
    found = line[3]
    assert isinstance(found, dict)
    return found


def main() -> None:
    """Write the page from the file of what was seen."""
    assert SEEN is not None, "set FRAZIL_INTEROP_SEEN to the file that the run wrote"
    lines = [json.loads(line) for line in Path(SEEN).read_text().splitlines()]
    (ROOT / "docs" / "interop.md").write_text(page(lines))


if __name__ == "__main__":
    main()
